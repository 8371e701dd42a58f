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

from tilewright.compiled import Records, compiled, integer, kernel_part
from tilewright.mapspace.batch import Floats
from tilewright.mapspace.rules import Terms
from tilewright_costmodels.timeloop.ragged.boxes import shared, words_of_boxes
from tilewright_costmodels.timeloop.ragged.cuts import ADVANCE, BEFORE, PLAIN, QUIET, Pieces
from tilewright_costmodels.timeloop.ragged.pieces import cut_all, walk
from tilewright_costmodels.timeloop.tables import Hardware, Mappings, Tensors

LONE = integer(1)
"""`Tensors.moves.group` of a dimension whose coordinate it has for itself."""
NONE = integer(-1)


@compiled
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
    levels, slots, dims = len(hardware.level), len(hardware.slot), len(pieces.shares)
    cut_all(pieces, hardware, inside[0], loops, ends[levels - 1].end, ends[levels - 1].unrolled_end)
    steps = 1.0
    for number in range(
        levels + 1
    ):  # pieces of all dimensions, those that are unrolled outside of a level, or all in time
        every = number < levels
        if every:
            instances[number] = 1.0 if number == 0 else instances[number - 1]
        if not every or (number > 0 and ends[number - 1].children > 1.0):
            product, stop = 1.0, hardware.level[number].start if every else slots
            for d in range(dims):
                limit = 0 if every else len(loops)
                count, _ = walk(pieces, d, pieces.cuts[stop, d], limit, PLAIN, False, every, slots, 0, False)
                product *= count
            if every:
                instances[number] = product
            else:
                steps = product
    for tensor in range(len(tensors.whole)):
        for s in range(slots):
            separate = len(mappings.unicast) > 0 and mappings.unicast[n, hardware.slot[s].entry, tensor]
            pieces.apart[s] = separate or not hardware.shared[s, tensor]
        pieces.words[tensor, 0].entered = pieces.words[tensor, 0].first_entered = 0.0
        inner = levels  # the nearest level inside that keeps the tensor; beyond all: compute
        for number in range(levels):
            level = levels - 1 - number
            keeps = mappings.keep[n if len(mappings.keep) > 1 else 0, hardware.level[level].holds, tensor]
            if keeps or detailed:
                outer = level
                while not mappings.keep[n if len(mappings.keep) > 1 else 0, hardware.level[outer].holds, tensor]:
                    outer -= 1
                _between(
                    pieces, hardware, tensors, terms, loops, ends, instances, detailed, tensor, level, inner, outer
                )
            if keeps:
                inner = level
    return steps


@kernel_part
def _between(
    pieces: Pieces,
    hardware: Hardware,
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
) -> None:
    """The words that move between a level and the nearest one inside that keeps the tensor. `outer`: the nearest one that keeps
    it, from the level outwards."""
    levels, slots = len(hardware.level), len(hardware.slot)
    start, stop = hardware.level[level].start, slots
    end, whole, moves = ends[levels - 1].end, tensors.whole[tensor], tensors.moves[tensor]
    if inner < levels:
        stop, end = hardware.level[inner].start, ends[inner - 1].end
    c = int(end) - 1  # the innermost loop that moves the tile
    while inner < levels and c >= 0 and not whole.moving >> loops[c].dimension & 1:
        c -= 1
    stays = inner < levels and c >= 0  # some tile may stay where it is, or overlap with the one before
    if stays:
        d = loops[c].dimension
        stays = moves[d].together != 0 or pieces.cut[d, pieces.cuts[loops[c].slot, d]].calm
    words, unrolled, unrolled_end, windows = (
        pieces.words[tensor, level],
        ends[level].unrolled,
        ends[inner - 1].unrolled_end,
        0,
    )
    for u in range(unrolled, unrolled_end if whole.groups > 2 else unrolled):
        windows += moves[loops[u].dimension].group > LONE
    tangled = windows > 1  # sub-clusters may have equal boxes though they differ in loops that move them
    for view in range(6 if level == outer else 1):
        # what leaves the level; what enters the inner one; what the level answers for: of all instances, and then of the first
        leaves, enters, owns, every = view % 3 == 0, view % 3 == 1, view % 3 == 2, view < 3
        at = inner if enters else level
        if (enters and inner == levels) or (owns and not (whole.is_output or detailed)):
            continue
        if enters and every and unrolled == unrolled_end:
            found = words.left
        elif not every and (instances[at] == 1.0 or _is_roomy(hardware, tensors, ends, tensor, at, detailed)):
            found = pieces.words[tensor, inner].entered if enters else words.left if leaves else words.own
            found /= instances[at]
        else:
            keeps_from = hardware.level[outer].start if whole.is_output else stop
            found = _moved(
                pieces,
                tensors,
                terms,
                loops,
                tensor,
                start if owns else stop,
                NONE if owns else c,
                stays and not owns,
                keeps_from,
                every,
                start if leaves else slots,
            )
            if leaves and tangled:
                for group in range(2, whole.groups):
                    found *= shared(pieces, moves, terms, len(loops), tensor, group, start, stop, every)
        if leaves and every:
            words.left = found
        elif leaves:
            words.first_left = found
        elif enters and every:
            pieces.words[tensor, inner].entered = found
        elif enters:
            pieces.words[tensor, inner].first_entered = found
        elif every:
            words.own = found
        else:
            words.first_own = found


