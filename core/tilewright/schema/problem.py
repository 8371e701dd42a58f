"""Problem: a tensor operation as a perfect affine loop nest.

Sources: Union, section IV-B, and Timeloop's problem shape.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tilewright.markup import Head, preformatted, tabulated
from tilewright.schema.density import Density, check_data
from tilewright.schema.document import FileModel, suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.replace import paths_below, replaced
from tilewright.values import MisplacedError, Model, worded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Name = Annotated[str, worded(r"^[A-Za-z_][A-Za-z0-9_.\-]*$", "a letter or _, then letters, digits, or any of _ . -")]
DimensionName = Annotated[str, worded(r"^[A-Za-z_][A-Za-z0-9_]*$", "a letter or _, then letters, digits or _")]
Size = Annotated[int, Field(ge=1, le=2**40, strict=True)]
MAX_PARTS = 100
"""Maximum number of dimensions, of tensors, and of coordinates of a tensor."""
Role = Literal["input", "weight", "output"]

_TERM = re.compile(r"\s*+(?:(\d++)\s*+\*?\s*+)?([A-Za-z_]\w*+)\s*+")


class Rank(Model):
    """One coordinate of a tensor: a sum of coefficient x dimension, written `2*P + R`.

    Terms of one dimension are merged.
    """

    _short_form: ClassVar = {"type": "string", "examples": ["P", "2*P + R"]}
    terms: FrozenDict[DimensionName, Annotated[int, Field(ge=1, le=2**31, strict=True)]] = Field(min_length=1)
    """Dimension and its coefficient, such as a stride or a dilation."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"terms": parse_terms(value)} if isinstance(value, str) else value

    @model_serializer
    def _to_text(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return " + ".join(name if c == 1 else f"{c}*{name}" for name, c in self.terms.items())


def distinct_sums(m: int, a: int, n: int, b: int) -> int:
    """Return the number of distinct values of m*i + n*j, with 0 <= i < a and 0 <= j < b (QuickFlow, section IV-A).

    >>> distinct_sums(2, 4, 1, 3), distinct_sums(4, 3, 1, 2)
    (9, 6)
    """
    common = math.gcd(m, n)
    return a * b - max(0, a - n // common) * max(0, b - m // common)


def parse_terms(text: str) -> dict[str, int]:
    """Parse `2*P + R` (or `2P+R`) as {"P": 2, "R": 1}.

    Raises:
        ValueError: a term is malformed.

    >>> parse_terms("2p + 3*r")
    {'p': 2, 'r': 3}
    """
    terms: dict[str, int] = {}
    for part in text.split("+"):
        match = _TERM.fullmatch(part)
        if not match:
            raise ValueError(f"cannot read '{part.strip()}' in '{text}'; expected terms like 2*P + R")
        terms[match[2]] = terms.get(match[2], 0) + int(match[1] or 1)
    return terms


class Tensor(Model):
    """An operand or the result.

    Example:
        >>> import tilewright as tw
        >>> tensor = tw.load("nk,km->nm; n=2 k=3 m=4", "problem").tensors[0]
        >>> tensor.role, sorted(tensor.dimensions)
        ('input', ['k', 'n'])
    """

    name: Name
    """Name, unique in the problem."""
    role: Role
    """Role, which selects the buffers that may hold the tensor: hardware has input, weight and output buffers."""
    projection: tuple[Rank, ...] = Field(max_length=MAX_PARTS)
    """Coordinates of the tensor's words, one sum of dimensions per rank, outermost rank first."""
    density: Density | None = None
    """Nonzero values; None: all. Only sparse hardware takes note of zeros."""
    bits: Annotated[int, Field(ge=1, le=2**20, strict=True)] | None = None
    """Bits of one value in the network that the problem is from, such as 8 of a quantised operator; None: unknown.

    Costs use the widths of the memories, unless `Architecture.with_value_bits` is used.
    """

    @property
    def is_output(self) -> bool:
        return self.role == "output"

    @cached_property
    def dimensions(self) -> frozenset[str]:
        """Dimensions that index the tensor."""
        return frozenset(name for rank in self.projection for name in rank.terms)


class Problem(FileModel):
    """A tensor operation: dimensions with sizes, tensors with affine projections, a unit operation.

    Example:
        >>> import tilewright as tw
        >>> problem = tw.load("nk,km->nm; n=2 k=3 m=4", "problem")
        >>> problem.macs, problem.tensor_names
        (24, ('A', 'B', 'Z'))
    """

    schema_version: Literal[1] = 1
    kind: Literal["problem"] = "problem"
    name: str = Field(min_length=1)
    """Name of the problem, such as that of a layer."""
    source: str | None = None
    """Origin of the numbers."""
    operation: str | None = None
    """Kind of operation, such as `conv2d` or `gemm`, which operation-level cost models require; None: unknown."""
    label: str | None = None
    """Word by which rules of constraints select it, such as `attention`; None: none. Costs do not depend on it."""
    unit_operation: str = "mac"
    """Work of one iteration: a MAC of `operand_count` operands."""
    dimensions: FrozenDict[DimensionName, Size] = Field(min_length=1, max_length=MAX_PARTS)
    """Name of each dimension, with the number of its iterations."""
    tensors: tuple[Tensor, ...] = Field(max_length=MAX_PARTS)
    """Operands, and one result."""

    @model_serializer(mode="wrap")
    def _without_new_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave an empty label out, so that keys and digests of older problems stay valid."""
        return {name: value for name, value in handler(self).items() if name != "label" or value is not None}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [tensor.name for tensor in self.tensors]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise MisplacedError(f"tensor names repeat: {name}", "tensors", number, "name")
        if sum(tensor.is_output for tensor in self.tensors) != 1:
            raise ValueError("exactly one tensor must have role output")
        check_data(tensor.density for tensor in self.tensors)
        if len(self.tensors) < 2:
            raise ValueError("at least one tensor must have role input or weight")
        for number, tensor in enumerate(self.tensors):
            for rank, coordinate in enumerate(tensor.projection):
                for unknown in sorted(coordinate.terms.keys() - self.dimensions.keys()):
                    raise MisplacedError(
                        f"tensor {tensor.name} uses dimension {unknown}, which has no size"
                        f"{suggestion(unknown, self.dimensions)}",
                        *("tensors", number, "projection", rank),
                    )
            if tensor.density is not None and tensor.density.distribution == "banded":
                extents = [self._extent(rank, self.dimensions) for rank in tensor.projection]
                if len(extents) != 2 or extents[0] != extents[1]:
                    text = " x ".join(map(str, extents)) or "one value"
                    message = f"a banded tensor must be a square matrix ({tensor.name} is {text})"
                    raise MisplacedError(message, "tensors", number, "density")
            if tensor.density is not None and tensor.density.data is not None:
                extents = [self._extent(rank, self.dimensions) for rank in tensor.projection]
                if list(tensor.density.data.shape) != extents:
                    actual, expected = (
                        " x ".join(map(str, shape)) or "one" for shape in (tensor.density.data.shape, extents)
                    )
                    text = ", ".join(map(str, tensor.projection))
                    message = f"the data of {tensor.name} are {actual} values; "
                    message += f"expected {expected}, an axis for each of {text}"
                    raise MisplacedError(message, "tensors", number, "density")
        return self

    def replace(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with changed values.

        Example: `{"dimensions.N": 4, "name": "batch of 4", "tensors.Weights.role": "input"}`.

        Raises:
            InputError: a path does not exist, or a value is invalid.
        """
        return replaced(
            self, changes, paths_below(self.model_dump(mode="json", exclude={"schema_version", "kind"})), "problem"
        )

    @cached_property
    def dimension_names(self) -> tuple[str, ...]:
        return tuple(self.dimensions)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Sizes in the order of `dimension_names`."""
        return tuple(self.dimensions.values())

    @cached_property
    def tensor_names(self) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in self.tensors)

    @cached_property
    def output(self) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.is_output)

    @cached_property
    def operands(self) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if not tensor.is_output)

    @property
    def operand_count(self) -> int:
        return len(self.operands)

    @property
    def sparse_tensors(self) -> tuple[str, ...]:
        """Names of the tensors with a density."""
        return tuple(tensor.name for tensor in self.tensors if tensor.density is not None)

    @property
    def is_affine(self) -> bool:
        """Whether some coordinate is more than one dimension with coefficient 1."""
        return any(tuple(rank.terms.values()) != (1,) for tensor in self.tensors for rank in tensor.projection)

    @property
    def is_strided(self) -> bool:
        """Whether tiles may have holes, so that `tile_words` and `distinct_words` differ."""
        return any(c > 1 for tensor in self.tensors for rank in tensor.projection for c in rank.terms.values())

    @cached_property
    def windows(self) -> tuple[str, ...]:
        """Reduction dimensions that share a coordinate of an operand: a filter's rows and columns."""
        sliding = {
            name for tensor in self.operands for rank in tensor.projection if len(rank.terms) > 1 for name in rank.terms
        }
        return tuple(name for name in self.dimensions if name in sliding - self.output.dimensions)

    @cached_property
    def strided_windows(self) -> tuple[str, ...]:
        """Windows that share a coordinate with another dimension whose coefficient is not 1."""
        strided = {
            name
            for tensor in self.operands
            for rank in tensor.projection
            for name in rank.terms
            if any(coefficient != 1 for other, coefficient in rank.terms.items() if other != name)
        }
        return tuple(name for name in self.windows if name in strided)

    @cached_property
    def macs(self) -> int:
        """Number of unit operations: the product of all sizes."""
        return math.prod(self.sizes)

    @property
    def long_dimensions(self) -> str:
        """Dimensions longer than 1, as text: `K=64 C=3`."""
        return " ".join(f"{name}={size}" for name, size in self.dimensions.items() if size > 1)

    @property
    def stride(self) -> str | None:
        """Strides of windows as text, such as `2` or `2x1`; None if all are 1."""
        return self._steps(of_windows=False)

    @property
    def dilation(self) -> str | None:
        """Dilations of windows as text, such as `2` or `2x1`; None if all are 1."""
        return self._steps(of_windows=True)

    def _steps(self, of_windows: bool) -> str | None:
        """Return the coefficients of windows, or of the other dimensions, in an operand's sliding coordinates."""
        for tensor in self.operands:
            sliding = [
                rank.terms
                for rank in tensor.projection
                if len(rank.terms) > 1 or max(rank.terms.values(), default=1) > 1
            ]
            steps = [
                max((c for name, c in terms.items() if (name in self.windows) == of_windows), default=1)
                for terms in sliding
            ]
            if any(step > 1 for step in steps):
                return str(steps[0]) if len(set(steps)) == 1 else "x".join(map(str, steps))
        return None

    def _repr_html_(self) -> str:
        """Return the formula and the tensors as HTML for notebooks."""
        heads = [Head("tensor"), Head("role"), Head("coordinates"), Head("words", right=True)]
        rows = [
            (tensor.name, tensor.role, ", ".join(map(str, tensor.projection)), self.tensor_words(tensor))
            for tensor in self.tensors
        ]
        return preformatted(str(self)) + tabulated(f"{self.name}: {self.macs:,} operations", heads, rows)

    def tensor(self, name: str) -> Tensor:
        """Return the tensor of that name. Raises KeyError."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)

    def tile_words(self, tensor: Tensor, extents: Mapping[str, int]) -> int:
        """Return the words of the bounding box of a tile, holes included.

        `extents` maps dimension -> iterations. The formula is Timeloop's: the product over
        coordinates of 1 + sum of coefficient x (extent - 1).
        """
        return math.prod(self.tile_shape(tensor, extents))

    def tile_shape(self, tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
        """Return the extents of the bounding box of a tile, one per coordinate; see `tile_words`."""
        return tuple(self._extent(rank, extents) for rank in tensor.projection)

    @staticmethod
    def _extent(rank: Rank, extents: Mapping[str, int]) -> int:
        return 1 + sum(c * (extents[name] - 1) for name, c in rank.terms.items())

    def distinct_words(self, tensor: Tensor, extents: Mapping[str, int]) -> int:
        """Return the words of a tile without the holes that strides and dilations leave.

        `extents` is that of `tile_words`. A coordinate of more than two dimensions counts as in the bounding box.
        """

        def values(rank: Rank) -> int:
            (m, a), (n, b) = [(c, extents[name]) for name, c in rank.terms.items()] + [(1, 1)] * (2 - len(rank.terms))
            return distinct_sums(m, a, n, b)

        return math.prod(
            values(rank) if len(rank.terms) <= 2 else self._extent(rank, extents) for rank in tensor.projection
        )

    def tensor_words(self, tensor: Tensor) -> int:
        """Return the words of the whole tensor (bounding box)."""
        return self.tile_words(tensor, self.dimensions)

    def projection_matrix(self, tensor: Tensor) -> NDArray[np.int64]:
        """Return the coefficients, [coordinate, dimension]."""
        import numpy as np  # imported here because most commands need no arrays

        return np.array(
            [[rank.terms.get(name, 0) for name in self.dimensions] for rank in tensor.projection], dtype=np.int64
        ).reshape(len(tensor.projection), len(self.dimensions))

    @cached_property
    def content_key(self) -> str:
        """Hex digest that is equal for equal work: it covers everything except name and source."""
        data = self.model_dump(mode="json", exclude={"name", "source"})
        data["dimensions"] = list(data["dimensions"].items())
        for tensor in data["tensors"]:
            for name in ("density", "bits"):
                if tensor[name] is None:
                    del tensor[name]  # keys of problems without them are in stored results
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()

    def __str__(self) -> str:
        def text(tensor: Tensor) -> str:
            return f"{tensor.name}[{', '.join(str(rank) for rank in tensor.projection)}]"

        sizes = " ".join(f"{name}={size}" for name, size in self.dimensions.items())
        return f"{text(self.output)} += {' * '.join(text(t) for t in self.operands)}; {sizes}"
