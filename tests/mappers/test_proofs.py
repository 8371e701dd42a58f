"""Proofs of `optimal` compared with an enumeration that shares no code with map spaces."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright
from support.profiles import scaled
from support.proofs.checking import check, check_against, check_each
from support.proofs.drawing import KINDS, Inputs, Kind, draw
from tilewright.application.run.search import search
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.objective import Objective

pytestmark = pytest.mark.exhaustive
SHORT_SAMPLE = 10

LIMIT = 20_000
"""Mappings of the largest space enumerated here; `python -m support.proofs` takes larger ones."""
WRONG_ONCE = sorted((Path(__file__).parents[1] / "data" / "proofs").glob("*.json"))


@scaled(2)
@given(st.integers(0, 2**32), st.sampled_from(KINDS), st.booleans())
def test_no_mapping_costs_less_than_a_proof(seed: int, kind: Kind, capped: bool) -> None:
    verdict = check(draw(seed, kind), LIMIT, capped=capped)
    assert not verdict.wrong


@scaled(0.3)
@given(st.integers(0, 2**32), st.integers(1, 30), st.booleans(), st.booleans())
def test_no_mapping_costs_less_than_the_bound_of_a_narrow_search(
    seed: int, width: int, relaxed: bool, parts: bool
) -> None:
    verdict = check(draw(seed), LIMIT, relaxed=relaxed, parts=parts, width=width, orders=1)
    assert not verdict.wrong


@pytest.mark.parametrize(("seed", "status"), [(27, "no valid mapping"), (9, "gap left")])
def test_a_narrow_search_may_find_nothing(seed: int, status: str) -> None:
    """There is nothing, or its few states lead to nothing and no start is given."""
    verdict = check(draw(seed), LIMIT, width=2, orders=1)
    assert (verdict.status, verdict.wrong) == (status, ())


@scaled(0.2)
@given(st.integers(0, 2**32), st.sampled_from(KINDS))
def test_no_mapping_costs_less_than_a_proof_with_first_fills(seed: int, kind: Kind) -> None:
    assert not check(draw(seed, kind, first_fills=True), LIMIT).wrong


@pytest.mark.parametrize("file", WRONG_ONCE, ids=lambda file: file.stem)
def test_proofs_that_were_wrong_once_are_right(file: Path) -> None:
    """Each file records a task and the cost of its best mapping; an older version of the prover proved more."""
    recorded = json.loads(file.read_text())
    least, most_cycles = recorded.pop("cost"), recorded.pop("most_cycles", math.inf)
    inputs = Inputs(**recorded)
    space = tilewright.space(inputs.problem, arch=inputs.architecture, constraints=inputs.constraints)
    model = installed().make(CostModelSpec, "timeloop", inputs.model_options)
    evaluator = model.bind(space.problem, space.architecture)
    proved, wrong = check_against(
        least, Task(space, Objective.named(inputs.objective), most_cycles), evaluator, inputs.seed
    )
    assert proved and not wrong


@scaled(0.5)
@given(st.integers(0, 2**32), st.sampled_from(["window", "batch", "passing"]))
def test_no_bound_is_above_the_cost_of_its_mapping(seed: int, kind: Kind) -> None:
    verdict = check_each(draw(seed, kind, ragged=False, link_transfers=True), 5_000)
    assert not verdict.wrong


@pytest.mark.parametrize("seed", [15, 90, 204, 609])
def test_words_that_pass_a_fanout_are_forwarded_at_steps_of_outer_loops(seed: int) -> None:
    """Counts of Lemma 14 that miss one of these steps, or one delivery, give mappings here a bound above their cost."""
    verdict = check_each(draw(seed, "passing", link_transfers=True), 20_000)
    assert verdict.mappings and not verdict.wrong


@pytest.mark.parametrize("seed", [5037, 5211])
def test_an_outer_step_that_keeps_a_tile_ends_no_sweep_of_forwarded_words(seed: int) -> None:
    """Version 3 of the prover took a neighbour's words for granted in the sweep after such a step (Lemma 14)."""
    verdict = check_each(draw(seed, "window", ragged=False, link_transfers=True), 60_000)
    assert verdict.mappings and not verdict.wrong


def test_a_larger_budget_continues_the_search_of_a_smaller_one() -> None:
    """So it never ends with a worse mapping, and never without a proof that fewer evaluations give."""
    space = tilewright.space("quickflow_convs/V", arch="eyeriss")
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    mapper = installed().make(MapperSpec, "optimal")
    full = search(mapper, Task(space), evaluator, Budget())
    budgets = [50, 500, 2_000, full.evaluated - 1, full.evaluated, 10 * full.evaluated]
    results = [search(mapper, Task(space), evaluator, Budget(evaluations=count)) for count in budgets]
    assert all(after.value <= before.value for before, after in zip(results, results[1:], strict=False))
    for result in results[-2:]:
        assert (result.value, result.lower_bound, result.evaluated) == (full.value, full.lower_bound, full.evaluated)
        assert result.proved == "yes"
