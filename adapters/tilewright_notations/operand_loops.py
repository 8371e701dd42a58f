"""Problems and mappings in ZigZag's terms.

A layer has operands I and W and a result O, and each operand has a list of memories. The cost model
and the adapter of ZigZag share this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass

from tilewright.errors import Reason
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor

OPERANDS = ("I", "W", "O")
MEMORY_OPERANDS = {"I": "I1", "W": "I2", "O": "O"}
"""Operand of a layer -> operand of memories, as ZigZag links them by default."""
WAYS = {"reads": "tl", "drains": "th", "fills": "fh", "updates": "fl"}
"""Kind of traffic through a memory port -> ZigZag's name.

The first letter means to (t) or from (f), the second the lower (l, inner) or higher (h, outer) memory.
"""
READS_AND_WRITES = (("tl", "th"), ("fh", "fl"))
UNIT = "U"
"""Name of a loop of one trip. It replaces the dimension of a scalar, and the filter of a strided coordinate."""


@dataclass(frozen=True)
class Held:
    """A tensor in a memory: `entry` of the mapping, and `level` of the operand, 0 the innermost."""

    entry: int
    memory: Memory
    level: int


def operands(problem: Problem) -> dict[str, Tensor]:
    """Return operand -> tensor.

    O is the result. I is the tensor with windows, otherwise the first operand, and W the other one.
    """
    first, second = problem.operands
    if windows(second) and not windows(first):
        first, second = second, first
    return {"I": first, "W": second, "O": problem.output}


def windows(tensor: Tensor) -> list[dict[str, int]]:
    """Return the coordinates that are more than one dimension with coefficient 1."""
    return [dict(rank.terms) for rank in tensor.projection if list(rank.terms.values()) != [1]]


def unsuited(problem: Problem) -> Iterator[Reason]:
    """Yield reasons why the problem is not a layer of ZigZag."""
    if problem.operand_count != 2:
        message = f"{problem.operand_count} operands; ZigZag's layers have two"
        yield Reason(code="operands", where=problem.name, message=message)
        return
    sliding = [tensor for tensor in problem.tensors if windows(tensor)]
    for tensor in sliding:
        if tensor.is_output or len(sliding) > 1:
            yield Reason(code="windows", where=tensor.name, message="ZigZag allows windows in one operand only")
        for terms in windows(tensor):
            if len(terms) > 2:
                message = f"{' + '.join(terms)} adds more than two loops; ZigZag allows two"
                yield Reason(code="windows", where=tensor.name, message=message)
    for tensor in problem.tensors:
        named = [name for rank in tensor.projection for name in rank.terms]
        for name in sorted({name for name in named if named.count(name) > 1}):
            yield Reason(code="repeated", where=tensor.name, message=f"{name} indexes it twice; ZigZag allows once")


def held(problem: Problem, architecture: Architecture, mapping: Mapping) -> dict[str, list[Held]]:
    """Return, for each operand, where a legal mapping keeps it, innermost first."""
    result: dict[str, list[Held]] = {}
    for operand, tensor in operands(problem).items():
        entries = [index for index, entry in enumerate(mapping.entries) if tensor.name in (entry.keep or ())]
        residences = []
        for level, index in enumerate(reversed(entries)):
            cluster = architecture.cluster(mapping.entries[index].target)
            memory = cluster.memory_for(tensor)
            assert memory is not None, "a legal mapping keeps what a memory may hold"
            residences.append(Held(index, memory, level))
        result[operand] = residences
    return result


def precision(problem: Problem, architecture: Architecture, mapping: Mapping) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bits of values by operand (I, W, O, O_final), and the bits of words by memory.

    O are partial sums, O_final finished results. A memory receives partial sums in two cases: a
    reduction loop among its own or outer temporal loops, or a spatial reduction loop outside it.
    Reduction loops that leave the inner tile in place do not count. If no widths are stated and
    word widths do not fit ZigZag's layers, each value is a word of one bit.

    Raises:
        ValueError: stated widths do not fit ZigZag's layers.
    """
    tensors, places = operands(problem), held(problem, architecture, mapping)
    summed = set(problem.dimension_names) - set(problem.output.dimensions)
    loops = [loop for loop in mapping.loops() if loop.trips > 1]
    bits_of: dict[str, list[int]] = {operand: [] for operand in (*OPERANDS, "O_final")}
    stated = False
    for operand, held_in in places.items():
        inside = len(mapping.entries)
        for place in held_in:
            coming = [loop.dimension for loop in loops if not loop.spatial and loop.entry <= inside]
            while place.level and coming and coming[-1] in summed:
                coming.pop()  # the inner tile stays in place
            beyond = [loop.dimension for loop in loops if loop.spatial and loop.entry < place.entry]
            partial = not summed.isdisjoint(coming + beyond)
            inside = place.entry
            kind = "O_final" if operand == "O" and not partial else operand
            bits_of[kind].append(place.memory.bits_of(tensors[operand]))
            stated |= place.memory.words_of(tensors[operand]) != 1
    bits_of = {kind: bits or bits_of["O" if kind == "O_final" else "O_final"] for kind, bits in bits_of.items()}
    agree = all(len(set(bits)) == 1 for bits in bits_of.values())
    if agree and (stated or len({bits[0] for bits in bits_of.values()}) > 1):
        words = {memory.name: memory.word_bits for memory in architecture.memories}
        return {kind: bits[0] for kind, bits in bits_of.items()}, words
    if stated:
        told = "; ".join(f"{kind} {', '.join(map(str, bits))}" for kind, bits in bits_of.items())
        raise ValueError(
            f"values have these widths, innermost memory first: {told}; ZigZag has one per operand, and for results "
            "one for partial sums (O) and one for finished values (O_final)"
        )
    return dict.fromkeys(bits_of, 1), {memory.name: 1 for memory in architecture.memories}


