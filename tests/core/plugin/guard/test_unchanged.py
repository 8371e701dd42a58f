"""The import of a plugin leaves the user's process as it was."""

import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tilewright.plugin.guard.unchanged import unchanged_process


def state() -> list[object]:
    return [
        os.getcwd(),
        dict(os.environ),
        list(sys.path),
        sys.getrecursionlimit(),
        list(warnings.filters),
        np.geterr(),
        logging.root.manager.disable,
        signal.getsignal(signal.SIGINT),
        signal.getitimer(signal.ITIMER_REAL),
    ]


CHANGES: dict[str, Callable[[], object]] = {
    "folder": lambda: os.chdir("/"),
    "environment": os.environ.clear,
    "path": sys.path.clear,
    "recursion": lambda: sys.setrecursionlimit(500),
    "warnings": lambda: warnings.simplefilter("ignore", ResourceWarning),
    "numpy": lambda: np.seterr(all="raise"),
    "logging": lambda: logging.disable(logging.CRITICAL),
    "interrupt": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    "alarm": lambda: signal.setitimer(signal.ITIMER_REAL, 600),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_an_import_changes_is_put_back(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = state()
    with unchanged_process():
        CHANGES[name]()
        assert state() != before
    assert state() == before


def test_folders_that_it_adds_stay_last() -> None:
    before = list(sys.path)
    with unchanged_process():
        sys.path.insert(0, "/of-a-plugin")
    assert sys.path == [*before, "/of-a-plugin"]
    sys.path[:] = before


def test_an_error_puts_it_back_too() -> None:
    before = state()
    with pytest.raises(KeyError), unchanged_process():
        os.environ["TILEWRIGHT_NEW"] = "1"
        raise KeyError
    assert state() == before
