"""Plugins of third parties that want everything, fail, or take long. Installed together or in part, they change nothing."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

import tilewright as tw
from tilewright.errors import InputError, Location, UnsupportedError, Verdict
from tilewright.plugin import (
    Accuracy,
    AdapterSpec,
    AlgorithmSpec,
    CostModelSpec,
    Estimate,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    InputSet,
    MapperSpec,
    Options,
    Reason,
    StrategySpec,
    installed,
)
from tilewright.plugin.estimator import COMPONENTS
from tilewright.plugin.guard.processes import end_children, warn_once
from tilewright.plugin.specs import KINDS, PluginSpec
from tilewright.testing.reference import PlainModel

HOME = "crowd-"
"""Begins the name of each distribution."""
TASKS = ("search", "fallback", "fusion", "programs", "reports", "exploration", "calibration")
SUFFIXES = (".yaml", ".yml", ".json", ".csv", ".txt", ".m", ".cfg", ".jinja2", ".onnx", ".mlir", ".pt2", ".py", ".5")
SIGNS = ("arch", "architecture.subtree", "architecture", "problem", "mapping", "workload", "kind", "layers", "-.target")
PROBLEM = tw.load("mk,kn->mn; m=2 k=3 n=5", "problem")


class Anything(Options):
    """Takes whatever option is given."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Frontend:
    """Says yes to every source, and reads one problem from it."""

    def __init__(self, options: object) -> None: ...

    def recognises(self, source: str) -> bool:
        return True

    def load(self, source: str) -> tw.Workload:
        return tw.Workload.of(PROBLEM)


class Refusing(Frontend):
    def load(self, source: str) -> tw.Workload:
        raise InputError("this is no network", location=Location(source, 10**6))


class Raising(Frontend):
    def recognises(self, source: str) -> bool:
        raise KeyError(source)


class Sleeping(Frontend):
    def recognises(self, source: str) -> bool:
        time.sleep(600)
        return True


class Adapter:
    """Reads and writes everything, as the same."""

    def __init__(self, options: object) -> None: ...

    def expressible(self, inputs: InputSet) -> Verdict:
        return Verdict()

    def render(self, inputs: InputSet) -> dict[str, str]:
        return {"file.txt": "all"}

    def parse(self, files: Sequence[Path]) -> InputSet:
        return InputSet(PROBLEM, tw.load("eyeriss", "architecture"))

    def layers(self, file: Path) -> tuple[str, ...]:
        return ("first", "second")


class Counting(Adapter):
    """Complains of the number of files."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        raise InputError(f"{len(files)} files are given; expected none", hint="give none")


class Far(Adapter):
    """Complains of the last line that any file may have."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        raise InputError("nothing is right", location=Location(str(files[0]), 10**6))


class Unsupporting(Adapter):
    def parse(self, files: Sequence[Path]) -> InputSet:
        raise UnsupportedError("all of this is unsupported", hint="buy the full version")


class Crashing(Adapter):
    def parse(self, files: Sequence[Path]) -> InputSet:
        raise ZeroDivisionError


class Slow(Adapter):
    def parse(self, files: Sequence[Path]) -> InputSet:
        time.sleep(600)
        return InputSet()


class Estimator:
    """Answers everything: it costs nothing."""

    def __init__(self, options: object) -> None: ...

    def estimate(
        self, component: str, attributes: Mapping[str, float | str], action: str, technology_nm: float
    ) -> Estimate | Reason:
        about = Accuracy(source="none", error="unknown", valid="everywhere", cell="any")
        return Estimate(energy_pj=0.0, bits=1, area_um2=0.0, leakage_w=1.0, accuracy=about)


class RaisingEstimator(Estimator):
    def estimate(self, *arguments: object) -> Estimate | Reason:
        raise KeyError


class SlowEstimator(Estimator):
    def estimate(self, *arguments: object) -> Estimate | Reason:
        time.sleep(600)
        raise KeyError


