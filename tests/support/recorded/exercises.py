"""What Timeloop printed for its authors' own exercises and designs, 2019 to 2024, and the files that it was given.

`tests/data/timeloop/exercises.json.gz`: 94 runs recorded in the repository that it names; texts by their hash, since many runs
share files. `exercises.csv`: every figure of theirs that is not ours, and why.
"""

from __future__ import annotations

import csv
import functools
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support import DATA

FOLDER = DATA / "timeloop"
REPORT = "stats.txt"


@dataclass(frozen=True)
class Run:
    """One run. `files`: name -> text, in the order in which Timeloop was given them; `report`: what it printed."""

    id: str
    date: str
    files: Mapping[str, str]
    report: str

    def write(self, folder: Path) -> tuple[Path, list[Path]]:
        """The report and the files, written."""
        paths = []
        for name, text in {REPORT: self.report, **self.files}.items():
            paths.append(folder / name)
            paths[-1].write_text(text, encoding="utf-8")
        return paths[0], paths[1:]


@functools.cache
def runs() -> tuple[Run, ...]:
    """All, by date."""
    data = json.loads(gzip.decompress((FOLDER / "exercises.json.gz").read_bytes()))
    cases = []
    for case in data["cases"]:
        files = {name: data["texts"][text] for name, text in case["files"].items()}
        cases.append(Run(case["id"], case["date"], files, files.pop(REPORT)))
    return tuple(cases)


@dataclass(frozen=True)
class Difference:
    """A row of the table."""

    run: str
    level: str
    tensor: str
    figure: str
    recorded: str
    ours: str
    causes: str


@functools.cache
def differences() -> Mapping[str, tuple[Difference, ...]]:
    """Run -> its rows of the table."""
    rows: dict[str, tuple[Difference, ...]] = {run.id: () for run in runs()}
    with (FOLDER / "exercises.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[row["run"]] += (Difference(**row),)
    return rows
