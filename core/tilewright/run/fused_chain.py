"""Optimal group mapping of layers on two memories and an array, by exact joining of partial mappings.

Later layers depend on two facts. The first is the *class*: the homes of the fused tensors that are alive, and the
loops outside them. The second is the words kept per depth of these loops. Of joined parts that agree in the class,
those that another one beats in every figure are dropped. This is exact, since costs and room only grow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.group_legality import is_padded
from tilewright.run.fused_arrays import ArrayLayer
from tilewright.run.fused_inside import has_one_unit, uncovered
from tilewright.run.fused_parts import Fusable, FusedLayer, Homes, Part, undominated
from tilewright.schema.group import GroupMapping
from tilewright.schema.problem import Rank
from tilewright.schema.report import Objective


@dataclass(frozen=True, slots=True)
class Joined:
    """Joined parts of the layers so far.

    `outside` are words per depth of the shared loops that stay while deeper loops run.
    `inside` are, per depth, the most words that a finished branch there took below it.
    """

    energy_pj: float
    cycles: float
    outside: tuple[float, ...]
    inside: tuple[float, ...]
    parts: tuple[tuple[Homes, Part], ...]

    def of(self, objective: Objective, energy_pj: float = 0.0, cycles: float = 0.0) -> float:
        """Return the objective after adding energy and cycles."""
        energy, time = self.energy_pj + energy_pj, self.cycles + cycles
        return {"edp": energy * time, "energy": energy, "cycles": time}[objective]


@dataclass(frozen=True)
class FusedChain:
    """Optimum of a group with its costs, and the optimum without fusion."""

    group: GroupMapping
    energy_pj: float
    cycles: float
    unfused: GroupMapping


def map_chain(group: GroupMapping, objective: Objective = "energy") -> FusedChain:
    """Return the group mapping of least cost over the layers and edges of a group; its tree is ignored.

    A tensor that several layers use may be fused: one that a layer makes, or an input. All tiles divide.

    Raises:
        NotConformableError: The architecture, a layer or an edge is not covered (docs/fusion.md), or nothing fits.
    """
    reasons = tuple(_uncovered(group))
    if reasons:
        raise NotConformableError("the mapper of fused chains", reasons)
    capacity = group.architecture.memories[1].usable_slices
    plain: Joined | None = None
    best: Joined | None = None
    for axes, tensors in _axes(group):
        found = [layer.parts() for layer in _layers(group, axes, tensors, objective)]
        if any(Homes() not in each for each in found):
            reason = Reason(code="capacity", where=group.name, message="some layer does not fit the buffer")
            raise NotConformableError("the mapper of fused chains", (reason,))
        if plain is None or best is None:
            alone = _joined([{Homes(): each[Homes()]} for each in found], tensors, objective, capacity, math.inf)
            plain = best = min(alone, key=lambda each: each.of(objective))
            unfused = mapping = _group(group, axes, tensors, plain.parts)
        states = _joined(found, tensors, objective, capacity, best.of(objective))
        least = min(states, key=lambda each: each.of(objective), default=best)
        if least.of(objective) < best.of(objective):
            best, mapping = least, _group(group, axes, tensors, least.parts)
    assert best is not None, "there is one way to join dimensions at least"
    return FusedChain(group=mapping, energy_pj=best.energy_pj, cycles=best.cycles, unfused=unfused)


def _uncovered(group: GroupMapping) -> Iterator[Reason]:
    architecture = group.architecture
    yield from uncovered(architecture, group.layers)
    if any(not memory.may_hold(t) for memory in architecture.memories[:2] for p in group.layers for t in p.tensors):
        yield Reason(code="hardware", where=architecture.name, message="a memory may not hold every tensor")
    for name in architecture.sparse_parts:
        yield Reason(code="sparse", where=name, message="sparse hardware is not counted in groups")
    for problem in group.layers:
        for tensor in problem.tensors:
            ranks = [list(rank.terms.values()) for rank in tensor.projection]
            windows = any(len(rank) > 1 for rank in ranks)
            if set().union(*ranks) != {1} or max(map(len, ranks)) > 2 or len(tensor.dimensions) != sum(map(len, ranks)):
                text = "a coordinate has a stride, a dilation or a repeated dimension; expected one or two dimensions"
                yield Reason(code="window", where=f"{problem.name}, tensor {tensor.name}", message=text)
            elif windows and (tensor.is_output or _is_shared_input(group, problem.name, tensor.name)):
                text = "a result, or an input that several layers read, has a window"
                yield Reason(code="window", where=f"{problem.name}, tensor {tensor.name}", message=text)
    for edge in group.edges:
        moved = edge.sizes is not None or any(any(each) for each in edge.offsets.values())
        if moved or is_padded(group, edge.tensor):
            yield Reason(code="padding", where=f"tensor {edge.tensor}", message="padding and offsets are not searched")


def _is_shared_input(group: GroupMapping, layer: str, own: str) -> bool:
    tensor = next(each for each, users in group.users.items() if users.get(layer) == own)
    return len(group.users[tensor]) > 1 and group.maker(tensor) is None


def _order(group: GroupMapping) -> list[str]:
    return list(group.tree.layers())


Dimensions = frozenset[tuple[str, str]]
"""Layers and dimensions that one axis steps."""


def _axes(group: GroupMapping) -> Iterator[tuple[dict[tuple[str, str], str], dict[str, Fusable]]]:
    """Yield (layer, dimension) -> axis, and the tensors that several layers use, for each way to join dimensions.

    Dimensions are one axis if they step one coordinate of such a tensor. A layer has one dimension on an axis at most.
    So where joining all would break this, all largest choices of coordinates are searched.
    No loop is shared over the other coordinates.
    """
    problems, order = {problem.name: problem for problem in group.layers}, _order(group)
    dimensions = [(layer, name) for layer in order for name in problems[layer].dimensions]
    used = {tensor: users for tensor, users in group.users.items() if len(users) > 1}
    coordinates = dict[str, list[list[tuple[str, Rank]]]]()
    for tensor, users in used.items():
        ranks = [[(layer, rank) for rank in problems[layer].tensor(own).projection] for layer, own in users.items()]
        coordinates[tensor] = [list(each) for each in zip(*ranks, strict=True)]
    links = [frozenset(_stepped(group, tensor, each)) for tensor, some in coordinates.items() for each in some]
    links = [each for each in dict.fromkeys(links) if any(problems[layer].dimensions[at] > 1 for layer, at in each)]
    for joined in _largest(dimensions, links):
        axes, names = dict[tuple[str, str], str](), set[str]()
        for layer, dimension in dimensions:
            if (layer, dimension) not in axes:
                able = (dimension, *(f"{dimension}{i}" for i in range(len(names) + 1)))
                name = next(each for each in able if each not in names)
                axes |= {each: name for each in dimensions if each in joined[layer, dimension]}
                names.add(name)
        yield axes, _fusable(group, axes, coordinates)


def _largest(
    dimensions: Sequence[tuple[str, str]], links: Sequence[Dimensions]
) -> Iterator[dict[tuple[str, str], Dimensions]]:
    """Yield the ways to join dimensions by links, with each layer once on an axis, that are not part of another way."""

    everything = _united(dimensions, links)
    certain = [link for link in links if _is_once(everything[next(iter(link))])]

    def able(chosen: Sequence[Dimensions]) -> bool:
        return all(map(_is_once, _united(dimensions, [*certain, *chosen]).values()))

    def choices(chosen: list[Dimensions], left: list[Dimensions], out: list[Dimensions]) -> Iterator[list[Dimensions]]:
        if not left:
            yield from [chosen] if not any(able([*chosen, each]) for each in out) else []
            return
        link, *rest = left
        if able([*chosen, link]):
            yield from choices([*chosen, link], rest, out)
        if not able([*chosen, *left]):  # otherwise no way lacks the link
            yield from choices(chosen, rest, [*out, link])

    for chosen in choices([], [link for link in links if link not in certain], []):
        yield _united(dimensions, [*certain, *chosen])


def _united(dimensions: Sequence[tuple[str, str]], links: Sequence[Dimensions]) -> dict[tuple[str, str], Dimensions]:
    joined = {each: frozenset({each}) for each in dimensions}
    for link in links:
        every = frozenset[tuple[str, str]]().union(*(joined[each] for each in link))
        joined |= dict.fromkeys(every, every)
    return joined


def _is_once(joined: Dimensions) -> bool:
    return len({layer for layer, _ in joined}) == len(joined)


def _fusable(
    group: GroupMapping, axes: dict[tuple[str, str], str], coordinates: dict[str, list[list[tuple[str, Rank]]]]
) -> dict[str, Fusable]:
    """Return the tensors that several layers use.

    Args:
        coordinates: tensor -> for each coordinate, the layers and their ranks.
    """
    problems, order = {problem.name: problem for problem in group.layers}, _order(group)
    tensors = dict[str, Fusable]()
    for tensor, some in coordinates.items():
        sizes, halo = dict[str, int](), dict[str, int]()
        for number, together in enumerate(some):
            layer, rank = together[0]
            size = 1 + sum(problems[layer].dimensions[at] - 1 for at in rank.terms)
            stepped = _stepped(group, tensor, together)
            found = {axes[each] for each in stepped}
            axis = found.pop() if len(found) == 1 else f"{tensor}.{number}"
            sizes[axis] = size
            halo[axis] = max((size - problems[layer].dimensions[at] for layer, at in stepped), default=0)
        users = group.users[tensor]
        positions = tuple(sorted(map(order.index, users)))
        first, own = next(iter(users.items()))
        width = group.architecture.memories[1].slices_of(problems[first].tensor(own))
        made = group.maker(tensor) is not None
        tensors[tensor] = Fusable(tensor, sizes, positions, made, width, halo)
    return tensors


def _stepped(group: GroupMapping, tensor: str, together: list[tuple[str, Rank]]) -> list[tuple[str, str]]:
    """Return layer and dimension of the rows that each user of a tensor steps along one coordinate.

    A window steps the rows of its layer's result. Empty if some layer's rows differ from the tensor's.
    """
    problems = {problem.name: problem for problem in group.layers}
    found, rows = list[tuple[str, str]](), set[int]()
    for layer, rank in together:
        sizes, result = problems[layer].dimensions, problems[layer].output.dimensions
        able = [at for at in rank.terms if len(rank.terms) == 1 or (at in result and group.maker(tensor) != layer)]
        rows.add(1 + sum(sizes[at] - 1 for at in rank.terms))
        found += [(layer, at) for at in able]
    return found if len(found) == len(together) and len(rows) == 1 else []


def _layers(
    group: GroupMapping, axes: dict[tuple[str, str], str], tensors: dict[str, Fusable], objective: Objective
) -> Iterator[FusedLayer]:
    problems = {problem.name: problem for problem in group.layers}
    theirs = {(layer, own): t for t, users in group.users.items() for layer, own in users.items()}
    for number, layer in enumerate(_order(group)):
        own = {dimension: axes[layer, dimension] for dimension in problems[layer].dimensions}
        names = {tensor.name: theirs[layer, tensor.name] for tensor in problems[layer].tensors}
        alive = tuple(each for each in tensors.values() if each.first <= number <= each.last)
        parts = problems[layer], group.architecture, number, own, names, alive
        yield FusedLayer(*parts) if has_one_unit(group.architecture) else ArrayLayer(*parts, objective)


Class = tuple[Homes, tuple[tuple[str, int], ...]]
"""Homes of the live tensors; and of every tensor with later readers, how many loops its maker shares with these."""


def _joined(
    found: Sequence[dict[Homes, list[Part]]],
    tensors: dict[str, Fusable],
    objective: Objective,
    capacity: float,
    most: float,
) -> list[Joined]:
    """Return the undominated mappings of all layers.

    Args:
        most: joined parts are dropped if they cannot cost less than this or the same.
    """
    least_energy = [min(part.energy_pj for parts in each.values() for part in parts) for each in found]
    least_cycles = [min(part.cycles for parts in each.values() for part in parts) for each in found]
    states: dict[Class, list[Joined]] = {(Homes(), ()): [Joined(0.0, 0.0, (), (0.0,), ())]}
    for number, classes in enumerate(found):
        later = sum(least_energy[number + 1 :]), sum(least_cycles[number + 1 :])
        new: dict[Class, list[Joined]] = {}
        by_left: dict[Homes, list[tuple[Homes, list[Part]]]] = {}
        for homes, parts in classes.items():
            by_left.setdefault(_crossing(homes, tensors, number - 1), []).append((homes, parts))
        for (left, shared), rows in states.items():
            for homes, parts in by_left.get(left, ()):
                right = _crossing(homes, tensors, number)
                kept = _shared(left, shared, tensors, number, len(right.loops))
                if kept is None:
                    continue
                fused = [(tensors[name], depth) for name, depth in homes.depths]
                for state in rows:
                    for part in parts:
                        joined = _join(state, left, homes, right, fused, part, capacity)
                        if joined is not None and joined.of(objective, *later) <= most * (1 + 1e-9):
                            new.setdefault((right, kept), []).append(joined)
        states = {}
        for key, joins in new.items():
            figures = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1)}[objective]
            columns = [
                (each.energy_pj * figures[0], each.cycles * figures[1], *each.outside, *each.inside) for each in joins
            ]
            states[key] = [joins[at] for at in undominated(np.array(columns))]
    return [each for rows in states.values() for each in rows]


def _crossing(homes: Homes, tensors: dict[str, Fusable], number: int) -> Homes:
    """Return the homes of the tensors that live from layer `number`, or before, to a later one."""
    depths = tuple(each for each in homes.depths if tensors[each[0]].first <= number < tensors[each[0]].last)
    return Homes(homes.loops[: max((depth for _, depth in depths), default=0)], depths)


def _shared(
    left: Homes, shared: tuple[tuple[str, int], ...], tensors: dict[str, Fusable], number: int, after: int
) -> tuple[tuple[str, int], ...] | None:
    """Return how many loops makers share with later readers, or None if a layer reads unfinished sums."""
    for name, count in shared:
        if number in tensors[name].users and any(axis not in tensors[name].sizes for axis, _ in left.loops[:count]):
            return None
    counts = dict(shared) | {each.name: after for each in tensors.values() if each.made and each.first == number}
    return tuple((name, min(count, after)) for name, count in counts.items() if tensors[name].last > number)


def _join(
    state: Joined,
    left: Homes,
    homes: Homes,
    right: Homes,
    fused: Sequence[tuple[Fusable, int]],
    part: Part,
    capacity: float,
) -> Joined | None:
    """Return the state after one more layer, or None if it does not fit."""
    before, depth, after = len(left.loops) if left.depths else -1, len(homes.loops), len(right.loops)
    known = {name for name, _ in left.depths}
    outside = [a + b for a, b in zip(_padded(state.outside, depth), part.outside, strict=True)]
    inside = _padded(state.inside, depth + 1)
    own = part.inside
    for tensor, at in fused:
        words = tensor.slices(homes.loops[:at])
        if tensor.keeps_halo(homes.loops[:at]):  # it stays for the next step of the last loop
            outside[at - 1] += 0 if tensor.name in known else words
        elif at == depth:
            own += words
        elif tensor.name not in known or at == before:  # it stays while the deeper shared loops run
            outside[at] += words
    inside[depth] = max(inside[depth], own)
    for at in range(depth, after, -1):
        inside[at - 1] = max(inside[at - 1], outside[at - 1] + inside[at])
    outside, inside = outside[:after], inside[: after + 1]
    if max(sum(outside[:at]) + each for at, each in enumerate(inside)) > capacity:
        return None
    if not right.depths:
        inside = [0.0]  # nothing is alive: what follows has the whole buffer
    return Joined(
        state.energy_pj + part.energy_pj,
        state.cycles + part.cycles,
        tuple(outside),
        tuple(inside),
        (*state.parts, (homes, part)),
    )


def _padded(values: Sequence[float], count: int) -> list[float]:
    return [*values, *[0.0] * (count - len(values))]


def _group(
    group: GroupMapping,
    axes: dict[tuple[str, str], str],
    tensors: dict[str, Fusable],
    parts: Sequence[tuple[Homes, Part]],
) -> GroupMapping:
    """Return the group mapping that the parts of all layers form."""
    tree = _Tree(group, axes, tensors, parts).part(0, len(parts) - 1, 0)
    shared: dict[str, dict[str, str]] = {}
    for (layer, dimension), axis in axes.items():
        shared.setdefault(axis, {})[layer] = dimension
    data = group.to_data() | {"axes": {axis: each for axis, each in shared.items() if len(each) > 1}, "tree": tree}
    return GroupMapping.model_validate(data)


class _Tree:
    def __init__(
        self,
        group: GroupMapping,
        axes: dict[tuple[str, str], str],
        tensors: dict[str, Fusable],
        parts: Sequence[tuple[Homes, Part]],
    ) -> None:
        self.group, self.axes, self.tensors, self.parts = group, axes, tensors, parts
        self.outer, self.inner = (
            group.architecture.cluster_of(each.name).name for each in group.architecture.memories[:2]
        )
        self.layers = _order(group)
        self.names = {(layer, own): t for t, users in group.users.items() for layer, own in users.items()}
        self.homes = dict(each for homes, _ in parts for each in homes.depths)
        self.loops = {name: homes.loops[:depth] for homes, _ in parts for name, depth in homes.depths}

    def depth(self, number: int) -> int:
        """Return how many loops a layer shares with the next one; -1: no fused tensor lives on."""
        right = _crossing(self.parts[number][0], self.tensors, number)
        return len(right.loops) if right.depths else -1

    def part(self, first: int, last: int, depth: int, root: bool = True) -> dict[str, Any]:
        """Return the part of some layers, inside of `depth` shared loops."""
        entries: list[dict[str, Any]] = []
        if root:
            entries.append({"target": self.outer, "keep": self._outermost(first if first == last else None)})
        if first == last:
            entries += self._leaf(first, depth)
            return {"layer": self.layers[first], "entries": entries}
        shared = max(0, min(self.depth(number) for number in range(first, last)))
        cuts = [number for number in range(first, last) if self.depth(number) in (shared, -1)]
        starts, ends = [first, *(each + 1 for each in cuts)], [*cuts, last]
        loops = self.parts[first][1].nest.loops
        for at in range(depth, shared + 1):
            nests = [self.parts[number][1].nest for number in range(first, last + 1)]
            kept = [
                name
                for nest in nests
                for name, outside in zip(nest.kept, nest.depths, strict=True)
                if outside == at and name not in self.homes
                if (at > depth if name in nest.sliding else at < shared)
            ]
            kept += [
                name
                for name, outside in self.homes.items()
                if outside == at and first <= self.tensors[name].first and self.tensors[name].last <= last
                if (
                    at > depth
                    if self.tensors[name].keeps_halo(self.loops[name])
                    else at < shared or any(self.tensors[name].first <= cut < self.tensors[name].last for cut in cuts)
                )
            ]
            entry: dict[str, Any] = {"target": self.inner, "keep": kept}
            if at > depth:
                dimension, size = loops[at - 1]
                entry["temporal_tile_sizes"] = {self.axes[self.layers[first], dimension]: size}
            entries.append(entry)
        branches = [self.part(a, b, shared, root=False) for a, b in zip(starts, ends, strict=True)]
        return {"entries": entries, "branches": branches}

    def _outermost(self, alone: int | None) -> list[str]:
        if alone is not None:
            return [own for layer, own in self.names if layer == self.layers[alone]]
        return [tensor for tensor in self.group.users if tensor not in self.homes or not self.tensors[tensor].made]

    def _leaf(self, number: int, depth: int) -> Iterator[dict[str, Any]]:
        layer, nest = self.layers[number], self.parts[number][1].nest
        problem = next(each for each in self.group.layers if each.name == layer)
        own = {self.names[layer, tensor.name]: tensor.name for tensor in problem.tensors}
        for at in range(depth, len(nest.loops) + 1):
            kept = [
                own[name]
                for name, outside in zip(nest.kept, nest.depths, strict=True)
                if outside == at and name not in self.homes and name not in nest.sliding
            ]
            entry: dict[str, Any] = {"target": self.inner, "keep": kept}
            if at > depth:
                entry["temporal_tile_sizes"] = dict([nest.loops[at - 1]])
            yield entry
        ones = dict.fromkeys(problem.dimensions, 1)
        one_unit = {"target": self.inner, "temporal_tile_sizes": ones, "temporal_order": list(ones)}
        yield from self.parts[number][1].leaf or [one_unit]
