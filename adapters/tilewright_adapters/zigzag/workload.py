"""Conversion of a layer of ZigZag's workload to a problem."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.plugin.edges import Access, Edges, Operation, edges_by_name
from tilewright.schema.document import suggestion
from tilewright.schema.problem import Problem, Rank
from tilewright.schema.read import shape_of
from tilewright_adapters.zigzag.accelerator import ROLES
from tilewright_adapters.zigzag.allocation import Stored, Term, distinct
from tilewright_adapters.zigzag.files import LayerData
from tilewright_notations.operand_loops import OPERANDS


@dataclass(frozen=True)
class Layer:
    """A converted layer.

    `problem` has tensors I, W and O. `stored` holds their properties for the allocation rule.
    """

    problem: Problem
    operator: str
    stored: Mapping[str, Stored]
    warnings: tuple[str, ...]


def name_of(data: LayerData) -> str:
    return data.name or f"Layer{data.id}"


def edges_of(layers: Sequence[LayerData], problems: Mapping[str, Problem]) -> Edges:
    """Return the edges between layers: `operand_source` names the maker of each operand, or the layer itself for none.

    The words are those of the maker, coordinate by coordinate, where names and sizes leave no other way.
    Absent are layers with an operand that has no source and is not constant.
    Absent are layers with a maker that is not among the problems, too.
    """
    names = {layer.id: name_of(layer) for layer in layers}
    if len(set(names.values())) < len(layers):
        return {}
    operations, known = list[Operation](), set[str]()
    for layer in layers:
        name, constant = name_of(layer), layer.constant_operands or ()
        if name not in problems:
            continue
        problem = problems[name]
        sources = {operand: source for operand, source in layer.operand_source.items() if operand not in constant}
        makers = {operand: names.get(source, "") for operand, source in sources.items() if source != layer.id}
        operands = {tensor.name for tensor in problem.operands}
        made_operands = {
            operand: maker for operand, maker in makers.items() if maker in problems and operand in operands
        }
        if operands <= {*layer.operand_source, *constant} and len(made_operands) == len(makers):
            known.add(name)
        accesses = {
            operand: _access(layer, problem, operand, problems[maker]) for operand, maker in made_operands.items()
        }
        operations.append(Operation(name, accesses, _made(problem), problem))
    return {name: reads for name, reads in edges_by_name(operations).items() if name in known}


def _made(problem: Problem) -> Access:
    """Return the access of a result: the coordinates are numbered."""
    return Access(problem.name, tuple(f"x{place}" for place in range(len(problem.output.projection))))


def _access(data: LayerData, problem: Problem, operand: str, maker: Problem) -> Access:
    """Return the access of an operand: its coordinates are the maker's, if that follows.

    Sizes are equal, apart from padding and rows that no window reaches. Coordinates of one name have one place. A coordinate
    without a common name has another size than all others.
    """
    made, read = maker.output.projection, problem.tensor(operand).projection
    told = f"{problem.name}: names, sizes and padding of {operand} do not say which words of {maker.name} it has"
    unknown = Access(maker.name, tuple(f"x{place}" for place in range(len(read))), cut=told)
    shapes = shape_of(maker, maker.output.name), shape_of(problem, operand)
    if len(made) != len(read):
        return unknown
    named = [not one.terms.keys().isdisjoint(other.terms) for one, other in zip(made, read, strict=True)]
    moved = any(
        not one.terms.keys().isdisjoint(other.terms)
        for place, one in enumerate(made)
        for at, other in enumerate(read)
        if place != at
    )
    sizes = shapes[0]
    alike = any(
        size > 1 and not named[place] and size in (*sizes[:place], *sizes[place + 1 :])
        for place, size in enumerate(sizes)
    )
    fronts = [_front(data, *pair) for pair in zip(read, sizes, shapes[1], strict=True)]
    known = tuple(front for front in fronts if front is not None)
    if moved or alike or len(known) < len(fronts):
        return unknown
    return Access(maker.name, _made(maker).coordinates, known)


def _front(data: LayerData, rank: Rank, made: int, read: int) -> int | None:
    """Return the words of padding in front of a coordinate; None: it does not have the maker's words.

    Args:
        data: the reader.
        rank: its coordinate.
        made: size of the maker's coordinate.
        read: size of the reader's, with padding.
    """
    if len(rank.terms) == 1 and set(rank.terms.values()) == {1}:
        return 0 if made == read else None
    relations = dict(_relation(text) for text in data.dimension_relations)
    spelled = {name: dict([(first, a), (second, b)]) for name, (first, a, second, b) in relations.items()}
    name = next((name for name, terms in spelled.items() if terms == dict(rank.terms)), None)
    padding = dict(zip((dim.upper() for dim in data.pr_loop_dims or ()), data.padding or (), strict=False))
    front, back = padding.get(name or "", (0, 0))
    spare = made - (read - front - back)
    return front if 0 <= spare < max(rank.terms.values()) else None


def read_layer(data: LayerData, links: Mapping[str, str]) -> Layer:
    """Convert a layer. `links`: operand of the layer -> operand of memories.

    Raises:
        ValueError: the equation and the dimensions do not match.
    """
    sizes = {name.upper(): size for name, size in zip(data.loop_dims, data.loop_sizes, strict=True)}
    if len(sizes) != len(data.loop_dims):
        raise ValueError("loop_dims repeat; ZigZag ignores case")
    relations = dict(_relation(text) for text in data.dimension_relations)
    tensors, order = _equation(data.equation)
    for index in (index for indices in tensors.values() for index in indices):
        if index not in sizes and index not in relations:
            known = (*sizes, *relations)
            raise ValueError(
                f"the equation's {index} is not in loop_dims or dimension_relations{suggestion(index, known)}"
            )
    for left, (first, _, second, _) in relations.items():
        for index in (first, second):
            if index not in sizes:
                raise ValueError(f"the relation of {left} adds {index}, which is not in loop_dims")
    problem = Problem.model_validate(
        {
            "name": name_of(data),
            "unit_operation": "add" if "+" in data.equation.partition("=")[2] else "mac",
            "dimensions": sizes,
            "tensors": [
                {
                    "name": name,
                    "role": ROLES[links[name]],
                    "projection": [_rank(index, relations) for index in tensors[name]],
                }
                for name in order
            ],
        }
    )
    limits = _limits(data, relations, sizes)
    bits = {name: data.operand_precision.get(name, 0) for name in OPERANDS}
    stored = {
        name: Stored(
            dimensions=tuple(index for index in indices if index not in relations),
            sums=tuple((relations[index], limits[index]) for index in indices if index in relations),
            bits=bits[name],
            final_bits=data.operand_precision.get("O_final", bits["O"]) if name == "O" else bits[name],
        )
        for name, indices in tensors.items()
    }
    padded = any(sum(pair) for pair in data.padding or ())
    told = f"{problem.name}: padding is ignored: I includes the words beyond its edges"
    return Layer(problem, data.operator_type, stored, (told,) if padded else ())


def _relation(text: str) -> tuple[str, Term]:
    left, _, right = text.partition("=")
    terms = []
    for part in right.split("+"):
        coefficient, star, name = part.rpartition("*")
        terms.append((name.strip().upper(), int(coefficient) if star else 1))
    (first, a), (second, b) = terms
    return left.strip().upper(), (first, a, second, b)


def _equation(text: str) -> tuple[dict[str, list[str]], list[str]]:
    """Return operand -> its indices, and the order of the problem's tensors, the result last."""
    left, _, right = text.replace("+=", "=").partition("=")
    subscripts = {}
    for part in (left, *re.split(r"[*+]", right)):
        name = part.strip()[0]
        subscripts[name] = [index.upper() for index in re.findall(r"\[(\w+)\]", part)]
    if set(subscripts) != set(OPERANDS):
        raise ValueError(f"operands {', '.join(subscripts)}; expected I, W and O")
    return subscripts, [*(name for name in subscripts if name != "O"), "O"]


def _rank(index: str, relations: Mapping[str, Term]) -> str:
    if index not in relations:
        return index
    first, a, second, b = relations[index]
    return f"{a}*{first} + {b}*{second}"


def _limits(data: LayerData, relations: Mapping[str, Term], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return coordinate that is a sum -> maximum number of values, without padding."""
    named = [name.upper() for name in data.pr_loop_dims or ()]
    given = dict(zip(named, data.pr_loop_sizes or (), strict=False))
    padding = dict(zip(named, data.padding or (), strict=False))
    limits = {}
    for name, (first, a, second, b) in relations.items():
        whole = distinct(a, sizes[first], b, sizes[second]) - sum(padding.get(name, (0, 0)))
        limits[name] = given.get(name, whole)
    return {name: max(1, math.floor(limit)) for name, limit in limits.items()}
