"""Brute force over two small convolutions with padding, to compare with the proved optimum of `search_group`.

cd tests && python -m support.fused_padded 500 --start 0

The nests are those of `support.fused_arrays` with one unit and no registers. Words outside a tensor do not exist: the sets of
words that enter and leave have none of them. A window brings only its new words if the last loop that moves it slides it.
Nests that docs/fusion_proof.md excludes for windows are left out.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from functools import cache
from random import Random
from typing import Any

from support.fused_arrays import Layer, Loops, Pair, least
from support.group_searches import search_group
from support.tally import tally
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import NotConformableError

ORACLE, TIMELOOP = build_model("oracle"), build_model("timeloop")


class PaddedPair(Pair):
    """Two random convolutions along rows, of which some words do not exist.

    `T0[p + r, a] * W0[r, a, b] -> T1[p, b]`, then `T1[q + s, b] * W1[s, b, c] -> T2[q, c]`. If `s` has one step, the
    second one is a product, and the layers may share loops over `p`.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        random = Random(seed)
        rows, self.siblings = random.choice([2, 3, 4]), False
        self.sizes = {"p": rows, "q": rows, "r": random.choice([1, 2, 3]), "s": random.choice([1, 2, 3])}
        self.sizes |= {at: random.choice([1, 1, 2]) for at in "abc"}
        self.offsets = [random.randrange(self.sizes[at]) for at in "rs"]
        self.units, self.registers, self.common = (1,), None, "T1"
        self.capacity = random.choice([3, 4, 5, 6, 8, 10, 14, 20])
        self.layers = [
            {"T0": ("pr", "a"), "W0": ("r", "a", "b"), "T1": ("p", "b")},
            {"T1": ("qs", "b"), "W1": ("s", "b", "c"), "T2": ("q", "c")},
        ]
        if self.sizes["s"] == 1:
            self.layers[1] = {"T1": ("p", "b"), "W1": ("b", "c"), "T2": ("p", "c")}

    @property
    def steps(self) -> set[str]:
        return {"b", "p"} if self.sizes["s"] == 1 else {"b"}

    def layer(self, number: int) -> Layer:
        return PaddedLayer(self, number)

    def edges(self) -> list[dict[str, Any]]:
        sizes = [self.sizes["p"], self.sizes["a"]]
        return [
            {"tensor": "T0", "layers": {"L0": "T0"}, "sizes": sizes, "offsets": {"L0": [self.offsets[0], 0]}},
            {"tensor": "T1", "layers": {"L0": "T1", "L1": "T1"}, "offsets": {"L1": [self.offsets[1], 0]}},
        ]


class PaddedLayer(Layer):
    """All nests of one layer of a padded pair."""

    pair: PaddedPair

    def __init__(self, pair: PaddedPair, number: int) -> None:
        super().__init__(pair, number)
        self.held = cache(self._held)  # type: ignore[method-assign]

    def exists(self, name: str, coordinate: int, at: int) -> bool:
        windowed = len(self.tensors[name][coordinate]) > 1
        return not windowed or 0 <= at - self.pair.offsets[self.number] < self.pair.sizes["p"]

    def _held(self, name: str, loops: Loops) -> int:
        tile, steps = dict(self.sizes), []
        for at, size in loops:
            steps.append([(at, start) for start in range(0, tile[at], size)])
            tile[at] = size
        return max(len(self.set_of(name, step, tile, {})) for step in itertools.product(*steps))

    def may_stay(self, name: str) -> bool:
        return any(len(rank) > 1 for rank in self.tensors[name])

    def is_covered(self, loops: Loops, depths: dict[str, int], apart: int) -> bool:
        windows = [
            {at for at, _ in loops[apart:depth]} & set(rank)
            for name, depth in depths.items()
            for rank in self.tensors[name]
            if len(rank) > 1
        ]
        return all(len(window) <= 1 for window in windows)


def compared(seed: int) -> str:
    """Return the outcome of one pair."""
    pair = PaddedPair(seed)
    brute = least(pair)
    try:
        result = search_group(pair.group(), pair.objective)
    except NotConformableError as error:
        return "both found nothing" if brute is None else f"WRONG: nothing found, {error}"
    told, counted = result.of(pair.objective), evaluate_group(TIMELOOP, result.group)
    cost, executed = counted.of(pair.objective), evaluate_group(ORACLE, result.group).of(pair.objective)
    wrong = brute is None or abs(told - brute) > 1e-9 * brute or executed is None or executed > told * (1 + 1e-9)
    if wrong or (cost is not None and abs(cost - told) > 1e-9 * told):
        return f"WRONG: {pair.objective}: {told}, {cost}, {executed} found, {brute} by brute force"
    kind = "fused" if result.group != result.unfused else "unfused"
    fewer = ", executed with fewer words" if executed is not None and executed < told * (1 - 1e-9) else ""
    refused = " and ".join(sorted({reason.code for reason in counted.reasons}))
    return f"equal, {kind}, {f'refused by timeloop ({refused})' if refused else 'counted by timeloop'}{fewer}"


def main() -> int:
    """Compare both on random pairs, and print how many agree; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="pairs")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    arguments = parser.parse_args()
    return tally(compared, range(arguments.start, arguments.start + arguments.count), "pairs")


if __name__ == "__main__":
    sys.exit(main())
