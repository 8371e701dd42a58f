"""One mapping after another, compiled: legality, traffic, energy and cycles, with the rules of `account` and `nest`.

The scalar code here is plain Python that numba compiles: all in one piece and without reference counts, which would
take most of the time. Counts are float64, exact below 2**53 (the model refuses problems beyond).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

from tilewright.mapspace.batch import Bools, Floats, Ints, Positions

Function = TypeVar("Function", bound=Callable[..., object])

INVALID, PRICED, OPEN = 0, 1, 2
"""What the kernel says of a mapping; OPEN: products that are not exact, or deliveries in more sizes than there is room
for, which the scalar form works out."""
GROUPS = 64
"""Sizes of deliveries that there is room for."""


class Work(NamedTuple):
    """The problem. Shapes: T tensors, R ranks of the tensor with most, D dimensions."""

    sizes: Ints
    coefficients: Ints
    """[T, R, D]."""
    ranks: Ints
    """[T, R + 1]: terms ranks[t, r] to ranks[t, r + 1] - 1 are those of rank r."""
    terms: Ints
    """[T + 1]: terms terms[t] to terms[t + 1] - 1 are those of tensor t."""
    term_dims: Ints
    term_coefficients: Ints
    term_last: Bools
    """The last of its rank."""
    radix: Ints
    """[T, D] (see `Operand.radix`)."""
    capacity: Ints
    """[T]: above every number in that radix."""
    relevant: Bools
    """[T, D]."""
    sliding: Bools
    """[T]: tiles may overlap."""
    rank_of: Ints
    """[T, D]: the only rank that the dimension indexes; -1: none."""
    separable: Bools
    """[T]: no dimension indexes two ranks."""
    alone: Bools
    """[T, D]: no other dimension indexes the rank."""
    is_output: Bools
    words: Floats
    """[T]: of the whole tensor."""


class Plan(NamedTuple):
    """The hardware, as a skeleton uses it. Shapes: E entries, L storage levels, M memories, T tensors."""

    allowed: Bools
    """[E, T]: the entry's cluster has a memory for the tensor."""
    may_split: Bools
    """[E]: the last entry of its cluster."""
    first_alike: Ints
    """[E]: the first entry on the same cluster."""
    vertical: Bools
    shares: Bools
    """[E, T]: children of the entry may share a delivery."""
    start: Ints
    """[L]: the entry that holds; its splits are entries start..stop-1, its steps start+1..stop."""
    stop: Ints
    across: Ints
    """[L]: instances of the next level that exist along X, and `down` along Y, over the whole chip."""
    down: Ints
    width: Ints
    """[L]: physical fanout to the next level along X, and `height` along Y."""
    height: Ints
    memory: Ints
    """[L, T]: number of the memory that would hold the tensor; -1: none."""
    built: Floats
    """[M]: macros that exist."""
    usable: Floats
    read_energy: Floats
    write_energy: Floats
    update_energy: Floats
    block: Floats
    read_bandwidth: Floats
    write_bandwidth: Floats
    limited: Bools
    """[M]: it has a bandwidth."""
    compute_energy: float
    cycles_per_operation: float
    most_children: int


class Scratch(NamedTuple):
    """What the kernel works out of one mapping. Shapes: K loops at most, C children at most."""

    before: Ints
    trips: Floats
    """[E, 2, D]: temporal, spatial."""
    steps: Bools
    """[E]: the entry has temporal loops."""
    spreads: Floats
    """[E]: product of the entry's spatial trips."""
    tile_words: Floats
    """[L, T]."""
    need: Floats
    """[M]."""
    loop_dim: Ints
    """Temporal loops that turn, outermost first."""
    loop_trips: Floats
    loop_step: Ints
    step: Ints
    """What an iteration shifts the tensor at hand by, a number as `Operand.radix` makes them."""
    outside: Floats
    """[K + 1]: product of the trips of all loops outside."""
    loops: Ints
    """[L]: temporal loops up to and including a level's."""
    split_entry: Ints
    """Spatial loops, outermost first."""
    split_dim: Ints
    split_trips: Ints
    split_step: Ints
    splits: Ints
    """[L + 1]: a level's spatial loops are splits[l]..splits[l + 1] - 1."""
    children: Floats
    utilized: Floats
    """[L + 1]."""
    content: Floats
    served: Floats
    share: Floats
    peer: Floats
    part: Floats
    """[L] each."""
    links: Floats
    """[L]: words that neighbours pass on, per parent."""
    read_rate: Floats
    write_rate: Floats
    spread: Ints
    sides: Ints
    reach: Ints
    inner: Ints
    shift: Ints
    """[R] each, but `spread` [D]."""
    apart: Floats
    """[1]: words below the level at hand that no neighbour passes on."""
    enumerated: Bools
    """[1]: `offsets` and `sends` are those of the level and tensor at hand, `across` of which lie side by side."""
    across: Ints
    offsets: Ints
    """[C]: where the child's tile lies, a number as `Operand.radix` makes them; `sends`: what it is sent."""
    sends: Ints
    linked: Bools
    table: Ints
    """Hash table of at least 2 C places; a place is taken if its stamp is the current one."""
    stamps: Ints
    stamp: Ints


