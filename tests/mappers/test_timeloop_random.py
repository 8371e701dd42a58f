"""`timeloop_random`: Timeloop's stop rules."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.mappers import FLAT, run
from tilewright.plugin.mapper import Budget
from tilewright.testing.corpus import SAMPLES, cramped
from tilewright_mappers.timeloop_random import SMALLEST, StopRules


@given(
    st.lists(st.one_of(st.just(math.inf), st.integers(1, 30).map(float)), max_size=60),
    st.lists(st.integers(1, 9), min_size=1, max_size=9),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_the_stop_rules_count_as_if_mappings_came_one_by_one(
    costs: list[float], sizes: list[int], timeout: int, victory: int
) -> None:
    rules = StopRules(timeout, victory)
    invalid = suboptimal = 0
    best = math.inf
    rest, seen = list(costs), 0
    for size in itertools.cycle(sizes):
        if not rest:
            break
        rules.see(np.array(rest[:size]))
        for cost in rest[:size]:
            if math.isinf(cost):
                invalid += 1
            else:
                invalid, suboptimal = 0, 0 if cost < best else suboptimal + 1
                best = min(best, cost)
        rest, seen = rest[size:], seen + size
        assert (rules.invalid, rules.suboptimal, rules.best) == (invalid, suboptimal, best)
        left = [limit - count for limit, count in ((timeout, invalid), (victory, suboptimal)) if limit]
        assert rules.earliest == min(left, default=math.inf)
        assert rules.met == (rules.earliest <= 0)


def test_the_random_search_ends_by_its_rules() -> None:
    """By the victory condition where all is valid, by the timeout where nothing is, by nothing if both are off."""
    assert run("timeloop_random", FLAT, victory=40).stop == "finished"
    everything = cramped(SAMPLES[1]).space
    lost = run("timeloop_random", everything, timeout=100)
    assert (lost.stop, lost.best) == ("finished", None) and 100 <= lost.evaluated < 100 + SMALLEST
    assert run("timeloop_random", FLAT, Budget(5000), timeout=0, victory=0).stop == "evaluations"
    assert run("timeloop_hybrid", FLAT, victory=40).stop == "finished"
