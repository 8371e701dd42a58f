"""Recorded searches: tasks with their least cost, and the bound and the number of states of two searches of each.

cd tests && python -m support.proofs.searches    # records bounds and states again, after a proof that they may change

The first search knows no mapping. The second knows a cost slightly above the least one. The least cost is that of an enumeration.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

import tilewright
from support.proofs.checking import ROUNDING, fanout_in_parts, relaxed_dominance, without_starts
from tilewright.application.run.search import search
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.objective import Objective

FILE = Path(__file__).parents[2] / "data" / "proofs" / "searches.jsonl"
KNOWN: tuple[float | None, float] = (None, 1 + 1e-6)
"""What the two searches know, as a multiple of the least cost."""


def recorded() -> list[dict[str, Any]]:
    """Return the recorded tasks."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def searched(task: dict[str, Any], known: float | None) -> Result:
    """Search a recorded task without heuristics, and say what is known of its least cost."""
    space = tilewright.space(task["problem"], arch=task["architecture"], constraints=task["constraints"])
    model = installed().make(CostModelSpec, "timeloop", task["model_options"])
    mode = task["mode"]
    options = {"width": mode["width"], "orders": 1} if "width" in mode else {}
    limit = {"most_cycles": task["most_cycles"]} if "most_cycles" in task else {}
    with (
        without_starts(**({} if known is None else {"known": known * task["cost"]})),
        relaxed_dominance() if "relaxed" in mode else contextlib.nullcontext(),
        fanout_in_parts(task["seed"]) if "parts" in mode else contextlib.nullcontext(),
    ):
        return search(
            installed().make(MapperSpec, "optimal", options),
            Task(space, Objective.named(task["objective"]), **limit),
            model.bind(space.problem, space.architecture),
            Budget(),
            seed=task["seed"],
        )


def record() -> None:
    """Write the bounds and the states of today's searches.

    Raises:
        ValueError: a bound is above the least cost.
    """
    tasks = recorded()
    for task in tasks:
        results = [searched(task, known) for known in KNOWN]
        for result in results:
            if result.lower_bound is not None and result.lower_bound > task["cost"] * (1 + ROUNDING):
                raise ValueError(f"task {task['seed']}: the bound {result.lower_bound} is above the least cost")
        task["runs"] = [{"bound": run.lower_bound, "states": int(run.figures["states"])} for run in results]
    FILE.write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")


if __name__ == "__main__":
    record()
