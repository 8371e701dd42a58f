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
from tilewright.mapspace.batch import Floats
from tilewright_costmodels.timeloop.nest import Nest, Tiles
from tilewright_costmodels.timeloop.ragged.boxes import shared, words_of_boxes
from tilewright_costmodels.timeloop.ragged.cuts import ADVANCE, BEFORE, NOWHERE, PLAIN, QUIET, Pieces
from tilewright_costmodels.timeloop.ragged.pieces import cut_all, last_free, mode_of, walk
from tilewright_costmodels.timeloop.tables import Hardware, Mappings, Tensors

YES, NO = truth(True), truth(False)
LONE = integer(1)
"""`Tensors.moves.group` of a dimension whose coordinate it has for itself."""


@kernel_call
def measure(
    pieces: Pieces,
    hardware: Hardware,
    tensors: Tensors,
    nest: Nest,
    tiles: Tiles,
    mappings: Mappings,
    n: int,
    instances: Floats,
    detailed: bool,
) -> float:
    """Count the instances of every level, and the words of every tensor: that leave a level inwards, each delivery once;
    that enter it; that it answers for. Of the average instance of the level, and of the first one.

    Args:
        instances: [L], to be written.

    Returns:
        Steps in time.
    """
    levels, dims, ends, sizes = Index(len(nest.level)), len(pieces.shares), nest.level, tiles.inside[0]
    cut_all(pieces, tiles, nest)
    iterations = steps = 1.0
    for d in range(dims):
        iterations, steps = iterations * sizes[d], steps * pieces.cut[pieces.cuts[levels, d]].turns
    for level in range(levels):
        instances[level] = 1.0 if level == 0 else instances[level - 1]
        if level > 0 and ends[level - 1].children > 1.0:
            instances[level] = 1.0
            for d in range(dims):
                instances[level] *= pieces.cut[pieces.cuts[level, d]].lanes
    if len(mappings.unicast) > 0:
        for tensor in range(len(tensors.whole)):
            for s in range(len(hardware.slot)):
                separate = mappings.unicast[n, hardware.slot[s].entry, tensor]
                pieces.apart[tensor, s] = separate or not hardware.shared[s, tensor]
    kept = n if len(mappings.keep) > 1 else 0
    for each in range(len(tensors.whole)):
        tensor, inner, lanes = Index(each), levels, 1.0  # compute units below an instance
        pieces.words[tensor, 0].entered = pieces.words[tensor, 0].first_entered = 0.0
        for number in range(levels):
            level = outer = Index(levels - 1 - number)
            lanes *= ends[level].children
            keeps = mappings.keep[kept, hardware.level[level].holds, tensor]
            if keeps or detailed:
                while not mappings.keep[kept, hardware.level[outer].holds, tensor]:
                    outer = Index(outer - 1)
                words = pieces.words[tensor, level]
                # where no bandwidth can bind, the average instance does for the first one
                words.even = instances[level] == 1.0 or (not detailed and lanes <= hardware.roomy[level, tensor])
                known = inner == levels and lanes == 1.0  # each iteration reads its word
                if known:
                    words.left, words.first_left = iterations / instances[level], steps
                if known and words.even:
                    words.first_left = words.left
                if not known or detailed or tensors.whole[tensor].is_output:
                    _between(pieces, tensors, nest, instances, detailed, tensor, level, inner, outer, known)
            if keeps:
                inner = level
    return steps


@kernel_part
def _between(
    pieces: Pieces,
    tensors: Tensors,
    nest: Nest,
    instances: Floats,
    detailed: bool,
    tensor: int,
    level: int,
    inner: int,
    outer: int,
    known: bool,
) -> None:
    """The words that move between a level and the nearest one inside that keeps the tensor.

    Args:
        outer: the nearest one that keeps it, from the level outwards.
        known: what leaves is written already; nothing enters.
    """
    loops, ends = nest.loop, nest.level
    levels, whole, moves = Index(len(ends)), tensors.whole[tensor], tensors.moves[tensor]
    c = int(ends[inner - 1].end) - 1  # the innermost loop that moves the tile
    while inner < levels and c >= 0 and not whole.moving >> loops[Index(c)].dimension & 1:
        c -= 1
    stays = inner < levels and c >= 0  # some tile may stay where it is, or overlap with the one before
    if stays:
        stays = moves[loops[Index(c)].dimension].together != 0 or pieces.calm[Index(c)]
    words, entering = pieces.words[tensor, level], pieces.words[tensor, min(inner, levels - 1)]
    unrolled, windows = ends[level].unrolled, 0
    for u in range(unrolled, ends[inner - 1].unrolled_end if whole.groups > 2 else unrolled):
        windows += moves[loops[u].dimension].group > LONE
    tangled = windows > 1  # sub-clusters may have equal boxes though they differ in loops that move them
    alone = whole.plain and instances[level] == 1.0  # an only instance answers for every word
    words.own = whole.iterations
    answers = level == outer and (whole.is_output or detailed) and not (alone or whole.slides)
    keeps_from = outer if whole.is_output else inner
    if not known:
        left, entered = _moved(pieces, tensors, nest, tensor, inner, c, stays, keeps_from, True, level)
        if tangled:
            left *= shared(pieces, tensors, tensor, level, inner, YES)
        words.left = left / instances[level]
        if inner < levels:
            entering.entered = entered / instances[inner]
    if answers and whole.plain:  # a part of the tensor, as large on average as those of the others
        parts = 1.0
        for number in range(whole.movers):
            parts *= pieces.cut[pieces.cuts[level, tensors.dims[tensor, number]]].lanes
        words.own = whole.iterations / parts
    elif answers:
        own, _ = _moved(pieces, tensors, nest, tensor, level, NOWHERE, NO, keeps_from, True, levels)
        words.own = own / instances[level]
    if level == outer:  # the same of the first instance
        if not (known or words.even):
            words.first_left, _ = _moved(pieces, tensors, nest, tensor, inner, c, stays, keeps_from, False, level)
            if tangled:
                words.first_left *= shared(pieces, tensors, tensor, level, inner, NO)
        if inner < levels and not entering.even:
            _, entering.first_entered = _moved(
                pieces, tensors, nest, tensor, inner, c, stays, keeps_from, False, levels
            )
        if answers and not words.even:
            words.first_own, _ = _moved(pieces, tensors, nest, tensor, level, NOWHERE, NO, keeps_from, False, levels)
    if words.even:
        words.first_left, words.first_own = words.left, words.own
    if inner < levels and entering.even:
        entering.first_entered = entering.entered


@kernel_call
def _moved(
    pieces: Pieces,
    tensors: Tensors,
    nest: Nest,
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
        sent, received = _staying(pieces, tensors, nest, tensor, stop, c, keeps_from, every, within, once, each)
        left, entered = left - sent, entered - received
    return left, entered


@kernel_call
def _staying(
    pieces: Pieces,
    tensors: Tensors,
    nest: Nest,
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
    whole, moves, loops = tensors.whole[tensor], tensors.moves[tensor], nest.loop
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
