"""Parts of the kernel: how the words of one tensor move between a storage level and the next, in closed form, for mappings side
by side.

Timeloop walks the nest and visits iterations 0 and 1 of every temporal loop. Counting upward in binary, each step
shifts a tile by one of as many vectors as there are loops, so the walk has a closed form: with `c` the innermost loop
that moves the tile, a step of `c` always follows a step that left no other direction behind, so its overlap with the
tile before is always credited; a step of an outer loop is credited only if it happens to shift by the same vector.
The tests hold this to a literal walk.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import LANES, every, integers, kernel_call, kernel_part, lanes
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import words_of
from tilewright_costmodels.timeloop.accounts import DELIVERED, HEAD, LINKED, PLACE, SIZES, apart_of
from tilewright_costmodels.timeloop.nest import Job
from tilewright_costmodels.timeloop.sharing import bit_of, expect, mix, passing, sharing


@kernel_part
def divide_tensor(job: Job, group: int, tensor: int) -> None:
    """The part of an output, in words, that one instance of each level answers for."""
    hardware, scratch, terms, counts, nest = job.hardware, job.scratch, job.rules.terms, job.counts, job.nest
    part = every(job.tensors.whole[tensor].words)
    for level in range(len(hardware.level)):
        outer = hardware.level[max(0, level - 1)]
        if level > 0 and np.any(lanes(nest.children[level - 1]) > 1.0):
            # the next part is to this one as a tile is to what all children of a parent hold together
            whole, side = every(1.0), every(1.0)
            for p in range(terms.start[tensor], terms.start[tensor + 1]):
                term = terms.term[p]
                tile = lanes(scratch.inside[hardware.level[level].start, term.dimension])
                for s in range(outer.start, outer.stop):
                    if not hardware.slot[s].steps:
                        tile = tile * lanes(scratch.trips[s, term.dimension])
                side = side + float(term.coefficient) * (tile - 1.0)
                if term.last:
                    whole, side = whole * side, every(1.0)
            words = words_of(terms, tensor, scratch.inside[hardware.level[level].start])
            large, divided = part * words >= 2.0**53, np.floor(part * words / whole)
            if np.any(large):
                nest.wanted[:], nest.amount[:], nest.passed[:], nest.saved[:] = large, part, words, whole
                for b in range(LANES):
                    if nest.wanted[b]:
                        nest.amount[b] = _share_of(nest.amount[b], nest.passed[b], nest.saved[b])
                divided = np.where(large, lanes(nest.amount), divided)
            part = divided
        counts.partition_words[group, level, tensor][:] = part


@kernel_call
def _share_of(part: float, words: float, whole: float) -> float:
    """part x words / whole, rounded down; exact, however large the product: multiplied bit by bit, and divided as it goes."""
    bit = 1.0
    while bit * 2.0 <= words:
        bit *= 2.0
    result = rest = 0.0
    while bit >= 1.0:
        result, rest = result * 2.0, rest * 2.0
        if words >= bit:
            words -= bit
            result += np.floor(part / whole)
            rest += part % whole
        result += np.floor(rest / whole)
        rest = rest % whole
        bit /= 2.0
    return result


@kernel_part
def follow(job: Job, tensor: int, far: bool) -> None:
    """Find the innermost loop that moves the tensor's tile, as every level sees it; `far`: and how far."""
    hardware, nest, inside, whole = job.hardware, job.nest, job.scratch.inside, job.tensors.whole[tensor]
    visits, before, mover = every(1.0), every(1.0), every(0)
    iterations, shift, undone = every(0.0), every(0), every(0)
    for number in range(len(hardware.level)):
        level = hardware.level[number]
        for s in range(level.start, level.stop):
            if far and nest.place[s] < nest.place[s + 1]:
                for each in range(whole.movers):
                    d = job.tensors.dims[tensor, each]
                    nest.step[d][:] = integers(lanes(inside[s + 1, d])) * job.tensors.moves[tensor, d].displacement
            for p in range(nest.place[s], nest.place[s + 1]):
                dimension = lanes(nest.dimension[p])
                moves = (dimension & whole.moving) != 0
                visits = np.where(moves, lanes(nest.outside[p + 1]), visits)
                if far:
                    before = np.where(moves, lanes(nest.outside[p]), before)
                    mover = np.where(moves, dimension, mover)
                    step = every(0)
                    for each in range(whole.movers):
                        d = job.tensors.dims[tensor, each]
                        this = dimension == 1 << np.int64(d)
                        step = np.where(this, lanes(nest.step[d]), step)
                        iterations = np.where(this, lanes(inside[s + 1, d]), iterations)
                    shift = np.where(moves, step, shift)
                    undone = undone + step
                    nest.displaced[p][:] = undone + step
        nest.visits[number][:] = visits
        if far:
            nest.before[number][:], nest.mover[number][:], nest.iterations[number][:] = before, mover, iterations
            nest.shift[number][:], nest.undone[number][:] = shift, undone


