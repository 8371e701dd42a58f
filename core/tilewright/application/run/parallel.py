"""Searches in child processes, which report results, progress and new best mappings to this process.

Third-party plugins always search in a child process. A process at its limit is ended, and the best
mapping that it has reported is preserved.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from tilewright.child import Child, ChildMessage, send_note
from tilewright.errors import OverdueError, PluginError
from tilewright.interrupts import on_interrupt
from tilewright.plugin.guard.calls import is_trusted, under_way
from tilewright.plugin.guard.time_limits import SLOW, STOPPING, warn_slow
from tilewright.plugin.result import Progress, Watcher
from tilewright.schema.mapping import Mapping

Item = TypeVar("Item")
Found = TypeVar("Found")

SECONDS = 0.2
"""Seconds between two notes of a process."""
TRIES = 2
"""Maximum number of processes that try one item, if they die."""
GRACE = 2.0
"""Seconds after a deadline at which a third-party search is ended."""
FROZEN = 5.0
"""Seconds without a sign of life after which a process at its limit is ended.

An example is C code that blocks all Python threads.
"""
FRESH = 1.0
"""Seconds for which the last sign of life identifies the current call."""
STARTING = 60.0
"""Seconds for the first sign of life of a process."""


# -- notes from a process ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchBegan:
    """Start of a search with a deadline after `seconds`; None: no deadline."""

    seconds: float | None


@dataclass(frozen=True)
class SearchEnded:
    """End of the current search."""


@dataclass(frozen=True)
class Incumbent:
    """A new best mapping, its costs, the number of illegal proposals before it, and all improvements so far."""

    mapping: Mapping
    value: float
    energy_pj: float
    cycles: float
    rejected: int
    history: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Finished:
    """One of several results of an item."""

    value: Any


@dataclass(frozen=True)
class _Beat:
    """A sign of life: the current third-party call, if any, and the CPU time so far."""

    plugin: str | None
    call: str
    since: float
    cpu_seconds: float


@dataclass
class Interim:
    """Notes on an unfinished item, which are used if its process ends before the answer."""

    began: float | None = None
    seconds: float | None = None
    ends: float = math.inf
    first_cpu: float = 0.0
    cpu: float = 0.0
    progress: Progress | None = None
    incumbent: Incumbent | None = None
    finished: list[Any] = field(default_factory=list)

    @property
    def wall_seconds(self) -> float:
        """Time since the current search began."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the current search, as of the last note."""
        return self.cpu - self.first_cpu

    def note(self, note: object) -> None:
        if isinstance(note, SearchBegan):
            now = time.monotonic()
            self.began, self.seconds, self.first_cpu = now, note.seconds, self.cpu
            self.ends = math.inf if note.seconds is None else now + note.seconds + GRACE
            self.progress = self.incumbent = None
        elif isinstance(note, SearchEnded):
            self.ends = math.inf
        elif isinstance(note, Incumbent):
            self.incumbent = note
        elif isinstance(note, Progress):
            self.progress = note
        elif isinstance(note, Finished):
            self.finished.append(note.value)


_reports = False


def report(note: object) -> None:
    """In a child process, send a note to the parent; elsewhere, do nothing."""
    if _reports:
        send_note(note)


# -- the pool ----------------------------------------------------------------------------------------------------


