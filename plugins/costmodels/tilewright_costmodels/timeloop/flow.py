"""Parts of the kernel: how the words of one tensor move between a storage level and the next, in closed form.

Timeloop walks the nest and visits iterations 0 and 1 of every temporal loop. Counting upward in binary, each step
shifts a tile by one of as many vectors as there are loops, so the walk has a closed form: with `c` the innermost loop
that moves the tile, a step of `c` always follows a step that left no other direction behind, so its overlap with the
tile before is always credited; a step of an outer loop is credited only if it happens to shift by the same vector.
The tests hold this to a literal walk.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import compiled, kernel_part
from tilewright.mapspace.rules import tile_words
from tilewright_costmodels.timeloop.costs import PARTITION_WORDS, TILE_WORDS
from tilewright_costmodels.timeloop.nest import CONTENT, LINKED, OUTSIDE, SERVED, SHIFT, TRIPS, Job
from tilewright_costmodels.timeloop.sharing import (
    ACCESSES,
    DIMENSION,
    FAR,
    MULTICAST,
    SCATTER,
    SLOT,
    STEP,
    UNROLLED,
    Accounts,
    Unrolled,
    describe,
    is_unicast,
    near,
    sharing,
)
from tilewright_costmodels.timeloop.tables import (
    ALONE,
    COORDINATE,
    DISPLACEMENT,
    OUTPUT,
    RELEVANT,
    START,
    STOP,
    WORDS,
)


@kernel_part
def measure(job: Job, row: int, tensor: int) -> None:
    """The part of the tensor, in words, that one instance of each level answers for; asked for of outputs only."""
    tensors, nest, unrolled = job.tensors, job.nest, job.unrolled
    levels, count = job.counts.instances.shape[1], len(tensors.whole)
    part, spare = tensors.whole[tensor, WORDS], len(nest.inside) - 1
    job.counts.actions[row * levels * count + tensor, TILE_WORDS] = part
    if tensors.whole[tensor, OUTPUT] > 0.0 or job.detailed:
        for level in range(levels):
            first = job.hardware.level[level, START]
            before, end = unrolled.end[level - 1] if level else 0, unrolled.end[level]
            touched = 0
            for u in range(before, end):
                touched |= tensors.by_dimension[tensor, unrolled.loop[u, DIMENSION], RELEVANT]
            if touched:  # the next part is to this one as a tile is to what all children of a parent hold together
                for d in range(nest.inside.shape[1]):
                    nest.inside[spare, d] = nest.inside[first, d]
                for u in range(before, end):
                    nest.inside[spare, unrolled.loop[u, DIMENSION]] *= unrolled.loop[u, UNROLLED]
                tile = tile_words(tensors.terms, tensor, nest.inside, first)
                part = _share_of(part, tile, tile_words(tensors.terms, tensor, nest.inside, spare))
            job.counts.actions[(row * levels + level) * count + tensor, PARTITION_WORDS] = part


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
def deliveries_of(job: Job, n: int, tensor: int, level: int) -> tuple[float, bool]:
    """Different tiles among the children of one parent: deliveries per word and visit; and whether two unrolled loops move
    one coordinate, so that only `sharing` can tell."""
    by_dimension, loop = job.tensors.by_dimension, job.unrolled.loop
    first, end = job.unrolled.end[level], job.unrolled.end[level + 1]
    different, tangled = 1.0, False
    for u in range(first, end):
        d = loop[u, DIMENSION]
        if by_dimension[tensor, d, RELEVANT] or is_unicast(job.hardware, job.mappings, n, tensor, loop[u, SLOT]):
            different *= loop[u, UNROLLED]
        if by_dimension[tensor, d, RELEVANT] and by_dimension[tensor, d, ALONE] == 0:
            coordinate = by_dimension[tensor, d, COORDINATE]
            tangled |= coordinate < 0
            for other in range(first, end):
                tangled |= other != u and by_dimension[tensor, loop[other, DIMENSION], COORDINATE] == coordinate
    return different, tangled


@kernel_part
def revisits(job: Job, c: int) -> tuple[float, float]:
    """How often, `c` being the innermost loop that moves the tensor, its tile stays where it is, and how often its overlap
    with the tile before is credited: at every step of c, and when an outer loop shifts it by the same."""
    loop, trips = job.nest.loop, job.nest.trips
    still, credited = 0.0, (trips[c, TRIPS] - 1.0) * trips[c, OUTSIDE]
    step = inner = loop[c, SHIFT]  # inner: the steps of all loops inside p, undone when p advances
    for p in range(c - 1, -1, -1):
        times, shift = (trips[p, TRIPS] - 1.0) * trips[p, OUTSIDE], loop[p, SHIFT] - inner
        if shift == 0:
            still += times
        elif shift == step:
            credited += times
        inner += loop[p, SHIFT]
    return still, credited


@kernel_part
def overlap_of(job: Job, tensor: int, level: int, c: int, tile: float) -> float:
    """Words that the next level's tile shares with itself one step of loop `c` further."""
    coefficient, inside, inner = job.tensors.coefficient, job.nest.inside, job.hardware.level[level, STOP]
    overlap = tile
    for r in range(coefficient.shape[1]):
        move = coefficient[tensor, r, job.nest.loop[c, DIMENSION]] * job.nest.loop[c, STEP]
        if move:
            side = 1
            for d in range(inside.shape[1]):
                side += coefficient[tensor, r, d] * (inside[inner, d] - 1)
            overlap = overlap / side * max(0, side - move)
    return overlap


