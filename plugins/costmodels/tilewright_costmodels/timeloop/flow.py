"""Parts of the kernel: how the words of one tensor move between a storage level and the next, in closed form.

Timeloop walks the nest and visits iterations 0 and 1 of every temporal loop. Counting upward in binary, each step
shifts a tile by one of as many vectors as there are loops, so the walk has a closed form: with `c` the innermost loop
that moves the tile, a step of `c` always follows a step that left no other direction behind, so its overlap with the
tile before is always credited; a step of an outer loop is credited only if it happens to shift by the same vector.
The tests hold this to a literal walk.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_part
from tilewright.mapspace.rules import NONE, tile_words
from tilewright_costmodels.timeloop.nest import Job
from tilewright_costmodels.timeloop.sharing import near, sharing


@kernel_part
def divide_tensor(job: Job, row: int, tensor: int) -> None:
    """The part of the tensor, in words, that one instance of each level answers for; asked for of outputs only."""
    whole, nest, inside = job.tensors.whole[tensor], job.nest, job.scratch.inside
    spare, part = len(inside) - 1, whole.words
    job.counts.actions[row, 0, tensor].tile_words = part
    if whole.is_output or job.detailed:
        for level in range(len(job.hardware.level)):
            first = job.hardware.level[level].start
            before, end = nest.level[max(0, level - 1)].unrolled, nest.level[level].unrolled
            touched = 0
            for u in range(before, end):
                touched |= whole.moving >> nest.loop[u].dimension & 1
            if touched:  # the next part is to this one as a tile is to what all children of a parent hold together
                for d in range(inside.shape[1]):
                    inside[spare, d] = inside[first, d]
                for u in range(before, end):
                    inside[spare, nest.loop[u].dimension] *= nest.loop[u].trips
                tile = tile_words(job.rules.terms, tensor, inside, first)
                part = _share_of(part, tile, tile_words(job.rules.terms, tensor, inside, spare))
            job.counts.actions[row, level, tensor].partition_words = part


@kernel_part
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


@kernel_part
def is_unicast(job: Job, n: int, tensor: int, slot: int) -> bool:
    """Whether children that differ in a loop of the slot are each served separately."""
    unicast = job.mappings.unicast
    sent = len(unicast) > 0 and unicast[n, job.hardware.slot[slot].entry, tensor]
    return bool(sent or not job.hardware.shared[slot, tensor])


@kernel_part
def different_tiles(job: Job, n: int, tensor: int, level: int) -> tuple[float, bool]:
    """Different tiles among the children of one parent: deliveries per word and visit; and whether two unrolled loops move
    one coordinate, so that only `sharing` can tell."""
    moving = job.tensors.whole[tensor].moving
    different, seen, again = 1.0, 1, 0
    for u in range(job.nest.level[level].unrolled, job.nest.level[level].unrolled_end):
        loop = job.nest.loop[u]
        if moving >> loop.dimension & 1 or is_unicast(job, n, tensor, loop.slot):
            different *= loop.trips
        together = job.tensors.moves[tensor, loop.dimension].together
        again |= seen & together
        seen |= together
    return different, again != 0


@kernel_part
def revisits(job: Job, c: int) -> tuple[float, float]:
    """How often, `c` being the innermost loop that moves the tensor, its tile stays where it is, and how often its overlap
    with the tile before is credited: at every step of c, and when an outer loop shifts it by the same."""
    usual = job.nest.loop[c]
    still, credited = 0.0, (usual.trips - 1.0) * usual.outside
    inner = usual.shift  # the steps of all loops inside p, undone when p advances
    for p in range(c - 1, -1, -1):
        loop = job.nest.loop[p]
        times, shift = (loop.trips - 1.0) * loop.outside, loop.shift - inner
        if shift == 0:
            still += times
        elif shift == usual.shift:
            credited += times
        inner += loop.shift
    return still, credited


@kernel_part
def overlap_of(job: Job, tensor: int, level: int, c: int) -> float:
    """Words that the next level's tile shares with itself one step of loop `c` further."""
    terms, inside, loop = job.rules.terms, job.scratch.inside, job.nest.loop[c]
    row = job.hardware.level[level].stop
    volume, side = 1.0, 1.0
    for p in range(terms.start[tensor], terms.start[tensor + 1]):
        term = terms.term[p]
        moved = loop.step if term.dimension == loop.dimension else 0
        side += term.coefficient * (inside[row, term.dimension] - 1.0 - moved)
        if term.last:
            volume *= max(0.0, side)
            side = 1.0
    return volume


