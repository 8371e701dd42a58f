"""A module of MLIR as the frontend sees it: functions, operations, shapes, affine maps. Nothing of xdsl is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

OpenShape = tuple[int | None, ...]
"""A size per dimension; None: dynamic."""


@dataclass(frozen=True, eq=False)
class Value:
    """What an operation reads or makes. `shape`: None for what is no tensor and no buffer."""

    shape: OpenShape | None


@dataclass(frozen=True)
class Linear:
    """A sum of coefficient x operand of a map, by the operand's place, and a constant."""

    terms: Mapping[int, int]
    constant: int = 0


@dataclass(frozen=True)
class NotLinear:
    """A result of an affine map that is no such sum, as it is written."""

    text: str


@dataclass(frozen=True)
class AffineMap:
    """`results` of `dimensions` operands, symbols counted behind the dimensions."""

    operands: int
    results: tuple[Linear | NotLinear, ...]


Attribute = int | str | AffineMap | tuple["Attribute", ...] | None
"""What the frontend reads of attributes: whole numbers, text (names of functions too, and what only a dialect
understands, as it is written), maps, and lists of these; None: something else."""


@dataclass(frozen=True, eq=False)
class Block:
    """Operations in order; `arguments`: values that they may read besides."""

    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, eq=False)
class Operation:
    """`name`: with its dialect. `label`: the name in its location. `regions`: the first block of each."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute]
    regions: tuple[Block, ...]
    line: int
    column: int
    label: str | None = None

    @property
    def at(self) -> str:
        return f"{self.line}:{self.column}"

    @property
    def kind(self) -> str:
        """The name without the dialect."""
        return self.name.rpartition(".")[2]

    @property
    def body(self) -> Block:
        """The only region. Raises LookupError."""
        if len(self.regions) != 1:
            raise LookupError(f"{self.name} has {len(self.regions)} regions, one was expected")
        return self.regions[0]

    def integers(self, name: str, count: int, default: int = 1) -> tuple[int, ...]:
        """A list of `count` whole numbers; one number stands for all. Raises ValueError."""
        found = self.attributes.get(name)
        if found is None:
            return (default,) * count
        numbers = found if isinstance(found, tuple) else (found,)
        numbers = numbers * count if len(numbers) == 1 else numbers
        if len(numbers) != count or not all(isinstance(each, int) for each in numbers):
            raise ValueError(f"{name} is {found}; {count} whole numbers were expected")
        return tuple(each for each in numbers if isinstance(each, int))

    def text(self, name: str) -> str:
        """Raises ValueError where there is none."""
        found = self.attributes.get(name)
        if not isinstance(found, str):
            raise ValueError(f"it has no {name}")
        return found

    def maps(self, name: str) -> tuple[AffineMap, ...]:
        """A list of affine maps; empty where there are none."""
        found = self.attributes.get(name)
        return tuple(each for each in found if isinstance(each, AffineMap)) if isinstance(found, tuple) else ()


def within(operation: Operation) -> Iterator[Operation]:
    """All operations in the regions of one."""
    waiting = [operation]
    while waiting:
        for region in waiting.pop().regions:
            waiting.extend(region.operations)
            yield from region.operations
