"""stdout is for results: whatever else is written there, by plugins, libraries or programs they run, goes to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """Inside, `sys.stdout` alone is the place that results go to, for its old descriptor is that of stderr; so it stays
    afterwards, for what is printed while the program ends.

    Where somebody has put another object in place of stdout, as test runners do, nothing is changed.
    """
    results = _results()
    if results is None:
        yield
        return
    before, sys.stdout = sys.stdout, results
    try:
        yield
    finally:
        sys.stdout = before
        with suppress(OSError):  # the reader of a pipe has gone
            results.close()


def _results() -> TextIO | None:
    ours = sys.__stdout__
    if ours is None or sys.stdout is not ours:
        return None
    with suppress(OSError, ValueError):  # a stdout or stderr that is closed is nobody's to keep
        ours.flush()
        number = ours.fileno()
        kept = os.dup(number)
        os.dup2(sys.stderr.fileno(), number)
        return open(kept, "w", encoding=ours.encoding, errors=ours.errors, buffering=1)
    return None