def inexpressible(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    """Yield reasons why ZigZag cannot express a legal mapping."""
    for name in sorted(set(problem.tensor_names).difference(mapping.entries[0].keep or ())):
        message = f"{name} bypasses it; ZigZag's outermost memory of an operand holds all of it"
        yield Reason(code="bypass", where=mapping.entries[0].target, message=message)
    for name, size in problem.dimensions.items():
        in_time, in_space = _loops_of(mapping, name)
        if -(-size // math.prod(trips for _, trips in in_space)) != in_time:
            message = f"{name}: temporal tiles do not divide; ZigZag requires it"
            yield Reason(code="imperfect", where="mapping", message=message)
    for index, entry in enumerate(mapping.entries):
        if entry.unicast:
            message = f"{', '.join(entry.unicast)} is sent separately; ZigZag always multicasts"
            yield Reason(code="unicast", where=f"entry {index} on {entry.target}", message=message)
    for loop in mapping.loops():
        entry = mapping.entries[loop.entry]
        fanout = architecture.cluster(entry.target).fanout
        for tensor in problem.tensors if loop.spatial else ():
            able = fanout.reduction if tensor.is_output else fanout.multicast
            if loop.dimension not in tensor.dimensions and not able:
                what = "added up" if tensor.is_output else "multicast"
                message = f"{tensor.name} is not {what} below it; ZigZag assumes it for {loop.dimension}"
                yield Reason(code="no_sharing", where=entry.target, message=message)


def widths(problem: Problem, mapping: Mapping) -> dict[tuple[int, str], int | float]:
    """Return the unrolling width of each (entry, dimension), as ZigZag counts ragged tiles.

    The first of a dimension's widest unrollings becomes a fraction, so that all steps are equal: 7 over 4 units are two
    steps of 3.5. Inner unrollings do not affect it: 9 over 2 x 2 units are 1.8 x 2, as if there were five steps.
    """
    exact: dict[tuple[int, str], int | float] = {}
    for name, size in problem.dimensions.items():
        _, in_space = _loops_of(mapping, name)
        exact |= {(entry, name): trips for entry, trips in in_space}
        if in_space:
            first = max(range(len(in_space)), key=lambda index: in_space[index][1])
            outside, (entry, widest) = math.prod(trips for _, trips in in_space[:first]), in_space[first]
            width = size / -(-size // (widest * outside)) / outside
            exact[entry, name] = int(width) if width == int(width) else width
    return exact


def _loops_of(mapping: Mapping, dimension: str) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of temporal steps, and (entry, sub-clusters) of every unrolling."""
    loops = [loop for loop in mapping.loops() if loop.dimension == dimension]
    steps = math.prod(loop.trips for loop in loops if not loop.spatial)
    return steps, [(loop.entry, loop.trips) for loop in loops if loop.spatial]


def equation(problem: Problem, names: MappingOf[str, str]) -> tuple[str, list[str]]:
    """Return ZigZag's equation and its relations between dimensions.

    Args:
        problem: the problem.
        names: dimension -> its name in ZigZag; coordinates that are sums get names of their own.
    """
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
    named = {tensor.name: operand for operand, tensor in operands(problem).items()}
    product = "*".join(texts[named[tensor.name]] for tensor in problem.operands)
    return f"{texts['O']}={product}", relations
