"""Progress bars: where they are shown, and that they change nothing."""

import sys
from typing import Any

import pytest

import tilewright as tw
from tilewright.api.progress import is_shown
from tilewright.errors import InputError

GEMM = "nk,km->nm; n=8 k=6 m=6"


def test_a_bar_of_map_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    quiet, loud = (
        tw.map(GEMM, arch="eyeriss", evaluations=200, progress=shown, cache=False).edp for shown in (False, True)
    )
    seen = capsys.readouterr()
    assert quiet == loud and seen.out == "" and "einsum" in seen.err


def test_a_bar_of_compare_too(capsys: pytest.CaptureFixture[str]) -> None:
    tw.compare(GEMM, arch="eyeriss", mappers="random", models="timeloop", evaluations=200, progress=True, cache=False)
    seen = capsys.readouterr()
    assert seen.out == "" and "random by timeloop: einsum, best " in seen.err


@pytest.mark.parametrize("terminal", [False, True])
def test_without_a_word_it_is_for_terminals(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert is_shown(None) is terminal and is_shown(True) is True and is_shown(False) is False


@pytest.mark.parametrize("word", ["yes", 2, []])
def test_other_words_are_refused(word: Any) -> None:
    with pytest.raises(InputError, match="True, False or None"):
        is_shown(word)
