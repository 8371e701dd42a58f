"""Rendering of ZigZag's three files, with reasons for everything that they cannot express."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from itertools import permutations
from typing import Any

from tilewright.errors import Reason
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet, NotationTable
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.document import dump_yaml
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters import sidecar
from tilewright_adapters.parts import Written, reason, unplaced
from tilewright_adapters.zigzag.accelerator import DEFAULT_BITS, ROLES, read_accelerator
from tilewright_adapters.zigzag.allocation import DoesNotFitError, ZigZagLoop, allocated
from tilewright_adapters.zigzag.files import AcceleratorFile, LayerData
from tilewright_adapters.zigzag.mapping import linked, spatial_loops, within_reach
from tilewright_adapters.zigzag.workload import read_layer
from tilewright_notations.operand_loops import (
    MEMORY_OPERANDS,
    OPERANDS,
    UNIT,
    equation,
    held,
    inexpressible,
    operands,
    precision,
    unsuited,
)

FILES = {"architecture": "accelerator.yaml", "problem": "workload.yaml", "mapping": "mapping.yaml"}
TABLE = NotationTable(
    "ZigZag's files",
    written=(
        *("technology", "capacity_words", "word_bits", "bits_per_value", "block_words", "multiple_buffering"),
        *("read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle"),
    ),
    beside=(
        *("footprint", "power_gated_at", "energy_per_hop_pj", "energy_per_router_pj", "energy_per_ingress_pj"),
        *("bandwidth_words_per_cycle", "latency_cycles"),
    ),
    instead={
        "cycles_per_operation": "ZigZag has one",
        "leakage": "ZigZag has no leakage",
        "macro": "ZigZag has separate instances",
        "operands": "ZigZag's has two",
        "ports": "files for ZigZag are written with one for reads and one for writes",
        "shared_bandwidth": "files for ZigZag are written with one for each",
        "timing": "ZigZag has its own rules for waits",
        "update_energy": "ZigZag uses a write's energy",
    },
)
_MAX_BITS = 2**40
"""Size in bits of an unlimited memory."""
_DIMENSION = re.compile(r"[A-Z]+\d*")


def written(inputs: InputSet) -> Written:
    """Return the files that ZigZag can express, and every reason against the others."""
    result = Written(reasons=list(unplaced(TABLE, inputs, sidecar.PARTS)))
    problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
    if problem is not None:
        result.reasons += unsuited(problem)
        result.reasons += _operation(problem)
    bits, words = _widths(problem, architecture, mapping, result)
    if architecture is not None:
        result.reasons += _hardware(architecture, words)
    if mapping is not None and (problem is None or architecture is None):
        result.reasons.append(reason("missing", "mapping", "ZigZag needs a mapping's layer and accelerator"))
    if result.reasons:
        return result
    if problem is not None and architecture is not None and mapping is not None:
        result.reasons += legality(problem, architecture, mapping).reasons
        result.reasons = result.reasons or list(inexpressible(problem, architecture, mapping))
        if result.reasons:
            return result
    names = _dimension_names(problem) if problem is not None else {}
    if problem is not None:
        result.files[FILES["problem"]] = [_layer(problem, names, bits)]
    if architecture is None:
        return result
    holders = _holders(problem, architecture, mapping)
    result.files[FILES["architecture"]] = _accelerator(architecture, words, holders)
    if problem is None or mapping is None:
        return result
    faults: list[Reason] = []
    for order in permutations(MEMORY_OPERANDS.values()):  # of operands with equal claims, ZigZag favours the last
        ordered = {name: sorted(members, key=order.index) for name, members in holders.items()}
        files = result.files | {FILES["architecture"]: _accelerator(architecture, words, ordered)}
        said, reasons = _mapping(problem, architecture, mapping, names, files)
        if not reasons:
            result.files = files | {FILES["mapping"]: said}
            return result
        faults = faults or reasons
    result.reasons += faults
    return result


def texts(result: Written) -> dict[str, str]:
    """Return the files as YAML."""
    return {name: dump_yaml(data) for name, data in result.files.items()}


def _widths(
    problem: Problem | None, architecture: Architecture | None, mapping: Mapping | None, result: Written
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bits of values by operand, and of words by memory.

    If none are stated, all have the same width.
    """
    memories = () if architecture is None else architecture.memories
    one = memories[0].word_bits if memories else DEFAULT_BITS
    if problem is None or architecture is None or mapping is None:
        message = "values have several widths; without a mapping it is unknown which are partial sums"
        result.reasons += [reason("widths", memory.name, message) for memory in memories if memory.bits_per_value]
    elif not result.reasons and legality(problem, architecture, mapping):
        try:
            bits, words = precision(problem, architecture, mapping)
        except ValueError as error:
            result.reasons.append(reason("widths", "mapping", str(error)))
        else:
            if {*bits.values(), *words.values()} != {1}:
                return bits, words
    return dict.fromkeys(("W", "I", "O", "O_final"), one), {memory.name: one for memory in memories}


