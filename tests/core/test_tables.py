"""Tables as text, as HTML and as data frames."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from tilewright.tables import WIDE, Tabular


class Two(Tabular):
    def rows(self) -> list[dict[str, Any]]:
        return [{"name": "a<b", "words": 3}, {"name": "c", "words": 4}]

    def tables(self, width: int = WIDE) -> Sequence[Table | str]:
        table = Table("name", title="things")
        table.add_column("words", justify="right")
        for row in self.rows():
            table.add_row(row["name"], str(row["words"]))
        return ["first", "second [1]", table, "last"]


def test_text_has_every_line_and_no_space_at_ends() -> None:
    lines = str(Two()).splitlines()

    assert lines[:2] == ["first", "second [1]"] and lines[-1] == "last"
    assert any("a<b" in line for line in lines) and all(line == line.rstrip() for line in lines)


def test_html_is_escaped_and_keeps_lines_together() -> None:
    page = Two()._repr_html_()

    assert page.startswith("<pre>first\nsecond [1]</pre>\n<table><caption>things</caption>")
    assert "a&lt;b" in page and '<td style="text-align: right">3</td>' in page and page.endswith("<pre>last</pre>")


def test_a_frame_has_the_rows() -> None:
    frame = Two().to_frame()

    assert list(frame.columns) == ["name", "words"] and frame["words"].sum() == 7
