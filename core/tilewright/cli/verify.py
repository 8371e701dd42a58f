"""Commands `tilewright verify` and `tilewright diff-stats`: checks of mappings and cost models.

`verify` executes a mapping and compares the counts of cost models. `diff-stats` compares with the
report of another tool.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import options


def verify_command(
    mapping: Annotated[Path | None, typer.Option(metavar="FILE", help="mapping file")] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="certificate that `map -o` wrote, in place of a mapping file")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="of a certificate: mappings drawn at random [default: 100000]"),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="of a certificate: largest space enumerated [default: 1000000]"),
    ] = None,
    problem: options.Problem = None,
    arch: options.OtherArch = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="for the cost model that executes, e.g. max_operations=1000000"),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="the cost model that executes, where several are installed")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Execute a mapping of a small problem: is it legal, complete and numerically right, and which counts of the other
    cost models differ from what really happens? Or check a certificate: is its bound true, and does its mapping cost what it
    says? Exit code 0 when it is right, 1 when not."""
    import tilewright as tw
    from tilewright.cli.common import key_values, show

    own: dict[str, object] = {"--problem": problem, "--arch": arch, "--option": option, "--by": by}
    others: dict[str, object] = {"--samples": samples, "--limit": limit}
    _refuse_words(mapping, certificate, others if certificate is None else own)
    if certificate is not None:
        asked = {name: value for name, value in (("samples", samples), ("limit", limit)) if value is not None}
        checked = tw.verify_certificate(certificate, **asked)
        show(checked, json, quiet, [f"warning: {warning}" for warning in checked.warnings])
        raise typer.Exit(0 if checked.right else 1)
    assert mapping is not None
    found = tw.verify(mapping, problem, arch, by=by, options=key_values(option, "--option"))
    show(found, json, quiet)
    raise typer.Exit(0 if found.right else 1)


def _refuse_words(mapping: Path | None, certificate: Path | None, useless: dict[str, object]) -> None:
    """Raise CallError unless exactly one of mapping and certificate is given, with its own options."""
    import tilewright as tw

    if (mapping is None) == (certificate is None):
        raise tw.errors.CallError("verify takes either --mapping FILE or --certificate FILE")
    given = [name for name, value in useless.items() if value]
    if given:
        what = "a mapping" if certificate is not None else "a certificate"
        raise tw.errors.CallError(f"{', '.join(given)} is for {what}")


def diff_stats_command(
    recorded: Annotated[
        Path, typer.Argument(metavar="REPORT", help="the tool's own, e.g. timeloop-model.stats.txt", show_default=False)
    ],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="all files that the tool was given", show_default=False)
    ],
    notation: Annotated[str, typer.Option("--from", metavar="NOTATION", help="notation of the files")] = "timeloop",
    model: Annotated[str, typer.Option(metavar="NAME", help="cost model to lay beside it")] = "timeloop",
    model_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="for the cost model, e.g. link_transfers=false")
    ] = None,
    values: options.Set = None,
    dense: options.Dense = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Lay a report that a tool wrote beside ours, level by level, with the cause of each difference that is known, such as
    the tool's version. Exit code 0 when all causes are known, 1 when not."""
    import tilewright as tw
    from tilewright.cli.common import key_values, reading, show

    found = tw.diff_stats(
        recorded,
        files,
        notation=notation,
        model=model,
        model_options=key_values(model_option, "--model-option"),
        reading=reading(values, dense, None),
    )
    show(found, json, quiet, [f"warning: {warning}" for warning in found.warnings])
    raise typer.Exit(1 if found.unexplained else 0)
