"""Searches in child processes; results, progress and Ctrl-C travel between them and this one."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from tilewright.child import Child, Told, stopping, tell
from tilewright.errors import PluginError
from tilewright.interrupts import waking
from tilewright.plugin.result import Progress, Watcher

Item = TypeVar("Item")
Found = TypeVar("Found")

SECONDS = 0.2
"""Between two notes on the progress of a search."""
TRIES = 2
"""How often an item is begun when processes die of it."""


class Workers:
    """Processes for several calls of `in_processes`; each starts when it is first given work, and ends with the `with` block."""

    def __init__(self, jobs: int) -> None:
        self.told: queue.SimpleQueue[Told | None] = queue.SimpleQueue()
        self.children = [Child(self.told) for _ in range(jobs)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            child.close()


def in_processes(
    items: Sequence[Item],
    work: Callable[[Item, Watcher], Found],
    watch: Callable[[Item, Progress], None] | None,
    workers: Workers,
    silence: float | None = None,
) -> Iterator[tuple[int, Found | PluginError]]:
    """(position, what `work` made of the item) in the order in which they are done. After Ctrl-C those under way come
    back with their best so far, and those not begun never.

    An item whose process died is tried once again. One that two processes died of, one whose work raises, one that
    cannot be sent and one of which nothing is heard come back as a PluginError.

    Args:
        work: is sent to a process; it ends early, with what it has, when the watcher it is given raises
            KeyboardInterrupt.
        watch: is told the progress of each item.
        silence: seconds after which a process that says nothing is ended; None: never.
    """
    told = workers.told
    pool = _Pool(items, work, watch, workers.children)
    try:
        with waking(lambda: told.put(None)):
            yield from pool.begun()
            while pool.busy:
                try:
                    message = told.get(timeout=pool.patience(silence))
                except queue.Empty:
                    yield from pool.silenced(silence)
                else:
                    if message is None:
                        pool.stop()
                    else:
                        yield from pool.heard(message)
                yield from pool.begun()
    finally:
        for child in pool.busy:  # whoever asked wants no more of it
            child.close()


@dataclass(frozen=True)
class _Trial(Generic[Item]):
    """One item, begun for the `number`th time."""

    index: int
    item: Item
    number: int = 1


class _Pool(Generic[Item, Found]):
    """Children, what each is at, and what waits for one."""

    def __init__(
        self,
        items: Sequence[Item],
        work: Callable[[Item, Watcher], Found],
        watch: Callable[[Item, Progress], None] | None,
        children: Sequence[Child],
    ) -> None:
        self.work, self.watch, self.children = work, watch, children
        self.waiting = deque(_Trial(index, item) for index, item in enumerate(items))
        self.busy: dict[Child, _Trial[Item]] = {}
        self.last: dict[Child, float] = {}
        """When something was heard of each."""
        self.stopped = False

    def begun(self) -> Iterator[tuple[int, PluginError]]:
        """Give work to every idle child; what could not be given."""
        for child in self.children:
            while self.waiting and child not in self.busy:
                trial = self.waiting.popleft()
                try:
                    child.begin(_work, trial.item, self.work)
                except Exception as error:  # pickling a third party's object may raise anything
                    yield trial.index, _broken(f"it cannot be sent there: {type(error).__name__}: {error}")
                else:
                    self.busy[child] = trial
                    self.last[child] = time.monotonic()

    def heard(self, told: Told) -> Iterator[tuple[int, Found | PluginError]]:
        """Act on what a child said; its item, if it is done with it."""
        trial = self.busy.get(told.child)
        if trial is None or told.stale:
            return
        self.last[told.child] = time.monotonic()
        if told.kind == "note":
            if self.watch is not None:
                self.watch(trial.item, told.value)
            return
        del self.busy[told.child]
        if told.kind == "answer":
            yield trial.index, told.value
        elif told.kind == "failure":
            yield trial.index, _broken(f"{type(told.value).__name__}: {told.value}")
        else:
            told.child.close()
            if trial.number == TRIES:
                yield trial.index, _broken(f"it {told.value}; so it did {TRIES} times")
            elif not self.stopped:
                self.waiting.appendleft(_Trial(trial.index, trial.item, trial.number + 1))

    def patience(self, silence: float | None) -> float | None:
        """Seconds until the first of them has been silent too long."""
        if silence is None:
            return None
        return max(0.0, min(self.last[child] for child in self.busy) + silence - time.monotonic())

    def silenced(self, silence: float | None) -> Iterator[tuple[int, PluginError]]:
        """End those that have been silent too long; their items."""
        for child, trial in list(self.busy.items()):
            if silence is not None and time.monotonic() - self.last[child] >= silence:
                del self.busy[child]
                child.close()
                yield trial.index, _broken(f"nothing was heard of it for {silence:.0f} s, and it was ended")

    def stop(self) -> None:
        """Begin nothing more; what is under way ends with what it has."""
        self.stopped = True
        self.waiting.clear()
        for child in self.busy:
            child.stop()


def _broken(what: str) -> PluginError:
    return PluginError(f"the process that mapped this layer failed: {what}", hint="try --jobs 1, which says more")


def _work(item: Item, work: Callable[[Item, Watcher], Found]) -> Found:
    """One item, in a child."""
    last = -SECONDS

    def watch(progress: Progress) -> None:
        nonlocal last
        if stopping():
            raise KeyboardInterrupt
        if time.monotonic() - last >= SECONDS:
            last = time.monotonic()
            tell(progress)

    return work(item, watch)
