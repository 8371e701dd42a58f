"""Writing Timeloop's files: what is read back equals what was written, and costs the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.recorded.timeloop import INPUTS, cases, recorded_remainders
from tilewright import library
from tilewright.errors import InputError, NotConformableError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.adapter import InputSet
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import parse_document
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
from tilewright_notations.directives import DirectiveHardware, DirectiveLayer, DirectiveProgram

"""Random triples of problem, architecture and mapping per property."""
OURS = "tilewright.yaml"
OFTEN_REFUSED = {"sparse_tensor_core", "tpu_v1", "union_cloud", "union_edge", "sunstone_conventional", "cosa_k80"}
"""Sibling memories outermost, operations of several cycles, or arrays whose free mappings unroll along both axes."""
PARTS = ("problem", "architecture", "mapping", "constraints")
KNOWN = {
    *("uneven", "siblings", "unvisited", "step_after_split", "two_loops", "two_axes", "multicast", "imperfect", "axis"),
    *("sparse", "coverage", "backing", "keep", "split", "cycles_per_operation"),
}
versions = pytest.mark.parametrize("adapter", [TimeloopAdapter("v3"), TimeloopAdapter("v4")], ids=["v3", "v4"])


def read(adapter: TimeloopAdapter, files: dict[str, str], *, ours: bool = True) -> InputSet:
    """Return the inputs read from the files; without `ours`, as Timeloop reads them."""
    return adapter.read([parse_document(text, source=name) for name, text in files.items() if ours or name != OURS])


def figures(report: Report) -> object:
    """All figures that are not names; levels that keep nothing have none."""
    levels = [
        (level.instances, level.cycles, level.energy_pj, [tuple(counts) for counts in level.tensors.values()])
        for level in report.levels
        if level.tensors
    ]
    return (report.valid, report.cycles, report.energy_pj, report.utilization, levels)


def evaluated(inputs: InputSet) -> Report:
    assert inputs.problem and inputs.architecture and inputs.mapping
    return TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)


def holds(adapter: TimeloopAdapter, inputs: InputSet) -> bool:
    """Check the round-trip guarantee on one set of inputs, and return whether it could be written."""
    verdict = adapter.expressible(inputs)
    if not verdict:
        assert {reason.code for reason in verdict.reasons} <= KNOWN
        assert all(reason.where and reason.message for reason in verdict.reasons)
        with pytest.raises(NotConformableError) as caught:
            adapter.render(inputs)
        assert caught.value.reasons == verdict.reasons
        return False
    files = adapter.render(inputs)
    again, seen = read(adapter, files), read(adapter, files, ours=False)
    assert all(getattr(again, part) == getattr(inputs, part) for part in PARTS)
    assert figures(evaluated(seen)) == figures(evaluated(inputs))
    return True


@versions
@given(st.data())
def test_any_mapping_comes_back_and_costs_the_same_or_is_refused(adapter: TimeloopAdapter, data: st.DataObject) -> None:
    problem = data.draw(problems(max_dimensions=7, max_macs=400, max_operands=4))
    architecture = data.draw(architectures(roomy=False, shared=True, unlinked=True))
    holds(adapter, InputSet(problem, architecture, data.draw(mappings(problem, architecture))))


@versions
@given(st.data())
def test_mappings_of_a_map_space_come_back_and_cost_the_same(adapter: TimeloopAdapter, data: st.DataObject) -> None:
    problem = data.draw(problems(max_dimensions=7, max_macs=400, max_operands=4))
    architecture = data.draw(architectures(roomy=False, shared=True, unlinked=True))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    (mapping,) = MapSpace.of(problem, architecture, rules=None).sample(rng, 1)
    holds(adapter, InputSet(problem, architecture, mapping))


@pytest.mark.exhaustive
@versions
@pytest.mark.parametrize("name", library.names("architectures"))
def test_mappings_on_published_architectures_come_back_and_cost_the_same(adapter: TimeloopAdapter, name: str) -> None:
    architecture = library.architecture(name)
    rules = library.default_constraints(name)
    written = 0
    for workload in ("quickflow_convs", "factorflow_gemms"):
        problem = library.workload(workload).layers[0].problem
        space = MapSpace.of(problem, architecture, rules.rules_for(problem, architecture) if rules else None)
        for mapping in space.sample(np.random.default_rng(0), 3):
            written += holds(adapter, InputSet(problem, architecture, mapping))
    assert written or name in OFTEN_REFUSED


@pytest.mark.exhaustive
@versions
@pytest.mark.parametrize("name", recorded_remainders())
def test_recorded_remainders_come_back_and_cost_the_same(adapter: TimeloopAdapter, name: str) -> None:
    case = recorded_remainders()[name]
    problem, architecture = Problem.model_validate(case["problem"]), Architecture.model_validate(case["architecture"])
    assert holds(adapter, InputSet(problem, architecture, Mapping.model_validate(case["mapping"])))


def test_what_timeloop_says_needs_no_second_file() -> None:
    adapter = TimeloopAdapter("v3")
    for path in sorted(INPUTS.iterdir()):
        inputs = adapter.parse([path])
        if adapter.expressible(inputs):
            files = adapter.render(inputs)
            assert OURS not in files
            assert read(adapter, files) == inputs


@pytest.mark.exhaustive
@versions
def test_measured_mappings_come_back_and_cost_what_was_measured(adapter: TimeloopAdapter) -> None:
    for case in cases()[::7]:
        inputs = InputSet(case.problem, case.architecture, case.mapping)
        if not adapter.expressible(inputs):
            assert {reason.code for reason in adapter.expressible(inputs).reasons} == {"network"}
            continue
        report = evaluated(read(adapter, adapter.render(inputs), ours=False))
        assert report.energy_pj == pytest.approx(case.figures.energy_pj)
        assert report.cycles == pytest.approx(case.figures.cycles, abs=1)


SAMPLE = next(sample for sample in SAMPLES if str(sample) == "conv on array")


def inputs_of(change: Callable[[dict[str, Any]], None] | None = None) -> InputSet:
    """A convolution on a small array, stepped and unrolled by hand; `change` edits the mapping's data."""
    tile = dict(SAMPLE.problem.dimensions)
    whole = dict(tile)
    data: dict[str, Any] = {"entries": [{"target": "Main", "keep": ["I", "W", "O"], "temporal_tile_sizes": whole}]}
    tile |= {"K": 2}
    data["entries"].append({"target": "Main", "temporal_tile_sizes": dict(tile)})
    data["entries"].append({"target": "Buffer", "keep": ["I", "W", "O"]})
    data["entries"].append({"target": "Buffer", "spatial_tile_sizes": {"Q": 1}})
    data["entries"].append({"target": "Column", "spatial_tile_sizes": {"K": 1}})
    data["entries"].append({"target": "Element", "keep": ["W", "O"]})
    data["entries"].append(
        {"target": "Element", "temporal_tile_sizes": dict.fromkeys(tile, 1), "temporal_order": list(tile)}
    )
    if change:
        change(data)
    return InputSet(SAMPLE.problem, SAMPLE.architecture, Mapping.model_validate(data))


