"""Options that `map` and `compare` share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Workload = Annotated[
    str,
    typer.Argument(help="ONNX file, workload or problem YAML, library name (resnet50), NAME/LAYER, or a formula"),
]
Arch = Annotated[str, typer.Option("--arch", help="architecture: library name or YAML file")]
Objective = Annotated[
    str,
    typer.Option(
        "--objective", metavar="edp|energy|cycles", help="what the search makes small; edp is energy x cycles"
    ),
]
Constraints = Annotated[
    str | None,
    typer.Option("--constraints", help="name, file or none; default: the architecture's published dataflow"),
]
Seconds = Annotated[float | None, typer.Option("--seconds", min=0.0, help="time for each search of a distinct layer")]
Evaluations = Annotated[
    int | None,
    typer.Option(
        "--evaluations",
        min=1,
        help="mappings per search (default 100,000; none with --seconds, or if the mapper ends by itself)",
    ),
]
Patience = Annotated[
    int | None, typer.Option("--patience", min=1, help="stop a search after this many mappings without a better one")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="the same seed gives the same result")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="folder for mapping files and summaries")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="layers mapped at once, each in a process")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="search anew, and keep no results for the next time")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document")]
