"""Subcommands that plugins add. A plugin is asked for its command only if the user calls it, and never before.

A built-in command cannot be replaced: a plugin of the same name keeps its long form, `distribution/name`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from tilewright.plugin.guard.calls import Owner

HOOK = "tilewright_command"
OWNER = "tilewright.owner"
"""Key of a command's plugin in the context of the call."""
COMPLETION = ("install_completion", "show_completion")
"""Options that typer adds to an app; `tilewright` has them itself."""
_KNOWN = (typer.Exit, typer.Abort, typer.BadParameter.__mro__[2], BrokenPipeError, MemoryError)
"""Exceptions that are no failure of a plugin: ends, and errors of the call, such as a wrong option."""


class CommandsWithPlugins(TyperGroup):
    """The commands of `tilewright`. A name that no built-in command has may be that of a plugin's."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        built_in = super().get_command(ctx, cmd_name)
        if built_in is not None or cmd_name.startswith("-"):
            return built_in
        return _added(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            value = super().invoke(ctx)
        except Exception as error:
            owner = ctx.meta.get(OWNER)
            if owner is None or isinstance(error, _KNOWN):
                raise
            from tilewright.plugin.guard.calls import translated

            named = translated(owner, "its command", error)
            if named is error:
                raise
            raise named from error
        return value if OWNER not in ctx.meta else None


def reached_as(owner: Owner, others: tuple[Owner, ...], built_in: frozenset[str]) -> tuple[str, str]:
    """Return the name by which a plugin's command is called, and why it is not the short one."""
    assert owner.distribution is not None
    long_name = f"{owner.distribution}/{owner.name}"
    if owner.name in built_in:
        return long_name, f"`{owner.name}` is built in"
    same = [other.distribution for other in others if other.name == owner.name and other != owner]
    return (long_name, f"{', '.join(map(str, same))} has `{owner.name}`, too") if same else (owner.name, "")


def _added(ctx: Any, name: str) -> Any:
    """Return the command of the plugin `name` or `distribution/name`; None if there is none.

    Raises:
        AmbiguousPluginError: Several plugins of this name have commands.
        PluginError: The plugin of this name failed to load, or returned no command.
    """
    from tilewright.errors import AmbiguousPluginError, PluginError
    from tilewright.plugin.registry import installed

    registry = installed()
    entries = [
        (owner, module)
        for owner, module in registry.implementers(HOOK)
        if name in (owner.name, f"{owner.distribution}/{owner.name}")
    ]
    if len(entries) > 1:
        names = ", ".join(f"{owner.distribution}/{owner.name}" for owner, _ in entries)
        raise AmbiguousPluginError(f"several plugins have a command '{name}': {names}", hint="use the long form")
    if not entries:
        for broken in registry.broken:
            if name in broken.names:
                raise PluginError(str(broken), plugin=name)
        return None
    ((owner, module),) = entries
    ctx.meta[OWNER] = owner
    return _command_of(owner, module, name)


def _command_of(owner: Owner, module: object, name: str) -> Any:
    """Return the command that the hook of a module returns; raise PluginError if it returns none."""
    from tilewright.plugin.guard.calls import calling, described, fault
    from tilewright.plugin.guard.hooks import manager_of

    with calling(owner, HOOK):
        answers = getattr(manager_of(module).hook, HOOK)()
        made: Any = answers[0] if answers else None
        app = made
        if callable(made) and not isinstance(made, typer.Typer):
            app = typer.Typer(add_completion=False)
            app.command()(made)
        command: Any = typer.main.get_command(app) if isinstance(app, typer.Typer) else None
    if command is None:
        raise fault(owner, f"{HOOK} returned {described(made)}; expected a typer.Typer or a function")
    command.name = name
    command.params = [parameter for parameter in command.params if parameter.name not in COMPLETION]
    return command
