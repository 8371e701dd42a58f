"""State of the user's process, which is put back after the import of a plugin's module."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tilewright.child import current_folder, is_child

NUMPY_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""NumPy's own handling of errors, for a NumPy that the plugin's import has loaded."""


@contextmanager
def unchanged_process() -> Iterator[None]:
    """Return a context after which the user's process has the state that it had before.

    The state is the current folder, the environment, the module path, the handler of Ctrl-C, and alarms. So are filters of
    warnings, NumPy's handling of errors, the limit of recursion, and the level of logging. Folders that a plugin adds to the module
    path stay, behind all others. A copy of the process that a plugin forks ends here. Child processes keep what a plugin changes.
    """
    if is_child():
        yield
        return
    process, folder, variables, path = os.getpid(), current_folder(), dict(os.environ), list(sys.path)
    depth, level = sys.getrecursionlimit(), logging.root.manager.disable
    errors = sys.modules["numpy"].geterr() if "numpy" in sys.modules else NUMPY_ERRORS
    handler, alarm = signal.getsignal(signal.SIGINT), _alarm()
    try:
        with warnings.catch_warnings():
            yield
    finally:
        if os.getpid() != process:
            os._exit(1)
        if folder is not None and current_folder() != folder:
            with suppress(OSError):
                os.chdir(folder)
        if dict(os.environ) != variables:
            os.environ.clear()
            os.environ.update(variables)
        sys.path[:] = path + [place for place in sys.path if place not in path]
        sys.setrecursionlimit(depth)
        logging.disable(level)
        if "numpy" in sys.modules:
            sys.modules["numpy"].seterr(**errors)
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is not handler:
                signal.signal(signal.SIGINT, handler)
            if alarm == 0.0 and _alarm() > 0.0:
                signal.setitimer(signal.ITIMER_REAL, 0.0)


def _alarm() -> float:
    """Return the seconds until the next alarm; 0 without one."""
    return signal.getitimer(signal.ITIMER_REAL)[0] if sys.platform != "win32" else 0.0