class Wires(NamedTuple):
    """Wires that cost energy: what they cost, and scratch space for who is sent what. None where they cost nothing."""

    hop_energy: Floats
    """[L]: pJ below a level, and so for routers and ingresses."""
    router_energy: Floats
    ingress_energy: Floats
    in_dram: Bools
    """[L]: the level is DRAM, which cannot add."""
    group: Ints
    """Of each place of the hash table, the number of the group whose sends it holds."""
    member: Ints
    """[C]: the child's group; -1: a neighbour serves it."""
    group_size: Ints
    """[C], as those that follow: children, hops, the farthest column, the lowest and the highest child in a column."""
    group_hops: Floats
    farthest: Ints
    lowest: Ints
    highest: Ints
    size_scatter: Ints
    """[C + 1]: groups of a size, and their hops."""
    size_hops: Floats
    rows: Ints
    """[L]: rows in use of the tables that follow."""
    multicast: Ints
    """[L, G]: children per group; groups; words that the parent handles; hops."""
    scatter: Ints
    accesses: Floats
    hops: Floats


_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}


def _compiled(function: Function) -> Function:
    return cast(Function, njit(nogil=True, **_OPTIONS)(function))


def _called(function: Function) -> Function:
    """For what is rare and long: inlined, it would be compiled many times over."""
    return cast(Function, njit(**_OPTIONS)(function))


def _inlined(function: Function) -> Function:
    return cast(Function, njit(forceinline=True, **_OPTIONS)(function))


@_compiled
def price_rows(
    work: Work,
    plan: Plan,
    s: Scratch,
    w: Wires | None,
    link_transfers: bool,
    temporal: Ints,
    spatial: Ints,
    order: Positions,
    placed: Positions,
    keep: Bools,
    unicast: Bools,
    verdict: Positions,
    energy: Floats,
    cycles: Floats,
) -> None:
    """Write the verdict on every mapping, and energy (pJ) and cycles of those that are priced."""
    for n in range(len(temporal)):
        if (
            _tiles(work, plan, temporal, spatial, n, s)
            and _fits_mesh(plan, s)
            and _fits_memories(work, plan, w, temporal, keep, n, s)
            and _keeps(plan, keep, n)
            and _orders(order, n)
            and (len(placed) == 0 or _orders(placed, n))
        ):
            _nest(plan, temporal, spatial, order, placed, n, s)
            verdict[n] = _account(work, plan, w, link_transfers, temporal, keep, unicast, n, s, energy, cycles)


@_inlined
def _tiles(work: Work, plan: Plan, temporal: Ints, spatial: Ints, n: int, s: Scratch) -> bool:
    """Trips of every loop; False if tiles do not nest, do not divide, or an entry may not do what it does."""
    dims = s.trips.shape[2]
    for d in range(dims):
        s.before[d] = work.sizes[d]
    for e in range(s.trips.shape[0]):
        s.steps[e] = _differs(s.before, temporal, n, e)
        if s.steps[e] and (e == 0 or not _divide(s.before, temporal, n, e, s.trips, 0)):
            return False
        s.spreads[e] = 1.0
        if _differs(s.before, spatial, n, e):
            if not plan.may_split[e] or not _divide(s.before, spatial, n, e, s.trips, 1):
                return False
            for d in range(dims):
                s.spreads[e] *= s.trips[e, 1, d]
    for d in range(dims):
        if s.before[d] != 1:
            return False
    return True


@_inlined
def _differs(before: Ints, tiles: Ints, n: int, e: int) -> bool:
    different = False
    for d in range(len(before)):
        different |= before[d] != tiles[n, e, d]
    return different


