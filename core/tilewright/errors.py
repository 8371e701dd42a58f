"""Errors of Tilewright, with messages that explain the next step.

Every error derives from `TilewrightError` and from the built-in exception that a caller would
expect. `code` is stable: tests, tables and JSON use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from tilewright.values import Model

MAX_MESSAGE = 10_000
MAX_WORD = 300
"""Maximum number of characters shown of a message, and of a single word in it."""

_LONG = re.compile(rf"\S{{{MAX_WORD},}}")


def printable(text: str) -> str:
    """Return the text with unprintable characters escaped, except for line ends.

    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else ascii(character)[1:-1] for character in text
    )


def shortened(text: str) -> str:
    """Return a message of limited length: long words lose their middle, long messages their end."""
    if len(text) < MAX_WORD:
        return text
    text = _LONG.sub(lambda match: f"{match[0][: MAX_WORD // 2]}...{match[0][-MAX_WORD // 4 :]}", text)
    return (
        text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}... ({len(text) - MAX_MESSAGE:,} more characters)"
    )


@dataclass(frozen=True)
class Location:
    """Location in a file or text, counted from 1."""

    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.source, *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)


class Reason(Model):
    """One reason for a refusal.

    Example:
        >>> from tilewright.plugin import Reason
        >>> print(Reason(code="size", where="K", message="too large"))
        K: too large [size]
    """

    code: str
    """Stable code of the kind of reason."""
    where: str
    """Dimension, entry, level or tensor that it concerns."""
    message: str
    """The reason in words."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message} [{self.code}]" if self.where else f"{self.message} [{self.code}]"


class Verdict(Model):
    """List of reasons, true if empty. Verdicts can be added.

    Example:
        >>> from tilewright.plugin import Reason, Verdict
        >>> verdict = Verdict(reasons=(Reason(code="size", where="K", message="too large"),))
        >>> bool(verdict), bool(Verdict())
        (False, True)
    """

    reasons: tuple[Reason, ...] = ()

    def __bool__(self) -> bool:
        return not self.reasons

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(reasons=self.reasons + other.reasons)


class TilewrightError(Exception):
    """Base of all errors for the user: one clear message and never a traceback.

    `hint` explains what to type or change next. `exit_code` is the exit code of the command line.
    Both texts may contain words from files. They are shortened and made printable.

    Example:
        >>> import tilewright as tw
        >>> try:
        ...     tw.load("eyeris", "architecture")
        ... except tw.TilewrightError as error:
        ...     print(error.code)
        unknown_name
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2
    reasons: tuple[Reason, ...] = ()

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = printable(shortened(message))
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else printable(shortened(hint))

    @property
    def headline(self) -> str:
        """Message, or the heading of a list of reasons."""
        return self.message

    def data(self) -> dict[str, Any]:
        """Return the document that `--json` prints for programs."""
        reasons = [reason.model_dump(mode="json") for reason in self.reasons]
        told = {"code": self.code, "message": self.message, "hint": self.hint, "reasons": reasons}
        return told | {"exit_code": self.exit_code}

    def __reduce__(self) -> tuple[Any, ...]:
        """Reduce without calling the constructor, whose arguments differ between errors."""
        return _again, (type(self), self.args, self.__dict__.copy())

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def _render_traceback_(self) -> list[str]:
        """Return the lines that a notebook shows: the user's own calls, then the message. IPython looks for this method."""
        import traceback  # errors are imported by every command, and shown like this by few

        calls = list(traceback.walk_tb(self.__traceback__))
        packages = [str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in calls]
        start = max((number for number, name in enumerate(packages, start=1) if name == "IPython"), default=0)
        end = next((number for number in range(start, len(calls)) if packages[number] == "tilewright"), len(calls))
        stack = traceback.StackSummary.extract(iter(calls[start:end]))
        return "".join([*stack.format(), f"{type(self).__name__}: {self}"]).splitlines()


