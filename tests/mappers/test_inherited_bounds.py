"""Bounds that a mapping takes over from those that it dominated count in the proof (Lemmas 4, 15 and 18)."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiled import interpreted
from tilewright.plugin.mapper import Budget, Run, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright_mappers import OptimalOptions
from tilewright_mappers.optimal.kernel import dominance
from tilewright_mappers.optimal.kernel.state import BOUND, RELAXED, ROUNDED_FIRST_READS, UNDERCOUNTED
from tilewright_mappers.optimal.mapper import _evaluate
from tilewright_mappers.optimal.staged_search import CompleteMappings


@pytest.mark.parametrize(
    ("flags", "bound", "after"),
    [
        (0, 5.0, 0),
        (ROUNDED_FIRST_READS, 3.0, ROUNDED_FIRST_READS),
        (UNDERCOUNTED, 3.0, UNDERCOUNTED | RELAXED),
    ],
)
def test_a_state_that_dominates_takes_the_lower_bound(flags: int, bound: float, after: int) -> None:
    """Unless it is counted exactly: then its completions cost no more than their counterparts."""
    numbers, integers = np.zeros((2, BOUND + 1)), np.array([[flags], [UNDERCOUNTED]])
    numbers[:, BOUND] = 5.0, 3.0
    table = SimpleNamespace(rows=SimpleNamespace(numbers=numbers, integers=integers))
    interpreted(dominance._note_dominated)(table, 0, 0, 1)
    assert numbers[0, BOUND] == bound and integers[0, 0] == after
    assert numbers[1, BOUND] == 3.0 and integers[1, 0] == UNDERCOUNTED


@pytest.mark.parametrize("relaxed", [False, True])
def test_the_bound_of_an_undercounted_mapping_that_dominated_counts_unchanged(relaxed: bool) -> None:
    """Its cost bounds it alone, and resolves it only if it dominated nothing."""
    space = tw.space("mk,kn->mn; m=4 n=4 k=4", "eyeriss")
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    drawn = space.sample(np.random.default_rng(0), 50)
    valid = np.flatnonzero(evaluator.evaluate_batch(drawn.batch()).valid)
    rows = drawn.take(valid[:1])
    none = np.zeros(1, np.bool_)
    complete = CompleteMappings(rows, np.array([1.0]), ~none, none | relaxed, none, 0.0)
    run = Run(np.random.default_rng(0), Budget())
    proposals = _evaluate(complete, math.inf, math.inf, slice(None), Task(space), run, OptimalOptions())
    batch = next(proposals)
    try:
        while True:
            batch = proposals.send(evaluator.evaluate_batch(batch.batch()))
    except StopIteration as end:
        best, unresolved, why = end.value
    assert 1.0 < best < math.inf
    assert (unresolved, why) == (1.0, "undercounting") if relaxed else unresolved == math.inf
