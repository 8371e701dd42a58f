"""Groups on any hierarchy: the result is that of brute force, and what it says holds by both cost models."""

import math
import re
from functools import partial
from itertools import combinations
from typing import Any

import pytest

import tilewright as tw
from support import EXAMPLE_FILES, tiled_stacks
from support.profiles import first
from support.tiled_groups import Case, outcome, solution
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.application.run.group_search import branch_table
from tilewright.plugin import GroupTask
from tilewright.plugin.groupmapper import BranchCase
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, EDP, ENERGY, Objective
from tilewright_mappers.fused.group import FusedGroupMapper
from tilewright_mappers.fused.limits import Limits, OutOfTime
from tilewright_mappers.fused.tiled_group import TiledGroup
from tilewright_mappers.fused.tiles import Branches

DOCS = EXAMPLE_FILES.parent / "docs"
TIMELOOP, ORACLE = build_model("timeloop"), build_model("oracle")
HEADS, TOKENS, WIDTH = 2, 16, 4
MACHINE: dict[str, Any] = {
    "name": "small",
    "clusters": [
        {"name": "DRAM", "memories": [{"name": "DRAM", "read_energy_pj": 64, "write_energy_pj": 64}]},
        {
            "name": "SRAM",
            "memories": [{"name": "SRAM", "capacity_words": 200, "read_energy_pj": 4, "write_energy_pj": 4}],
            "fanout": {"size": 8, "axis": "Y"},
        },
        {"name": "Row", "fanout": {"size": 4, "axis": "X"}},
        {
            "name": "PE",
            "memories": [
                {"name": "RF", "holds": ["weight"], "capacity_words": 4, "read_energy_pj": 0.1, "write_energy_pj": 0.1}
            ],
        },
    ],
    "compute": {"energy_per_operation_pj": 0.5},
}
"""SRAM has room for half of the scores of one head, with its keys and values."""


def attention() -> GroupMapping:
    """Return the two products of an attention, whose scores do not fit the SRAM."""
    sizes = {"H": HEADS, "T": TOKENS, "S": TOKENS}
    scores: dict[str, Any] = {"name": "scores", "dimensions": sizes | {"D": WIDTH}}
    context: dict[str, Any] = {"name": "context", "dimensions": sizes | {"E": WIDTH}}
    for layer, tensors in ((scores, ("QHTD", "KHSD", "PHTS")), (context, ("PHTS", "VHSE", "ZHTE"))):
        layer["tensors"] = [
            {"name": ranks[0], "role": role, "projection": list(ranks[1:])}
            for ranks, role in zip(tensors, ("input", "weight", "output"), strict=True)
        ]
    return GroupMapping.model_validate(
        {
            "name": "attention",
            "layers": [scores, context],
            "edges": [{"tensor": "P", "layers": {"scores": "P", "context": "P"}}],
            "tree": {
                "entries": [{"target": "DRAM", "keep": ["scores.Q", "scores.K", "P", "context.V", "context.Z"]}],
                "branches": [
                    {
                        "layer": layer["name"],
                        "entries": [
                            {
                                "target": "PE",
                                "temporal_order": list(layer["dimensions"]),
                                "temporal_tile_sizes": dict.fromkeys(layer["dimensions"], 1),
                            }
                        ],
                    }
                    for layer in (scores, context)
                ],
            },
            "architecture": MACHINE,
        }
    )


@pytest.mark.parametrize("seed", first(2, 4, 2, 0, 3))
def test_groups_cost_what_brute_force_finds(seed: int) -> None:
    """The brute force tries all nests of shared loops, and all places of all tensors."""
    assert "WRONG" not in outcome(seed)


@pytest.mark.parametrize("seed", first(2, 128, 104, 125, 119))
def test_stacks_of_convolutions_cost_what_brute_force_finds(seed: int) -> None:
    """A shared loop may step rows that windows read, with strides and zeros around."""
    assert "WRONG" not in tiled_stacks.outcome(seed)


