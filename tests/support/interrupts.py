"""Ctrl-C in tests: a KeyboardInterrupt that only a plugin raises is the plugin's fault, so the signal has to come."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heard() -> Iterator[None]:
    """Ctrl-C is heard inside, even where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def press() -> None:
    """The user presses Ctrl-C now."""
    signal.raise_signal(signal.SIGINT)
