"""Parser of Union's files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.document import YAML_SUFFIXES, Document, read_document, suggestion, validate
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.faults import placed
from tilewright_adapters.members import files_of
from tilewright_adapters.union.layout import OPERATIONS, UnionEntry, UnionFile, UnionProblem, one_spelling

OUTPUTS = {"Y": "P", "X": "Q", "H": "P", "W": "Q"}
"""The input's row or column -> that of the output; others get `_out`."""
_WINDOW = re.compile(r"\(?(\w+)-(?:(\d+)\*?)?([A-Za-z_]\w*)\)?(?:/(\d+))?")
"""An output's coordinate without blanks: `Y-R`, or `(Y-2*R)/3` with dilation 2 and stride 3."""

Sizes = dict[str, int]


@dataclass
class _Sections:
    """Parts of all files, with their locations."""

    parts: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Document] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        document = one_spelling(read_document(path))
        file = validate(UnionFile, document)
        for part in ("problem", "architecture", "mapping", "constraints"):
            value = getattr(file, part)
            if value is None:
                continue
            if part in self.parts:
                first = self.places[part].locate((part,))
                raise InputError(f"{part} is repeated; the first is at {first}", location=document.locate((part,)))
            self.parts[part], self.places[part] = value, document

    def at(self, *path: str | int) -> AbstractContextManager[None]:
        """Return a context that converts errors to InputError at this location."""
        return placed(self.places[str(path[0])].locate(path))


def read_files(files: Sequence[Path]) -> InputSet:
    """Read all files as one input set. Raises InputError with file and line."""
    sections = _Sections()
    for path in files_of(files, YAML_SUFFIXES, "Union"):
        sections.add(path)
    documents, warnings = sections.parts, list[str]()
    if not documents:
        raise InputError("no problem, architecture or mapping in these files")
    problem = architecture = mapping = None
    rows = _Rows.of(documents.get("problem"))
    if "problem" in documents:
        with sections.at("problem"):
            problem = _problem(documents["problem"], rows)
        if rows.read:
            pairs = ", ".join(f"{name} as {rows.name(name)}" for name in rows.read)
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
            warnings += _together(architecture, mapping)
    return InputSet(problem, architecture, mapping, documents.get("constraints"), warnings=tuple(warnings))


@dataclass(frozen=True)
class _Window:
    """A dimension that counts the input's rows: `stride x output + dilation x window`."""

    output: str
    window: str
    stride: int = 1
    dilation: int = 1

    @property
    def row(self) -> str:
        terms = ((self.stride, self.output), (self.dilation, self.window))
        return " + ".join(name if factor == 1 else f"{factor}*{name}" for factor, name in terms)


