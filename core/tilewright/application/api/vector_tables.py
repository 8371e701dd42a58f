"""Printed parts on vector layers, and on operators of a network that are not counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from tilewright.application.documents.searches import GroupUnits, GroupVectorRow, RooflineRow, UnitBar, VectorRow
from tilewright.application.run.fused_vectors import FusedVectors
from tilewright.application.run.group_vectors import GROUP_VECTORS, GroupVectors, JoinedVector
from tilewright.application.run.vector_network import VECTORS, Bar, CountedVector, VectorTotals
from tilewright.formats import quantity
from tilewright.reports.content import seconds_of
from tilewright.reports.costs import COSTS
from tilewright.schema.architecture import Architecture
from tilewright.schema.workload import Unmapped, Workload
from tilewright.tables import Column, Shown, Table, csv_text, numbers
from tilewright.values import attributes, grouped

VECTOR = "a vector layer"
NO_UNIT = "a vector layer, and the architecture has no vector unit"


def vector_tables(totals: VectorTotals) -> list[Table | str]:
    """Return the costs of vector layers by operator, and the totals with them; nothing without vector units."""
    if not totals.vectors:
        return []
    kinds = grouped(((vector.layer.operator, vector.unit), vector) for vector in totals.valid)

    def times(part: str, vectors: list[CountedVector]) -> float:
        return sum((getattr(vector.report, part) or 0) * vector.layer.count for vector in vectors)

    whole = totals.sequential_cycles
    columns: list[Shown[tuple[tuple[str, str], list[CountedVector]]]] = [
        Shown("operator", lambda kind: kind[0][0], "total"),
        Shown("unit", lambda kind: kind[0][1]),
        Shown(numbers("count", rank=3), lambda kind: sum(vector.layer.count for vector in kind[1])),
        Shown(
            numbers("operations", rank=4), lambda kind: int(times("macs", kind[1])), int(times("macs", totals.valid))
        ),
        Shown(COSTS.figures["energy_pj"].column, lambda kind: times("energy_pj", kind[1]), totals.vector_energy_pj),
        Shown(COSTS.figures["cycles"].column, lambda kind: int(times("cycles", kind[1])), totals.vector_cycles),
        Shown(
            numbers("% of cycles", rank=2, decimals=1),
            lambda kind: 100 * times("cycles", kind[1]) / whole if whole else None,
        ),
    ]
    parts: list[Table | str] = (
        ["", Table.of(columns, list(kinds.items()), "vector layers", total=True)] if kinds else []
    )
    missing = Counter(part.operator for part in left_out(totals.workload, totals)[1] if part.operations != 0)
    names = [name if count == 1 else f"{name} ({count})" for name, count in missing.items()]
    told = _told(totals)
    left = [f"these totals are without {', '.join(names)}, which are not counted"] if names and told else []
    return [*parts, *told, *left]


def group_vector_tables(made: GroupVectors) -> list[Table | str]:
    """Return the costs of the vector layers of a group, the totals with them, and why units do not overlap."""
    columns: list[Shown[JoinedVector]] = [
        *GROUP_VECTORS.shown("evaluate", lambda one: one),
        *(Shown(COSTS.figures[key].column, attrgetter(key)) for key in ("energy_pj", "cycles")),
    ]
    left = [f"{one.vector.name} is not counted: {one.reason}" for one in made.refused]
    alone = [f"units do not overlap: {made.alone}"] if made.alone else []
    return ["", Table.of(columns, made.vectors, "vector layers at home"), *_told(made), *left, *alone]


def group_units(made: GroupVectors) -> GroupUnits:
    """Return the vector layers of a group as JSON documents have them."""
    return GroupUnits(
        vectors=[
            GroupVectorRow(
                **GROUP_VECTORS.data("json", one), energy_pj=one.energy_pj, cycles=one.cycles, reason=one.reason
            )
            for one in made.vectors
        ],
        timeline=unit_bars(made.bars),
        **attributes(
            made, "vector_cycles vector_energy_pj sequential_cycles overlapped_cycles network_energy_pj alone"
        ),
    )


def unit_bars(bars: Sequence[Bar]) -> list[UnitBar]:
    """Return a time line as JSON documents have it."""
    return [UnitBar(**attributes(bar, "name unit start end count segment")) for bar in bars]


def _told(totals: VectorTotals | GroupVectors) -> list[str]:
    """Return the totals with vector layers, a line each."""
    return [
        f"{figure.column.name}: {figure.text(WithVectors(totals))}{_time(key, totals)}"
        for key, figure in COSTS.view("vectors").items()
        if figure.value(WithVectors(totals)) is not None
    ]


def _time(key: str, totals: VectorTotals | GroupVectors) -> str:
    """Return the time of cycles, if the architecture has a clock."""
    cycles = getattr(totals, key) if key.endswith("_cycles") else None
    seconds = seconds_of(cycles, totals.architecture.clock_ghz)
    return f", {quantity(1e12 * seconds, 'ps')}" if seconds else ""


class WithVectors:
    """Subject of figures that has nothing but totals with vector layers."""

    def __init__(self, with_vectors: VectorTotals | GroupVectors | FusedVectors) -> None:
        self.with_vectors = with_vectors


def vectors_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of `vectors.csv` from the vector layers of a JSON document."""
    columns = (*VECTORS.keys("json"), *COSTS.keys("steps"))
    return csv_text(columns, [{name: row[name] for name in columns} for row in rows])


