"""Evaluator of sparse hardware: dense counts, then what zeros save."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import Reason
from tilewright.mapspace.batch import Bools, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin import Relaxation
from tilewright.plugin.costmodel import Costs, ScalarEvaluator
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping as TileMapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.report import (
    AccessCounts,
    LevelReport,
    MetadataCounts,
    RankCounts,
    Report,
    SparseCounts,
    TensorCounts,
    overlapping,
)
from tilewright_costmodels.sparse_refusals import RefusedError, refuse
from tilewright_costmodels.timeloop.sparse.batch.evaluator import DenseEvaluator, SparseBatches
from tilewright_costmodels.timeloop.sparse.costs import Spent, spent
from tilewright_costmodels.timeloop.sparse.densities import Actual, Banded, Distribution, Structured, Uniform
from tilewright_costmodels.timeloop.sparse.formats import Pieces, Stored, placed
from tilewright_costmodels.timeloop.sparse.nest import COMPUTE, Nest, words
from tilewright_costmodels.timeloop.sparse.relaxation import SparseRelaxation
from tilewright_costmodels.timeloop.sparse.room import Largest, lacking, largest
from tilewright_costmodels.timeloop.sparse.savings import Saved, actions, savings
from tilewright_costmodels.timeloop.sparse.spreading import Spread, crowded, dense_units, spread
from tilewright_costmodels.timeloop.sparse.thinning import (
    EXECUTED,
    FILL,
    GATED,
    READ,
    SKIPPED,
    UPDATE,
    Content,
    Counts,
    Operations,
    Traffic,
    content_of,
    operate,
    thin,
    traffic_of,
)

Key = tuple[int, str]
"""Level and tensor."""
QUIRKS = {
    "no_instance": "every tile is taken to be empty, so that no instance takes energy",
    "first_occupancy": "tiles with the least possible number of nonzeros are taken to be empty, although it is not zero",
    "uncompressed_scaled": "zeros take no accesses, although no rank is compressed",
    "metadata_not_scaled": "metadata of tiles that an outer memory saves are counted",
    "metadata_reads_lost": "metadata are read for free, because an outer memory saves accesses, too",
    "rank_shift": "a rank that fits no loop moves the ranks outside it inwards by one loop",
    "flattened_subtile": "a flattened rank is taken to be empty if a tile of its innermost loop is",
    "second_coiteration": "of several loops that step both tensors, the later ones are divided by the trips of the first",
}
"""Peculiarity of Timeloop -> what it does; docs/timeloop.md explains them."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts of one mapping."""

    nest: Nest
    traffic: Mapping[Key, Traffic]
    largest: Mapping[Key, Largest]
    operations: Operations
    units: float
    """Compute units with work, on average."""
    reasons: tuple[Reason, ...]
    """Reasons against the mapping: tiles, metadata or units that do not fit."""


