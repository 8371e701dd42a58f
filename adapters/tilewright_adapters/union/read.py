"""Parser of Union's files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.document import Document, read_document, suggestion, validate
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.faults import placed
from tilewright_adapters.union.layout import OPERATIONS, UnionEntry, UnionFile, UnionProblem, one_spelling

WINDOWS = {"Y": ("P", "R"), "X": ("Q", "S")}
"""The input's row or column -> that of the output, and the filter dimension along it."""

Sizes = dict[str, int]


@dataclass
class _Sections:
    """Parts of all files, with their locations."""

    found: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Document] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        document = one_spelling(read_document(path))
        file = validate(UnionFile, document)
        for part in ("problem", "architecture", "mapping", "constraints"):
            value = getattr(file, part)
            if value is None:
                continue
            if part in self.found:
                first = self.places[part].locate((part,))
                raise InputError(f"{part} is repeated; the first is at {first}", location=document.locate((part,)))
            self.found[part], self.places[part] = value, document

    def at(self, *path: str | int) -> AbstractContextManager[None]:
        """Return a context that converts errors to InputError at this location."""
        return placed(self.places[str(path[0])].locate(path))


def read_files(files: Sequence[Path]) -> InputSet:
    """Read all files as one input set. Raises InputError with file and line."""
    sections = _Sections()
    for path in files:
        sections.add(path)
    documents, warnings = sections.found, list[str]()
    if not documents:
        raise InputError("no problem, architecture or mapping in these files")
    problem = architecture = mapping = None
    rows = _Rows.of(documents.get("problem"))
    if "problem" in documents:
        with sections.at("problem"):
            problem = _problem(documents["problem"], rows)
        if rows.read:
            pairs = ", ".join(f"{name} as {WINDOWS[name][0]}" for name in rows.read)
            warnings.append(f"rows and columns of the input are read as those of the output: {pairs}")
    if "architecture" in documents:
        with sections.at("architecture"):
            architecture = _architecture(documents["architecture"])
    if "mapping" in documents:
        with sections.at("mapping"):
            if problem is None or architecture is None:
                missing = "problem" if problem is None else "architecture"
                raise InputError(f"a mapping needs its {missing}", hint=f"add the {missing}")
            mapping = _mapping(sections, problem, architecture, rows)
    return InputSet(problem, architecture, mapping, documents.get("constraints"), warnings=tuple(warnings))


@dataclass(frozen=True)
class _Rows:
    """Dimensions as in the file, and those that count the input's rows and columns (`read`).

    The output subtracts the filter's dimension from these.
    """

    dimensions: tuple[str, ...] = ()
    read: tuple[str, ...] = ()

    @classmethod
    def of(cls, problem: UnionProblem | None) -> _Rows:
        if problem is None:
            return cls()
        names, texts = problem.dimensions, [text for space in problem.data_space for text in space.projection]
        read = tuple(
            row
            for row, (output, window) in WINDOWS.items()
            if output not in names and any(re.search(rf"\b{row}\s*-\s*{window}\b", text) for text in texts)
        )
        return cls(names, read)

    def name(self, name: str) -> str:
        return WINDOWS[name][0] if name in self.read else name

    def sizes(self, values: Sequence[int], what: str) -> Sizes:
        """Return sizes by dimension, with the input's rows converted to the output's.

        Raises:
            InputError: the number of values is wrong, or there is no output.
        """
        if len(values) != len(self.dimensions):
            dimensions = ", ".join(self.dimensions)
            raise InputError(f"{what} has {len(values)} numbers; expected {len(self.dimensions)}, for {dimensions}")
        given = dict(zip(self.dimensions, values, strict=True))
        for row in self.read:
            window = WINDOWS[row][1]
            if given[row] < given[window]:
                raise InputError(
                    f"{what}: {given[row]} of {row} with {given[window]} of {window} make no output",
                    hint=f"a tile of {row} spans at least the tile of {window}",
                )
        return {
            self.name(name): size - given[WINDOWS[name][1]] + 1 if name in self.read else size
            for name, size in given.items()
        }

    def coordinate(self, text: str) -> str:
        """Return a coordinate: `Y` of an input becomes `P + R`, `Y - R` of the output `P`."""
        for row in self.read:
            output, window = WINDOWS[row]
            text = re.sub(rf"\b{row}\s*-\s*{window}\b", output, text)
            text = re.sub(rf"\b{row}\b", f"{output} + {window}", text)
        return text


