"""A mapping in ZigZag's terms: plain data that can be sent to the process where ZigZag runs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tilewright.notations.operand_loops import MEMORY_OPERANDS, OPERANDS, UNIT, Held, equation, held
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

_FINEST = 10**6
"""Words are counted as so many bits at most, to make whole bits per cycle of a fraction of a word."""
_UNLIMITED = 2**40
"""Bits per cycle, or of a memory, that are never too few."""


def request(problem: Problem, architecture: Architecture, mapping: Mapping) -> dict[str, Any]:
    """All that the process needs, in ZigZag's own fields. Layer and accelerator are there twice: for `energy` one access
    moves a block and words have one bit, so that accesses are blocks; for `cycles` it moves what the bandwidths allow."""
    names = {name: f"L{index}" for index, name in enumerate(problem.dimension_names)}
    places = held(problem, architecture, mapping)
    bits = _bits_of_a_word(architecture)
    return {
        "energy": (_layer(problem, names, 1), _accelerator(architecture, places, None)),
        "cycles": (_layer(problem, names, bits), _accelerator(architecture, places, bits)),
        "temporal": {operand: _temporal(mapping, where, names) for operand, where in places.items()},
        "spatial": {operand: _spatial(mapping, where, names) for operand, where in places.items()},
        "cycles_per_op": architecture.compute.cycles_per_operation,
    }


def _layer(problem: Problem, names: dict[str, str], bits: int) -> dict[str, Any]:
    text, relations = equation(problem, names)
    return {
        "id": 0,
        "name": "layer",
        "operator_type": "Conv",
        "equation": text,
        "dimension_relations": relations,
        "loop_dims": [*names.values(), UNIT],
        "loop_sizes": [*problem.sizes, 1],
        "operand_precision": dict.fromkeys((*OPERANDS, "O_final"), bits),
        "operand_source": {},
        "pr_loop_dims": None,
        "pr_loop_sizes": None,
        "padding": None,
    }


def _bits_of_a_word(architecture: Architecture) -> int:
    """So many that all bandwidths are whole bits per cycle, as nearly as `_FINEST` allows."""
    widths = [width for memory in architecture.memories for _, width in memory.ports if width is not None]
    denominators = [Fraction(width).limit_denominator(1000).denominator for width in widths]
    return min(math.lcm(8, *denominators), _FINEST)


def _accelerator(architecture: Architecture, places: dict[str, list[Held]], bits: int | None) -> dict[str, Any]:
    """`bits` of a word; None: an access moves a block of words of one bit. Memories that hold something, innermost first."""
    array = {
        "is_imc": False,
        "unit_energy": architecture.compute.energy_per_operation_pj,
        "unit_area": 0.0,
        "dimensions": ["D1"],
        "sizes": [architecture.compute_instances],
        "systolic_dimensions": [],
    }
    kept = {
        memory: [operand for operand in OPERANDS if any(place.memory == memory for place in places[operand])]
        for memory in reversed(architecture.memories)
    }
    memories = {memory.name: _memory(memory, operands, bits) for memory, operands in kept.items() if operands}
    return {"name": "tilewright", "operational_array": array, "memories": memories}


def _memory(memory: Memory, operands: list[str], bits: int | None) -> dict[str, Any]:
    """One port to read and one to write, for all operands."""
    names = [MEMORY_OPERANDS[operand] for operand in operands]
    reading, writing = [f"{name}, tl" for name in names], [f"{name}, fh" for name in names]
    if "O" in names:
        reading.append("O, th")
        writing.append("O, fl")
    ports = []
    for (kind, width), ways in zip(memory.ports, (reading, writing), strict=True):
        moved = memory.block_words if bits is None else _UNLIMITED if width is None else max(1, round(width * bits))
        bandwidth = {"bandwidth_min": moved, "bandwidth_max": moved}
        ports.append({"name": f"{kind[0]}_port_1", "type": kind, "allocation": ways, **bandwidth})
    return {
        "size": _UNLIMITED if memory.usable_words is None else memory.usable_words * (bits or 1),
        "r_cost": memory.read_energy_pj,
        "w_cost": memory.write_energy_pj,
        "area": 0.0,
        "latency": 1,
        "mem_type": "sram",
        "auto_cost_extraction": False,
        "force_double_buffering": memory.multiple_buffering >= 2,
        "operands": names,
        "ports": ports,
        "served_dimensions": ["D1"],
    }


def _temporal(mapping: Mapping, places: list[Held], names: dict[str, str]) -> list[list[tuple[str, int]]]:
    """Per memory, innermost first, the loops that step while it keeps its tile, innermost first."""
    levels: list[list[tuple[str, int]]] = [[] for _ in places]
    for loop in reversed([loop for loop in mapping.loops() if not loop.spatial]):
        level = next(place.level for place in places if place.entry < loop.entry)
        levels[level].append((names[loop.dimension], loop.trips))
    return levels


def _spatial(mapping: Mapping, places: list[Held], names: dict[str, str]) -> list[list[tuple[str, int]]]:
    """Per memory, innermost first, the spatial unrollings between it and the next one inside; and those outside of all."""
    levels: list[dict[str, int]] = [{} for _ in range(len(places) + 1)]
    for loop in mapping.loops():
        if loop.spatial:
            level = next((place.level for place in places if place.entry <= loop.entry), len(places))
            at = levels[level]
            at[names[loop.dimension]] = at.get(names[loop.dimension], 1) * loop.trips
    return [list(each.items()) for each in levels]
