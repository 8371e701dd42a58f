"""Once a search has found a valid mapping, Ctrl-C loses it nowhere: neither in functions of core, as they are entered, nor while a call begins or ends."""

import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import FrameType

import pytest

from support import interrupts
from support.command import Ran, command
from tilewright import interrupts as ours
from tilewright.application.cli.common import print_json
from tilewright.application.cli.mapping import map_command
from tilewright.application.run.network import map_workload
from tilewright.application.run.search import _Loop
from tilewright.interrupts import (
    hold,
    mark_result_found,
    on_interrupt,
    preserving_results,
    raise_if_due,
    raising,
    release,
    request_stop,
    stop_requested,
)
from tilewright.plugin.guard.calls import Owner, calling, under_way

pytestmark = pytest.mark.process

MAP = inspect.unwrap(map_command)
CALLS, NETWORK, SHOWN = calling.__module__, map_workload.__module__, print_json.__module__
OWNER = Owner("mapper", "odd", "tilewright-odd", "1.5")
LAYER = """
  - problem:
      name: {0}
      operation: contraction
      dimensions: {{M: {1}, N: 4, K: 2}}
      tensors:
        - {{name: A, role: input, projection: [M, K]}}
        - {{name: B, role: weight, projection: [K, N]}}
        - {{name: Z, role: output, projection: [M, N]}}
"""


@pytest.fixture(autouse=True)
def hearing() -> Iterator[None]:
    with interrupts.heard():
        yield
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert (under_way(), ours._callbacks, ours._state.installed, ours._state.holds) == (None, [], False, 0)