def _operation(problem: Problem) -> Iterator[Reason]:
    if problem.unit_operation not in ("mac", "add"):
        yield reason("unit_operation", problem.name, f"{problem.unit_operation}; ZigZag's layers multiply or add")


def _hardware(architecture: Architecture, words: MappingOf[str, int]) -> Iterator[Reason]:
    fanned = [cluster.name for cluster in architecture.clusters if cluster.fanout.size > 1]
    if len(fanned) > 4:
        yield reason("fanouts", "architecture", f"{len(fanned)} fanouts; ZigZag has D1 to D4")
    for cluster in architecture.clusters:
        for memory in cluster.memories:
            yield from _unable(memory, words[memory.name])
            if not _roles(memory):
                yield reason("holds", memory.name, "it holds tensors by name; ZigZag's memories hold tensors by role")
        if cluster.fanout.size > 1 and not (cluster.fanout.multicast and cluster.fanout.reduction):
            missing = "reduction" if cluster.fanout.multicast else "multicast"
            yield reason("no_sharing", cluster.name, f"there is no {missing} below it; ZigZag always has it")


def _unable(memory: Memory, bits: int) -> Iterator[Reason]:
    if memory.multiple_buffering not in (1.0, 2.0):
        yield reason("buffering", memory.name, f"{memory.multiple_buffering:g} copies of a tile; ZigZag has one or two")
    for way, words in memory.bandwidths:
        if words is None:
            continue
        width, access = words * bits, memory.block_words * bits
        if width != int(width):
            yield reason(
                "bandwidth",
                memory.name,
                f"{words:g} words of {bits} bits to {way} are not a whole number of bits per cycle",
            )
        elif width < access and (memory.block_words > 1 or access % int(width)):
            message = (
                f"an access of {memory.block_words} words is not a whole number of cycles at {words:g} words to {way}"
            )
            yield reason("bandwidth", memory.name, message)


def _roles(memory: Memory) -> list[str]:
    """Return the memory operands that a memory may hold."""
    return [operand for operand, role in ROLES.items() if memory.holds is None or role in memory.holds]


def _holders(problem: Problem | None, architecture: Architecture, mapping: Mapping | None) -> dict[str, list[str]]:
    """Return memory -> operands that the mapping keeps there; without a mapping, that it may hold."""
    if problem is None or mapping is None:
        return {memory.name: _roles(memory) for memory in architecture.memories}
    places = held(problem, architecture, mapping)
    return {
        memory.name: [
            MEMORY_OPERANDS[name] for name in OPERANDS if any(place.memory == memory for place in places[name])
        ]
        for memory in architecture.memories
    }


def _dimension_names(problem: Problem) -> dict[str, str]:
    """Return dimension -> its name in ZigZag, unchanged if ZigZag can read it."""
    plain = all(_DIMENSION.fullmatch(name) and name != UNIT and not name.startswith("X") for name in problem.dimensions)
    return {name: name if plain else f"L{index}" for index, name in enumerate(problem.dimensions)}


def _axes(architecture: Architecture) -> dict[str, int]:
    """Return dimension of the array -> index of the cluster with that fanout."""
    fanned = [index for index, cluster in enumerate(architecture.clusters) if cluster.fanout.size > 1]
    return {f"D{number + 1}": index for number, index in enumerate(fanned)} or {"D1": len(architecture.clusters) - 1}


def _accelerator(
    architecture: Architecture, words: MappingOf[str, int], holders: MappingOf[str, list[str]]
) -> dict[str, Any]:
    axes = _axes(architecture)
    memories = {}
    for index in range(len(architecture.clusters) - 1, -1, -1):
        served = [axis for axis, at in axes.items() if at >= index]
        units = architecture.compute_instances // architecture.instances[index]
        for memory in reversed(architecture.clusters[index].memories):
            if holders[memory.name]:
                memories[memory.name] = _memory(memory, words[memory.name], holders[memory.name], served, units)
    return {
        "name": architecture.name,
        "memories": memories,
        "operational_array": {
            "unit_energy": architecture.compute.energy_per_operation_pj,
            "unit_area": 0.0,
            "dimensions": list(axes),
            "sizes": [architecture.clusters[at].fanout.size for at in axes.values()],
        },
    }


