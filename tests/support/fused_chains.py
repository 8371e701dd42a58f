"""Brute force over small fused chains of products, to compare with the proved optimum of `map_chain`.

cd tests && python -m support.fused_chains 500 --start 0
cd tests && python -m support.fused_chains 500 --windows

Nothing is pruned, and nothing of the search is used. All nests of each layer are listed: kept tensors and loops in any
order, several loops of one dimension included. Words are counted by stepping through the loops: a tile that is
there stays, and a branch starts with nothing inside. All nests that agree in their shared loops are joined.
A window brings only its new words if the last loop that moves it slides it. Layers may share loops over rows of
different sizes. Such a loop is then the last one outside the home, where the rows stay for the next step. A tile right
above a sequence may stay there, too. Nests that docs/fusion.md excludes for windows are left out.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from tilewright.errors import NotConformableError
from tilewright.mapspace.group_legality import keeps_halo
from tilewright.run.evaluation import build_model, evaluate_group
from tilewright.run.fused_chain import map_chain
from tilewright.schema.group import GroupMapping
from tilewright.schema.report import Objective

Loops = tuple[tuple[str, int], ...]
Ranks = tuple[tuple[str, ...], ...]
"""Dimensions of each coordinate; two are a window."""
Words = tuple[int, int, int, int]
"""Reads and writes of the outermost memory, reads and writes of the buffer."""


class Chain:
    """Random products one after another: layer i is `T{i}[m, d{i}] * W{i}[d{i}, d{i+1}] -> T{i+1}`.

    Of `siblings`, both read `T0`. With windows, layers are convolutions along `m` of up to three taps.
    """

    def __init__(self, seed: int, windows: bool = False) -> None:
        random = Random(seed)
        self.count = random.choice([2, 2, 2, 3])
        able = [1, 2, 3, 4] if self.count == 2 else [1, 2, 2]
        self.sizes = {"m": random.choice(able)} | {f"d{i}": random.choice(able) for i in range(self.count + 1)}
        self.capacity = random.choice([3, 4, 5, 6, 8, 10, 14, 20, 40])
        self.energies = [random.choice([1, 2, 8, 100]) for _ in range(4)]
        self.bandwidths = [random.choice([None, 0.5, 1, 2]) for _ in range(4)]
        self.objective: Objective = random.choice(("energy", "energy", "cycles", "edp"))
        self.siblings = self.count == 2 and random.random() < 0.3 and not windows
        self.rows = ["m"] * (self.count + 1)
        for i in range(self.count - 1, -1, -1):
            taps = random.choice([1, 2, 3]) if windows else 1
            self.rows[i] = self.rows[i + 1] if taps == 1 else f"x{i}"
            self.sizes |= {f"r{i}": taps, self.rows[i]: self.sizes[self.rows[i + 1]] + taps - 1}

    def tensors(self, layer: int) -> dict[str, Ranks]:
        first = 0 if self.siblings else layer
        row, a, b = self.rows[layer + 1], f"d{first}", f"d{layer + 1}"
        taps = (f"r{layer}",) if self.sizes[f"r{layer}"] > 1 else ()
        weights = ((a,), (b,), taps) if taps else ((a,), (b,))
        return {f"T{first}": ((row, *taps), (a,)), f"W{layer}": weights, f"T{layer + 1}": ((row,), (b,))}

    def group(self) -> GroupMapping:
        names = ("read_energy_pj", "write_energy_pj")
        ports = ("read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle")
        memories: list[dict[str, Any]] = [
            {"name": name}
            | dict(zip(names, self.energies[at:], strict=False))
            | dict(zip(ports, self.bandwidths[at:], strict=False))
            for name, at in (("DRAM", 0), ("Buffer", 2))
        ]
        memories[1]["capacity_words"] = self.capacity
        layers = [
            {
                "name": f"L{i}",
                "dimensions": {
                    at: self.sizes[at] for ranks in self.tensors(i).values() for rank in ranks for at in rank
                },
                "tensors": [
                    {
                        "name": name,
                        "role": "output" if name == f"T{i + 1}" else "input",
                        "projection": [" + ".join(rank) for rank in ranks],
                    }
                    for name, ranks in self.tensors(i).items()
                ],
            }
            for i in range(self.count)
        ]
        users: dict[str, list[str]] = {}
        for i in range(self.count):
            for name in self.tensors(i):
                users.setdefault(name, []).append(f"L{i}")
        edges = [{"tensor": name, "layers": dict.fromkeys(own, name)} for name, own in users.items() if len(own) > 1]
        kept = [name if len(own) > 1 else f"{own[0]}.{name}" for name, own in users.items()]
        own = [{"target": "DRAM", "keep": kept}]
        inner = {"target": "Buffer"}
        return GroupMapping.model_validate(
            {
                "name": "chain",
                "layers": layers,
                "edges": edges,
                "tree": {
                    "entries": own,
                    "branches": [
                        {
                            "layer": each["name"],
                            "entries": [
                                inner
                                | {
                                    "temporal_order": list(each["dimensions"]),
                                    "temporal_tile_sizes": dict.fromkeys(each["dimensions"], 1),
                                }
                            ],
                        }
                        for each in layers
                    ],
                },
                "architecture": {
                    "name": "two",
                    "clusters": [{"name": each["name"], "memories": [each]} for each in memories],
                    "compute": {"energy_per_operation_pj": 0.5},
                },
            }
        )


class Layer:
    """All nests of one layer of a chain."""

    def __init__(self, chain: Chain, number: int) -> None:
        self.chain, self.tensors = chain, chain.tensors(number)
        self.operand, self.weight, self.result = self.tensors
        self.handed = self.operand if chain.siblings else self.result
        self.filled = {self.operand} if chain.siblings and number == 0 else set[str]()
        self.dimensions = {name: {at for rank in ranks for at in rank} for name, ranks in self.tensors.items()}
        self.sizes = {at: chain.sizes[at] for own in self.dimensions.values() for at in sorted(own)}
        self.macs = math.prod(self.sizes.values())
        self.words = cache(self._words)
        self.row = chain.rows[number + 1]
        later = chain.sizes.get(f"r{number + 1}", 1) if number + 1 < chain.count else 1
        self.halos = {self.operand: chain.sizes[f"r{number}"] - 1, self.result: later - 1}

    def may_be_outside(self, at: str, name: str) -> bool:
        """Return whether a shared loop over a dimension steps a tensor that both layers use."""
        return (at,) in self.tensors[name] or (at == self.row and at in self.dimensions[name])

    def keeps_halo(self, name: str, outside: Loops) -> bool:
        """Return whether rows of a tensor at home stay for the next step of a loop outside it."""
        return self.halos.get(name, 0) > 0 and any(at == self.row for at, _ in outside)

    def nests(self, fused: frozenset[str]) -> Iterator[tuple[Loops, dict[str, int]]]:
        """Yield loops, and for each kept tensor how many of them are outside."""
        for count in range(4):
            for kept in itertools.combinations(self.tensors, count):
                if fused <= set(kept):
                    for order in itertools.permutations(kept):
                        yield from self._nests(fused, order, (), {}, dict(self.sizes))

    def _nests(
        self, fused: frozenset[str], order: tuple[str, ...], loops: Loops, depths: dict[str, int], tile: dict[str, int]
    ) -> Iterator[tuple[Loops, dict[str, int]]]:
        if len(depths) == len(order):
            yield loops, depths
            return
        rest = order[len(depths) :]
        yield from self._nests(fused, order, loops, depths | {rest[0]: len(loops)}, tile)
        for at, size in tile.items():  # one more loop in front of the next kept tensor
            if all(self.may_be_outside(at, name) for name in rest if name in fused):
                for inner in range(1, size):
                    if size % inner == 0:
                        yield from self._nests(fused, order, (*loops, (at, inner)), depths, tile | {at: inner})

    def _words(self, name: str, loops: Loops | None, apart: int, fused: bool) -> Words:
        """Return the words that a tensor moves.

        Args:
            loops: loops outside its tile in the buffer; None: the buffer does not keep it.
            apart: after every step of this many loops, the tile is gone.
            fused: the outermost memory has no word of it.
        """
        ranks, output = self.tensors[name], name == self.result
        whole = self.box(name, self.sizes)
        near = (self.macs - whole, self.macs) if output else (self.macs, 0)
        if loops is None or fused:
            return (*near, 0, 0) if loops is None else (0, 0, *near)
        far_reads = far_writes = fills = 0
        begun, last = set[object](), None  # `last` is the step before: place of the tile, steps of visits and of loops
        tile, steps = dict(self.sizes), []
        for at, size in loops:
            steps.append([(at, size * step) for step in range(tile[at] // size)])
            tile[at] = size
        words = self.box(name, tile)
        moving = [at for at, (dimension, _) in enumerate(loops) if dimension in self.dimensions[name]]
        for step in itertools.product(*steps):
            starts = Counter[str]()
            for at, start in step:
                starts[at] += start
            where = tuple(sum(starts[at] for at in rank) for rank in ranks)
            outside = step[: moving[-1]] if moving else ()
            if last is not None and last[:2] == (where, step[:apart]):
                continue
            new = words
            if moving and last is not None and last[2] == outside and moving[-1] >= apart and not output:
                new -= math.prod(
                    max(0, self.extent(rank, tile) - (a - b)) for rank, a, b in zip(ranks, where, last[0], strict=True)
                )
            last = (where, step[:apart], outside)
            if not output or where in begun:
                far_reads += new
                fills += new
            begun.add(where)
            far_writes += words if output else 0
        return far_reads, far_writes, near[0], near[1] + fills

    def costs(
        self, loops: Loops, depths: dict[str, int], fused: frozenset[str], shared: list[int], stay: tuple[str, ...]
    ) -> tuple[float, int]:
        """Return energy and cycles.

        Args:
            shared: the numbers of loops that neighbours share.
            stay: tensors that are kept right above a sequence, not in its branch.
        """
        total = [0, 0, 0, 0]
        for name in self.tensors:
            depth = depths.get(name)
            inside = [each for each in shared if depth is not None and each <= depth - (name in stay)]
            apart = max(inside, default=0)
            moved = self.words(name, None if depth is None else loops[:depth], apart, name in fused - self.filled)
            total = [a + b for a, b in zip(total, moved, strict=True)]
        energy = self.macs * 0.5 + sum(a * b for a, b in zip(total, self.chain.energies, strict=True))
        ports = [math.ceil(a / b) for a, b in zip(total, self.chain.bandwidths, strict=True) if b is not None]
        return energy, max([self.macs, *ports])

    def room(self, name: str, loops: Loops) -> int:
        return self.box(name, self.sizes | dict(loops))

    def extent(self, rank: tuple[str, ...], tile: dict[str, int]) -> int:
        return 1 + sum(tile[at] - 1 for at in rank)

    def box(self, name: str, tile: dict[str, int]) -> int:
        return math.prod(self.extent(rank, tile) for rank in self.tensors[name])

    def covered(self, loops: Loops, depths: dict[str, int], fused: frozenset[str], shared: int) -> bool:
        """Return whether halos stay over the last loop only, and each window has one dimension at most with loops.

        Loops over a window count in the branch.
        """
        for name in depths.keys() - fused:
            for window in (rank for rank in self.tensors[name] if len(rank) > 1):
                if len({at for at, _ in loops[shared : depths[name]] if at in window}) > 1:
                    return False
        return not any(self.keeps_halo(name, loops[: max(depths[name] - 1, 0)]) for name in fused)

    def named(self, loops: Loops) -> Loops:
        """Return loops with the rows of all layers alike."""
        return tuple(("rows" if at == self.row else at, size) for at, size in loops)


State = tuple[
    Loops | None, Loops | None, tuple[float, float], tuple[tuple[float, int], ...], tuple[int, int], float, int
]
"""Shared loops to the left and right, depths of both homes, room of other tensors by depth, room at home, costs.

