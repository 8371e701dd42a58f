"""A mapping in ZigZag's terms: plain data that can be sent to the process where ZigZag runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.architecture import Architecture, Memory
from tilewright.conformability import Reason
from tilewright.mapping import Mapping
from tilewright.problem import Problem, Tensor

OPERANDS = ("I", "W", "O")
MEMORY_OPERANDS = {"I": "I1", "W": "I2", "O": "O"}
UNIT = "U"
"""A loop of one trip, for tensors of no dimension and coordinates of one dimension with a stride."""
_FINEST = 10**6
"""Words are counted as so many bits at most, to make whole bits per cycle of a fraction of a word."""
_UNLIMITED = 2**40
"""Bits per cycle, or of a memory, that are never too few."""


@dataclass(frozen=True)
class Held:
    """A tensor in a memory: `entry` of the mapping, `level` of the operand, 0 the innermost."""

    entry: int
    memory: Memory
    level: int


def operands(problem: Problem) -> dict[str, Tensor]:
    """ZigZag's name -> tensor: O the result, I the tensor with windows, or else the first operand, and W the other."""
    first, second = problem.operands
    if _windows(second) and not _windows(first):
        first, second = second, first
    return {"I": first, "W": second, "O": problem.output}


def _windows(tensor: Tensor) -> list[dict[str, int]]:
    """Coordinates that are not just a dimension."""
    return [dict(rank.terms) for rank in tensor.projection if list(rank.terms.values()) != [1]]


def unsuited(problem: Problem) -> Iterator[Reason]:
    """What ZigZag's layers cannot be."""
    if problem.operand_count != 2:
        yield Reason(
            code="operands", where=problem.name, message=f"{problem.operand_count} operands; ZigZag's layers have two"
        )
        return
    sliding = [tensor for tensor in problem.tensors if _windows(tensor)]
    for tensor in sliding:
        if tensor.is_output or len(sliding) > 1:
            yield Reason(code="windows", where=tensor.name, message="ZigZag has windows in one operand only")
        for terms in _windows(tensor):
            if len(terms) > 2:
                names = " + ".join(terms)
                yield Reason(code="windows", where=tensor.name, message=f"{names} adds three loops; ZigZag adds two")
    for tensor in problem.tensors:
        named = [name for rank in tensor.projection for name in rank.terms]
        for name in sorted({name for name in named if named.count(name) > 1}):
            yield Reason(code="repeated", where=tensor.name, message=f"{name} indexes it twice; in ZigZag once")


def held(problem: Problem, architecture: Architecture, mapping: Mapping) -> dict[str, list[Held]]:
    """Operand -> where it is held, innermost first."""
    result: dict[str, list[Held]] = {}
    for operand, tensor in operands(problem).items():
        entries = [index for index, entry in enumerate(mapping.entries) if tensor.name in (entry.keep or ())]
        found = []
        for level, index in enumerate(reversed(entries)):
            cluster = architecture.clusters[architecture.cluster_index[mapping.entries[index].target]]
            memory = cluster.memory_for(tensor)
            assert memory is not None, "a legal mapping keeps what a memory may hold"
            found.append(Held(index, memory, level))
        result[operand] = found
    return result


def unsaid(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    """What ZigZag cannot be told about a legal mapping."""
    if not mapping.is_perfect:
        yield Reason(code="imperfect", where="mapping", message="tiles that do not divide; ZigZag's loops do")
    for index, entry in enumerate(mapping.entries):
        if entry.unicast:
            names = ", ".join(entry.unicast)
            yield Reason(code="unicast", where=f"entry {index} on {entry.target}", message=f"of {names}: not in ZigZag")
    for operand, places in held(problem, architecture, mapping).items():
        memories = [place.memory.name for place in places]
        for name in sorted({name for name in memories if memories.count(name) > 1}):
            yield Reason(code="twice", where=name, message=f"holds {operands(problem)[operand].name} twice over")
    for loop in mapping.loops():
        entry = mapping.entries[loop.entry]
        fanout = architecture.clusters[architecture.cluster_index[entry.target]].fanout
        for tensor in problem.tensors if loop.spatial else ():
            able = fanout.reduction if tensor.is_output else fanout.multicast
            if loop.dimension not in tensor.dimensions and not able:
                what = "added up" if tensor.is_output else "multicast"
                message = f"{tensor.name} is not {what} below it, and over {loop.dimension} ZigZag takes it to be"
                yield Reason(code="no_sharing", where=entry.target, message=message)


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
    relations: list[str] = []
    texts = {}
    for operand, tensor in operands(problem).items():
        parts = []
        for rank in tensor.projection:
            terms = [(names[name], coefficient) for name, coefficient in rank.terms.items()]
            if [coefficient for _, coefficient in terms] == [1]:
                parts.append(terms[0][0])
                continue
            if len(terms) == 1:
                terms.append((UNIT, 1))
            parts.append(f"X{len(relations)}")
            relations.append(f"{parts[-1]}=" + "+".join(f"{coefficient}*{name}" for name, coefficient in terms))
        texts[operand] = operand + "".join(f"[{part}]" for part in parts or [UNIT])
    return {
        "id": 0,
        "name": "layer",
        "operator_type": "Conv",
        "equation": f"{texts['O']}={texts['I']}*{texts['W']}",
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
    """Per memory, innermost first, the loops that turn while it keeps its tile, innermost first."""
    levels: list[list[tuple[str, int]]] = [[] for _ in places]
    for loop in reversed([loop for loop in mapping.loops() if not loop.spatial]):
        level = next(place.level for place in places if place.entry < loop.entry)
        levels[level].append((names[loop.dimension], loop.trips))
    return levels


def _spatial(mapping: Mapping, places: list[Held], names: dict[str, str]) -> list[list[tuple[str, int]]]:
    """Per memory, innermost first, the splits between it and the next one inside; and those outside of all."""
    levels: list[dict[str, int]] = [{} for _ in range(len(places) + 1)]
    for loop in mapping.loops():
        if loop.spatial:
            level = next((place.level for place in places if place.entry <= loop.entry), len(places))
            at = levels[level]
            at[names[loop.dimension]] = at.get(names[loop.dimension], 1) * loop.trips
    return [list(each.items()) for each in levels]
