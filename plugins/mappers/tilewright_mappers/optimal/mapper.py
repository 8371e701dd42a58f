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
from tilewright_mappers.optimal.merged import Merged
from tilewright_mappers.optimal.search_instance import SearchInstance
from tilewright_mappers.optimal.staged_search import CompleteMappings, StagedSearch

ROUNDING_FACTOR = 1 - 1e-9
"""Factor of the cutoff; its distance from one exceeds the rounding of floating-point sums."""
MAX_CUTOFF = sys.float_info.max
"""Cutoff before any mapping is found. It is below infinity, the cost of a mapping above the cycle limit."""
RANDOM_STARTS = 1024
"""Random mappings drawn before the staged search."""
DESCENT_WIDTH = 24
"""Mappings per round of the descent whose neighbours are evaluated."""
WARMUP_WIDTHS = 256, 4096, 32768
"""Widths of the first passes, in states per stage."""
RAGGED_WINDOW_WIDTH = 16384
"""Default width for ragged windows. Their costs are mostly undercounted, so a wider pass rarely proves more."""
WARMUP_TIME_FRACTION = 0.5
"""Fraction of the time limit for the narrow passes, if warm-start mappers are available."""
NEAR_OPTIMAL = 0.97
"""Fraction of the best cost that must be proved to skip the warm-start mappers before the widest pass."""
WORTH_WIDENING = 0.8
"""Fraction of the best cost that must be proved to run the widest of the narrow passes."""
NEARLY_PROVED = 0.995
"""Fraction of the best cost from which on a truncated pass is the last one."""
AIMS = 1.0, 0.9951, 0.9901
"""Fractions of the best cost that the widest pass aims to prove one after the other, if more is out of reach."""
AIM_TIME_FRACTION = 0.75
"""Fraction of the time limit for all aims but the last one."""
DEFAULT_WIDTH = 300_000
"""Default width of the last pass."""
EVALUATION_BATCH = 4096
"""Complete mappings evaluated per batch."""
GAP_BY = "gap_by_"
"""Prefix of the figure that names the cause of a gap; `gap_reasons` of the plugin has a sentence for each."""
REORDERING_BATCH = 16384
"""Mappings evaluated per batch when all loop orders of each tiling are evaluated."""


@dataclass(frozen=True)
class Optimal:
    """Mapper that runs the staged search with growing width: first for mappings, then for a proof."""

    options: OptimalOptions

    def search(self, task: Task, run: Run) -> Proposals:
        """Search the task's map space.

        Raises:
            NotConformableError: the cost model offers no relaxation, or the skeleton is not supported.
        """
        relaxation = None if run.relaxable is None else run.relaxable.relaxation(task.space.skeleton, task.space.keeps)
        if relaxation is None:
            message = "the cost model offers no relaxation, which proofs need; use --mapper quickflow"
            raise NotConformableError("mapper optimal", (Reason(code="relaxation", where="", message=message),))
        merged = Merged.of(task.space, relaxation)
        if merged is not None:
            task, run.bounder = replace(task, space=merged.space), None  # the bounds are those of the whole space
        instance = SearchInstance(task.space, relaxation, task.objective, task.most_cycles)
        if instance.outer_traffic.bytes > self.options.memory << 19:  # bounds are lower without the tables
            instance.outer_traffic.tables.clear()
        # compiles the kernels; a width of 1 below every cost finds nothing
        StagedSearch(instance, -math.inf, 1, lambda: False).run()
        proposals = _search(instance, task, run, self.options)
        return proposals if merged is None else merged.proposals(proposals)