@kernel_part
def _unicast(job: Job, first: int, tensor: int, slot: int) -> Ints:
    """`is_unicast` of mappings side by side, [B]: 0 or 1."""
    if len(job.mappings.unicast) == 0:
        return every(0 if job.hardware.shared[slot, tensor] else 1)
    for b in range(LANES):
        job.nest.by[b] = is_unicast(job, min(first + b, len(job.mappings.unicast) - 1), tensor, slot)
    return lanes(job.nest.by)


@kernel_part
def is_unicast(job: Job, n: int, tensor: int, slot: int) -> bool:
    """Whether children that differ in a loop of the slot are each served separately."""
    unicast = job.mappings.unicast
    sent = len(unicast) > 0 and unicast[n, job.hardware.slot[slot].entry, tensor]
    return bool(sent or not job.hardware.shared[slot, tensor])


@kernel_part
def different_tiles(job: Job, first: int, tensor: int, level: int) -> tuple[Floats, Bools]:
    """Different tiles among the children of one parent: deliveries per word and visit; and whether two unrolled loops move
    one coordinate, so that only `sharing` can tell."""
    whole, here, trips = job.tensors.whole[tensor], job.hardware.level[level], job.scratch.trips
    different, seen, again = every(1.0), every(1), every(0)
    for s in range(here.start, here.stop):
        slot = job.hardware.slot[s]
        if not slot.steps:
            used, moved = lanes(job.scratch.used[slot.entry]), every(1.0)
            for each in range(whole.movers):
                d = job.tensors.dims[tensor, each]
                unrolled, together = lanes(trips[s, d]), job.tensors.moves[tensor, d].together
                moved = moved * unrolled
                if together:
                    several = unrolled > 1.0
                    again = again | np.where(several, seen & together, 0)
                    seen = seen | np.where(several, together, 0)
            different = different * np.where(_unicast(job, first, tensor, s) != 0, used, moved)
    return different, again != 0


@kernel_part
def revisits(job: Job, tensor: int, level: int) -> tuple[Floats, Floats]:
    """How often, `c` being the innermost loop that moves the tensor, its tile stays where it is, and how often its overlap
    with the tile before is credited: at every step of c, and when an outer loop shifts it by the same."""
    nest, moving = job.nest, job.tensors.whole[tensor].moving
    undone = lanes(nest.undone[level])  # the steps of all loops inside p are undone when p advances
    usual = undone + lanes(nest.shift[level])
    still, credited = every(0.0), every(0.0)
    for p in range(nest.place[job.hardware.level[level].stop]):
        displaced, moves = lanes(nest.displaced[p]), (lanes(nest.dimension[p]) & moving) != 0
        times = lanes(nest.outside[p + 1]) - lanes(nest.outside[p])
        still = still + np.where(moves & (displaced == undone), times, 0.0)
        credited = credited + np.where(moves & (displaced == usual), times, 0.0)
    return still, credited


@kernel_part
def overlap_of(job: Job, tensor: int, level: int) -> Floats:
    """Words that the next level's tile shares with itself one step further of the innermost loop that moves it."""
    terms, nest = job.rules.terms, job.nest
    row, mover, iterations = job.hardware.level[level].stop, lanes(nest.mover[level]), lanes(nest.iterations[level])
    volume, side = every(1.0), every(1.0)
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        term = terms.term[p]
        moved = np.where(mover == 1 << np.int64(term.dimension), iterations, 0.0)
        side = side + float(term.coefficient) * (lanes(job.scratch.inside[row, term.dimension]) - 1.0 - moved)
        if term.last:
            volume, side = volume * np.maximum(side, 0.0), every(1.0)
    return volume


