"""Mapper `sunstone`: reuse-maximal orders, maximal tiles and full unrollings, level by level."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement, keep_choices
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Costs, Proposals, Run, Task
from tilewright_mappers import SunstoneOptions
from tilewright_mappers.sunstone.levels import Decision, array_first, decisions
from tilewright_mappers.sunstone.moves import Exchanges, choices_of_order
from tilewright_mappers.sunstone.pool import Pool
from tilewright_mappers.sunstone.published import Published
from tilewright_mappers.sunstone.small_spaces import enumerate_small_space
from tilewright_mappers.sunstone.sound import Sound

POOLED = 16
"""Mappings kept over all plans."""


def _placements(space: MapSpace, run: Run) -> list[Placement]:
    """Return one placement per choice of storage."""
    first = Placement.of(space, run.rng)
    return [replace(first, start=first.start.keeping(keep)) for keep in keep_choices(space)]


@dataclass(frozen=True)
class Sunstone:
    """Sunstone search; benchmarks/sunstone.md compares `sound` and `paper`."""

    options: SunstoneOptions

    def search(self, task: Task, run: Run) -> Proposals:
        if self.options.principles == "paper":
            yield from self._published(task, run)
            return
        perfect = replace(task, space=replace(task.space, factors="perfect"))
        if (
            task.space.factors == "ragged" and perfect.space.factorizations
        ):  # perfect tiles are searched quickly, and repair adapts the results
            pool = yield from self._sound(perfect, run)
            yield from self._repaired(task, run, pool)
        yield from self._sound(task, run)

    def _published(self, task: Task, run: Run) -> Proposals:
        inter, intra = self.options.inter or "bottom_up", self.options.intra or "unrolling_tiling_ordering"
        orders = choices_of_order(task.space)
        for placement in _placements(task.space, run):
            yield from Published(task, run, orders, intra, inter).search(placement)

    def _sound(self, task: Task, run: Run) -> Generator[Candidates, Costs, Pool]:
        """Return the best mappings over all plans."""
        options, space, pool = self.options, task.space, Pool(POOLED)
        orders, placements, exchanges = choices_of_order(space), _placements(space, run), Exchanges.of(space)
        for number in range(options.rounds):
            for placement, plan in itertools.product(placements, self._plans(space)):
                sound = Sound(task, run, orders, exchanges, options.width << number, options.tries << number)
                yield from sound.construct(plan, placement)
                yield from sound.repair()
                pool.join(sound.pool)
        if space.factorizations <= options.whole:
            yield from enumerate_small_space(task, run, orders, pool.best)
        return pool

    def _repaired(self, task: Task, run: Run, pool: Pool) -> Proposals:
        """Repair perfect mappings in the ragged space."""
        options, space = self.options, task.space
        sound = Sound(task, run, choices_of_order(space), Exchanges.of(space), options.width, options.tries)
        if pool.rows is not None:
            sound.pool.add(replace(pool.rows, space=space), pool.values)
        yield from sound.repair()

    def _plans(self, space: MapSpace) -> Iterator[list[Decision]]:
        inter, intra = self.options.inter, self.options.intra
        if inter or intra:
            yield decisions(space, inter or "bottom_up", intra or "unrolling_tiling_ordering")
            return
        yield decisions(space, "bottom_up", "tiling_unrolling_ordering")
        yield array_first(space)
        yield decisions(space, "bottom_up", "unrolling_tiling_ordering")
        yield decisions(space, "top_down", "unrolling_tiling_ordering")
