"""`tilewright plugins`: what is installed, what failed to load, what a plugin takes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tilewright.plugin.registry import Registration, Registry


class Action(StrEnum):
    """What to do."""

    list = "list"
    show = "show"
    check = "check"


def plugins_command(
    action: Annotated[Action, typer.Argument(help="list, show NAME or check NAME")] = Action.list,
    name: Annotated[str | None, typer.Argument(help="a plugin, or distribution/plugin")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="check: KEY=VALUE that the plugin is built with")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="check: what a frontend is asked to load")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """List plugins, show one with its options, or check that one keeps its promises."""
    from tilewright.cli.common import key_values, print_json
    from tilewright.errors import InputError
    from tilewright.plugin.registry import installed

    registry = installed()
    if action == Action.list:
        rows = [_row(registration) for registration in registry.registrations]
        broken = [str(each) for each in registry.broken]
        if json:
            print_json({"schema_version": 1, "plugins": rows, "broken": broken})
        else:
            _print_list(rows, broken)
        return
    if name is None:
        raise InputError(f"plugins {action} needs a name", hint=f"tilewright plugins {action} random")
    found = _named(registry, name)
    if action == Action.check:
        _check(found, key_values(option or [], "--option"), source or [], json)
    elif json:
        print_json({"schema_version": 1, "plugins": [_details(each) for each in found]})
    else:
        for registration in found:
            _print_details(_details(registration))


def _named(registry: Registry, name: str) -> list[Registration]:
    """Every plugin of that name, whatever its kind."""
    from tilewright.errors import UnknownPluginError
    from tilewright.plugin.specs import KINDS

    found = []
    for kind in KINDS:
        if any(name in (each.spec.name, each.long_name) for each in registry.of_kind(kind)):
            found.append(registry.find(kind, name))
    if not found:
        from tilewright.schema.document import suggestion

        names = sorted({each.spec.name for each in registry.registrations})
        raise UnknownPluginError(
            f"no plugin is called '{name}'{suggestion(name, names)}; installed: {', '.join(names)}"
        )
    return found


def _row(registration: Registration) -> dict[str, Any]:
    spec = registration.spec
    return {
        "kind": spec.kind,
        "name": spec.name,
        "distribution": registration.distribution,
        "version": registration.version,
        "summary": spec.summary,
        "missing": list(spec.missing()),
    }


def _details(registration: Registration) -> dict[str, Any]:
    spec = registration.spec
    return _row(registration) | {
        "needs": list(spec.needs),
        "hint": spec.hint,
        "capabilities": spec.capabilities.model_dump(mode="json"),
        "options": spec.options.model_json_schema().get("properties", {}),
        "approximations": {each.code: each.meaning for each in getattr(spec, "approximations", ())},
    }


def _print_list(rows: list[dict[str, Any]], broken: list[str]) -> None:
    widths = {
        key: max(len(key), *(len(str(row[key])) for row in rows)) if rows else 0
        for key in ("kind", "name", "distribution")
    }
    for row in rows:
        lead = "  ".join(str(row[key]).ljust(width) for key, width in widths.items())
        missing = f" (needs {', '.join(row['missing'])}, not installed)" if row["missing"] else ""
        typer.echo(f"{lead}  {row['summary']}{missing}")
    if broken:
        typer.echo("failed to load:", err=True)
        for line in broken:
            typer.echo(f"  {line}", err=True)


def _print_details(details: dict[str, Any]) -> None:
    typer.echo(f"{details['kind']} {details['name']} ({details['distribution']} {details['version']})")
    typer.echo(f"  {details['summary']}")
    for option, schema in details["options"].items():
        default = schema.get("default", "required")
        typer.echo(f"  option {option} (default {default}): {schema.get('description', '')}")
    limits = {key: value for key, value in details["capabilities"].items() if value is not None and value is not True}
    typer.echo(f"  limits: {', '.join(f'{key}={value}' for key, value in limits.items()) or 'none declared'}")
    for code, meaning in details["approximations"].items():
        typer.echo(f"  counts approximately: {meaning} ({code})")
    if details["missing"]:
        typer.echo(f"  missing: {', '.join(details['missing'])}; {details['hint'] or ''}")


def _check(found: list[Registration], options: dict[str, Any], sources: list[str], json: bool) -> None:
    """Run the conformance kit; exit code 3 if a promise is broken."""
    from tilewright.cli.common import print_json
    from tilewright.testing import check_plugin

    outcomes = []
    for registration in found:
        for outcome in check_plugin(registration, options=options, sources=sources):
            outcomes.append((registration.spec.kind, outcome))
            if not json:
                message = f": {outcome.message}" if outcome.message else ""
                typer.echo(f"{registration.spec.kind} {outcome.plugin}  {outcome.check}  {outcome.status}{message}")
    failed = [outcome for _, outcome in outcomes if not outcome.ok]
    if json:
        rows = [
            {"kind": kind, "plugin": each.plugin, "check": each.check, "status": each.status, "message": each.message}
            for kind, each in outcomes
        ]
        print_json({"schema_version": 1, "checks": rows})
    else:
        typer.echo(f"{len(outcomes) - len(failed)} of {len(outcomes)} promises kept")
    raise typer.Exit(3 if failed else 0)
