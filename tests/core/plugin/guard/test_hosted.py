"""Plugins of third parties are in a child process: what crosses is data, and a search there crosses no border."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.application.run.search import search
from tilewright.child import is_child
from tilewright.errors import OverdueError, PluginError
from tilewright.plugin import (
    AdapterSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    MapperSpec,
    Registry,
    StrategySpec,
    hookimpl,
    lazy,
)
from tilewright.plugin.adapter import EdgeReader, LayerReader, ReportReader
from tilewright.plugin.costmodel import Bounder, GroupModel, Relaxable
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.hosted import Hosted, packages_of
from tilewright.plugin.guard.processes import SECONDS, ask, end_children
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.result import Result
from tilewright.testing.checks.groupmapper import tasks
from tilewright.testing.checks.strategy import explored, task
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainModel

pytestmark = pytest.mark.process

MODULE = """
import os, time
from pathlib import Path
from tilewright import Problem, Workload
from tilewright.plugin import Accuracy, Estimate, InputSet, PointProposal, Verdict
from tilewright.testing.reference import PlainModel

class Frontend:
    def __init__(self):
        self.calls = 0
    def recognises(self, source):
        return source.startswith("odd:")
    def load(self, source):
        self.calls += 1
        problem = {"name": f"call_{self.calls}_of_{os.getpid()}", "dimensions": {"M": 4}, "tensors": [
            {"name": "A", "role": "input", "projection": ["M"]}, {"name": "Z", "role": "output", "projection": ["M"]}]}
        return Workload.of(Problem.model_validate(problem))

class Adapter:
    def expressible(self, inputs):
        return Verdict()
    def render(self, inputs):
        return {"process.txt": str(os.getpid())}
    def parse(self, files):
        return InputSet(warnings=(Path(files[0]).read_text(),))
    def layers(self, file):
        return ("one", "two")

class Mapper:
    def search(self, task, run):
        run.figures["process"] = os.getpid()
        while not run.exhausted:
            yield task.space.sample(run.rng, 16)

class Model(PlainModel):
    def bind(self, problem, architecture):
        assert os.getpid() != int(os.environ["CALLER"])
        return super().bind(problem, architecture)

ABOUT = Accuracy(source="somebody", error="unknown", valid="anywhere")

class Estimator:
    def estimate(self, component, attributes, action, technology_nm):
        time.sleep(20 if action == "hang" else 0)
        return Estimate(energy_pj=os.getpid(), bits=1, accuracy=ABOUT)

class GroupMapper:
    def search_group(self, task):
        time.sleep(60)

class Strategy:
    def explore(self, task):
        task.report(f"from {os.getpid()}")
        for index in task.drawn():
            if task.architecture(index) is not None and task.bounds is not None:
                assert task.bounds(index)[0] > 0
            results = yield [PointProposal(index)]
            assert [result.index for result in results] == [index]
