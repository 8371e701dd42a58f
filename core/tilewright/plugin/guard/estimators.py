"""Guard of estimators."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.errors import Reason
from tilewright.plugin.estimator import Attribute, Estimate, Estimator
from tilewright.plugin.guard.calls import Owner, described
from tilewright.plugin.guard.time_limits import checked_answer


class GuardedEstimator:
    """An estimator whose answers are checked."""

    def __init__(self, plugin: Estimator, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        def ask() -> Estimate | Reason:
            return self.plugin.estimate(component, dict(attributes), action, technology_nm)

        return checked_answer(self.owner, "estimate", ask, fault_of_estimate)


def fault_of_estimate(answer: object) -> str | None:
    """Return the contract violation in an estimator's answer in a few words, or None."""
    if not isinstance(answer, Estimate | Reason):
        return f"returned {described(answer)}, an Estimate or a Reason is expected"
    if isinstance(answer, Reason):
        words: object = answer.message
        return None if isinstance(words, str) and words.strip() else "refuses without a word"
    try:
        Estimate.model_validate(answer.model_dump(include=set(Estimate.model_fields), warnings=False))
    except ValueError as error:
        return f"returned an Estimate that is none: {' '.join(str(error).split())[:200]}"
    return None
