"""Inputs for the checks of adapters: each has one part or field beyond a plain matrix product on a plain machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.errors import TilewrightError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, KeepRule, SpatialRule, TemporalRule, TripRange, Variant
from tilewright.schema.density import Density
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem, Rank
from tilewright.testing.checks.groupmapper import GROUP, THREE
from tilewright.testing.corpus import Sample

MEMORY_FIELDS: dict[str, Any] = {
    "technology": "register",
    "capacity_words": 8191,
    "word_bits": 8,
    "bits_per_value": {"output": 32},
    "read_energy_pj": 1.2345678901,
    "write_energy_pj": 0.0625,
    "update_energy_pj": 7.5,
    "read_bandwidth_words_per_cycle": 0.75,
    "write_bandwidth_words_per_cycle": 3.5,
    "shared_bandwidth_words_per_cycle": 1.5,
    "ports": [{"moves": {"input": ["reads", "fills"]}, "words_per_cycle": 2.0}],
    "block_words": 4,
    "instances_per_macro": 2,
    "multiple_buffering": 2.0,
    "footprint": "distinct",
    "timing": {"prefetch": "next", "latency_cycles": 5},
    "leakage_pj_per_cycle": 0.25,
    "area_um2": 123.5,
}
COMPUTE_FIELDS: dict[str, Any] = {
    "energy_per_operation_pj": 0.1875,
    "operands": 3,
    "cycles_per_operation": 2,
    "fill_drain_cycles": 3,
    "start_cycles": 40,
    "word_bits": 8,
    "area_um2": 12.5,
}
FANOUT_FIELDS: dict[str, Any] = {
    "axis": "Z",
    "multicast": False,
    "reduction": False,
    "unlinked": ["input"],
    "network": {
        "energy_per_hop_pj": 0.5,
        "bandwidth_words_per_cycle": 2.0,
        "latency_cycles": 4,
        "meshes": [{"tensors": ["input"]}],
    },
}
OTHER_FIELDS: dict[str, Any] = {"source": "a data sheet", "clock_ghz": 0.8, "technology_nm": 28.0}
"""Fields of the parts of an architecture, with values that no sample has."""


def plain(sample: Sample, count: int = 3) -> Iterator[tuple[str, InputSet]]:
    """Yield some mappings of a sample's space."""
    for number, mapping in enumerate(sample.batch(count)):
        yield f"{sample}, mapping {number}", InputSet(sample.problem, sample.architecture, mapping)


def resized(inputs: InputSet) -> InputSet:
    """Return the inputs with five times the iterations of the first dimension, all in the outermost loop."""
    problem, mapping = inputs.problem, inputs.mapping
    assert problem is not None and mapping is not None
    name, size = next(iter(problem.dimensions.items()))
    larger = problem.replace({f"dimensions.{name}": 5 * size})
    first, *rest = mapping.entries
    sizes = {**first.temporal_tile_sizes, name: 5 * size}
    head = first.model_copy(update={"temporal_tile_sizes": type(first.temporal_tile_sizes)(sizes)})
    head = head.model_copy(update={"spatial_tile_sizes": head.temporal_tile_sizes})
    return replace(inputs, problem=larger, mapping=mapping.model_copy(update={"entries": (head, *rest)}))


def renamed(inputs: InputSet) -> InputSet:
    """Return the inputs with another name of the problem."""
    assert inputs.problem is not None
    return replace(inputs, problem=inputs.problem.model_copy(update={"name": "another"}))


def varied(inputs: InputSet) -> Iterator[tuple[str, InputSet]]:
    """Yield the inputs with one more part or one other value, with the name of the change."""
    problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
    assert problem is not None and architecture is not None and mapping is not None
    yield from varied_problem(inputs)
    for what, machine in _architectures(architecture):
        yield what, replace(inputs, architecture=machine)
    for what, other in _mappings(problem, architecture, mapping):
        yield what, replace(inputs, mapping=other)
    order = TemporalRule(memory=architecture.memories[0].name, order=problem.dimension_names[:2])
    constraints = Constraints(name="rules", variants=(Variant(temporal=(order,)),))
    yield "constraints", replace(inputs, constraints=constraints)
    for what, variants in _rules(problem, architecture):
        yield what, replace(inputs, constraints=Constraints(name="rules", variants=variants))
    yield "model options", replace(inputs, model_options={"option": 3})
    yield "a group besides the mapping", replace(inputs, group=GROUP)
    yield "a group", InputSet(group=GROUP)
    yield "a group of three layers", InputSet(group=THREE)
    yield "no mapping", replace(inputs, mapping=None)
    yield "no architecture", replace(inputs, architecture=None, mapping=None)


def varied_problem(inputs: InputSet) -> Iterator[tuple[str, InputSet]]:
    """Yield the inputs with another value of the problem."""
    assert inputs.problem is not None
    for what, changed in _problems(inputs.problem):
        yield what, replace(inputs, problem=changed)


