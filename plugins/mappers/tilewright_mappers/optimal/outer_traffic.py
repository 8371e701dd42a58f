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
from tilewright.mapspace.feasible_region import FeasibleRegion
from tilewright.plugin import Relaxation
from tilewright_mappers.optimal.kernel.structures import ProblemArrays

MAX_SHAPES = 1 << 18
"""Maximum number of shapes in a table."""
MAX_TABLE = 1 << 21
"""Maximum number of shapes times multicast factors; above it the table does not distinguish factors."""
FANOUT_SIZES = 16
"""Approximate number of fanout sizes at which the rest of a fanout is evaluated."""
LOOPS, KEPT, UNROLLED = range(3)
"""Boundaries at an entry, outermost first: inside its temporal loops, its storage, its fanout."""
StoragePair = tuple[int, int]
"""Two consecutive storage entries of a tensor."""
EnergyByStationarySet = dict[int, Floats]
"""Energy arrays by the set of stationary tensors. Axes: multicast factor, then one per dimension."""


class InstanceArrays(Protocol):
    """Attributes of a search instance that the tables need."""

    space: FeasibleRegion
    relaxation: Relaxation
    problem: ProblemArrays
    tensors: int
    dims: int
    levels: list[tuple[list[int], list[int]]]
    words: Floats
    slices: Floats
    distinct: Bools
    max_used: Ints
    open_trips: Bools
    always: Bools
    optional: Bools


class Table(NamedTuple):
    """Table of one boundary."""

    energy: Floats
    """[K, R, C]: pJ by multicast factor, set of stationary tensors, and shape code."""
    multicast_factors: Floats
    """[K]: multicast factors of the tensor `multicast_tensor`."""
    multicast_tensor: int
    """Tensor fed to units across a fanout, whose multicast factor is distinguished; -1 if none."""
    row_weight: Ints
    """[T]: weight of a stationary tensor in the row index; 0 if its transfers are excluded."""