class Watch:
    """Sees the functions of core that this thread enters while `map` runs, once a valid mapping was found.

    Ctrl-C comes, so many times in a row, as the first of that name is entered.
    """

    def __init__(self, where: str | None = None, times: int = 1, *, found: bool = False) -> None:
        self.where, self.times, self.found = where, times, found
        self.seen: list[str] = []
        self.pressed = False

    def see(self, frame: FrameType, event: str, _: object) -> None:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if event == "return" and code is _Loop._keep_best.__code__:
            self.found |= frame.f_locals["self"].best is not None
        elif event == "return" and code is MAP.__code__:
            sys.setprofile(None)
        elif event == "call" and self.found and module.split(".")[0] in ("tilewright", "contextlib"):
            name = f"{module}.{code.co_qualname}"
            if module == "contextlib" and frame.f_back is not None:
                name += f" in {frame.f_back.f_code.co_qualname}"
            if name not in self.seen:
                self.seen.append(name)
                for _ in range(self.times if name == self.where else 0):
                    self.pressed = True
                    interrupts.press()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`map` of two layers, or of one of them, watched."""
    tilewright = command(monkeypatch, capsys)
    layers = tmp_path / "layers.yaml"
    layers.write_text("name: two\nlayers:" + LAYER.format("first", 4) + LAYER.format("second", 8))
    words = ("--arch", "union_edge", "--mapper", "random", "--evaluations", 20, "--no-cache", "--json")

    def mapped(watch: Watch, layer: str = "", *more: object) -> Ran:
        sys.setprofile(watch.see)
        try:
            return tilewright("map", f"{layers}{layer}", *words, *more)
        finally:
            sys.setprofile(None)

    return mapped


@pytest.mark.parametrize("step", [20, pytest.param(5, marks=pytest.mark.process)])
def test_it_loses_nothing_wherever_it_comes(step: int, run: Callable[..., Ran]) -> None:
    assert run(whole := Watch()).code == 0
    edges = [f"{CALLS}.calling.__enter__", f"{CALLS}.calling.__exit__", f"{NETWORK}.bound", f"{SHOWN}.print_json"]
    assert {*edges} <= {*whole.seen}
    for name in [*edges, *whole.seen[::step]]:
        ran = run(watch := Watch(name))
        layers = ran.data["layers"]
        cut = len(layers) < 2 or layers[-1]["search"]["stop"] == "cancelled"
        assert layers[0]["best"]["valid"], name
        assert watch.pressed or name not in edges
        assert (ran.code, ran.err.endswith("interrupted\n")) == (130 if watch.pressed else 0, watch.pressed), name
        assert ("interrupted" in ran.err.removesuffix("interrupted\n")) == cut, name


def test_a_search_that_it_stopped_is_told_of(run: Callable[..., Ran]) -> None:
    ran = run(Watch(f"{_Loop.__module__}._Loop._over"), "/first")
    (layer,) = ran.data["layers"]
    assert (layer["search"]["stop"], layer["best"]["valid"]) == ("cancelled", True)
    assert ran.code == 130 and "interrupted: the best mapping so far is shown for first" in ran.err


def test_a_front_keeps_what_was_found(run: Callable[..., Ran]) -> None:
    ran = run(Watch(f"{_Loop.__module__}._Loop._over"), "", "--pareto", 3)
    (layer,) = ran.data["layers"]
    assert len(layer["points"]) == 1 and not layer["whole"]
    assert ran.code == 130 and "interrupted: the best mapping so far is shown for first" in ran.err
    assert "interrupted: 1 of 2 layers were not searched" in ran.err


@pytest.mark.parametrize(
    "where",
    ["tilewright.application.run.observing.RunObserver.layer_done", f"{NETWORK}.bound", f"{SHOWN}.print_result"],
)
def test_the_second_one_ends_at_once(where: str, run: Callable[..., Ran]) -> None:
    ran = run(Watch(where, times=2))
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


def test_where_nothing_was_found_the_first_ends_at_once(run: Callable[..., Ran]) -> None:
    ran = run(Watch(f"{NETWORK}.bound", found=True))
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


def test_where_something_is_kept_the_first_is_a_request() -> None:
    woken: list[bool] = []
    with preserving_results():
        assert not stop_requested()
        mark_result_found()
        interrupts.press()
        assert stop_requested()
        with on_interrupt(lambda: woken.append(True)), pytest.raises(KeyboardInterrupt):
            interrupts.press()
        with preserving_results():
            assert stop_requested()
    assert woken == [True, True] and not stop_requested()
    with preserving_results():
        assert not stop_requested()
        with pytest.raises(KeyboardInterrupt):
            interrupts.press()


def test_a_process_may_be_asked_from_another_thread() -> None:
    with preserving_results():
        thread = threading.Thread(target=request_stop)
        thread.start()
        thread.join()
        assert stop_requested()
    assert not stop_requested()


def test_who_waits_for_others_is_woken() -> None:
    woken: list[bool] = []
    with on_interrupt(lambda: woken.append(True)):
        interrupts.press()
        assert woken == [True]


def test_it_raises_in_plugins_only_where_that_loses_nothing() -> None:
    reached = []
    with preserving_results():
        mark_result_found()
        with calling(OWNER, "explain"):
            interrupts.press()
            reached.append("explained")
    with preserving_results():
        mark_result_found()
        with pytest.raises(KeyboardInterrupt), raising(), calling(OWNER, "search"):
            interrupts.press()
            reached.append("searched")
        raise_if_due()  # the caller of `raising` goes on with what was found
    assert reached == ["explained"]


def test_where_an_exception_would_be_lost_it_is_held_back() -> None:
    reached = []
    with preserving_results():
        hold()
        hold()
        interrupts.press()
        release()
        reached.append("inside")
        with pytest.raises(KeyboardInterrupt):
            release()
        mark_result_found()
        raise_if_due()
    assert reached == ["inside"]


def test_the_second_one_is_raised_again_where_a_plugin_catches_it() -> None:
    with preserving_results():
        mark_result_found()
        interrupts.press()
        with pytest.raises(KeyboardInterrupt), calling(OWNER, "explain"), suppress(KeyboardInterrupt):
            interrupts.press()
        with pytest.raises(KeyboardInterrupt), calling(OWNER, "explain"):
            pass


def test_an_earlier_request_does_not_end_later_calls() -> None:
    with preserving_results():
        mark_result_found()
        interrupts.press()
        with raising(), calling(OWNER, "explain"):
            pass
        with pytest.raises(KeyboardInterrupt), raising():
            interrupts.press()


def test_in_other_threads_no_handler_is_installed() -> None:
    found: list[object] = []

    def work() -> None:
        with preserving_results() as is_outermost, on_interrupt(lambda: None), raising():
            hold()
            release()
            raise_if_due()
            found.append((is_outermost, signal.getsignal(signal.SIGINT) is signal.default_int_handler))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, True)]


@pytest.mark.parametrize("around", [raising, preserving_results])
def test_streams_are_put_back(around: Callable[[], AbstractContextManager[object]]) -> None:
    before = sys.stdout
    with pytest.raises(KeyboardInterrupt), around():
        sys.stdout = None
        raise KeyboardInterrupt
    assert sys.stdout is before


@pytest.mark.parametrize("edge", [calling.__enter__, calling.__exit__])
def test_a_call_is_begun_and_left_as_a_whole(edge: Callable[..., object]) -> None:
    def press(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is edge.__code__:
            sys.setprofile(None)
            interrupts.press()

    before = sys.stdout
    with preserving_results(), pytest.raises(KeyboardInterrupt):
        sys.setprofile(press)
        with raising(), calling(OWNER, "search"):
            pass
    assert sys.stdout is before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM that a program hears")
def test_sigterm_is_a_request_like_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with preserving_results():
        mark_result_found()
        signal.raise_signal(signal.SIGTERM)
        assert stop_requested()
    assert signal.getsignal(signal.SIGTERM) is before
