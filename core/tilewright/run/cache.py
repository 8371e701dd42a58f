"""Cache of search results on disk.

An entry is one small JSON file, named by a digest of everything that determines the result. These
are problem, architecture, rules, factors, mapper, model, options, objective, budget and seed. The
versions and the code of Tilewright and of both plugins count, too, because an edited checkout keeps
its version. Entries are checked when they are read.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import os
import re
from collections.abc import Mapping as MappingOf
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from tilewright import digests
from tilewright.errors import InputError
from tilewright.files import made, read_bytes, write_text
from tilewright.plugin.result import Result, Stop
from tilewright.schema.mapping import Mapping
from tilewright.schema.report.content import Objective
from tilewright.values import Model

KEPT: tuple[Stop, ...] = ("finished", "deadline", "evaluations", "patience")
"""Ends of searches whose results are stored."""

_IMPORT = re.compile(rb"^\s*(?:from|import) (tilewright_\w+)", re.MULTILINE)

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Entry(Model):
    """Contents of an entry."""

    schema_version: Literal[1] = 1
    key: str
    best: Mapping
    value: Finite
    evaluated: int
    valid: int
    rejected: int
    stop: Stop
    cpu_seconds: Finite
    wall_seconds: Finite
    seed: int
    lower_bound: Finite | None = None
    figures: dict[str, Finite] = {}
    history: tuple[tuple[int, Finite], ...] = ()
    objective: Objective | None = None

    @classmethod
    def of(cls, key: str, result: Result) -> Entry:
        found = {name: getattr(result, name) for name in cls.model_fields if hasattr(result, name)}
        found["key"] = key
        found["figures"] = {name: value for name, value in result.figures.items() if math.isfinite(value)}
        if result.lower_bound is not None and not math.isfinite(result.lower_bound):
            found["lower_bound"] = None
        return cls(**found)

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
            entry = Entry.model_validate_json(read_bytes(path))
        except InputError as error:
            raise ValueError(error.message) from None
        except ValidationError as error:
            raise ValueError(f"{path} is damaged: {error.error_count()} faults") from None
        if entry.key != key:
            raise ValueError(f"{path} is damaged: it holds another entry")
        return entry.result()

    def keep(self, key: str, result: Result) -> None:
        """Store the result of a complete search that found a mapping.

        Raises:
            OutputError: The folder cannot be written to.
        """
        if result.stop not in KEPT or result.best is None:
            return
        path = self.path(key)
        made(path.parent)
        write_text(path, Entry.of(key, result).model_dump_json())


def digest(parts: MappingOf[str, Any], plugins: tuple[object, ...]) -> str:
    """Return the key of a search, from JSON data and from the plugin objects whose code it runs."""
    packages = sorted({"tilewright", *(type(plugin).__module__.partition(".")[0] for plugin in plugins)})
    data = {
        **parts,
        "tilewright": importlib.metadata.version("tilewright"),
        "code": {package: code_of(package) for package in packages},
    }
    return digests.of_data(data)


@cache
def code_of(package: str) -> str:
    """Return the digest of a package's code, the same for all installations; empty without files.

    The code includes the packages `tilewright_*` that it imports.
    """
    packages, files = [package], list[Path]()
    for name in packages:
        with suppress(ValueError):  # a module without a spec, such as __main__
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.origin is not None:
                root = Path(spec.origin)
                found = list(root.parent.rglob("*.py")) if spec.submodule_search_locations else [root]
                imported = {each.decode() for path in found for each in _IMPORT.findall(path.read_bytes())}
                packages += sorted(imported - set(packages))
                files += found
    return digests.of_code(files) if files else ""
