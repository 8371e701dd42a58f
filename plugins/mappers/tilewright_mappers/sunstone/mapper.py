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
from tilewright_mappers.sunstone.levels import Decision, array_first, decisions
from tilewright_mappers.sunstone.moves import Exchanges, choices_of_order
from tilewright_mappers.sunstone.published import Published
from tilewright_mappers.sunstone.sound import Sound
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
                sound = Sound(task, run, orders, exchanges, options.width << number, options.tries << number)
                yield from sound.construct(plan, each)
                yield from sound.repair()
                best = min(best, sound.pool.best)
        if space.factorizations <= options.whole:
            yield from whole(task, run, orders, best)

    def _plans(self, space: MapSpace) -> Iterator[list[Decision]]:
        inter, intra = self.options.inter, self.options.intra
        if inter or intra:
            yield decisions(space, inter or "bottom_up", intra or "unrolling_tiling_ordering")
            return
        yield decisions(space, "bottom_up", "tiling_unrolling_ordering")
        yield array_first(space)
        yield decisions(space, "bottom_up", "unrolling_tiling_ordering")
        yield decisions(space, "top_down", "unrolling_tiling_ordering")
