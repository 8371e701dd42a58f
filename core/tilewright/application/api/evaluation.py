"""`evaluate`: cost of a mapping by one or several cost models."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.application.api.call_arguments import checked, names_of, options_by_name
from tilewright.application.api.load import Source, load_architecture, load_evaluable, load_problem
from tilewright.application.api.load.kinds import is_damaged, is_file_name, is_foreign
from tilewright.application.api.plots import NetworkPlots, report_plots
from tilewright.application.api.vector_tables import group_units, group_vector_tables
from tilewright.application.conversion.recognition import read
from tilewright.application.conversion.signs import owners
from tilewright.application.documents.checks import DifferingCount, DifferingLimit, EvaluateOutput
from tilewright.application.run.conventions import (
    causes_between,
    conventions_between,
    conventions_table,
    limit_rows,
    limit_table,
)
from tilewright.application.run.evaluation import FAILED, build_model, evaluate_directives, evaluate_group
from tilewright.application.run.evaluation import evaluate as evaluate_mapping
from tilewright.application.run.group_vectors import NO_UNIT, GroupVectors, joined_vectors
from tilewright.application.run.network import MappedLayer
from tilewright.errors import InputError, UnsupportedError
from tilewright.files import is_file
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.registry import installed
from tilewright.plugin.route import ACTIONS
from tilewright.plugin.specs import AdapterSpec, CostModelSpec
from tilewright.reports import Report
from tilewright.reports.costs import COSTS
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import BoundMapping, MappedProblem
from tilewright.schema.mapping import Mapping
from tilewright.schema.unmatched import unmatched
from tilewright.tables import Column, Shown, Table, Tabular, numbers
from tilewright.values import attributes, grouped

Mapped = Source | MappedLayer
"""Source of a mapping, with or without its problem and architecture."""
Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""Files of another tool that form one input set."""


UNEXPLAINED = "not explained by a declared convention"


