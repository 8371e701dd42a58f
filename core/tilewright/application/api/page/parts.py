"""Parts of a page as HTML: sections, totals, tables, charts and drawn loop nests."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright.application.drawing.drawing import Drawing
from tilewright.errors import InputError, printable
from tilewright.tables import Table

FEW, MANY = 8, 30
"""Number of rows up to which a table has no filter, and up to which it does not scroll."""
FORM = ("schema_version", "kind")
"""Keys of data that tell nothing about a run."""
WIDE = 40
"""Number of characters up to which a cell is not wrapped."""


def escaped(text: object) -> str:
    """Return a text as HTML."""
    return html.escape(printable(str(text)))


def section(title: str, *parts: str, note: str = "") -> str:
    """Return a section below a heading; empty without parts."""
    told = f"<p>{escaped(note)}</p>\n" if note else ""
    contents = "\n".join(part for part in parts if part)
    return f"<section>\n<h2>{escaped(title)}</h2>\n{told}{contents}\n</section>" if contents else ""


def totals(figures: Iterable[tuple[str, str]]) -> str:
    """Return the main figures, each with its name."""
    return f'<dl class="totals">{"".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in figures)}</dl>'


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and texts."""
    lines = "".join(f'<tr><th scope="row">{escaped(k)}</th><td>{escaped(readable(v))}</td></tr>' for k, v in rows)
    return f'<div class="scroll"><table class="facts"><tbody>{lines}</tbody></table></div>'


def readable(value: object) -> str:
    """Return nested data as words: names before their values, parts in brackets."""
    if isinstance(value, Mapping):
        parts = [f"{k} {readable(v)}" for k, v in value.items() if v not in (None, "", [], {}) and k not in FORM]
        return ", ".join(parts)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(readable, value))})"
    return str(value)


def table(data: Table, name: str, links: Sequence[str] = (), marks: Sequence[str] = ()) -> str:
    """Return a table that sorts by its headers and, if it is long, filters its rows.

    Args:
        name: Identifier and label.
        links: Identifier of the element that each row's first cell leads to.
        marks: Mark of each row in a chart: its group and its index there.
    """
    units, rows = data.written()
    sides = [' class="n"' if column.right else "" for column in data.columns]
    heads = "".join(
        f'<th scope="col"{side}><button type="button">{escaped(f"{column.name}, {unit}" if unit else column.name)}'
        "</button></th>"
        for column, unit, side in zip(data.columns, units, sides, strict=True)
    )
    lines = []
    for at, cells in enumerate(rows):
        texts = [escaped(cell) for cell in cells]
        if at < len(links) and links[at]:
            texts[0] = f'<a href="#{links[at]}">{texts[0]}</a>'
        mark = f' data-mark="{marks[at]}"' if at < len(marks) else ""
        kinds = (
            "n" if column.right else "w" if len(cell) > WIDE else ""
            for column, cell in zip(data.columns, cells, strict=True)
        )
        tagged = (
            f'<td class="{kind}">{text}' if kind else f"<td>{text}" for kind, text in zip(kinds, texts, strict=True)
        )
        lines.append(f"<tr{mark}>{''.join(tagged)}")
    search = (
        f'<p class="filter"><label>Filter <input type="search" data-table="{name}" placeholder="words, or cycles&lt;5000"></label> '
        f"<output>{len(rows):,} rows</output></p>\n"
        if len(rows) > FEW
        else ""
    )
    tall = " tall" if len(rows) > MANY else ""
    return (
        f'{search}<div class="scroll{tall}" tabindex="0" role="group" aria-label="{escaped(name)}">'
        f'<table class="data" id="{name}"><thead><tr>{heads}</tr></thead>\n<tbody>\n' + "\n".join(lines) + "\n</tbody></table></div>"
    )  # fmt: skip


def chart(draw: Callable[[], Drawing], name: str) -> str:
    """Return a chart as SVG in an area that scrolls; empty if there is nothing to draw."""
    try:
        drawing = draw()
    except InputError:
        return ""
    label = f"chart: {drawing.title}"
    return f'<div class="scroll chart" tabindex="0" role="group" aria-label="{escaped(label)}">{drawing.inline(name)}</div>'


def nest(levels: Sequence[Mapping[str, Any]], operation: str) -> str:
    """Return a loop nest, from its levels, with the memories at the right of the loops outside them."""
    depth, loops, rows = 0, list[str](), list[str]()
    for level in levels:
        for text in level["loops"]:
            loops.append(f"{'  ' * depth}{escaped(text)}")
            depth += 1
        if level["memories"]:
            memories = "".join(map(_memory, level["memories"]))
            rows.append(f'<pre tabindex="0">{chr(10).join(loops)}</pre><div class="memories">{memories}</div>')
            loops = []
        for text in level["unrolled"]:
            loops.append(f"{'  ' * depth}<b>{escaped(text)}</b>")
            depth += 1
    rows.append(
        f'<pre tabindex="0">{chr(10).join(loops)}</pre><div class="memories"><div class="memory unit">{escaped(operation)}</div></div>'
    )
    return f'<div class="nest">{"".join(rows)}</div>'


def _memory(memory: Mapping[str, Any]) -> str:
    count = "" if memory["instances"] == 1 else f" x {memory['instances']:,}"
    capacity, bar = memory["capacity_words"], ""
    if capacity:
        share = 100 * memory["used_words"] / capacity
        bar = f'<small>{share:.3g} % of {capacity:,} words</small><i class="bar"><i style="width:{min(share, 100):.1f}%"></i></i>'
    tiles = "".join(_tile(each) for each in memory["tiles"])
    bypassed = "".join(f'<li class="off">{escaped(each)} bypasses</li>' for each in memory["bypassed"])
    kind = "" if memory["tiles"] else " empty"
    return f'<div class="memory{kind}"><strong>{escaped(memory["name"])}{count}</strong> {bar}<ul>{tiles}{bypassed}</ul></div>'


def _tile(tile: Mapping[str, Any]) -> str:
    text = f"{escaped(tile['tensor'])} {tile['words']:,} word{'s' * (tile['words'] != 1)}"
    if tile["steps"] == 1:
        return f"<li>{text}</li>"
    return (
        f'<li class="still">{text}, stationary for {tile["steps"]:,} steps ({escaped(", ".join(tile["loops"]))})</li>'
    )
