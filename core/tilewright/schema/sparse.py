"""Sparse hardware: compressed formats of tensors, and accesses and operations that zeros save.

Source: Sparseloop (Wu et al., MICRO 2022), sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import MAX_PARTS, DimensionName, Name, Tensor
from tilewright.schema.quantities import Bits, Energy
from tilewright.values import MisplacedError, Model

Format = Literal["UOP", "CP", "B", "RLE", "UB"]
"""Format of a rank.

`CP`: a coordinate for each nonzero part. `RLE`: the zeros between nonzero parts. `B`: a bitmask.
`UOP`: offsets of all parts. `UB`: a bitmask over data that is not compressed.
"""
COMPRESSED: frozenset[Format] = frozenset({"CP", "B", "RLE"})
"""Formats that omit empty parts."""
Kind = Literal["gate", "skip", "skip_units"]
SparseAction = Literal[
    "gated_read", "gated_fill", "gated_update", "skipped_read", "skipped_fill", "skipped_update",
    "metadata_read", "metadata_fill", "metadata_update",
    "gated_metadata_read", "gated_metadata_fill", "gated_metadata_update",
    "skipped_metadata_read", "skipped_metadata_fill", "skipped_metadata_update",
    "decompression", "compression",
]  # fmt: skip
"""Actions of a memory with an energy of their own. Reads, fills and updates of data have the memory's energies."""


class RankFormat(Model):
    """Format of one rank of a tensor: of one loop, or of several that are flattened into one coordinate.

    Example:
        >>> from tilewright.plugin import RankFormat
        >>> RankFormat(format="CP").is_compressed, RankFormat(format="UB").is_compressed
        (True, False)
    """

    format: Format
    """`CP`: coordinates. `B`: a bitmask. `RLE`: runs of zeros. `UOP`: offsets of all parts. `UB`: a bitmask over all data."""
    metadata_bits: Bits | None = None
    """Bits of one piece of metadata: a coordinate, a run, a mask bit. None: the memory's default; 1 for `B`."""
    payload_bits: Bits | None = None
    """Bits of one payload: an offset or a reference to the rank inside. None: the memory's default."""
    flatten: Literal["all"] | tuple[tuple[DimensionName, ...], ...] | None = Field(
        default=None, union_mode="left_to_right"
    )
    """Groups of dimensions whose adjacent loops form one coordinate; `all`: one group of all. None: one loop."""

    @model_validator(mode="after")
    def _mask_bits(self) -> Self:
        if self.format == "UB" and (self.metadata_bits, self.payload_bits) != (None, None):
            raise ValueError("a rank of format UB has the memory's default bits, none of its own")
        return self

    @property
    def is_compressed(self) -> bool:
        """Whether empty parts are omitted."""
        return self.format in COMPRESSED


class TensorFormat(Model):
    """Format of one tensor in a memory.

    Example:
        >>> from tilewright.plugin import RankFormat, TensorFormat
        >>> TensorFormat(ranks=(RankFormat(format="CP"),)).is_compressed
        True
    """

    _short_form: ClassVar = "ranks"
    ranks: tuple[RankFormat, ...] = Field(min_length=1, max_length=MAX_PARTS)
    """Ranks, outermost first."""
    fill: Literal["outer", "inner"] = "outer"
    """End from which loops are assigned to ranks; ranks that are left over have no loop."""

    @model_validator(mode="before")
    @classmethod
    def _ranks_alone(cls, value: Any) -> Any:
        return {"ranks": value} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _compressed_inside(self) -> Self:
        for number, (outer, inner) in enumerate(zip(self.ranks, self.ranks[1:], strict=False)):
            if outer.is_compressed and not inner.is_compressed:
                raise MisplacedError(
                    f"rank {number + 1} ({inner.format}) is not compressed, but rank {number} ({outer.format}) outside it is",
                    *("ranks", number + 1),
                )
        return self

    @property
    def is_compressed(self) -> bool:
        """Whether some rank omits empty parts."""
        return self.ranks[-1].is_compressed


