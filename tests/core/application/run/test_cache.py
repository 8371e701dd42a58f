"""Cached results: the key is a digest of the code that the search ran, and altered entries are not believed."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright import digests
from tilewright.application.run.cache import CHECKSUM, Entry, ResultCache
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
def cached(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """File of a proved result, and its contents."""
    folder = tmp_path_factory.mktemp("cache")
    tw.map(GEMM, "eyeriss", mapper="optimal", cache=folder, progress=False)
    (file,) = folder.rglob("*.json")
    return file, file.read_bytes()


def _mapped(file: Path) -> tw.MappingReport:
    return tw.map(GEMM, "eyeriss", mapper="optimal", cache=file.parents[1], progress=False)


def test_a_cached_proof_says_that_it_is_one(cached: tuple[Path, bytes]) -> None:
    report = _mapped(cached[0])
    assert report.layers[0].cached and report.data()["layers"][0]["search"]["gap"] < 1e-8
    assert "their proofs are those of earlier searches" in str(report)


def test_no_flipped_bit_is_believed(cached: tuple[Path, bytes]) -> None:
    """Not one bit, and not one letter, may change a result: an entry is what was written, or it is not read."""
    _, good = cached
    entry, draw = Entry.read(good), random.Random(1)
    for _ in range(400):
        damaged, at = bytearray(good), draw.randrange(len(good))
        damaged[at] ^= 1 << draw.randrange(8)
        try:
            assert Entry.read(bytes(damaged)) == entry
        except ValueError:
            continue


def _with_checksum(good: bytes, **changes: Any) -> bytes:
    data = json.loads(good) | changes
    del data[CHECKSUM]
    return json.dumps(data | {CHECKSUM: digests.of_data(data)}).encode()


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "bound above the value": {"lower_bound": 1e300},
    "negative bound": {"lower_bound": -5.0},
    "negative value": {"value": -1.0, "lower_bound": None},
    "another value": {"value": 1.0, "lower_bound": 1.0},
    "no number": {"value": float("nan")},
    "another objective": {"objective": "cycles"},
    "another seed": {"seed": 1},
    "another key": {"key": "0" * 64},
    "unknown field": {"proved": True},
    "figure that is no word": {"figures": {"=1+1": 1.0}},
    "too many figures": {"figures": {f"f{number}": 1.0 for number in range(101)}},
    "more valid than evaluated": {"valid": 10**9},
    "negative count": {"rejected": -1},
    "rising history": {"history": [[1, 5.0], [2, 6.0]]},
    "interrupted": {"stop": "cancelled"},
    "former version": {"schema_version": 1},
}


@pytest.mark.parametrize("changes", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_entries_are_told_and_rebuilt(cached: tuple[Path, bytes], changes: dict[str, Any]) -> None:
    file, good = cached
    file.write_bytes(_with_checksum(good, **changes))
    report = _mapped(file)
    assert not report.layers[0].cached and "cache entry ignored and rebuilt" in str(report)
    assert report.data()["layers"][0]["search"]["gap"] < 1e-8
    assert Entry.read(file.read_bytes()).best == Entry.read(good).best
    file.write_bytes(good)


def test_a_worse_mapping_with_its_own_value_as_a_bound_is_refused(cached: tuple[Path, bytes]) -> None:
    file, good = cached
    worse = tw.map(GEMM, "eyeriss", mapper="random", evaluations=3, cache=False, progress=False).layers[0].result
    assert worse is not None and worse.best is not None and worse.value > Entry.read(good).value
    forged = json.loads(good) | {"best": worse.best.model_dump(mode="json"), "value": worse.value}
    file.write_text(json.dumps(forged | {"lower_bound": worse.value}))
    report = _mapped(file)
    assert not report.layers[0].cached and "its checksum does not hold" in str(report)
    assert report.layers[0].edp == pytest.approx(Entry.read(good).value, rel=1e-9)
    file.write_bytes(good)


@pytest.mark.parametrize("contents", [b"[" * 100_000, b"[1]", b"null", b"\xff", b'{"a": 1' + b"0" * 9000 + b"}"])
def test_other_files_are_damaged_entries(contents: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Entry.read(contents)


def test_results_that_cannot_be_entries_are_not_kept(cached: tuple[Path, bytes], tmp_path: Path) -> None:
    result = Entry.read(cached[1]).result()
    change: Callable[..., Result] = lambda **fields: Result(**{**vars(result), **fields})  # noqa: E731
    for odd in (change(figures={"a b": 1.0}), change(valid=result.evaluated + 1)):
        with pytest.raises(OutputError):
            ResultCache(tmp_path).keep("0" * 64, odd)
    assert not list(tmp_path.iterdir())
