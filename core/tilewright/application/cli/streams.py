"""Reservation of stdout for results; other output of plugins, libraries and programs goes to stderr."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


class StdoutError(OSError):
    """Results cannot be printed: stdout is closed, or its disk is full."""


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """Reserve stdout for results inside a `with` block.

    Only `sys.stdout` writes to the real stdout. Its old descriptor becomes a copy of stderr, and stays one afterwards,
    for output at exit. Nothing changes if `sys.stdout` was replaced, as test runners do.
    """
    _open_descriptors()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # messages have no place
    if sys.stdout is None:
        sys.stdout = _Closed()
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


class _Closed(io.TextIOBase):
    """A stdout that is closed: results cannot be written to it."""

    def write(self, text: str) -> int:
        raise StdoutError("it is closed")


class _Results(io.TextIOWrapper):
    """The real stdout; a full disk is an error of the command line."""

    def write(self, text: str) -> int:
        with _told():
            return super().write(text)

    def flush(self) -> None:
        with _told():
            super().flush()


@contextmanager
def _told() -> Iterator[None]:
    """Raise StdoutError if the system refuses to write; a closed pipe stays a BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutError(error.strerror or str(error)) from None


def _open_descriptors() -> None:
    """Open closed standard descriptors on the null device.

    Otherwise the next file that is opened would take their number, and with it what libraries print.
    """
    with suppress(OSError):
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def _results() -> TextIO | None:
    stream = sys.__stdout__
    if stream is None or sys.stdout is not stream:
        return None
    with suppress(OSError, ValueError):  # a closed stdout or stderr cannot be redirected
        stream.flush()
        number = stream.fileno()
        kept = os.dup(number)
        os.dup2(sys.stderr.fileno(), number)
        return _Results(open(kept, "wb"), encoding=stream.encoding, errors=stream.errors, line_buffering=True)
    return None
