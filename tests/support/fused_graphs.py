"""Brute force over small fused graphs of layers, to compare with the proved optimum of `search_group`.

cd tests && python -m support.fused_graphs 500 --start 0
cd tests && python -m support.fused_graphs 500 --chains --windows

Nothing of the search is used. All trees of shared loops are listed, and in each tree all places of every tile: in any
part, at any depth, for one layer or for all that use it. Words are counted by stepping through the loops: a tile that
is there stays, and a branch starts with nothing inside. Of places that agree in all that other layers see, those that
need no less room and cost no less than others are dropped. `oracle` executes the best mapping of both.

A window brings only its new words if the last loop that moves it slides it, as `timeloop` counts. Layers may share
loops over rows of different sizes; the last rows then stay at home for the next step.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from random import Random
from typing import Any

import numpy as np

from support.group_searches import search_group
from support.tally import tally
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import NotConformableError
from tilewright.mapspace.group_legality import keeps_halo
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, Objective

ORACLE, TIMELOOP = build_model("oracle"), build_model("timeloop")

Loops = tuple[tuple[str, int], ...]
"""Axis and tile of each loop."""
Ranks = tuple[tuple[str, ...], ...]
"""Dimensions of each coordinate; two are a window."""
Axes = dict[tuple[int, str], str]
"""Layer and dimension -> axis."""
Words = tuple[int, int, int, int]
"""Reads and writes of the outermost memory, reads and writes of the buffer."""


@dataclass(frozen=True)
class Part:
    """Part of a tree: its first and last layer, the shared loops outside it, and those outside its branches."""

    first: int
    last: int
    start: int
    end: int

    def uses(self, layers: tuple[int, ...]) -> bool:
        """Return whether some of the layers are in the part."""
        return any(self.first <= i <= self.last for i in layers)


@dataclass(frozen=True)
class Node:
    """Tile in the buffer for some layers, in a part, inside of `depth` loops."""

    tensor: str
    users: tuple[int, ...]
    part: Part
    depth: int

    @property
    def ends(self) -> bool:
        """Return whether the tile is gone after its branches have run."""
        return self.depth == self.part.end


Places = tuple[tuple[str, Part, int], ...]
"""Tensor, part and depth of the tiles of one layer."""
Figures = tuple[tuple[int, ...], float, int]
"""Words that a layer keeps in each part of its path, energy and cycles."""
Row = tuple[tuple[int, ...], float, int, Loops, Places]
"""Figures of a layer, its loops, and where it keeps its tiles."""


@dataclass(frozen=True)
class Graph:
    """Layers on two memories; layer i makes `M{i}`.

    Attributes:
        notation: of each layer, tensor -> coordinates, such as `m+r k`. The first dimension of a window is the result's.
        sizes: of each layer, dimension -> size.
        energies, bandwidths: of reads and writes, of the outermost memory and then of the buffer.
        widths: words of one value by tensor or role, if not 1. A shared tile has room for its widest use.
    """

    notation: list[dict[str, str]]
    sizes: list[dict[str, int]]
    capacity: int
    energies: list[int]
    bandwidths: list[float | None]
    objective: Objective
    widths: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.sizes)

    @cached_property
    def layers(self) -> list[dict[str, Ranks]]:
        return [
            {name: tuple(tuple(at.split("+")) for at in ranks.split()) for name, ranks in layer.items()}
            for layer in self.notation
        ]

    @cached_property
    def users(self) -> dict[str, tuple[int, ...]]:
        names = dict.fromkeys(name for layer in self.layers for name in layer)
        return {name: tuple(i for i, layer in enumerate(self.layers) if name in layer) for name in names}

    @cached_property
    def shared(self) -> list[str]:
        return [name for name, users in self.users.items() if len(users) > 1]

    @cached_property
    def makers(self) -> dict[str, int]:
        return {f"M{i}": i for i in range(self.count)}

    @property
    def slides(self) -> bool:
        """Return whether some layer is a convolution."""
        return any(len(rank) > 1 for layer in self.layers for ranks in layer.values() for rank in ranks)

    def group(self, axes: dict[str, dict[str, str]] | None = None, tree: dict[str, Any] | None = None) -> GroupMapping:
        """Return the group; without a tree, each layer runs alone, without a tile in the buffer."""
        names = ("read_energy_pj", "write_energy_pj")
        ports = ("read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle")
        memories: list[dict[str, Any]] = [
            {"name": name}
            | dict(zip(names, self.energies[at:], strict=False))
            | dict(zip(ports, self.bandwidths[at:], strict=False))
            for name, at in (("DRAM", 0), ("Buffer", 2))
        ]
        memories[1]["capacity_words"] = self.capacity
        for memory in memories:
            memory |= {"word_bits": 8, "bits_per_value": {name: 8 * width for name, width in self.widths.items()}}
        alone = {
            "entries": [{"target": "DRAM", "keep": [self.name(tensor) for tensor in self.users]}],
            "branches": [{"layer": f"L{i}", "entries": [self.units(i)]} for i in range(self.count)],
        }
        return GroupMapping.model_validate(
            {
                "name": "graph",
                "layers": [self._problem(i) for i in range(self.count)],
                "edges": [
                    {"tensor": tensor, "layers": {f"L{i}": tensor for i in self.users[tensor]}}
                    for tensor in self.shared
                ],
                "axes": axes or {},
                "tree": tree or alone,
                "architecture": {
                    "name": "two",
                    "clusters": [{"name": part["name"], "memories": [part]} for part in memories],
                    "compute": {"energy_per_operation_pj": 0.5},
                },
            }
        )

    def _problem(self, number: int) -> dict[str, Any]:
        tensors = [
            {
                "name": name,
                "role": "output" if name == f"M{number}" else "input",
                "projection": [" + ".join(rank) for rank in ranks],
            }
            for name, ranks in self.layers[number].items()
        ]
        return {"name": f"L{number}", "dimensions": self.sizes[number], "tensors": tensors}

    def width(self, number: int, tensor: str) -> int:
        """Return the words of one value in a layer."""
        role = "output" if tensor == f"M{number}" else "input"
        return self.widths.get(tensor, self.widths.get(role, 1))

    def name(self, tensor: str) -> str:
        """Return the group's name of a tensor."""
        return tensor if tensor in self.shared else f"L{self.users[tensor][0]}.{tensor}"

    def units(self, number: int) -> dict[str, Any]:
        """Return the innermost entry of a layer."""
        ones = dict.fromkeys(self.sizes[number], 1)
        return {"target": "Buffer", "temporal_tile_sizes": ones, "temporal_order": list(ones)}

    def axes(self) -> list[Axes]:
        """Return the ways to join dimensions that step one coordinate of a tensor, none of them part of another.

        A layer has one dimension on an axis at most. A coordinate joins all layers that use the tensor, or none: loops
        outside a tile that they share step all of them.
        """
        links = [
            frozenset((i, self.layers[i][name][at][0]) for i in self.users[name])
            for name in self.shared
            for at in range(2)
            if any(self.sizes[i][self.layers[i][name][at][0]] > 1 for i in self.users[name])
        ]
        choices: dict[frozenset[frozenset[tuple[int, str]]], Axes] = {}
        done: list[set[int]] = []
        for chosen in sorted(itertools.product([False, True], repeat=len(links)), key=sum, reverse=True):
            kept = set(itertools.compress(range(len(links)), chosen))
            sets = {(i, at): frozenset({(i, at)}) for i, sizes in enumerate(self.sizes) for at in sizes}
            for link in (links[at] for at in kept):
                every = frozenset[tuple[int, str]]().union(*(sets[pair] for pair in link))
                sets |= dict.fromkeys(every, every)
            if all(len({i for i, _ in members}) == len(members) for members in sets.values()):
                if not any(kept <= former for former in done):
                    done.append(kept)
                    names = {members: f"a{at}" for at, members in enumerate(sorted(set(sets.values()), key=sorted))}
                    choices.setdefault(frozenset(names), {one: names[members] for one, members in sets.items()})
        return list(choices.values())


