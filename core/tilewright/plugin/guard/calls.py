"""Calls into plugins: exceptions become errors that name the plugin, and stdout goes to stderr.

A KeyboardInterrupt is the user's only if the signal has arrived.
"""

from __future__ import annotations

import io
import linecache
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from types import FrameType, TracebackType
from typing import Any, TypeVar

from pydantic import ValidationError

from tilewright.child import is_child
from tilewright.errors import (
    InvalidMappingError,
    NotConformableError,
    PluginError,
    Reason,
    TilewrightError,
)
from tilewright.interrupts import is_from_user, raise_if_due
from tilewright.schema.mapped.claimants import BUILTIN as BUILTIN
from tilewright.values import plain_fault

Answer = TypeVar("Answer")

LONGEST = 400
"""Maximum length of a plugin's message that is repeated, in characters."""
LONGEST_LINE = 100
"""Maximum length of a plugin's source line that is repeated, in characters."""
TRACEBACK = "TILEWRIGHT_TRACEBACK"
"""Environment variable that prints tracebacks of plugins on stderr; child processes inherit it."""


@dataclass(frozen=True)
class Owner:
    """Identity of a plugin in messages. A plugin object from the caller has no distribution."""

    kind: str
    name: str
    distribution: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        home = f" of {self.distribution} {self.version or '(no version)'}" if self.distribution else ""
        return f"{self.kind} '{self.name}'{home}"


def owner_of(kind: str, plugin: object) -> Owner:
    """Return the owner of an object from the caller; one of a built-in package is built in."""
    package = type(plugin).__module__.partition(".")[0]
    return Owner(kind, type(plugin).__name__, BUILTIN if package in _builtin_packages() else None)


@cache
def _builtin_packages() -> frozenset[str]:
    """Return the import packages of Tilewright."""
    points = [point for point in entry_points(group=BUILTIN) if point.dist is not None and point.dist.name == BUILTIN]
    return frozenset({BUILTIN, *(point.module.partition(".")[0] for point in points)})


def is_trusted(owner: Owner) -> bool:
    """Return whether a plugin is built in or an object from the caller. All others run in a child process."""
    return owner.distribution in (None, BUILTIN)


_under_way: list[calling] = []
"""Open calls in a child process, the innermost last."""


def under_way() -> calling | None:
    """In a child process, return the innermost open call; used by other threads."""
    with suppress(IndexError):
        return _under_way[-1]
    return None


class calling:
    """Context of a call into a plugin.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed, even if the plugin has caught the exception.
        TilewrightError: The plugin raised it, with valid contents.
        PluginError: The plugin raised anything else, including SystemExit.
    """

    __slots__ = ("owner", "since", "what", "_depth", "_streams")

    def __init__(self, owner: Owner, what: str) -> None:
        self.owner, self.what = owner, what

    def __enter__(self) -> calling:
        self.since = time.monotonic()
        self._streams, self._depth = (sys.stdout, sys.stderr), len(_under_way)
        if is_child():
            _under_way.append(self)
        sys.stdout = _ASIDE
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout, sys.stderr = self._streams
        del _under_way[self._depth :]
        raise_if_due()
        if error is not None and not (isinstance(error, KeyboardInterrupt) and is_from_user()):
            translation = translated(self.owner, self.what, error)
            if translation is not error:
                raise translation


def checked(owner: Owner, call: str, ask: Callable[[], Answer], fault_of: Callable[[Answer], str | None]) -> Answer:
    """Return the answer of a plugin, checked by `fault_of`.

    Raises:
        PluginError: It violates the contract.
        KeyboardInterrupt, TilewrightError: See `calling`.
    """
    with calling(owner, call):
        answer = ask()
        wrong = fault_of(answer)
    if wrong:
        raise fault(owner, f"{call} {wrong}")
    return answer


def fault(owner: Owner, what: str) -> PluginError:
    """Return the error of a plugin that violates its contract."""
    return PluginError(f"{owner} failed: {what}", plugin=str(owner))


def one_line_error(error: BaseException) -> str:
    """Return an error as one line: `KeyError: 'K'`."""
    try:
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            text = (
                f"{error.error_count()} faults in {error.title}, such as {where or 'the whole'}: {plain_fault(first)}"
            )
        else:
            text = str(error)
    except BaseException:  # a third party's exception may raise anything
        text = "(its text cannot be read)"
    text = " ".join(text.split())
    return f"{type(error).__name__}: {text[:LONGEST]}" if text else type(error).__name__


def described(value: object) -> str:
    """Return the type of a value, for messages."""
    return (
        "None" if value is None else f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    )


def translated(owner: Owner, what: str, error: BaseException) -> TilewrightError:
    """Return the error that replaces a plugin's exception; errors for the user are unchanged."""
    if isinstance(error, TilewrightError) and _is_whole(error):
        if not isinstance(error, PluginError) or error.plugin is not None:
            return error
        named = PluginError(f"{owner} failed: {error.message}", hint=error.hint, plugin=str(owner))
        named.__cause__ = error
        return named
    if TRACEBACK in os.environ:
        with suppress(Exception):  # a third party's exception may raise anything when it is printed
            traceback.print_exception(error, file=sys.stderr)
    how = "ended the program, " if isinstance(error, SystemExit) else "raised "
    broken = fault(owner, f"{what} {how}{one_line_error(error)}{_line_of(error)}")
    broken.__cause__ = error
    return broken


def _line_of(error: BaseException) -> str:
    """Return ` at FILE:LINE: SOURCE` for the innermost line of the plugin's own package; pluggy calls its hooks.

    Empty if there is none.
    """
    steps = [
        (_package(frame), frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    owner = next((package for package, _, _ in steps if package not in ("tilewright", "pluggy")), None)
    for package, file, line in reversed(steps):
        if package == owner:
            source = linecache.getline(file, line).strip()
            return f" at {file}:{line}{source and ': '}{source[:LONGEST_LINE]}"
    return ""


def _package(frame: FrameType) -> str:
    """Return the outermost package of a frame's module."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_whole(error: TilewrightError) -> bool:
    """Return whether an error has valid contents and a failing exit code."""
    values: dict[str, Any] = vars(error)
    reasons = values.get("reasons", ())
    if isinstance(error, NotConformableError | InvalidMappingError):
        whole = isinstance(reasons, tuple) and all(isinstance(reason, Reason) for reason in reasons)
    else:
        whole = True
    hint = values.get("hint")
    return (
        whole
        and isinstance(values.get("message"), str)
        and (hint is None or isinstance(hint, str))
        and (type(error).exit_code in (1, 2, 3))
    )


# -- output of plugins ----------------------------------------------------------------------------------------


class _Aside(io.TextIOBase):
    """A stdout that writes to stderr and cannot be closed."""

    def write(self, text: str) -> int:
        with suppress(Exception):  # a missing stderr is ignored
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
