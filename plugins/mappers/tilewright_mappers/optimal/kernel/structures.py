"""Structures of the kernels: problem, state layout, storage entry, context of a boundary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import passed_by_pointer
from tilewright.mapspace.batch import Bools, Floats, Ints

NON_STATIONARY, STATIONARY, SLIDING = 0, 1, 2
"""Status of a tensor since its last storage entry.

Its tile was moved by some loop; by none; along one window only.
"""
NEVER, ALWAYS, OPTIONAL = 0, 1, 2


@passed_by_pointer
class ProblemArrays(NamedTuple):
    """Problem as arrays.

    Axes: D dimensions, T tensors, P terms, J trips and K tile counts of the dimension with most.
    """

    ragged: bool
    """Tiles need not divide a dimension."""
    sizes: Ints
    trip: Ints
    """[D, J]: possible trips of a loop, ascending, padded with 0."""
    tile_count: Ints
    """[D, K]: possible tile counts of a dimension, descending, padded with 0."""
    stride: Ints
    """[D]: weight of the index in `tile_count` in the code of a shape."""
    relevant: Bools
    """[T, D]: the dimension is relevant or windowed."""
    window_index: Ints
    """[T, D]: index of the window that the dimension moves; -1 if it moves none."""
    coefficient: Ints
    """[T, D]: elements that a window moves per iteration; 0 without a window."""
    term_start: Ints
    """[T + 1]: first term of each tensor."""
    term_dimension: Ints
    """[P]: dimension of a term."""
    term_factor: Ints
    """[P]: coefficient of a term."""
    term_last: Bools
    """[P]: the term is the last one of its coordinate."""
    term_period: Floats
    """[P]: tile size from which the coordinate's values repeat (see `Terms.term` of the legality rules)."""
    output: Bools
    """[T]."""
    unmodelled: Bools
    """[T]: nothing is counted, for example if a dimension is in several windows (Lemma 13)."""
    windowed_output: Bools
    """[T]: an output with windows or holes, so that its first reads are rounded (Lemma 4)."""
    ragged_window: Bools
    """[T]: an operand with ragged windows; only the reads of compute units and distinct values are counted (Lemma 13)."""
    values: Floats
    """[T]: values of the tensor."""
    min_distinct: Floats
    """[T]: distinct values of the tensor, a lower bound."""
    union_start: Ints
    """[P]: start of the coordinate's table in `union_values`."""
    union_stride: Ints
    """[P]: weight of the index in `tile_count` in that table."""
    union_values: Floats
    """Values of a coordinate that its tiles cover together, per combination of tile counts (Lemma 10)."""


@passed_by_pointer
class StateLayout(NamedTuple):
    """Column offsets of a state. The first integers are the key of Lemma 3."""

    used: int
    """[K]: sub-clusters used of each spatial slot of the current fanout."""
    first_shift: int
    """[T]: shift of the first loop along the window that a tensor slides along."""
    total_shift: int
    """[T]: sum of the shifts of all loops along that window."""
    window: int
    """[T]: index of that window."""
    unrolling: int
    """[K, D]: unrolling of the current fanout, per slot and dimension."""
    full_key: int
    """End of the full key, which includes the unrolling per slot from `unrolling` on."""
    decision: int
    """Row of the last decision."""
    flags: int
    """Flags of the state."""
    unrolled: int
    """[T + 1], ragged tiles only: bits of the dimensions unrolled since a tensor was kept.

    The last entry has the bits of all unrolled dimensions.
    """
    tile_index: int
    """[D]: indices in `ProblemArrays.tile_count`."""
    tile: int
    """[D]: iterations of a full tile."""
    fanout_tile: int
    """[D]: those of the last fanout while forwarding is undecided (Lemma 14); else as `tile`."""
    integers: int
    """Number of integers."""
    tensors: int
    """First of the numbers per tensor."""
    used_slices: int
    """[U]: slices that inner entries use, per memory with several entries (Lemma 11)."""
    window_side: int
    """[R]: side of the tile along each window."""
    last_steps: int
    """[D], ragged tiles only: temporal steps of the last tile as a fraction of a full one.

    One more number follows: the ratio of words between the busiest and the average sub-cluster.
    """
    port: int
    """[J]: words through each limited port."""
    deferred_words: Ints
    """[T + 1]: start of each tensor's deferred words, one number per port that it may use."""
    first_reads: Ints
    """[T + 1]: start of each output's first reads, one number per port."""
    port_of: Ints
    """[numbers]: port of a column of deferred words or first reads."""
    numbers: int
    """Number of numbers."""


