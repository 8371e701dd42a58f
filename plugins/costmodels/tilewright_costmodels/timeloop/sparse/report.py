"""Report of one mapping on sparse hardware, out of lane 0 of the kernel's scratch arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilewright.errors import Reason
from tilewright.mapspace.batch import Floats
from tilewright.prices import leakage_pj, memory_speed, operations_pj, prices_of, slowed_cycles, throttling_limits
from tilewright.reports import (
    AccessCounts,
    LevelReport,
    Limit,
    MetadataCounts,
    RankCounts,
    Report,
    SparseCounts,
    TensorCounts,
    overlapping,
)
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.sparse import TensorFormat
from tilewright_costmodels.timeloop.sparse.batch import notes
from tilewright_costmodels.timeloop.sparse.batch.tables import EXISTS, HELD, SparseScratch, SparseTables, box_of
from tilewright_costmodels.timeloop.sparse.contents import Content, Largest
from tilewright_costmodels.timeloop.sparse.densities import Distribution, words
from tilewright_costmodels.timeloop.sparse.operations import FILL, GATED, READ, SKIPPED, UPDATE

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
"""Peculiarity of Timeloop -> what it does; docs/timeloop.md lists them."""


@dataclass(frozen=True)
class Counted:
    """Counts of the mapping in lane 0 of the kernel.

    Attributes:
        clusters: of each level.
        contents: level and tensor -> what the tile holds, on average and at most. Only for tiles that the kernel looks up.
    """

    problem: Problem
    architecture: Architecture
    densities: Mapping[str, Distribution]
    clusters: Sequence[int]
    tables: SparseTables
    work: SparseScratch
    contents: Callable[[int, int], tuple[Content, Largest]]

    def memory(self, level: int, t: int) -> Memory:
        """Return the memory that keeps a tensor at a level."""
        memory = self.architecture.clusters[self.clusters[level]].memory_for(self.problem.tensors[t])
        assert memory is not None, "legality has been checked"
        return memory

    def format(self, level: int, t: int) -> TensorFormat | None:
        """Return the format of a tensor at a level."""
        sparse = self.memory(level, t).sparse
        return None if sparse is None else sparse.format_of(self.problem.tensors[t])

    def refused_tiles(self, t: int) -> tuple[int, int]:
        """Return the words of a tile of the refused tensor, and of its fiber."""
        tile, fiber = (
            box_of(int(number), self.densities[self.problem.tensors[t].name])
            for number in self.work.refused_tiles[:, 0]
        )
        return words(tile), words(fiber)

    def kept(self) -> Iterator[tuple[int, int, Tensor]]:
        """Yield (level, number, tensor) of what levels keep, by tensor, innermost level first."""
        for t, tensor in enumerate(self.problem.tensors):
            for level in range(len(self.clusters)):
                if self.work.kept[level, t, 0]:
                    yield level, t, tensor


def reported(report: Report, counted: Counted) -> Report:
    """Return the dense report with what zeros save, or with the reasons why Timeloop would give no figures."""
    reasons = tuple(_reasons(counted))
    if reasons:
        refused = Report(model=report.model, problem=report.problem, macs=report.macs, valid=False)
        return refused.model_copy(update={"reasons": reasons, "warnings": report.warnings})
    work, architecture = counted.work, counted.architecture
    actual, gated, skipped = (int(count) for count in work.operations[:, 0])
    computing, cycles, busy = int(work.computing[0]), int(work.cycles[0]), actual + gated
    compute_pj = operations_pj(architecture.compute, actual, gated, skipped)
    leaked = leakage_pj(
        architecture,
        cycles,
        dict(zip((memory.name for memory in architecture.memories), work.in_use[:, 0].tolist(), strict=True)),
    )
    levels = tuple(_level(level, counted, leaked[level.name]) for level in report.levels)
    energy = math.fsum(
        (compute_pj, *(level.energy_pj for level in levels), *(network.energy_pj for network in report.networks))
    )
    return report.model_copy(
        update={
            "cycles": cycles,
            "energy_pj": energy,
            "edp": energy * cycles,
            "utilization": busy / (architecture.compute_instances * cycles),
            "busy_units": busy * architecture.compute.cycles_per_operation / computing,
            "limits": overlapping(_limits(counted)),
            "compute_energy_pj": compute_pj,
            "actual_operations": actual,
            "gated_operations": gated,
            "skipped_operations": skipped,
            "levels": levels,
            "warnings": (*report.warnings, *_warnings(counted)),
        }
    )


# -- refusals ----------------------------------------------------------------------------------------------


def _reasons(counted: Counted) -> Iterator[Reason]:
    """Yield the reasons against the mapping: a refusal alone, or all fanouts and memories that are too small."""
    number = int(counted.work.refused[0])
    if number != notes.ACCEPTED:
        yield _refusal(counted, notes.kind_of(number))
        return
    if len(counted.tables.unit_action):
        yield from _crowded(counted)
    yield from _lacking(counted)


def _refusal(counted: Counted, kind: int) -> Reason:
    """Return why Timeloop gives no figures."""
    work, level, t = counted.work, int(counted.work.refused_level[0]), int(counted.work.refused_tensor[0])
    tensor = counted.problem.tensors[t]
    name = tensor.name
    if kind == notes.TARGET:
        return Reason(code="sparse_target", where=name, message="no memory from there outwards keeps it")
    if kind == notes.NO_UNITS:
        return Reason(code="no_units", where=name, message="skipping in space leaves it no unit")
    if kind == notes.SPATIAL_AND_TEMPORAL:
        text = "Timeloop skips either units or accesses of a tensor at a memory, not both"
        return Reason(code="spatial_and_temporal", where=name, message=text)
    if kind == notes.CONDITIONS:
        other = next(operand for operand in counted.problem.operands if operand.name != name)
        left = 1 - work.saved[counted.problem.tensors.index(other), 0]
        share = counted.tables.tensor[t].expected / left if left else math.inf
        text = f"actions leave {share:.7g} nonzero values per operation; Timeloop's six decimals allow at most 1.00001"
        return Reason(code="sparse_conditions", where=name, message=text)
    where = counted.memory(level, t).name
    if kind == notes.NEGATIVE_SAVING:
        text = f"saves less of {name} than an outer action; Timeloop counts less than nothing"
        return Reason(code="negative_saf", where=where, message=text)
    if kind == notes.SPATIAL_TILES:
        tile, fiber = counted.refused_tiles(t)
        text = f"{fiber} words of {name} are not whole tiles of {tile} words per unit"
        return Reason(code="spatial_tiles", where=where, message=text)
    if kind == notes.DECOMPRESSION:
        need = "decompresses" + (" and compresses" if tensor.is_output else "")
        return Reason(code="decompression", where=where, message=f"{name} is compressed outside; it needs '{need}'")
    if kind == notes.COMPRESSION:
        return Reason(code="compression", where=where, message=f"{name} is compressed here, but not outside")
    return Reason(code="format", where=where, message=_unfit(counted, kind, level, t))


def _unfit(counted: Counted, kind: int, level: int, t: int) -> str:
    """Return why a format does not fit."""
    name = counted.problem.tensors[t].name
    if kind == notes.MORE_RANKS:
        return f"{name} has more ranks here than outside"
    if kind == notes.TOO_MANY_LOOPS:
        return f"{name} has more loops than its format has ranks; flatten some"
    spec, inner = counted.format(level, t), counted.format(int(counted.work.child[level, t, 0]), t)
    assert spec is not None
    if kind == notes.TOO_FEW_RANKS:
        needed = len(inner.ranks) if inner else 1
        return f"{name} has {len(spec.ranks)} ranks, and the next memory inside needs {needed} of them"
    assert kind == notes.OTHER_RANKS and inner is not None
    names = " ".join(rank.format for rank in reversed(inner.ranks))
    return f"the inner ranks of {name} are not those of the next memory inside ({names})"


def _crowded(counted: Counted) -> Iterator[Reason]:
    """Yield a reason for every fanout that is too small for the units with work."""
    for level, cluster in enumerate(counted.clusters):
        for number, axis in enumerate("XY"):
            used, exist = int(counted.work.crowd[level, number, 0]), int(counted.tables.fanout[level, number])
            if used > exist:
                text = f"{used} sub-clusters with work along {axis}, {exist} exist"
                yield Reason(code="fanout", where=counted.architecture.clusters[cluster].name, message=text)


def _lacking(counted: Counted) -> Iterator[Reason]:
    """Yield a reason for every memory that has not enough room for data or for metadata."""
    for number, memory in enumerate(counted.architecture.memories):
        slices, bits = (int(need) for need in counted.work.need[number, :, 0])
        if memory.usable_words is None:
            continue
        if slices > memory.usable_slices:
            text = f"the tiles need {slices / memory.slices_per_word:.15g} words, {memory.usable_words} fit"
            yield Reason(code="capacity", where=memory.name, message=text)
        fit = int(counted.tables.storage[number].fit)
        if bits > fit:
            text = f"the metadata of the tiles needs {bits} bits, {fit} fit"
            yield Reason(code="metadata", where=memory.name, message=text)


# -- figures -----------------------------------------------------------------------------------------------


def _limits(counted: Counted) -> Iterator[Limit]:
    """Yield the cycles of compute and of every bandwidth."""
    computing = int(counted.work.computing[0])
    yield Limit(name="compute", action="compute", cycles=computing)
    for number, memory in enumerate(counted.architecture.memories):
        yield from throttling_limits(memory, computing, *counted.work.rates[number, :, 0].tolist())


def _level(level: LevelReport, counted: Counted, leaked: float) -> LevelReport:
    """Return the report of a memory with its sparse counts."""
    tensors = {
        tensor.name: _tensor(level.tensors[tensor.name], counted, at, t)
        for at, t, tensor in counted.kept()
        if counted.memory(at, t).name == level.name
    }
    computing, number = (
        int(counted.work.computing[0]),
        [memory.name for memory in counted.architecture.memories].index(level.name),
    )
    speed = memory_speed(prices_of(counted.architecture)[level.name], *counted.work.rates[number, :, 0].tolist())
    return level.model_copy(
        update={
            "cycles": int(slowed_cycles(computing, speed)),
            "leakage_pj": leaked,
            "energy_pj": math.fsum((*(tensor.energy_pj for tensor in tensors.values()), leaked)),
            "tensors": FrozenDict({name: tensors[name] for name in level.tensors}),
        }
    )


def _tensor(dense: TensorCounts, counted: Counted, level: int, t: int) -> TensorCounts:
    """Return the counts of a tensor at a level."""
    work, here = counted.work, (level, t, slice(None), 0)
    kind, packed = (
        int(work.kind[level, t, 0]),
        bool(work.packed[level, t, 0] and not counted.tables.format[level, t].compressed),
    )
    others = work.other_data[here]
    ranks, stored_words, bits = tuple[RankCounts, ...](), int(work.words[level, t, 0]), 0
    if counted.tables.format[level, t].ranks:
        fullest = counted.contents(level, t)[1]
        ranks, stored_words, bits = tuple(_ranks(counted, level, t, fullest))[::-1], fullest.words, fullest.bits
    outer = next((at for at in range(level + 1, len(counted.clusters)) if work.kept[at, t, 0]), None)
    compresses = packed and outer is not None and counted.problem.tensors[t].is_output
    return dense.model_copy(
        update={
            **_counts(work.data[here]).model_dump(),
            "instances": int(work.instances[level, t, 0]),
            "energy_pj": float(work.energy[level, t, 0]),
            "sparse": SparseCounts(
                dense=AccessCounts(reads=dense.reads, fills=dense.fills, updates=dense.updates),
                gated=_counts(others, kind == GATED),
                skipped=_counts(others, kind == SKIPPED),
                metadata=ranks,
                decompressions=int(work.data[level, t, FILL, 0]) if packed else 0,
                compressions=int(work.data[outer, t, UPDATE, 0]) if compresses else 0,
                stored_words=stored_words,
                metadata_bits=bits,
                average_instances=float(work.average[level, t, 0]),
            ),
        }
    )


def _ranks(counted: Counted, level: int, t: int, fullest: Largest) -> Iterator[RankCounts]:
    """Yield the counts of metadata of every rank, innermost first."""
    work, spec, kind = counted.work, counted.format(level, t), int(counted.work.kind[level, t, 0])
    assert spec is not None
    for number, rank in enumerate(reversed(spec.ranks)):
        moved = number < work.moved[level, t, 0]
        metadata, payload = (
            MetadataCounts(
                stored=math.ceil(fullest.units[number, which]),
                actual=_counts(work.metadata[level, t, number, which, :, 0]),
                gated=_counts(work.other_metadata[level, t, number, which, :, 0], moved and kind == GATED),
                skipped=_counts(work.other_metadata[level, t, number, which, :, 0], moved and kind == SKIPPED),
            )
            for which in range(2)
        )
        yield RankCounts(format=rank.format, metadata=metadata, payload=payload)


def _counts(counts: Floats, there: bool = True) -> AccessCounts:
    """Return counts by action; none unless they are there. Actions save no fills."""
    if not there:
        return AccessCounts()
    return AccessCounts(reads=int(counts[READ]), fills=int(counts[FILL]), updates=int(counts[UPDATE]))


# -- warnings ----------------------------------------------------------------------------------------------


def _warnings(counted: Counted) -> Iterator[str]:
    """Yield a warning for every peculiarity of Timeloop that changes figures, in the order in which Timeloop meets them."""
    places: dict[str, dict[str, None]] = {}
    for code, level, t in _quirks(counted):
        place = f"{counted.problem.tensors[t].name} in {counted.memory(level, t).name}"
        places.setdefault(code, {})[place] = None
    for code, where in places.items():
        yield f"{', '.join(where)}: {QUIRKS[code]}, as in Timeloop [{code}]"


def _quirks(counted: Counted) -> Iterator[tuple[str, int, int]]:
    """Yield (code, level, tensor)."""
    work, tables, kept = counted.work, counted.tables, [(level, t) for level, t, _ in counted.kept()]
    for level, t in kept:
        if work.quirks[level, t, 0] & notes.RANK_SHIFT:
            yield "rank_shift", level, t
        if work.quirks[level, t, 0] & notes.FLATTENED_SUBTILE:
            yield "flattened_subtile", level, t
    for level, t in kept:
        values = work.values[level, t, :, 0]
        if not values[EXISTS]:
            yield "no_instance", level, t
        if work.sent[level, t, 0] and counted.contents(level, t)[0].least:
            yield "first_occupancy", level, t
        spec = tables.format[level, t]
        if spec.ranks and not spec.compressed and values[HELD] < work.words[level, t, 0]:
            yield "uncompressed_scaled", level, t
    for action in tables.action:
        for number in range(action.first, action.last):
            if work.narrowed[number, 0]:
                t = int(tables.option[number].tensor)
                yield "second_coiteration", next(at for at, tensor in kept if tensor == t and at >= action.level), t
    for t in range(len(counted.problem.tensors)):
        for level in reversed(range(len(counted.clusters))):
            if work.quirks[level, t, 0] & notes.METADATA_NOT_SCALED:
                yield "metadata_not_scaled", level, t
            if work.quirks[level, t, 0] & notes.METADATA_READS_LOST:
                yield "metadata_reads_lost", level, t
