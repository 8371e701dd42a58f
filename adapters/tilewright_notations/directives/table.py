"""Directives as arrays: the dataflow of a layer, for kernels that numba may compile.

Functions here are plain Python on arrays. The same code serves a single program and a compiled batch.

A layer with K, C, R, Y = 4, 2, 3, 9 and stride 2 along Y; S and X are 1. Its program has two levels:

    SpatialMap(1,1) K   TemporalMap(6,6) Y   Cluster   SpatialMap(1,1) C

`fill_in` completes it. A row is a level, and a cell is the size and the offset of a letter:

    level   `order`            C      K      R      S      X      Y
    0       K Y C R S X        2, 2   1, 1   3, 3   1, 1   1, 1   5, 4
    1       X S R Y K C        1, 1   1, 1   3, 3   1, 1   1, 1   5, 4

The map of 6 rows of Y has (6 + 2 - 3) // 2 = 2 steps of the window. They need 2 * 2 + (3 - 2) = 5 rows.
The next map begins 2 * 2 = 4 rows later. C and R are not tiled, so level 0 has them whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tilewright.compiled import FEW, for_kernel, integer, kernel_part, load8, unpack_bits
from tilewright.mapspace.batch import Ints
from tilewright_notations.directives.layer import FILTER, INPUT, OUTPUT, WINDOWS, DirectiveLayer, Map

NOWHERE = integer(-1)
MAX_LEVELS = 4
"""Maximum number of levels: MAESTRO supports three Cluster directives."""


class Letters(NamedTuple):
    """Dimensions of a layer in alphabetical order; a letter is an index into them.

    Shapes: L = FEW letters. Those without a name come last; they have size 1 and are in no tensor.
    """

    named: int
    """Number of letters with a name."""
    bit: Ints
    """[L]: the bit of each letter in a set of letters."""
    sizes: Ints
    """[L]: sizes of the layer, inputs for Y and X."""
    strides: Ints
    """[L]: strides along Y and X; 1 for other letters."""
    windows: Ints
    """[L]: the filter letter that slides along Y or X; NOWHERE for others."""
    slides: Ints
    """[L]: Y or X for the filter letter that slides along it; NOWHERE for others."""
    pairs: Ints
    """[pair, 2]: Y or X, and the filter letter that slides along it."""
    tensors: Ints
    """[3]: the letters of input, filter and output, as bits."""


class Table(NamedTuple):
    """A dataflow, as written or complete. Shapes: V = MAX_LEVELS, L letters, N named letters."""

    levels: Ints
    """[1]: number of levels."""
    order: Ints
    """[V, N]: the letters of a level, outermost first; NOWHERE after the last."""
    size: Ints
    """[V, L]: size of the directive on a letter."""
    offset: Ints
    """[V, L]: offset of the directive on a letter."""
    unrolled: Ints
    """[V]: the letter of the first SpatialMap."""
    pair: Ints
    """[V]: the letter of the second SpatialMap; NOWHERE if there is none."""
    clusters: Ints
    """[V]: number of sub-clusters."""
    lanes: Ints
    """[1]: MACs per PE and cycle."""
    fault: Ints
    """[5]: reason why there are no directives (0 if there are), and values for its message."""


def names_of(layer: DirectiveLayer) -> tuple[str, ...]:
    """Return the letters of inputs and filters, and all others that a level names."""
    named = {directive.dimension.rstrip("'") for level in layer.levels for directive in level}
    return tuple(sorted(set(layer.tensors[INPUT] + layer.tensors[FILTER]) | named))


def letters_of(layer: DirectiveLayer) -> Letters:
    """Return the layer's letters as arrays."""
    names = names_of(layer)
    windows = {name: window for name, window in WINDOWS.items() if name in names and layer.type != "GEMM"}

    def numbers(values: Sequence[object]) -> Ints:
        return for_kernel(np.array(values, dtype=np.int64))

    def places(partners: dict[str, str]) -> Ints:
        return row([names.index(partners[name]) if name in partners else NOWHERE for name in names], NOWHERE)

    return Letters(
        named=integer(len(names)),
        bit=numbers([1 << letter for letter in range(FEW)]),
        sizes=row([layer.dimensions[name] for name in names]),
        strides=row([layer.stride(name) if name in windows else 1 for name in names]),
        windows=places(windows),
        slides=places({window: name for name, window in windows.items()}),
        pairs=numbers([(names.index(name), names.index(window)) for name, window in windows.items()]).reshape(-1, 2),
        tensors=numbers(
            [sum(1 << names.index(letter) for letter in layer.tensors[tensor]) for tensor in (INPUT, FILTER, OUTPUT)]
        ),
    )


