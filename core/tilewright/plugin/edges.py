"""Edges of a network whose file names its values: a layer reads what another operation wrote under the same name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright.schema.read import Index, Read, shape_of
from tilewright.schema.workload import Layer

Edges = Mapping[str, Mapping[str, tuple[Read, ...]]]
"""Layer -> its operands, with the layers that make them. A layer that is absent has unknown makers."""


@dataclass(frozen=True)
class Access:
    """A value that an operation reads or writes.

    Attributes:
        value: name of the value in the file.
        coordinates: names of its coordinates, in the order of the problem's tensor. Equal names of two accesses mean equal
            coordinates.
        fronts: words of padding that an operand has in front, along each coordinate; empty: none.
        cut: why the words of an operand do not follow from its coordinates; None: they do.
    """

    value: str
    coordinates: tuple[str, ...]
    fronts: tuple[int, ...] = ()
    cut: str | None = None


@dataclass(frozen=True)
class Operation:
    """Operation of a file, as a layer or not.

    Attributes:
        name: name of the layer, or of the operation that is none.
        operands: tensor of the problem -> its access; any keys if the operation is no layer.
        result: access of the result.
        problem: None: the operation is no layer.
        copies: whether the result has the words of the operands, coordinate by coordinate.
    """

    name: str
    operands: Mapping[str, Access]
    result: Access
    problem: Problem | None = None
    copies: bool = False


@dataclass(frozen=True)
class _Made:
    """Words of a value that a layer makes: `sizes` of its coordinates, or a reason why they are unknown."""

    maker: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    cut: str | None = None


def edges_by_name(operations: Sequence[Operation]) -> Edges:
    """Return the edges between the layers among operations in order of execution.

    A value that no operation wrote comes from outside. Where two shapes of a value differ, the common words count.
    """
    values, edges = dict[str, tuple[_Made, ...]](), dict[str, Mapping[str, tuple[Read, ...]]]()
    later = {operation.result.value: operation for operation in reversed(operations)}
    for operation in operations:
        read = dict[str, tuple[_Made, ...]]()
        for tensor, access in operation.operands.items():
            read[tensor] = values.get(access.value, ())
            writer = later.get(access.value)
            if not read[tensor] and writer is not None and writer.problem is not None:
                read[tensor] = (_Made(writer.name, cut=f"{operation.name} reads {access.value} before it is written"),)
        made: tuple[_Made, ...]
        if operation.problem is not None:
            problem = operation.problem
            edges[operation.name] = {
                tensor: tuple(_read(one, operation.operands[tensor], problem, tensor) for one in several)
                for tensor, several in read.items()
            }
            sizes = dict(zip(operation.result.coordinates, shape_of(problem, problem.output.name), strict=True))
            made = (_Made(operation.name, sizes),)
        elif operation.copies:
            made = tuple(one for several in read.values() for one in several)
        else:
            lost = f"{operation.name} is no layer, and what it does with the words is unknown"
            made = tuple(replace(one, cut=one.cut or lost) for several in read.values() for one in several)
        before = values.get(operation.result.value, ())
        if before:
            made = tuple(
                replace(one, cut=f"{operation.result.value} is written more than once") for one in (*before, *made)
            )
        values[operation.result.value] = tuple({one.maker: one for one in made}.values())
    return _without_uses_elsewhere(edges, operations, values)


def with_returned(layers: Sequence[Layer], names: Collection[str]) -> tuple[Layer, ...]:
    """Return the layers, marked where the network returns a result that layers read, too.

    Args:
        layers: all layers of the network.
        names: layers whose results, or values of them, are outputs of the network.
    """
    read = {maker for layer in layers for maker in layer.after or ()}
    return tuple(
        layer.model_copy(update={"returned": True}) if layer.name in names and layer.name in read else layer
        for layer in layers
    )


def _without_uses_elsewhere(
    edges: Edges, operations: Sequence[Operation], values: Mapping[str, tuple[_Made, ...]]
) -> Edges:
    """Return the edges without the words of results that an operation reads, too, whose own result no layer reads."""
    used = {access.value for operation in operations for access in operation.operands.values()}
    ends = [operation for operation in operations if operation.problem is None and operation.result.value not in used]
    reading = {
        made.maker: end.name
        for end in ends
        for access in end.operands.values()
        for made in values.get(access.value, ())
    }

    def cut(read: Read) -> Read:
        if read.cut is not None or read.maker not in reading:
            return read
        return Read(maker=read.maker, cut=f"{reading[read.maker]}, which is no layer, reads the result, too")

    return {
        name: {tensor: tuple(map(cut, reads)) for tensor, reads in operands.items()} for name, operands in edges.items()
    }


def _read(made: _Made, access: Access, problem: Problem, tensor: str) -> Read:
    """Return the read of an operand."""
    shape = dict(zip(access.coordinates, shape_of(problem, tensor), strict=True))
    if made.cut is not None or access.cut is not None:
        return Read(maker=made.maker, cut=made.cut or access.cut)
    if made.sizes.keys() != shape.keys():
        return Read(
            maker=made.maker, cut=f"coordinates {', '.join(shape)} are those of {', '.join(made.sizes)}, renamed"
        )
    if list(made.sizes.items()) == list(shape.items()) and not any(access.fronts):
        return Read(maker=made.maker)
    fronts = dict(zip(access.coordinates, access.fronts, strict=True)) if access.fronts else dict.fromkeys(shape, 0)
    names = {name: f"x{place}" for place, name in enumerate(shape)}
    sizes = {names[name]: min(size - fronts[name], made.sizes[name]) for name, size in shape.items()}
    if min(sizes.values(), default=1) < 1:
        return Read(maker=made.maker, cut=f"padding leaves no word of {access.value}")

    def index(name: str, offset: int = 0) -> Index:
        return Index(terms=FrozenDict({names[name]: 1}), offset=offset)

    return Read(
        maker=made.maker,
        sizes=FrozenDict(sizes),
        made=tuple(index(name) for name in made.sizes),
        read=tuple(index(name, fronts[name]) for name in shape),
    )
