"""`compare_groups`: several group mappers under several cost models, with every result evaluated by all models."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.application.api.call_arguments import at_least, checked, names_of, options_by_name
from tilewright.application.api.compared_columns import model_cells, model_columns, value_of
from tilewright.application.api.fusion import is_exact
from tilewright.application.api.load import Source, load_group
from tilewright.application.documents.comparisons import CompareGroupsOutput, GroupRow, Price
from tilewright.application.run.evaluation import BuiltModel, build_model, evaluate_group, reasons_of
from tilewright.application.run.group_search import BuiltGroupMapper, build_group_mapper, search_group
from tilewright.errors import PluginError, Reason, TilewrightError
from tilewright.interrupts import mark_result_found, stop_requested
from tilewright.plugin.registry import installed
from tilewright.plugin.result import gap_of, proof
from tilewright.plugin.specs import CostModelSpec, GroupMapperSpec
from tilewright.reports import Report
from tilewright.reports.costs import COSTS
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.objective import Objective, ObjectiveName
from tilewright.tables import Cell, Column, Table, Tabular, numbers
from tilewright.values import attributes


@dataclass(frozen=True)
class GroupSearch:
    """A search by a group mapper under a model, with the report of each model on its best mapping.

    `bound` is what the mapper states in `space`; None if it states nothing, or compared other costs than the model's.
    """

    mapper: str
    model: str
    seconds: float
    reports: tuple[Report, ...] = ()
    group: GroupMapping | None = None
    bound: float | None = None
    value: float = math.inf
    space: str = ""
    claimed: bool = False
    error: TilewrightError | None = None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Reasons why there is no mapping; empty if there is one."""
        return () if self.error is None else reasons_of(self.error)

    @property
    def proof(self) -> str:
        """Proof of the mapping as text; a third party's is its claim."""
        told = proof(gap_of(self.value, self.bound)) or "no"
        return f"claimed by {self.mapper}: {told}" if self.claimed and told != "no" else told


@dataclass(frozen=True, repr=False)
class GroupComparison(Tabular):
    """Results of `compare` of a group, with one row per search: a group mapper under a cost model.

    `missing` searches were prevented by Ctrl-C.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> tw.compare_groups(group, mappers="loop_trees").complete
        True
    """

    group: GroupMapping
    objective: Objective
    models: tuple[BuiltModel, ...]
    searches: tuple[GroupSearch, ...]
    missing: int = 0

    def __repr__(self) -> str:
        return f"<GroupComparison of {self.group.name}: {len(self.searches)} searches>"

    @property
    def complete(self) -> bool:
        """Whether all searches ran."""
        return not self.missing

    def _value(self, row: GroupSearch, model: int) -> float:
        return value_of(row.reports, model, self.objective)

    @cached_property
    def refuted(self) -> dict[int, str]:
        """Search -> the sentence that refutes its bound: another search of the same space and model has a lower value."""
        texts = dict[int, str]()
        for number, row in enumerate(self.searches):
            for other in self.searches if row.bound is not None else ():
                alike = (other.model, other.space) == (row.model, row.space)
                if alike and row.bound is not None and other.value < row.bound * (1 - 1e-9):
                    told = f"its bound {row.bound:,.10g} is above {other.value:,.10g}, which {other.mapper} found"
                    texts[number] = f"group mapper {row.mapper} failed: {told}; the bound is dropped"
        return texts

    def _optimum(self, row: GroupSearch, model: int) -> str | None:
        """Return how many times the highest proved bound of the row's space the value by a model is; None without a bound."""
        bounds = [
            other.bound
            for number, other in enumerate(self.searches)
            if other.bound and not other.claimed and number not in self.refuted
            if (other.model, other.space) == (self.models[model].name, row.space)
        ]
        if not bounds or math.isinf(value := self._value(row, model)):
            return None
        least = min(self._value(other, model) for other in self.searches if other.space == row.space)
        return f"{'' if proof(gap_of(least, max(bounds))) == 'yes' else '<= '}{value / max(bounds):.2f}"

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `compare GROUP --json`."""
        return CompareGroupsOutput(
            group=self.group.name,
            arch=self.group.architecture.name,
            objective=self.objective.name,
            mappers=list(dict.fromkeys(row.mapper for row in self.searches)),
            models=[model.name for model in self.models],
            complete=self.complete,
            rows=[self._row(number, row) for number, row in enumerate(self.searches)],
        ).data()

    def _row(self, number: int, row: GroupSearch) -> GroupRow:
        return GroupRow(
            mapper=row.mapper,
            guide=row.model,
            valid=bool(row.reports),
            reasons=list(row.reasons),
            seconds=row.seconds,
            space=row.space,
            bound=None if number in self.refuted else row.bound,
            proved="refuted" if number in self.refuted else row.proof,
            mapping=None if row.group is None else row.group.to_data(),
            prices=[
                Price(**attributes(report, "valid reasons warnings"), **COSTS.data("json", report), model=model.name)
                for model, report in zip(self.models, row.reports, strict=False)
            ],
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per search and model."""
        return [
            {"mapper": row["mapper"], "guide": row["guide"], "proved": row["proved"], "model": cost["model"]}
            | {"valid": cost["valid"]}
            | {key: cost[key] for key in COSTS.view("csv") if key in cost}
            for row in self.data()["rows"]
            for cost in row["prices"]
        ]

    def messages(self) -> list[str]:
        """Return the failures, and how many searches Ctrl-C prevented."""
        errors = dict.fromkeys(str(row.error) for row in self.searches if isinstance(row.error, PluginError))
        lines = [f"error: {text}" for text in (*errors, *self.refuted.values())]
        return [*lines, *([f"interrupted: {self.missing} searches were not run"] if self.missing else [])]

    def tables(self) -> Sequence[Table | str]:
        """Return the table of `compare`, with a row per search."""
        shown = range(len(self.models))
        told = {n: any(self._optimum(row, n) for row in self.searches) for n in shown}
        columns = model_columns(self.models, told, self.objective)
        title = (
            f"{self.group.name} on {self.group.architecture.name}: {self.objective.title} by each model, "
            "and how many times the best by that model" + (", and the proved optimum" if any(told.values()) else "")
        )
        ends = (Column("proved"), numbers("seconds", rank=3, decimals=1), Column("remarks"))
        table = Table(Column("search by"), Column("mapper"), *columns, *ends, title=title)
        notes: dict[str, int] = {}
        best = [min((self._value(row, n) for row in self.searches), default=math.inf) for n in shown]
        for number, row in enumerate(self.searches):
            cells: list[Cell] = []
            for n in shown:
                cells += model_cells(self._value(row, n), best[n], self._optimum(row, n), told[n])
            marks = sorted(notes.setdefault(text, len(notes) + 1) for text in self._remarks(number, row))
            proved = "refuted" if number in self.refuted else row.proof
            table.add_row(row.model, row.mapper, *cells, proved, row.seconds, " ".join(map(str, marks)))
        return [table, *(f"  {mark}  {text}" for text, mark in notes.items())]

    def _remarks(self, number: int, row: GroupSearch) -> list[str]:
        remarks = [f"{reason.message} [{reason.code}]" for reason in row.reasons]
        for model, report in zip(self.models, row.reports, strict=False):
            remarks += [f"{model.name}: {reason}" for reason in report.reasons]
        return [*remarks, self.refuted[number]] if number in self.refuted else remarks


