"""Causes of differences between recorded counts of sparse hardware and the model's: rules of other versions of Timeloop."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import Reason
from tilewright.prices.sparse import data_pj, data_prices, metadata_pj
from tilewright.reports import AccessCounts, TensorCounts
from tilewright.schema.architecture import Memory
from tilewright.schema.problem import Tensor
from tilewright.schema.sparse import SparseMemory

ROUNDING = Reason(
    code="rounding",
    where="this sparse run",
    message="counts are products with probabilities, rounded to whole numbers; two programs differ by at most 2",
)
COORDINATES = Reason(
    code="coordinates",
    where="the program of Sparseloop's artifact (2022)",
    message="the innermost rank has one piece of metadata for each nonzero; public versions round by fiber",
)
GROUPS = Reason(
    code="flattened_ranks",
    where="Timeloop before 2024",
    message="'flattened_rankIDs' has no effect; only 'flattened-rankIDs' has",
)
OCCUPANCY = Reason(
    code="first_occupancy",
    where="Timeloop's public versions",
    message="the first possible occupancy is taken for an empty tile; the program of this run did not do so",
)
FALLBACKS = Reason(
    code="fallbacks",
    where="Timeloop before 2024",
    message="gated and skipped accesses whose energies the table lacks cost 'idle', or as much as executed ones",
)
AVERAGE = Reason(
    code="average",
    where="Timeloop's version 2 (June 2021 to February 2022)",
    message="all instances in use count, also those that have no work on average",
)
CLUSTERS = Reason(
    code="clusters",
    where="Timeloop's version 2 (June 2021 to February 2022)",
    message="a width without a block size is that of a cluster; with fewer instances than a cluster has, energies are 0",
)
METADATA = Reason(
    code="metadata_bandwidth",
    where="Timeloop's version 2 (June 2021 to February 2022)",
    message="metadata take no bandwidth",
)
TOTALS = {
    ("stored", ""): "Max utilized metadata storage capacity",
    ("actual", "reads"): "Actual scalar metadata reads (per-instance)",
    ("gated", "reads"): "Gated scalar metadata reads (per-instance)",
    ("skipped", "reads"): "Skipped scalar metadata reads (per-instance)",
    ("actual", "fills"): "Actual scalar metadata fills (per-instance)",
    ("gated", "fills"): "Gated scalar metadata fills (per-instance)",
    ("skipped", "fills"): "Skipped metadata fills (per-instance)",
    ("actual", "updates"): "Actual scalar metadata updates (per-instance)",
    ("gated", "updates"): "Gated scalar metadata gated updates (per-instance)",
    ("skipped", "updates"): "Skipped scalar metadata updates (per-instance)",
}
"""Counts of version 2 for all ranks together: part of MetadataCounts and access -> how it is printed."""
MAX_ROUNDING = 2
"""Difference of two roundings: one of an outer action, and one of the count's own."""
_PIECES = re.compile(r"rank_0_metadata_(?:actual_)?((?:gated_|skipped_)?\w+)")


def of_count(
    figure: str, recorded: float, ours: float, theirs: TensorCounts, *, groups: bool, emptied: bool, averaged: bool
) -> tuple[Reason, ...]:
    """Return why a count of sparse hardware differs; empty if it is not known.

    Args:
        figure: as in `RecordedFigure`.
        theirs: all recorded counts of the tensor.
        groups: the file spells groups of dimensions in the way that older versions ignore.
        averaged: as in `Energy.causes`.
        emptied: the model takes all tiles to be empty, because Timeloop takes the first possible occupancy for an empty tile.
    """
    if emptied:
        return (OCCUPANCY,)
    if figure == "average_instances":
        return () if averaged else (AVERAGE,)
    if abs(recorded - ours) <= MAX_ROUNDING:
        return (ROUNDING,)
    innermost = _PIECES.fullmatch(figure)
    if innermost and abs(recorded - _words(theirs, innermost[1])) <= MAX_ROUNDING:
        return (COORDINATES,)
    return (GROUPS,) if groups and figure.startswith("rank_") else ()


def _words(counts: TensorCounts, figure: str) -> float:
    """Return the nonzeros that are stored, or moved by an action of a kind."""
    sparse = counts.sparse
    assert sparse is not None
    if figure == "stored":
        return sparse.stored_words
    kind, _, action = figure.rpartition("_")
    return float(getattr({"": counts, "gated": sparse.gated, "skipped": sparse.skipped}[kind], action))


