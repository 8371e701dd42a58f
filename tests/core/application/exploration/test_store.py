"""The store: one row per result, found by content, whole after a kill, and only in a file of its own."""

import csv
import json
import os
import resource
import shutil
import signal
import socket
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
from support.processes import soon, unwritable
from tilewright.application.exploration.records import FoundLayer
from tilewright.application.exploration.store import Store
from tilewright.errors import InputError, OutputError, TilewrightError, UnknownNameError
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, Objective

pytestmark = pytest.mark.process

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
        assert [exploration.space["name"] for exploration in kept.explorations()] == ["small", "other"]


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
        assert store.find("m", "p", "w", EDP) == FoundLayer(reason="it died")
        store.keep("m", "p", "w", found)
        store.keep("m", "p", "w", other)
        assert store.find("m", "p", "w", EDP) == found and store.find("m", "p", "x", EDP) is None


@pytest.mark.parametrize(("objective", "most"), [(ENERGY, 1.5), (CYCLES, 2.0), (EDP, 3.0), (ED2P, 6.0)])
def test_a_bound_is_from_0_to_the_value_of_the_objective(tmp_path: Path, objective: Objective, most: float) -> None:
    with Store(tmp_path / "all.sqlite") as store:
        for number, bound in enumerate([0.0, most, most * 1.001, -0.001]):
            impossible = FoundLayer(energy_pj=1.5, cycles=2).model_copy(update={"lower_bound": bound})
            store.keep("m", str(number), "w", impossible)
        for number, bound in ((0, 0.0), (1, most)):
            found = store.find("m", str(number), "w", objective)
            assert found is not None and found.lower_bound == bound
        for number in (2, 3):
            with pytest.raises(InputError, match="none that Tilewright writes"):
                store.find("m", str(number), "w", objective)


def killed_after(store: Path, space: Path, results: int) -> None:
    """Run an exploration that is killed as soon as it has stored `results` results."""
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
    assert all("=" in row["sizes"] for row in found)
    with pytest.raises(InputError, match=r"neither .csv nor .parquet"):
        report.save(tmp_path / "points.txt")


SHARED = """
import sys, json, tilewright as tw
formula, space, store = sys.argv[1:]
report = tw.explore(formula, space, evaluations=40, store=store, bounds=False, progress=False)
print(json.dumps([[row for row in report.rows()], sum(not point.cached for point in report.points)]))
"""
MANY = SPACE | {"choices": {"GlobalBuffer.capacity_words": {"first": 64, "last": 4096, "plus": 96}}}


def test_explorations_on_one_store_share_the_searches(tmp_path: Path) -> None:
    space, store = tmp_path / "space.yaml", tmp_path / "all.sqlite"
    space.write_text(yaml.safe_dump(MANY), encoding="utf-8")
    words = [sys.executable, "-c", SHARED, FORMULA, str(space), str(store)]
    programs = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    (one, searched), (other, searched_too) = (json.loads(program.communicate(timeout=300)[0]) for program in programs)

    assert one == other and len(one) == 43
    assert searched + searched_too == 43 and min(searched, searched_too) > 0
    assert rows(store, "SELECT * FROM claims") == []


def claimed(store: Path, claim: tuple[str, int, float]) -> tw.ExplorationReport:
    """Explore what another program claims: that of a host and a process, for some seconds from now on."""
    host, pid, seconds = claim
    with closing(sqlite3.connect(store, isolation_level=None)) as base:
        base.execute(
            "INSERT INTO claims SELECT machine, problem, method, 'owner', ?, ?, ? FROM results", (host, pid, time.time() + seconds)
        )  # fmt: skip
        base.execute("DELETE FROM results")
    return explored(store)


def test_claims_expire(tmp_path: Path) -> None:
    store = tmp_path / "all.sqlite"
    before = explored(store).rows()
    began = time.time()

    assert claimed(store, ("another host", 1, 3.0)).rows() == before
    assert time.time() >= began + 3.0


