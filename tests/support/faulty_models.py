"""Cost models with one fault each, with the check of the conformance kit that fails."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from support.faulty import Fault
from tilewright.plugin import BatchEvaluator, MappingBatch
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.testing.reference import PlainEvaluator, PlainModel


class Priced(PlainModel):
    """The plain model with its costs, or its relaxation, changed."""

    def __init__(self, change: dict[str, Any]) -> None:
        self.change = change

    def bind(self, problem: Any, architecture: Any) -> PlainEvaluator:
        return (_Unrelaxed if "unrelaxed" in self.change else _Priced)(problem, architecture, self.change)


class _Unrelaxed(PlainEvaluator):
    """Without a relaxation: `relaxation` returns None."""

    def __init__(self, problem: Any, architecture: Any, change: dict[str, Any]) -> None:
        super().__init__(problem, architecture)
        self.change = change

    def evaluate_batch(self, batch: Any) -> Costs:
        costs = super().evaluate_batch(batch)
        return self.change["costs"](self, costs, batch) if "costs" in self.change else costs

    def _energy(self, batch: Any, steps: Any, unrolled: Any) -> Any:
        if "energy" not in self.change:
            return super()._energy(batch, steps, unrolled)
        return sum(self.change["energy"](self, batch, steps, unrolled), operations(self) * np.ones(len(batch)))

    def relaxation(self, skeleton: Any, keeps: Any = None) -> Any:
        return None


class _Priced(_Unrelaxed):
    def relaxation(self, skeleton: Any, keeps: Any = None) -> Any:
        whole = PlainEvaluator.relaxation(self, skeleton)
        relaxed = self.change.get("relaxed", {})
        return replace(whole, **{name: change(getattr(whole, name)) for name, change in relaxed.items()})


class _Bounding(_Priced):
    def bound(self, batch: Any, entries: int) -> Costs:
        costs = self.evaluate_batch(batch)
        return Costs(np.ones(len(batch), bool), costs.energy_pj * 1.001, costs.cycles)


class Bounding(Priced):
    """With a bound that is above the cost."""

    def bind(self, problem: Any, architecture: Any) -> PlainEvaluator:
        return _Bounding(problem, architecture, {})


def operations(evaluator: PlainEvaluator) -> float:
    return evaluator.problem.macs * evaluator.architecture.compute.energy_per_operation_pj


def energies(
    evaluator: PlainEvaluator, batch: Any, steps: Any, unrolled: Any, instances: bool = True, outputs: bool = True
) -> Iterator[Any]:
    """Yield the energy of each tensor at each entry."""
    times, across = np.ones(len(batch)), np.ones(len(batch))
    for index, entry in enumerate(batch.skeleton.entries):
        times = times * steps[:, index]
        cluster = evaluator.architecture.cluster(entry.target)
        for number, tensor in enumerate(batch.problem.tensors):
            memory = cluster.memory_for(tensor)
            if memory is not None and (outputs or not tensor.is_output):
                words = evaluator.problem.projection_matrix(tensor)
                tile = (1 + (batch.temporal[:, index] - 1) @ words.T).prod(axis=-1)
                price = memory.accumulation_energy_pj if tensor.is_output else memory.read_energy_pj
                yield batch.keep[:, index, number] * times * across * tile * price
        times, across = (times * unrolled[:, index], across) if instances else (times, across)


class Kept:
    """Remembers costs by the length of the batch."""

    known: dict[Any, Costs]

    def __init__(self) -> None:
        self.known = {}

    def __call__(self, evaluator: Any, costs: Costs, batch: Any) -> Costs:
        return self.known.setdefault((evaluator.problem.name, len(batch)), costs)


def written(evaluator: Any, costs: Costs, batch: Any) -> Costs:
    base = batch.temporal.base if batch.temporal.base is not None else batch.temporal
    base.flags.writeable = True
    base[:] = base[::-1].copy()
    return costs


def model(check: str, made: Callable[[dict[str, Any]], PlainModel] = Priced, **change: Any) -> Fault:
    return Fault(
        CostModelSpec(name="faulty", summary="Plain.", factory=lambda options: made(change)), f"check_costmodel_{check}"
    )


class Blind(PlainModel):
    """Timeloop's counts for the problem's own loop order, whatever the mapping's is."""

    def __init__(self, change: dict[str, Any]) -> None:
        registry = installed()
        self.change = change
        self.counting = registry.build(registry.find(CostModelSpec, "timeloop"), {})

    def bind(self, problem: Any, architecture: Any) -> Any:
        return _Blind(problem, self.counting.bind(problem, architecture), "unrelaxed" not in self.change)


class _Blind(BatchEvaluator):
    def __init__(self, problem: Any, counting: Any, relaxed: bool) -> None:
        self.problem, self.counting, self.relaxed = problem, counting, relaxed

    def evaluate_batch(self, batch: Any) -> Costs:
        return self.counting.evaluate_batch(self.ordered(batch))  # type: ignore[no-any-return]

    def explain(self, mapping: Any) -> Any:
        return self.counting.explain(self.ordered(MappingBatch.pack(self.problem, [mapping]))[0])

    def relaxation(self, skeleton: Any, keeps: Any = None) -> Any:
        return self.counting.relaxation(skeleton, keeps) if self.relaxed else None

    def ordered(self, batch: Any) -> Any:
        order = np.broadcast_to(np.arange(batch.order.shape[2], dtype=np.int8), batch.order.shape)
        return replace(batch, order=order.copy())


