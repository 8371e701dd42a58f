"""Run the command line in this process and see what a person sees."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from support.schemas import faults
from tilewright.application.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Ran]
INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tilewright.__main__ import main
main()
"""
"""The command line as a program that hears Ctrl-C, even where the tests run in the background, which ignores it."""
INTERRUPTED = """
import os, signal
from tilewright.plugin.guard.processes import _Pool
from tilewright.application.run.search import _Loop
received, kept, processes = _Pool.received, _Loop._keep_best, set()
def found(process):
    if process not in processes:
        processes.add(process)
        if len(processes) == int(os.environ["SEARCHES"]):
            signal.raise_signal(signal.SIGINT)
def receives(pool, message):
    if message.kind == "note" and getattr(message.value, "valid", 0):
        found(message.run.pid)
    return received(pool, message)
def keeps(loop, batch, costs):
    kept(loop, batch, costs)
    if loop.best is not None:
        found(os.getpid())
_Pool.received, _Loop._keep_best = receives, keeps
"""
"""Before `INTERRUPTIBLE`: Ctrl-C comes once as many searches as SEARCHES of the environment says have found a valid mapping."""


def interrupted(searches: int, *words: str, **environment: str) -> tuple[int, str, str]:
    """Send Ctrl-C once `searches` searches, each in a process, have a valid mapping: exit code, output, errors."""
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED + INTERRUPTIBLE, *words],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment, "SEARCHES": str(searches)},
    )
    return ran.returncode, ran.stdout, ran.stderr


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`run("map", "resnet50", ...)`. What it prints as JSON has to fit the published schema."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tilewright", *(str(word) for word in words)])
        with pytest.raises(SystemExit) as ended:
            main()
        logging.getLogger("tilewright").setLevel(logging.NOTSET)  # `--quiet` is meant for one call
        captured = capsys.readouterr()
        if "--json" in words and captured.out:
            wrong = faults(json.loads(captured.out))
            assert wrong == [], (words, wrong)
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run
