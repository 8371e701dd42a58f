"""`tilewright verify`: execute a mapping; is it right, and do the cost models count what really happens?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tilewright.plugin.adapter import InputSet
    from tilewright.plugin.specs import Approximation
    from tilewright.run.differences import Difference
    from tilewright.schema.report import Report


@dataclass(frozen=True)
class Judged:
    """Another model's report beside the execution. `compared`: how many counts both have."""

    report: Report
    compared: int
    differences: tuple[Difference, ...]


def verify_command(
    mapping: Annotated[Path, typer.Option("--mapping", help="mapping file")],
    problem: Annotated[str | None, typer.Option("--problem", help="problem file, formula or NAME/LAYER")] = None,
    arch: Annotated[str | None, typer.Option("--arch", help="architecture name or file")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="KEY=VALUE for the cost model that executes, e.g. max_operations=1000000"),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="the cost model that executes, where several are installed")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Execute a mapping of a small problem: is it legal, complete and numerically right, and which counts of the other
    cost models differ from what really happens? Exit code 0 when it is right, 1 when not."""
    from tilewright.cli.common import key_values, print_json
    from tilewright.cli.evaluate import read_inputs
    from tilewright.run.evaluation import executing_model

    inputs = read_inputs(mapping, problem, arch, None)
    judge = executing_model(by)
    executed = _execute(inputs, judge, key_values(option or [], "--option"))
    others = _others(inputs, judge, executed) if executed.valid else []
    if json:
        print_json(_data(inputs, executed, others))
    else:
        _print_judgement(inputs, executed)
        for other in others:
            _print_differences(other)
    raise typer.Exit(0 if executed.valid else 1)


def _execute(inputs: InputSet, judge: str, options: dict[str, Any]) -> Report:
    """Raises NotConformableError if the problem is too large to execute."""
    from tilewright.run.evaluation import bind, build_model

    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    return bind(build_model(judge, options), inputs.problem, inputs.architecture).explain(inputs.mapping)


def _others(inputs: InputSet, judge: str, executed: Report) -> list[Judged]:
    """What all other installed cost models say; refusals and failures are reports too."""
    from tilewright.plugin.registry import installed
    from tilewright.plugin.specs import CostModelSpec
    from tilewright.run.evaluation import build_model, evaluate

    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    found = []
    for registration in installed().of_kind(CostModelSpec):
        spec = registration.spec
        if registration.name == judge or not isinstance(spec, CostModelSpec) or spec.missing():
            continue
        report = evaluate(build_model(registration.name), inputs.problem, inputs.architecture, inputs.mapping)
        found.append(_judge(inputs, executed, report, spec.approximations))
    return found


def _judge(inputs: InputSet, executed: Report, report: Report, approximations: tuple[Approximation, ...]) -> Judged:
    from tilewright.run.differences import compared, differences

    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    if not report.valid:
        return Judged(report, 0, ())
    found = differences(inputs.problem, inputs.architecture, inputs.mapping, executed, report, approximations)
    return Judged(report, compared(executed, report), found)


def _legality(inputs: InputSet) -> list[Any]:
    from tilewright.mapspace.legality import legality

    assert inputs.problem is not None and inputs.architecture is not None and inputs.mapping is not None
    return list(legality(inputs.problem, inputs.architecture, inputs.mapping).reasons)


def _data(inputs: InputSet, executed: Report, others: list[Judged]) -> dict[str, Any]:
    ran = executed.execution
    return {
        "schema_version": 1,
        "right": executed.valid,
        "legal": not _legality(inputs),
        "complete": None if ran is None else ran.complete,
        "result": None if ran is None else ran.wrong_words == 0,
        "reasons": [reason.model_dump(mode="json") for reason in executed.reasons],
        "executed": executed.model_dump(mode="json"),
        "models": [
            {
                "model": other.report.model,
                "valid": other.report.valid,
                "reasons": [reason.model_dump(mode="json") for reason in other.report.reasons],
                "warnings": list(other.report.warnings),
                "cycles": other.report.cycles,
                "energy_pj": other.report.energy_pj,
                "compared": other.compared,
                "differences": [each.model_dump(mode="json") for each in other.differences],
            }
            for other in others
        ],
    }


def _print_judgement(inputs: InputSet, executed: Report) -> None:
    from tilewright.cli.common import console, figure

    out = console()
    broken, ran = _legality(inputs), executed.execution
    out.print(f"{executed.problem}: {executed.macs:,} operations, executed one by one")
    out.print(f"  legal     {'no' if broken else 'yes'}")
    for reason in broken:
        out.print(f"  - {reason}")
    if ran is None:
        out.print("  complete  not known: it cannot be executed")
    else:
        out.print(f"  complete  {'yes: every iteration exactly once' if ran.complete else 'no'}")
        total = f"{ran.result_words:,} words of the result"
        right = (
            f"yes: {total} are what they should be"
            if not ran.wrong_words
            else f"no: {ran.wrong_words:,} of {total} differ"
        )
        out.print(f"  right     {right}")
    for reason in executed.reasons[len(broken) :]:
        out.print(f"  - {reason}")
    if executed.valid:
        out.print(f"  energy {figure(executed.energy_pj)} pJ, {figure(executed.cycles)} cycles")


def _print_differences(other: Judged) -> None:
    from rich.table import Table

    from tilewright.cli.common import console, figure

    out, report = console(), other.report
    if not report.valid:
        out.print(f"{report.model} does not price it:")
        for reason in report.reasons:
            out.print(f"  - {reason}")
        return
    for warning in report.warnings:
        out.print(f"{report.model} warns: {warning}")
    figures = f"energy {figure(report.energy_pj)} pJ, {figure(report.cycles)} cycles"
    if not other.differences:
        out.print(f"{report.model}: all {other.compared} counts are what really happens; {figures}")
        return
    out.print(f"{report.model}: {len(other.differences)} of {other.compared} counts differ; {figures}")
    table = Table(box=None, pad_edge=False)
    for column in ("level", "tensor", "action"):
        table.add_column(column)
    for column in ("executed", report.model):
        table.add_column(column, justify="right")
    table.add_column("because", overflow="fold")
    for each in other.differences:
        causes = (
            "; ".join(cause.message for cause in each.causes) or "no approximation that the model declares explains it"
        )
        table.add_row(each.level, each.tensor, each.action, figure(each.executed), figure(each.counted), causes)
    out.print(table)
    out.print("  counts are words per instance, averages over the instances that work")
