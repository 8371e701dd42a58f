"""Optimal group mapping of layers on two memories: what is covered, the tensors that may be fused, the result's tree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from tilewright.errors import NotConformableError, Reason
from tilewright.interrupts import mark_result_found
from tilewright.mapspace.exact import group_overflow
from tilewright.mapspace.group_legality import group_legality
from tilewright.mapspace.group_padding import existing_words
from tilewright.mapspace.room import shared_words
from tilewright.mapspace.sliding import Window, stepping, window_at
from tilewright.plugin.groupmapper import BranchMapper, GroupResult, GroupTask
from tilewright.plugin.result import PROOF_TOLERANCE
from tilewright.schema.architecture import Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem, Rank
from tilewright.schema.read import shape_of
from tilewright_mappers.fused import inside, padding
from tilewright_mappers.fused.arrays import ArrayLayer
from tilewright_mappers.fused.limits import Limits, OutOfTime
from tilewright_mappers.fused.parts import FusedLayer
from tilewright_mappers.fused.solution import AxisNames, Leaf, Sequenced, Shared, SharedLoops, Solution, Tree, best_of
from tilewright_mappers.fused.spans import SpanBounds
from tilewright_mappers.fused.tiled_group import TiledGroup
from tilewright_mappers.fused.tree import TreeSearch

FEW = (2, 3, 4, 6, 8)
"""Tiles of each dimension that are tried first, as long as no dimension has twice as many divisors."""

FIRST = 1.0
"""Time in seconds for the first mapping, without fusion. If it does not suffice, only whole tiles are tried."""

MAX_UNITS = 16
"""Units of the largest array whose trees are listed. Groups on larger ones are searched by the host's mapper of layers."""

PARTS = (1, 16)
"""Parts of the buffer in which bounds by states count room, one after the other; 1: they count none."""

QUICK = 50.0
"""Time in seconds that these first searches share if there is no time limit. Else they share half of it."""


class FusedGroupMapper:
    """Search over trees of shared loops, with each layer's tiles on the innermost memory."""

    def search_group(self, task: GroupTask) -> GroupResult:
        """Return the group mapping of least cost over the layers and edges of a group; its tree is ignored.

        A tensor that several layers use may be fused: one that a layer makes, or an input. All tiles divide. At the time
        limit, or if the user interrupts, the best mapping so far is returned.

        Raises:
            NotConformableError: The architecture, a layer or its padding is not searched, or the mapping without fusion
                does not fit.
        """
        group, objective, seconds = task.group, task.objective, task.seconds
        reasons = tuple(_uncovered(group))
        home = None if task.branches is None else task.branches.home
        is_flat = not reasons and group.architecture.compute_instances <= MAX_UNITS
        is_flat &= not (task.rows or task.apart or any(edge.zeros or edge.added for edge in group.edges))
        if task.branches is not None and home is not None and not is_flat:
            return _on_hierarchy(task, task.branches, home)
        if reasons:
            hint = "give an architecture (--arch) with one on-chip memory for operands and results, or map the layers without --fuse"
            raise NotConformableError("the search of fused groups", reasons, hint=hint)
        shared, limits = list(_shared(group, group.architecture.memories[1])), Limits()
        first, now = _search(group, shared, [], objective, Limits(1)), limits.now()
        known = plain = first.unfused()
        with suppress(OutOfTime):
            known = plain = _search(group, shared, [], objective, Limits(FEW[0], now + FIRST)).unfused()
        unfit = group_legality(_Built(group, first.layers, plain.tree).group()).reasons
        if unfit:  # such as an outermost memory that is too small, which no tree changes
            raise NotConformableError(f"architecture {group.architecture.name}", unfit)
        axes, limits.ends = list[Dimensions](), math.inf if seconds is None else now + seconds
        try:
            axes += _axes(group, shared, limits)
        except OutOfTime:
            pass
        except KeyboardInterrupt:
            mark_result_found()
            limits.ends = -math.inf
        search = _search(group, shared, axes, objective, limits)
        spans, known = _guided(search, known, limits)
        most = max(len(limits.divisors(size)) for problem in group.layers for size in problem.dimensions.values())
        is_better = spans is not None and known != plain
        coarse = [] if is_better else [few for few in FEW if 2 * few <= most + 1]
        now = limits.now()
        time = QUICK if seconds is None else (limits.ends - now) / 2
        for number, few in enumerate(coarse, 1):  # few tiles are priced soon
            ends = now + time * number / len(coarse)
            rough = _search(group, shared, axes, objective, Limits(few))
            rough.spans = spans
            outcome = rough.best(known, min(limits.ends, ends))
            known, plain = outcome.best, best_of(objective, [plain, outcome.plain or plain])
            limits.ends = -math.inf if outcome.interrupted else limits.ends
        search.spans = spans
        outcome = search.best(known, limits.ends)
        return GroupResult(
            group=_Built(group, search.layers, outcome.best.tree).group(),
            energy_pj=outcome.best.energy_pj,
            cycles=outcome.best.cycles,
            unfused=_Built(group, search.layers, (outcome.plain or plain).tree).group(),
            bound=outcome.bound,
            proved=outcome.proved,
            unfused_proved=outcome.plain is not None,
        )


