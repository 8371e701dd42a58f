"""Contract checks for strategies."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.application.exploration.space import ArchitectureSpace, Points
from tilewright.plugin.guard.strategies import EMPTY, fault_of_group
from tilewright.plugin.specs import StrategySpec
from tilewright.plugin.strategy import ExplorationTask, PointProposal, PointResult, Strategy
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import CYCLES, EDP, ENERGY, Objective
from tilewright.schema.workload import Workload
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.kit import CheckFailure, Subject, check, require

SPACE = ArchitectureSpace.from_yaml(
    """
    kind: space
    name: buffers
    architecture:
      clusters:
      - name: Main
        memories: [{name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64, area_um2: 0}]
      - name: Buffer
        memories: [{name: Buffer, read_energy_pj: 2, write_energy_pj: 2, area_um2: 0}]
      compute: {energy_per_operation_pj: 1, area_um2: 10}
    choices:
      words: [8, 16, 32, 64, 128]
      units: [1, 2, 3, 4, 6]
      kind: [slow, fast]
    set: {Buffer.capacity_words: words, Buffer.fanout.size: units}
    limits: [words * units <= 256]
    """
)
"""Space of the checks; some of its points are no valid architecture."""
FEW = 7
"""Number of points of a limited exploration."""


def _costs(machine: Architecture) -> tuple[float, float]:
    """Return energy and cycles of a machine; they replace a search."""
    words = machine.memories[1].capacity_words or 1
    return 1e4 * (1 + 1 / words + words / 1e3), math.ceil(1e3 / machine.compute_instances)


Costing = Callable[[Architecture], tuple[float, float]]


def task(
    points: int = len(SPACE),
    seed: int = 1,
    bounded: bool = True,
    objective: Objective = EDP,
    costing: Costing = _costs,
) -> ExplorationTask:
    """Return a small exploration of a matrix product. `costing` gives energy and cycles of a machine."""
    point = Points(SPACE)

    def bounds(index: int) -> tuple[float, float]:
        machine = point(index).architecture
        return (0.0, 0.0) if machine is None else (0.9 * costing(machine)[0], costing(machine)[1])

    return ExplorationTask(
        choices={name: SPACE.values_of(name) for name in SPACE.choices},
        workload=Workload.of(SAMPLES[1].problem),
        objective=objective,
        points=points,
        seed=seed,
        architecture=lambda index: point(index).architecture,
        bounds=bounds if bounded else None,
        report=lambda text: None,
    )


def result(
    task: ExplorationTask, proposal: PointProposal, mapped: bool = True, costing: Costing = _costs
) -> PointResult:
    """Return the result of a proposal; without `mapped`, no point has a mapping."""
    machine = task.architecture(proposal.index)
    if machine is None or proposal.needless is not None or not mapped:
        return PointResult(proposal.index, math.inf, math.inf, 0.0)
    return PointResult(proposal.index, *costing(machine), machine.area_um2 or 0.0)


def explored(
    strategy: Strategy, task: ExplorationTask, mapped: bool = True, costing: Costing = _costs
) -> list[PointProposal]:
    """Return all proposals of an exploration, or raise CheckFailure."""
    proposed: list[PointProposal] = []
    groups = strategy.explore(task)
    try:
        group = next(groups)
        for _ in range(len(SPACE) + EMPTY):
            wrong = fault_of_group(group, task, {proposal.index for proposal in proposed})
            require(wrong is None, f"explore {wrong}")
            proposed += group
            group = groups.send([result(task, proposal, mapped, costing) for proposal in group])
    except StopIteration:
        return proposed
    raise CheckFailure("explore proposes empty groups without end")


@check(StrategySpec)
def check_strategy_proposes_points_of_the_space(subject: Subject) -> None:
    """A strategy proposes points of the space, each once and no more than asked for, with bounds and without."""
    for asked in (task(), task(bounded=False), task(FEW), task(FEW, bounded=False)):
        explored(subject.make(), asked)


@check(StrategySpec)
def check_strategy_searches_a_point(subject: Subject) -> None:
    """A strategy searches at least one valid architecture."""
    asked = task()
    searched = [proposal for proposal in explored(subject.make(), asked) if proposal.needless is None]
    require(any(asked.architecture(proposal.index) for proposal in searched), "no point is both valid and searched")


@check(StrategySpec)
def check_strategy_same_seed_same_points(subject: Subject) -> None:
    """Equal seeds give equal proposals: the task's seed is the only source of randomness."""
    first = explored(subject.make(), task(FEW))
    for _ in range(4):  # a short exploration may be the same by accident
        again = explored(subject.make(), task(FEW))
        require(
            first == again,
            f"two explorations with one seed propose different points: {_indices(first)} and {_indices(again)}; "
            "take all randomness from task.seed",
        )


