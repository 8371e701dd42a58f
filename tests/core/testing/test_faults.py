"""Faults in plugins that are right without them: the check named for each fails."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from support.profiles import first
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.estimator import Accuracy, Estimate
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.plugin.registry import Registration
from tilewright.plugin.specs import (
    AdapterSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    MapperSpec,
    Options,
    PluginSpec,
    StrategySpec,
)
from tilewright.plugin.strategy import ExplorationTask, PointProposal, PointProposals
from tilewright.schema.objective import CYCLES, EDP
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Workload
from tilewright.testing import cases
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainEvaluator, PlainModel
from tilewright_adapters.native import NativeAdapter


def failed(spec: PluginSpec[Any], name: str, **given: Any) -> bool:
    (case,) = [case for case in cases(Registration(spec, "faulty", "1.0"), **given) if case.check.name == name]
    return not case.outcome().ok


class Climber:
    """Mapper: the neighbours of the best mapping so far, and some random ones."""

    def __init__(self, change: dict[str, Any]) -> None:
        self.change = change

    def search(self, task: Task, run: Run) -> Proposals:
        objective = self.change.get("objective", task.objective)
        proposed = first_drawn = task.space.sample(run.rng, 64)
        while True:
            batch = proposed.batch()
            if "illegal" in self.change and run.evaluated > 400:
                batch = replace(batch, temporal=np.ones_like(batch.temporal), spatial=np.ones_like(batch.spatial))
            costs = yield batch
            values = self.change.get("sign", 1) * np.where(costs.valid, costs.of(objective), np.nan)
            if "prove" in self.change and run.evaluated >= self.change["prove"]:
                run.prove(float(costs.of(task.objective).min()))
            if "repeat" in self.change:
                proposed = first_drawn
                continue
            best = 0 if np.isnan(values).all() else int(np.nanargmin(values))
            here = batch_of(proposed, best)
            moved, _ = task.space.neighbours(here)
            proposed = moved if len(moved) and run.rng.random() < 0.8 else task.space.sample(run.rng, 64)


def batch_of(candidates: Any, row: int) -> Any:
    return candidates.take(slice(row, row + 1))


PROVES, SEEKS = "check_mapper_proves_true_bounds", "check_mapper_seeks_lower_costs"
MAPPERS: dict[str, tuple[dict[str, Any], str]] = {
    "proves the best of its first batch": ({"prove": 1}, PROVES),
    "proves the best of the second batch": ({"prove": 100}, PROVES),
    "maximises": ({"sign": -1}, SEEKS),
    "always minimises EDP": ({"objective": EDP}, SEEKS),
    "always minimises cycles": ({"objective": CYCLES}, SEEKS),
    "repeats one batch": ({"repeat": True}, "check_mapper_goes_on_to_new_mappings"),
    "illegal after 400 evaluations": ({"illegal": True}, "check_mapper_proposes_mappings_of_the_task"),
}


@pytest.mark.parametrize("fault", first(1, *MAPPERS))
def test_a_faulty_mapper_is_caught(fault: str) -> None:
    change, check = MAPPERS[fault]
    assert failed(MapperSpec(name="faulty", summary="Climbs.", factory=lambda options: Climber(change)), check)
    assert not failed(MapperSpec(name="right", summary="Climbs.", factory=lambda options: Climber({})), check)


class Lossy:
    """Adapter of Tilewright's files that forgets a part."""

    def __init__(self, forget: Callable[[InputSet], InputSet]) -> None:
        self.forget, self.whole = forget, NativeAdapter()

    def expressible(self, inputs: InputSet) -> Any:
        return self.whole.expressible(self.forget(inputs))

    def render(self, inputs: InputSet) -> dict[str, str]:
        return self.whole.render(self.forget(inputs))

    def parse(self, files: Any) -> InputSet:
        return self.whole.parse(files)


def entries(inputs: InputSet, changes: dict[str, Any]) -> InputSet:
    if inputs.mapping is None:
        return inputs
    made = tuple(entry.model_copy(update=changes) for entry in inputs.mapping.entries)
    return replace(inputs, mapping=inputs.mapping.model_copy(update={"entries": made}))


def tensors(inputs: InputSet, changes: dict[str, Any]) -> InputSet:
    if inputs.problem is None:
        return inputs
    made = tuple(tensor.model_copy(update=changes) for tensor in inputs.problem.tensors)
    return replace(inputs, problem=inputs.problem.model_copy(update={"tensors": made}))


