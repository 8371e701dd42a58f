"""Cache of search results on disk: one SQLite file.

The key of a row is a digest of everything that determines the result. These are problem, architecture, rules, factors,
mapper, model, options, objective, budget and seed. The versions and the code of Tilewright and of both plugins count, too,
because an edited checkout keeps its version.

The checksum of a row detects damage, not intent: whoever may write to the folder can compute it. So a cached bound is the
word of an earlier search. The mapping's legality and cost are computed again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from tilewright.application.database import LOGS, Database, Schema, Table, is_of_another_program
from tilewright.errors import InputError, OutputError
from tilewright.files import MAX_NAME
from tilewright.plugin.guard.figures import may_bound
from tilewright.plugin.result import Result, Stop
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
from tilewright.values import Model, plain_fault

KEPT: tuple[Stop, ...] = ("finished", "deadline", "evaluations", "patience")
"""Ends of searches whose results are stored."""

SCHEMA = Schema(
    "cache of results",
    application=0x7411CACE,
    version=3,
    rows=(Table("results", {"key": "TEXT NOT NULL", "entry": "TEXT NOT NULL"}, ("key",)),),
)
"""Versions 1 and 2 were folders of JSON files."""
FILE = f"results-{SCHEMA.version}.sqlite"
"""Name of the file in its folder."""


NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Word = Annotated[str, StringConstraints(pattern=r"^\w+(\[[\w.\-]+\])?$", max_length=MAX_NAME)]
"""Name of a mapper's figure, such as `traffic`, or `traffic[Inputs]` of a tensor."""


class Entry(Model):
    """Contents of a row under its key, as JSON."""

    best: Mapping
    value: NonNegative
    evaluated: Count
    valid: Count
    rejected: Count
    stop: Literal["finished", "deadline", "evaluations", "patience"]
    cpu_seconds: NonNegative
    wall_seconds: NonNegative
    seed: int
    lower_bound: NonNegative | None = None
    claimed_by: str | None = None
    figures: dict[Word, Annotated[float, Field(allow_inf_nan=False)]] = Field({}, max_length=100)
    history: tuple[tuple[Count, NonNegative], ...] = ()
    objective: Objective | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        """Refuse figures that no search returns."""
        if self.lower_bound is not None and not may_bound(self.lower_bound, self.value):
            raise ValueError("the bound is above the value")
        if max(self.valid, self.rejected) > self.evaluated:
            raise ValueError("more mappings are valid or rejected than were evaluated")
        if any(later[0] < before[0] or later[1] > before[1] for before, later in pairwise(self.history)):
            raise ValueError("the history does not descend")
        return self

    @classmethod
    def of(cls, result: Result) -> Entry:
        """Return the entry of a result; raise ValueError if it cannot be stored."""
        fields: dict[str, Any] = {name: getattr(result, name) for name in cls.model_fields}
        if result.lower_bound is not None and not math.isfinite(result.lower_bound):
            fields["lower_bound"] = None
        return cls(**fields)

    def result(self) -> Result:
        return Result(**{name: getattr(self, name) for name in type(self).model_fields})


class ResultCache:
    """Results of searches in one file of a folder; both are created with the first result.

    The file is open during a call only. What cannot be read or written once is not tried again: a lock may take a minute.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / FILE
        self._failures: dict[bool, OutputError] = {}

    def find(self, key: str) -> Result | None:
        """Return the result under a key, or None.

        Raises:
            ValueError: The file or the entry is damaged.
            OutputError: Another program keeps the file locked, or it cannot be opened.
        """
        if not os.path.lexists(self.path) or self._is_empty():
            return None
        try:
            with self._opened(write=False) as base:
                rows = base.rows("results", "key = ?", key)
            return Entry.model_validate_json(rows[0]["entry"]).result() if rows else None
        except InputError as error:
            raise ValueError(error.message) from None
        except ValidationError as error:
            reasons = "; ".join(
                f"{'.'.join(map(str, fault['loc']))} {plain_fault(fault)}" for fault in error.errors()[:1]
            )
            raise ValueError(f"{self.path} is damaged: {reasons}") from None

    def keep(self, key: str, result: Result) -> None:
        """Store the result of a complete search that found a mapping.

        A damaged file is replaced by a new one. An SQLite file of another program stays unchanged.

        Raises:
            OutputError: The folder cannot be written to, or the result cannot be stored.
        """
        if result.stop not in KEPT or result.best is None:
            return
        try:
            text = Entry.of(result).model_dump_json()
        except ValueError as error:
            reasons = error.errors() if isinstance(error, ValidationError) else []
            raise OutputError(plain_fault(reasons[0]) if reasons else str(error)) from None
        try:
            self._put(key, text)
        except InputError:
            self._remove()
            self._put(key, text)

    def _is_empty(self) -> bool:
        """Return whether another program has just begun to make the file."""
        with suppress(OSError):
            return self.path.is_file() and not self.path.stat().st_size
        return False

    def _put(self, key: str, text: str) -> None:
        with self._opened(write=True) as base:
            base.put("results", key=key, entry=text)

    def _remove(self) -> None:
        """Remove a damaged file, its logs first: SQLite would restore their pages in a new file."""
        try:
            foreign = is_of_another_program(self.path, SCHEMA)
            for name in () if foreign else (*(f"{FILE}-{end}" for end in LOGS), FILE):
                self.folder.joinpath(name).unlink(missing_ok=True)
        except (OSError, ValueError) as error:
            raise OutputError(f"cannot replace {self.path}: {getattr(error, 'strerror', error)}") from None
        if foreign:
            raise OutputError(f"{self.path} is no {SCHEMA.noun}, and stays as it is")

    @contextmanager
    def _opened(self, *, write: bool) -> Iterator[Database]:
        if write in self._failures:
            raise self._failures[write]
        try:
            with closing(Database(self.path, SCHEMA, write=write)) as base:
                yield base
        except OutputError as error:
            self._failures[write] = error
            raise
