"""What the reports of a run share: their first words, the files that sum them up, and what is told beside the figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tilewright.errors import OutputError
from tilewright.files import RunFolder
from tilewright.run.configuration import RunConfiguration
from tilewright.run.network import MappedLayer
from tilewright.schema.workload import Workload
from tilewright.tables import csv_text


def title_of(workload: Workload, run: RunConfiguration, layers: Sequence[MappedLayer]) -> str:
    """What was mapped where, and by whom."""
    used = list(dict.fromkeys((layer.instead or run.mapper_record).name for layer in layers))
    return (
        f"{workload.name} on {run.architecture.name} (constraints {run.constraints.name}), "
        f"mapper {' and '.join(used or [run.mapper_record.name])}, model {run.model.record.name}"
    )


def head_of(workload: Workload, run: RunConfiguration) -> dict[str, Any]:
    """The same as a JSON document begins."""
    return {
        "schema_version": 1,
        "workload": workload.name,
        "arch": run.architecture.name,
        "constraints": run.constraints.name,
        "mapper": run.mapper_record.name,
        "model": run.model.record.name,
    }


def save_summary(
    folder: RunFolder, name: str, data: dict[str, Any], columns: Sequence[str], rows: Sequence[dict[str, Any]]
) -> None:
    """Write `NAME.json` and `NAME.csv`."""
    folder.write(f"{name}.json", json.dumps(data, indent=2) + "\n")
    folder.write(f"{name}.csv", csv_text(columns, rows))


def place_told(folder: Path | None, unwritten: OutputError | None) -> list[str]:
    """Where the files are, or why they are not."""
    if folder is None:
        return []
    return [f"written to {folder}" if unwritten is None else f"error: {unwritten}"]


def interrupted_told(
    stopped: Sequence[str], missing: int, of: int, what: str = "layers were not searched"
) -> list[str]:
    """What an interruption cut short, and what it left out."""
    found = [f"interrupted: the best so far is what there is of {', '.join(stopped)}"] if stopped else []
    return [*found, f"interrupted: {missing} of {of} {what}"] if missing else found


def instead_told(run: RunConfiguration, layers: Iterable[MappedLayer]) -> list[str]:
    """Which layers another mapper mapped."""
    instead = {layer.name: layer.instead.name for layer in layers if layer.instead is not None}
    if not instead:
        return []
    others, which = " and ".join(dict.fromkeys(instead.values())), ", ".join(instead)
    return [f"mapped by {others}, since {run.mapper_record.name} can prove nothing there: {which}"]
