"""Parser of loop nests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright import library
from tilewright.errors import InputError, Location, UnknownNameError
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import YAML_SUFFIXES, Document, FileModel, suggestion, validate
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.loopnest.words import Line, read_lines
from tilewright_adapters.loopnest.write import completed

KEYWORDS = (
    "problem", "dimensions", "tensor", "architecture", "cluster", "memory", "fanout", "compute", "include",
    "nest", "order", "for", "at", "spatial",
)  # fmt: skip
_CLAUSES = ("hold", "unicast", "order", "spatial_order")
_TENSOR = re.compile(r"(\S++)\s++([^\s\[]++)\s*+\[(.*)\]\s*+")
_LOOP = re.compile(r"(\w++)\s++in\s++(\d{1,15})\s*+x\s*+(\d{1,15})\s*+")
_AT = re.compile(r"([^\s:]+)\s*(?::\s*(.*))?")

Found = dict[str, tuple[Any, Location]]
"""Part -> the object and its location."""


def read_parts(path: Path) -> Found:
    """Return the parts of a file. Raises InputError with the line."""
    drafts: list[_Draft] = []
    parts: Found = {}
    for line in read_lines(path):
        kinds: dict[str, type[_Draft]] = {
            "problem": _ProblemDraft,
            "architecture": _ArchitectureDraft,
            "nest": _NestDraft,
        }
        if line.keyword in kinds:
            drafts.append(kinds[line.keyword](line))
        elif line.keyword == "include":
            _add(parts, *_included(line, path.parent), line.location)
        elif line.keyword not in KEYWORDS:
            line.fail(f"unknown keyword '{line.keyword}'{suggestion(line.keyword, KEYWORDS)}")
        elif not drafts:
            line.fail(f"'{line.keyword}' must follow a problem, architecture or nest line")
        else:
            drafts[-1].take(line)
    for draft in drafts:
        _add(parts, draft.part, draft.finished(), draft.line.location)
    return parts


def _add(parts: Found, part: str, value: object, location: Location) -> None:
    if part in parts:
        raise InputError(f"{part} is repeated; the first is at {parts[part][1]}", location=location)
    parts[part] = (value, location)


def _included(line: Line, folder: Path) -> tuple[str, object]:
    """Read `include architecture NAME|FILE` or `include problem FILE`.

    Files must be in the folder of the including file or below. An untrusted file must not select other files.
    """
    words = line.arguments().words
    if len(words) != 2 or words[0] not in ("problem", "architecture"):
        line.fail("include needs a part and its source", hint="include architecture eyeriss, include problem gemm.yaml")
    part, source = str(words[0]), str(words[1])
    if source.endswith(YAML_SUFFIXES):
        if "\0" in source or not (folder / source).resolve().is_relative_to(folder.resolve()):
            line.fail(f"'{source}' is outside this file's folder; expected a file in it or below")
        kinds: dict[str, type[FileModel]] = {"problem": Problem, "architecture": Architecture}
        return part, kinds[part].from_file(folder / source)
    if part == "problem":
        line.fail(f"'{source}' is not a YAML file", hint="include problem FILE.yaml")
    try:
        return part, library.architecture(source)
    except UnknownNameError as error:
        line.fail(error.message, error.hint)


@dataclass
class _Draft:
    """A part under construction: plain data, with the location of every value."""

    line: Line
    data: dict[str, Any] = field(default_factory=dict)
    marks: dict[tuple[str | int, ...], Location] = field(default_factory=dict)
    part = ""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Read the first line."""

    def take(self, line: Line) -> None:
        """Read a further line."""
        line.fail(f"a {self.part} has no line '{line.keyword}'", hint="look at the section above this line")

    def document(self) -> Document:
        """Return the data as a document, for validation."""
        return Document(self.data, self.line.location.source, {(): self.line.location, **self.marks})

    def finished(self) -> object:
        """Return the part as an object. Raises InputError."""
        raise NotImplementedError

    def name(self, line: Line, default: str | None = None) -> dict[str, Any]:
        """Return `NAME key=value ...` as data. Raises InputError."""
        arguments = line.arguments()
        if len(arguments.words) > 1 or (not arguments.words and default is None):
            line.fail(f"{line.keyword} needs one name, followed by key=value pairs")
        return {"name": arguments.words[0] if arguments.words else default} | arguments.nested()

    def mark(self, line: Line, *path: str | int) -> None:
        self.marks[path] = line.location


