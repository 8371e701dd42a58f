"""Directives as tiles: where they are, MAESTRO's figures are those of the mapping; where not, it is said which."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from support.maestro_mappings import Case, cases
from support.recorded.maestro import hardware_of, layer_of, load
from tilewright.errors import NotConformableError
from tilewright.mapspace.legality import legality
from tilewright.schema.frozen import FrozenDict
from tilewright_costmodels import MaestroOptions
from tilewright_costmodels.maestro.figures import Figures, figures_of
from tilewright_costmodels.maestro.machine import machine_of_directives
from tilewright_costmodels.maestro.model import MaestroModel
from tilewright_notations.directives import DirectiveHardware, DirectiveLayer, DirectiveProgram, Map
from tilewright_notations.directives.plan import plan_of
from tilewright_notations.directives.roles import roles_of
from tilewright_notations.directives.tiles import tiled_layer
from tilewright_notations.directives.translation import directives_of


def figures(layer: DirectiveLayer, hardware: DirectiveHardware) -> Figures:
    return figures_of(layer, hardware, machine_of_directives(layer, hardware))


def test_recorded_layers_that_are_tiles_cost_the_same_as_mappings() -> None:
    """PEs without work and lone edges in space count for MAESTRO's directives, and are not in a mapping: those differ."""
    seen: Counter[str] = Counter()
    for case in load("cases"):
        layer, hardware = (
            layer_of(case),
            hardware_of(case).model_copy(update={"simd_lanes": 1, "l2_size": None, "l1_size": None}),
        )
        if case["status"] == "nonsense":
            continue
        try:
            tiles = tiled_layer(layer, hardware)
        except NotConformableError as error:
            seen[error.reasons[0].code] += 1
            continue
        assert legality(tiles.problem, tiles.architecture, tiles.mapping), case["id"]
        assert tiles.problem.macs == layer.macs
        theirs = figures(layer, hardware)
        ours: Any = (
            MaestroModel(MaestroOptions(faithful=True)).bind(tiles.problem, tiles.architecture).explain(tiles.mapping)
        )
        same = ours.valid and ours.cycles == theirs.cycles and ours.columns["num_macs"] == theirs.macs
        seen["same" if same else "other"] += 1
    assert seen == {"same": 154, "other": 15, "diagonal": 1, "operation": 2}


@given(case=cases(perfect=True, most=2))
def test_a_mapping_made_of_directives_is_made_into_the_same_directives(case: Case) -> None:
    problem, architecture, found = case
    roles, plan = roles_of(problem), plan_of(architecture)
    for mapping in found:
        try:
            layer, hardware = directives_of(problem, mapping, roles, plan)
        except NotConformableError:
            continue
        windows = [layer.dimensions[name] for name in "RS" if name in layer.dimensions]
        wide = max(roles.strides.values(), default=1) > min(windows, default=9)  # are not tiles for MAESTRO
        lone = 1 in (hardware.num_pes // math.prod(layer.cluster_sizes), *layer.cluster_sizes)[:-1]  # no level of tiles
        if hardware.simd_lanes > 1 or wide or lone:
            continue
        tiles = tiled_layer(layer, hardware)
        assert tiles.problem.macs == problem.macs
        again = directives_of(tiles.problem, tiles.mapping, roles_of(tiles.problem), plan_of(tiles.architecture))
        one, other = figures(layer, hardware), figures(*again)
        assert one.columns() == other.columns()


GEMM = {"M": 4, "N": 6, "K": 8}
CONV = {"K": 4, "C": 4, "R": 3, "S": 3, "Y": 6, "X": 6}


@pytest.mark.parametrize(
    ("kind", "sizes", "maps", "code", "word"),
    [
        ("GEMM", GEMM, [(True, 1, 1, "M"), (False, 2, 3, "N")], "tile", "leaves gaps"),
        ("GEMM", GEMM, [(True, 1, 1, "M"), (False, 2, 1, "N")], "tile", "overlaps"),
        ("GEMM", GEMM, [(True, 1, 1, "M"), (True, 1, 1, "N")], "diagonal", "diagonal"),
        ("CONV", CONV, [(True, 1, 1, "K"), (False, 4, 1, "Y")], "tile", "2 outputs wide"),
        ("CONV", CONV, [(True, 1, 1, "R")], "tile", "cuts the filter"),
        ("CONV", CONV, [(True, 1, 1, "Y"), (True, 1, 1, "R")], "diagonal", "do not meet the same 4 outputs"),
        ("CONV", CONV, [(True, 5, 2, "Y"), (True, 2, 2, "R")], "diagonal", "not cut into equal pieces"),
        ("CONV", CONV, [(True, 4, 1, "Y"), (True, 1, 1, "S")], "diagonal", "are on a diagonal"),
        ("CONV", CONV, [(True, 1, 1, "K"), (False, 2, 1, "Y")], "tile", "narrower"),
        ("CONV", CONV | {"Y": 2}, [(True, 1, 1, "K")], "work", "no output"),
        ("TRCONV", CONV, [(True, 1, 1, "K")], "operation", "TRCONV"),
    ],
)
def test_what_is_no_tile_is_named(
    kind: Any, sizes: dict[str, int], maps: list[tuple[bool, int, int, str]], code: str, word: str
) -> None:
    level = tuple(Map(spatial=s, size=size, offset=offset, dimension=name) for s, size, offset, name in maps)
    layer = DirectiveLayer(name="L", type=kind, dimensions=FrozenDict(sizes), levels=(level,))
    with pytest.raises(NotConformableError) as caught:
        DirectiveProgram(name="net", layers=(layer,), hardware=DirectiveHardware(num_pes=4)).tiles(0)
    assert [reason.code for reason in caught.value.reasons] == [code] and word in str(caught.value)


def test_rows_that_no_window_reaches_are_left_out_with_a_word() -> None:
    layer = DirectiveLayer(
        name="L", type="CONV", dimensions=FrozenDict(CONV | {"Y": 7, "X": 8}), strides=FrozenDict({"Y": 2, "X": 2}),
        levels=((Map(spatial=True, size=1, offset=1, dimension="K"),),),
    )  # fmt: skip
    tiles = tiled_layer(layer, DirectiveHardware(num_pes=4))
    assert tiles.warnings == ("layer L: 1 of X are ignored, because no window reaches them",)
    assert tiles.problem.macs == layer.macs
