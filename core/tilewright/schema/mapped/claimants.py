"""Whose claim a bound is. Everything that prints a proof asks here."""

from __future__ import annotations

from typing import Protocol

BUILTIN = "tilewright"
"""Distribution of the built-in plugins, whose names cannot be taken over."""


class Named(Protocol):
    """A plugin with its distribution: its owner in messages, or its record in a file."""

    @property
    def name(self) -> str: ...
    @property
    def distribution(self) -> str | None: ...


def claimant(*plugins: Named) -> str | None:
    """Return whose claim a bound is, if some of these plugins made it: the names of those that are not built in.

    None if all are: then the bound is proved. What others prove is printed as `claimed by NAME`, until a check of
    Tilewright confirms it. An object from the caller has no distribution, and counts as another's.
    """
    others = [plugin for plugin in plugins if plugin.distribution != BUILTIN]
    names = [f"{other.distribution}/{other.name}" if other.distribution else other.name for other in others]
    return " and ".join(names) or None