def random_graph(seed: int, chain: bool = False, windows: bool = False, widths: bool = False) -> Graph:
    """Return the graph of a seed.

    By default, a layer is the product of an earlier result or input, and of a weight `W{i}`. Others multiply two tensors,
    word by word or as matrices. So results pass by layers, and are read again later.

    Args:
        chain: each layer reads the result before, and a weight.
        windows: products with weights may be convolutions of rows, with two or three taps.
        widths: values of roles and of some tensors take several words.
    """
    drawn = _Drawn(Random(f"{seed} {chain}{' windows' if windows else ''}"), chain, windows)
    wide = Random(f"{seed} widths")
    names = ["input", "output", wide.choice(list(drawn.shapes)), "W0"]
    chosen = {name: wide.choice([1, 2, 3]) for name in names if widths and wide.random() < 0.6}
    capacity = drawn.capacity * (2 if chosen else 1)
    return Graph(drawn.notation, drawn.sizes, capacity, drawn.energies, drawn.bandwidths, drawn.objective, chosen)


class _Drawn:
    def __init__(self, random: Random, chain: bool, windows: bool) -> None:
        self.random, self.chain, self.windows = random, chain, windows
        count = random.choice([2, 2, 3] if chain else [2, 3, 3, 3, 4, 4])
        self.able = {2: [1, 2, 3, 3, 4], 3: [1, 2, 2, 3], 4: [1, 1, 2, 2, 3]}[count]
        self.capacity = random.choice([3, 4, 5, 6, 8, 10, 14, 20, 40])
        self.energies = [random.choice([1, 2, 8, 100]) for _ in range(4)]
        self.bandwidths: list[float | None] = [random.choice([None, 0.5, 1, 2]) for _ in range(4)]
        self.objective: Objective = random.choice((ENERGY, ENERGY, CYCLES, EDP))
        self.shapes = {"I": (random.choice(self.able), random.choice(self.able))}
        if windows:
            self.shapes["I"] = (random.choice([2, 3, 4, 5]), self.shapes["I"][1])
        self.taken = set[str]()  # inputs of convolutions, which no other layer may read
        self.notation = list[dict[str, str]]()
        self.sizes = list[dict[str, int]]()
        for number in range(count):
            self._add(number)
        if self.objective == EDP and random.random() >= 0.5:
            self.objective = ED2P

    def _add(self, number: int) -> None:
        random, known = self.random, [name for name in self.shapes if name not in self.taken]
        first = known[-1] if self.chain or random.random() < 0.5 else random.choice(known)
        rows, columns = self.shapes[first]
        able = [
            (kind, other)
            for other in known
            if other != first and not self.chain
            for kind, fits in (
                ("words", self.shapes[other] == (rows, columns)),
                ("matrix", self.shapes[other][0] == columns),
                ("scores", self.shapes[other][1] == columns),
            )
            if fits
        ]
        sizes = {"m": rows, "k": columns}
        if able and random.random() < 0.6:
            kind, other = random.choice(able)
            if kind == "words":
                layer, sizes = {first: "m n", other: "m n"}, {"m": rows, "n": columns}
            else:
                layer = {first: "m k", other: "k n" if kind == "matrix" else "n k"}
                sizes["n"] = self.shapes[other][1 if kind == "matrix" else 0]
        else:
            may_slide = self.windows and (first != "I" or number == 0)
            taps = min(rows, random.choice([1, 2, 2, 3])) if may_slide else 1
            layer = {first: "m k", f"W{number}": "k n"}
            sizes["n"] = random.choice(self.able)
            if taps > 1:
                layer = {first: "m+r k", f"W{number}": "k n r"}
                sizes |= {"m": rows - taps + 1, "r": taps}
                self.taken |= {first} & {"I"}
        self.notation.append({**layer, f"M{number}": "m n"})
        self.sizes.append(sizes)
        self.shapes[f"M{number}"] = (sizes["m"], sizes["n"])


