"""Overlapping tiles along a window: how many differ, and which words neighbours forward (Lemma 14).

A window p + r, unrolled over 3 sub-clusters along r. The first temporal loop runs over p:

    step p    r = 0    r = 1    r = 2
    0         0        1        2
    1         1        2        3        sub-clusters 0 and 1 get the word that their neighbour had
    2         2        3        4

The parent sends 3 words at the first step and 1 at each further one, 5 instead of 9. Neighbours forward the other 4.
"""

from __future__ import annotations

from tilewright.compiled import integer, kernel_call, kernel_part
from tilewright_mappers.optimal.kernel.state import (
    COMMITTED,
    DEFERRED,
    DEMAND,
    FIRST_TENSOR,
    FORWARDING_OPEN,
    LOOP_MASK,
    MIN_DEFERRED,
    MIN_DEMAND,
    PER_TENSOR,
    extent,
    forward_nothing,
    open_loops_of,
    status_of,
    subclusters_along,
    tile_count,
    total_tile_count,
)
from tilewright_mappers.optimal.kernel.structures import (
    NEVER,
    NON_STATIONARY,
    OPTIONAL,
    FanoutLevel,
    SearchContext,
    StateRows,
)
from tilewright_mappers.optimal.kernel.subclusters import (
    can_forward,
    count_deliveries,
    gcd,
    mark_offsets,
    max_offset,
    place_subclusters,
    subcluster_side,
    subcluster_words,
)

TENSOR, COUNT, WIDTH, GROUPS, LARGEST, NEIGHBOURS, UNSERVED, PER_DIMENSION = map(integer, range(8))
"""Places in `SearchScratch.placed`; -1 there means unknown.

They are: tensor, sub-clusters, sub-clusters per row, deliveries, most sub-clusters per delivery. Then:
whether outer loops may bring tiles of neighbours; deliveries to sub-clusters without neighbours.
Two numbers per dimension follow, for a loop that shifts the window: deliveries, and sub-clusters
served by neighbours.
"""
MIN_UNDECIDED = 1e-3
"""Share of a demand from which on it matters which outer loops bring tiles that neighbours had."""
NOTHING, FORWARDED, UNDECIDED = map(integer, range(3))
"""Results of `count_forwarding`."""


@kernel_call
def forget_placed(context: SearchContext) -> None:
    """Forget the sub-clusters of the last expanded state."""
    context.scratch.placed[TENSOR] = -1


@kernel_call
def distinct_tiles(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int, d: int) -> float:
    """Return the number of different tiles of multicasting sub-clusters along the window of d."""
    problem, scratch = context.problem, context.scratch
    count = 0
    for at in range(mark_offsets(context, level, states, i, t, problem.window_index[t, d], True) + 1):
        count += scratch.offsets[at]
    return float(count)


