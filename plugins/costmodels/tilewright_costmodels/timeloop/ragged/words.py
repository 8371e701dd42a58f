"""Parts of the kernel for tiles that do not divide: the words that move, counted from the true pieces.

Every dimension is cut on its own, so a count of steps, of instances or of words is a product over dimensions, or over the few
that share a coordinate, of what `pieces.walk` finds. Of a tensor that moves between a memory and the nearest one inside that
keeps it, `c` being the innermost loop in time that moves its tile,

  words = all tiles, the loops in time down to c free
          - over the loops p outside of c that do not move the tile: the tiles when p advances and no loop inside of p
            that moves the tile turns, for they stay where they are
          - what tiles share with the one before, where that is credited (see `flow`).

Loops in space are free where all instances are counted, and at zero where the first one is, which has the most to do. They
are at zero, too, where sub-clusters share what they are sent: whatever one of them is sent, the first is sent as well.

An operand stays in an idle sub-cluster; an output leaves it when the tile of the memory outside moves on. So it stays only if
no loop outside of that memory that moves it turns, be there pieces for the sub-cluster or not.
"""

from __future__ import annotations

from tilewright.compiled import Index, Records, integer, kernel_call, kernel_part, truth
from tilewright_costmodels.timeloop.flow import is_unicast
from tilewright_costmodels.timeloop.nest import Job
from tilewright_costmodels.timeloop.ragged.boxes import shared, words_of_boxes
from tilewright_costmodels.timeloop.ragged.cuts import ADVANCE, BEFORE, NOWHERE, PLAIN, QUIET, Pieces
from tilewright_costmodels.timeloop.ragged.pieces import cut_all, last_free, mode_of, walk
from tilewright_costmodels.timeloop.tables import Tensors

YES, NO = truth(True), truth(False)
LONE = integer(1)
"""`Tensors.moves.group` of a dimension whose coordinate it has for itself."""


@kernel_call
def measure(job: Job, pieces: Pieces, n: int, b: int, group: int) -> float:
    """Count the instances of every level, and the words of every tensor: that leave a level inwards, each delivery once;
    that enter it; that it answers for. Of the average instance of the level, and of the first one.

    Args:
        n, b: the number of the mapping, and its lane.

    Returns:
        Steps in time.
    """
    hardware, tensors, mappings, instances = job.hardware, job.tensors, job.mappings, job.counts.instances
    levels, dims, children = Index(len(hardware.level)), len(pieces.shares), job.nest.children
    cut_all(pieces, hardware, job.scratch, b)
    iterations = steps = 1.0
    for d in range(dims):
        iterations, steps = iterations * job.rules.sizes[d], steps * pieces.cut[pieces.cuts[levels, d]].turns
    for level in range(levels):
        instances[group, level, b] = 1.0 if level == 0 else instances[group, level - 1, b]
        if level > 0 and children[level - 1, b] > 1.0:
            instances[group, level, b] = 1.0
            for d in range(dims):
                instances[group, level, b] *= pieces.cut[pieces.cuts[level, d]].lanes
    if len(mappings.unicast) > 0:
        for tensor in range(len(tensors.whole)):
            for s in range(len(hardware.slot)):
                pieces.apart[tensor, s] = is_unicast(job, n, tensor, s)
    for each in range(len(tensors.whole)):
        tensor, inner, lanes = Index(each), levels, 1.0  # compute units below an instance
        pieces.entered[tensor, 0, b] = pieces.first_entered[tensor, 0, b] = 0.0
        for number in range(levels):
            level = outer = Index(levels - 1 - number)
            lanes *= children[level, b]
            keeps = job.scratch.kept[hardware.level[level].holds, tensor, b]
            if keeps or job.detailed:
                while not job.scratch.kept[hardware.level[outer].holds, tensor, b]:
                    outer = Index(outer - 1)
                # where no bandwidth can bind, the average instance does for the first one
                even = instances[group, level, b] == 1.0
                even |= not job.detailed and lanes <= hardware.roomy[level, tensor]
                pieces.even[tensor, level] = even
                if inner == levels and lanes == 1.0:  # each iteration reads its word
                    pieces.left[tensor, level, b] = iterations / instances[group, level, b]
                    pieces.first_left[tensor, level, b] = pieces.left[tensor, level, b] if even else steps
                    if job.detailed or tensors.whole[tensor].is_output:
                        _between(job, pieces, group, b, tensor, level, inner, outer, True)
                else:
                    _between(job, pieces, group, b, tensor, level, inner, outer, False)
            if keeps:
                inner = level
    return steps


