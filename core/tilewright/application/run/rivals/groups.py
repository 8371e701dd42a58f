"""Rivals of a fused group on two memories and one compute unit, or an array of them: trees of loops, built choice by choice.

A tree follows from a sequence of choices, each one of a few options. All sequences together give all trees, random ones
give random trees, and sequences that differ in one choice give neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from tilewright.application.run.evaluation import BuiltModel, evaluate_group
from tilewright.application.run.rivals import Rivals
from tilewright.schema.architecture import Cluster
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem

Axes = dict[tuple[str, str], str]
"""Layer and dimension -> the axis that steps it."""
CLIMBS = 60
"""Neighbours of one tree in sequence that cost no less, before another random tree is drawn."""


class UnusableChoiceError(Exception):
    """The choices give no tree of the space, or one that other choices give, too."""


@dataclass
class Choices:
    """Sequence of choices: first the given ones, then random ones, or each first option without a generator."""

    given: Sequence[int] = ()
    random: Random | None = None
    taken: list[int] = field(default_factory=list)
    options: list[int] = field(default_factory=list)

    def one_of(self, count: int) -> int:
        """Return the number of the option that is chosen among `count`."""
        at = len(self.taken)
        free = self.random.randrange(count) if self.random is not None else 0
        number = min(self.given[at], count - 1) if at < len(self.given) else free
        self.taken.append(number)
        self.options.append(count)
        return number

    def following(self) -> list[int] | None:
        """Return the choices that follow in the order of all sequences; None after the last one."""
        for at in range(len(self.taken) - 1, -1, -1):
            if self.taken[at] + 1 < self.options[at]:
                return [*self.taken[:at], self.taken[at] + 1]
        return None


@dataclass
class GroupRivals:
    """Group mappings of the space that `map GROUP --fuse` states.

    Args:
        samples: trees that are drawn where there are more than `limit`.
        limit: largest number of sequences of choices that are all tried.
    """

    group: GroupMapping
    objective: Objective
    model: BuiltModel
    samples: int
    limit: int
    seed: int
    tried: int = 0
    legal: int = 0

    @property
    def obstacle(self) -> str | None:
        """Why no rival is built; None if they are."""
        outer, *inside = self.group.architecture.clusters
        memories = [len(cluster.memories) for cluster in (outer, *inside)]
        if outer.fanout.size > 1 or memories[:2] != [1, 1] or any(memories[2:-1]) or memories[-1] > 1:
            return "rivals are built for two memories, and one compute unit or an array of them"
        return None

    def best(self) -> Rivals:
        """Return the best of all trees, or of those that are drawn; there is no obstacle."""
        count = sum(1 for _ in zip(range(self.limit + 1), self._sequences(), strict=False))
        every = count <= self.limit
        value, best = math.inf, None
        for given in self._sequences() if every else self._drawn():
            cost, group = self._cost(Choices(given))
            if cost < value:
                value, best = cost, group
        return Rivals(self.tried, self.legal, every, value, best)

    def _sequences(self) -> Iterator[list[int]]:
        """Yield all sequences of choices."""
        given: list[int] | None = []
        while given is not None:
            choices = Choices(given)
            with suppress(UnusableChoiceError):
                self._tree(choices)
            yield choices.taken
            given = choices.following()

    def _drawn(self) -> Iterator[list[int]]:
        """Yield sequences that are no worse than their neighbours: from the unfused tree without tiles, and from random ones."""
        random, left = Random(self.seed), self.samples
        while left > 0:
            here = Choices(random=random if left % 2 else None)
            least, failed = self._cost(here)[0], 0
            left -= 1
            while math.isfinite(least) and failed < CLIMBS and left > 0:
                at = random.randrange(len(here.taken))
                changed = [*here.taken[:at], random.randrange(here.options[at]), *here.taken[at + 1 :]]
                other = Choices(changed, random)
                cost, left = self._cost(other)[0], left - 1
                failed = 0 if cost < least else failed + 1
                here, least = (other, cost) if cost <= least else (here, least)
            if math.isfinite(least):
                yield here.taken

    def _cost(self, choices: Choices) -> tuple[float, GroupMapping | None]:
        """Return the cost and the group mapping of a sequence of choices; inf if it is illegal."""
        self.tried += 1
        try:
            axes, tree = self._tree(choices)
        except UnusableChoiceError:
            return math.inf, None
        named: dict[str, dict[str, str]] = {}
        for (layer, dimension), axis in axes.items():
            named.setdefault(axis, {})[layer] = dimension
        shared = {axis: layers for axis, layers in named.items() if len(layers) > 1}
        group = GroupMapping.model_validate(self._data | {"axes": shared, "tree": tree})
        report = evaluate_group(self.model, group)
        value = report.of(self.objective) if report.valid else None
        if value is None:
            return math.inf, None
        self.legal += 1
        return value, group

    @cached_property
    def _data(self) -> dict[str, Any]:
        return self.group.to_data()

    @cached_property
    def _problems(self) -> list[Problem]:
        named = {layer.name: layer for layer in self.group.layers}
        return [named[name] for name in self.group.tree.layers()]

    @cached_property
    def _row_links(self) -> list[frozenset[tuple[str, str]]]:
        """Rows of a result, each with a dimension of a window that reads them."""
        problems, links = {problem.name: problem for problem in self._problems}, list[frozenset[tuple[str, str]]]()
        for tensor, users in self.group.users.items():
            if (maker := self.group.maker(tensor)) is None:
                continue
            made = problems[maker].tensor(users[maker]).projection
            for reader, tensor in users.items():
                for rank, read in zip(made, problems[reader].tensor(tensor).projection, strict=True):
                    if len(rank.terms) == 1 < len(read.terms):
                        links += [frozenset({(maker, next(iter(rank.terms))), (reader, at)}) for at in read.terms]
        return links

    @cached_property
    def _links(self) -> list[frozenset[tuple[str, str]]]:
        """Dimensions that step one coordinate of a tensor that several layers use."""
        problems, links = {problem.name: problem for problem in self._problems}, list[frozenset[tuple[str, str]]]()
        for users in self.group.users.values():
            ranks = zip(*(problems[layer].tensor(name).projection for layer, name in users.items()), strict=True)
            for together in ranks if len(users) > 1 else ():
                pairs = [(layer, list(rank.terms)) for layer, rank in zip(users, together, strict=True)]
                if all(len(terms) == 1 for _, terms in pairs):
                    link = frozenset((layer, terms[0]) for layer, terms in pairs)
                    if len({problems[layer].dimensions[at] for layer, at in link}) == 1:
                        links.append(link)
        return list(dict.fromkeys(links))

    def _axes(self, choices: Choices) -> Axes:
        """Return the axis of each dimension. Where a layer would be on an axis twice, some links are left out.

        So are those of rows that windows read.
        """
        everything = self._joined(self._links)
        doubtful = len({(layer, axis) for (layer, _), axis in everything.items()}) < len(everything)
        links = [link for link in self._links if not doubtful or choices.one_of(2)]
        links += [link for link in self._row_links if choices.one_of(2)]
        axes = self._joined(links)
        if len({(layer, axis) for (layer, _), axis in axes.items()}) < len(axes):
            raise UnusableChoiceError
        return axes

    def _joined(self, links: Sequence[frozenset[tuple[str, str]]]) -> Axes:
        sets = {
            (problem.name, at): frozenset({(problem.name, at)})
            for problem in self._problems
            for at in problem.dimensions
        }
        for link in links:
            every = frozenset[tuple[str, str]]().union(*(sets[pair] for pair in link))
            sets |= dict.fromkeys(every, every)
        names = {members: f"a{number}" for number, members in enumerate(dict.fromkeys(sets.values()))}
        return {pair: names[members] for pair, members in sets.items()}

    def _tree(self, choices: Choices) -> tuple[Axes, dict[str, Any]]:
        """Return axes and tree of a sequence of choices."""
        built = _Tree(self.group, self._problems, self._axes(choices), choices)
        sizes = {(problem.name, at): size for problem in self._problems for at, size in problem.dimensions.items()}
        part = built.part(0, len(self._problems) - 1, sizes, [])
        outer = [name for name in self.group.users if name not in built.homes]
        root = self.group.architecture.clusters[0].name
        if "layer" in part:
            outer = list(self._problems[0].tensor_names)
        return built.axes, part | {"entries": [{"target": root, "keep": outer}, *part["entries"]]}


@dataclass
class _Tree:
    """A tree in the making: parts from the outermost in, layers in order."""

    group: GroupMapping
    problems: list[Problem]
    axes: Axes
    choices: Choices
    homes: set[str] = field(default_factory=set)
    placed: set[str] = field(default_factory=set)
    """Tensors of the group that have a tile in the buffer, in a shared part."""

    def part(self, first: int, last: int, sizes: dict[tuple[str, str], int], outside: list[str]) -> dict[str, Any]:
        """Return the part of some layers.

        Args:
            sizes: the tile of each layer's dimension outside the part.
            outside: the axes of the loops outside the part.
        """
        if first == last:
            return {"layer": self.problems[first].name, "entries": self._leaf(self.problems[first], sizes)}
        layers = [problem.name for problem in self.problems[first : last + 1]]
        buffer = self.group.architecture.clusters[1].name
        entries: list[dict[str, Any]] = [{"target": buffer, "keep": self._kept(layers, outside)}]
        sizes, outside = dict(sizes), [*outside]
        while step := self._step(layers, sizes):
            axis, size = step
            sizes |= {pair: size for pair, moved in self.axes.items() if moved == axis and pair[0] in layers}
            outside.append(axis)
            tiles = {"temporal_tile_sizes": {axis: size}}
            entries.append({"target": buffer, "keep": self._kept(layers, outside)} | tiles)
        if len(entries) == 1 and len(layers) < len(self.problems):
            raise UnusableChoiceError  # its branches could as well be those of the part outside
        cuts = [number for number in range(first, last) if not self.choices.one_of(2)]
        if not cuts:
            raise UnusableChoiceError
        starts, ends = [first, *(cut + 1 for cut in cuts)], [*cuts, last]
        return {
            "entries": entries,
            "branches": [self.part(a, b, sizes, outside) for a, b in zip(starts, ends, strict=True)],
        }

    def _step(self, layers: list[str], sizes: dict[tuple[str, str], int]) -> tuple[str, int] | None:
        """Return axis and tile of the next loop that all layers share; None if there is none."""
        steps = list[tuple[str, int]]()
        for axis in dict.fromkeys(self.axes.values()):
            pairs = [pair for pair, moved in self.axes.items() if moved == axis and pair[0] in layers]
            if len(pairs) == len(layers):
                steps += [(axis, size) for size in _smaller(*(sizes[pair] for pair in pairs))]
        number = self.choices.one_of(1 + len(steps))
        return steps[number - 1] if number else None

    def _kept(self, layers: list[str], outside: list[str]) -> list[str]:
        """Return the tensors that get a tile here, in a part of several layers."""
        kept = []
        for tensor, users in self.group.users.items():
            if tensor in self.placed or not users.keys() <= set(layers):
                continue
            made = self.group.maker(tensor) is not None
            if len(users) > 1 and not made and not all(self._steps(tensor, axis) for axis in outside):
                continue
            if self.choices.one_of(2):
                kept.append(tensor)
                self.placed.add(tensor)
                self.homes |= {tensor} if made and len(users) > 1 else set()
        return kept

    def _steps(self, tensor: str, axis: str) -> bool:
        """Return whether loops over an axis step a tensor, for all layers that use it."""
        named = {problem.name: problem for problem in self.problems}
        users = self.group.users[tensor]
        return all(
            any(self.axes[layer, at] == axis for at in named[layer].tensor(name).dimensions)
            for layer, name in users.items()
        )

    def _leaf(self, problem: Problem, sizes: dict[tuple[str, str], int]) -> list[dict[str, Any]]:
        """Return the entries of a layer: its loops and tiles in the buffer, then those inside."""
        names = {
            own: name
            for name, users in self.group.users.items()
            for layer, own in users.items()
            if layer == problem.name
        }
        left = [name for name in problem.tensor_names if names[name] not in self.placed]
        tiles = {at: sizes[problem.name, at] for at in problem.dimensions}
        return [*self._nest(self.group.architecture.clusters[1], problem, left, tiles), *self._inside(problem, tiles)]

    def _nest(self, target: Cluster, problem: Problem, left: list[str], tiles: dict[str, int]) -> list[dict[str, Any]]:
        """Return the entries of a layer in one cluster: loops, and tiles of some tensors between them.

        Args:
            tiles: those outside; the innermost ones afterwards.
        """
        looped = {at for at, size in problem.dimensions.items() if tiles[at] < size}
        entries, step = list[dict[str, Any]](), dict[str, int]()
        while True:
            kept = [name for name in left if _slides(problem, name, looped) and self.choices.one_of(2)]
            left = [name for name in left if name not in kept]
            entries.append({"target": target.name, "keep": kept} | ({"temporal_tile_sizes": step} if step else {}))
            steps = [(at, size) for at, whole in tiles.items() for size in _smaller(whole)] if left else []
            number = self.choices.one_of(1 + len(steps))
            if not number:
                return entries
            at, size = steps[number - 1]
            step, tiles[at], looped = {at: size}, size, looped | {at}

    def _inside(self, problem: Problem, tiles: dict[str, int]) -> list[dict[str, Any]]:
        """Return the entries inside the buffer's loops: unrollings, then loops and register tiles of each unit."""
        _, buffer, *inner = self.group.architecture.clusters
        registers = inner.pop() if inner and inner[-1].memories else None
        fanouts, rest = list[tuple[Cluster, dict[str, int]]](), dict(tiles)
        for cluster in (buffer, *inner):
            factors, units = dict[str, int](), cluster.fanout.size
            for at, size in rest.items():
                able = [trips for trips in range(1, min(size, units) + 1) if size % trips == 0]
                factors[at] = able[self.choices.one_of(len(able))] if len(able) > 1 else 1
                rest[at], units = size // factors[at], units // factors[at]
            fanouts.append((cluster, factors))
        ones = dict.fromkeys(problem.dimensions, 1)
        sizes = tiles if registers else {at: tiles[at] // rest[at] for at in tiles}
        entries = list[dict[str, Any]]()
        for cluster, factors in fanouts:
            entry = {"target": cluster.name, "temporal_tile_sizes": sizes, "temporal_order": list(ones)}
            sizes = {at: size // factors[at] for at, size in sizes.items()}
            entries.append(entry | {"spatial_tile_sizes": sizes})
        if registers is None:
            return entries
        held = [tensor.name for tensor in problem.tensors if registers.memories[0].may_hold(tensor)]
        entries += self._nest(registers, problem, held, dict(sizes))
        return [*entries, {"target": registers.name, "temporal_tile_sizes": ones, "temporal_order": list(ones)}]


def _slides(problem: Problem, tensor: str, looped: set[str]) -> bool:
    """Return whether loops outside a tile are over one dimension of each window at most, as in the space."""
    return all(len(looped & rank.terms.keys()) < 2 for rank in problem.tensor(tensor).projection)


def _smaller(*sizes: int) -> list[int]:
    """Return the tiles that divide larger ones."""
    return [trips for trips in range(1, min(sizes)) if not any(size % trips for size in sizes)]
