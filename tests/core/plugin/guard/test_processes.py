"""Searches in processes: one that dies, one that cannot be sent, and what lies in the current folder."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support import EXAMPLE_FILES, interrupts
from tilewright.child import Child
from tilewright.errors import OverdueError, PluginError
from tilewright.interrupts import stop_requested
from tilewright.plugin.guard.calls import BUILTIN, Owner, calling
from tilewright.plugin.guard.processes import (
    Incumbent,
    Interim,
    SearchBegan,
    SearchEnded,
    Workers,
    in_processes,
    report,
)
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Progress, Watcher
from tilewright.schema.mapping import Mapping

pytestmark = pytest.mark.process


def doubled(item: int, watch: Watcher) -> int:
    watch(Progress(item, item, 1.0, 0.0, Budget()))
    return 2 * item


def deadly(item: int, watch: Watcher, folder: Path, deaths: int) -> int:
    """The process of item 3 dies so often."""
    died = len(list(folder.iterdir()))
    if item == 3 and died < deaths:
        (folder / str(died)).touch()
        os._exit(9)
    return 2 * item


def failing(item: int, watch: Watcher) -> int:
    if item == 3:
        raise RuntimeError("no")
    return 2 * item


def mapped(work: Callable[[int, Watcher], int], jobs: int = 2, limit: float | None = None) -> dict[int, int | str]:
    with Workers(jobs) as workers:
        found = list(in_processes(range(1, 6), work, None, workers, limit))
    return {index: str(each) if isinstance(each, PluginError) else each for index, each in found}


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_each_item_comes_back_once(jobs: int) -> None:
    assert mapped(doubled, jobs) == {0: 2, 1: 4, 2: 6, 3: 8, 4: 10}


def test_progress_is_told_of_each_item() -> None:
    told: dict[int, int] = {}
    with Workers(2) as workers:
        found = dict(
            in_processes([5, 7], doubled, lambda item, progress: told.update({item: progress.evaluated}), workers)
        )
    assert told == {5: 5, 7: 7} and found == {0: 10, 1: 14}


def test_a_process_that_dies_is_tried_once_again(tmp_path: Path) -> None:
    assert mapped(partial(deadly, folder=tmp_path, deaths=1)) == {0: 2, 1: 4, 2: 6, 3: 8, 4: 10}


def test_and_then_told_with_the_others_intact(tmp_path: Path) -> None:
    found = mapped(partial(deadly, folder=tmp_path, deaths=9))
    assert len(list(tmp_path.iterdir())) == 2
    assert "exit code 9, 2 times" in str(found.pop(2))
    assert found == {0: 2, 1: 4, 3: 8, 4: 10}


def test_what_raises_is_told_with_the_others_intact() -> None:
    found = mapped(failing)
    assert "RuntimeError: no" in str(found.pop(2))
    assert found == {0: 2, 1: 4, 3: 8, 4: 10}


def silent(item: int, watch: Watcher) -> int:
    if item == 3:
        ctypes.PyDLL(None).sleep(600)  # in C, and no other thread runs meanwhile
    return 2 * item


def test_a_process_that_says_nothing_is_ended_with_the_others_intact() -> None:
    found = mapped(silent, limit=6.0)
    assert re.search(r"it sent nothing for \d+\.\d s, and was ended", str(found.pop(2)))
    assert found == {0: 2, 1: 4, 3: 8, 4: 10}


OWNER = Owner("mapper", "odd", "tilewright-odd", "1.5")


NOTHING = Mapping.model_construct(entries=())


def hanging(item: int, watch: Watcher, seconds: float | None, owner: Owner = OWNER) -> int:
    """Item 3 has found something when its plugin begins to hang."""
    report(SearchBegan(seconds))
    report(Incumbent(NOTHING, 10 * item, 0.0, 0.0, 0))
    if item == 3:
        with calling(owner, "search"):
            while owner.distribution != BUILTIN or not stop_requested():
                pass
    report(SearchEnded())
    return 2 * item


def kept(item: int, interim: Interim, error: PluginError | None) -> int | None:
    """The result that was reported, where its process is ended for its plugin's sake."""
    assert interim.wall_seconds > 0 and (error is None or isinstance(error, OverdueError))
    return None if interim.incumbent is None else int(interim.incumbent.value)