"""

KINDS: dict[str, Any] = {
    "Frontend": FrontendSpec,
    "Adapter": AdapterSpec,
    "Mapper": MapperSpec,
    "Model": CostModelSpec,
    "Strategy": StrategySpec,
}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    (tmp_path / "odd_plugins.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CALLER", str(os.getpid()))
    found = Registry()
    for name, kind in KINDS.items():
        found.add(kind(name="odd", summary=".", factory=lazy("odd_plugins", name)), "tilewright-odd", "1.5")
    spec = EstimatorSpec(name="odd", summary=".", factory=lazy("odd_plugins", "Estimator"), components={"sram": {}})
    found.add(spec, "tilewright-odd", "1.5")
    factory = lazy("odd_plugins", "GroupMapper")
    found.add(GroupMapperSpec(name="odd", summary=".", factory=factory, space="none"), "tilewright-odd", "1.5")
    yield found
    end_children()


def test_an_object_stays_in_its_child_and_is_made_again_after_its_death(registry: Registry) -> None:
    frontend = registry.make(FrontendSpec, "odd")
    assert frontend.recognises("odd:") and not frontend.recognises("even:")
    names = [workload.layers[0].problem.name for workload in (frontend.load("odd:"), frontend.load(source="odd:"))]
    process = int(names[0].rpartition("_")[2])
    assert names == [f"call_1_of_{process}", f"call_2_of_{process}"] and process != os.getpid()
    os.kill(process, signal.SIGKILL)
    time.sleep(0.5)
    assert frontend.load("odd:").layers[0].problem.name.startswith("call_1_of_")


READERS = {LayerReader: True, EdgeReader: False, ReportReader: False}


def test_it_has_the_methods_that_the_plugin_has(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter: Any = registry.make(AdapterSpec, "odd")
    model = registry.make(CostModelSpec, "odd")
    assert all(isinstance(adapter, kind) == known for kind, known in READERS.items())
    assert not isinstance(model, GroupModel)
    assert adapter.layers(Path("any")) == ("one", "two")
    (tmp_path / "file.txt").write_text("here")
    monkeypatch.chdir(tmp_path)
    assert adapter.parse([Path("file.txt")]).warnings == ("here",)  # a path is that of the caller's folder


def test_a_cost_model_is_asked_by_batches(registry: Registry) -> None:
    sample = SAMPLES[1]
    evaluator: Any = registry.make(CostModelSpec, "odd").bind(sample.problem, sample.architecture)
    known = PlainModel().bind(sample.problem, sample.architecture)
    assert type(evaluator).__name__ == "Hosted" and isinstance(evaluator, Relaxable) == isinstance(known, Relaxable)
    assert isinstance(evaluator, Bounder) == isinstance(known, Bounder)
    batch = sample.batch(40)
    costs, expected = evaluator.evaluate_batch(batch), known.evaluate_batch(batch)
    assert np.array_equal(costs.energy_pj, expected.energy_pj) and np.array_equal(costs.cycles, expected.cycles)
    assert evaluator.explain(batch[0]) == known.explain(batch[0])


def where(plugin: Any) -> tuple[bool, str]:
    return is_child(), type(plugin).__name__


def test_sent_to_a_child_it_is_the_object_itself(registry: Registry) -> None:
    mapper = registry.make(MapperSpec, "odd")
    assert isinstance(mapper, Hosted) and packages_of(mapper) == ("odd_plugins",)
    assert ask(Owner("mapper", "odd", "tilewright-odd"), "where", where, mapper) == (True, "GuardedMapper")


def test_a_search_by_a_hosted_mapper_is_in_a_child_and_the_same(registry: Registry) -> None:
    sample = SAMPLES[1]
    evaluator = PlainModel().bind(sample.problem, sample.architecture)
    hosted = registry.make(MapperSpec, "odd")
    here = registry.build(registry.find(MapperSpec, "odd"), {})
    one, other = (search(mapper, Task(sample.space), evaluator, Budget(200), seed=3) for mapper in (hosted, here))
    assert one.best == other.best and one.value == other.value and one.history == other.history
    assert one.figures["process"] != os.getpid() and other.figures["process"] == os.getpid()


@pytest.mark.parametrize("bounded", [True, False])
def test_a_strategy_proposes_the_same_points_and_reports_here(registry: Registry, bounded: bool) -> None:
    told: list[str] = []
    asked = task(points=6, bounded=bounded)
    object.__setattr__(asked, "report", told.append)
    proposed = explored(registry.make(StrategySpec, "odd"), asked)
    here = explored(registry.build(registry.find(StrategySpec, "odd"), {}), task(points=6, bounded=bounded))
    assert proposed == here and len(proposed) == 6
    assert told and told != [f"from {os.getpid()}"]


def test_a_call_that_hangs_is_named_and_the_next_one_works(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = registry.make(EstimatorSpec, "odd")
    first: Any = estimator.estimate("sram", {}, "read", 45.0)
    monkeypatch.setenv(SECONDS, "0.5")
    with pytest.raises(
        PluginError, match="estimator 'odd' of tilewright-odd 1.5 failed: estimate took too long and was ended"
    ):
        estimator.estimate("sram", {}, "hang", 45.0)
    monkeypatch.delenv(SECONDS)
    again: Any = estimator.estimate("sram", {}, "read", 45.0)
    assert len({first.energy_pj, again.energy_pj, os.getpid()}) == 3


@pytest.mark.parametrize("by_name", [False, True])
def test_a_group_search_is_ended_two_seconds_after_its_deadline(registry: Registry, by_name: bool) -> None:
    mapper, hasty = registry.make(GroupMapperSpec, "odd"), tasks(seconds=0.1)[0]
    with pytest.raises(
        OverdueError, match="group mapper 'odd' of tilewright-odd 1.5 failed: search_group took too long and was ended"
    ):
        mapper.search_group(task=hasty) if by_name else mapper.search_group(hasty)


class Watcher:
    def __init__(self, file: Path) -> None:
        self.file, self.layers = file, list[str]()

    @hookimpl
    def tilewright_search_done(self, layer: str) -> None:
        self.layers.append(layer)
        self.file.write_text(f"{os.getpid()} {' '.join(self.layers)}")


def test_an_observer_that_is_an_object_keeps_its_state(tmp_path: Path) -> None:
    registry, name, result = Registry(), "tilewright-odd/watcher", Result(None, 1.0, 0, 0, 0, "finished", 0.0, 0.0, 0)
    registry.manager.register(Watcher(tmp_path / "heard"), name)
    registry.owners[name] = Owner("plugin", "watcher", "tilewright-odd", "1.5")
    for layer in ("one", "two"):
        assert registry.tell_search_done(layer, result, set()) == []
    process, *layers = (tmp_path / "heard").read_text().split()
    assert layers == ["one", "two"] and int(process) != os.getpid()
