"""Calls into plugins outside of searches, with a limit on their time for third parties' plugins.

Such a call runs in a thread. One that runs on at its limit is left behind there, and the command goes on without its answer.
Searches run in processes instead (`tilewright.run.parallel`).
"""

from __future__ import annotations

import contextvars
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from tilewright.child import is_child
from tilewright.errors import OverdueError
from tilewright.interrupts import stop_requested
from tilewright.plugin.guard.calls import Owner, calling, is_trusted, translated

Answer = TypeVar("Answer")

SECONDS = "TILEWRIGHT_PLUGIN_SECONDS"
"""The environment variable with the limit on a call that no deadline ends."""
SLOW = 10.0
"""Seconds of one call after which the user is told that it goes on."""
STOPPING = 1.0
"""Seconds after Ctrl-C that a call may still take."""
POLL = 0.05
"""Seconds between two looks at Ctrl-C."""


def limit() -> float:
    """Return the seconds that a call into a third party's plugin may take where no deadline ends it."""
    try:
        seconds = float(os.environ.get(SECONDS, ""))
    except ValueError:
        return 60.0
    return seconds if seconds >= 0 else 60.0


@cache
def warn_once(message: str) -> None:
    """Print a line on stderr, the first time."""
    logging.getLogger("tilewright").warning(message)


def warn_slow(plugin: str, call: str) -> None:
    """Tell once that a call goes on, and when it is ended."""
    warn_once(f"{plugin}: {call} has taken {SLOW:g} s so far; it is ended after {limit():g} s ({SECONDS})")


def limited(owner: Owner, call: str, ask: Callable[[], Answer]) -> Answer:
    """Return what a plugin answers.

    Built-in plugins, which may have to compile, and given objects have no limit. In a child process the parent has one.

    Raises:
        OverdueError: a third party's plugin used up its time.
        KeyboardInterrupt, PluginError, TilewrightError: as in `calling`.
    """
    with calling(owner, call):
        return ask() if is_trusted(owner) or is_child() else within(limit(), owner, call, ask)


def within(seconds: float, owner: Owner, call: str, ask: Callable[[], Answer]) -> Answer:
    """Return what a plugin answers in this time, and leave it behind in its thread if it does not. Raises as `limited`."""
    answers: queue.SimpleQueue[tuple[Answer | None, BaseException | None]] = queue.SimpleQueue()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answers.put((context.run(ask), None))
        except BaseException as error:  # whatever a plugin raises is its own failure
            answers.put((None, translated(owner, call, error)))

    threading.Thread(target=work, daemon=True).start()
    began = time.monotonic()
    ends = began + seconds
    while True:
        try:
            answer, error = answers.get(timeout=max(0.0, min(POLL, ends - time.monotonic())))
        except queue.Empty:
            now = time.monotonic()
            if stop_requested():
                ends = min(ends, now + STOPPING)
            if now >= ends:
                what = f"{call} took too long and was ended after {now - began:.1f} s"
                raise OverdueError(f"{owner} failed: {what}", plugin=str(owner)) from None
            if now - began > SLOW:
                warn_slow(str(owner), call)
        else:
            if error is not None:
                raise error
            return answer  # type: ignore[return-value]