@kernel_call
def count_forwarding(
    context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int, d: int, n: int
) -> int:
    """Count forwarded words if the first temporal loop, over d with n trips, shifts a window.

    After the first step of a sweep, the parent serves only sub-clusters without a neighbour that
    had the tile. If tiles overlap, it serves all. Where an outer loop undoes the sweep, the tiles
    of a first step may be forwarded, too; they count once. If tiles do not overlap, outer loops decide on first steps
    (`count_later`), and until then only the minima have them once. The tensor must be kept directly inside, or be
    non-stationary and not forwarded at other steps.

    Returns:
        `NOTHING`, `FORWARDED` if the state is now undercounted, or `UNDECIDED` if outer loops decide, too.
    """
    problem, layout, scratch = context.problem, context.layout, context.scratch
    numbers, placed = states.numbers, scratch.placed
    at, r, kept = FIRST_TENSOR + PER_TENSOR * t, problem.window_index[t, d], level.inner_storage[t]
    shift = extent(context, states, i, d) * problem.coefficient[t, d]
    overlaps = subcluster_side(context, level, states, i, t, r) > shift
    later = _forwards_later(context, level, states, i, t, d, n, overlaps)
    usual = not overlaps and shift <= max_offset(context, level, states, i, t, r)
    if not usual and not later:
        return NOTHING
    if kept != OPTIONAL and placed[TENSOR] != t:
        _place_once(context, level, states, i, t)
    count, width, groups = placed[COUNT], placed[WIDTH], placed[GROUPS]
    if kept == OPTIONAL or count == 0:
        assume_forwarding(context, states, i, t)
        return FORWARDED
    if later and placed[NEIGHBOURS] < 0:
        placed[NEIGHBOURS] = can_forward(context, states, i, t, count, width)
    later = later and placed[NEIGHBOURS] > 0
    deliveries, forwarded = groups, 0
    if usual or overlaps:
        about = PER_DIMENSION + 2 * d
        if placed[about] < 0:
            shifted = count_deliveries(count, width, shift * scratch.weight[d], False, scratch)
            placed[about], placed[about + 1] = shifted[0], shifted[1]
        if placed[about] >= groups:  # forwarding by the shift of the first loop saves no delivery
            usual, later = False, later and not overlaps
        elif usual:
            deliveries, forwarded = placed[about], placed[about + 1]
    if not usual and not later:
        return NOTHING
    if kept == NEVER:  # not kept directly inside, so only the deliveries of the parent change
        # after a forwarded first step deliveries may be smaller, so each word counts once
        first, others = float(groups), (0.0 if later and overlaps else n - 1.0)
        if later:
            if placed[UNSERVED] < 0:
                placed[UNSERVED] = count_deliveries(count, width, 0, True, scratch)[0]
            first = max(count / placed[LARGEST], float(placed[UNSERVED]))
            if deliveries * count > groups * (
                count - forwarded
            ):  # where an outer step keeps the tile, nothing is forwarded
                deliveries, forwarded = groups, 0
        part = (first + others * deliveries) / (count + others * (count - forwarded)) * count / groups
        if abs(part - 1.0) < 1e-12:
            return NOTHING
        rounded = 0.5 / n * total_tile_count(context, states, i)  # the model rounds the words down
        least = max(0.0, numbers[i, at + DEMAND] * part - rounded)
        undecided = not usual and not overlaps and status_of(states.integers, i, t) == NON_STATIONARY
        numbers[i, at + MIN_DEMAND] = least
        numbers[i, at + DEMAND] = max(least, numbers[i, at + DEMAND] - rounded) if undecided else least
        return UNDECIDED if undecided else FORWARDED
    first = numbers[i, at + MIN_DEMAND] / numbers[i, at + DEMAND] if later and numbers[i, at + DEMAND] > 0.0 else 1.0
    demand, others = numbers[i, at + DEMAND], (n - 1.0) * (first if overlaps else deliveries / groups)
    undecided = later and not overlaps
    numbers[i, at + MIN_DEMAND] = demand * (first + others) / n
    numbers[i, at + DEMAND] = demand * (1.0 + others) / n if undecided else numbers[i, at + MIN_DEMAND]
    # with several parents the edge sub-clusters of one have neighbours in the next; the model
    # rounds the words
    tile = subcluster_words(context, level, states, i, t)
    sure = 1.0 / tile + (0.0 if level.outermost else (n - 1.0) * (1.0 if overlaps else forwarded / count))
    spared = min(1.0, (sure + (1.0 if later and not level.outermost else 0.0)) / n)
    fill_pj = level.fill_pj[t] * tile * count * total_tile_count(context, states, i)
    numbers[i, at + MIN_DEFERRED] = max(0.0, numbers[i, at + DEFERRED] - spared * fill_pj)
    sure = min(1.0, sure / n) if undecided else spared
    numbers[i, at + DEFERRED] = max(0.0, numbers[i, at + DEFERRED] - sure * fill_pj)
    for j in range(layout.deferred_words[t], layout.deferred_words[t + 1]):
        numbers[i, j] *= 1.0 - spared
    return UNDECIDED if undecided else FORWARDED


@kernel_call
def count_later(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, d: int, n: int) -> int:
    """Count forwarded words of a loop over d with n trips, whose steps undo those of the placed loops (Lemma 14).

    Its steps begin all sweeps of the first loop but one in n. If a neighbour had these tiles, each word counts once.

    Returns:
        Bits of the tensors on which more outer loops decide.
    """
    problem, layout, scratch, numbers = context.problem, context.layout, context.scratch, states.numbers
    integers, placed, result = states.integers, context.scratch.placed, 0
    for t in range(len(problem.output)):
        if not integers[i, layout.flags] >> (FORWARDING_OPEN + t) & 1:
            continue
        at, about = FIRST_TENSOR + PER_TENSOR * t, PER_DIMENSION + 2 * d
        if placed[TENSOR] != t:
            _place_once(context, level, states, i, t)
        if placed[about] < 0:
            shift = 0
            for o in range(len(problem.sizes)):
                step = integers[i, layout.fanout_tile + o] * max(1, problem.coefficient[t, o]) * scratch.weight[o]
                shift += (step if o == d else 0) - (step if integers[i, LOOP_MASK] >> o & 1 else 0)
            placed[about] = count_deliveries(placed[COUNT], placed[WIDTH], shift, False, scratch)[0]
        apart, forwards, part = _moves_apart(context, states, i, t, d, n), placed[about] < placed[GROUPS], 1.0 - 1.0 / n
        settle_forwarding(
            context, states, i, t, 1.0 if apart else 0.0 if forwards else part, part * (forwards and not apart)
        )
        undecided = numbers[i, at + DEMAND] - numbers[i, at + MIN_DEMAND]
        if undecided > MIN_UNDECIDED * numbers[i, at + DEMAND]:
            result |= 1 << t
        else:
            settle_forwarding(context, states, i, t, 0.0, 1.0)
    return result