@kernel_part
def pass_on(
    job: Job,
    level: int,
    inner: bool,
    passing: Bools,
    tile: Floats,
    overlap: Floats,
    deliveries: Floats,
) -> tuple[Floats, Floats, Floats]:
    """What neighbours pass on: words; deliveries of the parent that they save; receipts.

    The words that a neighbour holds are a shifted copy only where the step before moved as many of them.

    Args:
        inner: the children are compute units. They keep nothing, so that every step moves a whole tile, and a neighbour has it
            even where the step moved none of them. Else `c`, which moves the tile, is the innermost loop of all.
    """
    nest = job.nest
    nest.passed[:] = nest.saved[:] = nest.received[:] = every(0.0)
    nest.deliveries[:] = deliveries
    undone, usual = lanes(nest.undone[level]), every(0)
    visits, fresh, brought = lanes(nest.visits[level]), tile - overlap, every(0.0)
    again = visits / lanes(nest.before[level]) - 1.0
    if not inner:
        usual = lanes(nest.shift[level])
        brought = np.where(overlap == 0.0, again * fresh, 0.0)  # words that arrive by the usual shift, in the end
    for p in range(nest.place[job.hardware.level[level].stop] - 1, -1, -1):
        outside = lanes(nest.outside[p + 1])
        shift, times = lanes(nest.displaced[p]) - undone, outside - lanes(nest.outside[p])
        same, words = shift == usual, times * tile
        if inner:
            brought = brought + np.where(same, words, 0.0)
            words = np.where(same, 0.0, words)
        else:
            # outside of c
            counts = (outside < visits) & (shift != 0) & (same | (overlap == 0.0))
            brought = brought + np.where(counts, times * again * fresh, 0.0)
            words = np.where(counts, np.where(same, times * fresh, words), 0.0)
        _ask(job, passing & (words > 0.0), words, shift)
    _ask(job, passing & (brought > 0.0), brought, usual)
    return lanes(nest.passed), lanes(nest.saved), lanes(nest.received)


@kernel_part
def share(job: Job, first: int, tensor: int, level: int, wanted: Bools, plain: Bools, deliveries: Floats) -> Floats:
    """Deliveries per word and visit, looked up where it is wanted, with how far neighbours lie apart; `plain`: as `_describe` says."""
    loops = _describe(job, first, tensor, level, plain)
    job.nest.wanted[:], job.nest.deliveries[:] = wanted, deliveries
    _look_up_shares(job, loops)
    return lanes(job.nest.deliveries)


@kernel_call
def _look_up_shares(job: Job, loops: int) -> None:
    nest, accounts = job.nest, job.accounts
    for b in range(LANES):
        if nest.wanted[b]:
            expect(accounts, b)
    for b in range(LANES):
        if nest.wanted[b]:
            nest.account[b] = account = sharing(job.hardware, accounts, loops, b)
            nest.deliveries[b] = accounts.pool[account + DELIVERED]
            nest.apart[b] = accounts.pool[apart_of(accounts, account) + 1]
            if job.detailed:
                deliveries, at = job.deliveries, account + HEAD
                deliveries.account[b, 0], deliveries.noted[b] = account, 1
                deliveries.sizes[b], deliveries.hops[b] = accounts.pool[account + SIZES], accounts.pool_hops[at]
                deliveries.multicast[0, b], deliveries.scatter[0, b] = accounts.pool[at], accounts.pool[at + 1]
                deliveries.each[b] = accounts.pool[at + 1]


@kernel_part
def _ask(job: Job, wanted: Bools, words: Floats, shift: Ints) -> None:
    """Whether neighbours have the words, where it is wanted."""
    if np.any(wanted):
        nest = job.nest
        may = wanted & ((lanes(nest.apart) >> bit_of(np.maximum(shift, 0 - shift)) & 1) != 0)
        if np.any(may):
            nest.wanted[:], nest.amount[:], nest.by[:] = may, words, shift
            _look_up(job)


@kernel_call
def _look_up(job: Job) -> None:
    nest, accounts = job.nest, job.accounts
    for b in range(LANES):
        if nest.wanted[b]:
            account = passing(job.hardware, accounts, nest.account[b], nest.by[b])
            left, linked = float(accounts.pool[account + DELIVERED]), float(accounts.pool[account + LINKED])
            if linked > 0.0 and left < nest.deliveries[b]:
                words = nest.amount[b]
                nest.passed[b] += words
                nest.saved[b] += words * (nest.deliveries[b] - left)
                nest.received[b] += words * linked
                if job.detailed:
                    send(job, b, words, account)


