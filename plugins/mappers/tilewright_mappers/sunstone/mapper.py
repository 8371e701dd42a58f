"""`sunstone`: promising orders, maximal tiles and full unrollings level by level."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.mapspace.constructive.placement import Placement, keep_choices
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Proposals, Run, Task
from tilewright_mappers import SunstoneOptions
from tilewright_mappers.sunstone.guided import Guided
from tilewright_mappers.sunstone.levels import Step, array_first, steps
from tilewright_mappers.sunstone.moves import Exchanges, choices_of_order
from tilewright_mappers.sunstone.published import Published
from tilewright_mappers.sunstone.whole import whole


@dataclass(frozen=True)
class Sunstone:
    """The manual's page `sunstone` says what `sound` and `paper` keep and drop."""

    options: SunstoneOptions

    def search(self, task: Task, run: Run) -> Proposals:
        options, space = self.options, task.space
        orders, placement = choices_of_order(space), Placement.of(space, run.rng)
        placements = [replace(placement, start=placement.start.keeping(keep)) for keep in keep_choices(space)]
        if options.principles == "paper":
            inter, intra = options.inter or "bottom_up", options.intra or "unrolling_tiling_ordering"
            for each in placements:
                yield from Published(task, run, orders, intra, inter).search(each)
            return
        best, exchanges = math.inf, Exchanges.of(space)
        for number in range(options.rounds):
            for each, plan in itertools.product(placements, self._plans(space)):
                guided = Guided(task, run, orders, exchanges, options.width << number, options.tries << number)
                yield from guided.construct(plan, each)
                yield from guided.repair()
                best = min(best, guided.pool.best)
        if space.factorizations <= options.whole:
            yield from whole(task, run, orders, best)

    def _plans(self, space: MapSpace) -> Iterator[list[Step]]:
        inter, intra = self.options.inter, self.options.intra
        if inter or intra:
            yield steps(space, inter or "bottom_up", intra or "unrolling_tiling_ordering")
            return
        yield steps(space, "bottom_up", "tiling_unrolling_ordering")
        yield array_first(space)
        yield steps(space, "bottom_up", "unrolling_tiling_ordering")
        yield steps(space, "top_down", "unrolling_tiling_ordering")