@kernel_call
def settle_forwarding(context: SearchContext, states: StateRows, i: int, t: int, served: float, spared: float) -> None:
    """Settle a part of what is undecided of a tensor: its parent delivers some of the words, neighbours forward others.

    Args:
        served: fraction of the words that the parent delivers.
        spared: fraction that neighbours forward, so that they count once.
    """
    numbers, at = states.numbers, FIRST_TENSOR + PER_TENSOR * t
    undecided = numbers[i, at + DEMAND] - numbers[i, at + MIN_DEMAND]
    numbers[i, at + MIN_DEMAND] += served * undecided
    numbers[i, at + DEMAND] -= spared * undecided
    numbers[i, COMMITTED] += served * numbers[i, at + DEFERRED]
    numbers[i, at + DEFERRED] *= 1.0 - served - spared


@kernel_part
def _moves_apart(context: SearchContext, states: StateRows, i: int, t: int, d: int, n: int) -> bool:
    """Return whether no step of an outer loop cancels the step of a loop along a coordinate where sub-clusters lie apart."""
    problem, dims, r = context.problem, len(context.problem.sizes), context.problem.window_index[t, d]
    for o in range(dims):
        if o == d or (r >= 0 and problem.window_index[t, o] == r):
            if states.integers[i, LOOP_MASK] >> o & 1 or subclusters_along(context, states, i, o, dims) > 1.0:
                return False
    count, further = open_loops_of(context, states, i, t, r, d, n) if r >= 0 else (0, 0)
    apart = count == 0 or (count == 1 and further > extent(context, states, i, d) * problem.coefficient[t, d])
    return bool(problem.relevant[t, d] and apart)


@kernel_call
def _place_once(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int) -> None:
    """Place the sub-clusters of the expanded state for all of its successors: no first loop has changed them yet."""
    placed = context.scratch.placed
    placed[:] = -1
    placed[TENSOR] = t
    placed[COUNT], placed[WIDTH] = place_subclusters(context, level, states, i, t)
    if placed[COUNT] > 0:
        placed[GROUPS], _, placed[LARGEST] = count_deliveries(placed[COUNT], placed[WIDTH], 0, False, context.scratch)


@kernel_part
def assume_forwarding(context: SearchContext, states: StateRows, i: int, t: int) -> None:
    """Set energy and demand of a tensor to their lower bounds: neighbours may forward words."""
    layout = context.layout
    numbers = states.numbers
    at = FIRST_TENSOR + PER_TENSOR * t
    numbers[i, at + DEFERRED], numbers[i, at + DEMAND] = numbers[i, at + MIN_DEFERRED], numbers[i, at + MIN_DEMAND]
    for j in range(layout.deferred_words[t], layout.deferred_words[t + 1]):
        numbers[i, j] = 0.0


@kernel_call
def _forwards_later(
    context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int, d: int, n: int, overlaps: bool
) -> bool:
    """Return whether neighbours may forward words at a step of an outer loop, after the first one.

    Such a step moves tiles by its own shift, less one sweep of every inner loop. So does a step of
    an irrelevant loop, with a shift of zero. Relevant loops move tiles out of reach. So do loops of
    another window, unless two of its dimensions are unrolled or left.
    """
    problem = context.problem
    r, e = problem.window_index[t, d], extent(context, states, i, d)
    shift, reach = e * problem.coefficient[t, d], max_offset(context, level, states, i, t, r)
    again, others, across, stays = e * n < problem.sizes[d], False, False, False
    for o in range(len(problem.sizes)):
        side = extent(context, states, i, o)
        stays |= not problem.relevant[t, o] and side < problem.sizes[o]
        if o == d or problem.window_index[t, o] < 0 or side == problem.sizes[o]:
            continue
        if problem.window_index[t, o] == r:
            others = True
            continue
        far = max_offset(context, level, states, i, t, problem.window_index[t, o])
        across |= side * problem.coefficient[t, o] <= far
        for other in range(o):
            same = problem.window_index[t, other] == problem.window_index[t, o]
            across |= same and extent(context, states, i, other) < problem.sizes[other]
    if overlaps:  # by the same distance as the first loop (Lemma 9)
        count, further = open_loops_of(context, states, i, t, r, d, n)
        if shift > reach:
            return False
        return count > 1 or (count == 1 and (further <= shift or further == 2 * shift))
    if stays and shift <= reach:
        return True
    if (others and reach > 0) or (again and shift * (n - 1) <= reach):
        return True
    return bool(across and (others or shift <= reach))


