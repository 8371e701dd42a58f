"""The store: one row for each result, found by content, whole after a kill, and nobody else's file."""

import csv
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

import tilewright as tw
from tilewright.errors import InputError, OutputError, TilewrightError, UnknownNameError
from tilewright.exploration.records import FoundLayer
from tilewright.exploration.store import Store

FORMULA = "nk,km->nm; n=8 k=8 m=8"
SPACE: dict[str, Any] = {
    "kind": "space",
    "name": "small",
    "base": "eyeriss",
    "choices": {"GlobalBuffer.capacity_words": [64, 1024, 4096], "GlobalBuffer.read_energy_pj": [4, 6]},
    "limits": [],
}
RESULTS = (
    "SELECT machine, problem, method, energy_pj, cycles, mapping, reason FROM results ORDER BY machine, problem, method"
)


def explored(store: Path, points: int | None = None) -> tw.ExplorationReport:
    return tw.explore(FORMULA, SPACE, points=points, evaluations=40, store=store, progress=False)


def rows(store: Path, statement: str = RESULTS) -> list[Any]:
    with closing(sqlite3.connect(store)) as base:
        return base.execute(statement).fetchall()


def test_a_store_says_what_the_exploration_said(tmp_path: Path) -> None:
    store = tmp_path / "folder" / "all.sqlite"
    report = explored(store)

    assert tw.explored(store).rows() == report.rows()
    assert tw.explored(store, report.record.key[:6]).layer_rows() == report.layer_rows()
    assert len(rows(store)) == 6 and {row["outcome"] for row in report.rows()} == {"searched"}


def test_anybody_reads_it(tmp_path: Path) -> None:
    report = explored(tmp_path / "all.sqlite")
    told = rows(tmp_path / "all.sqlite", "SELECT point, energy_pj, cycles FROM explored ORDER BY point")

    assert told == [(row["point"], row["energy_pj"], row["cycles"]) for row in report.rows()]


def test_nothing_is_searched_twice_by_another_exploration_either(tmp_path: Path) -> None:
    store = tmp_path / "all.sqlite"
    explored(store)
    before = rows(store, "SELECT * FROM results")
    renamed = SPACE | {"name": "other", "choices": SPACE["choices"] | {"GlobalBuffer.capacity_words": [64, 4096]}}
    report = tw.explore(FORMULA, renamed, evaluations=40, store=store, progress=False)

    assert all(each.cached for each in report.found) and len(report.found) == 4
    assert rows(store, "SELECT * FROM results") == before
    with Store(store) as kept:
        assert [each.space["name"] for each in kept.explorations()] == ["small", "other"]


def test_failures_are_rows_and_searched_again_when_asked(tmp_path: Path) -> None:
    store, seen = tmp_path / "all.sqlite", "SELECT written, reason FROM results"

    def refused(retry: bool) -> Any:
        report = tw.explore(
            "abc,cd->abd; a=2 b=2 c=2 d=2", SPACE, model="maestro", store=store, retry=retry, progress=False
        )
        assert report.found == () and len(report.points) == 6
        return rows(store, seen)

    written = refused(retry=False)
    assert all(reason for _, reason in written) and refused(retry=False) == written
    assert [reason for _, reason in refused(retry=True)] == [reason for _, reason in written]
    assert rows(store, seen) != written


def test_a_failure_makes_room_for_a_result_and_a_result_stays(tmp_path: Path) -> None:
    found, other = FoundLayer(energy_pj=1.5, cycles=2), FoundLayer(energy_pj=9.0, cycles=9)
    with Store(tmp_path / "all.sqlite") as store:
        store.keep("m", "p", "w", FoundLayer(reason="it died"))
        assert store.find("m", "p", "w") == FoundLayer(reason="it died")
        store.keep("m", "p", "w", found)
        store.keep("m", "p", "w", other)
        assert store.find("m", "p", "w") == found and store.find("m", "p", "x") is None


def killed_after(store: Path, space: Path, results: int) -> None:
    """An exploration that is killed as soon as it kept so many results."""
    command = [sys.executable, "-m", "tilewright", "explore", FORMULA, "--space", str(space), "--store", str(store)]
    with subprocess.Popen([*command, "--evaluations", "40"], stdout=subprocess.DEVNULL) as program:
        while program.poll() is None:
            if store.exists():
                with closing(sqlite3.connect(store, timeout=30)) as base:
                    tables = base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'results'").fetchone()[0]
                    if tables and base.execute("SELECT count(*) FROM results").fetchone()[0] >= results:
                        os.kill(program.pid, signal.SIGKILL)
                        break
            time.sleep(0.01)
    assert program.returncode == -signal.SIGKILL, "it ended before it was killed"


def test_a_kill_loses_only_what_was_in_hand(tmp_path: Path) -> None:
    many = SPACE | {"choices": {"GlobalBuffer.capacity_words": {"first": 64, "last": 4096, "plus": 192}}}
    space, store = tmp_path / "space.yaml", tmp_path / "all.sqlite"
    space.write_text(yaml.safe_dump(many), encoding="utf-8")
    killed_after(store, space, 3)
    left = rows(store, "SELECT * FROM results")
    tw.explore(FORMULA, many, evaluations=40, store=store, progress=False)
    tw.explore(FORMULA, many, evaluations=40, store=tmp_path / "whole.sqlite", progress=False)

    assert 3 <= len(left) < 22 and rows(store) == rows(tmp_path / "whole.sqlite")
    assert set(left) <= set(rows(store, "SELECT * FROM results"))  # with the times at which they were written
    assert rows(store, "SELECT * FROM explored") == rows(tmp_path / "whole.sqlite", "SELECT * FROM explored")


def test_tables_are_exported(tmp_path: Path) -> None:
    report = explored(tmp_path / "all.sqlite")
    with open(report.save(tmp_path / "layers.csv", layers=True), encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))

    assert len(found) == 6 and float(found[0]["DRAM_pj"]) > 0
    with pytest.raises(InputError, match=r"neither .csv nor .parquet"):
        report.save(tmp_path / "points.txt")


@pytest.mark.parametrize("said", ["not a database", "is no store"])
def test_other_files_are_left_as_they_are(said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.sqlite"
    if said == "is no store":
        with closing(sqlite3.connect(file)) as base:
            base.execute("CREATE TABLE mine (a)")
    else:
        file.write_text("what somebody wrote\n" * 100, encoding="utf-8")
    before = file.read_bytes()

    with pytest.raises(InputError, match=said):
        explored(file)
    assert file.read_bytes() == before


def test_damage_is_told(tmp_path: Path) -> None:
    store = tmp_path / "all.sqlite"
    explored(store)
    for statement in ("UPDATE results SET places = '{'", "UPDATE explorations SET record = '{}'"):
        with closing(sqlite3.connect(store, isolation_level=None)) as base:
            base.execute(statement)
        with pytest.raises(InputError, match="is damaged"):
            tw.explored(store)


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (("none.sqlite",), InputError, "there is no store"),
        (("all.sqlite", "zz"), UnknownNameError, "0 explorations in .* are called 'zz'"),
    ],
)
def test_what_is_not_there_is_told(
    words: tuple[str, ...], error: type[TilewrightError], said: str, tmp_path: Path
) -> None:
    explored(tmp_path / "all.sqlite", points=1)
    with pytest.raises(error, match=said):
        tw.explored(tmp_path / words[0], *words[1:])
    with pytest.raises(OutputError):
        explored(tmp_path / "all.sqlite" / "below.sqlite")
