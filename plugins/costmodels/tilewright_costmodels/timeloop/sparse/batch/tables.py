"""Tables of sparse hardware under a skeleton, and scratch arrays, as the kernel reads them.

Levels are those of `nest.Nest`: 0 is the innermost one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.compiled import Records, for_kernel, passed_by_pointer, table
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.rules.tables import Terms
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem
from tilewright.schema.sparse import Saving, SparseMemory, TensorFormat
from tilewright_costmodels.timeloop.sparse.costs import data_prices, metadata_prices
from tilewright_costmodels.timeloop.sparse.densities import Actual, Banded, Box, Distribution
from tilewright_costmodels.timeloop.sparse.thinning import rounded
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
    """[L]: `entry` that holds tensors, `order`: row of the loop order that places temporal loops of one trip,
    `fans`: has unrolled loops."""
    unrolled: Ints
    """[L, X]: slots of unrolled loops, innermost first, those along X before those along Y."""
    stepped: Ints
    """[L, X]: slots of temporal loops, innermost first."""
    single: Bools
    """[L]: all temporal loops are in the first slot of `stepped`, and its order places those of one trip."""
    spatial_order: Ints
    """[L, X]: rows of the orders of unrolled loops, outermost first."""
    slot_order: Ints
    """[S]: row of the order of a slot's loops; -1: the problem's."""
    terms: Terms
    indexes: Bools
    """[T, D]: whether the dimension indexes the tensor."""
    tensor: Records
    """[T]: `is_output`; `base` of the numbers of its tiles, and that of a `single` word (see `base_of`); `nonzero`: expected share of
    nonzero values, to six decimals."""
    format: Records
    """[L, T]: `ranks` (0: no format), `compressed`, `outwards`: loops are matched from the innermost one,
    `able`: may decompress (outputs: and compress)."""
    taken: Ints
    """[L, T, R, X]: groups of dimensions, as bits, that ranks take, outermost rank first; 0: one loop of any dimension."""
    aligned: Bools
    """[L, T, L]: whether the format in the first level continues that in the second one inside."""
    bits: Floats
    """[L, T, R, 2]: bits of a piece of metadata and of payload, innermost rank first."""
    action: Records
    """[A]: `level`, `skips`, `first` and `last` option; gating before skipping."""
    option: Records
    """[O]: `tensor`, `first` and `last` condition."""
    condition: Ints
    """Tensors."""
    weighs: bool
    """Whether some action has alternatives."""
    memory: Ints
    """[L, T]: memory; -1: none."""
    slices: Floats
    """[L, T]: slices of one value."""
    storage: Records
    """[M]: `built`, `block`, bandwidths and `leakage` as in `Hardware.memory`. `worth`: pJ per word read.
    `width`: bits of an access of metadata. `fit`: bits of metadata that fit; `usable`: slices of data that fit.
    `word_bits`, `per_word`: bits and slices of a word. `default`: words of a piece of metadata, for alternatives."""
    gate: Ints
    """[M]: memory that switches this one."""
    prices: Floats
    """[M, data or metadata, executed or gated or skipped, action]: pJ of one access."""
    conversion: Floats
    """[M, 2]: pJ to decompress and to compress a value."""
    compute: Records
    """[1]: `gate`, `skip`, `actual_pj`, `gated_pj`, `skipped_pj`, `cycles`; `operations` of the problem;
    `first`, `second`: operands."""


@passed_by_pointer
class SparseScratch(NamedTuple):
    """Scratch arrays of one mapping. Shapes as in `SparseTables`; K loops of a level."""

    listed: Bools
    """[L]: whether the loops of the level are listed."""
    loops: Ints
    """[L, 2]: number of unrolled loops, and of all."""
    dimension: Ints
    """[L, K]."""
    trips: Floats
    """[L, K]."""
    extents: Floats
    """[L + 1, D]: iterations inside a level's loops; the last row is the problem."""
    units: Floats
    """[1]: compute units in use."""
    mold: Floats
    """[D]."""
    part: Floats
    """[D]: 1, or the trips of a rank."""
    own_dimension: Ints
    """[L K]: loops of a tensor between two levels; likewise `own_trips` and `own_tile`."""
    own_trips: Floats
    own_tile: Ints
    kept: Bools
    """[L, T]."""
    child: Ints
    """[L, T]: next level inwards that keeps the tensor; -1: compute."""
    parent: Ints
    """[L, T]: next level outwards that keeps the tensor; -1: none."""
    tile: Ints
    """[L, T]: number of the tile (see `base_of`)."""
    words: Floats
    """[L, T]: words of the tile."""
    ranks: Ints
    """[L, T]."""
    length: Ints
    """[L, T, R]: coordinates of a fiber, innermost rank first."""
    rank_tile: Ints
    """[L, T, R]."""
    key: Ints
    """A key of the memo."""
    missing: Bools
    """[1]: whether the memo lacks something."""
    content: Ints
    """[L, T]: row of the memo; -1: not needed."""
    share: Floats
    """[L, T]: share of the accesses that an action saves."""
    kind: Ints
    """[L, T]: kind of these accesses; 0: no action."""
    data: Floats
    """[L, T, kind, action]."""
    metadata: Floats
    """[L, T, R, metadata or payload, kind, action]."""
    saved: Floats
    """[T]: share of the operations that actions on the tensor save."""
    taken_dimension: Ints
    """[L K]: loops on which an action decides; likewise `taken_trips`."""
    taken_trips: Floats
    both: Floats
    """[D]: trips that step target and condition."""
    need: Floats
    """[M, 2]: slices of data, and bits of metadata."""
    rates: Floats
    """[M, 2]: slices read and written per cycle of computing."""
    in_use: Floats
    """[M]: instances."""