class Judge:
    """Brute force over the trees of a graph, for one way to join dimensions.

    Args:
        beyond: list what docs/fusion_proof.md excludes, too. Some of a tensor's readers may share a tile, and others not. Loops
            outside a shared tile of an input need not step it.
    """

    def __init__(self, graph: Graph, axes: Axes, beyond: bool = False) -> None:
        self.graph, self.axes, self.beyond = graph, axes, beyond
        self.dimensions = [{axes[i, at]: at for at in graph.sizes[i]} for i in range(graph.count)]
        self.sizes = [{axes[i, at]: size for at, size in graph.sizes[i].items()} for i in range(graph.count)]
        self.ranks = [
            {name: tuple(tuple(axes[i, at] for at in rank) for rank in ranks) for name, ranks in layer.items()}
            for i, layer in enumerate(graph.layers)
        ]
        self.moved, self.rows, self.boxes = cache(self._moved), cache(self._rows), cache(self._box)

    def best(self, limit: float = math.inf) -> tuple[float, dict[str, Any] | None]:
        """Return the least cost below a limit, and its tree."""
        best, tree = limit, None
        for shared, prefixes in self.trees(0, (), (), ()):
            parts = list(_parts(shared, 0, self.graph.count - 1, 0))
            options = [list(self.tiles(parts, parts[0], name, prefixes)) for name in self.graph.shared]
            for nodes in itertools.product(*options):
                cost, branch = self.joined(parts, prefixes, [node for some in nodes for node in some], best)
                if branch is not None:
                    best, tree = cost, branch
        return best, tree

    def trees(
        self, number: int, known: Loops, shared: tuple[int, ...], prefixes: tuple[Loops, ...]
    ) -> Iterator[tuple[tuple[int, ...], tuple[Loops, ...]]]:
        """Yield how many loops neighbours share, and the loops that each layer shares with any.

        Args:
            known: loops that the layer shares with the one before.
        """
        if number == self.graph.count - 1:
            yield shared, (*prefixes, known)
            return
        for loops in self._longer(number, known):
            for count in range(len(loops), len(loops) - 1 if len(loops) > len(known) else -1, -1):
                if self._whole((*shared, count), (*prefixes, loops)):
                    yield from self.trees(number + 1, loops[:count], (*shared, count), (*prefixes, loops))

    def _longer(self, number: int, loops: Loops) -> Iterator[Loops]:
        """Yield loops with any further ones that the next layer has, too."""
        yield loops
        tile = self.sizes[number] | dict(loops)
        for axis in sorted(self.sizes[number].keys() & self.sizes[number + 1].keys()):
            for size in _smaller(tile[axis]):
                yield from self._longer(number, (*loops, (axis, size)))

    def _whole(self, shared: tuple[int, ...], prefixes: tuple[Loops, ...]) -> bool:
        """Return whether the next layer has the loops, and reads nothing that later steps make or complete."""
        reader = len(shared)
        for at, (axis, size) in enumerate(prefixes[-1][: shared[-1]]):
            inside = [i for i in range(reader) if min(shared[i:]) > at] + [reader]
            if any(axis not in self.sizes[i] for i in inside):
                return False
            whole = {self.sizes[i][axis] for i in inside}
            if len(whole) > 1 and any(length % size or length == size for length in whole):
                return False
        for name in self.ranks[reader]:
            maker = self.graph.makers.get(name, reader)
            if maker < reader:
                pairs = zip(self.ranks[maker][name], self.ranks[reader][name], strict=True)
                alike = {one[0] for one, other in pairs if one[0] == other[0]}
                if any(axis not in alike for axis, _ in prefixes[-1][: min(shared[maker:])]):
                    return False
        return True

    def tiles(
        self, parts: list[Part], part: Part, name: str, prefixes: tuple[Loops, ...]
    ) -> Iterator[tuple[Node, ...]]:
        """Yield the ways in which layers share tiles of a tensor, inside a part."""
        users = tuple(i for i in self.graph.users[name] if part.first <= i <= part.last)
        if len(users) < 2:
            yield ()
            return
        whole = users == self.graph.users[name]
        maker = self.graph.makers.get(name)
        if whole or (self.beyond and maker not in users):
            for depth in range(part.start, part.end + 1):
                loops = prefixes[users[0]][:depth]
                if self._may_be_home(name, users, loops, depth > part.start):
                    yield (Node(name, users, part, depth),)
        inner = [
            other for other in parts if other.start == part.end and part.first <= other.first <= other.last <= part.last
        ]
        inner = [other for other in inner if other != part and _parent(parts, other) == part]
        for some in itertools.product(*(self.tiles(parts, other, name, prefixes) for other in inner)):
            yield tuple(node for nodes in some for node in nodes)

    def _may_be_home(self, name: str, users: tuple[int, ...], loops: Loops, last: bool) -> bool:
        """Return whether loops may be outside a tile that layers share. `last`: the last one is in the tile's part."""
        outside = frozenset(axis for axis, _ in loops)
        if name in self.graph.makers and self.graph.makers[name] in users:  # _whole looks at the loops
            uneven = [self._is_uneven(users, axis) for axis, _ in loops]
            return not any(uneven[:-1]) and (last or not any(uneven))
        steps = {tuple(outside.intersection(rank) for rank in self.ranks[i][name]) for i in users}
        return len(steps) == 1 and (self.beyond or outside <= set().union(*self.ranks[users[0]][name]))

    def _is_uneven(self, users: tuple[int, ...], axis: str) -> bool:
        return len({self.sizes[i][axis] for i in users}) > 1

    def joined(
        self, parts: list[Part], prefixes: tuple[Loops, ...], nodes: list[Node], best: float
    ) -> tuple[float, dict[str, Any] | None]:
        """Return the least cost of all places of the other tiles if it is below `best`, and the tree."""
        graph = self.graph
        room = np.full(graph.count, float(graph.capacity))
        for node in nodes:
            loops = prefixes[node.users[0]][: node.depth]
            words = max(self.boxes(i, node.tensor, loops) for i in node.users)
            words *= max(graph.width(i, node.tensor) for i in node.users)
            first, last = node.part.first, node.part.last
            halo = (
                loops and self.graph.makers.get(node.tensor) in node.users and self._is_uneven(node.users, loops[-1][0])
            )
            using = [other for other in parts if _parent(parts, other) == node.part and other.uses(node.users)]
            if node.ends and not halo and not (len(using) == 1 and loops):
                # the tile lives from the first branch that uses it to the last; one for a single branch stays for the next step
                first, last = using[0].first, using[-1].last
            room[first : last + 1] -= words
        if room.min() < 0:
            return best, None
        paths = [[other for other in parts if other.first <= i <= other.last] for i in range(graph.count)]
        options = [self.rows(i, prefixes[i], *self._around(i, paths[i], nodes)) for i in range(graph.count)]
        if not all(options):
            return best, None
        least = (
            sum(min(row[1] for row in choices) for choices in options),
            sum(min(row[2] for row in choices) for choices in options),
        )
        if self._cost(*least) >= best * (1 - 1e-12):
            return best, None
        alive, energy, cycles = np.zeros((1, graph.count)), np.zeros(1), np.zeros(1)
        for i, table in enumerate(options):
            spans = np.zeros((len(table), graph.count))
            for level, part in enumerate(paths[i]):
                spans[:, part.first : part.last + 1] += np.array([row[0][level] for row in table])[:, None]
            alive = (alive[:, None] + spans).reshape(-1, graph.count)
            energy = (energy[:, None] + np.array([row[1] for row in table])).ravel()
            cycles = (cycles[:, None] + np.array([row[2] for row in table])).ravel()
        costs = np.where((alive <= room).all(axis=1), self._cost(energy, cycles), math.inf)
        at = int(costs.argmin())
        if costs[at] >= best * (1 - 1e-12):
            return best, None
        chosen = np.unravel_index(at, [len(choices) for choices in options])
        rows = [choices[k] for choices, k in zip(options, chosen, strict=True)]
        return float(costs[at]), self._tree(parts, parts[0], nodes, rows)

    def _cost(self, energy: Any, cycles: Any) -> Any:
        return energy**self.graph.objective.energy_power * cycles**self.graph.objective.cycle_power

    def _around(
        self, number: int, path: list[Part], nodes: list[Node]
    ) -> tuple[tuple[Part, ...], int, tuple[tuple[str, tuple[int, int] | None], ...], tuple[tuple[str, int], ...]]:
        """Return the path, and what shared tiles mean for a layer.

        These are the loops outside all tiles that are alive, and the tensors with a shared tile, with depth and visits if
        the layer fills it. And for other tensors: the first part of the path where this layer is the only user.
        """
        at_home = dict[str, tuple[int, int] | None]()
        for node in nodes:
            if number in node.users:
                filled = number == node.users[0] and self.graph.makers.get(node.tensor) not in node.users
                at_home[node.tensor] = (node.depth, node.depth if node.ends else node.part.start) if filled else None
        alone = {
            name: next(at for at, part in enumerate(path) if self._is_alone(number, name, part))
            for name in self.graph.layers[number]
            if name not in at_home
        }
        outside = max((tile.depth for tile in nodes if tile.users[0] <= number <= tile.users[-1]), default=0)
        return tuple(path), outside, tuple(at_home.items()), tuple(alone.items())

    def _is_alone(self, number: int, name: str, part: Part) -> bool:
        """Return whether a part may hold a tile of a tensor for one layer only."""
        users = self.graph.users[name]
        return [i for i in users if part.first <= i <= part.last] == [number]

    def _rows(
        self,
        number: int,
        prefix: Loops,
        path: tuple[Part, ...],
        outside: int,
        at_home: tuple[tuple[str, tuple[int, int] | None], ...],
        alone: tuple[tuple[str, int], ...],
    ) -> list[Row]:
        """Return the words and costs of all loops and places of one layer's own tiles."""
        graph, rows = self.graph, dict[Figures, Row]()
        macs = math.prod(self.sizes[number].values())
        for loops in self._orders(prefix, self.sizes[number] | dict(prefix)):
            options: list[list[tuple[Words, int, int, int]]] = []
            for name, filled in at_home:
                depth, apart = filled or (0, 0)
                moved = self.moved(number, name, None if filled is None else loops[:depth], apart, True)
                options.append([(self._wide(number, name, moved), 0, 0, -1)])
            for name, first in alone:
                ways = [(self._wide(number, name, self.moved(number, name, None, 0, False)), 0, 0, -1)]
                for level, part in list(enumerate(path))[first:]:
                    for depth in range(part.start, (part.end if level < len(path) - 1 else len(loops)) + 1):
                        if not self._is_covered(number, name, loops[outside:depth]):
                            continue
                        words = self.boxes(number, name, loops[:depth]) * graph.width(number, name)
                        moved = self.moved(number, name, loops[:depth], part.start, False)
                        ways.append((self._wide(number, name, moved), level, words, depth))
                options.append(ways)
            names = [name for name, _ in (*at_home, *alone)]
            for chosen in itertools.product(*options):
                kept = [0] * len(path)
                for _, level, words, _ in chosen:
                    kept[level] += words
                if sum(kept) > graph.capacity:
                    continue
                total = [sum(column) for column in zip(*(way[0] for way in chosen), strict=True)]
                energy = macs * 0.5 + sum(a * b for a, b in zip(total, graph.energies, strict=True))
                ports = [math.ceil(a / b) for a, b in zip(total, graph.bandwidths, strict=True) if b is not None]
                key = (tuple(kept), energy, max([macs, *ports]))
                if key not in rows:
                    places = [
                        (name, path[level], depth)
                        for name, (_, level, _, depth) in zip(names, chosen, strict=True)
                        if depth >= 0
                    ]
                    rows[key] = (*key, loops, tuple(places))
        best = list[Figures]()
        for key in sorted(rows):
            if not any(_at_most(other, key) for other in best):
                best.append(key)
        return [rows[key] for key in best]

    def _wide(self, number: int, name: str, moved: Words) -> Words:
        """Return the words that some values take."""
        width = self.graph.width(number, name)
        return (moved[0] * width, moved[1] * width, moved[2] * width, moved[3] * width)

    def _is_covered(self, number: int, name: str, loops: Loops) -> bool:
        """Return whether one dimension of each window at most has loops inside the tiles that layers share.

        docs/fusion_proof.md excludes others.
        """
        return all(len({axis for axis, _ in loops} & set(rank)) < 2 for rank in self.ranks[number][name])

    def _orders(self, loops: Loops, tile: dict[str, int]) -> Iterator[Loops]:
        """Yield all orders of the further loops, down to single words."""
        able = [axis for axis, size in tile.items() if size > 1]
        if not able:
            yield loops
        for axis in able:
            for size in _smaller(tile[axis]):
                yield from self._orders((*loops, (axis, size)), tile | {axis: size})

    def _moved(self, number: int, name: str, loops: Loops | None, apart: int, shared: bool) -> Words:
        """Return the words that a tensor moves.

        Args:
            loops: loops outside its tile, which the layer fills; None: it fills none.
            apart: after every step of this many loops, the tile is gone.
            shared: the tensor has a tile in the buffer that several layers use.
        """
        sizes, ranks, output = self.sizes[number], self.ranks[number][name], name == f"M{number}"
        macs, whole = math.prod(sizes.values()), self.boxes(number, name, ())
        near = (macs - whole, macs) if output else (macs, 0)
        if loops is None:
            return (0, 0, *near) if shared else (*near, 0, 0)
        words, tile, steps = self.boxes(number, name, loops), dict(sizes), []
        for axis, size in loops:
            steps.append([(axis, size * step) for step in range(tile[axis] // size)])
            tile[axis] = size
        reads = writes = fills = 0
        moving = [at for at, (axis, _) in enumerate(loops) if any(axis in rank for rank in ranks)]
        begun, last = set[object](), None  # `last` is the step before: place of the tile, steps of visits and of loops
        for step in itertools.product(*steps):
            where = tuple(sum(start for axis, start in step if axis in rank) for rank in ranks)
            outside = step[: moving[-1]] if moving else ()
            if last is not None and last[:2] == (where, step[:apart]):
                continue
            new = words
            if last is not None and moving and not output and last[2] == outside and moving[-1] >= apart:
                stays = (self._extent(rank, tile) - (a - b) for rank, a, b in zip(ranks, where, last[0], strict=True))
                new -= math.prod(max(0, length) for length in stays)
            last = (where, step[:apart], outside)
            if not output or where in begun:
                reads, fills = reads + new, fills + new
            begun.add(where)
            writes += words if output else 0
        return reads, writes, near[0], near[1] + fills

    def _extent(self, rank: tuple[str, ...], tile: dict[str, int]) -> int:
        return 1 + sum(tile[axis] - 1 for axis in rank)

    def _box(self, number: int, name: str, loops: Loops) -> int:
        tile = self.sizes[number] | dict(loops)
        return math.prod(self._extent(rank, tile) for rank in self.ranks[number][name])

    def _tree(self, parts: list[Part], part: Part, nodes: list[Node], rows: list[Row]) -> dict[str, Any]:
        """Return the tree of the mapping, as in a file."""
        graph, leaf, loops = self.graph, part.first == part.last, rows[part.first][3]
        entries: list[dict[str, Any]] = []
        if part == parts[0]:
            home = [name for name in graph.users if not any(self._is_home(node, name) for node in nodes)]
            entries.append({"target": "DRAM", "keep": [graph.name(name) for name in home]})
        for depth in range(part.start, (len(loops) if leaf else part.end) + 1):
            kept = [node.tensor for node in nodes if (node.part, node.depth) == (part, depth)]
            kept += [name for row in rows for name, *place in row[4] if place == [part, depth]]
            entry: dict[str, Any] = {"target": "Buffer", "keep": kept if leaf else [graph.name(name) for name in kept]}
            if depth > part.start:
                axis, size = loops[depth - 1]
                entry["temporal_tile_sizes"] = {self.dimensions[part.first][axis] if leaf else axis: size}
            entries.append(entry)
        if leaf:
            return {"layer": f"L{part.first}", "entries": [*entries, graph.units(part.first)]}
        inner = [other for other in parts if _parent(parts, other) == part]
        return {"entries": entries, "branches": [self._tree(parts, other, nodes, rows) for other in inner]}

    def _is_home(self, node: Node, name: str) -> bool:
        return node.tensor == name and self.graph.makers.get(name) in node.users

    def group(self, tree: dict[str, Any]) -> GroupMapping:
        """Return the group mapping of a tree."""
        axes: dict[str, dict[str, str]] = {}
        for (layer, dimension), axis in self.axes.items():
            axes.setdefault(axis, {})[f"L{layer}"] = dimension
        return self.graph.group({axis: users for axis, users in axes.items() if len(users) > 1}, tree)


def _parts(shared: tuple[int, ...], first: int, last: int, start: int) -> Iterator[Part]:
    """Yield the parts of some layers, outer ones first. A layer's own part ends where its loops do."""
    if first == last:
        yield Part(first, last, start, start)
        return
    end = min(shared[first:last])
    yield Part(first, last, start, end)
    cuts = [number for number in range(first, last) if shared[number] == end]
    for one, other in zip([first, *(cut + 1 for cut in cuts)], [*cuts, last], strict=True):
        yield from _parts(shared, one, other, end)


def _parent(parts: list[Part], part: Part) -> Part | None:
    outer = [other for other in parts if other.first <= part.first and part.last <= other.last and other != part]
    return outer[-1] if outer and parts.index(part) else None


def _at_most(one: Figures, other: Figures) -> bool:
    return one[1] <= other[1] and one[2] <= other[2] and all(a <= b for a, b in zip(one[0], other[0], strict=True))


def _smaller(size: int) -> list[int]:
    """Return the tiles inside."""
    return [tile for tile in range(1, size) if size % tile == 0]


def least(graph: Graph, beyond: bool = False) -> tuple[float | None, GroupMapping | None]:
    """Return the least cost of all mappings, and one that has it; None if nothing fits."""
    best, mapping = math.inf, None
    for axes in graph.axes():
        judge = Judge(graph, axes, beyond)
        best, tree = judge.best(best)
        mapping = mapping if tree is None else judge.group(tree)
    return (None if mapping is None else best), mapping


def compared(seed: int, chain: bool = False, windows: bool = False, beyond: bool = False, widths: bool = False) -> str:
    """Return the outcome of one graph. Its optimum costs the same in a buffer that it fills exactly."""
    graph = random_graph(seed, chain, windows, widths)
    brute, mapping = least(graph, beyond)
    try:
        result = search_group(graph.group(), graph.objective)
    except NotConformableError as error:
        return f"refused by both: {error}" if brute is None else f"WRONG: refused: {error}"
    figures = list[float]()
    for group in (result.group, mapping):
        reports = [
            evaluate_group(model, group) for model in ((ORACLE, TIMELOOP) if graph.slides else (ORACLE,)) if group
        ]
        costs = [report.of(graph.objective) for report in reports]
        if {reason.code for report in reports for reason in report.reasons} == {"tile"}:
            return "only execution counts it"
        if not costs or None in costs:
            reasons = [str(reason) for report in reports for reason in report.reasons]
            return f"WRONG: {'search' if group is result.group else 'brute force'}, {brute}: {reasons}"
        figures.append(costs[-1] or 0.0)
    executed, confirmed = figures
    if brute is None or abs(confirmed - brute) > 1e-9 * confirmed:
        return f"WRONG: {brute} by brute force, {confirmed} counted"
    if abs(executed - confirmed) > 1e-9 * confirmed:
        return f"WRONG: {'BETTER' if executed < confirmed else 'worse'}: {executed} found, {brute} by brute force"
    filled = next(level.used_words for level in evaluate_group(ORACLE, result.group).levels if level.name == "Buffer")
    tight = replace(graph, capacity=filled or 1)
    full = search_group(tight.group(), graph.objective).of(graph.objective)
    if abs(full - confirmed) > 1e-9 * confirmed:
        return f"WRONG: {confirmed} by brute force, {full} found in the {filled} words that it needs"
    kind = "fused" if result.group != result.unfused else "unfused"
    halo = " with a halo" if any(keeps_halo(result.group, tensor) for tensor in result.group.users) else ""
    return f"equal, {kind}{halo}, {graph.count} layers"


def main() -> int:
    """Compare both on random graphs, and print how many agree; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="graphs")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--chains", action="store_true", help="each layer reads the result before")
    parser.add_argument("--windows", action="store_true", help="convolutions, whose words timeloop counts")
    parser.add_argument("--widths", action="store_true", help="values of several words, by role and by tensor")
    parser.add_argument("--beyond", action="store_true", help="list what docs/fusion_proof.md excludes, too")
    arguments = parser.parse_args()
    return tally(
        lambda seed: compared(seed, arguments.chains, arguments.windows, arguments.beyond, arguments.widths),
        range(arguments.start, arguments.start + arguments.count),
        "graphs",
    )


if __name__ == "__main__":
    sys.exit(main())