def _again(kind: type[TilewrightError], words: tuple[Any, ...], state: dict[str, Any]) -> TilewrightError:
    error = kind.__new__(kind, *words)
    error.args = words
    error.__dict__.update(state)
    return error


class InputError(TilewrightError, ValueError):
    """A file, a line or an option is invalid or contradictory."""

    code = "input"

    def __init__(self, message: str, *, location: Location | None = None, hint: str | None = None) -> None:
        super().__init__(f"{location}: {message}" if location else message, hint=hint)
        self.location = location

    def data(self) -> dict[str, Any]:
        return super().data() | {"location": None if self.location is None else asdict(self.location)}


class UnsupportedError(InputError):
    """A file of a known notation has a feature that would change results, and that Tilewright does not model."""


class OptionError(InputError):
    """A plugin does not have an option, or does not accept its value."""


class UnknownNameError(TilewrightError, LookupError):
    """An architecture, workload, layer or constraints file has an unknown name."""

    code = "unknown_name"


class UnknownPluginError(UnknownNameError):
    """A plugin name is unknown. The message lists the known names and the plugins that failed to load."""

    code = "unknown_plugin"


class AmbiguousPluginError(UnknownNameError):
    """Several distributions register a plugin of this name; `distribution/name` selects one."""

    code = "ambiguous_plugin"


class NotConformableError(TilewrightError, ValueError):
    """A plugin refuses a problem, architecture or mapping; `reasons` explains why."""

    code = "not_conformable"

    def __init__(self, plugin: str, reasons: Iterable[Reason], *, hint: str | None = None) -> None:
        self.plugin = plugin
        self.reasons = tuple(reasons)
        super().__init__(f"{plugin} does not support this: " + "; ".join(str(r) for r in self.reasons), hint=hint)

    @property
    def headline(self) -> str:
        return f"{self.plugin} does not support this" if len(self.reasons) > 1 else self.message


class NotEstimatedError(TilewrightError, LookupError):
    """No estimator supports a component; `reasons` holds the answer of each estimator."""

    code = "not_estimated"

    def __init__(self, what: str, reasons: Iterable[Reason], *, hint: str | None = None) -> None:
        self.what = what
        self.reasons = tuple(reasons)
        told = "; ".join(str(reason) for reason in self.reasons) or "no estimator is installed"
        super().__init__(f"no estimator supports this component: {what}: {told}", hint=hint)

    @property
    def headline(self) -> str:
        return f"no estimator supports this component: {self.what}" if len(self.reasons) > 1 else self.message


class InvalidMappingError(TilewrightError, ValueError):
    """A mapping breaks the rules of legality; `reasons` lists every broken rule."""

    code = "invalid_mapping"

    def __init__(self, reasons: Iterable[Reason]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(str(r) for r in self.reasons))

    @property
    def headline(self) -> str:
        return "the mapping is not valid" if len(self.reasons) > 1 else self.message


class SpaceTooLargeError(TilewrightError, ValueError):
    """A map space has more mappings than the caller allows to enumerate."""

    code = "space_too_large"


class NoValidMappingError(TilewrightError, LookupError):
    """A search ended without a valid mapping."""

    code = "no_valid_mapping"
    exit_code = 1


class PluginError(TilewrightError, RuntimeError):
    """A plugin violated its contract or crashed.

    The message names the plugin and its distribution. `plugin` is that name.
    """

    code = "plugin"
    exit_code = 3

    def __init__(self, message: str, *, hint: str | None = None, plugin: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.plugin = plugin


class OverdueError(PluginError):
    """A plugin exceeded its time limit and was stopped."""

    code = "overdue"


class OutputError(TilewrightError, OSError):
    """A file cannot be written: disk full, permission denied, or folder missing."""

    code = "output"


class ClusterError(TilewrightError, ConnectionError):
    """A cluster does not answer, has no workers, or was lost."""

    code = "cluster"


class CallError(TilewrightError, TypeError):
    """A function was called with an unknown keyword."""

    code = "call"
