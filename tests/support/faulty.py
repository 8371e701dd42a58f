"""Plugins that are right, and the same with one fault each, with the check of the conformance kit that fails."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.errors import InputError, NotConformableError, Reason, Verdict
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.estimator import Accuracy, Estimate
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.plugin.specs import (
    AdapterSpec,
    AlgorithmSpec,
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
from tilewright.testing.corpus import SAMPLES
from tilewright_adapters.native import NativeAdapter
from tilewright_algorithms.im2col import Im2col


@dataclass(frozen=True)
class Fault:
    """A plugin with a fault, the check that fails, and the arguments of the kit."""

    spec: PluginSpec[Any]
    check: str
    given: dict[str, Any] = field(default_factory=dict)


# -- mappers -----------------------------------------------------------------------------------------------------


class Climber:
    """Mapper: the neighbours of the best mapping so far, and some random ones."""

    remembered: Any = None

    def __init__(self, change: dict[str, Any]) -> None:
        self.change = change

    def search(self, task: Task, run: Run) -> Proposals:
        objective = self.change.get("objective", task.objective)
        rng = np.random.default_rng() if "unseeded" in self.change else run.rng
        space = MapSpace.of(task.problem, task.architecture, None) if "lawless" in self.change else task.space
        proposed = first_drawn = space.sample(rng, 64)
        if "state" in self.change and self.remembered is not None:
            proposed = self.remembered
        while True:
            batch = self.changed(proposed.batch(), run)
            try:
                costs = yield batch
            except GeneratorExit:
                if "stubborn" in self.change:
                    continue
                raise
            if "resets" in self.change:
                run.evaluated = 0
            if "sorts" in self.change:
                costs.energy_pj.sort()
            values = self.change.get("sign", 1) * np.where(costs.valid, costs.of(objective), np.nan)
            if "prove" in self.change and run.evaluated >= self.change["prove"]:
                run.prove(float(costs.of(task.objective).min()))
            if "once" in self.change:
                return
            if "repeat" in self.change:
                proposed = first_drawn
                continue
            if "empty" in self.change:
                proposed = first_drawn.take(slice(0, 0))
                continue
            best = 0 if np.isnan(values).all() or not len(values) else int(np.nanargmin(values))
            self.remembered = proposed if "state" in self.change else None
            moved, _ = space.neighbours(proposed.take(slice(best, best + 1)))
            proposed = moved if len(moved) and rng.random() < 0.8 else space.sample(rng, 64)
            if "once valid" in self.change:
                int(np.log(values[costs.valid]).argmin())

    def changed(self, batch: Any, run: Run) -> Any:
        whole = np.ones(len(batch), bool)
        if "illegal" in self.change and run.evaluated > 400:
            which = whole
        elif "illegal row" in self.change:
            which = np.arange(len(batch)) == 63
        else:
            return batch.take(slice(0, 1)) if "once" in self.change else batch
        temporal, spatial = batch.temporal.copy(), batch.spatial.copy()
        temporal[which], spatial[which] = 1, 1
        return replace(batch, temporal=temporal, spatial=spatial)


def mapper(check: str, **change: Any) -> Fault:
    spec = MapperSpec(name="faulty", summary="Climbs.", factory=lambda options: Climber(change), ends="ends" in change)
    return Fault(spec, f"check_mapper_{check}")


PROVES, SEEKS = "proves_true_bounds", "seeks_lower_costs"
KNOWN_MAPPERS = {
    "mapper: proposes the same batch": mapper("goes_on_to_new_mappings", repeat=1),
    "mapper: illegal after 400 evaluations": mapper("proposes_mappings_of_the_task", illegal=1),
    "mapper: one illegal of 64": mapper("proposes_mappings_of_the_task", **{"illegal row": 1}),
    "mapper: ignores constraints": mapper("keeps_to_the_constraints", lawless=1),
    "mapper: ignores the seed": mapper("same_seed_same_proposals", unseeded=1),
    "mapper: keeps its best": mapper("keeps_no_state", state=1),
    "mapper: maximises": mapper(SEEKS, sign=-1),
    "mapper: always EDP": mapper(SEEKS, objective=EDP),
    "mapper: false proof": mapper(PROVES, prove=1),
    "mapper: one mapping": mapper("finds_a_valid_mapping", once=1),
    "mapper: goes on when it is closed": mapper("can_be_stopped_anywhere", stubborn=1),
}
OTHER_MAPPERS = {
    "mapper: false proof of the second batch": mapper(PROVES, prove=100),
    "mapper: always cycles": mapper(SEEKS, objective=CYCLES),
    "mapper: empty batches": mapper("leaves_costs_and_run_alone", empty=1),
    "mapper: resets the counter": mapper("leaves_costs_and_run_alone", resets=1),
    "mapper: sorts costs": mapper("leaves_costs_and_run_alone", sorts=1),
    "mapper: never ends": mapper("ends_if_it_says_so", ends=1),
    "mapper: needs a valid mapping": mapper("survives_a_hopeless_task", **{"once valid": 1}),
}


# -- adapters ----------------------------------------------------------------------------------------------------


class Lossy:
    """Adapter of Tilewright's files that forgets a part: `wrote` before writing, `read` after reading."""

    last: InputSet | None = None

    def __init__(self, change: dict[str, Any]) -> None:
        self.wrote, self.read = change.get("wrote", lambda inputs: inputs), change.get("read", lambda inputs: inputs)
        self.change, self.whole = change, NativeAdapter()

    def expressible(self, inputs: InputSet) -> Verdict:
        verdict = self.whole.expressible(self.wrote(inputs))
        if "choosy" in self.change and (inputs.problem is None or inputs.problem.name != "tiny"):
            return Verdict(reasons=(*verdict.reasons, Reason(code="choosy", where="", message="no")))
        return verdict

    def render(self, inputs: InputSet) -> dict[str, str]:
        verdict = self.expressible(inputs)
        if not verdict:
            raise NotConformableError("faulty", verdict.reasons)
        self.last = inputs
        return self.whole.render(self.wrote(inputs))

    def parse(self, files: Any) -> InputSet:
        inputs: InputSet = self.read(self.whole.parse(files))
        if "last" in self.change:
            return InputSet(problem=inputs.problem) if self.last is None else self.last
        if "sorted" in self.change and list(files) != sorted(files):
            return replace(inputs, mapping=None)
        if "leaves" in self.change:
            (Path(files[0]).parent / "cache").write_text("")
        return inputs


