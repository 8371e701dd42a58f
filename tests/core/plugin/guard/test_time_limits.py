"""A call into a third party's plugin is ended at its limit."""

import contextvars
import time
from collections.abc import Callable, Iterator

import pytest

from support import interrupts
from tilewright.errors import OverdueError, PluginError
from tilewright.interrupts import mark_result_found, preserving_results
from tilewright.plugin.guard import time_limits
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.time_limits import SECONDS, limited

OWNER = Owner("mapper", "odd", "tilewright-odd", "1.5")


@pytest.fixture(autouse=True)
def hearing() -> Iterator[None]:
    with interrupts.heard():
        yield


def spinning() -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        pass


def stubborn() -> None:
    """Catches whatever is raised."""
    try:
        time.sleep(20)
    except BaseException:
        time.sleep(20)


@pytest.mark.parametrize("does", [lambda: time.sleep(20), spinning, stubborn])
def test_what_takes_too_long_is_left_behind(does: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECONDS, "0.2")
    with pytest.raises(
        OverdueError, match="'odd' of tilewright-odd 1.5 failed: bind took too long and was ended after"
    ):
        limited(OWNER, "bind", does)


def test_built_in_plugins_and_given_objects_have_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECONDS, "0")

    def slow() -> int:
        time.sleep(0.2)
        return 7

    for owner in (Owner("mapper", "random", "tilewright", "1"), Owner("mapper", "Mine")):
        assert limited(owner, "bind", slow) == 7


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(0)])
def test_what_is_raised_is_the_plugins(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(
        PluginError, match=f"mapper 'odd' of .* failed: bind .*{type(error).__name__}.*raise error"
    ) as caught:
        limited(OWNER, "bind", fail)
    assert caught.value.__cause__ is error


def test_it_sees_the_context_of_the_caller() -> None:
    number = contextvars.ContextVar("number", default=1)
    number.set(2)
    assert limited(OWNER, "bind", number.get) == 2


def test_ctrl_c_does_not_wait_for_it() -> None:
    def press() -> None:
        interrupts.press()
        time.sleep(20)

    began = time.monotonic()
    with preserving_results(), pytest.raises(KeyboardInterrupt):
        limited(OWNER, "bind", press)
    with preserving_results(), pytest.raises(OverdueError):
        mark_result_found()
        limited(OWNER, "explain", press)
    assert time.monotonic() - began < 10


def test_a_long_call_is_reported_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(time_limits, "SLOW", 0.1)
    caplog.set_level("WARNING", "tilewright")
    for _ in range(2):
        limited(OWNER, "bind", lambda: time.sleep(0.4))
    (message,) = caplog.messages
    assert message.startswith("mapper 'odd' of tilewright-odd 1.5: bind has taken 0.1 s so far; it is ended after 60 s")
