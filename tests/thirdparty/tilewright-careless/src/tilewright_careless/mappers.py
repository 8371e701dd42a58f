"""Mappers that break promises."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from tilewright import MapSpace
from tilewright.plugin import Proposals, Run, Task

SIZE = 64


class Good:
    """Mapper that draws until the host stops it."""

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield task.space.sample(run.rng, SIZE)


class OtherArguments:
    """Wants to know more than the host tells."""

    def search(self, task: Task, run: Run, model: object) -> Proposals:
        return Good().search(task, run)


class Uncovered:
    """Some of its mappings do more iterations than the problem has."""

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            drawn = task.space.sample(run.rng, SIZE)
            trips = drawn.trips.copy()
            trips[0, 0] *= 2
            yield replace(drawn, trips=trips)


class Idle:
    """Never proposes anything."""

    def search(self, task: Task, run: Run) -> Proposals:
        yield from ()


class Unseeded:
    """Draws from a generator of its own."""

    def search(self, task: Task, run: Run) -> Proposals:
        rng = np.random.default_rng(np.random.randint(2**31))
        while True:
            yield task.space.sample(rng, SIZE)


@dataclass
class Remembering:
    """Begins where the last search ended."""

    searches: int = 0

    def search(self, task: Task, run: Run) -> Proposals:
        self.searches += 1
        task.space.sample(run.rng, self.searches)
        return Good().search(task, run)


class Overwriting:
    """Writes the next mappings into the arrays that the host already has."""

    def search(self, task: Task, run: Run) -> Proposals:
        drawn = task.space.sample(run.rng, SIZE)
        trips, order = drawn.trips.copy(), drawn.orders.copy()
        while True:
            yield replace(drawn, trips=trips, order=order)
            new = task.space.sample(run.rng, SIZE)
            trips[:], order[:] = new.trips, new.orders


class Talking:
    """Tells whoever listens."""

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            print("another batch")
            yield task.space.sample(run.rng, SIZE)


class Oversleeping:
    """Sleeps through every deadline."""

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            if run.budget.seconds is not None:
                time.sleep(run.budget.seconds + 60)
            yield task.space.sample(run.rng, SIZE)


class Lawless:
    """Draws as if there were no constraints."""

    def search(self, task: Task, run: Run) -> Proposals:
        free = MapSpace.of(task.problem, task.architecture, None)
        while True:
            yield free.sample(run.rng, SIZE)


class Unstoppable:
    """Has one more idea when it is closed."""

    def search(self, task: Task, run: Run) -> Proposals:
        try:
            yield from Good().search(task, run)
        except GeneratorExit:
            yield task.space.sample(run.rng, SIZE)


class Hopeful:
    """Believes that some mapping of every batch is valid."""

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            costs = yield task.space.sample(run.rng, SIZE)
            costs.energy_pj[costs.valid].min()


class Boasting:
    """Claims that nothing costs less than twice what it found."""

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            costs = yield task.space.sample(run.rng, SIZE)
            if costs.valid.any():
                run.prove(2 * float(costs.edp.min()))
