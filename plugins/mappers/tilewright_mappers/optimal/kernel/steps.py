"""One step of the walk: a loop in time or in space, or an entry that keeps, and what it makes of a state."""

from __future__ import annotations

from tilewright.compiled import kernel_call, kernel_part
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright_mappers.optimal.kernel.links import distinct, pass_on, take_least
from tilewright_mappers.optimal.kernel.state import (
    CODE,
    CREDIT,
    CYCLES,
    EACH,
    FIRST,
    FRESH,
    INEXACT,
    LEAK,
    LEAST_OWED,
    LEAST_PENDING,
    LINKED,
    OVERLAP,
    OWED,
    PENDING,
    SETTLED,
    STATUS,
    TILES,
    USED,
    extent,
    set_status,
    status_of,
    words,
)
from tilewright_mappers.optimal.kernel.tables import (
    ALWAYS,
    DEAD,
    NEVER,
    SLIDING,
    STILL,
    Keeping,
    Layout,
    Level,
    Shape,
    Work,
)


@kernel_call
def forget_unrolling(shape: Shape, layout: Layout, numbers: Floats, integers: Ints, i: int) -> None:
    """The level's fanout is behind."""
    integers[i, STATUS] &= ~FRESH
    for k in range(layout.conf, layout.keys):
        integers[i, k] = 1
    integers[i, layout.flag] &= (1 << LINKED) - 1
    for t in range(len(shape.output)):
        at = FIRST + EACH * t
        numbers[i, at + LEAST_PENDING], numbers[i, at + LEAST_OWED] = numbers[i, at + PENDING], numbers[i, at + OWED]


@kernel_part
def advance(shape: Shape, layout: Layout, integers: Ints, i: int, d: int, j: int) -> None:
    """The tile has grown."""
    old = integers[i, layout.tile + d]
    new = shape.after[d, old, j]
    integers[i, layout.tile + d] = new
    integers[i, CODE] += (new - old) * shape.stride[d]


@kernel_call
def step(
    shape: Shape,
    layout: Layout,
    level: Level,
    shared: Bools,
    numbers: Floats,
    integers: Ints,
    i: int,
    d: int,
    j: int,
    work: Work,
) -> None:
    """A loop in time over d, of as many trips as divisor number j says."""
    n, ports = float(shape.divisor[d, j]), layout.pending - layout.port
    e = extent(shape, layout, integers, i, d)
    fresh = (integers[i, STATUS] & FRESH) != 0
    numbers[i, SETTLED] *= n
    numbers[i, CYCLES] *= n
    for port in range(ports):
        numbers[i, layout.port + port] *= n
    for t in range(len(shape.output)):
        if shape.odd[t]:
            continue
        at, status, moved, rank = FIRST + EACH * t, status_of(integers, i, t), shape.moves[t, d], shape.rank[t, d]
        if fresh and rank >= 0 and integers[i, layout.flag] >> (LINKED + t) & 1:
            if pass_on(shape, layout, level, shared, numbers, integers, i, t, d, shape.divisor[d, j], work):
                integers[i, layout.flag] |= INEXACT
        if shape.output[t] and moved and not shape.vague[t]:
            numbers[i, at + CREDIT] *= n
            for port in range(ports):
                numbers[i, layout.credit + t * ports + port] *= n
        if status == DEAD:
            numbers[i, at + OWED] *= n
            continue
        times, shift = n, e * shape.coefficient[t, d]
        if status == STILL and not moved:
            times = 1.0
        elif status == STILL and rank >= 0:
            side = numbers[i, layout.side + rank]
            overlap = max(0.0, side - shift) / side
            times = 1.0 + (n - 1.0) * (1.0 - overlap)
            numbers[i, at + TILES], numbers[i, at + OVERLAP] = times, overlap
            integers[i, layout.usual + t] = integers[i, layout.inner + t] = shift
            integers[i, layout.window + t] = rank
            status = SLIDING
        elif status == STILL:
            status = DEAD
        elif moved and rank == integers[i, layout.window + t]:
            overlap, rho = 0.0, numbers[i, at + TILES]
            if shift == integers[i, layout.inner + t]:
                overlap = 1.0
            elif shift == integers[i, layout.inner + t] + integers[i, layout.usual + t]:
                overlap = numbers[i, at + OVERLAP]
            times = n - (n - 1.0) * overlap / rho
            numbers[i, at + TILES] = rho * times
            integers[i, layout.inner + t] += shift
        elif moved:
            status = DEAD
        else:
            numbers[i, at + TILES] *= n
        numbers[i, at + PENDING] *= times
        numbers[i, at + OWED] *= times
        for port in range(ports):
            numbers[i, layout.pending + t * ports + port] *= times
        set_status(integers, i, t, status)
        if status == DEAD:
            settle(layout, numbers, integers, i, t, 0.0)
    advance(shape, layout, integers, i, d, j)
    for t in range(len(shape.output)):
        if status_of(integers, i, t) == SLIDING and not _may_return(shape, layout, integers, i, t):
            settle(layout, numbers, integers, i, t, 0.0)
    forget_unrolling(shape, layout, numbers, integers, i)