def _guided(search: TreeSearch, known: Solution, limits: Limits) -> tuple[SpanBounds | None, Solution]:
    """Return bounds by the states of tensors, and a better tree where they are.

    Bounds with room are closer, and take longer. So the first search takes no longer than its bound.
    Each step has half of the time that is left at most, and `QUICK`.
    """
    spans, ends = None, limits.ends
    value = search.objective.value
    try:
        for parts in PARTS:
            started = limits.now()
            limits.ends = started + min((ends - started) / 2, QUICK)
            closer = search.bounded(parts)
            if closer is None:
                break
            spans, now = closer, limits.now()
            most = now - started if parts < PARTS[-1] else QUICK
            outcome = search.guided(spans).best(known, now + min((ends - now) / 2, most))
            known, ends = outcome.best, -math.inf if outcome.interrupted else ends
            bound = value(*spans.before(len(search.layers)))
            if bound >= value(known.energy_pj, known.cycles) * (1 - PROOF_TOLERANCE):
                break
    except OutOfTime:
        pass
    except KeyboardInterrupt:
        mark_result_found()
        ends = -math.inf
    limits.ends = ends
    return spans, known


def _on_hierarchy(task: GroupTask, branches: BranchMapper, home: Memory) -> GroupResult:
    """Search a group on any hierarchy, by the host's mapper of layers."""
    group, limits = task.group, Limits()
    if task.seconds is not None:
        limits.ends = limits.now() + task.seconds
    problems = [_problem(group, name) for name in _order(group)]
    shared = list(_shared(group, home, slides=True))
    try:
        axes = _axes(group, shared, limits)
    except OutOfTime:
        axes = []

    def has_row(axis: Dimensions) -> bool:
        return any((problems[at].name, list(problems[at].dimensions)[number]) in task.rows for at, number in axis)

    padded = frozenset(problem.name for problem in problems if any(padding.padding(group, problem.name)))
    axes = [axis for axis in axes if not has_row(axis)]
    return TiledGroup(task, branches, home, problems, shared, axes, padded, limits).result()


def _search(
    group: GroupMapping, shared: Sequence[Shared], axes: Sequence[Dimensions], objective: Objective, limits: Limits
) -> TreeSearch:
    kind = FusedLayer if inside.has_one_unit(group.architecture) else ArrayLayer
    layers = [
        kind(_problem(group, name), group.architecture, padding.padding(group, name), limits) for name in _order(group)
    ]
    return TreeSearch(layers, shared, axes, objective, limits)


def _uncovered(group: GroupMapping) -> Iterator[Reason]:
    architecture = group.architecture
    yield from inside.uncovered(architecture, group.layers)
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
        if edge.added:
            text = f"{edge.added[0]} adds {edge.tensor} to its result, which needs a cost model of single layers"
            yield Reason(code="sum", where=f"tensor {edge.tensor}", message=text)
    yield from padding.uncovered(group)
    values = (memory.slices_of(t) for memory in architecture.memories for p in group.layers for t in p.tensors)
    yield from group_overflow(group.name, group.layers, max(values))


def _is_shared_input(group: GroupMapping, layer: str, operand: str) -> bool:
    tensor = next(name for name, users in group.users.items() if users.get(layer) == operand)
    return len(group.users[tensor]) > 1 and group.maker(tensor) is None


def _order(group: GroupMapping) -> list[str]:
    return list(group.tree.layers())


def _problem(group: GroupMapping, name: str) -> Problem:
    return next(layer for layer in group.layers if layer.name == name)


