"""Printed form of a report, short or long: energy, limits and memory use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from tilewright.figures import Figure, Sheet
from tilewright.formats import figure, quantity
from tilewright.reports.content import EnergyPart, ReportContent
from tilewright.reports.costs import COSTS
from tilewright.reports.parts import AccessCounts, Limit, TensorCounts
from tilewright.tables import Column, Shown, Table, numbers
from tilewright.values import grouped

ACCESSES = tuple(AccessCounts.model_fields)
"""Kinds of accesses."""
SHOWN = 3
"""Maximum number of limits in a summary."""


def summary(report: ReportContent, *title: str) -> list[Table | str]:
    """Return the main energies and limits. `title` lines replace the report's own title."""
    if not report.valid:
        return _head(report, *title)
    limits = report.slowest[:SHOWN]
    computing = [limit for limit in report.slowest[SHOWN:] if limit.action == "compute"]
    return [*_head(report, *title), *_limits(report, [*limits, *computing]), *_shares(report)]


def explanation(report: ReportContent) -> list[Table | str]:
    """Return the long form: all limits, energies, counts and memories."""
    if not report.valid:
        return _head(report)
    tables = _energies(report), _counts(report), _saved(report), _formats(report), _meshes(report)
    return [
        *_head(report),
        *_limits(report, report.slowest),
        *_shares(report),
        *(table for table in tables if table.rows),
    ]


def rows(report: ReportContent) -> list[dict[str, Any]]:
    """Return one row per part of the energy, with the counts of memories."""
    return [
        {"level": part.place, "tensor": part.tensor}
        | ({} if part.counts is None else _flat(part.counts))
        | PARTS.data("rows", _Share(part.energy_pj, report))
        for part in report.energy_parts()
    ]


def _flat(counts: TensorCounts) -> dict[str, Any]:
    """Return counts by name; those of sparse hardware have the names `gated_reads`, `stored_words` and so on."""
    flat: dict[str, Any] = counts.model_dump(exclude={"sparse"})
    sparse = {} if counts.sparse is None else counts.sparse.model_dump(exclude={"metadata"})
    for name, value in sparse.items():
        flat |= {f"{name}_{kind}": inner for kind, inner in value.items()} if isinstance(value, dict) else {name: value}
    return flat


@dataclass(frozen=True)
class _Share:
    """Part of the energy of a report."""

    energy_pj: float
    report: ReportContent

    @property
    def share(self) -> float:
        """Fraction of the total energy, 0 to 1."""
        return self.energy_pj / self.report.energy_pj if self.report.energy_pj else 0.0

    @property
    def pj_per_mac(self) -> float:
        return self.energy_pj / self.report.macs


PARTS = Sheet(
    Figure("energy_pj", numbers("energy", "pJ"), kind=float, meaning="Energy of the part in pJ."),
    Figure("share", numbers("share", "%", decimals=2), factor=100, kind=float, meaning="Fraction of the total energy."),
    Figure(
        "pj_per_mac",
        numbers("energy", "pJ/MAC", decimals=4),
        kind=float,
        meaning="Energy of the part in pJ per operation.",
    ),
    views={"rows": "energy_pj share pj_per_mac"},
)


def _head(report: ReportContent, *title: str) -> list[Table | str]:
    where = f" on {report.architecture}" if report.architecture else ""
    lines: list[Table | str] = [*title] or [f"{report.problem}{where} by {report.model}: {report.macs:,} MACs"]
    lines += [f"  warning: {warning}" for warning in report.warnings]
    if not report.valid:
        return [*lines, "  not valid:", *(f"  - {reason}" for reason in report.reasons)]
    energies = _by_place(report)
    most = max(energies, key=lambda place: sum(part.energy_pj for part in energies[place]), default=None)
    share = f", {100 * _share(energies[most], report).share:.1f} % of it in {most}" if most else ""
    lines.append(f"  energy  {quantity(report.energy_pj, 'pJ')}, {figure(report.pj_per_mac)} pJ per MAC{share}")
    used = "" if report.utilization is None else f", utilization {100 * report.utilization:.3g} %"
    lines.append(f"  cycles  {quantity(report.cycles, '')}{_bound(report)}{used}")
    if report.actual_operations is not None:
        kinds = f"{report.actual_operations:,} executed, {report.gated_operations:,} gated, {report.skipped_operations:,} skipped"
        lines.append(f"  sparse  {report.macs:,} MACs: {kinds}")
    if report.seconds and report.giga_macs_per_second and report.gops:
        speed = f"{report.giga_macs_per_second:.4g} GMAC/s ({report.gops:.4g} GOPS)"
        watt = f", {report.gops_per_watt:.4g} GOPS/W" if report.gops_per_watt else ""
        lines.append(f"  time    {quantity(1e12 * report.seconds, 'ps')} at {report.clock_ghz:g} GHz, {speed}{watt}")
    figures = [
        column
        for column in COSTS.view("summary").values()
        if column.value(report) is not None or not column.is_optional
    ]
    return [*lines, *(f"  {figure.column.name:<7} {figure.text(report)}" for figure in figures)]


