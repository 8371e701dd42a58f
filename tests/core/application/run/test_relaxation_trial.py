"""Bounds of cost models that are not built in: a search compares them with costs, and drops them if one is too high."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from support.profiles import first
from tilewright.application.run.network import MappedLayer
from tilewright.application.run.relaxation_trial import RelaxationTrial
from tilewright.application.run.search import search
from tilewright.mapspace.batch import MappingBatch
from tilewright.plugin import Costs, Relaxation, installed
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.mappers import GuardedMapper
from tilewright.plugin.guard.models import guarded_evaluator
from tilewright.plugin.mapper import Budget, Proposals, Run, Task
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report

GEMM = "nk,km->nm; n=64 k=64 m=64"
CONVOLUTION = "O[n,k,p,q] += I[n,c,p+r,q+s] * W[k,c,r,s]; n=1 k=32 c=16 p=14 q=14 r=3 s=3"
TIMELOOP = installed().make(CostModelSpec, "timeloop", {"link_transfers": False})

Change = Callable[[Relaxation], Relaxation]


class OthersModel:
    """A third party's cost model: timeloop with another relaxation, and `tax` times its energy."""

    def __init__(self, change: Change = lambda told: told, tax: float = 1.0, bounds: float = 0.0) -> None:
        self.change, self.tax, self.bounds = change, tax, bounds

    def bind(self, problem: Any, architecture: Any) -> Any:
        evaluator = TIMELOOP.bind(problem, architecture)
        return OthersBounder(self, evaluator) if self.bounds else OthersEvaluator(self, evaluator)


class OthersEvaluator:
    def __init__(self, model: OthersModel, evaluator: Any) -> None:
        self.model, self.evaluator = model, evaluator

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        costs = self.evaluator.evaluate_batch(batch)
        return Costs(costs.valid, costs.energy_pj * self.model.tax, costs.cycles)

    def evaluate(self, mapping: Any) -> Costs:
        return self.evaluate_batch(MappingBatch.pack(self.evaluator.problem, [mapping]))

    def explain(self, mapping: Any) -> Report:
        report: Report = self.evaluator.explain(mapping)
        costs = self.evaluate(mapping)
        energy, cycles = float(costs.energy_pj[0]), int(costs.cycles[0])
        plain = Report(model="others", problem=report.problem, macs=report.macs, valid=True)
        return plain.model_copy(update={"energy_pj": energy, "cycles": cycles, "edp": energy * cycles})

    def relaxation(self, skeleton: Any, keeps: Any = None) -> Relaxation | None:
        told = self.evaluator.relaxation(skeleton, keeps)
        return None if told is None else self.model.change(told)


class OthersBounder(OthersEvaluator):
    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        costs = self.evaluate_batch(batch)
        low = np.where(costs.valid, costs.energy_pj * self.model.bounds, 0.0)
        return Costs(np.ones(len(batch), np.bool_), low, np.zeros(len(batch)))


class Asking:
    """A mapper that asks for bounds of partial mappings."""

    def search(self, task: Task, run: Run) -> Proposals:
        some = task.space.sample(run.rng, 50)
        assert run.bounder is not None
        run.bounder.bound(some.batch(), 1)
        yield some


def mapped(problem: str, model: object, **settings: Any) -> MappedLayer:
    settings = {"mapper": "optimal", "objective": "energy", "evaluations": 30_000} | settings
    return tw.map(problem, arch="eyeriss", model=model, progress=False, cache=False, **settings).layers[0]  # type: ignore[arg-type]


FALSE: dict[str, tuple[str, OthersModel]] = {
    "compute by half": (GEMM, OthersModel(lambda told: replace(told, compute_pj=told.compute_pj * 1.5))),
    "compute by eight": (CONVOLUTION, OthersModel(lambda told: replace(told, compute_pj=told.compute_pj * 8))),
    "exact despite other costs": (GEMM, OthersModel(tax=1.01)),
    "instances": (GEMM, OthersModel(tax=0.9)),
    "reads": (CONVOLUTION, OthersModel(lambda told: replace(told, read_pj=told.read_pj * 1.5))),
    "compute by a thousandth": (GEMM, OthersModel(lambda told: replace(told, compute_pj=told.compute_pj * 1.001))),
    "updates": (GEMM, OthersModel(lambda told: replace(told, update_pj=told.update_pj * 1.01))),
    "fills": (GEMM, OthersModel(lambda told: replace(told, fill_pj=told.fill_pj + 0.1))),
    "bandwidth": (CONVOLUTION, OthersModel(lambda told: replace(told, read_bandwidth=told.read_bandwidth * 0.8))),
    "no multicast": (GEMM, OthersModel(lambda told: replace(told, shared=np.zeros_like(told.shared)))),
    "leakage": (GEMM, OthersModel(lambda told: replace(told, leakage_pj=told.leakage_pj + 0.5))),
    "two cycles": (GEMM, OthersModel(lambda told: replace(told, cycles_per_operation=2.0))),
    "all words in DRAM": (GEMM, OthersModel(lambda told: replace(told, memory=np.minimum(told.memory, 0)))),
}


