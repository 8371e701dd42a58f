"""Parser of the loop nest that Timeloop prints (`map.txt`), as directives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import InputError, Location
from tilewright.schema.document import Document, Path_

_LEVEL = re.compile(r"(\S+) \[ (.*)\] *")
_TENSOR = re.compile(r"([^\s:]+):\d+ *(?:\(\d+\))? *")
_LOOP = re.compile(r"\| *for ([^\s\[\]]+) in \[0:(\d+)(?:,(\d+))?\)(?: \(Spatial-([XY])\))? *")
_SAYS_NOTHING = re.compile(r"-*|\| *<< Compute >> *")


@dataclass
class _PrintedLevel:
    name: str
    line: int
    keep: list[str]
    loops: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: {"": [], "X": [], "Y": []})
    """Axis ("" for temporal) -> (dimension, factor), outermost first."""


def is_nest(text: str) -> bool:
    """Return whether a text begins like a printed nest."""
    return _LEVEL.fullmatch(text.lstrip("\n").partition("\n")[0]) is not None


def parse_nest(text: str, source: str) -> Document:
    """Return a `mapping` section with directives for each level. Raises InputError with the line."""
    levels: list[_PrintedLevel] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _LEVEL.fullmatch(line):
            if _TENSOR.sub("", match[2]).strip():
                raise InputError(f"cannot read the tensors of a level: '{match[2]}'", location=Location(source, number))
            levels.append(_PrintedLevel(match[1], number, _TENSOR.findall(match[2])))
        elif (match := _LOOP.fullmatch(line)) and levels:
            factor = f"{match[1]}={match[2]}" + (f",{match[3]}" if match[3] else "")
            levels[-1].loops[match[4] or ""].append((match[1], factor))
        elif not _SAYS_NOTHING.fullmatch(line):
            raise InputError(
                f"not a line of Timeloop's printed loop nest: '{line[:80]}'",
                location=Location(source, number),
                hint="expected LEVEL [ TENSOR:WORDS ], or | for DIMENSION in [0:N)",
            )
    directives: list[dict[str, Any]] = []
    marks: dict[Path_, Location] = {(): Location(source, 1), ("mapping",): Location(source, 1)}
    for level in levels:
        for directive in _directives(level):
            marks["mapping", len(directives)] = Location(source, level.line)
            directives.append(directive)
    return Document({"mapping": directives}, source, marks)


def _directives(level: _PrintedLevel) -> list[dict[str, Any]]:
    keep = {"keep_only": level.keep} if level.keep else {"bypass": ["*"]}
    directives: list[dict[str, Any]] = [{"target": level.name, "type": "dataspace"} | keep]
    steps, x, y = (level.loops[axis][::-1] for axis in ("", "X", "Y"))
    for kind, loops in (("temporal", steps), ("spatial", [*x, *y])):
        if loops:
            said = {"factors": [factor for _, factor in loops], "permutation": [name for name, _ in loops]}
            directives.append({"target": level.name, "type": kind} | said)
    if x or y:
        directives[-1]["split"] = len(x)
    return directives
