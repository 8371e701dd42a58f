"""Whatever a plugin does, one line names it, and nobody else's results suffer."""

import logging
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import pytest
from tilewright_sick.commands import Ran, Sick
from tilewright_sick.faults import BRUTAL, FAULTS, LOUD, SLOW

from tilewright.plugin.guard import imports, processes

EXAMPLES = Path(__file__).parents[4] / "examples"
FILES = [EXAMPLES / f"gemm.{part}.yaml" for part in ("problem", "mapping")] + [EXAMPLES / "small.arch.yaml"]
CONV = "O[k,p,q] += I[c,p+r,q+s] * W[k,c,r,s]; k=4 c=4 p=4 q=4 r=3 s=3"
WHERE = (CONV, "--arch", "eyeriss", "--evaluations", 200, "--no-cache", "--json")
HARMLESS = {*LOUD, "change folder", "rewrites the run"}
"""What breaks nothing: nobody is named."""


PLACES_OF: dict[str, list[str]] = {}
"""The places at which a fault may happen."""
for _place, _faults in FAULTS.items():
    for _fault in _faults:
        PLACES_OF.setdefault(_fault, []).append(_place)


def is_drawn(place: str, fault: str) -> bool:
    """True at one of three places of a fault that happens at many, and at every place of the others."""
    places, number = PLACES_OF[fault], list(PLACES_OF).index(fault)
    return len(places) < 3 or (places.index(place) + number) % 3 == 0


def of(*places: str, without: Set[str] = frozenset()) -> pytest.MarkDecorator:
    """Every fault of some places. Those that are not drawn are marked `exhaustive`."""
    found = [
        pytest.param(f"{place} {fault}", marks=() if is_drawn(place, fault) else (pytest.mark.exhaustive,))
        for place in places
        for fault in FAULTS[place]
        if fault not in {*BRUTAL, *without}
    ]
    return pytest.mark.parametrize("sick", found)


