"""Read: which words of a layer's operand another layer makes, coordinate by coordinate.

A point of a read has coordinates, such as the tokens, heads and channels of an attention. The maker's
word and the reader's word of a point are sums of coefficient x coordinate, plus an offset. So one form
covers equal coordinates, padding, slices, concatenations, transpositions, and reshapes that only rename.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, model_serializer, model_validator

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import MAX_PARTS, DimensionName, Problem, Size, parse_terms
from tilewright.values import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Offset = Annotated[int, Field(ge=0, le=2**40, strict=True)]
_CONSTANT = re.compile(r"\s*+(\d++)\s*+")


class Index(Model):
    """One coordinate of a word: coefficient x coordinate of the read, plus an offset, written `64*h + d + 1`.

    Example:
        >>> from tilewright.plugin import FrozenDict, Index
        >>> Index(terms=FrozenDict({"P": 2})).terms["P"]
        2
    """

    _short_form: ClassVar = {"type": ["string", "integer"], "examples": ["64*h + d + 1", 0]}
    terms: FrozenDict[DimensionName, Annotated[int, Field(ge=1, le=2**31, strict=True)]] = FrozenDict()
    """Coordinate of the read and its coefficient."""
    offset: Offset = 0
    """Number that is added."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return {"offset": value}
        if not isinstance(value, str):
            return value
        parts = value.split("+")
        terms = [part for part in parts if not _CONSTANT.fullmatch(part)]
        offset = sum(int(part) for part in parts if _CONSTANT.fullmatch(part))
        return {"terms": parse_terms("+".join(terms)) if terms else {}, "offset": offset}

    @model_serializer
    def _to_text(self) -> str:
        return str(self)

    def __str__(self) -> str:
        terms = [name if factor == 1 else f"{factor}*{name}" for name, factor in self.terms.items()]
        return " + ".join([*terms, *([str(self.offset)] if self.offset or not terms else [])])

    def last(self, sizes: Mapping[str, int]) -> int:
        """Return the largest value."""
        return self.offset + sum(factor * (sizes[name] - 1) for name, factor in self.terms.items())


