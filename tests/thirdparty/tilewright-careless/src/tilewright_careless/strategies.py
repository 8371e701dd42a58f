"""Strategies that break promises. The good one tries all points, one at a time."""

from __future__ import annotations

import random
from collections.abc import Iterable

from tilewright.plugin import ExplorationTask, PointProposal, PointProposals


class Good:
    """Strategy that tries the points in order."""

    def order(self, task: ExplorationTask) -> Iterable[int]:
        return range(task.points)

    def explore(self, task: ExplorationTask) -> PointProposals:
        for index in self.order(task):
            yield [PointProposal(index)]


class Straying(Good):
    """Leaves the space at last."""

    def explore(self, task: ExplorationTask) -> PointProposals:
        yield [PointProposal(0)]
        yield [PointProposal(task.size)]


class Idle(Good):
    """Finds every point needless."""

    def explore(self, task: ExplorationTask) -> PointProposals:
        yield [PointProposal(index, "too much work") for index in self.order(task)]


class Unseeded(Good):
    """Draws points by a seed of its own."""

    def order(self, task: ExplorationTask) -> Iterable[int]:
        return random.sample(range(task.size), task.points)


class Remembering(Good):
    """Begins where the last exploration ended."""

    began = 0

    def order(self, task: ExplorationTask) -> Iterable[int]:
        began, self.began = self.began, self.began + task.points
        return [(began + each) % task.size for each in range(task.points)]


class Touchy(Good):
    """Trusts that some point has a mapping."""

    def explore(self, task: ExplorationTask) -> PointProposals:
        found = yield [PointProposal(index) for index in self.order(task)]
        assert [int(each.energy_pj) for each in found if task.architecture(each.index)]