def codes(inputs: InputSet, version: str = "v3") -> set[str]:
    adapter = TimeloopAdapter("v3" if version == "v3" else "v4")
    verdict = adapter.expressible(inputs)
    if not verdict:
        with pytest.raises(NotConformableError):
            adapter.render(inputs)
    return {reason.code for reason in verdict.reasons}


def edited(**changes: Any) -> InputSet:
    """The hand-made inputs with one part in place of another."""
    inputs = inputs_of()
    assert inputs.architecture and inputs.problem
    return InputSet(
        changes.get("problem", inputs.problem), changes.get("architecture", inputs.architecture), inputs.mapping
    )


def test_the_plain_case_is_written() -> None:
    assert codes(inputs_of()) == codes(inputs_of(), "v4") == set()
    for version in ("v3", "v4"):
        assert holds(TimeloopAdapter("v3" if version == "v3" else "v4"), inputs_of())


def _uneven(data: dict[str, Any]) -> None:
    data["entries"][5]["keep"] = ["W"]
    data["entries"].insert(6, {"target": "Element", "keep": ["O"], "temporal_tile_sizes": {"C": 1}})


def _step_after_unrolling(data: dict[str, Any]) -> None:
    data["entries"][4]["temporal_tile_sizes"] = {"C": 1}


def _two_loops(data: dict[str, Any]) -> None:
    data["entries"][2]["temporal_tile_sizes"] = {"K": 1}
    del data["entries"][4]