class _ProblemDraft(_Draft):
    part = "problem"

    def begin(self) -> None:
        self.data = self.name(self.line) | {"tensors": []}

    def take(self, line: Line) -> None:
        if line.keyword == "dimensions":
            self.data["dimensions"] = line.arguments().pairs
            self.mark(line, "dimensions")
        elif line.keyword == "tensor":
            match = _TENSOR.fullmatch(line.rest)
            if match is None:
                line.fail(
                    "a tensor has a name, a role and coordinates", hint="tensor Inputs input [N, C, P + R, Q + S]"
                )
            name, role, inside = match.groups()
            self.mark(line, "tensors", len(self.data["tensors"]))
            ranks = [rank.strip() for rank in inside.split(",")] if inside.strip() else []
            self.data["tensors"].append({"name": name, "role": role, "projection": ranks})
        else:
            super().take(line)

    def finished(self) -> Problem:
        return validate(Problem, self.document())


class _ArchitectureDraft(_Draft):
    part = "architecture"

    def begin(self) -> None:
        self.data = self.name(self.line) | {"clusters": []}

    def take(self, line: Line) -> None:
        clusters = self.data["clusters"]
        if line.keyword == "cluster":
            self.mark(line, "clusters", len(clusters))
            clusters.append(self.name(line))
        elif line.keyword == "compute":
            self.mark(line, "compute")
            self.data["compute"] = self.name(line, "MAC")
        elif line.keyword not in ("memory", "fanout"):
            super().take(line)
        elif not clusters:
            line.fail(f"'{line.keyword}' must follow a cluster line")
        elif line.keyword == "memory":
            memories = clusters[-1].setdefault("memories", [])
            self.mark(line, "clusters", len(clusters) - 1, "memories", len(memories))
            memories.append(self.name(line))
        else:
            self.mark(line, "clusters", len(clusters) - 1, "fanout")
            clusters[-1]["fanout"] = line.arguments().nested()

    def finished(self) -> Architecture:
        return validate(Architecture, self.document())


