"""Run the command line in this process and see what a person sees."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilewright.cli import main


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
TELLING = """
import os, pathlib
from tilewright.run.parallel import _Pool
from tilewright.run.search import _Loop
heard, kept = _Pool.heard, _Loop._keep_best
def tell(process):
    (pathlib.Path(os.environ["FOUND"]) / f"{process}.found").touch()
def hears(pool, told):
    if told.kind == "note" and told.value.valid:
        tell(told.run.pid)
    return heard(pool, told)
def keeps(loop, batch, costs):
    kept(loop, batch, costs)
    if loop.best is not None:
        tell(os.getpid())
_Pool.heard, _Loop._keep_best = hears, keeps
"""
"""Before `INTERRUPTIBLE`: a search that has found a valid mapping leaves a file in the folder FOUND of the environment."""


def interrupted(searches: int, found: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    """Ctrl-C once so many searches have found a valid mapping, of which they leave a file in `found`: exit code, output, errors."""
    process = subprocess.Popen(
        [sys.executable, "-c", TELLING + INTERRUPTIBLE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment, "FOUND": str(found)},
    )
    deadline = time.monotonic() + 120
    while len(list(found.glob("*.found"))) < searches and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`run("map", "resnet50", ...)`."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tilewright", *(str(word) for word in words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run