class Nothing:
    """A mapper, a group mapper, a strategy and an algorithm that raise."""

    def __init__(self, options: object) -> None: ...

    def _raise(self, *arguments: object, **named: object) -> Any:
        raise RuntimeError("nobody asked for it")

    search = search_group = explore = alternatives = _raise


class Model(PlainModel):
    def __init__(self, options: object) -> None: ...


class NoModel(Model):
    def bind(self, problem: object, architecture: object) -> Any:
        raise RuntimeError("nobody asked for it")


class Observer:
    """Hears of searches, and says nothing."""


def frontend(name: str, kind: type = Frontend, **words: Any) -> FrontendSpec:
    return FrontendSpec(name=name, summary=name, factory=kind, **words)


def adapter(name: str, kind: type, **words: Any) -> AdapterSpec:
    return AdapterSpec(name=name, summary=name, factory=kind, **words)


def estimator(name: str, kind: type, **words: Any) -> EstimatorSpec:
    known = {component: dict.fromkeys(sizes, 1.0) for component, (_, sizes) in COMPONENTS.items()}
    return EstimatorSpec(name=name, summary=name, factory=kind, components=known, **words)


LIBRARY = dict.fromkeys(("resnet50", "eyeriss", "alexnet", "quickflow_convs", "nk,km->nm; n=4 k=5 m=6"), "theirs")
SPECS: tuple[PluginSpec[Any], ...] = (
    frontend("greedy", suffixes=SUFFIXES),
    frontend("yes"),
    frontend("einsum", suffixes=SUFFIXES, library=LIBRARY, default_for=TASKS, options=Anything),
    frontend("onnx", Refusing, suffixes=SUFFIXES),
    frontend("raising", Raising, suffixes=SUFFIXES),
    frontend("sleeping", Sleeping, suffixes=SUFFIXES),
    frontend("incomplete", suffixes=SUFFIXES, needs=("__main__", "no_such_module")),
    adapter("everything", Adapter, signs=SIGNS),
    adapter("timeloop", Adapter, options=Anything, default_for=TASKS),
    adapter("tilewrigh", Counting),
    adapter("far", Far, signs=SIGNS),
    adapter("unsupporting", Unsupporting, options=Anything),
    adapter("crashing", Crashing, signs=SIGNS),
    adapter("slow", Slow, signs=SIGNS, options=Anything),
    estimator("all", Estimator, priority=1e9),
    estimator("tables", Estimator, priority=1e9, options=Anything, default_for=TASKS),
    estimator("broken", RaisingEstimator, priority=1e9),
    estimator("late", SlowEstimator, priority=1e9),
    MapperSpec(name="optimal", summary="optimal", factory=Nothing, default_for=TASKS),
    MapperSpec(name="randon", summary="randon", factory=Nothing, starts_with=("optimal",)),
    GroupMapperSpec(name="loop_trees", summary="loop_trees", factory=Nothing, default_for=TASKS),
    CostModelSpec(name="timeloop", summary="timeloop", factory=Model, default_for=TASKS, executes=True),
    CostModelSpec(name="oracle", summary="oracle", factory=NoModel, executes=True),
    CostModelSpec(name="timelop", summary="timelop", factory=Model),
    AlgorithmSpec(name="native", summary="native", factory=Nothing, default_for=TASKS),
    StrategySpec(name="grid", summary="grid", factory=Nothing, default_for=TASKS),
    StrategySpec(name="gird", summary="gird", factory=Nothing, samples=True),
)


@contextmanager
def present(specs: Sequence[PluginSpec[Any]]) -> Iterator[None]:
    """Install plugins, each from a distribution of its own."""
    registry = installed()
    before = list(registry.registrations)
    warn_once.cache_clear()
    try:
        for spec in specs:
            registry.add(spec, f"{HOME}{[*KINDS].index(type(spec))}-{spec.name}", "1.0")
        yield
    finally:
        registry.registrations[:] = before
        registry.failed.clear()
        end_children()