class SparseEvaluator(ScalarEvaluator):
    """Timeloop's sparse model, bound to one problem and one architecture.

    Args:
        dense: binds the dense model.
    """

    def __init__(
        self, problem: Problem, architecture: Architecture, dense: Callable[[Problem, Architecture], DenseEvaluator]
    ) -> None:
        self.problem, self.architecture, self.dense = problem, architecture, dense
        self.roomy = architecture.with_memories(_without_limit)
        self.evaluator = dense(problem, self.roomy)
        self.densities = {tensor.name: distribution_of(problem, tensor) for tensor in problem.tensors}
        compressing = architecture.with_memories(
            lambda memory: _without_limit(memory) if memory.sparse and memory.sparse.formats else memory
        )
        self.batches = SparseBatches(problem, architecture, self.densities, dense(problem, compressing))
        self.skips_units = any(
            saving.kind == "skip_units"
            for memory in architecture.memories
            if memory.sparse
            for saving in memory.sparse.actions
        )
        self.told = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.architecture, self.dense)

    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        """Return the costs of candidates."""
        if self.skips_units:
            return self.evaluate_batch(candidates.batch())
        return self.batches.evaluate_candidates(candidates)

    def relaxation(self, skeleton: Skeleton, keeps: tuple[Bools, Bools] | None = None) -> Relaxation | None:
        """Return the costs per word from which mappers derive bounds; None unless zeros are placed at random, or if units are skipped."""
        if self.skips_units or any(isinstance(density, Banded | Actual) for density in self.densities.values()):
            return None
        dense = self.evaluator.relaxation(skeleton)
        if dense is None:
            return None
        return SparseRelaxation(self.problem, self.architecture, self.densities, skeleton, dense, keeps).find()

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """Return the costs of a batch: if units are skipped, mapping by mapping, with a warning before the first one.

        Mappings that state the problem's order are evaluated singly, too: the kernel takes it for an order that is not stated.
        """
        if not self.skips_units:
            costs = self.batches.evaluate_batch(batch)
            single = np.flatnonzero(() if batch.stated is None else batch.stated.any(axis=1))
            if len(single):
                exact = super().evaluate_batch(batch.take(single))
                for field in ("valid", "energy_pj", "cycles"):
                    getattr(costs, field)[single] = getattr(exact, field)
            return costs
        if not self.told:
            text = "warning: hardware that skips units is evaluated one mapping at a time: a search sees some hundred mappings per second"
            logging.getLogger("tilewright").warning(text)
            self.told = True
        return super().evaluate_batch(batch)

    def explain(self, mapping: TileMapping) -> Report:
        """Return the report of one mapping.

        If Timeloop would reject the mapping, or give no figures for it, `valid` is False and the
        report lists the reasons.
        """
        report = self._dense(mapping)
        if not report.valid:
            return report
        try:
            refuse(mapping, "accepted")
            nest = Nest(self.problem, self.architecture, mapping)
            counted = self._counted(nest, report)
            reasons = counted.reasons
        except RefusedError as error:
            reasons = (error.reason,)
        if reasons:
            refused = Report(model=report.model, problem=report.problem, macs=report.macs, valid=False)
            return refused.model_copy(update={"reasons": reasons, "warnings": report.warnings})
        told = (f"{', '.join(places)}: {QUIRKS[code]}, as in Timeloop [{code}]" for code, places in nest.quirks.items())
        return reported(report, self.architecture, counted).model_copy(update={"warnings": (*report.warnings, *told)})

    def _dense(self, mapping: TileMapping) -> Report:
        """Return the dense report without limits of capacity, nor of units where units are skipped."""
        report = self.evaluator.explain(mapping)
        if report.valid or {reason.code for reason in report.reasons} != {"fanout"}:
            return report
        if not self.skips_units:
            return report
        return self.dense(self.problem, _with_units(self.roomy, mapping)).explain(mapping)

    def _counted(self, nest: Nest, report: Report) -> Counted:
        """Return the counts.

        Raises:
            RefusedError: a format does not fit, or Timeloop's counts are not numbers.
        """
        stored = self._stored(nest)
        dense = {
            (level, name): report_of(report, nest.memory(nest.problem.tensor(name), level), name)
            for level, name in stored
        }
        contents = {}
        for (level, name), each in stored.items():
            outer = nest.kept_from(nest.problem.tensor(name), level + 1)
            sent = outer is not None and stored[outer, name].has_metadata
            contents[level, name] = content_of(each, self.densities[name], sent)
            self._note(nest, level, nest.problem.tensor(name), each, contents[level, name])
        traffic = {
            key: traffic_of(
                each,
                contents[key],
                np.array([dense[key].reads, dense[key].fills, dense[key].updates]),
                dense[key].instances,
            )
            for key, each in stored.items()
        }
        expected = {key: self._moved(nest, key, traffic) for key in traffic}
        for level in range(len(nest.levels)):
            for saving in actions(nest, level):
                for option in saving.options:
                    if nest.kept_from(nest.problem.tensor(option.tensor), level) is None:
                        raise RefusedError("sparse_target", option.tensor, "no memory from there outwards keeps it")
        saved = savings(nest, self.densities, expected)
        spreading = spread(nest, stored, self.densities)
        units = dense_units(nest, 0)
        average = float(units.x * units.y)
        reasons: tuple[Reason, ...] = ()
        if spreading is not None:
            reasons = tuple(crowded(nest, spreading))
            saved, average = self._spread(nest, spreading, saved, traffic)
        left, shares = thin(nest, traffic, saved, nest.problem.macs)
        operations = operate(nest, traffic, self.densities, left, shares, nest.architecture.compute.sparse)
        fullest = {
            (level, name): largest(nest.memory(nest.problem.tensor(name), level), each, self.densities[name])
            for (level, name), each in stored.items()
        }
        return Counted(nest, traffic, fullest, operations, average, (*reasons, *lacking(nest, fullest)))

    def _note(self, nest: Nest, level: int, tensor: Tensor, stored: Stored, content: Content) -> None:
        """Note peculiarities of Timeloop in what a tile holds."""
        if not content.exists:
            nest.note("no_instance", tensor, level)
        if content.least:
            nest.note("first_occupancy", tensor, level)
        if stored.has_metadata and not stored.compressed and content.held < words(stored.tile):
            nest.note("uncompressed_scaled", tensor, level)

    def _stored(self, nest: Nest) -> dict[Key, Stored]:
        formats = {}
        for tensor in nest.problem.tensors:
            for level in nest.kept(tensor):
                sparse = nest.memory(tensor, level).sparse
                found = None if sparse is None else sparse.format_of(tensor)
                if found is not None:
                    formats[level, tensor.name] = found
        stored = placed(nest, formats)
        for (level, name), here in stored.items():
            tensor = nest.problem.tensor(name)
            outer = nest.kept_from(tensor, level + 1)
            memory = nest.memory(tensor, level)
            if outer is None:
                continue
            if stored[outer, name].compressed and not here.compressed:
                able = (
                    memory.sparse is not None
                    and memory.sparse.decompresses
                    and (memory.sparse.compresses or not tensor.is_output)
                )
                if not able:
                    need = "decompresses" + (" and compresses" if tensor.is_output else "")
                    raise RefusedError("decompression", memory.name, f"{name} is compressed outside; it needs '{need}'")
            if here.compressed and not stored[outer, name].compressed:
                raise RefusedError("compression", memory.name, f"{name} is compressed here, but not outside")
            if here.compressed and len(here.ranks) > len(stored[outer, name].ranks):
                raise RefusedError("format", memory.name, f"{name} has more ranks here than outside")
        return stored

    def _moved(self, nest: Nest, key: Key, traffic: Mapping[Key, Traffic]) -> float:
        """Return the words and pieces of metadata of one tile, on average, in words as Timeloop weighs them."""
        level, name = key
        tensor = nest.problem.tensor(name)
        child = nest.child(tensor, level)
        units = traffic[key if child == COMPUTE else (child, name)].content.units
        memory = nest.memory(tensor, level)
        default = 0 if memory.sparse is None else memory.sparse.metadata.default_bits
        return traffic[key].content.held + float(units.sum()) * (default // memory.word_bits)

    def _spread(
        self, nest: Nest, spreading: Spread, saved: Mapping[Key, Saved], traffic: Mapping[Key, Traffic]
    ) -> tuple[dict[Key, Saved], float]:
        """Set the instances with work, in place. Return what all actions save, and the compute units with work."""
        for key in spreading.saved:
            if key in saved:
                raise RefusedError(
                    "spatial_and_temporal",
                    key[1],
                    "Timeloop skips either units or accesses of a tensor at a memory, not both",
                )
        for (level, name), each in traffic.items():
            each.average = each.instances
            if level + 1 < len(nest.levels):
                units, dense = spreading.units[level, name], dense_units(nest, level + 1)
                each.instances, each.average = units.x * units.y, dense.x * dense.y * units.part
        dense = dense_units(nest, 0)
        parts = [units.part for (level, _), units in spreading.units.items() if level == COMPUTE]
        return {**saved, **spreading.saved}, dense.x * dense.y * max(parts)


def distribution_of(problem: Problem, tensor: Tensor) -> Distribution:
    """Return the distribution of a tensor's nonzeros."""
    density = tensor.density
    if density is None:
        return Structured(1.0)
    if density.data is not None:
        return Actual(density.data.array)
    if density.distribution == "banded":
        assert density.band_width is not None
        return Banded(density.band_width, math.isqrt(problem.tensor_words(tensor)))
    assert density.density is not None
    if density.distribution == "uniform":
        return Uniform(density.density, problem.tensor_words(tensor))
    return Structured(density.density)


def report_of(report: Report, memory: Memory, name: str) -> TensorCounts:
    """Return the dense counts of a tensor in a memory."""
    return next(level.tensors[name] for level in report.levels if level.name == memory.name)


def _without_limit(memory: Memory) -> Memory:
    return memory.model_copy(update={"capacity_words": None})


def _with_units(architecture: Architecture, mapping: TileMapping) -> Architecture:
    """Return the architecture with as many units as a mapping unrolls over."""
    unrolled: dict[str, int] = {}
    for entry, (_, spatial) in zip(mapping.entries, mapping.factors(), strict=True):
        unrolled[entry.target] = unrolled.get(entry.target, 1) * math.prod(spatial.values())
    clusters = [
        cluster.model_copy(
            update={
                "fanout": cluster.fanout.model_copy(
                    update={"size": max(cluster.fanout.size, unrolled.get(cluster.name, 1))}
                )
            }
        )
        for cluster in architecture.clusters
    ]
    return architecture.model_copy(update={"clusters": tuple(clusters)})


def reported(report: Report, architecture: Architecture, counted: Counted) -> Report:
    """Return the report with the counts, energies and cycles of sparse hardware."""
    operations = counted.operations
    busy = operations.actual + operations.gated
    computing = math.ceil(busy * architecture.compute.cycles_per_operation / counted.units) if counted.units else 0
    found = spent(counted.nest, counted.traffic, max(computing, 1))
    sparse = architecture.compute.sparse
    prices = (sparse.gated_pj, sparse.skipped_pj) if sparse else (0.0, 0.0)
    compute_pj = operations.actual * architecture.compute.energy_per_operation_pj
    compute_pj += operations.gated * prices[0] + operations.skipped * prices[1]
    levels = tuple(_level(level, counted, found) for level in report.levels)
    energy = math.fsum(
        (compute_pj, *(level.energy_pj for level in levels), *(network.energy_pj for network in report.networks))
    )
    return report.model_copy(
        update={
            "cycles": found.cycles,
            "energy_pj": energy,
            "edp": energy * found.cycles,
            "utilization": busy / (architecture.compute_instances * found.cycles),
            "busy_units": busy * architecture.compute.cycles_per_operation / max(computing, 1),
            "limits": overlapping(found.limits),
            "compute_energy_pj": compute_pj,
            "actual_operations": operations.actual,
            "gated_operations": operations.gated,
            "skipped_operations": operations.skipped,
            "levels": levels,
        }
    )


def _level(level: LevelReport, counted: Counted, found: Spent) -> LevelReport:
    """Return the report of a memory with its sparse counts."""
    nest = counted.nest
    tensors = {}
    for (at, name), traffic in counted.traffic.items():
        if nest.memory(nest.problem.tensor(name), at).name == level.name:
            tensors[name] = level.tensors[name].model_copy(
                update={
                    **_counts(traffic.data[EXECUTED]).model_dump(),
                    "instances": traffic.instances,
                    "energy_pj": found.energy_pj[at, name],
                    "sparse": _sparse_counts(traffic, counted.largest[at, name]),
                }
            )
    leakage = found.leakage_pj[level.name]
    return level.model_copy(
        update={
            "cycles": found.memory_cycles[level.name],
            "leakage_pj": leakage,
            "energy_pj": math.fsum((*(tensor.energy_pj for tensor in tensors.values()), leakage)),
            "tensors": FrozenDict({name: tensors[name] for name in level.tensors}),
        }
    )


def _sparse_counts(each: Traffic, fullest: Largest) -> SparseCounts:
    return SparseCounts(
        dense=_counts(each.dense),
        gated=_counts(each.data[GATED]),
        skipped=_counts(each.data[SKIPPED]),
        metadata=tuple(reversed(list(_ranks(each, fullest.units)))),
        decompressions=each.decompressions,
        compressions=each.compressions,
        stored_words=fullest.words,
        metadata_bits=fullest.bits,
        average_instances=each.average,
    )


def _ranks(each: Traffic, units: Pieces) -> Iterator[RankCounts]:
    for rank, pieces, stored in zip(each.stored.ranks, each.metadata, units, strict=True):
        assert rank.spec is not None
        metadata, payload = (
            MetadataCounts(
                stored=math.ceil(most),
                actual=_counts(kinds[EXECUTED]),
                gated=_counts(kinds[GATED]),
                skipped=_counts(kinds[SKIPPED]),
            )
            for kinds, most in zip(pieces, stored, strict=True)
        )
        yield RankCounts(format=rank.spec.format, metadata=metadata, payload=payload)


def _counts(found: Counts) -> AccessCounts:
    return AccessCounts(reads=int(found[READ]), fills=int(found[FILL]), updates=int(found[UPDATE]))
