"""`timeloop` counts groups branch by branch: recorded LoopTrees, and random small groups, as executed."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support import sliding_groups
from support.groups import compared, figures
from support.profiles import scaled
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.mapspace.legality import backing_warnings, legality
from tilewright.reports import Report
from tilewright.schema.group import GroupMapping
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_adapters.accelforge import AccelForgeAdapter

DATA = Path(__file__).parents[2] / "data" / "groups"
RECORDED: dict[str, Any] = json.loads((DATA / "counts.json").read_text())
TIMELOOP, ORACLE = build_model("timeloop", {"link_transfers": False}), build_model("oracle")


def split_energy(report: Report) -> tuple[float, float]:
    """Return the energy without leakage, and the leakage."""
    assert report.energy_pj is not None
    leakage = math.fsum(level.leakage_pj for level in report.levels)
    return report.energy_pj - leakage, leakage


def read(name: str) -> GroupMapping:
    group = AccelForgeAdapter().parse([DATA / f"{name}.yaml"]).group
    assert group is not None
    return group


@pytest.mark.parametrize("name", RECORDED)
def test_counts_and_peaks_are_those_of_an_independent_execution(name: str) -> None:
    group = read(name)
    report, memories = evaluate_group(TIMELOOP, group), {memory.name: memory for memory in group.architecture.memories}
    words = []
    for access in report.accesses:
        own = access.tensor.rpartition(".")[2]
        width = memories[access.level].words_of(group.paths[str(access.layer)].problem.tensor(own))
        reads, writes = access.reads.total * width, (access.fills.total + access.updates.total) * width
        words += [[access.level, access.layer, own, reads, writes]] if reads or writes else []
    assert sorted(words) == sorted(RECORDED[name]["accesses"])
    assert RECORDED[name]["peaks"].items() <= {level.name: level.used_words for level in report.levels}.items()


def test_padding_along_short_or_empty_tiles_is_refused_with_a_code() -> None:
    for rows, words in ((5, "a tile of p1 does not divide"), (1, "some tiles have no word that exists")):
        data = read("conv2_same_untiled").to_data()
        edge = next(each for each in data["edges"] if each["tensor"] == "T0")
        edge["sizes"], branch = [9, 2], data["tree"]["branches"][0]
        branch["entries"] = [{"target": "Buffer", "keep": ["T0", "W0"], "temporal_tile_sizes": {"p1": rows}}]
        order = ["p1", "r1", "c0", "c1"]
        branch["entries"][0]["temporal_order"] = ["p1"]
        branch["entries"] += [
            {"target": "Buffer", "temporal_tile_sizes": dict.fromkeys(order, 1), "temporal_order": order}
        ]
        group = GroupMapping.model_validate(data)
        report = evaluate_group(TIMELOOP, group)
        assert [reason.code for reason in report.reasons] == ["padding"] and words in report.reasons[0].message
        assert evaluate_group(ORACLE, group).valid


def test_without_an_adder_every_update_of_a_word_but_the_first_reads_its_sum() -> None:
    data = read("array_fused_in_units").to_data()
    for cluster in data["architecture"]["clusters"]:
        if "fanout" in cluster:
            cluster["fanout"] |= {"reduction": False, "multicast": False}
    group = GroupMapping.model_validate(data)
    reports = [evaluate_group(each, group) for each in (TIMELOOP, ORACLE)]
    assert figures(reports[0]) == figures(reports[1])
    for row in reports[0].accesses:
        problem, name = group.paths[str(row.layer)].problem, row.tensor.rpartition(".")[2]
        if row.updates.total:
            assert row.updates.total - row.reads.total == problem.tensor_words(problem.tensor(name))


@scaled(3)
@given(st.integers(0, 2**32))
def test_random_groups_count_as_executed(seed: int) -> None:
    outcome = compared(seed)
    assume(outcome != "illegal" and "refused by timeloop" not in outcome)
    assert outcome.startswith("equal")


@scaled(3)
@given(st.integers(0, 2**32))
def test_random_padded_groups_count_as_executed(seed: int) -> None:
    outcome = compared(seed, ("window", "convolutions", "bottleneck"), padding=1)
    assume(outcome != "illegal" and "refused by timeloop" not in outcome)
    assert outcome.startswith("equal")


@scaled(3)
@given(st.integers(0, 2**32))
def test_random_stacks_of_convolutions_count_as_executed(seed: int) -> None:
    """Strides, padding, and layers that start late in a shared loop over rows; `support.sliding_groups` runs thousands."""
    outcome = sliding_groups.outcome(seed)
    assume("illegal" not in outcome and outcome != "no whole rows")
    assert "WRONG" not in outcome and "refused" not in outcome


@given(st.integers(0, 2**32))
def test_random_groups_with_inputs_or_results_on_chip_count_what_execution_counts(seed: int) -> None:
    # one group in seven is legal and has such a tensor, so each example looks at groups until one does
    outcomes = (compared(20 * seed + number, inner=1) for number in range(20))
    outcome = next((outcome for outcome in outcomes if "on chip" in outcome or "WRONG" in outcome), None)
    assume(outcome is not None)
    assert outcome is not None and outcome.startswith("equal")


@scaled(1)
@given(st.data())
def test_a_group_of_one_layer_is_its_mapping(data: st.DataObject) -> None:
    problem, architecture = data.draw(problems(max_macs=400)), data.draw(architectures())
    mapping = data.draw(mappings(problem, architecture))
    assume(bool(legality(problem, architecture, mapping)))
    assert TIMELOOP.model is not None
    alone = TIMELOOP.model.bind(problem, architecture).explain(mapping)
    report = evaluate_group(TIMELOOP, GroupMapping.of(problem, architecture, mapping))
    if {reason.code for reason in report.reasons} == {"home"}:
        assert backing_warnings(problem, mapping)  # a tile of a tensor that is nowhere as a whole
        return
    # the words of a group are whole, so its cycles, and the leakage during them, may be one cycle less
    assert report.cycles and alone.cycles and 0 <= alone.cycles - report.cycles <= 1
    (dynamic, leakage), (own_dynamic, own_leakage) = split_energy(report), split_energy(alone)
    assert report.valid and dynamic == pytest.approx(own_dynamic, rel=1e-9)
    assert leakage / report.cycles == pytest.approx(own_leakage / alone.cycles, rel=1e-9)
    counts = {(level.name, name): row for level in alone.levels for name, row in level.tensors.items()}
    for level in report.levels:
        for name, row in level.tensors.items():
            own = counts[level.name, name.rpartition(".")[2]]
            assert (row.reads, row.fills, row.updates, row.tile_words) == (
                own.reads,
                own.fills,
                own.updates,
                own.tile_words,
            )