def nano(evaluator: Any, costs: Costs, batch: Any) -> Costs:
    return replace(costs, energy_pj=operations(evaluator) + (costs.energy_pj - operations(evaluator)) / 1e3)


SUM, EACH = "energy_is_words_times_prices", "relaxation_holds_for_each_price"
SOUND, WORD, PERMUTED = "costs_are_sound", "pays_for_each_word", "order_is_irrelevant"
KNOWN_MODELS = {
    "cost model: reversed batch": model(
        PERMUTED, costs=lambda of, costs, batch: Costs(costs.valid[::-1], costs.energy_pj[::-1], costs.cycles[::-1])
    ),
    "cost model: 0.1 % more in a batch": model(
        "batch_equals_one_by_one",
        costs=lambda of, costs, batch: replace(costs, energy_pj=costs.energy_pj * (1 if len(batch) == 1 else 1.001)),
    ),
    "cost model: by the place in the batch": model(
        PERMUTED,
        costs=lambda of, costs, batch: replace(costs, energy_pj=costs.energy_pj * (1 + 1e-3 * np.arange(len(batch)))),
    ),
    "cost model: relaxation with operations of 1.2 times": model(EACH, relaxed={"compute_pj": lambda pj: 1.2 * pj + 1}),
    "cost model: relaxation with operations of 8 times": model(EACH, relaxed={"compute_pj": lambda pj: 8 * pj}),
    "cost model: relaxation with dear words": model(EACH, relaxed={"fill_pj": lambda pj: 1.5 * pj}),
    "cost model: relaxation with slow memories": model(
        "least_costs_hold", relaxed={"read_bandwidth": lambda rate: np.full_like(rate, 0.05)}
    ),
    "cost model: relaxation without multicast": model(
        EACH, relaxed={"shared": np.zeros_like, "read_pj": lambda pj: pj + 1.0, "neighbours": lambda of: False}
    ),
    "cost model: relaxation that claims to be exact": model(
        "proofs_hold", relaxed={"exact": lambda of: True, "neighbours": lambda of: False}
    ),
    "cost model: bound above the cost": model("bounds_hold", Bounding),
    "cost model: negative energy": model(
        SOUND, costs=lambda of, costs, batch: replace(costs, energy_pj=costs.energy_pj - 1e5)
    ),
    "cost model: NaN": model(
        SOUND, costs=lambda of, costs, batch: replace(costs, energy_pj=np.where(costs.valid, costs.energy_pj, np.nan))
    ),
    "cost model: nJ": model(WORD, costs=nano),
    "cost model: nJ, without a relaxation": model(WORD, costs=nano, unrelaxed=1),
    "cost model: ignores capacities": model(
        "rejects_what_does_not_fit",
        costs=lambda of, costs, batch: Costs(
            np.ones(len(batch), bool),
            np.where(costs.valid, costs.energy_pj, 1e6),
            np.where(costs.valid, costs.cycles, 1e6),
        ),
    ),
    "cost model: energy of one instance": model(EACH, energy=partial(energies, instances=False)),
    "cost model: ignores loop orders": model(WORD, Blind),
    "cost model: ignores loop orders, without a relaxation": model(WORD, Blind, unrelaxed=1),
    "cost model: results are never written": model(WORD, energy=partial(energies, outputs=False)),
    "cost model: writes to the batch": model("leaves_no_trace", costs=written),
    "cost model: remembers": model(PERMUTED, costs=Kept()),
}


def renamed(of: Any, costs: Costs, batch: Any) -> Costs:
    return replace(
        costs,
        energy_pj=costs.energy_pj * (2 if "B" in of.problem.tensor_names or "W" in of.problem.tensor_names else 1),
    )


def narrow(of: Any, costs: Costs, batch: Any) -> Costs:
    with np.errstate(all="ignore"):
        whole = np.where(costs.valid, costs.cycles, 0).astype(np.int64).astype(np.int32)
    return replace(costs, cycles=np.where(costs.valid, np.abs(whole.astype(np.float64)), np.inf))


OTHER_MODELS = {
    "cost model: operations in nJ": model(SUM, costs=lambda of, costs, batch: replace(costs, energy_pj=costs.energy_pj - 0.999 * operations(of))),
    "cost model: operations forgotten": model(SUM, costs=lambda of, costs, batch: replace(costs, energy_pj=costs.energy_pj - operations(of))),
    "cost model: squares": model(SUM, costs=lambda of, costs, batch: replace(costs, energy_pj=costs.energy_pj**2)),
    "cost model: by names": model("does_not_depend_on_names", costs=renamed),
    "cost model: 32 bits": model("counts_large_problems", costs=narrow),
    "cost model: saturates": model(
        "counts_large_problems",
        costs=lambda of, costs, batch: replace(costs, energy_pj=np.where(costs.valid, np.minimum(costs.energy_pj, 1e6), np.inf)),
    ),
    "cost model: all units busy": model(
        "counts_the_units_in_use",
        costs=lambda of, costs, batch: replace(
            costs, cycles=np.where(costs.valid, math.ceil(of.problem.macs / of.architecture.compute_instances), np.inf)
        ),
    ),
    "cost model: slow operations": model(
        "counts_the_units_in_use",
        costs=lambda of, costs, batch: replace(costs, cycles=costs.cycles / of.architecture.compute.cycles_per_operation),
    ),
    "cost model: charges what bypasses": model(
        "charges_no_bypassed_memory",
        energy=lambda of, batch, *parts: energies(of, replace(batch, keep=np.ones_like(batch.keep)), *parts),
    ),
}  # fmt: skip
