"""A call into a plugin ends as the host wants it: its errors are named, Ctrl-C is the user's, stdout is stderr."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import interrupts
from tilewright.errors import InputError, NotConformableError, OverdueError, PluginError, Reason
from tilewright.interrupts import end, keeping, running
from tilewright.plugin.guard.calls import Owner, calling, said
from tilewright.plugin.guard.patience import limited, patient

OWNER = Owner("mapper", "odd", "tilewright-odd", "1.5")


@pytest.fixture(autouse=True)
def hearing() -> Iterator[None]:
    with interrupts.heard():
        yield
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def raised(error: BaseException) -> BaseException:
    with pytest.raises(BaseException) as caught:
        with calling(OWNER, "search"):
            raise error
    return caught.value


KINDS = (
    ValueError,
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    StopIteration,
    BaseException,
    RecursionError,
    MemoryError,
)


@given(st.sampled_from(KINDS), st.text(max_size=2000))
def test_whatever_is_raised_is_one_line_that_names_the_plugin(kind: type[BaseException], text: str) -> None:
    error = raised(kind(text))
    assert isinstance(error, PluginError) and error.exit_code == 3
    line = str(error)
    assert line.startswith("mapper 'odd' of tilewright-odd 1.5 failed: search ") and kind.__name__ in line
    assert len(line.splitlines()) == 1 and len(line) < 700


def test_errors_for_the_user_pass() -> None:
    refusal = NotConformableError("odd", [Reason(code="c", where="w", message="m")])
    assert raised(refusal) is refusal
    named = raised(PluginError("no licence", hint="buy one"))
    assert isinstance(named, PluginError) and named.hint == "buy one"
    assert named.message == "mapper 'odd' of tilewright-odd 1.5 failed: no licence"
    assert raised(named) is named


def test_an_error_that_is_none_is_the_plugins() -> None:
    class Half(InputError):
        def __init__(self) -> None:
            pass

    class Fine(InputError):
        exit_code = 0

    for error in (Half(), Fine("fine"), NotConformableError("odd", ["because"])):  # type: ignore[list-item]
        assert isinstance(raised(error), PluginError)


def test_an_error_that_cannot_speak_is_named() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    assert said(Mute()) == "Mute: (it cannot say what)"


def ignoring() -> None:
    try:
        interrupts.press()
    except BaseException:
        pass


def turning() -> None:
    try:
        interrupts.press()
    except BaseException as error:
        raise ValueError("never mind") from error


@pytest.mark.parametrize("does", [interrupts.press, ignoring, turning])
def test_ctrl_c_stays_ctrl_c(does: Callable[[], None]) -> None:
    """Whatever the plugin makes of it, and however deep; and it is forgotten afterwards."""
    for around in (calling(OWNER, "search"), keeping()):
        with pytest.raises(KeyboardInterrupt), around, calling(OWNER, "bound"):
            does()
    with calling(OWNER, "search"):
        pass


def test_a_handler_of_the_hosts_is_heard_and_put_back() -> None:
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        with calling(OWNER, "search"):
            interrupts.press()
        assert heard == [True]
        interrupts.press()
        assert heard == [True, True]
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_nothing_is_heard_and_everything_named() -> None:
    found: list[BaseException] = []

    def work() -> None:
        found.append(raised(KeyboardInterrupt()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert isinstance(found[0], PluginError)


def test_what_is_printed_goes_to_stderr_and_stdout_survives(capfd: pytest.CaptureFixture[str]) -> None:
    with calling(OWNER, "search"):
        print("one")
        sys.stdout.buffer.write(b"two\n")
        sys.stdout.close()
        print("three", flush=True)
        with calling(OWNER, "bound"):
            sys.stdout = sys.stderr = None
        print("four")
    print("result")
    captured = capfd.readouterr()
    assert captured.out == "result\n" and captured.err.split() == ["one", "two", "three", "four"]


def spinning() -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        pass


def stubborn() -> None:
    """Does not hear the first time."""
    try:
        time.sleep(60)
    except BaseException:
        time.sleep(60)


@pytest.mark.parametrize("does", [lambda: time.sleep(60), spinning, stubborn])
def test_what_takes_too_long_is_ended(does: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_PLUGIN_SECONDS", "0.2")
    with pytest.raises(
        OverdueError, match="'odd' of tilewright-odd 1.5 failed: bind took too long and was ended after"
    ):
        with limited(OWNER, "bind"):
            does()


def test_what_ends_just_in_time_is_not_harmed() -> None:
    """Signals that come late find nobody, and are no Ctrl-C."""
    for _ in range(200):
        started = time.perf_counter()
        try:
            with patient(9.0, 0.001, lambda call, passed: ""), calling(OWNER, "bind"):
                while time.perf_counter() - started < 0.001:
                    pass
        except OverdueError:
            pass


@pytest.mark.parametrize(("edge", "moment"), [(calling.__exit__, "call"), (calling.__enter__, "return")])
def test_a_signal_that_comes_while_a_call_begins_or_ends_does_no_harm(edge: Any, moment: str) -> None:
    call, done = calling(OWNER, "bind"), []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if frame.f_code is edge.__code__ and event == moment:
            sys.setprofile(None)
            end(call)
            done.append(moment)

    sys.setprofile(profile)
    with call:
        pass
    assert done == [moment] and running() is None


def test_built_in_plugins_and_given_objects_have_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_PLUGIN_SECONDS", "0")
    for owner in (Owner("mapper", "random", "tilewright", "1"), Owner("mapper", "Mine")):
        with limited(owner, "bind"):
            time.sleep(0.2)


def test_who_takes_long_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    def say(call: Any, passed: float) -> str:
        return f"{call.owner} is at {call.what}"

    caplog.set_level(
        "WARNING", "tilewright"
    )  # a command that ran before in this process may have been told to be quiet
    for _ in range(2):
        with patient(0.05, 60.0, say), calling(OWNER, "search"), calling(OWNER, "bound"):
            time.sleep(0.4)
    assert caplog.messages == ["mapper 'odd' of tilewright-odd 1.5 is at bound"]
