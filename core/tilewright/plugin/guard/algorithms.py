"""Guard of algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydantic import ValidationError

from tilewright.plugin.frontend import Algorithm
from tilewright.plugin.guard.calls import Owner, described
from tilewright.plugin.guard.time_limits import checked_answer
from tilewright.schema.alternative import Alternative
from tilewright.schema.problem import Problem


class GuardedAlgorithm:
    """An algorithm whose answers are checked."""

    def __init__(self, plugin: Algorithm, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner

    def alternatives(self, problem: Problem) -> tuple[Alternative, ...]:
        def ask() -> Sequence[Alternative]:
            return self.plugin.alternatives(problem)

        fault_of = partial(fault_of_alternatives, problem)
        return tuple(checked_answer(self.owner, f"alternatives of {problem.name}", ask, fault_of))


def fault_of_alternatives(problem: Problem, found: object) -> str | None:
    """Return the contract violation in an algorithm's answer in a few words, or None."""
    if not isinstance(found, Sequence) or isinstance(found, str | bytes) or not found:
        return f"returned {described(found)}, a list of at least one Alternative is expected; refuse with NotConformableError"
    for alternative in found:
        if not isinstance(alternative, Alternative):
            return f"returned {described(alternative)} among them, an Alternative is expected"
        try:
            whole = Alternative.model_validate_json(alternative.model_dump_json())
        except (ValidationError, ValueError, AttributeError) as error:
            return f"returned an Alternative that is none: {' '.join(str(error).split())[:200]}"
        wrong = next(whole.faults(problem), None)
        if wrong:
            return f"returned {whole.name}: {wrong}"
    names = [each.name for each in found]
    return None if len(set(names)) == len(names) else f"returned alternatives that have one name: {', '.join(names)}"
