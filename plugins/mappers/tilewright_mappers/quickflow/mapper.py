"""`quickflow`: three rounds of local beam search over factors; splits, then memories, then all together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.batch import MappingBatch
from tilewright.mapper import Proposals, Run, Task
from tilewright.mapspace import MapSpace
from tilewright.spreading import Spreading, spatial_slots, temporal_slots
from tilewright_mappers.quickflow.beam import Beam, Guide, Round, States, prices
from tilewright_mappers.quickflow.orders import OneShot


@dataclass(frozen=True)
class QuickFlowMapper:
    """The manual says what is the paper's and what is not.

    Attributes:
        guide: what the rounds lower: the objective over the utilization, the objective, or one after the other.
        hops: N of the rounds for splits, memories, and all together.
        repeats: M. width: K. follow: mappings that go on from one hop to the next.
    """

    guide: Guide | None
    hops: tuple[int, int, int]
    repeats: int
    width: int
    follow: int

    def search(self, task: Task, run: Run) -> Proposals:
        orders = OneShot(task.space)
        best: States | None = None
        for guide in ("over_utilization", "plain") if self.guide is None else (self.guide,):
            beam = Beam(task, run, orders, guide)
            if best is None:
                spreadings = Spreading.each(task.space, run.rng)
                trips = np.concatenate([each.start for each in spreadings])
                keep = np.stack([each.keep for each in spreadings])
                best = yield from beam.priced(trips, keep, np.arange(len(trips)))
                rounds = self._rounds(spreadings[0])
            else:
                best = yield from beam.priced(best.trips, best.keep, best.origin)
                rounds = self._rounds(spreadings[0])[-1:]
            for rules in rounds:
                if not len(best):
                    return
                best = yield from beam.optimise(best, rules)
            yield from self._reordered(task.space, beam, best)

    def _rounds(self, spreading: Spreading) -> list[Round]:
        space = spreading.space
        homes = {int(home) for home in spreading.home if home >= 0}
        splits = tuple(sorted(homes | set(spatial_slots(space))))
        first, second, third = self.hops
        return [
            Round(splits, True, first, self.repeats, self.width, self.follow),
            Round(tuple(temporal_slots(space)), False, second, self.repeats, self.width, self.follow),
            Round(None, False, third, self.repeats, self.width, self.follow),
        ]

    def _reordered(self, space: MapSpace, beam: Beam, best: States) -> Proposals:
        """All combinations of distinct orders of a mapping, should one shot have missed the best."""
        for row, order in beam.orders.every(best.trips):
            batch: MappingBatch = space.build(best.trips[row], order, best.keep[row])
            yield from prices(batch.take(slice(0, 20000)), beam)
