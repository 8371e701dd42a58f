"""Report of an execution on sparse hardware: means over the draws of nonzero values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import Reason
from tilewright.prices import Price, charged
from tilewright.prices.sparse import data_prices, metadata_prices
from tilewright.reports import AccessCounts, MetadataCounts, RankCounts, SparseCounts, TensorCounts
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright.schema.sparse import SparseMemory
from tilewright_costmodels.oracle.report import TensorResidency
from tilewright_costmodels.oracle.sparse.execution import (
    ACTUAL,
    FILL,
    GATED,
    READ,
    SKIPPED,
    UPDATE,
    Counts,
    Executor,
    KeptTensor,
)

Means = NDArray[np.float64]


@dataclass(frozen=True)
class SparseResidency(TensorResidency):
    """One tensor in one memory of sparse hardware. `traffic` has the dense accesses.

    Attributes:
        draws: counts of the draws.
        expanded, packed: words that are decompressed and compressed, all instances.
    """

    place: KeptTensor
    draws: Counts
    expanded: float
    packed: float

    def _data(self) -> Means:
        """Return the mean words per instance, [kind, action]."""
        means: Means = self.draws.data.mean(axis=2) / self.traffic.instances
        return means

    def _metadata(self) -> Means:
        """Return the mean pieces per instance, [rank, metadata or payload, kind, action]."""
        means: Means = self.draws.metadata.mean(axis=4) / self.traffic.instances
        return means

    def _bits(self) -> Means:
        """Return the mean bits of metadata per instance, [kind, action]."""
        sparse = self.memory.sparse
        widths = [sparse.metadata.bits_of(rank.spec) for rank in self.place.ranks] if sparse else []
        weights = np.array(widths, dtype=np.float64).reshape(-1, 2, 1, 1)
        bits: Means = (self._metadata() * weights).sum(axis=(0, 1))
        return bits

    def energy_pj(self, price: Price) -> float:
        """Return the pJ of all instances: mean accesses of full blocks, times their energies."""
        sparse = self.memory.sparse or SparseMemory()
        blocks = self._data() * self.memory.slices_of(self.tensor) / price.block
        energy = float((blocks * data_prices(self.memory)).sum())
        if sparse.metadata.width_bits:
            energy += float((self._bits() / sparse.metadata.width_bits * metadata_prices(sparse)).sum())
        energy *= float(charged(price, self.traffic.instances))
        energy += self.expanded * sparse.energy_pj("decompression")
        return energy + self.packed * sparse.energy_pj("compression")

    def transferred(self) -> tuple[Counter[int], Counter[int]]:
        """Return the slices read and written by instance; gated accesses take bandwidth, skipped ones do not."""
        words = self._data()[[ACTUAL, GATED]].sum(axis=0)
        words += self._bits()[[ACTUAL, GATED]].sum(axis=0) / self.memory.word_bits
        slices = np.ceil(words * self.memory.slices_of(self.tensor)).astype(np.int64).tolist()
        busy = range(self.traffic.instances)
        return Counter(dict.fromkeys(busy, slices[READ])), Counter(dict.fromkeys(busy, slices[FILL] + slices[UPDATE]))

    def counts(self, price: Price) -> TensorCounts:
        """Return the means per instance."""
        dense = super().counts(price)
        data, instances = self._data(), self.traffic.instances
        made = _accesses(data[ACTUAL])
        sparse = SparseCounts(
            dense=AccessCounts(reads=dense.reads, fills=dense.fills, updates=dense.updates),
            gated=_accesses(data[GATED]),
            skipped=_accesses(data[SKIPPED]),
            metadata=tuple(reversed(list(self._ranks()))),
            decompressions=round(self.expanded / instances),
            compressions=round(self.packed / instances),
            stored_words=self.stored_words,
            metadata_bits=self.metadata_bits,
            average_instances=instances,
        )
        return dense.model_copy(update={**made.model_dump(), "sparse": sparse, "energy_pj": self.energy_pj(price)})

    @property
    def stored_words(self) -> int:
        """Words of the fullest tile of any draw."""
        contents = self.place.contents
        return int(contents.held.max() if self.place.omits_zeros else contents.sizes.max())

    @property
    def metadata_bits(self) -> int:
        """Bits of metadata of the fullest tile of any draw."""
        sparse = self.memory.sparse
        widths = [sparse.metadata.bits_of(rank.spec) for rank in self.place.ranks] if sparse else []
        if not widths:
            return 0
        return int((self.place.contents.units * np.array(widths)[:, :, None, None]).sum(axis=(0, 1)).max())

    def _ranks(self) -> Iterator[RankCounts]:
        """Yield the counts of each rank, innermost first."""
        for rank, pieces, stored in zip(self.place.ranks, self._metadata(), self.place.contents.units, strict=True):
            metadata, payload = (
                MetadataCounts(
                    stored=int(most.max()),
                    actual=_accesses(kinds[ACTUAL]),
                    gated=_accesses(kinds[GATED]),
                    skipped=_accesses(kinds[SKIPPED]),
                )
                for kinds, most in zip(pieces, stored, strict=True)
            )
            yield RankCounts(format=rank.spec.format, metadata=metadata, payload=payload)


def _accesses(means: Means) -> AccessCounts:
    reads, fills, updates = (math.floor(mean + 0.5) for mean in means.tolist())
    return AccessCounts(reads=reads, fills=fills, updates=updates)


def sparse_residencies(
    executor: Executor, counts: dict[tuple[int, str], Counts], dense: list[TensorResidency]
) -> list[TensorResidency]:
    """Return the traffic of every tensor in every memory, with its sparse counts."""
    residencies: list[TensorResidency] = []
    for residency in dense:
        key = residency.traffic.entry, residency.tensor.name
        place = executor.places[key]
        outside = [entry for entry, name in executor.places if name == key[1] and entry < key[0]]
        expanded = packed = 0.0
        if outside and executor.places[max(outside), key[1]].omits_zeros and not place.omits_zeros:
            expanded = float(counts[key].data[ACTUAL, FILL].mean())
            if residency.tensor.is_output:
                packed = float(counts[max(outside), key[1]].data[ACTUAL, UPDATE].mean())
        residencies.append(
            SparseResidency(
                residency.memory,
                residency.cluster,
                residency.tensor,
                residency.traffic,
                place,
                counts[key],
                expanded,
                packed,
            )
        )
    return residencies


def uncovered(problem: Problem, architecture: Architecture) -> Iterator[Reason]:
    """Yield a reason for every action that skips units: units do not wait for one another in execution."""
    for memory in architecture.memories:
        for saving in memory.sparse.actions_on(problem.tensors) if memory.sparse else ():
            if saving.kind == "skip_units":
                text = f"skips units of {saving.options[0].tensor}; the oracle executes 'skip' and 'gate'"
                yield Reason(code="sparse_units", where=memory.name, message=text)


def lacking(architecture: Architecture, residencies: list[TensorResidency]) -> Iterator[Reason]:
    """Yield a reason for every memory that has not enough space for the fullest tiles and their metadata."""
    for memory in architecture.memories:
        here = [
            residency
            for residency in residencies
            if residency.memory is memory and isinstance(residency, SparseResidency)
        ]
        if memory.usable_words is None:
            continue
        slices = sum(residency.stored_words * memory.slices_of(residency.tensor) for residency in here)
        if slices > memory.usable_slices:
            text = f"the tiles need {slices / memory.slices_per_word:.15g} words, {memory.usable_words} fit"
            yield Reason(code="capacity", where=memory.name, message=text)
        bits = sum(residency.metadata_bits for residency in here)
        storage = memory.sparse.metadata if memory.sparse else None
        fit = math.floor(storage.depth * storage.width_bits / memory.multiple_buffering) if storage else 0
        if bits > fit:
            text = f"the metadata of the tiles needs {bits} bits, {fit} fit"
            yield Reason(code="metadata", where=memory.name, message=text)
