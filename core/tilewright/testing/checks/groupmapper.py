"""Contract checks for group mappers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import NotConformableError
from tilewright.plugin.groupmapper import GroupResult, GroupTask
from tilewright.plugin.guard.groupmappers import fault_of_result
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, GroupMapperSpec
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, EDP, ENERGY
from tilewright.testing.kit import Subject, check, require

GROUP = GroupMapping.from_yaml(
    """
    kind: group_mapping
    name: two products
    edges:
    - {tensor: Hidden, layers: {up: Outputs, down: Inputs}}
    tree:
      entries:
      - {target: DRAM, keep: [up.Inputs, up.Weights, Hidden, down.Weights, down.Outputs]}
      branches:
      - {layer: up, entries: [{target: Buffer, keep: [Inputs, Weights, Outputs], temporal_tile_sizes: {M: 1, N: 1, K: 1}, temporal_order: [M, N, K]}]}
      - {layer: down, entries: [{target: Buffer, keep: [Inputs, Weights, Outputs], temporal_tile_sizes: {M: 1, N: 1, K: 1}, temporal_order: [M, N, K]}]}
    layers:
    - name: up
      dimensions: {M: 4, N: 6, K: 2}
      tensors:
      - {name: Inputs, role: input, projection: [M, K]}
      - {name: Weights, role: weight, projection: [K, N]}
      - {name: Outputs, role: output, projection: [M, N]}
    - name: down
      dimensions: {M: 4, N: 3, K: 6}
      tensors:
      - {name: Inputs, role: input, projection: [M, K]}
      - {name: Weights, role: weight, projection: [K, N]}
      - {name: Outputs, role: output, projection: [M, N]}
    architecture:
      name: buffered
      clusters:
      - name: DRAM
        memories: [{name: DRAM, technology: dram, read_energy_pj: 64, write_energy_pj: 64, read_bandwidth_words_per_cycle: 1}]
      - name: Buffer
        memories: [{name: Buffer, capacity_words: 40, read_energy_pj: 2, write_energy_pj: 2}]
      compute: {energy_per_operation_pj: 0.5}
    """
)
THREE = GroupMapping.from_yaml(
    """
    kind: group_mapping
    name: three products
    edges:
    - {tensor: First, layers: {a: Z, b: A}}
    - {tensor: Second, layers: {b: Z, c: A}}
    tree:
      entries:
      - {target: Far, keep: [a.A, a.B, First, b.B, Second, c.B, c.Z]}
      branches:
      - {layer: a, entries: [{target: Near, keep: [A, B, Z], temporal_tile_sizes: {I: 1, J: 1, K: 1}, temporal_order: [I, J, K]}]}
      - {layer: b, entries: [{target: Near, keep: [A, B, Z], temporal_tile_sizes: {I: 1, J: 1, K: 1}, temporal_order: [I, J, K]}]}
      - {layer: c, entries: [{target: Near, keep: [A, B, Z], temporal_tile_sizes: {I: 1, J: 1, K: 1}, temporal_order: [I, J, K]}]}
    layers:
    - name: a
      dimensions: {I: 6, J: 2, K: 4}
      tensors: [{name: A, role: input, projection: [I, K]}, {name: B, role: weight, projection: [K, J]}, {name: Z, role: output, projection: [I, J]}]
    - name: b
      dimensions: {I: 6, J: 4, K: 2}
      tensors: [{name: A, role: input, projection: [I, K]}, {name: B, role: weight, projection: [K, J]}, {name: Z, role: output, projection: [I, J]}]
    - name: c
      dimensions: {I: 6, J: 3, K: 4}
      tensors: [{name: A, role: input, projection: [I, K]}, {name: B, role: weight, projection: [K, J]}, {name: Z, role: output, projection: [I, J]}]
    architecture:
      name: near
      clusters:
      - name: Far
        memories: [{name: Far, technology: dram, read_energy_pj: 50, write_energy_pj: 60}]
      - name: Near
        memories: [{name: Near, capacity_words: 24, read_energy_pj: 1, write_energy_pj: 1}]
      compute: {energy_per_operation_pj: 0.5}
    """
)
OBJECTIVES = (ENERGY, CYCLES, EDP)
LUCK = 1.05
"""Factor by which a search may miss a mapping that another one found."""
PROMPT = 10.0
"""Seconds within which a search without any time left returns."""


def tasks(seconds: float | None = None, group: GroupMapping = GROUP) -> list[GroupTask]:
    """Return the searches of the checks, priced by the default cost model."""
    model = build_model(installed().default(CostModelSpec, "search"))
    return [GroupTask(group, partial(evaluate_group, model), objective, seconds) for objective in OBJECTIVES]


def _results(subject: Subject, group: GroupMapping = GROUP) -> Iterator[tuple[GroupTask, GroupResult]]:
    """Yield the tasks that are not refused, with their results."""
    refusals, asked = [], tasks(group=group)
    for task in asked:
        try:
            result: object = subject.make().search_group(task)
        except NotConformableError as error:
            require(bool(error.reasons), f"{task.group.name} is refused without a reason")
            refusals.append(str(error))
            continue
        wrong = fault_of_result(result, task)
        require(wrong is None, f"search_group of {task.group.name} {wrong}")
        assert isinstance(result, GroupResult)
        yield task, result
    require(len(refusals) < len(asked), f"it accepts no group of the test corpus: {'; '.join(refusals)}")


@check(GroupMapperSpec)
def check_group_mapper_results_are_legal(subject: Subject) -> None:
    """Both mappings of a result are legal, and of the same layers; the bound is not above the cost."""
    for _ in _results(subject):
        pass


@check(GroupMapperSpec)
def check_group_mapper_names_the_space_of_its_proofs(subject: Subject) -> None:
    """A group mapper that proves says in which space, and by which version of its rules."""
    spec = subject.spec
    assert isinstance(spec, GroupMapperSpec)
    declared = bool(spec.space.strip()) and spec.proof_version is not None
    proves = any(result.proved or result.bound > 0 for _, result in _results(subject))
    require(declared or not proves, "it proves bounds; declare `space` and `proof_version` in its GroupMapperSpec")


@check(GroupMapperSpec)
def check_group_mapper_answers_the_same_twice(subject: Subject) -> None:
    """Equal tasks have results of equal costs: there is no hidden state."""
    for (task, result), (_, again) in zip(_results(subject), _results(subject), strict=True):
        same = (result.energy_pj, result.cycles) == (again.energy_pj, again.cycles)
        require(same, f"for {task.objective.name} the second call returns other costs")


@check(GroupMapperSpec)
def check_group_mapper_gives_its_best_at_the_limit(subject: Subject) -> None:
    """Without any time left, a group mapper returns a legal mapping, and not an error."""
    for (task, _), limited in zip(_results(subject), tasks(seconds=0.0), strict=False):
        taken = []
        for _ in range(3):  # a loaded host may be late once, but not three times
            begun = time.monotonic()
            result = subject.make().search_group(limited)
            taken.append(time.monotonic() - begun)
            if taken[-1] < PROMPT:
                break
        wrong = fault_of_result(result, task) or _fault_of_costs(limited, result)
        require(wrong is None, f"with no time left, search_group {wrong}")
        late = min(taken)
        require(
            late < PROMPT,
            f"with no time left, search_group returned after {late:.0f} s; ask task.seconds in long loops",
        )


def _fault_of_costs(task: GroupTask, result: GroupResult) -> str | None:
    """Return how a result contradicts the task's cost model, or None."""
    report, without = task.evaluate(result.group), task.evaluate(result.unfused)
    values = report.of(task.objective), without.of(task.objective)
    if values[0] is None or values[1] is None:
        return None  # the model cannot count it
    stated, known = (result.energy_pj, result.cycles), (report.energy_pj, report.cycles)
    if not np.allclose(stated, np.array(known, np.float64), rtol=1e-6):
        return f"returned {stated} as energy and cycles, but task.evaluate gives {known}"
    if values[0] > values[1] * (1 + 1e-9):
        return (
            f"returned a mapping of {values[0]:g} as the best, but `unfused` has {values[1]:g} ({task.objective.name})"
        )
    if result.bound > values[1] * (1 + 1e-9):
        return f"bounds all mappings by {result.bound:g}, but `unfused` has {values[1]:g} ({task.objective.name})"
    return None


