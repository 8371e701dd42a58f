"""Lower bounds on costs by a relaxation: of complete mappings, and of all mappings of a space.

`relaxed_costs` is the rule of `Relaxation` for mappings whose loops are all placed (Lemma 1 of docs/optimal.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.counting import used_words
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.skeleton import Slot
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Costs, Evaluator, Relaxable, Relaxation
from tilewright.plugin.guard.models import guarded_evaluator
from tilewright.prices import port_time
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem, Tensor

STATIONARY, SLIDING, MOVED = range(3)


Least = tuple[float, float]
"""Energy in pJ and cycles."""


def relaxed_costs(relaxation: Relaxation, architecture: Architecture, batch: MappingBatch) -> Costs:
    """Return lower bounds on energy and cycles, one pair per mapping [n]; `valid` where all tiles are whole.

    Words that neighbours may forward, tensors that repeat a dimension, and outputs with windows count as zero, and so do first
    partial sums. Of ragged tiles only the steps with whole tiles count: they are a mapping of whole tiles, whose words all steps
    together need, too. There windows count as zero, and words of an instance are those of all divided by the instances in use.
    """
    return _Counts(relaxation, architecture, batch).costs()


def is_exact(relaxation: Relaxation, problem: Problem) -> bool:
    """Return whether the energy of each complete mapping has to be its lower bound, since nothing else costs anything."""
    simple = relaxation.exact and not (relaxation.rounded or relaxation.neighbours or (relaxation.leakage_pj > 0).any())
    return simple and all(_is_plain(tensor) and not _has_windows(tensor) for tensor in problem.tensors)


@dataclass(frozen=True)
class _Counts:
    """Words of a batch: [n] for all instances together."""

    relaxation: Relaxation
    architecture: Architecture
    batch: MappingBatch

    def costs(self) -> Costs:
        """Return the lower bounds."""
        relaxation, batch = self.relaxation, self.batch
        memories = len(relaxation.gate)
        energy = np.full(len(batch), float(relaxation.compute_pj))
        read, written = np.zeros((2, memories, len(batch)))
        for t, tensor in enumerate(batch.problem.tensors):
            if _is_plain(tensor):
                counted = self.perfect if _has_windows(tensor) else np.ones(len(batch), np.bool_)
                energy += self._add(t, tensor, counted, read, written)
        limits = (relaxation.read_bandwidth, relaxation.write_bandwidth, np.asarray(relaxation.shared_bandwidth))
        reading, writing, both = (limit[:, None] for limit in limits)
        ports = port_time(_Ports(reading, writing, both), read, written)
        steps: Floats = self.trips.prod(axis=(1, 2)) * relaxation.cycles_per_operation
        cycles = np.maximum(steps, ports.max(axis=0, initial=0.0))
        energy += self._leakage() * cycles
        return Costs(self.perfect, energy, cycles)

    @cached_property
    def perfect(self) -> Bools:
        """[n]: all tiles are whole parts of the next."""
        batch = self.batch
        rest = (batch.incoming % batch.temporal).any(axis=(1, 2)) | (batch.temporal % batch.spatial).any(axis=(1, 2))
        return np.asarray(~rest)

    @cached_property
    def trips(self) -> Floats:
        """[n, entry, dimension] of temporal loops."""
        return (self.batch.incoming // self.batch.temporal).astype(np.float64)

    @cached_property
    def unrolled(self) -> Floats:
        """[n, entry, dimension] of spatial loops."""
        return (self.batch.temporal // self.batch.spatial).astype(np.float64)

    @cached_property
    def outside(self) -> Floats:
        """[entry, n]: instances of a memory at each entry."""
        across = self.unrolled.prod(axis=2).T
        return np.concatenate([np.ones((1, len(self.batch))), np.cumprod(across, axis=0)])

    @cached_property
    def in_use(self) -> Floats:
        """[entry, n]: instances of a memory at each entry, those with an edge tile included."""
        across = -(-self.batch.temporal // self.batch.spatial).astype(np.float64).prod(axis=2).T
        return np.concatenate([np.ones((1, len(self.batch))), np.cumprod(across, axis=0)])

    def _add(self, t: int, tensor: Tensor, counted: Bools, read: Floats, written: Floats) -> Floats:
        """Return the energy of a tensor's words, [n] pJ, and add its words per instance to the ports, [memory, n].

        Only mappings that are `counted` [n] have words.
        """
        relaxation, keep = self.relaxation, self.batch.keep[:, :, t]
        energy = np.zeros(len(self.batch))
        inside = np.full(len(self.batch), keep.shape[1])  # the tensor's next inner storage entry
        values = float(self.batch.problem.tensor_words(tensor))
        for entry in range(keep.shape[1] - 1, -1, -1):
            here, m = keep[:, entry], int(relaxation.memory[entry, t])
            if m < 0 or not here.any():
                continue
            words = self.architecture.memories[m].words_of(tensor)
            port = words * (1.0 if relaxation.moved is None else float(relaxation.moved[m, t]))
            copies = self._copies(tensor, entry)
            served, first = self._served(t, tensor, entry, inside)
            filled = self._brought(tensor, entry) * self.outside[entry] if entry else np.zeros(len(self.batch))
            outermost = ~keep[:, :entry].any(axis=1)
            filled = np.where(outermost, 0.0, filled)
            if tensor.is_output:  # the first partial sums are neither read nor filled
                given = np.maximum(0.0, served - values * copies * first)
                filled = np.maximum(0.0, filled - values * copies)
                pj = served * relaxation.update_pj[m, t] + given * relaxation.read_pj[m, t]
                stored = served + filled
            else:
                given, stored = served, filled
                pj = given * relaxation.read_pj[m, t]
            here = here & counted
            energy += np.where(here, (pj + filled * relaxation.fill_pj[m, t]) * words, 0.0)
            read[m] += np.where(here, given * port / self.in_use[entry], 0.0)
            written[m] += np.where(here, stored * port / self.in_use[entry], 0.0)
            inside = np.where(keep[:, entry], entry, inside)
        return energy

    def _served(self, t: int, tensor: Tensor, entry: int, inside: Ints) -> tuple[Floats, Floats]:
        """Return [n] words between an entry and what lies directly inside, and the copies in which these need partial sums."""
        n, last = len(self.batch), self.trips.shape[1]
        served, first = np.zeros((2, n))
        for inner in np.unique(inside):
            rows = inside == inner
            across, copies, forwarded = np.ones(n), np.ones(n), np.zeros(n, np.bool_)
            windows: dict[int, Floats] = {}
            for place in range(entry, int(inner)):
                shared = bool(self.relaxation.shared[place, t])
                forwarded |= (self.unrolled[:, place] > 1).any(axis=1) & (inner == last)
                for d, name in enumerate(self.batch.problem.dimension_names):
                    trips, window = self.unrolled[:, place, d], _window(tensor, name)
                    if window is not None:
                        forwarded |= trips > 1
                    if window is not None and shared:  # tiles along one dimension differ
                        windows[d] = windows.get(d, np.ones(n)) * trips
                    elif name in tensor.dimensions or not shared:
                        across = across * trips
                        copies = copies * (1.0 if name in tensor.dimensions else trips)
            for window in {_window(tensor, self.batch.problem.dimension_names[d]) for d in windows}:
                along = [
                    trips
                    for d, trips in windows.items()
                    if _window(tensor, self.batch.problem.dimension_names[d]) == window
                ]
                across = across * np.max(along, axis=0)
            words = self.trips.prod(axis=(1, 2)) if inner == last else self._brought(tensor, int(inner))
            words = words * across * self.outside[entry]
            words = np.where(forwarded, 0.0, words) if self.relaxation.neighbours else words
            served, first = np.where(rows, words, served), np.where(rows, copies, first)
        return served, first

    def _copies(self, tensor: Tensor, entry: int) -> Floats:
        """Return [n]: at most how many instances of an entry share one part of a tensor."""
        others = [d for d, name in enumerate(self.batch.problem.dimension_names) if name not in tensor.dimensions]
        return np.asarray(self.unrolled[:, :entry][:, :, others].prod(axis=(1, 2)))

    def _brought(self, tensor: Tensor, entry: int) -> Floats:
        """Return [n] words that are filled into one instance at an entry: a tile is brought again when a loop moves it.

        The first loop that moves a window brings the words that do not overlap. Further loops along it spare one tile at most.
        """
        batch, n = self.batch, len(self.batch)
        names = batch.problem.dimension_names
        sides, shifts = _sides(tensor, names, batch.temporal[:, entry])
        status, window, tiles = np.zeros((2, n), np.int64)[0], np.full(n, -1), np.ones(n)
        relevant = np.array([name in tensor.dimensions for name in names])
        windows = np.array([-1 if (span := _window(tensor, name)) is None else span for name in names])
        rows = np.arange(n)
        for place in range(entry, -1, -1):
            for position in range(len(names) - 1, -1, -1):
                d = batch.order[:, place, position].astype(np.int64)
                trips = self.trips[rows, place, d]
                if not (trips > 1).any():
                    continue
                moving, moved, along = trips > 1, relevant[d], windows[d]
                starts = moving & (status == STATIONARY) & (along >= 0)
                again = moving & (status == SLIDING) & (along == window)
                full = moving & ~starts & ~again & (moved | (status != STATIONARY))
                shift = shifts[d] * batch.temporal[rows, place, d]
                side = sides[np.maximum(along, 0), rows]
                new = 1.0 + (trips - 1.0) * np.minimum(1.0, shift / side)
                tiles = np.where(
                    starts, new, np.where(again, trips * (tiles - 1.0) + 1.0, np.where(full, tiles * trips, tiles))
                )
                window = np.where(starts, along, window)
                status = np.where(starts, SLIDING, np.where(full & (status == STATIONARY), MOVED, status))
        return np.asarray(tiles * sides.prod(axis=0))

    def _leakage(self) -> Floats:
        """Return [n] pJ per cycle of the instances in use, each memory at its innermost entry."""
        relaxation = self.relaxation
        leaked = np.zeros(len(self.batch))
        for m in np.unique(relaxation.gate[relaxation.leakage_pj > 0]):
            users = np.flatnonzero((relaxation.memory == m).any(axis=1))
            if len(users):
                here = self.batch.keep[:, users[-1]] & (relaxation.memory[users[-1]] == m)
                leaked += here.any(axis=1) * self.outside[users[-1]] * relaxation.leakage_pj[relaxation.gate == m].sum()
        return leaked


@dataclass(frozen=True)
class _Ports:
    """Bandwidths [memory, 1] of ports, as `port_time` reads them."""

    read_bandwidth: Floats
    write_bandwidth: Floats
    shared_bandwidth: Floats


def _is_plain(tensor: Tensor) -> bool:
    """Return whether the words of a tensor are counted: no coordinates share a dimension, and no output has windows."""
    names = [name for rank in tensor.projection for name in rank.terms]
    return len(set(names)) == len(names) and not (tensor.is_output and _has_windows(tensor))


def _has_windows(tensor: Tensor) -> bool:
    """Return whether a coordinate has several dimensions, or one with a stride."""
    return any(len(rank.terms) > 1 or any(step > 1 for step in rank.terms.values()) for rank in tensor.projection)


def _window(tensor: Tensor, name: str) -> int | None:
    """Return the coordinate that a dimension shares with others; None if there is none."""
    return next((r for r, rank in enumerate(tensor.projection) if name in rank.terms and len(rank.terms) > 1), None)


def _sides(tensor: Tensor, names: tuple[str, ...], tile: Ints) -> tuple[Floats, Floats]:
    """Return the sides [coordinate, n] of a tile in distinct values at least, and the shift of each dimension's index [dimension]."""
    sides, shifts = np.ones((max(1, len(tensor.projection)), len(tile))), np.zeros(len(names))
    for r, rank in enumerate(tensor.projection):
        common = math.gcd(*rank.terms.values()) if rank.terms else 1
        box, count = np.ones((2, len(tile)))
        for name, step in rank.terms.items():
            d = names.index(name)
            shifts[d] = step // common
            box, count = box + shifts[d] * (tile[:, d] - 1), count * tile[:, d]
        sides[r] = np.minimum(box, count)
    return sides, shifts


