"""`tilewright evaluate`: what a mapping costs, by one model or several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tilewright.plugin.adapter import InputSet
    from tilewright.schema.report import Report


def evaluate_command(
    files: Annotated[list[Path] | None, typer.Argument(help="a tool's own input files, with --from")] = None,
    mapping: Annotated[Path | None, typer.Option("--mapping", help="mapping file")] = None,
    problem: Annotated[str | None, typer.Option("--problem", help="problem file, formula or NAME/LAYER")] = None,
    arch: Annotated[str | None, typer.Option("--arch", help="architecture name or file")] = None,
    notation: Annotated[str | None, typer.Option("--from", help="notation of the files, e.g. timeloop")] = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="cost model; may be given several times")] = None,
    model_option: Annotated[
        list[str] | None,
        typer.Option("--model-option", help="KEY=VALUE for all cost models, MODEL.KEY=VALUE for one of several"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Price a mapping. A mapping file written by `map` needs nothing else; --problem and --arch override."""
    from tilewright.cli.common import key_values, note, options_by_name, print_json
    from tilewright.cli.sidebyside import disagreements, print_side_by_side
    from tilewright.errors import PluginError
    from tilewright.run.evaluation import FAILED, build_model, evaluate, evaluate_directives

    inputs = _from_notation(notation, files or []) if notation else read_inputs(mapping, problem, arch, files)
    for warning in inputs.warnings:
        note(f"warning: {warning}")
    names = model or ["timeloop" if inputs.directives is None else "maestro"]
    options = options_by_name(key_values(model_option or [], "--model-option"), names, "--model-option")
    models = [build_model(name, options[name]) for name in names]
    if inputs.directives is None:
        assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
        reports = [evaluate(model, inputs.problem, inputs.architecture, inputs.mapping) for model in models]
    else:
        reports = [report for model in models for report in evaluate_directives(model, inputs.directives)]
    failures = [reason for report in reports for reason in report.reasons[:1] if reason.code == FAILED]
    if len(failures) == len(reports):
        raise PluginError(failures[0].message)
    together = len(reports) > 1 and inputs.directives is None
    if json:
        data: dict[str, Any] = {"schema_version": 1, "results": [report_data(report) for report in reports]}
        if together:
            data["differences"] = disagreements(reports)
        print_json(data)
    elif together:
        print_side_by_side(reports)
    else:
        for report in reports:
            print_report(report)


def report_data(report: Report) -> dict[str, Any]:
    """A report as plain JSON data."""
    return report.model_dump(mode="json")


def _from_notation(notation: str, files: list[Path]) -> InputSet:
    from tilewright.errors import InputError
    from tilewright.plugin.registry import installed
    from tilewright.plugin.specs import AdapterSpec

    if not files:
        raise InputError("--from needs the files to read", hint=f"tilewright evaluate --from {notation} FILE...")
    inputs = installed().make(AdapterSpec, notation).parse(files)
    for what in ("problem", "architecture", "mapping") if inputs.directives is None else ():
        if getattr(inputs, what) is None:
            names = ", ".join(str(file) for file in files)
            raise InputError(f"{names}: no {what} in these files", hint="give all files of the set")
    return inputs


def read_inputs(mapping: Path | None, problem: str | None, arch: str | None, files: list[Path] | None) -> InputSet:
    """A mapping file with its problem and architecture, from the file or given beside it. Raises InputError."""
    from tilewright.api.load import load_architecture, load_problem
    from tilewright.errors import InputError
    from tilewright.plugin.adapter import InputSet
    from tilewright.plugin.registry import installed
    from tilewright.schema.mapped import MappedProblem, read_mapping

    if files:
        raise InputError("files without an option need --from NOTATION", hint="or give the mapping as --mapping FILE")
    if mapping is None:
        raise InputError("nothing to price", hint="give --mapping FILE, or --from NOTATION FILE...")
    found = read_mapping(mapping)
    whole = found if isinstance(found, MappedProblem) else None
    bare = found.mapping if isinstance(found, MappedProblem) else found
    for what, given in (("problem", problem), ("arch", arch)):
        if given is None and whole is None:
            raise InputError(f"{mapping} holds a mapping only", hint=f"add --{what}")
    return InputSet(
        problem=load_problem(problem, installed()) if problem else whole.problem if whole else None,
        architecture=load_architecture(arch) if arch else whole.architecture if whole else None,
        mapping=bare,
    )


def print_report(report: Report) -> None:
    """The report for people."""
    from rich.table import Table

    from tilewright.cli.common import console, figure

    out = console()
    out.print(f"{report.problem} by {report.model}: {report.macs:,} operations")
    for warning in report.warnings:
        out.print(f"  warning: {warning}")
    if not report.valid:
        out.print("  not valid:")
        for reason in report.reasons:
            out.print(f"  - {reason}")
        return
    out.print(
        f"  energy {figure(report.energy_pj)} pJ, {figure(report.cycles)} cycles, EDP {figure(report.edp)} pJ x cycles, "
        f"utilization {figure(report.utilization)}"
    )
    table = Table(box=None, pad_edge=False)
    for column, justify in (
        ("level", "left"), ("tensor", "left"), ("instances", "right"), ("tile words", "right"),
        ("reads", "right"), ("fills", "right"), ("updates", "right"), ("energy pJ", "right"),
    ):  # fmt: skip
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for level in report.levels:
        for index, (name, counts) in enumerate(level.tensors.items()):
            table.add_row(
                level.name if index == 0 else "",
                name,
                *(figure(n) for n in (counts.instances, counts.tile_words, counts.reads, counts.fills, counts.updates)),
                figure(counts.energy_pj),
            )
    table.add_row("compute", "", "", "", "", "", "", figure(report.compute_energy_pj))
    out.print(table)
    out.print("  counts are words per instance; energy is over all instances")
