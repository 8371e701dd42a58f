"""What a mapping moves, counted: one mapping after another, by the rules of Timeloop (docs/timeloop.md).

Timeloop walks the nest and visits iterations 0 and 1 of every temporal loop. Counting upward in binary, each step
shifts a tile by one of as many vectors as there are loops, so the walk has a closed form: with `c` the innermost loop
that moves the tile, a step of `c` always follows a step that left no other direction behind, so its overlap with the
tile before is always credited; a step of an outer loop is credited only if it happens to shift by the same vector.
The tests hold this to a literal walk.

Counts are float64, exact below 2**53; the model refuses problems beyond.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.compiled import compiled, inlined
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules import tile_words
from tilewright_costmodels.timeloop.costs import (
    FILLS,
    HOPS,
    INGRESSES,
    LINKS,
    PARTITION_WORDS,
    READS,
    ROUTERS,
    TILE_WORDS,
    UPDATES,
    Counts,
    cost,
)
from tilewright_costmodels.timeloop.sharing import (
    ACCESSES,
    DIMENSION,
    FAR,
    NO_SHIFT,
    SENT,
    SLOT,
    STEP,
    UNROLLED,
    Sharing,
    deliver,
    is_unicast,
    make_room,
    sharing,
)
from tilewright_costmodels.timeloop.tables import (
    ACROSS,
    ALONE,
    COORDINATE,
    DISPLACEMENT,
    DOWN,
    HOLDS,
    IN_DRAM,
    KEPT,
    ORDER,
    OUTPUT,
    RELEVANT,
    SLIDING,
    START,
    STOP,
    VERTICAL,
    WORDS,
    Hardware,
    Mappings,
    Tables,
    Tensors,
)

CHILDREN, PASSES, CONTENT, SERVED, SHARE, PEER, LINKED = range(7)
"""Columns of `Nest.level`: sub-clusters in use below one instance; iterations of all temporal loops down to those of the
level; of the tensor at hand, words that leave one instance towards the next level, counted as deliveries and as receipts,
words that the average instance receives from outside and from neighbours, and words passed on between neighbours below."""
TRIPS, OUTSIDE = range(2)
"""Columns of `Nest.slot` and `Nest.trips`: of all loops of the slot, or of the loop; the product of those of all temporal loops outside."""


class Nest(NamedTuple):
    """The temporal loops of one mapping. Shapes: S slots, D dimensions, L levels, K loops at most."""

    inside: Ints
    """[S + 2, D]: iterations inside a slot and all those further in; the last row is for tiles in between."""
    turning: Ints
    """[S]: the dimensions with more than one trip there, as bits."""
    slot: Floats
    """[S, 2]."""
    shift: Ints
    """[K]: of each non-unit loop, outermost first: by how much an iteration displaces the tile of the tensor at hand."""
    trips: Floats
    """[K, 2]."""
    level: Floats
    """[L, 7]."""


def nest_of(tables: Tables) -> Nest:
    """Room for mappings of these tables."""
    levels, _, dims = tables.shape
    slots = len(tables.slots)
    return Nest(
        inside=np.ones((slots + 2, dims), np.int64),
        turning=np.zeros(slots, np.int64),
        slot=np.ones((slots, 2)),
        shift=np.zeros(slots * dims + 1, np.int64),
        trips=np.ones((slots * dims + 1, 2)),
        level=np.ones((levels, 7)),
    )


@compiled
def evaluate(
    tensors: Tensors,
    hardware: Hardware,
    mappings: Mappings,
    link_transfers: bool,
    detailed: bool,
    nest: Nest,
    share: Sharing,
    counts: Counts,
    valid: Bools,
    energy_pj: Floats,
    cycles: Floats,
) -> None:
    """Count what every mapping moves, and say what the counts cost.

    Args:
        detailed: count the traffic of the networks too; of use where they take energy.
        counts: of `n` mappings, or of one: the last.
        valid: which mappings are legal; those that do not fit the mesh become False.
    """
    levels = len(hardware.level)
    for n in range(len(valid)):
        row = n if len(counts.compute_cycles) > 1 else 0
        if valid[n]:
            valid[n] = _unfold(hardware, mappings, n, row, nest, share, counts)
        if valid[n]:
            make_room(share)
            counts.compute_cycles[row] = nest.level[levels - 1, PASSES] * hardware.cycles_per_operation
            for tensor in range(len(tensors.whole)):
                _size(tensors, hardware, mappings, detailed, n, row, tensor, nest, share, counts)
                _flow(tensors, hardware, mappings, link_transfers, detailed, n, row, tensor, nest, share, counts)
                _access(tensors, hardware, mappings, detailed, n, row, tensor, nest, share, counts)
            energy_pj[n], cycles[n] = cost(hardware, counts, row)


@compiled
def divide(temporal: Ints, spatial: Ints, trips: Ints, good: Bools) -> None:
    """Trip counts of tiles [n, E, D]: of the first entry in space, then of each entry in time and in space. `good`
    becomes False where a tile does not divide the one it is cut from."""
    for n in range(len(temporal)):
        for e in range(temporal.shape[1]):
            for d in range(temporal.shape[2]):
                if good[n] and e > 0:
                    good[n] = spatial[n, e - 1, d] % temporal[n, e, d] == 0
                    trips[n, 2 * e - 1, d] = spatial[n, e - 1, d] // temporal[n, e, d]
                if good[n]:
                    good[n] = temporal[n, e, d] % spatial[n, e, d] == 0
                    trips[n, 2 * e, d] = temporal[n, e, d] // spatial[n, e, d]


@inlined
def _unfold(
    hardware: Hardware, mappings: Mappings, n: int, row: int, nest: Nest, share: Sharing, counts: Counts
) -> bool:
    """Lay out the loops, by level. False: more instances are in use along an axis than exist (Timeloop's check)."""
    slots, dims = mappings.trips.shape[1], mappings.trips.shape[2]
    for s in range(slots - 1, -1, -1):
        turning, product = 0, 1.0
        for d in range(dims):
            trips = mappings.trips[n, s, d]
            nest.inside[s, d] = nest.inside[s + 1, d] * trips
            turning |= (trips > 1) << d
            product *= trips
        nest.turning[s] = turning
        nest.slot[s, TRIPS] = product
    x = y = instances = passes = 1.0
    unroll = 0
    for level in range(len(hardware.level)):
        counts.instances[row, level] = instances
        children = 1.0
        for s in range(hardware.level[level, START], hardware.level[level, STOP]):
            used = nest.slot[s, TRIPS]
            if hardware.slot[s, VERTICAL] < 0:
                nest.slot[s, OUTSIDE] = passes
                passes *= used
            elif used > 1.0:
                for position in range(dims):
                    d = dimension_at(hardware, mappings, n, s, position)
                    if nest.turning[s] >> d & 1:
                        share.unroll[unroll, DIMENSION] = d
                        share.unroll[unroll, STEP] = nest.inside[s + 1, d]
                        share.unroll[unroll, SLOT] = s
                        share.unroll[unroll, UNROLLED] = mappings.trips[n, s, d]
                        unroll += 1
                children *= used
                if hardware.slot[s, VERTICAL] > 0:
                    y *= used
                else:
                    x *= used
        if x > hardware.level[level, ACROSS] or y > hardware.level[level, DOWN]:
            return False
        instances *= children
        nest.level[level, CHILDREN] = children
        nest.level[level, PASSES] = passes
        share.end[level + 1] = unroll
    return True


@inlined
def dimension_at(hardware: Hardware, mappings: Mappings, n: int, s: int, position: int) -> int:
    """The dimension of the loop at a position, counted from the outermost of its slot."""
    order = hardware.slot[s, ORDER]
    return int(mappings.order[n, order, position]) if order >= 0 else position


@inlined
def _size(
    tensors: Tensors,
    hardware: Hardware,
    mappings: Mappings,
    detailed: bool,
    n: int,
    row: int,
    tensor: int,
    nest: Nest,
    share: Sharing,
    counts: Counts,
) -> None:
    """Words of the tiles at every level, and of the part of the tensor that one instance answers for."""
    output = tensors.whole[tensor, OUTPUT] > 0.0
    needed = output or detailed or tensors.whole[tensor, SLIDING] > 0.0
    kept, spare = n if len(mappings.keep) > 1 else 0, len(nest.inside) - 1
    part = tensors.whole[tensor, WORDS]
    for level in range(len(hardware.level)):
        counts.actions[row, level, tensor, TILE_WORDS] = 1.0  # where only the ratio of two counts is asked for
        if needed or mappings.keep[kept, hardware.level[level, HOLDS], tensor] & KEPT:
            words = tile_words(tensors.terms, tensor, nest.inside, hardware.level[level, START])
            counts.actions[row, level, tensor, TILE_WORDS] = words
            if level > 0 and share.end[level] > share.end[level - 1] and (output or detailed):
                touched = 0
                for d in range(nest.inside.shape[1]):
                    nest.inside[spare, d] = nest.inside[hardware.level[level, START], d]
                for u in range(share.end[level - 1], share.end[level]):
                    nest.inside[spare, share.unroll[u, DIMENSION]] *= share.unroll[u, UNROLLED]
                    touched |= tensors.by_dimension[tensor, share.unroll[u, DIMENSION], RELEVANT]
                if touched:  # what all children of a parent hold together
                    part = _share_of(part, words, tile_words(tensors.terms, tensor, nest.inside, spare))
        counts.actions[row, level, tensor, PARTITION_WORDS] = part


@compiled
def _share_of(part: float, words: float, whole: float) -> float:
    """part x words / whole, rounded down; exact, however large the product."""
    if part * words < 2.0**53:
        return float(np.floor(part * words / whole))
    bit = 1.0
    while bit * 2.0 <= words:
        bit *= 2.0
    result = rest = 0.0
    while bit >= 1.0:  # multiplied bit by bit, and divided as it goes
        result, rest = result * 2.0, rest * 2.0
        if words >= bit:
            words -= bit
            result += np.floor(part / whole)
            rest += part % whole
        result += np.floor(rest / whole)
        rest = rest % whole
        bit /= 2.0
    return result


@inlined
def _flow(
    tensors: Tensors,
    hardware: Hardware,
    mappings: Mappings,
    link_transfers: bool,
    detailed: bool,
    n: int,
    row: int,
    tensor: int,
    nest: Nest,
    share: Sharing,
    counts: Counts,
) -> None:
    """Movement of a tensor between every level and the next, before bypassing."""
    levels, dims = len(hardware.level), mappings.trips.shape[2]
    sliding = tensors.whole[tensor, SLIDING] > 0.0
    moves = 1.0  # iterations of the innermost loop so far that moves the tensor, and of all those outside
    innermost, dimension, c, loops, at = False, 0, 0, 0, -1
    still = credited = 0.0
    nest.level[0, PEER] = nest.level[0, SHARE] = 0.0
    for level in range(levels):
        for s in range(hardware.level[level, START], hardware.level[level, STOP]):
            if hardware.slot[s, VERTICAL] >= 0 or nest.turning[s] == 0:
                continue
            innermost = False
            if nest.turning[s] & tensors.moving[tensor]:
                moves, innermost = nest.slot[s, OUTSIDE] * nest.slot[s, TRIPS], True
                for position in range(dims - 1, -1, -1):
                    dimension = dimension_at(hardware, mappings, n, s, position)
                    if nest.turning[s] & tensors.moving[tensor] & (1 << dimension):
                        break
                    if nest.turning[s] & (1 << dimension):
                        moves, innermost = moves / mappings.trips[n, s, dimension], False
            if sliding:
                outside = nest.slot[s, OUTSIDE]
                for position in range(dims):
                    d = dimension_at(hardware, mappings, n, s, position)
                    if nest.turning[s] >> d & 1:
                        nest.shift[loops] = tensors.by_dimension[tensor, d, DISPLACEMENT] * nest.inside[s + 1, d]
                        nest.trips[loops, TRIPS] = mappings.trips[n, s, d]
                        nest.trips[loops, OUTSIDE] = outside
                        outside *= mappings.trips[n, s, d]
                        if nest.shift[loops]:
                            c = loops  # the innermost loop so far that moves the tensor
                        loops += 1
        children = nest.level[level, CHILDREN]
        deliveries, account = 1.0, -1
        if children > 1.0:
            deliveries, account = _deliveries(tensors, hardware, mappings, detailed, n, tensor, level, share)
        if account < 0 and detailed:
            account = sharing(tensors, hardware, mappings, n, tensor, level, NO_SHIFT, share)
        if detailed:
            share.sizes[tensor, level] = 0
        # compute has no register: every operation fetches its words
        words, slides, overlap, tile = nest.level[level, PASSES], False, 0.0, 1.0
        if level < levels - 1:  # every step of the loop, and every restart of it, moves a whole tile
            tile = counts.actions[row, level + 1, tensor, TILE_WORDS]
            words = tile * moves
            slides = sliding and moves > 1.0 and tensors.by_dimension[tensor, dimension, ALONE] == 0
        if slides:
            if at != c:
                at = c
                still, credited = _turns(c, nest)
            inner = hardware.level[level, STOP]
            overlap = _overlap(tensors, tensor, inner, dimension, nest.shift[c], tile, nest)
            words -= tile * still + overlap * credited
        nest.level[level, CONTENT] = words * deliveries
        nest.level[level, SERVED] = words * children
        nest.level[level, LINKED] = 0.0
        if slides and link_transfers and children > 1.0 and innermost:
            words = _pass_on(
                tensors,
                hardware,
                mappings,
                detailed,
                n,
                tensor,
                level,
                c,
                tile,
                overlap,
                deliveries,
                words,
                nest,
                share,
            )
        if detailed:
            deliver(tensor, level, words, account, share)
        if level < levels - 1:
            nest.level[level + 1, SHARE] = nest.level[level, SERVED] / children
            nest.level[level + 1, PEER] = nest.level[level, LINKED] / counts.instances[row, level + 1]


@inlined
def _deliveries(
    tensors: Tensors,
    hardware: Hardware,
    mappings: Mappings,
    detailed: bool,
    n: int,
    tensor: int,
    level: int,
    share: Sharing,
) -> tuple[float, int]:
    """Different tiles among the children of one parent: deliveries per word and visit, and where `sharing` has the account
    of them (-1: not asked, since no two unrolled loops move one coordinate)."""
    different = 1
    tangled = detailed
    for u in range(share.end[level], share.end[level + 1]):
        d = share.unroll[u, DIMENSION]
        if tensors.by_dimension[tensor, d, RELEVANT] or is_unicast(
            hardware, mappings, n, tensor, share.unroll[u, SLOT]
        ):
            different *= share.unroll[u, UNROLLED]
        if tensors.by_dimension[tensor, d, RELEVANT] and tensors.by_dimension[tensor, d, ALONE] == 0:
            for other in range(share.end[level], share.end[level + 1]):
                o = share.unroll[other, DIMENSION]
                tangled |= other != u and (
                    tensors.by_dimension[tensor, o, COORDINATE] == tensors.by_dimension[tensor, d, COORDINATE]
                )
            tangled |= tensors.by_dimension[tensor, d, COORDINATE] < 0
    if not tangled:
        return float(different), -1
    account = sharing(tensors, hardware, mappings, n, tensor, level, NO_SHIFT, share)
    return float(share.pool[account]), account


@inlined
def _turns(c: int, nest: Nest) -> tuple[float, float]:
    """How often, `c` being the innermost loop that moves the tensor at hand, its tile stays where it is, and how often
    its overlap with the tile before is credited: at every step of c, and when an outer loop shifts it by the same."""
    still, credited = 0.0, (nest.trips[c, TRIPS] - 1.0) * nest.trips[c, OUTSIDE]
    inner = nest.shift[c]  # the steps of all loops inside p, undone when p advances
    for p in range(c - 1, -1, -1):
        times = (nest.trips[p, TRIPS] - 1.0) * nest.trips[p, OUTSIDE]
        if nest.shift[p] == inner:
            still += times
        elif nest.shift[p] - inner == nest.shift[c]:
            credited += times
        inner += nest.shift[p]
    return still, credited


@inlined
def _overlap(tensors: Tensors, tensor: int, inner: int, dimension: int, shift: int, tile: float, nest: Nest) -> float:
    """Words that the tile inside slot `inner` shares with itself one step of a loop further, that shifts it."""
    overlap = tile
    for r in range(tensors.coefficient.shape[1]):
        # iterations that a step advances the dimension by, times what one moves along the coordinate
        move = tensors.coefficient[tensor, r, dimension] * (
            shift // tensors.by_dimension[tensor, dimension, DISPLACEMENT]
        )
        if move:
            side = 1
            for d in range(nest.inside.shape[1]):
                side += tensors.coefficient[tensor, r, d] * (nest.inside[inner, d] - 1)
            overlap = overlap / side * max(0, side - move)
    return overlap


@compiled
def _pass_on(
    tensors: Tensors,
    hardware: Hardware,
    mappings: Mappings,
    detailed: bool,
    n: int,
    tensor: int,
    level: int,
    c: int,
    tile: float,
    overlap: float,
    deliveries: float,
    rest: float,
    nest: Nest,
    share: Sharing,
) -> float:
    """Take off the flow what neighbours pass on, `c` being the innermost loop of all; the words that no one passes on.

    The words that a neighbour holds are a shifted copy only where the step before moved as many of them.
    """
    reach = 0  # the farthest that two children's tiles lie apart
    for u in range(share.end[level], share.end[level + 1]):
        step = tensors.by_dimension[tensor, share.unroll[u, DIMENSION], DISPLACEMENT] * share.unroll[u, STEP]
        reach += step * (share.unroll[u, UNROLLED] - 1)
    fresh, again = tile - overlap, nest.trips[c, TRIPS] - 1.0
    passed = again * fresh if overlap == 0.0 else 0.0  # words that arrive by a step of c
    inner = nest.shift[c]  # the steps of all loops inside p, undone when p advances
    for p in range(c - 1, -2, -1):
        shift, words = nest.shift[c], passed  # at last, what all steps of c bring
        if p >= 0:
            shift = nest.shift[p] - inner
            inner += nest.shift[p]
            same = shift == nest.shift[c]
            words = 0.0
            if shift != 0 and (same or overlap == 0.0):
                times = (nest.trips[p, TRIPS] - 1.0) * nest.trips[p, OUTSIDE]
                passed += times * again * fresh
                words = times * (fresh if same else tile)
        if words > 0.0 and abs(shift) <= reach:
            account = sharing(tensors, hardware, mappings, n, tensor, level, shift, share)
            left, linked = float(share.pool[account]), float(share.pool[account + 1])
            if linked > 0.0 and left < deliveries:
                nest.level[level, CONTENT] -= words * (deliveries - left)
                nest.level[level, SERVED] -= words * linked
                nest.level[level, LINKED] += words * linked
                rest -= words
                if detailed:
                    deliver(tensor, level, words, account, share)
    return rest


@inlined
def _access(
    tensors: Tensors,
    hardware: Hardware,
    mappings: Mappings,
    detailed: bool,
    n: int,
    row: int,
    tensor: int,
    nest: Nest,
    share: Sharing,
    counts: Counts,
) -> None:
    """Reads, fills and updates of a tensor at every level, those that bypass it folded into the next one outside."""
    kept = n if len(mappings.keep) > 1 else 0
    output = tensors.whole[tensor, OUTPUT] > 0.0
    for level in range(len(hardware.level) - 1, -1, -1):
        keeps = mappings.keep[kept, hardware.level[level, HOLDS], tensor] & KEPT > 0
        content, peer = nest.level[level, CONTENT], nest.level[level, PEER]
        arrived = nest.level[level, SHARE] + peer
        reads = fills = updates = 0.0
        if not keeps and level > 0:  # the level outside is accessed as often, in its own mix of deliveries
            factor = content * nest.level[level - 1, CHILDREN] / nest.level[level - 1, SERVED]
            nest.level[level - 1, CONTENT] *= factor
            nest.level[level - 1, LINKED] = 0.0
            if detailed:
                for size in range(share.sizes[tensor, level - 1]):
                    share.words[tensor, level - 1, size, ACCESSES] *= factor
        elif output:
            # the first partial sum of every word is written, not added; a box with holes promises more words than exist
            part = counts.actions[row, level, tensor, PARTITION_WORDS]
            reads = max(0.0, np.floor(content + peer - part + 0.5))
            fills = max(0.0, np.floor(arrived - part + 0.5)) if level else 0.0
            updates = np.floor(content + 0.5)
        else:
            reads = np.floor(content + peer + 0.5)
            fills = np.floor(arrived) if level else 0.0
        counts.actions[row, level, tensor, READS] = reads
        counts.actions[row, level, tensor, FILLS] = fills
        counts.actions[row, level, tensor, UPDATES] = updates
    if detailed:
        for level in range(len(hardware.level)):
            keeps = mappings.keep[kept, hardware.level[level, HOLDS], tensor] & KEPT > 0
            counts.actions[row, level, tensor, LINKS] = nest.level[level, LINKED]
            _network(output and hardware.noc[level, IN_DRAM] > 0.0, keeps, row, tensor, level, share, counts)


@compiled
def _network(returned: bool, keeps: bool, row: int, tensor: int, level: int, share: Sharing, counts: Counts) -> None:
    """Hops, routers and ingresses below one instance of a level (Timeloop's legacy network).

    Args:
        returned: partial sums go down and come back, for DRAM cannot add.
    """
    hops = routers = ingresses = 0.0
    for size in range(share.sizes[tensor, level]):
        accesses = np.floor(share.words[tensor, level, size, ACCESSES] + 0.5)
        if returned:
            part = counts.actions[row, level, tensor, PARTITION_WORDS]
            accesses = max(accesses, 2.0 * accesses - part) if keeps else 0.0
        share.words[tensor, level, size, SENT] = accesses
        if accesses > 0.0:
            far = share.words[tensor, level, size, FAR]
            hops += far
            routers += np.trunc((1.0 + far // accesses) * accesses)
            ingresses += accesses
    counts.actions[row, level, tensor, HOPS] = hops
    counts.actions[row, level, tensor, ROUTERS] = routers
    counts.actions[row, level, tensor, INGRESSES] = ingresses
