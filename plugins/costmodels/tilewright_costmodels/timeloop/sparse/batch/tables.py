"""Tables of sparse hardware under a skeleton, and scratch arrays, as the kernel reads them.

Level 0 is the innermost one.

An example, which other modules here refer to: A [M, K] of 4 x 8 words times B [K, N] of 8 x 2. Of A, 8 words are
nonzero. Level 1 is DRAM. Level 0 is two buffers, unrolled along K, so their tile of A has 4 x 4 words. Both levels
compress A, and buffers skip accesses to B where A is empty.

A row of `format`, `taken` and `bits` for A; M, K and N are the bits 1, 2 and 4. Pieces have 4 bits:

    level   format of A                    `ranks`   `taken`    `bits`: metadata, payload
    0       UOP of M, CP of K              2         1, 2       (4, 0), (0, 4)
    1       UOP of K, UOP of M, CP of K    3         2, 1, 2    (4, 0), (0, 4), (0, 4)

Formats and `taken` begin with the outermost rank, `bits` with the innermost one: CP has metadata, UOP has payloads.

Actions, options and conditions are rows that refer to ranges of rows:

    table         row   contents
    `action`      0     level 0, skips, options 0 up to 1
    `option`      0     tensor 1 (B), conditions 0 up to 1
    `condition`   0     tensor 0 (A)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np

from tilewright.compiled import LANES, Records, for_kernel, passed_by_pointer, table
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.scratch import Scratch
from tilewright.mapspace.rules.tables import Terms
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.prices import PRICE_TYPES
from tilewright.prices.sparse import data_prices, metadata_prices
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem
from tilewright.schema.sparse import Saving, SparseMemory, TensorFormat
from tilewright_costmodels.timeloop.sparse.densities import Actual, Banded, Box, Distribution
from tilewright_costmodels.timeloop.sparse.operations import rounded
from tilewright_costmodels.timeloop.tables import Tables

NOTHING = -1
"""In integer tables: no slot, level, row or memory."""
EXISTS, HELD, FILLED, STORED, BITS, PIECES, UNITS = range(7)
"""Values of a tile in the memo.

