"""Contract checks for mappers: their proofs, and what their searches find."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

import numpy as np

from tilewright.errors import NoValidMappingError
from tilewright.mapspace.batch import Floats, MappingBatch
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.mapper import Mapper, Task
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.objective import CYCLES, EDP, ENERGY, Objective
from tilewright.testing.checks.mapper import REFUSALS, driven, new_run
from tilewright.testing.corpus import Sample, enumerated
from tilewright.testing.kit import Subject, check, require
from tilewright.testing.reference import PlainEvaluator, PlainModel

OBJECTIVES = (ENERGY, CYCLES, EDP)
STOPS = (1, 16, 64, 512)
"""Evaluations after which a search is stopped, to compare what it proved."""
MAX_EVALUATIONS = 6000
"""Evaluations of a search without a limit of its own."""
SEEDS = range(4)
"""Seeds of the searches that are compared with chance."""
FEW = 250
"""Evaluations of each of these."""
LARGE = 2000
"""Mappings in spaces that a search cannot cover by chance."""
WORSE = 1.25
"""A search is worse than chance if its result costs more than that of chance by this factor, on average."""


@cache
def _best(sample: Sample, objective: Objective, most_cycles: float) -> float:
    """Return the cost of the best mapping of a small space by the plain cost model."""
    evaluator = PlainModel().bind(sample.problem, sample.architecture)
    parts = (evaluator.evaluate_batch(part).within(most_cycles) for part in enumerated(sample))
    return min(float(costs.of(objective).min()) for costs in parts)


@check(MapperSpec)
def check_mapper_proves_true_bounds(subject: Subject) -> None:
    """A lower bound never exceeds the cost of the best mapping in the space, whenever and for what objective it is proved."""
    assert isinstance(subject.spec, MapperSpec)
    small = [sample for sample in subject.samples() if enumerated(sample)]
    tasks = [(sample, Task(sample.space, objective)) for sample in small for objective in OBJECTIVES]
    tasks += [(sample, Task(sample.space, most_cycles=_typical_cycles(sample))) for sample in small]
    proved = [
        _bound_holds(subject, sample, task, STOPS[number % len(STOPS)], seed=number)
        for number, (sample, task) in enumerate(tasks)
    ]
    if subject.spec.ends:
        proved += [_bound_holds(subject, sample, Task(sample.space), None, seed=1) for sample in small]
    if any(proved):
        for sample, task in tasks:
            for number, stop in enumerate((*STOPS, None)):
                _bound_holds(subject, sample, task, stop, seed=number + 1)


def _typical_cycles(sample: Sample) -> float:
    """Return the median cycles of some mappings: a limit that many exceed."""
    costs = PlainModel().bind(sample.problem, sample.architecture).evaluate_batch(sample.batch(64))
    return float(np.median(costs.cycles[costs.valid]))


def _bound_holds(subject: Subject, sample: Sample, task: Task, stop: int | None, seed: int) -> bool:
    """Return whether the search proved a bound; raise CheckFailure if that is too high."""
    best = _best(sample, task.objective, task.most_cycles)
    run = new_run(seed, stop)

    def holds(when: str) -> None:
        bound = run.lower_bound
        limited = "" if math.isinf(task.most_cycles) else f" within {task.most_cycles:g} cycles"
        require(
            bound is None or bound <= best * (1 + 1e-9),
            f"{sample}, seed {seed}: {when} the proved bound on the {task.objective.name} is {bound}, "
            f"but a mapping of the space{limited} costs {best}; prove only what holds for mappings that were not evaluated, too",
        )

    with suppress(*REFUSALS, NoValidMappingError):
        for _ in driven(subject.make(), sample, run, task):
            holds(f"after {run.evaluated} evaluations")
            if run.evaluated > MAX_EVALUATIONS:
                break
    holds(f"after the search of {run.evaluated} evaluations")
    return run.lower_bound is not None


@check(MapperSpec)
def check_mapper_goes_on_to_new_mappings(subject: Subject) -> None:
    """A search in a large space does not propose the same mappings over and over again."""
    for sample in subject.samples():
        if enumerated(sample) or sample.space.size < 20 * MAX_EVALUATIONS:
            continue
        seen, total = set[bytes](), 0
        with suppress(*REFUSALS, NoValidMappingError):
            for proposal in driven(subject.make(), sample, new_run()):
                seen.update(_keys(proposal.batch))
                total += len(proposal.batch)
        require(
            len(seen) >= NEW * total,
            f"{sample}: {len(seen)} of {total:,} proposals are different, in a space of {sample.space.size:,} mappings; "
            "end the search, or go on to others",
        )


NEW = 0.1
"""Smallest fraction of different proposals."""


def _keys(batch: MappingBatch) -> list[bytes]:
    parts = (batch.temporal, batch.spatial, batch.order, batch.keep)
    rows = np.concatenate([part.reshape(len(batch), -1).astype(np.int64) for part in parts], axis=1)
    return [row.tobytes() for row in rows]


class _Landscape(PlainEvaluator):
    """Evaluator whose other costs mislead a search for the wrong objective; `upturned`: good mappings are bad ones."""

    def __init__(
        self, sample: Sample, change: Callable[[Floats, Floats], tuple[Floats, Floats]], upturned: bool = False
    ) -> None:
        super().__init__(sample.problem, sample.architecture)
        self.change, self.upturned = change, upturned

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        costs = super().evaluate_batch(batch)
        changed = self.change(np.where(costs.valid, costs.energy_pj, 1.0), np.where(costs.valid, costs.cycles, 1.0))
        if self.upturned:
            changed = 1e9 / changed[0], 1e9 / changed[1]
        energy, cycles = (np.where(costs.valid, figures, np.inf) for figures in changed)
        return Costs(costs.valid, energy, cycles)


LANDSCAPES: tuple[tuple[Objective, Callable[[Floats, Floats], tuple[Floats, Floats]]], ...] = (
    (ENERGY, lambda energy, cycles: (energy**4 / 1e9, 1e12 / energy**2)),
    (CYCLES, lambda energy, cycles: (1e12 / cycles**2, cycles)),
    (EDP, lambda energy, cycles: ((energy * cycles) ** 2 / 1e12, 1e12 / (energy * cycles))),
    (EDP, lambda energy, cycles: (1e12 / (energy * cycles), (energy * cycles) ** 2 / 1e12)),
)
"""Objectives with energy and cycles as functions of the plain ones. Better mappings by one objective are worse by others."""


@check(MapperSpec)
def check_mapper_is_no_worse_than_chance(subject: Subject) -> None:
    """For each objective, a search finds mappings about as good as those of as many random mappings, or better."""
    spec = subject.spec
    assert isinstance(spec, MapperSpec)
    for objective, change in LANDSCAPES:
        wins, ratios, samples = 0.0, list[float](), list[str]()
        for sample in subject.samples():
            # a mapper that ends has a plan for the whole space; a part of its search proves nothing
            if sample.space.size < LARGE or (spec.ends and not enumerated(sample)):
                continue
            for cost, chance in _compared(subject.make, sample, objective, _Landscape(sample, change), spec.ends):
                wins += 1.0 if cost < chance else 0.5 if cost == chance else 0.0
                ratios.append(math.log(cost / chance) if math.isfinite(cost) and math.isfinite(chance) else 0.0)
                samples.append(str(sample))
        if not ratios:
            continue
        factor = math.exp(sum(ratios) / len(ratios))
        require(
            wins > len(ratios) / 8 or factor < WORSE,
            f"{', '.join(dict.fromkeys(samples))}: for the objective {objective.name}, {len(ratios)} searches found mappings that cost "
            f"{factor:.3g} times those of as many random mappings, and {wins:g} searches were better; "
            "minimise costs.of(task.objective), not another metric",
        )


def _compared(
    make: Callable[[], Mapper], sample: Sample, objective: Objective, evaluator: PlainEvaluator, ends: bool
) -> Iterator[tuple[float, float]]:
    """Yield the best cost of a search and the best of as many random mappings, for several seeds."""
    for seed in SEEDS[:1] if ends else SEEDS:
        values: list[float] = []
        with suppress(*REFUSALS, NoValidMappingError):
            search = driven(
                make(), sample, new_run(seed, None if ends else FEW), Task(sample.space, objective), evaluator
            )
            for proposal in search:
                values += proposal.costs.of(objective).tolist()
                if len(values) > MAX_EVALUATIONS:
                    break
        if values:
            drawn = evaluator.evaluate_batch(sample.batch(len(values), seed=1000 + seed))
            yield min(values), float(drawn.of(objective).min())


UPWARDS = 0.2
"""Logarithm of the factor by which proposals of higher cost are no accident."""


@check(MapperSpec)
def check_mapper_seeks_lower_costs(subject: Subject) -> None:
    """For each objective, a search that reacts to costs moves towards mappings of lower cost.

    Two searches are compared. In the second one, each cost is replaced by its reciprocal.
    """
    spec = subject.spec
    assert isinstance(spec, MapperSpec)
    large = [sample for sample in subject.samples() if sample.space.size >= LARGE][: 1 if spec.ends else None]
    for objective, change in LANDSCAPES:
        steps = [step for sample in large[::2] for step in _steps(subject.make, sample, objective, change) if step]
        if not steps:
            continue
        up, mean = sum(step > 0 for step in steps), sum(steps) / len(steps)
        require(
            up < 0.9 * len(steps) or mean < UPWARDS,
            f"for the objective {objective.name}, {up} of {len(steps)} searches moved to mappings of higher cost: their proposals "
            f"cost {math.exp(mean):.3g} times those of a search with reciprocal costs; minimise costs.of(task.objective)",
        )


def _steps(
    make: Callable[[], Mapper],
    sample: Sample,
    objective: Objective,
    change: Callable[[Floats, Floats], tuple[Floats, Floats]],
) -> Iterator[float]:
    """Yield the mean logarithm of the costs in a search, minus that of the same costs in a search with reciprocal ones."""
    neutral = math.log(1e18 if objective is EDP else 1e9)
    for seed in SEEDS[:2]:
        plain = _mean(make(), sample, objective, _Landscape(sample, change), seed)
        upturned = _mean(make(), sample, objective, _Landscape(sample, change, upturned=True), seed)
        if plain is not None and upturned is not None:
            step = plain - (neutral - upturned)
            yield step if abs(step) > 1e-9 else 0.0


def _mean(mapper: Mapper, sample: Sample, objective: Objective, evaluator: PlainEvaluator, seed: int) -> float | None:
    """Return the mean logarithm of the costs of valid proposals, after the first batch if there are several."""
    values, batches = list[float](), 0
    with suppress(*REFUSALS, NoValidMappingError):
        for proposal in driven(mapper, sample, new_run(seed), Task(sample.space, objective), evaluator):
            values += np.log(proposal.costs.of(objective)[proposal.costs.valid]).tolist()
            batches += 1
            if batches >= 4 and len(values) >= FEW:
                break
    return float(np.mean(values)) if values else None