def entries(change: Callable[[Any], dict[str, Any]]) -> Callable[[InputSet], InputSet]:
    def changed(inputs: InputSet) -> InputSet:
        if inputs.mapping is None:
            return inputs
        made = tuple(entry.model_copy(update=change(entry)) for entry in inputs.mapping.entries)
        return replace(inputs, mapping=inputs.mapping.model_copy(update={"entries": made}))

    return changed


def tensors(change: Callable[[Any], dict[str, Any]]) -> Callable[[InputSet], InputSet]:
    def changed(inputs: InputSet) -> InputSet:
        if inputs.problem is None:
            return inputs
        made = tuple(tensor.model_copy(update=change(tensor)) for tensor in inputs.problem.tensors)
        return replace(inputs, problem=inputs.problem.model_copy(update={"tensors": made}))

    return changed


def memories(change: Callable[[Any], dict[str, Any]]) -> Callable[[InputSet], InputSet]:
    def changed(inputs: InputSet) -> InputSet:
        if inputs.architecture is None:
            return inputs
        machine = inputs.architecture.with_memories(lambda memory: memory.model_copy(update=change(memory)))
        return replace(inputs, architecture=machine)

    return changed


def problem(change: Callable[[Problem], dict[str, Any]]) -> Callable[[InputSet], InputSet]:
    def changed(inputs: InputSet) -> InputSet:
        if inputs.problem is None:
            return inputs
        return replace(inputs, problem=inputs.problem.model_copy(update=change(inputs.problem)))

    return changed


