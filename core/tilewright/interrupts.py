"""Ctrl-C in the main thread: the first is a request to stop, the second raises KeyboardInterrupt.

The handler sets a flag, and the loops of core check it (`stop_requested`): after the first Ctrl-C all finished results are kept and printed.
The first raises KeyboardInterrupt, too, where no result can be lost by it: before the first result, and inside `raising` blocks.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType, TracebackType
from typing import Any


class _State:
    """What is known of Ctrl-C."""

    active = False
    """A `preserving_results` block listens."""
    found = False
    """It has something to keep."""
    requested = False
    """Ctrl-C came."""
    raising = False
    """The first Ctrl-C raises although something was found."""
    holds = 0
    """Blocks in which nothing may be raised now."""
    due = False
    """What could not be raised there is raised later."""


_state = _State()
_wakes: list[Callable[[], object]] = []
"""Called when Ctrl-C comes."""


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def preserving_results() -> Iterator[None]:
    """Around work that keeps its results (`mark_result_found`) and looks at `stop_requested`, and around all that is made of them: reports, files.

    An inner block is part of the outer one. Nothing changes in other threads, and where the program ignores Ctrl-C.
    """
    former = signal.getsignal(signal.SIGINT)
    if _state.active or not _in_main_thread() or not callable(former):
        yield
        return
    try:
        _state.active, _state.found, _state.requested, _state.raising, _state.due = True, False, False, False, False
        signal.signal(signal.SIGINT, partial(_hear, former))
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        _state.active = _state.requested = _state.due = False


def mark_result_found() -> None:
    """There is something to keep from now on."""
    _state.found = True


def request_stop() -> None:
    """Ask the work of this process to stop, as the first Ctrl-C does; from any thread."""
    _state.requested = True


def stop_requested() -> bool:
    """Return whether Ctrl-C came."""
    return _state.requested


def is_from_user() -> bool:
    """Return whether a KeyboardInterrupt that was caught in this thread came from Ctrl-C: a plugin may raise one, too."""
    if _state.requested:
        return True
    return not _state.active and _in_main_thread() and callable(signal.getsignal(signal.SIGINT))


@contextmanager
def waking(wake: Callable[[], object]) -> Iterator[None]:
    """Around a wait for other processes, which keep their results: `wake` is called when Ctrl-C comes, or has come."""
    with preserving_results():
        _wakes.append(wake)
        try:
            if _state.requested:
                wake()
            yield
        finally:
            _wakes.remove(wake)


class raising:
    """Around a call that may take long and whose loss costs no result: the first Ctrl-C raises KeyboardInterrupt there.

    Streams that the call replaced are put back.
    """

    __slots__ = ("_streams",)

    def __enter__(self) -> None:
        self._streams = sys.stdout, sys.stderr
        _state.raising = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _state.raising = False
        sys.stdout, sys.stderr = self._streams
        if isinstance(error, KeyboardInterrupt):
            has_arrived()
        raise_if_due()


def hold() -> None:
    """Raise nothing until `release`: an exception would be lost here, such as where C code calls Python."""
    if _in_main_thread():
        _state.holds += 1


def release() -> None:
    """End a `hold`. Raises KeyboardInterrupt, if one is due."""
    if _in_main_thread():
        _state.holds -= 1
        if not _state.holds:
            raise_if_due()


def has_arrived() -> None:
    """Note that a KeyboardInterrupt was caught: it is not raised again."""
    _state.due = False


def raise_if_due() -> None:
    """Raise the KeyboardInterrupt that was held back, or that a plugin has caught."""
    if _state.due and _in_main_thread():
        _state.due = False
        raise KeyboardInterrupt


def _hear(former: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
    try:
        former(number, frame)
    except KeyboardInterrupt:
        pass
    else:
        return  # the host program does something else
    first, _state.requested = not _state.requested, True
    for wake in _wakes:
        wake()
    if first and (_state.found or _wakes) and not _state.raising:
        return
    _state.due = True
    if not _state.holds:
        raise KeyboardInterrupt
