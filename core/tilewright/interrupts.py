"""Ctrl-C in the main thread, where plugins are called and where there is something to keep.

Python raises KeyboardInterrupt between any two steps of a program, those that tidy up included. Here it is raised while a `Block` is begun
or left only when that is over. And once something was found by work that is `keeping` it, the first Ctrl-C raises nothing, but where it stops
a plugin: it is a request, which the work looks at. The second is raised wherever it comes.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager, suppress
from types import CodeType, FrameType
from typing import Any


class Overdue(BaseException):
    """Raised inside a plugin that has used up its time; no Exception, so that fewer plugins catch it."""


class Block:
    """A `with` block that is begun and left as a whole. `left`: it is over; what is then raised is raised in what is around it."""

    __slots__ = ("left",)

    left: bool

    def __init_subclass__(cls) -> None:
        own = vars(cls)
        _EDGES.update(own[name].__code__ for name in ("__enter__", "__exit__"))


_EDGES: set[CodeType] = set()


class _State:
    """`former`: who hears Ctrl-C when no plugin runs. `listeners`: blocks that want to be listened for. `arrived`: Ctrl-C
    came during this call. `sent`: signals of our own that are on their way."""

    former: Any = None
    listeners = 0
    arrived = False
    sent = 0

    keeping = 0
    """Blocks that keep what they find."""
    found = False
    asked = False
    """Ctrl-C came since the outermost of them began."""
    stoppable = 0
    """Blocks in which it stops plugins."""


_state = _State()
_running: list[Any] = []
"""Calls of the main thread, the innermost last."""
_wakes: list[Callable[[], object]] = []
"""Called when Ctrl-C asks for an end."""
_ending = threading.Lock()
"""Held while a signal is sent to the main thread, and when the last call ends."""


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


# -- work that keeps what it finds ---------------------------------------------------------------------------


class keeping(Block, ContextDecorator):
    """Around work that keeps what it finds (`something_found`) and looks at `asked_to_stop`, and around all that is made of it: reports, files. As long as
    nothing was found, Ctrl-C is raised where it comes. Such blocks in one another are one."""

    def __init__(self) -> None:
        self.left = False

    def _recreate_cm(self) -> keeping:
        return keeping()

    def __enter__(self) -> None:
        if _in_main_thread():
            _listen()
            if not _state.keeping:
                _state.found, _state.asked, _state.stoppable = False, False, 0
            _state.keeping += 1

    def __exit__(self, *_: object) -> None:
        if _in_main_thread():
            _state.keeping -= 1
            _listen_no_more()
        self.left = True


def something_found() -> None:
    """There is something to keep from now on."""
    if _in_main_thread():
        _state.found = True


def asked_to_stop() -> bool:
    """Has Ctrl-C come, and is this work that keeps what it finds?"""
    return _state.asked and _state.keeping > 0 and _in_main_thread()


def stop_if_asked() -> None:
    """Inside a call into a plugin that may take long. Raises KeyboardInterrupt."""
    if asked_to_stop():
        _state.arrived = True
        raise KeyboardInterrupt


@contextmanager
def stoppable() -> Iterator[None]:
    """Around work whose plugins Ctrl-C stops by a KeyboardInterrupt inside of them, which loses nothing."""
    if not _in_main_thread():
        yield
        return
    _state.stoppable += 1
    try:
        yield
    finally:
        _state.stoppable -= 1


@contextmanager
def waking(wake: Callable[[], object]) -> Iterator[None]:
    """Around work that others do, and that is kept: `wake` is called when Ctrl-C comes, or has come."""
    if not _in_main_thread():
        yield
        return
    with keeping():
        _wakes.append(wake)
        try:
            if _state.asked:
                wake()
            yield
        finally:
            _wakes.remove(wake)


# -- calls into plugins --------------------------------------------------------------------------------------


def entered(call: Block) -> None:
    """A call into a plugin begins."""
    if _in_main_thread():
        if not _running:
            _listen()
        _running.append(call)


def exited(call: Block) -> bool:
    """It ends. Did Ctrl-C come meanwhile, whatever the plugin made of it?"""
    in_main_thread = _in_main_thread()
    if in_main_thread:
        _running.pop()
        if not _running:
            _listen_no_more()
    call.left = True
    if not in_main_thread or not _state.arrived:
        return False
    _state.arrived = bool(_running)  # calls around it are told, too
    return True


def running() -> Any:
    """The innermost call of the main thread, or None; asked from other threads."""
    with suppress(IndexError):
        return _running[-1]
    return None


def end(call: Block) -> None:
    """Ask from another thread that a call end: Overdue is raised inside it, as soon as it is in Python."""
    with _ending:
        if call in _running and signal.getsignal(signal.SIGINT) is _hear:
            _state.sent += 1
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


# -- the signal ----------------------------------------------------------------------------------------------


def _listen() -> None:
    if not _state.listeners:
        _state.arrived = False
        former = signal.getsignal(signal.SIGINT)
        if former not in (_hear, signal.SIG_DFL, None):
            _state.former = former
            signal.signal(signal.SIGINT, _hear)
    _state.listeners += 1


def _listen_no_more() -> None:
    _state.listeners -= 1
    if _state.listeners:
        return
    with _ending:
        pass  # nobody sends any more: there is no call
    while _state.sent:
        time.sleep(0)  # what was sent is heard here, and does no harm
    if signal.getsignal(signal.SIGINT) is _hear:  # else a plugin, or the host, has put another in place
        signal.signal(signal.SIGINT, _state.former)


def _hear(number: int, frame: FrameType | None) -> None:
    if _state.sent:
        _state.sent -= 1
        if _running and not _at_an_edge(frame):
            raise Overdue
        return
    if callable(_state.former):
        try:
            _state.former(number, frame)
        except KeyboardInterrupt:
            at_an_edge = _at_an_edge(frame)
            if _is_a_request(stops=bool(_state.stoppable and _running) and not at_an_edge):
                return
            _state.arrived = bool(_running) or at_an_edge
            if not at_an_edge:
                raise


def _is_a_request(stops: bool) -> bool:
    """Is this Ctrl-C only noted? `stops`: it would stop a plugin, and nothing else."""
    if not _state.keeping or _state.asked:
        return False
    _state.asked = True
    for wake in _wakes:
        wake()
    return bool(_state.found or _wakes) and not stops


def _at_an_edge(frame: FrameType | None) -> bool:
    """Is a block just begun or left? What is raised there would leave it half open: a call among those that run for ever, stdout aside."""
    while frame is not None:
        if frame.f_code in _EDGES and not frame.f_locals["self"].left:
            return True
        frame = frame.f_back
    return False