@kernel_call
def may_forward(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int) -> bool:
    """Return whether some temporal loop may bring a tile that a neighbour in this fanout has."""
    problem = context.problem
    dims = len(problem.sizes)
    for d in range(dims):
        e = extent(context, states, i, d)
        if problem.window_index[t, d] >= 0 and e < problem.sizes[d]:
            reach, others = max_offset(context, level, states, i, t, problem.window_index[t, d]), False
            for o in range(dims):
                if problem.window_index[t, o] == problem.window_index[t, d]:
                    others |= o != d and extent(context, states, i, o) < problem.sizes[o]
            # steps of two loops may almost cancel
            if e * problem.coefficient[t, d] <= reach or (others and reach > 0):
                return True
    return False


@kernel_call
def _tiles_may_match(context: SearchContext, level: FanoutLevel, states: StateRows, i: int, t: int) -> bool:
    """Return whether outer loops may give a sub-cluster the tile of another one, neighbour or not."""
    problem, scratch = context.problem, context.scratch
    dims = len(problem.sizes)
    for d in range(dims):
        r, step, first = problem.window_index[t, d], 0, problem.window_index[t, d] >= 0
        for o in range(dims):
            if first and problem.window_index[t, o] == r:
                first = o >= d
                if tile_count(context, states, i, o) > 1:
                    step = gcd(step, extent(context, states, i, o) * problem.coefficient[t, o])
        if first and step > 0:
            reach = mark_offsets(context, level, states, i, t, r, False)
            for far in range(step, reach + 1, step):
                for at in range(reach + 1 - far):
                    if scratch.offsets[at] and scratch.offsets[at + far]:
                        return True
    return False


@kernel_call
def find_forwarding(context: SearchContext, level: FanoutLevel, states: StateRows, i: int) -> None:
    """Close forwarding where no order of the other unrollings allows it. All windows are unrolled."""
    problem, layout, scratch = context.problem, context.layout, context.scratch
    numbers, integers = states.numbers, states.integers
    for t in range(len(problem.output)):
        if not integers[i, layout.flags] >> (FORWARDING_OPEN + t) & 1:
            continue
        at, open_still = FIRST_TENSOR + PER_TENSOR * t, may_forward(context, level, states, i, t)
        if open_still and level.inner_storage[t] != OPTIONAL:
            open_still = _tiles_may_match(context, level, states, i, t)
        if open_still and level.inner_storage[t] == NEVER:  # not kept directly inside: the deliveries may change
            count, width = place_subclusters(context, level, states, i, t)
            if count > 0:
                groups, _, largest = count_deliveries(count, width, 0, False, scratch)
                least = numbers[i, at + DEMAND] * count / (groups * largest)
                numbers[i, at + MIN_DEMAND] = max(0.0, least - 0.5 * total_tile_count(context, states, i))
        if not open_still:
            integers[i, layout.flags] &= ~(1 << (FORWARDING_OPEN + t))
            forward_nothing(numbers, i, t)


@kernel_call
def resolve_forwarding(context: SearchContext, level: FanoutLevel, states: StateRows, i: int) -> None:
    """Close forwarding where no neighbours have matching tiles. The whole fanout is unrolled."""
    problem, layout, scratch = context.problem, context.layout, context.scratch
    numbers, integers = states.numbers, states.integers
    for t in range(len(problem.output)):
        if not integers[i, layout.flags] >> (FORWARDING_OPEN + t) & 1 or level.inner_storage[t] == OPTIONAL:
            continue
        at = FIRST_TENSOR + PER_TENSOR * t
        count, width = place_subclusters(context, level, states, i, t)
        if count == 0:
            continue
        groups, _, largest = count_deliveries(count, width, 0, False, scratch)
        # where each sub-cluster has a delivery of its own, the shares of the deliveries stay equal
        alone = level.inner_storage[t] == NEVER and largest == 1
        if alone or not can_forward(context, states, i, t, count, width):
            integers[i, layout.flags] &= ~(1 << (FORWARDING_OPEN + t))
            forward_nothing(numbers, i, t)
        else:  # the parent serves sub-clusters that no neighbour can serve
            part = count_deliveries(count, width, 0, True, scratch)[0] / groups
            least = numbers[i, at + MIN_DEMAND]
            if level.inner_storage[t] == NEVER:
                part, least = max(part, count / (groups * largest)), 0.0
            rounded = 0.5 * total_tile_count(context, states, i)
            numbers[i, at + MIN_DEMAND] = max(least, numbers[i, at + DEMAND] * part - rounded)
