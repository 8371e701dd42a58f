"""`verify`: execute a mapping and check cost models; `diff_stats`: compare with another tool's report."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.application.algorithms.equality import Equality, executed
from tilewright.application.api.call_arguments import checked, names_of
from tilewright.application.api.evaluation import Files, Mapped, evaluate_inputs, inputs_of, set_of
from tilewright.application.api.load import Source, load_mapping
from tilewright.application.documents.checks import (
    DiffStatsOutput,
    EqualityResult,
    RecordedRow,
    VerifiedAlternative,
    VerifiedModel,
    VerifyOutput,
)
from tilewright.application.run.differences import CostDifference, Difference, compared, cost_differences, differences
from tilewright.application.run.evaluation import FAILED, bind, build_model, evaluate, executing_model, explain
from tilewright.errors import InputError, NotConformableError, PluginError, Reason
from tilewright.formats import figure, quantity
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet, RecordedFigure, ReportReader
from tilewright.plugin.registry import Registration, installed
from tilewright.plugin.specs import AdapterSpec, CostModelSpec
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapped import AlternativeRecord, MappedProblem
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.tables import Column, Table, Tabular, numbers
from tilewright.values import attributes

TOO_LARGE = "too_large"
"""Code of the reason against a problem that is too large to execute."""
CERTIFICATE_HINT = "a proved mapping has a certificate next to it; `tilewright verify --certificate FILE` checks that without execution"


@dataclass(frozen=True)
class ModelVerification:
    """Report of another model next to the execution. `compared` is the number of counts that both have.

    `costs` has energy and cycles where they differ.
    """

    report: Report
    compared: int = 0
    differences: tuple[Difference, ...] = ()
    costs: tuple[CostDifference, ...] = ()


@dataclass(frozen=True)
class AlternativeVerification:
    """Alternative that the mapping is a step of, executed together with its problem.

    `equality` is None if the problem is too large. `faults` explains why the steps do not compute
    the problem; they are then not executed.
    """

    record: AlternativeRecord
    equality: Equality | None
    faults: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: AlternativeRecord, mapped: Problem) -> AlternativeVerification:
        """Execute the alternative and its problem; `mapped` should be one of the steps."""
        faults = tuple(record.alternative.faults(record.problem))
        if mapped.content_key not in [layer.problem.content_key for layer in record.alternative.steps.layers]:
            faults = (*faults, f"the mapped problem {mapped.name} is not among them")
        return cls(record, None if faults else executed(record.problem, record.alternative), faults)

    @property
    def right(self) -> bool:
        """Whether no check failed."""
        return not self.faults and (self.equality is None or self.equality.right)

    def __str__(self) -> str:
        what = f"{self.record.alternative.name} of {self.record.problem.name}"
        seen = self.equality
        if self.faults:
            return f"{what}: the steps do not suit the problem:  {'; '.join(self.faults)}"
        if seen is None:
            return f"{what}: not executed, because it is too large"
        if not seen.right:
            return f"{what}: no: {seen.wrong:,} of {seen.words:,} words of {self.record.problem.output.name} differ"
        return f"{what}: computes the same {self.record.problem.output.name}, all {seen.words:,} words"


@dataclass(frozen=True, repr=False)
class Verification(Tabular):
    """Results of executing a mapping, and reports of other cost models if it is right.

    `violations` are the legality rules that it breaks. `alternatives` are those that it is a step of.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> check = tw.verify(layer)
        >>> check.right
        True
    """

    executed: Report
    violations: tuple[Reason, ...]
    models: tuple[ModelVerification, ...] = ()
    alternatives: tuple[AlternativeVerification, ...] = ()

    def __repr__(self) -> str:
        return f"<Verification of {self.executed.problem}: {'right' if self.right else 'wrong'}>"

    @property
    def right(self) -> bool:
        """Whether the mapping is legal, complete and numerically right, and its alternatives are right."""
        return self.executed.valid and all(alternative.right for alternative in self.alternatives)

    @property
    def legal(self) -> bool:
        return not self.violations

    @property
    def complete(self) -> bool | None:
        """Whether every iteration was executed exactly once; None if the mapping could not be executed."""
        return None if self.executed.execution is None else self.executed.execution.complete

    @property
    def result(self) -> bool | None:
        """Whether the computed tensor is correct; None if the mapping could not be executed."""
        return None if self.executed.execution is None else self.executed.execution.wrong_words == 0

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per count that differs from the execution."""
        return [
            {"model": model.report.model}
            | attributes(difference, "level tensor action executed counted")
            | {"causes": ", ".join(cause.code for cause in difference.causes)}
            for model in self.models
            for difference in model.differences
        ]

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `verify --json`."""
        return VerifyOutput(
            **attributes(self, "right legal complete result"),
            reasons=list(self.executed.reasons),
            executed=self.executed.model_dump(mode="json"),
            alternatives=[
                VerifiedAlternative(
                    algorithm=alternative.record.algorithm.name,
                    name=alternative.record.alternative.name,
                    problem=alternative.record.problem.name,
                    right=alternative.right,
                    equality=None if alternative.equality is None else EqualityResult(**asdict(alternative.equality)),
                    faults=list(alternative.faults),
                )
                for alternative in self.alternatives
            ],
            models=[
                VerifiedModel(
                    **attributes(other.report, "model valid reasons warnings cycles energy_pj"),
                    **attributes(other, "compared differences costs"),
                )
                for other in self.models
            ],
        ).data()

    def tables(self) -> Sequence[Table | str]:
        return [*self._judgement(), *(part for other in self.models for part in _counts_beside(other))]

    def _judgement(self) -> list[str]:
        executed, ran = self.executed, self.executed.execution
        lines = [f"{executed.problem}: {executed.macs:,} operations executed individually"]
        lines.append(f"  legal     {'yes' if self.legal else 'no'}")
        lines += [f"  - {reason}" for reason in self.violations]
        if ran is None:
            lines.append("  complete  unknown: the mapping cannot be executed")
        else:
            lines.append(f"  complete  {'yes: every iteration exactly once' if ran.complete else 'no'}")
            total = f"{ran.result_words:,} words of the result"
            wrong = f"no: {ran.wrong_words:,} of {total} differ"
            lines.append(f"  right     {wrong if ran.wrong_words else f'yes: {total} are correct'}")
        lines += [f"  - {reason}" for reason in executed.reasons[len(self.violations) :]]
        lines += [f"  {alternative}" for alternative in self.alternatives]
        if executed.valid:
            lines.append(f"  energy {quantity(executed.energy_pj, 'pJ')}, {quantity(executed.cycles, 'cycles')}")
        return lines


def _counts_beside(other: ModelVerification) -> list[Table | str]:
    report = other.report
    if not report.valid:
        return [f"{report.model} does not evaluate it:", *(f"  - {reason}" for reason in report.reasons)]
    lines: list[Table | str] = [f"{report.model} warns: {warning}" for warning in report.warnings]
    figures = f"energy {quantity(report.energy_pj, 'pJ')}, {quantity(report.cycles, 'cycles')}"
    if not other.differences:
        return [
            *lines,
            f"{report.model}: all {other.compared} counts equal the execution; {figures}",
            *_costs_beside(other),
        ]
    counts = numbers("executed"), numbers(report.model)
    table = Table("level", "tensor", "action", *counts, Column("because", wrapped=True))
    for difference in other.differences:
        causes = "; ".join(cause.message for cause in difference.causes)
        because = causes or "unexplained: the model declares no such approximation"
        table.add_row(*attributes(difference, "level tensor action executed counted").values(), because)
    return [
        *lines,
        f"{report.model}: {len(other.differences)} of {other.compared} counts differ; {figures}",
        table,
        "  counts are words per instance, averaged over the instances in use",
        *_costs_beside(other),
    ]


def _costs_beside(other: ModelVerification) -> list[Table | str]:
    """Return a line for energy and for cycles, where the execution has others."""
    lines: list[Table | str] = []
    for cost in other.costs:
        name, unit = ("other energy", "pJ") if cost.figure == "energy_pj" else ("other cycles", "cycles")
        times = f" ({figure(cost.counted / cost.executed, 3)} times)" if cost.executed else ""
        causes = "; ".join(f"{cause.message} [{cause.code}]" for cause in cost.causes) or "no cause is known"
        lines.append(
            f"  {name}: {quantity(cost.counted, unit)}, executed {quantity(cost.executed, unit)}{times}: {causes}"
        )
    return lines


@checked
def verify(
    mapping: Mapped | Files,
    problem: Source | None = None,
    arch: Source | None = None,
    *,
    by: str | None = None,
    options: MappingOf[str, Any] | None = None,
    models: str | Sequence[str] | None = None,
) -> Verification:
    """Execute a mapping of a small problem and compare the cost models with the execution.

    This is the function behind `tilewright verify`.

    Args:
        mapping, problem, arch: As for `evaluate`.
        by: Cost model that executes, if several are installed.
        options: Options of that cost model, such as `{"max_operations": 10**7}`.
        models: Cost models to compare with the execution. Default: all others that are installed.

    Raises:
        CallError, InputError, UnknownNameError: An argument or a file is invalid.
        NotConformableError: The problem is too large to execute.
        PluginError: The executing cost model crashed.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> tw.verify(layer).right
        True
    """
    inputs = inputs_of(mapping, problem, arch)
    if inputs.directives is not None:
        raise InputError(
            "these files contain directives, not mappings", hint="tilewright convert FILES --to tilewright"
        )
    _refuse_group(inputs)
    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    one, architecture, loaded = inputs.problem, inputs.architecture, inputs.mapping
    executing = executing_model(by)
    others = _named(models, executing)
    model = build_model(executing, options)
    try:
        bound = bind(model, one, architecture)
    except NotConformableError as error:
        if any(reason.code == TOO_LARGE for reason in error.reasons):
            raise NotConformableError(error.plugin, error.reasons, hint=CERTIFICATE_HINT) from None
        raise
    executed = explain(model, bound, one, architecture, loaded)
    if any(reason.code == FAILED for reason in executed.reasons):
        raise PluginError(executed.reasons[0].message)
    compared_models = _others(others, one, architecture, loaded, executed) if executed.valid else ()
    steps_of = tuple(AlternativeVerification.of(record, one) for record in _alternatives(mapping, problem))
    return Verification(executed, legality(one, architecture, loaded).reasons, tuple(compared_models), steps_of)


def _alternatives(mapping: Mapped | Files, problem: Source | None) -> tuple[AlternativeRecord, ...]:
    """Return the alternatives recorded in a mapping file; none if another problem is given."""
    if problem is not None or not isinstance(mapping, str | os.PathLike | MappedProblem):
        return ()
    with suppress(InputError):  # a file of another tool
        loaded = load_mapping(mapping)
        return loaded.alternatives if isinstance(loaded, MappedProblem) else ()
    return ()


def _named(models: str | Sequence[str] | None, executing: str) -> list[Registration]:
    """Return the cost models to compare with the execution: the named ones, or all others that are installed.

    Raises:
        UnknownPluginError, AmbiguousPluginError: No single cost model has a name.
        InputError: The executing cost model is named, or a name occurs twice.
    """
    if models is None:
        rest = [one for one in installed().of_kind(CostModelSpec) if one.name != executing]
        return [registration for registration in rest if not registration.spec.missing()]
    named = [installed().find(CostModelSpec, name) for name in names_of("models", models)]
    if any(registration.name == executing for registration in named):
        raise InputError(
            f"{executing} executes the mapping, so it is not compared with itself", hint="name other cost models"
        )
    return named


def _others(
    models: Sequence[Registration], problem: Problem, architecture: Architecture, mapping: Mapping, executed: Report
) -> list[ModelVerification]:
    """Return the reports of other cost models, including refusals and failures."""
    verifications = []
    for registration in models:
        spec = registration.spec
        assert isinstance(spec, CostModelSpec)
        report = evaluate(build_model(registration.name), problem, architecture, mapping)
        if report.valid:
            parts = differences(problem, architecture, mapping, executed, report, spec.approximations)
            costs = cost_differences(problem, architecture, executed, report, parts)
            verifications.append(ModelVerification(report, compared(executed, report), parts, costs))
        else:
            verifications.append(ModelVerification(report))
    return verifications


@dataclass(frozen=True, repr=False)
class RecordedReport(Tabular):
    """Report of another tool next to Tilewright's, value by value, outermost level first.

    `warnings` lists the parts of the files that the reader could not represent.
    """

    recorded: Path
    report: Report
    figures: tuple[RecordedFigure, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<RecordedReport of {self.recorded}: {len(self.differences)} of {len(self.figures)} figures differ>"

    @property
    def differences(self) -> tuple[RecordedFigure, ...]:
        return tuple(row for row in self.figures if not row.equal)

    @property
    def unexplained(self) -> tuple[RecordedFigure, ...]:
        """Values that differ without a known cause."""
        return tuple(difference for difference in self.differences if not difference.causes)

    @property
    def causes(self) -> tuple[Reason, ...]:
        """Known causes of differences, each once."""
        return tuple(dict.fromkeys(cause for difference in self.differences for cause in difference.causes))

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `diff-stats --json`."""
        return DiffStatsOutput(
            recorded=str(self.recorded),
            model=self.report.model,
            compared=len(self.figures),
            unexplained=len(self.unexplained),
            causes=list(self.causes),
            figures=[RecordedRow(**row) for row in self.rows()],
        ).data()

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per value."""
        return [asdict(row) | {"causes": [cause.code for cause in row.causes]} for row in self.figures]

    def tables(self) -> Sequence[Table | str]:
        return [*self._levels(), *self._differences()]

    def _levels(self) -> list[Table | str]:
        """Return a row per level with the number of equal values."""
        table = Table("level", numbers("figures"), numbers("equal"), numbers("differ, known why"), numbers("differ"))
        for level in dict.fromkeys(row.level for row in self.figures):
            here = [row for row in self.figures if row.level == level]
            known = sum(not row.equal and bool(row.causes) for row in here)
            equal = sum(row.equal for row in here)
            table.add_row(level, len(here), equal, known, len(here) - equal - known)
        equal = len(self.figures) - len(self.differences)
        head = f"{self.recorded} compared with {self.report.model}: {equal} of {len(self.figures)} values are equal"
        return [head, table]

    def _differences(self) -> list[Table | str]:
        """Return the differing values, and a line for each cause."""
        if not self.differences:
            return []
        columns = numbers("recorded"), numbers(self.report.model), Column("because", wrapped=True)
        table = Table("level", "tensor", "figure", *columns)
        for difference in self.differences:
            codes = ", ".join(cause.code for cause in difference.causes) or "?"
            values = attributes(difference, "level tensor figure recorded ours") | {"tensor": difference.tensor or ""}
            table.add_row(*values.values(), codes)
        lines = [f"{cause.code}: in {cause.where} {cause.message}" for cause in self.causes]
        unexplained = [f"?: {len(self.unexplained)} values differ for an unknown reason"] if self.unexplained else []
        return ["", table, *lines, *unexplained]


@checked
def diff_stats(
    recorded: str | os.PathLike[str],
    files: Files,
    *,
    notation: str | None = None,
    model: str | None = None,
    model_options: MappingOf[str, Any] | None = None,
    reading: MappingOf[str, Any] | None = None,
) -> RecordedReport:
    """Compare the report of another tool with Tilewright's, as `tilewright diff-stats` does.

    Args:
        recorded: The report, such as `timeloop-model.stats.txt`.
        files: All files of the tool's input set, including the mapping.
        notation: Notation of the files. Default: the adapter marked in `tilewright plugins`.
        model: Cost model to compare with, and `model_options`. Default: the one marked there.
        reading: Options of the notation's adapter, such as `{"dense": True}`.

    Raises:
        CallError, InputError, UnknownNameError: An argument or a file is invalid, or the model refuses the mapping.
    """
    notation = notation or installed().default(AdapterSpec, "reports")
    model = model or installed().default(CostModelSpec, "search")
    adapter = installed().make(AdapterSpec, notation)
    if not isinstance(adapter, ReportReader):
        raise InputError(f"adapter '{notation}' reads no reports of its tool")
    inputs = set_of(files, notation=notation, reading=reading)
    _refuse_group(inputs)
    (report,) = evaluate_inputs(inputs, [model], model_options).reports
    if not report.valid:
        raise InputError(f"{report.model} does not evaluate these files: {report.reasons[0]}")
    figures = adapter.figures(Path(recorded), inputs, report)
    return RecordedReport(Path(recorded), report, figures, inputs.warnings)


def _refuse_group(inputs: InputSet) -> None:
    """Raise InputError if the inputs are a group mapping, which `evaluate` executes."""
    if inputs.group is not None:
        hint = "tilewright evaluate FILE --model oracle executes them"
        raise InputError("group mappings are not compared", hint=hint)