def _bound(report: ReportContent) -> str:
    """Return the limit that binds most cycles, with the percentage unless it is 100."""
    if not report.limits or not report.cycles:
        return ""
    limit = report.slowest[0]
    share = 100 * limit.binding_cycles / report.cycles
    return f", limited by {limit.title}" + (f" for {share:.1f} % of them" if share < 100 else "")


BECAUSE = Column("because", wrapped=True)


def _limits(report: ReportContent, limits: Iterable[Limit]) -> Iterator[Table | str]:
    """Yield a table of limits: the cycles that each would need alone, and the reason."""
    if not report.limits:
        return
    shared = sum(limit.binding_cycles > 0 for limit in report.limits) > 1
    columns = [numbers("binds", "% of cycles", decimals=1)] if shared else []
    table = Table("limit", numbers("cycles"), numbers("of the run", "%", decimals=1), *columns, BECAUSE)
    yield ""
    for limit in limits:
        share = [100 * cycles / (report.cycles or 1) for cycles in (limit.cycles, limit.binding_cycles)]
        table.add_row(limit.title, limit.cycles, *share[: 1 + shared], _because(report, limit))
    yield table


def _because(report: ReportContent, limit: Limit) -> str:
    if limit.action == "compute" and report.busy_units is not None and report.compute_units is not None:
        return f"{report.busy_units:,.10g} of {report.compute_units:,} units work"
    if limit.words_per_cycle is None:
        return ""
    words = "" if limit.words is None else f"{limit.words:,} words "
    return f"{words}at {limit.words_per_cycle:,.10g} per cycle"


def _shares(report: ReportContent) -> Iterator[Table | str]:
    """Yield a table of energy fractions: a row per component, a column per tensor."""
    places = _by_place(report)
    if not places:
        return
    tensors = list(dict.fromkeys(part.tensor for parts in places.values() for part in parts if part.tensor))
    full = {level.name: level for level in report.levels}
    table = Table(
        Column("energy"), *(numbers(name, "%", rank=1, decimals=1) for name in tensors), numbers("all", "%", decimals=1),
        numbers("energy", "pJ/MAC", decimals=3), numbers("filled", "%", rank=2, decimals=1), more="--explain",
    )  # fmt: skip
    for place, parts in places.items():
        level = full.get(place)
        used = (
            None if level is None or not level.capacity_words else 100 * (level.used_words or 0) / level.capacity_words
        )
        table.add_row(place, *_row(report, parts, tensors), "" if used is None else used)
    everything = [part for parts in places.values() for part in parts]
    table.add_row("total", *_row(report, everything, tensors), "")
    yield from ("", table)


def _row(report: ReportContent, parts: list[EnergyPart], tensors: list[str]) -> list[float | str]:
    """Return percentages by tensor and in total, and pJ per MAC."""
    groups = {name: [part for part in parts if part.tensor == name] for name in tensors}
    shares: list[float | str] = [100 * _share(limits, report).share if limits else "" for limits in groups.values()]
    whole = _share(parts, report)
    return [*shares, 100 * whole.share, whole.pj_per_mac]


