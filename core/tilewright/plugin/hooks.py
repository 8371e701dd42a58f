"""Hooks of plugins. They only ever gain parameters, so that old plugins keep working."""

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
"""Decorator of a plugin's function that implements the hook of the same name."""


@hookspec
def tilewright_plugins() -> Sequence[PluginSpec[Any]]:
    """Return the specs that this module registers. Called once, at discovery."""
    raise NotImplementedError


@hookspec
def tilewright_search_done(layer: str, result: Result) -> None:
    """Observe a layer's search after its end, for example to log it; `layer` is its name.

    It is called in the process of the user's call, also with `--jobs`. Results from the cache do
    not call it. Exceptions become warnings and lose no result.
    """
