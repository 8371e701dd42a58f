"""Result and progress of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tilewright.errors import TilewrightError
from tilewright.plugin.mapper import Budget
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
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
"""Text for each way in which a search ends."""


class CommonReason(Model):
    """A reason that mappings of a sample share."""

    code: str
    """Stable code of the kind of reason."""
    where: str
    """Dimension, entry, level or tensor that it concerns."""
    count: int
    """Number of mappings of the sample with this reason."""
    example: str
    """One of the messages."""

    def __str__(self) -> str:
        return f"{self.count} because of {self.where or 'the mapping'} [{self.code}], such as: {self.example}"


class Rejections(Model):
    """Reasons why sampled proposals are invalid."""

    sampled: int
    """Number of proposals in the sample."""
    reasons: tuple[CommonReason, ...] = ()
    """Reasons, the most common first; a proposal may have several."""

    def __str__(self) -> str:
        told = "; ".join(str(reason) for reason in self.reasons[:3]) or "no reason is given"
        return f"of {self.sampled} sampled, {told}"


PROOF_TOLERANCE = 1e-8
"""Largest relative gap that is due to rounding."""


def gap_of(value: float, bound: float | None) -> float | None:
    """Return the relative gap between a value and a lower bound; None without a bound."""
    if bound is None:
        return None
    return (value - bound) / value if value else 0.0


def proof(gap: float | None, claimed_by: str | None = None) -> str | None:
    """Return a gap as text: "yes" up to one part in 10^8, else the gap in percent; None without a proof.

    What others than Tilewright prove is their claim.

    >>> proof(0.0), proof(0.0, "elsewhere/fp"), proof(0.03, "elsewhere/fp")
    ('yes', 'claimed by elsewhere/fp', 'to 3 %, claimed by elsewhere/fp')
    """
    if gap is None:
        return None
    told = "yes" if gap < PROOF_TOLERANCE else f"to {percent(gap)}"
    if claimed_by is None:
        return told
    return f"claimed by {claimed_by}" if told == "yes" else f"{told}, claimed by {claimed_by}"


def percent(part: float) -> str:
    """Return a fraction as text with two digits.

    >>> percent(0.0724), percent(0.999), percent(1.0)
    ('7.2 %', '100 %', '100 %')
    """
    return f"{100 * part:.0f} %" if part >= 0.0995 else f"{100 * part:.2g} %"


@dataclass(frozen=True)
class Result:
    """Result of a search. `best` is None if no valid mapping was found.

    `rejected` counts proposals that the model accepted but that break a rule of legality. `lower_bound` is proved by
    the mapper, in the objective; with `claimed_by`, it is the claim of plugins that are not built in. If `stop` is failed,
    `error` is the error. It is also the error of a cost model whose bounds were refuted, and dropped.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> layer.result.evaluated, layer.result.gap is None
        (50, True)
    """

    best: Mapping | None
    value: float
    """Objective of the best mapping; inf without one."""
    evaluated: int
    valid: int
    rejected: int
    stop: Stop
    cpu_seconds: float
    wall_seconds: float
    seed: int
    lower_bound: float | None = None
    claimed_by: str | None = None
    figures: dict[str, float] = field(default_factory=dict)
    """Figures that the mapper reported in `Run.figures`."""
    rejections: Rejections | None = None
    """Reasons why no valid mapping was found."""
    error: TilewrightError | None = None
    history: tuple[tuple[int, float], ...] = ()
    """(Number of evaluated mappings, objective) of each new best mapping."""
    objective: Objective | None = None
    """Objective of the search; None in results that do not record it."""

    @property
    def told(self) -> str:
        """Number of evaluations, how the search ended, and why it found nothing if so."""
        why = "" if self.rejections is None else f"; {self.rejections}"
        return f"{self.evaluated:,} tried, {ENDINGS[self.stop]}{why}"

    @property
    def gap(self) -> float | None:
        """(best - lower bound) / best; None without a proof or a mapping."""
        return None if self.best is None else gap_of(self.value, self.lower_bound)

    @property
    def proved(self) -> str | None:
        """The gap as text, whoever claims it; see `proof`."""
        return proof(self.gap)

    @property
    def told_proof(self) -> str | None:
        """The gap as text, with the name of the plugin whose claim it is."""
        return proof(self.gap, self.claimed_by)


@dataclass(frozen=True)
class Progress:
    """Progress of a search, after each piece of a batch. `best` is the best objective so far, or inf.

    Example:
        >>> from tilewright.plugin import Budget, Progress
        >>> Progress(evaluated=10, valid=8, best=3.0, elapsed_seconds=0.5, budget=Budget()).best
        3.0
    """

    evaluated: int
    valid: int
    best: float
    elapsed_seconds: float
    budget: Budget


Watcher = Callable[[Progress], None]
