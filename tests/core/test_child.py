"""Child processes: what they answer, what they may import, and when they end."""

import math
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from support.processes import runs, soon
from tilewright.child import Child, ChildFailed, limited, send_note, uninterrupted
from tilewright.interrupts import stop_requested

pytestmark = pytest.mark.process


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.close()


class Odd(Exception):
    """One that cannot be made anew from what it says."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raise_odd() -> NoReturn:
    raise Odd(1, 2)


def test_it_answers_one_request_after_another(child: Child) -> None:
    assert child.ask(math.factorial, 5, seconds=60) == 120
    first = child.ask(os.getpid, seconds=60)
    assert first == child.ask(os.getpid, seconds=60) != os.getpid()


def test_what_is_raised_there_is_raised_here(child: Child) -> None:
    with pytest.raises(ValueError, match="negative"):
        child.ask(math.factorial, -1, seconds=60)
    with pytest.raises(RuntimeError, match="Odd: 1 and 2"):
        child.ask(raise_odd, seconds=60)
    with pytest.raises(SystemExit):
        child.ask(sys.exit, 4, seconds=60)
    assert child.ask(abs, -3, seconds=60) == 3


def fork_and_answer() -> int:
    return os.fork() and 1


def start_a_program() -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_copy_of_a_child_answers_nothing(child: Child) -> None:
    assert child.ask(fork_and_answer, seconds=60) == 1
    assert [child.ask(abs, -number, seconds=60) for number in range(3)] == [0, 1, 2]


def test_programs_that_a_child_has_started_end_with_it(child: Child) -> None:
    program = child.ask(start_a_program, seconds=60)
    child.close()
    assert soon(lambda: not runs(program))


def test_a_child_that_ends_or_is_late_is_told_and_started_again(child: Child) -> None:
    with pytest.raises(ChildFailed, match="exit code 4"):
        child.ask(os._exit, 4, seconds=60)
    with pytest.raises(ChildFailed, match="signal 11"):
        child.ask(signal.raise_signal, signal.SIGSEGV, seconds=60)
    child.ask(abs, 1, seconds=60)
    with pytest.raises(ChildFailed, match="longer than 0.1 s"):
        child.ask(time.sleep, 60, seconds=0.1)
    assert child.ask(abs, -3, seconds=60) == 3


def test_memory_is_limited() -> None:
    child = Child(memory=200 * 2**20)
    with pytest.raises(MemoryError):
        child.ask(bytearray, 300 * 2**20, seconds=60)
    assert child.ask(abs, -3, seconds=60) == 3
    child.close()


def wait_for_stop() -> str:
    send_note("begun")
    while not stop_requested():
        time.sleep(0.01)
    return "stopped"


def test_work_tells_and_is_stopped() -> None:
    messages: queue.SimpleQueue[object] = queue.SimpleQueue()
    child = Child(messages)
    child.begin(wait_for_stop)
    found = [child.message_queue.get(timeout=60)]
    child.stop()
    found.append(child.message_queue.get(timeout=60))
    assert [(each.kind, each.value) for each in found] == [("note", "begun"), ("answer", "stopped")]
    child.close()


def be_ended_halfway(place: Path) -> None:
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGTERM)
        (place / "whole").touch()
    (place / "more").touch()


def test_what_is_unbroken_is_done_before_a_child_leaves(tmp_path: Path) -> None:
    child = Child(cleans_up=True)
    with pytest.raises(ChildFailed, match="ended"):
        child.ask(be_ended_halfway, tmp_path, seconds=60)
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_what_is_printed_goes_to_stderr(capfd: pytest.CaptureFixture[str], child: Child) -> None:
    child.ask(os.write, 1, b"raw", seconds=60)
    assert capfd.readouterr() == ("", "raw")


def test_nothing_in_the_current_folder_is_imported_instead_of_pythons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("random", "json", "queue", "struct", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('run')")
    (tmp_path / "mine.py").write_text("def double(n): return 2 * n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # as Python does for a script that lies there
    import mine  # type: ignore[import-not-found]

    child = Child()
    for name in ("random", "numpy"):
        assert str(tmp_path) not in child.ask(eval, f"__import__('{name}').__file__", seconds=60)
    assert child.ask(mine.double, 2, seconds=60) == 4
    child.close()


ORPHAN = """
import os, signal, time
from tilewright.interrupts import stop_requested
from tilewright.child import Child
child = Child()
print(child.ask(os.getpid, seconds=60), flush=True)
child.begin({work})
time.sleep(0.5)
os.kill(os.getpid(), signal.{signal})
"""


WORK = ["time.sleep, 300", *(["pow, 7, 10**9"] if sys.platform == "linux" else [])]
"""Something that waits, and something that lets no other thread run, which only Linux can end."""


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGHUP"])
def test_it_ends_when_its_parent_does(work: str, name: str) -> None:
    code = ORPHAN.format(work=work, signal=name)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout, ran.stderr
    pid = int(ran.stdout)
    assert soon(lambda: not runs(pid))


def double(text: str) -> str:
    while True:
        text += text


def spin() -> NoReturn:
    while True:
        pass


def test_limited_work_answers_or_ends() -> None:
    limits = {"seconds": 1, "memory": 200 * 2**20}
    assert limited(math.factorial, 5, **limits) == 120
    with pytest.raises(ChildFailed, match="more than 200 MiB") as caught:
        limited(double, "x", **limits)
    assert caught.value.code == "memory"
    for work in (spin, partial(pow, 7, 10**8)):
        with pytest.raises(
            ChildFailed, match="longer than (it may|12 s)"
        ):  # by CPU time, or by the clock on a loaded host
            limited(work, **limits)
    assert limited(math.factorial, 5, **limits) == 120
