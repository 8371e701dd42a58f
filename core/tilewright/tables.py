"""Tables of results as text, as HTML for notebooks, and as data frames.

Terminal control characters in texts are escaped. The numbers of a column share one unit and one
number of decimals, with thousands separated. On a narrow terminal whole columns are omitted, in the
order that the table declares. Names and digits are never cut.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tilewright.errors import InputError, printable
from tilewright.formats import Form
from tilewright.markup import preformatted, rendered

if TYPE_CHECKING:
    import pandas as pd

Cell = str | int | float | None
"""Cell of a table: text, a number that its column formats, or None, shown as `-`."""
WRAPPED = 20
"""Minimum width of a wrapped column."""


@dataclass(frozen=True)
class Column:
    """Header and format of a column.

    Attributes:
        unit: Unit of the numbers, shown below the name. `pJ` and `pJ x cycles` get a common prefix.
        rank: Order of omission on narrow terminals, highest first. 0 means never.
        right: Whether cells are right-aligned, as numbers are.
        wrapped: Whether texts may continue on further lines. A ranked column is wrapped before it is omitted.
        decimals: Number of decimals. None: enough for four digits of the smallest number.
        like: Group name. Columns of one group share unit and decimals.
    """

    name: str
    unit: str = ""
    rank: int = 0
    right: bool = False
    wrapped: bool = False
    decimals: int | None = None
    like: str = ""


def numbers(name: str, unit: str = "", rank: int = 0, *, decimals: int | None = None, like: str = "") -> Column:
    """Return a column of numbers."""
    return Column(name, unit, rank, right=True, decimals=decimals, like=like)


SIZES = Column("sizes", rank=1, wrapped=True)
"""Column of dimensions longer than 1 (`problem.long_dimensions`), which identify a layer."""


Row = TypeVar("Row")


@dataclass(frozen=True)
class Shown(Generic[Row]):
    """Column of a table with its cell of each row, and of the row of totals below."""

    column: Column | str
    cell: Callable[[Row], Cell]
    total: Cell = ""


class Table:
    """Rows below columns. `more` names the options that show the omitted columns."""

    def __init__(self, *columns: Column | str, title: str = "", more: str = "--json") -> None:
        self.columns = tuple(Column(column) if isinstance(column, str) else column for column in columns)
        self.title, self.more = title, more
        self.rows: list[tuple[Cell, ...]] = []

    @classmethod
    def of(
        cls,
        shown: Sequence[Shown[Row]],
        rows: Iterable[Row],
        title: str = "",
        more: str = "--json",
        total: bool = False,
    ) -> Table:
        """Return the table of some rows, with a row of totals if `total` is set."""
        table = cls(*(part.column for part in shown), title=title, more=more)
        for row in rows:
            table.add_row(*(part.cell(row) for part in shown))
        if total:
            table.add_row(*(part.total for part in shown))
        return table

    def add_row(self, *cells: Cell) -> None:
        """Add a row with one cell per column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)

    def written(self) -> tuple[list[str], list[list[str]]]:
        """Return the unit of each column and the texts of each row."""
        forms = [self._form(index) for index in range(len(self.columns))]
        return [form.unit for form in forms], [
            [
                printable(cell) if isinstance(cell, str) else form.text(cell)
                for form, cell in zip(forms, row, strict=True)
            ]
            for row in self.rows
        ]

    def lines(self, width: int | None, bold: Callable[[str], str] = str) -> list[str]:
        """Return the table as lines of text without trailing blanks.

        Args:
            width: Width of the terminal. None: as wide as all columns need.
            bold: Formatter of the header.
        """
        units, rows = self.written()
        widths = [
            max(len(text) for text in (column.name, unit, *(row[index] for row in rows)))
            for index, (column, unit) in enumerate(zip(self.columns, units, strict=True))
        ]
        shown = self._shown(widths, width)
        if width is not None:
            self._wrap(widths, shown, width)
        names = [column.name for column in self.columns]
        head = [names, units] if any(units[index] for index in shown) else [names]
        lines = [bold(printable(self.title))] if self.title else []
        lines += [bold(line) for row in head for line in self._line(row, shown, widths)]
        lines += [line for row in rows for line in self._line(row, shown, widths)]
        missing = [
            f"{column.name} in {unit}" if names.count(column.name) > 1 else column.name
            for index, (column, unit) in enumerate(zip(self.columns, units, strict=True))
            if index not in shown
        ]
        if missing:
            count = f"{len(missing)} column{'s' if len(missing) > 1 else ''} omitted"
            lines.append(
                f"{count}: {', '.join(missing)} (a wider terminal{',' if ' or ' in self.more else ' or'} {self.more} shows all)"
            )
        return lines

    def _shown(self, widths: Sequence[int], width: int | None) -> list[int]:
        """Return the indices of the columns that fit the width."""
        least = [
            min(size, WRAPPED) if column.wrapped and not column.rank else size
            for size, column in zip(widths, self.columns, strict=True)
        ]
        shown = list(range(len(self.columns)))
        while width is not None and sum(least[index] + 2 for index in shown) - 2 > width:
            last = max(shown, key=lambda index: (self.columns[index].rank, index))
            if not self.columns[last].rank:
                break
            if self.columns[last].wrapped and least[last] > WRAPPED:
                least[last] = WRAPPED
            else:
                shown.remove(last)
        return shown

    def _wrap(self, widths: list[int], shown: Sequence[int], width: int) -> None:
        """Distribute the remaining width to the wrapped columns, narrowest first."""
        wrapped = sorted((index for index in shown if self.columns[index].wrapped), key=lambda index: widths[index])
        room = width + 2 - sum(widths[index] + 2 for index in shown if index not in wrapped)
        for left, index in zip(range(len(wrapped), 0, -1), wrapped, strict=True):
            widths[index] = min(widths[index], max(WRAPPED, room // left - 2))
            room -= widths[index] + 2

    def _line(self, texts: Sequence[str], shown: Sequence[int], widths: Sequence[int]) -> list[str]:
        """Return one row, on several lines if texts are wrapped."""
        parts = [textwrap.wrap(texts[index], widths[index], break_on_hyphens=False) or [""] for index in shown]
        lines = []
        for cells in itertools.zip_longest(*parts, fillvalue=""):
            padded = [
                cell.rjust(widths[index]) if self.columns[index].right else cell.ljust(widths[index])
                for index, cell in zip(shown, cells, strict=True)
            ]
            lines.append("  ".join(padded).rstrip())
        return lines

    def _form(self, index: int) -> Form:
        column = self.columns[index]
        alike = [
            at for at, other in enumerate(self.columns) if at == index or (column.like and other.like == column.like)
        ]
        numbers = [
            cell
            for row in self.rows
            for at in alike
            if isinstance(cell := row[at], int | float) and math.isfinite(cell)
        ]
        return Form.of(numbers, column.unit, column.decimals)


class Tabular:
    """Result that prints as tables. Subclasses define tables and rows."""

    def tables(self) -> Sequence[Table | str]:
        """Return tables and lines for the user."""
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        """Return the tables as plain data, one dict per row."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """Return `rows()` as a pandas DataFrame.

        Raises:
            InputError: pandas is not installed.
        """
        try:
            import pandas as pd  # importing pandas takes longer than most commands run
        except ImportError:
            hint = "pip install 'tilewright[frames]'; rows() returns the same as plain data"
            raise InputError("data frames need pandas", hint=hint) from None
        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        return as_text(self.tables(), text_width())

    def _repr_html_(self) -> str:
        groups = itertools.groupby(self.tables(), lambda part: isinstance(part, str))
        parts = [["\n".join(map(str, group))] if lines else list(group) for lines, group in groups]
        return "\n".join(as_html(part) for group in parts for part in group if part)


def csv_text(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as comma-separated values with a header.

    Texts that a spreadsheet would evaluate as formulas begin with an apostrophe. Rows have no other columns.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([_plain(name) for name in columns])
    for row in rows:
        if odd := row.keys() - set(columns):
            raise ValueError(f"a row has other columns: {', '.join(sorted(odd))}")
        writer.writerow([_plain(row.get(name, "")) for name in columns])
    return text.getvalue()


def _plain(value: object) -> object:
    """Return a cell; a text that a spreadsheet would take for a formula has an apostrophe in front."""
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return value
    with suppress(ValueError):
        float(value)
        return value
    return f"'{value}"


def text_width() -> int | None:
    """Return the width of the terminal, or None for a file or a pipe, which get all columns."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    size = os.get_terminal_size(sys.stdout.fileno())
    return shutil.get_terminal_size(size).columns  # COLUMNS takes precedence


def as_text(parts: Sequence[Table | str], width: int | None, bold: Callable[[str], str] = str) -> str:
    """Return tables and lines as text, with an empty line between two tables."""
    lines: list[str] = []
    for before, part in zip([None, *parts], parts, strict=False):
        if isinstance(before, Table) and isinstance(part, Table):
            lines.append("")
        lines += [printable(part)] if isinstance(part, str) else part.lines(width, bold)
    return "\n".join(lines)


def as_html(part: Table | str) -> str:
    """Return one table or line as HTML."""
    if isinstance(part, str):
        return preformatted(part)
    units, rows = part.written()
    return rendered(
        "tilewright",
        "table.html.jinja",
        title=part.title,
        columns=list(zip(part.columns, units, strict=True)),
        rows=rows,
    )