def work_of(tables: SparseTables) -> SparseScratch:
    """Return scratch arrays."""
    levels, tensors, ranks, _ = tables.bits.shape
    dims, memories, slots = tables.indexes.shape[1], len(tables.storage), len(tables.slot_order)
    loops = (slots + 2) * dims
    pairs = levels, tensors
    shapes: dict[str, tuple[int, ...]] = {
        "listed": (levels,), "loops": (levels, 2), "dimension": (levels, loops), "trips": (levels, loops),
        "extents": (levels + 1, dims), "key": (2 + 2 * ranks,), "missing": (1,), "units": (1,),
        "length": (*pairs, ranks), "rank_tile": (*pairs, ranks), "data": (*pairs, 3, 3),
        "metadata": (*pairs, ranks, 2, 3, 3), "saved": (tensors,), "in_use": (memories,),
        **dict.fromkeys(("mold", "part", "both"), (dims,)),
        **dict.fromkeys(("own_dimension", "own_trips", "own_tile", "taken_dimension", "taken_trips"), (levels * loops,)),
        **dict.fromkeys(("need", "rates"), (memories, 2)),
    }  # fmt: skip
    integral = "loops dimension own_dimension own_tile child parent tile ranks length rank_tile key content kind taken_dimension"
    kinds = dict.fromkeys(integral.split(), np.int64) | dict.fromkeys(("listed", "kept", "missing"), np.bool_)
    arrays: dict[str, Any] = {
        name: np.ones(shapes.get(name, pairs), kinds.get(name, np.float64)) for name in SparseScratch._fields
    }
    return SparseScratch(**arrays)


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
    """Return the base of a number whose digits are the extents of a tile; 0: its number is that of its words."""
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
    level_rows, unrolled, stepped, spatial = [], [], [], []
    last = len(skeleton) - 1
    stop = last + 1
    for start, _ in levels:
        fanouts = {at: architecture.cluster(skeleton.entries[at].target).fanout for at in range(start, stop)}
        fans = [at for at, fanout in fanouts.items() if fanout.size > 1]
        step = rows.get((start + 1, False))
        level_rows.append((start, NOTHING if step is None else slot_order[step], bool(fans)))
        by_axis = sorted(reversed(fans), key=lambda at: fanouts[at].axis == "Y")
        unrolled.append([rows[at, True] for at in by_axis if (at, True) in rows])
        stepped.append([rows[at, False] for at in range(min(stop, last), start, -1) if (at, False) in rows])
        spatial.append([slot_order[rows[at, True]] for at in fans] if placed else [])
        stop = start
    formats = [[format_at(problem, architecture, cluster, t) for t in range(len(tensors))] for _, cluster in levels]
    format_rows, bits, taken = [], [], []
    most = max((len(each.ranks) for row in formats for each in row if each is not None), default=1)
    for (_, cluster), row in zip(levels, formats, strict=True):
        for tensor, spec in zip(tensors, row, strict=True):
            memory = architecture.clusters[cluster].memory_for(tensor)
            sparse = (memory and memory.sparse) or SparseMemory()
            able = sparse.decompresses and (sparse.compresses or not tensor.is_output)
            ranks = () if spec is None else spec.ranks
            compressed, outwards = (spec.is_compressed, spec.fill == "inner") if spec else (False, False)
            format_rows.append((len(ranks), compressed, outwards, able))
            bits.append([sparse.metadata.bits_of(rank) for rank in reversed(ranks)] + [(0, 0)] * (most - len(ranks)))
            taken.append([_groups(rank.flatten, names) for rank in ranks])
    shape = len(levels), len(tensors)
    actions, options, conditions = _actions(problem, architecture, [cluster for _, cluster in levels])
    storage, prices, conversion = zip(*(_storage(memory) for memory in architecture.memories), strict=True)
    sparse_compute = architecture.compute.sparse
    operands = [problem.tensors.index(tensor) for tensor in problem.operands]
    return SparseTables(
        level=table(level_rows, entry=int, order=int, fans=bool),
        unrolled=_padded(unrolled),
        stepped=_padded(stepped),
        single=for_kernel(
            np.array(
                [
                    len(found) == 1 and slot_order[found[0]] == order
                    for found, (_, order, _) in zip(stepped, level_rows, strict=True)
                ]
            )
        ),
        spatial_order=_padded(spatial),
        slot_order=for_kernel(np.array(slot_order, np.int64)),
        terms=dense.rules.terms,
        indexes=for_kernel(np.array([[name in tensor.dimensions for name in names] for tensor in tensors], np.bool_)),
        tensor=table(
            (
                (
                    tensor.is_output,
                    base_of(densities[tensor.name]),
                    sum(base_of(densities[tensor.name]) ** axis for axis in range(len(tensor.projection)))
                    if base_of(densities[tensor.name])
                    else 1,
                    rounded(densities[tensor.name].mean((1,) * len(tensor.projection))),
                )
                for tensor in tensors
            ),
            is_output=bool,
            base=int,
            single=int,
            nonzero=float,
        ),
        format=table(format_rows, ranks=int, compressed=bool, outwards=bool, able=bool).reshape(shape),
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
        option=table(options, tensor=int, first=int, last=int),
        condition=for_kernel(np.array(conditions, np.int64)),
        weighs=any(last - first > 1 for _, _, first, last in actions),
        memory=for_kernel(dense.hardware.memory_index[::-1]),
        slices=for_kernel(dense.hardware.slices[::-1]),
        storage=table(
            [
                (*each, *(row[name] for name in _DENSE))
                for each, row in zip(storage, dense.hardware.memory, strict=True)
            ],
            **dict.fromkeys(("worth", "width", "fit", "usable", "word_bits", "per_word", "default", *_DENSE), float),
        ),
        gate=for_kernel(dense.hardware.memory["gate"].astype(np.int64)),
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


_DENSE = "built", "block", "read_bandwidth", "write_bandwidth", "shared_bandwidth", "leakage"
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
    width = max((len(each) for ranks in groups for each in ranks), default=1)
    found = np.full((shape[0] * shape[1], shape[2], width), _NEVER, np.int64)
    for row, ranks in zip(found, groups, strict=True):
        for rank, each in zip(row, ranks, strict=False):
            rank[: len(each)] = each
    return for_kernel(found.reshape(*shape, width))


def _aligned(outer: TensorFormat | None, inner: TensorFormat | None) -> bool:
    """Return whether the inner ranks of a format are those of a compressed format of the next memory inside."""
    if outer is None or inner is None or not inner.is_compressed:
        return True
    ours, theirs = ([rank.format for rank in reversed(each.ranks)] for each in (outer, inner))
    return ours[: len(theirs)] == theirs


def _actions(
    problem: Problem, architecture: Architecture, clusters: Sequence[int]
) -> tuple[list[tuple[int, bool, int, int]], list[tuple[int, int, int]], list[int]]:
    """Return rows of actions, of options, and conditions (see `SparseTables`)."""
    number = {name: t for t, name in enumerate(problem.tensor_names)}
    actions, options, conditions = [], list[tuple[int, int, int]](), list[int]()
    for kind in ("gate", "skip"):
        for level, saving in _savings(problem, architecture, clusters):
            if saving.kind == kind:
                first = len(options)
                for option in saving.options:
                    start = len(conditions)
                    conditions += [number[name] for name in option.when_empty]
                    options.append((number[option.tensor], start, len(conditions)))
                actions.append((level, kind == "skip", first, len(options)))
    return actions, options, conditions


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
        storage.width_bits,
        math.inf if memory.usable_words is None else fit,
        memory.usable_slices,
        memory.word_bits,
        memory.slices_per_word,
        storage.default_bits // memory.word_bits,
    )
    prices = np.array([data_prices(memory), metadata_prices(sparse)])
    return row, prices, (sparse.energy_pj("decompression"), sparse.energy_pj("compression"))
