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

from tilewright.compiled import Index, Records, integer, kernel_part
from tilewright.mapspace.batch import Floats
from tilewright.mapspace.rules import Terms
from tilewright_costmodels.timeloop.ragged.boxes import shared, words_of_boxes
from tilewright_costmodels.timeloop.ragged.cuts import ADVANCE, BEFORE, NOWHERE, PLAIN, QUIET, Pieces
from tilewright_costmodels.timeloop.ragged.pieces import cut_all, walk
from tilewright_costmodels.timeloop.tables import Hardware, Mappings, Tensors

LONE = integer(1)
"""`Tensors.moves.group` of a dimension whose coordinate it has for itself."""


@kernel_part
def measure(
    pieces: Pieces,
    hardware: Hardware,
    tensors: Tensors,
    terms: Terms,
    inside: Floats,
    loops: Records,
    ends: Records,
    mappings: Mappings,
    n: int,
    instances: Floats,
    detailed: bool,
) -> float:
    """Count the instances of every level, and the words of every tensor: that leave a level inwards, each delivery once;
    that enter it; that it answers for. Of all instances of the level, and of the first one.

    Args:
        inside: tiles inside of slots; loops, ends: of the nest.
        instances: [L], to be written.

    Returns:
        Steps in time.
    """
    levels, dims = len(hardware.level), len(pieces.shares)
    cut_all(pieces, inside[0], loops, ends)
    iterations = steps = 1.0
    for d in range(dims):
        iterations, steps = iterations * inside[0, d], steps * pieces.cut[d, pieces.cuts[levels, d]].turns
    for level in range(levels):
        instances[level] = 1.0 if level == 0 else instances[level - 1]
        if level > 0 and ends[level - 1].children > 1.0:
            instances[level] = 1.0
            for d in range(dims):
                instances[level] *= pieces.cut[d, pieces.cuts[level, d]].lanes
    if len(mappings.unicast) > 0:
        for tensor in range(len(tensors.whole)):
            for s in range(len(hardware.slot)):
                separate = mappings.unicast[n, hardware.slot[s].entry, tensor]
                pieces.apart[tensor, s] = separate or not hardware.shared[s, tensor]
    kept = n if len(mappings.keep) > 1 else 0
    for tensor in range(len(tensors.whole)):
        pieces.words[tensor, 0].entered = pieces.words[tensor, 0].first_entered = 0.0
        inner = Index(levels)  # the nearest level inside that keeps the tensor; beyond all: compute
        lanes = 1.0  # compute units below an instance
        for number in range(levels):
            level = Index(levels - 1 - number)
            lanes *= ends[level].children
            keeps = mappings.keep[kept, hardware.level[level].holds, tensor]
            if keeps or detailed:
                outer = level
                while not mappings.keep[kept, hardware.level[outer].holds, tensor]:
                    outer = Index(outer - 1)
                words = pieces.words[tensor, level]
                # where no bandwidth can bind, the average instance does for the first one
                words.even = instances[level] == 1.0 or (
                    not detailed and _is_roomy(hardware, tensors, tensor, level, lanes)
                )
                known = inner == levels and lanes == 1.0  # each iteration reads its word
                if known:
                    words.left, words.first_left = iterations, steps
                    if words.even:
                        words.first_left = words.left / instances[level]
                if not known or detailed or tensors.whole[tensor].is_output:
                    _between(
                        pieces, tensors, terms, loops, ends, instances, detailed, tensor, level, inner, outer, known
                    )
            if keeps:
                inner = level
    return steps


