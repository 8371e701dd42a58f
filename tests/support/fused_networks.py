"""Brute force over small networks whose results stay on chip, to compare with the proved optimum of `map NET --fuse`.

cd tests && python -m support.fused_networks 200 --start 0
cd tests && python -m support.fused_networks 200 --every

Nothing of the search is used. All sets of results that may stay are tried, and for each layer all mappings: every
factorisation, every order of loops, and every set of kept tensors that docs/mapspace.md allows. Accesses, capacities,
energies and cycles are counted here, from the loops alone. `timeloop` and `oracle` confirm the best group mapping.

A network is searched with several sizes of its home: where results fill it exactly, or leave less than a word, and
others (`--every`: all up to the largest that matters).
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import tilewright as tw
from support.tally import tally
from tilewright.application.api.keywords import settings_of
from tilewright.application.api.plan import Plan
from tilewright.application.api.settings import MapSettings
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.application.run.network import LayerSearch, MappedLayer, map_searches
from tilewright.application.run.resident import ResidentNetwork, group_of
from tilewright.plugin.result import PROOF_TOLERANCE
from tilewright.schema.objective import ObjectiveName

ORACLE, TIMELOOP = build_model("oracle"), build_model("timeloop")

RANKS = {"X": ("M", "K"), "W": ("K", "N"), "Y": ("M", "N")}
"""Dimensions of each tensor of a product."""
ROLES = {"X": "input", "W": "weight", "Y": "output"}
Moved = tuple[int, int, int]
"""Reads, fills and updates of one tensor in one memory."""
Loops = tuple[tuple[tuple[str, int], ...], ...]
"""For each block, outermost first, dimension and trips of each loop, outermost first."""


@dataclass(frozen=True)
class Store:
    """A memory; `usable` is what one copy of the tiles may take, in bits, or inf."""

    name: str
    cluster: str
    holds: tuple[str, ...]
    usable: float
    bits: Mapping[str, int]
    data: Mapping[str, Any]

    def energy(self, tensor: str, moved: Moved) -> float:
        """Return the pJ of accesses, each of a block."""
        block = self.data.get("word_bits", 16) * self.data.get("block_words", 1)
        prices = [self.data[f"{each}_energy_pj"] for each in ("read", "write")]
        prices.append(self.data.get("update_energy_pj", prices[1]))
        return math.fsum(
            -(-count * self.bits[tensor] // block) * each for count, each in zip(moved, prices, strict=True)
        )

    def cycles(self, rows: Sequence[tuple[str, Moved]]) -> int:
        """Return the cycles that the slowest port takes."""
        read = sum(moved[0] * self.bits[tensor] for tensor, moved in rows)
        written = sum((moved[1] + moved[2]) * self.bits[tensor] for tensor, moved in rows)
        most = 0
        for kind, bits in (("read", read), ("write", written), ("shared", read + written)):
            rate = self.data.get(f"{kind}_bandwidth_words_per_cycle")
            if rate:
                most = max(most, math.ceil(bits / (rate * self.data.get("word_bits", 16))))
        return most


@dataclass(frozen=True)
class Staying:
    """A result that may stay: its maker, its tensors by layer, the first and the last layer, and bits."""

    maker: int
    uses: frozenset[tuple[int, str]]
    first: int
    last: int
    bits: int


@dataclass(frozen=True)
class Row:
    """A mapping of a layer: bits of the tiles in the home, its costs, loops and keepers."""

    room: int
    energy: float
    cycles: int
    loops: Loops
    keepers: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Net:
    """Products that read one another's results.

    Attributes:
        sizes: M, K and N of each layer.
        reads: (layer, tensor) -> makers whose sum it reads.
        parts: layer -> makers whose results it reads side by side as X, column after column.
        turned, before: (layer, tensor, maker): the result is read transposed; an operator changes it before it is added.
        clusters: data of the architecture; `capacity` of the home is set by `machine`.
        rule: what the constraints say of the home, or None.
        times: executions of each layer.
    """

    sizes: tuple[tuple[int, int, int], ...]
    reads: Mapping[tuple[int, str], tuple[int, ...]]
    clusters: Sequence[Mapping[str, Any]]
    rule: Mapping[str, Any] | None
    times: int
    objective: ObjectiveName
    parts: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    turned: frozenset[tuple[int, str, int]] = frozenset()
    before: frozenset[tuple[int, str, int]] = frozenset()
    costs: dict[tuple[int, frozenset[str]], list[Row]] = field(default_factory=dict)

    # -- inputs of the search --------------------------------------------------------------------------------

    def workload(self) -> dict[str, Any]:
        """Return the workload as data."""
        layers = []
        for number, sizes in enumerate(self.sizes):
            tensors = [{"name": each, "role": ROLES[each], "projection": list(ranks)} for each, ranks in RANKS.items()]
            problem = {
                "name": f"L{number}",
                "dimensions": dict(zip("MKN", sizes, strict=True)),
                "tensors": tensors,
            }
            reads: dict[str, list[dict[str, Any]]] = {
                tensor: [self._read(number, tensor, at) for at in makers]
                for (reader, tensor), makers in self.reads.items()
                if reader == number
            }
            if number in self.parts:
                reads["X"] = [*self._side_by_side(self.parts[number])]
            after = sorted({each["maker"] for found in reads.values() for each in found})
            layers.append({"problem": problem, "count": self.times, "after": after, "reads": reads})
        return {"schema_version": 1, "kind": "workload", "name": "network", "layers": layers}

    def _read(self, number: int, tensor: str, at: int) -> dict[str, Any]:
        """Return a read of all words of a result as data."""
        read: dict[str, Any] = {"maker": f"L{at}"}
        if (number, tensor, at) in self.turned:
            rows, _, columns = self.sizes[at]
            read |= {"sizes": {"m": rows, "n": columns}, "made": ["m", "n"], "read": ["n", "m"]}
        return read | ({"through": [f"relu of L{at}"]} if (number, tensor, at) in self.before else {})

    def _side_by_side(self, makers: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield the read of each part of a concatenation as data."""
        start = 0
        for at in makers:
            rows, _, columns = self.sizes[at]
            words = {"sizes": {"m": rows, "n": columns}, "made": ["m", "n"], "read": ["m", f"n + {start}"]}
            yield {"maker": f"L{at}"} | words
            start += columns

    def machine(self, capacity: int) -> dict[str, Any]:
        """Return the architecture as data, with this capacity of the home."""
        clusters = [dict(each) for each in self.clusters]
        for cluster in clusters:
            cluster["memories"] = [
                each | ({"capacity_words": capacity} if each["name"] == "Home" else {}) for each in cluster["memories"]
            ]
        return {"name": "small", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}

    def rules(self) -> dict[str, Any] | None:
        """Return the constraints as data."""
        if self.rule is None:
            return None
        keep = [{"memory": "Home", **self.rule}]
        return {"schema_version": 1, "kind": "constraints", "name": "rules", "variants": [{"keep": keep}]}

    # -- what may stay ---------------------------------------------------------------------------------------

    @cached_property
    def staying(self) -> list[Staying]:
        """Results that may stay, by the words of docs/fusion.md."""
        sums = dict[tuple[int, ...], list[tuple[int, str]]]()
        for use, makers in self.reads.items():
            sums.setdefault(makers, []).append(use)
            for length in range(1, len(makers)):
                sums.setdefault(makers[:length], [])
        for reader, makers in self.parts.items():
            for maker in makers:
                sums.setdefault((maker,), []).append((reader, "X"))
        several = {
            at for makers, uses in sums.items() if len({self._way(use, makers) for use in uses}) > 1 for at in makers
        }
        sums = {makers: uses for makers, uses in sums.items() if not several & set(makers)}
        home, found = self.stores[self.home], []
        for makers, uses in sorted(sums.items()):
            completing = [
                each[len(makers)] for each in sums if each[: len(makers)] == makers and len(each) > len(makers)
            ]
            last = max([*(reader for reader, _ in uses), *completing])
            tensors = {*((each, "Y") for each in makers), *uses}
            if {ROLES[name] for _, name in tensors} <= set(home.holds):
                words = self.sizes[makers[-1]][0] * self.sizes[makers[-1]][2]
                bits = words * max(home.bits[name] for _, name in tensors)
                own = frozenset({(makers[-1], "Y"), *uses})
                found.append(Staying(makers[-1], own, makers[-1], last, bits))
        able = {each.maker for each in found}
        return [each for each in found if self.partners(each.maker) <= able]

    def _way(self, use: tuple[int, str], makers: tuple[int, ...]) -> tuple[bool, ...]:
        """Return which results have other coordinates than the first in a sum, and which an operator changes before."""
        if len(makers) == 1:
            return ()
        turned = [(*use, at) in self.turned for at in makers]
        return *(way != turned[0] for way in turned), *((*use, at) in self.before for at in makers)

    def partners(self, maker: int) -> set[int]:
        """Return the makers of the parts that are read with a result."""
        return {other for makers in self.parts.values() if maker in makers for other in makers}

    # -- memories --------------------------------------------------------------------------------------------

    @cached_property
    def stores(self) -> list[Store]:
        """All memories, the outermost first; the home has no limit here."""
        found = []
        for cluster in self.clusters:
            for each in cluster["memories"]:
                word = each.get("word_bits", 16)
                words = each.get("capacity_words")
                usable = math.inf if words is None else math.floor(words / each.get("multiple_buffering", 1)) * word
                bits = {name: each.get("bits_per_value", {}).get(role, word) for name, role in ROLES.items()}
                holds = tuple(each.get("holds") or ROLES.values())
                found.append(Store(each["name"], cluster["name"], holds, usable, bits, each))
        return found

    @cached_property
    def home(self) -> int:
        return next(at for at, each in enumerate(self.stores) if each.name == "Home")

    def usable(self, capacity: int) -> int:
        """Return the bits of the home that one copy of the tiles may take."""
        data = self.stores[self.home].data
        return math.floor(capacity / float(data.get("multiple_buffering", 1))) * int(data.get("word_bits", 16))

    def others(self, resident: frozenset[str]) -> int:
        """Return the bits of one value of each tensor that the home may hold, but for residents."""
        home = self.stores[self.home]
        return sum(home.bits[name] for name, role in ROLES.items() if role in home.holds and name not in resident)

    def choices(self, store: int, tensor: str) -> tuple[bool, ...] | None:
        """Return what a rule allows for a tensor in a memory (kept or not); None without a rule."""
        if self.rule is not None and store == self.home:
            for word, allowed in (("keep", (True,)), ("bypass", (False,)), ("free", (True, False))):
                if ROLES[tensor] in self.rule.get(word, ()):
                    return allowed
        return None

    # -- mappings of one layer -------------------------------------------------------------------------------

    def rows(self, number: int, resident: frozenset[str]) -> list[Row]:
        """Return the mappings of a layer with some tensors at home, without those that need more room and cost more."""
        first = self.sizes.index(self.sizes[number])
        key = first, resident
        if key not in self.costs:
            self.costs[key] = self._undominated(self._all_rows(number, resident))
        return self.costs[key]

    def _undominated(self, rows: Iterator[Row]) -> list[Row]:
        kept = list[Row]()
        for row in sorted(rows, key=lambda each: (each.energy, each.cycles, each.room)):
            if not any(other.room <= row.room and other.cycles <= row.cycles for other in kept):
                kept.append(row)
        return kept

    def _all_rows(self, number: int, resident: frozenset[str]) -> Iterator[Row]:
        sizes = dict(zip("MKN", self.sizes[number], strict=True))
        macs, levels = math.prod(sizes.values()), len(self.stores)
        patterns = list(self._patterns(resident))
        seen = set[tuple[object, ...]]()
        for loops in _nests(sizes, levels):
            tiles = tuple(
                tuple(_tile(sizes, loops, ranks, level) for level in range(levels)) for ranks in RANKS.values()
            )
            if tiles in seen:
                continue
            seen.add(tiles)
            boxes = dict(zip(RANKS, tiles, strict=True))
            for keepers in patterns:
                room = [0] * levels
                rows: list[list[tuple[str, Moved]]] = [[] for _ in range(levels)]
                for name, where in keepers:
                    for level in where[1:]:
                        room[level] += boxes[name][level][1] * self.stores[level].bits[name]
                    for level, moved in _traffic(boxes[name], where, name == "Y", macs).items():
                        at = self.home if level == 0 and name in resident else level
                        rows[at].append((name, moved))
                if any(room[at] > each.usable for at, each in enumerate(self.stores) if at not in (0, self.home)):
                    continue
                cycles = max([macs, *(store.cycles(row) for store, row in zip(self.stores, rows, strict=True))])
                energy = macs * 0.5
                for store, row in zip(self.stores, rows, strict=True):
                    energy += sum(store.energy(name, moved) for name, moved in row)
                    energy += store.data.get("leakage_pj_per_cycle", 0) * cycles
                yield Row(room[self.home], energy, cycles, loops, keepers)

    def _patterns(self, resident: frozenset[str]) -> Iterator[tuple[tuple[str, tuple[int, ...]], ...]]:
        """Yield the levels that keep each tensor.

        Level 0 is where a tensor starts: the outermost memory, or the home.
        """
        options = list[list[tuple[int, ...]]]()
        for name in RANKS:
            free = list[tuple[int, tuple[bool, ...]]]()
            for level, store in enumerate(self.stores[1:], 1):
                if ROLES[name] not in store.holds or (name in resident and level <= self.home):
                    continue
                wanted = sum(store.bits[other] for other, role in ROLES.items() if role in store.holds)
                plain = (True, False) if level == self.home or wanted > store.usable else (True,)
                free.append((level, self.choices(level, name) or plain))
            options.append(
                [
                    (0, *(level for (level, _), on in zip(free, kept, strict=True) if on))
                    for kept in itertools.product(*(able for _, able in free))
                ]
            )
        for chosen in itertools.product(*options):
            yield tuple(zip(RANKS, chosen, strict=True))

    # -- networks --------------------------------------------------------------------------------------------

    def same(self, one: float, other: float) -> bool:
        """Return whether two values are equal. `timeloop` may round the cycles of a layer up by one, which leak, too."""
        leak = sum(each.data.get("leakage_pj_per_cycle", 0.0) for each in self.stores)
        more = self.times * len(self.sizes) * (1.0 if self.objective == "cycles" else leak)
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6 + more)

    def best_row(self, number: int, resident: frozenset[str], room: int) -> Row | None:
        """Return the best mapping of a layer in some room of the home, or None."""
        able = [each for each in self.rows(number, resident) if each.room <= room]
        return min(able, key=self.value, default=None)

    def value(self, row: Row) -> float:
        return row.energy if self.objective == "energy" else row.cycles

    def least(self, capacity: int, residents: int | None = None) -> tuple[float, tuple[int, ...], list[Row]]:
        """Return the least cost over all sets of results that stay (by position in `staying`), the set, and mappings."""
        usable = self.usable(capacity)
        best: tuple[float, tuple[int, ...], list[Row]] = (math.inf, (), [])
        for count in range((len(self.staying) if residents is None else residents) + 1):
            for chosen in itertools.combinations(range(len(self.staying)), count):
                makers = {self.staying[at].maker for at in chosen}
                if not all(self.partners(maker) <= makers for maker in makers):
                    continue
                rows = self._placed([self.staying[at] for at in chosen], usable)
                if rows is not None:
                    total = self.times * sum(map(self.value, rows))
                    best = min(best, (total, chosen, rows), key=lambda each: each[0])
        return best

    def _placed(self, staying: Sequence[Staying], usable: int) -> list[Row] | None:
        rows = []
        for number in range(len(self.sizes)):
            live = sum(each.bits for each in staying if each.first <= number <= each.last)
            row = None if live > usable else self.best_row(number, self.resident(staying, number), usable - live)
            if row is None:
                return None
            rows.append(row)
        return rows

    def resident(self, staying: Sequence[Staying], number: int) -> frozenset[str]:
        """Return the tensors of a layer that stay."""
        return frozenset(name for each in staying for layer, name in each.uses if layer == number)

    def is_crowded(self, capacity: int, chosen: Sequence[int]) -> bool:
        """Return whether some layer may bypass the home because results leave less than a value of each."""
        staying = [self.staying[at] for at in chosen]
        return any(
            self.others(self.resident(staying, number))
            > self.usable(capacity) - sum(each.bits for each in staying if each.first <= number <= each.last)
            for number in range(len(self.sizes))
        )

    def capacities(self, every: bool, random: Random) -> list[int]:
        """Return capacities of the home, in words: all, or those that sums of results fill, with some more."""
        home = self.stores[self.home].data
        words = home.get("word_bits", 16) / home.get("multiple_buffering", 1)
        sums = {
            sum(each.bits for each in chosen)
            for count in range(len(self.staying) + 1)
            for chosen in itertools.combinations(self.staying, count)
        }
        largest = max(math.prod(each) for each in self.sizes) * 3
        exact = sorted({math.ceil(each / words) for each in sums})
        if every:
            return list(range(1, min(exact[-1] + largest, 80) + 1))
        near = {random.choice(exact) + more for more in (0, random.choice((0, 1, 1, 2, 3)))}
        near |= {exact[-1] + random.choice((0, 1, 2)), random.randint(1, exact[-1] + 12)}
        return sorted(each for each in near if each > 0)

    # -- the best mapping as a group -------------------------------------------------------------------------

    def group(self, capacity: int, chosen: Sequence[int], rows: Sequence[Row]) -> dict[str, Any] | None:
        """Return the group mapping as data; None for sums and parts, whose words no edge expresses."""
        if self.parts or any(len(makers) > 1 for makers in self.reads.values()):
            return None
        staying = [self.staying[at] for at in chosen]
        names = {use: f"T{number}" for number, each in enumerate(staying) for use in each.uses}
        outer = [f"L{i}.{name}" for i in range(len(self.sizes)) for name in RANKS if (i, name) not in names]
        entries = [{"target": self.stores[0].cluster, "keep": outer}]
        if names:
            entries.append({"target": self.stores[self.home].cluster, "keep": sorted(set(names.values()))})
        start = {"target": self.stores[self.home if names else 0].cluster}
        branches = [{"layer": f"L{at}", "entries": self.entries(at, row, start)} for at, row in enumerate(rows)]
        layers = [each["problem"] for each in self.workload()["layers"]]
        edges = [
            {"tensor": f"T{at}", "layers": {f"L{i}": name for i, name in each.uses}} for at, each in enumerate(staying)
        ]
        return {
            "name": "network",
            "layers": layers,
            "edges": edges,
            "tree": {"entries": entries, "branches": branches},
            "architecture": self.machine(capacity),
        }

    def entries(self, number: int, row: Row, start: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the entries of a layer's mapping as data; `start` is the first one, without its tile."""
        tile = dict(zip("MKN", self.sizes[number], strict=True))
        found = [start | self._loops((), tile)]
        for level, store in enumerate(self.stores[1:], 1):
            kept = [name for name, where in row.keepers if level in where[1:]]
            found.append({"target": store.cluster, "keep": kept} | self._loops(row.loops[level - 1], tile))
        return [*found, {"target": self.stores[-1].cluster} | self._loops(row.loops[-1], tile)]

    def _loops(self, loops: tuple[tuple[str, int], ...], tile: dict[str, int]) -> dict[str, Any]:
        """Return sizes and order of an entry that steps some loops; `tile` becomes the tile inside."""
        for name, trips in loops:
            tile[name] //= trips
        return {"temporal_tile_sizes": dict(tile), "temporal_order": [name for name, _ in loops]}


def _nests(sizes: Mapping[str, int], blocks: int) -> Iterator[Loops]:
    """Yield all loops: every factorisation over the blocks, in every order."""
    for factors in itertools.product(*(_factors(size, blocks) for size in sizes.values())):
        able = [
            [(name, own[block]) for name, own in zip(sizes, factors, strict=True) if own[block] > 1]
            for block in range(blocks)
        ]
        yield from itertools.product(*(itertools.permutations(each) for each in able))


def _factors(size: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (size,)
        return
    for first in range(1, size + 1):
        if size % first == 0:
            for rest in _factors(size // first, parts - 1):
                yield (first, *rest)


def _tile(sizes: Mapping[str, int], loops: Loops, ranks: tuple[str, ...], level: int) -> tuple[int, int]:
    """Return (how often the tile at a level is loaded, its words). A tile stays while no loop moves it."""
    outside = [loop for block in loops[:level] for loop in block]
    while outside and outside[-1][0] not in ranks:
        outside.pop()
    trips = {name: math.prod(n for at, n in outside if at == name) for name in sizes}
    return math.prod(trips.values()), math.prod(sizes[name] // trips[name] for name in ranks)


def _traffic(tiles: Sequence[tuple[int, int]], keepers: Sequence[int], output: bool, macs: int) -> dict[int, Moved]:
    """Return the accesses of one tensor at each level that keeps it. The first partial sum of a word is not read."""
    whole, found = tiles[0][1], dict.fromkeys(keepers, (0, 0, 0))
    for outer, inner in itertools.pairwise(keepers):
        words = math.prod(tiles[inner])
        back = words - whole if output else words
        reads, fills, updates = found[outer]
        found[outer] = reads + back, fills, updates + (words if output else 0)
        found[inner] = 0, back, 0
    reads, fills, updates = found[keepers[-1]]
    found[keepers[-1]] = (reads + macs - whole, fills, updates + macs) if output else (reads + macs, fills, updates)
    return found


# -- random networks -----------------------------------------------------------------------------------------


def random_net(seed: int) -> Net:
    """Return the network of a seed: two to four products on two or three memories."""
    random = Random(f"network {seed}")
    clusters = _clusters(random)
    levels = sum(len(each["memories"]) for each in clusters)
    able = {2: (1, 2, 2, 3, 4), 3: (1, 2, 2, 3)}[levels]
    count = random.choice((2, 2, 3, 3, 4))
    sizes = [(random.choice(able), random.choice(able), random.choice(able))]
    reads = dict[tuple[int, str], tuple[int, ...]]()
    single, closed = set[int](), set[int]()  # makers of results that are read alone, and of complete sums
    for number in range(1, count):
        shapes = {at: (sizes[at][0], sizes[at][2]) for at in range(number)}
        first = number - 1 if random.random() < 0.6 else random.choice(range(number))
        makers: tuple[int, ...] = (first,)
        same = [at for at in range(first) if shapes[at] == shapes[first] and at not in closed]
        if same and first not in single | closed and random.random() < 0.5:
            makers = (random.choice(same), first)
            closed.add(first)
        elif first in closed:
            makers = next(each for each in reads.values() if len(each) > 1 and each[-1] == first)
        single |= {makers[0]} if len(makers) == 1 else set()
        rows, columns = shapes[first]
        reads[number, "X"] = makers
        other = [at for at in shapes if shapes[at][0] == columns and at not in closed | {first}]
        if other and random.random() < 0.3:
            second = random.choice(other)
            single.add(second)
            reads[number, "W"] = (second,)
            sizes.append((rows, columns, shapes[second][1]))
        else:
            sizes.append((rows, columns, random.choice(able)))
    rule: dict[str, Any] | None = None
    if random.random() < 0.25:
        rule = {random.choice(("free", "bypass", "keep")): random.sample(list(ROLES.values()), random.choice((1, 2)))}
    objectives: tuple[ObjectiveName, ...] = ("energy", "energy", "cycles")
    objective = random.choice(objectives)
    times = random.choice((1, 1, 3))
    parts = _side_by_side(Random(f"parts {seed}"), sizes, set(range(count)) - closed, able)
    _read_again(Random(f"again {seed}"), sizes, reads, able)
    turned, before = _ways(Random(f"ways {seed}"), sizes, reads)
    return Net(tuple(sizes), reads, clusters, rule, times, objective, parts, turned, before)


def _read_again(
    random: Random,
    sizes: list[tuple[int, int, int]],
    reads: dict[tuple[int, str], tuple[int, ...]],
    able: Sequence[int],
) -> None:
    """Append, to some networks with a sum, a layer that reads it, too."""
    sums = [makers for makers in reads.values() if len(makers) > 1]
    if sums and len(sizes) < 5 and random.random() < 0.7:
        makers = random.choice(sums)
        reads[len(sizes), "X"] = makers
        sizes.append((sizes[makers[0]][0], sizes[makers[0]][2], random.choice(able)))


def _ways(
    random: Random, sizes: Sequence[tuple[int, int, int]], reads: Mapping[tuple[int, str], tuple[int, ...]]
) -> tuple[frozenset[tuple[int, str, int]], frozenset[tuple[int, str, int]]]:
    """Return the results that are read transposed, and those that an operator changes before they are added."""
    uses = [(*use, at) for use, makers in reads.items() for at in makers]
    square = [use for use in uses if sizes[use[2]][0] == sizes[use[2]][2]]
    added = [use for use in uses if len(reads[use[:2]]) > 1]
    share = random.choice((0, 0, 0.3, 0.6))
    return (
        frozenset(use for use in square if random.random() < share),
        frozenset(use for use in added if random.random() < share / 2),
    )


def _side_by_side(
    random: Random, sizes: list[tuple[int, int, int]], makers: set[int], able: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Append, to some networks, a layer that reads two results side by side. Return its makers by its number."""
    pairs = [
        pair
        for pair in itertools.permutations(sorted(makers), 2)
        if sizes[pair[0]][0] == sizes[pair[1]][0] and sizes[pair[0]][2] + sizes[pair[1]][2] <= 4
    ]
    if not pairs or len(sizes) > 3 or random.random() < 0.6:
        return {}
    parts = random.choice(pairs)
    sizes.append((sizes[parts[0]][0], sum(sizes[at][2] for at in parts), random.choice(able)))
    return {len(sizes) - 1: parts}


def _clusters(random: Random) -> list[dict[str, Any]]:
    bits = {}
    if random.random() < 0.5:
        bits = {role: random.choice((4, 8, 16, 16, 24, 32)) for role in random.sample(list(ROLES.values()), 2)}
    leaks = random.random() < 0.2

    def memory(name: str, least: int, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"name": name}
        found |= {f"{each}_energy_pj": random.choice((1, 2, 8, least)) for each in ("read", "write")}
        for each in ("read", "write", "shared"):
            if random.random() < 0.35:
                found[f"{each}_bandwidth_words_per_cycle"] = random.choice((0.5, 1, 2, 4))
        if bits:
            found |= {"word_bits": 16, "bits_per_value": bits}
        if random.random() < 0.15:
            found["update_energy_pj"] = random.choice((1, 4))
        if random.random() < 0.1:
            found["block_words"] = 2
        if leaks and random.random() < 0.5:
            found["leakage_pj_per_cycle"] = 0.5
        return found | more

    home = memory("Home", 4)
    if random.random() < 0.15:
        home["multiple_buffering"] = random.choice((1.5, 2))
    clusters: list[dict[str, Any]] = [{"name": "Out", "memories": [memory("DRAM", 100)]}]
    clusters.append({"name": "In", "memories": [home]})
    kind = random.choice(("none", "none", "beside", "inside", "inside", "outside"))
    if kind == "beside":
        home["holds"] = ["input", "output"]
        clusters[1]["memories"].append(memory("Beside", 4, holds=["weight"], capacity_words=random.choice((1, 4, 16))))
    elif kind == "inside":
        words = random.choice((1, 2, 3, 4, 8))
        clusters.append({"name": "Inner", "memories": [memory("Inside", 1, capacity_words=words)]})
        if random.random() < 0.4:
            clusters[2]["memories"][0]["holds"] = random.sample(list(ROLES.values()), random.choice((1, 2)))
    elif kind == "outside":
        words = random.choice((2, 8, 32))
        clusters.insert(
            1, {"name": "Between", "memories": [memory("Outside", 8, holds=["weight"], capacity_words=words)]}
        )
    if kind != "beside" and random.random() < 0.3:
        home["holds"] = ["input", "output"]
    return clusters


# -- comparison ----------------------------------------------------------------------------------------------


Known = dict[tuple[object, ...], MappedLayer]
"""Layers by problem, architecture, objective and limit on cycles."""


def prepared(
    workload: Any,
    arch: Any,
    objective: ObjectiveName,
    constraints: Any = None,
    value_bits: str = "architecture",
    known: Known | None = None,
) -> ResidentNetwork:
    """Return a network as `fuse_network` prepares it, without cache.

    Args:
        known: results of searches under the same constraints, which grow.
    """
    settings = {name: each.default for name, each in settings_of(MapSettings).items()}
    settings |= {"objective": objective, "cache": False, "constraints": constraints, "value_bits": value_bits}
    plan, configuration = Plan.of_one(workload, arch, settings)  # type: ignore[arg-type]
    mapped: Known = {} if known is None else known

    def key(each: LayerSearch) -> tuple[object, ...]:
        run = each.configuration
        return each.distinct.problem.content_key, run.architecture, run.objective, run.most_cycles

    def search(asked: Sequence[LayerSearch]) -> Iterator[MappedLayer]:
        new = [each for each in asked if key(each) not in mapped]
        mapped.update(zip(map(key, new), map_searches(new), strict=True))
        return (mapped[key(each)] for each in asked)

    return ResidentNetwork(plan.workload, configuration, search)


def compared_at(net: Net, capacity: int, known: Known | None = None) -> str:
    """Return the outcome of one network with one size of its home."""
    plain, brute = net.least(capacity, 0)[0], net.least(capacity)
    network = prepared(net.workload(), net.machine(capacity), net.objective, net.rules(), known=known)
    makers = {each.maker for each in network.may_stay}
    if makers != {f"L{each.maker}" for each in net.staying}:
        return f"WRONG: {sorted(makers)} may stay"
    unfused, least = network.gain()
    if math.isinf(plain) or math.isinf(unfused):
        return "nothing fits" if math.isinf(plain) and math.isinf(unfused) else f"WRONG: unfused {unfused}, {plain}"
    placed = network.place()
    if not net.same(plain, unfused):
        return f"WRONG: unfused {unfused}, {plain} by brute force"
    best, chosen, rows = brute
    if placed.value < best and not net.same(placed.value, best):
        return f"WRONG: {placed.value} found, {best} by brute force"
    for bound in (placed.bound, min(least, unfused)):
        if bound > best and not net.same(bound, best):
            return f"WRONG: nothing costs less than {bound}, {best} by brute force"
    proved = placed.value - placed.bound < PROOF_TOLERANCE * placed.value
    if proved and not net.same(placed.value, best):
        return f"WRONG: {placed.value} proved, {best} by brute force"
    for data, value in ((net.group(capacity, chosen, rows), best), (group_of(network, placed), placed.value)):
        group = tw.GroupMapping.model_validate(data) if isinstance(data, dict) else data
        for model in (ORACLE, TIMELOOP):
            if group is None:
                continue
            report = evaluate_group(model, group)
            if model is TIMELOOP and "order" in {each.code for each in report.reasons}:
                continue  # a memory outside the home is inside loops of its cluster
            counted = report.energy_pj if net.objective == "energy" else report.cycles
            if counted is None or not net.same(counted * net.times, value):
                return f"WRONG: {model.name} counts {counted} x {net.times} for {value}, {report.reasons}"
    kind = "fused" if placed.residents else "unfused"
    crowded = ", crowded" if net.is_crowded(capacity, chosen) else ""
    return f"{'equal' if net.same(placed.value, best) else 'dearer'}, {kind}{crowded}{'' if proved else ', with a gap'}"


def compared(seed: int, every: bool = False) -> str:
    """Return the outcome of one network: the least favourable one of several sizes of its home.

    A larger home costs no more, in the search as by brute force.
    """
    net, outcomes = random_net(seed), list[str]()
    searched: Known = {}
    before, shown = math.inf, math.inf
    for capacity in net.capacities(every, Random(seed)):
        found = compared_at(net, capacity, searched)
        if "WRONG" in found:
            return f"{found} (home of {capacity})"
        value, placed = (
            net.least(capacity)[0],
            prepared(net.workload(), net.machine(capacity), net.objective, net.rules(), known=searched).place(),
        )
        if (value > before and not net.same(value, before)) or (
            placed.bound > shown and not net.same(placed.bound, shown)
        ):
            return f"WRONG: {value} or at least {placed.bound} with {capacity} words, {before} or {shown} with fewer"
        before, shown = min(before, value), min(shown, placed.value)
        outcomes.append(found)
    gaps = sum("gap" in each or "dearer" in each for each in outcomes)
    return f"{len(outcomes)} sizes, {'gaps' if gaps else 'all proved'}" if every else max(outcomes, key=_order)


def _order(outcome: str) -> tuple[bool, bool, bool, bool]:
    return "dearer" in outcome, "gap" in outcome, "crowded" in outcome, "equal, fused" in outcome


def main() -> int:
    """Compare both on random networks, and print how many agree; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="networks")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--every", action="store_true", help="try all sizes of the home")
    arguments = parser.parse_args()
    seeds = range(arguments.start, arguments.start + arguments.count)
    return tally(lambda seed: compared(seed, arguments.every), seeds, "networks")


if __name__ == "__main__":
    sys.exit(main())