@kernel_part
def _describe(job: Job, first: int, tensor: int, level: int, plain: Bools) -> int:
    """Write how the children of a level are unrolled, side by side; of how many loops.

    Args:
        plain: it does not matter how far a loop moves tiles, since no two unrolled ones move one coordinate.
    """
    accounts, here = job.accounts, job.hardware.level[level]
    accounts.children[0] = tensor << PLACE | level
    loops, mixed, different = 0, every(tensor << PLACE | level), every(1)
    for s in range(here.start, here.stop):
        slot, looped = job.hardware.slot[s], job.nest.looped[s]
        if not slot.steps and looped:
            name = _unicast(job, first, tensor, s) | 2 * s
            for position in range(job.scratch.trips.shape[1]):
                if slot.ordered or looped >> position & 1:
                    trips, move = _loop_at(job, tensor, s, position)
                    counted, some = plain & (move != 0), trips > 1
                    move = np.where(counted, different, move)
                    different = np.where(counted, different * trips, different)
                    loop = np.where(some, (trips << PLACE) | name, 0)
                    accounts.loops[loops][:], accounts.moves[loops][:] = loop, move
                    mixed = np.where(some, mix(mixed ^ loop ^ (move * 0x9E3779B1)), mixed)
                    loops += 1
    accounts.mixed[:] = mixed
    return loops


@kernel_part
def _loop_at(job: Job, tensor: int, s: int, position: int) -> tuple[Ints, Ints]:
    """Trips of the loops at a position of a slot, and by how much one trip displaces the tile, [B]; of which dimension they are, the
    mappings' order says, if the slot has one."""
    slot = job.hardware.slot[s]
    if not slot.ordered:
        return _loop(job, tensor, s, position)
    at, trips, move = lanes(job.scratch.order[slot.order, position]), every(1), every(0)
    for d in range(job.scratch.trips.shape[1]):
        if job.nest.looped[s] >> d & 1:
            these, displacement = _loop(job, tensor, s, d)
            trips, move = np.where(at == d, these, trips), np.where(at == d, displacement, move)
    return trips, move


@kernel_part
def _loop(job: Job, tensor: int, s: int, d: int) -> tuple[Ints, Ints]:
    """The same along a dimension."""
    iterations = integers(lanes(job.scratch.inside[s + 1, d]))
    return integers(lanes(job.scratch.trips[s, d])), iterations * job.tensors.moves[tensor, d].displacement


@kernel_part
def send(job: Job, b: int, words: float, account: int) -> None:
    """Note words of a mapping, each to be delivered as an account says."""
    deliveries = job.deliveries
    at = deliveries.noted[b]
    deliveries.words[b, at], deliveries.account[b, at] = words, account
    deliveries.noted[b] = at + 1


@kernel_part
def deliver(job: Job, level: int, words: Floats) -> int:
    """Sort what is delivered below a level by size: what neighbours pass on, and then the rest, so many words; how many sizes
    there are at most."""
    deliveries, children = job.deliveries, lanes(job.nest.children[level])
    alone = children == 1.0  # to whom every word comes by itself, and from nowhere far
    several = lanes(job.nest.live) & ~alone & ((lanes(deliveries.sizes) > 1) | (lanes(deliveries.noted) > 1))
    deliveries.sizes[:] = np.where(~several & (alone | (words != 0.0)), every(1), 0)
    deliveries.multicast[0][:] = np.where(alone, 1, lanes(deliveries.multicast[0]))
    deliveries.scatter[0][:] = np.where(alone, 1, lanes(deliveries.scatter[0]))
    deliveries.accesses[0][:] = words * np.where(alone, 1.0, lanes(deliveries.each))
    deliveries.far[0][:] = words * np.where(alone, 0.0, lanes(deliveries.hops))
    if not np.any(several):
        return 1
    job.nest.wanted[:], job.nest.amount[:] = several, words
    return _deliver_all(job)


@kernel_call
def _deliver_all(job: Job) -> int:
    deliveries, most = job.deliveries, 1
    for b in range(LANES):
        if job.nest.wanted[b]:
            for number in range(1, deliveries.noted[b]):
                _deliver(job, b, deliveries.words[b, number], deliveries.account[b, number])
            _deliver(job, b, job.nest.amount[b], deliveries.account[b, 0])
            most = max(most, deliveries.sizes[b])
    return most


@kernel_part
def _deliver(job: Job, b: int, words: float, account: int) -> None:
    """Add words, each delivered as an account says."""
    deliveries, accounts = job.deliveries, job.accounts
    if words == 0.0:
        return
    for number in range(accounts.pool[account + SIZES]):
        at = account + HEAD + 2 * number
        multicast, scatter = accounts.pool[at], accounts.pool[at + 1]
        row, rows = 0, deliveries.sizes[b]
        while row < rows and (deliveries.multicast[row, b] != multicast or deliveries.scatter[row, b] != scatter):
            row += 1
        if row == rows:
            deliveries.sizes[b] += 1
            deliveries.multicast[row, b], deliveries.scatter[row, b] = multicast, scatter
            deliveries.accesses[row, b] = deliveries.far[row, b] = 0.0
        deliveries.accesses[row, b] += words * scatter
        deliveries.far[row, b] += words * accounts.pool_hops[at]