@kernel_call
def settle(layout: Layout, numbers: Floats, integers: Ints, i: int, t: int, spared: float) -> None:
    """Every further loop in time brings a tensor's tiles again, but a share `spared`."""
    at, ports = FIRST + EACH * t, layout.pending - layout.port
    set_status(integers, i, t, DEAD)
    numbers[i, SETTLED] += numbers[i, at + PENDING] * (1.0 - spared)
    numbers[i, at + PENDING] = numbers[i, at + LEAST_PENDING] = numbers[i, at + TILES] = numbers[i, at + OVERLAP] = 0.0
    integers[i, layout.usual + t] = integers[i, layout.inner + t] = integers[i, layout.window + t] = 0
    for port in range(ports):
        numbers[i, layout.port + port] += numbers[i, layout.pending + t * ports + port] * (1.0 - spared)
        numbers[i, layout.pending + t * ports + port] = 0.0


@kernel_call
def _may_return(shape: Shape, layout: Layout, integers: Ints, i: int, t: int) -> bool:
    """Whether a loop further out may move a sliding tile by no more than loops inside have, as Timeloop sees it."""
    left, near = 0, integers[i, layout.inner + t] + integers[i, layout.usual + t]
    able = False
    for d in range(len(shape.sizes)):
        if shape.rank[t, d] == integers[i, layout.window + t]:
            e = extent(shape, layout, integers, i, d)
            if e < shape.sizes[d]:
                left += 1
                able |= e * shape.coefficient[t, d] <= near
    return bool(able or left > 1)


@kernel_call
def unroll(
    shape: Shape,
    layout: Layout,
    level: Level,
    shared: Bools,
    numbers: Floats,
    integers: Ints,
    i: int,
    d: int,
    j: int,
    k: int,
    links: bool,
    work: Work,
) -> None:
    """An unrolling of d over slot number k of the level, of as many trips as divisor number j says."""
    n, dims, ports = float(shape.divisor[d, j]), len(shape.sizes), layout.pending - layout.port
    for t in range(len(shape.output)):
        if not shape.odd[t] and shape.rank[t, d] >= 0 and shared[k, t]:
            numbers[i, FIRST + EACH * t + OWED] /= distinct(shape, layout, level, shared, integers, i, t, d, work)
    integers[i, USED + k] *= shape.divisor[d, j]
    integers[i, layout.conf + k * dims + d] = shape.divisor[d, j]
    integers[i, STATUS] |= FRESH
    for t in range(len(shape.output)):
        if shape.vague[t]:  # a part of the tensor is to it as a tile is to what all sub-clusters have
            share = words(shape, layout, integers, i, t)
            numbers[i, FIRST + EACH * t + CREDIT] *= share
            for port in range(ports):
                numbers[i, layout.credit + t * ports + port] *= share
    advance(shape, layout, integers, i, d, j)
    for t in range(len(shape.output)):
        if shape.vague[t]:
            share = words(shape, layout, integers, i, t)
            numbers[i, FIRST + EACH * t + CREDIT] /= share
            for port in range(ports):
                numbers[i, layout.credit + t * ports + port] /= share
    numbers[i, SETTLED] *= n
    numbers[i, LEAK] *= n
    for t in range(len(shape.output)):
        if shape.odd[t]:
            continue
        at = FIRST + EACH * t
        numbers[i, at + PENDING] *= n
        numbers[i, at + CREDIT] *= n
        if shape.rank[t, d] >= 0 and shared[k, t]:
            numbers[i, at + OWED] *= distinct(shape, layout, level, shared, integers, i, t, d, work)
        elif shape.moves[t, d] or not shared[k, t]:
            numbers[i, at + OWED] *= n
        if links and shape.rank[t, d] >= 0:
            integers[i, layout.flag] |= 1 << (LINKED + t)
        if not integers[i, layout.flag] >> (LINKED + t) & 1:
            numbers[i, at + LEAST_PENDING], numbers[i, at + LEAST_OWED] = (
                numbers[i, at + PENDING],
                numbers[i, at + OWED],
            )
            continue
        moved = shape.moves[t, d] and shape.rank[t, d] < 0
        numbers[i, at + LEAST_OWED] *= n if moved else 1.0
        numbers[i, at + LEAST_PENDING] *= n if moved else 1.0
        if level.kept[t] == NEVER:
            numbers[i, at + LEAST_PENDING] = numbers[i, at + PENDING]
        elif (
            level.kept[t] == ALWAYS and level.alone
        ):  # all tiles arrive, one word less where that is rounded, of two at least
            count = 1.0
            for o in range(layout.conf, layout.keys):
                count *= integers[i, o]
            least = numbers[i, at + PENDING] - 0.5 * count * level.fill_pj[t]
            numbers[i, at + LEAST_PENDING] = max(numbers[i, at + LEAST_PENDING], least)


