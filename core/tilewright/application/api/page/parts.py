"""Contents of a page as its template shows them: tables, charts, facts and loop nests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from tilewright.application.api.sections import AddedSection
from tilewright.application.drawing.drawing import Drawing
from tilewright.errors import InputError
from tilewright.markup import rendered
from tilewright.schema.mapping.levels import Level, MemoryUse
from tilewright.tables import Table

FORM = ("schema_version", "kind")
"""Keys of data that tell nothing about a run."""


def document(template: str, title: str, **contents: Any) -> str:
    """Return the page that a template makes of its contents."""
    style, script = (resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))  # fmt: skip
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return rendered(__package__, template, title=title, style=style, script=script, digest=digest, **contents)


def facts(rows: Iterable[tuple[str, object]]) -> list[tuple[str, str]]:
    """Return names with readable texts."""
    return [(name, readable(value)) for name, value in rows]


def readable(value: object) -> str:
    """Return nested data as words: names before their values, parts in brackets."""
    if isinstance(value, Mapping):
        parts = [f"{k} {readable(v)}" for k, v in value.items() if v not in (None, "", [], {}) and k not in FORM]
        return ", ".join(parts)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(readable, value))})"
    return str(value)


def table(
    data: Table, name: str, links: Sequence[str] = (), marks: Sequence[str] = (), total: bool = False
) -> dict[str, Any]:
    """Return a table with its units.

    Args:
        name: Identifier and label.
        links: Identifier of the element that the first cell of each row leads to.
        marks: Mark of each row in a chart: its group and its index there.
        total: Whether the last row is one of totals, which stays at the end.
    """
    units, rows = data.written()
    last = rows.pop() if total else None
    return {
        "name": name,
        "columns": [
            {"name": f"{column.name}, {unit}" if unit else column.name, "right": column.right}
            for column, unit in zip(data.columns, units, strict=True)
        ],
        "total": last,
        "rows": [
            {"cells": cells, "link": link, "mark": mark}
            for cells, link, mark in zip(rows, links or [""] * len(rows), marks or [""] * len(rows), strict=True)
        ],
    }


def sections(added: Iterable[AddedSection]) -> list[dict[str, Any]]:
    """Return the sections of plugins."""
    return [
        {
            "title": one.title,
            "text": one.section.text,
            "safe": one.section.safe,
            "table": None if one.table is None else table(one.table, f"added-{number}"),
        }
        for number, one in enumerate(added)
    ]


def chart(draw: Callable[[], Drawing], name: str) -> dict[str, Any] | None:
    """Return a chart as SVG with its title; None if there is nothing to draw."""
    try:
        drawing = draw()
    except InputError:
        return None
    return {"title": drawing.title, "svg": drawing.inline(name)}


@dataclass(frozen=True)
class Line:
    """A loop of a nest, indented by its depth."""

    depth: int
    text: str
    unrolled: bool = False


@dataclass(frozen=True)
class NestRow:
    """Loops, and to the right of them memories, or the operation at the end."""

    lines: tuple[Line, ...]
    memories: tuple[MemoryUse, ...] = ()
    operation: str = ""


def nest(levels: Iterable[Level], operation: str) -> Iterator[NestRow]:
    """Yield the rows of a loop nest."""
    lines = list[Line]()
    depth = 0
    for level in levels:
        for unrolled, texts in ((False, level.loops), (True, level.unrolled)):
            if unrolled and level.memories:
                yield NestRow(tuple(lines), level.memories)
                lines = []
            for text in texts:
                lines.append(Line(depth, text, unrolled))
                depth += 1
    yield NestRow(tuple(lines), operation=operation)