def memories(inputs: InputSet, changes: dict[str, Any]) -> InputSet:
    if inputs.architecture is None:
        return inputs
    return replace(
        inputs, architecture=inputs.architecture.with_memories(lambda memory: memory.model_copy(update=changes))
    )


ADAPTERS: dict[str, Callable[[InputSet], InputSet]] = {
    "unicast": lambda inputs: entries(inputs, {"unicast": ()}),
    "spatial order": lambda inputs: entries(inputs, {"spatial_order": None}),
    "constraints": lambda inputs: replace(inputs, constraints=None),
    "group": lambda inputs: replace(inputs, group=None),
    "densities": lambda inputs: tensors(inputs, {"density": None}),
    "bits": lambda inputs: tensors(inputs, {"bits": None}),
    "widths": lambda inputs: memories(inputs, {"bits_per_value": {}}),
    "leakage": lambda inputs: memories(inputs, {"leakage_pj_per_cycle": 0.0}),
    "blocks": lambda inputs: memories(inputs, {"block_words": 1}),
    "update energy": lambda inputs: memories(inputs, {"update_energy_pj": None}),
}


@pytest.mark.parametrize("part", first(1, *ADAPTERS))
def test_an_adapter_that_drops_something_is_caught(part: str) -> None:
    check = "check_adapter_drops_nothing_silently"
    assert failed(AdapterSpec(name="faulty", summary="Drops.", factory=lambda options: Lossy(ADAPTERS[part])), check)


class Cell:
    """Estimator of a memory by size, width and node."""

    def __init__(self, change: dict[str, Any]) -> None:
        self.change = change

    def estimate(self, component: str, attributes: Any, action: str, technology_nm: float) -> Any:
        size, width = float(attributes["size_bits"]), int(attributes["width_bits"])
        energy = width * (0.01 + 1e-5 * size**0.5) * technology_nm / 45
        figures = {"energy_pj": energy, "bits": width, "area_um2": size} | {
            name: value(size, width, technology_nm) for name, value in self.change.items()
        }
        return Estimate.model_validate({"accuracy": Accuracy(source="a", error="b", valid="c"), **figures})


