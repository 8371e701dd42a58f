"""Counts of sparse hardware, from dense ones: what formats omit, and what actions save."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import kernel_part
from tilewright.schema.sparse import SparseCompute
from tilewright_costmodels.sparse_refusals import RefusedError
from tilewright_costmodels.timeloop.sparse.densities import Distribution, exact_sum
from tilewright_costmodels.timeloop.sparse.formats import Pieces, Stored
from tilewright_costmodels.timeloop.sparse.nest import Nest, words
from tilewright_costmodels.timeloop.sparse.savings import Saved

Counts = NDArray[np.int64]
READ, FILL, UPDATE = range(3)
"""Actions."""
EXECUTED, GATED, SKIPPED = range(3)
"""Kinds of accesses."""


@dataclass(frozen=True)
class Content:
    """Contents of a tile on average.

    Attributes:
        probability: of each number of nonzeros among the tiles that exist.
        exists: share of the tiles that exist; empty ones are not sent from a memory with a format.
        least: number of nonzeros that is taken for none; 0 if all tiles exist.
        units: expected pieces of metadata and payload, by rank.
    """

    probability: dict[int, float]
    exists: float
    least: int
    held: float
    units: Pieces


@dataclass
class Traffic:
    """One tensor at one level. Kinds are `EXECUTED`, `GATED` and `SKIPPED`; actions `READ`, `FILL` and `UPDATE`."""

    stored: Stored
    content: Content
    dense: Counts
    """[action]: accesses per instance without zeros."""
    data: Counts
    """[kind, action]: accesses per instance."""
    metadata: Counts
    """[rank, metadata or payload, kind, action]: pieces per instance; ranks innermost first."""
    instances: int
    """Instances with work, at most."""
    average: float
    decompressions: int = 0
    compressions: int = 0


State = tuple[float, float, float]
"""Fractions of an operand's values: nonzero, zero, absent."""


@dataclass(frozen=True)
class Operations:
    """Operations of all units."""

    actual: int
    gated: int = 0
    skipped: int = 0


def content_of(stored: Stored, density: Distribution, sent: bool) -> Content:
    """Return what a tile holds.

    Args:
        sent: empty tiles do not exist, because the parent has metadata.
    """
    probability, exists, least = dict(density.occupancies(stored.tile)), 1.0, 0
    if sent and density.may_be_empty(stored.tile):
        least = next(iter(probability))  # Timeloop takes the first possible number for zero
        exists = 1 - probability.pop(least)
        probability = {count: part / exists for count, part in probability.items()} if exists else {}
    parts = np.array(list(probability.values()))
    units = stored.units(density, list(probability)) * parts
    expected = np.array([[exact_sum(kind) for kind in rank] for rank in units]).reshape(-1, 2)
    held = exact_sum(np.array(list(probability)) * parts)
    return Content(probability, exists, least, held, expected)


def traffic_of(stored: Stored, content: Content, dense: Counts, instances: int) -> Traffic:
    """Return the accesses of a tensor at a level without those of words that its format omits.

    Args:
        dense: [action].
    """
    size, ranks = words(stored.tile), len(stored.ranks)
    data, metadata = np.zeros((3, 3), np.int64), np.zeros((ranks, 2, 3, 3), np.int64)
    data[EXECUTED] = dense
    if stored.has_metadata:
        data[EXECUTED] -= _part(dense, 1 - content.held / size)
        metadata[:, :, EXECUTED] = np.ceil(content.units[:, :, None] * (dense / size))
    return Traffic(stored, content, dense, data, metadata, instances, instances * content.exists)