A tile that stays for the next step of the last loop is half a loop further out: all branches inside the loop see it.
"""


def states(layer: Layer, left: bool, right: bool) -> set[State]:
    """Return the nests of a layer as far as its neighbours matter; equal ones once."""
    found = set[State]()
    choices = [(None, layer.operand)[: 1 + left], (None, layer.handed)[: 1 + right]]
    for ends in itertools.product(*choices):
        fused = frozenset(each for each in ends if each)
        for loops, depths in layer.nests(fused):
            able = [
                [None]
                if name is None
                else [
                    loops[:at]
                    for at in range(depths[name], len(loops) + 1)
                    if all(layer.may_be_outside(each, name) for each, _ in loops[:at])
                ]
                for name in ends
            ]
            homes = tuple(
                -1 if name is None else depths[name] - 0.5 * layer.keeps_halo(name, loops[: depths[name]])
                for name in ends
            )
            room = tuple(0 if name is None else layer.room(name, loops[: depths[name]]) for name in ends)
            for shared in itertools.product(*able):
                numbers = [len(each) for each in shared if each is not None]
                if not layer.covered(loops, depths, fused, max(numbers, default=0)):
                    continue
                above = [name for name, depth in depths.items() if depth and depth in numbers and name not in fused]
                for stay in (each for n in range(len(above) + 1) for each in itertools.combinations(above, n)):
                    others = Counter[float]()
                    for name, depth in depths.items():
                        if name not in fused:
                            others[depth - 0.5 * (name in stay)] += layer.room(name, loops[:depth])
                    costs = layer.costs(loops, depths, fused, numbers, stay)
                    outside = tuple(None if each is None else layer.named(each) for each in shared)
                    found.add((*outside, homes, tuple(sorted(others.items())), room, *costs))  # type: ignore[arg-type]
    return found


def room(chosen: tuple[State, ...], first: int, last: int, outside: int) -> int:
    """Return the words alive at one moment, at most, inside of `outside` shared loops of these layers."""
    own = [(depth, words) for each in chosen[first : last + 1] for depth, words in each[3] if depth >= outside]
    if first == last:
        return sum(words for _, words in own)
    pairs = {i: (len(chosen[i][1] or ()), chosen[i][2][1], chosen[i + 1][4][0]) for i in range(first, last)}
    shared = min(each for each, _, _ in pairs.values())
    kept = sum(words for depth, words in own if depth < shared)
    kept += sum(words for _, home, words in pairs.values() if outside <= home < shared)
    cuts = [i for i, (each, _, _) in pairs.items() if each == shared]
    branches = list(zip([first, *(i + 1 for i in cuts)], [*cuts, last], strict=True))
    return kept + max(
        room(chosen, a, b, shared)
        + sum(words for i, (each, home, words) in pairs.items() if home == each == shared and i <= b and i + 1 >= a)
        for a, b in branches
    )


def segment(chain: Chain, first: int, last: int) -> set[tuple[float, int]]:
    """Return energy and cycles of all joined nests of layers that are all fused, where they fit."""
    found = [chosen_states(chain, i, i > first, i < last) for i in range(first, last + 1)]
    joined: list[tuple[State, ...]] = [()]
    for number, each in enumerate(found):
        by_left: dict[object, list[State]] = {}
        for state in each:
            by_left.setdefault((state[0], state[2][0]) if number else None, []).append(state)
        joined = [
            (*chosen, state)
            for chosen in joined
            for state in by_left.get((chosen[-1][1], chosen[-1][2][1]) if number else None, ())
        ]
    fits = (each for each in joined if room(each, 0, last - first, 0) <= chain.capacity)
    return {(sum(state[5] for state in each), sum(state[6] for state in each)) for each in fits}


def chosen_states(chain: Chain, number: int, left: bool, right: bool) -> list[State]:
    """Return the states that fit alone and are fused at these ends; of those that differ in one objective the best."""
    best: dict[object, State] = {}
    for state in states(Layer(chain, number), left, right):
        ends = (state[0] is not None, state[1] is not None)
        if ends != (left, right) or sum(words for _, words in state[3]) + sum(state[4]) > chain.capacity:
            continue
        cost = {"energy": state[5], "cycles": state[6]}.get(chain.objective, 0.0)
        key = (state[:5], state[5:] if chain.objective == "edp" else None)
        if key not in best or cost < {"energy": best[key][5], "cycles": best[key][6]}.get(chain.objective, 0.0):
            best[key] = state
    return list(best.values())


def least(chain: Chain) -> float | None:
    """Return the least cost of all joined nests, or None if nothing fits."""
    costs: list[set[tuple[float, int]]] = [{(0.0, 0)}]
    for end in range(chain.count):
        costs.append(
            {
                (energy + more, cycles + slower)
                for start in range(end + 1)
                for more, slower in segment(chain, start, end)
                for energy, cycles in costs[start]
            }
        )
    powers = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1)}[chain.objective]
    return min((energy ** powers[0] * cycles ** powers[1] for energy, cycles in costs[-1]), default=None)


def main() -> int:
    """Compare both on random chains, and print how many agree; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="chains")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--windows", action="store_true", help="convolutions, whose words timeloop counts")
    arguments = parser.parse_args()
    judge = build_model("timeloop" if arguments.windows else "oracle")
    counts, started = Counter[str](), time.process_time()
    for seed in range(arguments.start, arguments.start + arguments.count):
        chain = Chain(seed, arguments.windows)
        brute = least(chain)
        try:
            found = map_chain(chain.group(), chain.objective)
        except NotConformableError:
            counts["both found nothing" if brute is None else "WRONG: nothing found"] += 1
            continue
        executed = evaluate_group(judge, found.group).of(chain.objective)
        if brute is None or executed is None or abs(executed - brute) > 1e-9 * brute:
            print(f"seed {seed}, {chain.objective}: {executed} found, {brute} by brute force", flush=True)
            counts["WRONG"] += 1
        else:
            kind = "fused" if found.group != found.unfused else "unfused"
            halo = " with a halo" if any(keeps_halo(found.group, each) for each in found.group.users) else ""
            counts[f"equal, {kind}{halo}, {'siblings' if chain.siblings else f'{chain.count} layers'}"] += 1
        if sum(counts.values()) % 10 == 0:
            print(
                f"{sum(counts.values())} chains, {time.process_time() - started:.0f} CPU s: {dict(counts)}", flush=True
            )
    print(dict(counts))
    return any("WRONG" in each for each in counts)


if __name__ == "__main__":
    sys.exit(main())
