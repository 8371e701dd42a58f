"""A call into a plugin ends as the host wants it: its errors are named, Ctrl-C is the user's, stdout is stderr."""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import interrupts
from tilewright.child import Child
from tilewright.errors import InputError, NotConformableError, PluginError, Reason
from tilewright.interrupts import preserving_results
from tilewright.plugin.guard.calls import TRACEBACK, Owner, calling, one_line_error, under_way

OWNER = Owner("mapper", "odd", "tilewright-odd", "1.5")


@pytest.fixture(autouse=True)
def hearing() -> Iterator[None]:
    with interrupts.heard():
        yield
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def raised(error: BaseException) -> BaseException:
    with preserving_results(), pytest.raises(BaseException) as caught:
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

    assert one_line_error(Mute()) == "Mute: (its text cannot be read)"


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
    for around in (calling(OWNER, "search"), nullcontext()):
        with preserving_results(), pytest.raises(KeyboardInterrupt), around, calling(OWNER, "bound"):
            does()
        with preserving_results(), calling(OWNER, "search"):
            pass


def test_outside_of_commands_a_keyboard_interrupt_is_the_users() -> None:
    with pytest.raises(KeyboardInterrupt), calling(OWNER, "search"):
        interrupts.press()


def test_a_handler_of_the_hosts_is_heard_and_put_back() -> None:
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        with preserving_results(), calling(OWNER, "search"):
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


def test_the_innermost_line_of_the_plugin_is_shown() -> None:
    def table() -> object:
        return json.loads("{")

    with pytest.raises(PluginError) as caught, calling(OWNER, "search"):
        table()
    line = table.__code__.co_firstlineno + 1
    assert str(caught.value).endswith(f' at {__file__}:{line}: return json.loads("{{")')
    assert isinstance(caught.value.__cause__, json.JSONDecodeError)


def test_the_traceback_is_printed_where_it_is_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    raised(ValueError("quiet"))
    assert capsys.readouterr().err == ""
    monkeypatch.setenv(TRACEBACK, "1")
    raised(ValueError("loud"))
    told = capsys.readouterr().err
    assert told.startswith("Traceback") and told.endswith("ValueError: loud\n") and "raise error" in told


def calls_seen() -> list[str]:
    """In a child process: the innermost call, before, inside and after two of them."""
    seen = [under_way()]
    with calling(OWNER, "search"), calling(OWNER, "bound"):
        seen.append(under_way())
    return [each.what if each else "none" for each in (*seen, under_way())]


def test_a_child_knows_the_call_under_way() -> None:
    assert calls_seen() == ["none", "none", "none"]
    child = Child()
    try:
        assert child.ask(calls_seen, seconds=60) == ["none", "bound", "none"]
    finally:
        child.close()
