"""Checks of the figures that a cost model returns. The conformance kit uses them, too."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tilewright.mapspace.batch import Floats
from tilewright.plugin.costmodel import Costs, Relaxation
from tilewright.plugin.counts import AccessBatch
from tilewright.plugin.guard.calls import described
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem

COLUMNS = (("valid", np.bool_), ("energy_pj", np.float64), ("cycles", np.float64))
RELATIVE_TOLERANCE = 1e-6
"""Relative tolerance for figures that are sums and products of others."""
MAX_COST = 1e75
"""Largest energy in pJ, and largest number of cycles. Every objective of them is finite."""


def may_bound(bound: float, value: float) -> bool:
    """Return whether a bound may be a lower one of a value: it is from 0 to the value, apart from rounding."""
    return 0 <= bound <= value * (1 + RELATIVE_TOLERANCE)


def least_cycles(problem: Problem, architecture: Architecture) -> float:
    """Return the minimum cycles of a mapping: every compute unit does one operation per cycle.

    Sparse hardware may skip all operations.
    """
    if architecture.sparse_parts:
        return 0.0
    return problem.macs / architecture.compute_instances * (1 - RELATIVE_TOLERANCE)


def fault_of_costs(costs: object, count: int, least: float) -> str | None:
    """Return the contract violation in the costs of `count` mappings in a few words, or None.

    Valid mappings need costs of at least 0 pJ and `least` cycles, and at most `MAX_COST`; invalid ones need `inf`.
    """
    if not isinstance(costs, Costs):
        return f"returned {described(costs)}, Costs are expected"
    for name, kind in COLUMNS:
        column: object = getattr(costs, name)
        if not isinstance(column, np.ndarray):
            return f"returned {described(column)} as {name}, an array is expected"
        if column.shape != (count,) or column.dtype != kind:
            shape = f"{column.dtype} of shape {column.shape}"
            return f"returned {name} as {shape}, {np.dtype(kind)} of shape ({count},) is expected"
    right = (costs.energy_pj >= 0) & (costs.cycles >= least)
    for column in (costs.energy_pj, costs.cycles):
        right &= np.where(costs.valid, column <= MAX_COST, column == np.inf)
    if right.all():
        return None
    row = int(right.argmin())
    energy, cycles = float(costs.energy_pj[row]), float(costs.cycles[row])
    if not costs.valid[row]:
        return f"returned energy {energy:g} pJ and {cycles:g} cycles for a mapping that is not valid; inf is expected"
    return f"returned {_wrong(energy, cycles, least)} for a valid mapping"


def fault_of_counts(counts: AccessBatch) -> str | None:
    """Return the contract violation in the counts of accesses in a few words, or None; the costs are checked apart."""
    valid, levels = counts.costs.valid, len(counts.entries)
    moved = len(valid), levels, len(counts.problem.tensors)
    shapes = dict.fromkeys(("reads", "fills", "updates"), moved) | {
        "instances": moved[:2],
        "compute_cycles": moved[:1],
        "leakage_pj": moved[:1],
    }
    for name, shape in shapes.items():
        count: Floats = getattr(counts, name)
        if count.shape != shape or count.dtype != np.float64:
            return f"returned {name} as {count.dtype} of shape {count.shape}, float64 of shape {shape} is expected"
        if not np.isfinite(count[valid]).all() or (count[valid] < 0).any():
            return f"returned {name} that are negative or not finite for a valid mapping"
    if counts.memory.shape != moved[1:] or not (counts.memory < len(counts.architecture.memories)).all():
        return f"returned memory of shape {counts.memory.shape}, memories of the architecture [{levels}, {moved[2]}] are expected"
    return None


def fault_of_relaxation(result: object, entries: int, tensors: int, memories: int) -> str | None:
    """Return the contract violation in a relaxation in a few words, or None.

    Prices, bandwidths and fractions are numbers of at least 0, and indices are those of memories.
    """
    if result is None:
        return None
    if not isinstance(result, Relaxation):
        return f"returned {described(result)}, a Relaxation is expected"
    per_memory, per_place, per_price = (memories,), (entries, tensors), (memories, tensors)
    shapes = {
        **dict.fromkeys(("memory", "shared"), per_place),
        **dict.fromkeys(
            ("read_pj", "fill_pj", "update_pj", *(["moved"] if result.moved is not None else [])), per_price
        ),
        **dict.fromkeys(("read_bandwidth", "write_bandwidth", "shared_bandwidth", "leakage_pj", "gate"), per_memory),
        **dict.fromkeys(("compute_pj", "cycles_per_operation"), ()),
    }
    for name, shape in shapes.items():
        given: object = getattr(result, name)
        if shape and not isinstance(given, np.ndarray):
            return f"returned a Relaxation with {described(given)} as {name}, an array is expected"
        column = np.asarray(given)
        kinds = {"memory": "iu", "gate": "iu", "shared": "b"}.get(name, "iuf")
        if column.shape != shape or column.dtype.kind not in kinds:
            what = {"iu": "integers", "b": "bools", "iuf": "numbers"}[kinds]
            told = f"{column.dtype} of shape {column.shape}"
            return f"returned a Relaxation with {name} as {told}, {what} of shape {shape} are expected"
        low, high = (0.0, math.inf) if name.endswith("bandwidth") else (0.0, MAX_COST)
        if kinds == "iu":
            low, high = (-1.0 if name == "memory" else 0.0), memories - 1
        elif name == "moved":
            high = 1.0
        wrong = ~((column >= low) & (column <= high)) | (name.endswith("bandwidth") & (column == 0))
        if wrong.any():
            return f"returned a Relaxation with {column[wrong].flat[0]:g} in {name}"
    for name in ("neighbours", "exact", "whole_cycles", "rounded", "order_matters", "linear"):
        answer: object = getattr(result, name)
        if not isinstance(answer, bool | np.bool_):
            return f"returned a Relaxation with {described(answer)} as {name}, a bool is expected"
    return None


def _wrong(energy: float, cycles: float, least: float) -> str:
    if not 0 <= energy <= MAX_COST:
        return f"an energy of {energy:g} pJ"
    if not 0 <= cycles <= MAX_COST:
        return f"{cycles:g} cycles"
    return f"{cycles:g} cycles, where all compute units together need {least:g}"


def fault_of_report(
    report: object, problem: Problem | None = None, architecture: Architecture | None = None
) -> str | None:
    """Return the contract violation in a report in a few words, or None.

    Args:
        problem, architecture: Subject of the report; None for programs of directives, which have their own.
    """
    return next(faults_of_report(report, problem, architecture), None)


def faults_of_report(report: object, problem: Problem | None, architecture: Architecture | None) -> Iterator[str]:
    """Yield the contract violations in a report."""
    if not isinstance(report, Report):
        yield f"returned {described(report)}, a Report is expected"
        return
    try:
        Report.model_validate(report.model_dump(include=set(Report.model_fields), warnings=False))
    except ValueError as error:
        yield f"returned a Report that is none: {' '.join(str(error).split())[:200]}"
        return
    if problem is not None and report.macs != problem.macs:
        yield f"reports {report.macs} operations, the problem has {problem.macs}"
    if not report.valid:
        return
    if report.energy_pj is None or report.cycles is None or report.edp is None:
        yield "reports a valid mapping without energy, cycles or EDP"
        return
    yield from _figures(report, problem, architecture)
    yield from faults_of_parts(report)


def _figures(report: Report, problem: Problem | None, architecture: Architecture | None) -> Iterator[str]:
    assert report.energy_pj is not None and report.cycles is not None and report.edp is not None
    if not 0 <= report.energy_pj <= MAX_COST:
        yield f"reports an energy of {report.energy_pj:g} pJ"
    if not 0 <= report.cycles <= MAX_COST:
        yield f"reports {str(report.cycles)[:20]} cycles"
        return
    if not math.isclose(report.edp, report.energy_pj * report.cycles, rel_tol=RELATIVE_TOLERANCE):
        yield f"reports an EDP of {report.edp:g}, energy times cycles is {report.energy_pj * report.cycles:g}"
    if problem is not None and architecture is not None:
        least = least_cycles(problem, architecture)
        if 0 <= report.cycles < least:
            yield f"reports {report.cycles} cycles, where all compute units together need {least:g}"
    yield from faults_of_utilization(report)


def faults_of_utilization(report: Report) -> Iterator[str]:
    """Yield a violation if the utilization, where given, is not between 0 and 1."""
    used = report.utilization
    if used is not None and not 0 <= used <= 1 + RELATIVE_TOLERANCE:
        yield f"reports a utilization of {used:g}{', above 1' if used > 1 else ''}"


def faults_of_parts(report: Report) -> Iterator[str]:
    """Yield violations where energies of parts, if given, do not add up to the total.

    Without compute energy, the parts must not exceed the total.
    """
    whole = report.energy_pj
    assert whole is not None
    for level in report.levels:
        held = math.fsum((level.leakage_pj, *(counts.energy_pj for counts in level.tensors.values())))
        if level.tensors and not math.isclose(
            level.energy_pj, held, rel_tol=RELATIVE_TOLERANCE, abs_tol=RELATIVE_TOLERANCE
        ):
            yield f"reports {level.energy_pj:g} pJ in {level.name}, its tensors and leakage add up to {held:g} pJ"
    parts = [level.energy_pj for level in report.levels] + [network.energy_pj for network in report.networks]
    total = math.fsum([report.compute_energy_pj or 0.0, *parts])
    told = report.compute_energy_pj is not None
    if not math.isclose(whole, total, rel_tol=RELATIVE_TOLERANCE, abs_tol=RELATIVE_TOLERANCE) and (
        told or total > whole
    ):
        yield f"reports an energy of {whole:g} pJ, its parts add up to {total:g} pJ"