# -- all mappings of a space -------------------------------------------------------------------------------------


def least_of(space: MapSpace, evaluator: Evaluator) -> Least:
    """Return lower bounds on energy and cycles; leakage and networks count as zero.

    Energy counts all operations, and each used word once at the outermost memory and at each memory that always keeps it.
    The innermost of these memories delivers one word per operation, divided by the fanouts below that may share it.
    Cycles are the larger of operations per usable unit and of those words over the bandwidth of the outermost memories.

    Raises:
        PluginError: the relaxation is invalid.
    """
    guarded = guarded_evaluator(evaluator, space.problem, space.architecture)
    relaxation = guarded.relaxation(space.skeleton, space.keeps) if isinstance(guarded, Relaxable) else None
    if relaxation is None:
        return 0.0, 0.0
    problem = space.problem
    energy = relaxation.compute_pj
    # forwarding over unequal tiles is averaged, so that a word may count less than once
    averaged = relaxation.neighbours and space.factors == "ragged"
    read, written = (np.zeros(len(relaxation.read_pj)) for _ in range(2))
    for number, tensor in enumerate(problem.tensors):
        values = 0 if averaged else used_words(problem, tensor)
        for entry, memory in _keeping(space, relaxation, number).items():
            width = space.architecture.memories[memory].words_of(tensor)
            once = values * width
            moved = 1.0 if relaxation.moved is None else relaxation.moved[memory, number]
            taken = max(once, _for_operations(space, relaxation, number, entry) * width)
            if tensor.is_output:
                energy += taken * relaxation.update_pj[memory, number]
                written[memory] += once * moved
            else:
                energy += taken * relaxation.read_pj[memory, number]
                energy += once * relaxation.fill_pj[memory, number] if entry else 0.0
                read[memory] += once * moved
    cycles = problem.macs * relaxation.cycles_per_operation / usable_units(space)
    outermost = sorted({int(memory) for memory in relaxation.memory[0] if memory >= 0})
    waiting = port_time(relaxation, read, written)[outermost]
    return float(energy), float(max(cycles, *waiting))


