"""`sunstone`: promising orders, maximal tiles and full unrollings level by level."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tilewright.mapspace.constructive.placement import keep_choices
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright_mappers.sunstone.guided import Guided
from tilewright_mappers.sunstone.levels import Inter, Intra, Step, array_first, steps
from tilewright_mappers.sunstone.moves import choices_of_order
from tilewright_mappers.sunstone.published import Published
from tilewright_mappers.sunstone.whole import whole


@dataclass(frozen=True)
class SunstoneMapper:
    """The manual's page `sunstone` says what `sound` and `paper` keep and drop.

    Attributes:
        principles: `paper`: the published rules and nothing else.
        inter, intra: in which order levels, and what belongs to one level, are decided (Table VI); None: `sound` takes
            several ways, `paper` that of the authors' program.
        width: candidates that go on from one step to the next.
        tries: candidates made at one step.
        rounds: how often all ways are gone, each time with twice as many candidates.
        whole: spaces of at most so many factorisations are searched whole in the end.
    """

    principles: Literal["sound", "paper"] = "sound"
    inter: Inter | None = None
    intra: Intra | None = None
    width: int = 50
    tries: int = 500
    rounds: int = 2
    whole: int = 100_000

    def search(self, task: Task, run: Run) -> Proposals:
        orders = choices_of_order(task.space)
        if self.principles == "paper":
            inter, intra = self.inter or "bottom_up", self.intra or "unrolling_tiling_ordering"
            for keep in keep_choices(task.space):
                yield from Published(task, run, orders, intra, inter).search(keep)
            return
        best = math.inf
        for round_number in range(self.rounds):
            for keep, plan in itertools.product(keep_choices(task.space), self._plans(task.space)):
                guided = Guided(task, run, orders, self.width << round_number, self.tries << round_number)
                yield from guided.construct(plan, keep)
                yield from guided.repair()
                best = min(best, guided.pool.best)
        if task.space.factorizations <= self.whole:
            yield from whole(task, run, orders, best)

    def _plans(self, space: MapSpace) -> Iterator[list[Step]]:
        if self.inter or self.intra:
            yield steps(space, self.inter or "bottom_up", self.intra or "unrolling_tiling_ordering")
            return
        yield steps(space, "bottom_up", "tiling_unrolling_ordering")
        yield array_first(space)
        yield steps(space, "bottom_up", "unrolling_tiling_ordering")
        yield steps(space, "top_down", "unrolling_tiling_ordering")