def is_harmless(sick: str) -> bool:
    return sick.partition(" ")[2] in HARMLESS


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Seconds become tenths of them, and what is told once is told anew."""
    monkeypatch.setattr(processes, "GRACE", 0.5)
    monkeypatch.setattr(imports, "SHORTEST", 5.0)
    processes.warn_once.cache_clear()
    logger = logging.getLogger("tilewright")
    before = list(logger.handlers)
    yield
    logger.handlers[:] = before


_HEALTHY: dict[tuple[object, ...], Ran] = {}


def _healthy(call: Sick, *words: object) -> Ran:
    """What is found when nobody is sick; once for the same words."""
    if words not in _HEALTHY:
        _HEALTHY[words] = call("healthy", *words)
    return _HEALTHY[words]


def figures(ran: Ran) -> Any:
    """What was found, times aside."""
    layers = ran.data["layers"]
    return [layer["best"] for layer in layers]


def rows(ran: Ran, mapper: str, guide: str, model: str) -> Any:
    """The costs by a model of what a search found."""
    return [
        cost
        for row in ran.data["rows"]
        if (row["mapper"], row["guide"]) == (mapper, guide)
        for cost in row["prices"]
        if cost["model"] == model
    ]


def named(ran: Ran, what: str = "sick") -> None:
    """One line names the plugin, its distribution and version."""
    assert len(ran.blame) == 1, ran.err
    assert what in ran.blame[0] and "tilewright-sick 1.0" in ran.blame[0].replace(
        "tilewright-sick/sick 1.0", "tilewright-sick 1.0"
    )
    assert len(ran.blame[0]) < 700


# -- while plugins are found ---------------------------------------------------------------------------------------


@of("import", "tilewright_plugins", without={"slow"})
def test_what_does_not_load_is_listed_and_harms_nobody(run: Sick, sick: str) -> None:
    listed = run(sick, "plugins", "list", "--json")
    assert listed.code == 0 and {row["name"] for row in listed.data["plugins"]} >= {"random", "timeloop"}
    broken = [line for line in listed.data["broken"] if "tilewright-sick" in line]
    if is_harmless(sick) or sick.endswith(" print"):
        assert broken == [] and listed.blame == []
        return
    assert broken and "tilewright-sick/sick 1.0 failed at" in broken[0] and "TILEWRIGHT_DISABLE=" in broken[0]
    asked = run(sick, "map", *WHERE, "--mapper", "tilewright-sick/sick")
    assert asked.code == 3 and asked.data["error"]["code"] == "plugin"
    named(asked)


@of("import")
def test_a_command_that_does_not_use_it_finds_what_it_finds_without(run: Sick, sick: str) -> None:
    assert figures(run(sick, "map", *WHERE, "--mapper", "random")) == figures(
        _healthy(run, "map", *WHERE, "--mapper", "random")
    )


@of("spec")
def test_a_bad_spec_harms_itself_alone(run: Sick, sick: str) -> None:
    listed = run(sick, "plugins", "list", "--json")
    (broken,) = [line for line in listed.data["broken"] if "tilewright-sick" in line]
    assert "1.0 failed at specs: " in broken and listed.code == 0
    assert sum(row["distribution"] == "tilewright-sick" for row in listed.data["plugins"]) == 4
    assert run(sick, "map", *WHERE, "--mapper", "sick").code == 0
    if "sicker" in broken.partition(" failed")[0]:
        asked = run(sick, "map", *WHERE, "--mapper", "sicker")
        assert asked.code == 3 and "sicker" in asked.blame[0]


def test_a_slow_import_is_told_with_its_seconds(run: Sick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processes.SECONDS, "60")
    ran = run("import slow", "plugins", "list", "--json")
    assert re.search(r"took [1-9]\d*\.\d s to import", ran.err)  # it sleeps for 1.2 s, and a busy host adds to that
    named(ran)


# -- mappers -------------------------------------------------------------------------------------------------------


def limits(sick: str) -> tuple[object, ...]:
    return ("--seconds", 0.3) if sick.partition(" ")[2] in SLOW else ()


@of("mapper.factory", "mapper.search", "mapper.step")
def test_a_mapper(run: Sick, sick: str, tmp_path: Path) -> None:
    alone = run(sick, "map", *WHERE, *limits(sick), "--mapper", "sick")
    compared = run(
        sick, "compare", *WHERE, *limits(sick), "--mappers", "random,sick", "--models", "timeloop", "-o", tmp_path
    )
    healthy = _healthy(run, "compare", *WHERE, "--mappers", "random,sick", "--models", "timeloop")
    if is_harmless(sick) or sick.endswith(" print"):
        assert alone.code == 0 and alone.blame == [] and figures(alone)[0]["valid"]
        return
    assert alone.code == 3
    named(alone, "mapper 'sick'")
    if not limits(sick):
        good = rows(compared, "random", "timeloop", "timeloop")
        assert good == rows(healthy, "random", "timeloop", "timeloop") and good[0]["valid"]
    assert "mapper 'sick' of tilewright-sick 1.0" in compared.out
    assert (tmp_path / "compare.csv").is_file() and len(list(tmp_path.glob("001_*.yaml"))) == 1


# -- cost models ---------------------------------------------------------------------------------------------------


@of("costmodel.factory", "costmodel.bind", "costmodel.evaluate_batch", "costmodel.explain")
def test_a_cost_model(run: Sick, sick: str, tmp_path: Path) -> None:
    alone = run(sick, "map", *WHERE, *limits(sick), "--mapper", "random", "--model", "sick")
    compared = run(
        sick, "compare", *WHERE, *limits(sick), "--mappers", "random", "--models", "timeloop,sick", "-o", tmp_path
    )
    healthy = _healthy(run, "compare", *WHERE, "--mappers", "random", "--models", "timeloop,sick")
    if is_harmless(sick) or sick.endswith(" print"):
        assert alone.code == 0 and alone.blame == [] and figures(alone)[0]["valid"]
        return
    assert alone.code == 3
    named(alone, "cost model 'sick'")
    if not limits(sick):
        good = rows(compared, "random", "timeloop", "timeloop")
        assert good == rows(healthy, "random", "timeloop", "timeloop") and good[0]["valid"]
    assert "cost model 'sick' of tilewright-sick 1.0" in compared.out
    assert (tmp_path / "compare.csv").is_file() and len(list(tmp_path.glob("001_*.yaml"))) == 1


@of("costmodel.factory", "costmodel.bind", "costmodel.explain", without={"print", "another figure"})
def test_a_cost_model_beside_another(run: Sick, sick: str) -> None:
    words = ("evaluate", "--mapping", FILES[1], "--problem", FILES[0], "--arch", FILES[2], "--json")
    ran = run(sick, *words, "--model", "timeloop", "--model", "sick")
    good, bad = ran.data["results"]
    assert ran.code == 0 and good == _healthy(run, *words, "--model", "timeloop", "--model", "sick").data["results"][0]
    assert not bad["valid"] and bad["reasons"]
    only = run(sick, *words, "--model", "sick")
    if not sick.endswith(" not valid"):
        assert only.code == 3
        named(only, "cost model 'sick'")


# -- frontends -----------------------------------------------------------------------------------------------------


@of("frontend.factory", "frontend.recognises")
def test_a_frontend_that_cannot_say_what_it_knows(run: Sick, sick: str) -> None:
    """Formulas and names that others read are read; those that nobody else reads name it."""
    for words in (WHERE, ("alexnet/n12", *WHERE[1:])):
        ran = run(sick, "map", *words, "--mapper", "random")
        assert ran.code == 0 and ran.blame == []
    unknown = run(sick, "map", "sick: 1", *WHERE[1:])
    if sick.endswith(" print"):
        assert unknown.code == 0
        return
    assert unknown.code == 2
    named(unknown, "frontend 'sick'")


@of("frontend.load")
def test_a_frontend_that_cannot_load(run: Sick, sick: str) -> None:
    ran = run(sick, "map", "sick: 1", *WHERE[1:])
    if sick.endswith(" print"):
        assert ran.code == 0 and ran.blame == []
        return
    assert ran.code == 3 and ran.data["error"]["code"] == "plugin"
    named(ran, "frontend 'sick'")


# -- adapters ------------------------------------------------------------------------------------------------------


@of("adapter.factory", "adapter.parse")
def test_an_adapter_that_cannot_read(run: Sick, sick: str, tmp_path: Path) -> None:
    for words in (
        ("evaluate", "--from", "sick", *FILES, "--json"),
        ("convert", *FILES, "--from", "sick", "--to", "tilewright", "-o", tmp_path, "--json"),
    ):
        ran = run(sick, *words)
        if sick.endswith(" print"):
            assert ran.code == 0 and ran.blame == []
            continue
        assert ran.code == 3 and ran.data["error"]["code"] == "plugin"
        named(ran, "adapter 'sick'")


@of("adapter.expressible", "adapter.render")
def test_an_adapter_that_cannot_write(run: Sick, sick: str, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    ran = run(sick, "convert", *FILES, "--from", "tilewright", "--to", "sick", "-o", folder, "--json")
    assert not (tmp_path / "outside.yaml").exists() and not Path("/tmp/outside.yaml").exists()
    if sick.endswith(" print"):
        assert ran.code == 0 and ran.blame == []
        return
    assert ran.code == 3 and ran.data["error"]["code"] == "plugin" and not folder.exists()
    named(ran, "adapter 'sick'")


# -- watchers ------------------------------------------------------------------------------------------------------


@of("tilewright_search_done")
def test_a_watcher_is_named_once_and_the_map_goes_on(run: Sick, sick: str) -> None:
    words = (EXAMPLES / "three_layers.workload.yaml", "--arch", "eyeriss", "--evaluations", 50, "--no-cache", "--json")
    ran = run(sick, "map", *words, "--mapper", "random")
    assert ran.code == 0 and len(ran.data["layers"]) > 1 and ran.data["totals"]["edp"]
    if sick.endswith(" print"):
        assert ran.blame == []
        return
    named(ran, "plugin 'sick'")


def test_there_are_many_and_each_is_drawn_somewhere() -> None:
    assert sum(len(faults) for faults in FAULTS.values()) >= 110
    assert all(any(is_drawn(place, fault) for place in places) for fault, places in PLACES_OF.items())
