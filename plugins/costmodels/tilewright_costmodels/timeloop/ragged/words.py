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
from tilewright_costmodels.timeloop.ragged.pieces import (
    ADVANCE,
    ALL,
    BEFORE,
    COUNT,
    LIST,
    PLAIN,
    QUIET,
    SPACE,
    SUM,
    TIME,
    Pieces,
    cut_all,
    recall,
    walk,
)
from tilewright_costmodels.timeloop.tables import Hardware, Mappings, Tensors

LONE = integer(1)
"""`Tensors.moves.group` of a dimension whose coordinate it has for itself."""


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
    cut_all(pieces, hardware, inside, loops, ends[levels - 1].end)
    for level in range(levels):
        instances[level] = 1.0 if level == 0 else instances[level - 1]
        if level > 0 and ends[level - 1].children > 1.0:
            instances[level] = 1.0
            for d in range(dims):
                instances[level] *= pieces.total[SPACE, d, pieces.cuts[d, hardware.level[level].start]].count
    steps = 1.0
    for d in range(dims):
        steps *= pieces.total[TIME, d, pieces.cuts[d, slots]].count
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
                    pieces,
                    hardware,
                    tensors,
                    terms,
                    loops,
                    ends,
                    mappings,
                    n,
                    instances,
                    detailed,
                    tensor,
                    level,
                    inner,
                    outer,
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
    mappings: Mappings,
    n: int,
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
    end, whole = ends[levels - 1].end, tensors.whole[tensor]
    if inner < levels:
        stop, end = hardware.level[inner].start, ends[inner - 1].end
    c = int(end) - 1
    while inner < levels and c >= 0 and not whole.moving >> loops[c].dimension & 1:
        c -= 1
    words, children, lanes = pieces.words[tensor, level], 1.0, 1.0
    for each in range(level, levels):
        children *= ends[each].children if each < inner else 1.0
        lanes *= ends[each].children
    for view in range(6):
        # what leaves the level; what enters the inner one; what the level answers for: of all instances, and of the first
        leaves, enters, owns, first = view < 2, view // 2 == 1, view >= 4, view % 2 == 1
        if level != outer and view > 0:
            break
        if (enters and inner == levels) or (owns and not (whole.is_output or detailed)):
            continue
        if view == 2 and children == 1.0:
            found = words.left
        elif first and (
            instances[inner if enters else level] == 1.0
            or _is_roomy(
                hardware, tensors, tensor, inner if enters else level, lanes / children if enters else lanes, detailed
            )
        ):
            found = pieces.words[tensor, inner].entered if enters else words.left if leaves else words.own
            found /= instances[inner if enters else level]
        else:
            within = start if leaves else slots
            found = _moved(
                pieces,
                tensors,
                terms,
                loops,
                tensor,
                start if owns else stop,
                -1 if owns else c,
                owns or inner == levels,
                hardware.level[outer].start if whole.is_output else stop,
                not first,
                within,
            )
            for group in range(2, whole.groups if leaves else 0):
                found *= shared(pieces, tensors.moves[tensor], terms, len(loops), tensor, group, start, stop, not first)
        if leaves and first:
            words.first_left = found
        elif leaves:
            words.left = found
        elif enters and first:
            pieces.words[tensor, inner].first_entered = found
        elif enters:
            pieces.words[tensor, inner].entered = found
        elif first:
            words.first_own = found
        else:
            words.own = found