def _energies(report: ReportContent) -> Table:
    """Return a table of every energy part, with a sum for each component that has several."""
    rows: list[tuple[str, str, float]] = []
    for place, parts in _by_place(report).items():
        rows += [("" if index else place, part.tensor or "", part.energy_pj) for index, part in enumerate(parts)]
        rows += [("", "all", sum(part.energy_pj for part in parts))] if len(parts) > 1 else []
    total = {"energy_pj": report.energy_pj, "share": 1.0, "pj_per_mac": report.pj_per_mac}
    columns: list[Shown[tuple[str, str, float]]] = [
        Shown("place", itemgetter(0), "total"),
        Shown("tensor", itemgetter(1)),
        *PARTS.shown("rows", lambda row: _Share(row[2], report), total),
    ]
    return Table.of(columns, rows, "energy, over all instances", total=bool(rows))


def _counts(report: ReportContent) -> Table:
    """Return a table of words moved and kept, per instance."""
    table = Table(
        "memory", "tensor", numbers("instances", rank=1), *map(numbers, ACCESSES), numbers("holds"), numbers("of"),
        title="words per instance",
    )  # fmt: skip
    for level in report.levels:
        capacity = "unlimited" if level.capacity_words is None else level.capacity_words
        tiles = [tensor.stored_words for tensor in level.tensors.values()]
        alone = len(tiles) == 1 and level.used_words in (None, *tiles)
        for index, (name, tensor) in enumerate(level.tensors.items()):
            counts = (getattr(tensor, kind) for kind in ("instances", *ACCESSES, "stored_words"))
            table.add_row("" if index else level.name, name, *counts, capacity if alone else "")
        if not alone:
            name, used = ("", level.used_words) if level.tensors else (level.name, 0)
            table.add_row(name, "all", level.instances, *("" for _ in ACCESSES), used, capacity)
    return table


def _saved(report: ReportContent) -> Table:
    """Return a table of executed, gated and skipped accesses; those in no column do not exist."""
    table = Table(
        "memory", "tensor", "accesses", numbers("dense"), numbers("executed"), numbers("gated"), numbers("skipped"),
        numbers("metadata"), title="sparse accesses per instance",
    )  # fmt: skip
    for level in report.levels:
        for name, tensor in level.tensors.items():
            for kind in [kind for kind in ACCESSES if tensor.sparse and getattr(tensor.sparse.dense, kind)]:
                assert tensor.sparse is not None
                pieces = [piece for rank in tensor.sparse.metadata for piece in (rank.metadata, rank.payload)]
                counts = [
                    getattr(tensor_counts, kind)
                    for tensor_counts in (tensor.sparse.dense, tensor, tensor.sparse.gated, tensor.sparse.skipped)
                ]
                moved = sum(getattr(piece.actual, kind) for piece in pieces)
                table.add_row(level.name, name, kind, *counts, moved if pieces else "")
    return table


def _formats(report: ReportContent) -> Table:
    """Return a table of the ranks of compressed tiles, outermost first."""
    table = Table(
        "memory", "tensor", "rank", numbers("metadata"), numbers("payloads"), numbers("metadata", "bits"),
        title="metadata of the fullest tiles",
    )  # fmt: skip
    for level in report.levels:
        for name, tensor in level.tensors.items():
            ranks = tensor.sparse.metadata if tensor.sparse else ()
            for index, rank in enumerate(ranks):
                assert tensor.sparse is not None
                bits = tensor.sparse.metadata_bits if index == 0 else ""
                table.add_row(level.name, name, rank.format, rank.metadata.stored, rank.payload.stored, bits)
    return table


def _meshes(report: ReportContent) -> Table:
    """Return a table of meshes: the busiest link, and the words over all links, per instance."""
    table = Table(
        "mesh", "tensors", Column("busiest link"), numbers("words"), numbers("links in use"), numbers("word-hops"),
        title="meshes",
    )  # fmt: skip
    for mesh in report.meshes:
        link, words = next(iter(mesh.loads.items()), ("-", 0))
        table.add_row(mesh.name, ", ".join(mesh.tensors), link, words, len(mesh.loads), sum(mesh.loads.values()))
    return table


def _by_place(report: ReportContent) -> dict[str, list[EnergyPart]]:
    return grouped((part.place, part) for part in report.energy_parts())


def _share(parts: list[EnergyPart], report: ReportContent) -> _Share:
    return _Share(sum(part.energy_pj for part in parts), report)
