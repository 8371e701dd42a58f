"""Plugins of third parties, as the caller sees them: their objects are in a child process.

A hosted plugin is a recipe, by which a child makes the object once, and the names of its methods. A call of a method is a
call in the child. Sent to a child, a hosted plugin is the object itself, so a search there runs mapper and cost model
without crossing a border. What crosses is data: schemas, arrays and errors.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import cloudpickle  # type: ignore[import-untyped]

from tilewright.child import is_child
from tilewright.plugin.guard.calls import Owner, fault, one_line_error
from tilewright.plugin.guard.processes import GRACE, ask, end_children, report

if TYPE_CHECKING:
    from tilewright.plugin.strategy import ExplorationTask, PointProposals

LIVE = ("bind", "starting_with")
"""Methods whose answers stay in the child, because they have methods themselves."""
OBJECTS = 64
"""Objects that a child keeps."""


class Hosted:
    """An object of a third party's plugin in a child process. It has the methods that the object has.

    Attributes:
        recipe: Pickled function and arguments that make the object.
        packages: Packages with the code of the plugin and of its warm-start mappers.
    """

    def __init__(self, owner: Owner, recipe: bytes, methods: tuple[str, ...], packages: tuple[str, ...]) -> None:
        self.owner, self.recipe, self.methods, self.packages = owner, recipe, methods, packages
        for name in methods:
            setattr(self, name, partial(_explored if name == "explore" else _asked, self, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.owner, self.recipe, self.methods, self.packages)


def hosted(owner: Owner, call: str, make: Callable[..., object], *arguments: object) -> Any:
    """Return the object that `make(*arguments)` returns in a child process.

    Raises:
        PluginError, TilewrightError: See `ask`.
    """
    try:
        recipe: bytes = cloudpickle.dumps((make, arguments))
    except Exception as error:  # pickling a third party's object may raise anything
        raise fault(owner, f"{call} cannot be sent to its process: {one_line_error(error)}") from error
    return Hosted(owner, recipe, *ask(owner, call, _described, recipe))


def packages_of(plugin: object) -> tuple[str, ...]:
    """Return the packages with the code of a plugin behind its guard, and of its warm-start mappers."""
    if isinstance(plugin, Hosted):
        return plugin.packages
    parts = (plugin, *getattr(plugin, "starters", ()))
    return tuple(type(getattr(part, "plugin", part)).__module__.partition(".")[0] for part in parts)


def _asked(plugin: Hosted, name: str, *arguments: object, **named: object) -> Any:
    """Call a method of a hosted plugin."""
    if name in LIVE:
        return hosted(plugin.owner, name, _called, plugin.recipe, name, arguments, named)
    (task, *_) = (*arguments, *named.values(), None)
    deadline = getattr(task, "seconds", None) if name == "search_group" else None
    seconds = None if deadline is None else deadline + GRACE
    return ask(plugin.owner, name, _called, plugin.recipe, name, arguments, named, seconds=seconds)


def _explored(plugin: Hosted, name: str, task: ExplorationTask) -> PointProposals:
    """Yield what a hosted strategy proposes. It keeps one child until its end."""
    key = uuid.uuid4().hex
    sent = replace(task, report=report)
    results = None
    try:
        while True:
            step = (plugin.owner, name, _explored_in_child, key, plugin.recipe, sent, results)
            group = ask(*step, purpose=key, told=task.report)
            if group is None:
                return
            results = yield group
    finally:
        end_children(key)


# -- in a child --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=OBJECTS)
def _made(recipe: bytes) -> Any:
    make, arguments = cloudpickle.loads(recipe)
    return make(*arguments)


def _received(owner: Owner, recipe: bytes, methods: tuple[str, ...], packages: tuple[str, ...]) -> Any:
    """Return a hosted plugin that was sent: in a child the object itself."""
    return _made(recipe) if is_child() else Hosted(owner, recipe, methods, packages)


def _described(recipe: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the public methods of an object, and its packages."""
    made = _made(recipe)
    methods = [name for name in dir(made) if not name.startswith("_") and _is_method(getattr(made, name))]
    return tuple(methods), packages_of(made)


def _is_method(value: object) -> bool:
    return inspect.isroutine(value) or isinstance(value, partial)


def _called(recipe: bytes, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return getattr(_made(recipe), name)(*arguments, **named)


_explorations: dict[str, Generator[Any, Any, None]] = {}


def _explored_in_child(key: str, recipe: bytes, task: ExplorationTask, results: Any) -> Any:
    """Return the next group of proposals of a strategy; None at its end."""
    if results is None:
        _explorations[key] = _made(recipe).explore(task)
    try:
        return _explorations[key].send(results)
    except StopIteration:
        return None
