"""Comparison of recorded Timeloop statistics with Tilewright's results, with causes of differences.

Timeloop's versions differ. Rules of older versions are applied to the recorded counts, and a cause
is named only if its rule gives the recorded value. There are two exceptions. Single values do not
show how the overlap of windows was credited. That cause is named for tensors with windows between
two levels that keep them. A run without link transfers is recognised by its networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tilewright.errors import InputError, Location, Reason
from tilewright.files import read_text
from tilewright.plugin.adapter import InputSet, RecordedFigure
from tilewright.prices import access_pj, charged, port_cycles, port_time, price_of, prices_of
from tilewright.reports import LevelReport, NetworkReport, Report, SparseCounts, TensorCounts
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright_adapters.timeloop import sparse_causes
from tilewright_adapters.timeloop.reading.clusters import dearest_energies
from tilewright_adapters.timeloop.reading.sparse import ignored_groups
from tilewright_adapters.timeloop.sparse_causes import close
from tilewright_notations.timeloop.report import report_of
from tilewright_notations.timeloop.stats import Stats, Unreadable, number, read_stats

FIRST_FILLS = Reason(
    code="first_fills",
    where="Timeloop before version 3 (May 2023)",
    message="the first writes of outputs are counted as fills; compare with --model-option first_fills=true",
)
ONE_ENERGY = Reason(
    code="one_energy",
    where="Timeloop's version 1 (until June 2021)",
    message="reads, fills and updates share blocks and cost the same: the highest energy of the three",
)
NO_ACTION = Reason(
    code="no_action",
    where="Timeloop's version 1 (until June 2021)",
    message="the energy table lacks reads or writes of this memory; its dearest action counts, as with --one-energy",
)
FIRST_READS = Reason(
    code="first_reads",
    where="Timeloop before November 2019",
    message="another rule counts the words that an instance writes first and need not read",
)
WINDOWS = Reason(
    code="windows",
    where="Timeloop before January 2025",
    message="another rule credits the overlap of sliding windows (Timeloop's pull request 297)",
)
LINKS = Reason(
    code="links",
    where="this run",
    message="link transfers are switched off; compare with --model-option link_transfers=false",
)
HOPS = Reason(
    code="hops",
    where="Timeloop before version 3.0.3 (October 2023)",
    message="the hops of a network are those of a mean route, and 0.5 where nothing fans out",
)
BYTES = Reason(
    code="bytes",
    where="Timeloop before 2020",
    message="bandwidths are bytes per cycle, not words",
)
SPARSE = Reason(
    code="sparse",
    where="this sparse run",
    message="energies and cycles exclude skipped work; counts compared are those of the dense run",
)
_AVERAGE = "Utilized instances (average)"
ACCESSES = ("reads", "fills", "updates")
COUNTS = (*ACCESSES, "instances", "tile_words", "partition_words")
OPERATIONS = ("actual_operations", "gated_operations", "skipped_operations")
Causes = tuple[Reason, ...] | None
"""Causes of a difference; None: unknown."""


def figures(recorded: Path, inputs: InputSet, ours: Report) -> tuple[RecordedFigure, ...]:
    """Return the comparison; see `tilewright.plugin.adapter.ReportReader`."""
    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    try:
        stats = read_stats(read_text(recorded))
        theirs = report_of(stats, inputs.problem, inputs.architecture, inputs.mapping, "Timeloop")
    except Unreadable as error:
        raise InputError(
            f"the statistics do not belong to these inputs: {error}",
            location=Location(str(recorded), error.line),
            hint="give the stats.txt first, then Timeloop's input files",
        ) from None
    beside = _Comparison(stats, theirs, ours, inputs.problem, inputs.architecture, inputs.mapping, inputs.warnings)
    levels = [figure for level in theirs.levels if level.tensors for figure in beside.level(level)]
    parts = [*levels, *beside.networks(), *beside.compute()]
    rows = (*parts, *beside.totals(parts))
    return tuple(_of_sparse(figure) for figure in rows) if stats.is_sparse and not beside.both_sparse else rows


@dataclass
class _Comparison:
    stats: Stats
    theirs: Report
    ours: Report
    problem: Problem
    architecture: Architecture
    mapping: Mapping
    warnings: tuple[str, ...] = ()
    """Warnings of the inputs."""

    @cached_property
    def unlinked(self) -> frozenset[str]:
        """Tensors that neighbours forward in our report, if no tensor is forwarded in the recorded run."""
        if not self.theirs.networks or any(network.link_transfers for network in self.theirs.networks):
            return frozenset()
        return frozenset(network.tensor for network in self.ours.networks if network.link_transfers)

    @cached_property
    def dearest(self) -> MappingOf[str, float]:
        """Energy of the dearest action of each memory whose energy table lacks reads or writes."""
        return dearest_energies(self.warnings)

    @property
    def both_sparse(self) -> bool:
        """Whether our report counts sparse hardware, too."""
        return self.stats.is_sparse and self.ours.actual_operations is not None

    def level(self, theirs: LevelReport) -> Iterator[RecordedFigure]:
        """Yield counts and energies by tensor, then those of the whole level."""
        ours = next(level for level in self.ours.levels if level.name == theirs.name)
        causes: dict[str, Causes] = {}
        for name, counts in theirs.tensors.items():
            result = ours.tensors[name]
            dense, dense_result = _dense(counts), _dense(result)
            reasons: dict[str, Causes] = {}
            for figure in COUNTS:
                recorded, counted = getattr(dense, figure), getattr(dense_result, figure)
                if recorded is None or counted is None:
                    continue
                why = () if recorded == counted else self._why_counted(theirs.name, name, figure, dense, dense_result)
                reasons[figure] = why
                causes[name] = _joined(causes.get(name, ()), why)
                told = f"dense_{figure}" if self.both_sparse and figure in ACCESSES else figure
                yield RecordedFigure(theirs.name, name, told, recorded, counted, recorded == counted, why or ())
            groups = ignored_groups(self.warnings, name)
            emptied = any(
                f"{name} in {theirs.name}" in told and told.endswith("[no_instance]") for told in self.ours.warnings
            )
            printed = self._printed(theirs.name, name)
            for figure, recorded, counted in _sparse_figures(counts, result, printed) if self.both_sparse else ():
                same = recorded == counted or (figure == "average_instances" and abs(recorded - counted) <= 0.0051)
                why = () if same else next((reasons[access] for access in ACCESSES if access in figure), None)
                if not same and not why:
                    why = (
                        sparse_causes.of_count(
                            figure,
                            recorded,
                            counted,
                            counts,
                            groups=groups,
                            emptied=emptied,
                            averaged=_AVERAGE in printed,
                        )
                        or None
                    )
                causes[name] = _joined(causes[name], why)
                yield RecordedFigure(theirs.name, name, figure, recorded, counted, same, why or ())
            if self.both_sparse:
                why = self._why_sparse_energy(theirs.name, name, counts, result, causes[name])
            else:
                why = self._why_energy(theirs.name, name, dense, causes[name])
            yield _energy(theirs.name, name, "energy_pj", counts.energy_pj, result.energy_pj, 3, why)
        if theirs.leakage_pj or ours.leakage_pj:
            yield _energy(theirs.name, None, "leakage_pj", theirs.leakage_pj, ours.leakage_pj, 1, None)
        same = theirs.cycles == ours.cycles
        counted_why = _joined(*causes.values())
        why = None if same else (self._why_sparse_cycles if self.both_sparse else self._why_cycles)(theirs, counted_why)
        yield RecordedFigure(theirs.name, None, "cycles", theirs.cycles, ours.cycles, same, () if same else why or ())

    def networks(self) -> Iterator[RecordedFigure]:
        networks = {(network.name, network.tensor): network for network in self.ours.networks}
        for theirs in self.theirs.networks:
            ours = networks.get((theirs.name, theirs.tensor))
            if ours is None:
                continue
            name = f"below {theirs.name}"
            why: Causes = None
            if theirs.tensor in self.unlinked:
                why = (LINKS,)
            elif self._has_mean_hops(theirs):
                why = (HOPS,)
            elif _has_windows(self.problem.tensor(theirs.tensor)):
                why = (WINDOWS,)
            for figure in ("ingresses", "link_transfers", "spatial_reductions"):
                recorded, counted = getattr(theirs, figure), getattr(ours, figure)
                same = recorded == counted
                causes = why if why == (LINKS,) or (figure == "ingresses" and why != (HOPS,)) else None
                yield RecordedFigure(name, theirs.tensor, figure, recorded, counted, same, () if same else causes or ())
            yield _energy(name, theirs.tensor, "energy_pj", theirs.energy_pj, ours.energy_pj, 3, why)

    def compute(self) -> Iterator[RecordedFigure]:
        name = self.architecture.compute.name
        recorded, counted = self.theirs.compute_energy_pj or 0.0, self.ours.compute_energy_pj or 0.0
        counts = [
            (field, getattr(self.theirs, field), getattr(self.ours, field)) for field in OPERATIONS if self.both_sparse
        ]
        yield _energy(name, None, "energy_pj", recorded, counted, 1, self._why_operations(recorded - counted))
        for figure, theirs, ours in counts:
            why = (sparse_causes.ROUNDING,) if abs(theirs - ours) <= sparse_causes.MAX_ROUNDING else ()
            yield RecordedFigure(name, None, figure, theirs, ours, theirs == ours, () if theirs == ours else why)

    def totals(self, parts: list[RecordedFigure]) -> Iterator[RecordedFigure]:
        """Yield the totals of the run.

        A difference has the causes of its parts if all of these are known.
        """
        cycles = _joined(*(_known(part) for part in parts if part.figure == "cycles"))
        same = self.theirs.cycles == self.ours.cycles
        yield RecordedFigure(
            "total", None, "cycles", self.theirs.cycles or 0, self.ours.cycles or 0, same, () if same else cycles or ()
        )
        share = self.ours.utilization or 0.0
        same = abs(share - self.stats.utilization) <= 0.0051
        yield RecordedFigure(
            "total", None, "utilization", self.stats.utilization, share, same, () if same else cycles or ()
        )
        energies = [part for part in parts if part.figure.endswith("_pj")]
        why = _joined(*(_known(energy) for energy in energies))
        ours, lines = self.ours.energy_pj or 0.0, 3 * len(energies)
        yield _energy("total", None, "energy_pj", self.theirs.energy_pj or 0.0, ours, lines, why)
        steps = round(self.stats.energy_step_pj / 0.01)
        yield _energy("total", None, "summary_energy_pj", self.stats.energy_pj, ours, steps, why)

    def _cluster(self, level: str) -> int:
        """Return how many instances share an access in the recorded run; 0 if that is not printed."""
        sizes = (
            section.fields.get("Cluster size", "") for section in self.stats.levels.values() if section.title == level
        )
        return next((int(size) for size in sizes if size.isdecimal()), 0)

    def _printed(self, level: str, tensor: str) -> MappingOf[str, str]:
        """Return the recorded fields of a tensor in a level."""
        printed = (section.tensors.get(tensor) for section in self.stats.levels.values() if section.title == level)
        return next((fields for fields in printed if fields), {})

    def _why_counted(self, level: str, tensor: str, figure: str, theirs: TensorCounts, ours: TensorCounts) -> Causes:
        """Return why a count differs."""
        if tensor in self.unlinked and figure in ("reads", "fills", "updates"):
            return (LINKS,)
        declared = self.problem.tensor(tensor)
        if declared.is_output:
            first = theirs.fills - ours.fills
            if figure == "fills" and (first == ours.partition_words or (not ours.fills and first <= ours.tile_words)):
                return (FIRST_FILLS,)
            return (FIRST_READS,) if figure == "reads" and theirs.partition_words is None else None
        if not _has_windows(declared):
            return None
        between = figure == "fills" or (figure == "reads" and self._keeps_further_inside(level, tensor))
        return (WINDOWS,) if between else None

    def _keeps_further_inside(self, level: str, tensor: str) -> bool:
        names = [report.name for report in self.theirs.levels]
        return any(tensor in report.tensors for report in self.theirs.levels[names.index(level) + 1 :])

    def _why_energy(self, level: str, tensor: str, theirs: TensorCounts, counted: Causes) -> Causes:
        """Return why an energy differs.

        Candidates: different counts at the same energies per action, or one energy for all actions.
        """
        price = prices_of(self.architecture)[level]
        width = self._memory(level).slices_of(self.problem.tensor(tensor))
        slices = [width * instance_words for instance_words in (theirs.reads, theirs.fills, theirs.updates)]
        rules: list[tuple[float, tuple[Reason, ...]]] = [
            (access_pj(price, *slices), ()),
            (access_pj(price._replace(read_pj=max(price.energies)), sum(slices), 0, 0), (ONE_ENERGY,)),
        ]
        if level in self.dearest:
            rules.append((access_pj(price._replace(read_pj=self.dearest[level]), sum(slices), 0, 0), (NO_ACTION,)))
        clusters = charged(price, theirs.instances)
        for energy, why in rules:
            if close(theirs.energy_pj, energy * clusters, 3):
                return _joined(counted, why)
        return None

    def _why_sparse_energy(
        self, level: str, tensor: str, theirs: TensorCounts, ours: TensorCounts, counted: Causes
    ) -> Causes:
        """Return why an energy of sparse hardware differs: other counts, or skipped metadata that cost more."""
        memory, cluster = self._memory(level), self.architecture.cluster_of(level)
        existing = self.architecture.instances[self.architecture.cluster_index[cluster.name]]
        clusters = int(charged(prices_of(self.architecture)[level], ours.instances))
        outer = [report.name for report in self.theirs.levels if tensor in report.tensors]
        parent = outer[max(outer.index(level) - 1, 0)]
        declared = self.problem.tensor(tensor)
        decompressed = self._compresses(parent, declared) and not self._compresses(level, declared)
        printed = self._printed(level, tensor)
        why = sparse_causes.Energy(memory, declared, theirs, ours, clusters, decompressed).causes(_AVERAGE in printed)
        if why is None and theirs.energy_pj == 0 and existing < self._cluster(level):
            return (sparse_causes.CLUSTERS,)
        return _joined(counted, why)

    def _memory(self, level: str) -> Memory:
        return next(memory for memory in self.architecture.memories if memory.name == level)

    def _compresses(self, level: str, tensor: Tensor) -> bool:
        memory = self._memory(level)
        tensor_format = None if memory.sparse is None else memory.sparse.format_of(tensor)
        return tensor_format is not None and tensor_format.is_compressed

    def _why_sparse_cycles(self, level: LevelReport, counted: Causes) -> Causes:
        """Return why a level's cycles differ: other counts of accesses or of operations."""
        memory = self._memory(level.name)
        computing = _cycles_of(self.theirs, "compute")
        words = [
            sparse_causes.moved(memory, self.problem.tensor(name), tensor) for name, tensor in level.tensors.items()
        ]
        read, written = (sum(column) for column in zip(*words, strict=True)) if words else (0, 0)
        cycles = max(computing, int(port_cycles(price_of(memory), read, written)))
        if abs(cycles - level.cycles) > sparse_causes.MAX_ROUNDING:
            return None
        if any("Metadata format" in self._printed(level.name, name) for name in level.tensors):
            return _joined(counted, (sparse_causes.METADATA,))
        rounded = computing != _cycles_of(self.ours, "compute")
        return _joined(counted, (sparse_causes.ROUNDING,) if rounded else ())

    def _why_operations(self, energy_pj: float) -> Causes:
        """Return whether a difference in energy is that of operations that are rounded otherwise."""
        unit = self.architecture.compute
        prices = (unit.sparse.gated_pj, unit.sparse.skipped_pj) if unit.sparse else (0.0, 0.0)
        dear = max(unit.energy_per_operation_pj, *prices)
        rounded = self.both_sparse and abs(energy_pj) <= 2 * sparse_causes.MAX_ROUNDING * dear + 0.01
        return (sparse_causes.ROUNDING,) if rounded else None

    def _has_mean_hops(self, theirs: NetworkReport) -> bool:
        """Return whether the energy of a network is that of the hops that Timeloop prints."""
        cluster = self.architecture.cluster_of(theirs.name)
        inside = [math.prod(units.values()) for _, units in self.mapping.factors()]
        first = [entry.target for entry in self.mapping.entries].index(theirs.name)
        instances = math.prod(inside[:first])
        hop = cluster.fanout.network.energy_per_hop_pj
        steps = abs(0.0051 * theirs.ingresses * hop * instances)
        return hop > 0 and abs(theirs.energy_pj - theirs.ingresses * theirs.hops * hop * instances) <= steps

    def _why_cycles(self, level: LevelReport, counted: Causes) -> Causes:
        """Return why a level's cycles differ: different counts, or bandwidths in bytes."""
        memory = self._memory(level.name)
        computing = math.prod(trips for steps, _ in self.mapping.factors() for trips in steps.values())
        widths = {name: memory.slices_of(self.problem.tensor(name)) for name in level.tensors}
        read = sum(widths[name] * counts.reads for name, counts in level.tensors.items())
        written = sum(widths[name] * (counts.fills + counts.updates) for name, counts in level.tensors.items())
        waiting = port_time(price_of(memory), read, written)
        for scale, why in ((1.0, ()), (8 / memory.word_bits, (BYTES,))):
            cycles = max(computing, math.ceil(waiting / scale))
            if abs(cycles - level.cycles) <= 1:
                return _joined(counted, why)
        return None