def _memory(memory: Memory, bits: int, holds: list[str], served: list[str], units: int) -> dict[str, Any]:
    """Return a memory as data, with one port for reads and one for writes.

    The smallest access is one of Tilewright's. Without a bandwidth limit, the width suffices for
    all units below.
    """
    ports, costs = [], []
    energies = (memory.read_energy_pj, memory.write_energy_pj)
    for kind, (_, words), energy, ways in zip(
        ("read", "write"), memory.bandwidths, energies, (("tl", "th"), ("fh", "fl")), strict=True
    ):
        access = memory.block_words * bits
        width = access * -(-units // memory.block_words) if words is None else int(words * bits)
        finest = min(access, width)
        costs.append(energy * (width / access))
        inner, outer = ways
        allocation = [f"{hold}, {inner}" for hold in holds] + ([f"O, {outer}"] if "O" in holds else [])
        ports.append(
            {
                "name": f"{kind[0]}_port_1",
                "type": kind,
                "bandwidth_min": finest,
                "bandwidth_max": width,
                "allocation": allocation,
            }
        )
    data: dict[str, Any] = {
        "size": _MAX_BITS if memory.capacity_words is None else memory.capacity_words * bits,
        "r_cost": costs[0],
        "w_cost": costs[1],
        "area": 0.0,
        "latency": 1,
    }
    if memory.technology != "sram":
        data["mem_type"] = "rf" if memory.technology == "register" else "dram"
    if memory.multiple_buffering == 2:
        data["force_double_buffering"] = True
    return data | {"operands": holds, "ports": ports, "served_dimensions": served}


def _layer(problem: Problem, names: MappingOf[str, str], bits: MappingOf[str, int]) -> dict[str, Any]:
    text, relations = equation(problem, names)
    if problem.unit_operation == "add":
        text = text.replace("*", "+")
    unit = [UNIT] if f"[{UNIT}]" in text or any(relation.endswith(f"*{UNIT}") for relation in relations) else []
    return {
        "id": 0,
        "name": problem.name,
        "operator_type": "Conv" if relations else "Gemm" if problem.unit_operation == "mac" else "Add",
        "equation": text,
        "dimension_relations": relations,
        "loop_dims": [*names.values(), *unit],
        "loop_sizes": [*problem.sizes, *(1 for _ in unit)],
        "operand_precision": dict(bits),
        "operand_source": {"W": 0, "I": 0},
    }


def _mapping(
    problem: Problem,
    architecture: Architecture,
    mapping: Mapping,
    names: MappingOf[str, str],
    files: MappingOf[str, Any],
) -> tuple[list[dict[str, Any]], list[Reason]]:
    """Return the mapping file, and reasons where ZigZag's allocation rule would keep other tiles."""
    axes = {at: axis for axis, at in _axes(architecture).items()}
    unrolling: dict[str, list[ZigZagLoop]] = {axis: [] for axis in axes.values()}
    order: list[tuple[str, int]] = []
    entry_of: list[int] = []
    for loop in reversed(list(mapping.loops())):
        if not loop.spatial:
            order.append((names[loop.dimension], loop.trips))
            entry_of.append(loop.entry)
            continue
        axis = axes[architecture.cluster_index[mapping.entries[loop.entry].target]]
        unrolling[axis].append((names[loop.dimension], loop.trips))
    for loops in unrolling.values():
        loops.extend([] if loops else [(next(iter(names.values())), 1)])  # every axis must be listed
    reasons = list(_elsewhere(problem, architecture, mapping, files, order, entry_of, unrolling))
    said = {
        "name": "default",
        "spatial_mapping": {
            axis: [f"{name}, {count}" for name, count in reversed(loops)] for axis, loops in unrolling.items()
        },
        "temporal_ordering": [[name, count] for name, count in order],
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }
    return [said], reasons


def _elsewhere(
    problem: Problem,
    architecture: Architecture,
    mapping: Mapping,
    files: MappingOf[str, Any],
    order: list[tuple[str, int]],
    entry_of: list[int],
    unrolling: dict[str, list[ZigZagLoop]],
) -> Iterator[Reason]:
    accelerator = AcceleratorFile.model_validate(files[FILES["architecture"]])
    stores = linked(read_accelerator(accelerator, None).stores, MEMORY_OPERANDS)
    layer = read_layer(LayerData.model_validate(files[FILES["problem"]][0]), MEMORY_OPERANDS)
    counts = {axis: {name: int(count) for name, count in loops} for axis, loops in unrolling.items()}
    _, told = within_reach(counts, stores, layer)
    if told:
        yield reason("bandwidth", "mapping", f"{told[0]}: ZigZag would reduce the unrolling")
        return
    try:
        taken = allocated(stores, layer.stored, order, spatial_loops(counts, layer.problem.dimensions))
    except DoesNotFitError as error:
        yield reason("allocation", "mapping", f"the mapping does not fit in ZigZag: {error}")
        return
    tensors = operands(problem)
    for operand, places in held(problem, architecture, mapping).items():
        inside = 0
        for place, count in zip(places, taken[operand], strict=True):
            inside += count
            ours = sum(entry > place.entry for entry in entry_of)
            between = order[min(inside, ours) : max(inside, ours)]
            if any(layer.stored[operand].indexed_by(name) for name, _ in between):  # others leave it in place
                steps = [math.prod(trips for _, trips in order[:length]) for length in (ours, inside)]
                message = (
                    f"a tile of {tensors[operand].name} stays for {steps[0]:,} steps; ZigZag's allocation rule "
                    f"would keep one for {steps[1]:,}"
                )
                yield reason("allocation", place.memory.name, message)
                return
