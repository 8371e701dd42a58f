"""The full form of a mapping: its loops reach every iteration once, and its tiles have the words of the inner loops."""

import itertools
import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support import EXAMPLE_FILES
from support.command import Command, command
from support.schemas import faults
from tilewright.errors import InputError, InvalidMappingError
from tilewright.mapspace.legality import legality
from tilewright.schema.mapped import BoundMapping
from tilewright.schema.mapping.full import FullMapping
from tilewright.testing.strategies import architectures, mappings, problems

MACHINE = {
    "name": "tiny",
    "clusters": [
        {"name": "DRAM", "memories": [{"name": "DRAM", "read_energy_pj": 64, "write_energy_pj": 64}]},
        {
            "name": "Buffer",
            "memories": [{"name": "Buffer", "read_energy_pj": 1, "write_energy_pj": 1}],
            "fanout": {"size": 4, "axis": "Y"},
        },
        {"name": "PE", "memories": [{"name": "Register", "read_energy_pj": 1, "write_energy_pj": 1}]},
    ],
    "compute": {"energy_per_operation_pj": 0.2},
}
PRODUCT = "Z[M, N] += A[M, K] * B[K, N]; M=10 N=7 K=5"


def pieces(full: FullMapping, outer: dict[str, tuple[int, int]], depth: int) -> list[dict[str, tuple[int, int]]]:
    """Return the pieces [start, end) of all dimensions inside the loops from a depth on, read as the manual says."""
    if depth == len(full.loops):
        return [outer]
    loop = full.loops[depth]
    start, end = outer[loop.dimension]
    steps = range(start, end, loop.tile)
    assert len(steps) <= loop.trips
    return [
        piece
        for at in steps
        for piece in pieces(full, outer | {loop.dimension: (at, min(at + loop.tile, end))}, depth + 1)
    ]


def whole(full: FullMapping) -> dict[str, tuple[int, int]]:
    return {name: (0, size) for name, size in full.dimensions.items()}


def check(full: FullMapping) -> None:
    inner = pieces(full, whole(full), 0)
    points = Counter(
        point for piece in inner for point in itertools.product(*(range(*ends) for ends in piece.values()))
    )
    assert points == Counter(itertools.product(*map(range, full.dimensions.values())))
    for tile in full.tiles:
        outside = full.model_copy(update={"loops": full.loops[: tile.depth]})
        longest = [
            max(end - start for start, end in column)
            for column in zip(*(p.values() for p in pieces(outside, whole(full), 0)), strict=True)
        ]
        sizes = dict(zip(full.dimensions, longest, strict=True))
        (tensor,) = (tensor for tensor in full.tensors if tensor.name == tile.tensor)
        assert {name: sizes[name] for name in tile.sizes} == tile.sizes
        shape = tuple(1 + sum(c * (sizes[name] - 1) for name, c in rank.terms.items()) for rank in tensor.coordinates)
        assert tile.shape == shape and tile.words <= math.prod(shape)
    assert faults(full.to_data()) == [] and FullMapping.model_validate(full.to_data()) == full
    steps = [math.ceil(size / loop.tile) for loop in full.loops for size in [loop.last + (loop.trips - 1) * loop.tile]]
    assert steps == [loop.trips for loop in full.loops]
    assert all((loop.kind == "spatial") == (loop.axis is not None) for loop in full.loops)


@given(st.data())
def test_the_loops_reach_every_iteration_once(data: st.DataObject) -> None:
    problem, architecture = data.draw(problems()), data.draw(architectures())
    mapping = data.draw(mappings(problem, architecture))
    if problem.macs < 3000:
        check(FullMapping.of(mapping, problem, architecture))


