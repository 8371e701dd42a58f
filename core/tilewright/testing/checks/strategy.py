"""Contract checks for strategies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from tilewright.application.exploration.space import ArchitectureSpace, Points
from tilewright.errors import InputError
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
LARGE = ArchitectureSpace.from_yaml(
    """
    kind: space
    name: energies
    architecture:
      clusters:
      - name: Main
        memories: [{name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64, area_um2: 0}]
      compute: {energy_per_operation_pj: 1, area_um2: 10}
    choices:
      read: {first: 1, last: 100, plus: 1}
      written: {first: 1, last: 100, plus: 1}
      operation: {first: 1, last: 100, plus: 1}
    set: {Main.read_energy_pj: read, Main.write_energy_pj: written, compute.energy_per_operation_pj: operation}
    """
)
"""Space with more points than machines should be built for."""
NARROW = ArchitectureSpace.from_yaml(
    """
    kind: space
    name: units
    architecture:
      clusters:
      - name: Main
        memories: [{name: Main, technology: dram, read_energy_pj: 64, write_energy_pj: 64, area_um2: 0}]
      compute: {energy_per_operation_pj: 1, area_um2: 10}
    choices: {units: [1, 2, 4], once: [1]}
    set: {Main.fanout.size: units}
    """
)
"""Space with few points, and a choice of one value."""


def _costs(machine: Architecture) -> tuple[float, float]:
    """Return energy and cycles of a machine; they replace a search."""
    words = machine.memories[-1].capacity_words or 1
    return 1e4 * (1 + 1 / words + words / 1e3), math.ceil(1e3 / machine.compute_instances)


Costing = Callable[[Architecture], tuple[float, float]]


def task(
    points: int = len(SPACE),
    seed: int = 1,
    bounded: bool = True,
    objective: Objective = EDP,
    costing: Costing = _costs,
    space: ArchitectureSpace = SPACE,
) -> ExplorationTask:
    """Return a small exploration of a matrix product. `costing` gives energy and cycles of a machine."""
    point = Points(space)

    def bounds(index: int) -> tuple[float, float]:
        machine = point(index).architecture
        require(machine is not None, f"explore asks for bounds of point {index}, which has no valid architecture")
        assert machine is not None
        return 0.9 * costing(machine)[0], costing(machine)[1]

    def report(text: object) -> None:
        require(isinstance(text, str), f"explore reports {text!r}; expected a text")

    return ExplorationTask(
        choices={name: space.values_of(name) for name in space.choices},
        workload=Workload.of(SAMPLES[1].problem),
        objective=objective,
        points=points,
        seed=seed,
        architecture=lambda index: point(index).architecture,
        bounds=bounds if bounded else None,
        report=report,
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
        for _ in range(task.points + EMPTY):
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
def check_strategy_leaves_out_only_what_is_worse(subject: Subject) -> None:
    """A point that is left out because of its bounds is no better than a searched one in energy, cycles and area.

    Points that are left out without bounds, too, follow a rule of the strategy's own.
    """
    for objective in (ENERGY, CYCLES, EDP):
        asked = task(objective=objective)
        unknown = explored(subject.make(), replace(asked, bounds=lambda index: (0.0, 0.0)))
        by_rule = {proposal.index for proposal in unknown if proposal.needless is not None}
        proposed = explored(subject.make(), asked)
        searched = [result(asked, proposal) for proposal in proposed if proposal.needless is None]
        for proposal in proposed:
            machine = asked.architecture(proposal.index)
            if proposal.needless is None or machine is None or proposal.index in by_rule:
                continue
            costs = (*_costs(machine), machine.area_um2 or 0.0)
            require(
                any(all(a <= b for a, b in zip(other.costs, costs, strict=True)) for other in searched),
                f"point {proposal.index} is left out ({proposal.needless}), but no searched point is as good in energy, cycles and "
                "area; compare its bounds and its area with those of a result",
            )


CALLS = 100
"""Architectures that a strategy may ask for, as a multiple of the points that it proposes."""


@check(StrategySpec)
def check_strategy_explores_spaces_of_any_size(subject: Subject) -> None:
    """A space with a choice of one value, or with a million points, is explored or refused by an InputError.

    Few machines of a large space are built.
    """
    for bounded in (True, False):
        for space, points in ((NARROW, len(NARROW)), (LARGE, FEW)):
            asked = _counted(task(points, bounded=bounded, space=space))
            with suppress(InputError):
                require(
                    bool(explored(subject.make(), asked)), f"no point of a space with {len(space):,} points is proposed"
                )


def _counted(asked: ExplorationTask) -> ExplorationTask:
    """Return the task with a limit on the machines that are built."""
    calls = 0

    def architecture(index: int) -> Architecture | None:
        nonlocal calls
        calls += 1
        limit = CALLS * asked.points
        require(
            calls <= limit,
            f"of a space with {asked.size:,} points, more than {limit} machines are built to propose {asked.points}",
        )
        return asked.architecture(index)

    return replace(asked, architecture=architecture)


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
    """A second exploration by the same object proposes the same points as a new object, and a task stays unchanged."""
    used = subject.make()
    explored(used, task(FEW, seed=2))
    require(explored(used, task(FEW)) == explored(subject.make(), task(FEW)), "it remembers an earlier exploration")
    asked, before = task(FEW), task(FEW).choices
    explored(subject.make(), asked)
    require(asked.choices == before, "it changes the choices of its task")


@check(StrategySpec)
def check_strategy_survives_failures(subject: Subject) -> None:
    """A strategy ends without an error if no point has a mapping."""
    explored(subject.make(), task(FEW), mapped=False)


def _central(machine: Architecture) -> float:
    """Return a number that is low for machines of middle sizes."""
    words, units = machine.memories[1].capacity_words or 1, machine.compute_instances
    return 1.0 + abs(math.log2(words / 32)) + 2 * abs(math.log2(units / 4)) + (words * units) / 1e3


def _extreme(machine: Architecture) -> float:
    """Return a number that is low for small buffers and many units."""
    words, units = machine.memories[1].capacity_words or 1, machine.compute_instances
    return 1.0 + math.log2(words / 8) + 2 * math.log2(6 / units)


Quality = Callable[[Architecture], float]
ASKED = ((ENERGY, 1, -2), (CYCLES, -2, 1), (EDP, 3, -2), (EDP, -2, 3))
"""Objectives, with the powers of quality that energy and cycles are. The other costs mislead."""
WRONG_WAY, OFTEN = 1.1, 0.7
"""Factor by which points of higher cost are no accident, and the least fraction of such explorations."""


@check(StrategySpec)
def check_strategy_seeks_the_objective(subject: Subject) -> None:
    """For each objective, a strategy that reacts to results moves towards points of lower cost.

    Two explorations are compared. In the second one, the quality of each point is replaced by its reciprocal.
    """
    for quality in (_central, _extreme):
        for objective, *powers in ASKED:
            ratios = []
            for seed in range(8):
                plain, upturned = (
                    _mean_quality(subject.make(), objective, quality, powers, sign, seed) for sign in (1, -1)
                )
                ratios.append(plain - upturned)
            moved = [ratio for ratio in ratios if abs(ratio) > 1e-9]
            wrong = sum(ratio > 0 for ratio in moved)
            mean = math.exp(sum(moved) / max(1, len(moved)))
            require(
                len(moved) < 4 or wrong < OFTEN * len(moved) or mean < WRONG_WAY,
                f"for the objective {objective.name}, {wrong} of {len(moved)} explorations moved to points of higher cost: {mean:.3g} times "
                "that of an exploration with reciprocal costs; minimise result.of(task.objective)",
            )


def _mean_quality(
    strategy: Strategy, objective: Objective, quality: Quality, powers: Sequence[int], sign: int, seed: int
) -> float:
    """Return the mean logarithm of the quality of the points that a strategy proposes."""
    # the misleading costs are the larger ones, so that a sum of both misleads, too
    energy, cycles = (1e4 if power > 0 else 1e8 for power in powers)

    def costing(machine: Architecture) -> tuple[float, float]:
        good = quality(machine) ** sign
        return energy * good ** powers[0], cycles * good ** powers[1]

    asked = task(HALF, seed, bounded=False, objective=objective, costing=costing)
    machines = [asked.architecture(proposal.index) for proposal in explored(strategy, asked, costing=costing)]
    logs = [math.log(quality(machine)) for machine in machines if machine is not None]
    return sum(logs) / max(1, len(logs))


HALF = len(SPACE) // 3
"""Number of points of an exploration that has to choose."""
