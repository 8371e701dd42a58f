"""Mappings of one layer from the buffer inwards: an array of units with register files.

A tile that the buffer's loops leave is unrolled over the fanouts, and each unit keeps register tiles. A register
tile stays while no loop outside it moves it. A *stationary* tensor has one register tile in each unit for the whole
tile of the buffer. So it also stays during the innermost of the buffer's loops that do not move it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.errors import Reason
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.prices import access_pj, port_cycles, price_of, tensor_pj
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem
from tilewright_mappers.fused.limits import Limits
from tilewright_mappers.fused.parts import subsets, undominated

Sizes = tuple[int, ...]
"""A number for each dimension of the layer, or for each tensor, in the problem's order."""


def has_one_unit(architecture: Architecture) -> bool:
    """Return whether there is nothing inside the second memory but one compute unit."""
    return len(architecture.memories) == 2 and architecture.compute_instances == 1


def uncovered(architecture: Architecture, problems: Sequence[Problem]) -> Iterator[Reason]:
    """Yield the reasons why the architecture's array is not searched; none if there is no array."""
    memories = architecture.memories
    rows = [architecture.cluster_index[architecture.cluster_of(memory.name).name] for memory in memories]
    instances = [architecture.instances[at] for at in rows]
    if len(rows) not in (2, 3) or len(set(rows)) < len(rows) or instances[1] != 1:
        text = "the architecture has other parts; expected two memories, and one compute unit or an array of them"
        yield Reason(code="hardware", where=architecture.name, message=text)
        return
    if has_one_unit(architecture):
        return
    if len(rows) == 3 and (instances[2] != architecture.compute_instances or rows[2] + 1 < len(architecture.clusters)):
        text = f"several units use one {memories[2].name}; expected one unit for each register file"
        yield Reason(code="hardware", where=architecture.name, message=text)
    for memory in memories[2:]:
        if memory.leakage_pj_per_cycle or memory.instances_per_macro > 1:
            text = "registers that leak, or that are accessed together, are not searched"
            yield Reason(code="hardware", where=memory.name, message=text)
    for memory in memories:
        block = price_of(memory).block
        if any(memory.slices_of(tensor) % block for problem in problems for tensor in problem.tensors):
            text = "several values share an access, which is not searched on arrays"
            yield Reason(code="hardware", where=memory.name, message=text)
    for cluster in architecture.clusters:
        if cluster.fanout.network.takes_energy or cluster.fanout.network.meshes:
            text = "networks that cost energy or have meshes are not searched"
            yield Reason(code="network", where=cluster.name, message=text)
        elif cluster.fanout.size > 1 and not (cluster.fanout.multicast and cluster.fanout.reduction):
            text = "fanouts without multicast or without reduction are not searched"
            yield Reason(code="hardware", where=cluster.name, message=text)
    for problem in problems:
        for tensor in problem.tensors:
            if any(len(rank.terms) > 1 for rank in tensor.projection):
                text = "windows are not searched on arrays; expected one dimension in each coordinate"
                yield Reason(code="window", where=f"{problem.name}, tensor {tensor.name}", message=text)


@dataclass(frozen=True, slots=True)
class Unrolling:
    """The factor of each dimension: of each fanout, outermost first, and in total."""

    factors: tuple[Sizes, ...]
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class RegisterTiles:
    """Tiles of a unit's registers: of stationary tensors, then nodes, each with the tile inside its loops."""

    stationary: Sizes
    nodes: tuple[tuple[int, Sizes], ...]


@dataclass(frozen=True, slots=True)
class Fetched:
    """Register tiles for the part of one unit, as arrays [n, tensors].

    `words`: those that the unit fetches for one tile of the buffer, or for each operation if the registers do not keep
    the tensor. `kept`: in registers; `stays`: stationary.
    """

    tiles: tuple[RegisterTiles, ...]
    words: Ints
    kept: Bools
    stays: Bools


@dataclass(frozen=True, slots=True)
class Choices:
    """All choices for one tile of the buffer's loops, as arrays [n] or [n, tensors].

    Words are those of the whole layer: `near` pass between the array and the memory outside it, `fills` enter all
    registers. `sums` are the first partial sums in all registers. `units` work.
    """

    near: Ints
    fills: Ints
    kept: Bools
    stays: Bools
    units: Ints
    sums: Ints
    rows: tuple[tuple[Unrolling, tuple[RegisterTiles, ...]], ...]

    def at(self, number: int) -> tuple[Unrolling, RegisterTiles]:
        for unrolling, tiles in self.rows:
            if number < len(tiles):
                return unrolling, tiles[number]
            number -= len(tiles)
        raise IndexError(number)


