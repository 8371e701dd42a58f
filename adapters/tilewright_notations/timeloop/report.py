"""Conversion of Timeloop's statistics on a mapping to a report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from typing import Any

from tilewright.reports import (
    AccessCounts,
    LevelReport,
    Limit,
    MetadataCounts,
    NetworkReport,
    RankCounts,
    Report,
    SparseCounts,
    TensorCounts,
    overlapping,
)
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_notations.timeloop.stats import (
    Section,
    Stats,
    Unreadable,
    count,
    energy,
    leakage,
    needed,
    number,
    whole,
)


def report_of(stats: Stats, problem: Problem, architecture: Architecture, mapping: Mapping, model: str) -> Report:
    """Return the statistics as a report under the name `model`.

    Raises:
        Unreadable: levels are missing, or the parts do not add up to the total.
    """
    held = [entry.target for entry in mapping.entries if entry.keep is not None]
    kept = [entry.keep or () for entry in mapping.entries if entry.keep is not None]
    numbers = {len(held) - index: name for index, name in enumerate(held)}  # Timeloop counts from the innermost level
    if not set(stats.levels) <= {0, *numbers}:
        raise Unreadable(f"{max(stats.levels)} storage levels; expected {len(held)}")
    levels = []
    for index, tensors in enumerate(kept):
        section = stats.levels.get(len(held) - index)
        if section is None and tensors:
            raise Unreadable(f"nothing about {held[index]}")
        levels.append(_level(held[index], section or Section(), tensors, stats.cycles))
    compute = number(needed(stats.levels[0].fields, "Energy (total)"))
    titles = {section.title: numbers[index] for index, section in stats.levels.items() if index}
    networks = tuple(_networks(stats, titles, problem))
    total = compute + sum(level.energy_pj for level in levels) + sum(network.energy_pj for network in networks)
    streamed = [
        f"{name} in {level.title}" for level in stats.levels.values() for name in level.tensors if "(Streamed)" in name
    ]
    if streamed:
        raise Unreadable(f"they count {', '.join(streamed)}; no public version of Timeloop streams tensors")
    if not math.isclose(total, stats.energy_pj, rel_tol=0.01, abs_tol=2 * stats.energy_step_pj):
        raise Unreadable(f"energies add up to {total:g} pJ; the summary has {stats.energy_pj:g} pJ")
    operations = _operations(stats.levels[0]) if stats.is_sparse else {}
    busy = operations["actual_operations"] + operations["gated_operations"] if operations else problem.macs
    return Report(
        model=model,
        problem=problem.name,
        macs=problem.macs,
        valid=True,
        warnings=tuple(_warnings(stats, problem)),
        cycles=stats.cycles,
        energy_pj=total,
        edp=total * stats.cycles,
        utilization=busy / (architecture.compute_instances * stats.cycles),
        compute_energy_pj=compute,
        **operations,
        levels=tuple(levels),
        networks=networks,
        limits=_limits(stats, numbers),
    )


def _level(name: str, section: Section, tensors: tuple[str, ...], cycles: int) -> LevelReport:
    tensor_counts: dict[str, TensorCounts] = {}
    for tensor in tensors:
        fields = section.tensors.get(tensor)
        if fields is None:
            raise Unreadable(f"nothing about {tensor} in {name}")
        try:
            tensor_counts[tensor] = _counts(fields, section.ranks.get(tensor, {}))
        except Unreadable as error:
            line = section.lines.get(tensor) if error.line is None else error.line
            raise Unreadable(f"{tensor} in {name}: {error}", line) from None
    leakage_pj = leakage(section)
    return LevelReport(
        name=name,
        instances=max((counts.instances for counts in tensor_counts.values()), default=0),
        cycles=count(section.fields, "Cycles") if "Cycles" in section.fields else cycles,
        energy_pj=sum(counts.energy_pj for counts in tensor_counts.values()) + leakage_pj,
        leakage_pj=leakage_pj,
        tensors=FrozenDict(tensor_counts),
    )


def _counts(fields: MappingOf[str, str], ranks: MappingOf[str, MappingOf[int, tuple[str, str]]]) -> TensorCounts:
    capacity = "Utilized capacity" if "Utilized capacity" in fields else "Data tile shape"
    return TensorCounts(
        reads=count(fields, "Scalar reads (per-instance)"),
        fills=count(fields, "Scalar fills (per-instance)"),
        updates=count(fields, "Scalar updates (per-instance)"),
        instances=count(fields, "Utilized instances (max)"),
        tile_words=count(fields, capacity),
        energy_pj=energy(fields),
        partition_words=count(fields, "Partition size") if "Partition size" in fields else None,
        sparse=_sparse(fields, ranks),
    )


def _operations(section: Section) -> dict[str, Any]:
    """Return the operations of a sparse run by kind."""
    kinds = ("actual", "gated", "skipped")
    return {f"{kind}_operations": count(section.fields, f"{kind.capitalize()} Computes (total)") for kind in kinds}


def _sparse(fields: MappingOf[str, str], ranks: MappingOf[str, MappingOf[int, tuple[str, str]]]) -> SparseCounts | None:
    """Return the counts of a sparse run; None for a dense one.

    Until February 2022 (version 2) no average is printed: all instances have work. Metadata have totals, not ranks.
    """
    if "Algorithmic scalar reads (per-instance)" not in fields:
        return None

    def accesses(kind: str) -> AccessCounts:
        return AccessCounts(
            reads=count(fields, f"{kind} scalar reads (per-instance)"),
            fills=count(fields, f"{kind} scalar fills (per-instance)"),
            updates=count(fields, f"{kind} scalar updates (per-instance)"),
        )

    formats = [] if fields.get("Representation format") == "none" else list(_formats(fields, ranks))
    return SparseCounts(
        dense=accesses("Algorithmic"),
        gated=accesses("Gated"),
        skipped=accesses("Skipped"),
        metadata=tuple(formats),
        stored_words=count(fields, "Max utilized data storage capacity"),
        average_instances=number(
            fields["Utilized instances (average)"]
            if "Utilized instances (average)" in fields
            else needed(fields, "Utilized instances (max)")
        ),
    )


def _formats(
    fields: MappingOf[str, str], ranks: MappingOf[str, MappingOf[int, tuple[str, str]]]
) -> Iterator[RankCounts]:
    """Yield the counts of each rank, outermost first."""
    names = fields.get("Representation format", "").upper().split()
    for index, name in zip(reversed(range(len(names))), names, strict=True):
        yield RankCounts(format=name, metadata=_pieces(ranks, index, 0), payload=_pieces(ranks, index, 1))


def _pieces(ranks: MappingOf[str, MappingOf[int, tuple[str, str]]], index: int, part: int) -> MetadataCounts:
    """Return the metadata (part 0) or the payloads (part 1) of a rank; counts that are not printed are 0."""

    def counted(name: str) -> int:
        return whole(ranks[name][index][part]) if index in ranks.get(name, {}) else 0

    def accesses(kind: str) -> AccessCounts:
        return AccessCounts(
            reads=counted(f"{kind} scalar format reads (per-instance)"),
            fills=counted(f"{kind} scalar format fills (per-instance)"),
            updates=counted(f"{kind} scalar format updates (per-instance)"),
        )

    return MetadataCounts(
        stored=counted("Max utilized Repr format storage capacity"),
        actual=accesses("Actual"),
        gated=accesses("Gated"),
        skipped=accesses("Skipped"),
    )


def _limits(stats: Stats, names: dict[int, str]) -> tuple[Limit, ...]:
    """Return the cycles of compute and of each memory; empty if none equals the cycles of the run."""
    limits = [
        Limit(
            name=names.get(index, "compute"),
            action="access" if index else "compute",
            cycles=whole(section.fields["Cycles"]),
        )
        for index, section in sorted(stats.levels.items())
        if "Cycles" in section.fields
    ]
    limiting = overlapping(limits) if limits else ()
    return limiting if any(limit.binding_cycles == stats.cycles for limit in limiting) else ()


def _networks(stats: Stats, titles: dict[str, str], problem: Problem) -> Iterator[NetworkReport]:
    for upper, section in stats.networks:
        for tensor in problem.tensor_names:
            fields = section.tensors.get(tensor)
            if fields is None:
                continue
            yield NetworkReport(
                name=titles.get(upper, upper),
                tensor=tensor,
                ingresses=count(fields, "Ingresses") if "Ingresses" in fields else 0,
                link_transfers=count(fields, "Link transfers") if "Link transfers" in fields else 0,
                spatial_reductions=count(fields, "Spatial reductions") if "Spatial reductions" in fields else 0,
                hops=number(fields.get("Average number of hops", "0")),
                energy_pj=energy(fields, network=True),
            )


def _warnings(stats: Stats, problem: Problem) -> Iterator[str]:
    for word in ("Computes (total)", "Algorithmic Computes (total)"):
        given = stats.levels[0].fields.get(word)
        if given is not None and number(given) != problem.macs:
            yield f"Timeloop counts {given} operations, the problem has {problem.macs}"