@check(GroupMapperSpec)
def check_group_mapper_believes_the_cost_model(subject: Subject) -> None:
    """Energy and cycles of a result are those of `task.evaluate`; neither its mapping nor its bound is above `unfused`."""
    for group in (GROUP, THREE):
        for task, result in _results(subject, group):
            wrong = _fault_of_costs(task, result)
            require(wrong is None, f"search_group of {group.name} {wrong}")


@check(GroupMapperSpec)
def check_group_mapper_seeks_the_objective(subject: Subject) -> None:
    """The result for one objective is no worse by it than results for others; its proofs hold for these, too."""
    for group in (GROUP, THREE):
        results = list(_results(subject, group))
        for task, result in results:
            for other, another in results:
                objective, values = task.objective, (result.of(task.objective), another.of(task.objective))
                require(
                    values[0] <= LUCK * values[1],
                    f"{group.name}: for the objective {objective.name}, the result has {values[0]:g}, while that for {other.objective.name} "
                    f"has {values[1]:g}; minimise task.objective",
                )
                without = task.evaluate(another.unfused).of(objective)
                require(
                    without is None
                    or not result.unfused_proved
                    or _unfused_value(task, result) <= without * (1 + 1e-9),
                    f"{group.name}: `unfused` is proved for {objective.name}, while the search for {other.objective.name} has a better one",
                )