@dataclass(frozen=True, slots=True)
class Choice:
    """A priced choice: pJ from the memory outside the array inwards, cycles of units and registers.

    `near` are the words that pass between the array and the memory outside it, by tensor.
    """

    energy_pj: float
    cycles: float
    near: Sizes
    tile: Sizes
    unrolling: Unrolling
    tiles: RegisterTiles


@dataclass(frozen=True)
class Inside:
    """The mapping space of a layer from the buffer inwards."""

    problem: Problem
    architecture: Architecture
    limits: Limits

    @cached_property
    def moving(self) -> tuple[Sizes, ...]:
        """For each tensor, the positions of its dimensions."""
        dims = [set(tensor.dimensions) for tensor in self.problem.tensors]
        return tuple(tuple(at for at, name in enumerate(self.problem.dimensions) if name in names) for names in dims)

    @cached_property
    def registers(self) -> Memory | None:
        return self.architecture.memories[2] if len(self.architecture.memories) > 2 else None

    @cached_property
    def fanouts(self) -> tuple[Cluster, ...]:
        """Clusters from the buffer's to the last one outside the registers."""
        first = self.architecture.cluster_index[self.architecture.cluster_of(self.architecture.memories[1].name).name]
        return self.architecture.clusters[first : None if self.registers is None else -1]

    def priced(self, tile: Sizes, in_buffer: tuple[bool, ...], trips: Sizes, objective: Objective) -> Iterator[Choice]:
        """Yield the choices for a tile of the buffer's loops that no other one beats.

        Args:
            in_buffer: for each tensor, whether the buffer keeps it. The outermost memory serves the others.
            trips: for each tensor, those of the innermost loops of the buffer that do not move it.
        """
        self.limits.check()
        known, output = self._choices(tile), self._output
        stay = np.where(known.stays, np.array(trips), 1)
        near, written = known.near // stay, known.fills // stay
        energies = (near * self._near_pj(in_buffer)).sum(axis=1) - self._first_pj(in_buffer)
        cycles = self.problem.macs // known.units * self.architecture.compute.cycles_per_operation
        if self.registers is not None:
            price, widths, read = price_of(self.registers), self._widths[-1], known.kept * self.problem.macs
            written[:, output] -= known.kept[:, output] * known.sums
            read[:, output] -= known.kept[:, output] * known.sums
            updates = known.kept[:, output] * self.problem.macs * widths[output]
            energies += access_pj(price, read @ widths, written @ widths, updates)
            busiest = (slices // known.units for slices in (read @ widths, written @ widths + updates))
            cycles = np.maximum(cycles, port_cycles(price, *busiest).astype(np.int64))
        for at in self._best(energies, cycles, near, in_buffer, objective):
            unrolling, tiles = known.at(at)
            yield Choice(float(energies[at]), int(cycles[at]), tuple(map(int, near[at])), tile, unrolling, tiles)

    def _choices(self, tile: Sizes) -> Choices:
        """Return each unrolling of a tile with each set of register tiles."""
        if tile in self._known_choices:
            return self._known_choices[tile]
        rows = [
            (
                unrolling,
                self._fetched(tuple(size // factor for size, factor in zip(tile, unrolling.sizes, strict=True))),
            )
            for unrolling in self._unrollings
            if not any(size % factor for size, factor in zip(tile, unrolling.sizes, strict=True))
        ]
        counts = [len(fetched.tiles) for _, fetched in rows]
        sizes = np.repeat(np.array([unrolling.sizes for unrolling, _ in rows], dtype=np.int64), counts, axis=0)
        distinct = np.stack([sizes[:, list(dimensions)].prod(axis=1) for dimensions in self.moving], axis=1)
        units = sizes.prod(axis=1)
        words = np.concatenate([fetched.words for _, fetched in rows]) * (self.problem.macs // math.prod(tile))
        kept = np.concatenate([fetched.kept for _, fetched in rows])
        choices = Choices(
            near=words * distinct,
            fills=np.where(kept, words * units[:, None], 0),
            kept=kept,
            stays=np.concatenate([fetched.stays for _, fetched in rows]),
            units=units,
            sums=self.problem.tensor_words(self.problem.output) * (units // distinct[:, self._output]),
            rows=tuple((unrolling, fetched.tiles) for unrolling, fetched in rows),
        )
        self._known_choices[tile] = choices
        return choices

    @cached_property
    def _known_choices(self) -> dict[Sizes, Choices]:
        return {}

    @cached_property
    def _output(self) -> int:
        return self.problem.tensors.index(self.problem.output)

    @cached_property
    def _unrollings(self) -> list[Unrolling]:
        """All factors of the dimensions over the fanouts; of equal products the first."""
        whole = tuple(self.problem.dimensions.values())
        unrollings: dict[Sizes, tuple[Sizes, ...]] = {(1,) * len(whole): ()}
        for cluster in self.fanouts:
            factors = list(_products(whole, cluster.fanout.size, self.limits))
            new: dict[Sizes, tuple[Sizes, ...]] = {}
            for sizes, before in unrollings.items():
                self.limits.check()
                self.limits.check_room(len(new) * len(whole))
                for factor in factors:
                    product = tuple(a * b for a, b in zip(sizes, factor, strict=True))
                    if not any(size % factor for size, factor in zip(whole, product, strict=True)):
                        new.setdefault(product, (*before, factor))
            unrollings = new
        return [Unrolling(factors, sizes) for sizes, factors in unrollings.items()]

    @cached_property
    def _known_fetched(self) -> dict[Sizes, Fetched]:
        return {}

    def _fetched(self, tile: Sizes) -> Fetched:
        """Return the register tiles that no other ones beat, for the part of one unit.

        Every loop outside a node repeats its tile. A node moves in through loops that move it, since it then needs less
        room. It moves out through others, since it is then filled less often. Stationary tensors do not move.
        """
        if tile in self._known_fetched:
            return self._known_fetched[tile]
        able = [
            at
            for at, tensor in enumerate(self.problem.tensors)
            if self.registers is not None and self.registers.may_hold(tensor)
        ]
        pairs: list[tuple[RegisterTiles, Sizes]] = []
        for stationary in subsets(able):
            room = self._capacity - sum(self._slices(at, tile) for at in stationary)
            for kept in subsets([at for at in able if at not in stationary]) if room >= 0 else ():
                rows: dict[Sizes, RegisterTiles] = {}
                for order in itertools.permutations(kept):
                    for nodes, fetched in self._nodes(order, tile, tile, (), room, {}):
                        stay = {at: math.prod(tile[d] for d in self.moving[at]) for at in stationary}
                        words = {**dict.fromkeys(range(len(self.moving)), math.prod(tile)), **fetched, **stay}
                        rows.setdefault(tuple(words.values()), RegisterTiles(stationary, nodes))
                pairs += [
                    (tiles, words)
                    for words, tiles in rows.items()
                    if not any(other != words and all(map(int.__le__, other, words)) for other in rows)
                ]
        tensors = range(len(self.moving))
        stays = np.array([[at in registers.stationary for at in tensors] for registers, _ in pairs], dtype=np.bool_)
        inside = np.array([[at in dict(registers.nodes) for at in tensors] for registers, _ in pairs], dtype=np.bool_)
        fetches = np.array([times for _, times in pairs], dtype=np.int64)
        self._known_fetched[tile] = Fetched(tuple(registers for registers, _ in pairs), fetches, stays | inside, stays)
        return self._known_fetched[tile]

    def _nodes(
        self,
        order: Sizes,
        whole: Sizes,
        tile: Sizes,
        nodes: tuple[tuple[int, Sizes], ...],
        room: float,
        fetched: dict[int, int],
    ) -> Iterator[tuple[tuple[tuple[int, Sizes], ...], dict[int, int]]]:
        """Yield nodes that keep tensors in an order, and the words that each one fetches."""
        if len(nodes) == len(order):
            yield nodes, fetched
            return
        name, last = order[len(nodes)], len(nodes) + 1 == len(order)
        before = self.moving[nodes[-1][0]] if nodes else ()
        stepped = [d for d in self.moving[name] if d not in before]
        if last and any(tile[d] > 1 for d in self.moving[name] if d in before):
            return  # it moves in through that loop, too
        most = room // self._widths[-1, name]  # larger tiles do not fit
        options = [[1] if last else self.limits.divisors(tile[d], most) for d in stepped]
        for sizes in itertools.product(*options):
            self.limits.check()
            inner = list(tile)
            for d, size in zip(stepped, sizes, strict=True):
                inner[d] = size
            left = room - self._slices(name, inner)
            if left >= 0:
                words = math.prod(inner[d] for d in self.moving[name]) * (math.prod(whole) // math.prod(inner))
                node = (name, tuple(inner))
                yield from self._nodes(order, whole, node[1], (*nodes, node), left, fetched | {name: words})

    @cached_property
    def _capacity(self) -> float:
        return 0 if self.registers is None else self.registers.usable_slices

    def _slices(self, at: int, tile: Sequence[int]) -> int:
        return int(self._widths[-1, at]) * math.prod(tile[d] for d in self.moving[at])

    @cached_property
    def _widths(self) -> Ints:
        """Slices of a value, [memory, tensor]."""
        return np.array([[memory.slices_of(t) for t in self.problem.tensors] for memory in self.architecture.memories])

    def _near_pj(self, in_buffer: tuple[bool, ...]) -> Floats:
        """Return pJ for each word that passes between the array and the memory outside it, by tensor."""
        memories = [self.architecture.memories[near] for near in in_buffer]
        near = zip(memories, self.problem.tensors, strict=True)
        return np.array([tensor_pj(memory, tensor, 1, 0, int(tensor.is_output)) for memory, tensor in near])

    def _first_pj(self, in_buffer: tuple[bool, ...]) -> float:
        """Return pJ of the first partial sums, which are not read outside the array."""
        output, memory = self.problem.output, self.architecture.memories[in_buffer[self._output]]
        return tensor_pj(memory, output, self.problem.tensor_words(output), 0, 0)

    def _best(
        self, energies: Floats, cycles: Ints, near: Ints, in_buffer: tuple[bool, ...], objective: Objective
    ) -> Iterable[int]:
        """Return the numbers of the choices that no other one beats in what the objective depends on."""
        memories = self.architecture.memories[:2]
        if not objective.cycle_power and not any(memory.leakage_pj_per_cycle for memory in memories):
            return [int(np.argmin(energies))]
        columns = [cycles.astype(np.float64)]
        if objective.energy_power:
            columns.insert(0, energies)
        for number, memory in enumerate(memories):
            widths = self._widths[number] * (np.array(in_buffer) == number)
            read, written = near @ widths, near[:, self._output] * widths[self._output]
            columns += [demand for _, demand, bandwidth in memory.demands(read, written) if bandwidth is not None]
        return map(int, undominated(np.stack(columns, axis=1), self.limits))

    def entries(self, choice: Choice) -> Iterator[dict[str, Any]]:
        """Yield the entries inside the buffer's loops."""
        names, factors = list(self.problem.dimensions), choice.unrolling.factors
        nodes, units = list(choice.tiles.nodes), choice.unrolling.sizes
        first = (1,) * len(names)
        if choice.tiles.stationary:
            first = tuple(size // unit for size, unit in zip(choice.tile, units, strict=True))
        elif nodes:
            first = nodes[0][1]
        sizes = [size * unit for size, unit in zip(first, units, strict=True)]
        for number, cluster in enumerate(self.fanouts):
            entry: dict[str, Any] = {
                "target": cluster.name,
                "temporal_tile_sizes": dict(zip(names, sizes, strict=True)),
            }
            entry["temporal_order"] = names
            sizes = [size // factor for size, factor in zip(sizes, factors[number], strict=True)]
            yield entry | {"spatial_tile_sizes": dict(zip(names, sizes, strict=True))}
        tensors, inner = [tensor.name for tensor in self.problem.tensors], self.architecture.clusters[-1].name
        if choice.tiles.stationary:
            yield {"target": inner, "keep": [tensors[at] for at in choice.tiles.stationary]}
        for at, tile in nodes:
            tiles = dict(zip(names, tile, strict=True))
            yield {"target": inner, "keep": [tensors[at]], "temporal_tile_sizes": tiles, "temporal_order": names}
        if choice.tiles.stationary or nodes:
            yield {"target": inner, "temporal_tile_sizes": dict.fromkeys(names, 1), "temporal_order": names}


def _products(whole: Sizes, most: int, limits: Limits) -> Iterator[Sizes]:
    """Yield factors that divide some sizes, whose product is at most `most`."""
    if not whole:
        yield ()
        return
    limits.check()
    for factor in limits.factors(whole[0], most):
        yield from ((factor, *others) for others in _products(whole[1:], most // factor, limits))
