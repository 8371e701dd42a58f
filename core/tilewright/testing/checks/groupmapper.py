"""Contract checks for group mappers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

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
OBJECTIVES = (ENERGY, CYCLES, EDP)


def tasks(seconds: float | None = None) -> list[GroupTask]:
    """Return the searches of the checks, priced by the default cost model."""
    model = build_model(installed().default(CostModelSpec, "search"))
    return [GroupTask(GROUP, partial(evaluate_group, model), objective, seconds) for objective in OBJECTIVES]


def _results(subject: Subject) -> Iterator[tuple[GroupTask, GroupResult]]:
    """Yield the tasks that are not refused, with their results."""
    refusals, asked = [], tasks()
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
        result = subject.make().search_group(limited)
        wrong = fault_of_result(result, task)
        require(wrong is None, f"with no time left, search_group {wrong}")