def unstrided(tensor: Any) -> dict[str, Any]:
    ranks = [type(rank)(terms=type(rank.terms)(dict.fromkeys(rank.terms, 1))) for rank in tensor.projection]
    return {"projection": tuple(ranks)}


def adapter(check: str, **change: Any) -> Fault:
    return Fault(
        AdapterSpec(name="faulty", summary="Drops.", factory=lambda options: Lossy(change)), f"check_adapter_{check}"
    )


DROPS, ROUND = "drops_nothing_silently", "round_trip"
KNOWN_ADAPTERS = {
    "adapter: bypass": adapter(
        DROPS, read=entries(lambda entry: {} if entry.keep is None else {"keep": ("A", "B", "Z")})
    ),
    "adapter: loop order": adapter(ROUND, read=entries(lambda entry: {"temporal_order": entry.temporal_order[::-1]})),
    "adapter: strides": adapter(ROUND, read=tensors(unstrided)),
    "adapter: unicast": adapter(DROPS, wrote=entries(lambda entry: {"unicast": ()})),
    "adapter: constraints": adapter(DROPS, wrote=lambda inputs: replace(inputs, constraints=None)),
    "adapter: densities and bits": adapter(DROPS, read=tensors(lambda tensor: {"density": None, "bits": None})),
    "adapter: bandwidths": adapter(ROUND, read=memories(lambda memory: {"read_bandwidth_words_per_cycle": None})),
    "adapter: all problems but one": adapter("accepts_a_problem_by_its_structure", choosy=1),
    "adapter: groups": adapter(DROPS, wrote=lambda inputs: replace(inputs, group=None)),
}
OTHER_ADAPTERS = {
    "adapter: spatial order": adapter(DROPS, wrote=entries(lambda entry: {"spatial_order": None})),
    "adapter: widths": adapter(DROPS, wrote=memories(lambda memory: {"bits_per_value": {}})),
    "adapter: update energy": adapter(DROPS, wrote=memories(lambda memory: {"update_energy_pj": None})),
    "adapter: keep without tensors": adapter(DROPS, read=entries(lambda entry: {"keep": entry.keep or None})),
    "adapter: capacities of 24 bits": adapter(
        DROPS,
        read=memories(
            lambda memory: {"capacity_words": memory.capacity_words and int(np.float32(memory.capacity_words))}
        ),
    ),
    "adapter: names": adapter(DROPS, read=problem(lambda old: {"name": old.name.split(".")[0]})),
    "adapter: unit operation": adapter(DROPS, read=problem(lambda old: {"unit_operation": "mac"})),
    "adapter: what was written last": adapter("reads_what_is_in_the_files", last=1),
    "adapter: order of files": adapter("reads_what_is_in_the_files", sorted=1),
    "adapter: leaves a file": adapter("reads_what_is_in_the_files", leaves=1),
}


# -- estimators --------------------------------------------------------------------------------------------------


class Cell:
    """Estimator of a memory by size, width and node."""

    def __init__(self, change: dict[str, Any]) -> None:
        self.change = change

    def estimate(self, component: str, attributes: Any, action: str, technology_nm: float) -> Any:
        given = {**self.change.get("default", {}), **attributes}
        if "order" in self.change and len(given) == 2:
            given = dict(zip(("size_bits", "width_bits"), given.values(), strict=True))
        allowed = {"size_bits", "width_bits", *self.change.get("more", ())}
        known = {"size_bits", "width_bits"} <= set(given) <= allowed and all(
            isinstance(value, int | float) and 1 <= value < 1e12 and value == int(value) for value in given.values()
        )
        if action not in ("read", "write") or not known or not self.change.get("lowest", 1) <= technology_nm < 1e4:
            return Reason(code="unknown", where="", message="not known")
        size, width = float(given["size_bits"]), int(given["width_bits"])
        energy = width * (0.01 + 1e-5 * size**0.5) * technology_nm / 45
        figures = {"energy_pj": energy, "bits": width, "area_um2": 0.1 * size * technology_nm} | {
            name: self.change[name](size, width, technology_nm, action)
            for name in ("energy_pj", "bits", "area_um2")
            if name in self.change
        }
        return Estimate.model_validate({"accuracy": Accuracy(source="a", error="b", valid="c"), **figures})