def order_of(words: Sequence[str], dimensions: Sequence[str]) -> tuple[str, ...]:
    """Split `ECABD` into letters unless a dimension has that name."""
    return tuple(words[0]) if len(words) == 1 and words[0] not in dimensions else tuple(words)


def operation_of(word: str | None) -> str | None:
    """Return Union's operation in Tilewright's terms; unknown ones stay unchanged."""
    return None if word is None else OPERATIONS.get(word, word)


def _problem(data: UnionProblem, rows: _Rows) -> Problem:
    odd = sorted(set(rows.dimensions).symmetric_difference(data.instance))
    if odd or len(set(rows.dimensions)) != len(rows.dimensions):
        raise InputError(f"dimensions and instance must name the same dimensions, once; look at {', '.join(odd)}")
    tensors = []
    for number, space in enumerate(data.data_space):
        role = "output" if space.read_write else "input" if number == 0 else "weight"
        projection = [rows.coordinate(text) for text in space.projection]
        tensors.append({"name": space.name, "role": space.role or role, "projection": projection})
    sizes = rows.sizes([data.instance[name] for name in rows.dimensions], "instance")
    return Problem.model_validate(
        {
            "name": data.name,
            "source": data.source,
            "operation": operation_of(data.operation),
            "unit_operation": data.unit_operation,
            "dimensions": sizes,
            "tensors": tensors,
        }
    )


def _architecture(data: Any) -> Architecture:
    clusters = tuple(
        Cluster(name=cluster.cluster, memories=cluster.memory, fanout=cluster.fanout) for cluster in data.clusters
    )
    return Architecture(
        name=data.name,
        source=data.source,
        clock_ghz=data.clock_ghz,
        technology_nm=data.technology_nm,
        clusters=clusters,
        compute=data.compute,
    )


def _mapping(sections: _Sections, problem: Problem, architecture: Architecture, rows: _Rows) -> Mapping:
    entries: list[Entry] = []
    for number, given in enumerate(sections.found["mapping"]):
        with sections.at("mapping", number):
            _known("cluster", [given.target_cluster], architecture.cluster_index)
            _known("tensor", [*(given.keep or ()), *given.unicast], problem.tensor_names)
            before = [entry.target for entry in entries]
            default = kept_by_default(problem, architecture, given.target_cluster, before)
            entries.append(_entry(given, rows, default))
    return Mapping(entries=tuple(entries))


def _known(what: str, names: Sequence[str], known: Any) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"unknown {what} '{name}'{suggestion(name, known)}; known: {', '.join(known)}")


def kept_by_default(
    problem: Problem, architecture: Architecture, target: str, before: Sequence[str]
) -> tuple[str, ...] | None:
    """Return the tensors that an entry keeps by default.

    The first entry on a cluster with memories keeps all that these may hold; other entries keep none.
    """
    cluster = architecture.cluster(target)
    if cluster.is_virtual or target in before:
        return None
    tensors = [tensor.name for tensor in problem.tensors if any(memory.may_hold(tensor) for memory in cluster.memories)]
    return tuple(tensors)


def _entry(given: UnionEntry, rows: _Rows, default: tuple[str, ...] | None) -> Entry:
    def order(words: Sequence[str]) -> tuple[str, ...]:
        return tuple(rows.name(name) for name in order_of(words, rows.dimensions))

    return Entry(
        target=given.target_cluster,
        keep=given.keep if "keep" in given.model_fields_set else default,
        temporal_order=order(given.temporal_order),
        temporal_tile_sizes=FrozenDict(rows.sizes(given.temporal_tile_sizes, "temporal_tile_sizes")),
        spatial_tile_sizes=FrozenDict(rows.sizes(given.spatial_tile_sizes, "spatial_tile_sizes")),
        spatial_order=None if given.spatial_order is None else order(given.spatial_order),
        unicast=given.unicast,
    )