class OuterTraffic:
    """Tables of the minimum energy of outer transfers, computed from the outermost boundary inwards.

    A tensor is stationary in a memory until a relevant loop moves it. Every irrelevant loop outside
    that one repeats the transfer, as far as unrollings in between do not multicast it. So a
    shortest path over shapes, by prime trips and subject to capacity, gives the minimum over all
    tensors. Transfers with an unrolled window or an optional entry in between are excluded.

    A sub-cluster that multicasts one tensor does not multicast another. So inside one fanout the
    table distinguishes the multicast factor of a tensor that is fed to the units from outside.
    """

    def __init__(self, instance: InstanceArrays) -> None:
        self.instance, self.dims = instance, instance.dims
        self.multicast_slots: list[int] = []
        self.multicast_tensor, self.multicast_factors, self.along = -1, np.ones(1), np.zeros(self.dims, np.bool_)
        counts = [row[row > 0] for row in instance.problem.tile_count]
        self.count = [len(row) for row in counts]
        self.pairs = {t: self._pairs(t) for t in range(instance.tensors)}
        self.tables: dict[tuple[int, int], Table] = {}
        if instance.problem.ragged or math.prod(self.count) > MAX_SHAPES or not any(self.pairs.values()):
            self.pairs = {}
            return
        self.one = np.ones([1] * (self.dims + 1))
        self.tile_count = [
            row.reshape([1] + [-1 if e == d else 1 for e in range(self.dims)]) * 1.0 for d, row in enumerate(counts)
        ]
        self.after = [
            [[(p, int(np.searchsorted(-row, -(n // p)))) for p, _ in prime_powers(int(n))] for n in row]
            for row in counts
        ]
        """By dimension and index in `ProblemArrays.tile_count`: (prime trips, index after such a loop)."""
        self._measure()
        for place, layers in self._places():
            some = sorted({t for mask in layers for t in range(instance.tensors) if mask >> t & 1})
            rows = [layers[sum(1 << t for k, t in enumerate(some) if r >> k & 1)] for r in range(1 << len(some))]
            row = np.zeros(instance.tensors, np.int64)
            row[some] = [1 << k for k in range(len(some))]
            energy = np.stack([[share.ravel(order="F") for share in shares] for shares in zip(*rows, strict=True)])
            self.tables[place] = Table(energy, self.multicast_factors, self.multicast_tensor, row)

    @property
    def bytes(self) -> int:
        """Bytes of all tables."""
        return sum(table.energy.nbytes for table in self.tables.values())

    def each_pair(self) -> Iterator[tuple[int, StoragePair]]:
        """Yield (tensor, link) of all links in the tables."""
        return ((t, pair) for t, pairs in self.pairs.items() for pair in pairs)

    def once_pj(self, t: int, pair: StoragePair) -> float:
        """Return pJ per value transferred once over a link. The first values of outputs are not read."""
        read, update, fill = self._prices(t, pair)
        return update if self.instance.problem.output[t] else read + fill

    def enters_pj(self, t: int, pair: StoragePair) -> float:
        """Return pJ per value written into the inner memory of a link."""
        return self._prices(t, pair)[2]

    def _pairs(self, t: int) -> list[StoragePair]:
        """Return the links of a tensor that have no optional entry and no unrolled window in between."""
        instance, problem = self.instance, self.instance.problem
        places = range(problem.term_start[t], problem.term_start[t + 1])
        often = [int(problem.term_dimension[p]) for p in places]
        wide = [d for d in often if problem.window_index[t, d] >= 0 or often.count(d) > 1]
        wide += [int(problem.term_dimension[p]) for p in places if problem.term_factor[p] > 1]
        kept = [e for e in range(len(instance.always)) if instance.always[e, t] or instance.optional[e, t]]
        result = []
        for pair in itertools.pairwise(kept):
            slots = [s for s in instance.space.spatial_slots if pair[0] <= instance.space.slots[s].entry < pair[1]]
            if instance.always[list(pair), t].all() and not (
                problem.unmodelled[t] or instance.open_trips[slots][:, wide].any()
            ):
                result.append(pair)
        return result

    def _measure(self) -> None:
        """Compute arrays over all shapes, per tensor.

        These are the words of a tile, of all tiles and of their union.
        The last two are the number of tiles along irrelevant dimensions, and the fraction of words if one window slides.
        """
        problem, sizes = self.instance.problem, self.instance.problem.sizes
        self.words, self.brought, self.union_values, self.irrelevant_tiles = (
            [self.one] * self.instance.tensors for _ in range(4)
        )
        self.distinct = [self.one] * self.instance.tensors
        self.slid: dict[tuple[int, int], Floats] = {}
        for t in range(self.instance.tensors):
            pairs = repeated = self.one
            side, loops, place = self.one, self.one, np.zeros([1] * (self.dims + 1), np.int64)
            for p in range(problem.term_start[t], problem.term_start[t + 1]):
                d, c = int(problem.term_dimension[p]), int(problem.term_factor[p])
                tile, period = sizes[d] / self.tile_count[d], problem.term_period[p]
                side, loops = side + c * (tile - 1.0), loops * self.tile_count[d]
                pairs, repeated = pairs * tile, repeated * np.maximum(tile - period, 0.0)
                place = place + np.arange(self.count[d]).reshape(self.tile_count[d].shape) * problem.union_stride[p]
                if problem.term_last[p]:
                    values = problem.union_values[problem.union_start[p] + place]
                    self.distinct[t] = self.distinct[t] * (pairs - repeated if period > 0 else side)
                    pairs = repeated = self.one
                    self.words[t], self.union_values[t] = self.words[t] * side, self.union_values[t] * values
                    for e in range(self.dims):
                        if problem.window_index[t, e] >= 0 and problem.window_index[t, e] == problem.window_index[t, d]:
                            self.slid[t, e] = np.minimum(1.0, values / (side * loops))
                    side, loops, place = self.one, self.one, 0 * place[(slice(1),) * place.ndim]
            self.brought[t] = self.words[t]
            for d in range(self.dims):
                if problem.relevant[t, d]:
                    self.brought[t] = self.brought[t] * self.tile_count[d]
                else:
                    self.irrelevant_tiles[t] = self.irrelevant_tiles[t] * self.tile_count[d]

    def _places(self) -> Iterator[tuple[tuple[int, int], EnergyByStationarySet]]:
        """Yield every boundary and its energies, from the outermost inwards."""
        instance, space = self.instance, self.instance.space
        slot = {(place.entry, place.spatial): number for number, place in enumerate(space.slots)}
        fanouts = {spatial[0]: spatial for _, spatial in instance.levels if spatial}
        live = {t: pairs[0] for t, pairs in self.pairs.items() if pairs and pairs[0][0] == 0}
        layers: EnergyByStationarySet = {}
        for mask in _sets(live):
            layers[mask] = np.full([1, *self.count], np.inf)
            whole = (0, *[-1] * self.dims)
            layers[mask][whole] = sum(
                self.once_pj(t, live[t]) * self.union_values[t][whole] for t in live if mask >> t & 1
            )
        for e in range(1, len(space.skeleton.entries)):
            if (e, False) in slot:
                layers = self._loops(layers, live, e, slot[e, False])
            yield (e, LOOPS), layers
            if space.skeleton.entries[e].holds:
                layers, live = self._store(layers, live, e)
            yield (e, KEPT), layers
            spatial = fanouts.get(slot.get((e, True), -1), [])
            if spatial:  # all spatial slots of a level together
                layers = self._unroll(layers, live, e, spatial)
            yield (e, UNROLLED), layers

    def _loops(
        self, layers: EnergyByStationarySet, live: dict[int, StoragePair], e: int, slot: int
    ) -> EnergyByStationarySet:
        """Apply the temporal loops of a block; each one ends the stationary phase of the tensors it moves."""
        able = [d for d in range(self.dims) if self.instance.open_trips[slot, d]]
        moves = self.instance.problem.relevant
        cost = {(t, d): self._cost(t, live[t], e, d) for t in live for d in able if moves[t, d]}
        result: EnergyByStationarySet = {}
        for mask in _sets(live):  # smaller sets first
            result[mask] = row = layers[mask].copy()
            for d in able:
                moved = [t for t in live if mask >> t & 1 and moves[t, d]]
                if moved:
                    best = np.full_like(row, np.inf)
                    self._relax(best, result[mask & ~sum(1 << t for t in moved)], d)
                    best += sum(cost[t, d] for t in moved)
                    np.minimum(row, best, out=row)
            for d in able:
                if not any(mask >> t & 1 and moves[t, d] for t in live):
                    self._relax(row, row, d)
        return result

    def _store(
        self, layers: EnergyByStationarySet, live: dict[int, StoragePair], e: int
    ) -> tuple[EnergyByStationarySet, dict[int, StoragePair]]:
        """Apply capacity at a storage entry, and add one transfer per tensor stationary inside."""
        instance, fits = self.instance, np.ones([1] * self.dims, np.bool_)
        kept = [t for t in range(instance.tensors) if instance.always[e, t]]
        for m, memory in enumerate(instance.space.architecture.memories):
            used = [self._stored(t, m) * instance.slices[m, t] for t in kept if instance.relaxation.memory[e, t] == m]
            fits = fits & np.asarray(sum(used, 0.0 * self.one) <= memory.usable_slices)
        inside = {t: pair for t, pair in live.items() if t not in kept}
        inside |= {t: pair for t in kept for pair in self.pairs[t] if pair[0] == e}
        both = sum(1 << t for t in kept)
        outside = sum(1 << t for t in kept if t in live)
        result = {}
        for mask in _sets(inside):
            more = sum(self.once_pj(t, inside[t]) * self.union_values[t] for t in kept if mask >> t & 1)
            result[mask] = np.where(fits, layers[mask & ~both | outside] + more, np.inf)
        return result, inside

    def _unroll(
        self, layers: EnergyByStationarySet, live: dict[int, StoragePair], e: int, spatial: list[int]
    ) -> EnergyByStationarySet:
        """Apply the unrollings of a level; stationary tiles have to fit all sub-clusters together."""
        able = [int(d) for d in np.flatnonzero(self.instance.open_trips[spatial].any(axis=0))]
        layers = {mask: np.where(self._fits(mask, live, e), row, np.inf) for mask, row in layers.items()}
        if self.multicast_tensor >= 0:  # an outer fanout is distinguished already
            for row in layers.values():
                for d in able:
                    self._relax(row, row, d)
            return layers
        size = math.prod(int(self.instance.max_used[s]) for s in spatial)
        self.multicast_tensor = self._multicast_tensor(e, spatial, able)
        along = [
            d
            for d in able
            if self.multicast_tensor >= 0 and not self.instance.problem.relevant[self.multicast_tensor, d]
        ]
        ways = self.unrollings(along, size)
        if math.prod(self.count) * len(ways) > MAX_TABLE:
            self.multicast_tensor, along, ways = -1, [], {1: [()]}
        across = [d for d in able if d not in along]
        self.multicast_slots = spatial if along else []
        self.along[along] = True
        self.multicast_factors = np.array(sorted(ways), np.float64)
        sizes = sorted(self.unrollings(across, size))
        some = _some(sizes)
        result = {}
        for mask, row in layers.items():
            filled = self._fill(row, across, sizes, some)
            by_factor = np.full((len(ways), *self.count), np.inf)
            for k, factor in enumerate(sorted(ways)):
                within = filled[_place(size // factor, sizes, some)]
                for trips in ways[factor]:
                    np.minimum(by_factor[k], self._after(within, along, trips), out=by_factor[k])
            result[mask] = by_factor
        return result

    def _fits(self, mask: int, live: dict[int, StoragePair], e: int) -> Bools:
        """Return whether the stationary tiles of a set of tensors fit their memories."""
        instance, fits = self.instance, np.ones([1] * (self.dims + 1), np.bool_)
        for t, (_, inner) in live.items():
            if mask >> t & 1:
                m = instance.relaxation.memory[inner, t]
                usable = instance.space.architecture.memories[m].usable_slices * self._instances(e, inner)
                fits = fits & np.asarray(self._stored(t, m) * instance.slices[m, t] <= usable)
        return fits

    def _stored(self, t: int, m: int) -> Floats:
        """Return the values that a memory stores of a tile (`Memory.footprint`)."""
        return self.distinct[t] if self.instance.distinct[m] else self.words[t]

    def _multicast_tensor(self, e: int, spatial: list[int], able: list[int]) -> int:
        """Return the tensor of most energy that is fed to the units and may be multicast; -1 if none."""
        instance, best, most = self.instance, -1, 0.0
        entries = [instance.space.slots[s].entry for s in spatial]
        for t in range(instance.tensors):
            kept = instance.always[:, t] | instance.optional[:, t]
            along = [d for d in able if not instance.problem.relevant[t, d]]
            if (
                kept[e + 1 :].any()
                or instance.problem.unmodelled[t]
                or not along
                or not instance.relaxation.shared[entries, t].all()
            ):
                continue
            outer = int(np.flatnonzero(kept)[-1])
            read = float(instance.relaxation.read_pj[instance.relaxation.memory[outer, t], t])
            if read > most:
                best, most = t, read
        return best

    def window_multicast(self, table: Table, apart: Bools, slots: Ints) -> Floats:
        """Return [K]: further multicast along windows, per multicast factor of the table.

        Tiles differ along the longest unrolling of each window (Lemma 8).
        """
        if table.multicast_tensor < 0:
            return np.ones(1)
        split, rank = self.multicast_slots, self.instance.problem.window_index[table.multicast_tensor]
        size = math.prod(int(self.instance.max_used[s]) for s in split)
        if slots[split[0]] >= 0 or not apart[table.multicast_tensor, split].any():
            return np.asarray(size / table.multicast_factors)
        windows = [int(d) for d in np.flatnonzero(rank >= 0) if self.instance.open_trips[split, d].any()]
        shared = np.zeros(size + 1)
        for used, ways in self.unrollings(windows, size).items():
            for trips in ways:
                longest = {rank[d]: 1 for d in windows}
                for d, n in zip(windows, trips, strict=True):
                    longest[rank[d]] = max(longest[rank[d]], n)
                shared[used] = max(shared[used], used / math.prod(longest.values()))
        return np.asarray(np.maximum.accumulate(shared)[size // table.multicast_factors.astype(np.int64)])

    def unrollings(self, dims: list[int], size: int) -> dict[int, list[tuple[int, ...]]]:
        """Return the unrollings over some dimensions, by the number of sub-clusters that they use."""
        result: dict[int, list[tuple[int, ...]]] = {1: [()]}
        for d in dims:
            more: dict[int, list[tuple[int, ...]]] = {}
            for used, ways in result.items():
                for n in divisors(int(self.instance.problem.sizes[d])):
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
            counts = self.tile_count[d].ravel()
            some = np.flatnonzero(counts % n == 0)
            after = np.full_like(row, np.inf)
            np.moveaxis(after, d, 0)[some] = np.moveaxis(row, d, 0)[np.searchsorted(-counts, -counts[some] // n)]
            row = after
        return row

    def _relax(self, row: Floats, after: Floats, d: int) -> None:
        """Lower the energy of each shape to the minimum after a prime loop over d."""
        row, after = np.moveaxis(row, d + 1, 0), np.moveaxis(after, d + 1, 0)
        for i in range(len(row) - 1, -1, -1):
            for _, j in self.after[d][i]:
                np.minimum(row[i : i + 1], after[j : j + 1], out=row[i : i + 1])

    def _cost(self, t: int, pair: StoragePair, e: int, d: int) -> Floats:
        """Return the energy of a link by shape, if a loop over d at entry e first moves the tensor."""
        read, update, fill = self._prices(t, pair)
        brought = self.brought[t] * self.slid.get((t, d), self.one)
        words = brought * np.maximum(1.0, self.irrelevant_tiles[t] / self._serving(t, pair[0], e))
        filled = brought * self.irrelevant_tiles[t]
        if not self.instance.problem.output[t]:
            return np.asarray(words * read + filled * fill)
        # first values are not read, one per copy of the output
        first, entered = (self.instance.problem.values[t] * self._instances(0, inner) for inner in (pair[0], e))
        again = np.maximum(0.0, words - first) * read + np.maximum(0.0, filled - entered) * fill
        return np.asarray(words * update + again)

    def _prices(self, t: int, pair: StoragePair) -> tuple[float, float, float]:
        """Return pJ per value: read from the outer memory, updated there, written into the inner one."""
        relaxation, words = self.instance.relaxation, self.instance.words[:, t]
        outer, inner = relaxation.memory[list(pair), t]
        read, update = relaxation.read_pj[outer, t] * words[outer], relaxation.update_pj[outer, t] * words[outer]
        return float(read), float(update), float(relaxation.fill_pj[inner, t] * words[inner])

    def _serving(self, t: int, first: int, last: int) -> Floats:
        """Return deliveries per word: instances over the multicast factor.

        The fanouts are those of the entries from `first` to before `last`.
        """
        instance, factors = self.instance, np.ones(1)
        if (
            any(first <= instance.space.slots[s].entry < last for s in self.multicast_slots)
            and not (self.along & ~instance.problem.relevant[t]).any()
        ):
            factors = self.multicast_factors
        return np.asarray(self._instances(first, last) / factors).reshape([-1] + [1] * self.dims)

    def _instances(self, first: int, last: int) -> float:
        """Return the maximum sub-clusters in the fanouts of entries from `first` to before `last`."""
        instance = self.instance
        slots = [s for s in instance.space.spatial_slots if first <= instance.space.slots[s].entry < last]
        return float(math.prod(int(instance.max_used[s]) for s in slots))


def _some(sizes: list[int]) -> list[int]:
    """Return about `FANOUT_SIZES` of the sizes, including the largest."""
    aims = np.geomspace(1, sizes[-1], FANOUT_SIZES)
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
