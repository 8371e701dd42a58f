"""Written MAESTRO files: together with their sidecar file they give back the mapping."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from support.maestro_mappings import Case, cases
from support.profiles import scaled
from support.recorded.maestro import hardware_of, layer_of, load
from tilewright.errors import InputError, NotConformableError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import NO_CONSTRAINTS
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.maestro import MaestroAdapter
from tilewright_costmodels import MaestroOptions
from tilewright_costmodels.maestro.model import MaestroModel
from tilewright_notations.directives import NEEDED, WINDOWS, DirectiveHardware, DirectiveLayer, DirectiveProgram, Map

ADAPTER = MaestroAdapter()


def read(files: dict[str, str], folder: Path) -> InputSet:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return ADAPTER.parse([folder / name for name in files])


@given(case=cases(most=1))
def test_a_mapping_comes_back_and_costs_what_it_cost(case: Case, folder: Path) -> None:
    problem, architecture, (mapping,) = case
    inputs = InputSet(problem, architecture, mapping)
    verdict = ADAPTER.expressible(inputs)
    event("written" if verdict else verdict.reasons[0].code)
    if not verdict:
        with pytest.raises(NotConformableError) as caught:
            ADAPTER.render(inputs)
        assert caught.value.reasons == verdict.reasons
        return
    files = ADAPTER.render(inputs)
    assert read(files, folder) == inputs
    theirs = read({name: text for name, text in files.items() if name.endswith(".m")}, folder).directives
    assert theirs is not None
    (report,) = MaestroModel(MaestroOptions(faithful=True)).explain_directives(theirs)
    ours: Any = MaestroModel(MaestroOptions(faithful=True)).bind(problem, architecture).explain(mapping)
    assert report.valid == ours.valid and report.cycles == ours.cycles and report.macs == ours.macs
    if report.valid:
        assert report.model_dump()["columns"]["tensors"] == ours.model_dump()["columns"]["tensors"]


@st.composite
def programs(draw: st.DrawFn) -> DirectiveProgram:
    """Draw any program: sound, senseless, or not expressible in MAESTRO's files."""
    number = st.integers(1, 2**40)
    names = st.sampled_from([*["L", "conv_1", "a.b", "Layer"] * 5, "two words", "x{", "c,d", "-", ""])

    def layer() -> DirectiveLayer:
        kind = draw(st.sampled_from(sorted(NEEDED)))
        sizes = {name: draw(number) for name in NEEDED[kind]} | ({"N": draw(number)} if draw(st.booleans()) else {})
        known = [*sizes, *(f"{name}'" for name in WINDOWS if name in sizes)]
        maps = st.builds(
            Map,
            spatial=st.booleans(),
            size=number,
            offset=number,
            dimension=st.sampled_from([*known, "Q"] if draw(st.integers(0, 9)) == 0 else known),
        )
        levels = draw(st.lists(st.lists(maps, max_size=4), min_size=1, max_size=3))
        return DirectiveLayer(
            name=draw(names),
            type=kind,
            dimensions=FrozenDict(sizes),
            strides=FrozenDict(draw(st.dictionaries(st.sampled_from("YYYXXXR"), number, max_size=2))),
            levels=tuple(tuple(level) for level in levels),
            cluster_sizes=tuple(draw(number) for _ in levels[1:]),
        )  # fmt: skip

    limit = st.none() | number
    hardware = DirectiveHardware(
        num_pes=draw(number), l1_size=draw(limit), l2_size=draw(limit), noc_bandwidth=draw(number),
        noc_latency=draw(st.integers(0, 9)), offchip_bandwidth=draw(number), simd_lanes=draw(st.sampled_from([*[1] * 9, 2])),
    )  # fmt: skip
    count = draw(st.integers(1, 3))
    return DirectiveProgram(name=draw(names), layers=tuple(layer() for _ in range(count)), hardware=hardware)


@scaled(2.5)
@given(program=programs())
def test_a_program_comes_back(program: DirectiveProgram, folder: Path) -> None:
    inputs = InputSet(directives=program)
    verdict = ADAPTER.expressible(inputs)
    event("written" if verdict else verdict.reasons[0].code)
    if verdict:
        assert read(ADAPTER.render(inputs), folder) == inputs


@pytest.mark.parametrize("case", load("cases"), ids=lambda case: case["id"])
def test_recorded_layers_are_written_as_they_are(case: dict[str, Any], tmp_path: Path) -> None:
    hardware = hardware_of(case)
    program = DirectiveProgram(name="net", layers=(layer_of(case),), hardware=hardware)
    inputs = InputSet(directives=program)
    if hardware.simd_lanes != 1:
        assert [reason.code for reason in ADAPTER.expressible(inputs).reasons] == ["lanes"]
        return
    assert read(ADAPTER.render(inputs), tmp_path) == inputs