@dataclass(frozen=True, repr=False)
class EvaluationReport(Tabular):
    """Reports of the models in the requested order; for directive programs one per model and layer.

    Printing it gives a summary, and printing `explained()` gives all details. `warnings` lists
    inputs that the reader could not represent, and names in the architecture that match nothing.
    `mapping` is the evaluated mapping, if there is one.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> report = tw.evaluate(layer, models="timeloop")
        >>> report.rows()[0]["model"]
        'timeloop'
    """

    reports: tuple[Report, ...]
    warnings: tuple[str, ...] = ()
    is_side_by_side: bool = False
    """Whether several models evaluated one mapping, so that their counts can be compared."""
    mapping: BoundMapping | GroupMapping | None = None
    is_explained: bool = False
    units: tuple[GroupVectors, ...] = ()
    """Vector layers of a group, by each model with a valid report."""

    def __repr__(self) -> str:
        return f"<EvaluationReport: {', '.join(f'{report.model} on {report.problem}' for report in self.reports)}>"

    def __getitem__(self, model: str) -> Report:
        """Return the first report of a model, or raise KeyError."""
        for report in self.reports:
            if report.model == model:
                return report
        raise KeyError(model)

    @property
    def failures(self) -> tuple[str, ...]:
        """Reasons why no model gave a result, if all crashed or could not be built; otherwise empty."""
        reasons = [report.reasons[:1] for report in self.reports]
        all_failed = all(refusals and refusals[0].code == FAILED for refusals in reasons)
        return tuple(refusals[0].message for refusals in reasons) if all_failed else ()

    def explained(self) -> EvaluationReport:
        """Return the same report with all details: limits, energies, counts and memories."""
        return replace(self, is_explained=True)

    def differences(self) -> list[dict[str, Any]]:
        """Return the counts (words per instance) that differ between valid reports, outermost level first.

        A model without such a count has None. Counts of a single layer have `causes`: what the models declare.
        """
        valid = [report for report in self.reports if report.valid]
        counts = [
            {(level.name, tensor): row for level in report.levels for tensor, row in level.tensors.items()}
            for report in valid
        ]
        rows: list[dict[str, Any]] = []
        for level, tensor in dict.fromkeys(place for count in counts for place in count):
            for action in ACTIONS:
                values = [getattr(count.get((level, tensor)), action, None) for count in counts]
                if len(set(values)) > 1:
                    by_model = {report.model: value for report, value in zip(valid, values, strict=True)}
                    row: dict[str, Any] = {"level": level, "tensor": tensor, "action": action, "counts": by_model}
                    if isinstance(self.mapping, BoundMapping):
                        causes = causes_between(self.mapping, valid, level, tensor, action)
                        row["causes"] = [cause.model_dump() for cause in causes]
                    rows.append(row)
        return rows

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `evaluate --json`; the explained form adds the energy rows."""
        results = [
            report.model_dump(mode="json") | ({"energy": report.rows()} if self.is_explained else {})
            for report in self.reports
        ]
        several = len(self._models) > 1
        return EvaluateOutput(
            results=results,
            limits=[DifferingLimit(**row) for row in self.limits()] if several else None,
            conventions=conventions_between(self._models) if several else None,
            differences=[DifferingCount(**{"causes": None} | row) for row in self.differences()]
            if self.is_side_by_side
            else None,
            units=[group_units(made) for made in self.units] or None,
        ).data()

    @property
    def _models(self) -> list[str]:
        """Models with a valid report."""
        return list(dict.fromkeys(report.model for report in self.reports if report.valid))

    def limits(self) -> list[dict[str, Any]]:
        """Return what binds the cycles of each model, of the layers whose cycles differ, with the same limit elsewhere."""
        return [row for reports in self._by_problem() for row in limit_rows(reports)]

    def _by_problem(self) -> list[list[Report]]:
        return [*grouped((report.problem, report) for report in self.reports if report.valid).values()]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per report."""
        return [
            attributes(report, "problem model valid")
            | COSTS.data("evaluate, rows", report)
            | {"reason": "; ".join(map(str, report.reasons))}
            for report in self.reports
        ]

    @property
    def plot(self) -> NetworkPlots:
        """Charts with a row per model or layer, such as `plot.energy()`; refused mappings have no row."""
        several = len({report.problem for report in self.reports}) > 1
        return report_plots((report.problem if several else report.model, report) for report in self.reports)

    def tables(self) -> Sequence[Table | str]:
        several = len(self.reports) > 1
        parts: list[Table | str] = [self._totals()] if several else []
        parts += self._differences() if self.is_side_by_side else []
        parts += self._reasons() if len(self._models) > 1 else []
        for report in self.reports if self.is_explained or not several else ():
            account = report.explained() if self.is_explained else report
            parts += [*([""] if parts else []), *account.tables()]
        parts += [part for made in self.units for part in group_vector_tables(made)]
        if self.mapping is not None and any(report.valid for report in self.reports):
            parts += ["", self.mapping.titled()]
        return parts

    def _totals(self) -> Table:
        """Return a table with a row per model and layer; a refusal is shown with its reason."""
        layers = list(dict.fromkeys(report.problem for report in self.reports))
        columns: list[Shown[Report]] = [
            *([Shown("layer", lambda report: report.problem)] if len(layers) > 1 else []),
            Shown("model", lambda report: report.model),
            *COSTS.shown("evaluate", lambda report: report),
            Shown(
                Column("remarks", wrapped=True), lambda report: "; ".join([*report.warnings, *map(str, report.reasons)])
            ),
        ]
        return Table.of(columns, self.reports, "" if len(layers) > 1 else layers[0], "--json or --explain")

    def _differences(self) -> list[Table | str]:
        """Return tables of all counts in which the models differ."""
        rows, valid = self.differences(), [report.model for report in self.reports if report.valid]
        if len(valid) < 2:
            return []
        if not rows:
            return [f"{', '.join(valid)} agree on every count"]
        models = (numbers(model) for model in valid)
        explains = isinstance(self.mapping, BoundMapping)
        because = [Column("because", wrapped=True)] if explains else []
        table = Table("level", "tensor", "action", *models, *because, title="where they differ, words per instance")
        for row in rows:
            values = ("none" if row["counts"][model] is None else row["counts"][model] for model in valid)
            causes = "; ".join(cause["message"] for cause in row.get("causes", ())) or UNEXPLAINED
            table.add_row(row["level"], row["tensor"], row["action"], *values, *([causes] if explains else []))
        return [table]

    def _reasons(self) -> list[Table | str]:
        """Return tables of what sets the cycles where they differ, and of the conventions in which the models differ."""
        groups = self._by_problem()
        limits = [limit_table(rows, reports) for reports in groups if (rows := limit_rows(reports))]
        conventions = conventions_between(self._models)
        costs = {(report.problem, report.energy_pj, report.cycles) for report in self.reports if report.valid}
        differ = len(costs) > len(groups) and conventions
        return [*limits, *([conventions_table(conventions, self._models)] if differ else [])]