def _search(instance: SearchInstance, task: Task, run: Run, options: OptimalOptions) -> Proposals:
    """Search with growing width until the bound reaches the best cost, or the widest pass has run."""
    best, bound, truncation_bound = run.known, -math.inf, -math.inf
    enough, settled = (ROUNDING_FACTOR / (1 + gap) for gap in (options.gap, max(options.gap, options.narrow_gap)))
    is_narrow, before = settled < enough, -math.inf  # `before`: the bound of the pass before
    # The order of evaluations does not depend on the budget, so a larger budget continues the
    # search of a smaller one.
    drawn = task.space.sample(run.rng, RANDOM_STARTS)
    best = yield from _descend(drawn.take(drawn.fits()), best, task, run)
    widest = options.width or (
        RAGGED_WINDOW_WIDTH if instance.problem.ragged and instance.undercounts else DEFAULT_WIDTH
    )
    # narrow passes find mappings; their incumbent makes the cutoff of the last passes low
    widths = sorted({min(width, widest) for width in (*WARMUP_WIDTHS, widest)})
    for width, relaxed in [*((width, False) for width in widths), (widest, True)]:
        good_start = best == run.start < math.inf  # makes the cutoff low without narrow passes and warm-start mappers
        if WARMUP_WIDTHS[0] < width < widest and good_start:
            continue
        if width == WARMUP_WIDTHS[-1] < widest and not is_narrow and bound < best * WORTH_WIDENING:
            continue
        if relaxed:  # more dominance leaves fewer states, so it may prove more of what was truncated
            if truncation_bound >= best * NEARLY_PROVED or not instance.may_relax:
                break
            instance = instance.with_relaxed_dominance()
        if width == widest and is_narrow and run.starters and bound < best * enough:  # the first one is quick
            best = min(best, (yield from started(task, run)))
        while width == widest and run.starters and bound < best * min(settled, NEAR_OPTIMAL) and not good_start:
            best = min(best, (yield from started(task, run)))
        if width == widest and (bound >= best * settled or (is_narrow and -math.inf < bound <= before)):
            _explain_gap(run, best, bound, "narrow")
            break
        over = partial(_is_over, run, WARMUP_TIME_FRACTION if width < widest and run.starters else 1.0)
        cutoff = best * enough if math.isfinite(best) else MAX_CUTOFF
        pruned = best / (1 + options.gap)  # no pruned mapping costs less
        known = bound if relaxed else -math.inf
        aimed = width == widest and math.isfinite(best) and not instance.problem.ragged
        aims = sorted({min(cutoff, best * aim) for aim in AIMS}, reverse=True) if aimed else []
        soon = partial(_is_over, run, AIM_TIME_FRACTION)
        staged = StagedSearch(instance, cutoff, width, over, options.memory << 20, known, aims, soon)
        complete = staged.run()
        truncation_bound = staged.truncation_bound
        blocks = slice(None, None if instance.innermost_order_matters else -1)
        best, unresolved, why = yield from _evaluate(complete, truncation_bound, best, blocks, task, run, options)
        if width < widest:
            best = yield from _descend(complete.candidates.take(slice(0, DESCENT_WIDTH)), best, task, run)
        before, bound = bound, min(best, pruned, unresolved, truncation_bound)
        if truncation_bound <= unresolved:
            why = _limit(run) or ("memory" if staged.short_of_memory else "width")
        if math.isfinite(bound) and math.isfinite(best):
            run.prove(bound * ROUNDING_FACTOR if bound < best else best * ROUNDING_FACTOR)
            _explain_gap(run, best, bound, "request" if bound >= best * enough else why)
        run.figures.update(
            states=float(staged.counts[0]),
            pruned_by_bound=float(staged.counts[1]),
            pruned_by_dominance=float(staged.counts[2]),
            widest=float(staged.widest),
            memory_mib=max(staged.peak_bytes / 2**20, run.figures.get("memory_mib", 0.0)),
        )
        run.figures.pop("memory_limit_mib", None)
        if staged.short_of_memory and bound < best * ROUNDING_FACTOR:
            run.figures["memory_limit_mib"] = float(options.memory)
        if bound >= best * enough:
            break
        if run.exhausted:
            _explain_gap(run, best, bound, _limit(run) or why)
            break
        if truncation_bound >= best * ROUNDING_FACTOR:  # a wider pass would prove the same bound
            if not (complete.may_dominate & (complete.bounds < best * ROUNDING_FACTOR)).any():
                break
            # a dominated mapping may have cycles that are rounded less (Lemma 4)
            instance = instance.with_rounding_margin(best)
    # warm-start mappers run if a gap is left, so the result is never worse than theirs
    while run.starters and bound < best * settled and not run.exhausted:
        best = min(best, (yield from started(task, run)))


def _explain_gap(run: Run, best: float, bound: float, why: str) -> None:
    """Record the gap under the name of its cause.

    If an earlier pass has proved more, its cause stays, unless a limit of the run ended this one.
    """
    if not math.isfinite(best):  # without a mapping there is no gap
        return
    proved = max(bound, run.lower_bound or 0.0)
    causes = [name for name in run.figures if name.startswith(GAP_BY)]
    limited = why in ("time", "evaluations")
    if proved > bound and proved < best * ROUNDING_FACTOR**2 and causes and not limited:
        return
    for name in causes:
        del run.figures[name]
    if proved < best * ROUNDING_FACTOR**2:
        run.figures[GAP_BY + why] = (best - proved) / best


def _limit(run: Run) -> str | None:
    """Return the limit of the run that is reached, if any."""
    if run.remaining_seconds <= 0:
        return "time"
    return "evaluations" if run.exhausted else None


def _is_over(run: Run, fraction: float) -> bool:
    """Return whether a fraction of the time limit has passed, or the evaluations are used up."""
    seconds = run.budget.seconds
    return run.exhausted or (seconds is not None and run.elapsed_seconds >= fraction * seconds)


