"""Sampling: points chosen by what was found on others, by a sampler of Optuna (extra `optuna`).

`nsga2` (K. Deb et al., 2002) looks for the front of energy, cycles and area, `tpe` (J. Bergstra et al., 2011) for the least objective.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tilewright.plugin.strategy import ExplorationTask, PointProposal, PointProposals, PointResult
from tilewright_strategies import GROUP

ASKED = 8 * GROUP
"""How often a sampler is asked for a group: it may name points that are known."""


class Sampling:
    """Strategy that tries points as a sampler of Optuna asks for them, one group after another."""

    def __init__(self, sampler: str) -> None:
        self.sampler = sampler

    def explore(self, task: ExplorationTask) -> PointProposals:
        optuna: Any = importlib.import_module("optuna")
        distributions = {name: _distribution(optuna, values) for name, values in task.choices.items()}
        study = self._study(optuna, task.seed)
        spare = np.random.default_rng(task.seed)
        told: dict[int, list[float]] = {}
        while len(told) < task.points:
            asked: dict[int, list[Any]] = {}
            wanted = min(GROUP, task.points - len(told))
            for _ in range(ASKED):
                trial = study.ask(distributions)
                index = task.index([trial.params[name] for name in task.choices])
                if index in told:
                    study.tell(trial, told[index])
                else:
                    asked.setdefault(index, []).append(trial)
                if len(asked) == wanted:
                    break
            while len(asked) < wanted:  # the sampler names known points alone
                index = int(spare.integers(task.size))
                if index not in told:
                    asked.setdefault(index, [])
            for result in (yield [PointProposal(index) for index in asked]):
                told[result.index] = self._values(result, task)
                for trial in asked[result.index]:
                    study.tell(trial, told[result.index])

    def _study(self, optuna: Any, seed: int) -> Any:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        if self.sampler == "tpe":
            return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=GROUP))
        sampler = optuna.samplers.NSGAIISampler(seed=seed, population_size=GROUP)
        return optuna.create_study(directions=["minimize"] * 3, sampler=sampler)

    def _values(self, point: PointResult, task: ExplorationTask) -> list[float]:
        """Return the objectives to minimise; inf without a machine or a mapping."""
        return [point.of(task.objective)] if self.sampler == "tpe" else list(point.costs)


def _distribution(optuna: Any, values: tuple[float | str, ...]) -> Any:
    """Return the distribution of a choice's value index; numbers are ordered, strings are not."""
    if any(isinstance(value, str) for value in values):
        return optuna.distributions.CategoricalDistribution(range(len(values)))
    return optuna.distributions.IntDistribution(0, len(values) - 1)