@pytest.mark.parametrize("objective", first(1, ENERGY, CYCLES, EDP))
def test_scores_that_do_not_fit_stay_in_tiles(objective: Objective) -> None:
    report = tw.fuse(attention(), objective=objective.name)
    assert report.bound is not None and report.bound <= (report.fused.of(objective) or 0) * (1 + 1e-9)
    executed = evaluate_group(ORACLE, report.mapping)
    assert executed.energy_pj == pytest.approx(report.fused.energy_pj, rel=1e-9)
    if objective != CYCLES:  # nothing limits the cycles but the units
        root = report.mapping.tree.entries[0].keep or ()
        assert report.proved and "P" not in root and "DRAM holds" in str(report)
        words = HEADS * TOKENS * TOKENS
        assert words > 200  # all of them
        assert report.saved_words >= 2 * words


def test_a_search_without_time_returns_the_mapping_without_fusion_and_a_bound() -> None:
    group = attention()
    table = branch_table(group.architecture, TIMELOOP)
    result = FusedGroupMapper().search_group(GroupTask(group, partial(evaluate_group, TIMELOOP), ENERGY, 0.0, table))
    assert result.energy_pj == pytest.approx(evaluate_group(TIMELOOP, result.unfused).energy_pj)
    assert not result.proved and 0 <= result.bound <= result.energy_pj


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_product_costs_no_more_than_the_best_by_energy_and_by_cycles(
    monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    """Both are candidates, even if the time is over before the product itself is searched."""
    group, searched = Case(0).group(), list[Objective]()
    table = branch_table(group.architecture, TIMELOOP)
    solve = TiledGroup._solve_all

    def recorded(search: TiledGroup, objective: Objective) -> None:
        searched.append(objective)
        if is_cut and objective == EDP:
            raise OutOfTime
        solve(search, objective)

    monkeypatch.setattr(TiledGroup, "_solve_all", recorded)
    by = {
        one: FusedGroupMapper().search_group(GroupTask(group, partial(evaluate_group, TIMELOOP), one, None, table))
        for one in (ENERGY, CYCLES, EDP)
    }
    assert searched == [ENERGY, CYCLES, ENERGY, CYCLES, EDP]
    assert by[ENERGY].cycles > by[CYCLES].cycles and by[EDP].of(EDP) <= min(by[ENERGY].of(EDP), by[CYCLES].of(EDP))
    assert by[EDP].bound == pytest.approx(by[ENERGY].bound * by[CYCLES].bound)


def test_of_equal_cycles_the_least_energy_is_taken() -> None:
    """Many choices of this group take 8 cycles; the first one costs 878 pJ."""
    case = Case(2)
    result = solution(case, branch_table(case.group().architecture, TIMELOOP))
    assert case.objective == CYCLES and result.cycles == 8 and result.energy_pj == 655.5


def test_what_no_edge_states_is_not_fused_and_rows_are_not_cut() -> None:
    group = attention()
    table = branch_table(group.architecture, TIMELOOP)
    task = partial(GroupTask, group, partial(evaluate_group, TIMELOOP), ENERGY, None, table)
    apart = FusedGroupMapper().search_group(task(apart=frozenset({("scores", "context")})))
    free = FusedGroupMapper().search_group(task())
    rows = FusedGroupMapper().search_group(task(rows=frozenset({("scores", "T")})))
    assert free.energy_pj < rows.energy_pj == apart.energy_pj
    assert all(branch.layer is not None for one in (apart, rows) for branch in one.group.tree.branches)


def test_a_home_that_may_not_hold_a_use_keeps_no_tile_of_it() -> None:
    data = attention().to_data()
    data["architecture"]["clusters"][1]["memories"][0]["holds"] = ["input", "output"]
    kept = tw.fuse(GroupMapping.model_validate(data), objective="energy")
    data["layers"][1]["tensors"][0]["role"] = "weight"
    data["layers"][1]["tensors"][1]["role"] = "input"
    refused = tw.fuse(GroupMapping.model_validate(data), objective="energy")
    assert kept.saved_words > 0 == refused.saved_words
    assert "P" in (refused.mapping.tree.entries[0].keep or ())


def test_small_tiles_cost_no_less_than_large_ones() -> None:
    """The lemma on tiles, for all tiles of one layer."""
    group = attention()
    problem, table = group.layers[0], branch_table(group.architecture, TIMELOOP)
    home = group.architecture.memories[1]
    branches = Branches(table, group.architecture, home, ENERGY, Limits())
    costs = dict[tuple[int, int], float]()
    for heads in (1, 2):
        for tokens in (4, 8, 16):
            tile = problem.replace({"dimensions.H": heads, "dimensions.T": tokens})
            case = BranchCase(tile, frozenset({"P"}), 0, problem)
            branches.ask([case])
            costs[heads, tokens] = branches.costs(case).energy_pj * (HEADS // heads) * (TOKENS // tokens)
            assert branches.least(case)[0] == pytest.approx(branches.costs(case).energy_pj)
    for (heads, tokens), cost in costs.items():
        larger = [other for (h, t), other in costs.items() if not h % heads and not t % tokens]
        assert all(other <= cost * (1 + 1e-9) for other in larger)
    asked = BranchCase(problem.replace({"dimensions.T": 2}), frozenset({"P"}), 64, problem)
    assert branches.least(asked)[0] == pytest.approx(max(costs[HEADS, tokens] for tokens in (4, 8, 16)) * 2 / TOKENS)
    assert math.isfinite(branches.least(asked)[0])


def test_a_visit_costs_no_more_with_more_tensors_at_home() -> None:
    """The lemma on sets, for all sets of one layer's tensors; the search maps those first that no other one contains."""
    group = attention()
    problem, table = group.layers[1], branch_table(group.architecture, TIMELOOP)
    assert table.home_is_least(ENERGY)
    names = [tensor.name for tensor in problem.tensors]
    sets = [frozenset(some) for count in range(len(names) + 1) for some in combinations(names, count)]
    exact = Branches(table, group.architecture, group.architecture.memories[1], ENERGY, Limits())
    exact.ask([BranchCase(problem, some) for some in sets])
    costs = {some: exact.costs(BranchCase(problem, some)).energy_pj for some in sets}
    assert all(costs[more] <= costs[some] * (1 + 1e-9) for some in sets for more in sets if more > some)
    lazy = Branches(table, group.architecture, group.architecture.memories[1], ENERGY, Limits())
    lazy.ask_largest([BranchCase(problem, some) for some in sets])
    assert [lazy.is_known(BranchCase(problem, some)) for some in sets] == [some == set(names) for some in sets]
    for some in sets:
        assert lazy.least(BranchCase(problem, some))[0] == pytest.approx(costs[frozenset(names)])


def test_ports_of_the_home_may_make_it_slower() -> None:
    data = attention().to_data()["architecture"]
    data["clusters"][1]["memories"][0]["read_bandwidth_words_per_cycle"] = 1
    table = branch_table(Architecture.model_validate(data), TIMELOOP)
    assert table.home_is_least(ENERGY) and not table.home_is_least(CYCLES)


def sums_of_the_manual() -> tuple[int, int]:
    """Return the words that DRAM moves and the SRAM keeps in the manual's example, as sums of products."""
    page = (DOCS / "fusion_proof.md").read_text(encoding="utf-8").replace(",", "")
    totals = []
    for memory in ("DRAM", "SRAM"):
        (terms, told), *others = re.findall(rf"^{memory}: (.*) = (\d+) words$", page, re.MULTILINE)
        total = sum(math.prod(map(int, term.split(" x "))) for term in terms.split(" + "))
        assert total == int(told) and not others
        totals.append(total)
    return totals[0], totals[1]


def test_the_sums_of_the_manual_add_up() -> None:
    assert sums_of_the_manual() == (41_943_040, 5_373_952)


@pytest.mark.exhaustive
def test_the_example_of_the_manual() -> None:
    """Queries and results move once, and so do keys and values; docs/fusion_proof.md has the sums."""
    report = tw.fuse(EXAMPLE_FILES / "attention.yaml", objective="energy")
    assert report.proved and report.fused.energy_pj == pytest.approx(96_468_992_000)
    moved, kept = sums_of_the_manual()
    rows = {row["mapping"]: row for row in report.rows()}
    assert rows["fused"]["outermost_words"] == moved
    assert rows["unfused"]["outermost_words"] == moved + 2 * 8 * 16384 * 4096
    assert rows["fused"]["SRAM_peak_words"] == kept
    page = (DOCS / "fusion.md").read_text(encoding="utf-8")
    table = page.split("examples/attention.yaml --fuse --objective energy\n```\n\n```\n")[1].split("```")[0]
    assert [line.split() for line in table.splitlines()] == [line.split() for line in str(report).splitlines()[1:5]]
    shown = (DOCS / "fusion_proof.md").read_text(encoding="utf-8").split("## An example")[1].split("```\n")[1]
    assert shown in str(report.mapping)
