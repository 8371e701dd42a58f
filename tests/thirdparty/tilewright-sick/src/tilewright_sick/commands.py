"""Tilewright's command line with one sick plugin, in this process or in one of its own."""

import itertools
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
from tilewright.child import Child, ChildFailed
from tilewright.plugin.guard import processes
from tilewright.plugin.guard.processes import Workers, end_children
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
        asked = ("written to", "note: ")
        return [line for line in self.err.splitlines() if "tilewright-sick" in line and not line.startswith(asked)]


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


FORGET = """
import sys
from tilewright.plugin import installed
from tilewright.plugin.guard import hooks, hosted, processes
installed.cache_clear()
hooks._received.cache_clear()
hosted._made.cache_clear()
processes.warn_once.cache_clear()
for name in ("tilewright_sick", "tilewright_sick.faults", "tilewright_sick.plugins"):
    sys.modules.pop(name, None)
"""
"""Makes a process like one that has just started, for another fault. It imports no plugin, because that may be the fault."""


def _forget() -> None:
    """Make this process and a child that waits for work forget the plugin. What a new child needs is imported before."""
    exec(FORGET, {})
    children = processes._idle[""]
    if not children:
        children.append(Child())
    for child in itertools.chain(*processes._idle.values()):
        child.message_queue = queue.SimpleQueue()
        try:
            child.ask(exec, f"import tilewright.testing.reference\n{FORGET}", {}, seconds=60)
        except ChildFailed:
            child.close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Sick]:
    """`run("PLACE FAULT", "map", ...)`, in this process. Children serve several commands, unless a fault changes them."""
    folder = Path.cwd()
    monkeypatch.setattr(Workers, "__exit__", lambda *_: None)

    def call(sick: str, *words: object) -> Ran:
        monkeypatch.setenv("TILEWRIGHT_SICK", sick)
        monkeypatch.setattr(sys, "argv", ["tilewright", *map(str, words)])
        _forget()
        with pytest.raises(SystemExit) as ended:
            main()
        os.chdir(folder)
        if sick.partition(" ")[2] in LOUD:
            end_children()
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
