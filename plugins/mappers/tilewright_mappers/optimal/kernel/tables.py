"""Structures of the kernels: problem, state layout, storage entry, context of a boundary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import structure
from tilewright.mapspace.batch import Bools, Floats, Ints

DEAD, STILL, SLIDING = 0, 1, 2
"""Status of a tensor since its last storage entry.

Its tile was moved by some loop; by none; along one window only.
"""
NEVER, ALWAYS, MAYBE = 0, 1, 2


@structure
class Shape(NamedTuple):
    """Problem as arrays.

    Axes: D dimensions, T tensors, P terms, J trips and K tile counts of the dimension with most.
    """

    ragged: bool
    """Tiles need not divide a dimension."""
    sizes: Ints
    trip: Ints
    """[D, J]: possible trips of a loop, ascending, padded with 0."""
    left: Ints
    """[D, K]: possible tile counts of a dimension, descending, padded with 0."""
    stride: Ints
    """[D]: weight of the index in `left` in the code of a shape."""
    moves: Bools
    """[T, D]: the dimension is relevant or windowed."""
    rank: Ints
    """[T, D]: index of the window that the dimension moves; -1 if it moves none."""
    coefficient: Ints
    """[T, D]: elements that a window moves per iteration; 0 without a window."""
    start: Ints
    """[T + 1]: first term of each tensor."""
    dimension: Ints
    """[P]: dimension of a term."""
    factor: Ints
    """[P]: coefficient of a term."""
    last: Bools
    """[P]: the term is the last one of its coordinate."""
    output: Bools
    """[T]."""
    odd: Bools
    """[T]: nothing is counted, for example if a dimension is in several windows (Lemma 13)."""
    vague: Bools
    """[T]: an output with windows or holes, so that its first reads are rounded (Lemma 4)."""
    blind: Bools
    """[T]: an operand with ragged windows; only the reads of compute units are counted (Lemma 13)."""
    whole: Floats
    """[T]: values of the tensor."""
    least: Floats
    """[T]: distinct values of the tensor, a lower bound; 0 for ragged windows."""
    first: Ints
    """[P]: start of the coordinate's table in `covered`."""
    step: Ints
    """[P]: weight of the index in `left` in that table."""
    covered: Floats
    """Values of a coordinate that its tiles cover together, per combination of tile counts (Lemma 10)."""


@structure
class Layout(NamedTuple):
    """Column offsets of a state. The first integers are the key of Lemma 3."""

    used: int
    usual: int
    inner: int
    window: int
    conf: int
    keys: int
    """End of the full key, which includes the unrolling per slot from `conf` on."""
    trace: int
    flag: int
    unrolled: int
    """[T + 1], ragged tiles only: bits of the dimensions unrolled since a tensor was kept.

    The last entry has the bits of all unrolled dimensions.
    """
    left: int
    """[D]: indices in `Shape.left`."""
    tile: int
    """[D]: iterations of a full tile."""
    integers: int
    tensors: int
    """First of the numbers per tensor."""
    side: int
    last: int
    """[D], ragged tiles only: temporal steps of the last tile as a fraction of a full one.

    One more number follows: the ratio of words between the busiest and the average sub-cluster.
    """
    port: int
    """[J]: words through each limited port."""
    pending: Ints
    """[T + 1]: start of each tensor's deferred words, one number per port that it may use."""
    credit: Ints
    """[T + 1]: start of each output's first reads, one number per port."""
    through: Ints
    """[numbers]: port of a column of deferred words or first reads."""
    numbers: int


@structure
class Level(NamedTuple):
    """Spatial slots of the current level, outermost first, padded to K slots."""

    slot: Ints
    """[K]: index of the slot; -1 is padding."""
    vertical: Bools
    """[K]: the slot unrolls along Y."""
    least: Ints
    """[K]: minimum number of sub-clusters used."""
    width: int
    """Sub-clusters along X."""
    kept: Ints
    """[T]: whether the entry directly inside keeps the tensor: `NEVER`, `ALWAYS` or `MAYBE`."""
    fill_pj: Floats
    """[T]: pJ per value written there."""
    alone: bool
    """No fanout is outside this level."""


@structure
class Keeping(NamedTuple):
    """Storage entry. Axes: T tensors, M memories."""

    outermost: bool
    read_pj: Floats
    fill_pj: Floats
    update_pj: Floats
    """[T]: pJ per value, as `read_pj` and `fill_pj`; 0 for inputs."""
    reads: Ints
    """[T]: index of the read port among the tensor's ports; -1 if it is not limited."""
    writes: Ints
    leakage: Floats
    """[M]: pJ per cycle of an instance, at the innermost entry that may use the memory; 0 elsewhere."""
    memory: Ints
    """[T]: index of the memory; -1 if the entry never keeps the tensor."""
    words: Floats
    """[T]: words per value."""
    slices: Floats
    """[T]: slices per value (see `Memory.slices_per_word`)."""
    usable: Floats
    """[M]: usable slices."""