@pytest.mark.parametrize("claim", [("another host", 1, 1e9), (socket.gethostname(), 2**22 + 1, 50.0), ("x", 1, -1.0)])
def test_claims_of_programs_that_ended_block_nobody(
    claim: tuple[str, int, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a clock that was set back, one of a process that is gone, one that expired."""
    store = tmp_path / "all.sqlite"
    before = explored(store).rows()
    monkeypatch.setattr("tilewright.application.exploration.exploring.time.sleep", None)  # nothing is waited for

    assert claimed(store, claim).rows() == before


def test_claims_are_renewed_and_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.application.exploration.claims.RENEWAL_SECONDS", 0.05)
    read = "SELECT expires FROM claims"
    with Store(tmp_path / "all.sqlite") as store, Store(tmp_path / "all.sqlite") as other:
        assert store.claim("m", "p", "w") == "claimed" and store.claim("m", "p", "w") == "claimed"
        assert other.claim("m", "p", "w") == "claimed by another" and other.is_claimed("m", "p", "w")
        first = rows(tmp_path / "all.sqlite", read)
        assert soon(lambda: rows(tmp_path / "all.sqlite", read) > first)
        store.keep("m", "p", "w", FoundLayer(reason="it died"))
        assert other.claim("m", "p", "w") == "found" and other.claim("m", "p", "w", retry=True) == "claimed"
    assert rows(tmp_path / "all.sqlite", read) == []


def test_a_batch_is_in_the_file_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy made during an exploration, or after a kill, has all finished batches."""
    copy = tmp_path / "copy.sqlite"
    with Store(tmp_path / "all.sqlite") as store:
        shutil.copy(tmp_path / "all.sqlite", copy)
        assert rows(copy) == []
        for number in range(50):
            store.keep("m", str(number), "w", FoundLayer(reason="it died"))
        store.checkpoint()
        shutil.copy(tmp_path / "all.sqlite", copy)
        assert len(rows(copy)) == 50
        monkeypatch.setattr("tilewright.application.exploration.store.CHECKPOINT_SECONDS", 0.0)
        store.keep("m", "50", "w", FoundLayer(reason="it died"))
        shutil.copy(tmp_path / "all.sqlite", copy)
        assert len(rows(copy)) == 51


def test_a_store_in_a_read_only_folder_is_read(tmp_path: Path) -> None:
    store = tmp_path / "all.sqlite"
    explored(store)
    before = tw.explored(store).rows()
    with unwritable(tmp_path):
        assert tw.explored(store).rows() == before

    assert [path.name for path in tmp_path.iterdir()] == ["all.sqlite"]


def test_a_read_only_store_says_what_is_missing(tmp_path: Path) -> None:
    store, copy = tmp_path / "all.sqlite", tmp_path / "copy" / "all.sqlite"
    copy.parent.mkdir()
    with Store(store) as kept:
        kept.keep("m", "p", "w", FoundLayer(reason="it died"))
        shutil.copy(store, copy)
        shutil.copy(f"{store}-wal", f"{copy}-wal")

    with unwritable(copy.parent), pytest.raises(InputError) as error:
        tw.explored(copy)
    assert "its latest results are in all.sqlite-wal, and its folder cannot be written to" in error.value.message
    assert error.value.hint == "copy all.sqlite and all.sqlite-wal to a folder of yours"
    assert len(rows(copy)) == len(rows(store)) == 1


def test_a_file_size_limit_is_told(tmp_path: Path) -> None:
    store = tmp_path / "all.sqlite"
    explored(store, points=2)
    before = rows(store)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store.stat().st_size, limit[1]))
    try:
        with pytest.raises(
            OutputError, match=r"(?s)disk I/O error.*hint: check free space, quotas and file size limits"
        ):
            tw.explore(FORMULA, MANY, evaluations=40, store=store, bounds=False, progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert set(before) <= set(rows(store))
    assert len(explored(store).found) == 6


def test_figures_beyond_sqlites_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"an integer beyond 2\^63 cannot be stored"):
        tw.explore(
            "nk,km->nm; n=1099511627776 k=1099511627776 m=1024", SPACE, store=tmp_path / "a.sqlite", progress=False
        )


def test_a_program_that_writes_is_waited_for_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.application.database.LOCK_SECONDS", 1.0)
    store = tmp_path / "all.sqlite"
    explored(store, points=1)
    with closing(sqlite3.connect(store, isolation_level=None)) as base:
        base.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutputError, match=r"(?s)database is locked.*hint: another program writes to it"):
            explored(store)


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


def test_damage_is_told_and_searched_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = tmp_path / "all.sqlite"
    explored(store)
    sound = tw.explored(store).rows()
    for statement, table in (
        ("UPDATE results SET energy_pj = 1", "results"),
        ("UPDATE explorations SET record = '{}'", "explorations"),
        ("UPDATE points SET machine = NULL WHERE point = 3", "points"),
        ("UPDATE layers SET count = 2", "layers"),
    ):
        with closing(sqlite3.connect(store, isolation_level=None)) as base:
            base.execute(statement)
        with pytest.raises(
            InputError, match=rf"is damaged: table {table}, row with \w+ .*: its checksum does not hold"
        ):
            tw.explored(store)
        with caplog.at_level("WARNING", "tilewright"):
            assert explored(store).rows() == sound
        assert "rows were taken out" in caplog.text and f"table {table}" in caplog.text
        caplog.clear()
        assert tw.explored(store).rows() == sound


def test_a_damaged_schema_is_told_as_text(tmp_path: Path) -> None:
    """SQLite's own message holds bytes of the file that are no UTF-8."""
    store = tmp_path / "all.sqlite"
    with Store(store):
        pass
    store.write_bytes(store.read_bytes().replace(b"WITHOUT ROWID", b"WITHOUT R\xcfWID", 1))

    with pytest.raises(InputError, match=r"is damaged: malformed database schema .* unknown table option: R\\xcfWID"):
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
