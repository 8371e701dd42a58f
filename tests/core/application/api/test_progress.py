"""Progress bars: where they are shown, and that they change nothing."""

import re
import sys
import time

import pytest

import tilewright as tw
from tilewright.application.api import progress
from tilewright.application.api.progress import is_shown
from tilewright.plugin.mapper import Budget
from tilewright.plugin.result import Progress
from tilewright.schema.objective import EDP

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


def test_compiling_fits_in_a_line_and_claims_no_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws bars as in a terminal
    monkeypatch.setattr(progress, "_has_bars", lambda: True)
    monkeypatch.setattr(progress, "functions_compiled", lambda: 86)
    with progress._display(1, "layers"):
        pass
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", capsys.readouterr().err)]
    shown = [line for line in lines if line.strip()]
    assert shown and all("86 functions compiled" in line and line.rstrip().endswith("elapsed") for line in shown)


def test_the_rate_leaves_out_the_time_before_the_first_search(monkeypatch: pytest.MonkeyPatch) -> None:
    now, notes = [0.0], []

    class Notes:
        def show(self, done: float, what: str, note: str = "") -> None:
            notes.append(note)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    workload = tw.load(GEMM, "workload")
    watcher = progress.MappingProgress(workload, Budget(evaluations=400), EDP, Notes())
    now[0] = 101.0  # 100 s of compiling, 1 s of search
    watcher.watch(workload.distinct()[0], Progress(200, 200, 1.0, 1.0, Budget(evaluations=400)))
    assert notes[0].endswith("200 mappings/s")


@pytest.mark.parametrize("terminal", [False, True])
def test_without_a_word_it_is_for_terminals(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert is_shown(None) is terminal and is_shown(True) is True and is_shown(False) is False
