"""Counts of a vector layer by formula: operations, and words in each memory. docs/vector.md has the rules.

Softmax of 4 rows of 8, from DRAM through one Buffer, whose unit has 2 lanes:
Buffer holds a row:    DRAM reads 32 and writes 32; Buffer takes 32 + 64, and gives 3 x 32 + 32
Buffer holds 4 words:  blocks of 2 words, 4 in a row; DRAM reads 64
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from tilewright.errors import NotConformableError, Reason
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.problem import Tensor
from tilewright.schema.vector import RESULT, Operand, Operation, OperatorWork, Unit, VectorLayer


@dataclass
class Moved:
    """Words of one tensor in one memory: those of all instances, and those of the first one, which is the busiest."""

    reads: int = 0
    fills: int = 0
    updates: int = 0
    most_read: int = 0
    most_written: int = 0

    def add(self, kind: str, words: int, most: int) -> None:
        """Add words of one kind: `reads`, `fills` or `updates`."""
        setattr(self, kind, getattr(self, kind) + words)
        if kind == "reads":
            self.most_read += most
        else:
            self.most_written += most


@dataclass
class VectorCounts:
    """Counts of one execution of a layer.

    Attributes:
        operations: of all units.
        most: operations of the busiest unit.
        moved: (memory, tensor) -> words.
    """

    operations: Counter[Operation] = field(default_factory=Counter)
    most: Counter[Operation] = field(default_factory=Counter)
    moved: dict[tuple[str, str], Moved] = field(default_factory=dict)

    def add(self, memory: str, tensor: str, kind: str, words: int, most: int) -> None:
        """Add words of a tensor in a memory."""
        self.moved.setdefault((memory, tensor), Moved()).add(kind, words, most)


@dataclass(frozen=True)
class Placement:
    """A layer on the units of one name: the memories on the way of each tensor, and where whole rows have room.

    Raises:
        NotConformableError: the layer does not fit the machine; see `check`.
    """

    layer: VectorLayer
    architecture: Architecture
    unit: Unit
    model: str

    @cached_property
    def work(self) -> OperatorWork:
        return self.unit.work_of(self.layer)

    @cached_property
    def memory(self) -> Memory:
        """Memory of the unit."""
        return next(memory for memory in self.architecture.memories if memory.name == self.unit.memory)

    @cached_property
    def instances(self) -> Mapping[str, int]:
        """Memory -> its instances."""
        pairs = zip(self.architecture.clusters, self.architecture.instances, strict=False)
        return {memory.name: number for cluster, number in pairs for memory in cluster.memories}

    @cached_property
    def units(self) -> int:
        """Number of units."""
        return self.instances[self.unit.memory]

    def used(self, memory: str) -> int:
        """Return the instances of a memory, on the way to the units, that take part."""
        return -(-min(self.layer.rows, self.units) // (self.units // self.instances[memory]))

    def rows(self, memory: str) -> int:
        """Return the rows of the first instance of a memory: the units below it work on them."""
        share, rest = divmod(self.layer.rows, self.units)
        below = self.units // self.instances[memory]
        return below * share + min(below, rest)

    @cached_property
    def paths(self) -> Mapping[str, tuple[Memory, ...]]:
        """Tensor -> memories on its way, outermost first; the last one is the unit's."""
        return {tensor.name: (*self._outside(tensor), self.memory) for tensor in self.layer.tensors}

    def _outside(self, tensor: Tensor) -> Iterator[Memory]:
        for cluster in self.architecture.clusters:
            if self.memory in cluster.memories:
                return
            able = [memory for memory in cluster.memories if memory.may_hold(tensor)]
            if len(able) > 1:
                told = f"{' and '.join(memory.name for memory in able)} may hold its {tensor.role}; expected one memory"
                self.refuse("ambiguous", told)
            yield from able

    @cached_property
    def words(self) -> Mapping[str, int]:
        """Tensor -> its words."""
        return {operand.name: operand.words for operand in self.layer.operands} | {RESULT: self.layer.result}

    def _at_home(self, memory: Memory) -> int:
        """Return the slices of the tensors whose way begins in a memory."""
        homes = [tensor for tensor in self.layer.tensors if self.paths[tensor.name][0] is memory]
        return sum(self.words[tensor.name] * memory.slices_of(tensor) for tensor in homes)

    def holds(self, memory: Memory) -> bool:
        """Return whether a memory has room for whole rows of all units below it, and for what rows share."""
        below, layer, slices = self.units // self.instances[memory.name], self.layer, self._at_home(memory)
        shared = {operand.name for operand in layer.operands if operand.shared}
        for tensor in layer.tensors:
            if memory in self.paths[tensor.name][1:]:
                words = below * layer.row
                if tensor.name in shared:
                    words = self.words[tensor.name]
                elif tensor.name == RESULT:
                    words = below * -(-layer.result // layer.rows)
                    words += self.work.kept * layer.row if memory is self.memory else 0
                slices += words * memory.slices_of(tensor)
        return slices <= memory.usable_slices

    @cached_property
    def blocks(self) -> int | None:
        """Blocks of a row, if the unit's memory has no room for a row; None: it has."""
        if self.holds(self.memory):
            return None
        moving = [tensor for tensor in self.layer.tensors if self.paths[tensor.name][0] is not self.memory]
        element = sum(self.memory.slices_of(tensor) for tensor in moving)
        length = int((self.memory.usable_slices - self._at_home(self.memory)) // element) if element else 0
        if length < 1:
            self.refuse("capacity", f"{self.memory.name} has no room for an element of each tensor")
        return -(-self.layer.row // length)

    def keeper(self, operand: Operand, place: int) -> Memory | None:
        """Return the next memory on the way of an operand, behind a place, that holds whole rows; None: there is none."""
        return next((memory for memory in self.paths[operand.name][place + 1 :] if self.holds(memory)), None)

    def times(self, operand: Operand, place: int) -> int:
        """Return how often an operand's words leave its memory at a place of its way.

        Words that rows share leave once for each memory that keeps them, or for each row.
        """
        keeper = self.keeper(operand, place)
        if operand.shared:
            return self.layer.rows if keeper is None else self.used(keeper.name)
        return self.work.passes if keeper is None and operand is self.layer.operands[0] else 1

    def check(self) -> None:
        """Check that the unit has the operations, and the machine the room.

        Raises:
            NotConformableError: an operation is missing (`operation`), or a home lacks room (`capacity`). A memory may
                not be unique (`ambiguous`), or a network on the way has meshes (`mesh`).
        """
        missing = sorted(self.work.kinds - self.unit.energy_pj.keys())
        if missing:
            self.refuse("operation", f"{self.unit.name} has no {', '.join(missing)}; expected an energy_pj of each")
        homes = {path[0].name: path[0] for path in self.paths.values()}
        for home in homes.values():
            if self._at_home(home) > home.usable_slices:
                self.refuse("capacity", f"{home.name} has no room for its words")
        for path in self.paths.values():
            for cluster in self.between(path[0], path[-1]):
                if cluster.fanout.network.meshes:
                    self.refuse(
                        "mesh", f"the network below {cluster.name} has meshes, whose links are not counted for it"
                    )

    def between(self, outer: Memory, inner: Memory) -> tuple[Cluster, ...]:
        """Return the clusters whose networks words pass between two memories."""
        index = self.architecture.cluster_index
        ends = [index[self.architecture.cluster_of(memory.name).name] for memory in (outer, inner)]
        return self.architecture.clusters[ends[0] : ends[1]]

    def refuse(self, code: str, message: str) -> NoReturn:
        """Raise NotConformableError."""
        reason = Reason(code=code, where=self.layer.name, message=message)
        raise NotConformableError(f"cost model {self.model}", (reason,))


def counts_of(placed: Placement) -> VectorCounts:
    """Return the counts of a layer by formula.

    Raises:
        NotConformableError: see `Placement.check`.
    """
    placed.check()
    layer, work, blocks, counts = placed.layer, placed.work, placed.blocks, VectorCounts()
    rows, most_rows, home = layer.rows, placed.rows(placed.memory.name), placed.memory.name
    counts.operations = work.operations(rows, layer.row, blocks)
    counts.most = work.operations(most_rows, layer.row, blocks)
    for operand in layer.operands:
        path = placed.paths[operand.name]
        for place, (outer, inner) in enumerate(zip(path, path[1:], strict=False)):
            times = placed.times(operand, place)
            for memory, kind in ((outer.name, "reads"), (inner.name, "fills")):
                most = times * _part(operand.words, placed, memory)
                if operand.shared:
                    most = operand.words * _copies(placed, placed.keeper(operand, place), memory)
                counts.add(memory, operand.name, kind, times * operand.words, most)
        sweeps = work.sweeps if operand is layer.operands[0] else 1
        counts.add(home, operand.name, "reads", sweeps * layer.elements, sweeps * most_rows * layer.row)
    kept = 0 if blocks is not None else work.kept
    made = layer.result + kept * layer.elements
    counts.add(home, RESULT, "updates", made, _part(layer.result, placed, home) + kept * most_rows * layer.row)
    path = placed.paths[RESULT]
    for outer, inner in zip(path, path[1:], strict=False):
        counts.add(inner.name, RESULT, "reads", layer.result, _part(layer.result, placed, inner.name))
        counts.add(outer.name, RESULT, "updates", layer.result, _part(layer.result, placed, outer.name))
    return counts


def _part(words: int, placed: Placement, memory: str) -> int:
    """Return the words that belong to the rows of the first instance of a memory."""
    return -(-words * placed.rows(memory) // placed.layer.rows)


def _copies(placed: Placement, keeper: Memory | None, memory: str) -> int:
    """Return how often words that rows share leave or reach the first instance of a memory, on their way to their keeper."""
    if keeper is None:
        return placed.rows(memory)
    return min(max(1, placed.instances[keeper.name] // placed.instances[memory]), placed.used(keeper.name))
