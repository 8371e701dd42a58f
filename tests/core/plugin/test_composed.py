"""Models composed of another one's counts: their costs, reports, bounds and proofs, and what is refused."""

from __future__ import annotations

import gc
import itertools
import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import tilewright as tw
from support.pipelined import Case, cases
from support.proofs.drawing import draw
from tilewright.errors import NotConformableError, PluginError
from tilewright.mapspace.batch import MappingBatch
from tilewright.plugin import (
    AccessBatch,
    ComposedModel,
    CostModelSpec,
    CountingEvaluator,
    CycleLimit,
    installed,
    price_of,
)
from tilewright.plugin.costmodel import Relaxable
from tilewright.plugin.guard.models import guarded_evaluator
from tilewright.schema.architecture import Architecture
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.pipelined.model import PipelinedModel


class Banked(ComposedModel):
    """Each memory has one bank; a fraction of its accesses repeats."""

    name = "banked"
    monotone = True

    def __init__(self, repeated: float) -> None:
        self.repeated = repeated

    def limits(self, counts: AccessBatch) -> Iterator[CycleLimit]:
        for memory in counts.architecture.memories:
            reads, fills, updates = counts.slices(memory)
            accesses = (reads + fills + updates) / price_of(memory).block
            yield CycleLimit(memory.name, "access", accesses * self.repeated)


class Cheap(Banked):
    """Prices of its own: DRAM costs nothing."""

    def priced(self, architecture: Architecture) -> Architecture:
        free = {"read_energy_pj": 0.0, "write_energy_pj": 0.0, "update_energy_pj": None}
        return architecture.with_memories(lambda each: each.model_copy(update=free if each.name == "DRAM" else {}))


TIMELOOP = installed().make(CostModelSpec, "timeloop")
PROBLEM, EYERISS = tw.load("nk,km->nm; n=8 k=8 m=8", kind="problem"), tw.load("eyeriss", kind="architecture")


@given(cases(timed=False))
def test_counts_and_cycles_are_those_of_the_report(case: Case) -> None:
    problem, architecture, mapping = case
    evaluator = TIMELOOP.bind(problem, architecture)
    assert isinstance(evaluator, CountingEvaluator)
    counts, report = evaluator.count_accesses(MappingBatch.pack(problem, [mapping])), evaluator.explain(mapping)
    composed = Banked(3.0).bind(problem, architecture).explain(mapping)
    assert bool(counts.costs.valid[0]) == report.valid == composed.valid
    if not report.valid or report.cycles is None or report.energy_pj is None:
        return
    assert (counts.costs.energy_pj[0], counts.costs.cycles[0]) == (report.energy_pj, report.cycles)
    needed = [float(report.cycles)]
    for level in report.levels:
        memory = next(each for each in architecture.memories if each.name == level.name)
        reads, fills, updates = (float(each[0]) for each in counts.slices(memory))
        widths = {name: memory.slices_of(problem.tensor(name)) for name in level.tensors}
        for counted, action in ((reads, "reads"), (fills, "fills"), (updates, "updates")):
            told = sum(widths[name] * getattr(each, action) for name, each in level.tensors.items())
            assert counted == pytest.approx(told, abs=0.51 * sum(widths.values()))  # reports round averages
        needed.append(3 * (reads + fills + updates) / (memory.block_words * memory.slices_per_word))
    assert composed.cycles == max(map(math.ceil, needed))
    leaked = sum(level.leakage_pj for level in report.levels)
    more = leaked * (composed.cycles / report.cycles - 1)
    assert composed.energy_pj == pytest.approx(report.energy_pj + more)


def test_a_batch_costs_what_its_reports_say() -> None:
    mappings = list(tw.space(PROBLEM, EYERISS).sample(np.random.default_rng(0), 20).batch())
    evaluator = Banked(0.5).bind(PROBLEM, EYERISS)
    costs = evaluator.evaluate_batch(MappingBatch.pack(PROBLEM, mappings))
    reports = [evaluator.explain(mapping) for mapping in mappings]
    assert [report.cycles for report in reports if report.valid] == costs.cycles[costs.valid].tolist()
    assert {limit.name for limit in reports[0].limits} >= {"compute", "GlobalBuffer"}


def test_a_model_has_prices_of_its_own() -> None:
    mapping = tw.space(PROBLEM, EYERISS).sample(np.random.default_rng(0), 1)[0]
    dear, cheap = (model.bind(PROBLEM, EYERISS).explain(mapping) for model in (Banked(0.0), Cheap(0.0)))
    assert dear.energy_pj is not None
    assert cheap.energy_pj == pytest.approx(dear.energy_pj - dear.levels[0].energy_pj)


def test_a_composed_model_counts_for_another() -> None:
    waiting = type("Waiting", (Banked,), {"counted_by": "pipelined"})(0.5)
    space = tw.space(PROBLEM, EYERISS)
    batch = space.sample(np.random.default_rng(0), 20).batch()
    both, banked, pipelined = (
        model.bind(space.problem, space.architecture).evaluate_batch(batch)
        for model in (waiting, Banked(0.5), installed().make(CostModelSpec, "pipelined"))
    )
    assert (both.cycles == np.maximum(banked.cycles, pipelined.cycles)).all()


def test_a_limit_has_cycles_for_each_mapping() -> None:
    class Scalar(Banked):
        def limits(self, counts: AccessBatch) -> Iterator[CycleLimit]:
            yield CycleLimit("Bus", "access", np.float64(5.0))  # type: ignore[arg-type]

    mapping = tw.space(PROBLEM, EYERISS).sample(np.random.default_rng(0), 1)[0]
    with pytest.raises(ValueError, match=r"the limit Bus has cycles of shape \(\), \(1,\) is expected"):
        Scalar(1.0).bind(PROBLEM, EYERISS).explain(mapping)