@dataclass
class _Loops:
    """Loops of one kind in one entry: dimension -> tile size, outermost first."""

    what: str
    tiles: dict[str, int] = field(default_factory=dict)

    def take(self, line: Line, text: str, sizes: dict[str, int]) -> None:
        """Read `M in 4 x 16`, cut from tiles of `sizes`. Raises InputError."""
        match = _LOOP.fullmatch(text)
        if match is None:
            line.fail(
                f"cannot read the loop; expected '{self.what} DIMENSION in STEPS x TILE'",
                hint=f"{self.what} M in 4 x 16",
            )
        name, steps, tile = match[1], int(match[2]), int(match[3])
        if name not in sizes:
            line.fail(f"the nest has no dimension '{name}'{suggestion(name, sizes)}")
        if name in self.tiles:
            line.fail(f"two loops of '{name}' belong to one entry", hint="put an 'at CLUSTER' between them")
        if tile < 1:
            line.fail("the tile is 0; expected at least 1")
        needed = -(-sizes[name] // tile)
        if steps != needed:
            line.fail(f"{sizes[name]} iterations of {name} in tiles of {tile} are {needed} steps, not {steps}")
        self.tiles[name] = tile


class _NestDraft(_Draft):
    part = "mapping"

    def begin(self) -> None:
        sizes = self.line.arguments().pairs
        if not sizes or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in sizes.values()):
            self.line.fail(
                "dimensions are missing; expected 'nest' with dimensions and sizes", hint="nest M=64 N=64 K=64"
            )
        self.sizes: dict[str, int] = sizes
        self.dimensions = self.order = tuple(sizes)
        self.data = {"entries": []}
        self.pending = _Loops("for")
        self.unrolled = _Loops("spatial for")
        self.last = self.line
        self.spatial_order: tuple[str, ...] | None = None

    def take(self, line: Line) -> None:
        self.last = line
        match line.keyword:
            case "for":
                self._leave()
                self.pending.take(line, line.rest, self.sizes)
            case "at":
                self._leave()
                self._enter(line)
            case "spatial" if self.data["entries"] and not self.pending.tiles:
                word, _, loop = line.rest.partition(" ")
                if word != "for":
                    line.fail("expected 'spatial for'", hint="spatial for M in 16 x 1")
                self.unrolled.take(line, loop.strip(), self.data["entries"][-1]["temporal_tile_sizes"])
            case "spatial":
                line.fail("a spatial loop must follow the 'at' line of its cluster", hint="at CLUSTER")
            case "order" if not self.data["entries"] and not self.pending.tiles:
                self.order = tuple(name.strip() for name in line.rest.split(","))
                if sorted(self.order) != sorted(self.dimensions):
                    line.fail(f"an order must list every dimension once: {', '.join(self.dimensions)}")
            case "compute":
                pass
            case _:
                super().take(line)

    def _enter(self, line: Line) -> None:
        """Begin a new entry with the loops before it."""
        match = _AT.fullmatch(line.rest.strip())
        if match is None:
            line.fail("expected a cluster", hint="at CLUSTER: hold TENSOR, TENSOR")
        clauses = self._clauses(line, match[2] or "")
        tiles = self.sizes | self.pending.tiles
        self.mark(line, "entries", len(self.data["entries"]))
        self.data["entries"].append(
            {
                "target": match[1],
                "keep": clauses.get("hold"),
                "temporal_order": self._order(line, "order", clauses, self.pending),
                "temporal_tile_sizes": tiles,
                "spatial_tile_sizes": dict(tiles),
                "spatial_order": clauses.get("spatial_order"),
                "unicast": clauses.get("unicast", ()),
            }
        )
        self.pending = _Loops("for")

    def _leave(self) -> None:
        """Complete the spatial loops of the previous entry."""
        if not self.data["entries"] or self.pending.tiles:
            return
        entry = self.data["entries"][-1]
        if entry["spatial_order"] is not None:
            self._order(self.last, "spatial_order", entry, self.unrolled)
        elif list(self.unrolled.tiles) != [name for name in self.dimensions if name in self.unrolled.tiles]:
            order = ", ".join(completed(tuple(self.unrolled.tiles), self.dimensions))
            self.last.fail(
                "the order of the spatial loops before this line differs from that of the dimensions",
                hint=f"give the order at their cluster: at {entry['target']}: spatial_order {order}",
            )
        entry["spatial_tile_sizes"] |= self.unrolled.tiles
        self.sizes = dict(entry["spatial_tile_sizes"])
        self.unrolled = _Loops("spatial for")

    def _order(self, line: Line, clause: str, clauses: dict[str, Any], loops: _Loops) -> tuple[str, ...]:
        """Return the order of a clause, or that of the loops; a contradiction is an error."""
        given = clauses.get(clause)
        if given is None:
            return completed(tuple(loops.tiles), self.order)
        if [name for name in given if name in loops.tiles] != list(loops.tiles):
            line.fail(f"the loops are {', '.join(loops.tiles)}, outermost first; '{clause}' lists {', '.join(given)}")
        return tuple(given)

    def _clauses(self, line: Line, text: str) -> dict[str, tuple[str, ...]]:
        clauses: dict[str, tuple[str, ...]] = {}
        for clause in (part.strip() for part in text.split(";")) if text.strip() else ():
            keyword, _, names = clause.partition(" ")
            if keyword not in _CLAUSES:
                line.fail(f"unknown clause '{keyword}'{suggestion(keyword, _CLAUSES)}", hint=", ".join(_CLAUSES))
            if keyword in clauses:
                line.fail(f"'{keyword}' is repeated")
            listed = [name.strip() for name in names.split(",")]
            clauses[keyword] = () if listed == ["-"] else tuple(listed)
        return clauses

    def finished(self) -> Mapping:
        self._leave()
        if self.pending.tiles:
            self.last.fail("the last loops have no cluster", hint="add a last line: at CLUSTER")
        return validate(Mapping, self.document())