`EXISTS`: share of tiles that exist. `HELD`, `FILLED`: words, and blocks accessed per full block, on average. `STORED`,
`BITS`: words of the fullest tile, and bits of its metadata. `PIECES`: metadata and payloads in total; `UNITS`: by rank.
"""


@passed_by_pointer
class SparseTables(NamedTuple):
    """Shapes: L levels, T tensors, D dimensions, M memories, R ranks, A actions; X is what the largest needs."""

    level: Records
    """[L]: `entry` that holds tensors. `slot`, `order`: outermost temporal slot and the row of its loop order, which places
    temporal loops of one trip. `fans`: has a fanout."""
    unrolled: Ints
    """[L, X]: slots of unrolled loops, innermost first, those along X before those along Y."""
    stepped: Ints
    """[L, X]: slots of temporal loops, innermost first."""
    single: Bools
    """[L]: all temporal loops are in one slot with an order."""
    inside: Ints
    """[L + 1]: row of `Scratch.inside` with the iterations inside the level below; last, of the problem."""
    sizes: Ints
    """[D]."""
    spatial_order: Ints
    """[L, X]: rows of the orders of unrolled loops, outermost first."""
    spatial_entry: Ints
    """[L, X]: entries of these orders."""
    vertical: Bools
    """[S]: whether the slot unrolls along Y."""
    fanout: Ints
    """[L, 2]: sub-clusters of an instance that exist along X and along Y."""
    slot_order: Ints
    """[S]: row of the order of a slot's loops; -1: the problem's."""
    terms: Terms
    tensor: Records
    """[T]: `is_output`. `radix` of the numbers of its tiles, and that of a `single` word (see `base_of`). `expected`: mean share
    of nonzero values, to six decimals. `dims`: dimensions that index it, as bits."""
    stored: Bools
    """[T]: what tiles hold matters, because of a format or of alternatives."""
    format: Records
    """[L, T]: `ranks` (0: no format), `compressed`. `outwards`: loops are matched from the innermost one.
    `takes_all`: the outermost rank takes all loops, in any order. `able`: may decompress (outputs: and compress)."""
    taken: Ints
    """[L, T, R, X]: groups of dimensions, as bits, that ranks take, outermost rank first; 0: one loop of any dimension."""
    aligned: Bools
    """[L, T, L]: whether the format in the first level continues that in the second one inside."""
    bits: Floats
    """[L, T, R, 2]: bits of a piece of metadata and of payload, innermost rank first."""
    action: Records
    """[A]: `level`, `skips`, `first` and `last` option; gating before skipping."""
    option: Records
    """[O]: `tensor`, `first` and `last` condition. `place` among the options of all actions, those that skip units included."""
    unit_action: Records
    """Actions that skip units, innermost first: `level`, `tensor`, `condition`, `place`."""
    condition: Ints
    """Tensors."""
    weighs: bool
    """Whether some action has alternatives."""
    memory: Ints
    """[L, T]: memory; -1: none."""
    slices: Floats
    """[L, T]: slices of one value."""
    storage: Records
    """[M]: the prices of `Hardware.memory`. `worth`: pJ per word read.
    `width`: bits of an access of metadata. `fit`: bits of metadata that fit; `usable`: slices of data that fit.
    `word_bits`, `per_word`: bits and slices of a word. `default`: words of a piece of metadata, for alternatives."""
    prices: Floats
    """[M, data or metadata, executed or gated or skipped, action]: pJ of one access."""
    conversion: Floats
    """[M, 2]: pJ to decompress and to compress a value."""
    compute: Records
    """[1]: `gate`, `skip`, `actual_pj`, `gated_pj`, `skipped_pj`, `cycles`; `operations` of the problem;
    `first`, `second`: operands."""


@passed_by_pointer
class SparseScratch(NamedTuple):
    """Scratch arrays of B = `LANES` mappings in SIMD lanes. Shapes as in `SparseTables`; K rows of loops of a level."""

    scratch: Scratch
    """Trips, orders, kept tensors and tiles."""
    ones_outside: Bools
    """[1]: loops of one trip are outside the others of their slot, in the problem's order; else orders place them."""
    reported: Bools
    """[1]: note refusals and quirks, and count mappings that do not fit, too."""
    stated: Bools
    """[E, B]: whether the entry states the problem's order as that of its unrolled loops."""
    refused: Ints
    """[B]: number of the first refusal (see `refusals.refuse`), with its `refused_level`, `refused_tensor` and `refused_tiles`."""
    refused_level: Ints
    refused_tensor: Ints
    refused_tiles: Ints
    """[2, B]: numbers of a tile and of a fiber (see `base_of`)."""
    quirks: Ints
    """[L, T, B]: peculiarities of Timeloop that change figures, as bits (see `quirks`)."""
    narrowed: Bools
    """[O, B]: likewise, `second_coiteration` of options."""
    waiting: Bools
    """[B]: mappings to evaluate."""
    missing: Bools
    """[B]: whether the memo lacks something."""
    good: Bools
    """[B]: whether the mapping has costs."""
    energy_pj: Floats
    """[B]."""
    cycles: Floats
    """[B]."""
    listed: Bools
    """[L]: whether the loops of the level are listed."""
    rows: Ints
    """[L]: rows of loops in use."""
    fans: Bools
    """[L, B]: whether the level has unrolled loops."""
    turn: Ints
    """[L]: first row of temporal loops."""
    unrolled: Ints
    """[L, B]: rows up to the last unrolled loop."""
    ends: Ints
    """[L, B]: rows up to the last loop."""
    bit: Ints
    """[L, K, B]: dimension of the loop, as a bit; 0: no loop."""
    trips: Floats
    """[L, K, B]."""
    vertical: Bools
    """[L, K, B]: whether the loop is unrolled along Y."""
    written: Ints
    """[D]: order of dimensions."""
    units: Floats
    """[B]: compute units in use."""
    mold: Floats
    """[D, B]."""
    part: Floats
    """[D, B]: 1, or the trips of a rank."""
    own_bit: Ints
    """[L K, B]: loops of a tensor between two levels; likewise `own_trips` and `own_tile`."""
    own_trips: Floats
    own_tile: Ints
    first_tile: Ints
    """[B]: tile of the innermost of them."""
    kept: Bools
    """[L, T, B]."""
    child: Ints
    """[L, T, B]: next level inwards that keeps the tensor; -1: compute."""
    moved: Ints
    """[L, T, B]: ranks of that level's format, or, of compute, of the level's own one."""
    sent: Bools
    """[L, T, B]: whether the next level outside that keeps the tensor has a format for it."""
    packed: Bools
    """[L, T, B]: whether that format is compressed."""
    absent: Bools
    """[T, B]: whether the innermost level has a format, so that zeros are absent."""
    tile: Ints
    """[L, T, B]: number of the tile (see `base_of`)."""
    words: Floats
    """[L, T, B]: words of the tile."""
    length: Ints
    """[L, T, R, B]: coordinates of a fiber, innermost rank first."""
    rank_tile: Ints
    """[L, T, R, B]."""
    inner_words: Floats
    """[B]: words of the next tile inside."""
    inner_length: Ints
    """[R, B]: coordinates of its ranks."""
    inner_tile: Ints
    """[R, B]."""
    matched_length: Ints
    """[R, B]: coordinates of ranks, in the order in which they are matched with loops."""
    matched_tile: Ints
    """[R, B]."""
    key: Ints
    """[L, T, 2 + 2 R, B]: keys of what tiles hold."""
    empty_key: Ints
    """[2, B]: keys of empty tiles."""
    row: Ints
    """[B]: rows of the memo; -1: none."""
    wanted: Bools
    """[B]: mappings to look up."""
    memo: Floats
    """[B]: values of the memo; likewise `memo_too`."""
    memo_too: Floats
    values: Floats
    """[L, T, V, B]: what tiles hold."""
    share: Floats
    """[L, T, B]: share of the accesses that an action saves."""
    kind: Ints
    """[L, T, B]: kind of these accesses; 0: no action."""
    data: Floats
    """[L, T, action, B]: executed ones."""
    other_data: Floats
    """[L, T, action, B]: gated or skipped ones."""
    metadata: Floats
    """[L, T, R, metadata or payload, action, B]."""
    other_metadata: Floats
    in_space: Bools
    """[L, T, B]: whether the action skips units instead of accesses."""
    dense_x: Floats
    """[L, B]: units inside the level that mappings unroll over along X; likewise `dense_y`."""
    dense_y: Floats
    x: Floats
    """[L, T, B]: units inside the level with work of the tensor along X, at most; likewise `y`."""
    y: Floats
    busy: Floats
    """[L, T, B]: share of these units that has work, on average."""
    before_x: Floats
    """[L, B]: units before a reduction; likewise `before_y`."""
    before_y: Floats
    stops: Bools
    """[L, B]: whether averages of outer levels are not passed on beyond the level."""
    fiber_key: Ints
    """[3, B]: keys of fibers."""
    crowd: Floats
    """[L, 2, B]: sub-clusters of an instance with work along X and along Y, at most."""
    instances: Floats
    """[L, T, B]: instances with work, at most; likewise `average`."""
    average: Floats
    energy: Floats
    """[L, T, B]: pJ of all instances."""
    computing: Floats
    """[B]: cycles of computing."""
    operations: Floats
    """[3, B]: actual, gated and skipped operations."""
    saved: Floats
    """[T, B]: share of the operations that actions on the tensor save."""
    stepped: Bools
    """[X, B]: whether a loop steps both the tensor and the condition of the action at hand."""
    effective: Bools
    """[X, B]: whether the condition has an effect."""
    product: Floats
    """[X, B]: trips of the loops that step both."""
    both: Floats
    """[X, D, B]: trips of them, by dimension; 0: none."""
    need: Floats
    """[M, 2, B]: slices of data, and bits of metadata."""
    rates: Floats
    """[M, 2, B]: slices read and written per cycle of computing."""
    in_use: Floats
    """[M, B]: instances."""