@kernel_part
def _is_roomy(hardware: Hardware, tensors: Tensors, ends: Records, tensor: int, level: int, detailed: bool) -> bool:
    """Whether no bandwidth of a memory can bind: no lane reads or writes more than two words of a tensor in a step. The average
    instance then does for the first one, where only costs are asked for."""
    memory = hardware.memory[max(0, hardware.home[level, tensor])]
    least = 2.0 * memory.tensors
    for each in range(level, len(hardware.level)):
        least *= ends[each].children
    return bool(tensors.dense and not detailed and min(memory.read_bandwidth, memory.write_bandwidth) >= least)


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
) -> float:
    """Words of all tiles before the slot `stop`, but those that need not move.

    Args:
        c: the innermost loop that moves the tile.
        stays: some may be such.
        keeps_from: the first slot inside the memory outside.
        every: of all instances.
        within: the first slot of those in which sub-clusters may share what they are sent.
    """
    whole, moves = tensors.whole[tensor], tensors.moves[tensor]
    total, passed, quiet, overlaps = 0.0, 0, True, False
    inner = usual = 0  # the steps of all loops inside p, undone when p advances; that of c
    for number in range(c + 2 if stays else 1):
        p = c + 1 - number
        mode, hush, advancing, dimension, step, skip = PLAIN, False, NONE, NONE, 0.0, False
        if number > 0:
            loop = loops[p]
            d = int(loop.dimension)
            mode, advancing, skip = ADVANCE, d, True
            shift = int(moves[d].displacement * loop.step) - inner
            inner += int(moves[d].displacement * loop.step)
            slides, moving = moves[d].together != 0, whole.moving >> d & 1
            if p == c:
                usual, overlaps = shift, slides
                if slides:
                    mode, dimension, step, skip = BEFORE, d, float(loop.step), False
            elif overlaps and shift == 0:
                skip = False
            elif overlaps and shift == usual:
                dimension, step, skip = int(loops[c].dimension), float(loops[c].step), False
            elif quiet and not moving:
                hush, skip = True, False
            elif quiet and slides and not passed >> d & 1:
                mode, hush, dimension, step, skip = BEFORE, True, d, float(loop.step), False
            if moving:
                passed |= 1 << d
                quiet &= pieces.cut[d, pieces.cuts[loop.slot, d]].calm
        if not skip:
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
                found *= _times(pieces, tensors, tensor, stop, p, advancing, every, within)
                total += found if number == 0 else -found
        if not (quiet or overlaps):
            break
    return total


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
    """Words of all different tiles before the slot `stop`; -1: some dimension is never quiet.

    Args:
        mode: PLAIN: all loops that move the tensor are free. ADVANCE: those outside of `p`, when that advances. BEFORE: the tiles
            before that.
        advancing: the dimension of p.
        every, within: as in `_moved`.
        hush: only those when no loop inside of p that moves the tensor turns.
        dimension, step: count what tiles share with themselves so many iterations further.
    """
    whole, moves = tensors.whole[tensor], tensors.moves[tensor]
    product, count_of_group, rest_of_group, sound = 1.0, 1.0, 0.0, True
    if mode == PLAIN and every and whole.plain:
        return float(whole.words)
    overlapping = NONE
    if dimension >= 0:
        overlapping = int(moves[dimension].group)
    for number in range(whole.movers):
        d = tensors.dims[tensor, number]
        move, last = moves[d], pieces.cuts[stop, d]
        listed = move.group == overlapping or not move.single
        if (
            every and not listed and (mode == PLAIN or pieces.cut[d, last].latest < p)
        ):  # together they are the dimension
            count, iterations = pieces.cut[d, last].many, pieces.cut[d, 0].full
        else:
            which, limit = PLAIN, len(loops)
            if mode != PLAIN:
                limit = p
                if d == advancing:
                    which = mode
                elif hush:
                    which = QUIET
            count, iterations = walk(
                pieces, d, last, limit, which, True, every, within, pieces.cuts[keeps_from, d], listed
            )
            sound &= which != QUIET or count > 0.0
            if count == 0.0:
                product = 0.0
        if listed:
            if move.last and product > 0.0:
                product *= words_of_boxes(pieces, moves, terms, tensor, move.group, dimension, step)
        else:  # along one coordinate, the side of a box is a sum, and so sums are enough
            rest_of_group = rest_of_group * count + move.coefficient * (iterations - count) * count_of_group
            count_of_group *= count
            if move.last:
                product *= count_of_group + rest_of_group
                count_of_group, rest_of_group = 1.0, 0.0
    return product if sound else -1.0


@kernel_part
def _times(
    pieces: Pieces, tensors: Tensors, tensor: int, stop: int, limit: int, advancing: int, every: bool, within: int
) -> float:
    """How often each of the different tiles before the slot `stop` is there, the loops in time outside of place `limit` free, that
    of dimension `advancing` there when it advances."""
    product = 1.0
    for number in range(tensors.whole[tensor].movers, tensors.whole[tensor].counted):
        d = tensors.dims[tensor, number]
        mode = ADVANCE if d == advancing else PLAIN
        count, _ = walk(pieces, d, pieces.cuts[stop, d], limit, mode, False, every, within, 0, False)
        product *= count
    return product
