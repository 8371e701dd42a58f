"""Keywords of functions: a setting has one definition for signature, docstring and command line."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace
from typing import Any, get_args

REQUIRED = inspect.Parameter.empty
"""Default of a setting that must be given."""


@dataclass(frozen=True)
class Setting:
    """Keyword of a function, and option of its command.

    Attributes:
        help: Its effect, for docstrings, `--help` and docs/commands.md.
        metavar: Form of the value on the command line; "" for switches.
        flags: Spellings on the command line, if they do not follow from the name. A switch with a `--no-` passes False.
        off: Spelling of a switch that passes False, beside the one that passes True.
        unset: What applies if it is not given, unless that is the default itself.
        least: Minimum of a number.
        plugins: Kind of the plugins that it names, for completion.
        option_help: Its effect on the command line, if that differs.
    """

    default: Any
    help: str
    metavar: str = ""
    flags: tuple[str, ...] = ()
    off: str = ""
    unset: str = ""
    least: float | None = None
    plugins: str = ""
    option_help: str = ""
    name: str = ""
    annotation: str = ""

    @property
    def spelled(self) -> tuple[str, ...]:
        """Spellings on the command line."""
        return self.flags or ("--" + self.name.replace("_", "-"),)

    @property
    def negated(self) -> bool:
        """Whether the command line has a switch that passes False."""
        return self.spelled[0].startswith("--no-")


def settings_of(kind: type) -> dict[str, Setting]:
    """Return the settings that a class of `tilewright.application.api.settings` defines, by name."""
    settings = {}
    for name, hint in kind.__annotations__.items():
        words = get_args(hint)
        annotation, setting = words if len(words) == 2 else get_args(words[0])  # in Required[...]
        settings[name] = replace(setting, name=name, annotation=annotation.__forward_arg__)
    return settings


def documented(settings: MappingOf[str, Setting]) -> str:
    """Return the settings as entries of the section `Args:` in the docstring of a function."""
    entries = []
    for setting in settings.values():
        text = f"{setting.name}: {setting.help[0].upper()}{setting.help[1:]}.{f' Default: {setting.unset}.' * bool(setting.unset)}"
        entries.append(textwrap.fill(text, 100, initial_indent=" " * 8, subsequent_indent=" " * 12))
    return "\n".join(entries)