@kernel_part
def _is_roomy(hardware: Hardware, tensors: Tensors, tensor: int, level: int, lanes: float, detailed: bool) -> bool:
    """Whether no bandwidth of a memory can bind: no lane reads or writes more than two words of a tensor in a step. The average
    instance then does for the first one, where only costs are asked for."""
    least = 2.0 * lanes * len(tensors.whole)
    memory = hardware.memory[max(0, hardware.home[level, tensor])]
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
    anew: bool,
    keeps_from: int,
    every: bool,
    within: int,
) -> float:
    """Words of all tiles before the slot `stop`, but those that need not move.

    Args:
        c: the innermost loop that moves the tile.
        anew: nothing stays: every step moves a whole tile.
        keeps_from: the first slot inside the memory outside.
        every: of all instances.
        within: the first slot of those in which sub-clusters may share what they are sent.
    """
    whole, moves = tensors.whole[tensor], tensors.moves[tensor]
    total, passed, quiet, overlaps = 0.0, 0, True, False
    inner = usual = 0  # the steps of all loops inside p, undone when p advances; that of c
    for number in range(1 if anew else c + 2):
        p = c + 1 - number
        mode, hush, dimension, step, sign = PLAIN, False, -1, 0.0, 1.0
        if number > 0:
            loop, sign, skip = loops[p], -1.0, True
            d = loop.dimension
            shift = int(moves[d].displacement * loop.step) - inner
            inner += int(moves[d].displacement * loop.step)
            slides, moving = moves[d].together != 0, whole.moving >> d & 1
            if p == c:
                usual, overlaps = shift, slides
                if slides:
                    mode, dimension, step, skip = BEFORE, d, loop.step, False
            elif overlaps and shift == 0:
                mode, skip = ADVANCE, False
            elif overlaps and shift == usual:
                mode, dimension, step, skip = ADVANCE, loops[c].dimension, loops[c].step, False
            elif quiet and not moving:
                mode, hush, skip = ADVANCE, True, False
            elif quiet and slides and not passed >> d & 1:
                mode, hush, dimension, step, skip = BEFORE, True, d, loop.step, False
            if moving:
                passed |= 1 << d
                quiet &= pieces.cut[d, pieces.cuts[d, loop.slot]].calm
            if skip:
                if not (quiet or overlaps):
                    break
                continue
        found = _tiles(
            pieces,
            moves,
            terms,
            loops,
            tensor,
            whole.groups,
            stop,
            p,
            mode,
            hush,
            keeps_from,
            every,
            within,
            dimension,
            step,
        )
        if found < 0.0:  # some loop inside always turns, and so it does inside of all loops that are left
            quiet = False
            if not overlaps:
                break
        else:
            total += sign * found
    return total


@kernel_part
def _tiles(
    pieces: Pieces,
    moves: Records,
    terms: Terms,
    loops: Records,
    tensor: int,
    groups: int,
    stop: int,
    p: int,
    mode: int,
    hush: bool,
    keeps_from: int,
    every: bool,
    within: int,
    dimension: int,
    step: float,
) -> float:
    """Words of all tiles before the slot `stop`, the loops outside of `p` free; -1: some dimension is never quiet.

    Args:
        mode: PLAIN: all loops that move the tensor are free. ADVANCE: when p advances. BEFORE: the tiles before that.
        every, within: as in `_moved`.
        hush: only those when no loop inside of p that moves the tensor turns.
        dimension, step: count what tiles share with themselves so many iterations further.
    """
    product, advancing, overlapping = 1.0, -1, -1
    if mode != PLAIN:
        advancing = loops[p].dimension
    if dimension >= 0:
        overlapping = moves[dimension].group
    for d in range(len(moves)):
        group = moves[d].group
        which, limit, what, last = PLAIN, p, SUM, pieces.cuts[d, stop]
        if group == 0:
            if last == 0:
                continue
            what = COUNT
        elif group != LONE and (group == overlapping or not moves[d].single):
            what = LIST
        if mode == PLAIN and group > 0:
            limit = len(loops)
        elif d == advancing:
            which = mode if group > 0 else ADVANCE
        elif hush and group > 0:
            which = QUIET
        found = pieces.shares[d]
        if last == 0 or (every and mode == PLAIN and group > 0):
            recall(pieces, d, ALL, last, what == LIST)
        else:
            walk(pieces, d, stop, limit, which, group > 0, every, within, keeps_from, what)
        if found.count == 0.0:
            if which == QUIET:
                return -1.0
            product = 0.0
        if group == 0:
            product *= found.count
        elif group == LONE:
            product *= found.count + moves[d].coefficient * (found.iterations - found.count)
    for group in range(2, groups):
        if product > 0.0:
            product *= words_of_boxes(pieces, moves, terms, tensor, group, overlapping, dimension, step)
    return product
