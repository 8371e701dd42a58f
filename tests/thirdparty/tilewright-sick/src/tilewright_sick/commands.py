"""Tilewright's command line with one sick plugin, in this process or in one of its own."""

import json
import os
import queue
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tilewright_sick.plugins  # noqa: F401 -- what it imports is there when a plugin is loaded
from tilewright.application.cli import main
from tilewright.application.run.parallel import Workers
from tilewright.child import Child, ChildFailed
from tilewright.plugin import installed
from tilewright.plugin.guard.time_limits import warn_once
from tilewright_sick.faults import LOUD


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def blame(self) -> list[str]:
        """The lines that name the sick plugin, but as the one that did what was asked."""
        return [
            line for line in self.err.splitlines() if "tilewright-sick" in line and not line.startswith("written to")
        ]


Sick = Callable[..., Ran]


def _checked(ran: Ran) -> Ran:
    """What holds whatever is done."""
    assert "Traceback" not in ran.err + ran.out
    assert "hello" not in ran.out
    return ran


@pytest.fixture(autouse=True)
def own_cache(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An empty cache. Where the import is healthy, one trial of it is enough for all tests."""
    cache = tmp_path_factory.mktemp("cache")
    place = getattr(request.node, "callspec", None) and request.node.callspec.params.get("sick", "import")
    if place and place.split()[0] not in ("import", "tilewright_plugins", "spec"):
        imports = tmp_path_factory.getbasetemp() / "imports"
        imports.mkdir(exist_ok=True)
        (cache / "imports").symlink_to(imports)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(cache))
    monkeypatch.setenv("TILEWRIGHT_PLUGIN_SECONDS", "3")
    monkeypatch.delenv("TILEWRIGHT_DISABLE", raising=False)


def _forget() -> None:
    installed.cache_clear()
    for name in ("tilewright_sick", "tilewright_sick.faults", "tilewright_sick.plugins"):
        sys.modules.pop(name, None)


_kept: list[Child] = []


def _renew(sick: str) -> None:
    """Make this child process like one that has just started, for another fault."""
    os.environ["TILEWRIGHT_SICK"] = sick
    warn_once.cache_clear()
    _forget()


def _reuse_children(workers: Workers, jobs: int) -> None:
    """Give `workers` the child processes of earlier commands, because starting one takes longer than any search here."""
    while len(_kept) < jobs:
        _kept.append(Child())
    for child in _kept[:jobs]:
        if child.run is not None:
            try:
                child.ask(_renew, os.environ["TILEWRIGHT_SICK"], seconds=60)
            except ChildFailed:
                child.close()
    workers.messages = queue.SimpleQueue()
    workers.children = _kept[:jobs]
    for child in workers.children:
        child.message_queue = workers.messages


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Sick]:
    """`run("PLACE FAULT", "map", ...)`, in this process. Children serve several commands, unless a fault changes them."""
    folder = Path.cwd()
    monkeypatch.setattr(Workers, "__init__", _reuse_children)
    monkeypatch.setattr(Workers, "__exit__", lambda *_: None)

    def call(sick: str, *words: object) -> Ran:
        monkeypatch.setenv("TILEWRIGHT_SICK", sick)
        monkeypatch.setattr(sys, "argv", ["tilewright", *map(str, words)])
        _forget()
        with pytest.raises(SystemExit) as ended:
            main()
        os.chdir(folder)
        if sick.partition(" ")[2] in {*LOUD, "change folder"}:
            while _kept:
                _kept.pop().close()
        captured = capsys.readouterr()
        return _checked(Ran(int(ended.value.code or 0), captured.out, captured.err))

    yield call
    _forget()


@pytest.fixture
def process() -> Sick:
    """The same in a process of its own; `seconds` after which it is killed."""

    def call(sick: str, *words: object, seconds: float = 100, **environment: str) -> Ran:
        command = [sys.executable, "-m", "tilewright", *map(str, words)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=seconds,
                env={**os.environ, "TILEWRIGHT_SICK": sick, **environment},
            )
        except subprocess.TimeoutExpired:
            return Ran(-9, "", "")
        return _checked(Ran(done.returncode, done.stdout, done.stderr))

    return call