@kernel_call
def end_units(shape: Shape, layout: Layout, level: Level, numbers: Floats, integers: Ints, i: int) -> None:
    """The innermost fanout is behind: compute units may have from one another what they share, as long as it stays."""
    dims = len(shape.sizes)
    for t in range(len(shape.output)):
        at, same, window = FIRST + EACH * t, False, False
        for k in range(len(level.slot)):
            for d in range(dims):
                if integers[i, layout.conf + k * dims + d] > 1:
                    same |= not shape.moves[t, d]
                    window |= shape.rank[t, d] >= 0
        if shape.odd[t]:
            continue
        set_status(integers, i, t, STILL if same or window else DEAD)
        if same or window:
            if window:
                numbers[i, at + OWED] = numbers[i, at + LEAST_OWED]
            for d in range(dims):
                if shape.rank[t, d] >= 0:
                    numbers[i, layout.side + shape.rank[t, d]] = 1.0
            integers[i, layout.flag] |= INEXACT
    forget_unrolling(shape, layout, numbers, integers, i)


@kernel_call
def hold(
    shape: Shape,
    layout: Layout,
    keeping: Keeping,
    kept: int,
    numbers: Floats,
    integers: Ints,
    i: int,
) -> None:
    """An entry that keeps the tensors in the bits of `kept`."""
    ports = layout.pending - layout.port
    linked = integers[i, layout.flag] >> LINKED
    for t in range(len(shape.output)):
        if (linked & kept) >> t & 1:
            take_least(shape, layout, numbers, integers, i, t)
            integers[i, layout.flag] = integers[i, layout.flag] & ~(1 << (LINKED + t)) | INEXACT
    for m in range(len(keeping.leakage)):
        if keeping.leakage[m] > 0.0:
            used = 0
            for t in range(len(shape.output)):
                if keeping.memory[t] == m:
                    used |= kept >> t & 1
            if used:
                numbers[i, LEAK] += keeping.leakage[m]
            else:
                integers[i, layout.flag] |= INEXACT
    for t in range(len(shape.output)):
        if not kept >> t & 1 or shape.odd[t]:
            continue
        at, tile, owed = FIRST + EACH * t, words(shape, layout, integers, i, t), numbers[i, FIRST + EACH * t + OWED]
        reads, writes, width = keeping.read_port[t], keeping.write_port[t], keeping.words[t]
        first = shape.whole[t] if shape.vague[t] else tile
        numbers[i, at + PENDING] += owed * (keeping.read_pj[t] + keeping.update_pj[t])
        pending = layout.pending + t * ports
        if reads >= 0:
            numbers[i, pending + reads] += owed * width
        if shape.output[t]:
            numbers[i, at + CREDIT] += first * keeping.read_pj[t]
            if reads >= 0:
                numbers[i, layout.credit + t * ports + reads] += first * width
            if writes >= 0:
                numbers[i, pending + writes] += owed * width
        status = status_of(integers, i, t)
        if status == SLIDING:
            settle(layout, numbers, integers, i, t, 1.0 / numbers[i, at + TILES])
            integers[i, layout.flag] |= INEXACT
        elif status == DEAD or keeping.outermost:
            settle(layout, numbers, integers, i, t, 0.0)
        if keeping.outermost:
            continue
        set_status(integers, i, t, STILL)
        numbers[i, at + PENDING] += tile * keeping.fill_pj[t]
        if writes >= 0:
            numbers[i, pending + writes] += tile * width
        if shape.output[t]:
            numbers[i, at + CREDIT] += first * keeping.fill_pj[t]
            if writes >= 0:
                numbers[i, layout.credit + t * ports + writes] += first * width
        numbers[i, at + OWED] = tile
        if _note_sides(shape, layout, numbers, integers, i, t) and status == STILL:
            integers[i, layout.flag] |= INEXACT  # smaller tiles inside, still as well, overlap by less of themselves
    for t in range(len(shape.output)):
        at = FIRST + EACH * t
        if not (linked & ~kept) >> t & 1:
            numbers[i, at + LEAST_PENDING], numbers[i, at + LEAST_OWED] = (
                numbers[i, at + PENDING],
                numbers[i, at + OWED],
            )
    if not linked & ~kept:
        forget_unrolling(shape, layout, numbers, integers, i)


@kernel_part
def _note_sides(shape: Shape, layout: Layout, numbers: Floats, integers: Ints, i: int, t: int) -> bool:
    """Whether a window that has loops left is longer than it was."""
    changed = False
    for d in range(len(shape.sizes)):
        if shape.rank[t, d] >= 0 and extent(shape, layout, integers, i, d) < shape.sizes[d]:
            side = 1.0
            for e in range(len(shape.sizes)):
                if shape.rank[t, e] == shape.rank[t, d]:
                    side += shape.coefficient[t, e] * (extent(shape, layout, integers, i, e) - 1.0)
            changed |= side != numbers[i, layout.side + shape.rank[t, d]]
    for d in range(len(shape.sizes)):
        if shape.rank[t, d] >= 0:
            numbers[i, layout.side + shape.rank[t, d]] = 1.0
    for d in range(len(shape.sizes)):
        if shape.rank[t, d] >= 0:
            grown = shape.coefficient[t, d] * (extent(shape, layout, integers, i, d) - 1.0)
            numbers[i, layout.side + shape.rank[t, d]] += grown
    return changed