def _two_axes(data: dict[str, Any]) -> None:
    data["entries"][3]["spatial_tile_sizes"] = {"Q": 2}
    data["entries"][4]["spatial_tile_sizes"] = {"Q": 1}


MESH = """
name: mesh
clusters:
- {name: DRAM, memories: [{name: DRAM, read_energy_pj: 200, write_energy_pj: 200}]}
- name: Buffer
  memories: [{name: Buffer, capacity_words: 4096, read_energy_pj: 6, write_energy_pj: 6}]
  fanout: {size: 4, axis: Y}
- {name: Row, fanout: {size: 4, axis: X}}
- {name: Unit, memories: [{name: Registers, capacity_words: 64, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 1}
"""


def on_a_mesh(unrolled: dict[str, dict[str, int]]) -> InputSet:
    """Return a product on a 4 x 4 mesh. `unrolled`: cluster -> tile sizes after its unrolling."""
    problem = Problem.model_validate(
        {
            "name": "product",
            "dimensions": {"M": 2, "K": 16, "N": 4},
            "tensors": [
                {"name": "A", "role": "input", "projection": ["M", "N"]},
                {"name": "B", "role": "weight", "projection": ["N", "K"]},
                {"name": "Z", "role": "output", "projection": ["M", "K"]},
            ],
        }
    )
    tile, names = dict(problem.dimensions), list(problem.tensor_names)
    entries: list[dict[str, Any]] = [{"target": "DRAM", "keep": names, "temporal_tile_sizes": dict(tile)}]
    entries.append({"target": "Buffer", "keep": names})
    entries += [{"target": cluster, "spatial_tile_sizes": sizes} for cluster, sizes in unrolled.items()]
    entries.append({"target": "Unit", "keep": names})
    entries.append({"target": "Unit", "temporal_tile_sizes": dict.fromkeys(tile, 1), "temporal_order": list(tile)})
    return InputSet(problem, Architecture.from_yaml(MESH), Mapping.model_validate({"entries": entries}))


@versions
def test_a_dimension_along_both_axes_needs_a_level_that_keeps_nothing(adapter: TimeloopAdapter) -> None:
    """Timeloop's maintainers give this way in issue 162: the level between unrolls the second axis."""
    inputs = on_a_mesh({"Buffer": {"K": 4}, "Row": {"K": 1}})
    assert holds(adapter, inputs)
    seen = read(adapter, adapter.render(inputs), ours=False)
    assert seen.architecture is not None and seen.mapping is not None
    level = next(memory for memory in seen.architecture.memories if memory.name == "Row_axis")
    assert level.holds == () and level.read_energy_pj == 0
    kept = {entry.target: entry.keep for entry in seen.mapping.entries if entry.keep is not None}
    assert kept["Row_axis"] == () and seen.architecture.compute_instances == 16


def test_a_level_between_that_would_change_counts_is_refused() -> None:
    assert codes(on_a_mesh({"Buffer": {"K": 8, "N": 2}, "Row": {"K": 4, "N": 2}})) == {"two_axes"}


def _unvisited(data: dict[str, Any]) -> None:
    del data["entries"][2]["keep"]


def _mixed(data: dict[str, Any]) -> None:
    data["entries"][3]["unicast"] = ["W"]


def _ragged(data: dict[str, Any]) -> None:
    data["entries"][2]["temporal_tile_sizes"] = {"P": 2, "Q": 3}
    data["entries"][2]["temporal_order"] = list(SAMPLE.problem.dimensions)
    data["entries"][3]["spatial_tile_sizes"] = {"Q": 2}
    del data["entries"][4]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_uneven, "uneven"),
        (_step_after_unrolling, "step_after_split"),
        (_two_loops, "two_loops"),
        (_two_axes, "two_axes"),
        (_unvisited, "unvisited"),
        (_mixed, "multicast"),
        (_ragged, "imperfect"),
    ],
)
def test_what_the_nest_cannot_say_is_refused_by_name(change: Callable[[dict[str, Any]], None], code: str) -> None:
    assert codes(inputs_of(change)) == {code}


