"""Mapping batch: many mappings over one skeleton, as arrays of tile sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem, Tensor

Ints = NDArray[np.int64]
"""Array of int64."""
Positions = NDArray[np.int8]
Bools = NDArray[np.bool_]
"""Array of bool."""
Floats = NDArray[np.float64]
"""Array of float64."""


def tile_words(problem: Problem, tensor: Tensor, extents: Ints) -> Floats:
    """Return the words of the bounding boxes of tiles, as `Problem.tile_words` does for one: float64 [...].

    >>> from tilewright import load
    >>> product = load("nk,km->nm; n=8 k=8 m=8", kind="problem")
    >>> tile_words(product, product.output, np.array([[2, 8, 4], [1, 8, 8]]))
    array([8., 8.])

    Args:
        extents: Iterations of each dimension, in the problem's order, int64 [..., dimension]: `batch.temporal[:, entry]`.
    """
    sides = 1 + (extents - 1) @ problem.projection_matrix(tensor).T
    words: Floats = sides.prod(axis=-1, dtype=np.float64)
    return words


@dataclass(frozen=True, eq=False)
class MappingBatch:
    """`n` mappings over one skeleton, with entries outermost first.

    Dimensions and tensors are in the problem's order.

    Attributes:
        temporal, spatial: Tile sizes, int64 [n, entry, dimension].
        order: Dimension indices, outermost first, int8 [n, entry, position].
        keep: Kept tensors, bool [n, entry, tensor]. False for entries without storage.
        spatial_order: Like `order`, for spatial loops. None: the problem's order.
        unicast: Tensors sent by unicast, bool [n, entry, tensor]. None: no tensor.
        stated: Entries that state the problem's order as their spatial order, bool [n, entry]. None: no entry.
            Timeloop places loops of one trip by an order that is stated, and outside the others if none is.

    Example:
        >>> import tilewright as tw
        >>> import numpy as np
        >>> space = tw.space("nk,km->nm; n=2 k=3 m=4", "eyeriss")
        >>> batch = space.sample(np.random.default_rng(0), 4).batch()
        >>> len(batch), batch.temporal.shape == batch.spatial.shape
        (4, True)
    """

    problem: Problem
    skeleton: Skeleton
    temporal: Ints
    spatial: Ints
    order: Positions
    keep: Bools
    spatial_order: Positions | None = None
    unicast: Bools | None = None
    stated: Bools | None = None

    def __post_init__(self) -> None:
        n, entries = len(self.temporal), len(self.skeleton)
        dims, tensors = len(self.problem.dimensions), len(self.problem.tensors)
        for name, kind, shape in (
            ("temporal", np.int64, (n, entries, dims)),
            ("spatial", np.int64, (n, entries, dims)),
            ("order", np.int8, (n, entries, dims)),
            ("keep", np.bool_, (n, entries, tensors)),
            ("spatial_order", np.int8, (n, entries, dims)),
            ("unicast", np.bool_, (n, entries, tensors)),
            ("stated", np.bool_, (n, entries)),
        ):
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != shape or array.dtype != kind:
                raise ValueError(
                    f"{name} has shape {array.shape} and type {array.dtype}; expected {shape} and {np.dtype(kind)}"
                )
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def __len__(self) -> int:
        return len(self.temporal)

    @classmethod
    def pack(cls, problem: Problem, mappings: Sequence[Mapping]) -> MappingBatch:
        """Return a batch of mappings that share a skeleton and the problem's dimensions and tensors.

        Raises:
            ValueError: The list is empty, or skeletons, dimensions or tensors differ.
        """
        if not mappings:
            raise ValueError("cannot pack an empty list: the skeleton is unknown")
        skeleton = Skeleton.of(mappings[0])
        if any(Skeleton.of(mapping) != skeleton for mapping in mappings):
            raise ValueError("mappings of one batch must target the same clusters with the same entries")
        names, tensors = problem.dimension_names, problem.tensor_names
        if any(set(mapping.dimension_names) != set(names) for mapping in mappings):
            raise ValueError("a mapping has other dimensions than the problem")
        named = {
            name for mapping in mappings for entry in mapping.entries for name in (*(entry.keep or ()), *entry.unicast)
        }
        if not named <= set(tensors):
            raise ValueError(
                f"a mapping names tensors that the problem lacks:  {', '.join(sorted(named - set(tensors)))}"
            )
        number = {name: index for index, name in enumerate(names)}

        def orders(entry: Entry, spatial: bool) -> list[int]:
            chosen = (entry.spatial_order or names) if spatial else entry.temporal_order
            return [number[name] for name in chosen]

        rows = [mapping.entries for mapping in mappings]
        stated = np.array([[e.spatial_order == names for e in row] for row in rows], dtype=np.bool_)
        return cls(
            problem,
            skeleton,
            np.array([[[e.temporal_tile_sizes[d] for d in names] for e in row] for row in rows], dtype=np.int64),
            np.array([[[e.spatial_tile_sizes[d] for d in names] for e in row] for row in rows], dtype=np.int64),
            np.array([[orders(e, False) for e in row] for row in rows], dtype=np.int8),
            np.array([[[t in (e.keep or ()) for t in tensors] for e in row] for row in rows], dtype=np.bool_),
            np.array([[orders(e, True) for e in row] for row in rows], dtype=np.int8),
            np.array([[[t in e.unicast for t in tensors] for e in row] for row in rows], dtype=np.bool_),
            stated if stated.any() else None,
        )

    def __getitem__(self, index: int) -> Mapping:
        """Return one mapping as an object."""
        names, tensors = self.problem.dimension_names, self.problem.tensor_names
        entries = []
        for e, slot in enumerate(self.skeleton.entries):
            sent = (
                ()
                if self.unicast is None
                else tuple(t for t, on in zip(tensors, self.unicast[index, e], strict=True) if on)
            )
            placed = names if self.spatial_order is None else tuple(names[d] for d in self.spatial_order[index, e])
            stated = self.stated is not None and bool(self.stated[index, e])
            entries.append(
                Entry(
                    target=slot.target,
                    keep=tuple(t for t, on in zip(tensors, self.keep[index, e], strict=True) if on)
                    if slot.holds
                    else None,
                    temporal_order=tuple(names[d] for d in self.order[index, e]),
                    temporal_tile_sizes=FrozenDict(dict(zip(names, self.temporal[index, e].tolist(), strict=True))),
                    spatial_tile_sizes=FrozenDict(dict(zip(names, self.spatial[index, e].tolist(), strict=True))),
                    spatial_order=placed if stated or placed != names else None,
                    unicast=sent,
                )
            )
        return Mapping(entries=tuple(entries))

    def __iter__(self) -> Iterator[Mapping]:
        return (self[index] for index in range(len(self)))

    def take(self, index: Ints | Bools | slice) -> MappingBatch:
        """Return the mappings that an index array, a mask or a slice selects."""
        return MappingBatch(
            self.problem,
            self.skeleton,
            self.temporal[index],
            self.spatial[index],
            self.order[index],
            self.keep[index],
            None if self.spatial_order is None else self.spatial_order[index],
            None if self.unicast is None else self.unicast[index],
            None if self.stated is None else self.stated[index],
        )

    @classmethod
    def join(cls, batches: Sequence[MappingBatch]) -> MappingBatch:
        """Concatenate batches over the same problem and skeleton.

        Either all of them or none have a `spatial_order`, and likewise `unicast`.
        """
        if len(batches) == 1:
            return batches[0]
        first = batches[0]
        return cls(
            first.problem,
            first.skeleton,
            np.concatenate([batch.temporal for batch in batches]),
            np.concatenate([batch.spatial for batch in batches]),
            np.concatenate([batch.order for batch in batches]),
            np.concatenate([batch.keep for batch in batches]),
            None if first.spatial_order is None else np.concatenate([batch.spatial_order for batch in batches]),
            None if first.unicast is None else np.concatenate([batch.unicast for batch in batches]),
            None
            if all(batch.stated is None for batch in batches)
            else np.concatenate(
                [
                    np.zeros(batch.keep.shape[:2], np.bool_) if batch.stated is None else batch.stated
                    for batch in batches
                ]
            ),
        )

    @cached_property
    def incoming(self) -> Ints:
        """Tile that each entry receives, [n, entry, dimension].

        The first entry receives the whole problem. Every other entry receives the spatial tile of the entry before it.
        """
        whole = np.broadcast_to(np.array(self.problem.sizes, dtype=np.int64), (len(self), 1, len(self.problem.sizes)))
        return np.concatenate([whole, self.spatial[:, :-1]], axis=1)
