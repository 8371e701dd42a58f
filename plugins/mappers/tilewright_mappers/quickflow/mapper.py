"""Mapper `quickflow`: three rounds of local beam search over unrolling, memories, then both."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapspace.batch import Ints
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement
from tilewright.plugin import Costs, Proposals, Run, Task, objectives
from tilewright_mappers import QuickFlowOptions
from tilewright_mappers.quickflow.beam import Beam, BeamStates, Round, Search, SearchObjective, Share
from tilewright_mappers.quickflow.orders import OneShot

UNROLLINGS = 1024
"""Maximum unrollings considered; if there are more, this many are drawn."""
DRAWN, DRAWS = 1024, 64
"""Mappings per draw, and number of draws, if no mapping with all factors outside is valid."""
SHARES = {"unrolling": 0.25, "starts": 0.35, "memories": 0.7, "both": 0.85}
"""Fraction of a limited budget of one search objective that is used when a step ends; the last local searches have the rest."""
FIRST = 0.7
"""Fraction of a limited budget at which the second search objective begins."""
PERFECT, REFINED = 0.5, 0.6
"""Fractions of a limited budget at which, in a ragged space, the search of perfect mappings and its refinement end."""
COMBINATIONS = 20_000
"""Maximum combinations of loop orders tried at the end."""


@dataclass(frozen=True)
class QuickFlow:
    """QuickFlow search; docs/mappers.md lists the deviations from the paper."""

    options: QuickFlowOptions

    def search(self, task: Task, run: Run) -> Proposals:
        """Return the search; kernels compile here, before its time begins."""
        orders = OneShot(task.space)
        orders.order(Candidates(task.space, np.zeros((0, len(task.space.slots), len(task.problem.sizes)), np.int64)))
        return self._through(task, run, orders)

    def _through(self, task: Task, run: Run, orders: OneShot) -> Proposals:
        """Search; in a ragged space, start from the best perfect mapping.

        In a limited budget, each round has a share. If one was cut and budget is left, the search runs again without shares.
        """
        share, whole = Share(), (0.0, 1.0)
        perfect, best = replace(task, space=replace(task.space, factors="perfect")), None
        if task.space.factors == "ragged" and perfect.space.factorizations:
            best = yield from self._search(perfect, run, OneShot(perfect.space), None, (0.0, PERFECT), share)
        if best is not None:
            best = replace(best, rows=replace(best.rows, space=task.space))
            placement, share.until = Placement.of(task.space, run.rng), REFINED
            best = yield from Beam(task, run, orders, "plain", share).optimise(best, self._rounds(placement)[2])
        best = yield from self._search(task, run, orders, best, whole if best is None else (REFINED, 1.0), share)
        if share.cut and not run.exhausted:
            yield from self._search(task, run, orders, best, None, share)

    def _search(
        self,
        task: Task,
        run: Run,
        orders: OneShot,
        best: BeamStates | None,
        span: tuple[float, float] | None,
        share: Share,
    ) -> Generator[Candidates, Costs, BeamStates | None]:
        """Return the best mapping without orders, or None.

        Args:
            best: a mapping known before.
            span: fractions of a limited budget between which this search runs; None: its rounds have no shares.
        """
        placements = Placement.each(task.space, run.rng, UNROLLINGS)
        first, second, third = self._rounds(placements[0])
        in_turn = self._objectives()
        for turn, objective in enumerate(in_turn):
            beam = Beam(task, run, orders, objective, share)
            begin, end = _turn(span, turn, len(in_turn))
            ends = {step: begin + part * (end - begin) for step, part in SHARES.items()}
            share.until = ends["unrolling"]
            start = yield from beam.evaluated(Candidates.join([placement.start for placement in placements]))
            if not len(start):  # some cost models accept no mapping with all factors outside
                start = yield from self._drawn(task, run, beam)
            if not len(start):
                return best
            unrolled = yield from beam.optimise(start, first)
            share.until = ends["starts"]
            others = yield from self._parallel(placements, beam)
            together = BeamStates.join([unrolled, others])
            share.until = (ends["starts"] + ends["memories"]) / 2
            one = yield from beam.descend(together, replace(second, powers=False))
            share.until = ends["memories"]
            several = yield from beam.descend(together, second)
            share.until = ends["both"]
            tiled = yield from beam.descend(BeamStates.join([one, several]), third)
            if best is not None:
                before = yield from beam.evaluated(best.rows)
                tiled = BeamStates.join([before, tiled])
            finalists = tiled.best(self.options.finalists).singly()
            for number, finalist in enumerate(finalists, start=1):
                share.until = ends["both"] + (end - ends["both"]) * number / len(finalists)
                ended = yield from beam.optimise(finalist, second)
                ended = yield from beam.optimise(ended, third)
                every = orders.every(ended.rows.trips[0], COMBINATIONS)
                every = every[beam.within_share(len(every))]
                same = ended.rows.take(np.zeros(len(every), dtype=np.int64))
                yield from objectives(replace(same, order=every), task, run)
                best = ended if best is None or ended.least < best.least else best
        return best

    def _drawn(self, task: Task, run: Run, beam: Beam) -> Search:
        """Return the best of some random valid mappings."""
        for _ in range(DRAWS):
            rows = task.space.sample(run.rng, DRAWN)
            states = yield from beam.evaluated(rows.take(rows.fits()))
            if len(states) or beam.over:
                break
        return states.best(self.options.starts)

    def _objectives(self) -> tuple[SearchObjective, ...]:
        """Return the search objectives of the rounds, in sequence."""
        one = self.options.search_objective
        return ("over_utilization", "plain") if one is None else (one,)

    def _parallel(self, placements: list[Placement], beam: Beam) -> Search:
        """Return the best mapping per set of unrolled dimensions, with empty memories."""
        parts = []
        for placement in placements:
            states = yield from beam.evaluated(placement.unroll(placement.start))
            parts.append(replace(states, origin=_kinds(states.rows)).best_of_each())
        return BeamStates.join(parts).best(self.options.starts)

    def _rounds(self, placement: Placement) -> tuple[Round, Round, Round]:
        options, space = self.options, placement.space
        unrolling = {int(source_slot) for source_slot in placement.source_slot if source_slot >= 0} | set(
            space.spatial_slots
        )
        first, second, third = (
            Round(None, False, hops, options.repeats, options.width, options.follow) for hops in options.hops
        )
        return (
            replace(first, slots=tuple(sorted(unrolling)), powers=True),
            replace(second, slots=space.temporal_slots, powers=True),
            third,
        )


def _turn(span: tuple[float, float] | None, turn: int, turns: int) -> tuple[float, float]:
    """Return the fractions of the budget between which one of several search objectives runs."""
    if span is None:
        return 1.0, 1.0
    middle = span[0] + FIRST * (span[1] - span[0])
    return span if turns == 1 else (middle, span[1]) if turn else (span[0], middle)


def _kinds(rows: Candidates) -> Ints:
    """Return a number per set of unrolled dimensions [n]."""
    number = np.zeros(len(rows), dtype=np.int64)
    for slot in rows.space.spatial_slots:
        for non_unit in (rows.trips[:, slot] > 1).T:
            number = np.unique(2 * number + non_unit, return_inverse=True)[1].reshape(-1)
    return number
