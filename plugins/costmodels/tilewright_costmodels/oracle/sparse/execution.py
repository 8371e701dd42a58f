"""Execution of a mapping on sparse hardware: which dense accesses are made, gated, skipped or omitted.

docs/oracle.md states the conventions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.sparse import Saving
from tilewright_costmodels.oracle.memories import Connection, MemoryTraffic
from tilewright_costmodels.oracle.sparse.accesses import Accesses, Tiles, any_of, collected, sum_of, supplied, tiles_of
from tilewright_costmodels.oracle.sparse.formats import Contents, Rank, contents_of, ranks_of
from tilewright_costmodels.oracle.sparse.patterns import Flags
from tilewright_costmodels.oracle.trace import Ints, OperationTrace, SpatialLoop
from tilewright_costmodels.sparse_refusals import RefusedError

READ, FILL, UPDATE = range(3)
"""Actions."""
ACTUAL, GATED, SKIPPED = range(3)
"""Kinds of accesses."""
Key = tuple[int, str]
"""Entry and tensor."""


@dataclass
class KeptTensor:
    """One tensor in one memory, and its dense accesses from inside.

    Attributes:
        inner: tiles that these accesses serve.
        has_format: the memory stores metadata of the tensor.
        omits_zeros: it stores no zeros.
        sent_empty: the memory outside stores no metadata, so that empty tiles are sent, too.
    """

    entry: int
    tensor: Tensor
    memory: Memory
    tiles: Tiles
    ranks: tuple[Rank, ...]
    contents: Contents
    accesses: Accesses
    inner: Tiles
    has_format: bool
    omits_zeros: bool
    sent_empty: bool = True


class Counts:
    """Accesses of one tensor in one memory, over all instances.

    Attributes:
        data: words, [kind, action, draw].
        metadata: pieces, ranks innermost first, [rank, metadata or payload, kind, action, draw].
        omitted: pieces of accesses that an action of an outer memory saves, [rank, metadata or payload, action, draw].
        unsummed: reads of partial sums that saved updates never wrote, which are not made, [draw].
        unsummed_pieces: their metadata, [rank, metadata or payload, draw].
    """

    def __init__(self, ranks: int, draws: int) -> None:
        self.data = np.zeros((3, 3, draws), dtype=np.int64)
        self.metadata = np.zeros((ranks, 2, 3, 3, draws))
        self.omitted = np.zeros((ranks, 2, 3, draws))
        self.unsummed = np.zeros(draws, dtype=np.int64)
        self.unsummed_pieces = np.zeros((ranks, 2, draws))


@dataclass(frozen=True)
class SparseRun:
    """Counts of every draw.

    Attributes:
        counts: by entry and tensor.
        operations: of all units, [kind, draw].
        busy: operations that take a cycle, [unit, draw].
        left: tensor -> share of operations that its actions leave, on average.
    """

    counts: dict[Key, Counts]
    operations: Ints
    busy: Ints
    left: dict[str, float]


class Executor:
    """One mapping, and the nonzeros of its tensors."""

    def __init__(
        self,
        problem: Problem,
        architecture: Architecture,
        mapping: Mapping,
        trace: OperationTrace,
        touched: dict[str, Ints],
        coordinates: dict[str, Ints],
        present: dict[str, Flags],
    ) -> None:
        """Prepare the dense accesses.

        Args:
            trace: the operations.
            touched: tensor -> index of the word that each operation touches, [n].
            coordinates: tensor -> coordinates of each word, [word, axis].
            present: tensor -> whether each word is nonzero, [word, draw].

        Raises:
            RefusedError: sparse hardware cannot hold the tiles in its formats.
        """
        self.problem, self.architecture, self.mapping = problem, architecture, mapping
        self.trace, self.touched, self.present = trace, touched, present
        self.places: dict[Key, KeptTensor] = {}
        for tensor in problem.tensors:
            for place in self._prepared(tensor, coordinates[tensor.name]):
                self.places[place.entry, tensor.name] = place

    def _prepared(self, tensor: Tensor, coordinates: Ints) -> Iterator[KeptTensor]:
        entries = [at for at, entry in enumerate(self.mapping.entries) if tensor.name in (entry.keep or ())]
        ranks: tuple[Rank, ...] | None = None
        words, places = self.touched[tensor.name], list[KeptTensor]()
        inner = tiles_of(self.trace, words, None)
        for entry, child in reversed(list(zip(entries, [*entries[1:], None], strict=True))):
            memory = self.architecture.cluster(self.mapping.entries[entry].target).memory_for(tensor)
            assert memory is not None, "legality has been checked"
            spec = memory.sparse.format_of(tensor) if memory.sparse else None
            ranks = ranks_of(self.problem, self.mapping, tensor, (entry, child), spec, ranks) if spec else None
            tiles = tiles_of(self.trace, words, entry)
            outwards = spec is not None and spec.fill == "inner"
            contents = contents_of(tensor, tiles, coordinates, self.present[tensor.name], ranks or (), outwards)
            traffic = MemoryTraffic(entry), None if child is None else MemoryTraffic(child)
            connection = Connection(self.trace, *traffic, self._sharing(tensor))
            make = collected if tensor.is_output else supplied
            accesses = make(inner, connection, child is not None)
            omits = spec is not None and spec.is_compressed
            places.append(
                KeptTensor(
                    entry, tensor, memory, tiles, ranks or (), contents, accesses, inner, spec is not None, omits
                )
            )
            inner = tiles
        for outer, place in zip(places[1:], places, strict=False):
            place.sent_empty = not outer.has_format
            _check_compression(outer, place)
        return reversed(places)

    def _sharing(self, tensor: Tensor) -> Callable[[SpatialLoop], bool]:
        def may_share(loop: SpatialLoop) -> bool:
            entry = self.mapping.entries[loop.entry]
            fanout = self.architecture.cluster(entry.target).fanout
            return tensor.name not in entry.unicast and (fanout.reduction if tensor.is_output else fanout.multicast)

        return may_share

    def run(self, without: Collection[Key] = ()) -> SparseRun:
        """Execute all tensors, then the operations.

        Args:
            without: memories and tensors whose actions save nothing.
        """
        savings = {key: saving for key, saving in self.savings().items() if key not in without}
        draws = next(iter(self.present.values())).shape[1]
        self.counts = {key: Counts(len(place.ranks), draws) for key, place in self.places.items()}
        left = np.ones((len(self.trace.points), draws), dtype=np.bool_)
        shares = {}
        for tensor in self.problem.tensors:
            needed = self._run_tensor(tensor, savings)
            shares[tensor.name] = float(needed.mean())
            if not tensor.is_output:
                left &= needed
        return SparseRun(self.counts, *self._operate(left), shares)

    def savings(self) -> dict[Key, tuple[int, Flags]]:
        """Return what actions save: kind, and the accesses that are still made, [access, draw].

        Of several actions on one tensor in one memory, and of alternatives, the one counts that saves
        most. Alternatives are weighed by the energy that their accesses take.
        """
        savings: dict[Key, tuple[int, Flags]] = {}
        for kind in (GATED, SKIPPED):
            for entry, saving in self.actions():
                if (GATED if saving.kind == "gate" else SKIPPED) != kind:
                    continue
                chosen: tuple[float, Key, Flags] | None = None
                for option in saving.options:
                    place = self.place(option.tensor, entry)
                    kept = self._kept(place, option)
                    worth = place.memory.read_energy_pj * self._words_of(place)[~kept].sum()
                    if chosen is None or worth >= chosen[0]:
                        chosen = float(worth), (place.entry, option.tensor), kept
                assert chosen is not None
                _, key, kept = chosen
                if key not in savings or kept.mean() < savings[key][1].mean():
                    savings[key] = kind, kept
        return savings

    def actions(self) -> Iterator[tuple[int, Saving]]:
        """Yield the actions of all memories, innermost first, with the entry of their memory."""
        for at, entry in reversed(list(enumerate(self.mapping.entries))):
            for memory in self.architecture.cluster(entry.target).memories if entry.keep is not None else ():
                for saving in memory.sparse.actions_on(self.problem.tensors) if memory.sparse else ():
                    yield at, saving

    def place(self, name: str, entry: int) -> KeptTensor:
        """Return the nearest memory from an entry outwards that keeps a tensor.

        Raises:
            RefusedError: none does.
        """
        for at in range(entry, -1, -1):
            if (at, name) in self.places:
                return self.places[at, name]
        raise RefusedError("sparse_target", name, "no memory from there outwards keeps it")

    def _kept(self, place: KeptTensor, saving: Saving) -> Flags:
        """Return which accesses are made, [access, draw]: no condition's words are all zero.

        These words are used together with the tiles that the access serves.
        """
        accesses, made = place.accesses, None
        for name in saving.when_empty:
            used = any_of(self.present[name][self.touched[name]], place.inner.of_operation, len(place.inner))
            wanted = any_of(used[accesses.tile], accesses.access, len(accesses))
            made = wanted if made is None else made & wanted
        assert made is not None
        return made

    def _words_of(self, place: KeptTensor) -> Flags:
        """Return which accesses move a word: those of nonzeros if the memory compresses the tensor, else all."""
        flags = self.present[place.tensor.name][place.accesses.words]
        return flags if place.omits_zeros else np.ones_like(flags)

    def _run_tensor(self, tensor: Tensor, savings: dict[Key, tuple[int, Flags]]) -> Flags:
        """Execute one tensor from the outermost memory inwards. Return the operations that are left, [n, draw]."""
        places = [place for (_, name), place in self.places.items() if name == tensor.name]
        draws = self.present[tensor.name].shape[1]
        left = np.ones((len(self.trace.points), draws), dtype=np.bool_)
        for place, inside in zip(places, [*places[1:], None], strict=True):
            accesses, tiles = place.accesses, place.inner
            alive = any_of(any_of(left, tiles.of_operation, len(tiles))[accesses.tile], accesses.access, len(accesses))
            kind, kept = savings.get((place.entry, tensor.name), (GATED, np.ones_like(alive)))
            self._count(place, inside, kind, alive, kept)
            served = any_of((alive & kept)[accesses.access], accesses.tile, len(tiles))
            has_none = np.bincount(accesses.tile, minlength=len(tiles)) == 0  # it had all its words before
            left = left & (served | has_none[:, None])[tiles.of_operation]
            if inside is not None:
                self._fill(place, inside, alive & kept, served)
        return left

    def _count(self, place: KeptTensor, inside: KeptTensor | None, kind: int, alive: Flags, kept: Flags) -> None:
        """Count the accesses of a memory from inside.

        Args:
            kind: of accesses that the memory's own action saves.
            alive: accesses that no outer memory saves, [access, draw].
            kept: accesses that the own action does not save.
        """
        holder, counts = self._holders(place), self.counts[place.entry, place.tensor.name]
        alive, gone = alive & (exists := self._exists(place)[holder]), ~alive & exists
        made, saved = alive & kept, alive & ~kept
        moved, words = len(place.ranks) if inside is None else len(inside.ranks), self._words_of(place)
        parts = [(UPDATE, made, saved, gone)] if place.tensor.is_output else [(READ, made, saved, gone)]
        if place.tensor.is_output:
            summed = _summed_before(place.accesses.sums, np.ones_like(made))
            read = made & _summed_before(place.accesses.sums, made)
            never = made & summed & ~read
            counts.unsummed += (never & words).sum(axis=0)
            counts.unsummed_pieces += self._pieces(place, never, holder)
            parts.append((READ, read, saved & summed, gone & summed))
        for action, executed, spared, omitted in parts:
            counts.data[ACTUAL, action] += (executed & words).sum(axis=0)
            counts.data[kind, action] += (spared & words).sum(axis=0)
            self._add(place, ACTUAL, action, executed, holder)
            self._add(place, kind, action, spared, holder, slice(0, moved))
            self._add(place, ACTUAL, action, spared, holder, slice(moved, None))  # they lead to the tile
            counts.omitted[:, :, action] += self._pieces(place, omitted, holder)

    def _fill(self, place: KeptTensor, inside: KeptTensor, made: Flags, served: Flags) -> None:
        """Count the words that the memory inside receives.

        Args:
            made: accesses of `place` that are made, [access, draw].
            served: tiles inside that one of them serves, [tile, draw].
        """
        (tile, words), counts = place.accesses.entering, self.counts[inside.entry, inside.tensor.name]
        flags = served[tile] if place.tensor.is_output else made[place.accesses.access]
        exists = self._exists(inside)[tile]
        nonzero = self.present[inside.tensor.name][words] if inside.omits_zeros else np.ones_like(flags)
        counts.data[ACTUAL, FILL] += (flags & exists & nonzero).sum(axis=0)
        self._add(inside, ACTUAL, FILL, flags & exists, tile)
        counts.omitted[:, :, FILL] += self._pieces(inside, ~flags & exists, tile)

    def _holders(self, place: KeptTensor) -> Ints:
        """Return the tile of the memory that each access reads or updates, [access]."""
        of_inner = np.zeros(len(place.inner), dtype=np.int64)
        of_inner[place.inner.of_operation] = place.tiles.of_operation
        holder = np.zeros(len(place.accesses), dtype=np.int64)
        holder[place.accesses.access] = of_inner[place.accesses.tile]
        return holder

    def _exists(self, place: KeptTensor) -> Flags:
        """Return whether each tile was sent, [tile, draw]: a memory with a format sends no empty tiles."""
        held = place.contents.held > 0
        return np.ones_like(held) if place.sent_empty else held

    def _add(
        self, place: KeptTensor, kind: int, action: int, flags: Flags, holder: Ints, ranks: slice = slice(None)
    ) -> None:
        """Add the metadata of accesses."""
        self.counts[place.entry, place.tensor.name].metadata[ranks, :, kind, action] += self._pieces(
            place, flags, holder
        )[ranks]

    def _pieces(self, place: KeptTensor, flags: Flags, holder: Ints) -> NDArray[np.float64]:
        """Return the metadata of accesses, [rank, metadata or payload, draw].

        As many accesses as a tile has words move its metadata once.

        Args:
            flags: the accesses, [access, draw].
            holder: tile of each, [access].
        """
        passes = sum_of(flags, holder, len(place.tiles)) / place.contents.sizes[:, None]
        pieces: NDArray[np.float64] = (place.contents.units * passes).sum(axis=2)
        return pieces

    def _operate(self, left: Flags) -> tuple[Ints, Ints]:
        """Return the operations by kind, [kind, draw], and those that take a cycle by unit, [unit, draw]."""
        compute = self.architecture.compute.sparse
        gate, skip = (compute.gate, compute.skip) if compute else (False, False)
        zero, absent = np.zeros_like(left, dtype=np.int64), np.zeros_like(left, dtype=np.int64)
        for tensor in self.problem.operands:
            empty = ~self.present[tensor.name][self.touched[tensor.name]]
            innermost = max(entry for entry, name in self.places if name == tensor.name)
            (absent if self.places[innermost, tensor.name].has_format else zero)[empty] += 1
        nothing = absent == len(self.problem.operands)
        lone = (absent > 0) & ~nothing
        skipped = left & lone & skip
        gated = left & ~skipped & ~nothing & (lone | (zero > 0)) & gate
        busy = left & ~nothing & ~skipped
        actual = busy & ~gated
        units = int(self.trace.unit_indices.max()) + 1
        kinds = np.stack([flags.sum(axis=0) for flags in (actual, gated, skipped)])
        return kinds, sum_of(busy, self.trace.unit_indices, units)


def _check_compression(outer: KeptTensor, inner: KeptTensor) -> None:
    """Check that a memory can change the form of a tensor.

    Raises:
        RefusedError: it lacks the hardware.
    """
    able, name = inner.memory.sparse, inner.tensor.name
    if inner.omits_zeros and not outer.omits_zeros:
        raise RefusedError("compression", inner.memory.name, f"{name} is compressed here, but not outside")
    if outer.omits_zeros and not inner.omits_zeros:
        need = "decompresses" + (" and compresses" if inner.tensor.is_output else "")
        if not (able and able.decompresses and (able.compresses or not inner.tensor.is_output)):
            raise RefusedError("decompression", inner.memory.name, f"{name} is compressed outside; it needs '{need}'")


def _summed_before(sums: Ints, made: Flags) -> Flags:
    """Return whether each update finds a partial sum that an earlier update has written, [access, draw]."""
    order = np.argsort(sums, kind="stable")
    counted = np.cumsum(made[order], axis=0)
    before: Ints = counted - made[order]
    starts = np.flatnonzero(np.diff(sums[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    result = np.empty_like(made)
    result[order] = before > np.repeat(before[starts], lengths, axis=0)
    return result