def work_of(tables: SparseTables, scratch: Scratch) -> SparseScratch:
    """Return scratch arrays."""
    levels, tensors, ranks, _ = tables.bits.shape
    dims, memories, slots = len(tables.sizes), len(tables.storage), len(tables.slot_order)
    conditions = max((int(option.last - option.first) for option in tables.option), default=1)
    rows, pairs = (slots + 2) * dims, (levels, tensors)
    numbers = {
        "listed": (levels,), "rows": (levels,), "turn": (levels,), "ones_outside": (1,), "reported": (1,), "written": (dims,),
    }  # fmt: skip
    of_lanes: dict[str, tuple[int, ...]] = {
        "absent": (tensors,), "saved": (tensors,), "key": (*pairs, 2 + 2 * ranks), "empty_key": (2,),
        "values": (*pairs, UNITS + 2 * ranks), "in_use": (memories,), "both": (conditions, dims),
        "stated": (len(scratch.kept),), "refused_tiles": (2,), "narrowed": (len(tables.option),), "fiber_key": (3,),
        "crowd": (levels, 2), "operations": (3,),
        **dict.fromkeys(("waiting", "missing", "good", "energy_pj", "cycles", "units", "first_tile"), ()),
        **dict.fromkeys(("refused", "refused_level", "refused_tensor", "computing"), ()),
        **dict.fromkeys(("inner_words", "row", "wanted", "memo", "memo_too"), ()),
        **dict.fromkeys(("fans", "unrolled", "ends", "dense_x", "dense_y", "before_x", "before_y", "stops"), (levels,)),
        **dict.fromkeys(("bit", "trips", "vertical"), (levels, rows)),
        **dict.fromkeys(("mold", "part"), (dims,)),
        **dict.fromkeys(("own_bit", "own_trips", "own_tile"), (levels * rows,)),
        **dict.fromkeys(("length", "rank_tile"), (*pairs, ranks)),
        **dict.fromkeys(("inner_length", "inner_tile", "matched_length", "matched_tile"), (ranks,)),
        **dict.fromkeys(("data", "other_data"), (*pairs, 3)),
        **dict.fromkeys(("metadata", "other_metadata"), (*pairs, ranks, 2, 3)),
        **dict.fromkeys(("stepped", "effective", "product"), (conditions,)),
        **dict.fromkeys(("need", "rates"), (memories, 2)),
    }  # fmt: skip
    arrays: dict[str, Any] = {}
    for name, kind in get_type_hints(SparseScratch).items():
        if name != "scratch":
            shape = numbers[name] if name in numbers else (*of_lanes.get(name, pairs), LANES)
            arrays[name] = np.zeros(shape, get_args(get_args(kind)[1])[0])
    return SparseScratch(scratch, **arrays)