def thin(
    nest: Nest, traffic: Mapping[tuple[int, str], Traffic], saved: Mapping[tuple[int, str], Saved], operations: int
) -> tuple[int, dict[str, float]]:
    """Take off what actions save, in place. Return (operations left, share that each operand's actions save).

    Raises:
        RefusedError: an action saves less than an outer one.
    """
    shares: dict[str, float] = {}
    for tensor in nest.problem.tensors:
        share, ranks, within = 0.0, 0, False
        for level in nest.kept(tensor):
            here, found = traffic[level, tensor.name], saved.get((level, tensor.name))
            if within:
                here.data[EXECUTED] -= _part(here.data[EXECUTED], share)
                if ranks != 1 and share and here.stored.has_metadata:
                    nest.note("metadata_not_scaled", tensor, level)
                elif ranks == 1:
                    pieces = here.metadata[:1, :, EXECUTED, :UPDATE]
                    pieces -= _part(pieces, share)
            if found is not None:
                local = found.share
                if within:
                    local = 1 - (1 - local) / (1 - share) if share < 1 else 0.0
                    pieces = here.metadata[:, :, EXECUTED]
                    if (pieces[..., READ] != pieces[..., UPDATE]).any():
                        nest.note("metadata_reads_lost", tensor, level)
                    pieces[..., READ] = pieces[..., UPDATE]
                if not found.in_space:
                    if local < 0:
                        raise RefusedError(
                            "negative_saf",
                            nest.memory(tensor, level).name,
                            f"saves less of {tensor.name} than an outer action; Timeloop counts less than nothing",
                        )
                    child = traffic.get((nest.child(tensor, level), tensor.name))
                    moved = len(here.stored.ranks if child is None else child.stored.ranks)
                    kind = GATED if found.gates else SKIPPED
                    _save(here.data, kind, local, tensor.is_output)
                    _save(here.metadata[:moved], kind, local, False)
                share, ranks, within = found.share, len(here.stored.ranks), True
        if within and not tensor.is_output:
            operations -= math.floor(operations * share)
            shares[tensor.name] = rounded(share)
    for (level, name), each in traffic.items():
        tensor = nest.problem.tensor(name)
        outer = nest.kept_from(tensor, level + 1)
        if outer is not None and traffic[outer, name].stored.compressed and not each.stored.compressed:
            each.decompressions = int(each.data[EXECUTED, FILL])
            if tensor.is_output:
                each.compressions = int(traffic[outer, name].data[EXECUTED, UPDATE])
    return operations, shares


def _save(counts: Counts, kind: int, share: float, is_output: bool) -> None:
    """Move a share of the executed reads and updates to another kind; reads of outputs are rounded up."""
    executed = counts[..., EXECUTED, :]
    moved = _part(executed, share)
    moved[..., FILL] = 0
    if is_output:
        moved[..., READ] = np.ceil(executed[..., READ] * share)
    counts[..., kind, :] = moved
    executed -= moved


def _part(counts: Counts, share: float) -> Counts:
    """Return a share of counts, rounded down."""
    return np.asarray(np.floor(counts * share), np.int64)


def operate(
    nest: Nest,
    traffic: Mapping[tuple[int, str], Traffic],
    densities: Mapping[str, Distribution],
    operations: int,
    shares: Mapping[str, float],
    compute: SparseCompute | None,
) -> Operations:
    """Return what the units do with the operations that memories have not saved.

    Raises:
        RefusedError: actions save more operations than there are zeros.
    """
    states = []
    first, second = nest.problem.operands
    for tensor, other in ((first, second), (second, first)):
        nonzero, saved = (
            rounded(densities[tensor.name].mean((1,) * len(tensor.projection))),
            shares.get(other.name, 0.0),
        )
        state = state_of(nonzero, saved, not traffic[nest.kept(tensor)[-1], tensor.name].stored.has_metadata)
        if state is None:
            share = nonzero / (1 - saved) if saved < 1 else math.inf
            text = (
                f"actions leave {share:.7g} nonzero values per operation; Timeloop's six decimals allow at most 1.00001"
            )
            raise RefusedError("sparse_conditions", tensor.name, text)
        states.append(state)
    return perform(operations, states[0], states[1], compute)


def state_of(nonzero: float, saved: float, exists: bool) -> State | None:
    """Return the state of an operand; None if actions save more operations than there are zeros.

    Args:
        nonzero: fraction of its values; six decimals, as `saved`.
        saved: fraction of the operations that actions on the other operand save.
        exists: zeros exist, because the memory next to the units has no metadata.
    """
    left = 1 - saved
    nonzero = nonzero / left if left else math.inf
    if not nonzero <= 1 + 1e-5:
        return None
    nonzero = min(nonzero, 1.0)
    return (nonzero, 1 - nonzero, 0.0) if exists else (nonzero, 0.0, 1 - nonzero)


def perform(operations: int, first: State, second: State, compute: SparseCompute | None) -> Operations:
    """Return what the units do with operations on operands in these states."""
    gate, skip = (compute.gate, compute.skip) if compute else (False, False)
    (a, a_zero, a_absent), (b, b_zero, b_absent) = first, second
    # in Timeloop's order, so that sums round alike
    zero, lone = operations * (a * b_zero + a_zero * b), operations * (a * b_absent + a_absent * b)
    both, mixed = operations * (a_zero * b_zero), operations * (a_zero * b_absent + a_absent * b_zero)
    gated = (zero + both if skip else zero + lone + both + mixed) if gate else 0.0
    gates, skips = math.floor(gated), math.floor(lone + mixed) if skip else 0
    nothing = math.floor(operations * (a_absent * b_absent))
    return Operations(operations - gates - skips - nothing, gates, skips)


@kernel_part
def rounded(share: float) -> float:
    """Return a share to six decimals, halves rounded up."""
    return math.floor(share * 1e6 + 0.5) / 1e6