@_inlined
def _divide(before: Ints, tiles: Ints, n: int, e: int, trips: Floats, part: int) -> bool:
    """Cut every tile `before` into `tiles`, which take its place; False if one does not divide."""
    good = True
    for d in range(len(before)):
        ratio = before[d] / tiles[n, e, d]
        good &= (tiles[n, e, d] >= 1) & (ratio >= 1.0) & (ratio == np.floor(ratio))
        trips[e, part, d] = ratio
        before[d] = tiles[n, e, d]
    return good


@_inlined
def _fits_mesh(plan: Plan, s: Scratch) -> bool:
    """Timeloop's check: instances in use, in total and along each axis, at every level and at compute."""
    x = y = 1.0
    s.utilized[0] = 1.0
    for level in range(len(plan.start)):
        children = 1.0
        for e in range(plan.start[level], plan.stop[level]):
            children *= s.spreads[e]
            if plan.vertical[e]:
                y *= s.spreads[e]
            else:
                x *= s.spreads[e]
        if x > plan.across[level] or y > plan.down[level]:
            return False
        s.children[level] = children
        s.utilized[level + 1] = s.utilized[level] * children
    return True


@_inlined
def _words(work: Work, tensor: int, tiles: Ints, n: int, e: int) -> float:
    """Volume of the bounding box of a tile."""
    volume = side = 1
    for term in range(work.terms[tensor], work.terms[tensor + 1]):
        side += work.term_coefficients[term] * (tiles[n, e, work.term_dims[term]] - 1)
        if work.term_last[term]:
            volume *= side
            side = 1
    return float(volume)


@_inlined
def _fits_memories(work: Work, plan: Plan, w: Wires | None, temporal: Ints, keep: Bools, n: int, s: Scratch) -> bool:
    s.need[:] = 0.0
    for level in range(len(plan.start)):
        e = plan.start[level]
        for tensor in range(len(work.words)):
            kept = keep[n, e, tensor]
            if not (kept or work.sliding[tensor] or work.is_output[tensor] or w is not None):
                continue  # nobody will ask
            words = _words(work, tensor, temporal, n, e)
            s.tile_words[level, tensor] = words
            memory = plan.memory[level, tensor]
            if memory >= 0 and kept:
                s.need[memory] += words
                if s.need[memory] > plan.usable[memory]:
                    return False
    return True


@_inlined
def _keeps(plan: Plan, keep: Bools, n: int) -> bool:
    entries, tensors = keep.shape[1], keep.shape[2]
    for tensor in range(tensors):
        if not keep[n, 0, tensor]:
            return False
        for e in range(entries):
            if keep[n, e, tensor]:
                if not plan.allowed[e, tensor]:
                    return False
                for other in range(plan.first_alike[e], e):
                    if keep[n, other, tensor]:
                        return False
    return True


@_inlined
def _orders(order: Positions, n: int) -> bool:
    """Whether every entry's order names every dimension once."""
    entries, dims = order.shape[1], order.shape[2]
    all_named = (1 << dims) - 1
    good = True
    for e in range(entries):
        named = 0
        for position in range(dims):
            named |= 1 << (order[n, e, position] & 63)  # beyond the dimensions, and so never equal, if out of range
        good &= named == all_named
    return good


@_inlined
def _nest(plan: Plan, temporal: Ints, spatial: Ints, order: Positions, placed: Positions, n: int, s: Scratch) -> None:
    """Lay out the loops that turn, by level."""
    entries, dims = s.trips.shape[0], s.trips.shape[2]
    loop = split = 0
    outside = 1.0
    for level in range(len(plan.start)):
        for e in range(plan.start[level], min(plan.stop[level] + 1, entries)):
            if e > plan.start[level] and s.steps[e]:
                for position in range(dims):
                    d = order[n, e, position]
                    s.loop_dim[loop] = d
                    s.loop_trips[loop] = s.trips[e, 0, d]
                    s.loop_step[loop] = temporal[n, e, d]
                    outside *= s.trips[e, 0, d]
                    s.outside[loop + 1] = outside
                    loop += s.trips[e, 0, d] > 1.0
            if e < plan.stop[level] and s.spreads[e] > 1.0:
                for position in range(dims):
                    d = placed[n, e, position] if len(placed) else position
                    s.split_entry[split] = e
                    s.split_dim[split] = d
                    s.split_trips[split] = s.trips[e, 1, d]
                    s.split_step[split] = spatial[n, e, d]
                    split += s.trips[e, 1, d] > 1.0
        s.loops[level] = loop
        s.splits[level + 1] = split