@pytest.mark.parametrize(("limit", "seconds"), [(1.0, None), (60.0, 0.1)])
def test_a_plugin_that_hangs_is_ended_at_its_limit_and_named(limit: float, seconds: float | None) -> None:
    found = mapped(partial(hanging, seconds=seconds), limit=limit)
    assert str(found.pop(2)).startswith(f"{OWNER} failed: search took too long and was ended after ")
    assert found == {0: 2, 1: 4, 3: 8, 4: 10}


def test_what_it_reported_before_is_kept() -> None:
    with Workers(1) as workers:
        found = dict(in_processes([3, 4], partial(hanging, seconds=0.1), None, workers, 60.0, kept))
    assert found == {0: 30, 1: 8}


def test_after_ctrl_c_what_does_not_answer_is_ended_and_what_it_reported_is_kept() -> None:
    def press(item: int, progress: Progress) -> None:
        interrupts.press()

    with interrupts.heard(), Workers(1) as workers:
        found = dict(in_processes([3, 4], pressed, press, workers, None, kept))
    assert found == {0: 30}


def pressed(item: int, watch: Watcher) -> int:
    report(SearchBegan(None))
    report(Incumbent(NOTHING, 10 * item, 0.0, 0.0, 0))
    watch(Progress(item, item, 1.0, 0.0, Budget()))
    time.sleep(600)
    return 2 * item


def test_a_built_in_plugin_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def press(item: int, progress: Progress) -> None:
        raise AssertionError("nothing is watched")

    owner = Owner("mapper", "random", BUILTIN, "1")
    with Workers(1) as workers:
        children: list[Child] = []
        start = Child.begin

        def begin(child: Child, *words: Any) -> None:
            children.append(child)
            start(child, *words)

        monkeypatch.setattr(Child, "begin", begin)
        pool = in_processes([3], partial(hanging, seconds=0.1, owner=owner), press, workers, 1.0)
        threading.Timer(6.0, lambda: children[0].stop()).start()
        assert dict(pool) == {0: 6}


def test_what_cannot_be_sent_is_told() -> None:
    lock = threading.Lock()
    found = mapped(lambda item, watch: item * lock.acquire())
    assert len(found) == 5 and all("cannot be sent there: TypeError" in str(each) for each in found.values())


LAYERS = str(EXAMPLE_FILES / "three_layers.workload.yaml")
MAP = ("map", LAYERS, "--arch", "eyeriss", "--mapper", "random", "--evaluations", "20", "--jobs", "2", "--no-cache")


def test_nothing_in_the_current_folder_is_run(tmp_path: Path) -> None:
    """Neither by the command, nor by the processes that it starts."""
    for name in ("random", "json", "queue", "signal", "struct", "numpy", "cloudpickle", "tilewright"):
        (tmp_path / f"{name}.py").write_text(f"open('{name}.ran', 'w')")
    program = shutil.which("tilewright", path=Path(sys.executable).parent)
    assert program is not None
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    for command in ([program, *MAP], [sys.executable, "-P", "-m", "tilewright", "plugins"]):
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
    assert not list(tmp_path.glob("*.ran"))


def test_the_module_takes_the_current_folder_off_the_path(tmp_path: Path) -> None:
    """What Python itself imports before any line of ours runs is out of reach."""
    for name in ("random", "json", "queue", "numpy", "typer"):
        (tmp_path / f"{name}.py").write_text(f"open('{name}.ran', 'w')")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    ran = subprocess.run(
        [sys.executable, "-m", "tilewright", *MAP], cwd=tmp_path, env=environment, capture_output=True, timeout=300
    )
    assert ran.returncode == 0 and not list(tmp_path.glob("*.ran"))
