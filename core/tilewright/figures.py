"""Figures of results. Each is declared once; JSON, CSV, data frames, tables and pages show selections of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.formats import quantity
from tilewright.tables import Cell, Column, Shown


@dataclass(frozen=True)
class Figure:
    """A figure of a subject, such as the energy of a mapping.

    Attributes:
        key: Name in JSON, CSV and data frames.
        column: Name, unit and format in tables.
        of: Returns the value from a subject. Default: the attribute `key`, or None if the subject lacks it.
        factor: Factor from the unit of the value to that of the column, such as 1e-6 from um2 to mm2.
        digits: Significant digits in a line of text. Default: as many as `quantity` writes.
        has_total: Whether sums over layers have it, too.
        is_optional: Whether totals and texts leave it out where it is unknown.
        kind: Type of the value in JSON documents.
        meaning: Text for the schemas of JSON documents.
    """

    key: str
    column: Column = Column("")
    of: Callable[[Any], Any] | None = None
    factor: float = 1
    digits: int | None = None
    has_total: bool = True
    is_optional: bool = False
    kind: Any = float | None
    meaning: str = ""

    def value(self, subject: Any) -> Any:
        """Return the value of a subject or of its data; None without a subject, and for infinities, which JSON lacks."""
        if isinstance(subject, Mapping):
            return subject.get(self.key)
        value = getattr(subject, self.key, None) if self.of is None or subject is None else self.of(subject)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def cell(self, subject: Any) -> Cell:
        """Return the value in the unit of the column."""
        value: Cell = self.value(subject)
        return value if value is None or isinstance(value, str) or self.factor == 1 else value * self.factor

    def text(self, subject: Any) -> str:
        """Return a number with its unit, for a line of text."""
        cell = self.cell(subject)
        assert not isinstance(cell, str)
        if cell is None or self.digits is None:
            return quantity(cell, self.column.unit)
        return f"{cell:.{self.digits}g} {self.column.unit}"

    def shown(self, of: Callable[[Any], Any], total: Any = None, is_first: bool = False) -> Shown[Any]:
        """Return the column, with cells of subjects; see `Sheet.shown`."""
        column = replace(self.column, rank=0) if is_first else self.column
        return Shown(column, lambda row: self.cell(of(row)), self.cell(total) if self.has_total else "")


class Sheet:
    """Figures of one kind of subject, and the views that show them.

    A view is a text: the keys of the figures of one file, table or page, in its order. `KEY:RANK` tells in which order
    narrow terminals omit columns, the highest rank first. Those without a rank are never omitted.
    """

    def __init__(self, *figures: Figure, views: Mapping[str, str]) -> None:
        self.figures = {figure.key: figure for figure in figures}
        self.views = dict(views)

    def view(self, name: str) -> dict[str, Figure]:
        """Return the figures of a view by key, with their ranks."""
        figures = [(self.figures[key], int(rank or 0)) for key, rank in self._words(name)]
        return {figure.key: replace(figure, column=replace(figure.column, rank=rank)) for figure, rank in figures}

    def keys(self, name: str) -> list[str]:
        """Return the keys of a view."""
        return [key for key, _ in self._words(name)]

    def columns(self, name: str) -> list[Column]:
        """Return the columns of a view, for the cells that `data` returns."""
        return [figure.column for figure in self.view(name).values()]

    def data(self, name: str, subject: Any) -> dict[str, Any]:
        """Return the values of a view by key, for JSON, CSV and data frames."""
        return {key: self.figures[key].value(subject) for key, _ in self._words(name)}

    def shown(
        self, name: str, of: Callable[[Any], Any], total: Any = None, *, first: str = "", known: Collection[Any] = ()
    ) -> list[Shown[Any]]:
        """Return the columns of a view.

        Args:
            of: Returns the subject of a row, or its data.
            total: Subject of the row below all others.
            first: Name of a column that is never omitted.
            known: Rows. If none of them has an optional figure, the column is left out.
        """
        return [
            figure.shown(of, total, figure.column.name == first)
            for figure in self.view(name).values()
            if not (known and figure.is_optional) or any(figure.value(of(row)) is not None for row in known)
        ]

    def _words(self, name: str) -> list[tuple[str, str]]:
        """Return the keys of a view with their ranks; a rank is empty if the view has none."""
        return [(key, rank) for key, _, rank in (word.partition(":") for word in self.views[name].split())]
