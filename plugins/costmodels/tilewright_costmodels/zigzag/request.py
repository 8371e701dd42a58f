"""Mapping in ZigZag's terms, as plain data for the child process where ZigZag runs."""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingOf
from fractions import Fraction
from typing import Any

from tilewright.schema.architecture import Architecture, Memory, Port
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_notations.operand_loops import (
    MEMORY_OPERANDS,
    OPERANDS,
    READS_AND_WRITES,
    UNIT,
    WAYS,
    Held,
    equation,
    held,
    operands,
    precision,
    widths,
)

ZigZagLoop = tuple[str, int | float]
"""Dimension and trips."""
_MAX_PARTS = 10**6
"""Maximum number of parts of a bit. Parts turn fractions of a bit per cycle into integers."""
_PREFIX = {"read": "r", "write": "w", "read_write": "rw"}
_UNLIMITED = 2**40
"""Bits per cycle, or of a memory, that never limit."""


def request(problem: Problem, architecture: Architecture, mapping: Mapping) -> dict[str, Any]:
    """Return all inputs of ZigZag's cost model, in ZigZag's own fields.

    Layer and accelerator are given twice. In `energy` one access moves a block, so that accesses
    are blocks. In `cycles` it moves what the bandwidths allow. Unrollings are given twice as well.
    Where tiles do not divide, `spatial` has fractions, from which ZigZag counts accesses. `units`
    has whole units, from which it counts cycles.

    Raises:
        ValueError: values have widths that ZigZag's layers cannot express.
    """
    names = {name: f"L{index}" for index, name in enumerate(problem.dimension_names)}
    residences = held(problem, architecture, mapping)
    temporal = {operand: _temporal(mapping, where, names) for operand, where in residences.items()}
    widths_of_loops = widths(problem, mapping)
    units = {loop: math.floor(width) for loop, width in widths_of_loops.items()}
    bits, words = precision(problem, architecture, mapping)
    parts = _parts_of_a_bit(architecture, words)
    fine = {operand: count * parts for operand, count in bits.items()}
    return {
        "energy": (_layer(problem, names, bits), _accelerator(problem, architecture, residences, words, None)),
        "cycles": (_layer(problem, names, fine), _accelerator(problem, architecture, residences, words, parts)),
        "temporal": temporal,
        "spatial": {operand: _spatial(widths_of_loops, where, names) for operand, where in residences.items()},
        "units": {operand: _spatial(units, where, names) for operand, where in residences.items()},
        "cycles_per_op": architecture.compute.cycles_per_operation,
    }


def _layer(problem: Problem, names: dict[str, str], bits: dict[str, int]) -> dict[str, Any]:
    text, relations = equation(problem, names)
    return {
        "id": 0,
        "name": "layer",
        "operator_type": "Conv",
        "equation": text,
        "dimension_relations": relations,
        "loop_dims": [*names.values(), UNIT],
        "loop_sizes": [*problem.sizes, 1],
        "operand_precision": bits,
        "operand_source": {},
        "pr_loop_dims": None,
        "pr_loop_sizes": None,
        "padding": None,
    }


def _parts_of_a_bit(architecture: Architecture, words: dict[str, int]) -> int:
    """Return the number of parts of a bit that makes all bandwidths whole parts per cycle, or the nearest one allowed.

    Args:
        words: memory -> bits of its words.
    """
    widths = [
        width * words[memory.name]
        for memory in architecture.memories
        for width in (
            *(bandwidth for _, bandwidth in memory.bandwidths),
            *(port.words_per_cycle for port in memory.ports),
        )
        if width is not None
    ]
    denominators = [Fraction(width).limit_denominator(1000).denominator for width in widths]
    return min(math.lcm(8, *denominators), _MAX_PARTS)


def _accelerator(
    problem: Problem,
    architecture: Architecture,
    residences: dict[str, list[Held]],
    words: dict[str, int],
    parts: int | None,
) -> dict[str, Any]:
    """Return ZigZag's accelerator: memories that hold some operand, innermost first.

    Args:
        words: memory -> bits of its words.
        parts: parts of a bit. None: bits are whole, and an access moves a block.
    """
    array = {
        "is_imc": False,
        "unit_energy": architecture.compute.energy_per_operation_pj,
        "unit_area": 0.0,
        "dimensions": ["D1"],
        "sizes": [architecture.compute_instances],
        "systolic_dimensions": [],
    }
    kept = {
        memory: [
            operand for operand in OPERANDS if any(residence.memory == memory for residence in residences[operand])
        ]
        for memory in reversed(architecture.memories)
    }
    memories = {
        memory.name: _memory(problem, memory, held, words[memory.name], parts) for memory, held in kept.items() if held
    }
    return {"name": "tilewright", "operational_array": array, "memories": memories}


