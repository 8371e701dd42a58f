"""The table of pairs tells which searches failed, and searches these again."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from benchmarks import pairs
from tilewright.application.run.search import search
from tilewright.errors import TilewrightError


def test_a_failed_search_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "pairs.csv"

    def failing(*arguments: Any, **options: Any) -> Any:
        return replace(search(*arguments, **options), error=TilewrightError("no room"))

    machine = tw.load("union_edge", "architecture")
    monkeypatch.setattr(pairs, "machines", lambda: {"union_edge": machine})
    monkeypatch.setattr(pairs, "LAYERS", {"product": "mk,kn->mn; m=4 k=4 n=4"})
    monkeypatch.setattr("sys.argv", ["pairs", "-o", str(table)])
    monkeypatch.setattr(pairs, "search", failing)
    pairs.main()
    told = capsys.readouterr()
    assert "product on union_edge failed: no room" in told.err and "1 failed" in told.out
    assert [row["gap"] for row in csv.DictReader(table.read_text().splitlines())] == ["failed"]
    monkeypatch.setattr(pairs, "search", search)
    pairs.main()
    assert "1 of 1 proved" in capsys.readouterr().out
    assert all(float(row["gap"]) < 1e-8 for row in csv.DictReader(table.read_text().splitlines()))