@dataclass(frozen=True)
class _Rows:
    """Dimensions as in the file, and those that count the input's rows and columns (`read`).

    The output subtracts the filter's dimension from these.
    """

    dimensions: tuple[str, ...] = ()
    read: FrozenDict[str, _Window] = field(default_factory=FrozenDict)
    whole: FrozenDict[str, int] = field(default_factory=FrozenDict)
    """Sizes of the problem, as in the file."""

    @classmethod
    def of(cls, problem: UnionProblem | None) -> _Rows:
        if problem is None:
            return cls()
        names, read = problem.dimensions, dict[str, _Window]()
        for text in (text for space in problem.data_space for text in space.projection):
            match = _WINDOW.fullmatch(re.sub(r"\s", "", text))
            if match is None or not {match[1], match[3]} <= set(names):
                continue
            row, taken = match[1], {*names, *(window.output for window in read.values())}
            output = OUTPUTS.get(row, row)
            window = _Window(
                output if output not in taken else f"{row}_out", match[3], int(match[4] or 1), int(match[2] or 1)
            )
            if 0 in (window.stride, window.dilation):
                raise InputError(f"'{text}' multiplies or divides by zero")
            known = read.setdefault(row, window)
            if replace(window, output=known.output) != known:
                raise InputError(f"{row} has two windows; '{text}' is the second")
        return cls(names, FrozenDict(read), FrozenDict(problem.instance))

    def name(self, name: str) -> str:
        return self.read[name].output if name in self.read else name

    def sizes(self, values: Sequence[int], what: str) -> Sizes:
        """Return sizes by dimension, with the input's rows converted to the output's.

        Raises:
            InputError: the number of values is wrong, there is no output, or a tile has rows that no output reads.
        """
        if len(values) != len(self.dimensions):
            dimensions = ", ".join(self.dimensions)
            raise InputError(f"{what} has {len(values)} numbers; expected {len(self.dimensions)}, for {dimensions}")
        given = dict(zip(self.dimensions, values, strict=True))
        return {self.name(name): self._outputs(name, given, what) for name in given}

    def _outputs(self, row: str, given: Sizes, what: str) -> int:
        """Return the size of a dimension; of rows, how many outputs they make."""
        if row not in self.read:
            return given[row]
        window = self.read[row]
        rest = given[row] - window.dilation * (given[window.window] - 1) - 1
        told = f"{what}: {given[row]} of {row} with {given[window.window]} of {window.window}"
        if rest < 0:
            raise InputError(
                f"{told} make no output", hint=f"a tile of {row} spans at least the tile of {window.window}"
            )
        if rest % window.stride and given[row] != self.whole.get(row):
            less = given[row] - rest % window.stride
            raise InputError(
                f"{told} leave rows over at stride {window.stride}", hint=f"write {less} or {less + window.stride}"
            )
        return rest // window.stride + 1

    def coordinate(self, text: str) -> str:
        """Return a coordinate: `Y` of an input becomes `P + R`, `Y - R` of the output `P`."""
        match = _WINDOW.fullmatch(re.sub(r"\s", "", text))
        if match is not None and match[1] in self.read:
            return self.read[match[1]].output
        for row, window in self.read.items():
            text = re.sub(rf"\b{row}\b", window.row, text)
        return text


def order_of(words: Sequence[str], dimensions: Sequence[str]) -> tuple[str, ...]:
    """Split `ECABD` into letters unless a dimension has that name."""
    return tuple(words[0]) if len(words) == 1 and words[0] not in dimensions else tuple(words)


def operation_of(word: str | None) -> str | None:
    """Return Union's operation in Tilewright's terms, in upper or lower case; unknown ones stay unchanged."""
    return None if word is None else OPERATIONS.get(word.upper(), word)


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
            "label": data.label,
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
    for number, given in enumerate(sections.parts["mapping"]):
        with sections.at("mapping", number):
            _known("cluster", [given.target_cluster], architecture.cluster_index)
            _known("tensor", [*(given.keep or ()), *given.unicast], problem.tensor_names)
            before = [entry.target for entry in entries]
            default = kept_by_default(problem, architecture, given.target_cluster, before)
            entries.append(_entry(given, rows, default))
    return Mapping(entries=tuple(entries))


def _together(architecture: Architecture, mapping: Mapping) -> Iterator[str]:
    """Yield warnings of entries whose dimensions fit their sub-clusters singly, as in the paper's rule 2, but not together."""
    for number, (entry, (_, trips)) in enumerate(zip(mapping.entries, mapping.factors(), strict=True)):
        unrolled = {name: count for name, count in trips.items() if count > 1}
        fanout = architecture.cluster(entry.target).fanout.size
        if max(unrolled.values(), default=1) <= fanout < math.prod(unrolled.values()):
            listed = " and ".join(f"{name} x {count}" for name, count in unrolled.items())
            yield (
                f"entry {number + 1} on {entry.target} unrolls {listed} over {fanout} sub-clusters: these are "
                f"{math.prod(unrolled.values())} at a time. Only a row of the input and one of its filter change together; other iterators "
                "would leave pairs out"
            )


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