def ragged(**sizes: int) -> tw.Mapping:
    """A ragged and uneven mapping: the buffer keeps Z at other loops than A and B."""
    return tw.Mapping.model_validate(
        {
            "entries": [
                {"target": "DRAM", "keep": ["A", "B", "Z"], "temporal_tile_sizes": {"M": 10, "N": 7, "K": 5}},
                {
                    "target": "Buffer",
                    "keep": ["Z"],
                    "temporal_tile_sizes": {"M": sizes["m"], "N": 3},
                    "temporal_order": ["N", "M"],
                },
                {
                    "target": "Buffer",
                    "keep": ["A", "B"],
                    "temporal_tile_sizes": {"K": 2},
                    "spatial_tile_sizes": {"M": 1},
                },
                {"target": "PE", "keep": ["Z"], "temporal_tile_sizes": {"N": 1, "K": 1}, "temporal_order": ["K", "N"]},
            ]
        }
    )


@pytest.mark.parametrize("m", [2, 3, 4])
def test_ragged_and_uneven_mappings(m: int) -> None:
    full = tw.full_mapping(ragged(m=m), PRODUCT, MACHINE)
    check(full)
    assert full.ragged and [(tile.memory, tile.tensor) for tile in full.tiles[3:]] == [
        ("Buffer", "Z"), ("Buffer", "A"), ("Buffer", "B"), ("Register", "Z"),
    ]  # fmt: skip
    first = full.loops[0]
    assert (first.dimension, first.trips, first.tile, first.last, first.memories) == ("N", 3, 3, 1, ("DRAM",))
    (unrolled,) = (loop for loop in full.loops if loop.kind == "spatial")
    assert (unrolled.dimension, unrolled.trips, unrolled.cluster, unrolled.axis) == ("M", m, "Buffer", "Y")


def test_a_layer_of_a_report_has_the_same_loops() -> None:
    report = tw.map(PRODUCT, MACHINE, mapper="random", evaluations=50, cache=False, progress=False)
    (layer,), (row,) = report.layers, report.data()["layers"]
    full = tw.full_mapping(layer)
    check(full)
    assert isinstance(layer.mapping, BoundMapping) and layer.mapping.full() == full
    assert row["loops"] == full.to_data()["loops"] and row["tiles"] == full.to_data()["tiles"]


def test_the_command_prints_and_writes_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    run: Command = command(monkeypatch, capsys)
    files = [EXAMPLE_FILES / f"gemm.{part}.yaml" for part in ("mapping", "problem")] + [
        EXAMPLE_FILES / "small.arch.yaml"
    ]
    data = run("convert", *files, "--full", "--json").data
    assert faults(data) == [] and math.prod(loop["trips"] for loop in data["loops"]) == 64**3
    ran = run("convert", *files, "--full", "-o", tmp_path, "--json")
    assert ran.data == data and "mapping.full.json" in ran.err
    assert json.loads((tmp_path / "mapping.full.json").read_text()) == data
    union = run("convert", "--from", "union", EXAMPLE_FILES / "union_figure_9a.yaml", "--full").data
    assert faults(union) == [] and sum(loop["kind"] == "spatial" for loop in union["loops"]) == 2
    for words, told in (
        ((EXAMPLE_FILES / "gemm.mapping.yaml",), "convert needs either --to NOTATION or --full"),
        ((*files, "--full", "--to", "loopnest"), "convert needs either --to NOTATION or --full"),
        ((*files, "--full", "--lossy"), "--lossy is for --to"),
        ((EXAMPLE_FILES / "maestro/mapping.m", EXAMPLE_FILES / "maestro/hardware.m", "--full"), "contain directives"),
    ):
        ran = run("convert", *words)
        assert ran.code == 2 and told in ran.err, ran.err


def test_mappings_that_are_not_legal_have_none() -> None:
    problem, machine = tw.load(PRODUCT, "problem"), tw.load(MACHINE, "architecture")
    wrong = ragged(m=5)
    assert not legality(problem, machine, wrong)
    with pytest.raises(InvalidMappingError, match="fanout"):
        tw.full_mapping(wrong, problem, machine)
    with pytest.raises(InputError, match="other dimensions"):
        FullMapping.of(wrong, tw.load("Z[M] += A[M, K] * B[K]; M=10 K=5", "problem"), machine)
