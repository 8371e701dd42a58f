"""Result: how a search ended; progress: what is told of it before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tilewright.errors import TilewrightError
from tilewright.plugin.mapper import Budget
from tilewright.schema.mapping import Mapping
from tilewright.values import Model

Stop = Literal["finished", "deadline", "evaluations", "patience", "cancelled", "failed"]
ENDINGS: dict[Stop, str] = {
    "finished": "then the mapper had ended",
    "deadline": "stopped by the deadline",
    "evaluations": "stopped by evaluations",
    "patience": "stopped by patience",
    "cancelled": "interrupted",
    "failed": "then something failed",
}
"""Each in words."""


class CommonReason(Model):
    """A reason that `count` mappings of a sample share. `code` and `where` as in `Reason`, `example`: what one was told."""

    code: str
    where: str
    count: int
    example: str

    def __str__(self) -> str:
        return f"{self.count} because of {self.where or 'the mapping'} [{self.code}], such as: {self.example}"


class Rejections(Model):
    """Why the `sampled` proposals of a search are not valid, the commonest reason first; one may have several."""

    sampled: int
    reasons: tuple[CommonReason, ...] = ()

    def __str__(self) -> str:
        told = "; ".join(str(reason) for reason in self.reasons[:3]) or "no reason is given"
        return f"of {self.sampled} sampled, {told}"


SURE = 1e-8
"""The largest gap that rounding leaves of a proof."""


def gap_of(value: float, bound: float | None) -> float | None:
    """How much less than the value something might cost, as a part of it; None: nothing was proved."""
    if bound is None:
        return None
    return (value - bound) / value if value else 0.0


def proof(gap: float | None) -> str | None:
    """A gap in words: "yes", to one part in 10^8, or how much less a mapping might cost; None: nothing was proved."""
    if gap is None:
        return None
    return "yes" if gap < SURE else f"to {100 * gap:.2g} %"


@dataclass(frozen=True)
class Result:
    """How a search ended. `best` is None if no valid mapping was found.

    `rejected`: proposals that the model evaluated but that break a rule of legality. `lower_bound`: proved by the mapper,
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
    rejections: Rejections | None = None
    """Why nothing was found, where nothing was."""
    error: TilewrightError | None = None

    @property
    def told(self) -> str:
        """How long it searched, and why it found nothing if so."""
        why = "" if self.rejections is None else f"; {self.rejections}"
        return f"{self.evaluated:,} tried, {ENDINGS[self.stop]}{why}"

    @property
    def gap(self) -> float | None:
        """(best - lower bound) / best; None where nothing was proved or found."""
        return None if self.best is None else gap_of(self.value, self.lower_bound)

    @property
    def proved(self) -> str | None:
        """How far the mapper's proof goes."""
        return proof(self.gap)


@dataclass(frozen=True)
class Progress:
    """What a watcher is told after every piece of a batch. `best`: the best objective so far, inf if there is none."""

    evaluated: int
    valid: int
    best: float
    elapsed_seconds: float
    budget: Budget


Watcher = Callable[[Progress], None]