@passed_by_pointer
class FanoutLevel(NamedTuple):
    """Spatial slots of the current level, outermost first, padded to K slots."""

    slot: Ints
    """[K]: index of the slot; -1 is padding."""
    vertical: Bools
    """[K]: the slot unrolls along Y."""
    min_used: Ints
    """[K]: minimum number of sub-clusters used."""
    row_width: int
    """Sub-clusters along X."""
    inner_storage: Ints
    """[T]: whether the entry directly inside keeps the tensor: `NEVER`, `ALWAYS` or `OPTIONAL`."""
    fill_pj: Floats
    """[T]: pJ per value written there."""
    multicast: Bools
    """[K, T]: the slot may multicast the tensor."""
    outermost: bool
    """No fanout is outside this level."""


@passed_by_pointer
class StorageEntry(NamedTuple):
    """Storage entry. Axes: T tensors, M memories."""

    outermost: bool
    """The entry is the outermost one."""
    read_pj: Floats
    """[T]: pJ per value read."""
    fill_pj: Floats
    """[T]: pJ per value written from outside."""
    update_pj: Floats
    """[T]: pJ per value written from inside; 0 for inputs."""
    read_port: Ints
    """[T]: index of the read port among the tensor's ports; -1 if it is not limited."""
    write_port: Ints
    """[T]: the same for the write port."""
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
    distinct: Bools
    """[T]: the memory stores distinct words only (`Memory.footprint`)."""
    used_slices: Ints
    """[M]: column of `StateLayout.used_slices`; -1 if the memory has no other entry."""
    outermost_of_memory: Bools
    """[M]: no entry outside uses the memory."""
    forwarded: int
    """Bits of the tensors that the entry may bypass, and that neighbours in the fanout directly outside may forward."""


@passed_by_pointer
class OuterContext(NamedTuple):
    """Context outside a boundary. Axes: S slots, T tensors, D dimensions, M memories."""

    slot_index: Ints
    """[S]: index among the level's spatial slots.

    -1 for spatial slots outside the level, -2 for all others.
    """
    max_used: Ints
    """[S]: maximum sub-clusters."""
    open_trips: Bools
    """[S, D]: the slot may have more than one trip, and is still open."""
    may_multicast: Bools
    """[T, S, D]: an unrolling inside the next sure memory of the tensor may multicast its words."""
    may_forward: Bools
    """[T]: neighbours may forward words that enter a memory, so fewer arrive from outside."""
    bounded_by_equal_tiles: Bools
    """[T, S]: the first spatial slot of a level whose deliveries are bounded by equal tiles (Lemma 8)."""
    read_pj: Floats
    """[T]: minimum pJ per value read from the next memory."""
    update_pj: Floats
    compulsory_pj: Floats
    """[T]: pJ per value of all transfers outside that happen in every completion (Lemma 10)."""
    compulsory_values: Floats
    """[T]: minimum values that the next memory delivers in every completion (Lemma 10)."""
    outermost_delivers: Floats
    """[T]: 1 if the outermost memory delivers each word to the next sure memory (Lemma 10), else 0."""
    next_is_outermost: Bools
    """[T]: only the outermost entry may keep the tensor next."""
    has_inner_storage: Bools
    """[T]: an entry inside the outermost one always keeps the tensor."""
    cycles_per_value: Floats
    """[T]: cycles per value delivered by an instance of the next memory; 0 if unlimited or unknown."""
    compulsory_cycles: float
    """Cycles that the memories outside need to move each distinct word once (Lemmas 10 and 11)."""
    outside_storage: Bools
    """[T, S]: the spatial slot is outside the next entry that always keeps the tensor."""
    outermost_memory: Ints
    """[T]: index of the outermost memory."""
    outermost_words: Floats
    """[T]: words per value there."""
    read_bandwidth: Floats
    """[M]: words per cycle, as `write_bandwidth`."""
    write_bandwidth: Floats
    shared_bandwidth: Floats
    """[M]: words per cycle, read and written together."""
    capacity_group: Ints
    """[T]: code of the next entry that always keeps the tensor; -1 if whole tensors fit there."""
    slices: Floats
    """[T]: slices per value there (see `Memory.slices_per_word`)."""
    usable: Floats
    """[T]: usable slices there."""
    distinct: Bools
    """[T]: that memory stores distinct words only (`Memory.footprint`)."""
    outer_pj: Floats
    """[K, R, C]: minimum pJ of outer transfers (Lemma 12).

    The axes are multicast factor, set of stationary tensors, and shape code. K is 0 without a
    table.
    """
    multicast_factors: Floats
    """[K]: multicast factors of the tensor `multicast_tensor`."""
    multicast_tensor: int
    """Tensor whose multicast factor the table distinguishes; -1 if none."""
    multicast_slots: Bools
    """[S]: spatial slots of the fanout in question."""
    window_multicast: Floats
    """[K]: maximum further multicast in that fanout, along windows."""
    row_weight: Ints
    """[T]: weight of a stationary tensor in the row index; 0 if its transfers are excluded."""
    counted_pj: Floats
    """[T]: part of `rest_pj` that the table contains."""
    enters_pj: Floats
    """[T]: pJ per value written into the memory where the tensor is stationary."""