@kernel_part
def _between(
    job: Job, pieces: Pieces, group: int, b: int, tensor: int, level: int, inner: int, outer: int, known: bool
) -> None:
    """The words that move between a level and the nearest one inside that keeps the tensor.

    Args:
        outer: the nearest one that keeps it, from the level outwards.
        known: what leaves is written already; nothing enters.
    """
    tensors, loops, ends = job.tensors, pieces.loop, pieces.end
    levels, whole, moves = Index(len(ends)), tensors.whole[tensor], tensors.moves[tensor]
    instances = job.counts.instances[group, level, b]
    c = int(ends[inner - 1]) - 1  # the innermost loop that moves the tile
    while inner < levels and c >= 0 and not whole.moving >> loops[Index(c)].dimension & 1:
        c -= 1
    stays = inner < levels and c >= 0  # some tile may stay where it is, or overlap with the one before
    if stays:
        stays = moves[loops[Index(c)].dimension].together != 0 or pieces.calm[Index(c)]
    entering, windows = min(inner, levels - 1), 0
    for number in range(whole.movers if whole.groups > 2 else 0):
        d = tensors.dims[tensor, number]
        for k in range(pieces.cuts[level, d], pieces.cuts[inner, d] if moves[d].group > LONE else 0):
            windows += not pieces.cut[k].steps
    tangled = windows > 1  # sub-clusters may have equal boxes though they differ in loops that move them
    alone = whole.plain and instances == 1.0  # an only instance answers for every word
    own = whole.iterations
    answers = level == outer and (whole.is_output or job.detailed) and not (alone or whole.slides)
    keeps_from = outer if whole.is_output else inner
    if not known:
        left, entered = _moved(pieces, tensors, tensor, inner, c, stays, keeps_from, True, level)
        if tangled:
            left *= shared(pieces, tensors, tensor, level, inner, YES)
        pieces.left[tensor, level, b] = left / instances
        if inner < levels:
            pieces.entered[tensor, entering, b] = entered / job.counts.instances[group, inner, b]
    if answers and whole.plain:  # a part of the tensor, as large on average as those of the others
        parts = 1.0
        for number in range(whole.movers):
            parts *= pieces.cut[pieces.cuts[level, tensors.dims[tensor, number]]].lanes
        own = whole.iterations / parts
    elif answers:
        own, _ = _moved(pieces, tensors, tensor, level, NOWHERE, NO, keeps_from, True, levels)
        own /= instances
    first_own = pieces.first_own[tensor, level, b]
    if level == outer:  # the same of the first instance
        if not (known or pieces.even[tensor, level]):
            first_left, _ = _moved(pieces, tensors, tensor, inner, c, stays, keeps_from, False, level)
            if tangled:
                first_left *= shared(pieces, tensors, tensor, level, inner, NO)
            pieces.first_left[tensor, level, b] = first_left
        if inner < levels and not pieces.even[tensor, entering]:
            _, first_entered = _moved(pieces, tensors, tensor, inner, c, stays, keeps_from, False, levels)
            pieces.first_entered[tensor, entering, b] = first_entered
        if answers and not pieces.even[tensor, level]:
            first_own, _ = _moved(pieces, tensors, tensor, level, NOWHERE, NO, keeps_from, False, levels)
    if pieces.even[tensor, level]:
        pieces.first_left[tensor, level, b], first_own = pieces.left[tensor, level, b], own
    if inner < levels and pieces.even[tensor, entering]:
        pieces.first_entered[tensor, entering, b] = pieces.entered[tensor, entering, b]
    pieces.own[tensor, level, b], pieces.first_own[tensor, level, b] = own, first_own


