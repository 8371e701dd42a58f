"""Sunstone-arch: sizes of the innermost memories chosen by the tiles that need them (C. Ng's thesis, UBC, chapter 5).

Tiles of the innermost memories grow from single iterations; each step raises one dimension to its next divisor. A tile belongs to
the machine with the lowest energy per access among those that can hold it. A tile is dropped if it can grow to another tile of the
same machine. A machine without tiles is not searched, because its tiles fit a cheaper machine.

The other machines are searched together, cheapest first: each mapping is evaluated once, on the first machine that holds its
tiles. Machines that differ in more than the sizes and prices of the innermost memories are searched group by group.
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
SIZES = ("capacity_words", "_pj", "_um2")
"""Ends of the names of a memory's fields that are its size and its prices."""


class SunstoneArch:
    """Strategy that searches the architectures whose innermost memories some tile needs as one."""

    def explore(self, task: ExplorationTask) -> PointProposals:
        """Yield all points; raise InputError for memories or tiles that do not suit it."""
        groups: dict[str, list[tuple[int, Architecture]]] = {}
        unbuilt = []
        for index in task.drawn():
            machine = task.architecture(index)
            if machine is None:
                unbuilt.append(PointProposal(index))
            else:
                groups.setdefault(_structure(machine, task), []).append((index, machine))
        yield unbuilt
        for group in groups.values():
            prices, needed = np.zeros(len(group)), np.zeros(len(group), dtype=np.bool_)
            for layer in task.workload.distinct():
                tiles = Tiles.of(layer.problem, [machine for _, machine in group])
                needed[tiles.owner[tiles.maximal]] = True
                prices += layer.count * layer.problem.macs * tiles.price
            order = np.argsort(prices, kind="stable")
            yield [
                PointProposal(group[place][0], together=True)
                if needed[place]
                else PointProposal(group[place][0], "sunstone_arch: no tile needs its sizes")
                for place in order
            ]


def _structure(machine: Architecture, task: ExplorationTask) -> str:
    """Return everything but the names of the machine, and sizes and prices of its innermost memories."""
    innermost = {memory.name for layer in task.workload.distinct() for memory in _innermost(layer.problem, machine)}
    data = machine.model_dump(mode="json", exclude={"name", "source"})
    for cluster in data["clusters"]:
        for memory in cluster["memories"]:
            for field in list(memory) if memory["name"] in innermost else ():
                if field.endswith(SIZES):
                    del memory[field]
    return repr(data)


@dataclass(frozen=True)
class Tiles:
    """Tiles of one problem in the innermost memories of several machines.

    Shapes: n tiles, P machines.
    """

    price: NDArray[np.float64]
    """[P] pJ of one operation's words at the innermost memories."""
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
        owner = []
        for place in order:  # grows as tiles are found
            sizes = dict(zip(problem.dimensions, (row[at] for row, at in zip(steps, place, strict=True)), strict=True))
            words = [problem.tile_words(tensor, sizes) for tensor in problem.tensors]
            fits = (np.array(words) <= capacity).all(axis=1)
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
            machine >= 0 and all(owner[child] != machine for child in below)
            for machine, below in zip(owner, children, strict=True)
        ]
        return cls(price, np.array(owner), np.array(held, dtype=np.bool_))


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
