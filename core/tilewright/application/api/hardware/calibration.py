"""`calibrate`: an architecture whose parameters are fitted to measured cycles."""

from __future__ import annotations

import csv
import math
import os
import time
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.application.api.call_arguments import at_least, checked, names_of, whole
from tilewright.application.api.evaluation import inputs_of
from tilewright.application.api.load import Source, load_architecture, load_problem
from tilewright.application.api.plots import CalibrationPlots
from tilewright.application.api.progress import fitting_progress
from tilewright.application.documents.hardware import CalibrateOutput, ErrorsRow, PredictionRow
from tilewright.application.run.calibration import (
    Errors,
    FitWatch,
    Measurement,
    Predictions,
    Value,
    can_be_fitted,
    cross_validated,
)
from tilewright.application.run.evaluation import BuiltModel, build_model, evaluate
from tilewright.errors import InputError
from tilewright.files import file_and_member, is_file, read_text, write_text
from tilewright.formats import figure
from tilewright.interrupts import mark_result_found, stop_requested
from tilewright.mapspace.batch import Floats
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Architecture, Compute, Memory
from tilewright.schema.document import suggestion
from tilewright.schema.problem import Problem
from tilewright.tables import Table, Tabular, numbers

NEUTRAL: dict[str, object] = {
    **Memory.model_fields["timing"].default.model_dump(),
    **{name: Compute.model_fields[name].default for name in ("fill_drain_cycles", "start_cycles")},
}
"""Values of parameters that count as not declared, by the last word of the path."""


@dataclass(frozen=True, repr=False)
class CalibrationReport(Tabular):
    """A fitted architecture, the values before and after, and the errors of its predictions.

    `errors` has the errors `as given`, `fitted` (on the rows of the fit) and `unseen` (by cross-validation). With a
    second file it also has `test as given` and `test fitted`. `predictions` has every row, and a reason for the `worst`
    ones. `stopped`: what ended the calibration early. The values are then the best so far, and there are no errors `unseen`.
    """

    architecture: Architecture
    model: str
    before: MappingOf[str, Value]
    after: MappingOf[str, Value]
    errors: MappingOf[str, Errors]
    stopped: str | None = None
    predictions: Sequence[PredictionRow] = ()

    def __repr__(self) -> str:
        which, errors = (
            ("unseen", self.errors.get("unseen")) if self.stopped is None else ("fitted", self.errors["fitted"])
        )
        told = "" if errors is None else f": error {errors.mean:.3f} on {which} rows"
        return f"<CalibrationReport of {self.architecture.name}{told}>"

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict of errors per set of rows."""
        return [{"measurements": name, **asdict(errors)} for name, errors in self.errors.items()]

    def data(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return CalibrateOutput(
            arch=self.architecture.name,
            model=self.model,
            before=dict(self.before),
            after=dict(self.after),
            errors=[ErrorsRow(**row) for row in self.rows()],
            predictions=list(self.predictions),
            stopped=self.stopped,
        ).data()

    def tables(self) -> Sequence[Table | str]:
        """Return the parameters, the errors and the rows that fit worst."""
        values = Table("parameter", "before", "after", title=f"{self.architecture.name} under {self.model}")
        for name, old in self.before.items():
            values.add_row(name, _shown(old), _shown(self.after[name]))
        factors = [numbers(column, decimals=3) for column in ("mean", "median", "worst", "Spearman")]
        errors = Table("measurements", numbers("rows"), *factors, title="factor between predicted and measured cycles")
        for name, error in self.errors.items():
            errors.add_row(name, error.rows, error.mean, error.median, error.worst, error.spearman)
        columns = numbers("measured"), numbers("fitted"), numbers("factor", decimals=3)
        worst = Table("row", *columns, "reason", title="rows that fit worst")
        for row in sorted(self.predictions, key=_misfit, reverse=True):
            if row.reason is not None:
                worst.add_row(row.where, round(row.measured), round(row.fitted), math.exp(_misfit(row)), row.reason)
        return [values, errors, worst] if any(row.reason is not None for row in self.predictions) else [values, errors]

    @property
    def plot(self) -> CalibrationPlots:
        """Chart of predicted over measured cycles: `plot.scatter()`."""
        return CalibrationPlots(self.data())

    def messages(self) -> list[str]:
        """Return a message if the calibration ended early."""
        if self.stopped is None:
            return []
        return [f"stopped by {self.stopped}: these are the best values so far, without errors on unseen rows"]

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the architecture to a YAML file, and return its path.

        Raises:
            OutputError: The file cannot be written.
        """
        write_text(file, self.architecture.to_yaml())
        return Path(file)


