"""The recursion over levels for many mappings at once (as `analysis`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.mapspace.batch import Bools, Ints
from tilewright.notations.directives import FILTER, INPUT, OUTPUT
from tilewright_costmodels.maestro.analysis import COUNTER_LIMIT, OPERANDS
from tilewright_costmodels.maestro.groups import Group, edges_present
from tilewright_costmodels.maestro.stages import Stage, states_of


@dataclass(frozen=True)
class Wires:
    """What limits transfers: elements per cycle, cycles."""

    noc_bandwidth: int
    noc_latency: int
    offchip_bandwidth: int

    def delay(self, elements: Ints) -> Ints:
        """Cycles of a transfer [n]."""
        return self.noc_latency - -elements // self.noc_bandwidth - 1


@dataclass
class Sums:
    """What the outermost level comes to, arrays [n]; `required` counts both copies of a tile."""

    cycles: Ints
    fault: Bools
    macs: Ints
    counted_macs: Ints
    egress: Ints
    ingress: dict[str, Ints] = field(default_factory=dict)
    required: dict[str, Ints] = field(default_factory=dict)


@dataclass(frozen=True)
class Recursion:
    """Levels of `n` mappings, outermost first, all with as many; `lanes` [n] MACs per PE and cycle."""

    stages: Sequence[Stage]
    lanes: Ints
    wires: Wires

    def take(self, rows: Ints) -> Recursion:
        """The mappings that an index selects."""
        return Recursion([stage.take(rows) for stage in self.stages], self.lanes[rows], self.wires)

    @property
    def inner(self) -> Recursion:
        return Recursion(self.stages[1:], self.lanes, self.wires)

    def sums(self, actual: Ints, outermost: bool = True) -> Sums:
        """The outermost of these levels on sub-problems of sizes [letter, n]; inner ones give cycles and faults only."""
        states = states_of(self.stages[0], actual)
        whole = Group(self.stages[0], states, ())
        total = _empty(whole)
        floor = self._offchip(total) if outermost else np.full(actual.shape[1], -1)  # less than any step takes
        for edges, rows in edges_present(states.edge):
            part, group = self._group(whole, edges, rows)
            at = slice(None) if rows is None else rows
            works = group.critical > 0
            compute, fault = part._compute(group)
            total.fault[at] |= works & (fault | (group.most >= COUNTER_LIMIT) | (outermost & (compute <= 0)))
            if outermost:
                total.egress[at] += group.occurrences * group.egress
                total.counted_macs[at] += group.occurrences * group.macs
                total.macs[at] += np.where(works, group.occurrences * group.macs, 0)
            if rows is None:
                arriving = self.wires.delay(total.required[INPUT] // 2 + total.required[FILTER] // 2)
                total.cycles += np.where(works, np.maximum(compute + arriving, floor), 0)
            for moved in range(len(actual)):
                times = np.where(works, group.occurrences_of(moved), 0)
                if not times.any():
                    continue
                cycles, sent = part._moved(group, moved, compute)
                total.cycles[at] += times * np.maximum(cycles, floor[at])
                for name, words in sent.items() if outermost else ():
                    total.ingress[name][at] += times * words
        return total

    def _group(self, whole: Group, edges: tuple[int, ...], rows: Ints | None) -> tuple[Recursion, Group]:
        if rows is None:
            return self, whole
        part = self.take(rows)
        return part, Group(part.stages[0], whole.states.take(rows), edges)

    def _moved(self, group: Group, moved: int, compute: Ints) -> tuple[Ints, dict[str, Ints]]:
        """Cycles of a step in which a letter moved last [n], and the elements of the inputs sent down for it."""
        tensors = group.stage.letters.tensors
        sent = {name: group.ingress(name, moved) for name in OPERANDS if moved in tensors[name]}
        arriving = self.wires.delay(sum(sent.values(), np.zeros_like(compute)))
        return np.maximum(compute, np.maximum(arriving, self.wires.delay(group.egress))), sent

    def _offchip(self, total: Sums) -> Ints:
        """Every step loads and stores a whole tile of the outer buffer, half of it hidden [n]."""
        bandwidth = self.wires.offchip_bandwidth
        loads, stores = total.required[INPUT] + total.required[FILTER], total.required[OUTPUT]
        return np.asarray(np.maximum(loads // bandwidth // 2, stores // bandwidth // 2))

    def _compute(self, group: Group) -> tuple[Ints, Bools]:
        """Cycles that one step computes [n], and where MAESTRO gives up."""
        if len(self.stages) == 1:
            return -(-group.critical // self.lanes), np.zeros(len(self.lanes), dtype=np.bool_)
        found = self.inner.sums(group.tile(group.uneven | (group.working == 1)), outermost=False)
        rows = np.flatnonzero(group.uneven)
        if len(rows):  # the other sub-clusters have full tiles; the slower count
            again = self.inner.take(rows).sums(group.tile(np.zeros_like(group.uneven))[:, rows], outermost=False)
            found.cycles[rows] = np.maximum(found.cycles[rows], again.cycles)
            found.fault[rows] |= again.fault
        return found.cycles, found.fault


def _empty(whole: Group) -> Sums:
    """Before any step but the first tile of the inputs, which always does work."""
    zero = np.zeros(len(whole.stage.split), dtype=np.int64)
    first = {name: whole.first_ingress(name) for name in OPERANDS}
    required = {name: 2 * words for name, words in first.items()} | {OUTPUT: 2 * whole.egress}
    fault = whole.states.stuck.copy()
    return Sums(zero, fault, zero.copy(), zero.copy(), zero.copy(), ingress=first, required=required)