@dataclass(frozen=True)
class Energy:
    """Recorded energy of a tensor in a memory, and the counts of both programs that it comes from.

    Attributes:
        theirs, ours: counts and energy of Timeloop, and of the model.
        clusters: groups of instances that share one access.
        decompressed: fills are decompressed.
    """

    memory: Memory
    tensor: Tensor
    theirs: TensorCounts
    ours: TensorCounts
    clusters: int
    decompressed: bool

    def causes(self, averaged: bool) -> tuple[Reason, ...] | None:
        """Return why the energies differ, beyond the counts; None if it is not known.

        Args:
            averaged: Timeloop prints how many instances have work on average, and counts those.
        """
        assert self.ours.sparse is not None and self.theirs.sparse is not None
        priced = self._priced(self.ours.sparse.average_instances)
        if priced is None and not averaged:
            priced = self._priced(self.theirs.sparse.average_instances)
            return None if priced is None else (AVERAGE, *priced)
        return priced

    def _priced(self, average: float) -> tuple[Reason, ...] | None:
        """Return why the energies differ, if `average` instances have work."""
        memory, theirs, ours = self.memory, self.theirs, self.ours
        assert ours.sparse is not None and theirs.sparse is not None
        average = average or theirs.sparse.average_instances
        instances = average * self.clusters / ours.instances if ours.instances else 0.0
        sparse = memory.sparse or SparseMemory()
        codec = ours.sparse.decompressions * sparse.energy_pj("decompression")
        codec += ours.sparse.compressions * sparse.energy_pj("compression")
        data, metadata = _costs(memory, self.tensor, ours)
        filled = 1.0  # partly filled blocks
        if data and ours.sparse.average_instances:
            filled = (
                ours.energy_pj / (ours.sparse.average_instances * self.clusters / ours.instances) - metadata - codec
            ) / data
        if not theirs.sparse.metadata:  # version 2 prints totals only
            same = theirs.sparse.model_copy(update={"metadata": ours.sparse.metadata})
            theirs = theirs.model_copy(update={"sparse": same})
        if self.decompressed:
            codec += (theirs.fills - ours.fills) * sparse.energy_pj("decompression")
        today, dear = (
            ((data * filled + metadata) + codec) * instances
            for data, metadata in (_costs(memory, self.tensor, theirs, dear) for dear in (False, True))
        )
        if close(theirs.energy_pj, today, 3):
            return ()
        free = [prices == 0.0 for prices in data_prices(memory)[1:]]
        idle = float((np.array(_data(theirs)[1:]) * free).sum()) * instances  # accesses that take no energy
        most = max(memory.read_energy_pj, memory.write_energy_pj) * 1.000001
        if close(theirs.energy_pj, dear, 3) or any(
            0 < theirs.energy_pj - price <= most * idle for price in (today, dear)
        ):
            return (FALLBACKS,)
        return None


def close(recorded: float, ours: float, lines: int) -> bool:
    """Return whether values are equal, given two printed decimals on each of `lines` lines."""
    return math.isclose(recorded, ours, rel_tol=2e-6, abs_tol=0.0051 * lines)


def moved(memory: Memory, tensor: Tensor, counts: TensorCounts) -> tuple[int, int]:
    """Return the slices that an instance reads and writes, as Timeloop averages them."""
    assert counts.sparse is not None
    spread = counts.sparse.average_instances / counts.instances if counts.instances else 0.0
    data = _data(counts)[:2].sum(axis=0) * memory.slices_of(tensor)
    bits = _bits(memory, tensor, counts)[:2].sum(axis=0)
    read, written = (
        math.ceil(int(words + metadata // memory.word_bits * memory.slices_per_word) * spread)
        for words, metadata in ((data[0], bits[0]), (data[1:].sum(), bits[1:].sum()))
    )
    return read, written


def _costs(memory: Memory, tensor: Tensor, counts: TensorCounts, dear: bool = False) -> tuple[float, float]:
    """Return what data and metadata of one instance cost in pJ.

    Args:
        dear: skipped metadata cost as much as those that are read.
    """
    sparse = memory.sparse or SparseMemory()
    metadata = _bits(memory, tensor, counts)
    return data_pj(memory, tensor, _data(counts)), metadata_pj(sparse, metadata, *(["metadata_"] if dear else []))


def _data(counts: TensorCounts) -> NDArray[np.int64]:
    """Return accesses, [kind, action]."""
    assert counts.sparse is not None
    return np.array([_row(count) for count in (counts, counts.sparse.gated, counts.sparse.skipped)])


def _bits(memory: Memory, tensor: Tensor, counts: TensorCounts) -> NDArray[np.int64]:
    """Return bits of metadata, [kind, action]."""
    bits_moved = np.zeros((3, 3), np.int64)
    spec = None if memory.sparse is None else memory.sparse.format_of(tensor)
    if spec is None or counts.sparse is None or memory.sparse is None or not counts.sparse.metadata:
        return bits_moved  # without ranks: of version 2, whose metadata take no bandwidth
    for rank, form in zip(counts.sparse.metadata, spec.ranks, strict=True):
        for pieces, bits in zip((rank.metadata, rank.payload), memory.sparse.metadata.bits_of(form), strict=True):
            bits_moved += bits * np.array([_row(count) for count in (pieces.actual, pieces.gated, pieces.skipped)])
    return bits_moved


def _row(counts: AccessCounts | TensorCounts) -> tuple[int, int, int]:
    return counts.reads, counts.fills, counts.updates
