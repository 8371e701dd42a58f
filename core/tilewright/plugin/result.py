"""Result: how a search ended; progress: what is told of it before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tilewright.errors import TilewrightError
from tilewright.plugin.mapper import Budget
from tilewright.schema.mapping import Mapping

Stop = Literal["finished", "deadline", "evaluations", "patience", "cancelled", "failed"]


@dataclass(frozen=True)
class Result:
    """How a search ended. `best` is None if no valid mapping was found.

    `rejected`: proposals that the model priced but that break a rule of legality. `lower_bound`: proved by the mapper,
    in the objective; `error`: what broke, when `stop` is failed.
    """

    best: Mapping | None
    value: float
    """The best's objective; inf if none."""
    evaluated: int
    valid: int
    rejected: int
    stop: Stop
    cpu_seconds: float
    wall_seconds: float
    seed: int
    lower_bound: float | None = None
    figures: dict[str, float] = field(default_factory=dict)
    """What the mapper told of its search, as `Run.figures`."""
    error: TilewrightError | None = None

    @property
    def gap(self) -> float | None:
        """(best - lower bound) / best; None where nothing was proved or found."""
        if self.lower_bound is None or self.best is None:
            return None
        return (self.value - self.lower_bound) / self.value if self.value else 0.0


@dataclass(frozen=True)
class Progress:
    """What a watcher is told after every piece of a batch."""

    evaluated: int
    valid: int
    best: float
    elapsed_seconds: float
    budget: Budget


Watcher = Callable[[Progress], None]
