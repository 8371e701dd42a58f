"""`optimal`: the best mapping of a map space, proved."""

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
"""Less than one by more than rounding adds up to."""
MOST = sys.float_info.max
"""A bound where nothing is known: less than infinity, which is what mappings cost that take too many cycles."""
DRAWN = 1024
"""Mappings that are drawn to begin with."""
FOLLOWED = 24
"""Mappings whose neighbours are tried."""
NARROW = 256, 4096, 32768
"""States that the first walks follow."""
IN_PART = 16384
"""States that the last one follows of ragged windows, of which little is counted, so that a wide walk takes long, for little more."""
SHARE = 0.5
"""Of the time there is, what the first walks may take before searches that begin well are asked."""
CLOSE = 0.97
"""Of the best, what has to be proved for these searches to wait: they would find little, and take longer than most walks."""
FAR = 0.8
"""Of the best, what has to be proved for the widest of the narrow walks to be worth its time."""
WIDE = 275_000
"""States that the last one follows."""
FINALS = 4096
"""Mappings evaluated at once, of those that are left."""
REORDERED = 16384
"""The same, where each has all orders of its loops."""


@dataclass(frozen=True)
class Optimal:
    """Walks over tile shapes from the inside out, first narrowly for a good mapping, then widely for the proof."""

    options: OptimalOptions

    def search(self, task: Task, run: Run) -> Proposals:
        """Raises NotConformableError: the cost model offers no relaxation, or the skeleton is no standard one."""
        relaxation = None if run.relaxable is None else run.relaxable.relaxation(task.space.skeleton)
        if relaxation is None:
            message = "the cost model offers no relaxation, so that nothing can be proved; use quickflow"
            raise NotConformableError("mapper optimal", (Reason(code="relaxation", where="", message=message),))
        setup = Setup(task.space, relaxation, task.objective, task.most_cycles)
        Walk(setup, -math.inf, 1, lambda: False).run()  # compiles, and finds nothing
        return _search(setup, task, run, self.options)


def _search(setup: Setup, task: Task, run: Run, options: OptimalOptions) -> Proposals:
    best, bound = math.inf, -math.inf
    # Nothing below depends on how many evaluations are allowed: a larger budget continues the search of a smaller one.
    drawn = task.space.sample(run.rng, DRAWN)
    best = yield from _descend(drawn.take(drawn.fits()), best, task, run)
    most = options.width or (IN_PART if setup.shape.ragged and setup.counts_in_part else WIDE)
    # the first walks are narrow, and find mappings to hold bounds against, if no proof
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
        if walk.lost >= best * SURE:  # a wider walk would end with the same
            if not (finals.displaces & (finals.bounds < best * SURE)).any():
                break
            # one that was left out may have its cycles rounded otherwise
            setup = setup.against_rounding(best)
    # where a gap is left, none of them ends below the best
    while run.starters and bound < best * SURE and not run.exhausted:
        best = min(best, (yield from started(task, run)))


def _is_over(run: Run, share: float) -> bool:
    """Whether a share of the time has passed, or nothing more may be evaluated."""
    seconds = run.budget.seconds
    return run.exhausted or (seconds is not None and run.elapsed_seconds >= share * seconds)


def _descend(rows: Candidates, best: float, task: Task, run: Run) -> Generator[Candidates, Costs, float]:
    """The best of these, and of what comes of them when single prime factors have moved, or one block of loops has another
    order, as long as that helps."""
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
    """The best, and the best for the sub-clusters that they use: who uses few may be good, and has nowhere to go."""
    used = rows.trips[:, rows.space.spatial_slots].prod(axis=(1, 2))
    best = [np.argsort(figure, kind="stable")[: FOLLOWED // 2] for figure in (values, values / used)]
    found = np.unique(np.concatenate(best))
    return found[np.isfinite(values[found])].astype(np.int64)


def _reordered(rows: Candidates, orders: Positions) -> Iterator[Candidates]:
    """Each with each of the orders in one block."""
    for block in range(len(rows.space.temporal_slots)):
        for each in orders:
            changed = rows.orders.copy()
            changed[:, block] = each
            yield replace(rows, order=rows.space.lawful(changed))


def _evaluate(
    finals: Finals, lost: float, best: float, task: Task, run: Run, options: OptimalOptions
) -> Generator[Candidates, Costs, tuple[float, float]]:
    """(the best, the least bound of what could not be settled), evaluating in the order of bounds until one passes the best, or
    what the walk has lost."""
    for start in range(0, len(finals.bounds), FINALS):
        if finals.bounds[start] >= best * SURE:
            break
        part = slice(start, start + FINALS)
        values = yield from objectives(finals.candidates.take(part), task, run)
        best = min(best, float(values.min(initial=math.inf)))
    # those that are counted exactly stand for others that cost no less than their bound; cycles that are rounded up lie above it
    stand = finals.displaces & (finals.bounds < best * SURE)
    left = float(finals.bounds[stand].min(initial=math.inf))
    rest, ways = _distinct(finals, np.flatnonzero(finals.inexact & (finals.bounds < best * SURE)), task)
    settled = (ways <= options.orders) & (finals.bounds[rest] < lost)
    left = min(left, float(finals.bounds[rest[~settled]].min(initial=math.inf)))
    settled &= ways > 1  # others have been evaluated
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
    """Of some mappings those that are no others in another order; how many orders the loops of each have."""
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