@checked
def calibrate(
    arch: Source,
    measured: str | os.PathLike[str],
    *,
    model: str | CostModel | None = None,
    model_options: MappingOf[str, Any] | None = None,
    parameters: str | Sequence[str] | None = None,
    test: str | os.PathLike[str] | None = None,
    folds: int = 5,
    worst: int = 5,
    seconds: float | None = None,
    progress: bool | None = None,
) -> CalibrationReport:
    """Fit parameters of an architecture to measured cycles, as `tilewright calibrate` does.

    Each row of the CSV file is one measurement. Its column `mapping` names a mapping file, `cycles` has the measured
    cycles, and `problem` names a problem if the mapping file has none. Files are relative to the folder of the CSV
    file. A column `weight` has the weights of the errors in the mean that is fitted. Other columns are ignored.

    Args:
        arch: The architecture, with first values of its parameters.
        measured: The CSV file.
        model: Cost model whose cycles are compared. Default: the one that counts timings.
        model_options: Its options.
        parameters: Paths as in `Architecture.replace`. Default: all bandwidths, and all timings that are not neutral.
        test: CSV file of further measurements, which the fit does not see.
        folds: Number of parts of the cross-validation. The rows of each are predicted by a fit on the others.
        worst: Number of rows, those that fit worst, for which the report has a reason.
        seconds: Time limit. At the limit, and after Ctrl-C, the result has the best values so far. Default: none.
        progress: Show progress on stderr. Default: in terminals and notebooks.

    Raises:
        CallError, InputError, UnknownNameError: An argument, a file or a row is invalid; the message names the row.
        NotConformableError: The cost model does not accept a problem on the architecture.
    """
    whole(2, folds=folds)
    whole(0, worst=worst)
    at_least(0, seconds=seconds)
    end = math.inf if seconds is None else time.monotonic() + seconds
    if model is None:
        model = installed().default(CostModelSpec, "calibration")
    architecture, built = load_architecture(arch), build_model(model, model_options)
    names = parameters_of(architecture, parameters)
    values = architecture.values()
    start = [values[name] for name in names]
    seen = _predictions(measured, built, architecture, names, start)
    if len(seen.measured) < folds:
        text = f"{measured} has {len(seen.measured)} rows; {folds} folds need at least {folds}"
        raise InputError(text, hint="measure more, or choose fewer folds")
    tests = None if test is None else _predictions(test, built, architecture, names, start)
    mark_result_found()
    with fitting_progress(folds + 1, progress) as display:

        def watch(number: int) -> FitWatch:
            """Return the watch of a fit: 0 is that of all rows."""

            def goes_on(least: float) -> bool:
                if display is not None:
                    what = "all rows" if number == 0 else f"without fold {number} of {folds}"
                    display.show(number, what, f"factor {math.exp(least):.3f}")
                return not stop_requested() and time.monotonic() < end

            return goes_on

        after = seen.fit(start, np.ones(len(seen.measured), dtype=np.bool_), watch(0))
        unseen = cross_validated(seen, start, folds, lambda fold: watch(fold + 1))
    errors = {"as given": _summary(seen, seen.errors(start)), "fitted": _summary(seen, seen.errors(after))}
    if unseen is not None:
        errors["unseen"] = _summary(seen, unseen)
    if tests is not None:
        errors["test as given"] = _summary(tests, tests.errors(start))
        errors["test fitted"] = _summary(tests, tests.errors(after))
    fitted, rows = seen.with_values(after), _rows(seen, start, after, unseen)
    if tests is not None:
        rows += _rows(tests, start, after, None, test=True)
    return CalibrationReport(
        fitted,
        built.name,
        dict(zip(names, start, strict=True)),
        dict(zip(names, after, strict=True)),
        errors,
        None if unseen is not None else "Ctrl-C" if stop_requested() else f"--seconds {seconds:g}",
        _with_reasons(rows, built, fitted, worst),
    )


def _summary(predictions: Predictions, errors: Floats) -> Errors:
    return Errors.of(errors, predictions.measured, predictions.weights)


def _rows(
    predictions: Predictions,
    start: Sequence[Value],
    after: Sequence[Value],
    unseen: Floats | None,
    test: bool = False,
) -> list[tuple[Measurement, PredictionRow]]:
    """Return the measurements with the cycles of each."""
    given, fitted = (predictions.measured * np.exp(predictions.errors(values)) for values in (start, after))
    held_out = None if unseen is None else predictions.measured * np.exp(unseen)
    predicted = [
        PredictionRow(
            where=row.where,
            test=test,
            weight=row.weight,
            measured=row.cycles,
            given=float(given[at]),
            fitted=float(fitted[at]),
            unseen=None if held_out is None else float(held_out[at]),
            reason=None,
        )
        for at, row in enumerate(predictions.rows)
    ]
    return list(zip(predictions.rows, predicted, strict=True))


def _misfit(row: PredictionRow) -> float:
    """Return the absolute logarithm of fitted by measured cycles."""
    return abs(math.log(row.fitted / row.measured))