class Read(Model):
    """Words of an operand that one layer makes.

    Without `made` and `read`, the coordinates of both tensors are equal. Words of the operand without a
    point are not the maker's: other makers' words, or padding. Where several makers have one word, an
    operator on the way joins their values, such as a residual addition.

    Example:
        >>> from tilewright.plugin import Read
        >>> Read(maker="conv1").made is None
        True
    """

    maker: str
    """Name of the layer that makes the words."""
    sizes: FrozenDict[DimensionName, Size] = Field(default=FrozenDict(), max_length=MAX_PARTS)
    """Coordinate of the read -> number of its values."""
    made: tuple[Index, ...] | None = None
    """Word of the maker's result at a point. A coordinate that it lacks repeats the word."""
    read: tuple[Index, ...] | None = None
    """Word of the operand at a point."""
    through: tuple[str, ...] = ()
    """Operators on the way that change values only, word by word, in order of execution.

    Those that all reads of an operand name act on the sum of their words.
    """
    whole: tuple[DimensionName, ...] = ()
    """Coordinates whose values an operator on the way needs together, such as a row of a softmax."""
    cut: str | None = None
    """Why the words cannot be told, so that the layers cannot share loops; None: they can."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.made is None) != (self.read is None):
            raise ValueError("made and read need each other: give both or neither")
        if self.cut is not None and (self.made is not None or self.sizes or self.whole):
            raise ValueError("a read that is cut has no coordinates: omit sizes, made, read and whole, or cut")
        if self.made is None or self.read is None:
            for key in ("sizes", "whole"):
                if getattr(self, key):
                    raise ValueError(
                        f"{key} needs made and read: give sizes, made and read, or maker alone for equal coordinates"
                    )
            return self
        used = {name for index in (*self.made, *self.read) for name in index.terms}
        for name in sorted((used | set(self.whole)) - self.sizes.keys()):
            known = f"one of {', '.join(self.sizes)}, or " if self.sizes else ""
            raise ValueError(f"coordinate {name} has no size; expected {known}its size in sizes ({name}: N)")
        where = {name for index in self.read for name in index.terms}
        for name, size in self.sizes.items():
            if size > 1 and name not in where:
                raise ValueError(
                    f"read lacks coordinate {name}: expected one word of the operand at each point; "
                    "made and read use the same names, which are not those of the layers"
                )
        for index in self.read:
            reach = 0
            for factor, name in sorted((factor, name) for name, factor in index.terms.items() if self.sizes[name] > 1):
                if factor <= reach:
                    raise ValueError(f"read has several points of one word: {index}")
                reach += factor * (self.sizes[name] - 1)
        return self

    def within(self, maker: Problem, reader: Problem, tensor: str) -> Self:
        """Return the read with all coordinates written out, after a check against both tensors.

        Raises:
            ValueError: a coordinate is missing, or outside its tensor.
        """
        if self.cut is not None:
            return self
        ends = (maker, maker.output, self.made), (reader, reader.tensor(tensor), self.read)
        shapes = [shape_of(problem, operand.name) for problem, operand, _ in ends]
        if self.made is None:
            if shapes[0] != shapes[1]:
                told = f"{_sized(*ends[0][:2], shapes[0])}, but {_sized(*ends[1][:2], shapes[1])}"
                raise ValueError(f"{told}: expected one shape, or made and read")
            names = [f"x{place}" for place in range(len(shapes[0]))]
            same = tuple(Index(terms=FrozenDict({name: 1})) for name in names)
            sizes = FrozenDict(dict(zip(names, shapes[0], strict=True)))
            return self.model_copy(update={"sizes": sizes, "made": same, "read": same})
        for (problem, operand, offsets), shape in zip(ends, shapes, strict=True):
            offsets = offsets or ()
            if len(offsets) != len(shape):
                told = _sized(problem, operand, shape)
                raise ValueError(f"{told}: expected {len(shape)} coordinates, not {len(offsets)}")
            for index, size in zip(offsets, shape, strict=True):
                if index.last(self.sizes) >= size:
                    told = _sized(problem, operand, shape)
                    raise ValueError(f"{told}: {index} reaches {index.last(self.sizes)}; expected less than {size}")
        return self

    def filled(self, reader: Problem, tensor: str) -> tuple[bool, ...]:
        """Return, for each coordinate of the operand, whether the maker's words take all of its values, apart from padding of windows.

        Only for a read with all its coordinates written out.
        """
        ranks = reader.tensor(tensor).projection
        return tuple(
            len(rank.terms) > 1 or set(rank.terms.values()) != {1} or self.values_along(place) == size
            for place, (size, rank) in enumerate(zip(shape_of(reader, tensor), ranks, strict=True))
        )

    def fills(self, reader: Problem, tensor: str) -> bool:
        """Return whether the maker makes all words of the operand, apart from padding of windows.

        Only for a read with all its coordinates written out. A read that is cut fills nothing.
        """
        return self.cut is None and all(self.filled(reader, tensor))

    def values_along(self, place: int) -> int:
        """Return the number of values that the maker makes along a coordinate of the operand."""
        return math.prod(self.sizes[name] for name in (self.read or ())[place].terms)

    @property
    def box(self) -> tuple[range, ...]:
        """Values of each coordinate of the operand from the first word that the maker makes to the last."""
        return tuple(range(index.offset, index.last(self.sizes) + 1) for index in self.read or ())

    @property
    def repeats(self) -> bool:
        """Whether several words of the operand are one word of the maker's, as after a broadcast."""
        made = {name for index in self.made or () for name in index.terms}
        return any(size > 1 and name not in made for name, size in self.sizes.items())

    def gap(self, maker: Problem, reader: Problem, tensor: str) -> int | None:
        """Return the first coordinate of the operand with padding in place of words that the maker makes; None: there is none.

        Only for a read with all its coordinates written out. With a gap, it is no edge of a group mapping, where the words of
        a tensor that exist are those of its maker.
        """
        made, used = shape_of(maker, maker.output.name), shape_of(reader, tensor)
        ranks = reader.tensor(tensor).projection
        for place, (index, rank) in enumerate(zip(self.read or (), ranks, strict=self.cut is None)):
            at = next((at for at, other in enumerate(self.made or ()) if other.terms == index.terms), None)
            if len(rank.terms) > 1 and at is not None and index.terms:
                shift = index.offset - (self.made or ())[at].offset
                exist = min(used[place], made[at] + shift) - max(0, shift)
                if exist != self.values_along(place):
                    return place
        return None

    @property
    def offsets(self) -> tuple[int, ...] | None:
        """The operand's coordinates minus the maker's, as on an edge of a group mapping.

        None: the coordinates are not one to one, or not written out.
        """
        if self.made is None or self.read is None or len(self.made) != len(self.read):
            return None
        pairs = list(zip(self.made, self.read, strict=True))
        return tuple(b.offset - a.offset for a, b in pairs) if all(a.terms == b.terms for a, b in pairs) else None

    def points(self) -> tuple[tuple[NDArray[np.int64], ...], tuple[NDArray[np.int64], ...]]:
        """Return the words of all points: coordinates of the maker's result, and of the operand, each [point].

        Only for a read with all its coordinates written out, as in `Workload.edges`.
        """
        import numpy as np  # imported here because most commands need no arrays

        if self.made is None or self.read is None:
            raise ValueError("the read has no coordinates")
        grid = np.indices(tuple(self.sizes.values()), dtype=np.int64).reshape(
            len(self.sizes), math.prod(self.sizes.values())
        )
        values = dict(zip(self.sizes, grid, strict=True))

        def along(indices: Sequence[Index]) -> tuple[NDArray[np.int64], ...]:
            start = np.zeros(grid.shape[1], dtype=np.int64)
            return tuple(
                start + index.offset + sum(factor * values[name] for name, factor in index.terms.items())
                for index in indices
            )

        return along(self.made), along(self.read)


def shape_of(problem: Problem, tensor: str) -> tuple[int, ...]:
    """Return the size of each coordinate of a tensor (bounding box)."""
    return tuple(
        1 + sum(factor * (problem.dimensions[name] - 1) for name, factor in rank.terms.items())
        for rank in problem.tensor(tensor).projection
    )


def _sized(problem: Problem, tensor: Any, shape: Sequence[int]) -> str:
    return f"{problem.name}.{tensor.name} is {' x '.join(map(str, shape)) or 'one value'}"
