"""The cost model `timeloop_binary`: what `timeloop-model` itself says."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.errors import Reason
from tilewright.mapspace.legality import legality
from tilewright.notations.timeloop.report import report_of
from tilewright.notations.timeloop.stats import Unreadable, read_stats
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.costmodel import ScalarEvaluator
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report
from tilewright_costmodels import TimeloopBinaryOptions
from tilewright_costmodels.timeloop_binary.program import Ended, run

NAME = "timeloop_binary"
OUTPUT = "timeloop-model.stats.txt"
_OURS = "tilewright.yaml"
"""What the adapter writes for Tilewright alone."""


class TimeloopBinaryModel:
    """The program, which is looked for when it is first used."""

    def __init__(self, options: TimeloopBinaryOptions) -> None:
        self.options = options

    def bind(self, problem: Problem, architecture: Architecture) -> TimeloopBinaryEvaluator:
        return TimeloopBinaryEvaluator(problem, architecture, self.options.path, self.options.seconds)


@dataclass(frozen=True)
class TimeloopBinaryEvaluator(ScalarEvaluator):
    """The program bound to one problem and one architecture; it is started once for every mapping."""

    problem: Problem
    architecture: Architecture
    path: str
    seconds: float

    def explain(self, mapping: Mapping) -> Report:
        """Timeloop's own account. A mapping that its files cannot say, a crash, a time-out and output that cannot be
        read give `valid` false and the reason."""
        adapter: Adapter = installed().make(AdapterSpec, "timeloop")
        inputs = InputSet(self.problem, self.architecture, mapping)
        broken = legality(self.problem, self.architecture, mapping).reasons
        reasons = tuple(reason for reason in broken if reason.code != "fanout") or adapter.expressible(inputs).reasons
        if not reasons:
            files = {name: text for name, text in adapter.render(inputs).items() if name != _OURS}
            ended = _run_once(self.path, tuple(files.items()), self.seconds)
            reasons = tuple(_failures(ended, self.path, self.seconds))
        if not reasons:
            try:
                return report_of(read_stats(ended.wrote or ""), self.problem, self.architecture, mapping, NAME)
            except Unreadable as error:
                reasons = (Reason(code="unreadable", where=OUTPUT, message=f"cannot be read: {error}"),)
        return Report(model=NAME, problem=self.problem.name, macs=self.problem.macs, valid=False, reasons=reasons)


@functools.lru_cache(maxsize=1024)
def _run_once(path: str, files: tuple[tuple[str, str], ...], seconds: float) -> Ended:
    """The same files give the same statistics: Timeloop is started once for them."""
    return run(path, dict(files), OUTPUT, seconds)


def _failures(ended: Ended, path: str, seconds: float) -> Iterator[Reason]:
    """Why there are no statistics, if there are none."""
    complaint = next((line for line in reversed(ended.printed.splitlines()) if "ERROR" in line), None)
    if ended.late:
        yield Reason(code="timeout", where=path, message=f"took longer than {seconds:g} s and was stopped")
    elif ended.code is None:
        yield Reason(code="absent", where=path, message=f"could not be started: {ended.printed}")
    elif (ended.code or ended.wrote is None) and complaint is not None:
        yield Reason(code="rejected", where=path, message=complaint.strip())
    elif ended.code or ended.wrote is None:
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with exit code {ended.code}"
        last = " ".join(ended.printed.split())[-200:] or "nothing"
        yield Reason(code="crashed", where=path, message=f"{how} and wrote no {OUTPUT}; it last said: {last}")
