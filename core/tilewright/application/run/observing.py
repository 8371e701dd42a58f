"""Notes on a run to observer plugins. Without an observer of evaluations, searches are not watched for them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from tilewright.interrupts import stop_requested
from tilewright.plugin.groupmapper import GroupResult
from tilewright.plugin.guard.hooks import ask_each
from tilewright.plugin.guard.processes import limit
from tilewright.plugin.hook_data import ObservedRun
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Progress, Result
from tilewright.schema.workload import DistinctProblem

NOTE_SECONDS = 0.5
"""Least time between two notes on evaluations."""
NOTE_LIMIT = 5.0
"""Maximum seconds that an observer may take for such a note, since the search waits."""
_log = logging.getLogger("tilewright")


class RunObserver:
    """Observer plugins during one run. A plugin whose hook fails is named once, and receives nothing more of the run."""

    def __init__(self, run: ObservedRun) -> None:
        self.registry, self.silenced, self.complaints = installed(), set[str](), list[str]()
        self.run = run
        self.done: list[str] = []
        self.pending: dict[str, Progress] = {}
        self.told_at = time.monotonic()

    def started(self) -> None:
        """Tell that the run starts."""
        self._tell("tilewright_run_started", [{"run": self.run}], "at the start of the run")

    def ended(self) -> None:
        """Tell that the run has ended. Failures that no layer reports are logged."""
        told = {"run": self.run, "layers": tuple(dict.fromkeys(self.done))}
        self._tell("tilewright_run_done", [told], "at the end of the run")
        for line in self.complaints:
            _log.warning(line)
        self.complaints.clear()

    def layer_started(self, layer: str) -> None:
        """Tell that the search of a layer starts."""
        self._tell("tilewright_layer_started", [{"layer": layer}], f"before the search of {layer}")

    def watching(
        self, watch: Callable[[DistinctProblem, Progress], None] | None
    ) -> Callable[[DistinctProblem, Progress], None] | None:
        """Return a callback that also reports evaluations to observers; the given one if there is no observer of them."""
        if not self.registry.implementers("tilewright_evaluated"):
            return watch

        def both(distinct: DistinctProblem, progress: Progress) -> None:
            if watch is not None:
                watch(distinct, progress)
            self.pending[distinct.problem.name] = progress
            if time.monotonic() - self.told_at >= NOTE_SECONDS and not stop_requested():
                self._evaluated(*self.pending)

        return both

    def layer_done(self, layer: str, result: Result | None) -> tuple[str, ...]:
        """Tell that the search of a layer has ended, and return a warning for each failure so far."""
        self.done.append(layer)
        if result is None:
            return ()
        if self.registry.implementers("tilewright_evaluated"):  # a process may end before its last note
            self.pending[layer] = Progress(
                result.evaluated, result.valid, result.value, result.wall_seconds, self.run.budget
            )
            self._evaluated(layer)
        self.complaints += self.registry.tell_search_done(layer, result, self.silenced)
        warnings = tuple(self.complaints)
        self.complaints.clear()
        return warnings

    def group_done(self, group: str, result: GroupResult) -> None:
        """Tell that the search of a group has ended."""
        self.done += self.run.layers
        told = {"group": group, "result": result}
        self._tell("tilewright_group_done", [told], f"after the search of group {group}")

    def _evaluated(self, *layers: str) -> None:
        calls = [{"layer": layer, "progress": self.pending.pop(layer)} for layer in layers]
        when = f"during the search of {', '.join(layers)}"
        self._tell("tilewright_evaluated", calls, when, min(limit(), NOTE_LIMIT))
        self.told_at = time.monotonic()

    def _tell(self, hook: str, calls: Sequence[Mapping[str, object]], when: str, seconds: float | None = None) -> None:
        _, complaints = ask_each(self.registry.implementers(hook), hook, calls, when, self.silenced, seconds)
        self.complaints += complaints