@checked
def evaluate(
    mapping: Mapped | Files,
    problem: Source | None = None,
    arch: Source | None = None,
    *,
    models: str | CostModel | Sequence[str | CostModel] | None = None,
    model_options: MappingOf[str, Any] | None = None,
    notation: str | None = None,
    reading: MappingOf[str, Any] | None = None,
) -> EvaluationReport:
    """Evaluate a mapping, as `tilewright evaluate` does.

    Args:
        mapping: A mapping, a group mapping, a file or dict of one, or a layer of a mapping report.
            All files of another tool's input set are accepted, too.
        problem, arch: Required if the mapping lacks them; otherwise they replace those of the mapping.
        models: Names of installed cost models, or objects. Default: the one marked in
            `tilewright plugins`, which has another one for programs in another notation.
        model_options: Options for all models, or for one as `{"NAME": {...}}`.
        reading: Options of the notation's adapter, such as `{"set": {"architecture": "eyeriss_like"}}`.
        notation: Notation of the files, one of the adapters in `tilewright plugins`. Default: detected.

    Returns:
        One report per model. If a model refuses the mapping, crashes or is not installed, `valid`
        is false and `reasons` explains why.

    Raises:
        CallError, InputError, UnknownNameError: An argument or a file is invalid; the message names valid ones.

    Example:
        >>> import tilewright as tw
        >>> layer = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False).layers[0]
        >>> [report.model for report in tw.evaluate(layer, models=["timeloop", "pipelined"]).reports]
        ['timeloop', 'pipelined']
    """
    return evaluate_inputs(inputs_by(mapping, problem, arch, notation, reading), models, model_options)


def inputs_by(
    mapping: Mapped | Files,
    problem: Source | None,
    arch: Source | None,
    notation: str | None,
    reading: MappingOf[str, Any] | None,
) -> InputSet:
    """Return a mapping with its problem and architecture, read by a named notation or with its options; see `evaluate`."""
    foreign = notation is not None or reading
    return set_of(mapping, problem, arch, notation, reading) if foreign else inputs_of(mapping, problem, arch)


def evaluate_inputs(
    inputs: InputSet,
    models: str | CostModel | Sequence[str | CostModel] | None,
    model_options: MappingOf[str, Any] | None,
) -> EvaluationReport:
    """Evaluate inputs that were read already; see `evaluate`."""
    if models is None:
        models = installed().default(CostModelSpec, "search" if inputs.directives is None else "programs")
    wanted = names_of("models", models if isinstance(models, str | Sequence) else [models])
    words = [name if isinstance(name, str) else type(name).__name__ for name in wanted]
    options = options_by_name(model_options, words)
    built = [build_model(spec, options[name]) for spec, name in zip(wanted, words, strict=True)]
    if inputs.directives is not None:
        reports = [report for model in built for report in evaluate_directives(model, inputs.directives)]
        return EvaluationReport(tuple(reports), inputs.warnings)
    if inputs.group is not None:
        reports = [evaluate_group(model, inputs.group) for model in built]
        units = [joined_vectors(model, inputs.group, report) for model, report in zip(built, reports, strict=True)]
        counted = tuple(made for made in units if made is not None)
        bare = inputs.group.vectors and not inputs.group.architecture.units
        warnings = (*inputs.warnings, *([NO_UNIT] if bare else []))
        return EvaluationReport(tuple(reports), warnings, len(reports) > 1, inputs.group, units=counted)
    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    reports = [evaluate_mapping(model, inputs.problem, inputs.architecture, inputs.mapping) for model in built]
    bound = BoundMapping.of(inputs.mapping, inputs.problem, inputs.architecture)
    warnings = (*inputs.warnings, *unmatched([inputs.problem], inputs.architecture))
    return EvaluationReport(tuple(reports), warnings, len(reports) > 1, bound)


def inputs_of(mapping: Mapped | Files, problem: Source | None, arch: Source | None) -> InputSet:
    """Return a mapping with its problem and architecture, from the mapping or the other arguments.

    Raises:
        InputError: The mapping cannot be read, or a part is missing.
    """
    if isinstance(mapping, MappedLayer):
        if mapping.mapping is None:
            raise InputError(f"{mapping.name} has no mapping", hint="its .error and .result give the reason")
        mapping = mapping.mapping
    if (isinstance(mapping, Sequence) and not isinstance(mapping, str)) or _is_folder(mapping):
        return set_of(mapping, problem, arch)
    if isinstance(mapping, BoundMapping):
        content: Mapping | MappedProblem | GroupMapping = mapping
    else:
        try:
            content = load_evaluable(mapping)
        except InputError as error:
            return _foreign(mapping, problem, arch, error)
    if isinstance(content, GroupMapping):
        return _group_alone(InputSet(group=content), problem, arch)
    whole = content if isinstance(content, MappedProblem | BoundMapping) else None
    for what, given in (("problem", problem), ("arch", arch)):
        if given is None and whole is None:
            raise InputError(f"{_name(mapping)} contains only a mapping", hint=f"add {what}= (--{what})")
    return InputSet(
        problem=load_problem(problem) if problem is not None else whole.problem if whole else None,
        architecture=load_architecture(arch) if arch is not None else whole.architecture if whole else None,
        mapping=content.mapping if isinstance(content, MappedProblem) else content,
    )


