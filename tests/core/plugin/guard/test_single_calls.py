"""A call into a third party's plugin runs in a child process, which ends at its limit."""

import ctypes
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import interrupts
from tilewright.child import Child
from tilewright.errors import InputError, NotConformableError, OverdueError, PluginError, Reason
from tilewright.interrupts import mark_result_found, preserving_results
from tilewright.plugin.guard import processes
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.processes import SECONDS, ask, end_children

pytestmark = pytest.mark.process

OWNER = Owner("mapper", "odd", "tilewright-odd", "1.5")


@pytest.fixture(autouse=True)
def hearing() -> Iterator[None]:
    with interrupts.heard():
        yield


def spinning() -> None:
    while True:
        pass


def stubborn() -> None:
    """Catches whatever is raised."""
    try:
        time.sleep(20)
    except BaseException:
        time.sleep(20)


def blocking() -> None:
    """Runs C code, and no other thread runs meanwhile."""
    ctypes.PyDLL(None).sleep(600)


@pytest.mark.parametrize("does", [lambda: time.sleep(20), spinning, stubborn])
def test_what_takes_too_long_is_ended_with_its_process(
    does: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = ask(OWNER, "bind", os.getpid)
    monkeypatch.setenv(SECONDS, "0.2")
    with pytest.raises(
        OverdueError, match="'odd' of tilewright-odd 1.5 failed: bind took too long and was ended after"
    ):
        ask(OWNER, "bind", does)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_code_in_c_that_blocks_all_threads_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FROZEN", 1.0)
    monkeypatch.setenv(SECONDS, "1")
    with pytest.raises(
        PluginError, match=r"'odd' of tilewright-odd 1.5 failed: bind sent nothing for .* s, and was ended"
    ):
        ask(OWNER, "bind", blocking)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (lambda: os._exit(0), "ended with exit code 0"),
        (lambda: os.kill(os.getpid(), 9), "was ended by signal 9"),
    ],
)
def test_what_ends_the_process_is_named(does: Callable[[], None], said: str) -> None:
    with pytest.raises(PluginError, match=f"'odd' of tilewright-odd 1.5 failed: bind {said}"):
        ask(OWNER, "bind", does)
    assert ask(OWNER, "bind", len, "abc") == 3


def test_built_in_plugins_and_given_objects_run_here_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECONDS, "0")

    def slow() -> int:
        time.sleep(0.2)
        return os.getpid()

    for owner in (Owner("mapper", "random", "tilewright", "1"), Owner("mapper", "Mine")):
        assert ask(owner, "bind", slow) == os.getpid()


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(0)])
def test_what_is_raised_is_the_plugins(error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_module.py").write_text("def fail(error):\n    raise error\n")
    monkeypatch.syspath_prepend(tmp_path)
    fail = importlib.import_module("odd_module").fail
    with pytest.raises(
        PluginError, match=f"mapper 'odd' of .* failed: bind .*{type(error).__name__}.*raise error"
    ) as caught:
        ask(OWNER, "bind", fail, error)
    cause = caught.value.__cause__
    assert type(cause) is type(error) and cause.args == error.args


def test_errors_for_the_user_come_back_whole() -> None:
    refusal = NotConformableError("odd", [Reason(code="c", where="w", message="m")], hint="h")
    for error in (refusal, InputError("no", hint="yes")):

        def refuse(error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            ask(OWNER, "bind", refuse)
        assert str(caught.value) == str(error) and getattr(caught.value, "reasons", ()) == getattr(error, "reasons", ())


class Unsendable:
    def __reduce__(self) -> Any:
        raise ValueError("not me")


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (len, (threading.Lock(),), "bind cannot be sent there: TypeError"),
        (Unsendable, (), "bind raised ValueError: not me"),
    ],
)
def test_what_cannot_be_sent_or_returned_is_told(
    function: Callable[..., Any], arguments: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(PluginError, match=f"'odd' of tilewright-odd 1.5 failed: {said}"):
        ask(OWNER, "bind", function, *arguments)


def test_one_child_answers_all_calls_in_the_place_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the folder, the environment and the module path that the caller has at the time of the call."""
    process = ask(OWNER, "bind", os.getpid)
    assert process != os.getpid()
    (tmp_path / "module_of_tmp_path.py").write_text("VALUE = 7\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_TEST", "seen")
    monkeypatch.syspath_prepend(tmp_path)
    assert ask(OWNER, "bind", os.getcwd) == str(tmp_path)
    assert ask(OWNER, "bind", os.getenv, "TILEWRIGHT_TEST") == "seen"
    assert ask(OWNER, "bind", lambda: str(tmp_path) in sys.path)
    monkeypatch.delenv("TILEWRIGHT_TEST")
    assert ask(OWNER, "bind", os.getenv, "TILEWRIGHT_TEST") is None
    assert ask(OWNER, "bind", os.getpid) == process


def test_a_child_that_died_while_it_waited_is_replaced() -> None:
    process = ask(OWNER, "bind", os.getpid)
    os.kill(process, signal.SIGKILL)
    time.sleep(0.5)
    assert ask(OWNER, "bind", os.getpid) not in (process, os.getpid())


def test_calls_in_several_threads_have_children_of_their_own() -> None:
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(ask(OWNER, "bind", slowly, 3))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [3, 3, 3]


def slowly(value: int) -> int:
    time.sleep(0.3)
    return value


def test_ctrl_c_does_not_wait_for_it() -> None:
    ask(OWNER, "bind", len, "")
    began = time.monotonic()
    with preserving_results(), pytest.raises(KeyboardInterrupt):
        pressing(1.0)
        ask(OWNER, "bind", time.sleep, 20)
    with preserving_results(), pytest.raises(OverdueError):
        mark_result_found()
        pressing(1.0)
        ask(OWNER, "explain", time.sleep, 20)
    assert time.monotonic() - began < 15


def pressing(seconds: float) -> None:
    """Press Ctrl-C later."""
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def test_a_long_call_is_reported_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(processes, "SLOW", 0.1)
    processes.warn_once.cache_clear()
    caplog.set_level("WARNING", "tilewright")
    for _ in range(2):
        ask(OWNER, "bind", time.sleep, 0.8)
    (message,) = caplog.messages
    assert message.startswith("mapper 'odd' of tilewright-odd 1.5: bind has taken 0.1 s so far; it is ended after 60 s")


def test_no_child_stays_behind() -> None:
    process = ask(OWNER, "bind", os.getpid)
    end_children()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_in_a_child_a_call_runs_there() -> None:
    child = Child()
    try:
        process = child.ask(os.getpid, seconds=60)
        assert child.ask(ask, OWNER, "bind", os.getpid, seconds=60) == process
    finally:
        child.close()