def _unfused_value(task: GroupTask, result: GroupResult) -> float:
    """Return the objective of the mapping without fusion; 0 if the model cannot count it."""
    return task.evaluate(result.unfused).of(task.objective) or 0.0


@check(GroupMapperSpec)
def check_group_mapper_unfused_shares_nothing(subject: Subject) -> None:
    """In `unfused`, layers share no loops, and each word between them is in the outermost memory."""
    for task, result in _results(subject):
        shared = [
            entry for entry in result.unfused.tree.entries if entry.temporal_tile_sizes or entry.spatial_tile_sizes
        ]
        outermost = {memory.name for memory in task.group.architecture.clusters[0].memories}
        homes = {
            path.mapping.entries[path.keepers(name)[0]].target
            for path in result.unfused.paths.values()
            for name in path.names
        }
        require(
            not shared and homes <= {task.group.architecture.clusters[0].name, *outermost},
            f"`unfused` of {task.group.name} for {task.objective.name} shares loops or memories between layers; "
            "return the best mapping without fusion there",
        )


@check(GroupMapperSpec)
def check_group_mapper_takes_any_group(subject: Subject) -> None:
    """A group of three layers with other names has a result or is refused; so is a machine on which nothing fits."""
    for _ in _results(subject, THREE):
        pass
    for words in (1, 3):
        machine = GROUP.architecture.replace({"Buffer.capacity_words": words})
        small = GROUP.model_copy(update={"architecture": machine})
        for task in tasks(group=small):
            try:
                result: object = subject.make().search_group(task)
            except NotConformableError as error:
                require(bool(error.reasons), f"{task.group.name} with {words} words is refused without a reason")
            else:
                wrong = fault_of_result(result, task)
                require(wrong is None, f"search_group of {task.group.name} with {words} words {wrong}")


@check(GroupMapperSpec)
def check_group_mapper_keeps_groups_apart(subject: Subject) -> None:
    """A group is mapped alike after other groups, also after one with the same name."""
    used, alone = subject.make(), subject.make()
    other = THREE.model_copy(update={"name": GROUP.name})
    for first, second in zip(tasks(group=other), tasks(), strict=True):
        try:
            expected = alone.search_group(second)
            used.search_group(first)
        except NotConformableError:
            continue
        again: object = used.search_group(second)
        wrong = fault_of_result(again, second)
        require(wrong is None, f"after another group, search_group {wrong}")
        assert isinstance(again, GroupResult)
        same = (again.energy_pj, again.cycles) == (expected.energy_pj, expected.cycles)
        require(same, f"{second.group.name} has other costs after another group; keep no state")