def _shared(group: GroupMapping, buffer: Memory, slides: bool = False) -> Iterator[Shared]:
    """Yield the tensors that several layers use.

    Args:
        slides: windows may have strides, and zeros around a result.
    """
    order = _order(group)
    for tensor, users in group.users.items():
        needs = group.needs[tensor]
        if len(needs) < 2:
            continue
        problems, exist = {layer: _problem(group, layer) for layer in needs}, existing_words(group, tensor)
        sizes, steps, halos = list[int](), list[dict[int, int]](), list[int]()
        windows = list[dict[int, Window]]()
        for number in range(len(problems[next(iter(users))].tensor(users[next(iter(users))]).projection)):
            together = [(layer, problems[layer].tensor(name).projection[number]) for layer, name in needs.items()]
            layer, rank = together[0]
            size = 1 + sum(problems[layer].dimensions[at] - 1 for at in rank.terms)
            if exist is not None:
                size = exist[number][1] - exist[number][0] + 1
            windows.append(_windows(group, tensor, number, order) if slides else {})
            stepped = _sliding(group, tensor, number) if windows[-1] else _stepped(group, tensor, together)
            sizes.append(size)
            steps.append({order.index(name): list(problems[name].dimensions).index(at) for name, at in stepped})
            halos.append(max((size - problems[name].dimensions[at] for name, at in stepped), default=0))
        edge = group.edge_of(tensor)
        stored = edge.offsets if edge is not None and edge.zeros else FrozenDict()
        words = shared_words(buffer, (problems[layer].tensor(name) for layer, name in users.items()))
        yield Shared(
            name=tensor,
            users={order.index(name): problems[name].tensor_names.index(user) for name, user in users.items()},
            made=group.maker(tensor) is not None,
            sizes=tuple(sizes),
            steps=tuple(steps),
            halos=tuple(halos),
            width=round(words * buffer.slices_per_word),
            alike=group.maker(tensor) is not None
            or len({shape_of(problems[layer], name) for layer, name in users.items()}) == 1,
            windows=tuple(windows),
            offsets=FrozenDict({order.index(name): row for name, row in stored.items()}),
            added=frozenset(order.index(name) for name in needs.keys() - users.keys()),
        )


def _windows(group: GroupMapping, tensor: str, coordinate: int, order: Sequence[str]) -> dict[int, Window]:
    """Return how the window of each reader slides along a coordinate of a result; empty if one does not.

    A layer that adds the result takes one row at a time.
    """
    maker = group.maker(tensor)
    readers = [layer for layer in group.needs[tensor] if layer != maker]
    windows = {
        order.index(reader): window
        for reader in readers
        if maker is not None and (window := window_at(group, tensor, maker, reader, coordinate)) is not None
    }
    return windows if len(windows) == len(readers) else {}


def _sliding(group: GroupMapping, tensor: str, coordinate: int) -> list[tuple[str, str]]:
    """Return layer and dimension of the rows that each layer steps along a coordinate of a result with windows."""
    pairs = list[tuple[str, str]]()
    for layer, name in group.needs[tensor].items():
        problem = _problem(group, layer)
        step = stepping(problem, problem.tensor(name), coordinate)
        assert step is not None, "windows step it"
        pairs.append((layer, step))
    return pairs


Pair = tuple[int, int]
"""Numbers of a layer and of its dimension."""
Dimensions = frozenset[Pair]
"""Dimensions of layers that one loop may step."""


def _axes(group: GroupMapping, shared: Sequence[Shared], limits: Limits) -> list[Dimensions]:
    """Return the sets of dimensions that one loop may step.

    These step one coordinate of a tensor that several layers use. A layer has one dimension on an axis at most.
    So where joining all would break this, all largest choices of coordinates are made.
    """
    problems = [_problem(group, name) for name in _order(group)]
    dimensions = [(at, number) for at, problem in enumerate(problems) for number in range(len(problem.dimensions))]
    links = list(
        dict.fromkeys(frozenset(steps.items()) for tensor in shared if tensor.alike for steps in tensor.steps if steps)
    )
    return list(dict.fromkeys(axis for joined in _largest(dimensions, links, limits) for axis in joined.values()))


def _largest(
    dimensions: Sequence[Pair], links: Sequence[Dimensions], limits: Limits
) -> Iterator[dict[Pair, Dimensions]]:
    """Yield the ways to join dimensions by links, with each layer once on an axis, that are not part of another way."""
    everything = _united(dimensions, links)
    certain = [link for link in links if _is_once(everything[next(iter(link))])]
    others = [link for link in links if link not in certain]
    largest = list[frozenset[Dimensions]]()
    for count in range(len(others), -1, -1):
        for chosen in map(frozenset, itertools.combinations(others, count)):
            limits.check()
            joined = _united(dimensions, [*certain, *chosen])
            if all(map(_is_once, joined.values())) and not any(chosen < other for other in largest):
                largest.append(chosen)
                yield joined


def _united(dimensions: Sequence[Pair], links: Sequence[Dimensions]) -> dict[Pair, Dimensions]:
    joined = {dimension: frozenset({dimension}) for dimension in dimensions}
    for link in links:
        every = frozenset[Pair]().union(*(joined[pair] for pair in link))
        joined |= dict.fromkeys(every, every)
    return joined


