"""`oracle` executes groups: recorded LoopTrees, random small groups, groups of one layer, and damaged files."""

import json
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.mutations import mutated_text
from support.profiles import scaled
from tilewright.errors import InputError
from tilewright.mapspace.group_legality import group_legality
from tilewright.mapspace.legality import backing_warnings, legality
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import parse_document, validate
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_adapters.accelforge import AccelForgeAdapter
from tilewright_costmodels import OracleOptions
from tilewright_costmodels.oracle.model import OracleModel

DATA = Path(__file__).parents[2] / "data" / "groups"
RECORDED: dict[str, Any] = json.loads((DATA / "counts.json").read_text())
ORACLE = OracleModel(OracleOptions())
ARCHITECTURE = """
name: two
clusters:
- {name: DRAM, memories: [{name: DRAM, read_energy_pj: 100, write_energy_pj: 100}]}
- {name: Buffer, memories: [{name: Buffer, read_energy_pj: 2, write_energy_pj: 2}]}
compute: {energy_per_operation_pj: 0.5}
"""
TWO = Architecture.from_yaml(ARCHITECTURE)


def read(name: str) -> GroupMapping:
    group = AccelForgeAdapter().parse([DATA / f"{name}.yaml"]).group
    assert group is not None
    return group


def totals(report: Report) -> dict[tuple[str, str | None, str], tuple[int, int]]:
    """Return reads and writes by memory, layer and tensor."""
    assert report.valid, report.reasons
    found: dict[tuple[str, str | None, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for each in report.accesses or (report.execution.accesses if report.execution else ()):
        reads, writes = found[each.level, each.layer, each.tensor]
        found[each.level, each.layer, each.tensor] = (
            reads + each.reads.total,
            writes + each.fills.total + each.updates.total,
        )
    return dict(found)


@pytest.mark.parametrize("name", RECORDED)
def test_counts_and_peaks_are_those_of_an_independent_execution(name: str) -> None:
    group = read(name)
    assert GroupMapping.from_yaml(group.to_yaml()) == group
    assert GroupMapping.from_yaml(group.to_json()) == group
    report = ORACLE.explain_group(group)
    memories = {memory.name: memory for memory in group.architecture.memories}
    words = {
        (memory, layer, tensor.rpartition(".")[2]): tuple(
            count * memories[memory].words_of(group.paths[str(layer)].problem.tensor(tensor.rpartition(".")[2]))
            for count in counts
        )
        for (memory, layer, tensor), counts in totals(report).items()
        if any(counts)
    }
    assert words == {tuple(each[:3]): tuple(each[3:]) for each in RECORDED[name]["accesses"]}
    assert RECORDED[name]["peaks"].items() <= {level.name: level.used_words for level in report.levels}.items()


@pytest.mark.parametrize(
    ("name", "code"),
    [("conv2_same_rows", "halo"), ("residual_not_executable", "unfinished"), ("mlp2_branches_too_much", "alive")],
)
def test_groups_that_cannot_be_executed_are_refused_with_a_code(name: str, code: str) -> None:
    report = ORACLE.explain_group(read(name))
    assert not report.valid and report.energy_pj is None
    assert [reason.code for reason in report.reasons] == [code]


def test_a_tensor_that_two_memories_of_a_cluster_may_hold_is_refused_with_a_code() -> None:
    group = read("siblings_fused_m")
    open_to_all = group.architecture.with_memories(lambda each: each.model_copy(update={"holds": None}))
    report = ORACLE.explain_group(group.model_copy(update={"architecture": open_to_all}))
    assert {reason.code for reason in report.reasons} == {"keep"}


def test_accelforges_rows_of_different_sizes_share_no_loop(tmp_path: Path) -> None:
    text = (DATA / "conv2_same_rows.yaml").read_text(encoding="utf-8")
    (tmp_path / "rows.yaml").write_text(text.replace("P2: 12", "P2: 10"), encoding="utf-8")
    with pytest.raises(InputError, match="the einsums have 10 and 12 steps of p"):
        AccelForgeAdapter().parse([tmp_path / "rows.yaml"])


def product(name: str, operand: str, weight: str, result: str, dimensions: dict[str, int]) -> Problem:
    """Return the product result[a, c] += operand[a, b] * weight[b, c]."""
    a, b, c = dimensions
    tensors = [
        {"name": operand, "role": "input", "projection": [a, b]},
        {"name": weight, "role": "weight", "projection": [b, c]},
        {"name": result, "role": "output", "projection": [a, c]},
    ]
    return Problem.model_validate({"name": name, "dimensions": dimensions, "tensors": tensors})


@st.composite
def branches(draw: st.DrawFn, problem: Problem, tile: dict[str, int], kept: list[str]) -> list[dict[str, Any]]:
    """Return entries of a branch on Buffer that keep these tensors, each at one of two places."""
    late = [name for name in kept if draw(st.booleans())]
    middle = {name: draw(st.integers(1, size)) for name, size in tile.items()}
    order = draw(st.permutations(list(tile)))
    entries: list[dict[str, Any]] = [{"target": "Buffer", "keep": [name for name in kept if name not in late]}]
    entries += [{"target": "Buffer", "keep": late, "temporal_tile_sizes": middle, "temporal_order": order}]
    ones = dict.fromkeys(tile, 1)
    return [*entries, {"target": "Buffer", "temporal_tile_sizes": ones, "temporal_order": draw(st.permutations(order))}]


@st.composite
def chains(draw: st.DrawFn, fused: bool, divisible: bool = False) -> tuple[GroupMapping, int]:
    """Return two products that share a loop over rows if they are fused, and its trips."""
    m, n0, n1, n2 = (draw(st.integers(1, 5)) for _ in range(4))
    one = product("one", "A", "V", "B", {"m": m, "k": n0, "n": n1})
    two = product("two", "B", "W", "C", {"m": m, "k": n1, "n": n2})
    able = [each for each in range(1, m + 1) if m % each == 0 or not divisible]
    rows = draw(st.sampled_from(able)) if fused else m
    shared = [
        {"target": "DRAM", "keep": ["one.A", "one.V", "two.W", "two.C", *([] if fused else ["B"])]},
        {"target": "Buffer", "keep": ["B"] if fused else [], "temporal_tile_sizes": {"m": rows}},
    ]
    inner = {"one": ["A", "V"], "two": ["W", "C"]} if fused else {"one": ["A", "V", "B"], "two": ["B", "W", "C"]}
    parts = [
        {"layer": each.name, "entries": draw(branches(each, dict(each.dimensions) | {"m": rows}, inner[each.name]))}
        for each in (one, two)
    ]
    data = {
        "name": "chain",
        "axes": {"m": {"one": "m", "two": "m"}},
        "edges": [{"tensor": "B", "layers": {"one": "B", "two": "B"}}],
        "tree": {"entries": shared, "branches": parts},
        "layers": [each.to_data() for each in (one, two)],
        "architecture": TWO.to_data(),
    }
    return GroupMapping.model_validate(data), -(-m // rows)


@scaled(1)
@given(st.data())
def test_with_all_homes_outermost_each_layer_counts_as_its_own_mapping(data: st.DataObject) -> None:
    group, _ = data.draw(chains(fused=False))
    together = totals(ORACLE.explain_group(group))
    for name, path in group.paths.items():
        alone = totals(ORACLE.bind(path.problem, TWO).explain(path.mapping))
        assert {(memory, tensor): counts for (memory, _, tensor), counts in alone.items()} == {
            (memory, group.paths[name].problem.tensor(tensor.rpartition(".")[2]).name): counts
            for (memory, layer, tensor), counts in together.items()
            if layer == name
        }


@scaled(1)
@given(st.data())
def test_a_fused_branch_counts_as_a_layer_of_its_tile_at_every_visit(data: st.DataObject) -> None:
    group, visits = data.draw(chains(fused=True, divisible=True))
    report = ORACLE.explain_group(group)
    together = totals(report)
    assert not [each for each in together if each[0] == "DRAM" and each[2] == "B"]
    assert together["Buffer", "one", "B"][1] >= group.paths["one"].problem.tensor_words(group.layers[0].output)
    for part, path in zip(group.tree.branches, group.paths.values(), strict=True):
        tile = path.problem.replace({"dimensions.m": part.entries[0].temporal_tile_sizes["m"]})
        whole = Mapping.model_validate(
            {
                "entries": [
                    {"target": "DRAM", "keep": list(tile.tensor_names), "temporal_tile_sizes": dict(tile.dimensions)},
                    *(entry.model_dump(mode="json") for entry in part.entries),
                ]
            }
        )
        for (memory, _, tensor), (reads, writes) in totals(ORACLE.bind(tile, TWO).explain(whole)).items():
            if tensor != "B":
                assert together[memory, part.layer, f"{part.layer}.{tensor}"] == (reads * visits, writes * visits)


@scaled(1)
@given(st.data())
def test_a_reader_before_its_maker_is_refused(data: st.DataObject) -> None:
    group, _ = data.draw(chains(fused=True))
    tree = group.tree.model_copy(update={"branches": group.tree.branches[::-1]})
    report = ORACLE.explain_group(group.model_copy(update={"tree": tree}))
    assert {reason.code for reason in report.reasons} == {"unfinished"}


@scaled(1)
@given(st.data())
def test_a_group_of_one_layer_is_its_mapping(data: st.DataObject) -> None:
    problem = data.draw(problems(max_macs=200))
    architecture = data.draw(architectures())
    mapping = data.draw(mappings(problem, architecture))
    group = GroupMapping.of(problem, architecture, mapping)
    assert GroupMapping.from_yaml(group.to_yaml()) == group
    alone = ORACLE.bind(problem, architecture).explain(mapping)
    report = ORACLE.explain_group(group)
    if alone.valid and {reason.code for reason in report.reasons} == {"home"}:
        assert backing_warnings(problem, mapping)  # a tile of a tensor that is nowhere as a whole
        return
    assert report.valid == alone.valid
    assert bool(group_legality(group)) == bool(legality(problem, architecture, mapping))
    if alone.valid:
        assert report.cycles == alone.cycles
        assert report.energy_pj == pytest.approx(alone.energy_pj, rel=1e-9)
        counts = {
            (memory, (tensor or "").rpartition(".")[2]): found for (memory, _, tensor), found in totals(report).items()
        }
        assert counts == {(memory, tensor): found for (memory, _, tensor), found in totals(alone).items()}


@scaled(1)
@given(st.integers(0, 2**32), st.sampled_from(["mlp2_fused_m2", "attn4_nested", "conv2_same_untiled"]))
def test_damaged_files_give_messages(seed: int, name: str) -> None:
    text = mutated_text(Random(seed), read(name).to_yaml())
    try:
        group = validate(GroupMapping, parse_document(text, source="group.yaml"))
    except InputError as error:
        assert error.message
        return
    report = ORACLE.explain_group(group)
    assert report.valid or report.reasons