def _with_reasons(
    rows: Sequence[tuple[Measurement, PredictionRow]], model: BuiltModel, architecture: Architecture, worst: int
) -> list[PredictionRow]:
    """Return the rows, the worst ones with what the predicted cycles wait for."""
    result = [row for _, row in rows]
    for at in sorted(range(len(rows)), key=lambda at: _misfit(result[at]), reverse=True)[:worst]:
        measurement, row = rows[at]
        report = evaluate(model, measurement.problem, architecture, measurement.mapping)
        limits = sorted(report.limits, key=lambda limit: -limit.cycles)[:2]
        known = ", then ".join(f"{limit.title} ({limit.cycles:,})" for limit in limits)
        side = "too many" if row.fitted > row.measured else "too few"
        result[at] = row.model_copy(update={"reason": f"{side}: {known or 'the model gives no limits'}"})
    return result


def parameters_of(architecture: Architecture, given: str | Sequence[str] | None) -> list[str]:
    """Return the paths of the parameters; None: those that the architecture declares.

    Raises:
        InputError: A path is unknown or no parameter, or there are none.
    """
    values = architecture.values()
    able = [path for path, value in values.items() if can_be_fitted(path, value)]
    if given is None:
        paths = [path for path in able if NEUTRAL.get(path.rpartition(".")[2]) != values[path]]
        if not paths:
            text = f"{architecture.name} declares no bandwidth and no timing that could be fitted"
            raise InputError(text, hint=f"name parameters; there are {', '.join(able)}")
        return paths
    names: list[str] = names_of("parameters", given)
    for name in names:
        if name not in able:
            text = f"'{name}' is no parameter that can be fitted{suggestion(name, able)}"
            raise InputError(text, hint=f"there are {', '.join(able)}; bandwidths need a first value")
    return names


def measurements(file: str | os.PathLike[str], architecture: Architecture) -> list[Measurement]:
    """Return the rows of a CSV file; see `calibrate`.

    Raises:
        InputError: The file or a row is invalid; the message has the line.
    """
    table = csv.DictReader(read_text(file).splitlines(), strict=True)
    problems: dict[str, Problem] = {}
    rows = []
    try:
        columns = table.fieldnames or []
        for column in ("mapping", "cycles"):
            if column not in columns:
                text = f"{file}, line 1: there is no column '{column}'{suggestion(column, columns)}"
                raise InputError(
                    text, hint=f"found: {', '.join(columns)}; expected: mapping, cycles, and maybe problem and weight"
                )
        for row in table:
            where = f"{file}, line {table.line_num}"
            try:
                rows.append(_measurement(row, where, Path(file).parent, architecture, problems))
            except InputError as error:
                raise InputError(f"{where}: {error.message}", hint=error.hint) from None
    except csv.Error as error:
        raise InputError(f"{file}, line {table.line_num}: {error}") from None
    return rows


def _measurement(
    row: dict[str, str], where: str, folder: Path, architecture: Architecture, problems: dict[str, Problem]
) -> Measurement:
    mapping, named = (row.get(column) or "" for column in ("mapping", "problem"))
    measured = _positive("cycles", row.get("cycles") or "")
    weight = _positive("weight", row.get("weight") or "1")
    if not mapping:
        raise InputError("no mapping is named", hint="name its file, relative to the folder of this file")
    if named and named not in problems:
        beside = folder / named
        problems[named] = load_problem(beside if is_file(file_and_member(beside)[0]) else named)
    inputs = inputs_of(folder / mapping, problems.get(named), architecture)
    if inputs.problem is None or inputs.mapping is None:
        raise InputError(
            f"{mapping} is not a mapping of one problem", hint="give a mapping file, as `map -o` writes them"
        )
    return Measurement(inputs.problem, inputs.mapping, measured, where, weight)


def _positive(column: str, text: str) -> float:
    """Return the positive number of a column. Raises InputError."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise InputError(f"{column} is {text!r}; expected a positive number")
    return number


def _predictions(
    file: str | os.PathLike[str],
    model: BuiltModel,
    architecture: Architecture,
    names: Sequence[str],
    start: Sequence[Value],
) -> Predictions:
    """Return the predictions for the rows of a file. `start` has the first values of the parameters.

    Raises:
        InputError: A row is invalid, or the model rejects its mapping.
    """
    rows = measurements(file, architecture)
    try:
        predictions = Predictions(model, architecture, names, rows)
        invalid = np.flatnonzero(~np.isfinite(predictions.errors(start)))
    except ValueError as error:  # a mapping has other dimensions or tensors than its problem
        raise InputError(f"{file}: {error}", hint="`tilewright evaluate` checks one mapping") from None
    for number in invalid[:1]:
        report = evaluate(model, rows[number].problem, architecture, rows[number].mapping)
        reasons = "; ".join(map(str, report.reasons))
        text = f"{rows[number].where}: cost model {model.name} rejects the mapping: {reasons or 'no cycles'}"
        raise InputError(text, hint="`tilewright evaluate` gives all reasons")
    return predictions


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool | str) else figure(value)