def _is_once(joined: Dimensions) -> bool:
    return len({layer for layer, _ in joined}) == len(joined)


def _stepped(group: GroupMapping, tensor: str, together: list[tuple[str, Rank]]) -> list[tuple[str, str]]:
    """Return layer and dimension of the rows that each user of a tensor steps along one coordinate.

    A window steps the rows of its layer's result. Empty if some layer's rows differ from the tensor's.
    """
    problems = {problem.name: problem for problem in group.layers}
    pairs, rows = list[tuple[str, str]](), set[int]()
    for layer, rank in together:
        sizes, result = problems[layer].dimensions, problems[layer].output.dimensions
        able = [at for at in rank.terms if len(rank.terms) == 1 or (at in result and group.maker(tensor) != layer)]
        rows.add(1 + sum(sizes[at] - 1 for at in rank.terms))
        pairs += [(layer, at) for at in able]
    return pairs if len(pairs) == len(together) and len(rows) == 1 else []


class _Built:
    """The group mapping of a tree that a search found."""

    def __init__(self, group: GroupMapping, layers: Sequence[FusedLayer], tree: Tree) -> None:
        self.before, self.layers, self.tree = group, layers, tree
        memories = group.architecture.memories[:2]
        self.outer, self.inner = (group.architecture.cluster_of(memory.name).name for memory in memories)
        self.problems = [_problem(group, name) for name in _order(group)]
        self.names = {(layer, name): t for t, users in group.users.items() for layer, name in users.items()}
        self.names_of_axes, self.homes = AxisNames(), set[str]()

    def group(self) -> GroupMapping:
        self._collect(self.tree)
        data = self.before.to_data() | {"axes": self.names_of_axes.axes, "tree": self._part(self.tree, root=True)}
        return GroupMapping.model_validate(data)

    def _collect(self, tree: Tree) -> None:
        """Take note of all homes, and of the dimensions that loops step together, from the outermost in."""
        if isinstance(tree, SharedLoops):
            self.homes |= {*tree.homes, *tree.halo_homes}
            for axis, _ in tree.loops:
                self.names_of_axes.of(self.problems[tree.first :], axis)
            self._collect(tree.inside)
        elif isinstance(tree, Sequenced):
            self.homes |= set(tree.homes)
            for branch in tree.branches:
                self._collect(branch)

    def _part(self, tree: Tree, root: bool = False) -> dict[str, Any]:
        """Return a part of the group's tree."""
        entries: list[dict[str, Any]] = []
        while isinstance(tree, Sequenced) and len(tree.branches) == 1:
            tree = tree.branches[0]
        if isinstance(tree, Leaf):
            problem = self.problems[tree.layer]
            if root:
                entries.append({"target": self.outer, "keep": list(problem.tensor_names)})
            return {"layer": problem.name, "entries": [*entries, *self._leaf(tree)]}
        if root:
            users = self.before.users
            kept = [user for user in users if user not in self.homes or self.before.maker(user) is None]
            entries.append({"target": self.outer, "keep": kept})
        entries.append({"target": self.inner, "keep": []})
        while isinstance(tree, SharedLoops):
            entries[-1]["keep"] += [*self._named(tree.kept), *tree.homes]
            for axis, size in tree.loops:
                name = self.names_of_axes.of(self.problems[tree.first :], axis)
                entries.append({"target": self.inner, "keep": [], "temporal_tile_sizes": {name: size}})
            entries[-1]["keep"] += [*self._named(tree.sliding), *tree.halo_homes]
            tree = tree.inside
        entries[-1]["keep"] += tree.homes
        return {"entries": entries, "branches": [self._part(branch) for branch in tree.branches]}

    def _named(self, kept: Sequence[tuple[int, int]]) -> list[str]:
        """Return the group's names of some layers' tensors."""
        return [self.names[self.problems[at].name, self.problems[at].tensor_names[tensor]] for at, tensor in kept]

    def _leaf(self, leaf: Leaf) -> Iterator[dict[str, Any]]:
        problem = self.problems[leaf.layer]
        dimensions = list(problem.dimensions)
        entries: list[dict[str, Any]] = [{"target": self.inner, "keep": []}]
        for node in leaf.branch.nodes:
            for dimension, size in node.loops:
                sizes = {dimensions[dimension]: size}
                entries.append({"target": self.inner, "keep": [], "temporal_tile_sizes": sizes})
            entries[-1]["keep"].append(problem.tensor_names[node.tensor])
        return iter([*entries, *self.layers[leaf.layer].inner_entries(leaf.branch)])
