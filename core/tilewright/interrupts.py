"""Ctrl-C in the main thread: the first is a request to stop, the second raises KeyboardInterrupt.

After the first Ctrl-C all finished results are kept and printed, with exit code 130, within two seconds. The signal
handler counts, and loops end early when `stop_requested`. SIGTERM counts as Ctrl-C. The first Ctrl-C raises KeyboardInterrupt only where no
result can be lost: before the first result, and inside `raising` blocks.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any


class _State:
    """State of the signal handler. Only the main thread writes it, apart from `request_stop`."""

    installed = False
    """A `preserving_results` block has installed the handler."""
    presses = 0
    """Times that Ctrl-C was pressed since then."""
    has_result = False
    """There is a result to preserve."""
    tolerated: int | None = None
    """Inside a `raising` block: `presses` when it began. More raise KeyboardInterrupt."""
    holds = 0
    """Open `hold` calls, during which the handler raises nothing."""


_state = _State()
_callbacks: list[Callable[[], object]] = []


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def preserving_results() -> Iterator[bool]:
    """Return a context that preserves results when Ctrl-C is pressed, and whether it is the outermost one.

    The work inside calls `mark_result_found` and `stop_requested`. The context also surrounds the
    output of its results. It does nothing in other threads, and where the program ignores Ctrl-C.
    """
    former, ends = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    if _state.installed or not _in_main_thread() or not callable(former):
        yield False
        return
    streams = sys.stdout, sys.stderr
    try:
        _state.installed, _state.presses, _state.has_result, _state.tolerated = True, 0, False, None
        signal.signal(signal.SIGINT, partial(_on_sigint, former))
        if ends is signal.SIG_DFL:  # `timeout` and batch systems send it
            signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
        yield True
    finally:
        signal.signal(signal.SIGINT, former)
        if ends is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, ends)
        _state.installed, _state.presses = False, 0
        sys.stdout, sys.stderr = streams


def mark_result_found() -> None:
    """Preserve results from now on: the first Ctrl-C is a request."""
    if _in_main_thread():
        _state.has_result, _state.tolerated = True, None


def request_stop() -> None:
    """Request an early end of the work in this process, from any thread."""
    _state.presses = _state.presses or 1


def stop_requested() -> bool:
    """Return whether the work should end early with its results so far."""
    return _state.presses > 0


def is_from_user() -> bool:
    """Return whether a KeyboardInterrupt caught in this thread comes from Ctrl-C, not from a plugin."""
    if _state.installed:
        return _state.presses > 0 and _in_main_thread()
    return _in_main_thread() and callable(signal.getsignal(signal.SIGINT))


@contextmanager
def on_interrupt(callback: Callable[[], object]) -> Iterator[None]:
    """Return a context for a wait for other processes, which preserve their own results.

    Ctrl-C calls `callback`. An earlier request calls it at once.
    """
    with preserving_results():
        _callbacks.append(callback)
        try:
            if stop_requested():
                callback()
            yield
        finally:
            _callbacks.remove(callback)


class raising:
    """Context of a call that may take long and whose loss costs no result.

    The first Ctrl-C raises KeyboardInterrupt inside. The caller then continues with
    `mark_result_found`. Streams that an interrupted call has replaced are restored.
    """

    __slots__ = ("_streams",)

    def __enter__(self) -> None:
        self._streams = sys.stdout, sys.stderr
        if _in_main_thread():
            _state.tolerated = _state.presses

    def __exit__(self, *_: object) -> None:
        if _in_main_thread():  # an abandoned thread may end after the streams have changed
            _state.tolerated = None
            sys.stdout, sys.stderr = self._streams


def hold() -> None:
    """Keep the handler from raising until `release`, where C code calls Python and drops exceptions."""
    if _in_main_thread():
        _state.holds += 1


def release() -> None:
    """End a `hold`.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed during the hold, and the handler would have raised.
    """
    if _in_main_thread():
        _state.holds -= 1
        if not _state.holds:
            raise_if_due()


def raise_if_due() -> None:
    """Raise KeyboardInterrupt if Ctrl-C should end the work at once.

    The handler calls this function. Further calls cover exceptions that were held back, or that a plugin has caught.
    """
    if _state.presses and _state.installed and _in_main_thread():
        requests = int(_state.has_result or bool(_callbacks)) if _state.tolerated is None else _state.tolerated
        if _state.presses > requests:
            raise KeyboardInterrupt


def _on_sigint(former: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
    try:
        former(number, frame)
    except KeyboardInterrupt:
        pass
    else:
        return  # the host program handles Ctrl-C in its own way
    _state.presses += 1
    for callback in _callbacks:
        callback()
    if not _state.holds:
        raise_if_due()
