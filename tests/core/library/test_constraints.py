"""The library's dataflows: they allow what their sources allow, and leave every layer a mapping."""

from typing import Any

import numpy as np
import pytest

from support.recorded.library import FACTORFLOW, OURS, layers
from tilewright import library
from tilewright.errors import NoValidMappingError
from tilewright.mapspace.legality import legality
from tilewright.mapspace.skeleton import Skeleton, Slot
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, Variant
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.structure import recognise

ARCHITECTURES = library.names("architectures")
WORKLOADS = library.names("workloads")
CONSTRAINTS = [(arch, name) for arch in ARCHITECTURES for name in library.constraints_for(arch)]


def space(problem: Problem, architecture: Architecture, constraints: Constraints | None) -> MapSpace:
    rules = constraints.rules_for(problem, architecture) if constraints else None
    return MapSpace.of(problem, constraints.shape(architecture) if constraints else architecture, rules)


CONV = layers("quickflow_convs")["VIII"]  # every dimension but the batch is larger than 1
GEMM = layers("factorflow_gemms")["MB6"]
MTTKRP = layers("sunstone_kernels")["mttkrp_poisson1"]


def free(problem: Problem, slot: Slot) -> set[str]:
    """Dimensions larger than 1 that may take more than one trip in the slot."""
    able = {name for index, name in enumerate(problem.dimensions) if slot.highest[index] > 1}
    return {name for name in able if problem.dimensions[name] > 1}


@pytest.mark.parametrize("variant", FACTORFLOW)
def test_the_default_dataflow_allows_exactly_what_factorflow_allows(variant: str) -> None:
    is_conv = variant.endswith("_conv")
    problem = CONV if is_conv else GEMM
    architecture = library.architecture(OURS[variant.removesuffix("_conv")])
    found = space(problem, architecture, library.default_constraints(architecture.name))
    letter = {"M": "K"} if is_conv else {}
    memories = {entry.inside: free(problem, slot) for slot, entry in temporal(found)}
    unrolled = [free(problem, slot) for slot in found.slots if slot.spatial and slot.most != 1]
    levels = FACTORFLOW[variant]
    every = set(problem.dimensions) - {"N"} if is_conv else set(problem.dimensions)

    assert unrolled == [{letter.get(dim, dim) for dim in level["dims"]} for level in levels if "fanout" in level]
    compared = 0
    for level in levels:
        if level.get("memory") in memories:
            fixed = {letter.get(dim, dim) for dim, factor in level["fixed"].items() if factor == 1}
            assert memories[level["memory"]] == every - fixed, level["memory"]
            compared += 1
    assert compared == len(memories) >= 4


def temporal(found: MapSpace) -> list[tuple[Slot, Any]]:
    return [(slot, found.skeleton.entries[slot.entry]) for slot in found.slots if not slot.spatial]


def test_the_weight_register_of_eyeriss_steps_in_factorflows_order() -> None:
    level = next(level for level in FACTORFLOW["eyeriss_conv"] if level.get("memory") == "WRegister")
    rules = library.constraints("eyeriss", "row_stationary").rules_for(CONV, library.architecture("eyeriss"))
    assert rules is not None
    rule = next(rule for rule in rules.temporal if rule.memory == "WRegister")

    assert list(rule.order) == level["order"][:2] and set(rule.order) == set(rule.only or ())


@pytest.mark.parametrize("variant", ["gemmini", "tpu", "tpu_conv"])
def test_full_array_fixes_what_factorflow_fixes(variant: str) -> None:
    is_conv = variant.endswith("_conv")
    problem = layers("quickflow_convs")["II"] if is_conv else GEMM
    name = OURS[variant.removesuffix("_conv")]
    rules = library.constraints(name, "full_array").rules_for(problem, library.architecture(name))
    assert rules is not None
    fixed = [dict(level["fixed"]) for level in FACTORFLOW[variant] if "fanout" in level]
    letter = {"M": "K"} if is_conv else {}

    assert [fixed_trips(rule.factors) for rule in rules.spatial] == [
        {letter.get(dim, dim): factor for dim, factor in each.items()} for each in fixed
    ]
    register = next(level for level in FACTORFLOW[variant] if level.get("memory") == "Register")
    mine = next(rule for rule in rules.temporal if rule.memory == "Register")
    assert fixed_trips(mine.factors) == {dim: factor for dim, factor in register["fixed"].items() if factor > 1}


