"""Mapper `optimal`: return the best mapping of a map space, with a proof."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Floats, Ints, Positions
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.looporders import count_orders, distinct_reuse_orders
from tilewright.plugin import Costs, Proposals, Run, Task, objectives, started
from tilewright_mappers import OptimalOptions
from tilewright_mappers.optimal.setup import Setup
from tilewright_mappers.optimal.walk import Finals, Walk

SURE = 1 - 1e-9
"""Factor of the cutoff; its distance from one exceeds the rounding of floating-point sums."""
MOST = sys.float_info.max
"""Cutoff before any mapping is found.

It is below infinity, the cost of a mapping above the cycle limit.
"""
DRAWN = 1024
"""Random mappings drawn before the staged search."""
FOLLOWED = 24
"""Mappings per round of the descent whose neighbours are evaluated."""
NARROW = 256, 4096, 32768
"""Widths of the first passes, in states per stage."""
IN_PART = 16384
"""Default width for ragged windows.

Their costs are mostly undercounted, so a wider pass rarely proves more.
"""
SHARE = 0.5
"""Fraction of the time limit for the narrow passes, if warm-start mappers are available."""
CLOSE = 0.97
"""Fraction of the best cost that must be proved to skip the warm-start mappers before the widest pass."""
FAR = 0.8
"""Fraction of the best cost that must be proved to run the widest of the narrow passes."""
WIDE = 275_000
"""Default width of the last pass."""
FINALS = 4096
"""Complete mappings evaluated per batch."""
REORDERED = 16384
"""Mappings evaluated per batch when all loop orders of each tiling are evaluated."""


@dataclass(frozen=True)
class Optimal:
    """Mapper that runs the staged search with growing width: first for mappings, then for a proof."""

    options: OptimalOptions

    def search(self, task: Task, run: Run) -> Proposals:
        """Search the task's map space.

        Raises:
            NotConformableError: the cost model offers no relaxation, or the skeleton is not
                supported.
        """
        relaxation = None if run.relaxable is None else run.relaxable.relaxation(task.space.skeleton)
        if relaxation is None:
            message = "the cost model offers no relaxation, so that nothing can be proved; use quickflow"
            raise NotConformableError("mapper optimal", (Reason(code="relaxation", where="", message=message),))
        setup = Setup(task.space, relaxation, task.objective, task.most_cycles)
        # compiles the kernels; a width of 1 below every cost finds nothing
        Walk(setup, -math.inf, 1, lambda: False).run()
        return _search(setup, task, run, self.options)


def _search(setup: Setup, task: Task, run: Run, options: OptimalOptions) -> Proposals:
    best, bound = math.inf, -math.inf
    # The order of evaluations does not depend on the budget, so a larger budget continues the
    # search of a smaller one.
    drawn = task.space.sample(run.rng, DRAWN)
    best = yield from _descend(drawn.take(drawn.fits()), best, task, run)
    most = options.width or (IN_PART if setup.shape.ragged and setup.counts_in_part else WIDE)
    # narrow passes find mappings; their incumbent makes the cutoff of the last pass low
    for width in sorted({min(width, most) for width in (*NARROW, most)}):
        if width == NARROW[-1] < most and bound < best * FAR:
            continue
        while width == most and run.starters and bound < best * CLOSE:
            best = min(best, (yield from started(task, run)))
        over = partial(_is_over, run, SHARE if width < most and run.starters else 1.0)
        walk = Walk(setup, best * SURE if math.isfinite(best) else MOST, width, over)
        finals = walk.run()
        best, left = yield from _evaluate(finals, walk.lost, best, task, run, options)
        if width < most:
            best = yield from _descend(finals.candidates.take(slice(0, FOLLOWED)), best, task, run)
        bound = min(best, left, walk.lost)
        if math.isfinite(bound) and math.isfinite(best):
            run.prove(bound * SURE if bound < best else best * SURE)
        run.figures.update(
            states=float(walk.counts[0]),
            pruned_by_bound=float(walk.counts[1]),
            pruned_by_dominance=float(walk.counts[2]),
            widest=float(walk.widest),
        )
        if bound >= best * SURE or run.exhausted:
            break
        if walk.lost >= best * SURE:  # a wider pass would prove the same bound
            if not (finals.displaces & (finals.bounds < best * SURE)).any():
                break
            # a dominated mapping may have cycles that are rounded less (Lemma 4)
            setup = setup.against_rounding(best)
    # warm-start mappers run if a gap is left, so the result is never worse than theirs
    while run.starters and bound < best * SURE and not run.exhausted:
        best = min(best, (yield from started(task, run)))


def _is_over(run: Run, share: float) -> bool:
    """Return whether a fraction of the time limit has passed, or the evaluations are used up."""
    seconds = run.budget.seconds
    return run.exhausted or (seconds is not None and run.elapsed_seconds >= share * seconds)


def _descend(rows: Candidates, best: float, task: Task, run: Run) -> Generator[Candidates, Costs, float]:
    """Return the lowest cost found by descent from some mappings.

    Each round moves single prime factors, or reorders one block of loops, until no neighbour is
    better.
    """
    orders = distinct_reuse_orders(task.problem)
    values = yield from objectives(rows, task, run)
    while len(rows) and not run.exhausted:
        lowest, rows = float(values.min()), rows.take(_followed(rows, values))
        if not len(rows):
            break
        best = min(best, lowest)
        moved, _ = task.space.neighbours(rows, powers=True)
        rows = Candidates.join([moved, *_reordered(rows, orders)])
        rows = rows.take(rows.fits())
        values = yield from objectives(rows, task, run)
        if not values.min(initial=math.inf) < lowest * SURE:
            break
    return best


def _followed(rows: Candidates, values: Floats) -> Ints:
    """Return rows with the lowest cost, and rows with the lowest cost per used sub-cluster.

    A cheap mapping that uses few sub-clusters may have no better neighbour.
    """
    used = rows.trips[:, rows.space.spatial_slots].prod(axis=(1, 2))
    best = [np.argsort(figure, kind="stable")[: FOLLOWED // 2] for figure in (values, values / used)]
    found = np.unique(np.concatenate(best))
    return found[np.isfinite(values[found])].astype(np.int64)


def _reordered(rows: Candidates, orders: Positions) -> Iterator[Candidates]:
    """Yield all rows with each of the orders in one block of temporal loops."""
    for block in range(len(rows.space.temporal_slots)):
        for each in orders:
            changed = rows.orders.copy()
            changed[:, block] = each
            yield replace(rows, order=rows.space.lawful(changed))


def _evaluate(
    finals: Finals, lost: float, best: float, task: Task, run: Run, options: OptimalOptions
) -> Generator[Candidates, Costs, tuple[float, float]]:
    """Evaluate complete mappings in the order of their bounds (Lemmas 13 and 15).

    Undercounted mappings are evaluated in all loop orders, up to `options.orders` of each.

    Returns:
        The best cost, and the lowest bound of unresolved mappings.
    """
    for start in range(0, len(finals.bounds), FINALS):
        if finals.bounds[start] >= best * SURE:
            break
        part = slice(start, start + FINALS)
        values = yield from objectives(finals.candidates.take(part), task, run)
        best = min(best, float(values.min(initial=math.inf)))
    # An exactly counted mapping dominates mappings above its bound. Its own cost may exceed the
    # bound, because cycles are rounded up.
    stand = finals.displaces & (finals.bounds < best * SURE)
    left = float(finals.bounds[stand].min(initial=math.inf))
    rest, ways = _distinct(finals, np.flatnonzero(finals.inexact & (finals.bounds < best * SURE)), task)
    settled = (ways <= options.orders) & (finals.bounds[rest] < lost)
    left = min(left, float(finals.bounds[rest[~settled]].min(initial=math.inf)))
    settled &= ways > 1  # mappings with a single order were evaluated above
    rest, ways = rest[settled], ways[settled].astype(np.int64)
    while len(rest) and finals.bounds[rest[0]] < best * SURE:
        if run.exhausted:
            left = min(left, float(finals.bounds[rest[0]]))
            break
        count = max(1, int(np.searchsorted(np.cumsum(ways), REORDERED)))
        rows = task.space.reordered(finals.candidates.take(rest[:count]), int(ways[:count].max()))
        values = yield from objectives(rows, task, run)
        best = min(best, float(values.min(initial=math.inf)))
        rest, ways = rest[count:], ways[count:]
    return best, left


def _distinct(finals: Finals, rows: Ints, task: Task) -> tuple[Ints, Ints]:
    """Return the rows that differ in more than loop order, and the number of loop orders of each."""
    some = finals.candidates.take(rows)
    tiles = [array.reshape(len(rows), math.prod(array.shape[1:])) for array in (some.trips, some.keeps)]
    seen: dict[bytes, int] = {}
    for i, row in enumerate(np.concatenate(tiles, axis=1)):
        seen.setdefault(row.tobytes(), i)
    first = np.array(list(seen.values()), np.int64)
    ways: Ints = np.ones(len(first), np.object_)
    for s in task.space.temporal_slots:
        ways *= count_orders(some.trips[first, s] > 1, task.space.slots[s].order)
    return rows[first], ways