def test_hardware_without_counts_is_refused() -> None:
    with pytest.raises(NotConformableError, match="banked.*timeloop offers no counts for such hardware"):
        Banked(1.0).bind(PROBLEM, tw.load("eyeriss_gating", kind="architecture"))


def test_loop_orders_matter_unless_the_model_is_monotone() -> None:
    space = tw.space(PROBLEM, EYERISS)
    for monotone in (True, False):
        model = type("Model", (Banked,), {"monotone": monotone})(1.0)
        evaluator = model.bind(space.problem, space.architecture)
        assert isinstance(evaluator, Relaxable)
        relaxation = evaluator.relaxation(space.skeleton, space.keeps)
        assert relaxation is not None and relaxation.order_matters != monotone and not relaxation.exact


@pytest.mark.parametrize("wrong", ["reads", "instances", "leakage_pj"])
def test_wrong_counts_name_the_model(wrong: str) -> None:
    inner: Any = TIMELOOP.bind(PROBLEM, EYERISS)
    batch = tw.space(PROBLEM, EYERISS).sample(np.random.default_rng(0), 20).batch()

    class Wrong:
        evaluate_batch, explain = inner.evaluate_batch, inner.explain

        @staticmethod
        def count_accesses(batch: MappingBatch) -> AccessBatch:
            counts: AccessBatch = inner.count_accesses(batch)
            return replace(counts, **{wrong: -1 - getattr(counts, wrong)})

    evaluator: Any = Wrong()
    with pytest.raises(PluginError, match=f"count_accesses returned {wrong} that are negative"):
        guarded_evaluator(evaluator, PROBLEM, EYERISS).count_accesses(batch)


def proofs(count: int, number: int, most: int, repeated: float) -> int:
    """Compare `optimal` with the enumeration of so many small spaces, for cycles and for EDP; return how many it proves."""
    compared = proved = 0
    for seed in itertools.count(number):
        inputs = draw(seed, "small", ragged=False)
        space = tw.space(inputs.problem, inputs.architecture, constraints=inputs.constraints)
        if not 1 < space.size <= most:
            continue
        for objective in ("cycles", "edp"):
            optimal, every = (
                tw.map(
                    inputs.problem,
                    inputs.architecture,
                    constraints=inputs.constraints,
                    mapper=mapper,
                    model=Banked(repeated),
                    objective=objective,
                    cache=False,
                )
                .layers[0]
                .result
                for mapper in ("optimal", "exhaustive")
            )
            if optimal is None or every is None or every.best is None:
                assert optimal is None or optimal.best is None, seed  # refused: an object declares no capabilities
                continue
            assert optimal.lower_bound is not None and optimal.lower_bound <= every.value * (1 + 1e-9), seed
            assert optimal.proved != "yes" or optimal.value == pytest.approx(every.value), seed
            compared, proved = compared + 1, proved + (optimal.proved == "yes")
        if compared >= count:
            return proved
    raise AssertionError


def test_what_is_proved_is_the_enumerated_optimum() -> None:
    assert proofs(4, 0, 300, 0.5) > 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("repeated", [0.1, 1.5])
def test_proofs_of_more_spaces(repeated: float) -> None:
    assert proofs(12, 100, 1_000, repeated) > 6


def test_one_model_for_many_timings_gives_the_cycles_of_a_new_one_for_each() -> None:
    """The counts of a batch are kept while only timings change; bandwidths and batches change them."""
    (case,) = tw.map("nk,km->nm; n=16 k=16 m=16", "eyeriss", mapper="random", evaluations=50, cache=False).layers
    assert case.mapping is not None and case.architecture is not None
    outer = case.architecture.memories[0].name
    spec, kept = CostModelSpec, installed().make(CostModelSpec, "pipelined")
    batches = [MappingBatch.pack(case.problem, [case.mapping] * times) for times in (1, 2)]
    cycles = []
    for latency, rate in ((0, None), (50, None), (50, 0.5), (0, 0.5), (0, None)):
        changes: dict[str, Any] = {f"{memory.name}.timing.prefetch": "none" for memory in case.architecture.memories}
        changes[f"{outer}.timing.latency_cycles"] = latency
        hardware = case.architecture.replace(
            {f"{outer}.shared_bandwidth_words_per_cycle": rate, **changes} if rate else changes
        )
        for batch in batches:
            costs = [
                model.bind(case.problem, hardware).evaluate_batch(batch).cycles.tolist()
                for model in (kept, installed().make(spec, "pipelined"))
            ]
            assert costs[0] == costs[1] and len(costs[0]) == len(batch)
        cycles.append(costs[0][0])
    assert cycles[0] == cycles[4] < cycles[1] < cycles[2]


def test_counts_are_kept_as_long_as_their_batch_and_not_pickled() -> None:
    (case,) = tw.map("nk,km->nm; n=4 k=4 m=4", "eyeriss", mapper="random", evaluations=20, cache=False).layers
    assert case.mapping is not None and case.architecture is not None
    model, counted = PipelinedModel(TimeloopOptions()), []
    batch = MappingBatch.pack(case.problem, [case.mapping])
    for latency in (0, 50):
        hardware = case.architecture.replace({"DRAM.timing.latency_cycles": latency})
        counted.append(model.bind(case.problem, hardware).count_accesses(batch))
    assert counted[0].reads is counted[1].reads
    assert counted[0].architecture != counted[1].architecture and counted[1].mappings is batch
    assert not pickle.loads(pickle.dumps(model))._counted and len(model._counted) == 1
    del batch, counted
    gc.collect()
    assert not model._counted