GROWS = "check_estimator_figures_grow_with_the_component"
ESTIMATORS: dict[str, tuple[dict[str, Any], str]] = {
    "energy falls with the size": ({"energy_pj": lambda size, width, node: width * node / size}, GROWS),
    "area falls with the size": ({"area_um2": lambda size, width, node: 1e9 / size}, GROWS),
    "one node": ({"energy_pj": lambda size, width, node: width * size**0.5}, "check_estimator_depends_on_the_node"),
    "one bit": ({"bits": lambda size, width, node: 1}, "check_estimator_counts_the_bits_of_an_action"),
    "energy per bit": ({"energy_pj": lambda size, width, node: size * node}, "check_estimator_counts_the_bits_of_an_action"),
    "no size": (
        {"energy_pj": lambda size, width, node: width * node, "area_um2": lambda *of: 1.0},
        "check_estimator_uses_its_attributes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", first(1, *ESTIMATORS))
def test_a_faulty_estimator_is_caught(fault: str) -> None:
    change, check = ESTIMATORS[fault]
    for changes, expected in ((change, True), ({}, False)):
        spec = EstimatorSpec(
            name="cell",
            summary="A cell.",
            factory=partial(cell, changes),
            components={"cell": {"size_bits": 4096, "width_bits": 16}},
        )
        assert failed(spec, check) is expected


def places(index: int) -> tuple[int, int, int]:
    return index // 10, index // 2 % 5, index % 2


def cell(changes: dict[str, Any], options: Any) -> Cell:
    return Cell(changes)


class Descent:
    """Strategy: the neighbours of the best point so far."""

    def __init__(self, objective: Any = None, sign: int = 1) -> None:
        self.objective, self.sign = objective, sign

    def explore(self, task: ExplorationTask) -> PointProposals:
        chance, values = np.random.default_rng(task.seed), dict[int, float]()
        group = [int(chance.integers(task.size))]
        while group:
            results = yield [PointProposal(index) for index in group]
            values |= {result.index: self.sign * result.of(self.objective or task.objective) for result in results}
            best = places(min(values, key=values.__getitem__))
            near = sorted(
                range(task.size), key=lambda index: sum(abs(a - b) for a, b in zip(places(index), best, strict=True))
            )
            group = [index for index in near if index not in values][: min(3, task.points - len(values))]


@pytest.mark.parametrize("fault", first(1, "objective", "sign"))
def test_a_strategy_for_another_objective_is_caught(fault: str) -> None:
    check = "check_strategy_seeks_the_objective"
    made = {"objective": Descent(CYCLES), "sign": Descent(sign=-1)}[fault]
    assert failed(StrategySpec(name="faulty", summary="Descends.", factory=lambda options: made), check)
    assert not failed(StrategySpec(name="right", summary="Descends.", factory=lambda options: Descent()), check)


class Batches(Options):
    """Options of the frontend."""

    batch: int = 1


class Products:
    """Frontend: two matrix products."""

    def __init__(self, options: Batches, layers: int = 2, size: int = 4) -> None:
        self.options, self.layers, self.size = options, layers, size

    def recognises(self, source: str) -> bool:
        return source == "two"

    def load(self, source: str) -> Workload:
        problem = SAMPLES[1].problem.replace({"dimensions.M": self.size * self.options.batch})
        layers = [
            Layer(problem=Problem.model_validate(dict(problem) | {"name": f"p{at}"})) for at in range(self.layers)
        ]
        return Workload(name="two", layers=tuple(layers))


FRONTENDS: dict[str, tuple[Callable[[Any], Products], str]] = {
    "a layer is lost": (lambda options: Products(options, layers=1), "check_frontend_finds_the_expected_work"),
    "a size is doubled": (lambda options: Products(options, size=8), "check_frontend_finds_the_expected_work"),
    "an option is ignored": (lambda options: Products(Batches()), "check_frontend_options_have_an_effect"),
}


@pytest.mark.parametrize("fault", first(1, *FRONTENDS))
def test_a_faulty_frontend_is_caught(fault: str) -> None:
    faulty, check = FRONTENDS[fault]
    for factory, expected in ((faulty, True), (Products, False)):
        spec = FrontendSpec(name="two", summary="Two.", factory=factory, options=Batches, expects={"two": (2, 144)})
        assert failed(spec, check, sources=["two"]) is expected


class Priced(PlainModel):
    """The plain model with its energies, or its relaxation, changed."""

    def __init__(self, energy: Callable[[PlainEvaluator, Costs], Any] | None, relaxed: dict[str, Any]) -> None:
        self.energy, self.relaxed = energy, relaxed

    def bind(self, problem: Any, architecture: Any) -> PlainEvaluator:
        model = self

        class Evaluator(PlainEvaluator):
            def evaluate_batch(self, batch: Any) -> Costs:
                costs = super().evaluate_batch(batch)
                return costs if model.energy is None else replace(costs, energy_pj=model.energy(self, costs))

            def relaxation(self, skeleton: Any, keeps: Any = None) -> Any:
                whole = super().relaxation(skeleton)
                return replace(whole, **{name: change(getattr(whole, name)) for name, change in model.relaxed.items()})

        return Evaluator(problem, architecture)


def operations(evaluator: PlainEvaluator) -> float:
    return evaluator.problem.macs * evaluator.architecture.compute.energy_per_operation_pj


SUM, EACH = "check_costmodel_energy_is_words_times_prices", "check_costmodel_relaxation_holds_for_each_price"
MODELS: dict[str, tuple[Priced, str]] = {
    "operations too dear in the relaxation": (Priced(None, {"compute_pj": lambda pj: 1.2 * pj}), EACH),
    "operations in nJ": (Priced(lambda of, costs: costs.energy_pj - 0.999 * operations(of), {}), SUM),
    "operations forgotten": (Priced(lambda of, costs: costs.energy_pj - operations(of), {}), SUM),
    "memories in nJ": (
        Priced(lambda of, costs: operations(of) + (costs.energy_pj - operations(of)) / 1e3, {}),
        "check_costmodel_pays_for_each_word",
    ),
    "squares": (Priced(lambda of, costs: costs.energy_pj**2, {}), SUM),
}


@pytest.mark.parametrize("fault", first(1, *MODELS))
def test_a_faulty_cost_model_is_caught(fault: str) -> None:
    model, check = MODELS[fault]
    assert failed(CostModelSpec(name="faulty", summary="Plain.", factory=lambda options: model), check)
    assert not failed(CostModelSpec(name="right", summary="Plain.", factory=lambda options: PlainModel()), check)


def test_a_model_of_groups_that_accepts_none_is_caught() -> None:
    able = Capabilities(groups=True)
    spec = CostModelSpec(name="faulty", summary="Plain.", factory=lambda options: PlainModel(), capabilities=able)
    assert failed(spec, "check_costmodel_accepts_a_group_if_it_declares_groups")
