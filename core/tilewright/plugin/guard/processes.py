"""Third-party code in child processes: the one way in which it is guarded against hanging and dying.

A third party's plugin, one of an installed distribution other than Tilewright's, runs in a child process. Built-in plugins
and objects from the caller run in the caller's process. The child reports five times a second which plugin it calls, and its
best mapping so far. At a limit the process is ended, in Python or in C. An exception, a death and a limit all become
one PluginError with the plugin's name.

A child that has answered waits for the next request, so a command starts one child. `ask` is a single call, and
`in_processes` spreads searches over several children.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import math
import os
import queue
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import cloudpickle  # type: ignore[import-untyped]  # it pickles objects of notebooks and scripts

from tilewright.child import (
    Child,
    ChildMessage,
    current_folder,
    environment,
    is_child,
    module_path,
    portable,
    send_note,
)
from tilewright.errors import OverdueError, PluginError, TilewrightError
from tilewright.interrupts import on_interrupt, stop_requested
from tilewright.plugin.guard.calls import Owner, calling, fault, is_trusted, one_line_error, under_way

if TYPE_CHECKING:
    from tilewright.plugin.result import Progress, Watcher
    from tilewright.schema.mapping import Mapping

Item = TypeVar("Item")
Found = TypeVar("Found")

SECONDS = "TILEWRIGHT_PLUGIN_SECONDS"
"""Environment variable with the time limit of calls without a deadline."""
SLOW = 10.0
"""Seconds after which a message reports that a call still runs."""
STOPPING = 1.0
"""Seconds that a process may still take after Ctrl-C."""
PULSE = 0.2
"""Seconds between two notes of a process."""
TRIES = 2
"""Maximum number of processes that try one search, if they die."""
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


def limit() -> float:
    """Return the time limit in seconds of a third-party call without a deadline."""
    try:
        seconds = float(os.environ.get(SECONDS, ""))
    except ValueError:
        return 60.0
    return seconds if seconds >= 0 else 60.0


@cache
def warn_once(message: str) -> None:
    """Print a line on stderr, once."""
    logging.getLogger("tilewright").warning(message)


# -- single calls ------------------------------------------------------------------------------------------------


def ask(
    owner: Owner,
    call: str,
    function: Callable[..., Found],
    *arguments: object,
    seconds: float | None = None,
    purpose: str = "",
    told: Callable[[Any], None] | None = None,
    ends_early: bool = True,
) -> Found:
    """Return `function(*arguments)`, which calls a plugin: in a child process for a third party, else here.

    Args:
        seconds: Time limit in the child; default: `limit()`.
        purpose: Calls of one purpose share their children.
        told: Receives what the function reports.
        ends_early: Whether Ctrl-C asks the child to end early. Without, the child lives on if it answers in time.

    Raises:
        OverdueError: A third-party plugin reached its time limit.
        PluginError: Its process died, or an argument or a result cannot be sent.
        KeyboardInterrupt, TilewrightError: See `calling`.
    """
    with calling(owner, call):
        if is_trusted(owner) or is_child():
            return function(*arguments)
        pool: _Pool[Any, Any] = _Pool(
            [(owner, call, function, arguments)],
            _called,
            1,
            queue.SimpleQueue(),
            limit() if seconds is None else seconds,
            None if told is None else lambda _, value: told(value),
            purpose=purpose,
            tries=1,
            ends_early=ends_early,
            broken=lambda what: fault(owner, f"{call} {what}"),
        )
        for _, outcome in pool.run():
            if isinstance(outcome, PluginError):
                raise outcome
            if outcome.error is not None:
                raise outcome.error from outcome.cause
            answer: Found = outcome.value
            return answer
        raise OverdueError(f"{owner} failed: {call} did not end after Ctrl-C", plugin=str(owner))


@dataclass(frozen=True)
class _Outcome:
    """Value of a call, or the error for the user with its cause."""

    value: Any = None
    error: TilewrightError | None = None
    cause: BaseException | None = None


def _called(request: tuple[Owner, str, Callable[..., Any], tuple[object, ...]], _: object) -> _Outcome:
    """Answer a single call in a child. The imports of Tilewright's own modules take none of the plugin's time."""
    importlib.import_module("tilewright.plugin.guard.kinds")
    owner, call, function, arguments = request
    try:
        with calling(owner, call):
            return _Outcome(function(*arguments))
    except TilewrightError as error:
        cause = None if error.__cause__ is None else portable(error.__cause__)
        return _Outcome(error=error, cause=cause)


# -- notes from a process ----------------------------------------------------------------------------------------


class Note:
    """A note of a search or a process; all other values that a search sends are its progress."""


@dataclass(frozen=True)
class SearchBegan(Note):
    """Start of a search with a deadline after `seconds`; None: no deadline."""

    seconds: float | None


@dataclass(frozen=True)
class SearchEnded(Note):
    """End of the current search."""


@dataclass(frozen=True)
class Incumbent(Note):
    """A new best mapping, its costs, the number of illegal proposals before it, and all improvements so far."""

    mapping: Mapping
    value: float
    energy_pj: float
    cycles: float
    rejected: int
    history: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class _Beat(Note):
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

    @property
    def wall_seconds(self) -> float:
        """Time since the current search began."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the current search, as of the last note."""
        return self.cpu - self.first_cpu

    def note(self, note: Any) -> None:
        if isinstance(note, SearchBegan):
            now = time.monotonic()
            self.began, self.seconds, self.first_cpu = now, note.seconds, self.cpu
            self.ends = math.inf if note.seconds is None else now + note.seconds + GRACE
            self.progress = self.incumbent = None
        elif isinstance(note, SearchEnded):
            self.ends = math.inf
        elif isinstance(note, Incumbent):
            self.incumbent = note
        elif not isinstance(note, Note):
            self.progress = note