def _cycles_of(report: Report, name: str) -> int:
    return next((limit.cycles for limit in report.limits if limit.name == name), 0)


def _dense(counts: TensorCounts) -> TensorCounts:
    """Return the counts of the dense run."""
    return counts if counts.sparse is None else counts.model_copy(update=counts.sparse.dense.model_dump())


def _sparse_figures(
    theirs: TensorCounts, ours: TensorCounts, printed: MappingOf[str, str]
) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each count of sparse hardware that Timeloop prints, its value and ours."""
    for figure in ACCESSES:
        yield figure, getattr(theirs, figure), getattr(ours, figure)
    if theirs.sparse is None or ours.sparse is None:
        return
    recorded, counted = _leaves(theirs.sparse), _leaves(ours.sparse)
    for figure, value in recorded.items():
        yield figure, value, counted.get(figure, 0)
    for (part, figure), name in sparse_causes.TOTALS.items():
        if name in printed:
            yield f"metadata_{part}_{figure}".rstrip("_"), number(printed[name]), _total(ours.sparse, part, figure)


def _total(counts: SparseCounts, part: str, figure: str) -> int:
    """Return the pieces of metadata of all ranks that a tile has, or that an action of a kind moves."""
    pieces = [stored for rank in counts.metadata for stored in (rank.metadata, rank.payload)]
    return sum(getattr(getattr(piece, part), figure) if figure else getattr(piece, part) for piece in pieces)


def _leaves(counts: SparseCounts) -> dict[str, float]:
    """Return gated and skipped accesses, and metadata by rank, by name; rank 0 is the innermost one."""
    leaves: dict[str, float] = {"stored_words": counts.stored_words, "average_instances": counts.average_instances}
    for kind, accesses in (("gated", counts.gated), ("skipped", counts.skipped)):
        leaves |= {f"{kind}_{figure}": getattr(accesses, figure) for figure in ACCESSES}
    for index, rank in enumerate(reversed(counts.metadata)):
        for part, pieces in (("metadata", rank.metadata), ("payload", rank.payload)):
            leaves[f"rank_{index}_{part}_stored"] = pieces.stored
            for kind in ("actual", "gated", "skipped"):
                accesses = getattr(pieces, kind)
                leaves |= {f"rank_{index}_{part}_{kind}_{figure}": getattr(accesses, figure) for figure in ACCESSES}
    return leaves


def _energy(
    level: str, tensor: str | None, figure: str, recorded: float, ours: float, lines: int, why: Causes
) -> RecordedFigure:
    same = close(recorded, ours, lines)
    return RecordedFigure(level, tensor, figure, recorded, ours, same, () if same else why or ())


def _of_sparse(figure: RecordedFigure) -> RecordedFigure:
    """Return the value with the cause `sparse`, unless it is a count.

    Timeloop also reports the counts of the dense run.
    """
    differs = not figure.equal and not figure.causes and figure.figure not in COUNTS
    return replace(figure, causes=(SPARSE,)) if differs else figure


def _known(figure: RecordedFigure) -> Causes:
    return None if not figure.equal and not figure.causes else figure.causes


def _joined(*causes: Causes) -> Causes:
    """Return all causes, each once; None if one is unknown."""
    reasons: MappingOf[Reason, None] = {}
    for cause in causes:
        if cause is None:
            return None
        reasons = {**reasons, **dict.fromkeys(cause)}
    return tuple(reasons)


def _has_windows(tensor: Tensor) -> bool:
    return any(len(rank.terms) > 1 for rank in tensor.projection)
