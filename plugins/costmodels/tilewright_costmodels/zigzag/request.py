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
    """All that the process needs. Memories are there twice: `energy` moves one block per access, so that accesses are
    blocks; `cycles` moves what the bandwidths allow."""
    names = {name: f"L{index}" for index, name in enumerate(problem.dimension_names)}
    places = held(problem, architecture, mapping)
    bits = _bits_of_a_word(architecture)
    return {
        "layer": _layer(problem, names),
        "bits": bits,
        "operations": {
            "energy_pj": architecture.compute.energy_per_operation_pj,
            "units": architecture.compute_instances,
            "cycles": architecture.compute.cycles_per_operation,
        },
        "energy": _memories(architecture, places, 1, by_block=True),
        "cycles": _memories(architecture, places, bits, by_block=False),
        "temporal": {operand: _temporal(mapping, where, names) for operand, where in places.items()},
        "spatial": {operand: _spatial(mapping, where, names) for operand, where in places.items()},
    }


def _layer(problem: Problem, names: dict[str, str]) -> dict[str, Any]:
    text, relations = equation(problem, names)
    return {
        "id": 0,
        "name": "layer",
        "operator_type": "Conv",
        "equation": text,
        "dimension_relations": relations,
        "loop_dims": [*names.values(), UNIT],
        "loop_sizes": [*problem.sizes, 1],
    }


def _bits_of_a_word(architecture: Architecture) -> int:
    """So many that all bandwidths are whole bits per cycle, as nearly as `_FINEST` allows."""
    widths = [1.0]
    for memory in architecture.memories:
        widths += [each for each in _bandwidths(memory) if each is not None]
    bits = 8
    for width in widths:
        bits = math.lcm(bits, Fraction(width).limit_denominator(1000).denominator)
    return min(bits, _FINEST)


def _bandwidths(memory: Memory) -> tuple[float | None, float | None]:
    return memory.read_bandwidth_words_per_cycle, memory.write_bandwidth_words_per_cycle


def _memories(
    architecture: Architecture, places: dict[str, list[Held]], bits: int, by_block: bool
) -> list[dict[str, Any]]:
    """Innermost first, those that hold something, in ZigZag's own fields."""
    found = []
    for memory in reversed(architecture.memories):
        kept = [operand for operand in OPERANDS if any(place.memory == memory for place in places[operand])]
        if not kept:
            continue
        widths = [
            memory.block_words * bits if by_block else _UNLIMITED if width is None else max(1, round(width * bits))
            for width in _bandwidths(memory)
        ]
        found.append(
            {
                "name": memory.name,
                "operands": [MEMORY_OPERANDS[operand] for operand in kept],
                "size": _UNLIMITED if memory.usable_words is None else memory.usable_words * bits,
                "r_cost": memory.read_energy_pj,
                "w_cost": memory.write_energy_pj,
                "read_bits": widths[0],
                "write_bits": widths[1],
                "double": memory.multiple_buffering >= 2,
            }
        )
    return found


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
