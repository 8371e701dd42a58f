"""Guard of strategies."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from tilewright.plugin.guard.calls import Owner, calling, described, fault
from tilewright.plugin.strategy import ExplorationTask, PointProposal, PointProposals, PointResult, Strategy

EMPTY = 1000
"""Consecutive empty groups after which a strategy has failed."""


class GuardedStrategy:
    """A strategy whose proposals are checked."""

    def __init__(self, plugin: Strategy, owner: Owner) -> None:
        self.plugin, self.owner = plugin, owner

    def explore(self, task: ExplorationTask) -> PointProposals:
        with calling(self.owner, "explore"):
            generator: Any = self.plugin.explore(task)
        if not isinstance(generator, Generator):
            raise fault(self.owner, f"explore returned {described(generator)}, a generator is expected")
        known: set[int] = set()
        results: Sequence[PointResult] | None = None
        empty = 0

        while True:
            with calling(self.owner, "explore"):
                try:
                    group = generator.send(results)
                except StopIteration:
                    return
            wrong = fault_of_group(group, task, known)
            empty = 0 if group else empty + 1
            if wrong or empty == EMPTY:
                raise fault(self.owner, f"explore {wrong or f'proposed nothing {EMPTY:,} times in a row'}")
            known |= {point.index for point in group}
            results = yield tuple(group)


def fault_of_group(group: object, task: ExplorationTask, known: set[int]) -> str | None:
    """Return the contract violation of a group of proposals in a few words, or None.

    Args:
        known: Points proposed before.
    """
    if not isinstance(group, Sequence) or isinstance(group, str | bytes):
        return f"yielded {described(group)}, a list of PointProposal is expected"
    seen = set(known)
    for proposal in group:
        if not isinstance(proposal, PointProposal):
            return f"yielded {described(proposal)} among them, a PointProposal is expected"
        index: object = proposal.index
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < task.size:
            return f"proposed point {str(index)[:40]} of a space with {task.size:,}"
        if index in seen:
            return f"proposed point {index} twice"
        needless: object = proposal.needless
        if needless is not None and not (isinstance(needless, str) and needless.strip()):
            return f"left point {index} out without a reason"
        together: object = proposal.together
        if not isinstance(together, bool):
            return f"has {described(together)} as `together` of point {index}, True or False is expected"
        seen.add(index)
    return None if len(seen) <= task.points else f"proposed more than {task.points:,} points"