@pytest.mark.parametrize("name", first(5, *FALSE))
def test_a_relaxation_above_a_cost_is_named_and_dropped(name: str) -> None:
    problem, model = FALSE[name]
    layer = mapped(problem, model)
    assert layer.error is not None and layer.result is not None
    assert "cost model 'OthersModel' failed: its relaxation " in str(layer.error) and "dropped" in str(layer.error)
    assert layer.result.lower_bound is None and layer.result.claimed_by is None
    assert layer.report is not None and layer.report.valid


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_ragged_mappings_refute_a_relaxation_too(factor: float) -> None:
    """The steps with whole tiles are a mapping of whole tiles, whose words the ragged mapping needs, too."""
    space = tw.space("nk,km->nm; n=17 k=19 m=13", "eyeriss", factors="ragged")
    model = OthersModel(lambda told: replace(told, read_pj=told.read_pj * factor, update_pj=told.update_pj * factor))
    evaluator = guarded_evaluator(model.bind(space.problem, space.architecture), space.problem, space.architecture)
    batch = space.sample(np.random.default_rng(0), 500).batch()
    ragged = np.array([not mapping.is_perfect for mapping in batch])
    trial = RelaxationTrial.of(evaluator, Task(space))
    assert trial is not None and ragged.sum() > 300
    trial.relaxation(space.skeleton, space.keeps)
    trial.add(batch.take(ragged), evaluator.evaluate_batch(batch.take(ragged)), 500)
    trial.end(None, (np.inf, np.inf), 500)
    assert (trial.refuted is not None) == (factor > 1)


def test_a_true_relaxation_is_a_claim() -> None:
    for problem in (GEMM, CONVOLUTION):
        layer, known = mapped(problem, OthersModel()), mapped(problem, TIMELOOP)
        assert layer.error is None and layer.result is not None and known.result is not None
        assert layer.result.told_proof == "claimed by OthersModel" and known.result.told_proof == "yes"
        assert (layer.result.value, layer.result.evaluated) == (known.result.value, known.result.evaluated)


def test_bounds_of_partial_mappings_are_compared_too() -> None:
    layer = mapped(GEMM, OthersModel(bounds=1.2), mapper=Asking())
    assert layer.error is not None and "its bound says that mappings with the same outermost" in str(layer.error)
    assert mapped(GEMM, OthersModel(bounds=0.1), mapper=Asking()).error is None


def test_the_search_goes_on_by_warm_start_mappers() -> None:
    """A relaxation that is too high prunes everything; what is found without it is as good as by `quickflow`."""
    model = OthersModel(lambda told: replace(told, compute_pj=told.compute_pj * 8))
    layer, plain = (mapped(CONVOLUTION, model, mapper=name) for name in ("optimal", "quickflow"))
    assert layer.result is not None and plain.result is not None and plain.error is None
    assert layer.result.value <= plain.result.value * 1.05


def test_built_in_models_are_not_tried() -> None:
    space = tw.space(GEMM, "eyeriss")
    evaluator = TIMELOOP.bind(space.problem, space.architecture)
    guarded = guarded_evaluator(evaluator, space.problem, space.architecture)
    assert RelaxationTrial.of(guarded, Task(space)) is None
    others = guarded_evaluator(OthersModel().bind(space.problem, space.architecture), space.problem, space.architecture)
    assert RelaxationTrial.of(others, Task(space)) is not None


def test_comparisons_take_their_share_of_the_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that runs a second for each look at it, one comparison in fifty fits."""
    seconds = iter(range(10**6))
    monkeypatch.setattr("tilewright.application.run.relaxation_trial.time.perf_counter", lambda: float(next(seconds)))
    space = tw.space(GEMM, "eyeriss")
    evaluator = guarded_evaluator(
        OthersModel().bind(space.problem, space.architecture), space.problem, space.architecture
    )
    trial = RelaxationTrial(evaluator, Task(space))
    trial.relaxation(space.skeleton, space.keeps)
    compared: list[int] = []
    monkeypatch.setattr(trial, "_compare", compared.append)
    batch = space.sample(np.random.default_rng(0), 8)
    for count in range(1000):
        trial.add(batch, evaluator.evaluate_batch(batch.batch()), count)
    assert 10 <= len(compared) <= 0.02 * float(next(seconds))


class Trusting(Asking):
    """A mapper, as if built in, that proves a bound by the model's, and finds less later."""

    def search(self, task: Task, run: Run) -> Proposals:
        assert run.relaxable is not None
        run.relaxable.relaxation(task.space.skeleton, task.space.keeps)
        costs = yield task.space.sample(run.rng, 5)
        run.prove(float(costs.of(task.objective).min()))
        yield task.space.sample(run.rng, 5000)


def test_a_proof_by_false_bounds_is_no_failure_of_a_built_in_mapper() -> None:
    space = tw.space(GEMM, "eyeriss")
    evaluator = OthersModel().bind(space.problem, space.architecture)
    mapper = GuardedMapper(Trusting(), Owner("mapper", "trusting", "tilewright", "1"))
    result = search(mapper, Task(space), evaluator, Budget())
    assert "cost model 'OthersEvaluator' failed: by its bounds every mapping" in str(result.error)
    assert (result.lower_bound, result.stop) == (None, "finished") and result.best is not None
    with_owner = GuardedMapper(Trusting(), Owner("mapper", "trusting", "elsewhere", "1"))
    assert "mapper 'trusting' of elsewhere 1 failed" in str(search(with_owner, Task(space), evaluator, Budget()).error)