@kernel_part
def pass_on(
    job: Job, n: int, tensor: int, level: int, c: int, tile: float, overlap: float, deliveries: float, rest: float
) -> float:
    """Take off the flow what neighbours pass on, `c` being the innermost loop of all; the words that no one passes on.

    The words that a neighbour holds are a shifted copy only where the step before moved as many of them.
    """
    nest, unrolled = job.nest, job.unrolled
    reach = 0  # the farthest that two children's tiles lie apart
    for u in range(unrolled.end[level], unrolled.end[level + 1]):
        step = job.tensors.by_dimension[tensor, unrolled.loop[u, DIMENSION], DISPLACEMENT] * unrolled.loop[u, STEP]
        reach += step * (unrolled.loop[u, UNROLLED] - 1)
    fresh, again = tile - overlap, nest.trips[c, TRIPS] - 1.0
    passed = again * fresh if overlap == 0.0 else 0.0  # words that arrive by a step of c
    inner = nest.loop[c, SHIFT]  # the steps of all loops inside p, undone when p advances
    for p in range(c - 1, -2, -1):
        shift, words = nest.loop[c, SHIFT], passed  # at last, what all steps of c bring
        if p >= 0:
            shift = nest.loop[p, SHIFT] - inner
            inner += nest.loop[p, SHIFT]
            same = shift == nest.loop[c, SHIFT]
            words = 0.0
            if shift != 0 and (same or overlap == 0.0):
                times = (nest.trips[p, TRIPS] - 1.0) * nest.trips[p, OUTSIDE]
                passed += times * again * fresh
                words = times * (fresh if same else tile)
        if words > 0.0 and abs(shift) <= reach:
            length = describe_children(job, n, tensor, level, shift, False)
            if not near(job.hardware, length, job.accounts.key):
                continue
            account = sharing(job.hardware, length, job.accounts)
            left, linked = float(job.accounts.pool[account]), float(job.accounts.pool[account + 1])
            if linked > 0.0 and left < deliveries:
                nest.level[level, CONTENT] -= words * (deliveries - left)
                nest.level[level, SERVED] -= words * linked
                nest.level[level, LINKED] += words * linked
                rest -= words
                if job.detailed:
                    deliver(tensor, level, words, account, unrolled, job.accounts)
    return rest


@kernel_part
def describe_children(job: Job, n: int, tensor: int, level: int, shift: int, plain: bool) -> int:
    """See `describe`."""
    unrolled, key = job.unrolled, job.accounts.key
    return describe(job.tensors, job.hardware, job.mappings, n, tensor, level, shift, plain, unrolled, key)


@compiled
def deliver(tensor: int, level: int, words: float, account: int, unrolled: Unrolled, accounts: Accounts) -> None:
    """Add words, each delivered as an account says, to what is delivered below a level."""
    if words == 0.0:
        return
    for number in range(accounts.pool[account + 2]):
        at = account + 3 + 2 * number
        multicast, scatter = accounts.pool[at], accounts.pool[at + 1]
        row = 0
        while row < unrolled.sizes[tensor, level] and (
            unrolled.delivered[tensor, level, row, MULTICAST] != multicast
            or unrolled.delivered[tensor, level, row, SCATTER] != scatter
        ):
            row += 1
        if row == unrolled.sizes[tensor, level]:
            unrolled.sizes[tensor, level] += 1
            unrolled.delivered[tensor, level, row, MULTICAST] = multicast
            unrolled.delivered[tensor, level, row, SCATTER] = scatter
            unrolled.words[tensor, level, row, ACCESSES] = unrolled.words[tensor, level, row, FAR] = 0.0
        unrolled.words[tensor, level, row, ACCESSES] += words * scatter
        unrolled.words[tensor, level, row, FAR] += words * accounts.pool_hops[at]
