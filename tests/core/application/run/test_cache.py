"""Cached results: the key is a digest of the code that the search ran, and altered entries are not believed."""

import json
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.caches import alter, entries
from support.processes import unwritable
from tilewright.application.run.cache import FILE, ResultCache
from tilewright.digests import of_package
from tilewright.errors import OutputError
from tilewright.plugin.result import Result

GEMM = "mk,kn->mn; m=12 n=16 k=8"


def test_code_includes_the_packages_that_a_plugin_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, shared = tmp_path / "tilewright_one", tmp_path / "tilewright_shared.py"
    plugin.mkdir()
    (plugin / "__init__.py").write_text("")
    (plugin / "model.py").write_text("def f():\n    from tilewright_shared import g\n")
    monkeypatch.syspath_prepend(tmp_path)

    def digest() -> str:
        of_package.cache_clear()
        return of_package("tilewright_one")

    absent = digest()
    shared.write_text("g = 1\n")
    first = digest()
    shared.write_text("g = 2  # another\n")
    assert len({absent, first, digest()}) == 3
    assert of_package("tilewright_nowhere") == ""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Folder with a proved result, and the result."""
    folder = tmp_path_factory.mktemp("cache")
    result = tw.map(GEMM, "eyeriss", mapper="optimal", cache=folder, progress=False).layers[0].result
    assert result is not None
    return folder, result


@pytest.fixture
def folder(found: tuple[Path, Result], tmp_path: Path) -> Path:
    """A copy of that folder."""
    shutil.copytree(found[0], tmp_path / "cache")
    return tmp_path / "cache"


def _mapped(folder: Path) -> tw.MappingReport:
    return tw.map(GEMM, "eyeriss", mapper="optimal", cache=folder, progress=False)


def test_a_cached_proof_says_that_it_is_one(folder: Path) -> None:
    report = _mapped(folder)
    assert report.layers[0].cached and report.data()["layers"][0]["search"]["gap"] < 1e-8
    assert "their proofs are those of earlier searches" in str(report)
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_no_flipped_bit_is_believed(found: tuple[Path, Result], folder: Path) -> None:
    """Not one bit of the file may change a result, and none keeps the next result out."""
    good, draw, (key,) = (folder / FILE).read_bytes(), random.Random(1), entries(folder)
    for _ in range(400):
        damaged, at = bytearray(good), draw.randrange(len(good))
        damaged[at] ^= 1 << draw.randrange(8)
        (folder / FILE).write_bytes(damaged)
        with suppress(ValueError):
            assert ResultCache(folder).find(key) in (None, found[1])
        if at in range(68, 72):  # the application_id: it may be another program's file
            continue
        ResultCache(folder).keep(key, found[1])
        assert ResultCache(folder).find(key) == found[1]


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "bound above the value": {"lower_bound": 1e300},
    "negative bound": {"lower_bound": -5.0},
    "negative value": {"value": -1.0, "lower_bound": None},
    "another value": {"value": 1.0, "lower_bound": 1.0},
    "no number": {"value": float("nan")},
    "another objective": {"objective": "cycles"},
    "another seed": {"seed": 1},
    "unknown field": {"proved": True},
    "figure that is no word": {"figures": {"=1+1": 1.0}},
    "too many figures": {"figures": {f"f{number}": 1.0 for number in range(101)}},
    "more valid than evaluated": {"valid": 10**9},
    "negative count": {"rejected": -1},
    "rising history": {"history": [[1, 5.0], [2, 6.0]]},
    "interrupted": {"stop": "cancelled"},
    "former version": {"schema_version": 2},
}


@pytest.mark.parametrize("changes", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_entries_are_told_and_rebuilt(folder: Path, changes: dict[str, Any]) -> None:
    (good,) = entries(folder).values()
    alter(folder, lambda entry: json.dumps(json.loads(entry) | changes), checksum=True)
    report = _mapped(folder)
    assert not report.layers[0].cached and "cache entry ignored and rebuilt" in str(report)
    assert report.data()["layers"][0]["search"]["gap"] < 1e-8
    (rebuilt,) = entries(folder).values()
    assert json.loads(rebuilt)["best"] == json.loads(good)["best"]


def test_a_worse_mapping_with_its_own_value_as_a_bound_is_refused(found: tuple[Path, Result], folder: Path) -> None:
    worse = tw.map(GEMM, "eyeriss", mapper="random", evaluations=3, cache=False, progress=False).layers[0].result
    assert worse is not None and worse.best is not None and worse.value > found[1].value
    changes = {"best": worse.best.model_dump(mode="json"), "value": worse.value, "lower_bound": worse.value}
    alter(folder, lambda entry: json.dumps(json.loads(entry) | changes))
    report = _mapped(folder)
    assert not report.layers[0].cached and "its checksum does not hold" in str(report)
    assert report.layers[0].edp == pytest.approx(found[1].value, rel=1e-9)


@pytest.mark.parametrize("contents", ["[" * 100_000, "[1]", "null", b"\xff", '{"a": 1' + "0" * 9000 + "}"])
def test_other_entries_are_damaged(folder: Path, contents: str | bytes) -> None:
    alter(folder, lambda _: contents, checksum=isinstance(contents, str))
    with pytest.raises(ValueError, match="is damaged"):
        ResultCache(folder).find(*entries(folder))


def test_results_that_cannot_be_entries_are_not_kept(found: tuple[Path, Result], tmp_path: Path) -> None:
    result = found[1]
    change: Callable[..., Result] = lambda **fields: Result(**{**vars(result), **fields})  # noqa: E731
    for odd in (change(figures={"a b": 1.0}), change(valid=result.evaluated + 1)):
        with pytest.raises(OutputError):
            ResultCache(tmp_path).keep("0" * 64, odd)
    assert not list(tmp_path.iterdir())
    figures = {"traffic": 2.0, "traffic[Inputs]": 1.0}  # as `cosa` names them
    ResultCache(tmp_path).keep("0" * 64, change(figures=figures))
    assert list(entries(tmp_path)) == ["0" * 64]


@pytest.mark.parametrize("application", [0, 0x7411E516])
def test_a_database_of_another_program_stays(found: tuple[Path, Result], folder: Path, application: int) -> None:
    """Such as a store of explorations under the name of the cache."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as base:
        base.execute(f"PRAGMA application_id = {application}")
    before = (folder / FILE).read_bytes()
    report = _mapped(folder)
    assert not report.layers[0].cached and "is no cache of results, and stays as it is" in str(report)
    assert (folder / FILE).read_bytes() == before


