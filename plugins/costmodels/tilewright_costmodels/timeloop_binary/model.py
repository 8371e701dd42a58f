"""Cost model `timeloop_binary`: results of the program `timeloop-model`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tilewright.child import ChildFailed, describe_exit
from tilewright.errors import Reason
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import SIDECAR, Adapter, InputSet
from tilewright.plugin.costmodel import ScalarEvaluator
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import TimeloopBinaryOptions
from tilewright_costmodels.timeloop_binary.program import run
from tilewright_notations.timeloop.report import report_of
from tilewright_notations.timeloop.stats import Unreadable, read_stats

NAME = "timeloop_binary"
OUTPUT = "timeloop-model.stats.txt"


class TimeloopBinaryModel:
    """The program `timeloop-model`, which is located at its first use."""

    def __init__(self, options: TimeloopBinaryOptions) -> None:
        self.options = options

    def bind(self, problem: Problem, architecture: Architecture) -> TimeloopBinaryEvaluator:
        """Bind the program to a problem and an architecture."""
        return TimeloopBinaryEvaluator(problem, architecture, self.options.path, self.options.seconds)


Files = tuple[tuple[str, str], ...]
"""Names and texts of files."""


@dataclass(frozen=True)
class TimeloopBinaryEvaluator(ScalarEvaluator):
    """The program, bound to one problem and one architecture. It is run once per mapping."""

    problem: Problem
    architecture: Architecture
    path: str
    seconds: float

    def explain(self, mapping: Mapping) -> Report:
        """Return Timeloop's own report.

        `valid` is False, with the reason, if Timeloop's files cannot express the mapping. Likewise
        for a crash, a time-out and unreadable output.
        """
        violations = legality(self.problem, self.architecture, mapping).reasons
        reasons = tuple(reason for reason in violations if reason.code != "fanout")
        files: Files = ()
        if not reasons:
            reasons, files = _render(self.problem, self.architecture, mapping)
        if not reasons:
            try:
                stats = read_stats(_run_timeloop(self.path, files, self.seconds))
                return report_of(stats, self.problem, self.architecture, mapping, NAME)
            except ChildFailed as failure:
                reasons = (Reason(code=failure.code, where=self.path, message=str(failure)),)
            except Unreadable as error:
                reasons = (Reason(code="unreadable", where=OUTPUT, message=f"cannot be read: {error}"),)
        return Report(model=NAME, problem=self.problem.name, macs=self.problem.macs, valid=False, reasons=reasons)


@functools.lru_cache(maxsize=1024)
def _render(problem: Problem, architecture: Architecture, mapping: Mapping) -> tuple[tuple[Reason, ...], Files]:
    """Return reasons why Timeloop's files cannot express the inputs, and otherwise the files."""
    adapter: Adapter = installed().make(AdapterSpec, "timeloop")
    inputs = InputSet(problem, architecture, mapping)
    reasons = adapter.expressible(inputs).reasons
    files = {} if reasons else adapter.render(inputs)
    return reasons, tuple((name, text) for name, text in files.items() if name != SIDECAR)


@functools.lru_cache(maxsize=1024)
def _run_timeloop(path: str, files: Files, seconds: float) -> str:
    """Return the statistics that Timeloop writes for these files. It runs once for equal files.

    Raises:
        ChildFailed: Timeloop rejected the files, crashed or timed out.
    """
    finished = run(path, dict(files), OUTPUT, seconds)
    if finished.wrote is not None and not finished.code:
        return finished.wrote
    complaint = next((line for line in reversed(finished.printed.splitlines()) if "ERROR" in line), None)
    if complaint is not None:
        raise ChildFailed("rejected", complaint.strip())
    last = " ".join(finished.printed.split())[-200:] or "nothing"
    raise ChildFailed("crashed", f"{describe_exit(finished.code)} and wrote no {OUTPUT}; its last output: {last}")
