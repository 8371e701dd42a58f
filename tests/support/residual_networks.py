"""Random small residual networks: sums that layers read alike or in different ways, gates, windows, concatenations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import tilewright as tw
from tilewright.schema.workload import Workload

Reads = list[dict[str, Any]]
"""Reads of an operand, as data."""


class Drawn:
    """The network and the machine of a seed.

    `kinds`: how each operand with reads was drawn.
    """

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"followed {seed}")
        self.rows = random.choice((2, 3, 4, 5, 6, 6))
        self.columns = self.rows if random.random() < 0.6 else random.choice((2, 3, 4, 5, 6))
        self.shapes, self.layers = dict[str, tuple[int, int]](), list[dict[str, Any]]()
        self.sums, self.kinds = list[Reads](), dict[tuple[str, str], str]()
        self.operators = 0
        self.is_tame = random.random() < 0.5
        self.alone, self.last = set[str](), set[str]()  # results that are read alone, and last ones of sums
        again = random.random()
        count = random.choice((2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 7))
        for number in range(count):
            self._layer(number)
        for number, layer in enumerate(self.layers):
            layer["count"] = 2 if again < 0.15 or (again < 0.25 and number >= count // 2) else 1
            layer["returned"] = random.random() < (0.01 if self.is_tame else 0.05)
        if again < 0.15:
            self._earlier()
        for layer in self.layers:
            layer["after"] = list(dict.fromkeys(read["maker"] for reads in layer["reads"].values() for read in reads))
        self.objective = random.choice(("energy", "energy", "cycles"))
        self.workload = Workload.model_validate({"name": "net", "layers": self.layers})
        self.architecture = tw.Architecture.model_validate(self._machine())

    def _machine(self) -> dict[str, Any]:
        random, words = self.random, self.rows * self.columns
        least = 2 * self.columns + 3
        some = (
            least,
            least + 2,
            least + self.columns,
            words - 1,
            words,
            words + 2,
            words + self.columns,
            2 * words,
            3 * words,
        )
        words = random.choice((*some[:4], *some))
        memories: list[dict[str, Any]] = [
            {"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100},
            {"name": "Buffer", "read_energy_pj": 2, "write_energy_pj": 2, "capacity_words": max(4, words)},
        ]
        if random.random() < 0.2:
            memories.append({"name": "Register", "read_energy_pj": 0.1, "write_energy_pj": 0.1, "capacity_words": 4})
        if self.objective == "cycles" or random.random() < 0.3:
            memories[0]["shared_bandwidth_words_per_cycle"] = random.choice((0.25, 0.5, 1))
        clusters: list[dict[str, Any]] = [{"name": one["name"], "memories": [one]} for one in memories]
        if random.random() < 0.3:
            clusters[1]["fanout"] = {"size": 2}
        return {"name": "small", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.2}}

    # -- layers ----------------------------------------------------------------------------------------------

    def _layer(self, number: int) -> None:
        random, name = self.random, f"L{number}"
        kind = random.choice("product product rows rows rows columns gate gate scores window depth depth".split())
        shape, reads, told = self._operand(None)
        if not reads and kind == "product":
            shape = self.rows, random.choice((1, 1, 2, self.columns))
        first, second = ["m", "k"], ["k", "n"]
        sizes = {"m": shape[0], "k": shape[1]}
        other: tuple[tuple[int, int], Reads, str] | None = None
        if kind in ("gate", "scores"):
            other = self._operand(shape)
            if not other[1] or (self.is_tame and {one["maker"] for one in other[1]} & {one["maker"] for one in reads}):
                other, kind = None, "product"
        if kind in ("window", "depth"):
            reads, sizes = self._window(shape, reads)
            first, second = [{"terms": {"m": sizes.pop("stride"), "r": 1}}, "k"], ["r", "k", "n"]  # type: ignore[list-item]
        result = ["m", "n"]
        if kind in ("rows", "columns", "gate", "depth"):
            sizes["n"] = sizes.pop("k")
            first[1] = "n"
            second = {"rows": ["n"], "columns": ["m"], "gate": ["m", "n"], "depth": ["r", "n"]}[kind]
        elif kind == "scores":
            second, sizes["n"] = ["n", "k"], shape[0]
        else:
            sizes["n"] = self.columns if random.random() < 0.8 or number < 2 else random.choice((1, 2, 3))
        tensors = [("I", "input", first), ("W", "weight", second), ("O", "output", result)]
        problem = {
            "name": name,
            "dimensions": sizes,
            "tensors": [{"name": one, "role": role, "projection": ranks} for one, role, ranks in tensors],
        }
        layer: dict[str, Any] = {"problem": problem, "reads": {}}
        for operand, some, label in (("I", reads, told), ("W", other[1], other[2]) if other else ("W", [], "")):
            if some:
                layer["reads"][operand] = some
                self.kinds[name, operand] = label
            elif operand == "I" and kind not in ("window", "depth") and random.random() < 0.6:
                layer["inputs"] = {"I": f"x{shape[0]}{shape[1]}"}
        self.layers.append(layer)
        self.shapes[name] = sizes["m"], sizes["n"]

    def _window(self, shape: tuple[int, int], reads: Reads) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Return the reads of a convolution over rows, with padding, and its sizes."""
        random = self.random
        taps = random.choice([n for n in (1, 2, 3) if n <= shape[0]])
        stride, before = random.choice((1, 1, 1, min(2, taps))), random.randint(0, taps - 1)
        after = random.choice((taps - 1 - before, 0))
        rows = (shape[0] + before + after - taps) // stride + 1
        used = (rows - 1) * stride + taps
        moved = [
            one
            | {
                "sizes": one["sizes"] | {"i": min(one["sizes"]["i"], used - before)},
                "read": [f"i + {before}", one["read"][1]],
            }
            for one in reads
            if one["read"][0] == "i"
        ]
        if len(moved) < len(reads):  # side by side along rows
            moved = []
        return moved, {"m": rows, "r": taps, "k": shape[1], "stride": stride}

    def _operand(self, shape: tuple[int, int] | None) -> tuple[tuple[int, int], Reads, str]:
        """Return the shape, the reads and the kind of an operand, perhaps of a given shape."""
        chance = self.random.random()
        drawn: list[tuple[Reads, str]] = []
        if chance < 0.55:
            drawn = [self._sum(), self._sum()]
        elif chance < 0.62:
            drawn = [self._side_by_side()]
        drawn += [self._one(), self._one()]
        for reads, kind in drawn:
            if reads and shape in (None, _shape(reads)):
                return _shape(reads), reads, kind
        return shape or (self.rows, self.columns), [], ""

    def _one(self) -> tuple[Reads, str]:
        random = self.random
        if not self.shapes or (len(self.shapes) == 1 and random.random() < 0.3):
            return [], ""
        able = [name for name in self.shapes if not self.is_tame or name not in self.last]
        maker = random.choice([*able, *able[-2:]] or [*self.shapes])
        self.alone.add(maker)
        plain = self._view(maker)
        return random.choice([([plain], "one")] * 4 + [self._changed([plain], "one")])

    def _view(self, maker: str) -> dict[str, Any]:
        rows, columns = self.shapes[maker]
        return {"maker": maker, "sizes": {"i": rows, "j": columns}, "made": ["i", "j"], "read": ["i", "j"]}

    def _operator(self) -> str:
        self.operators += 1
        return f"n{self.operators}"

    def _sum(self) -> tuple[Reads, str]:
        """Return a sum: a new one, or one that other layers read, as they do or in another way."""
        random = self.random
        alike = [name for name, shape in self.shapes.items() if shape == (self.rows, self.columns)]
        if not self.sums or random.random() < 0.35:
            return self._tame_sum(alike) if self.is_tame else self._new_sum(alike)
        reads = random.choice(self.sums)
        kind = random.choice(("again", "again", "more", "more", "changed"))
        makers = {read["maker"] for read in reads}
        new = [name for name in self._completing(alike) if name > max(makers)] if self.is_tame else alike
        new = [name for name in new if name not in makers]
        if kind == "more" and new:
            if random.random() < 0.5:  # an operator between the two sums, of all results before, or of one
                reads = self._behind(reads, len(reads) if self.is_tame else random.choice((len(reads), 1)))
            return self._known([*reads, self._view(random.choice(new[-2:]))], "sum and one more")
        if kind == "changed":
            return self._changed(reads, "sum")
        return random.choice([(reads, "sum again"), (self._behind(reads, len(reads)), "sum again, behind")])

    def _behind(self, reads: Reads, count: int) -> Reads:
        """Return reads of which the first ones pass an operator at the end."""
        name = self._operator()
        return [
            read | {"through": [*read.get("through", ()), name]} if at < count else read
            for at, read in enumerate(reads)
        ]

    def _new_sum(self, alike: Sequence[str]) -> tuple[Reads, str]:
        random, count = self.random, self.random.choice((2, 2, 2, 3))
        if len(alike) < count:
            return [], ""
        makers = random.sample(alike[-4:], count) if random.random() < 0.7 else alike[-count:]
        reads = [self._view(name) for name in sorted(makers)]
        return self._changed(reads, "sum") if random.random() < 0.3 else self._known(reads, f"sum of {count}")

    def _tame_sum(self, alike: Sequence[str]) -> tuple[Reads, str]:
        """Return a sum whose last result no layer reads alone, and whose maker seldom reads the other one."""
        last = self._completing(alike)[-1:]
        operands = self.layers[int(last[0][1:])]["reads"] if last else {}
        known = {read["maker"] for some in operands.values() for read in some}
        able = [name for name in alike if name not in self.last and [name] < last]
        able = [name for name in able if name not in known or self.random.random() < 0.2]
        if not able:
            return [], ""
        return self._known([self._view(self.random.choice(able)), self._view(*last)], "sum of 2")

    def _completing(self, names: Sequence[str]) -> list[str]:
        """Return the results that no layer reads without the others of a sum."""
        return [name for name in names if name not in self.alone | self.last]

    def _known(self, reads: Reads, kind: str) -> tuple[Reads, str]:
        self.sums.append(reads)
        self.last.add(max(read["maker"] for read in reads))
        return reads, kind

    def _changed(self, reads: Reads, what: str) -> tuple[Reads, str]:
        """Return reads of which one, or all, are seen in another way."""
        random, is_square = self.random, self.rows == self.columns
        how = random.choice((*(["transposed"] * 2 if is_square else []), "cropped", "repeated", "behind", "whole"))
        every = random.random() < 0.4 or len(reads) == 1 or self.is_tame
        if every and how == "behind":
            return self._behind(reads, len(reads)), f"{what}, all behind"
        at = random.randrange(len(reads))
        rows = max(1, reads[0]["sizes"]["i"] - 1)
        name, made = self._operator(), Reads()
        for number, read in enumerate(reads):
            sizes, is_own = read["sizes"], every or number == at
            if how == "cropped":  # all have fewer rows, and one, or all, have later ones
                first = "i + 1" if is_own and sizes["i"] > 1 else "i"
                new = {"sizes": sizes | {"i": rows}, "made": [first, *read["made"][1:]]}
                made.append(read | (new if read["made"][0] == "i" and sizes["i"] == reads[0]["sizes"]["i"] else {}))
            elif not is_own:
                made.append(read)
            elif how == "transposed":
                new = {"sizes": {"i": sizes["j"], "j": sizes["i"]}}
                made.append(read | new | {"made": [{"i": "j", "j": "i"}.get(one, one) for one in read["made"]]})
            elif how == "repeated":
                made.append(read | {"made": [read["made"][0], "0"]})
            elif how == "behind":
                made.append(read | {"through": [name, *read.get("through", ())]})
            else:
                made.append(read | {"through": [name, *read.get("through", ())], "whole": ["j"]})
        return made, f"{what}, {'all' if every else 'one'} {how}"

    def _side_by_side(self) -> tuple[Reads, str]:
        random, makers = self.random, [*self.shapes]
        pairs = [
            (one, other, along)
            for one, other in itertools.permutations(makers[-4:], 2)
            for along in (0, 1)
            if self.shapes[one][1 - along] == self.shapes[other][1 - along]
            and self.shapes[one][along] + self.shapes[other][along] <= 8
        ]
        if not pairs:
            return [], ""
        one, other, along = random.choice(pairs)
        second = self._view(other)
        second["read"][along] = f"{'ij'[along]} + {self.shapes[one][along]}"
        return [self._view(one), second], "side by side"

    def _earlier(self) -> None:
        """Let some layers read results of the iteration before, alone or in a sum."""
        random = self.random
        for number, layer in enumerate(self.layers):
            reads = layer["reads"].get("I", [])
            able = [
                f"L{at}" for at in range(number, len(self.layers)) if reads and self.shapes[f"L{at}"] == _shape(reads)
            ]
            if able and random.random() < 0.5 and (layer["problem"]["name"], "I") in self.kinds:
                new = self._view(random.choice(able))
                if new["maker"] in {read["maker"] for read in reads}:
                    continue
                if any(read["read"] != ["i", "j"] for read in reads):
                    continue
                alone = random.random() < 0.4
                layer["reads"]["I"] = [new] if alone else [*reads, new]
                self.kinds[layer["problem"]["name"], "I"] = "earlier" if alone else "earlier in a sum"


def _shape(reads: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return the rows and columns of an operand."""
    if not reads:
        return 0, 0

    def ends(along: int) -> Iterator[int]:
        for read in reads:
            name, _, start = read["read"][along].partition(" + ")
            yield read["sizes"][name] + int(start or 0)

    return max(ends(0)), max(ends(1))