def vector_rows(vectors: Sequence[CountedVector], architecture: Architecture) -> list[VectorRow]:
    """Return the vector layers as JSON documents have them."""
    return [
        VectorRow(
            **VECTORS.data("json", vector),
            **COSTS.data("steps", vector.report),
            reads=None if vector.layer.after is None else list(vector.layer.after),
            reason=vector.reason,
            roofline=RooflineRow.of(vector.report, architecture),
        )
        for vector in vectors
    ]


def left_out(workload: Workload, totals: VectorTotals) -> tuple[list[Unmapped], list[Unmapped]]:
    """Return the unmapped operators, with vector layers that are in no such list, and those that nothing counts.

    The latter tell why the model does not count their vector layer, if they have one.
    """
    counted = totals.counted
    refused = {name: reason for layer, reason in totals.uncounted() for name in layer.operators or (layer.name,)}
    vectors = [
        Unmapped(
            name=vector.name,
            operator=vector.operator,
            reason=VECTOR if totals.vectors else NO_UNIT,
            operations=vector.count * sum(vector.plain_work.operations(vector.rows, vector.row, None).values()),
        )
        for vector in workload.vectors
        if not vector.operators
    ]
    every = [*workload.unmapped, *vectors]
    left = [
        part.model_copy(update={"reason": f"{part.reason}; not counted: {refused[part.name]}"})
        if part.name in refused
        else part
        for part in every
        if part.name not in counted
    ]
    return every, left


def unmapped_table(workload: Workload, totals: VectorTotals) -> list[Table | str]:
    """Return the unmapped operators by kind, with their fraction of all scalar operations.

    With vector units, those that are counted as vector layers are left out, and the others have the reason.
    """
    every, left = left_out(workload, totals)
    if not left:
        return []
    groups = grouped(((part.operator, part.reason), part.operations) for part in left)
    known = Counter({key: sum(n or 0 for n in values) for key, values in groups.items()})
    work = sum(part.operations or 0 for part in every) + workload.macs
    columns = ("operator", numbers("count"), numbers("% of work", decimals=1), Column("reason", wrapped=True))
    table = Table(*columns, title="not counted" if totals.vectors else "not mapped")
    for (operator, reason), operations in known.most_common():
        unknown = any(n is None for n in groups[operator, reason])
        share = "unknown" if unknown else 100 * operations / work if operations else "none"
        table.add_row(operator, len(groups[operator, reason]), share, reason)
    return [table]