@_inlined
def _account(
    work: Work,
    plan: Plan,
    w: Wires | None,
    link_transfers: bool,
    temporal: Ints,
    keep: Bools,
    unicast: Bools,
    n: int,
    s: Scratch,
    energy: Floats,
    cycles: Floats,
) -> int:
    """Energy and cycles of a legal mapping (see `account`)."""
    levels = len(plan.start)
    compute_cycles = s.outside[s.loops[levels - 1]] * plan.cycles_per_operation
    total = plan.compute_energy
    s.read_rate[:] = 0.0
    s.write_rate[:] = 0.0
    for tensor in range(len(work.words)):
        output = work.is_output[tensor]
        if output and not _partitions(work, plan, temporal, tensor, n, s):
            return OPEN
        if not _flows(work, plan, w, link_transfers, temporal, keep, unicast, tensor, n, s):
            return OPEN
        for level in range(levels - 1, 0, -1):  # fold bypassed levels outward
            if not keep[n, plan.start[level], tensor]:
                factor = s.content[level] * s.children[level - 1] / s.served[level - 1]
                s.content[level - 1] *= factor
                s.links[level - 1] = 0.0
                if w is not None:
                    for row in range(w.rows[level - 1]):
                        w.accesses[level - 1, row] *= factor
        if w is not None:
            for level in range(levels):
                kept = keep[n, plan.start[level], tensor]
                total += _wire_energy(work, w, tensor, kept, level, s) * s.utilized[level]
        for level in range(levels):
            if not keep[n, plan.start[level], tensor]:
                continue
            memory = plan.memory[level, tensor]
            content, peer = s.content[level], s.peer[level]
            fills = updates = 0.0
            if output:
                reads = max(0.0, np.floor(content + peer - s.part[level] + 0.5))
                if level:
                    fills = max(0.0, np.floor(s.share[level] + peer - s.part[level] + 0.5))
                updates = np.floor(content + 0.5)
            else:
                reads = np.floor(content + peer + 0.5)
                if level:
                    fills = np.floor(s.share[level] + peer)
            if plan.limited[memory]:
                s.read_rate[memory] += reads / compute_cycles
                s.write_rate[memory] += (fills + updates) / compute_cycles
            block = plan.block[memory]
            if block > 1:
                reads, fills, updates = np.ceil(reads / block), np.ceil(fills / block), np.ceil(updates / block)
            total += (
                reads * plan.read_energy[memory]
                + fills * plan.write_energy[memory]
                + updates * plan.update_energy[memory]
            ) * min(s.utilized[level], plan.built[memory])
    slowest = compute_cycles
    for memory in range(len(s.read_rate)):
        slowdown = 1.0
        if s.read_rate[memory] > 0.0:
            slowdown = min(slowdown, plan.read_bandwidth[memory] / s.read_rate[memory])
        if s.write_rate[memory] > 0.0:
            slowdown = min(slowdown, plan.write_bandwidth[memory] / s.write_rate[memory])
        if slowdown < 1.0:
            slowest = max(slowest, np.ceil(compute_cycles / slowdown))
    energy[n] = total
    cycles[n] = slowest
    return PRICED


@_inlined
def _partitions(work: Work, plan: Plan, temporal: Ints, tensor: int, n: int, s: Scratch) -> bool:
    """The part of the tensor, in words, that one instance of each level answers for; False: not exact."""
    s.part[0] = work.words[tensor]
    for level in range(len(plan.start) - 1):
        s.part[level + 1] = s.part[level]
        first, last = s.splits[level], s.splits[level + 1]
        touched = False
        for split in range(first, last):
            touched |= work.relevant[tensor, s.split_dim[split]]
        if not touched:
            continue
        for d in range(s.spread.shape[2]):
            s.spread[0, 0, d] = temporal[n, plan.start[level + 1], d]
        for split in range(first, last):
            s.spread[0, 0, s.split_dim[split]] *= s.split_trips[split]
        tile, union = s.tile_words[level + 1, tensor], _words(work, tensor, s.spread, 0, 0)
        if s.part[level] * tile >= 2.0**53:
            return False
        s.part[level + 1] = np.floor(s.part[level] * tile / union)
    return True


