"""Commands `tilewright verify` and `tilewright diff-stats`: checks of mappings and cost models.

`verify` executes a mapping and compares the counts of cost models. `diff-stats` compares with the
report of another tool.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.application.api.settings import MARKED
from tilewright.application.cli import options


def verify_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="mapping file, or all files of a tool's input set"),
    ] = None,
    mapping: Annotated[Path | None, typer.Option(metavar="FILE", help="mapping file")] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="certificate from `map -o`, instead of a mapping file")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="with a certificate: number of random mappings [default: 100000; of fused layers 300]",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="with a certificate: largest space to enumerate [default: 1000000; of fused layers 1000]",
        ),
    ] = None,
    problem: options.Problem = None,
    arch: options.OtherArch = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="option of the executing cost model, e.g. max_operations=1000000"),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="executing cost model, if several are installed")
    ] = None,
    models: Annotated[
        list[str] | None,
        options.plugin_option(
            "cost model",
            "--models",
            "X,Y,...",
            "cost models to compare with the execution; may be repeated [default: all installed]",
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Execute a mapping of a small problem, or check a certificate.

    The execution tells whether the mapping is legal, complete and numerically right, and which
    counts of other cost models differ from it. The check of a certificate covers its bound and the
    cost of its mapping. Exit code 0 if everything is right, 1 if not.
    """
    import tilewright as tw
    from tilewright.application.cli.common import key_values, print_result

    keys: dict[str, object] = {"--problem": problem, "--arch": arch, "--option": option, "--by": by, "--models": models}
    others: dict[str, object] = {"--samples": samples, "--limit": limit}
    given = [*(files or []), *([] if mapping is None else [mapping])]
    _refuse_words(given, certificate, others if certificate is None else keys)
    if certificate is not None:
        asked = {name: value for name, value in (("samples", samples), ("limit", limit)) if value is not None}
        checked = tw.verify_certificate(certificate, **asked)
        print_result(checked, json, quiet, [f"warning: {warning}" for warning in checked.warnings])
        raise typer.Exit(0 if checked.right else 1)
    verification = tw.verify(
        given[0] if len(given) == 1 else given,
        problem,
        arch,
        by=by,
        options=key_values(option, "--option"),
        models=options.names(models),
    )
    print_result(verification, json, quiet)
    raise typer.Exit(0 if verification.right else 1)


def _refuse_words(given: list[Path], certificate: Path | None, useless: dict[str, object]) -> None:
    """Raise CallError unless either a mapping or a certificate is given, with its own options."""
    import tilewright as tw

    if bool(given) == (certificate is not None):
        raise tw.errors.CallError("verify needs either FILE, with a mapping, or --certificate FILE")
    odd = [name for name, value in useless.items() if value]
    if odd:
        what = "a mapping" if certificate is not None else "a certificate"
        raise tw.errors.CallError(f"{', '.join(odd)} is for {what}")


def diff_stats_command(
    recorded: Annotated[
        Path,
        typer.Argument(metavar="REPORT", help="report of the tool, e.g. timeloop-model.stats.txt", show_default=False),
    ],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="all input files of the tool", show_default=False)
    ],
    notation: Annotated[
        str | None,
        typer.Option("--from", metavar="NOTATION", help=f"notation of the files [default: {MARKED}]"),
    ] = None,
    model: Annotated[
        list[str] | None,
        options.plugin_option("cost model", "--model", "NAME", f"cost model to compare with [default: {MARKED}]"),
    ] = None,
    model_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="option of the cost model, e.g. link_transfers=false")
    ] = None,
    values: options.Set = None,
    dense: options.Dense = False,
    one_energy: options.OneEnergy = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare a report written by another tool with Tilewright's, level by level.

    Each difference is shown with its cause, if known, such as the version of the tool. Exit code 0
    if all causes are known, 1 if not.
    """
    import tilewright as tw
    from tilewright.application.cli.common import key_values, print_result, reading

    stats = tw.diff_stats(
        recorded,
        files,
        notation=notation,
        model=options.one_name(model, "--model"),
        model_options=key_values(model_option, "--model-option"),
        reading=reading(values, dense, None, one_energy),
    )
    print_result(stats, json, quiet, [f"warning: {warning}" for warning in stats.warnings])
    raise typer.Exit(1 if stats.unexplained else 0)