@kernel_part
def pass_on(
    job: Job, n: int, tensor: int, level: int, c: int, tile: float, overlap: float, deliveries: float
) -> tuple[float, float, float]:
    """What neighbours pass on: words; deliveries of the parent that they save; receipts.

    The words that a neighbour holds are a shifted copy only where the step before moved as many of them.

    Args:
        c: the innermost loop of all. One beyond: the children are compute units. They keep nothing, so that every step
            moves a whole tile, and a neighbour has it even where the step moved none of them.
    """
    nest, keeps = job.nest, c < job.nest.level[level].end
    reach = 0  # the farthest that two children's tiles lie apart
    for u in range(nest.level[level].unrolled, nest.level[level].unrolled_end):
        loop = nest.loop[u]
        reach += job.tensors.moves[tensor, loop.dimension].displacement * loop.step * (int(loop.trips) - 1)
    usual, again = (nest.loop[c].shift, nest.loop[c].trips - 1.0) if keeps else (NONE, 0.0)
    fresh = tile - overlap
    brought = again * fresh if overlap == 0.0 else 0.0  # words that arrive by the usual shift, in the end
    inner = usual  # the steps of all loops inside p, undone when p advances
    passed = saved = received = 0.0
    for p in range(c - 1, -2, -1):
        shift, words = usual, brought
        if p >= 0:
            loop = nest.loop[p]
            shift = loop.shift - inner
            inner += loop.shift
            times, words = (loop.trips - 1.0) * loop.outside, 0.0
            if not keeps and shift == usual:
                brought += times * tile
            elif not keeps:
                words = times * tile
            elif shift != 0 and (shift == usual or overlap == 0.0):
                brought += times * again * fresh
                words = times * (fresh if shift == usual else tile)
        if words > 0.0 and abs(shift) <= reach:
            length = describe(job, n, tensor, level, shift, False)
            if near(job.hardware, length, job.accounts.key):
                account = sharing(job.hardware, length, job.accounts)
                left, linked = float(job.accounts.pool[account]), float(job.accounts.pool[account + 1])
                if linked > 0.0 and left < deliveries:
                    passed, saved = passed + words, saved + words * (deliveries - left)
                    received += words * linked
                    if job.detailed:
                        deliver(job, tensor, level, words, account)
    return passed, saved, received


@kernel_part
def describe(job: Job, n: int, tensor: int, level: int, shift: int, plain: bool) -> int:
    """Write the key of how the children of a level are unrolled; its length.

    Args:
        shift: displacement of all tiles by which neighbours may pass on what they held before; NO_SHIFT: they do not.
        plain: no two unrolled loops move one coordinate, so that it does not matter how far they move it.
    """
    nest, key = job.nest, job.accounts.key
    key[0], key[1], key[2] = level, tensor, shift
    length, different = 3, 1
    for u in range(nest.level[level].unrolled, nest.level[level].unrolled_end):
        loop = nest.loop[u]
        move, trips = job.tensors.moves[tensor, loop.dimension].displacement * loop.step, int(loop.trips)
        if plain and move:
            move = different
            different *= trips
        key[length], key[length + 1], key[length + 2] = (
            2 * loop.slot + is_unicast(job, n, tensor, loop.slot),
            trips,
            move,
        )
        length += 3
    return length


@kernel_part
def deliver(job: Job, tensor: int, level: int, words: float, account: int) -> None:
    """Add words, each delivered as an account says, to what is delivered below a level."""
    sizes, delivered, accounts = job.deliveries.sizes, job.deliveries.delivered, job.accounts
    if words == 0.0:
        return
    for number in range(accounts.pool[account + 2]):
        at = account + 3 + 2 * number
        multicast, scatter = accounts.pool[at], accounts.pool[at + 1]
        row, rows = 0, sizes[tensor, level]
        while row < rows and (
            delivered[tensor, level, row].multicast != multicast or delivered[tensor, level, row].scatter != scatter
        ):
            row += 1
        each = delivered[tensor, level, row]
        if row == rows:
            sizes[tensor, level] += 1
            each.multicast, each.scatter, each.accesses, each.far = multicast, scatter, 0.0, 0.0
        each.accesses += words * scatter
        each.far += words * accounts.pool_hops[at]
