"""Fit of cost models to architectures, determined before any search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.application.run.accepted import ANOTHER, narrowed_space
from tilewright.application.run.evaluation import BuiltModel, bind, reasons_of
from tilewright.errors import PluginError, Reason, TilewrightError
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.problem import Problem
from tilewright.tables import Column, Table
from tilewright.values import grouped


@dataclass(frozen=True)
class Fit:
    """Answer of a cost model about a problem on an architecture. `error` is None if it fits."""

    model: str
    problem: str
    error: TilewrightError | None = None

    @property
    def fits(self) -> bool:
        return self.error is None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Reasons for a refusal; empty if the model fits."""
        return () if self.error is None else reasons_of(self.error)

    @property
    def reason(self) -> str:
        """Reason in one line: the first one, and the number of others."""
        if isinstance(self.error, PluginError):
            return self.error.message
        first, *others = self.reasons or ("",)
        return f"{first} (and {len(others)} more)" if others else str(first)

    @property
    def hint(self) -> str | None:
        """Remedy other than another model; None if there is none."""
        return None if self.error is None or self.error.hint == ANOTHER else self.error.hint

    @property
    def alike(self) -> tuple[str, ...]:
        """Key that equal answers for different problems share."""
        return self.model, *(reason.code for reason in self.reasons)


def fit_of(model: BuiltModel, problem: Problem, architecture: Architecture, constraints: Constraints) -> Fit:
    """Return whether a cost model accepts a problem on an architecture under constraints.

    No mapping is evaluated.
    """
    try:
        narrowed_space(model, problem, architecture, constraints)
        bind(model, problem, constraints.shape(architecture))
    except TilewrightError as error:
        return Fit(model.name, problem.name, error)
    return Fit(model.name, problem.name)


def fit_table(shown: Sequence[Fit], fits: Sequence[Fit], title: str) -> Table:
    """Return a table of models, their fit, the reasons and remedies.

    Answers of one model with the same kinds of reasons share a row. `fits` holds all answers, and
    `shown` those in the table.
    """
    table = Table(
        "model", "fits", "problems", Column("reason", wrapped=True), Column("what to do", wrapped=True), title=title
    )
    groups = grouped((fit.alike, fit) for fit in shown)
    problems = {fit.problem for fit in fits}
    for group in groups.values():
        first, names = group[0], [fit.problem for fit in group]
        which = "all" if len(names) == len(problems) else several(names)
        table.add_row(first.model, "yes" if first.fits else "no", which, first.reason, advice(first, fits))
    return table


def several(names: Sequence[str]) -> str:
    """Return names for a table: all of a few, or the first three and the number of others."""
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def refused_models(fits: Sequence[Fit]) -> list[str]:
    """Return the models that accept no problem."""
    models = dict.fromkeys(fit.model for fit in fits)
    return [model for model in models if not any(fit.fits for fit in fits if fit.model == model)]


def advice(one: Fit, fits: Sequence[Fit]) -> str:
    """Return the remedy if a model does not fit, otherwise an empty text."""
    if one.fits:
        return ""
    others = [fit.model for fit in fits if fit.problem == one.problem and fit.fits]
    return one.hint or (f"use {' or '.join(others)}" if others else "choose another model or another architecture")
