"""Patience with plugins: one that takes long is told of, one that takes too long is ended."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from types import TracebackType

from tilewright.interrupts import Block, end, running
from tilewright.plugin.guard.calls import BUILTIN, Owner, calling

SECONDS = "TILEWRIGHT_PLUGIN_SECONDS"
"""The environment variable that says how long the host waits where no deadline does."""
AGAIN = 1.0
"""Seconds after which a plugin that goes on is asked once more to end."""
TOLD, ENDED = 3.0, 15.0
"""Seconds after the deadline of a search."""


def limit() -> float:
    """Seconds for each call of a third party's plugin that no deadline ends."""
    try:
        seconds = float(os.environ.get(SECONDS, ""))
    except ValueError:
        return 60.0
    return seconds if seconds >= 0 else 60.0


@cache
def tell_once(message: str) -> None:
    """A line on stderr, the first time."""
    logging.getLogger("tilewright").warning(message)


@contextmanager
def patient(told: float, ended: float, say: Callable[[calling, float], str]) -> Iterator[None]:
    """Watches what plugins do inside, in the main thread.

    Args:
        told: seconds after which the plugin that runs then is told of, if it is not ended before.
        ended: seconds after which it is ended, as soon as it is in Python: code in C is waited for.
        say: what is told of the call that runs so many seconds after the beginning.
    """
    over = threading.Event()
    started = time.monotonic()

    def watch() -> None:
        if over.wait(min(told, ended, threading.TIMEOUT_MAX)):
            return
        while told < ended and not over.wait(0.05):
            call, passed = running(), time.monotonic() - started
            if call is not None:
                tell_once(say(call, passed))
                break
        if over.wait(min(max(0.0, started + ended - time.monotonic()), threading.TIMEOUT_MAX)):
            return
        while True:
            call = running()
            if call is not None:
                end(call)
            if over.wait(AGAIN):
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class limited(Block):
    """`calling` with a limit on its time, for third parties' plugins; built-in ones may have to compile."""

    __slots__ = ("_call", "_patience")

    def __init__(self, owner: Owner, what: str) -> None:
        most = limit()

        def say(call: calling, passed: float) -> str:
            return (
                f"{call.owner}: {call.what} has taken {passed:.0f} s so far; it is ended after {most:g} s ({SECONDS})"
            )

        is_ours = owner.distribution in (None, BUILTIN)
        self._patience: AbstractContextManager[None] = nullcontext() if is_ours else patient(min(10.0, most), most, say)
        self._call, self.left = calling(owner, what), False

    def __enter__(self) -> None:
        self._patience.__enter__()
        self._call.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._call.__exit__(kind, error, trace)
        finally:
            self._patience.__exit__(None, None, None)
            self.left = True