def _group_alone(inputs: InputSet, problem: Source | None, arch: Source | None) -> InputSet:
    if problem is not None or arch is not None:
        raise InputError("a group mapping has its own layers and architecture", hint="give only its file")
    return inputs


def paths_of(files: object) -> list[Path]:
    """Return the paths of one or several files; raise InputError for other values or an empty list."""
    given = [files] if isinstance(files, str | os.PathLike) else files
    if not isinstance(given, Sequence) or not given or not all(isinstance(path, str | os.PathLike) for path in given):
        raise InputError("no files to read are given", hint="give all files of the input set")
    return [Path(path) for path in given]


def set_of(
    files: object,
    problem: Source | None = None,
    arch: Source | None = None,
    notation: str | None = None,
    reading: MappingOf[str, Any] | None = None,
) -> InputSet:
    """Return the input set in the files; `problem` and `arch` replace its parts.

    Raises:
        InputError: A file is invalid, or a part is missing.
    """
    paths = paths_of(files)
    inputs = read(paths, notation, installed(), reading)
    names = ", ".join(str(path) for path in paths)
    if inputs.directives is not None:
        if problem is not None or arch is not None:
            raise InputError(f"{names}: directives include their problem and hardware", hint="give only the files")
        return inputs
    if inputs.group is not None:
        return _group_alone(inputs, problem, arch)
    inputs = replace(
        inputs,
        problem=inputs.problem if problem is None else load_problem(problem),
        architecture=inputs.architecture if arch is None else load_architecture(arch),
    )
    for what in ("problem", "architecture", "mapping"):
        if getattr(inputs, what) is None:
            raise InputError(f"{names}: no {what} in these files{_why(inputs, what)}", hint=_rather(inputs, what))
    return inputs


def _why(inputs: InputSet, what: str) -> str:
    """Return the reader's warning about a missing mapping, or an empty text."""
    said = [text for text in inputs.warnings if text.endswith("read as constraints")]
    return f": {said[0]}" if what == "mapping" and said else ""


def _rather(inputs: InputSet, what: str) -> str:
    """Return a hint about the missing part."""
    if what != "mapping" or inputs.problem is None or inputs.architecture is None:
        return "give all files of the set"
    return (
        "add the mapping, or search for one: tilewright map LAYERS --arch FILE, with one --arch for each further file"
    )


def _foreign(mapping: Source, problem: Source | None, arch: Source | None, error: InputError) -> InputSet:
    """Read a mapping in another tool's notation, together with the other files given.

    Raises:
        InputError: No adapter can read the files. `error` is raised if the file could be Tilewright's.
    """
    if not isinstance(mapping, str | os.PathLike) or not is_file(mapping):
        raise error
    files = [path for path in (mapping, problem, arch) if isinstance(path, str | os.PathLike) and is_file(path)]
    try:
        return set_of(files, None if problem in files else problem, None if arch in files else arch)
    except InputError as unread:
        ours = is_file_name(os.fspath(mapping)) and not isinstance(unread, UnsupportedError)
        raise (error if ours and not _is_other_tools(mapping, files) else unread) from None


def _is_other_tools(mapping: str | os.PathLike[str], files: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether the files are those of another tool, even if a part is missing."""
    if is_foreign(mapping):
        paths, notations = paths_of(files), installed().of_kind(AdapterSpec)
        if owners(paths, [notation for notation in notations if notation.builtin]):
            return True
        if owners(paths, notations) and not is_damaged(os.fspath(mapping)):
            return True
        with suppress(InputError):
            read(paths, None, installed())
            return True
    return False


def _is_folder(mapping: object) -> bool:
    return isinstance(mapping, str | os.PathLike) and os.path.isdir(mapping)


def _name(mapping: object) -> str:
    return str(mapping) if isinstance(mapping, str | os.PathLike) else "this"
