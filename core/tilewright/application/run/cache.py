"""Cache of search results on disk.

An entry is one small JSON file, named by a digest of everything that determines the result. These
are problem, architecture, rules, factors, mapper, model, options, objective, budget and seed. The
versions and the code of Tilewright and of both plugins count, too, because an edited checkout keeps
its version. An entry carries a checksum of its contents, as rows of a store of explorations do.

The checksum detects damage, not intent: whoever may write to the folder can compute it. So a cached bound is the word of
an earlier search. The mapping's legality and cost are computed again.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from tilewright import digests
from tilewright.errors import InputError, OutputError
from tilewright.files import MAX_NAME, made, read_bytes, write_text
from tilewright.plugin.guard.figures import may_bound
from tilewright.plugin.result import Result, Stop
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
from tilewright.values import Model

KEPT: tuple[Stop, ...] = ("finished", "deadline", "evaluations", "patience")
"""Ends of searches whose results are stored."""

CHECKSUM = "checksum"
"""Key of the checksum in the file of an entry."""


Cost = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Word = Annotated[str, StringConstraints(pattern=r"^\w+$", max_length=MAX_NAME)]


class Entry(Model):
    """Contents of an entry, without the checksum."""

    schema_version: Literal[2] = 2
    key: str
    best: Mapping
    value: Cost
    evaluated: Count
    valid: Count
    rejected: Count
    stop: Literal["finished", "deadline", "evaluations", "patience"]
    cpu_seconds: Cost
    wall_seconds: Cost
    seed: int
    lower_bound: Cost | None = None
    figures: dict[Word, Annotated[float, Field(allow_inf_nan=False)]] = Field({}, max_length=100)
    history: tuple[tuple[Count, Cost], ...] = ()
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
    def of(cls, key: str, result: Result) -> Entry:
        """Return the entry of a result; raise ValueError if it cannot be stored."""
        fields: dict[str, Any] = {name: getattr(result, name) for name in cls.model_fields if hasattr(result, name)}
        if result.lower_bound is not None and not math.isfinite(result.lower_bound):
            fields["lower_bound"] = None
        return cls(**(fields | {"key": key}))

    @classmethod
    def read(cls, data: bytes) -> Entry:
        """Return the entry in a file's contents; raise ValueError if they are damaged or impossible."""
        try:
            stored = json.loads(data)
        except RecursionError:
            raise ValueError("too many levels") from None
        checksum = stored.pop(CHECKSUM, None) if isinstance(stored, dict) else None
        if checksum != digests.of_data(stored):
            raise ValueError("its checksum does not hold")
        try:
            return cls.model_validate_json(json.dumps(stored))
        except ValidationError as error:
            raise ValueError(
                "; ".join(f"{'.'.join(map(str, at['loc']))} {at['msg']}" for at in error.errors()[:1])
            ) from None

    def written(self) -> str:
        """Return the text of a file, with the checksum."""
        data = self.model_dump(mode="json")
        return json.dumps({**data, CHECKSUM: digests.of_data(data)})

    def result(self) -> Result:
        figures = {name: getattr(self, name) for name in type(self).model_fields}
        del figures["schema_version"], figures["key"]
        return Result(**figures)


@dataclass(frozen=True)
class ResultCache:
    """Results of searches in one folder, which is created with the first one."""

    folder: Path

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def find(self, key: str) -> Result | None:
        """Return the result under a key, or None.

        Raises:
            ValueError: The entry is damaged.
        """
        path = self.path(key)
        if not os.path.lexists(path):
            return None
        try:
            entry = Entry.read(read_bytes(path))
        except InputError as error:
            raise ValueError(error.message) from None
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        if entry.key != key:
            raise ValueError(f"{path} is damaged: it holds another entry")
        return entry.result()

    def keep(self, key: str, result: Result) -> None:
        """Store the result of a complete search that found a mapping.

        Raises:
            OutputError: The folder cannot be written to, or the result cannot be stored.
        """
        if result.stop not in KEPT or result.best is None:
            return
        path = self.path(key)
        try:
            text = Entry.of(key, result).written()
        except ValueError as error:
            reasons = error.errors() if isinstance(error, ValidationError) else []
            raise OutputError(reasons[0]["msg"] if reasons else str(error)) from None
        made(path.parent)
        write_text(path, text)
