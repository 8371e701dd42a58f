"""Hooks of plugins. They only ever gain parameters, so that old plugins keep working.

A module implements a hook by a function of the same name, marked with `hookimpl`. It needs only the parameters that it uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pluggy

if TYPE_CHECKING:
    from tilewright.plugin.groupmapper import GroupResult
    from tilewright.plugin.hook_data import ObservedRun, Section
    from tilewright.plugin.result import Progress, Result
    from tilewright.plugin.specs import PluginSpec

PROJECT = "tilewright"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Decorator of a plugin's function that implements the hook of the same name."""


@hookspec
def tilewright_plugins() -> Sequence[PluginSpec[Any]]:
    """Return the specs that this module registers. Called once, at discovery."""
    raise NotImplementedError


# -- hooks that observe: in a child process, one for the whole program ----------------------------------------------


@hookspec
def tilewright_run_started(run: ObservedRun) -> None:
    """Observe the start of a run, before its first search."""


@hookspec
def tilewright_layer_started(layer: str) -> None:
    """Observe the start of a layer's search; `layer` is its name. Layers from the cache are not searched."""


@hookspec
def tilewright_evaluated(layer: str, progress: Progress) -> None:
    """Observe the evaluation of batches of mappings of a layer.

    A call has the sums since the layer's search began. There are at most two groups of calls a second, and one before the
    end of the search.
    """


@hookspec
def tilewright_search_done(layer: str, result: Result) -> None:
    """Observe a layer's search after its end, for example to log it; `layer` is its name.

    It is called for the searches of all processes (`--jobs`). Results from the cache do
    not call it. Exceptions become warnings and lose no result.
    """


@hookspec
def tilewright_group_done(group: str, result: GroupResult) -> None:
    """Observe the search of a group of layers that share loops (`map GROUP --fuse`), after its end; `group` is its name.

    Its layers have no searches of their own, so no other hook reports them. The run has its start and its end, as others have.
    """


@hookspec
def tilewright_run_done(run: ObservedRun, layers: tuple[str, ...]) -> None:
    """Observe the end of a run, also after Ctrl-C or an error; `layers` names those that are done."""


# -- hooks that add something --------------------------------------------------------------------------------------


@hookspec
def tilewright_sections(kind: Literal["network", "exploration"], data: Mapping[str, Any]) -> Sequence[Section]:
    """Return sections for the printed report and the HTML page of a run.

    `data` is the JSON document of `map` or `explore`. The printed report of `map` and the pages of `map` and `explore`
    show the sections. Called in the child process of the hooks that observe.
    """
    raise NotImplementedError


@hookspec
def tilewright_command() -> Any:
    """Return a Typer app or a function: the subcommand of `tilewright` with the name of the entry point.

    Called in the user's process when the user calls the subcommand, and never before.
    """
    raise NotImplementedError


@hookspec
def tilewright_checks() -> Sequence[Any]:
    """Return checks of the conformance kit, each a `tilewright.testing.Check`.

    They run on the plugins of the same distribution, and on others where the user asks for them by `--with NAME`.
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def tilewright_run_check(check: Any, subject: Any) -> bool | None:
    """Run a check of the conformance kit on a plugin of the same distribution.

    The first implementation that returns something other than None ends the call. The last one is the kit's own, which runs the
    check. A wrapper (`hookimpl(wrapper=True)`) does something before and after it. Args: `check` is a
    `tilewright.testing.Check`, and `subject` a `tilewright.testing.Subject`.
    """
    raise NotImplementedError