_reports = False


def report(note: object) -> None:
    """In a child process, send a note to the parent; elsewhere, do nothing."""
    if _reports:
        send_note(note)


# -- the pool ----------------------------------------------------------------------------------------------------

_idle: dict[str, list[Child]] = defaultdict(list)
"""Purpose -> children that wait for work."""


def _idle_child(purpose: str, messages: queue.SimpleQueue[Any]) -> Child:
    """Return a child that waits, or a new one. Its messages go to the queue."""
    try:
        child = _idle[purpose].pop()
    except IndexError:
        return Child(messages)
    child.message_queue = messages
    if child.run is not None and child.run.poll() is not None:
        child.close()  # it died while it waited
    return child


@atexit.register
def end_children(purpose: str | None = None) -> None:
    """End the children that wait for work, with all that they remember: those of one purpose, or all."""
    for children in list(_idle.values()) if purpose is None else [_idle.pop(purpose, [])]:
        while children:
            children.pop().close()


class Workers:
    """Up to `jobs` processes for several calls of `in_processes`. Those that started in the block end with it."""

    def __init__(self, jobs: int) -> None:
        self.jobs, self._before = jobs, 0
        self.messages: queue.SimpleQueue[ChildMessage | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._before = len(_idle[""])
        return self

    def __exit__(self, *_: object) -> None:
        while len(_idle[""]) > self._before:
            _idle[""].pop().close()


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
    pool = _Pool(items, work, workers.jobs, messages, limit, on_progress, rescue, wanted)
    with on_interrupt(lambda: messages.put(None)):
        yield from pool.run()


def _broken(what: str) -> PluginError:
    return PluginError(f"the process that mapped this layer failed: it {what}")


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

    def overdue(self, limit: float, broken: Callable[[str], PluginError]) -> PluginError | None:
        """Return the error for which its process has to be ended now; None if it may run."""
        now = time.monotonic()
        silent, working, late = now - self.heard, now - self.active, now > self.interim.ends
        if self.beat is None or silent > FROZEN:
            most = max(limit, STARTING if self.beat is None else FROZEN)
            ended = silent > most or (late and silent > FROZEN)
            return broken(f"sent nothing for {silent:.1f} s, and was ended") if ended else None
        plugin = self.beat.plugin
        if plugin is None or silent > FRESH:
            return None
        if late or working > limit:
            seconds = self.interim.wall_seconds if late else working
            what = f"{self.beat.call} took too long and was ended after {seconds:.1f} s"
            return OverdueError(f"{plugin} failed: {what}", plugin=plugin)
        if working > SLOW:
            what = f"{self.beat.call} has taken {SLOW:g} s so far; it is ended after {limit:g} s ({SECONDS})"
            warn_once(f"{plugin}: {what}")
        return None


@dataclass
class _Pool(Generic[Item, Found]):
    """Children at work, their current items, and the items that wait."""

    items: InitVar[Sequence[Item]]
    work: Callable[[Item, Watcher], Found]
    jobs: int
    messages: queue.SimpleQueue[ChildMessage | None]
    limit: float | None
    on_progress: Callable[[Item, Progress], None] | None = None
    rescue: Rescue[Item, Found] | None = None
    wanted: Callable[[int], bool] = lambda position: True
    purpose: str = ""
    tries: int = TRIES
    ends_early: bool = True
    broken: Callable[[str], PluginError] = _broken
    busy: dict[Child, _Trial[Item]] = field(init=False, default_factory=dict)
    stopped: float | None = field(init=False, default=None)
    """Time of the first Ctrl-C."""

    def __post_init__(self, items: Sequence[Item]) -> None:
        self.waiting = deque(_Trial(index, item) for index, item in enumerate(items))

    def run(self) -> Iterator[tuple[int, Found | PluginError]]:
        """Yield (position, result or PluginError) in the order in which they are done."""
        try:
            yield from self.begun()
            while self.busy:
                try:
                    message = self.messages.get(timeout=self.next_check)
                except queue.Empty:
                    message = None
                if message is not None:
                    yield from self.received(message)
                if stop_requested():
                    self.stop()
                yield from self.ended()
                yield from self.begun()
        finally:
            for child in self.busy:  # the caller has stopped reading
                child.close()

    @property
    def next_check(self) -> float | None:
        """Seconds until the next check of limits; None without limits."""
        return PULSE if self.limit is not None or self.stopped is not None else None

    def begun(self) -> Iterator[tuple[int, PluginError]]:
        """Give work to idle children; yield items that could not be sent."""
        while self.waiting and len(self.busy) < self.jobs:
            trial = self.waiting.popleft()
            if trial.number == 1 and not self.wanted(trial.index):
                continue
            try:
                request = cloudpickle.dumps((self.work, trial.item))
            except Exception as error:  # pickling a third party's object may raise anything
                yield trial.index, self.broken(f"cannot be sent there: {one_line_error(error)}")
                continue
            child = _idle_child(self.purpose, self.messages)
            child.begin(_work, request, current_folder(), environment(), module_path())
            trial.heard = trial.active = time.monotonic()
            self.busy[child] = trial

    def received(self, message: ChildMessage) -> Iterator[tuple[int, Found | PluginError]]:
        """Process a message of a child; yield its item if it is done."""
        child = message.child
        trial = self.busy.get(child)
        if trial is None or message.stale:
            return
        if message.kind == "note":
            trial.note(message.value)
            if self.on_progress is not None and not isinstance(message.value, Note):
                self.on_progress(trial.item, message.value)
            return
        del self.busy[child]
        if message.kind == "end" or (self.stopped is not None and self.ends_early):
            child.close()
        else:
            _idle[self.purpose].append(child)
        if message.kind == "answer":
            yield trial.index, message.value
        elif message.kind == "failure":
            yield from self._rescued(trial, self.broken(f"raised {one_line_error(message.value)}"))
        elif trial.number == self.tries:
            often = f", {self.tries} times" if self.tries > 1 else ""
            yield from self._rescued(trial, self.broken(f"{message.value}{often}"))
        elif self.stopped is None:
            self.waiting.appendleft(_Trial(trial.index, trial.item, trial.number + 1))

    def ended(self) -> Iterator[tuple[int, Found | PluginError]]:
        """End processes that have reached a limit; yield their items."""
        late = self.stopped is not None and time.monotonic() - self.stopped > STOPPING
        for child, trial in list(self.busy.items()):
            error = None if self.limit is None or late else trial.overdue(self.limit, self.broken)
            if late or error is not None:
                del self.busy[child]
                child.close()
                yield from self._rescued(trial, error)

    def _rescued(self, trial: _Trial[Item], error: PluginError | None) -> Iterator[tuple[int, Found | PluginError]]:
        result = None if self.rescue is None else self.rescue(trial.item, trial.interim, error)
        if result is not None:
            yield trial.index, result
        elif error is not None:
            yield trial.index, error

    def stop(self) -> None:
        """Start nothing more, and request the results of current items."""
        if self.stopped is None:
            self.stopped = time.monotonic()
            self.waiting.clear()
            for child in self.busy if self.ends_early else ():
                child.stop()


# -- in a process ------------------------------------------------------------------------------------------------


def _work(request: bytes, folder: str | None, variables: dict[str, str], path: list[str]) -> Any:
    """Process one item in a child, in the folder, the environment and the module path of the caller."""
    global _reports
    notes = _Notes()
    thread = threading.Thread(target=notes.beat, daemon=True)
    thread.start()
    _reports = True
    try:
        if folder is not None:
            os.chdir(folder)
        if dict(os.environ) != variables:
            os.environ.clear()
            os.environ.update(variables)
        sys.path += [place for place in path if place not in sys.path]
        work, item = cloudpickle.loads(request)
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
        if time.monotonic() - self.sent_at >= PULSE:
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
            over = self.over.wait(PULSE)