def _with(architecture: Architecture, path: str, value: object) -> Architecture:
    data = architecture.model_dump(mode="json")
    here: Any = data
    *steps, last = path.split(".")
    for step in steps:
        here = here[int(step) if step.isdigit() else step]
    here[last] = value
    return Architecture.model_validate(data)


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("clusters.1.fanout.axis", "Z", "axis"),
        ("clusters.1.fanout.network.latency_cycles", 2, "network"),
        ("clusters.2.fanout.network.energy_per_hop_pj", 1.0, "network"),
        ("compute.cycles_per_operation", 2, "cycles_per_operation"),
    ],
)
def test_what_the_hardware_cannot_say_is_refused_by_name(path: str, value: object, code: str) -> None:
    assert code in codes(edited(architecture=_with(SAMPLE.architecture, path, value)))


def test_wires_with_energies_are_for_v3() -> None:
    with_hops = edited(architecture=_with(SAMPLE.architecture, "clusters.1.fanout.network.energy_per_hop_pj", 1.0))
    assert holds(TimeloopAdapter("v3"), with_hops)
    assert codes(with_hops, "v4") == {"network"}
    (reason,) = TimeloopAdapter("v4").expressible(with_hops).reasons
    assert reason.message == "its network has energy_per_hop_pj: 1.0; Timeloop v4's files cannot express it"


def test_parts_that_are_missing_or_of_another_kind() -> None:
    whole = inputs_of()
    assert codes(InputSet()) == {"empty"}
    assert codes(InputSet(problem=whole.problem, mapping=whole.mapping)) == {"parts"}
    assert codes(InputSet(architecture=whole.architecture, mapping=whole.mapping)) == {"parts"}
    layer = DirectiveLayer.model_validate(
        {
            "name": "g",
            "type": "GEMM",
            "dimensions": {"M": 2, "N": 2, "K": 2},
            "levels": [[{"spatial": False, "size": 1, "offset": 1, "dimension": name} for name in "MNK"]],
        }
    )
    program = DirectiveProgram(name="g", layers=(layer,), hardware=DirectiveHardware())
    assert codes(InputSet(directives=program)) == {"directives"}


CHANGED = {"GlobalBuffer": 2**32 - 1, "InRegister": 0}


@versions
def test_every_memory_but_dram_has_a_size(adapter: TimeloopAdapter) -> None:
    architecture = library.architecture("eyeriss").replace(
        {"GlobalBuffer.capacity_words": None, "InRegister.capacity_words": None, "InRegister.holds": []}
    )
    text = adapter.render(InputSet(architecture=architecture))["arch.yaml"]
    sizes = {name: text.partition(f"name: {name}\n")[2].partition("name: ")[0] for name in ("DRAM", *CHANGED)}
    assert "entries" not in sizes.pop("DRAM")
    assert all(f"entries: {entries}" in sizes[name] for name, entries in CHANGED.items()), "Timeloop aborts without"


@versions
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_problems_and_architectures_alone_come_back(adapter: TimeloopAdapter, sample: Any) -> None:
    for inputs in (
        InputSet(sample.problem),
        InputSet(None, sample.architecture),
        InputSet(sample.problem, sample.architecture),
    ):
        again = read(adapter, adapter.render(inputs))
        assert all(getattr(again, part) == getattr(inputs, part) for part in PARTS)


@versions
def test_names_that_mean_something_to_timeloop_are_replaced_and_come_back(adapter: TimeloopAdapter) -> None:
    problem = Problem.from_yaml("""
name: " odd: name"
operation: gemm
dimensions: {rows: 4, R: 3, _x: 2, no: 2}
tensors:
- {name: "in.1", role: weight, projection: [rows, 2*R + 3*_x]}
- {name: Y, role: input, projection: [R, _x, no]}
- {name: "out-1", role: output, projection: [rows, no]}
""")
    architecture = Architecture.from_yaml("""
name: my.chip
clusters:
- {name: far, memories: [{name: DRAM.0, technology: dram, read_energy_pj: 1.0e-05, write_energy_pj: 3, update_energy_pj: 3}]}
- name: near
  memories: [{name: Buf, read_energy_pj: 1, write_energy_pj: 1, multiple_buffering: 2.5, capacity_words: 1000, block_words: 3}]
  fanout: {size: 4, axis: X}
- {name: near_X, fanout: {size: 2, axis: Y, multicast: false}}
- {name: Buf, memories: [{name: Buf_X, technology: register, read_energy_pj: 0.1, write_energy_pj: 0.1}]}
compute: {name: Buf_, energy_per_operation_pj: 0.3, word_bits: 7}
""")
    written = 0
    for mapping in MapSpace.of(problem, architecture, rules=None).sample(np.random.default_rng(3), 20):
        written += holds(adapter, InputSet(problem, architecture, mapping))
    assert written > 5


