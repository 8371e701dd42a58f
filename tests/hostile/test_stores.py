"""Stores from elsewhere: a damaged or hostile one is refused with one message, or repaired, and never a wrong figure.

`--store-faults N` tries N flipped bits and N changed values.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import tilewright as tw
from support.stores import Trials, explored
from tilewright.application.run.cache import FILE
from tilewright.errors import InputError, TilewrightError

pytestmark = pytest.mark.hostile


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("stores"))


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--store-faults"))


def told(trials: Trials) -> str:
    return "\n".join([*(f"seed {seed}: {text}" for text, seed in trials.wrong.items()), str(dict(trials.counts))])


def test_a_flipped_bit_is_never_a_wrong_figure(trials: Trials, faults: int) -> None:
    trials.counts.clear()
    trials.flips(faults)

    assert not trials.wrong, told(trials)
    assert sum(trials.counts.values()) == 2 * faults and trials.counts["read: refused"] > 0


def test_a_changed_value_is_refused_or_something_sound(trials: Trials, faults: int) -> None:
    trials.counts.clear()
    trials.values(faults)

    assert not trials.wrong, told(trials)
    assert sum(trials.counts.values()) == 2 * faults and trials.counts["read: refused"] > 0


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
SCHEMAS = {
    "a view in place of a table": "ALTER TABLE machines RENAME TO p2; CREATE VIEW machines AS "
    f"{ENDLESS} SELECT x machine, 'm' name, 1.0 area_um2, '' architecture, '' checksum FROM n",
    "explorations that never end": "ALTER TABLE explorations RENAME TO p2; CREATE VIEW explorations AS "
    f"{ENDLESS} SELECT x exploration, '' record, '' checksum FROM n",
    "another view of that name": f"DROP VIEW explored; CREATE VIEW explored AS {ENDLESS} SELECT x FROM n",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
    "a further column": "ALTER TABLE results ADD COLUMN more TEXT",
    "another column": "ALTER TABLE results RENAME COLUMN cycles TO cycle",
    "a further table": "CREATE TABLE more (a)",
    "no results": "DROP TABLE results",
    "no tables": "; ".join(f"DROP TABLE {name}" for name in ("results", "machines", "points", "layers", "claims")),
    "an index": "CREATE INDEX i ON results (energy_pj)",
}


@pytest.mark.parametrize("change", SCHEMAS.values(), ids=SCHEMAS)
def test_only_the_known_schema_is_read(change: str, trials: Trials, tmp_path: Path) -> None:
    store = tmp_path / "other.sqlite"
    store.write_bytes(trials.data)
    with closing(sqlite3.connect(store, isolation_level=None)) as base:
        base.executescript(change)
    before = store.read_bytes()

    for read in (tw.explored, explored):
        with pytest.raises(
            InputError, match=r"is no store as Tilewright writes it: unexpected, absent or changed: \w+"
        ):
            read(store)
    assert store.read_bytes() == before


CACHES = {
    "results that never end": "ALTER TABLE results RENAME TO r2; CREATE VIEW results AS "
    f"{ENDLESS} SELECT x key, '' entry, '' checksum FROM n",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
    "a further column": "ALTER TABLE results ADD COLUMN more TEXT",
    "no results": "DROP TABLE results",
}


@pytest.mark.parametrize("change", CACHES.values(), ids=CACHES)
def test_a_cache_with_another_schema_is_told_and_replaced(change: str, tmp_path: Path) -> None:
    def mapped() -> tw.MappingReport:
        return tw.map("nk,km->nm; n=4 k=4 m=4", "eyeriss", evaluations=20, cache=tmp_path, progress=False)

    first = mapped()
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as base:
        base.executescript(change)
    second, third = mapped(), mapped()
    assert "cache entry ignored and rebuilt: " in str(second) and not second.layers[0].cached
    assert third.layers[0].cached and third.layers[0].edp == second.layers[0].edp == first.layers[0].edp


HEADERS = {
    "is not a database": b"text of somebody\n" * 100,
    "is empty": b"",
    "is no store of explorations": b"SQLite format 3\0" + bytes(84),
    "is a store of version 1; this program reads version 3": b"SQLite format 3\0" + bytes(44) + (1).to_bytes(4) + bytes(4) + (0x7411E516).to_bytes(4) + bytes(28),
}  # fmt: skip


@pytest.mark.parametrize("message", HEADERS)
def test_what_is_no_store_is_not_opened(message: str, tmp_path: Path) -> None:
    store = tmp_path / "other.sqlite"
    store.write_bytes(HEADERS[message])

    with pytest.raises(InputError, match=message) as raised:
        tw.explored(store)
    assert "version" in message or "tilewright explore --store FILE" in str(raised.value.hint)
    if message != "is empty":
        with pytest.raises(InputError, match=message):
            explored(store)
    assert [path.name for path in tmp_path.iterdir()] == ["other.sqlite"] and store.read_bytes() == HEADERS[message]


@pytest.mark.parametrize("name", [":memory:", "a\0b.sqlite", ".", ""])
def test_names_that_are_no_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for read in (tw.explored, explored):
        with pytest.raises(TilewrightError, match=r"no name of a file|no regular file|no path|there is no store"):
            read(Path(name))
    assert not list(tmp_path.iterdir())


def test_a_row_larger_than_any_is_refused(trials: Trials, tmp_path: Path) -> None:
    store = tmp_path / "large.sqlite"
    store.write_bytes(trials.data)
    with closing(sqlite3.connect(store, isolation_level=None)) as base:
        base.execute("UPDATE results SET places = printf('%.*c', 17 * 1024 * 1024, 'x')")
    with pytest.raises(InputError, match="is damaged: string or blob too big"):
        tw.explored(store)
