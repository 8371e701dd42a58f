"""Form of an MLIR module that the frontend works on, independent of xdsl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

OpenShape = tuple[int | None, ...]
"""A size per dimension; None: dynamic."""


@dataclass(frozen=True, eq=False)
class Value:
    """A value that operations read or produce.

    `shape`: None if it is no tensor and no buffer. `bits`: width of its elements; None if not known. `buffer`: whether it
    is a memory whose words may change.
    """

    shape: OpenShape | None
    bits: int | None = None
    buffer: bool = False


@dataclass(frozen=True)
class Linear:
    """A sum of coefficient x operand of a map, by the operand's index, and a constant."""

    terms: Mapping[int, int]
    constant: int = 0


@dataclass(frozen=True)
class NotLinear:
    """A result of an affine map that is no such sum, as text."""

    text: str


@dataclass(frozen=True)
class AffineMap:
    """An affine map from `operands` inputs (dimensions, then symbols) to `results`."""

    operands: int
    results: tuple[Linear | NotLinear, ...]


Attribute = int | str | AffineMap | tuple["Attribute", ...] | None
"""Attributes that the frontend uses: whole numbers, text, maps, and lists of these.

Text includes names of functions and dialect attributes in their source form. None means any
other attribute.
"""


@dataclass(frozen=True, eq=False)
class Block:
    """Operations in order; `arguments` are further values that they may read."""

    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation. `name` includes the dialect, `regions` holds the first block of each region.

    `label` is the name in its location.
    """

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute]
    regions: tuple[Block, ...]
    line: int
    column: int
    label: str | None = None

    @property
    def title(self) -> str:
        """Name of the operation for tables: of its location, of its node in an ONNX file, or its kind and line."""
        return self.said or f"{self.kind}_{self.line}"

    @property
    def said(self) -> str | None:
        """Name of the operation's location, or of its node in an ONNX file; None: there is no name."""
        node = self.attributes.get("onnx_node_name")
        return self.label or (node if isinstance(node, str) and node else None)

    @property
    def at(self) -> str:
        return f"{self.line}:{self.column}"

    @property
    def kind(self) -> str:
        """Name without the dialect."""
        return self.name.rpartition(".")[2]

    @property
    def body(self) -> Block:
        """The only region. Raises LookupError."""
        if len(self.regions) != 1:
            raise LookupError(f"{self.name} has {len(self.regions)} regions; expected one")
        return self.regions[0]

    def integers(self, name: str, count: int, default: int = 1) -> tuple[int, ...]:
        """Return a list of `count` whole numbers; a single one is repeated. Raises ValueError."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return (default,) * count
        numbers = attribute if isinstance(attribute, tuple) else (attribute,)
        numbers = numbers * count if len(numbers) == 1 else numbers
        if len(numbers) != count or not all(isinstance(number, int) for number in numbers):
            raise ValueError(f"{name} is {attribute}; expected {count} whole numbers")
        return tuple(number for number in numbers if isinstance(number, int))

    def text(self, name: str) -> str:
        """Return a text attribute. Raises ValueError if it is absent."""
        attribute = self.attributes.get(name)
        if not isinstance(attribute, str):
            raise ValueError(f"it has no {name}")
        return attribute

    def maps(self, name: str) -> tuple[AffineMap, ...]:
        """Return a list of affine maps, empty if absent."""
        attribute = self.attributes.get(name)
        return tuple(item for item in attribute if isinstance(item, AffineMap)) if isinstance(attribute, tuple) else ()


WRAPPED = "torch.operator"
"""Operation of the torch dialect that has the name of another framework's operator as an attribute."""
_ONNX = "onnx."
_VALUES = ("value_int", "value_ints")
"""Attributes of a constant of ONNX that hold whole numbers."""


def unwrapped(name: str, attributes: Mapping[str, Attribute]) -> tuple[str, Mapping[str, Attribute]]:
    """Return the name and the attributes of an operator of ONNX that the torch dialect wraps; others are unchanged.

    `torch.operator "onnx.Conv"` has attributes such as `torch.onnx.strides`.
    """
    said = attributes.get("name")
    if name != WRAPPED or not isinstance(said, str) or not said.startswith(_ONNX):
        return name, attributes
    prefix = f"torch.{_ONNX}"
    plain = {key.removeprefix(prefix): value for key, value in attributes.items() if key.startswith(prefix)}
    return said, {"value" if key in _VALUES else key: value for key, value in plain.items()}


def within(operation: Operation) -> Iterator[Operation]:
    """Yield all operations in the regions of an operation."""
    waiting = [operation]
    while waiting:
        for region in waiting.pop().regions:
            waiting.extend(region.operations)
            yield from region.operations


def result_name(operation: Operation) -> str:
    """Return the name of a product's result: `y0`, or that of its last operand, if this is a buffer that it changes."""
    return "y0" if operation.results else f"x{len(operation.operands) - 1}"
