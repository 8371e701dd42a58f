"""Brute force over two small products on an array, to compare with the proved optimum of `search_group`.

cd tests && python -m support.fused_arrays 500 --start 0

Nothing is pruned, and nothing of the search is used. All nests of both layers are listed: loops in any order, several of
one dimension included, kept tensors at any depth, and all unrollings. Words are counted by executing the nest:
sets of words enter and leave the buffer and the registers of each unit. A tile that is there stays, and a branch starts
with nothing inside. Units that need a word in one step share one read, and their sums are added on the way.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from support.group_searches import search_group
from support.tally import tally
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import NotConformableError
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, Objective

Ranks = tuple[str, ...]
"""Dimensions of each coordinate, one letter each; two are a window."""
Loops = tuple[tuple[str, int], ...]
"""Dimension and tile of each loop, outermost first."""
Words = tuple[int, int, int, int, int, int]
"""Reads and writes of the outermost memory, of the buffer, and of all registers together."""
Costs = set[tuple[float, int]]
"""Energy and cycles."""
ORACLE, TIMELOOP = build_model("oracle"), build_model("timeloop", {"link_transfers": False})
UNITS = ((2,), (2,), (3,), (2, 2), (4,), (1,))


class Pair:
    """Two random products: `T0[m, a] * W0[a, b] -> T1[m, b]`, then `T1[m, b] * W1[b, c] -> T2[m, c]`.

    Of `siblings`, the second one reads `T0[m, a]` and `W1[a, c]`.
    """

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.siblings = random.random() < 0.25
        sizes = random.choice([(2, 2, 2, 2), (2, 1, 2, 2), (3, 2, 1, 2), (4, 1, 2, 2), (1, 4, 2, 1), (2, 2, 3, 1)])
        self.sizes = dict(zip("mabc", random.sample(sizes, 4), strict=True))
        self.units: tuple[int, ...] = random.choice(UNITS)
        self.capacity = random.choice([2, 3, 4, 5, 6, 8, 12, 30])
        self.registers = random.choice([None, 1, 1, 2, 2, 3, 4, 4])
        self.held = random.choice([None, None, ("input",), ("weight",), ("output",), ("input", "output")])
        self.energies = [random.choice(able) for able in ([8, 100], [8, 100], [2, 6], [2, 8], [0.5, 1], [0.5, 3])]
        self.bandwidths = [random.choice([None, None, 0.5, 1, 4]) for _ in range(6)]
        self.objective: Objective = random.choice((ENERGY, ENERGY, CYCLES, EDP))
        leaking = Random(f"{seed} leakage")
        self.leakage = [leaking.choice([0.0, 0.0, 0.0, 1.0, 8.0]) for _ in range(2)]
        if self.objective == EDP and leaking.random() < 0.5:
            self.objective = ED2P
        first = {"T0": tuple("ma"), "W0": tuple("ab"), "T1": tuple("mb")}
        second = {"T1": tuple("mb"), "W1": tuple("bc"), "T2": tuple("mc")}
        if self.siblings:
            second = {"T0": tuple("ma"), "W1": tuple("ac"), "T2": tuple("mc")}
        self.layers: list[dict[str, Ranks]] = [first, second]
        self.common = "T0" if self.siblings else "T1"

    @property
    def steps(self) -> set[str]:
        """Dimensions of shared loops."""
        return set("".join(self.layers[0][self.common]))

    def layer(self, number: int) -> Layer:
        return Layer(self, number)

    def edges(self) -> list[dict[str, Any]]:
        return [{"tensor": self.common, "layers": dict.fromkeys(("L0", "L1"), self.common)}]

    def group(self) -> GroupMapping:
        memories: list[dict[str, Any]] = [
            {
                "name": name,
                "read_energy_pj": self.energies[at],
                "write_energy_pj": self.energies[at + 1],
                "read_bandwidth_words_per_cycle": self.bandwidths[at],
                "write_bandwidth_words_per_cycle": self.bandwidths[at + 1],
            }
            for name, at in (("DRAM", 0), ("Buffer", 2), ("Register", 4))
        ]
        memories[1]["capacity_words"] = self.capacity
        for memory, leakage in zip(memories, self.leakage, strict=False):
            memory["leakage_pj_per_cycle"] = leakage
        memories[2] |= {"capacity_words": self.registers, "holds": self.held}
        clusters: list[dict[str, Any]] = [{"name": part["name"], "memories": [part]} for part in memories[:2]]
        clusters += [{"name": f"Row{at}"} for at in range(1, len(self.units))]
        for cluster, size, axis in zip(clusters[1:], self.units, "XY", strict=False):
            cluster["fanout"] = {"size": size, "axis": axis}
        if self.registers is not None:
            clusters.append({"name": "PE", "memories": [memories[2]]})
        layers = [
            {
                "name": f"L{number}",
                "dimensions": {
                    at: self.sizes[at] for at in sorted({at for ranks in tensors.values() for at in "".join(ranks)})
                },
                "tensors": [
                    {"name": name, "role": role, "projection": [" + ".join(rank) for rank in ranks]}
                    for (name, ranks), role in zip(tensors.items(), ("input", "weight", "output"), strict=True)
                ],
            }
            for number, tensors in enumerate(self.layers)
        ]
        known = {edge["tensor"] for edge in self.edges()}
        every = {name if name in known else f"L{i}.{name}" for i, tensors in enumerate(self.layers) for name in tensors}
        kept = sorted(every)
        branches = [
            {
                "layer": layer["name"],
                "entries": [
                    {
                        "target": clusters[-1]["name"],
                        "temporal_order": list(layer["dimensions"]),
                        "temporal_tile_sizes": dict.fromkeys(layer["dimensions"], 1),
                    }
                ],
            }
            for layer in layers
        ]
        return GroupMapping.model_validate(
            {
                "name": "pair",
                "layers": layers,
                "edges": self.edges(),
                "tree": {"entries": [{"target": "DRAM", "keep": kept}], "branches": branches},
                "architecture": {
                    "name": "array",
                    "clusters": clusters,
                    "compute": {"energy_per_operation_pj": 0.5},
                },
            }
        )


def sequences(tile: tuple[tuple[str, int], ...]) -> Iterator[Loops]:
    """Yield all loops, in all orders, that leave tiles of 1 or larger ones."""
    yield ()
    for number, (at, size) in enumerate(tile):
        for inner in range(1, size):
            if size % inner == 0:
                rest = (*tile[:number], (at, inner), *tile[number + 1 :])
                yield from (((at, inner), *more) for more in sequences(rest))


class Layer:
    """All nests of one layer of a pair."""

    def __init__(self, pair: Pair, number: int) -> None:
        self.pair, self.number, self.tensors = pair, number, pair.layers[number]
        self.result = list(self.tensors)[-1]
        self.dimensions = {name: set("".join(ranks)) for name, ranks in self.tensors.items()}
        self.sizes = {at: pair.sizes[at] for at in sorted(set().union(*self.dimensions.values()))}
        self.macs = math.prod(self.sizes.values())
        self.moved = cache(self._moved)
        self.inner = cache(self._inner)
        roles = dict(zip(self.tensors, ("input", "weight", "output"), strict=True))
        self.able = [name for name, role in roles.items() if pair.held is None or role in pair.held]

    def tiles(self, loops: Loops) -> dict[str, int]:
        return self.sizes | dict(loops)

    def room(self, name: str, tile: dict[str, int]) -> int:
        return math.prod(tile[at] for at in self.dimensions[name])

    def held(self, name: str, loops: Loops) -> int:
        """Return the words of a tile in the buffer."""
        return self.room(name, self.tiles(loops))

    def nests(self) -> Iterator[tuple[Loops, dict[str, int]]]:
        """Yield loops, and how many are outside each tensor that the buffer keeps; the last one is in front of one."""
        for loops in sequences(tuple(self.sizes.items())):
            for chosen in itertools.product([None, *range(len(loops) + 1)], repeat=3):
                depths = {name: at for name, at in zip(self.tensors, chosen, strict=True) if at is not None}
                if not loops or len(loops) in depths.values():
                    if sum(self.held(name, loops[:at]) for name, at in depths.items()) <= self.pair.capacity:
                        yield loops, depths

    def _inner(self, tile: tuple[tuple[str, int], ...]) -> list[tuple[tuple[int, ...], Loops, tuple[int | None, ...]]]:
        """Return the units along each dimension, the loops of a unit, and how many are outside each register tile."""
        rows = []
        able = [[at for at in range(1, size + 1) if size % at == 0] for _, size in tile]
        unrolled = set()
        for factors in itertools.product(itertools.product(*able), repeat=len(self.pair.units)):
            units = tuple(math.prod(sizes) for sizes in zip(*factors, strict=True))
            fits = all(math.prod(sizes) <= most for sizes, most in zip(factors, self.pair.units, strict=True))
            if fits and all(size % n == 0 for (_, size), n in zip(tile, units, strict=True)):
                unrolled.add(units)
        for units in sorted(unrolled):
            part = tuple((at, size // n) for (at, size), n in zip(tile, units, strict=True))
            for loops in sequences(part):
                if any(size > 1 for size in (dict(part) | dict(loops)).values()):
                    continue
                choices = [
                    [None, *range(len(loops) + 1)] if name in self.able and self.pair.registers else [None]
                    for name in self.tensors
                ]
                for depths in itertools.product(*choices):
                    words = [
                        self.room(name, dict(part) | dict(loops[:at]))
                        for name, at in zip(self.tensors, depths, strict=True)
                        if at is not None
                    ]
                    if sum(words) <= (self.pair.registers or 0):
                        rows.append((units, loops, depths))
        return rows

    def _moved(
        self,
        name: str,
        loops: Loops,
        inner: Loops,
        units: tuple[int, ...],
        depth: int | None,
        register: int | None,
        apart: int,
        home: bool,
        stays: bool,
    ) -> Words:
        """Return the words that a tensor moves, by executing the nest.

        Args:
            depth, register: loops outside its tile in the buffer, and of `inner`, in the registers; None: not there.
            apart: after every step of this many loops, what is inside has gone.
            home: the outermost memory has no word of it.
            stays: the tile in the buffer does not go.
        """
        output, dims = name == self.result, self.dimensions[name]
        outer, buffer, registers = Counter[str](), Counter[str](), Counter[str]()
        whole = self.tiles(loops)
        parts = {at: size // n for (at, size), n in zip(whole.items(), units, strict=True)}
        tile, starts = dict(self.sizes), []
        for at, size in loops:
            starts.append([(at, size * step) for step in range(tile[at] // size)])
            tile[at] = size
        tile = dict(parts)
        for at, size in inner:
            starts.append([(at, size * step) for step in range(tile[at] // size)])
            tile[at] = size
        lanes = [dict(zip(whole, point, strict=True)) for point in itertools.product(*map(range, units))]
        near = outer if depth is None else buffer
        begun, begun_far, begun_here = set[object](), set[object](), [set[object]() for _ in lanes]
        last: object = None
        before: object = None
        held = frozenset[object]()
        last_here: list[object] = [None] * len(lanes)
        for step in itertools.product(*starts):
            visit = step[:apart]
            if depth is not None and not home:
                words = self.set_of(name, step[:depth], self.tiles(loops[:depth]), {})
                place = self.set_of(name, step[:depth], dict.fromkeys(self.sizes, 1), {}, whole=True)
                now = (place, visit if depth >= apart and not stays else ())
                if now != last:
                    moving = max((at for at, (d, _) in enumerate(loops[:depth]) if d in dims), default=0)
                    slides = before == (step[:moving], now[1])
                    again = words & begun_far if output else words - held if slides else words
                    last, before, held = now, (step[:moving], now[1]), words
                    outer["read"] += len(again)
                    buffer["write"] += len(again)
                    outer["write"] += len(words) if output else 0
                    begun_far |= words
            asked = set[object]()
            for lane, where in enumerate(lanes):
                shift = {at: parts[at] * number for at, number in where.items()}
                if register is not None:
                    count = len(loops) + register
                    words = self.set_of(name, step[:count], parts | dict(inner[:register]), shift)
                    if last_here[lane] != (words, visit):
                        last_here[lane] = (words, visit)
                        registers["write"] += len(words & begun_here[lane] if output else words)
                        asked |= words
                operands = self.set_of(name, step, dict.fromkeys(self.sizes, 1), shift)
                if register is None:
                    asked |= operands
                else:
                    registers["read"] += len(operands & begun_here[lane] if output else operands)
                    registers["write"] += len(operands) if output else 0
                    begun_here[lane] |= operands
            near["read"] += len(asked & begun if output else asked)
            near["write"] += len(asked) if output else 0
            begun |= asked
        return tuple(counts[kind] for counts in (outer, buffer, registers) for kind in ("read", "write"))  # type: ignore[return-value]

    def set_of(
        self,
        name: str,
        step: tuple[tuple[str, int], ...],
        tile: dict[str, int],
        shift: dict[str, int],
        whole: bool = False,
    ) -> frozenset[object]:
        """Return the words of a tile; `whole`: also those that do not exist."""
        start = Counter(shift)
        for at, offset in step:
            start[at] += offset
        ranges = []
        for number, rank in enumerate(self.tensors[name]):
            first = sum(start[at] for at in rank)
            span = range(first, first + 1 + sum(tile[at] - 1 for at in rank))
            ranges.append([at for at in span if whole or self.exists(name, number, at)])
        return frozenset(itertools.product(*ranges))

    def exists(self, name: str, coordinate: int, at: int) -> bool:
        """Return whether a coordinate of a tensor is a word, and not padding."""
        return True

    def may_stay(self, name: str) -> bool:
        """Return whether a tile right above the branches may stay for the next step."""
        return False

    def is_covered(self, loops: Loops, depths: dict[str, int], apart: int) -> bool:
        """Return whether the space has a nest."""
        return True

    def costs(self, loops: Loops, depths: dict[str, int], apart: int, fused: bool, stay: tuple[str, ...] = ()) -> Costs:
        """Return the costs of all ways to map the innermost tile."""
        costs: Costs = set()
        for units, inner, registers in self.inner(tuple(self.tiles(loops).items())):
            total = [0] * 6
            for name, register in zip(self.tensors, registers, strict=True):
                at_home = fused and name == self.pair.common and not (self.pair.siblings and self.number == 0)
                more = self.moved(name, loops, inner, units, depths.get(name), register, apart, at_home, name in stay)
                total = [a + b for a, b in zip(total, more, strict=True)]
            count = math.prod(units)
            energy = self.macs * 0.5 + sum(a * b for a, b in zip(total, self.pair.energies, strict=True))
            ports = [
                math.ceil((words if at < 4 else words // count) / rate)
                for at, (words, rate) in enumerate(zip(total, self.pair.bandwidths, strict=True))
                if rate is not None
            ]
            cycles = max([self.macs // count, *ports])
            costs.add((energy + cycles * sum(self.pair.leakage), cycles))
        return thinned(costs, self.pair.objective)


def thinned(costs: Costs, objective: Objective) -> Costs:
    """Return the costs of which one may be the least in a sum."""
    if objective == ENERGY:
        return {min(costs)} if costs else costs
    if objective == CYCLES:
        return {min(costs, key=lambda cost: cost[::-1])} if costs else costs
    kept: Costs = set()
    for pair in sorted(costs):
        if all(pair[1] < other[1] for other in kept):
            kept.add(pair)
    return kept


State = tuple[Loops, int, int, int]
"""Loops that both layers share, those outside the home, and room outside and inside the parting."""


def fused_states(layer: Layer) -> dict[State, Costs]:
    pair, states = layer.pair, dict[State, Costs]()
    for loops, depths in layer.nests():
        home = depths.get(pair.common)
        if home is None:
            continue
        for apart in range(home, len(loops) + 1):
            if any(at not in pair.steps for at, _ in loops[:apart]):
                break
            able = [name for name, depth in depths.items() if depth == apart > 0 and layer.may_stay(name)]
            for stay in ((), *((name,) for name in able if name != pair.common)):
                rooms = [0, 0]
                for name, depth in depths.items():
                    if name != pair.common:
                        rooms[depth >= apart and name not in stay] += layer.held(name, loops[:depth])
                fits = sum(rooms) + layer.held(pair.common, loops[:home]) <= pair.capacity
                if fits and layer.is_covered(loops, depths, apart):
                    key = loops[:apart], home, rooms[0], rooms[1]
                    states.setdefault(key, set()).update(layer.costs(loops, depths, apart, True, stay))
    return {key: thinned(costs, pair.objective) for key, costs in states.items()}


def least(pair: Pair) -> float | None:
    """Return the least cost of all pairs of nests, or None if nothing fits."""
    layers = [pair.layer(number) for number in range(2)]
    alone: list[Costs] = []
    for layer in layers:
        nests = ((loops, depths) for loops, depths in layer.nests() if layer.is_covered(loops, depths, 0))
        costs = {cost for loops, depths in nests for cost in layer.costs(loops, depths, 0, False)}
        alone.append(thinned(costs, pair.objective))
    pairs = list(itertools.product(*alone))
    first, second = (fused_states(layer) for layer in layers)
    for (loops, home, outside, inside), costs in first.items():
        tile = layers[0].held(pair.common, loops[:home])
        for (others, at, more, room), theirs in second.items():
            if (others, at) == (loops, home) and tile + outside + more + max(inside, room) <= pair.capacity:
                pairs += itertools.product(costs, theirs)
    powers = pair.objective.powers
    return min(((a + b) ** powers[0] * (c + d) ** powers[1] for (a, c), (b, d) in pairs), default=None)


def compared(seed: int) -> str:
    """Return the outcome of one pair."""
    pair = Pair(seed)
    brute = least(pair)
    try:
        result = search_group(pair.group(), pair.objective)
    except NotConformableError as error:
        return "both found nothing" if brute is None else f"WRONG: nothing found, {error}"
    counted = (evaluate_group(model, result.group).of(pair.objective) for model in (ORACLE, TIMELOOP))
    costs = [result.of(pair.objective), *counted]
    if brute is None or any(cost is None or abs(cost - brute) > 1e-9 * brute for cost in costs):
        return f"WRONG: {pair.objective}: {costs} found, {brute} by brute force"
    kind = "fused" if result.group != result.unfused else "unfused"
    return f"equal, {kind}, {'siblings' if pair.siblings else 'products'}"


def main() -> int:
    """Compare both on random pairs, and print how many agree; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="pairs")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    arguments = parser.parse_args()
    return tally(compared, range(arguments.start, arguments.start + arguments.count), "pairs")


if __name__ == "__main__":
    sys.exit(main())
