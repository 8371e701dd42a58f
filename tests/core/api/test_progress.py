"""Progress bars: where they are shown, and that they change nothing."""

import re
import sys
from typing import Any

import pytest

import tilewright as tw
from tilewright.api import progress
from tilewright.api.progress import is_shown
from tilewright.errors import InputError

GEMM = "nk,km->nm; n=8 k=6 m=6"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines without waiting."""
    monkeypatch.setattr(progress, "SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
def test_map_says_lines_where_it_is_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    silent, loud = (
        tw.map(GEMM, arch="eyeriss", mapper="random", evaluations=200, progress=shown, cache=False).edp
        for shown in (False, True)
    )
    seen = capsys.readouterr()
    assert silent == loud and seen.out == ""
    first, *_, last = seen.err.splitlines()
    assert re.fullmatch(
        r"0 s, 0 of 1 layers done; einsum \(1/1\), best [\d.]+ [munp]?J x cycles, [\d,]+ mappings/s", first
    )
    assert re.fullmatch(r"0 s, 1 of 1 layers done; einsum done, [\d,]+ mappings/s", last)


@pytest.mark.usefixtures("at_once")
def test_compare_too(capsys: pytest.CaptureFixture[str]) -> None:
    tw.compare(GEMM, arch="eyeriss", mappers="random", objective="cycles", evaluations=200, progress=True, cache=False)
    seen = capsys.readouterr()
    assert seen.out == "" and "0 of 1 searches done; random by timeloop: einsum, best " in seen.err


def test_a_short_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tw.map(GEMM, arch="eyeriss", mapper="random", evaluations=200, progress=True, cache=False)
    assert "done" not in capsys.readouterr().err


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "_has_bars", lambda: True)
    tw.map(GEMM, arch="eyeriss", mapper="random", evaluations=200, progress=True, cache=False)
    seen = capsys.readouterr()
    assert seen.out == "" and " of 1 layers" not in seen.err


@pytest.mark.parametrize("terminal", [False, True])
def test_without_a_word_it_is_for_terminals(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert is_shown(None) is terminal and is_shown(True) is True and is_shown(False) is False


@pytest.mark.parametrize("word", ["yes", 2, []])
def test_other_words_are_refused(word: Any) -> None:
    with pytest.raises(InputError, match="True, False or None"):
        is_shown(word)
