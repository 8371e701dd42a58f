"""Searches of groups: observers hear of them, and a bound covers a space that the mapper's spec names."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

import tilewright as tw
from support import EXAMPLE_FILES
from tilewright.application.run.evaluation import build_model
from tilewright.application.run.group_search import BuiltGroupMapper, build_group_mapper, search_group
from tilewright.plugin import GroupResult, GroupTask, hookimpl, installed
from tilewright.plugin.guard.calls import Owner
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.objective import ENERGY

EXAMPLE = EXAMPLE_FILES / "two_products.yaml"
GROUP = tw.load(EXAMPLE, "group_mapping")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """What an observer hears."""
    told = list[tuple[Any, ...]]()
    module: Any = ModuleType("observer")

    @hookimpl
    def tilewright_run_started(run: Any) -> None:
        told.append(("started", run.layers, run.mapper, run.model, run.objective))

    @hookimpl
    def tilewright_group_done(group: str, result: GroupResult) -> None:
        told.append(("done", group, result.proved))

    @hookimpl
    def tilewright_run_done(run: Any, layers: tuple[str, ...]) -> None:
        told.append(("ended", layers))

    for hook in (tilewright_run_started, tilewright_group_done, tilewright_run_done):
        setattr(module, hook.__name__, hook)
    installed().manager.register(module, name="observer")
    monkeypatch.setitem(installed().owners, "observer", Owner("plugin", "observer"))
    yield told
    installed().manager.unregister(module)


def test_observers_hear_of_a_fused_search(heard: list[tuple[Any, ...]]) -> None:
    tw.fuse(EXAMPLE, objective="energy")
    run = ("started", ("up", "down"), "loop_trees", "timeloop", "energy")
    assert heard == [run, ("done", "two products", True), ("ended", ("up", "down"))]

    heard.clear()
    tw.compare_groups(EXAMPLE, mappers="loop_trees", models="timeloop", objective="energy")
    assert [one[0] for one in heard] == ["started", "done", "ended"]


def test_a_search_that_fails_ends_its_run(heard: list[tuple[Any, ...]]) -> None:
    with pytest.raises(tw.errors.NotConformableError):
        tw.fuse(EXAMPLE, arch="tpu_v1")
    assert [one[0] for one in heard] == ["started", "ended"] and heard[1][1] == ()


def test_a_bound_without_a_space_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    built = build_group_mapper()
    nameless = BuiltGroupMapper(PluginRecord(name="other"), built.mapper, replace(built.spec, space=""))
    with caplog.at_level(logging.WARNING, "tilewright"):
        result = search_group(nameless, GROUP, build_model("timeloop"), ENERGY)
    assert (result.bound, result.proved, result.unfused_proved) == (0.0, False, False)
    assert "group mapper other: it claims a bound, and its spec names no space; the bound is dropped" in caplog.text


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_a_claim_is_told_as_one(gap: float) -> None:
    known = tw.fuse(EXAMPLE, objective="energy")
    assert known.bound is not None and known.claimed_by is None and known.data()["claimed_by"] is None
    other = PluginRecord(name="other", distribution="theirs", version="1")
    report = replace(known, mapper=other, proved=not gap, bound=known.bound * (1 - gap))
    told = (
        "theirs/other claims that nothing of the space costs less than"
        if gap
        else "claimed by theirs/other to be optimal"
    )
    assert told in str(report) and report.data()["claimed_by"] == "theirs/other"


def test_a_task_evaluates_by_the_model() -> None:
    seen = list[GroupTask]()

    class Mapper:
        def search_group(self, task: GroupTask) -> GroupResult:
            seen.append(task)
            report = task.evaluate(task.group)
            assert report.energy_pj is not None and report.cycles is not None
            return GroupResult(task.group, report.energy_pj, report.cycles, task.group, 0.0, False, False)

    built = build_group_mapper()
    search_group(BuiltGroupMapper(built.record, Mapper(), built.spec), GROUP, build_model("oracle"), ENERGY, 5.0)
    assert seen[0].seconds == 5.0 and seen[0].evaluate(GROUP).model == "oracle"