def maps_of(table: Table, level: int, names: tuple[str, ...]) -> tuple[Map, ...]:
    """Return the directives of a level."""
    spatial = (table.unrolled[level], table.pair[level])
    sizes, offsets = table.size[level].tolist(), table.offset[level].tolist()
    return tuple(
        Map(spatial=letter in spatial, size=sizes[letter], offset=offsets[letter], dimension=names[letter])
        for letter in table.order[level].tolist()
        if letter != NOWHERE
    )


def row(values: list[int], rest: int = 1) -> Ints:
    """Return values by letter, [L], with `rest` for letters without a name."""
    return for_kernel(np.array(values + [rest] * (FEW - len(values)), dtype=np.int64))


def empty_table(named: int) -> Table:
    """Return an empty table for `named` letters."""
    return Table(
        levels=np.zeros(1, dtype=np.int64),
        order=np.full((MAX_LEVELS, named), NOWHERE, dtype=np.int64),
        size=np.ones((MAX_LEVELS, FEW), dtype=np.int64),
        offset=np.ones((MAX_LEVELS, FEW), dtype=np.int64),
        unrolled=np.full(MAX_LEVELS, NOWHERE, dtype=np.int64),
        pair=np.full(MAX_LEVELS, NOWHERE, dtype=np.int64),
        clusters=np.ones(MAX_LEVELS, dtype=np.int64),
        lanes=np.ones(1, dtype=np.int64),
        fault=np.zeros(5, dtype=np.int64),
    )


@kernel_part
def fill_in(letters: Letters, table: Table) -> None:
    """Complete a dataflow as MAESTRO does.

    An inner level first lists the outer level's letters that it lacks, as temporal maps. Letters
    that no level names are not tiled and are innermost. Under a stride, tiles at least a window
    wide are rounded and their offsets replaced.
    """
    count = table.order.shape[1]
    sizes = offsets = load8(letters.sizes)  # sizes and offsets of the enclosing level
    for level in range(table.levels[0]):
        order, size, offset = table.order[level], table.size[level], table.offset[level]
        length, have = 0, 0
        while length < count and order[length] != NOWHERE:
            have |= 1 << order[length]
            length += 1
        if level == 0:
            for letter in range(count):
                if not have >> letter & 1:
                    order[length] = letter
                    length += 1
        else:
            missing = count - length
            for place in range(length - 1, -1, -1):
                order[place + missing] = order[place]
            for place in range(count):
                letter = table.order[level - 1, place]
                if not have >> letter & 1:
                    missing -= 1
                    order[missing] = letter
        sizes, offsets = (
            np.where(unpack_bits(have), load8(size), sizes),
            np.where(unpack_bits(have), load8(offset), offsets),
        )
        size[:] = sizes
        offset[:] = offsets
        for pair in range(len(letters.pairs)):
            letter, window = letters.pairs[pair, 0], letters.pairs[pair, 1]
            stride, width = letters.strides[letter], letters.sizes[window]
            if stride != 1 and size[letter] >= width:
                steps = (size[letter] + stride - width) // stride
                size[letter] = steps * min(stride, width) + max(width - stride, 0)
                offset[letter] = steps * (min(stride, width) if level else stride)
                sizes, offsets = load8(size), load8(offset)