@structure
class Ahead(NamedTuple):
    """Context outside a boundary. Axes: S slots, T tensors, D dimensions, M memories."""

    slots: Ints
    """[S]: index among the level's spatial slots.

    -1 for spatial slots outside the level, -2 for all others.
    """
    most: Ints
    """[S]: maximum sub-clusters."""
    able: Bools
    """[S, D]: the slot may have more than one trip, and is still open."""
    near: Bools
    """[T, S, D]: an unrolling inside the next sure memory of the tensor may multicast its words."""
    passes: Bools
    """[T]: neighbours may forward words that enter a memory, so fewer arrive from outside."""
    apart: Bools
    """[T, S]: the first spatial slot of a level whose deliveries are bounded by equal tiles (Lemma 8)."""
    read_pj: Floats
    """[T]: minimum pJ per value read from the next memory."""
    update_pj: Floats
    rest_pj: Floats
    """[T]: pJ per value of all transfers outside that happen in every completion (Lemma 10)."""
    distinct: Floats
    """[T]: minimum values that the next memory delivers in every completion (Lemma 10)."""
    compulsory: Floats
    """[T]: 1 if the outermost memory delivers each word to the next sure memory (Lemma 10), else 0."""
    last: Bools
    """[T]: only the outermost entry may keep the tensor next."""
    between: Bools
    """[T]: an entry inside the outermost one always keeps the tensor."""
    cycles: Floats
    """[T]: cycles per value delivered by an instance of the next memory; 0 if unlimited or unknown."""
    beyond: Bools
    """[T, S]: the spatial slot is outside the next entry that always keeps the tensor."""
    memory: Ints
    """[T]: index of the outermost memory."""
    words: Floats
    """[T]: words per value there."""
    read_bandwidth: Floats
    """[M]: words per cycle, as `write_bandwidth`."""
    write_bandwidth: Floats
    keeper: Ints
    """[T]: code of the next entry that always keeps the tensor; -1 if whole tensors fit there."""
    slices: Floats
    """[T]: slices per value there (see `Memory.slices_per_word`)."""
    usable: Floats
    """[T]: usable slices there."""
    outer: Floats
    """[K, R, C]: minimum pJ of outer transfers (Lemma 12).

    The axes are multicast factor, set of stationary tensors, and shape code. K is 0 without a
    table.
    """
    share: Floats
    """[K]: multicast factors of the tensor `direct`."""
    direct: int
    """Tensor whose multicast factor the table distinguishes; -1 if none."""
    split: Bools
    """[S]: spatial slots of the fanout in question."""
    across: Floats
    """[K]: maximum further multicast in that fanout, along windows."""
    row: Ints
    """[T]: weight of a stationary tensor in the row index; 0 if its transfers are excluded."""
    counted: Floats
    """[T]: part of `rest_pj` that the table contains."""
    enters_pj: Floats
    """[T]: pJ per value written into the memory where the tensor is stationary."""


@structure
class Costing(NamedTuple):
    """Objective, and the rules of the cost model."""

    energy: bool
    """The objective contains energy."""
    cycles: bool
    product: bool
    """The objective is EDP."""
    dominate: bool
    whole: bool
    """Cycles are rounded up."""
    links: bool
    """Neighbours may forward words (Lemma 14)."""
    outputs: int
    margin: float
    """Minimum pJ by which a dominating state must be better, unless traffic is equal (Lemma 4)."""
    compute_pj: float
    most_cycles: float
    """Maximum cycles of a mapping."""
    bandwidth: Floats
    """[J]: words per cycle of each limited port."""


@structure
class Bag(NamedTuple):
    """Table of states with a hash index."""

    open: Bools
    """[D]: dimensions that may still be unrolled."""
    numbers: Floats
    integers: Ints
    following: Ints
    """Next state of the same hash chain; -1 at the end."""
    heads: Ints
    """First state per hash chain; each hash has a chain of exactly counted states and another one."""
    alive: Bools
    made: Ints
    """[3]: states; pruned by bound; pruned by dominance."""
    what: Ints
    """Decision that led to each state."""


@structure
class Work(NamedTuple):
    """Scratch arrays for one state."""

    reached: NDArray[np.bool_]
    words: Floats
    written: Floats
    ports: Floats
    rest: Floats
    room: Floats
    place: Ints
    group: Ints
    size: Ints
    table: Ints
    meets: Ints
    weight: Ints
    once: Floats
    again: Floats
    spare: Floats
    copies: Floats
    most: Floats
    need: Floats
    steep: Floats
    slope: Floats
    cycles: Floats
    beside: Floats
    log: Floats
    gain: Floats
    along: Floats
    within: Floats