def estimator(check: str, component: str = "cell", **change: Any) -> Fault:
    spec = EstimatorSpec(
        name="cell",
        summary="A cell.",
        factory=partial(cell, component, change),
        components={component: {"size_bits": 4096, "width_bits": 64}},
    )
    return Fault(spec, f"check_estimator_{check}")


class Named(Cell):
    """Estimator of one component."""

    def __init__(self, component: str, change: dict[str, Any]) -> None:
        super().__init__(change)
        self.component = component

    def estimate(self, component: str, attributes: Any, action: str, technology_nm: float) -> Any:
        if component != self.component:
            return Reason(code="unknown", where="", message="not known")
        return super().estimate(component, attributes, action, technology_nm)


def cell(component: str, change: dict[str, Any], options: Any) -> Cell:
    return Named(component, change)


GROWS, PLAUSIBLE = "figures_grow_with_the_component", "units_are_plausible"
KNOWN_ESTIMATORS = {
    "estimator: area by action": estimator(
        "area_and_leakage_are_of_the_component", area_um2=lambda size, width, node, action: len(action)
    ),
    "estimator: energy falls with the size": estimator(
        GROWS, energy_pj=lambda size, width, node, action: width * node / size
    ),
    "estimator: one node": estimator("depends_on_the_node", energy_pj=lambda size, width, node, action: width * size),
    "estimator: one bit": estimator("counts_the_bits_of_an_action", bits=lambda *of: 1),
}
OTHER_ESTIMATORS = {
    "estimator: area falls with the size": estimator(GROWS, area_um2=lambda size, width, node, action: 1e9 / size),
    "estimator: energy per bit": estimator(
        "counts_the_bits_of_an_action", energy_pj=lambda size, width, node, action: size * node
    ),
    "estimator: no size": estimator(
        "uses_its_attributes", energy_pj=lambda size, width, node, action: width * node, area_um2=lambda *of: 1.0
    ),
    "estimator: area of one node": estimator("depends_on_the_node", area_um2=lambda size, width, node, action: size),
    "estimator: ignores banks": estimator("uses_what_it_accepts", "sram", more=("banks", "ports")),
    "estimator: order of attributes": estimator("reads_attributes_by_name", order=1),
    "estimator: default size": estimator("survives_odd_sizes", default={"size_bits": 1024}),
    "estimator: any node": estimator("survives_odd_sizes", lowest=-1e9, energy_pj=lambda *of: 1.0),
    "estimator: J": estimator(PLAUSIBLE, "sram", energy_pj=lambda size, width, node, action: 1e-12 * width * node),
    "estimator: square millimetres": estimator(
        PLAUSIBLE, "sram", area_um2=lambda size, width, node, action: 1e-7 * size * node
    ),
}


# -- strategies --------------------------------------------------------------------------------------------------