class Workers:
    """Processes for several calls of `in_processes`. They start with their first work and end with the block."""

    def __init__(self, jobs: int) -> None:
        self.messages: queue.SimpleQueue[ChildMessage | None] = queue.SimpleQueue()
        self.children = [Child(self.messages) for _ in range(jobs)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            child.close()


Rescue = Callable[[Item, Interim, PluginError | None], Found | None]
"""(Item, notes, error) -> result from the notes. Without an error, Ctrl-C ended the process."""


def in_processes(
    items: Sequence[Item],
    work: Callable[[Item, Watcher], Found],
    on_progress: Callable[[Item, Progress], None] | None,
    workers: Workers,
    limit: float | None = None,
    rescue: Rescue[Item, Found] | None = None,
    wanted: Callable[[int], bool] = lambda position: True,
) -> Iterator[tuple[int, Found | PluginError]]:
    """Yield (position, result of `work`) in the order in which they are done.

    After Ctrl-C, current items return their best so far, and no further item starts. An item whose
    process died is tried once more. Failures are PluginErrors, or the result of `rescue`: two dead
    processes, an exception, an item that cannot be pickled, or a limit.

    Args:
        work: Function for the child process; it ends early when `stop_requested`.
        on_progress: Callback for the progress of each item.
        limit: Seconds after which a third-party call is ended with its process. Searches then also end two seconds
            after their deadline. None: no limits.
        rescue: Returns a result from the notes of a process that was ended or died.
        wanted: Called at most once, immediately before an item starts; false skips the item.
    """
    messages = workers.messages
    pool = _Pool(items, work, on_progress, workers.children, limit, rescue, wanted)
    try:
        with on_interrupt(lambda: messages.put(None)):
            yield from pool.begun()
            while pool.busy:
                try:
                    message = messages.get(timeout=pool.next_check)
                except queue.Empty:
                    pass
                else:
                    if message is None:
                        pool.stop()
                    else:
                        yield from pool.received(message)
                yield from pool.ended()
                yield from pool.begun()
    finally:
        for child in pool.busy:  # the caller has stopped reading
            child.close()


@dataclass
class _Trial(Generic[Item]):
    """One attempt at an item, with the notes on it.

    `active` is the time of the last note apart from repeats of one third-party call.
    """

    index: int
    item: Item
    number: int = 1
    heard: float = 0.0
    active: float = 0.0
    beat: _Beat | None = None
    interim: Interim = field(default_factory=Interim)

    def note(self, note: object) -> None:
        self.heard = time.monotonic()
        if not isinstance(note, _Beat):
            self.active = self.heard
            self.interim.note(note)
            return
        same = self.beat is not None and (self.beat.plugin, self.beat.since) == (note.plugin, note.since)
        if note.plugin is None or not same:
            self.active = self.heard
        self.beat = note
        self.interim.cpu = note.cpu_seconds

    def overdue(self, limit: float) -> PluginError | None:
        """Return the error for which its process has to be ended now; None if it may run."""
        now = time.monotonic()
        silent, working, late = now - self.heard, now - self.active, now > self.interim.ends
        if self.beat is None or silent > FROZEN:
            most = max(limit, STARTING if self.beat is None else FROZEN)
            ended = silent > most or (late and silent > FROZEN)
            return _broken(f"it sent nothing for {silent:.1f} s, and was ended") if ended else None
        plugin = self.beat.plugin
        if plugin is None or silent > FRESH:
            return None
        if late or working > limit:
            seconds = self.interim.wall_seconds if late else working
            what = f"{self.beat.call} took too long and was ended after {seconds:.1f} s"
            return OverdueError(f"{plugin} failed: {what}", plugin=plugin)
        if working > SLOW:
            warn_slow(plugin, self.beat.call)
        return None


class _Pool(Generic[Item, Found]):
    """Children, their current items, and the items that wait."""

    def __init__(
        self,
        items: Sequence[Item],
        work: Callable[[Item, Watcher], Found],
        on_progress: Callable[[Item, Progress], None] | None,
        children: Sequence[Child],
        limit: float | None,
        rescue: Rescue[Item, Found] | None,
        wanted: Callable[[int], bool],
    ) -> None:
        self.work, self.on_progress, self.children, self.limit, self.rescue = work, on_progress, children, limit, rescue
        self.wanted = wanted
        self.waiting = deque(_Trial(index, item) for index, item in enumerate(items))
        self.busy: dict[Child, _Trial[Item]] = {}
        self.stopped: float | None = None
        """Time of the first Ctrl-C."""

    @property
    def next_check(self) -> float | None:
        """Seconds until the next check of limits; None without limits."""
        return SECONDS if self.limit is not None or self.stopped is not None else None

    def begun(self) -> Iterator[tuple[int, PluginError]]:
        """Give work to every idle child; yield items that could not be sent."""
        for child in self.children:
            while self.waiting and child not in self.busy:
                trial = self.waiting.popleft()
                if trial.number == 1 and not self.wanted(trial.index):
                    continue
                try:
                    child.begin(_work, trial.item, self.work)
                except Exception as error:  # pickling a third party's object may raise anything
                    yield trial.index, _broken(f"it cannot be sent there: {type(error).__name__}: {error}")
                else:
                    trial.heard = trial.active = time.monotonic()
                    self.busy[child] = trial

    def received(self, message: ChildMessage) -> Iterator[tuple[int, Found | PluginError]]:
        """Process a message of a child; yield its item if it is done."""
        trial = self.busy.get(message.child)
        if trial is None or message.stale:
            return
        if message.kind == "note":
            trial.note(message.value)
            if self.on_progress is not None and isinstance(message.value, Progress):
                self.on_progress(trial.item, message.value)
            return
        del self.busy[message.child]
        if message.kind == "answer":
            yield trial.index, message.value
        elif message.kind == "failure":
            yield from self._rescued(trial, _broken(f"{type(message.value).__name__}: {message.value}"))
        else:
            message.child.close()
            if trial.number == TRIES:
                yield from self._rescued(trial, _broken(f"it {message.value}, {TRIES} times"))
            elif self.stopped is None:
                self.waiting.appendleft(_Trial(trial.index, trial.item, trial.number + 1))

    def ended(self) -> Iterator[tuple[int, Found | PluginError]]:
        """End processes that have reached a limit; yield their items."""
        late = self.stopped is not None and time.monotonic() - self.stopped > STOPPING
        for child, trial in list(self.busy.items()):
            error = None if self.limit is None or late else trial.overdue(self.limit)
            if late or error is not None:
                del self.busy[child]
                child.close()
                yield from self._rescued(trial, error)

    def _rescued(self, trial: _Trial[Item], error: PluginError | None) -> Iterator[tuple[int, Found | PluginError]]:
        found = None if self.rescue is None else self.rescue(trial.item, trial.interim, error)
        if found is not None:
            yield trial.index, found
        elif error is not None:
            yield trial.index, error

    def stop(self) -> None:
        """Start nothing more, and request the results of current items."""
        self.stopped = self.stopped or time.monotonic()
        self.waiting.clear()
        for child in self.busy:
            child.stop()


def _broken(what: str) -> PluginError:
    return PluginError(f"the process that mapped this layer failed: {what}")


# -- in a process ------------------------------------------------------------------------------------------------


def _work(item: Item, work: Callable[[Item, Watcher], Found]) -> Found:
    """Process one item in a child."""
    global _reports
    notes = _Notes()
    thread = threading.Thread(target=notes.beat, daemon=True)
    thread.start()
    _reports = True
    try:
        return work(item, notes.on_progress)
    finally:
        _reports = False
        notes.over.set()
        thread.join()


class _Notes:
    """Sender of periodic notes from a child, independent of its work."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.sent_at = -math.inf
        self.pending: Progress | None = None

    def on_progress(self, progress: Progress) -> None:
        if time.monotonic() - self.sent_at >= SECONDS:
            self.sent_at, self.pending = time.monotonic(), None
            send_note(progress)
        else:
            self.pending = progress

    def beat(self) -> None:
        over = False
        while not over:
            call, progress = under_way(), self.pending
            if progress is not None:
                self.pending = None
                send_note(progress)
            if call is None or is_trusted(call.owner):
                send_note(_Beat(None, "", 0.0, time.process_time()))
            else:
                send_note(_Beat(str(call.owner), call.what, call.since, time.process_time()))
            over = self.over.wait(SECONDS)
