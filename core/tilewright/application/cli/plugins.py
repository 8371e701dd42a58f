"""Command `tilewright plugins`: installed plugins, failed ones, their options, and new plugins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.application.cli import options
from tilewright.application.scaffold import Kind

if TYPE_CHECKING:
    from tilewright.plugin.registry import Registration, Registry
    from tilewright.plugin.requirements import Unmet

app = typer.Typer(help="List plugins, show the options of one, run its conformance checks, or create a new one.")

Name = Annotated[str, typer.Argument(help="plugin, or distribution/plugin", show_default=False)]


@app.callback(invoke_without_command=True)
def plugins_command(context: typer.Context, json: options.Json = False) -> None:
    """List plugins, show the options of one, run its conformance checks, or create a new one."""
    if context.invoked_subcommand is None:
        list_command(context, json)


@app.command("list", cls=options.Command)
def list_command(context: typer.Context, json: options.Json = False) -> None:
    """List installed plugins, and those that failed to load."""
    from tilewright.application.cli.common import print_json
    from tilewright.application.documents.listings import HooksRow, PluginRow, PluginsOutput, UnmetRow
    from tilewright.plugin.registry import installed
    from tilewright.plugin.requirements import unmet_requirements
    from tilewright.values import attributes

    registry = installed()
    rows = [_row(registration) for registration in registry.registrations]
    broken = [str(failure) for failure in registry.broken]
    unmet = unmet_requirements(registry.third_parties())
    hooks = _hooks(registry, frozenset(getattr(context.find_root().command, "commands", ())))
    if json:
        document = PluginsOutput(
            plugins=[PluginRow(**row) for row in rows],
            hooks=[HooksRow(**row) for row in hooks],
            broken=broken,
            unmet=[UnmetRow(**attributes(row, "distribution requirement installed hint")) for row in unmet],
        )
        print_json(document.data())
    else:
        _print_list(rows, hooks, broken)
        _warn_of(unmet)


@app.command("show", cls=options.Command)
def show_command(name: Name, json: options.Json = False) -> None:
    """Show the options and limits of a plugin."""
    from tilewright.application.cli.common import print_json
    from tilewright.application.documents.listings import PluginDetails, PluginOutput
    from tilewright.plugin.registry import installed
    from tilewright.plugin.requirements import unmet_requirements

    registrations = _named(installed(), name)
    if json:
        print_json(PluginOutput(plugins=[PluginDetails(**_details(entry)) for entry in registrations]).data())
    else:
        for registration in registrations:
            _print_details(_details(registration))
        _warn_of(unmet_requirements(registration.distribution for registration in registrations))


@app.command("fit", cls=options.GroupedCommand)
def fit_command(
    arch: Annotated[list[str], typer.Argument(help="architecture: library name, YAML file, or another tool's files")],
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="the work; default: a small matrix product and a small convolution"),
    ] = None,
    models: Annotated[
        list[str] | None,
        options.plugin_option(
            "cost model", "--models", "X,Y,...", "cost models; may be repeated; default: all installed"
        ),
    ] = None,
    constraints: Annotated[
        str | None, typer.Option(help="constraints on mappings [default: the published dataflow of ARCH]")
    ] = None,
    json: options.Json = False,
) -> None:
    """List the cost models that accept a workload on an architecture. Exit code 3 if none does."""
    import tilewright as tw
    from tilewright.application.cli.common import print_result

    report = tw.fit(arch, workload, models=options.names(models), constraints=constraints)
    print_result(report, json)
    raise typer.Exit(0 if any(fit.fits for fit in report.fits) else 3)


@app.command("check", cls=options.Command)
@options.with_traceback
def check_command(
    name: Name,
    option: Annotated[list[str] | None, typer.Option("--option", help="option of the plugin")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="source for a frontend to load")] = None,
    checks_of: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME", help="another plugin that adds checks; may be repeated"),
    ] = None,
    json: options.Json = False,
) -> None:
    """Run the conformance checks of a plugin. Exit code 3 if one fails."""
    from tilewright.application.cli.common import key_values
    from tilewright.plugin.registry import installed

    _check(_named(installed(), name), key_values(option or [], "--option"), source or [], checks_of or [], json)


@app.command("new", cls=options.Command)
def new_command(
    kind: Annotated[Kind, typer.Argument(help="kind of plugin", show_default=False)],
    name: Annotated[str, typer.Argument(help="name: lower-case letters, digits, - or _", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="folder for the package (default tilewright-NAME)")
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="costmodel: evaluate batches with NumPy, with counts and a relaxation")
    ] = False,
    json: options.Json = False,
) -> None:
    """Create a package with a small working plugin and its tests."""
    from tilewright.application.cli.common import note, print_json
    from tilewright.application.documents.listings import PluginNewOutput
    from tilewright.application.scaffold.package import new_package

    package = new_package(kind, name, batch=batch)
    folder = package.save(output)
    if json:
        document = PluginNewOutput(
            plugin_kind=kind.value,
            name=name,
            distribution=package.distribution,
            folder=str(folder),
            files=list(package.files),
            next=package.next_steps(folder),
        )
        print_json(document.data())
        return
    note(f"written to {folder}: {', '.join(package.files)}")
    typer.echo("\n".join(package.next_steps(folder)))


def _named(registry: Registry, name: str) -> list[Registration]:
    """Return every plugin of that name, of any kind; a name of built-in ones is theirs alone."""
    from tilewright.errors import UnknownPluginError
    from tilewright.plugin.registry import suggested
    from tilewright.plugin.specs import KINDS

    known = registry.registrations
    called = [entry for entry in known if name in (entry.spec.name, entry.long_name)]
    called = [entry for entry in called if entry.builtin] or called
    if not called:
        names = sorted({entry.spec.name for entry in known})
        raise UnknownPluginError(f"no plugin is called '{name}'{suggested(name, known)}; installed: {', '.join(names)}")
    return [registry.find(kind, name) for kind in KINDS if any(isinstance(entry.spec, kind) for entry in called)]


def _warn_of(requirements: list[Unmet]) -> None:
    """Print one line per unmet requirement, with the command that meets it."""
    from tilewright.application.cli.common import note

    for unmet in requirements:
        note(f"warning: {unmet}: {unmet.hint}")


def _row(registration: Registration) -> dict[str, Any]:
    spec = registration.spec
    return {
        "kind": spec.kind,
        "name": spec.name,
        "distribution": registration.distribution,
        "version": registration.version,
        "interface": spec.interface,
        "summary": spec.summary,
        "default_for": list(spec.default_for),
        "missing": list(spec.missing()),
        "hint": spec.hint,
    }


def _details(registration: Registration) -> dict[str, Any]:
    from tilewright.plugin.conventions import conventions_of
    from tilewright.plugin.guard.calls import calling
    from tilewright.plugin.specs import CostModelSpec

    spec = registration.spec
    with calling(registration.owner, "its options"):
        options = spec.options.model_json_schema().get("properties", {})
    return _row(registration) | {
        "needs": list(spec.needs),
        "capabilities": spec.capabilities.model_dump(mode="json"),
        "options": options,
        "starts_with": list(getattr(spec, "starts_with", ())),
        "approximations": {
            approximation.code: approximation.meaning for approximation in getattr(spec, "approximations", ())
        },
        "conventions": conventions_of(spec) if isinstance(spec, CostModelSpec) else {},
    }


OBSERVES = "observes searches"
HOOKS = {
    "tilewright_run_started": OBSERVES,
    "tilewright_layer_started": OBSERVES,
    "tilewright_evaluated": OBSERVES,
    "tilewright_search_done": OBSERVES,
    "tilewright_group_done": OBSERVES,
    "tilewright_run_done": OBSERVES,
    "tilewright_sections": "adds sections to reports",
    "tilewright_checks": "adds checks to the conformance kit",
    "tilewright_run_check": "runs the checks of its plugins",
}
"""Hook -> purpose of a module that has it."""


def _hooks(registry: Registry, built_in: frozenset[str]) -> list[dict[str, Any]]:
    """Return the modules that do more than register plugins, with what they do.

    Args:
        built_in: Names of the built-in commands.
    """
    from tilewright.application.cli.added import HOOK, reached_as

    does: dict[Any, dict[str, None]] = {}
    for hook, what in HOOKS.items():
        for owner, _ in registry.implementers(hook):
            does.setdefault(owner, {})[what] = None
    commands = tuple(owner for owner, _ in registry.implementers(HOOK))
    for owner in commands:
        name, why = reached_as(owner, commands, built_in)
        does.setdefault(owner, {})[f"`tilewright {name}` runs its command{why and f' ({why})'}"] = None
    return [
        {"name": owner.name, "distribution": owner.distribution, "version": owner.version, "does": list(what)}
        for owner, what in does.items()
    ]


def _print_list(rows: list[dict[str, Any]], hooks: list[dict[str, Any]], broken: list[str]) -> None:
    from tilewright.application.cli.common import note, print_tables
    from tilewright.tables import Column, Table

    table = Table("kind", "name", Column("from", rank=1), Column("what it does", wrapped=True))
    for row in rows:
        default = f" Default for: {', '.join(row['default_for'])}." if row["default_for"] else ""
        table.add_row(row["kind"], row["name"], row["distribution"], f"{row['summary']}{default}{_lacking(row)}")
    for row in hooks:
        table.add_row("hooks", row["name"], row["distribution"] or "-", f"{'; '.join(row['does'])}.")
    print_tables(table)
    if broken:
        note("\n".join(["failed to load:", *(f"  {line}" for line in broken)]))


def _lacking(row: dict[str, Any]) -> str:
    """Return the missing dependencies of a plugin, and the command that installs them."""
    missing = ", ".join(row["missing"])
    return f" Needs {missing}{': ' if row['hint'] else ''}{row['hint'] or ''}" if missing else ""


def _print_details(details: dict[str, Any]) -> None:
    from tilewright.application.cli.common import print_tables
    from tilewright.plugin.capabilities import Capabilities
    from tilewright.plugin.interface import changes_since
    from tilewright.tables import Column, Table

    given, unlimited = details["capabilities"], Capabilities().model_dump()
    limits = {key: value for key, value in given.items() if value is not True and value != unlimited.get(key)}
    lines: list[Table | str] = [
        f"{details['kind']} {details['name']} ({details['distribution']} {details['version']})",
        f"  {details['summary']}{_lacking(details)}",
        f"  limits: {', '.join(f'{key}={value}' for key, value in limits.items()) or 'none declared'}",
        f"  interface: {'; changed since: '.join([str(details['interface']), *changes_since(details['interface'])])}",
        *([f"  default for: {', '.join(details['default_for'])}"] if details["default_for"] else []),
        *([f"  starts with: {', '.join(details['starts_with'])}"] if details["starts_with"] else []),
        *(f"  counts approximately: {meaning} ({code})" for code, meaning in details["approximations"].items()),
    ]
    if details["conventions"]:
        rules = Table("convention", Column("rule", wrapped=True))
        for topic, rule in details["conventions"].items():
            rules.add_row(topic, rule)
        lines += ["", rules]
    if details["options"]:
        table = Table("option", "default", Column("meaning", wrapped=True))
        for option, schema in details["options"].items():
            table.add_row(option, _plain(schema.get("default", "required")), schema.get("description", ""))
        lines += ["", table]
    print_tables(*lines)


def _plain(default: Any) -> str:
    """Return a default as text that can follow `KEY=`."""
    return "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _check(
    registrations: list[Registration], options: dict[str, Any], sources: list[str], checks_of: list[str], json: bool
) -> None:
    """Run the conformance kit; exit with code 3 if a contract is violated."""
    from tilewright.application.cli.common import print_json, print_tables
    from tilewright.application.documents.listings import OutcomeRow, PluginCheckOutput
    from tilewright.plugin.requirements import unmet_requirements
    from tilewright.tables import Column, Table
    from tilewright.testing import check_plugin
    from tilewright.values import attributes

    outcomes = [
        (registration.spec.kind, outcome)
        for registration in registrations
        for outcome in check_plugin(registration, options=options, sources=sources, checks_of=checks_of)
    ]
    _warn_of(unmet_requirements(registration.distribution for registration in registrations))
    broken = sum(not outcome.ok for _, outcome in outcomes)
    if json:
        rows = [
            OutcomeRow(kind=kind, **attributes(outcome, "plugin check status message")) for kind, outcome in outcomes
        ]
        print_json(PluginCheckOutput(checks=rows).data())
    else:
        table = Table(Column("plugin", rank=1), "check", "status", Column("why", wrapped=True))
        for kind, outcome in outcomes:
            table.add_row(f"{kind} {outcome.plugin}", outcome.check, outcome.status, " ".join(outcome.message.split()))
        print_tables(table, f"{len(outcomes) - broken} of {len(outcomes)} checks passed")
    raise typer.Exit(3 if broken else 0)
