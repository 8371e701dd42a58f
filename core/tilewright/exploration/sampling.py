"""Sampling: points chosen by what was found on others, by a sampler of Optuna (extra `optuna`).

`nsga2` (K. Deb et al., 2002) looks for the front of energy, cycles and area, `tpe` (J. Bergstra et al., 2011) for the least objective.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tilewright.errors import InputError
from tilewright.exploration.records import ExploredPoint
from tilewright.exploration.space import ArchitectureSpace, Point
from tilewright.exploration.strategies import WAVE, Waves
from tilewright.schema.report import Objective

Sampler = Literal["nsga2", "tpe"]
ASKED = 8 * WAVE
"""How often a sampler is asked for a group: it may name points that are known."""


@dataclass(frozen=True)
class Sampling:
    """`points` of a space, one group after another, as the sampler asks for them; the same seed asks for the same ones.

    Raises:
        InputError: Optuna is not installed.
    """

    space: ArchitectureSpace
    points: int
    sampler: Sampler
    objective: Objective
    seed: int

    def __post_init__(self) -> None:
        _optuna()

    def waves(self) -> Waves:
        optuna = _optuna()
        distributions = {name: self._distribution(optuna, name) for name in self.space.choices}
        study = self._study(optuna)
        spare = np.random.default_rng(self.seed)
        told: dict[int, list[float]] = {}
        while len(told) < self.points:
            asked: dict[int, list[Any]] = {}
            wanted = min(WAVE, self.points - len(told))
            for _ in range(ASKED):
                trial = study.ask(distributions)
                index = self.space.index([trial.params[name] for name in self.space.choices])
                if index in told:
                    study.tell(trial, told[index])
                else:
                    asked.setdefault(index, []).append(trial)
                if len(asked) == wanted:
                    break
            while len(asked) < wanted:  # the sampler names known points alone
                index = int(spare.integers(len(self.space)))
                if index not in told:
                    asked.setdefault(index, [])
            judged = yield [self.space.point(index) for index in asked]
            for each in judged:
                told[each.index] = self._values(each)
                for trial in asked[each.index]:
                    study.tell(trial, told[each.index])

    def needless(self, point: Point, found: Sequence[ExploredPoint]) -> str | None:
        return None

    def _distribution(self, optuna: Any, name: str) -> Any:
        """Return the distribution of a choice's value index; numbers are ordered, strings are not."""
        values = self.space.values_of(name)
        if any(isinstance(each, str) for each in values):
            return optuna.distributions.CategoricalDistribution(range(len(values)))
        return optuna.distributions.IntDistribution(0, len(values) - 1)

    def _study(self, optuna: Any) -> Any:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        if self.sampler == "tpe":
            return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=self.seed, n_startup_trials=WAVE))
        sampler = optuna.samplers.NSGAIISampler(seed=self.seed, population_size=WAVE)
        return optuna.create_study(directions=["minimize"] * 3, sampler=sampler)

    def _values(self, point: ExploredPoint) -> list[float]:
        """Return the objectives to minimise; inf without a machine or a mapping."""
        return [point.of(self.objective)] if self.sampler == "tpe" else list(point.costs)


def _optuna() -> Any:
    try:
        return importlib.import_module("optuna")
    except ImportError:
        raise InputError("strategies nsga2 and tpe need Optuna", hint="pip install 'tilewright[optuna]'") from None