@_inlined
def _flows(
    work: Work,
    plan: Plan,
    w: Wires | None,
    link_transfers: bool,
    temporal: Ints,
    keep: Bools,
    unicast: Bools,
    tensor: int,
    n: int,
    s: Scratch,
) -> bool:
    """Movement of a tensor between every level and the next, before bypassing (see `nest.traffic`); False: too many
    sizes of deliveries."""
    innermost = len(plan.start) - 1
    c, loop = -1, 0  # the innermost loop so far that moves the tensor
    turned, still, credited = -1, 0.0, 0.0
    s.peer[0] = 0.0
    for level in range(innermost + 1):
        children, end = s.children[level], s.loops[level]
        s.links[level] = 0.0
        s.enumerated[0] = False
        if w is not None:
            w.rows[level] = 0
        while loop < end:
            s.step[loop] = work.radix[tensor, s.loop_dim[loop]] * s.loop_step[loop]
            c = loop if work.relevant[tensor, s.loop_dim[loop]] else c
            loop += 1
        deliveries = _deliveries(work, plan, unicast, tensor, level, n, s) if children > 1.0 else 1.0
        if level == innermost:  # compute has no register: every operation fetches its words
            s.content[level] = s.outside[end] * deliveries
            s.served[level] = s.outside[end] * children
            if w is not None:
                return _wire(work, plan, w, unicast, tensor, level, s.outside[end], n, s)
            return True
        words = 1.0  # below a level that bypasses the tensor only the ratio of the two counts
        if work.sliding[tensor] or keep[n, plan.start[level + 1], tensor] or w is not None:
            # every step of loop c, and every restart of it, moves a whole tile
            words = s.tile_words[level + 1, tensor] * s.outside[c + 1]
        links = overlap = 0.0
        slides = c >= 0 and work.sliding[tensor] and not work.alone[tensor, s.loop_dim[c]]
        if slides:
            if turned != c:
                turned = c
                still, credited = _turns(c, s)
            overlap = _overlap(work, plan, temporal, tensor, level, c, n, s)
            words -= s.tile_words[level + 1, tensor] * still + overlap * credited
        s.content[level] = words * deliveries
        s.served[level] = words * children
        s.apart[0] = words
        if slides and link_transfers and children > 1.0 and c == end - 1 and _reach(work, tensor, level, s):
            links = _pass_on(work, plan, w, unicast, tensor, level, c, overlap, deliveries, n, s)
        if w is not None:
            if not _wire(work, plan, w, unicast, tensor, level, s.apart[0], n, s):
                return False
        s.links[level] = links
        s.share[level + 1] = s.served[level] / children
        s.peer[level + 1] = links / s.utilized[level + 1]
    return True


@_inlined
def _turns(c: int, s: Scratch) -> tuple[float, float]:
    """How often, `c` being the innermost loop that moves the tensor at hand, its tile stays where it is, and how often
    its overlap with the tile before is credited: at every step of c, and when an outer loop shifts it by the same."""
    still, credited = 0.0, (s.loop_trips[c] - 1.0) * s.outside[c]
    inner = s.step[c]  # the steps of all loops inside p, undone when p advances
    for p in range(c - 1, -1, -1):
        times = (s.loop_trips[p] - 1.0) * s.outside[p]
        if s.step[p] == inner:
            still += times
        elif s.step[p] - inner == s.step[c]:
            credited += times
        inner += s.step[p]
    return still, credited


@_called
def _pass_on(
    work: Work,
    plan: Plan,
    w: Wires | None,
    unicast: Bools,
    tensor: int,
    level: int,
    c: int,
    overlap: float,
    deliveries: float,
    n: int,
    s: Scratch,
) -> float:
    """Take off what neighbours pass on, `c` being the innermost loop of all (see `nest.shifts`); returns the words."""
    fresh = s.tile_words[level + 1, tensor] - overlap
    again = s.loop_trips[c] - 1.0
    passed = again * fresh if overlap == 0.0 else 0.0  # words that arrive by a step of c
    links = 0.0
    s.inner[:] = 0
    inner = 0  # the steps of all loops inside p, undone when p advances
    for p in range(c, -1, -1):
        shift = s.step[p] - inner
        inner += s.step[p]
        for rank in range(len(s.inner)):
            step = work.coefficients[tensor, rank, s.loop_dim[p]] * s.loop_step[p]
            s.shift[rank] = step - s.inner[rank]
            s.inner[rank] += step
        credited = shift == s.step[c]
        if p < c and shift != 0 and (credited or overlap == 0.0):
            times = (s.loop_trips[p] - 1.0) * s.outside[p]
            passed += times * again * fresh
            words = times * (fresh if credited else s.tile_words[level + 1, tensor])
            links += _pass_words(work, plan, w, unicast, tensor, level, words, shift, deliveries, n, s)
    for rank in range(len(s.shift)):
        s.shift[rank] = work.coefficients[tensor, rank, s.loop_dim[c]] * s.loop_step[c]
    return links + _pass_words(work, plan, w, unicast, tensor, level, passed, s.step[c], deliveries, n, s)