def fixed_trips(factors: Any) -> dict[str, int]:
    assert all(bound.min == bound.max for bound in factors.values())
    return {name: bound.min for name, bound in factors.items()}


def test_full_array_takes_full_layers_and_refuses_others() -> None:
    tpu, full = library.architecture("tpu_v1"), library.constraints("tpu_v1", "full_array")
    convs = layers("quickflow_convs")

    assert space(convs["II"], tpu, full).factorizations > 0
    empty = space(convs["XII"], tpu, full)
    assert empty.factorizations == 0
    with pytest.raises(NoValidMappingError, match="XII"):
        empty.sample(np.random.default_rng(0), 1)


@pytest.mark.parametrize(("arch", "name"), CONSTRAINTS)
def test_rules_for_convolutions_products_and_others(arch: str, name: str) -> None:
    architecture, found = library.architecture(arch), library.constraints(arch, name)
    transposed = layers("quickflow_convs")["XVI"]
    rules = {problem.name: found.rules_for(problem, architecture) for problem in (CONV, transposed, GEMM)}

    if found.aspect:
        assert set(rules.values()) == {None}
        assert found.shape(architecture).compute_instances == architecture.compute_instances
        assert found.shape(architecture).clusters[1].fanout.size == found.aspect["C3"]
    else:
        assert all(isinstance(rule, Variant) for rule in rules.values())
        assert rules[CONV.name] != rules[GEMM.name]
        # positions of a transposed convolution are those of its input, so two threads would add to one output
        assert (rules[CONV.name] == rules[transposed.name]) == (name != "thread_blocks")
    assert found.rules_for(MTTKRP, architecture) is None


def test_aspect_ratios_are_those_of_the_paper() -> None:
    """Union, section V-B."""
    for arch, rows in (("union_edge", (1, 2, 4, 8, 16)), ("union_cloud", (1, 2, 4, 8, 16, 32))):
        shapes = [each.aspect for each in library.constraints_for(arch).values() if each.aspect]
        units = library.architecture(arch).compute_instances
        assert sorted(shape["C3"] for shape in shapes) == list(rows)
        assert all(shape["C3"] * shape["C2"] == units for shape in shapes)


def all_in_dram(problem: Problem, architecture: Architecture) -> Mapping:
    """Every loop stands right inside DRAM; below, all tiles are single iterations."""
    whole, ones = dict(problem.dimensions), dict.fromkeys(problem.dimensions, 1)
    entries = []
    for index, entry in enumerate(Skeleton.for_architecture(architecture).entries):
        cluster = architecture.cluster(entry.target)
        memories = [memory for memory in cluster.memories if memory.name in entry.memories]
        held = tuple(tensor.name for tensor in problem.tensors if any(memory.may_hold(tensor) for memory in memories))
        sizes = ones if index else whole
        entries.append(
            Entry(
                target=entry.target,
                keep=held if entry.holds else None,
                temporal_order=problem.dimension_names,
                temporal_tile_sizes=FrozenDict(sizes),
                spatial_tile_sizes=FrozenDict(sizes),
            )
        )
    return Mapping(entries=tuple(entries))


ORDINARY = [name for name in CONSTRAINTS if not name[1].startswith(("full_array", "aspect_"))]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("arch", "name"), ORDINARY)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_dataflows_leave_every_layer_a_mapping(arch: str, name: str, workload: str) -> None:
    """The space is not empty; for layers of the architecture's authors it has a legal mapping."""
    architecture, constraints = library.architecture(arch), library.constraints(arch, name)
    for problem in layers(workload).values():
        found = space(problem, architecture, constraints)
        assert found.factorizations > 0, problem.name
        assert all(bound == 1 for slot in found.slots for bound in slot.lowest), problem.name
        if recognise(problem):
            verdict = legality(problem, architecture, all_in_dram(problem, architecture))
            assert verdict, verdict


@pytest.mark.parametrize("arch", ["eyeriss", "simba", "tpu_v1", "gemmini"])
@pytest.mark.parametrize("layer", layers("quickflow_convs"))
def test_random_mappings_obey_the_dataflow(arch: str, layer: str) -> None:
    problem, architecture = layers("quickflow_convs")[layer], library.architecture(arch)
    found = space(problem, architecture, library.default_constraints(arch))

    for mapping in found.sample(np.random.default_rng(1), 3):
        for loop in mapping.loops():
            slot = next(slot for slot in found.slots if (slot.entry, slot.spatial) == (loop.entry, loop.spatial))
            assert loop.trips <= slot.highest[problem.dimension_names.index(loop.dimension)]