class Descent:
    """Strategy: the neighbours of the best point so far."""

    def __init__(self, change: dict[str, Any]) -> None:
        self.change = change

    def explore(self, task: ExplorationTask) -> PointProposals:
        if "too many" in self.change:
            yield [PointProposal(index) for index in range(task.size)]
            return
        if "list" in self.change:
            [index for index in range(task.size) if task.architecture(index) is not None]
        sizes = [len(values) for values in task.choices.values()]
        chance = np.random.default_rng(None if "unseeded" in self.change else task.seed)
        values, best_known = dict[int, float](), math.inf
        group = [int(chance.integers(task.size))]
        while group:
            proposals = [PointProposal(index, self.why(task, index, best_known)) for index in group]
            results = yield proposals
            objective = self.change.get("objective", task.objective)
            values |= {result.index: self.change.get("sign", 1) * result.of(objective) for result in results}
            best_known = min(values.values())
            best = np.array(np.unravel_index(min(values, key=values.__getitem__), sizes))
            near = [
                task.index([int(place) for place in np.clip(best + step, 0, np.array(sizes) - 1)])
                for axis in range(len(sizes))
                for step in (np.eye(len(sizes), dtype=int)[axis], -np.eye(len(sizes), dtype=int)[axis])
            ]
            near += [int(index) for index in chance.integers(task.size, size=3)]
            known = {} if "repeats" in self.change else values
            group = [index for index in dict.fromkeys(near) if index not in known][: min(3, task.points - len(values))]

    def why(self, task: ExplorationTask, index: int, best: float) -> str | None:
        if "half" not in self.change or task.bounds is None or task.architecture(index) is None:
            return None
        return "above half the best" if task.objective.value(*task.bounds(index)) > 0.5 * best else None


def strategy(check: str, **change: Any) -> Fault:
    return Fault(
        StrategySpec(name="faulty", summary="Descends.", factory=lambda options: Descent(change)),
        f"check_strategy_{check}",
    )


KNOWN_STRATEGIES = {
    "strategy: repeats points": strategy("proposes_points_of_the_space", repeats=1),
    "strategy: unseeded": strategy("same_seed_same_points", unseeded=1),
    "strategy: too many points": strategy("proposes_points_of_the_space", **{"too many": 1}),
    "strategy: always cycles": strategy("seeks_the_objective", objective=CYCLES),
}
OTHER_STRATEGIES = {
    "strategy: maximises": strategy("seeks_the_objective", sign=-1),
    "strategy: leaves out good points": strategy("leaves_out_only_what_is_worse", half=1),
    "strategy: lists all points": strategy("explores_spaces_of_any_size", list=1),
}


# -- frontends and algorithms ------------------------------------------------------------------------------------


class Batches(Options):
    """Options of the frontend."""

    batch: int = 1


class Products:
    """Frontend: two matrix products."""

    def __init__(self, options: Batches, layers: int = 2, size: int = 4, raises: str = "") -> None:
        self.options, self.layers, self.size, self.raises = options, layers, size, raises

    def recognises(self, source: str) -> bool:
        return source[0] != "(" and source == "two" if self.raises == "recognises" else source == "two"

    def load(self, source: str) -> Workload:
        if source != "two":
            raise (ValueError if self.raises == "load" else InputError)(f"{source[:40]!r} is not two")
        product = SAMPLES[1].problem.replace({"dimensions.M": self.size * self.options.batch})
        layers = [
            Layer(problem=Problem.model_validate(dict(product) | {"name": f"p{at}"})) for at in range(self.layers)
        ]
        return Workload(name="two", layers=tuple(layers))


def frontend(check: str, factory: Callable[[Any], Products]) -> Fault:
    spec = FrontendSpec(name="two", summary="Two.", factory=factory, options=Batches, expects={"two": (2, 144)})
    return Fault(spec, f"check_frontend_{check}", {"sources": ["two"]})


KNOWN_FRONTENDS = {
    "frontend: drops a layer": frontend("finds_the_expected_work", lambda options: Products(options, layers=1)),
    "frontend: doubles a size": frontend("finds_the_expected_work", lambda options: Products(options, size=8)),
    "frontend: recognises raises": frontend(
        "recognises_without_raising", lambda options: Products(options, raises="recognises")
    ),
    "frontend: ValueError": frontend("refuses_clearly", lambda options: Products(options, raises="load")),
    "frontend: ignores an option": frontend("options_have_an_effect", lambda options: Products(Batches())),
}