def _indices(proposals: list[PointProposal]) -> list[int]:
    return [proposal.index for proposal in proposals]


@check(StrategySpec)
def check_strategy_keeps_no_state(subject: Subject) -> None:
    """A second exploration by the same object proposes the same points as a new object."""
    used = subject.make()
    explored(used, task(FEW, seed=2))
    require(explored(used, task(FEW)) == explored(subject.make(), task(FEW)), "it remembers an earlier exploration")


@check(StrategySpec)
def check_strategy_survives_failures(subject: Subject) -> None:
    """A strategy ends without an error if no point has a mapping."""
    explored(subject.make(), task(FEW), mapped=False)


def _quality(machine: Architecture) -> float:
    """Return a number that is low for good machines, with one best one."""
    words, units = machine.memories[1].capacity_words or 1, machine.compute_instances
    return 1.0 + abs(math.log2(words / 32)) + 2 * abs(math.log2(units / 4)) + (words * units) / 1e3


ASKED = ((ENERGY, 1, 0), (CYCLES, 0, 1), (EDP, 3, -2), (EDP, -2, 3))
"""Objectives, with the powers of quality that energy and cycles are. The other costs mislead."""
WRONG_WAY = 1.1
"""Factor by which points of higher cost are no accident."""


@check(StrategySpec)
def check_strategy_seeks_the_objective(subject: Subject) -> None:
    """For each objective, a strategy that reacts to results moves towards points of lower cost.

    Two explorations are compared. In the second one, the quality of each point is replaced by its reciprocal.
    """
    for objective, one, other in ASKED:
        powers = (one or -2 * other), (other or -2 * one)
        ratios = []
        for seed in range(8):
            means = []
            for sign in (1, -1):
                ratio = _mean_quality(subject.make(), objective, (sign * powers[0], sign * powers[1]), seed)
                means.append(ratio)
            ratios.append(means[0] - means[1])
        moved = [ratio for ratio in ratios if abs(ratio) > 1e-9]
        wrong = sum(ratio > 0 for ratio in moved)
        mean = math.exp(sum(moved) / max(1, len(moved)))
        require(
            len(moved) < 4 or wrong < 0.9 * len(moved) or mean < WRONG_WAY,
            f"for the objective {objective.name}, {wrong} of {len(moved)} explorations moved to points of higher cost: {mean:.3g} times "
            "that of an exploration with reciprocal costs; minimise result.of(task.objective)",
        )


def _mean_quality(strategy: Strategy, objective: Objective, powers: tuple[int, int], seed: int) -> float:
    """Return the mean logarithm of the quality of the points that a strategy proposes."""

    def costing(machine: Architecture) -> tuple[float, float]:
        quality = _quality(machine)
        return 1e4 * quality ** powers[0], 1e4 * quality ** powers[1]

    asked = task(HALF, seed, bounded=False, objective=objective, costing=costing)
    machines = [asked.architecture(proposal.index) for proposal in explored(strategy, asked, costing=costing)]
    logs = [math.log(_quality(machine)) for machine in machines if machine is not None]
    return sum(logs) / max(1, len(logs))


HALF = len(SPACE) // 3
"""Number of points of an exploration that has to choose."""
