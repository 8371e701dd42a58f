"""Reservation of stdout for results; other output of plugins, libraries and programs goes to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """Reserve stdout for results inside a `with` block.

    Only `sys.stdout` writes to the real stdout. Its old descriptor becomes a copy of stderr, and stays one afterwards,
    for output at exit. Nothing changes if `sys.stdout` was replaced, as test runners do.
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
        with suppress(OSError):  # the reader of the pipe has closed it
            results.close()


def _results() -> TextIO | None:
    ours = sys.__stdout__
    if ours is None or sys.stdout is not ours:
        return None
    with suppress(OSError, ValueError):  # a closed stdout or stderr cannot be redirected
        ours.flush()
        number = ours.fileno()
        kept = os.dup(number)
        os.dup2(sys.stderr.fileno(), number)
        return open(kept, "w", encoding=ours.encoding, errors=ours.errors, buffering=1)
    return None
