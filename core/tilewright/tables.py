"""Tables of results: as text, as HTML for notebooks, as data frames."""

from __future__ import annotations

import html
import io
import itertools
import math
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

WIDE = 160
"""Columns of text that goes into a file or a pipe."""


class Tabular:
    """A result that prints as tables. Subclasses say which tables and which rows."""

    def tables(self, width: int = WIDE) -> Sequence[Table | str]:
        """Tables and lines for people, made for so many columns of text."""
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        """The same as plain data: column -> value, one dict per row."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """`rows()` as a pandas DataFrame."""
        import pandas as pd  # takes longer to import than most commands to run

        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        width = text_width()
        return as_text(self.tables(width), width)

    def _repr_html_(self) -> str:
        groups = itertools.groupby(self.tables(), lambda part: isinstance(part, str))
        parts = [["\n".join(map(str, group))] if lines else list(group) for lines, group in groups]
        return "\n".join(as_html(part) for group in parts for part in group)


class Printed:
    """A value whose text keeps its lines in notebooks."""

    def _repr_html_(self) -> str:
        return as_html(str(self))


def text_width() -> int:
    """That of the terminal; wide enough for every column in a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


def as_text(parts: Sequence[Table | str], width: int) -> str:
    """Tables and lines as plain text, without space at the ends of lines."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def as_html(part: Table | str) -> str:
    """One table or line."""
    if isinstance(part, str):
        return f"<pre>{html.escape(part)}</pre>"
    head = "".join(f"<th>{html.escape(str(column.header))}</th>" for column in part.columns)
    columns = [[html.escape(str(cell)) for cell in column.cells] for column in part.columns]
    style = [f' style="text-align: {column.justify}"' for column in part.columns]
    body = "".join(
        "<tr>" + "".join(f"<td{how}>{cell}</td>" for how, cell in zip(style, row, strict=True)) + "</tr>"
        for row in zip(*columns, strict=True)
    )
    caption = f"<caption>{html.escape(str(part.title))}</caption>" if part.title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def figure(value: float | None, digits: int = 4) -> str:
    """A number for a table: whole where it is short, else with a power of ten.

    >>> figure(12345), figure(0.25), figure(3.03128357e16), figure(None)
    ('12,345', '0.25', '3.031e+16', '-')
    """
    if value is None or math.isinf(value) or math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 1e8:
        return f"{int(value):,}"
    return f"{value:.{digits}g}"


def percent(part: float, whole: float) -> str:
    """A share; `-` of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "-"