@versions
def test_files_changed_by_hand_are_not_taken_for_what_they_were(adapter: TimeloopAdapter) -> None:
    files = adapter.render(inputs_of())
    assert OURS in files
    changed = files | {"problem.yaml": files["problem.yaml"].replace("conv", "other")}
    with pytest.raises(InputError, match="written for other Timeloop files"):
        read(adapter, changed)
    alone = read(adapter, changed, ours=False)
    assert alone.problem is not None and alone.problem.name == "other"
    with pytest.raises(InputError, match="tilewright.yaml:"):
        read(adapter, files | {OURS: files[OURS].replace("kind: mapping", "kind: maping")})


@st.composite
def remainders(draw: st.DrawFn) -> InputSet:
    """Draw inputs with tiles that only the outermost loop may cut with a remainder."""
    names = ["A", "B"]
    tiles: list[dict[str, int]] = [{}, {}, {}]
    for name in names:
        inner, middle = draw(st.integers(1, 3)), draw(st.integers(1, 4))
        tiles[2][name] = inner
        tiles[1][name] = inner * middle
        tiles[0][name] = draw(st.integers(inner * middle, 40))
    problem = Problem.model_validate(
        {
            "name": "ragged",
            "dimensions": tiles[0],
            "tensors": [
                {"name": "T", "role": "input", "projection": ["A", "B"]},
                {"name": "Z", "role": "output", "projection": ["A"]},
            ],
        }
    )
    ones = dict.fromkeys(names, 1)

    def entry(keep: tuple[str, ...] | None, target: str, tile: dict[str, int]) -> Entry:
        return Entry(
            target=target,
            keep=keep,
            temporal_order=tuple(draw(st.permutations(names))) if keep is None else tuple(names),
            temporal_tile_sizes=FrozenDict(tile),
            spatial_tile_sizes=FrozenDict(tile),
        )

    architecture = next(sample.architecture for sample in SAMPLES if sample.architecture.name == "array")
    rows = [
        entry(("T", "Z"), "Main", tiles[0]),
        entry(None, "Main", tiles[1]),
        entry(("T",), "Buffer", tiles[1]),
        entry(None, "Buffer", tiles[2]),
        entry(("Z",), "Element", tiles[2]),
        entry(None, "Element", ones),
    ]
    return InputSet(problem, architecture, Mapping(entries=tuple(rows)))


@versions
@given(remainders())
def test_remainders_of_the_whole_come_back(adapter: TimeloopAdapter, inputs: InputSet) -> None:
    assert holds(adapter, inputs)


def test_how_timeloop_sees_it() -> None:
    files = TimeloopAdapter("v3").render(inputs_of())
    assert list(files) == ["arch.yaml", "ERT.yaml", "ART.yaml", "problem.yaml", "map.yaml", OURS]
    mapping = parse_document(files["map.yaml"]).data["mapping"]
    assert mapping[3] == {
        "target": "Buffer",
        "type": "temporal",
        "factors": "N=1 K=1 C=1 P=1 Q=1 R=1 S=1",
        "permutation": "SRQPCKN",
    }
    assert mapping[4]["factors"] == "N=1 K=2 C=1 P=1 Q=4 R=1 S=1"
    assert mapping[4]["split"] == 1 and mapping[4]["permutation"].startswith("QK")
    problem = parse_document(files["problem.yaml"]).data["problem"]
    assert problem["shape"]["coefficients"] == [{"name": "Px2", "default": 2}]
    v4 = TimeloopAdapter("v4").render(inputs_of())
    document = parse_document(v4["arch.yaml"])
    assert [tag for _, tag in sorted(document.tags.items())] == [
        "!Container", "!Component", "!Component", "!Container", "!Component", "!Component",
    ]  # fmt: skip
    assert document.data["architecture"]["nodes"][3] == {"name": "below_Buffer", "spatial": {"meshX": 4, "meshY": 2}}
