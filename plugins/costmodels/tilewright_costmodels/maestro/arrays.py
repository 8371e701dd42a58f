"""Prices of batches: `evaluator` in array form, held to it by property tests."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tilewright.mapspace.batch import Bools, Floats, Ints, MappingBatch
from tilewright.mapspace.legality import legal
from tilewright.notations.directives import FILTER, INPUT, OUTPUT, WINDOWS, DirectiveLayer
from tilewright.notations.directives.plan import Plan
from tilewright.notations.directives.roles import Roles
from tilewright.plugin.costmodel import Costs
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem
from tilewright_costmodels.maestro.figures import words_held
from tilewright_costmodels.maestro.nests import NOWHERE, Nest, Nests
from tilewright_costmodels.maestro.recursion import Recursion, Sums, Wires
from tilewright_costmodels.maestro.stages import Letters, Stage

CHUNK = 2048
"""Mappings analysed together: their arrays stay in cache."""


class ArrayPricer:
    """The model bound to one problem and one architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, roles: Roles, plan: Plan, faithful: bool) -> None:
        self.problem, self.architecture = problem, architecture
        self.roles, self.plan, self.faithful = roles, plan, faithful
        sizes = roles.sizes(problem)
        self.layer = DirectiveLayer.model_validate(
            {"name": problem.name, "type": roles.type, "dimensions": sizes, "strides": roles.strides, "levels": ((),)}
        )
        self.letters = _letters(self.layer, roles, problem)
        self.nests = Nests(self.layer, roles, plan, self.letters.names)
        self.wires = Wires(plan.noc_bandwidth, plan.noc_latency, plan.offchip_bandwidth)

    def price(self, batch: MappingBatch) -> Costs:
        """Valid, energy and cycles of a batch."""
        n = len(batch)
        costs = Costs(np.zeros(n, dtype=np.bool_), np.full(n, np.inf), np.full(n, np.inf))
        candidates = np.flatnonzero(self._candidates(batch))
        if not len(candidates):
            return costs
        if len(candidates) < n:
            batch = batch.take(candidates)
        temporal = -(-batch.incoming // batch.temporal)
        spatial = -(-batch.temporal // batch.spatial)
        for rows, nests, kinds in self._alike(batch, temporal, spatial):
            good, energy, cycles = self._priced(batch, rows, spatial, nests, kinds)
            at = candidates[rows[good]]
            costs.valid[at] = True
            costs.energy_pj[at], costs.cycles[at] = energy[good], cycles[good]
        return costs

    def _candidates(self, batch: MappingBatch) -> Bools:
        """Legal, and every tensor goes through both buffers."""
        good = legal(self.problem, self.architecture, batch)
        for cluster in (self.plan.l2, self.plan.l1):
            entries = [i for i, entry in enumerate(batch.skeleton.entries) if entry.target == cluster.name]
            good &= np.logical_or.reduce(batch.keep[:, entries], axis=1).all(axis=1)
        if batch.unicast is not None and batch.unicast.any():
            split = np.logical_or.reduce(batch.spatial < batch.temporal, axis=2)
            good &= ~(split & np.logical_or.reduce(batch.unicast, axis=2)).any(axis=1)
        return good

    def _alike(self, batch: MappingBatch, temporal: Ints, spatial: Ints) -> Iterator[tuple[Ints, list[Nest], Ints]]:
        """Chunks of rows whose nests have as many levels: (rows, kinds of nests, kind of each row)."""
        found = self.nests.sort(batch, temporal, spatial)
        for levels in sorted({nest.levels for nest, _ in found}):
            same = [(nest, rows) for nest, rows in found if nest.levels == levels]
            nests = [nest for nest, _ in same]
            rows = np.concatenate([each for _, each in same])
            kinds = np.repeat(np.arange(len(same)), [len(each) for _, each in same])
            for start in range(0, len(rows), CHUNK):
                yield rows[start : start + CHUNK], nests, kinds[start : start + CHUNK]

    def _priced(
        self, batch: MappingBatch, rows: Ints, spatial: Ints, nests: list[Nest], kinds: Ints
    ) -> tuple[Bools, Floats, Floats]:
        """(valid, energy, cycles) of rows."""
        trips = spatial[rows].reshape(len(rows), -1)
        tiles = np.concatenate(
            [array[rows].reshape(len(rows), -1) for array in (batch.temporal, batch.spatial)], axis=1
        )
        last = np.array([nest.last for nest in nests])[kinds]
        entries = np.repeat(np.arange(spatial.shape[1]), spatial.shape[2])
        lanes = np.where(entries >= last[:, None], trips, 1).prod(axis=1)
        stages, folded = self._stages(tiles, trips, nests, kinds)
        sums = Recursion(stages, lanes, self.wires).sums(np.repeat(self.letters.sizes[:, None], len(rows), axis=1))
        need = self._required(sums, stages[-1])
        good = folded & ~sums.fault & (self._fits(need) | self.faithful)
        return good, self._energy(sums), sums.cycles.astype(np.float64)

    def _stages(self, tiles: Ints, trips: Ints, nests: list[Nest], kinds: Ints) -> tuple[list[Stage], Bools]:
        """The levels of rows, and whether every fold is full."""
        rows = np.arange(len(tiles))[:, None]
        folded = np.ones(len(tiles), dtype=np.bool_)
        nominal = np.repeat(self.letters.sizes[:, None], len(tiles), axis=1)
        size, offset = nominal, nominal
        stages: list[Stage] = []
        for level in range(nests[0].levels):
            slots = np.array([nest.tile[level] for nest in nests])[kinds]
            own = np.array([nest.own[level] for nest in nests])[kinds].T
            taken = np.where(slots == NOWHERE, self.letters.whole, tiles[rows, slots]).T
            pair = np.array([nest.pair[level] for nest in nests])[kinds]
            wide, apart = self.letters.widened(taken, pair)
            size, offset = np.where(own, wide, size), np.where(own, apart, offset)
            self.letters.strided(size, offset, inner=level > 0)
            at = np.array([nest.clusters[level] for nest in nests])[kinds]
            clusters = np.where(at == NOWHERE, 1, trips[rows[:, 0], at])
            half = tiles.shape[1] // 2
            must = np.array([nest.folded[level] for nest in nests])[kinds]
            folded &= ~must | (tiles[rows[:, 0], at] == clusters * tiles[rows[:, 0], at + half])
            position = np.array([nest.position[level] for nest in nests])[kinds].T
            split = np.array([nest.split[level] for nest in nests])[kinds]
            stages.append(Stage(self.letters, size, offset, nominal, position, split, pair, clusters))
            nominal = np.minimum(size, nominal)
        return stages, folded

    def _required(self, sums: Sums, inner: Stage) -> dict[str, tuple[Ints, Ints]]:
        """Tensor -> elements that L2 and L1 need [n]."""
        return {
            name: (sums.required[name], 2 * inner.size[list(letters)].prod(axis=0))
            for name, letters in self.letters.tensors.items()
        }

    def _fits(self, need: dict[str, tuple[Ints, Ints]]) -> Bools:
        good = np.ones(len(need[OUTPUT][0]), dtype=np.bool_)
        for which, cluster in enumerate((self.plan.l2, self.plan.l1)):
            for memory in cluster.memories:
                if memory.capacity_words is not None:
                    words = sum(need[name][which] for name in need if self._home(which, name) is memory)
                    good &= words <= memory.capacity_words
        return good

    def _home(self, which: int, tensor: str) -> Memory | None:
        return (self.plan.l2, self.plan.l1)[which].memory_for(self.roles.tensors[tensor])

    def _energy(self, sums: Sums) -> Floats:
        """L2, L1 and compute."""
        energy: Floats = np.asarray(sums.macs * self.architecture.compute.energy_per_operation_pj)
        for name in (INPUT, FILTER, OUTPUT):
            words = words_held(self.layer, name)
            l2, l1 = self._home(0, name), self._home(1, name)
            if name == OUTPUT:
                energy = energy + _energy(l2, words, 0, sums.egress)
                energy = energy + _energy(l1, sums.counted_macs, 0, sums.counted_macs)
            else:
                energy = energy + _energy(l2, sums.ingress[name], words, 0)
                energy = energy + _energy(l1, sums.macs, sums.ingress[name], 0)
        return energy


def _energy(memory: Memory | None, reads: Ints | int, fills: Ints | int, updates: Ints | int) -> Floats:
    assert memory is not None, "every tensor is kept there"
    update = memory.write_energy_pj if memory.update_energy_pj is None else memory.update_energy_pj
    energy = reads * memory.read_energy_pj + fills * memory.write_energy_pj + updates * update
    return np.asarray(energy / memory.block_words)


def _letters(layer: DirectiveLayer, roles: Roles, problem: Problem) -> Letters:
    table = layer.tensors
    names = tuple(sorted(set(table[INPUT] + table[FILTER])))
    index = {letter: number for number, letter in enumerate(names)}
    played = {roles.letters[name]: size for name, size in problem.dimensions.items()}
    return Letters(
        names=names,
        tensors={name: tuple(index[letter] for letter in letters) for name, letters in table.items()},
        windows=()
        if layer.type == "GEMM"
        else tuple((index[x], index[window], layer.stride(x)) for x, window in WINDOWS.items()),
        sizes=np.array([layer.dimensions[letter] for letter in names]),
        whole=np.array([played.get(letter, 1) for letter in names]),
    )


def largest_count(layer: DirectiveLayer, wires: Wires) -> int:
    """More than any count or number of cycles: steps, times what each can compute and send."""
    spread = math.prod(2 * (layer.dimensions[w] + layer.stride(x)) for x, w in WINDOWS.items() if w in layer.dimensions)
    return 8 * layer.macs * spread * (wires.noc_latency + 2)
