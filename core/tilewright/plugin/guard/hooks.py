"""Calls of hooks, plugin by plugin: in one child process for all third parties, so that its state lasts.

A plugin whose hook fails is named once, and not called again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pluggy

from tilewright.errors import TilewrightError
from tilewright.plugin import hooks as hookspecs
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.processes import ask


def ask_each(
    implementers: Sequence[tuple[Owner, object]],
    hook: str,
    calls: Sequence[Mapping[str, object]],
    when: str,
    silenced: set[str],
    seconds: float | None = None,
) -> tuple[list[tuple[Owner, Any]], list[str]]:
    """Call a hook of plugins; return (owner, answer) of each call, and one line per failure.

    Args:
        implementers: (Owner, module) of each plugin that has the hook; see `Registry.implementers`.
        calls: Arguments of each call.
        when: Time of the calls, for the lines.
        silenced: Plugins to skip; those that fail are added.
        seconds: Time limit of the calls of one plugin; default: that of every call into a plugin.
    """
    answers: list[tuple[Owner, Any]] = []
    complaints = []
    for owner, module in implementers:
        if str(owner) in silenced:
            continue
        try:
            answer = _Module(module).answers
            given = ask(owner, hook, answer, hook, calls, seconds=seconds, purpose="observers", ends_early=False)
            answers += [(owner, one) for one in given]
        except TilewrightError as error:
            silenced.add(str(owner))
            complaints.append(f"{error.message} ({when}; it receives no further ones)")
    return answers, complaints


class _Module:
    """A module with hooks. A child process makes the object at the first call only, so its state lasts."""

    def __init__(self, module: object) -> None:
        self.module = module
        self.manager: pluggy.PluginManager | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (cloudpickle.dumps(self.module),)

    def answers(self, hook: str, calls: Sequence[Mapping[str, object]]) -> list[Any]:
        """Return the answers of all calls of a hook; pluggy drops those that are None."""
        if self.manager is None:
            self.manager = manager_of(self.module)
        return [answer for arguments in calls for answer in getattr(self.manager.hook, hook)(**arguments)]


@cache
def _received(pickled: bytes) -> _Module:
    return _Module(cloudpickle.loads(pickled))


def manager_of(*modules: object) -> pluggy.PluginManager:
    """Return a manager with the hooks of these modules alone."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for module in modules:
        manager.register(module)
    return manager
