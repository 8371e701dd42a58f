"""Run the command line in this process and see what a person sees."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
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


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`run("map", "resnet50", ...)`."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tilewright", *(str(word) for word in words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run
