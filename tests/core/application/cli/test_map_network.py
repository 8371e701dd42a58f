"""`tilewright map` of whole networks: in several processes, and with what was found before."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.caches import alter, entries
from support.command import Command, interrupted
from tilewright import library
from tilewright.application.api.plan import Plan
from tilewright.application.run.cache import FILE
from tilewright.application.run.network import map_workload
from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Progress, Result
from tilewright.schema.workload import DistinctProblem

pytestmark = pytest.mark.process


@pytest.fixture
def watchers() -> Iterator[Callable[[object], None]]:
    """`watchers(plugin)` installs one for a test, under the name of its class."""
    manager, added = installed().manager, list[object]()

    def add(plugin: object) -> None:
        manager.register(plugin, name=type(plugin).__name__)
        added.append(plugin)

    yield add
    for plugin in added:
        manager.unregister(plugin)


WORDS = ("map", "union_dnn_layers", "--arch", "eyeriss", "--evaluations", 800, "--json")


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """All but times, and whether it was searched."""
    for layer in data["layers"]:
        for key in ("cpu_seconds", "wall_seconds", "cached"):
            del layer["search"][key]
    return data


def cache() -> Path:
    return Path(os.environ["TILEWRIGHT_CACHE"])


def test_processes_find_what_one_finds_in_the_same_order(tilewright: Command, tmp_path: Path) -> None:
    one = tilewright(*WORDS, "--no-cache", "-o", tmp_path / "one")
    two = tilewright(*WORDS, "--no-cache", "--jobs", 2, "-o", tmp_path / "two")
    assert (one.code, two.code) == (0, 0)
    assert figures(one.data) == figures(two.data)
    files = [sorted(path.name for path in (tmp_path / name).glob("*.yaml")) for name in ("one", "two")]
    assert files[0] == files[1]
    assert all((tmp_path / "one" / name).read_text() == (tmp_path / "two" / name).read_text() for name in files[0])


def test_processes_tell_how_far_they_are() -> None:
    """The watcher hears of layers while they are searched, and never less than before."""
    plan = Plan.of("alexnet", "eyeriss", ["random"], ["timeloop"], {"seconds": 1.0, "evaluations": 10**7})
    configuration = plan.configuration("random", plan.models[0])
    seen: dict[str, list[int]] = {}

    def watch(distinct: DistinctProblem, progress: Progress) -> None:
        assert progress.budget == configuration.budget
        seen.setdefault(distinct.problem.name, []).append(progress.evaluated)

    layers = list(map_workload(library.workload("union_dnn_layers"), configuration, watch, jobs=2))
    assert len(seen) >= len(layers) / 2
    for layer in layers:
        told = seen.get(layer.name, [])
        assert layer.result is not None and told == sorted(told)
        assert all(count <= layer.result.evaluated for count in told)


def test_an_error_in_a_process_is_that_of_the_layer(tilewright: Command) -> None:
    words = ("map", "quickflow_convs", "--arch", "eyeriss", "--mapper", "exhaustive", "--no-cache", "--quiet")
    one, two = tilewright(*words), tilewright(*words, "--jobs", 2)
    assert one.code == two.code == 2
    assert one.err == two.err and "the limit of the mapper" in two.err


@pytest.mark.parametrize("jobs", [1, 2])
def test_watchers_hear_of_every_search(tilewright: Command, watchers: Callable[[object], None], jobs: int) -> None:
    """In this process, with a result each; not of what was found before; one that raises loses nothing."""
    heard: list[tuple[str, str, int]] = []

    class Recorder:
        @hookimpl
        def tilewright_search_done(self, layer: str, result: Result) -> None:
            heard.append((layer, result.stop, os.getpid()))

    class Broken:
        @hookimpl
        def tilewright_search_done(self, layer: str) -> None:
            raise ZeroDivisionError("of no use")

    watchers(Broken())
    watchers(Recorder())
    ran = tilewright(*WORDS, "--jobs", jobs)
    ended = [(layer["name"], layer["search"]["stop"], os.getpid()) for layer in ran.data["layers"]]
    assert ran.code == 0 and sorted(heard) == sorted(ended)
    assert ran.err.count("plugin 'Broken' failed: tilewright_search_done raised ZeroDivisionError: of no use") == 1
    assert tilewright(*WORDS, "--jobs", jobs).err == "" and len(heard) == len(ended)
    compared = tilewright(
        "compare",
        WORDS[1],
        "--arch",
        "eyeriss",
        "--mappers",
        "random,gamma",
        "--models",
        "timeloop",
        "--evaluations",
        50,
    )
    assert compared.code == 0 and len(heard) == 3 * len(ended)
    assert "plugin 'Broken' failed" in compared.err


def test_a_search_that_cannot_start_is_not_told(tilewright: Command, watchers: Callable[[object], None]) -> None:
    class Recorder:
        @hookimpl
        def tilewright_search_done(self, layer: str, result: Result) -> None:
            raise AssertionError

    watchers(Recorder())
    ran = tilewright("map", "nk,kj,jm->nm; n=4 k=4 j=4 m=2", "--arch", "eyeriss", "--model", "maestro")
    assert ran.code == 2 and "at most 2 accepted" in ran.err and "Recorder" not in ran.err


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_found_is_found_again(tilewright: Command, jobs: int) -> None:
    """Figures are equal and marked as cached, in JSON and in the table."""
    first = tilewright(*WORDS, "--jobs", jobs).data
    again = tilewright(*WORDS, "--jobs", jobs).data
    assert [layer["search"]["cached"] for layer in first["layers"]] == [False] * len(first["layers"])
    assert [layer["search"]["cached"] for layer in again["layers"]] == [True] * len(first["layers"])
    assert first["layers"][0]["search"]["cpu_seconds"] == again["layers"][0]["search"]["cpu_seconds"]
    assert figures(first) == figures(again)
    assert len(entries(cache())) == len(first["layers"])
    table = tilewright(*WORDS[:-1], "--jobs", jobs)
    assert "from the cache" in table.out and "all layers" in table.out and "mappings evaluated in" not in table.out


OTHERWISE: list[tuple[object, ...]] = [
    ("--evaluations", 801),  # in place of 800
    ("--seed", 1),
    ("--objective", "energy"),
    ("--constraints", "none"),
    ("--mapper", "timeloop_random"),
    ("--mapper-option", "width=100"),
    ("--model-option", "link_transfers=false"),
    ("--patience", 700),
    ("--no-cache",),
]


@pytest.mark.parametrize("change", OTHERWISE, ids=lambda change: str(change[0]))
def test_another_search_is_not_taken_for_the_same(tilewright: Command, change: tuple[object, ...]) -> None:
    unlimited = ("map", "quickflow_convs/XII", "--arch", "eyeriss", "--json")
    words = (*unlimited, "--evaluations", 800)
    assert not tilewright(*words).data["layers"][0]["search"]["cached"]
    others = unlimited if change[0] == "--evaluations" else words
    assert not tilewright(*others, *change).data["layers"][0]["search"]["cached"]
    assert tilewright(*words).data["layers"][0]["search"]["cached"]


def test_nothing_is_kept_without_the_cache(tilewright: Command) -> None:
    tilewright(*WORDS, "--no-cache")
    assert not entries(cache())


def test_another_architecture_of_the_same_name_is_another(tilewright: Command, tmp_path: Path) -> None:
    text = "name: a\nclusters:\n- {name: D, memories: [{name: D, read_energy_pj: %s, write_energy_pj: 1}]}\ncompute: {energy_per_operation_pj: 1}\n"
    path = tmp_path / "a.yaml"
    found = []
    for energy in (1, 2):
        path.write_text(text % energy)
        found.append(tilewright("map", "nk,km->nm; n=4 k=4 m=2", "--arch", path, "--json").data["layers"][0])
    assert not found[1]["search"]["cached"]
    assert found[0]["best"]["energy_pj"] < found[1]["best"]["energy_pj"]


def _empty(text: str) -> str:
    return ""


def _cut(text: str) -> str:
    return text[: len(text) // 2]


def _cheaper(text: str) -> str:
    entry = json.loads(text)
    return json.dumps({**entry, "value": entry["value"] / 2})


def _smaller(text: str) -> str:
    entry = json.loads(text)
    first = entry["best"]["entries"][0]
    first["temporal_tile_sizes"] = dict.fromkeys(first["temporal_tile_sizes"], 1)
    return json.dumps(entry)


def _foreign(text: str) -> str:
    return json.dumps({**json.loads(text), "key": "0" * 64})


def _not_a_number(text: str) -> str:
    return re.sub('"value":[^,]*', '"value":NaN', text)


def _nothing(text: str) -> str:
    return json.dumps({**json.loads(text), "best": None})


def _endless(text: str) -> str:
    return json.dumps({**json.loads(text), "cpu_seconds": float("inf")})


@pytest.mark.parametrize("checksum", [False, True], ids=["altered", "forged"])
@pytest.mark.parametrize(
    "damage",
    [_empty, _cut, _cheaper, _smaller, _foreign, _not_a_number, _nothing, _endless],
    ids=lambda change: change.__name__,
)
def test_a_damaged_entry_is_ignored_with_a_warning_and_made_anew(
    tilewright: Command, damage: Any, checksum: bool
) -> None:
    words = ("map", "quickflow_convs/XII", "--arch", "eyeriss", "--evaluations", 800, "--json")
    first = tilewright(*words)
    good = entries(cache())
    alter(cache(), damage, checksum=checksum)
    again = tilewright(*words)
    assert again.code == 0 and "warning: cache entry ignored and rebuilt" in again.err
    assert "Traceback" not in again.err
    assert not again.data["layers"][0]["search"]["cached"]
    assert figures(again.data)["layers"] == figures(first.data)["layers"]
    ((kept, before),) = [(json.loads(entries(cache())[key]), json.loads(entry)) for key, entry in good.items()]
    assert (kept["best"], kept["value"]) == (before["best"], before["value"])
    third = tilewright(*words)
    assert third.data["layers"][0]["search"]["cached"] and not third.err


@pytest.mark.parametrize("odd", ["pipe", "text", "folder"])
def test_what_is_no_cache_in_its_place_is_told_and_replaced(tilewright: Command, odd: str) -> None:
    """A pipe is not waited for; a folder stays, and nothing is kept."""
    words = ("map", "quickflow_convs/XII", "--arch", "eyeriss", "--evaluations", 800, "--json")
    tilewright(*words)
    file = cache() / FILE
    file.unlink()
    if odd == "text":
        file.write_text("x" * 200)
    else:
        (os.mkfifo if odd == "pipe" else os.mkdir)(file)
    again = tilewright(*words)
    assert again.code == 0 and ("is not a database" if odd == "text" else "is no regular file") in again.err
    assert tilewright(*words).data["layers"][0]["search"]["cached"] == (odd != "folder")
    assert ("result not kept: cannot replace" in again.err) == (odd == "folder")


def test_two_runs_never_share_a_folder(tilewright: Command, tmp_path: Path) -> None:
    """The same run continues, a run of the same workload replaces it, one of another workload is refused."""
    words = ("--arch", "eyeriss", "--mapper", "random", "--evaluations", 20, "-o", tmp_path, "--quiet")
    tilewright("map", "quickflow_convs", *words)
    first = {path.name for path in tmp_path.iterdir()}
    other = tilewright("map", "union_dnn_layers", *words)
    assert (
        other.code == 2 and "contains files of another run: quickflow_convs by" in other.err and "--force" in other.err
    )
    assert tilewright("map", "union_dnn_layers", *words, "--resume").code == 2
    assert {path.name for path in tmp_path.iterdir()} == first
    resumed = tilewright("map", "quickflow_convs", *words[:-1], "--resume")
    assert resumed.code == 0 and "from the cache, not searched again (--no-cache would): all layers" in resumed.out
    assert tilewright("map", "quickflow_convs", *words, "--seed", 1).code == 0
    assert {path.name for path in tmp_path.iterdir()} == first
    assert tilewright("map", "union_dnn_layers", *words, "--force").code == 0
    assert len(list(tmp_path.glob("*.yaml"))) == 9


def test_going_on_with_a_run_needs_its_folder_and_the_cache(tilewright: Command, tmp_path: Path) -> None:
    for words in ((), ("-o", tmp_path / "x", "--no-cache")):
        ran = tilewright("map", "quickflow_convs/XII", "--arch", "eyeriss", "--resume", *words)
        assert ran.code == 2 and "resume needs a folder with a run" in ran.err


def test_a_cache_that_cannot_be_written_is_a_warning(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "file"))
    ran = tilewright("map", "quickflow_convs/XII", "--arch", "eyeriss", "--evaluations", 200)
    assert ran.code == 0 and "warning: result not kept" in ran.err and "energy" in ran.out


def test_interrupting_several_processes_keeps_what_is_done_and_under_way(tmp_path: Path) -> None:
    """Nothing that was interrupted goes into the cache."""
    folder, kept = tmp_path / "out", tmp_path / "cache"
    words = ["map", "resnet50", "--arch", "eyeriss", "--mapper", "random", "--seconds", "60", "--jobs", "2", "--json"]
    code, out, err = interrupted(2, *words, "-o", str(folder), TILEWRIGHT_CACHE=str(kept))
    assert code == 130, err
    assert "interrupted" in err and "Traceback" not in err
    data = json.loads(out)
    assert len(data["layers"]) == 2
    for layer in data["layers"]:
        assert layer["search"]["stop"] == "cancelled" and layer["best"]["valid"]
        assert (folder / layer["best"]["mapping_file"]).exists()
    assert not entries(kept)