@_inlined
def _pass_words(
    work: Work,
    plan: Plan,
    w: Wires | None,
    unicast: Bools,
    tensor: int,
    level: int,
    words: float,
    shift: int,
    deliveries: float,
    n: int,
    s: Scratch,
) -> float:
    """The same for words that arrive by one shift."""
    if words == 0.0 or not _within(s):
        return 0.0
    left, linked = _linked(work, plan, unicast, tensor, level, shift, n, s)
    if left >= deliveries:
        return 0.0
    s.content[level] -= words * (deliveries - left)
    s.served[level] -= words * linked
    s.apart[0] -= words
    if w is not None:
        if not _deliver(plan, w, level, words, s):
            s.apart[0] = np.inf
    return words * linked


@_inlined
def _overlap(work: Work, plan: Plan, temporal: Ints, tensor: int, level: int, c: int, n: int, s: Scratch) -> float:
    """Words that the next level's tile shares with itself one step of loop `c` further."""
    overlap = s.tile_words[level + 1, tensor]
    for rank in range(work.ranks.shape[1] - 1):
        move = work.coefficients[tensor, rank, s.loop_dim[c]] * s.loop_step[c]
        if move:
            side = 1
            for term in range(work.ranks[tensor, rank], work.ranks[tensor, rank + 1]):
                extent = temporal[n, plan.start[level + 1], work.term_dims[term]]
                side += work.term_coefficients[term] * (extent - 1)
            if move >= side:
                return 0.0
            overlap = overlap / side * (side - move)
    return float(overlap)


# -- sharing between children --------------------------------------------------------------------------------------


@_inlined
def _reach(work: Work, tensor: int, level: int, s: Scratch) -> bool:
    """The farthest that two children's tiles lie apart, per rank. False: no step in time leads from one to another,
    for along a coordinate of one dimension every step in time is longer than all children side by side."""
    s.reach[:] = 0
    sliding = False
    for split in range(s.splits[level], s.splits[level + 1]):
        dim = s.split_dim[split]
        sliding |= work.relevant[tensor, dim] and not (work.alone[tensor, dim] and work.separable[tensor])
        for rank in range(work.coefficients.shape[1]):
            c = work.coefficients[tensor, rank, dim]
            s.reach[rank] += c * (s.split_trips[split] - 1) * s.split_step[split]
    return sliding


@_inlined
def _within(s: Scratch) -> bool:
    """Whether some child may lie one shift from another."""
    for rank in range(len(s.shift)):
        if abs(s.shift[rank]) > s.reach[rank]:
            return False
    return True


@_inlined
def _apart(plan: Plan, unicast: Bools, tensor: int, split: int, n: int, s: Scratch) -> bool:
    """Whether children that differ in this loop are each served separately."""
    e = s.split_entry[split]
    return not plan.shares[e, tensor] or (len(unicast) > 0 and unicast[n, e, tensor])


@_inlined
def _deliveries(work: Work, plan: Plan, unicast: Bools, tensor: int, level: int, n: int, s: Scratch) -> float:
    """Different tiles among the children of one parent: deliveries per word and visit.

    Two progressions of m and n steps a and b, divided by their common divisor, collide (m - b) x (n - a) times; what
    is more tangled is enumerated.
    """
    different = 1.0
    first, last = s.splits[level], s.splits[level + 1]
    for split in range(first, last):
        d = s.split_dim[split]
        trips = s.split_trips[split]
        if _apart(plan, unicast, tensor, split, n, s):
            different *= trips
        elif work.relevant[tensor, d]:
            if not work.separable[tensor]:
                return _enumerated(work, plan, unicast, tensor, level, n, s)
            different *= trips
            if work.alone[tensor, d]:
                continue
            others = 0
            for other in range(first, last):
                o = s.split_dim[other]
                if (
                    other != split
                    and work.rank_of[tensor, o] == work.rank_of[tensor, d]
                    and not _apart(plan, unicast, tensor, other, n, s)
                ):
                    others += 1
                    if other < split:
                        different = _merged(work, tensor, split, other, different, s)
            if others > 1:
                return _enumerated(work, plan, unicast, tensor, level, n, s)
    return different


