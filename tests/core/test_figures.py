"""Figures and their views: values, cells, texts, ranks, totals, and columns that are left out."""

from dataclasses import dataclass
from math import inf

import pytest

from tilewright.figures import Figure, Sheet
from tilewright.tables import Table, numbers


@dataclass
class Disk:
    bytes: int | None
    seconds: float
    price: float | None = None


SHEET = Sheet(
    Figure("bytes", numbers("size", "MB"), factor=1e-6),
    Figure("seconds", numbers("time", "ps"), has_total=False),
    Figure("rate", numbers("rate"), of=lambda disk: disk.bytes / disk.seconds),
    Figure("price", numbers("price", "EUR"), digits=2, is_optional=True),
    views={"data": "seconds bytes rate", "table": "bytes seconds:2 price:1"},
)


def test_data_has_the_order_of_its_view_and_no_infinities() -> None:
    assert list(SHEET.data("data", Disk(10, 2.0)).items()) == [("seconds", 2.0), ("bytes", 10), ("rate", 5.0)]
    assert SHEET.data("data", Disk(10, inf))["seconds"] is None
    assert SHEET.data("data", None) == {"seconds": None, "bytes": None, "rate": None}
    assert SHEET.data("data", {"rate": 3, "bytes": 4}) == {"seconds": None, "bytes": 4, "rate": 3}


def test_cells_and_texts_have_the_unit_of_the_column() -> None:
    size, time, price = (SHEET.figures[key] for key in ("bytes", "seconds", "price"))

    assert size.cell(Disk(2_500_000, 1.0)) == 2.5 and size.cell({"bytes": None}) is None
    assert time.text(Disk(1, 2e9)) == "2.000 ms" and time.text(Disk(1, inf)) == "-"
    assert price.text(Disk(1, 1.0, 12.345)) == "12 EUR"


def test_columns_have_ranks_totals_and_only_known_optional_figures() -> None:
    disks = [Disk(1_000_000, 1.0), Disk(3_000_000, 2.0)]
    shown = SHEET.shown("table", lambda disk: disk, Disk(4_000_000, 3.0), first="time", known=disks)
    table = Table.of(shown, disks, total=True)

    assert [(column.name, column.rank) for column in table.columns] == [("size", 0), ("time", 0)]
    assert table.rows == [(1.0, 1.0), (3.0, 2.0), (4.0, "")]
    assert [column.rank for column in Table.of(SHEET.shown("table", lambda disk: disk), []).columns] == [0, 2, 1]


def test_unknown_names_are_errors() -> None:
    with pytest.raises(KeyError):
        SHEET.data("nothing", None)
    with pytest.raises(KeyError):
        Sheet(views={"data": "bytes"}).data("data", None)
