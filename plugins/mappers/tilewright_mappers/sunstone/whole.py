"""Small spaces: every tiling, so that nothing rests on the Tiling and Unrolling Principles."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence

import numpy as np

from tilewright.batch import MappingBatch, Positions
from tilewright.costmodel import Costs
from tilewright.mapper import Run, Task
from tilewright.spreading import keep_choices, with_orders
from tilewright.tiling import fitting
from tilewright_mappers.sunstone.points import Points, priced


def whole(task: Task, run: Run, orders: Sequence[Positions]) -> Generator[MappingBatch, Costs, None]:
    """Price every factorisation that fits, with every choice of keeps and every combination of promising orders."""
    space = task.space
    for trips, keep in itertools.product(space.factorings(), keep_choices(space)):
        if run.exhausted:
            return
        fits = trips[fitting(space, trips, keep)]
        if len(fits):
            fits, order = with_orders(space, fits, orders)
            yield from priced(
                space, Points(fits, order, np.broadcast_to(keep, (len(fits), *keep.shape))), task.objective, run
            )
