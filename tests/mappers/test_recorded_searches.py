"""The staged search on recorded tasks: the optimum that an enumeration found, and no more states than once sufficed."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import tilewright
from support.proofs.checking import PROVED, ROUNDING, fanout_in_parts, relaxed_dominance, without_starts
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.run.search import search

RECORDED = Path(__file__).parents[1] / "data" / "proofs" / "searches.jsonl"
"""Tasks of `support.proofs.drawing`, their least cost, and of two searches each the bound and the states.

The second search knows a cost slightly above the least one. A change that strengthens a bound may record fewer states;
one that needs more states has weakened a bound, or lost dominance.
"""
TASKS = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


def searched(task: dict[str, Any], known: dict[str, float]) -> Result:
    space = tilewright.space(task["problem"], arch=task["architecture"], constraints=task["constraints"])
    model = installed().make(CostModelSpec, "timeloop", task["model_options"])
    mode = task["mode"]
    options = {"width": mode["width"], "orders": 1} if "width" in mode else {}
    with (
        without_starts(**known),
        relaxed_dominance() if "relaxed" in mode else contextlib.nullcontext(),
        fanout_in_parts(task["seed"] % 2) if "parts" in mode else contextlib.nullcontext(),
    ):
        return search(
            installed().make(MapperSpec, "optimal", options),
            Task(space, task["objective"], **({"most_cycles": task["most_cycles"]} if "most_cycles" in task else {})),
            model.bind(space.problem, space.architecture),
            Budget(),
            seed=task["seed"],
        )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: str(task["seed"]))
def test_a_search_proves_the_least_cost_with_no_more_states(task: dict[str, Any]) -> None:
    least = task["cost"]
    for recorded, known in zip(task["runs"], ({}, {"known": least * (1 + 1e-6)}), strict=True):
        result = searched(task, known)
        assert result.error is None
        assert result.value >= least * (1 - ROUNDING)
        assert result.figures["states"] <= recorded["states"]
        bound = result.lower_bound
        if recorded["bound"] is None:
            continue
        assert bound is not None and recorded["bound"] * (1 - ROUNDING) <= bound <= least * (1 + ROUNDING)
        if recorded["bound"] >= least * (1 - PROVED):
            assert result.value <= least * (1 + PROVED)
