"""Comparison of a layer's alternatives: a table to print and rows for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.application.algorithms.totals import Choice
from tilewright.reports.costs import COSTS
from tilewright.tables import Column, Table, numbers


def offer_table(choices: Sequence[Choice], movements: bool) -> Table:
    """Return a table with one row per alternative; costs are for one occurrence of the layer."""
    table = Table(
        "layer", "algorithm", numbers("energy of steps", "pJ", rank=3, like="pJ"), numbers("moved", "pJ", rank=2, like="pJ"),
        numbers("energy", "pJ", like="pJ"), numbers("cycles of steps", rank=5, like="cycles"),
        numbers("moved", "cycles", rank=4, like="cycles"), numbers("cycles", like="cycles"), numbers("EDP", "pJ x cycles"),
        Column("", wrapped=True),
        title="for one occurrence of a layer" + ("" if movements else "; movements are not counted"),
    )  # fmt: skip
    for choice in choices:
        note = _note(choice)
        if choice.steps is None or choice.total is None:
            table.add_row(choice.offer.distinct.problem.name, choice.offer.name, *[None] * 7, note)
            continue
        energy = (choice.steps.energy_pj, choice.moved.energy_pj, choice.total.energy_pj)
        cycles = (choice.steps.cycles, choice.moved.cycles, choice.total.cycles)
        table.add_row(choice.offer.distinct.problem.name, choice.offer.name, *energy, *cycles, choice.total.edp, note)
    return table


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
        alternative, steps, total = choice.offer.alternative, choice.steps, choice.total
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
                "energy_of_steps_pj": None if steps is None else steps.energy_pj,
                "cycles_of_steps": None if steps is None else steps.cycles,
                "energy_moved_pj": choice.moved.energy_pj,
                "cycles_moved": choice.moved.cycles,
                **COSTS.data("steps", total),
                "reasons": [reason.model_dump(mode="json") for reason in choice.offer.reasons],
            }
        )
    return rows
