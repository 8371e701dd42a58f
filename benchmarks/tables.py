"""Tables of Markdown pages: lines, and the part of a page between two marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

PAGES = Path(__file__).parent


def line(cells: Iterable[object]) -> str:
    """Return a line of a table.

    >>> line(["machine", 3])
    '| machine | 3 |'
    """
    return f"| {' | '.join(map(str, cells))} |"


def table(columns: Sequence[str], rows: Iterable[Iterable[object]], texts: int = 1) -> str:
    """Return a table whose first `texts` columns are texts, and the others numbers.

    >>> print(table(["machine", "GEMMs"], [["a100", 48]]))
    | machine | GEMMs |
    | --- | ---: |
    | a100 | 48 |
    """
    rules = ["---"] * texts + ["---:"] * (len(columns) - texts)
    return "\n".join(map(line, (columns, rules, *rows)))


def replace(page: str, mark: str, text: str) -> None:
    """Put a text between the marks `<!-- MARK -->` and `<!-- end of MARK -->` of a page in benchmarks/."""
    place, path = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- end of {mark} -->)", re.DOTALL), PAGES / page
    before = path.read_text(encoding="utf-8")
    if place.search(before) is None:
        raise ValueError(f"{page}: no marks of {mark!r}")
    path.write_text(place.sub(lambda _: f"{text}\n\n", before), encoding="utf-8")