@kernel_call
def _moved(
    pieces: Pieces,
    tensors: Tensors,
    tensor: int,
    stop: int,
    c: int,
    stays: bool,
    keeps_from: int,
    every: bool,
    within: int,
) -> tuple[float, float]:
    """Words of all tiles before the level `stop`, but those that need not move: each delivery once, and each receipt.

    Args:
        c: the innermost loop that moves the tile.
        stays: some may be such.
        keeps_from: the level of the memory outside.
        every: of all instances.
        within: the level from which on sub-clusters may share what they are sent. Only of all instances both are told.
    """
    words = _different(pieces, tensors, tensor, stop, 0, PLAIN, NOWHERE, False, keeps_from, every, within, NOWHERE, 0.0)
    once, each = _times(pieces, tensors, tensor, stop, c + 1, NOWHERE, every, within)
    left, entered = words * once, words * each
    if stays:
        sent, received = _staying(pieces, tensors, tensor, stop, c, keeps_from, every, within, once, each)
        left, entered = left - sent, entered - received
    return left, entered


@kernel_call
def _staying(
    pieces: Pieces,
    tensors: Tensors,
    tensor: int,
    stop: int,
    c: int,
    keeps_from: int,
    every: bool,
    within: int,
    once: float,
    each: float,
) -> tuple[float, float]:
    """Those of them that need not move.

    Args:
        once, each: how often each of the different tiles is sent and received.
    """
    whole, moves, loops = tensors.whole[tensor], tensors.moves[tensor], pieces.loop
    left, entered, passed, quiet, overlaps = 0.0, 0.0, 0, True, False
    inner = usual = 0  # the steps of all loops inside p, undone when p advances; that of c
    group = moves[loops[Index(c)].dimension].group
    near = False  # whether tiles one step of c apart may share words
    p = c + 1
    while p > 0 and (quiet or overlaps):
        p -= 1
        loop = loops[Index(p)]
        d = loop.dimension
        mode, hush, dimension, step = ADVANCE, False, NOWHERE, 0.0
        moved = int(moves[d].displacement * loop.step)
        shift, inner = moved - inner, inner + moved
        slides, moving, counts = moves[d].together != 0, whole.moving >> d & 1, True
        if p == c:
            usual, overlaps = shift, slides
            near = counts = slides and _is_near(pieces, moves, stop, d, float(loop.step))
            mode, dimension, step = BEFORE, int(d), float(loop.step)
        elif overlaps and shift == 0:
            pass
        elif overlaps and shift == usual:
            counts = near
            dimension, step = int(loops[Index(c)].dimension), float(loops[Index(c)].step)
        elif quiet and not moving:
            hush = True
        elif quiet and slides and not passed >> d & 1:
            mode, hush, dimension, step = BEFORE, True, int(d), float(loop.step)
        else:
            counts = False
        if moving:
            passed |= 1 << d
            quiet &= pieces.calm[Index(p)]
            # what moves along other coordinates is not undone by steps along those of c
            overlaps &= moves[d].group == group
        if counts:
            words = _different(
                pieces,
                tensors,
                tensor,
                stop,
                p,
                mode,
                int(d),
                hush,
                keeps_from,
                every,
                within,
                dimension,
                step,
            )
            if words < 0.0:  # some loop inside always turns, and so it does inside of all loops that are left
                quiet = False
            elif words > 0.0:
                if p != c:  # that loop moves the tile, and the other dimensions are as before
                    once, each = _times(pieces, tensors, tensor, stop, p, int(d), every, within)
                left, entered = left + words * once, entered + words * each
    return left, entered


@kernel_part
def _is_near(pieces: Pieces, moves: Records, stop: int, d: int, step: float) -> bool:
    """Whether a tile before the level `stop` may share words with itself so many steps of a dimension further."""
    move, reach = moves[d], 1.0
    for other in range(len(moves)):
        if moves[other].group == move.group:
            reach += moves[other].coefficient * (pieces.cut[pieces.cuts[stop, other]].full - 1.0)
    return not move.single or reach > move.coefficient * step