def test_a_program_in_another_notation_is_refused() -> None:
    other: Any = SimpleNamespace(name="other", layers=())
    assert [reason.code for reason in ADAPTER.expressible(InputSet(directives=other)).reasons] == ["notation"]


GEMM = Problem.from_yaml(
    """
name: my gemm
dimensions: {M: 4, N: 6, K: 8}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: B, role: weight, projection: [K, N]}
- {name: Z, role: output, projection: [M, N]}
""".replace("my gemm", "my-gemm")
)
ARRAY = Architecture.from_yaml("""
name: array
clusters:
- name: L2
  memories: [{name: L2, capacity_words: 500, read_energy_pj: 2, write_energy_pj: 3}]
  fanout: {size: 4, network: {bandwidth_words_per_cycle: 10, latency_cycles: 2}}
- {name: PE, memories: [{name: L1, capacity_words: 40, read_energy_pj: 1, write_energy_pj: 1}], fanout: {size: 2}}
compute: {energy_per_operation_pj: 1}
""")
MAPPING = """
entries:
- {target: L2, keep: [A, B, Z], temporal_tile_sizes: {M: 4, N: 6, K: 8}}
- {target: L2, temporal_tile_sizes: {N: 2, K: 2}, temporal_order: [N, K, M], spatial_tile_sizes: {M: 1}}
- {target: PE, keep: [A, B, Z]}
- {target: PE, temporal_tile_sizes: {M: 1, N: 1, K: 1}, temporal_order: [M, N, K]}
"""


def test_the_files_are_those_one_would_write() -> None:
    files = ADAPTER.render(InputSet(GEMM, ARRAY, Mapping.from_yaml(MAPPING)))
    assert list(files) == ["data/mapping/my_gemm.m", "data/hw/my_gemm.m", "tilewright.yaml"]
    assert files["data/hw/my_gemm.m"].split("\n") == [
        "num_pes: 4", "l1_size_cstr: 40", "l2_size_cstr: 500", "noc_bw_cstr: 10", "NoC_NumHops: 2", "",
    ]  # fmt: skip
    assert files["data/mapping/my_gemm.m"] == (
        "Network my_gemm {\n Layer my_gemm {\n  Type: GEMM\n  Dimensions { M: 4, N: 6, K: 8 }\n  Dataflow {\n"
        "   TemporalMap(2,2) N;\n   TemporalMap(2,2) K;\n   SpatialMap(1,1) M;\n  }\n }\n}\n"
    )


def test_a_file_beside_other_files_is_refused(tmp_path: Path) -> None:
    files = ADAPTER.render(InputSet(GEMM, ARRAY, Mapping.from_yaml(MAPPING)))
    files["data/mapping/my_gemm.m"] = files["data/mapping/my_gemm.m"].replace(
        "TemporalMap(2,2) K", "TemporalMap(4,4) K"
    )
    with pytest.raises(InputError, match="written for other MAESTRO files") as caught:
        read(files, tmp_path)
    assert caught.value.location is not None and caught.value.location.line is not None
    (tmp_path / "tilewright.yaml").write_text("maestro: {problem: 3}")
    with pytest.raises(InputError, match="is not a sidecar of MAESTRO's files"):
        ADAPTER.parse([tmp_path / name for name in files])


SPLIT_LANES = MAPPING.replace("temporal_tile_sizes: {M: 1, N: 1, K: 1}", "temporal_tile_sizes: {M: 1, N: 1, K: 2}, spatial_tile_sizes: {K: 1}")  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        (InputSet(), "missing"),
        (InputSet(GEMM, ARRAY), "missing"),
        (InputSet(GEMM, ARRAY, Mapping.from_yaml(MAPPING), NO_CONSTRAINTS), "constraints"),
        (InputSet(GEMM, ARRAY, Mapping.from_yaml(MAPPING), model_options={"a": 1}), "model_options"),
        (InputSet(GEMM, ARRAY, Mapping.from_yaml(SPLIT_LANES)), "lanes"),
        (InputSet(GEMM, ARRAY, Mapping.from_yaml(MAPPING.replace("M: 4, N: 6", "M: 4, N: 7"))), "coverage"),
        (
            InputSet(GEMM, ARRAY, Mapping.from_yaml(MAPPING.replace("PE, keep: [A, B, Z]", "PE, keep: [A, Z]"))),
            "bypass",
        ),
        (
            InputSet(GEMM, ARRAY, Mapping.from_yaml(MAPPING.replace("{M: 1}}", "{M: 1}, unicast: [A]}"))),
            "unicast",
        ),
    ],
)
def test_what_the_notation_cannot_hold_is_named(inputs: InputSet, code: str) -> None:
    verdict = ADAPTER.expressible(inputs)
    assert code in [reason.code for reason in verdict.reasons]
    with pytest.raises(NotConformableError):
        ADAPTER.render(inputs)
