"""Conventions of cost models next to each other, and what they explain: counts and cycles that differ."""

from __future__ import annotations

import itertools
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from typing import Any

from tilewright.application.run.differences import ROUNDED, Cause, approximated
from tilewright.plugin.conventions import conventions_of, differing, explaining
from tilewright.plugin.registry import installed
from tilewright.plugin.route import Action, Route
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report
from tilewright.schema.mapped import BoundMapping
from tilewright.tables import Column, Table, numbers
from tilewright.values import grouped

NOT_DECLARED = "not declared"
MAX_LIMITS = 3
"""Maximum number of limits per model in a table."""


def specs_of(models: Sequence[str]) -> dict[str, CostModelSpec]:
    """Return the specs of installed cost models by the names of their reports; objects have none."""
    specs: dict[str, CostModelSpec] = {}
    for registration in installed().of_kind(CostModelSpec):
        for name in models:
            if name in (registration.name, registration.spec.name) and isinstance(registration.spec, CostModelSpec):
                specs.setdefault(name, registration.spec)
    return specs


def conventions_between(models: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return topic -> model -> rule, of topics on which models differ. Models that declare none are left out."""
    specs = specs_of(models)
    rules = {model: conventions_of(specs[model]) if model in specs else {} for model in models}
    return {topic: {model: of[topic] for model, of in rules.items() if topic in of} for topic in differing(rules)}


def conventions_table(conventions: MappingOf[str, MappingOf[str, str]], models: Sequence[str]) -> Table:
    """Return a table with a row per topic and rule, and the models that have it."""
    table = Table(
        "convention", "models", Column("rule", wrapped=True), title="declared conventions in which the models differ"
    )
    for topic, rules in conventions.items():
        groups = grouped((rules.get(model, NOT_DECLARED), model) for model in models)
        for number, (rule, names) in enumerate(groups.items()):
            table.add_row("" if number else topic, ", ".join(names), rule)
    return table


def causes_between(
    mapping: BoundMapping, reports: Sequence[Report], level: str, tensor: str, action: Action
) -> tuple[Cause, ...]:
    """Return what may explain that models count an action differently, by their declarations alone.

    An approximation explains a count if its model declares it, it applies, and a model with another count lacks it. It
    explains no count that equals an executed one. A convention explains a count if it concerns the count, and models with
    different counts have different rules. `A, B | C` names the models with equal rules.
    """
    counts: dict[str, int] = {}
    for report in reports:
        for row in report.levels:
            if row.name == level and tensor in row.tensors:
                counts[report.model] = getattr(row.tensors[tensor], action)
    silent = [report.model for report in reports if report.model not in counts]
    causes = [Cause(code="no_count", message=f"no such count by {', '.join(silent)}")] if silent else []
    if len(set(counts.values())) < 2:
        return tuple(causes)
    specs = specs_of(list(counts))
    routes = {
        report.model: Route.of(mapping.problem, mapping.architecture, mapping, report, tensor, level, action)
        for report in reports
        if report.model in specs and report.model in counts
    }
    executed = {counts[model] for model in routes if specs[model].executes}
    pairs: list[tuple[tuple[str, str], str]] = []
    for model, route in routes.items():
        if counts[model] in executed:
            continue
        others = [other for other, count in counts.items() if count != counts[model]]
        for approximation in specs[model].approximations:
            shared = all(
                other in specs and approximation.code in {known.code for known in specs[other].approximations}
                for other in others
            )
            cause = None if shared else approximated(approximation, route)
            if cause is not None:
                pairs.append(((cause.code, cause.message), model))
    causes += [
        Cause(code=code, message=f"{', '.join(models)}: {message}")
        for (code, message), models in grouped(pairs).items()
    ]
    rules = {model: conventions_of(specs[model]) for model in routes}
    told: dict[str, dict[str, str]] = {}
    for a, b in itertools.combinations(routes, 2):
        if counts[a] != counts[b]:
            for topic, ruled in explaining({a: rules[a], b: rules[b]}, routes[a]).items():
                told.setdefault(topic, {}).update(ruled)
    for topic, ruled in told.items():
        groups = grouped((rule, model) for model, rule in ruled.items())
        text = " | ".join(", ".join(models) for models in groups.values())
        causes.append(Cause(code=topic, message=f"convention on {topic}: {text}"))
    if max(counts.values()) - min(counts.values()) == 1:
        causes.append(ROUNDED)
    return tuple(dict.fromkeys(causes))


def limit_rows(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Return the limits that bind the cycles of each model, the first ones first, if the cycles of the models differ.

    `others` maps each other model to the cycles that it needs for the same limit; None: it has no such limit.
    """
    if len({report.cycles for report in reports}) < 2:
        return []
    return [
        {
            "model": report.model,
            "problem": report.problem,
            "limit": limit.title,
            "cycles": limit.cycles,
            "binding_cycles": limit.binding_cycles,
            "words": limit.words,
            "words_per_cycle": limit.words_per_cycle,
            "others": {
                other.model: next((same.cycles for same in other.limits if same.title == limit.title), None)
                for other in reports
                if other is not report
            },
        }
        for report in reports
        for limit in report.slowest
        if limit.binding_cycles
    ]


def limit_table(rows: Sequence[dict[str, Any]], reports: Sequence[Report]) -> Table:
    """Return the limits of `limit_rows`, of each model the `MAX_LIMITS` that bind most cycles."""
    table = Table(
        "model",
        numbers("cycles"),
        "limit",
        numbers("binds", "cycles"),
        numbers("words", rank=3),
        numbers("words", "per cycle", rank=2),
        Column("in the other models", rank=1, wrapped=True),
        title=f"what sets the cycles of {reports[0].problem}",
    )
    for report in reports:
        limits = [row for row in rows if row["model"] == report.model]
        for number, row in enumerate(limits[:MAX_LIMITS]):
            others = grouped(
                ("no such limit" if cycles is None else f"{cycles:,} cycles", model)
                for model, cycles in row["others"].items()
            )
            first = ("", None) if number else (report.model, report.cycles)
            text = "; ".join(f"{', '.join(models)}: {what}" for what, models in others.items())
            table.add_row(*first, row["limit"], row["binding_cycles"], row["words"], row["words_per_cycle"], text)
        if not limits:
            table.add_row(report.model, report.cycles, "not reported", None, None, None, "")
    return table