@_inlined
def _merged(work: Work, tensor: int, split: int, other: int, different: float, s: Scratch) -> float:
    """Take the collisions of two progressions off the product of their trips."""
    m, k = s.split_trips[split], s.split_trips[other]
    rank = work.rank_of[tensor, s.split_dim[split]]
    a = work.coefficients[tensor, rank, s.split_dim[split]] * s.split_step[split]
    b = work.coefficients[tensor, rank, s.split_dim[other]] * s.split_step[other]
    common, rest = a, b
    while rest:
        common, rest = rest, common % rest
    collisions = max(0, m - b // common) * max(0, k - a // common)
    return float(different / (m * k) * (m * k - collisions))


@_called
def _enumerated(work: Work, plan: Plan, unicast: Bools, tensor: int, level: int, n: int, s: Scratch) -> float:
    """Deliveries to all children, one by one."""
    _children(work, plan, unicast, tensor, level, n, s)
    s.linked[: int(s.children[level])] = False
    return _distinct(int(s.children[level]), s)


@_inlined
def _linked(
    work: Work, plan: Plan, unicast: Bools, tensor: int, level: int, shift: int, n: int, s: Scratch
) -> tuple[float, float]:
    """(deliveries left, children that a 4-neighbour serves) when tiles move by `shift` (see `array.Array`)."""
    _children(work, plan, unicast, tensor, level, n, s)
    children = int(s.children[level])
    width = max(plan.width[level], s.across[0])
    linked = 0
    for child in range(children):
        x, wanted = child % width, s.offsets[child] + shift
        s.linked[child] = (
            (x > 0 and s.offsets[child - 1] == wanted)
            or (x < width - 1 and child + 1 < children and s.offsets[child + 1] == wanted)
            or (child >= width and s.offsets[child - width] == wanted)
            or (child + width < children and s.offsets[child + width] == wanted)
        )
        linked += s.linked[child]
    if linked == 0:
        return np.inf, 0.0
    return _distinct(children, s), float(linked)


@_inlined
def _distinct(children: int, s: Scratch) -> float:
    """Different sends among the children that no neighbour serves."""
    s.stamp[0] += 1
    mask = len(s.table) - 1
    distinct = 0.0
    for child in range(children):
        if s.linked[child]:
            continue
        place = _place(s.sends[child], mask, s)
        if s.stamps[place] != s.stamp[0]:
            s.stamps[place] = s.stamp[0]
            s.table[place] = s.sends[child]
            distinct += 1.0
    return distinct


@_inlined
def _place(send: int, mask: int, s: Scratch) -> int:
    """Where the hash table has a number, or has room for it."""
    place = (send * 0x9E3779B97F4A7C1) >> 20 & mask
    while s.stamps[place] == s.stamp[0] and s.table[place] != send:
        place = (place + 1) & mask
    return place


@_inlined
def _children(work: Work, plan: Plan, unicast: Bools, tensor: int, level: int, n: int, s: Scratch) -> None:
    """Displacement of every child's tile, and a number equal for children that one delivery serves; row-major order,
    loops along Y outside those along X."""
    if s.enumerated[0]:
        return
    s.enumerated[0] = True
    children = across = 1
    place = work.capacity[tensor]
    s.offsets[0] = s.sends[0] = 0
    for vertical in (False, True):  # from the fastest loop to the slowest
        for split in range(s.splits[level + 1] - 1, s.splits[level] - 1, -1):
            if plan.vertical[s.split_entry[split]] != vertical:
                continue
            trips = s.split_trips[split]
            move = send = work.radix[tensor, s.split_dim[split]] * s.split_step[split]
            if _apart(plan, unicast, tensor, split, n, s):
                send += place
                place *= trips
            for index in range(1, trips):
                for child in range(children):
                    s.offsets[index * children + child] = s.offsets[child] + index * move
                    s.sends[index * children + child] = s.sends[child] + index * send
            children *= trips
            if not vertical:
                across = children
    s.across[0] = across


# -- wires that cost energy ----------------------------------------------------------------------------------------


@_called
def _wire(
    work: Work, plan: Plan, w: Wires, unicast: Bools, tensor: int, level: int, words: float, n: int, s: Scratch
) -> bool:
    """Enter words that no neighbour passes on into the level's tables; False: they are full."""
    if words == np.inf:
        return False
    if s.children[level] == 1.0:
        return _enter(level, 1, 1, words, 0.0, w)
    _children(work, plan, unicast, tensor, level, n, s)
    s.linked[: int(s.children[level])] = False
    return _deliver(plan, w, level, words, s)


@_called
def _deliver(plan: Plan, w: Wires, level: int, words: float, s: Scratch) -> bool:
    """The same for words that go to the children that no neighbour serves, group by group (see `Array.sharing`)."""
    children = int(s.children[level])
    groups = _groups(children, w, s)
    width = max(plan.width[level], s.across[0])
    middle = (max(plan.height[level], children // s.across[0]) - 1) / 2
    for x in range(min(width, children)):  # to the farthest column, and in every column from the middle to its ends
        for child in range(x, children, width):
            group = w.member[child]
            if group >= 0:
                w.lowest[group] = -1
        for child in range(x, children, width):
            group = w.member[child]
            if group >= 0:
                w.lowest[group] = child // width if w.lowest[group] < 0 else w.lowest[group]
                w.highest[group] = child // width
        for child in range(x, children, width):
            group = w.member[child]
            if group >= 0 and w.highest[group] == child // width:
                rise = max(0.0, middle - w.lowest[group]) + max(0.0, w.highest[group] - middle)
                w.farthest[group] = x
                w.group_hops[group] += rise
    for group in range(groups):
        w.size_scatter[w.group_size[group]] += 1
        w.size_hops[w.group_size[group]] += w.group_hops[group] + w.farthest[group]
    fits = True
    for group in range(groups):
        size = w.group_size[group]
        if w.size_scatter[size]:
            fits &= _enter(level, size, w.size_scatter[size], words, w.size_hops[size], w)
            w.size_scatter[size] = 0
            w.size_hops[size] = 0.0
    return fits


@_inlined
def _groups(children: int, w: Wires, s: Scratch) -> int:
    """Number the groups of children that one delivery serves, and count their members."""
    s.stamp[0] += 1
    mask = len(s.table) - 1
    groups = 0
    for child in range(children):
        w.member[child] = -1
        if s.linked[child]:
            continue
        place = _place(s.sends[child], mask, s)
        if s.stamps[place] != s.stamp[0]:
            s.stamps[place] = s.stamp[0]
            s.table[place] = s.sends[child]
            w.group[place] = groups
            w.group_size[groups] = 0
            w.group_hops[groups] = 0.0
            groups += 1
        w.member[child] = w.group[place]
        w.group_size[w.group[place]] += 1
    return groups


@_inlined
def _enter(level: int, multicast: int, scatter: int, words: float, hops: float, w: Wires) -> bool:
    """Add words to the row of the level's tables that has these sizes; False: there is no room for another row."""
    if words == 0.0:
        return True
    row = 0
    while row < w.rows[level] and (w.multicast[level, row] != multicast or w.scatter[level, row] != scatter):
        row += 1
    if row == GROUPS:
        return False
    if row == w.rows[level]:
        w.rows[level] += 1
        w.multicast[level, row] = multicast
        w.scatter[level, row] = scatter
        w.accesses[level, row] = w.hops[level, row] = 0.0
    w.accesses[level, row] += words * scatter
    w.hops[level, row] += words * hops
    return True


@_called
def _wire_energy(work: Work, w: Wires, tensor: int, kept: bool, level: int, s: Scratch) -> float:
    """pJ of the wires below one instance of a level, for one tensor (see `account`)."""
    energy = s.links[level] * (w.hop_energy[level] + 2 * w.router_energy[level])
    for row in range(w.rows[level]):
        accesses = np.floor(w.accesses[level, row] + 0.5)
        if work.is_output[tensor] and w.in_dram[level]:  # partial sums go down and come back
            accesses = max(accesses, 2 * accesses - s.part[level]) if kept else 0.0
        if accesses > 0.0:
            hops = w.hops[level, row]
            energy += hops * w.hop_energy[level] + accesses * w.ingress_energy[level]
            energy += np.trunc((1 + hops // accesses) * accesses) * w.router_energy[level]
    return float(energy)