@kernel_part
def _different(
    pieces: Pieces,
    tensors: Tensors,
    tensor: int,
    stop: int,
    p: int,
    mode: int,
    advancing: int,
    hush: bool,
    keeps_from: int,
    every: bool,
    within: int,
    dimension: int,
    step: float,
) -> float:
    """Words of all different tiles before the level `stop`; -1: some dimension is never quiet.

    Args:
        mode: PLAIN: all loops that move the tensor are free. ADVANCE: those outside of `p`, when that advances. BEFORE: the tiles
            before that.
        advancing: the dimension of p.
        every, within: as in `_moved`.
        hush: only those when no loop inside of p that moves the tensor turns.
        dimension, step: count what tiles share with themselves so many iterations further.
    """
    whole, moves = tensors.whole[tensor], tensors.moves[tensor]
    if mode == PLAIN and every and (whole.plain or stop == len(pieces.cuts) - 1):  # boxes of which no two overlap
        return float(whole.iterations)
    product, count_of_group, rest_of_group, least = 1.0, 1.0, 0.0, 1.0
    sliding = moves[Index(dimension)].group if dimension >= 0 else NOWHERE
    limit = len(pieces.calm) if mode == PLAIN else p
    for number in range(whole.movers):
        d = tensors.dims[tensor, number]
        move, last = moves[d], pieces.cuts[stop, d]
        if every and move.group != sliding and pieces.cut[last].latest < limit:  # together they are the dimension
            count, iterations = pieces.cut[last].many, pieces.cut[pieces.cuts[0, d]].full
        else:
            which, moved = mode_of(d, mode, advancing, hush), step if d == dimension else 0.0
            count, iterations, smallest = walk(
                pieces, d, last, limit, which, tensor, True, every, within, pieces.cuts[keeps_from, d], False
            )
            if which == QUIET and count == 0.0:
                return -1.0
            iterations -= moved * count
            least += move.coefficient * (smallest - 1.0 - moved)
        # along one coordinate, the side of a box is a sum, and so sums are enough where none is negative
        rest_of_group = rest_of_group * count + move.coefficient * (iterations - count) * count_of_group
        count_of_group *= count
        if move.last:
            if move.single and least >= 0.0:
                product *= count_of_group + rest_of_group
            elif count_of_group > 0.0:
                product *= words_of_boxes(
                    pieces,
                    tensors,
                    tensor,
                    move.group,
                    stop,
                    limit,
                    mode,
                    advancing,
                    hush,
                    keeps_from,
                    every,
                    within,
                    dimension,
                    step,
                )
            else:
                product = 0.0
            count_of_group, rest_of_group, least = 1.0, 0.0, 1.0
    return product


@kernel_part
def _times(
    pieces: Pieces, tensors: Tensors, tensor: int, stop: int, limit: int, advancing: int, every: bool, within: int
) -> tuple[float, float]:
    """How often each of the different tiles before the level `stop` is sent and received, the loops in time outside of place `limit`
    free, that of dimension `advancing` there when it advances. The rest as in `_moved`."""
    sent, received = 1.0, 1.0
    for number in range(tensors.whole[tensor].movers, tensors.whole[tensor].counted):
        d = tensors.dims[tensor, number]
        last = first = pieces.cuts[stop, d]
        mode, spread, count = ADVANCE if d == advancing else PLAIN, pieces.cut[last].spread, pieces.cut[last].lanes
        if limit > 0:  # some loop in time is free: so are all cuts up to `first`
            first = last_free(pieces, last, limit)
            count = pieces.cut[first].many
        if not every or mode != PLAIN or spread > first:  # else all further ones are at zero
            level = Index(len(pieces.cuts) - 1) if every else within
            count, _, _ = walk(pieces, d, last, limit, mode, tensor, False, every, level, 0, False)
        received *= count
        if every and spread > pieces.cuts[within, d]:
            count, _, _ = walk(pieces, d, last, limit, mode, tensor, False, every, within, 0, False)
        sent *= count
    return sent, received