@kernel_part
def _between(
    pieces: Pieces,
    tensors: Tensors,
    terms: Terms,
    loops: Records,
    ends: Records,
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
    levels, whole, moves = len(ends), tensors.whole[tensor], tensors.moves[tensor]
    c = int(ends[inner - 1].end) - 1  # the innermost loop that moves the tile
    while inner < levels and c >= 0 and not whole.moving >> loops[c].dimension & 1:
        c -= 1
    stays = inner < levels and c >= 0  # some tile may stay where it is, or overlap with the one before
    if stays:
        stays = moves[loops[c].dimension].together != 0 or pieces.calm[c]
    words, entering = pieces.words[tensor, level], pieces.words[tensor, min(inner, levels - 1)]
    unrolled, windows = ends[level].unrolled, 0
    for u in range(unrolled, ends[inner - 1].unrolled_end if whole.groups > 2 else unrolled):
        windows += moves[loops[u].dimension].group > LONE
    tangled = windows > 1  # sub-clusters may have equal boxes though they differ in loops that move them
    alone = whole.plain and instances[level] == 1.0  # an only instance answers for every word
    words.own = whole.iterations
    answers = level == outer and (whole.is_output or detailed) and not (alone or whole.slides)
    # what leaves the level and enters the inner one; what the level answers for; of the first instance: what leaves, what
    # enters, what it answers for
    of_first = level == outer and not (words.even and (inner == levels or entering.even))
    for view in range(5 if of_first else 1 + answers):
        every, leaves, enters, owns = view < 2, view == 0 or view == 2, view == 3, view == 1 or view == 4
        if (
            (enters and (inner == levels or entering.even))
            or (owns and not answers)
            or (leaves and known)
            or (not every and not enters and words.even)
        ):
            continue
        left, entered = _moved(
            pieces,
            tensors,
            terms,
            loops,
            tensor,
            level if owns else inner,
            NOWHERE if owns else c,
            stays and not owns,
            outer if whole.is_output else inner,
            every,
            level if leaves else Index(levels),
        )
        if leaves and tangled:
            for group in range(2, whole.groups):
                left *= shared(pieces, moves, terms, len(loops), tensor, group, level, inner, every)
        if view == 0:
            words.left = left
            if inner < levels:
                entering.entered = entered
        elif view == 1:
            words.own = left
        elif view == 2:
            words.first_left = left
        elif enters:
            entering.first_entered = entered
        else:
            words.first_own = left
    if words.even:
        words.first_left, words.first_own = words.left / instances[level], words.own / instances[level]
    if inner < levels and entering.even:
        entering.first_entered = entering.entered / instances[inner]


@kernel_part
def _is_roomy(hardware: Hardware, tensors: Tensors, tensor: int, level: int, lanes: float) -> bool:
    """Whether no bandwidth of a memory can bind: none of the lanes below an instance reads or writes more than two words of a
    tensor in a step."""
    memory = hardware.memory[max(0, hardware.home[level, tensor])]
    return bool(tensors.dense and min(memory.read_bandwidth, memory.write_bandwidth) >= 2.0 * memory.tensors * lanes)


@kernel_part
def _moved(
    pieces: Pieces,
    tensors: Tensors,
    terms: Terms,
    loops: Records,
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
    whole, moves = tensors.whole[tensor], tensors.moves[tensor]
    left, entered, passed, quiet, overlaps = 0.0, 0.0, 0, True, False
    once = each = 1.0
    inner = usual = 0  # the steps of all loops inside p, undone when p advances; that of c
    p, mode, hush, advancing, dimension, step, more = c + 1, PLAIN, False, NOWHERE, NOWHERE, 0.0, True
    while more:
        found = _different(
            pieces,
            tensors,
            terms,
            loops,
            tensor,
            stop,
            p,
            mode,
            advancing,
            hush,
            keeps_from,
            every,
            within,
            dimension,
            step,
        )
        if found < 0.0:  # some loop inside always turns, and so it does inside of all loops that are left
            quiet = False
        elif found > 0.0:
            found = found if mode == PLAIN else -found
            if p != c:  # that loop moves the tile, and the other dimensions are as before
                once, each = _times(pieces, tensors, tensor, stop, p, advancing, every, within)
            left, entered = left + found * once, entered + found * each
        more = False
        while stays and p > 0 and (quiet or overlaps) and not more:
            p -= 1
            loop = loops[p]
            d = int(loop.dimension)
            mode, hush, advancing, dimension, step, more = ADVANCE, False, d, NOWHERE, 0.0, True
            moved = int(moves[d].displacement * loop.step)
            shift, inner = moved - inner, inner + moved
            slides, moving = moves[d].together != 0, whole.moving >> d & 1
            if p == c:
                usual, overlaps, more = shift, slides, slides
                mode, dimension, step = BEFORE, d, float(loop.step)
            elif overlaps and shift == 0:
                pass
            elif overlaps and shift == usual:
                dimension, step = int(loops[c].dimension), float(loops[c].step)
            elif quiet and not moving:
                hush = True
            elif quiet and slides and not passed >> d & 1:
                mode, hush, dimension, step = BEFORE, True, d, float(loop.step)
            else:
                more = False
            if moving:
                passed |= 1 << d
                quiet &= pieces.calm[p]
    return left, entered


@kernel_part
def _different(
    pieces: Pieces,
    tensors: Tensors,
    terms: Terms,
    loops: Records,
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
    product, count_of_group, rest_of_group, least = 1.0, 1.0, 0.0, 1.0
    sliding = moves[dimension].group if dimension >= 0 else NOWHERE
    if mode == PLAIN and every and (whole.plain or stop == len(pieces.cuts) - 1):  # boxes of which no two overlap
        return float(whole.iterations)
    for number in range(whole.movers):
        d = tensors.dims[tensor, number]
        move, which, limit = moves[d], PLAIN, len(loops)
        moved = step if d == dimension else 0.0
        if mode != PLAIN:
            limit = p
            if d == advancing:
                which = mode
            elif hush:
                which = QUIET
        listed = move.group != LONE and (not move.single or move.group == sliding)
        last, keeps = pieces.cuts[stop, d], pieces.cuts[keeps_from, d]
        if every and not listed and pieces.cut[d, last].latest < limit:  # together they are the dimension
            count, iterations, smallest = pieces.cut[d, last].many, pieces.cut[d, 0].full, 1.0
        else:
            count, iterations, smallest = walk(
                pieces, d, last, limit, which, tensor, True, every, within, keeps, listed
            )
        if which == QUIET and count == 0.0:
            return -1.0
        # along one coordinate, the side of a box is a sum, and so sums are enough where none is negative
        rest_of_group = rest_of_group * count + move.coefficient * (iterations - count - moved * count) * count_of_group
        count_of_group *= count
        least += move.coefficient * (smallest - 1.0 - moved)
        if move.last:
            if move.single and least >= 0.0:
                product *= count_of_group + rest_of_group
            elif count_of_group > 0.0:
                product *= words_of_boxes(pieces, moves, terms, tensor, move.group, dimension, step)
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
        mode = ADVANCE if d == advancing else PLAIN
        last = pieces.cuts[stop, d]
        count = pieces.cut[d, last].many
        if not every or mode != PLAIN or pieces.cut[d, last].latest >= limit:
            level = len(pieces.cuts) - 1 if every else within
            count, _, _ = walk(pieces, d, last, limit, mode, tensor, False, every, level, 0, False)
        received *= count
        if every and pieces.cut[d, last].spread > pieces.cuts[within, d]:
            count, _, _ = walk(pieces, d, last, limit, mode, tensor, False, every, within, 0, False)
        sent *= count
    return sent, received
