"""Tables as text, as HTML and as data frames."""

import csv
import io
import math
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import InputError
from tilewright.tables import SIZES, Cell, Column, Table, Tabular, csv_text, numbers


class Two(Tabular):
    def rows(self) -> list[dict[str, Any]]:
        return [{"name": "a<b", "words": 3}, {"name": "c", "words": 4}]

    def tables(self) -> Sequence[Table | str]:
        table = Table("name", numbers("words"), title="things")
        for row in self.rows():
            table.add_row(row["name"], row["words"])
        return ["first", "second [1]", table, "last"]


def test_text_has_every_line_and_no_space_at_ends() -> None:
    lines = str(Two()).splitlines()

    assert lines[:2] == ["first", "second [1]"] and lines[-1] == "last"
    assert any("a<b" in line for line in lines) and all(line == line.rstrip() for line in lines)


def test_html_is_escaped_and_keeps_lines_together() -> None:
    page = Two()._repr_html_()

    assert page.startswith("<pre>first\nsecond [1]</pre>\n<table><caption>things</caption>")
    assert "a&lt;b" in page and '<td style="text-align: right">3</td>' in page and page.endswith("<pre>last</pre>")


def test_a_frame_needs_the_extra_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="data frames need pandas") as raised:
        Two().to_frame()
    assert raised.value.hint == "pip install 'tilewright[frames]'; rows() returns the same as plain data"
    assert Two().rows()[0]["words"] and Two()._repr_html_()


def test_a_frame_has_the_rows() -> None:
    frame = Two().to_frame()

    assert list(frame.columns) == ["name", "words"] and frame["words"].sum() == 7


def test_a_column_has_one_unit_and_the_same_decimals() -> None:
    table = Table("layer", numbers("energy", "pJ"), numbers("cycles"), numbers("share", decimals=1))
    table.add_row("a", 13_240_000.0, 19_968, 0.004)
    table.add_row("b", 5.81e8, 1_664_000, 22.36)
    table.add_row("c", None, "", math.inf)

    assert table.lines(None) == [
        "layer  energy     cycles  share",
        "           uJ",
        "a       13.24     19,968   <0.1",
        "b      581.00  1,664,000   22.4",
        "c           -                 -",
    ]


def test_columns_that_are_alike_share_their_unit() -> None:
    table = Table(numbers("one", "pJ", like="x"), numbers("other", "pJ", like="x"))
    table.add_row(2e6, 3e9)

    assert table.written() == (["uJ", "uJ"], [["2.000", "3,000.000"]])


def test_sizes_are_wrapped_after_other_columns_are_omitted() -> None:
    table = Table("layer", SIZES, numbers("MACs", rank=2), numbers("cycles"))
    table.add_row("a", "K=64 C=3 P=112 Q=112 R=7 S=7", 1, 2)

    assert table.lines(46)[1].split() == ["a", "K=64", "C=3", "P=112", "Q=112", "R=7", "S=7", "2"]
    assert [line.split() for line in table.lines(36)[1:3]] == [
        ["a", "K=64", "C=3", "P=112", "Q=112", "2"],
        ["R=7", "S=7"],
    ]
    assert "sizes" not in table.lines(20)[0]


CELLS = st.one_of(st.none(), st.integers(-(10**15), 10**15), st.floats(-1e22, 1e22), st.just("-"))


@given(st.lists(st.tuples(st.text("abc xyz", max_size=30), CELLS, CELLS, CELLS)), st.integers(1, 120))
def test_narrow_terminals_lose_columns_and_nothing_else(rows: list[tuple[Cell, ...]], width: int) -> None:
    columns = Column("name"), numbers("first", "pJ", rank=2), numbers("second", rank=1), numbers("third", "pJ")
    table = Table(*columns, more="--json")
    for row in rows:
        table.add_row(*row)
    everything, narrow = table.lines(None), table.lines(width)
    left_out = [name for name in ("first", "second") if f" {name}" not in narrow[0]]

    assert left_out in ([], ["first"], ["first", "second"])
    fits = max(len(line) for line in narrow[: len(everything)]) <= width
    assert fits or left_out == ["first", "second"]
    if left_out:
        assert narrow.pop() == (
            f"{len(left_out)} column{'s' if len(left_out) > 1 else ''} omitted: {', '.join(left_out)} "
            "(a wider terminal or --json shows all)"
        )
    assert len(narrow) == len(everything)
    for line, whole in zip(narrow, everything, strict=True):
        words = iter(whole.split())
        assert all(word in words for word in line.split())


def test_long_texts_take_several_lines_in_a_terminal_and_one_in_a_pipe() -> None:
    table = Table("name", Column("remarks", wrapped=True))
    table.add_row("a", "one two three four five six seven")

    assert table.lines(26) == ["name  remarks", "a     one two three four", "      five six seven"]
    assert table.lines(None)[1] == "a     one two three four five six seven"


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table("a", "b").add_row("x")


def test_no_cell_of_a_csv_file_is_a_formula() -> None:
    """Spreadsheets evaluate texts that begin so; numbers stay numbers, and other texts are as they are."""
    formulas = ['=HYPERLINK("http://x","y")', "@SUM(1)", "+1+1", "-2+3|cmd", "\t=1", "\r=1", "\n=1", "-"]
    plain = ["conv 1", "a=b", "-2.5", "+1e3", "'=1", "", " =1", "1-2"]
    rows: list[dict[str, Any]] = [
        {"layer": text, "=energy": -1.5, "count": -3, "gap": None} for text in formulas + plain
    ]
    read = list(csv.reader(io.StringIO(csv_text(["layer", "=energy", "count", "gap"], rows), newline="")))
    assert read[0] == ["layer", "'=energy", "count", "gap"]
    assert [row[0] for row in read[1:]] == [f"'{text}" for text in formulas] + plain
    assert {tuple(row[1:]) for row in read[1:]} == {("-1.5", "-3", "")}
    with pytest.raises(ValueError, match="other columns: b"):
        csv_text(["a"], [{"a": 1, "b": 2}])
