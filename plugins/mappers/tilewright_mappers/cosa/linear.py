"""Mixed-integer programs with sums of exponentials, solved by HiGHS.

A bound on log(exp(a) + exp(b) + ...) is convex in a, b, ...: it is the largest of its tangents, w1 a + w2 b + ... plus
the entropy of the weights w, which are rows. Tangents are added where a solution breaks the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import highspy

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """A sum of coefficient x variable, plus a constant."""

    terms: dict[int, float] = field(default_factory=dict)
    constant: float = 0.0

    def __add__(self, other: Linear | float) -> Linear:
        if not isinstance(other, Linear):
            return Linear(self.terms, self.constant + other)
        terms = dict(self.terms)
        for variable, coefficient in other.terms.items():
            terms[variable] = terms.get(variable, 0.0) + coefficient
        return Linear(terms, self.constant + other.constant)

    def __mul__(self, factor: float) -> Linear:
        return Linear({variable: c * factor for variable, c in self.terms.items()}, self.constant * factor)

    def __sub__(self, other: Linear | float) -> Linear:
        return self + other * -1.0 if isinstance(other, Linear) else self + -other

    def at(self, values: Values) -> float:
        return self.constant + sum(c * float(values[variable]) for variable, c in self.terms.items())

    @classmethod
    def total(cls, parts: Iterable[Linear]) -> Linear:
        terms: dict[int, float] = {}
        constant = 0.0
        for part in parts:
            constant += part.constant
            for variable, coefficient in part.terms.items():
                terms[variable] = terms.get(variable, 0.0) + coefficient
        return cls(terms, constant)


@dataclass(frozen=True)
class SumBound:
    """log(sum of exp(part)) <= bound."""

    parts: tuple[Linear, ...]
    bound: Linear

    def excess(self, values: Values) -> tuple[float, Values]:
        """(by how much the bound is broken, the share of each part)."""
        logs = np.array([part.at(values) for part in self.parts])
        top = float(logs.max())
        shares = np.exp(logs - top)
        return top + math.log(shares.sum()) - self.bound.at(values), np.asarray(shares / shares.sum())


@dataclass
class Program:
    """Variables with bounds, rows, bounds on sums of exponentials, and what to make small."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    rows: list[tuple[float, float, dict[int, float]]] = field(default_factory=list)
    sums: list[SumBound] = field(default_factory=list)
    objective: Linear = field(default_factory=Linear)

    def variable(self, lower: float, upper: float, integer: bool = False) -> Linear:
        self.lower.append(lower)
        self.upper.append(upper)
        self.integer.append(integer)
        return Linear({len(self.lower) - 1: 1.0})

    def between(self, lower: float, expression: Linear, upper: float) -> None:
        self.rows.append((lower - expression.constant, upper - expression.constant, expression.terms))

    def at_most(self, expression: Linear, upper: Linear | float) -> None:
        self.between(-math.inf, expression - upper, 0.0)

    def equal(self, expression: Linear, value: float) -> None:
        self.between(value, expression, value)

    def sum_at_most(self, parts: Sequence[Linear], bound: Linear | float) -> None:
        """log(sum of exp(part)) <= bound; for one part a plain row."""
        limit = bound if isinstance(bound, Linear) else Linear(constant=bound)
        if len(parts) == 1:
            self.at_most(parts[0], limit)
            return
        whole = SumBound(tuple(parts), limit)
        self.sums.append(whole)
        self._tangent(whole, np.full(len(parts), 1 / len(parts)))
        for part in parts:
            self.at_most(part, limit)

    def _tangent(self, whole: SumBound, weights: Values) -> None:
        used = weights > 1e-12
        entropy = -float((weights[used] * np.log(weights[used])).sum())
        mean = Linear.total(part * float(w) for part, w in zip(whole.parts, weights, strict=True) if w > 1e-12)
        self.at_most(mean + entropy, whole.bound)

    def sharpen(self, values: Values, tolerance: float) -> int:
        """Add a tangent at some values for each sum that breaks its bound by more than the tolerance; how many."""
        count = 0
        for whole in self.sums:
            excess, weights = whole.excess(values)
            if excess > tolerance:
                self._tangent(whole, weights)
                count += 1
        return count


@dataclass(frozen=True)
class Limits:
    """When a solver stops: seconds, distance of the best from the bound, branches."""

    seconds: float
    gap: float
    nodes: int


@dataclass(frozen=True)
class Solution:
    """Values of all variables, for each improving solution, the best last (none: nothing was found); no solution has
    an objective below `bound`."""

    found: tuple[Values, ...]
    bound: float


def solve(program: Program, limits: Limits, whole: bool = True, start: Values | None = None) -> Solution:
    """Solve a program, or its relaxation (not `whole`), with one thread. `start`: values to begin with, NaN if unknown."""
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("time_limit", max(0.01, limits.seconds)),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", limits.gap),
        ("mip_max_nodes", limits.nodes),
        ("mip_feasibility_tolerance", 1e-7),
        ("primal_feasibility_tolerance", 1e-8),
        ("random_seed", 0),
    ):
        solver.setOptionValue(name, value)
    solver.passModel(_lp(program, whole))
    saved: list[Values] = []
    if whole:
        solver.cbMipImprovingSolution.subscribe(lambda event: saved.append(np.array(event.data_out.mip_solution)))
    if whole and start is not None:
        known = np.flatnonzero(np.isfinite(start)).astype(np.int32)
        solver.setSolution(len(known), known, start[known])
    _run(solver)
    info = solver.getInfo()
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        saved.append(np.array(solver.getSolution().col_value))
    solved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    if whole:
        return Solution(tuple(saved), float(info.mip_dual_bound))
    return Solution(tuple(saved), info.objective_function_value) if solved else Solution((), -math.inf)


def _run(solver: highspy.Highs) -> None:
    """Solve in a thread, so that an interruption is heard at once."""
    solver.HandleUserInterrupt = True
    thread = solver.startSolve()
    try:
        while not solver.wait(0.05)[0]:
            pass
    finally:
        solver.cancelSolve()  # type: ignore[no-untyped-call]
        thread.join()


def _lp(program: Program, whole: bool) -> highspy.HighsLp:
    import highspy

    lp = highspy.HighsLp()
    columns = len(program.lower)
    lp.num_col_, lp.num_row_ = columns, len(program.rows)
    cost = np.zeros(columns)
    for variable, coefficient in program.objective.terms.items():
        cost[variable] += coefficient
    lp.col_cost_, lp.offset_ = cost, program.objective.constant
    lp.col_lower_, lp.col_upper_ = np.array(program.lower), np.array(program.upper)
    lp.row_lower_ = np.array([row[0] for row in program.rows])
    lp.row_upper_ = np.array([row[1] for row in program.rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lengths = [len(row[2]) for row in program.rows]
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([v for row in program.rows for v in row[2]], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([c for row in program.rows for c in row[2].values()])
    if whole:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[integer] for integer in program.integer]
    return lp
