"""Mutations of plugins that keep their promises: each is caught by the check named for it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.composed import ComposedEvaluator, ComposedModel, CycleLimit
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.counts import AccessBatch
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.plugin.registry import Registration
from tilewright.plugin.specs import CostModelSpec, MapperSpec, PluginSpec
from tilewright.reports import Report
from tilewright.schema.mapping import Mapping
from tilewright.testing import cases
from tilewright.testing.reference import PlainEvaluator, PlainModel

pytestmark = pytest.mark.exhaustive


class Model(PlainModel):
    """The plain model with its costs, or its reports of valid mappings, changed."""

    def __init__(self, costs: Callable[[Costs], Any] | None = None, report: dict[str, Any] | None = None) -> None:
        self.costs, self.report = costs, report

    def bind(self, problem: Any, architecture: Any) -> PlainEvaluator:
        model = self

        class Evaluator(PlainEvaluator):
            def evaluate_batch(self, batch: MappingBatch) -> Any:
                costs = super().evaluate_batch(batch)
                return model.costs(costs) if model.costs else costs

            def explain(self, mapping: Mapping) -> Report:
                report = PlainEvaluator(self.problem, self.architecture)
                found = PlainEvaluator.explain(report, mapping)
                return found.model_copy(update=model.report) if model.report and found.valid else found

        return Evaluator(problem, architecture)


def one(array: Any, value: float) -> Any:
    """The least of them is wrong."""
    changed = array.copy()
    changed[np.argmin(array) : np.argmin(array) + 1] = value
    return changed


def talking(costs: Costs) -> Costs:
    print("costs")
    return costs


SOUND = "check_costmodel_costs_are_sound"
MODELS: dict[str, tuple[Model, str]] = {
    "parts": (Model(report={"compute_energy_pj": 1.0}), "check_costmodel_energy_is_the_sum_of_its_parts"),
    "utilization 5": (Model(report={"utilization": 5.0}), "check_costmodel_utilization_is_a_fraction"),
    "one cycle": (
        Model(lambda costs: replace(costs, cycles=np.where(costs.valid, 1.0, np.inf))),
        "check_costmodel_cycles_suffice_for_the_work",
    ),
    "one cycle told": (Model(report={"cycles": 1}), "check_costmodel_cycles_suffice_for_the_work"),
    "negative energy": (Model(lambda costs: replace(costs, energy_pj=one(costs.energy_pj, -3.0))), SOUND),
    "NaN": (Model(lambda costs: replace(costs, energy_pj=one(costs.energy_pj, np.nan))), SOUND),
    "infinite": (Model(lambda costs: replace(costs, cycles=one(costs.cycles, np.inf))), SOUND),
    "one too many": (Model(lambda costs: Costs.join([costs, Costs(*(each[:1] for each in vars(costs).values()))])), SOUND),
    "list": (Model(lambda costs: [1.0] * len(costs)), SOUND),
    "whole numbers": (Model(lambda costs: replace(costs, valid=costs.valid.astype(np.int64))), SOUND),
    "print": (Model(talking), "check_prints_nothing"),
}  # fmt: skip


class Mapper:
    """Draws, and does something else before."""

    def __init__(self, before: Callable[[Task, Run], Any]) -> None:
        self.before = before

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield self.before(task, run) or task.space.sample(run.rng, 64)


MAPPERS: dict[str, tuple[Mapper, str]] = {
    "oversleeps": (
        Mapper(lambda task, run: time.sleep(0.0 if run.budget.seconds is None else 60.0)),
        "check_mapper_keeps_its_deadline",
    ),
    "print": (Mapper(lambda task, run: print("batch")), "check_prints_nothing"),
    "lawless": (
        Mapper(lambda task, run: MapSpace.of(task.problem, task.architecture, None).sample(run.rng, 64)),
        "check_mapper_keeps_to_the_constraints",
    ),
}


class Composed(ComposedModel):
    """Cycles from the reads, as a function gives them; declared to rise with them."""

    name = "composed"
    monotone = True

    def __init__(self, cycles: Callable[[Any], Any], told: float = 0.0) -> None:
        self.cycles, self.told = cycles, told

    def limits(self, counts: AccessBatch) -> Iterator[CycleLimit]:
        yield CycleLimit("reads", "read", self.cycles(counts.reads.sum(axis=(1, 2))))

    def bind(self, problem: Any, architecture: Any) -> ComposedEvaluator:
        told = self.told

        class Evaluator(ComposedEvaluator):
            def evaluate_batch(self, batch: MappingBatch) -> Costs:
                costs = super().evaluate_batch(batch)
                return replace(costs, cycles=costs.cycles + told)

        bound = super().bind(problem, architecture)
        return Evaluator(self, bound.counting, problem, architecture)


RISE, BELONG = "check_costmodel_limits_rise_with_the_counts", "check_costmodel_counts_belong_to_its_costs"
COMPOSED: dict[str, tuple[Composed, str]] = {
    "falls": (Composed(lambda reads: 1e6 / (1 + reads)), RISE),
    "NaN": (Composed(lambda reads: np.full(len(reads), np.nan)), RISE),
    "other costs": (Composed(lambda reads: reads, told=1.0), BELONG),
}


@pytest.mark.parametrize("mutation", COMPOSED)
def test_a_composed_model_that_is_changed_is_caught(mutation: str) -> None:
    model, check = COMPOSED[mutation]
    assert failed(CostModelSpec(name="mutant", summary="Changed.", factory=lambda options: model), check)
    plain = Composed(lambda reads: reads)
    assert not failed(CostModelSpec(name="plain", summary="Plain.", factory=lambda options: plain), check)


def failed(spec: PluginSpec[Any], name: str) -> bool:
    (case,) = [case for case in cases(Registration(spec, "mutant", "1.0")) if case.check.name == name]
    return not case.outcome().ok


@pytest.mark.parametrize("mutation", MODELS)
def test_a_cost_model_that_is_changed_is_caught(mutation: str) -> None:
    model, check = MODELS[mutation]
    assert failed(CostModelSpec(name="mutant", summary="Changed.", factory=lambda options: model), check)
    assert not failed(CostModelSpec(name="plain", summary="Plain.", factory=lambda options: PlainModel()), check)


@pytest.mark.parametrize("mutation", MAPPERS)
def test_a_mapper_that_is_changed_is_caught(mutation: str) -> None:
    mapper, check = MAPPERS[mutation]
    assert failed(MapperSpec(name="mutant", summary="Changed.", factory=lambda options: mapper), check)
    plain = Mapper(lambda task, run: None)
    assert not failed(MapperSpec(name="plain", summary="Plain.", factory=lambda options: plain), check)
