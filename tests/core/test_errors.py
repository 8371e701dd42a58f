"""What notebooks show of an error."""

import linecache
from typing import Any

import pytest

import tilewright as tw

CELL = "def wanted(name):\n    return tw.load(name, 'architecture')\n\nwanted('eyeris')\n"


def cell(text: str) -> list[str]:
    """Lines that IPython shows of the error of a cell: it calls the error's method."""
    names: dict[str, Any] = {"__name__": "__main__", "tw": tw}
    linecache.cache["<cell>"] = (len(text), None, text.splitlines(keepends=True), "<cell>")
    ipython: dict[str, Any] = {"__name__": "IPython.core.interactiveshell", "names": names}
    with pytest.raises(tw.TilewrightError) as raised:
        exec("exec(code, names)", ipython | {"code": compile(text, "<cell>", "exec")})
    lines: list[str] = raised.value._render_traceback_()
    return lines


def test_a_notebook_shows_the_calls_of_the_cell_and_the_message() -> None:
    lines = cell(CELL)
    assert [line.strip() for line in lines[:4]] == [
        'File "<cell>", line 4, in <module>', "wanted('eyeris')",
        'File "<cell>", line 2, in wanted', "return tw.load(name, 'architecture')",
    ]  # fmt: skip
    assert lines[4].startswith("UnknownNameError: ") and "did you mean 'eyeriss'" in lines[4] and len(lines) <= 6


def test_an_error_that_was_never_raised_shows_its_message() -> None:
    assert tw.errors.InputError("wrong", hint="write right")._render_traceback_() == [
        "InputError: wrong", "  hint: write right",
    ]  # fmt: skip