@checked
def compare_groups(
    group: Source,
    arch: Source | None = None,
    *,
    mappers: str | Sequence[str] | None = None,
    mapper_options: MappingOf[str, Any] | None = None,
    models: str | Sequence[str] | None = None,
    model_options: MappingOf[str, Any] | None = None,
    objective: ObjectiveName = "edp",
    seconds: float | None = None,
) -> GroupComparison:
    """Run every group mapper under every cost model, and evaluate each best group mapping with all models.

    This is the function behind `tilewright compare` for group files.

    Args:
        group, arch: As for `fuse`.
        mappers, models: Names, or one text with commas. Default: all group mappers, and the default cost model.
        mapper_options, model_options: Options of all of them, or `{NAME: {KEY: VALUE}}` for one.
        objective: Metric of all layers together: as in `fuse`.
        seconds: Time limit of each search. Default: none.

    Returns:
        The report. A mapper without a result and a model that refuses are rows with their reasons. What third parties prove is
        printed as their claim. Ctrl-C ends the comparison and returns the finished part.

    Raises:
        CallError, InputError, UnknownNameError: An argument is invalid; the message names the valid ones.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> group = tw.GroupMapping.of(layer.mapping.problem, layer.mapping.architecture, layer.mapping)
        >>> [row["mapper"] for row in tw.compare_groups(group, mappers="loop_trees").rows()]
        ['loop_trees']
    """
    loaded = load_group(group, arch)
    chosen = Objective.named(objective)
    at_least(0, seconds=seconds)
    registry = installed()
    every = [registration.name for registration in registry.of_kind(GroupMapperSpec)]
    some = names_of("mappers", every if mappers is None else mappers)
    priced = names_of("models", registry.default(CostModelSpec, "search") if models is None else models)
    of_mapper = options_by_name(mapper_options, some, "mapper_options")
    of_model = options_by_name(model_options, priced, "model_options")
    for name in some:
        registry.find(GroupMapperSpec, name)
    built = tuple(build_model(name, of_model[name]) for name in priced)
    rows: list[GroupSearch] = []
    asked = [(model, name) for model in built for name in some]
    for model, name in asked:
        if stop_requested():
            break
        rows.append(_searched(loaded, name, of_mapper[name], model, built, chosen, seconds))
        mark_result_found()
    return GroupComparison(loaded, chosen, built, tuple(rows), len(asked) - len(rows))


def _searched(
    group: GroupMapping,
    name: str,
    options: MappingOf[str, Any],
    model: BuiltModel,
    models: Sequence[BuiltModel],
    objective: Objective,
    seconds: float | None,
) -> GroupSearch:
    started = time.monotonic()
    try:
        mapper: BuiltGroupMapper = build_group_mapper(name, options)
        result = search_group(mapper, group, model, objective, seconds)
    except TilewrightError as error:
        return GroupSearch(name, model.name, time.monotonic() - started, error=error)
    spent = time.monotonic() - started
    reports = tuple(evaluate_group(one, result.group) for one in models)
    report = reports[models.index(model)]
    value = report.of(objective) if report.valid else None
    exact = report.valid and is_exact(result, report, model)
    return GroupSearch(
        name,
        model.name,
        spent,
        reports,
        result.group,
        (value if result.proved else result.bound or None) if exact else None,
        math.inf if value is None else value,
        result.space or mapper.spec.space,
        claimant(mapper.record) is not None,
    )
