"""Sunstone-arch: sizes of the innermost memories chosen by the tiles that need them (C. Ng's thesis, UBC, chapter 5).

Tiles of the innermost memories grow from single iterations; each step raises one dimension to its next divisor. A tile belongs to
the machine with the lowest energy per access among those that can hold it. A tile is dropped if it can grow to another tile of the
same machine. A machine without tiles is not searched, because its tiles fit a cheaper machine.

The other machines are searched in the order of their best tile's cost. This cost counts the tile's fills under the best loop order,
and each word once at each outer memory, at the machine's energies. The search stops when this cost exceeds the best result.
For several layers the costs of their best tiles are added.

As in the thesis' hierarchical form, the cost is no lower bound if windows slide or if multicast saves fills.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import InputError
from tilewright.plugin.strategy import ExplorationTask, PointProposal, PointProposals
from tilewright.prices import value_pj
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Problem, Tensor

MAX_TILES = 200_000


class SunstoneArch:
    """Strategy that tries the architectures whose innermost memories some tile needs, best tile first."""

    def explore(self, task: ExplorationTask) -> PointProposals:
        """Yield all points, one at a time; raise InputError for memories or tiles that do not suit it."""
        points = task.drawn()
        built = ((index, task.architecture(index)) for index in points)
        machines = [(index, machine) for index, machine in built if machine is not None]
        needed: set[int] = set()
        costs = np.zeros((2, len(machines)))
        for layer in task.workload.distinct():
            tiles = Tiles.of(layer.problem, [machine for _, machine in machines])
            needed |= {machines[place][0] for place in np.unique(tiles.owner[tiles.maximal])}
            costs += layer.count * tiles.least()
        value = task.objective.value(*costs)
        cost = {index: float(figure) for (index, _), figure in zip(machines, value, strict=True)}
        results = yield [
            PointProposal(index, "sunstone_arch: no tile needs its sizes") for index in points if index not in needed
        ]
        best = math.inf
        for index in sorted((index for index in points if index in needed), key=lambda index: cost[index]):
            why = "sunstone_arch: its best tile costs more than the best point" if cost[index] > best else None
            results = yield [PointProposal(index, why)]
            best = min(best, *(result.of(task.objective) for result in results))


@dataclass(frozen=True)
class Tiles:
    """Tiles of one problem in the innermost memories of several machines.

    Shapes: n tiles, D dimensions, T tensors, P machines.
    """

    problem: Problem
    machines: Sequence[Architecture]
    shapes: NDArray[np.int64]
    """[n, D]"""
    words: NDArray[np.float64]
    """[n, T]"""
    holds: NDArray[np.bool_]
    """[n, P]"""
    owner: NDArray[np.int64]
    """[n] the machine that holds it cheapest; -1: none holds it."""
    maximal: NDArray[np.bool_]
    """[n] it is held, and grows into no tile of the same machine."""

    @classmethod
    def of(cls, problem: Problem, machines: Sequence[Architecture]) -> Tiles:
        innermost = [_innermost(problem, machine) for machine in machines]
        capacity = np.array(
            [
                [_values(memory, tensor) for tensor, memory in zip(problem.tensors, memories, strict=True)]
                for memories in innermost
            ]
        )
        price = np.array([_per_operation(problem, memories) for memories in innermost])
        steps = [[size for size in range(1, full + 1) if full % size == 0] for full in problem.dimensions.values()]
        seen: dict[tuple[int, ...], int] = {(0,) * len(steps): 0}
        order = [(0,) * len(steps)]
        children: list[list[int]] = []
        words, owner = [], []
        for place in order:  # grows as tiles are found
            sizes = dict(zip(problem.dimensions, (row[at] for row, at in zip(steps, place, strict=True)), strict=True))
            mine = [problem.tile_words(tensor, sizes) for tensor in problem.tensors]
            fits = (np.array(mine) <= capacity).all(axis=1)
            words.append(mine)
            owner.append(int(np.where(fits, price, np.inf).argmin()) if fits.any() else -1)
            children.append([])
            if not fits.any():
                continue
            for at in range(len(steps)):
                if place[at] + 1 < len(steps[at]):
                    child = (*place[:at], place[at] + 1, *place[at + 1 :])
                    if child not in seen:
                        seen[child] = len(order)
                        order.append(child)
                    children[-1].append(seen[child])
            if len(order) > MAX_TILES:
                raise InputError(f"{problem.name} has more than {MAX_TILES:,} tiles for strategy sunstone_arch", hint="explore the grid")  # fmt: skip
        held = [
            mine >= 0 and all(owner[child] != mine for child in below)
            for mine, below in zip(owner, children, strict=True)
        ]
        shapes = np.array([[row[at] for row, at in zip(steps, place, strict=True)] for place in order])
        all_words = np.array(words, dtype=np.float64)
        holds: NDArray[np.bool_] = np.asarray((all_words[:, None, :] <= capacity[None]).all(axis=2))
        return cls(problem, machines, shapes, all_words, holds, np.array(owner), np.array(held, dtype=np.bool_))

    def least(self) -> NDArray[np.float64]:
        """Return [2, P]: per machine, the ideal energy with its cheapest kept tile (inf without a tile), and the ideal cycles."""
        energy = np.full(len(self.machines), np.inf)
        cycles = np.zeros(len(self.machines))
        fills = self._fills()[self.maximal]
        for index, machine in enumerate(self.machines):
            cycles[index] = self.problem.macs * machine.compute.cycles_per_operation / machine.compute_instances
            here = self.holds[self.maximal, index]
            if here.any():
                inner = _innermost(self.problem, machine)
                moved = np.array([_filled(tensor, memory) for tensor, memory in zip(self.problem.tensors, inner, strict=True)])  # fmt: skip
                fixed = self.problem.macs * (
                    _per_operation(self.problem, inner) + machine.compute.energy_per_operation_pj
                )
                energy[index] = fixed + _ideal(self.problem, machine) + (fills[here] * moved).sum(axis=2).min()
        return np.stack([energy, cycles])

    def _fills(self) -> NDArray[np.float64]:
        """Return [n, T, T]: words of each tensor (last axis) filled into the innermost memories.

        The middle axis is the tensor that the innermost of the outer loops leave stationary.
        """
        dims = list(self.problem.dimensions)
        trips = np.array([self.problem.dimensions[name] for name in dims]) / self.shapes
        every = trips.prod(axis=1)
        fills = np.repeat((self.words * every[:, None])[:, None, :], len(self.problem.tensors), axis=1)
        for number, tensor in enumerate(self.problem.tensors):
            own = [name in tensor.dimensions for name in dims]
            fills[:, number, number] = self.words[:, number] * trips[:, own].prod(axis=1)
        return fills


def _innermost(problem: Problem, machine: Architecture) -> list[Memory]:
    """Return for each tensor the memory nearest to the units. Raises InputError: there is none."""
    memories = []
    for tensor in problem.tensors:
        memory = next((candidate for cluster in reversed(machine.clusters[1:]) if (candidate := cluster.memory_for(tensor)) is not None), None)  # fmt: skip
        if memory is None:
            raise InputError(f"strategy sunstone_arch: {machine.name} has no inner memory for {tensor.name}", hint="explore the grid")  # fmt: skip
        memories.append(memory)
    return memories


def _values(memory: Memory, tensor: Tensor) -> float:
    """Return the number of values of a tensor that fit in a memory."""
    return memory.usable_slices / memory.slices_of(tensor)


def _per_operation(problem: Problem, inner: Sequence[Memory]) -> float:
    """Return the pJ of one operation's words at the innermost memories; operands are read, results read and written."""
    return math.fsum(
        value_pj(memory, tensor, 1, 0, int(tensor.is_output))
        for tensor, memory in zip(problem.tensors, inner, strict=True)
    )


def _filled(tensor: Tensor, memory: Memory) -> float:
    """Return the pJ at an innermost memory for a value that enters it (operand) or leaves it (output)."""
    return value_pj(memory, tensor, int(tensor.is_output), int(not tensor.is_output), 0)


def _ideal(problem: Problem, machine: Architecture) -> float:
    """Return the pJ of all words, once at each outer memory."""
    total = 0.0
    for tensor in problem.tensors:
        holding = [memory for cluster in machine.clusters if (memory := cluster.memory_for(tensor)) is not None][:-1]
        for place, memory in enumerate(holding):
            again = int(place > 0)
            accesses = (again, 0, 1) if tensor.is_output else (1, again, 0)
            total += problem.tile_words(tensor, problem.dimensions) * value_pj(memory, tensor, *accesses)
    return total