def usable_units(space: MapSpace) -> int:
    """Return an upper bound on the compute units that a mapping can use: the product over all fanouts.

    With perfect tiles, 14 columns can use at most 8 iterations of a dimension of 64.
    """
    return math.prod(_usable(space, space.slots[index]) for index in space.spatial_slots)


def _usable(space: MapSpace, slot: Slot) -> int:
    """Return the maximum number of sub-clusters that the unrolling of a slot can use."""
    most = slot.most or 1
    products = {1}
    for number, size in enumerate(space.problem.sizes):
        highest = slot.highest[number]
        if space.factors == "perfect":
            trips = [divisor for divisor in divisors(size) if divisor <= min(highest, most)]
            products = {one * other for one in products for other in trips if one * other <= most}
        else:
            products = {min(most, max(products) * min(highest, size))}
    return max(products)


def _keeping(space: MapSpace, relaxation: Relaxation, number: int) -> dict[int, int]:
    """Return {entry: memory} for the entries at which all mappings keep the tensor; each memory only at its innermost entry."""
    always, _ = space.keeps
    innermost: dict[int, int] = {}
    for entry in range(len(always)):
        memory = int(relaxation.memory[entry, number])
        if memory >= 0 and (entry == 0 or always[entry, number]):
            innermost[memory] = entry if innermost.get(memory) != 0 else 0
    return {entry: memory for memory, entry in innermost.items()}


def _for_operations(space: MapSpace, relaxation: Relaxation, number: int, entry: int) -> float:
    """Return a lower bound on the words that operations read from the memory of `entry`; 0 if an inner memory may keep the tensor."""
    always, free = space.keeps
    if (always | free)[entry + 1 :, number].any():
        return 0.0
    fanouts = [space.architecture.cluster(inner.target).fanout.size for inner in space.skeleton.entries[entry:]]
    if relaxation.neighbours and math.prod(fanouts) > 1:
        return 0.0
    shared = relaxation.shared[entry:, number]
    return space.problem.macs / math.prod(size for size, one in zip(fanouts, shared, strict=True) if one)
