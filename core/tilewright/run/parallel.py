"""Searches in child processes: results, progress, incumbents and Ctrl-C travel between them and this one.

A third party's plugin searches here only: a process that runs on at its limit is ended, whatever it does, and the best mapping
that it reported is kept.
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
"""Between two notes of a process."""
TRIES = 2
"""How often an item is begun when processes die of it."""
GRACE = 2.0
"""Seconds after a deadline until a search that runs on in a third party's plugin is ended."""
FROZEN = 5.0
"""Seconds without any sign of life after which a process is ended at a limit, such as one in C code that never lets Python run."""
FRESH = 1.0
"""Seconds for which the last sign of life says which call is under way."""
STARTING = 60.0
"""Seconds in which a process gives its first sign of life."""


# -- notes of a process on its work ------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchBegan:
    """A search that may take so many seconds; None: no deadline."""

    seconds: float | None


@dataclass(frozen=True)
class SearchEnded:
    """The search under way is over."""


@dataclass(frozen=True)
class Incumbent:
    """The best mapping so far, its costs, and how many proposals broke a rule before."""

    mapping: Mapping
    value: float
    energy_pj: float
    cycles: float
    rejected: int


@dataclass(frozen=True)
class Finished:
    """One of several results of an item."""

    value: Any


@dataclass(frozen=True)
class _Beat:
    """A sign of life: the call into a third party's plugin that is under way, if one is, and the CPU time so far."""

    plugin: str | None
    call: str
    since: float
    cpu_seconds: float


@dataclass
class Interim:
    """The notes on an item under way: what is kept when its process ends before the answer."""

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
        """Time since the search under way began."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the search under way, as of the last note."""
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
    """Send a note to the process that asked for this work; does nothing where no process did."""
    if _reports:
        send_note(note)


# -- the pool ----------------------------------------------------------------------------------------------------


class Workers:
    """Processes for several calls of `in_processes`; each starts when it is first given work, and ends with the `with` block."""

    def __init__(self, jobs: int) -> None:
        self.messages: queue.SimpleQueue[ChildMessage | None] = queue.SimpleQueue()
        self.children = [Child(self.messages) for _ in range(jobs)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            child.close()


Rescue = Callable[[Item, Interim, PluginError | None], Found | None]
"""Item, its notes, and the error -> the result that the notes allow. Without an error, Ctrl-C ended the process."""


def in_processes(
    items: Sequence[Item],
    work: Callable[[Item, Watcher], Found],
    watch: Callable[[Item, Progress], None] | None,
    workers: Workers,
    limit: float | None = None,
    rescue: Rescue[Item, Found] | None = None,
    wanted: Callable[[int], bool] = lambda position: True,
) -> Iterator[tuple[int, Found | PluginError]]:
    """(position, what `work` made of the item) in the order in which they are done. After Ctrl-C those under way come
    back with their best so far, and those not begun never.

    An item whose process died is tried once again. One that two processes died of, one whose work raises, one that
    cannot be sent and one that is ended at a limit come back as a PluginError, or as what `rescue` makes of their notes.

    Args:
        work: is sent to a process; it ends early, with what it has, once `stop_requested` there.
        watch: is told the progress of each item.
        limit: seconds after which a call into a third party's plugin is ended, with its process. With it, searches are ended
            two seconds after their deadline, too. None: no process is ended.
        rescue: makes a result of the notes of an item whose process was ended or died.
        wanted: asked just before an item is begun, at most once; one that is not wanted is left out.
    """
    messages = workers.messages
    pool = _Pool(items, work, watch, workers.children, limit, rescue, wanted)
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
        for child in pool.busy:  # whoever asked wants no more of it
            child.close()


@dataclass
class _Trial(Generic[Item]):
    """One item, begun for the `number`th time, and what is heard of it. `active`: when something other than one call of a third party's
    plugin was last heard of."""

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
        """Why its process has to be ended now; None: it has not."""
        now = time.monotonic()
        silent, working, late = now - self.heard, now - self.active, now > self.interim.ends
        if self.beat is None or silent > FROZEN:
            most = max(limit, STARTING if self.beat is None else FROZEN)
            ended = silent > most or (late and silent > FROZEN)
            return _broken(f"nothing was heard of it for {silent:.1f} s, and it was ended") if ended else None
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
    """Children, what each is at, and what waits for one."""

    def __init__(
        self,
        items: Sequence[Item],
        work: Callable[[Item, Watcher], Found],
        watch: Callable[[Item, Progress], None] | None,
        children: Sequence[Child],
        limit: float | None,
        rescue: Rescue[Item, Found] | None,
        wanted: Callable[[int], bool],
    ) -> None:
        self.work, self.watch, self.children, self.limit, self.rescue = work, watch, children, limit, rescue
        self.wanted = wanted
        self.waiting = deque(_Trial(index, item) for index, item in enumerate(items))
        self.busy: dict[Child, _Trial[Item]] = {}
        self.stopped: float | None = None
        """When Ctrl-C came."""

    @property
    def next_check(self) -> float | None:
        """Seconds until limits are looked at; None: there are none."""
        return SECONDS if self.limit is not None or self.stopped is not None else None

    def begun(self) -> Iterator[tuple[int, PluginError]]:
        """Give work to every idle child; what could not be given."""
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
        """Act on what a child said; its item, if it is done with it."""
        trial = self.busy.get(message.child)
        if trial is None or message.stale:
            return
        if message.kind == "note":
            trial.note(message.value)
            if self.watch is not None and isinstance(message.value, Progress):
                self.watch(trial.item, message.value)
            return
        del self.busy[message.child]
        if message.kind == "answer":
            yield trial.index, message.value
        elif message.kind == "failure":
            yield from self._rescued(trial, _broken(f"{type(message.value).__name__}: {message.value}"))
        else:
            message.child.close()
            if trial.number == TRIES:
                yield from self._rescued(trial, _broken(f"it {message.value}; so it did {TRIES} times"))
            elif self.stopped is None:
                self.waiting.appendleft(_Trial(trial.index, trial.item, trial.number + 1))

    def ended(self) -> Iterator[tuple[int, Found | PluginError]]:
        """End the processes that have reached a limit; their items."""
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
        """Begin nothing more; what is under way ends with what it has."""
        self.stopped = self.stopped or time.monotonic()
        self.waiting.clear()
        for child in self.busy:
            child.stop()


def _broken(what: str) -> PluginError:
    return PluginError(f"the process that mapped this layer failed: {what}")


# -- in a process ------------------------------------------------------------------------------------------------


def _work(item: Item, work: Callable[[Item, Watcher], Found]) -> Found:
    """One item, in a child."""
    global _reports
    notes = _Notes()
    thread = threading.Thread(target=notes.beat, daemon=True)
    thread.start()
    _reports = True
    try:
        return work(item, notes.watch)
    finally:
        _reports = False
        notes.over.set()
        thread.join()


class _Notes:
    """What a process tells of its work every few tenths of a second, whatever the work is at."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.sent_at = -math.inf
        self.pending: Progress | None = None

    def watch(self, progress: Progress) -> None:
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
