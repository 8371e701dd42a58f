"""Calls into plugins outside searches, with a time limit for third-party plugins.

Such a call runs in a thread. At the limit the thread is abandoned, and the command continues
without an answer. Searches run in child processes instead (`tilewright.application.run.parallel`).
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
from tilewright.plugin.guard.calls import Owner, calling, fault, is_trusted, translated

Answer = TypeVar("Answer")

SECONDS = "TILEWRIGHT_PLUGIN_SECONDS"
"""Environment variable with the time limit of calls without a deadline."""
SLOW = 10.0
"""Seconds after which a message reports that a call still runs."""
STOPPING = 1.0
"""Seconds that a call may still take after Ctrl-C."""
POLL = 0.05
"""Seconds between two checks for Ctrl-C."""


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


def warn_slow(plugin: str, call: str) -> None:
    """Report once that a call still runs, with its time limit."""
    warn_once(f"{plugin}: {call} has taken {SLOW:g} s so far; it is ended after {limit():g} s ({SECONDS})")


def limited(owner: Owner, call: str, ask: Callable[[], Answer]) -> Answer:
    """Return the answer of a plugin.

    Built-in plugins, which may compile, and objects from the caller have no limit. In a child
    process the parent enforces it.

    Raises:
        OverdueError: A third-party plugin reached its time limit.
        KeyboardInterrupt, PluginError, TilewrightError: See `calling`.
    """
    with calling(owner, call):
        return ask() if is_trusted(owner) or is_child() else within(limit(), owner, call, ask)


def checked_answer(
    owner: Owner, call: str, ask: Callable[[], Answer], fault_of: Callable[[Answer], str | None]
) -> Answer:
    """Return the answer of a plugin, checked by `fault_of`.

    Raises:
        PluginError: It violates the contract.
        OverdueError, KeyboardInterrupt, TilewrightError: See `limited`.
    """

    def ask_and_check() -> tuple[Answer, str | None]:
        answer = ask()
        return answer, fault_of(answer)

    answer, wrong = limited(owner, call, ask_and_check)
    if wrong:
        raise fault(owner, f"{call} {wrong}")
    return answer


def within(seconds: float, owner: Owner, call: str, ask: Callable[[], Answer]) -> Answer:
    """Return the answer of a plugin within this time, else abandon its thread.

    Raises:
        OverdueError: The time is over.
        PluginError, TilewrightError: See `calling`.
    """
    answers: queue.SimpleQueue[tuple[Answer | None, BaseException | None]] = queue.SimpleQueue()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answers.put((context.run(ask), None))
        except BaseException as error:  # any exception is the plugin's failure
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
