"""Calls into plugins: what is raised there is an error that names the plugin, what is printed there goes to stderr.

Ctrl-C stays Ctrl-C: a KeyboardInterrupt is the user's only if the signal has come.
"""

from __future__ import annotations

import io
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, NoReturn

from pydantic import ValidationError

from tilewright.errors import (
    InvalidMappingError,
    NotConformableError,
    OverdueError,
    PluginError,
    Reason,
    TilewrightError,
)

BUILTIN = "tilewright"
"""The distribution whose plugin names nobody can take over."""
LONGEST = 500
"""Characters of what a plugin says that are repeated."""


@dataclass(frozen=True)
class Owner:
    """A plugin as messages name it; without distribution it is an object that was given."""

    kind: str
    name: str
    distribution: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        home = f" of {self.distribution} {self.version or '(no version)'}" if self.distribution else ""
        return f"{self.kind} '{self.name}'{home}"


class Overdue(BaseException):
    """Raised inside a plugin that has used up its time; no Exception, so that fewer plugins catch it."""


class calling:
    """Around a call into a plugin.

    Raises:
        KeyboardInterrupt: Ctrl-C came meanwhile, whatever the plugin made of it.
        TilewrightError: as the plugin raised it, where it is whole.
        PluginError: for everything else that is raised, SystemExit and the like included.
    """

    __slots__ = ("owner", "since", "what", "_streams")

    def __init__(self, owner: Owner, what: str) -> None:
        self.owner, self.what = owner, what

    def __enter__(self) -> calling:
        self.since = time.monotonic()
        self._streams = sys.stdout, sys.stderr
        sys.stdout = _ASIDE
        if _in_main_thread():
            if not _running:
                _signals.arrived = False
                _listen()
            _running.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout, sys.stderr = self._streams
        arrived = False
        if _in_main_thread():
            _running.pop()
            arrived = _signals.arrived
            if not _running:
                _listen_no_more()
        if arrived:
            raise KeyboardInterrupt from None
        if error is not None:
            _translate(self, error)


def fault(owner: Owner, what: str) -> PluginError:
    """The error of a plugin that broke what it promised."""
    return PluginError(f"{owner} failed: {what}", plugin=str(owner))


def said(error: BaseException) -> str:
    """An error in one line: `KeyError: 'K'`."""
    try:
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            text = f"{error.error_count()} faults in {error.title}, such as {where or 'the whole'}: {first['msg']}"
        else:
            text = str(error)
    except BaseException:  # whatever a third party's exception does
        text = "(it cannot say what)"
    text = " ".join(text.split())
    return f"{type(error).__name__}: {text[:LONGEST]}" if text else type(error).__name__


def described(value: object) -> str:
    """A value in a message: what it is, not what it says."""
    return (
        "None" if value is None else f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    )


def _translate(call: calling, error: BaseException) -> NoReturn:
    if isinstance(error, TilewrightError) and _is_whole(error):
        if isinstance(error, PluginError) and error.plugin is None:
            named = PluginError(f"{call.owner} failed: {error.message}", hint=error.hint, plugin=str(call.owner))
            raise named from error
        raise error
    if isinstance(error, Overdue):
        seconds = time.monotonic() - call.since
        what = f"{call.what} took too long and was ended after {seconds:.1f} s"
        raise OverdueError(f"{call.owner} failed: {what}", plugin=str(call.owner)) from None
    what = "ended the program, " if isinstance(error, SystemExit) else "raised "
    raise fault(call.owner, f"{call.what} {what}{said(error)}") from error


def _is_whole(error: TilewrightError) -> bool:
    """Made as its class makes it, and with an exit code that says no."""
    values: dict[str, Any] = vars(error)
    reasons = values.get("reasons", ())
    if isinstance(error, NotConformableError | InvalidMappingError):
        whole = isinstance(reasons, tuple) and all(isinstance(each, Reason) for each in reasons)
    else:
        whole = True
    hint = values.get("hint")
    return (
        whole
        and isinstance(values.get("message"), str)
        and (hint is None or isinstance(hint, str))
        and (type(error).exit_code in (1, 2, 3))
    )


# -- signals -------------------------------------------------------------------------------------------------


class _Signals:
    """`former`: who hears Ctrl-C when no plugin runs. `listeners`: blocks that want to be listened for. `arrived`: Ctrl-C
    came during this call. `sent`: signals of our own that are on their way."""

    former: Any = None
    listeners = 0
    arrived = False
    sent = 0


_signals = _Signals()
_running: list[calling] = []
"""Calls of the main thread, the innermost last."""
_ending = threading.Lock()
"""Held while a signal is sent to the main thread, and when the last call ends."""


@contextmanager
def listening() -> Iterator[None]:
    """Around many calls: the signal's handler is put in place once, and not for each."""
    if not _in_main_thread():
        yield
        return
    _listen()
    try:
        yield
    finally:
        _listen_no_more()


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _hear(number: int, frame: FrameType | None) -> None:
    if _signals.sent:
        _signals.sent -= 1
        if _running and not _at_an_edge(frame):
            raise Overdue
        return
    if callable(_signals.former):
        try:
            _signals.former(number, frame)
        except KeyboardInterrupt:
            _signals.arrived = True
            raise


def _at_an_edge(frame: FrameType | None) -> bool:
    """Is a call just beginning or ending? What is raised there would leave it among those that run for ever."""
    while frame is not None:
        if frame.f_code in _EDGES and frame.f_locals.get("self") in _running:
            return True
        frame = frame.f_back
    return False


_EDGES = (calling.__enter__.__code__, calling.__exit__.__code__)


def _listen() -> None:
    _signals.listeners += 1
    if _signals.listeners == 1:
        former = signal.getsignal(signal.SIGINT)
        if former not in (_hear, signal.SIG_DFL, None):
            _signals.former = former
            signal.signal(signal.SIGINT, _hear)


def _listen_no_more() -> None:
    _signals.listeners -= 1
    if _signals.listeners:
        return
    with _ending:
        pass  # nobody sends any more: there is no call
    while _signals.sent:
        time.sleep(0)  # what was sent is heard here, and does no harm
    if signal.getsignal(signal.SIGINT) is _hear:  # else a plugin, or the host, has put another in place
        signal.signal(signal.SIGINT, _signals.former)


def running() -> calling | None:
    """The innermost call of the main thread; asked from other threads."""
    with suppress(IndexError):
        return _running[-1]
    return None


def end(call: calling) -> None:
    """Ask from another thread that a call end: Overdue is raised inside it, as soon as it is in Python."""
    with _ending:
        if call in _running and signal.getsignal(signal.SIGINT) is _hear:
            _signals.sent += 1
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


# -- what plugins print --------------------------------------------------------------------------------------


class _Aside(io.TextIOBase):
    """A stdout that is stderr, and that cannot be closed."""

    def write(self, text: str) -> int:
        with suppress(Exception):  # no stderr is no reason to stop
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(Exception):
            sys.stderr.flush()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return sys.stderr.fileno()

    def close(self) -> None:
        pass

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def buffer(self) -> io.RawIOBase:
        return _BYTES_ASIDE


class _BytesAside(io.RawIOBase):
    def write(self, data: Any) -> int:
        return _ASIDE.write(bytes(data).decode("utf-8", "replace"))

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        pass


_ASIDE, _BYTES_ASIDE = _Aside(), _BytesAside()