class Lines:
    """Frontend: a matrix product for each line of a file, which has the number of its rows."""

    known: dict[str, Workload]

    def __init__(self, change: str) -> None:
        self.change, self.known = change, {}

    def recognises(self, source: str) -> bool:
        return source.endswith(".rows")

    def load(self, source: str) -> Workload:
        path = Path(source)
        try:
            text = path.read_text(encoding="utf-8")
            if self.change == "cut" and not text.endswith("\n"):
                raise IndexError("list index out of range")
            products = [SAMPLES[1].problem.replace({"dimensions.M": int(line)}) for line in text.split()]
            layers = [
                Layer(problem=product.model_copy(update={"name": f"p{at}"})) for at, product in enumerate(products)
            ]
            if not layers and self.change != "empty":
                raise ValueError("no line")
            if self.change == "folder":
                layers = layers if path.parent.name == "data" else layers[:1]
            if self.change == "writes":
                path.with_suffix(".cache").write_text("")
            workload = Workload(name="rows", layers=tuple(layers))
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {source[:40]!r}: {error}") from None
        return self.known.setdefault(path.name, workload) if self.change == "name" else workload


FILES = {"a.rows": "4\n6\n12\n24\n", "b.rows": "8\n10\n4\n"}


def rows(check: str, change: str) -> Fault:
    spec = FrontendSpec(name="rows", summary="Rows.", factory=lambda options: Lines(change), suffixes=(".rows",))
    return Fault(spec, f"check_frontend_{check}", {"sources": list(FILES)})


OTHER_FRONTENDS = {
    "frontend: remembers by name": rows("reads_the_file_that_it_is_given", "name"),
    "frontend: one folder": rows("reads_the_file_that_it_is_given", "folder"),
    "frontend: leaves a file": rows("reads_the_file_that_it_is_given", "writes"),
    "frontend: cut files": rows("refuses_damaged_files", "cut"),
    "frontend: empty files": rows("refuses_damaged_files", "empty"),
}


class Matrices(Im2col):
    """Algorithm whose alternatives are changed."""

    def __init__(self, change: dict[str, Any]) -> None:
        self.change, self.known = change, dict[str, Any]()

    def alternatives(self, problem: Problem) -> list[Any]:
        if "name" in self.change and "K" not in problem.dimensions:
            raise NotConformableError("faulty", [Reason(code="name", where=problem.name, message="no K")])
        answer = [self.changed(problem, alternative) for alternative in super().alternatives(problem)]
        return self.known.setdefault(problem.name, answer) if "known" in self.change else answer

    def changed(self, problem: Problem, alternative: Any) -> Any:
        moves = [movement.model_copy(update=self.change.get("moves", {})) for movement in alternative.movements]
        moves *= self.change.get("times", 1)
        layers = [
            layer.model_copy(update={"problem": layer.problem.model_copy(update=self.change.get("problem", {}))})
            for layer in alternative.steps.layers
        ]
        steps = alternative.steps.model_copy(update={"layers": tuple(layers)})
        return alternative.model_copy(update={"movements": tuple(moves), "steps": steps})


def algorithm(check: str, **change: Any) -> Fault:
    return Fault(
        AlgorithmSpec(name="faulty", summary="Matrices.", factory=lambda options: Matrices(change)),
        f"check_algorithm_{check}",
    )


OTHER_ALGORITHMS = {
    "algorithm: movements write nothing": algorithm("movements_have_the_words", moves={"words_written": 0}),
    "algorithm: movements read too much": algorithm("movements_have_the_words", moves={"words_read": 10**9}),
    "algorithm: moved twice": algorithm("movements_have_the_words", times=2),
    "algorithm: by names": algorithm("does_not_depend_on_names", name=1),
    "algorithm: remembers by name": algorithm("keeps_problems_apart", known=1),
    "algorithm: unit operation": algorithm("keeps_what_the_problem_states", problem={"unit_operation": "mac"}),
}
