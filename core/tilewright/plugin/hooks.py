"""The hooks. They only ever gain parameters, so an old plugin keeps working."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from tilewright.plugin.result import Result
    from tilewright.plugin.specs import PluginSpec

PROJECT = "tilewright"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin module as the implementation of the hook it is named after."""


@hookspec
def tilewright_plugins() -> Sequence[PluginSpec[Any]]:
    """Called once when plugins are discovered: the specs that this module registers."""
    raise NotImplementedError


@hookspec
def tilewright_search_done(layer: str, result: Result) -> None:
    """Called after a layer's search has ended, however it ended, for loggers and recorders; `layer` is its name.

    It is called in the process that asked for the search, also where layers are mapped in several; not for results that
    come from the cache. What it raises is told as a warning and loses no result.
    """