def _descend(rows: Candidates, best: float, task: Task, run: Run) -> Generator[Candidates, Costs, float]:
    """Return the lowest cost found by descent from some mappings.

    Each round moves single prime factors, or reorders one block of loops, until no neighbour is better.
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
        if not values.min(initial=math.inf) < lowest * ROUNDING_FACTOR:
            break
    return best


def _followed(rows: Candidates, values: Floats) -> Ints:
    """Return rows with the lowest cost, and rows with the lowest cost per used sub-cluster.

    A cheap mapping that uses few sub-clusters may have no better neighbour.
    """
    used = rows.trips[:, rows.space.spatial_slots].prod(axis=(1, 2))
    best = [np.argsort(figure, kind="stable")[: DESCENT_WIDTH // 2] for figure in (values, values / used)]
    indices = np.unique(np.concatenate(best))
    return indices[np.isfinite(values[indices])].astype(np.int64)


def _reordered(rows: Candidates, orders: Positions) -> Iterator[Candidates]:
    """Yield all rows with each of the orders in one block of temporal loops."""
    n = len(rows)
    for block, slot in enumerate(rows.space.temporal_slots):
        lawful = rows.space.lawful_block(orders, slot)
        changed = rows.take(np.tile(np.arange(n), len(lawful)))
        order = changed.orders.copy()
        order[:, block] = np.repeat(lawful, n, axis=0)
        yield replace(changed, order=order)


def _evaluate(
    complete: CompleteMappings,
    truncation_bound: float,
    best: float,
    blocks: slice,
    task: Task,
    run: Run,
    options: OptimalOptions,
) -> Generator[Candidates, Costs, tuple[float, float, str]]:
    """Evaluate complete mappings in the order of their bounds (Lemmas 13 and 15).

    Undercounted mappings are evaluated in all loop orders of some blocks, up to `options.orders` of each. The cost
    of a mapping also bounds the mappings that it may have dominated (Lemma 4).

    Returns:
        The best cost, the lowest bound of unresolved mappings, and why these are unresolved.
    """
    lowest = np.full(len(complete.bounds), np.inf)  # lowest cost of each row, once it is known
    for start in range(0, len(complete.bounds), EVALUATION_BATCH):
        if complete.bounds[start] >= best * ROUNDING_FACTOR:
            break
        part = slice(start, start + EVALUATION_BATCH)
        lowest[part] = yield from objectives(complete.candidates.take(part), task, run)
        best = min(best, float(lowest[part].min(initial=math.inf)))
    countable = complete.undercounted & ~complete.relaxed
    undercounted = np.flatnonzero(countable & (complete.bounds < best * ROUNDING_FACTOR))
    rows, order_counts, group = _distinct(complete, undercounted, blocks, task)
    resolvable = (order_counts <= options.orders) & (complete.bounds[rows] < truncation_bound)
    unresolved = {
        "orders": float(complete.bounds[rows[~resolvable]].min(initial=math.inf)),
        "undercounting": float(complete.bounds[complete.relaxed].min(initial=math.inf)),
    }
    lowest_of_group = np.where(order_counts == 1, lowest[rows], np.inf)
    left = np.flatnonzero(resolvable & (order_counts > 1))  # a single order was evaluated above
    while len(left) and complete.bounds[rows[left[0]]] < best * ROUNDING_FACTOR:
        if run.exhausted:
            unresolved[_limit(run) or "evaluations"] = float(complete.bounds[rows[left[0]]])
            break
        counts = order_counts[left].astype(np.int64)
        count = max(1, int(np.searchsorted(np.cumsum(counts), REORDERING_BATCH)))
        now, counts, left = left[:count], counts[:count], left[count:]
        reordered = task.space.reordered(complete.candidates.take(rows[now]), int(counts.max()), blocks)
        values = yield from objectives(reordered, task, run)
        best = min(best, float(values.min(initial=math.inf)))
        first = np.cumsum(counts) - counts
        invalid = np.isinf(np.maximum.reduceat(values, first))  # its dominated mappings may be valid
        lowest_of_group[now] = np.where(invalid, np.inf, np.minimum.reduceat(values, first))
    lowest[undercounted] = lowest_of_group[group]
    dominating = complete.may_dominate & (complete.bounds < best * ROUNDING_FACTOR)
    known = np.where(np.isfinite(lowest), lowest, 0.0) * complete.dominated_cost_factor
    bounds = np.maximum(known, complete.bounds)[dominating]
    unresolved["rounding"] = float(bounds.min(initial=math.inf))
    why = min(unresolved, key=lambda cause: unresolved[cause])
    return best, unresolved[why], why


def _distinct(complete: CompleteMappings, rows: Ints, blocks: slice, task: Task) -> tuple[Ints, Ints, Ints]:
    """Return the rows that differ in more than loop order, the orders of their blocks, and the group of every row."""
    some = complete.candidates.take(rows)
    tiles = [array.reshape(len(rows), math.prod(array.shape[1:])) for array in (some.trips, some.keeps)]
    groups: dict[bytes, int] = {}
    first: list[int] = []
    group = np.zeros(len(rows), np.int64)
    for i, row in enumerate(np.concatenate(tiles, axis=1)):
        group[i] = groups.setdefault(row.tobytes(), len(groups))
        if group[i] == len(first):
            first.append(i)
    order_counts: Ints = np.ones(len(first), np.object_)
    for s in task.space.temporal_slots[blocks]:
        order_counts *= count_orders(some.trips[first, s] > 1, task.space.slots[s].order)
    return rows[first], order_counts, group