def _problems(problem: Problem) -> Iterator[tuple[str, Problem]]:
    yield "the source of the problem", problem.model_copy(update={"source": "a paper"})
    yield "no kind of operation", problem.model_copy(update={"operation": None})
    yield "another unit operation", problem.model_copy(update={"unit_operation": "add_max"})
    for name in NAMES:
        yield f"the name {name!r}", problem.model_copy(update={"name": name})
    for index, tensor in enumerate(problem.tensors):
        for at, rank in enumerate(tensor.projection):
            if len(rank.terms) < 2:
                continue
            terms = {name: step + 2 * place + 1 for place, (name, step) in enumerate(rank.terms.items())}
            ranks, all_tensors = list(tensor.projection), list(problem.tensors)
            ranks[at] = Rank(terms=FrozenDict(terms))
            all_tensors[index] = tensor.model_copy(update={"projection": tuple(ranks)})
            yield f"strides and dilation of {tensor.name}", problem.model_copy(update={"tensors": tuple(all_tensors)})
    for index, tensor in enumerate(problem.tensors):
        for field, value in (("density", Density(density=0.25)), ("bits", 8)):
            tensors = list(problem.tensors)
            tensors[index] = tensor.model_copy(update={field: value})
            yield (
                f"the {field} of the {tensor.role} {tensor.name}",
                problem.model_copy(update={"tensors": tuple(tensors)}),
            )


NAMES = ("conv2_1.0-a", "a" * 60, "B", "Gr\N{LATIN SMALL LETTER O WITH DIAERESIS}sse")
"""Names of problems."""


def _rules(problem: Problem, architecture: Architecture) -> Iterator[tuple[str, tuple[Variant, ...]]]:
    """Yield constraints of several rules, and of several variants."""
    first, last = architecture.memories[0].name, architecture.memories[-1].name
    name = problem.dimension_names[0]
    limited = TemporalRule(memory=first, factors=FrozenDict({name: TripRange(min=1, max=2)}))
    inner = TemporalRule(memory=last, only=problem.dimension_names[1:])
    kept = KeepRule(memory=last, bypass=(problem.tensor_names[0],))
    yield "limits of loops", (Variant(temporal=(limited, inner)),)
    yield "a rule on tensors that are kept", (Variant(keep=(kept,)),)
    wide = [cluster.name for cluster in architecture.clusters if cluster.fanout.size > 1]
    if wide:
        yield "a rule on unrolling", (Variant(spatial=(SpatialRule(cluster=wide[0], only=(name,)),)),)
    yield "two variants of rules", (Variant(structure="conv", keep=(kept,)), Variant(temporal=(inner,)))


def _architectures(architecture: Architecture) -> Iterator[tuple[str, Architecture]]:
    changes: list[tuple[str, dict[str, Any]]] = [(field, {field: value}) for field, value in OTHER_FIELDS.items()]
    for memory in architecture.memories:
        changes += [
            (f"{field} of {memory.name}", {f"{memory.name}.{field}": value}) for field, value in MEMORY_FIELDS.items()
        ]
    for memory in architecture.memories:
        for words in (None, 16_777_217, 123_456_789_013):
            changes.append((f"{words} words in {memory.name}", {f"{memory.name}.capacity_words": words}))
        changes.append((f"the name of {memory.name}", {f"{memory.name}.name": "GLB_2"}))
    changes += [(f"{field} of compute", {f"compute.{field}": value}) for field, value in COMPUTE_FIELDS.items()]
    for cluster in architecture.clusters:
        if cluster.fanout.size > 1:
            changes.append((f"300 instances below {cluster.name}", {f"{cluster.name}.fanout.size": 300}))
            for field, value in FANOUT_FIELDS.items():
                changes.append((f"{field} below {cluster.name}", {f"{cluster.name}.fanout.{field}": value}))
    for what, change in changes:
        try:
            yield what, architecture.replace(change)
        except TilewrightError:  # the value does not suit this machine
            continue


def _mappings(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[tuple[str, Mapping]]:
    def at(index: int, changes: dict[str, Any]) -> Mapping:
        entries = list(mapping.entries)
        entries[index] = Entry.model_validate({**dict(entries[index]), **changes})
        return mapping.model_copy(update={"entries": tuple(entries)})

    last = len(mapping.entries) - 1
    yield "unicast", at(last, {"unicast": problem.tensor_names[:1]})
    yield "unicast of the result", at(max(0, last - 1), {"unicast": (problem.output.name,)})
    yield "no tensor in the innermost memory", at(_innermost(mapping), {"keep": ()})
    yield "an innermost memory with two entries", _twice(mapping)
    yield "a spatial order", at(last, {"spatial_order": problem.dimension_names[::-1]})
    for index in range(last + 1):
        yield "the reverse loop order", at(index, {"temporal_order": mapping.entries[index].temporal_order[::-1]})
    for memory in architecture.memories[1:]:
        free = MapSpace.of(problem, architecture, None).with_optional(memory.name)
        for other in free.sample(np.random.default_rng(3), 4).batch():
            yield f"tensors that bypass {memory.name}", other
    ragged = MapSpace.of(problem, architecture, None, factors="ragged").sample(np.random.default_rng(3), 4).batch()
    for other in ragged:
        yield "tiles that do not divide", other


def _innermost(mapping: Mapping) -> int:
    """Return the last storage entry."""
    return max(index for index, entry in enumerate(mapping.entries) if entry.keep is not None)


def _twice(mapping: Mapping) -> Mapping:
    """Return the mapping with the last storage entry once more, so that its memory holds tensors at two entries."""
    index = _innermost(mapping)
    entry = mapping.entries[index]
    kept = entry.keep or ()
    outer = entry.model_copy(update={"keep": kept[:1], "spatial_tile_sizes": entry.temporal_tile_sizes})
    inner = entry.model_copy(update={"keep": kept[1:]})
    return mapping.model_copy(
        update={"entries": (*mapping.entries[:index], outer, inner, *mapping.entries[index + 1 :])}
    )


CHANGES: tuple[tuple[str, Callable[[InputSet], InputSet]], ...] = (("another name", renamed), ("another size", resized))
"""Changes of a problem that no notation depends on."""