def _memory(problem: Problem, memory: Memory, held: list[str], word_bits: int, parts: int | None) -> dict[str, Any]:
    """Return one memory of the accelerator.

    For energies it has one read and one write port for all operands, if every port costs the same.
    """
    names = [MEMORY_OPERANDS[operand] for operand in held]
    ways = {name: tuple(WAYS.values()) if name == "O" else ("tl", "fh") for name in names}
    directions = {f"{name}, {way}" for name in names for way in ways[name]}
    ports: list[tuple[list[str], float | None, float]] = []
    factors = [(port.read_energy_factor, port.write_energy_factor) for port in memory.ports]
    # ZigZag has one factor for both directions of a port; the file's ports have one ratio of the two
    ratio = next(
        (write / read for port, (read, write) in zip(memory.ports, factors, strict=True) if _is_shared(port)), 1.0
    )
    for port in memory.ports if parts is not None or any(pair != (1, 1) for pair in factors) else ():
        allocated = [
            f"{MEMORY_OPERANDS[operand]}, {WAYS[action]}"
            for operand, tensor in operands(problem).items()
            for name, actions in port.moves.items()
            for action in actions
            if name in (tensor.role, tensor.name)
        ]
        allocation = sorted(directions & set(allocated))
        reads = any(text.endswith(READS_AND_WRITES[0]) for text in allocation)
        factor = port.read_energy_factor if reads else port.write_energy_factor / ratio
        ports.append((allocation, port.words_per_cycle, factor))
        directions -= set(allocated)
    scale = _blocks_per_access(memory, ports) if parts is None else 1.0
    for (_, width), ends in zip(memory.bandwidths, READS_AND_WRITES, strict=True):
        ports.append((sorted(direction for direction in directions if direction.endswith(ends)), width, 1.0))
    port_rows: list[dict[str, Any]] = []
    for allocation, width, factor in ports:
        if allocation:
            moved = memory.block_words * word_bits
            # ZigZag charges the part of a full access that the smallest access is
            full = round(moved * scale / factor)
            if parts is not None:
                moved = full = _UNLIMITED if width is None else max(1, round(width * word_bits * parts))
            bandwidth = {"bandwidth_min": moved, "bandwidth_max": full}
            kinds = [all(text.endswith(ends) for text in allocation) for ends in READS_AND_WRITES]
            kind = "read" if kinds[0] else "write" if kinds[1] else "read_write"
            name = f"{_PREFIX[kind]}_port_{len(port_rows) + 1}"
            port_rows.append({"name": name, "type": kind, "allocation": allocation, **bandwidth})
    return {
        "size": _UNLIMITED if memory.usable_words is None else memory.usable_words * word_bits * (parts or 1),
        "r_cost": memory.read_energy_pj * scale,
        "w_cost": memory.write_energy_pj * ratio * scale,
        "area": 0.0,
        "latency": 1,
        "mem_type": "sram",
        "auto_cost_extraction": False,
        "force_double_buffering": memory.multiple_buffering >= 2,
        "operands": names,
        "ports": port_rows,
        "served_dimensions": ["D1"],
    }


def _blocks_per_access(memory: Memory, ports: list[tuple[list[str], float | None, float]]) -> float:
    """Return the blocks of a full access of a port whose block has the memory's own energy.

    In ZigZag's files a block of a port that is twice as wide costs half. Full accesses of the ports' own widths
    then round as ZigZag rounds. Other ports: 1.
    """
    blocks = [(width or 0.0) / memory.block_words for _, width, _ in ports]
    scales = [count * factor for count, (_, _, factor) in zip(blocks, ports, strict=True)]
    if len(ports) == len(memory.ports) > 0 and min(blocks) >= 1 and math.isclose(min(scales), max(scales)):
        return scales[0]
    return 1.0


def _is_shared(port: Port) -> bool:
    """Return whether a port both reads and writes."""
    actions = {WAYS[action] for actions in port.moves.values() for action in actions}
    return all(any(action.endswith(ends) for action in actions) for ends in READS_AND_WRITES)


def _temporal(mapping: Mapping, residences: list[Held], names: dict[str, str]) -> list[list[ZigZagLoop]]:
    """Return the temporal loops of each memory, innermost first: those that iterate while it keeps its tile."""
    levels: list[list[ZigZagLoop]] = [[] for _ in residences]
    for loop in reversed([loop for loop in mapping.loops() if not loop.spatial]):
        level = next(residence.level for residence in residences if residence.entry < loop.entry)
        levels[level].append((names[loop.dimension], loop.trips))
    return levels


def _spatial(
    widths_of_loops: MappingOf[tuple[int, str], int | float], residences: list[Held], names: dict[str, str]
) -> list[list[ZigZagLoop]]:
    """Return the unrollings of each memory, innermost first, between it and the next memory inside.

    The last list has the unrollings outside all memories.

    Args:
        widths_of_loops: (entry of the mapping, dimension) -> width of the unrolling.
    """
    levels: list[dict[str, int | float]] = [{} for _ in range(len(residences) + 1)]
    for (entry, dimension), width in widths_of_loops.items():
        level = next((residence.level for residence in residences if residence.entry <= entry), len(residences))
        loops = levels[level]
        loops[names[dimension]] = loops.get(names[dimension], 1) * width
    return [list(counts.items()) for counts in levels]
