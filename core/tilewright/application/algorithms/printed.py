"""Comparison of a layer's alternatives: a table to print and rows for JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from tilewright.application.algorithms.totals import Choice
from tilewright.figures import Figure, Sheet
from tilewright.reports.costs import COSTS
from tilewright.tables import Column, Shown, Table, numbers


def _part(name: str, key: str) -> Callable[[Choice], Any]:
    """Return the getter of a figure of a part; None without the part."""
    return lambda choice: getattr(getattr(choice, name), key, None)


OFFERS = Sheet(
    Figure(
        "energy_of_steps_pj",
        numbers("energy of steps", "pJ", like="energy"),
        _part("steps", "energy_pj"),
        meaning="Energy of the steps in pJ.",
    ),
    Figure(
        "cycles_of_steps",
        numbers("cycles of steps", like="cycles"),
        _part("steps", "cycles"),
        kind=int | None,
        meaning="Cycles of the steps.",
    ),
    Figure(
        "energy_moved_pj",
        numbers("moved", "pJ", like="energy"),
        _part("moved", "energy_pj"),
        meaning="Energy of the movements in pJ.",
    ),
    Figure(
        "cycles_moved",
        numbers("moved", "cycles", like="cycles"),
        _part("moved", "cycles"),
        kind=int | None,
        meaning="Cycles of the movements.",
    ),
    views={
        "json": "energy_of_steps_pj cycles_of_steps energy_moved_pj cycles_moved",
        "energies": "energy_of_steps_pj:3 energy_moved_pj:2",
        "cycles": "cycles_of_steps:5 cycles_moved:4",
    },
)


def offer_table(choices: Sequence[Choice], movements: bool) -> Table:
    """Return a table with one row per alternative; costs are for one occurrence of the layer."""

    def mapped(choice: Choice) -> Choice | None:
        return None if choice.total is None else choice

    energy, *others = COSTS.shown("steps", lambda choice: choice.total)
    columns: list[Shown[Choice]] = [
        Shown("layer", attrgetter("offer.distinct.problem.name")),
        Shown("algorithm", attrgetter("offer.name")),
        *OFFERS.shown("energies", mapped),
        energy,
        *OFFERS.shown("cycles", mapped),
        *others,
        Shown(Column("", wrapped=True), _note),
    ]
    return Table.of(
        columns, choices, "for one occurrence of a layer" + ("" if movements else "; movements are not counted")
    )


def _note(choice: Choice) -> str:
    """Return remarks on an alternative: whether it is best, reasons, and limits of accuracy."""
    parts = ["best"] if choice.is_best else []
    parts += [str(reason) for reason in choice.offer.reasons]
    alternative = choice.offer.alternative
    if alternative is not None:
        if choice.steps is None:
            parts.append("no mapping found")
        if not alternative.exact:
            parts.append("not exact")
        parts += [alternative.remark] if alternative.remark else []
    return "; ".join(parts)


def offer_rows(choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Return one dictionary per alternative, with its steps, dimensions and costs."""
    rows = []
    for choice in choices:
        alternative = choice.offer.alternative
        rows.append(
            {
                "layer": choice.offer.distinct.problem.name,
                "count": choice.offer.distinct.count,
                "algorithm": choice.offer.algorithm.name,
                "name": choice.offer.name,
                "best": choice.is_best,
                "steps": list(choice.offer.layers),
                "dimensions": {}
                if alternative is None
                else {key: list(of) for key, of in alternative.dimensions.items()},
                "movements": [] if alternative is None else [one.model_dump() for one in alternative.movements],
                "exact": None if alternative is None else alternative.exact,
                "remark": None if alternative is None else alternative.remark,
                **OFFERS.data("json", choice),
                **COSTS.data("steps", choice.total),
                "reasons": [reason.model_dump(mode="json") for reason in choice.offer.reasons],
            }
        )
    return rows
