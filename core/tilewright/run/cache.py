"""Cache: what a search found, on disk under a name made of everything that decides it.

An entry is one small JSON file. Its name is the digest of problem, architecture, rules, mapper, model, options,
objective, budget, seed, and of the versions of Tilewright and of both plugins; since an edited checkout keeps its
version, of the modification times of their code too. Whatever an entry says is checked before it is believed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import tempfile
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from tilewright.plugin.result import Rejections, Result, Stop
from tilewright.schema.mapping import Mapping
from tilewright.values import Model

KEPT: tuple[Stop, ...] = ("finished", "deadline", "evaluations", "patience")
"""How a search ended whose result is worth keeping."""


class Entry(Model):
    """What is written. `value` is None where nothing was found (JSON knows no infinity)."""

    schema_version: Literal[1] = 1
    key: str
    best: Mapping | None
    value: float | None
    evaluated: int
    valid: int
    rejected: int
    stop: Stop
    cpu_seconds: float
    wall_seconds: float
    seed: int
    lower_bound: float | None = None
    figures: dict[str, float] = {}
    rejections: Rejections | None = None

    @classmethod
    def of(cls, key: str, result: Result) -> Entry:
        figures = {name: getattr(result, name) for name in cls.model_fields if hasattr(result, name)}
        return cls(**{**figures, "key": key, "value": None if result.best is None else result.value})

    def result(self) -> Result:
        figures = {name: getattr(self, name) for name in type(self).model_fields}
        del figures["schema_version"], figures["key"]
        return Result(**{**figures, "value": float("inf") if self.value is None else self.value})


@dataclass(frozen=True)
class ResultCache:
    """Results of searches in one folder, which is made when the first one is kept."""

    folder: Path

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def find(self, key: str) -> Result | None:
        """The result kept under a key.

        Raises:
            ValueError: there is an entry, and it is damaged.
        """
        path = self.path(key)
        try:
            entry = Entry.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise ValueError(f"{path} is damaged: {error.error_count()} faults") from None
        if entry.key != key:
            raise ValueError(f"{path} is damaged: it holds another entry")
        return entry.result()

    def keep(self, key: str, result: Result) -> None:
        """Write a result that was not interrupted, all of it or nothing.

        Raises:
            OSError: the folder cannot be written to.
        """
        if result.stop not in KEPT:
            return
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(Entry.of(key, result).model_dump_json())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def digest(parts: MappingOf[str, Any], plugins: tuple[object, ...]) -> str:
    """The key of what decides a search: JSON data, and the objects whose code takes part."""
    packages = sorted({"tilewright", *(type(plugin).__module__.partition(".")[0] for plugin in plugins)})
    data = {
        **parts,
        "tilewright": importlib.metadata.version("tilewright"),
        "code": {package: _modified(package) for package in packages},
    }
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


@cache
def _modified(package: str) -> str:
    """When and how much the code of a package was changed last; empty if it is in no files."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    root = Path(spec.origin)
    files = sorted(root.parent.rglob("*.py")) if spec.submodule_search_locations else [root]
    seen = [(str(file.relative_to(root.parent)), file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()
