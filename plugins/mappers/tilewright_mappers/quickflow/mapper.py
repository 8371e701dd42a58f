"""`quickflow`: three rounds of local beam search over factors; splits, then memories, then all together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Ints
from tilewright.mapspace.constructive.placement import Spreading, spatial_slots, temporal_slots
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright_mappers.quickflow.beam import Beam, Guide, Round, Search, States, prices
from tilewright_mappers.quickflow.orders import OneShot

UNROLLINGS = 1024
"""Ways to split that are looked at; of more, so many are drawn."""
COMBINATIONS = 20_000
"""Combinations of orders tried at the end."""


@dataclass(frozen=True)
class QuickFlowMapper:
    """The manual says what is the paper's and what is not.

    Attributes:
        guide: what the rounds lower: the objective over the utilization, the objective, or (None) one after the other.
        hops: N of the rounds for splits, for memories, and for all together.
        repeats: M. width: K.
        follow: mappings that go on from one hop to the next.
        starts: ways to split that go on to the memories, side by side.
        finalists: of these, how many the beam search starts from.
    """

    guide: Guide | None = None
    hops: tuple[int, int, int] = (4, 2, 4)
    repeats: int = 1
    width: int = 32
    follow: int = 32
    starts: int = 48
    finalists: int = 2

    def search(self, task: Task, run: Run) -> Proposals:
        orders = OneShot(task.space)
        spreadings = Spreading.each(task.space, run.rng, UNROLLINGS)
        first, second, third = self._rounds(spreadings[0])
        best: States | None = None
        for guide in _guides(self.guide):
            beam = Beam(task, run, orders, guide)
            trips = np.concatenate([each.start for each in spreadings])
            start = yield from beam.priced(trips, np.stack([each.keep for each in spreadings]))
            if not len(start):
                return
            split = yield from beam.optimise(start, first)
            others = yield from self._parallel(spreadings, beam)
            together = States.join([split, others])
            one = yield from beam.descend(together, replace(second, powers=False))
            several = yield from beam.descend(together, second)
            tiled = yield from beam.descend(States.join([one, several]), third)
            if best is not None:
                before = yield from beam.priced(best.trips, best.keep)
                tiled = States.join([before, tiled])
            for finalist in tiled.best(self.finalists).apart():
                ended = yield from beam.optimise(finalist, second)
                ended = yield from beam.optimise(ended, third)
                every = orders.every(ended.trips[0], COMBINATIONS)
                shape = (len(every), *ended.trips.shape[1:])
                same = (
                    np.broadcast_to(ended.trips, shape),
                    every,
                    np.broadcast_to(ended.keep, (len(every), *ended.keep.shape[1:])),
                )
                yield from prices(task.space.build(*same), task, run)
                best = ended if best is None or ended.least < best.least else best

    def _parallel(self, spreadings: list[Spreading], beam: Beam) -> Search:
        """Of each set of dimensions that can be split where they are, the best mapping with memories still empty."""
        parts = []
        for spreading in spreadings:
            rows = spreading.unroll(spreading.start)
            states = yield from beam.priced(rows, np.broadcast_to(spreading.keep, (len(rows), *spreading.keep.shape)))
            parts.append(replace(states, origin=_kinds(spreading.space, states.trips)).best_of_each())
        return States.join(parts).best(self.starts)

    def _rounds(self, spreading: Spreading) -> tuple[Round, Round, Round]:
        splits = {int(home) for home in spreading.home if home >= 0} | set(spatial_slots(spreading.space))
        first, second, third = (Round(None, False, hops, self.repeats, self.width, self.follow) for hops in self.hops)
        return (
            replace(first, slots=tuple(sorted(splits)), powers=True),
            replace(second, slots=tuple(temporal_slots(spreading.space)), powers=True),
            third,
        )


def _kinds(space: MapSpace, trips: Ints) -> Ints:
    """A number for each set of split dimensions, [n]."""
    number = np.zeros(len(trips), dtype=np.int64)
    for slot in spatial_slots(space):
        for turns in (trips[:, slot] > 1).T:
            number = np.unique(2 * number + turns, return_inverse=True)[1].reshape(-1)
    return number


def _guides(guide: Guide | None) -> tuple[Guide, ...]:
    return ("over_utilization", "plain") if guide is None else (guide,)
