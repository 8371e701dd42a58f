"""Command `tilewright space`: points of a space of architectures."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright.application.cli import options


def space_command(
    space: Annotated[str, typer.Argument(help="space of architectures: library name or YAML file", show_default=False)],
    points: Annotated[int | None, typer.Option(metavar="N", min=1, help="check only the first N points")] = None,
    json: options.Json = False,
) -> None:
    """Count the points of an architecture space, and report which are valid and why the others are not."""
    import tilewright as tw
    from tilewright.application.api.hardware.spaces import SpaceReport
    from tilewright.application.cli.common import print_result

    print_result(SpaceReport.of(tw.architecture_space(space), points), json)
