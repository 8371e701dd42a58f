"""Searches in processes: one that dies, one that cannot be sent, and what lies in the current folder."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from support import EXAMPLE_FILES
from tilewright.errors import PluginError
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Progress, Watcher
from tilewright.run.parallel import Workers, in_processes


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


def mapped(work: Callable[[int, Watcher], int], jobs: int = 2, silence: float | None = None) -> dict[int, int | str]:
    with Workers(jobs) as workers:
        found = list(in_processes(range(1, 6), work, None, workers, silence))
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
    assert "exit code 9; so it did 2 times" in str(found.pop(2))
    assert found == {0: 2, 1: 4, 3: 8, 4: 10}


def test_what_raises_is_told_with_the_others_intact() -> None:
    found = mapped(failing)
    assert "RuntimeError: no" in str(found.pop(2))
    assert found == {0: 2, 1: 4, 3: 8, 4: 10}


def silent(item: int, watch: Watcher) -> int:
    if item == 3:
        time.sleep(600)
    return 2 * item


def test_a_process_that_says_nothing_is_ended_with_the_others_intact() -> None:
    found = mapped(silent, silence=15.0)
    assert "nothing was heard of it for 15 s" in str(found.pop(2))
    assert found == {0: 2, 1: 4, 3: 8, 4: 10}


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