@passed_by_pointer
class CostFunction(NamedTuple):
    """Objective, and the rules of the cost model."""

    energy: bool
    """The objective contains energy."""
    cycles: bool
    """Whether they are counted."""
    energy_power: int
    cycle_power: int
    dominance: bool
    whole_cycles: bool
    """Cycles are rounded up."""
    forwarding: bool
    """Neighbours may forward words (Lemma 14)."""
    outputs: int
    relaxed: bool
    """Undercounted states dominate, too; their mappings then keep their bounds (Lemma 18)."""
    margin: float
    """Minimum pJ by which a dominating state must be better, unless traffic is equal (Lemma 4)."""
    compute_pj: float
    max_cycles: float
    """Maximum cycles of a mapping."""
    bandwidth: Floats
    """[J]: words per cycle of each limited port."""


@passed_by_pointer
class StateRows(NamedTuple):
    """States, one per row, with columns as in `StateLayout`."""

    numbers: Floats
    integers: Ints


@passed_by_pointer
class StateTable(NamedTuple):
    """Table of states with a hash index."""

    rows: StateRows

    unrollable: Bools
    """[D]: dimensions that may still be unrolled."""
    next_in_chain: Ints
    """Next state of the same hash chain; -1 at the end."""
    chain_heads: Ints
    """First state per hash chain; each hash has a chain of exactly counted states and another one."""
    alive: Bools
    counters: Ints
    """[3]: states; pruned by bound; pruned by dominance."""
    decision_code: Ints
    """Decision that led to each state."""


@passed_by_pointer
class SearchScratch(NamedTuple):
    """Scratch arrays for one state."""

    offsets: NDArray[np.bool_]
    memory_reads: Floats
    memory_writes: Floats
    port_words: Floats
    tiles: Floats
    open_tiles: Floats
    """[D]: tiles of the dimensions that may still be unrolled, else 1."""
    usable: Floats
    position: Ints
    group: Ints
    delivery_size: Ints
    hash_table: Ints
    has_neighbour: Ints
    placed: Ints
    """Layout of the sub-clusters of the expanded state, shared by its successors (`kernel/forwarding.py`)."""
    weight: Ints
    base_demand: Floats
    refetch_factor: Floats
    multicast_factor: Floats
    copies: Floats
    max_log_factor: Floats
    min_log_factor: Floats
    log_slope: Floats
    slope: Floats
    cycles_per_value: Floats
    other_cycles: Floats
    log_tiles: Floats
    gain: Floats
    along: Floats
    within: Floats


@passed_by_pointer
class SearchContext(NamedTuple):
    """Everything that stays constant during a search, and its scratch arrays."""

    problem: ProblemArrays
    layout: StateLayout
    costs: CostFunction
    scratch: SearchScratch
    cutoff: float
    """Maximum bound of a state that is kept."""


@passed_by_pointer
class Stage(NamedTuple):
    """One stage. Fields of other kinds of stages have any value."""

    kind: int
    outer: OuterContext
    """Context outside the stage's boundary."""
    level: FanoutLevel
    storage: StorageEntry
    choices: Ints
    """Sets of tensors that the entry may keep, as bits; one set if the stage is no storage entry."""
    trips: Bools
    """[D, J]: trips that the slot allows."""
    iterable_tiles: Bools
    """[D, K]: tile counts that slots outside this one can iterate."""
    ordered: Bools
    """[D]: whether a rule limits the position of a dimension's loop, so that it is placed in every order."""
    surrounding: Bools
    """[D, D]: whether a rule wants the loop over the second dimension outside that over the first."""
    dimension: int
    """Dimension of the loop."""
    position: int
    """Index of the spatial slot in its level."""
    feeds_units: bool
    """Compute units may share words across the level's fanout."""
    key_length: int
    """Number of integers in the key of Lemma 3."""
