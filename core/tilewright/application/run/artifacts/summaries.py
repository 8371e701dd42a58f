"""Common parts of a run's reports: title, summary files and messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.network import MappedLayer
from tilewright.errors import OutputError
from tilewright.files import RunFolder
from tilewright.schema.workload import Workload
from tilewright.tables import csv_text


def title_of(workload: Workload, run: RunConfiguration, layers: Sequence[MappedLayer]) -> str:
    """Return a title with workload, architecture, mappers and model."""
    used = list(dict.fromkeys((layer.instead or run.mapper_record).name for layer in layers))
    return (
        f"{workload.name} on {run.architecture.name} (constraints {run.rules}), "
        f"mapper {' and '.join(used or [run.mapper_record.name])}, model {run.model.record.name}"
    )


def head_of(workload: Workload, run: RunConfiguration) -> dict[str, Any]:
    """Return the first fields of a JSON document."""
    return {
        "workload": workload.name,
        "content": workload.content,
        "arch": run.architecture.name,
        "constraints": run.rules,
        "mapper": run.mapper_record.name,
        "model": run.model.record.name,
    }


def save_summary(
    folder: RunFolder, name: str, data: dict[str, Any], columns: Sequence[str], rows: Sequence[dict[str, Any]]
) -> None:
    """Write `NAME.json` and `NAME.csv`."""
    folder.write(f"{name}.json", json.dumps(data, indent=2) + "\n")
    folder.write(f"{name}.csv", csv_text(columns, rows))


def folder_message(folder: Path | None, unwritten: OutputError | None) -> list[str]:
    """Return the folder of the files, or the error."""
    if folder is None:
        return []
    return [f"written to {folder}" if unwritten is None else f"error: {unwritten}"]


def interrupted_message(
    stopped: Sequence[str], missing: int, of: int, what: str = "layers were not searched"
) -> list[str]:
    """Return messages on interrupted and missing layers."""
    texts = [f"interrupted: the best mapping so far is shown for {', '.join(stopped)}"] if stopped else []
    return [*texts, f"interrupted: {missing} of {of} {what}"] if missing else texts


def fallback_message(run: RunConfiguration, layers: Iterable[MappedLayer]) -> list[str]:
    """Return a message on layers that the fallback mapper mapped."""
    instead = {layer.name: layer.instead.name for layer in layers if layer.instead is not None and layer.error is None}
    if not instead:
        return []
    others, which = " and ".join(dict.fromkeys(instead.values())), ", ".join(instead)
    return [f"mapped by {others}, since {run.mapper_record.name} can prove nothing there: {which}"]
