"""Mixed-integer programs: linear expressions, rows, and HiGHS to solve them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewright.mapspace.batch import Floats

INFINITE = float("inf")


@dataclass(frozen=True)
class Linear:
    """Linear expression: `constant` plus the sum of coefficient x variable; `terms` is {variable: coefficient}."""

    terms: dict[int, float] = field(default_factory=dict)
    constant: float = 0.0

    def __add__(self, other: Linear | float) -> Linear:
        if not isinstance(other, Linear):
            return Linear(self.terms, self.constant + other)
        terms = dict(self.terms)
        for variable, coefficient in other.terms.items():
            terms[variable] = terms.get(variable, 0.0) + coefficient
        return Linear(terms, self.constant + other.constant)

    def __sub__(self, other: Linear | float) -> Linear:
        return self + other * -1.0

    def __mul__(self, factor: float) -> Linear:
        return Linear({v: c * factor for v, c in self.terms.items()}, self.constant * factor)

    def at(self, values: Floats) -> float:
        """Return the value of the expression at the given variables."""
        return self.constant + sum(c * float(values[v]) for v, c in self.terms.items())


def total(parts: Iterable[Linear]) -> Linear:
    """Return the sum of expressions."""
    terms: dict[int, float] = {}
    constant = 0.0
    for part in parts:
        constant += part.constant
        for variable, coefficient in part.terms.items():
            terms[variable] = terms.get(variable, 0.0) + coefficient
    return Linear(terms, constant)


@dataclass(frozen=True)
class SolverLimits:
    """Limits at which the solver stops: time, nodes of the search tree, and distance `gap` of the solution from the bound.

    Unlike seconds, nodes do not depend on the host.
    """

    seconds: float
    nodes: int
    gap: float


@dataclass(frozen=True)
class Solved:
    """Solutions of a program.

    Attributes:
        points: [n, variable], the best one last.
        bound: lower bound on the objective of all solutions.
        in_time: whether the solver ended before its time limit.
    """

    points: Floats
    bound: float
    in_time: bool


@dataclass
class Program:
    """Program of variables and rows; more can be added after a solve."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[Linear, float, float]] = field(default_factory=list)

    def variable(self, lower: float = 0.0, upper: float = 1.0, whole: bool = True) -> Linear:
        """Add a variable and return it."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.whole.append(whole)
        return Linear({len(self.lower) - 1: 1.0})

    def require(self, expression: Linear, lower: float = -INFINITE, upper: float = INFINITE) -> None:
        """Add the row lower <= expression <= upper."""
        self.rows.append((expression, lower - expression.constant, upper - expression.constant))

    def one_of(self, count: int) -> list[Linear]:
        """Add `count` binary variables whose sum is 1, and return them."""
        chosen = [self.variable() for _ in range(count)]
        self.require(total(chosen), 1.0, 1.0)
        return chosen

    def copy(self) -> Program:
        """Return a copy; additions to it do not change this program."""
        return Program(list(self.lower), list(self.upper), list(self.whole), list(self.rows))

    def solve(self, objective: Linear, limits: SolverLimits, start: Mapping[int, float] | None = None) -> Solved:
        """Minimise `objective`. `start`: values of some variables in a first solution; the solver finds the others.

        HiGHS 1.16.0 counts the objective of a first solution without the constant that presolve
        splits off, and prunes better solutions. It then reports another objective than the
        solution has, so the program is solved again without `start`.
        """
        begun = time.monotonic()
        solved, told = self._solve(objective, limits, start)
        if start and len(solved.points) and abs(objective.at(solved.points[-1]) - told) > 1e-4 * max(1.0, abs(told)):
            left = replace(limits, seconds=limits.seconds - (time.monotonic() - begun))
            solved, _ = self._solve(objective, left, None)
        return solved

    def _solve(
        self, objective: Linear, limits: SolverLimits, start: Mapping[int, float] | None
    ) -> tuple[Solved, float]:
        """Return the solutions, and the objective of the best one as the solver reports it."""
        import highspy

        make: Any = highspy.Highs  # highspy's type stubs are incomplete
        solver = make()
        for option, value in {
            "output_flag": False,
            "threads": 1,
            "random_seed": 0,
            "time_limit": max(0.01, limits.seconds),
            "mip_max_nodes": limits.nodes,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": limits.gap,
            "mip_improving_solution_save": True,
        }.items():
            solver.setOptionValue(option, value)
        solver.HandleKeyboardInterrupt = True  # it listens to cancelSolve
        solver.passModel(self._model(highspy, objective))
        if start:
            indices, values = np.array([*start], dtype=np.int32), np.array([*start.values()], dtype=np.float64)
            solver.setSolution(len(start), indices, values)
        _run(solver, limits.seconds)
        info = solver.getInfo()
        solutions = [np.array(solution.col_value) for solution in solver.getSavedMipSolutions()]
        if info.primal_solution_status == 2:  # feasible
            solutions.append(np.array(solver.getSolution().col_value))
        points = np.array(solutions).reshape(len(solutions), len(self.lower))
        late = highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kInterrupt
        in_time = solver.getModelStatus() not in late
        return Solved(points, float(info.mip_dual_bound), in_time), float(info.objective_function_value)

    def _model(self, highspy: Any, objective: Linear) -> Any:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.lower), len(self.rows)
        costs = np.zeros(len(self.lower))
        for variable, coefficient in objective.terms.items():
            costs[variable] = coefficient
        model.col_cost_, model.offset_ = costs, objective.constant
        model.col_lower_, model.col_upper_ = np.array(self.lower), np.array(self.upper)
        model.row_lower_ = np.array([low for _, low, _ in self.rows])
        model.row_upper_ = np.array([high for _, _, high in self.rows])
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        model.integrality_ = [kinds[whole] for whole in self.whole]
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.cumsum([0, *(len(linear.terms) for linear, _, _ in self.rows)])
        matrix.index_ = np.array([v for linear, _, _ in self.rows for v in linear.terms], dtype=np.int32)
        matrix.value_ = np.array([c for linear, _, _ in self.rows for c in linear.terms.values()])
        return model


def _run(solver: Any, seconds: float) -> None:
    """Solve in a thread, so that Ctrl-C and the time limit take effect while the solver does not check them."""
    deadline = time.monotonic() + seconds
    thread = solver.startSolve()
    try:
        while thread.is_alive():
            thread.join(0.05)
            if time.monotonic() > deadline:
                solver.cancelSolve()
    except BaseException:
        solver.cancelSolve()
        thread.join()
        raise
