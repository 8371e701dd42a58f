"""Command `tilewright estimate`: energy, area and leakage of a component."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright.application.cli import options


def estimate_command(
    component: Annotated[str, typer.Argument(help="such as sram, register, dram, mac", show_default=False)],
    technology: Annotated[
        float, typer.Option("--technology", metavar="NM", help="technology node in nanometres", show_default=False)
    ],
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="NAME=VALUE", help="such as size_bits=524288 or width_bits=64")
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(autocompletion=options.names_of("estimator"), metavar="NAME", help="the only estimator to query"),
    ] = None,
    json: options.Json = False,
) -> None:
    """Print energy, area and leakage of a component, with their source and accuracy."""
    import tilewright as tw
    from tilewright.application.cli.common import key_values, print_result

    sizes = key_values(size, "--size")
    print_result(tw.estimate(component, sizes, technology_nm=technology, estimator=estimator), json)
