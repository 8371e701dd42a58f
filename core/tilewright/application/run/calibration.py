"""Calibration: parameters of an architecture that bring the cycles of a cost model nearest to measured ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.application.run.evaluation import BuiltModel, bind
from tilewright.mapspace.batch import Bools, Floats, MappingBatch
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

Value = str | bool | int | float
RATIOS = (4.0, 2.0, 1.3, 1.08)
"""Factors by which numbers change, coarse ones first."""
LARGEST = 2**20
"""Largest number that is tried."""
CHOICES: dict[str, tuple[Value, ...]] = {"prefetch": ("any", "next", "none"), "reload": (False, True)}
"""Values of parameters that are not numbers, by the last word of the path."""
LEAST = {
    **dict.fromkeys(("latency_cycles", "step_cycles", "fill_drain_cycles", "start_cycles"), 0),
    **dict.fromkeys(("load_cycles", "issue_cycles"), 0),
    **dict.fromkeys(("burst_words", "cycles", "return_cycles", "miss_cycles", "iterations"), 1),
}
"""Least values of parameters that are integers."""
RATES = tuple(f"{kind}_bandwidth_words_per_cycle" for kind in ("read", "write", "shared"))
"""Parameters that are positive numbers."""


@dataclass(frozen=True)
class Measurement:
    """Cycles of a mapping that were measured."""

    problem: Problem
    mapping: Mapping
    cycles: float
    where: str
    """File and line."""
    weight: float = 1.0
    """Weight of its error in the mean."""


def can_be_fitted(path: str, value: object) -> bool:
    """Return whether a value of an architecture is a parameter; limits that are not declared are none."""
    word = path.rpartition(".")[2]
    return value is not None and (word in CHOICES or word in LEAST or word in RATES)


FitWatch = Callable[[float], bool]
"""Mean absolute error so far, a logarithm -> whether the fit goes on."""


class Predictions:
    """Errors of a cost model for some measurements, by the values of the parameters; each is computed once."""

    def __init__(
        self, model: BuiltModel, architecture: Architecture, names: Sequence[str], rows: Sequence[Measurement]
    ) -> None:
        self.model, self.architecture, self.names, self.rows = model, architecture, tuple(names), tuple(rows)
        self.measured = np.array([row.cycles for row in rows])
        self.weights = np.array([row.weight for row in rows])
        self._found: dict[tuple[Value, ...], Floats] = {}
        groups: dict[str, dict[Skeleton, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, row in enumerate(rows):
            groups[row.problem.model_dump_json()][Skeleton.of(row.mapping)].append(number)
        self._groups = [
            (
                rows[next(iter(skeletons.values()))[0]].problem,
                [
                    (
                        np.array(numbers),
                        MappingBatch.pack(rows[numbers[0]].problem, [rows[at].mapping for at in numbers]),
                    )
                    for numbers in skeletons.values()
                ],
            )
            for skeletons in groups.values()
        ]

    def with_values(self, values: Sequence[Value]) -> Architecture:
        """Return the architecture with values of the parameters."""
        return self.architecture.replace(dict(zip(self.names, values, strict=True)))

    def cycles(self, values: Sequence[Value]) -> Floats:
        """Return the cycles of each row [n]; inf if the mapping is not valid.

        Raises:
            NotConformableError: The model does not accept a problem on this architecture.
            PluginError: The model could not be built, or crashed.
        """
        architecture, cycles = self.with_values(values), np.empty(len(self.measured))
        for problem, batches in self._groups:
            evaluator = bind(self.model, problem, architecture)
            for numbers, batch in batches:
                cycles[numbers] = evaluator.evaluate_batch(batch).cycles
        return cycles

    def errors(self, values: Sequence[Value]) -> Floats:
        """Return the logarithm of predicted by measured cycles [n]."""
        key = tuple(values)
        if key not in self._found:
            self._found[key] = np.log(self.cycles(key) / self.measured)
        return self._found[key]

    def fit(self, start: Sequence[Value], seen: Bools, watch: FitWatch) -> tuple[Value, ...]:
        """Return values with the least weighted mean absolute error for the rows in `seen` [n], or the best so far.

        One parameter at a time changes, by smaller and smaller factors, as long as that helps.

        Args:
            watch: receives the least error; after it returns False, nothing more is tried.
        """

        def mean(values: Sequence[Value]) -> float:
            return float(np.average(np.abs(self.errors(values)[seen]), weights=self.weights[seen]))

        best, least = tuple(start), mean(start)
        for ratio in RATIOS:
            improved = True
            while improved:
                improved = False
                for at, name in enumerate(self.names):
                    for value in neighbours(name, best[at], ratio):
                        if not watch(least):
                            return best
                        trial = (*best[:at], value, *best[at + 1 :])
                        error = mean(trial)
                        if error < least - 1e-9:
                            best, least, improved = trial, error, True
        return best


def neighbours(name: str, value: Value, ratio: float) -> list[Value]:
    """Return the values that are tried after one of a parameter."""
    word = name.rpartition(".")[2]
    if word in CHOICES:
        return [choice for choice in CHOICES[word] if choice != value]
    assert not isinstance(value, str)
    if word in RATES:
        return [float(f"{number:.4g}") for number in (value / ratio, value * ratio) if 1 / LARGEST <= number <= LARGEST]
    least = LEAST[word]
    if value == least:
        numbers = [least + step for step in (1, 8, 64)]
    else:
        numbers = [least, min(int(value) - 1, round(value / ratio)), max(int(value) + 1, round(value * ratio))]
    return [number for number in dict.fromkeys(numbers) if least <= number <= LARGEST and number != value]


@dataclass(frozen=True)
class Errors:
    """Errors of predicted cycles. A factor of 1.25 is 25 % too many, or 20 % too few."""

    rows: int
    mean: float
    """Weighted geometric mean of the factors between prediction and measurement."""
    median: float
    worst: float
    spearman: float | None
    """Rank correlation of predicted and measured cycles; None if all are equal."""

    @classmethod
    def of(cls, errors: Floats, measured: Floats, weights: Floats | None = None) -> Errors:
        """Return the summary of logarithms of predicted by measured cycles [n]; None: all rows have the same weight."""
        factors = np.exp(np.abs(errors))
        predicted, true = _ranks(np.log(measured) + errors), _ranks(np.log(measured))
        constant = np.ptp(predicted) == 0 or np.ptp(true) == 0
        return cls(
            len(errors),
            float(np.exp(np.average(np.abs(errors), weights=weights))),
            float(np.median(factors)),
            float(factors.max()),
            None if constant else float(np.corrcoef(predicted, true)[0, 1]),
        )


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value; equal ones share the mean of theirs."""
    _, places, counts = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[places], dtype=np.float64)


def cross_validated(
    predictions: Predictions, start: Sequence[Value], folds: int, watch: Callable[[int], FitWatch]
) -> Floats | None:
    """Return the errors [n] of each row, by a fit on the other folds; None if a fit did not end.

    Row i is in fold i modulo `folds`.

    Args:
        watch: returns the watch for the fit without a fold.
    """
    fold = np.arange(len(predictions.measured)) % folds
    errors = np.empty(len(fold))
    for number in range(folds):
        unseen, going, of_fold = fold == number, [True], watch(number)

        def goes_on(least: float, going: list[bool] = going, of_fold: FitWatch = of_fold) -> bool:
            going[0] = of_fold(least)
            return going[0]

        values = predictions.fit(start, ~unseen, goes_on)
        if not going[0]:
            return None
        errors[unseen] = predictions.errors(values)[unseen]
    return errors