class Saving(Model):
    """Accesses that a memory saves while the tiles that they would be combined with are empty.

    Tensors are names or roles.

    Example:
        >>> from tilewright.plugin import Saving
        >>> Saving(skip="A", when_empty=("B",)).kind
        'skip'
    """

    gate: Name | None = None
    """Tensor whose accesses are left out, but take their cycles."""
    skip: Name | None = None
    """Tensor whose accesses and their cycles are left out."""
    skip_units: Name | None = None
    """Tensor that is skipped in space: only units with work are occupied."""
    when_empty: tuple[Name, ...] = Field(default=(), max_length=MAX_PARTS)
    """Tensors whose empty tiles save the access; one of them is enough."""
    best_of: tuple[Saving, ...] = Field(default=(), max_length=MAX_PARTS)
    """Alternatives for the hardware, which takes the one that saves most."""

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        given = [name for name in ("gate", "skip", "skip_units", "best_of") if getattr(self, name)]
        if len(given) != 1:
            stated = " and ".join(given) or "none"
            raise ValueError(f"expected one of 'gate', 'skip', 'skip_units' and 'best_of' (found {stated})")
        if bool(self.best_of) == bool(self.when_empty):
            wrong = "has no 'when_empty' of its own" if self.best_of else "needs 'when_empty', a list of tensors"
            raise ValueError(f"'{given[0]}' {wrong}")
        if any(saving.best_of for saving in self.best_of):
            raise ValueError("'best_of' lists 'gate', 'skip' or 'skip_units', not another 'best_of'")
        if len({saving.kind for saving in self.best_of}) > 1:
            raise ValueError("the alternatives of 'best_of' must be of one kind: 'gate', 'skip' or 'skip_units'")
        return self

    @property
    def kind(self) -> Kind:
        """Kind of the action; that of the alternatives for `best_of`."""
        if self.best_of:
            return self.best_of[0].kind
        return "gate" if self.gate else "skip" if self.skip else "skip_units"

    @property
    def tensor(self) -> str:
        """Name or role of the tensor whose accesses are saved. Raises ValueError for `best_of`."""
        tensor = self.gate or self.skip or self.skip_units
        if tensor is None:
            raise ValueError("alternatives have a tensor each")
        return tensor

    @property
    def options(self) -> tuple[Saving, ...]:
        """Return the alternatives; the action itself if it has none."""
        return self.best_of or (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names and roles of all tensors in it, each once."""
        names = [name for option in self.options for name in (option.tensor, *option.when_empty)]
        return tuple(dict.fromkeys(names))

    def on(self, tensors: Sequence[Tensor]) -> Iterator[Saving]:
        """Yield the action for each tensor that it means, with names instead of roles.

        Tensors that a problem lacks are left out: an action without a tensor or without a condition
        has no effect.
        """
        if self.best_of:
            options = tuple(option for saving in self.best_of for option in saving.on(tensors))
            if options:
                yield Saving(best_of=options)
            return
        for target in _meant(self.tensor, tensors):
            conditions = [
                name for word in self.when_empty for name in _meant(word, tensors) if word == name or name != target
            ]
            if conditions:
                yield self.model_copy(update={self.kind: target, "when_empty": tuple(dict.fromkeys(conditions))})


def _meant(word: str, tensors: Sequence[Tensor]) -> list[str]:
    """Return the tensor of a name, or those of a role."""
    named = [tensor.name for tensor in tensors if tensor.name == word]
    return named or [tensor.name for tensor in tensors if tensor.role == word]


class MetadataStorage(Model):
    """Storage of a memory for metadata, next to that for data.

    A memory with a capacity for data and no storage for metadata accepts only formats of 0 bits.

    Example:
        >>> from tilewright.plugin import MetadataStorage
        >>> MetadataStorage(width_bits=8, depth=16).depth
        16
    """

    width_bits: Bits = 0
    """Bits of one metadata access; 0: no storage."""
    depth: Annotated[int, Field(ge=0, le=2**53, strict=True)] = 0
    """Number of accesses that it has room for."""
    default_bits: Bits = 0
    """Bits of metadata and payloads of ranks that state none."""

    def bits_of(self, rank: RankFormat) -> tuple[int, int]:
        """Return the bits that one piece of metadata, and one payload, of a rank occupies.

        Bits that do not divide the width of an access are increased until they do, to less than twice
        as many. If no such number divides it, they are doubled.

        Raises:
            ValueError: they are wider than an access.
        """
        masked = 1 if rank.format == "B" else None
        return self._fitting(masked if rank.metadata_bits is None else rank.metadata_bits), self._fitting(
            rank.payload_bits
        )

    def _fitting(self, given: int | None) -> int:
        if given is None:
            width = self.default_bits
        else:
            fitting = (bits for bits in range(given, 2 * given) if self.width_bits % bits == 0)
            width = next(fitting, 2 * given)
        if width > self.width_bits:
            raise ValueError(
                f"{given or width} bits of metadata or payload do not fit in accesses of {self.width_bits} bits"
            )
        return width


class SparseMemory(Model):
    """Formats and savings of a memory for sparse tensors.

    Example:
        >>> from tilewright.plugin import SparseMemory
        >>> SparseMemory().is_active
        False
    """

    formats: FrozenDict[Name, TensorFormat] = FrozenDict()
    """Name or role of a tensor -> its format; a name takes precedence."""
    actions: tuple[Saving, ...] = Field(default=(), max_length=MAX_PARTS)
    """Accesses that the memory saves."""
    metadata: MetadataStorage = MetadataStorage()
    """Storage for metadata."""
    decompresses: bool = False
    """Whether it may expand a tensor that is compressed in the memory outside."""
    compresses: bool = False
    """Whether it may compress a result for the memory outside."""
    energies_pj: FrozenDict[SparseAction, Energy] = FrozenDict()
    """Energy of one action in pJ; missing ones take none."""

    @model_validator(mode="after")
    def _accesses_wide_enough(self) -> Self:
        for name, tensor_format in self.formats.items():
            for number, rank in enumerate(tensor_format.ranks):
                try:
                    self.metadata.bits_of(rank)
                except ValueError as error:
                    message = f"{error}; rank {number} of {name} needs a wider metadata.width_bits"
                    raise MisplacedError(message, "formats", name, "ranks", number) from None
        return self

    @cached_property
    def is_active(self) -> bool:
        """Whether it changes any count: a format or an action is present."""
        return bool(self.formats or self.actions)

    @property
    def names(self) -> tuple[str, ...]:
        """Names and roles of all tensors in formats and actions, each once."""
        return tuple(dict.fromkeys([*self.formats, *(name for action in self.actions for name in action.names)]))

    def format_of(self, tensor: Tensor) -> TensorFormat | None:
        """Return the format of a tensor, or None."""
        return self.formats.get(tensor.name, self.formats.get(tensor.role))

    def actions_on(self, tensors: Sequence[Tensor]) -> tuple[Saving, ...]:
        """Return the actions on tensors of a problem, with names instead of roles."""
        return tuple(saving for action in self.actions for saving in action.on(tensors))

    def energy_pj(self, action: SparseAction) -> float:
        """Return the energy of one action in pJ."""
        return self.energies_pj.get(action, 0.0)


class SparseCompute(Model):
    """Savings of compute units at zero operands: gated operations take their cycle, skipped ones do not.

    Example:
        >>> from tilewright.plugin import SparseCompute
        >>> SparseCompute(skip=True).is_active, SparseCompute().is_active
        (True, False)
    """

    gate: bool = False
    """Whether operations with a zero operand are gated."""
    skip: bool = False
    """Whether operations with an absent operand are skipped."""
    gated_pj: Energy = 0.0
    """Energy in pJ of one gated operation."""
    skipped_pj: Energy = 0.0
    """Energy in pJ of one skipped operation."""

    @property
    def is_active(self) -> bool:
        """Whether it changes any count."""
        return self.gate or self.skip
