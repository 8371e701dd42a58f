"""Minimum energy of the transfers between outer memories, by the shape of the tile (Lemma 12)."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.counting import prime_powers
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.limits import Limits
from tilewright.plugin import Relaxation
from tilewright_mappers.optimal.kernel.tables import Shape

MOST = 1 << 18
"""Maximum number of shapes in a table."""
SHARED = 1 << 21
"""Maximum number of shapes times multicast factors; above it the table does not distinguish factors."""
BUDGETS = 16
"""Approximate number of fanout sizes at which the rest of a fanout is evaluated."""
LOOPS, KEPT, UNROLLED = range(3)
"""Boundaries at an entry, outermost first: inside its temporal loops, its storage, its fanout."""
Link = tuple[int, int]
"""Consecutive entries that keep a tensor."""
Layers = dict[int, Floats]
"""Energy arrays by the set of stationary tensors. Axes: multicast factor, then one per dimension."""


class Setup(Protocol):
    """Attributes of a search instance that the tables need."""

    space: Limits
    relaxation: Relaxation
    shape: Shape
    tensors: int
    dims: int
    levels: list[tuple[list[int], list[int]]]
    words: Floats
    slices: Floats
    most: Ints
    able: Bools
    always: Bools
    free: Bools


class Table(NamedTuple):
    """Table of one boundary."""

    energy: Floats
    """[K, R, C]: pJ by multicast factor, set of stationary tensors, and shape code."""
    share: Floats
    """[K]: multicast factors of the tensor `direct`."""
    direct: int
    """Tensor fed to units across a fanout, whose multicast factor is distinguished; -1 if none."""
    row: Ints
    """[T]: weight of a stationary tensor in the row index; 0 if its transfers are excluded."""


class Outer:
    """Tables of the minimum energy of outer transfers, computed from the outermost boundary inwards.

    A tensor is stationary in a memory until a relevant loop moves it. Every irrelevant loop outside
    that one repeats the transfer, as far as unrollings in between do not multicast it. So a
    shortest path over shapes, by prime trips and subject to capacity, gives the minimum over all
    tensors. Transfers with an unrolled window or an optional entry in between are excluded.

    A sub-cluster that multicasts one tensor does not multicast another. So inside one fanout the
    table distinguishes the multicast factor of a tensor that is fed to the units from outside.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup, self.dims = setup, setup.dims
        self.split: list[int] = []
        self.direct, self.share, self.along = -1, np.ones(1), np.zeros(self.dims, np.bool_)
        lefts = [row[row > 0] for row in setup.shape.left]
        self.count = [len(row) for row in lefts]
        self.links = {t: self._links(t) for t in range(setup.tensors)}
        self.tables: dict[tuple[int, int], Table] = {}
        if setup.shape.ragged or math.prod(self.count) > MOST or not any(self.links.values()):
            self.links = {}
            return
        self.one = np.ones([1] * (self.dims + 1))
        self.left = [
            row.reshape([1] + [-1 if e == d else 1 for e in range(self.dims)]) * 1.0 for d, row in enumerate(lefts)
        ]
        self.after = [
            [[(p, int(np.searchsorted(-row, -(n // p)))) for p, _ in prime_powers(int(n))] for n in row]
            for row in lefts
        ]
        """By dimension and index in `Shape.left`: (prime trips, index after such a loop)."""
        self._measure()
        for place, layers in self._places():
            some = sorted({t for mask in layers for t in range(setup.tensors) if mask >> t & 1})
            rows = [layers[sum(1 << t for k, t in enumerate(some) if r >> k & 1)] for r in range(1 << len(some))]
            row = np.zeros(setup.tensors, np.int64)
            row[some] = [1 << k for k in range(len(some))]
            energy = np.stack([[each.ravel(order="F") for each in shares] for shares in zip(*rows, strict=True)])
            self.tables[place] = Table(energy, self.share, self.direct, row)

    def each(self) -> Iterator[tuple[int, Link]]:
        """Yield (tensor, link) of all links in the tables."""
        return ((t, link) for t, links in self.links.items() for link in links)

    def once_pj(self, t: int, link: Link) -> float:
        """Return pJ per value transferred once over a link. The first values of outputs are not read."""
        read, update, fill = self._prices(t, link)
        return update if self.setup.shape.output[t] else read + fill

    def enters_pj(self, t: int, link: Link) -> float:
        """Return pJ per value written into the inner memory of a link."""
        return self._prices(t, link)[2]

    def _links(self, t: int) -> list[Link]:
        """Return the links of a tensor that have no optional entry and no unrolled window in between."""
        setup, shape = self.setup, self.setup.shape
        places = range(shape.start[t], shape.start[t + 1])
        often = [int(shape.dimension[p]) for p in places]
        wide = [d for d in often if shape.rank[t, d] >= 0 or often.count(d) > 1]
        wide += [int(shape.dimension[p]) for p in places if shape.factor[p] > 1]
        kept = [e for e in range(len(setup.always)) if setup.always[e, t] or setup.free[e, t]]
        result = []
        for link in itertools.pairwise(kept):
            slots = [s for s in setup.space.spatial_slots if link[0] <= setup.space.slots[s].entry < link[1]]
            if setup.always[list(link), t].all() and not (shape.odd[t] or setup.able[slots][:, wide].any()):
                result.append(link)
        return result

    def _measure(self) -> None:
        """Compute arrays over all shapes, per tensor.

        These are the words of a tile, of all tiles and of their union, the tiles along irrelevant
        dimensions, and the fraction of words if one window slides.
        """
        shape, sizes = self.setup.shape, self.setup.shape.sizes
        self.words, self.brought, self.covered, self.again = ([self.one] * self.setup.tensors for _ in range(4))
        self.slid: dict[tuple[int, int], Floats] = {}
        for t in range(self.setup.tensors):
            side, loops, place = self.one, self.one, np.zeros([1] * (self.dims + 1), np.int64)
            for p in range(shape.start[t], shape.start[t + 1]):
                d, c = int(shape.dimension[p]), int(shape.factor[p])
                side, loops = side + c * (sizes[d] / self.left[d] - 1.0), loops * self.left[d]
                place = place + np.arange(self.count[d]).reshape(self.left[d].shape) * shape.step[p]
                if shape.last[p]:
                    values = shape.covered[shape.first[p] + place]
                    self.words[t], self.covered[t] = self.words[t] * side, self.covered[t] * values
                    for e in range(self.dims):
                        if shape.rank[t, e] >= 0 and shape.rank[t, e] == shape.rank[t, d]:
                            self.slid[t, e] = np.minimum(1.0, values / (side * loops))
                    side, loops, place = self.one, self.one, 0 * place[(slice(1),) * place.ndim]
            self.brought[t] = self.words[t]
            for d in range(self.dims):
                if shape.moves[t, d]:
                    self.brought[t] = self.brought[t] * self.left[d]
                else:
                    self.again[t] = self.again[t] * self.left[d]

    def _places(self) -> Iterator[tuple[tuple[int, int], Layers]]:
        """Yield every boundary and its energies, from the outermost inwards."""
        setup, space = self.setup, self.setup.space
        slot = {(each.entry, each.spatial): number for number, each in enumerate(space.slots)}
        fanouts = {spatial[0]: spatial for _, spatial in setup.levels if spatial}
        live = {t: links[0] for t, links in self.links.items() if links and links[0][0] == 0}
        layers: Layers = {}
        for mask in _sets(live):
            layers[mask] = np.full([1, *self.count], np.inf)
            whole = (0, *[-1] * self.dims)
            layers[mask][whole] = sum(self.once_pj(t, live[t]) * self.covered[t][whole] for t in live if mask >> t & 1)
        for e in range(1, len(space.skeleton.entries)):
            if (e, False) in slot:
                layers = self._loops(layers, live, e, slot[e, False])
            yield (e, LOOPS), layers
            if space.skeleton.entries[e].holds:
                layers, live = self._keep(layers, live, e)
            yield (e, KEPT), layers
            spatial = fanouts.get(slot.get((e, True), -1), [])
            if spatial:  # all spatial slots of a level together
                layers = self._unroll(layers, live, e, spatial)
            yield (e, UNROLLED), layers

    def _loops(self, layers: Layers, live: dict[int, Link], e: int, slot: int) -> Layers:
        able = [d for d in range(self.dims) if self.setup.able[slot, d]]
        moves = self.setup.shape.moves
        cost = {(t, d): self._cost(t, live[t], e, d) for t in live for d in able if moves[t, d]}
        result: Layers = {}
        for mask in _sets(live):  # smaller sets first
            result[mask] = row = layers[mask].copy()
            for d in able:
                moved = [t for t in live if mask >> t & 1 and moves[t, d]]
                if moved:
                    best = np.full_like(row, np.inf)
                    self._take(best, result[mask & ~sum(1 << t for t in moved)], d)
                    best += sum(cost[t, d] for t in moved)
                    np.minimum(row, best, out=row)
            for d in able:
                if not any(mask >> t & 1 and moves[t, d] for t in live):
                    self._take(row, row, d)
        return result

    def _keep(self, layers: Layers, live: dict[int, Link], e: int) -> tuple[Layers, dict[int, Link]]:
        """Apply capacity at a storage entry, and add one transfer per tensor stationary inside."""
        setup, fits = self.setup, np.ones([1] * self.dims, np.bool_)
        kept = [t for t in range(setup.tensors) if setup.always[e, t]]
        for m, memory in enumerate(setup.space.architecture.memories):
            used = [self.words[t] * setup.slices[m, t] for t in kept if setup.relaxation.memory[e, t] == m]
            fits = fits & np.asarray(sum(used, 0.0 * self.one) <= memory.usable_slices)
        inside = {t: link for t, link in live.items() if t not in kept}
        inside |= {t: link for t in kept for link in self.links[t] if link[0] == e}
        both = sum(1 << t for t in kept)
        outside = sum(1 << t for t in kept if t in live)
        result = {}
        for mask in _sets(inside):
            more = sum(self.once_pj(t, inside[t]) * self.covered[t] for t in kept if mask >> t & 1)
            result[mask] = np.where(fits, layers[mask & ~both | outside] + more, np.inf)
        return result, inside

    def _unroll(self, layers: Layers, live: dict[int, Link], e: int, spatial: list[int]) -> Layers:
        """Apply the unrollings of a level; stationary tiles have to fit all sub-clusters together."""
        able = [int(d) for d in np.flatnonzero(self.setup.able[spatial].any(axis=0))]
        layers = {mask: np.where(self._has_room(mask, live, e), row, np.inf) for mask, row in layers.items()}
        if self.direct >= 0:  # an outer fanout is distinguished already
            for row in layers.values():
                for d in able:
                    self._take(row, row, d)
            return layers
        size = math.prod(int(self.setup.most[s]) for s in spatial)
        self.direct = self._direct(e, spatial, able)
        along = [d for d in able if self.direct >= 0 and not self.setup.shape.moves[self.direct, d]]
        ways = self.ways(along, size)
        if math.prod(self.count) * len(ways) > SHARED:
            self.direct, along, ways = -1, [], {1: [()]}
        across = [d for d in able if d not in along]
        self.split = spatial if along else []
        self.along[along] = True
        self.share = np.array(sorted(ways), np.float64)
        sizes = sorted(self.ways(across, size))
        some = _some(sizes)
        result = {}
        for mask, row in layers.items():
            filled = self._fill(row, across, sizes, some)
            shares = np.full((len(ways), *self.count), np.inf)
            for k, share in enumerate(sorted(ways)):
                within = filled[_place(size // share, sizes, some)]
                for trips in ways[share]:
                    np.minimum(shares[k], self._after(within, along, trips), out=shares[k])
            result[mask] = shares
        return result

    def _has_room(self, mask: int, live: dict[int, Link], e: int) -> Bools:
        setup, fits = self.setup, np.ones([1] * (self.dims + 1), np.bool_)
        for t, (_, inner) in live.items():
            if mask >> t & 1:
                m = setup.relaxation.memory[inner, t]
                usable = setup.space.architecture.memories[m].usable_slices * self._instances(e, inner)
                fits = fits & np.asarray(self.words[t] * setup.slices[m, t] <= usable)
        return fits

    def _direct(self, e: int, spatial: list[int], able: list[int]) -> int:
        """Return the tensor of most energy that is fed to the units and may be multicast; -1 if none."""
        setup, best, most = self.setup, -1, 0.0
        entries = [setup.space.slots[s].entry for s in spatial]
        for t in range(setup.tensors):
            kept = setup.always[:, t] | setup.free[:, t]
            along = [d for d in able if not setup.shape.moves[t, d]]
            if kept[e + 1 :].any() or setup.shape.odd[t] or not along or not setup.relaxation.shared[entries, t].all():
                continue
            outer = int(np.flatnonzero(kept)[-1])
            read = float(setup.relaxation.read_pj[setup.relaxation.memory[outer, t]])
            if read > most:
                best, most = t, read
        return best

    def across(self, table: Table, apart: Bools, slots: Ints) -> Floats:
        """Return [K]: further multicast along windows, per multicast factor of the table.

        Tiles differ along the longest unrolling of each window (Lemma 8).
        """
        if table.direct < 0:
            return np.ones(1)
        split, rank = self.split, self.setup.shape.rank[table.direct]
        size = math.prod(int(self.setup.most[s]) for s in split)
        if slots[split[0]] >= 0 or not apart[table.direct, split].any():
            return np.asarray(size / table.share)
        windows = [int(d) for d in np.flatnonzero(rank >= 0) if self.setup.able[split, d].any()]
        shared = np.zeros(size + 1)
        for used, ways in self.ways(windows, size).items():
            for trips in ways:
                longest = {rank[d]: 1 for d in windows}
                for d, n in zip(windows, trips, strict=True):
                    longest[rank[d]] = max(longest[rank[d]], n)
                shared[used] = max(shared[used], used / math.prod(longest.values()))
        return np.asarray(np.maximum.accumulate(shared)[size // table.share.astype(np.int64)])

    def ways(self, dims: list[int], size: int) -> dict[int, list[tuple[int, ...]]]:
        """Return the unrollings over some dimensions, by the number of sub-clusters that they use."""
        result: dict[int, list[tuple[int, ...]]] = {1: [()]}
        for d in dims:
            more: dict[int, list[tuple[int, ...]]] = {}
            for used, ways in result.items():
                for n in divisors(int(self.setup.shape.sizes[d])):
                    if used * n <= size:
                        more.setdefault(used * n, []).extend((*way, n) for way in ways)
            result = more
        return result

    def _fill(self, row: Floats, dims: list[int], sizes: list[int], some: list[int]) -> Floats:
        """Return the energies after unrollings over some dimensions, for some fanout sizes [B, ...]."""
        result = np.repeat(row, len(some), axis=0)
        for d in dims:
            view = np.moveaxis(result, d + 1, 0)
            for i in range(len(view) - 1, -1, -1):
                for p, j in self.after[d][i]:
                    first = bisect_left(some, p)
                    rest = [_place(size // p, sizes, some) for size in some[first:]]
                    if rest:
                        np.minimum(view[i, first:], view[j, rest], out=view[i, first:])
        return result

    def _after(self, row: Floats, dims: list[int], trips: tuple[int, ...]) -> Floats:
        """Return the energy of each shape after given trips; inf where they do not divide it."""
        for d, n in zip(dims, trips, strict=True):
            left = self.left[d].ravel()
            some = np.flatnonzero(left % n == 0)
            after = np.full_like(row, np.inf)
            np.moveaxis(after, d, 0)[some] = np.moveaxis(row, d, 0)[np.searchsorted(-left, -left[some] // n)]
            row = after
        return row

    def _take(self, row: Floats, after: Floats, d: int) -> None:
        """Lower the energy of each shape to the minimum after a prime loop over d."""
        row, after = np.moveaxis(row, d + 1, 0), np.moveaxis(after, d + 1, 0)
        for i in range(len(row) - 1, -1, -1):
            for _, j in self.after[d][i]:
                np.minimum(row[i : i + 1], after[j : j + 1], out=row[i : i + 1])

    def _cost(self, t: int, link: Link, e: int, d: int) -> Floats:
        """Return the energy of a link by shape, if a loop over d at entry e first moves the tensor."""
        read, update, fill = self._prices(t, link)
        brought = self.brought[t] * self.slid.get((t, d), self.one)
        words = brought * np.maximum(1.0, self.again[t] / self._serving(t, link[0], e))
        filled = brought * self.again[t]
        if not self.setup.shape.output[t]:
            return np.asarray(words * read + filled * fill)
        # first values are not read, one per copy of the output
        first, entered = (self.setup.shape.whole[t] * self._instances(0, inner) for inner in (link[0], e))
        again = np.maximum(0.0, words - first) * read + np.maximum(0.0, filled - entered) * fill
        return np.asarray(words * update + again)

    def _prices(self, t: int, link: Link) -> tuple[float, float, float]:
        """Return pJ per value: read from the outer memory, updated there, written into the inner one."""
        relaxation, words = self.setup.relaxation, self.setup.words[:, t]
        outer, inner = relaxation.memory[list(link), t]
        read, update = relaxation.read_pj[outer] * words[outer], relaxation.update_pj[outer] * words[outer]
        return float(read), float(update), float(relaxation.fill_pj[inner] * words[inner])

    def _serving(self, t: int, first: int, last: int) -> Floats:
        """Return deliveries per word: instances over the multicast factor.

        The fanouts are those of the entries from `first` to before `last`.
        """
        setup, shares = self.setup, np.ones(1)
        if (
            any(first <= setup.space.slots[s].entry < last for s in self.split)
            and not (self.along & ~setup.shape.moves[t]).any()
        ):
            shares = self.share
        return np.asarray(self._instances(first, last) / shares).reshape([-1] + [1] * self.dims)

    def _instances(self, first: int, last: int) -> float:
        """Return the maximum sub-clusters in the fanouts of entries from `first` to before `last`."""
        setup = self.setup
        slots = [s for s in setup.space.spatial_slots if first <= setup.space.slots[s].entry < last]
        return float(math.prod(int(setup.most[s]) for s in slots))


def _some(sizes: list[int]) -> list[int]:
    """Return about `BUDGETS` of the sizes, including the largest."""
    aims = np.geomspace(1, sizes[-1], BUDGETS)
    return sorted({sizes[bisect_left(sizes, aim * (1 - 1e-9))] for aim in aims})


def _place(size: int, sizes: list[int], some: list[int]) -> int:
    """Return the index among `some` of the smallest size that contains all uses of a fanout of `size`."""
    return bisect_left(some, sizes[bisect_right(sizes, size) - 1])


def _sets(tensors: Iterable[int]) -> Iterator[int]:
    """Yield all sets of tensors as bits, smaller ones first."""
    some = sorted(tensors)
    for count in range(len(some) + 1):
        for chosen in itertools.combinations(some, count):
            yield sum(1 << t for t in chosen)