def homes(architecture: Architecture, skeleton: Skeleton, tables: Tables) -> list[tuple[int, int]]:
    """Return (entry, cluster) of every storage level, innermost first."""
    index = architecture.cluster_index
    return [(int(entry), index[skeleton.entries[entry].target]) for entry in tables.hardware.level["holds"][::-1]]


def format_at(problem: Problem, architecture: Architecture, cluster: int, tensor: int) -> TensorFormat | None:
    """Return the format of a tensor in the memory of a cluster that may keep it, or None."""
    memory = architecture.clusters[cluster].memory_for(problem.tensors[tensor])
    return None if memory is None or memory.sparse is None else memory.sparse.format_of(problem.tensors[tensor])


def box_of(number: int, density: Distribution) -> Box:
    """Return the tile with a number (see `base_of`)."""
    base, box = base_of(density), list[int]()
    while base and number:
        number, side = divmod(number, base)
        box.append(side)
    return tuple(reversed(box)) if base else (number,)


def base_of(density: Distribution) -> int:
    """Return the base of a number whose digits are the extents of a tile; 0: the number of words suffices."""
    if isinstance(density, Banded):
        return 2**31
    return 2 ** (62 // max(1, len(density.shape))) if isinstance(density, Actual) else 0


def sparse_tables(
    problem: Problem,
    architecture: Architecture,
    densities: Mapping[str, Distribution],
    skeleton: Skeleton,
    slots: Sequence[Slot],
    placed: bool,
    dense: Tables,
) -> SparseTables:
    """Return the tables.

    Args:
        placed: mappings order their spatial loops.
        dense: tables of the dense model.
    """
    levels = homes(architecture, skeleton, dense)
    tensors, names = problem.tensors, problem.dimension_names
    slot_order = [int(slot["order"]) if slot["ordered"] else NOTHING for slot in dense.hardware.slot]
    rows = {(slot.entry, slot.spatial): number for number, slot in enumerate(slots)}
    level_rows, unrolled, stepped, spatial, fanout_rows = [], [], [], [], []
    last = len(skeleton) - 1
    stop = last + 1
    for start, _ in levels:
        fanouts = {at: architecture.cluster(skeleton.entries[at].target).fanout for at in range(start, stop)}
        fans = [at for at, fanout in fanouts.items() if fanout.size > 1]
        step = rows.get((start + 1, False))
        slot, order = (NOTHING, NOTHING) if step is None else (step, slot_order[step])
        level_rows.append((start, slot, order, bool(fans)))
        # as many units as exist along an axis may be in use, so one fanout may be exceeded
        by_axis = sorted(reversed(fanouts), key=lambda at: fanouts[at].axis == "Y")
        unrolled.append([rows[at, True] for at in by_axis if (at, True) in rows])
        stepped.append([rows[at, False] for at in range(min(stop, last), start, -1) if (at, False) in rows])
        spatial.append([(slot_order[rows[at, True]], at) for at in fans] if placed else [])
        stop = start
    stop = len(architecture.clusters)
    for _, cluster in levels:
        here = [part.fanout for part in architecture.clusters[cluster:stop]]
        fanout_rows.append(
            [math.prod(fan.size for fan in here if (fan.axis == "Y") == vertical) for vertical in (False, True)]
        )
        stop = cluster
    formats = [[format_at(problem, architecture, cluster, t) for t in range(len(tensors))] for _, cluster in levels]
    format_rows, bits, taken = [], [], []
    most = max((len(form.ranks) for row in formats for form in row if form is not None), default=1)
    for (_, cluster), row in zip(levels, formats, strict=True):
        for tensor, spec in zip(tensors, row, strict=True):
            memory = architecture.clusters[cluster].memory_for(tensor)
            sparse = (memory and memory.sparse) or SparseMemory()
            able = sparse.decompresses and (sparse.compresses or not tensor.is_output)
            ranks = () if spec is None else spec.ranks
            compressed, outwards = (spec.is_compressed, spec.fill == "inner") if spec else (False, False)
            indexing = _groups([tensor.dimensions], names)[0]
            takes_all = bool(ranks) and not outwards and _groups(ranks[0].flatten, names)[0] & indexing == indexing
            format_rows.append((len(ranks), compressed, outwards, able, takes_all))
            bits.append([sparse.metadata.bits_of(rank) for rank in reversed(ranks)] + [(0, 0)] * (most - len(ranks)))
            taken.append([_groups(rank.flatten, names) for rank in ranks])
    shape = len(levels), len(tensors)
    actions, options, conditions, unit_actions = _actions(problem, architecture, [cluster for _, cluster in levels])
    weighs = any(last - first > 1 for _, _, first, last in actions)
    storage, prices, conversion = zip(*(_storage(memory) for memory in architecture.memories), strict=True)
    sparse_compute = architecture.compute.sparse
    operands = [problem.tensors.index(tensor) for tensor in problem.operands]
    return SparseTables(
        level=table(level_rows, entry=int, slot=int, order=int, fans=bool),
        unrolled=_padded(unrolled),
        stepped=_padded(stepped),
        single=for_kernel(
            np.array(
                [
                    steps == [slot] and order != NOTHING
                    for steps, (_, slot, order, _) in zip(stepped, level_rows, strict=True)
                ]
            )
        ),
        inside=for_kernel(np.array([len(slot_order), *dense.hardware.level["start"][::-1]], np.int64)),
        sizes=dense.rules.sizes,
        spatial_order=_padded([[row for row, _ in loops] for loops in spatial]),
        spatial_entry=_padded([[entry for _, entry in loops] for loops in spatial]),
        vertical=for_kernel(
            np.array(
                [
                    slot.spatial and architecture.cluster(skeleton.entries[slot.entry].target).fanout.axis == "Y"
                    for slot in slots
                ],
                np.bool_,
            )
        ),
        fanout=for_kernel(np.array(fanout_rows, np.int64)),
        slot_order=for_kernel(np.array(slot_order, np.int64)),
        terms=dense.rules.terms,
        tensor=table(
            (
                (
                    tensor.is_output,
                    base_of(densities[tensor.name]),
                    sum(base_of(densities[tensor.name]) ** axis for axis in range(len(tensor.projection)))
                    if base_of(densities[tensor.name])
                    else 1,
                    rounded(densities[tensor.name].mean((1,) * len(tensor.projection))),
                    sum(1 << d for d, name in enumerate(names) if name in tensor.dimensions),
                )
                for tensor in tensors
            ),
            is_output=bool,
            radix=int,
            single=int,
            expected=float,
            dims=int,
        ),
        stored=for_kernel(
            np.array([weighs or any(row[t] is not None for row in formats) for t in range(len(tensors))])
        ),
        format=table(format_rows, ranks=int, compressed=bool, outwards=bool, able=bool, takes_all=bool).reshape(shape),
        taken=_taken(taken, (*shape, most)),
        aligned=for_kernel(
            np.array(
                [
                    [[_aligned(outer[t], inner[t]) for inner in formats] for t in range(len(tensors))]
                    for outer in formats
                ],
                np.bool_,
            )
        ),
        bits=for_kernel(np.array(bits, np.float64).reshape(*shape, most, 2)),
        action=table(actions, level=int, skips=bool, first=int, last=int),
        option=table(options, tensor=int, first=int, last=int, place=int),
        unit_action=table(unit_actions, level=int, tensor=int, condition=int, place=int),
        condition=for_kernel(np.array(conditions, np.int64)),
        weighs=weighs,
        memory=for_kernel(dense.hardware.memory_index[::-1]),
        slices=for_kernel(dense.hardware.slices[::-1]),
        storage=table(
            [(*values, *row) for values, row in zip(storage, dense.hardware.memory, strict=True)],
            **dict.fromkeys(("worth", "width", "fit", "usable", "word_bits", "per_word", "default"), float),
            **PRICE_TYPES,
        ),
        prices=for_kernel(np.array(prices)),
        conversion=for_kernel(np.array(conversion)),
        compute=table(
            [
                (
                    sparse_compute is not None and sparse_compute.gate,
                    sparse_compute is not None and sparse_compute.skip,
                    architecture.compute.energy_per_operation_pj,
                    sparse_compute.gated_pj if sparse_compute else 0.0,
                    sparse_compute.skipped_pj if sparse_compute else 0.0,
                    architecture.compute.cycles_per_operation,
                    problem.macs,
                    *operands,
                )
            ],
            gate=bool,
            skip=bool,
            **dict.fromkeys(("actual_pj", "gated_pj", "skipped_pj", "cycles", "operations"), float),
            first=int,
            second=int,
        ),
    )


_NEVER = 1 << 62
"""A group without dimensions of the problem."""


def _padded(rows: Sequence[Sequence[int]]) -> Ints:
    """Return rows of different lengths as one array, filled with `NOTHING`."""
    width = max(1, *map(len, rows))
    return for_kernel(np.array([[*row, *[NOTHING] * (width - len(row))] for row in rows], np.int64))


def _groups(flatten: object, names: Sequence[str]) -> list[int]:
    """Return the groups of dimensions that a rank takes, as bits."""
    if flatten is None:
        return [0]
    groups: Sequence[Sequence[str]] = [names] if flatten == "all" else flatten  # type: ignore[assignment]
    return [sum(1 << d for d, name in enumerate(names) if name in group) or _NEVER for group in groups]


def _taken(groups: Sequence[Sequence[Sequence[int]]], shape: tuple[int, int, int]) -> Ints:
    """Return `SparseTables.taken`."""
    width = max((len(group) for ranks in groups for group in ranks), default=1)
    result = np.full((shape[0] * shape[1], shape[2], width), _NEVER, np.int64)
    for row, ranks in zip(result, groups, strict=True):
        for rank, values in zip(row, ranks, strict=False):
            rank[: len(values)] = values
    return for_kernel(result.reshape(*shape, width))


def _aligned(outer: TensorFormat | None, inner: TensorFormat | None) -> bool:
    """Return whether the inner ranks of a format are those of a compressed format of the next memory inside."""
    if outer is None or inner is None or not inner.is_compressed:
        return True
    ours, theirs = ([rank.format for rank in reversed(spec.ranks)] for spec in (outer, inner))
    return ours[: len(theirs)] == theirs


Rows = list[tuple[int, ...]]


def _actions(
    problem: Problem, architecture: Architecture, clusters: Sequence[int]
) -> tuple[Rows, Rows, list[int], Rows]:
    """Return rows of actions, of options, conditions, and rows of actions that skip units (see `SparseTables`)."""
    number = {name: t for t, name in enumerate(problem.tensor_names)}
    rows: dict[str, Rows] = {"gate": [], "skip": [], "skip_units": []}
    options, conditions = Rows(), list[int]()
    savings = list(_savings(problem, architecture, clusters))
    places = list(itertools.accumulate((len(saving.options) for _, saving in savings), initial=0))
    for kind in rows:
        for (level, saving), place in zip(savings, places, strict=False):
            if saving.kind != kind:
                continue
            if kind == "skip_units":
                (option,) = saving.options
                rows[kind].append((level, number[option.tensor], number[option.when_empty[0]], place))
                continue
            first = len(options)
            for at, option in enumerate(saving.options, place):
                start = len(conditions)
                conditions += [number[name] for name in option.when_empty]
                options.append((number[option.tensor], start, len(conditions), at))
            rows[kind].append((level, kind == "skip", first, len(options)))
    return rows["gate"] + rows["skip"], options, conditions, rows["skip_units"]


def _savings(problem: Problem, architecture: Architecture, clusters: Sequence[int]) -> Iterator[tuple[int, Saving]]:
    """Yield the actions of all levels, innermost first."""
    for level, cluster in enumerate(clusters):
        for memory in architecture.clusters[cluster].memories:
            if memory.sparse is not None:
                yield from ((level, saving) for saving in memory.sparse.actions_on(problem.tensors))


def _storage(memory: Memory) -> tuple[tuple[float, ...], Floats, tuple[float, float]]:
    """Return the sparse part of a row of `SparseTables.storage`, and rows of `prices` and `conversion`."""
    sparse = memory.sparse or SparseMemory()
    storage = sparse.metadata
    fit = math.floor(storage.depth * storage.width_bits / memory.multiple_buffering)
    row = (
        memory.read_energy_pj / memory.block_words,
        storage.width_bits or math.inf,
        math.inf if memory.usable_words is None else fit,
        memory.usable_slices,
        memory.word_bits,
        memory.slices_per_word,
        storage.default_bits // memory.word_bits,
    )
    prices = np.array([data_prices(memory), metadata_prices(sparse)])
    return row, prices, (sparse.energy_pj("decompression"), sparse.energy_pj("compression"))
