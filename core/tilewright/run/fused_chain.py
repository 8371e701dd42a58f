"""Optimal group mapping of a chain of layers on two memories, by exact joining of partial mappings.

Later layers depend on two facts. The first is the *class*: the loops outside the home of the tensor that is alive.
The second is the words kept per depth of these loops. Of joined parts that agree in the class, those
that another one beats in every figure are dropped. This is exact, since costs and room only grow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.run.fused_parts import Ends, FusedLayer, Loops, Part, undominated
from tilewright.schema.group import GroupMapping
from tilewright.schema.report import Objective


@dataclass(frozen=True)
class Joined:
    """Joined parts of the layers so far.

    `outside` are words per depth of the live tensor's loops that stay while deeper loops run.
    `inside` are, per depth, the most words that a finished branch there took below it.
    """

    energy_pj: float
    cycles: float
    outside: tuple[float, ...]
    inside: tuple[float, ...]
    parts: tuple[tuple[Ends, Part], ...]

    def of(self, objective: Objective, energy_pj: float = 0.0, cycles: float = 0.0) -> float:
        """Return the objective after adding energy and cycles."""
        energy, time = self.energy_pj + energy_pj, self.cycles + cycles
        return {"edp": energy * time, "energy": energy, "cycles": time}[objective]


@dataclass(frozen=True)
class FusedChain:
    """Optimum of a chain with its costs, and the optimum without fusion."""

    group: GroupMapping
    energy_pj: float
    cycles: float
    unfused: GroupMapping


def map_chain(group: GroupMapping, objective: Objective = "energy") -> FusedChain:
    """Return the group mapping of least cost over the layers and edges of a group; its tree is ignored.

    Only a tensor that a layer makes for the next one alone is fused. All tiles divide.

    Raises:
        NotConformableError: The architecture does not have two memories without a fanout, a
            coordinate is a window, or nothing fits.
    """
    reasons = tuple(_uncovered(group))
    if reasons:
        raise NotConformableError("the mapper of fused chains", reasons)
    axes = _axes(group)
    found = [layer.parts() for layer in _layers(group, axes)]
    ends = Ends(None, None)
    if any(ends not in each for each in found):
        reason = Reason(code="capacity", where=group.name, message="some layer does not fit the buffer")
        raise NotConformableError("the mapper of fused chains", (reason,))
    capacity = group.architecture.memories[1].usable_slices
    unfused = _joined([{ends: each[ends]} for each in found], objective, capacity, math.inf)
    plain = min(unfused, key=lambda each: each.of(objective))
    states = _joined(found, objective, capacity, plain.of(objective))
    best = min(states, key=lambda each: each.of(objective), default=plain)
    return FusedChain(
        group=_group(group, axes, best.parts),
        energy_pj=best.energy_pj,
        cycles=best.cycles,
        unfused=_group(group, axes, plain.parts),
    )


def _uncovered(group: GroupMapping) -> Iterator[Reason]:
    architecture = group.architecture
    if len(architecture.memories) != 2 or architecture.compute_instances != 1:
        text = "the architecture has other parts; expected two memories and one compute unit"
        yield Reason(code="hardware", where=architecture.name, message=text)
    elif any(not memory.may_hold(t) for memory in architecture.memories for p in group.layers for t in p.tensors):
        yield Reason(code="hardware", where=architecture.name, message="a memory may not hold every tensor")
    for name in architecture.sparse_parts:
        yield Reason(code="sparse", where=name, message="sparse hardware is not counted in groups")
    for problem in group.layers:
        for tensor in problem.tensors:
            plain = all(list(rank.terms.values()) == [1] for rank in tensor.projection)
            if not plain or len(tensor.dimensions) != len(tensor.projection):
                text = "a coordinate is a window, or a dimension repeats; expected one dimension for each"
                yield Reason(code="window", where=f"{problem.name}, tensor {tensor.name}", message=text)
    for edge in group.edges:
        if edge.sizes is not None or any(any(each) for each in edge.offsets.values()):
            yield Reason(code="padding", where=f"tensor {edge.tensor}", message="padding and offsets are not searched")


def _order(group: GroupMapping) -> list[str]:
    return list(group.tree.layers())


def _fusable(group: GroupMapping) -> dict[str, str]:
    """Return the tensors that a layer makes for the next one alone -> the layer."""
    order = _order(group)
    found = {}
    for tensor, users in group.users.items():
        layers, maker = list(users), group.maker(tensor)
        if len(layers) == 2 and maker == layers[0] and order.index(layers[1]) == order.index(maker) + 1:
            found[tensor] = maker
    return found


def _axes(group: GroupMapping) -> dict[tuple[str, str], str]:
    """Return (layer, dimension) -> axis. Dimensions are one axis if they are one coordinate of a fusable tensor."""
    problems = {problem.name: problem for problem in group.layers}
    axes, used = dict[tuple[str, str], str](), set[str]()
    order = _order(group)
    for layer in order:
        before = [t for t, maker in _fusable(group).items() if layer in group.users[t] and maker != layer]
        for tensor in before:
            maker = _fusable(group)[tensor]
            pairs = zip(
                problems[maker].tensor(group.users[tensor][maker]).projection,
                problems[layer].tensor(group.users[tensor][layer]).projection,
                strict=True,
            )
            for ours, theirs in pairs:
                axes[layer, next(iter(theirs.terms))] = axes[maker, next(iter(ours.terms))]
        for dimension in problems[layer].dimensions:
            if (layer, dimension) not in axes:
                name = next(n for n in (dimension, *(f"{dimension}{i}" for i in range(len(used) + 1))) if n not in used)
                axes[layer, dimension] = name
                used.add(name)
    return axes


def _layers(group: GroupMapping, axes: dict[tuple[str, str], str]) -> Iterator[FusedLayer]:
    problems = {problem.name: problem for problem in group.layers}
    fusable = _fusable(group)
    for layer in _order(group):
        own = {dimension: axes[layer, dimension] for dimension in problems[layer].dimensions}
        operand = next(
            (group.users[t][layer] for t, m in fusable.items() if layer in group.users[t] and m != layer), None
        )
        yield FusedLayer(problems[layer], group.architecture, own, operand, layer in fusable.values())


def _joined(
    found: Sequence[dict[Ends, list[Part]]], objective: Objective, capacity: float, most: float
) -> list[Joined]:
    """Return the undominated mappings of all layers.

    Args:
        most: joined parts are dropped if they cannot cost less than this or the same.
    """
    least_energy = [min(part.energy_pj for parts in each.values() for part in parts) for each in found]
    least_cycles = [min(part.cycles for parts in each.values() for part in parts) for each in found]
    states: dict[Loops | None, list[Joined]] = {None: [Joined(0.0, 0.0, (), (0.0,), ())]}
    for number, classes in enumerate(found):
        later = sum(least_energy[number + 1 :]), sum(least_cycles[number + 1 :])
        new: dict[Loops | None, list[Joined]] = {}
        for ends, parts in classes.items():
            for state in states.get(ends.left, ()):
                for part in parts:
                    joined = _join(state, ends, part, capacity)
                    if joined is not None and joined.of(objective, *later) <= most * (1 + 1e-9):
                        new.setdefault(ends.right, []).append(joined)
        states = {}
        for key, rows in new.items():
            figures = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1)}[objective]
            columns = [
                (each.energy_pj * figures[0], each.cycles * figures[1], *each.outside, *each.inside) for each in rows
            ]
            states[key] = [rows[at] for at in undominated(np.array(columns))]
    return states.get(None, [])


def _join(state: Joined, ends: Ends, part: Part, capacity: float) -> Joined | None:
    """Return the state after one more layer, or None if it does not fit."""
    before, after = len(ends.left or ()), len(ends.right or ())
    depth = max(before, after)
    outside = [a + b for a, b in zip(_padded(state.outside, depth), _padded(part.outside, depth), strict=True)]
    inside = _padded(state.inside, depth + 1)
    own = part.inside
    for fused, words, at in ((ends.left, part.live, before), (ends.right, part.made, after)):
        if fused is None:
            continue
        if at == depth:
            own += words
        else:  # it stays while the deeper shared loops run
            outside[at] += words
    inside[depth] = max(inside[depth], own)
    for at in range(depth, after, -1):
        inside[at - 1] = max(inside[at - 1], outside[at - 1] + inside[at])
    outside, inside = outside[:after], inside[: after + 1]
    if max(sum(outside[:at]) + each for at, each in enumerate(inside)) > capacity:
        return None
    if ends.right is None:
        inside = [0.0]  # nothing is alive: what follows has the whole buffer
    return Joined(
        state.energy_pj + part.energy_pj,
        state.cycles + part.cycles,
        tuple(outside),
        tuple(inside),
        (*state.parts, (ends, part)),
    )


def _padded(values: Sequence[float], count: int) -> list[float]:
    return [*values, *[0.0] * (count - len(values))]


def _group(group: GroupMapping, axes: dict[tuple[str, str], str], parts: Sequence[tuple[Ends, Part]]) -> GroupMapping:
    """Return the group mapping that the parts of all layers form."""
    tree = _Tree(group, axes, parts).part(0, len(parts) - 1, 0)
    shared: dict[str, dict[str, str]] = {}
    for (layer, dimension), axis in axes.items():
        shared.setdefault(axis, {})[layer] = dimension
    data = group.to_data() | {"axes": {axis: each for axis, each in shared.items() if len(each) > 1}, "tree": tree}
    return GroupMapping.model_validate(data)


class _Tree:
    def __init__(
        self, group: GroupMapping, axes: dict[tuple[str, str], str], parts: Sequence[tuple[Ends, Part]]
    ) -> None:
        self.group, self.axes, self.parts = group, axes, parts
        self.outer, self.inner = (group.architecture.cluster_of(each.name).name for each in group.architecture.memories)
        self.layers = _order(group)
        self.names = {(layer, own): t for t, users in group.users.items() for layer, own in users.items()}
        self.results = {p.name: p.output.name for p in group.layers}
        self.homes = {
            self.names[layer, self.results[layer]]
            for layer, (ends, _) in zip(self.layers, parts, strict=True)
            if ends.right is not None
        }

    def depth(self, number: int) -> int:
        """Return how many loops a layer shares with the next one; -1: it is not fused."""
        right = self.parts[number][0].right
        return -1 if right is None else len(right)

    def part(self, first: int, last: int, depth: int, root: bool = True) -> dict[str, Any]:
        """Return the part of some layers, inside of `depth` shared loops."""
        entries: list[dict[str, Any]] = []
        if root:
            entries.append({"target": self.outer, "keep": self._outermost(first if first == last else None)})
        if first == last:
            entries += self._leaf(first, depth)
            return {"layer": self.layers[first], "entries": entries}
        shared = max(0, min(self.depth(number) for number in range(first, last)))
        loops = self.parts[first][1].nest.loops
        for at in range(depth, shared + 1):
            kept = [
                self.names[self.layers[number], name]
                for number in range(first, last + 1)
                for name, outside in zip(
                    self.parts[number][1].nest.kept, self.parts[number][1].nest.depths, strict=True
                )
                if outside == at < shared and self.names[self.layers[number], name] not in self.homes
            ]
            if at == shared:
                kept = [
                    self.names[self.layers[number], self.results[self.layers[number]]]
                    for number in range(first, last)
                    if self.depth(number) == shared
                ]
            entry: dict[str, Any] = {"target": self.inner, "keep": kept}
            if at > depth:
                dimension, size = loops[at - 1]
                entry["temporal_tile_sizes"] = {self.axes[self.layers[first], dimension]: size}
            entries.append(entry)
        cuts = [number for number in range(first, last) if self.depth(number) in (shared, -1)]
        starts, ends = [first, *(each + 1 for each in cuts)], [*cuts, last]
        branches = [self.part(a, b, shared, root=False) for a, b in zip(starts, ends, strict=True)]
        return {"entries": entries, "branches": branches}

    def _outermost(self, alone: int | None) -> list[str]:
        if alone is not None:
            return [own for layer, own in self.names if layer == self.layers[alone]]
        return [tensor for tensor in self.group.users if tensor not in self.homes]

    def _leaf(self, number: int, depth: int) -> Iterator[dict[str, Any]]:
        layer, nest = self.layers[number], self.parts[number][1].nest
        problem = next(each for each in self.group.layers if each.name == layer)
        for at in range(depth, len(nest.loops) + 1):
            kept = [
                name
                for name, outside in zip(nest.kept, nest.depths, strict=True)
                if outside == at and self.names[layer, name] not in self.homes
            ]
            entry: dict[str, Any] = {"target": self.inner, "keep": kept}
            if at > depth:
                entry["temporal_tile_sizes"] = dict([nest.loops[at - 1]])
            yield entry
        ones = dict.fromkeys(problem.dimensions, 1)
        yield {"target": self.inner, "temporal_tile_sizes": ones, "temporal_order": list(ones)}