KEEPING = """
import sys
from pathlib import Path
from tilewright.application.run.cache import Entry, ResultCache
cache, result = ResultCache(Path(sys.argv[1])), Entry.model_validate_json(sys.stdin.read()).result()
for number in range(20):
    cache.keep(f"{sys.argv[2]} {number}", result)
    assert cache.find(f"{sys.argv[2]} {number}") == result
"""
INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from tilewright.application.database import Database
from tilewright.application.run.cache import FILE, SCHEMA
base, entry = Database(Path(sys.argv[1]) / FILE, SCHEMA, write=True), sys.stdin.read()
base.run("PRAGMA cache_size = 1")  # pages go to the file before the end
with base.changing():
    for number in range(100):
        base.put("results", key=f"{sys.argv[2]} {number}", entry=entry)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _running(program: str, folder: Path, mark: str, entry: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", program, folder, mark], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(entry)
    process.stdin.close()
    return process


@pytest.mark.process
def test_two_programs_keep_their_results_in_one_file(folder: Path) -> None:
    (entry,) = entries(folder).values()
    for process in [_running(KEEPING, folder, mark, entry) for mark in ("one", "two")]:
        assert process.wait(120) == 0
    assert len(entries(folder)) == 41 and set(entries(folder).values()) == {entry}


@pytest.mark.process
def test_an_interrupted_write_is_undone(found: tuple[Path, Result], folder: Path) -> None:
    (key, entry), before = *entries(folder).items(), (folder / FILE).read_bytes()
    assert _running(INTERRUPTED, folder, "killed", entry).wait(120) == -signal.SIGKILL
    assert (folder / f"{FILE}-journal").stat().st_size and (folder / FILE).read_bytes() != before
    cache = ResultCache(folder)
    assert cache.find("killed 0") is None and cache.find(key) == found[1]
    assert (folder / FILE).read_bytes() == before
    cache.keep("killed 0", found[1])
    assert cache.find("killed 0") == found[1]


def test_a_cache_in_a_read_only_folder_is_read(found: tuple[Path, Result], folder: Path) -> None:
    (key,) = entries(folder)
    with unwritable(folder):
        cache = ResultCache(folder)
        assert cache.find(key) == found[1]
        with pytest.raises(OutputError):
            cache.keep(key, found[1])
        assert cache.find(key) == found[1] and [path.name for path in folder.iterdir()] == [FILE]


def test_a_full_disk_is_told_and_what_was_kept_stays(found: tuple[Path, Result], folder: Path) -> None:
    (key, entry), (_, most) = *entries(folder).items(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((folder / FILE).stat().st_size, most))
    try:
        cache = ResultCache(folder)
        with pytest.raises(OutputError, match=r"disk I/O error|full"):
            for number in range(100):
                cache.keep(str(number), found[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    kept = entries(folder)
    assert kept.pop(key) == entry and ResultCache(folder).find(key) == found[1]
    ResultCache(folder).keep("later", found[1])
    assert entries(folder).keys() == {key, "later", *kept}


def test_a_lock_is_waited_for_once(found: tuple[Path, Result], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.application.database.LOCK_SECONDS", 0.1)
    (key,) = entries(folder)
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as base:
        base.execute("BEGIN EXCLUSIVE")
        report = _mapped(folder)
        assert report.layers[0].edp == pytest.approx(found[1].value)
        assert "cache not read: " in str(report) and "result not kept: " in str(report)
        cache = ResultCache(folder)
        with pytest.raises(OutputError, match="database is locked"):
            cache.find(key)
        monkeypatch.setattr("tilewright.application.run.cache.Database", None)
        with pytest.raises(OutputError, match="database is locked"):
            cache.find(key)
