"""Loop nests of a batch, told apart; each kind is turned into directives once, as tables that say where numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import Bools, Ints, MappingBatch
from tilewright.notations.directives import DirectiveLayer, Map
from tilewright.notations.directives.completion import filled, inherited
from tilewright.notations.directives.plan import Plan
from tilewright.notations.directives.roles import Roles
from tilewright.notations.directives.shape import LevelShape, NestLoop, shape_of
from tilewright.notations.directives.translation import MAX_LEVELS

NOWHERE = -1
MOST_KINDS = 20_000
"""Kinds of nests that are remembered."""


@dataclass(frozen=True)
class Nest:
    """One kind of nest. Slots number an entry and a dimension; letters are rows, in the order of the layer's.

    Attributes:
        levels: how many.
        own: [level, letter] the user's mapping has a directive; else it is MAESTRO's.
        tile: [level, letter] slot of the tile, those in space after those in time; NOWHERE: the whole dimension.
        position: [level, letter] place in the loop order.
        split: [level] the letter of the first SpatialMap.
        pair: [level] that of a second one, on a diagonal with the first; NOWHERE: there is none.
        clusters: [level] slot of the loop in space; NOWHERE: one sub-cluster.
        folded: [level] whether that loop must divide the tile it is cut from.
        last: the innermost entry that holds in L1.
    """

    levels: int
    own: Bools
    tile: Ints
    position: Ints
    split: Ints
    pair: Ints
    clusters: Ints
    folded: Bools
    last: int


class Nests:
    """Kinds of nests met so far, for one problem and plan."""

    def __init__(self, layer: DirectiveLayer, roles: Roles, plan: Plan, letters: Sequence[str]) -> None:
        self.layer, self.roles, self.plan = layer, roles, plan
        self.letters = {letter: index for index, letter in enumerate(letters)}
        self._known: dict[tuple[object, ...], Nest | None] = {}

    def sort(self, batch: MappingBatch, temporal: Ints, spatial: Ints) -> list[tuple[Nest, Ints]]:
        """(kind, rows of the batch); rows that MAESTRO has no directives for are left out.

        Args:
            temporal, spatial: trips [n, entry, dimension].
        """
        rows = np.flatnonzero(self._filters_whole(batch, temporal))
        if not len(rows):
            return []
        if len(rows) < len(batch):
            batch, temporal, spatial = batch.take(rows), temporal[rows], spatial[rows]
        if len(self._known) > MOST_KINDS:
            self._known.clear()
        codes = _codes(batch, temporal, spatial, self._inner(batch))
        _, first, kind = np.unique(_numbered(list(codes.values())), return_index=True, return_inverse=True)
        parts = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
        skeleton = tuple((entry.target, entry.holds) for entry in batch.skeleton.entries)
        found = []
        for row, part in zip(first.tolist(), parts, strict=True):
            key = (skeleton, *((name, int(code[row])) for name, code in codes.items() if code[row]))
            if key not in self._known:
                self._known[key] = self._nest(batch, row, temporal[row] > 1, spatial[row] > 1)
            nest = self._known[key]
            if nest is not None:
                found.append((nest, rows[part]))
        return found

    def _filters_whole(self, batch: MappingBatch, temporal: Ints) -> Bools:
        """Whether no filter is cut in time outside L1 [n]: most of what has no directives, told without looking at loops."""
        names = batch.problem.dimension_names
        cut = [d for d, name in enumerate(names) if self.roles.is_window(self.roles.letters[name])]
        last = np.zeros(len(batch), dtype=np.int64)
        for entry in self._inner(batch):
            last[batch.keep[:, entry].any(axis=1)] = entry
        entries = np.arange(temporal.shape[1])
        steps = (temporal[:, :, cut] > 1).any(axis=2) & (entries <= last[:, None])
        return np.asarray(~steps.any(axis=1))

    def _inner(self, batch: MappingBatch) -> list[int]:
        """Entries that may hold in L1."""
        entries = enumerate(batch.skeleton.entries)
        return [index for index, entry in entries if entry.holds and entry.target == self.plan.l1.name]

    def _nest(self, batch: MappingBatch, row: int, steps: Bools, splits: Bools) -> Nest | None:
        holding = [entry for entry in self._inner(batch) if batch.keep[row, entry].any()]
        first, last = holding[0], holding[-1]
        loops: list[tuple[int, int, bool]] = []
        for entry in range(last + 1):
            loops += [(entry, d, False) for d in batch.order[row, entry].tolist() if steps[entry, d]]
            if entry < last:
                loops += [(entry, d, True) for d in _placed(batch, row, entry) if splits[entry, d]]
        if any(first < entry <= last for entry, *_ in loops):
            return None
        names = batch.problem.dimension_names
        nest = [NestLoop(self.roles.letters[names[d]], spatial) for _, d, spatial in loops]
        try:
            shapes = shape_of(nest, self.roles)
        except NotConformableError:
            return None
        return None if len(shapes) > MAX_LEVELS else self._tables(shapes, loops, steps.shape, last)

    def _tables(
        self, shapes: Sequence[LevelShape], loops: list[tuple[int, int, bool]], shape: tuple[int, ...], last: int
    ) -> Nest:
        entries, dimensions = shape
        slots = [entry * dimensions + d + (entries * dimensions if spatial else 0) for entry, d, spatial in loops]
        count, letters = len(shapes), len(self.letters)
        own = np.zeros((count, letters), dtype=np.bool_)
        tile, position = np.full((count, letters), NOWHERE), np.zeros((count, letters), dtype=np.int64)
        latest: dict[str, int] = {}
        outer: tuple[Map, ...] = ()
        for level, shape_ in enumerate(shapes):
            latest |= {letter: slots[index] for letter, index in shape_.tiles.items()}
            own[level, [self.letters[letter] for letter in shape_.order]] = True
            tile[level] = [latest.get(letter, NOWHERE) for letter in self.letters]
            outer = self._order(shape_, outer)
            for place, each in enumerate(outer):
                position[level, self.letters[each.dimension]] = place
        spread = [NOWHERE if s.clusters is None else slots[s.clusters] - entries * dimensions for s in shapes]
        return Nest(
            levels=count,
            own=own,
            tile=tile,
            position=position,
            split=np.array([self.letters[each.diagonal or each.split] for each in shapes]),
            pair=np.array([self.letters[each.split] if each.diagonal else NOWHERE for each in shapes]),
            clusters=np.array(spread),
            folded=np.array([each.folded is not None or each.diagonal is not None for each in shapes]),
            last=last,
        )

    def _order(self, shape: LevelShape, outer: tuple[Map, ...]) -> tuple[Map, ...]:
        """The complete list of a level, sizes aside."""
        maps = tuple(Map(spatial=letter == shape.split, size=1, offset=1, dimension=letter) for letter in shape.order)
        return filled(inherited(maps, outer), self.layer, dict.fromkeys(self.letters, 1))


def _placed(batch: MappingBatch, row: int, entry: int) -> list[int]:
    if batch.spatial_order is None:
        return list(range(batch.spatial.shape[2]))
    found: list[int] = batch.spatial_order[row, entry].tolist()
    return found


def _codes(batch: MappingBatch, temporal: Ints, spatial: Ints, inner: Sequence[int]) -> dict[int, Ints]:
    """Numbers [n] that together say which loops there are, in which order, and which entries hold in L1; each under
    a number of its own, and 0 where there is nothing to say."""
    codes: dict[int, Ints] = {
        NOWHERE - entry: np.asarray(batch.keep[:, entry].any(axis=1), dtype=np.int64) for entry in inner
    }
    natural = np.broadcast_to(np.arange(temporal.shape[2], dtype=np.int8), batch.order[:, 0].shape)
    for entry in range(inner[-1] + 1):
        placed = natural if batch.spatial_order is None else batch.spatial_order[:, entry]
        for kind, trips, order in ((0, temporal[:, entry], batch.order[:, entry]), (1, spatial[:, entry], placed)):
            moving = trips > 1
            if moving.any():
                codes[2 * entry + kind] = _sequence(moving, order)
    return codes


def _sequence(moving: Bools, order: NDArray[np.int8]) -> Ints:
    """A number [n] for the dimensions that move, in their order."""
    code = np.zeros(len(order), dtype=np.int64)
    base, rows = order.shape[1] + 1, np.arange(len(order))
    for place in range(order.shape[1]):
        dimension = order[:, place]
        code = np.where(moving[rows, dimension], code * base + dimension + 1, code)
    return code


def _numbered(codes: Sequence[Ints]) -> Ints:
    """One number per row, equal where all codes are."""
    number = np.zeros(len(codes[0]), dtype=np.int64)
    for code in codes:
        values, index = np.unique(code, return_inverse=True)
        if len(values) > 1:
            _, number = np.unique(number * len(values) + index, return_inverse=True)
    return number
