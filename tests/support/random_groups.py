"""Random small groups of layers: chains, residuals, windows, padding and shared operands under random trees."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from tilewright.schema.group import GroupMapping

Layer = dict[str, list[str | tuple[str, str]]]
"""Tensor -> coordinates, each a dimension or a window of two; the output is last."""
FORMS: dict[str, dict[str, Layer]] = {
    "chain": {
        "one": {"A": ["m", "k"], "V": ["k", "n"], "B": ["m", "n"]},
        "two": {"B": ["m", "n"], "W": ["n", "j"], "C": ["m", "j"]},
    },
    "three": {
        "one": {"A": ["m", "k"], "V": ["k", "n"], "B": ["m", "n"]},
        "two": {"B": ["m", "n"], "W": ["n", "j"], "C": ["m", "j"]},
        "three": {"C": ["m", "j"], "X": ["j", "i"], "D": ["m", "i"]},
    },
    "residual": {
        "one": {"A": ["m", "k"], "V": ["k", "n"], "B": ["m", "n"]},
        "two": {"B": ["m", "n"], "W": ["n", "q"], "C": ["m", "q"]},
        "three": {"C": ["m", "q"], "B": ["m", "q"], "D": ["m", "q"]},
    },
    "attention": {
        "one": {"Q": ["h", "m", "k"], "K": ["h", "n", "k"], "S": ["h", "m", "n"]},
        "two": {"S": ["h", "m", "n"], "P": ["h", "m", "n"]},
        "three": {"P": ["h", "m", "n"], "V": ["h", "n", "j"], "O": ["h", "m", "j"]},
    },
    "fanout": {
        "one": {"A": ["m", "k"], "V": ["k", "n"], "B": ["m", "n"]},
        "two": {"B": ["m", "n"], "W": ["n", "j"], "C": ["m", "j"]},
        "three": {"B": ["m", "n"], "X": ["n", "i"], "D": ["m", "i"]},
    },
    "siblings": {
        "one": {"A": ["m", "k"], "V": ["k", "n"], "B": ["m", "n"]},
        "two": {"A": ["m", "k"], "W": ["k", "j"], "C": ["m", "j"]},
    },
    "window": {
        "one": {"A": ["c", "x"], "V": ["c", "n"], "B": ["n", "x"]},
        "two": {"B": ["n", ("p", "r")], "F": ["n", "r"], "C": ["n", "p"]},
    },
    "convolutions": {
        "one": {"A": ["c", ("x", "s")], "V": ["c", "n", "s"], "B": ["n", "x"]},
        "two": {"B": ["n", ("p", "r")], "F": ["n", "r", "j"], "C": ["j", "p"]},
    },
    "bottleneck": {
        "one": {"A": ["c", "x", "w"], "V": ["c", "n"], "B": ["n", "x", "w"]},
        "two": {"B": ["n", ("p", "r"), ("y", "t")], "F": ["n", "r", "t"], "C": ["n", "p", "y"]},
        "three": {"C": ["n", "p", "y"], "W": ["n", "j"], "D": ["j", "p", "y"]},
    },
}


def random_group(
    seed: int,
    divisible: bool = True,
    forms: Sequence[str] = tuple(FORMS),
    levels: Sequence[int] = (1, 1, 2),
    padding: float = 0,
    inner: float = 0,
) -> GroupMapping:
    """Return the group of a seed, which may be illegal.

    Windows are whole until the innermost loops. Elsewhere `timeloop` credits overlap as Timeloop does.

    Args:
        divisible: all tiles divide.
        forms: keys of `FORMS` to choose from.
        levels: memories inside DRAM to choose from.
        padding: the share of windows that may read words that do not exist.
        inner: the share of groups with inputs or final results that the outermost memory does not keep.
    """
    return GroupMapping.model_validate(_Drawn(Random(seed), divisible, forms, levels, padding, inner).data())


class _Drawn:
    def __init__(
        self, random: Random, divisible: bool, forms: Sequence[str], levels: Sequence[int], padding: float, inner: float
    ) -> None:
        self.random, self.divisible = random, divisible
        form = FORMS[random.choice(forms)]
        self.sizes = {at: random.choice([1, 2, 3, 4, 4, 6]) for at in "hmknjicpy"}
        self.sizes |= {"c": random.randint(1, 2), "h": random.randint(1, 2)}
        self.sizes |= {at: random.randint(1, 3) for at in "rst"}
        self.sizes["q"] = self.sizes["n"]
        self.sizes["x"] = self.sizes["p"] + self.sizes["r"] - 1
        self.sizes["w"] = self.sizes["y"] + self.sizes["t"] - 1
        self.form = form
        self.offsets: dict[str, tuple[str, list[int]]] = {}
        self.padded = {
            row for row in "xw" if padding and self.parts(row) and random.random() < padding and self.pad_rows(row)
        }
        self.rows = {
            row: axis
            for row, axis in (("x", "p"), ("w", "y"))
            if row not in self.padded and random.random() < 0.5 and self.parts(row, axis)
        }
        self.users: dict[str, list[str]] = {}
        for layer, tensors in form.items():
            for tensor in tensors:
                self.users.setdefault(tensor, []).append(layer)
        made = [list(tensors)[-1] for tensors in form.values()]
        between = [name for name in made if len(self.users[name]) > 1]
        self.lacking = self.pad_input() if padding and random.random() < padding else {}
        self.levels = random.choice(levels)
        self.fanout = random.choice([1, 2, 4]) if self.levels == 2 else 1
        self.fused = {name for name in between if random.random() < 0.8}
        ends = [name for name in self.users if name not in between]
        self.inner = (
            set(random.sample(ends, random.choice([1, 1, 2]))) if inner and random.random() < inner else set[str]()
        )

    def data(self) -> dict[str, Any]:
        outer = [self.group_name(tensor) for tensor in self.users if tensor not in self.fused | self.inner]
        tree = self.part(list(self.form), dict(self.sizes), {"Buffer": set(), "Reg": set()})
        tree["entries"].insert(0, {"target": "DRAM", "keep": outer})
        return {
            "name": "random",
            "axes": {
                at: {layer: name for layer in self.form if (name := self.dimension(at, layer))}
                for at in self.sizes
                if sum(self.dimension(at, layer) is not None for layer in self.form) > 1
            },
            "edges": [self.edge(tensor) for tensor in self.users if self.has_edge(tensor)],
            "tree": tree,
            "layers": [self.problem(layer) for layer in self.form],
            "architecture": self.architecture(),
        }

    def pad_rows(self, row: str) -> bool:
        """Make fewer rows of an intermediate than the window over them reads; return whether that is possible."""
        wide = self.sizes[row]
        if wide < 2:
            return False
        self.sizes[row] = self.random.randint(1, wide - 1)
        window = ("p", "r") if row == "x" else ("y", "t")
        for layer, tensors in self.form.items():
            for tensor, ranks in tensors.items():
                if window in ranks:
                    _, offsets = self.offsets.setdefault(tensor, (layer, [0] * len(ranks)))
                    offsets[ranks.index(window)] = self.random.randint(0, wide - self.sizes[row])
        return True

    def pad_input(self) -> dict[str, list[int]]:
        """Return an input, and its coordinates, of which fewer exist than a layer reads."""
        for layer, tensors in self.form.items():
            for tensor, ranks in tensors.items():
                if len(self.users[tensor]) > 1 or tensor == list(tensors)[-1] or "x" not in str(ranks):
                    continue
                read = [
                    self.sizes[rank] if isinstance(rank, str) else sum(self.sizes[at] for at in rank) - len(rank) + 1
                    for rank in ranks
                ]
                sizes = [self.random.randint(max(1, size - 2), size) for size in read]
                self.offsets[tensor] = layer, [self.random.randint(0, a - b) for a, b in zip(read, sizes, strict=True)]
                return {tensor: sizes}
        return {}

    def has_edge(self, tensor: str) -> bool:
        return len(self.users[tensor]) > 1 or tensor in self.lacking

    def edge(self, tensor: str) -> dict[str, Any]:
        edge: dict[str, Any] = {"tensor": tensor, "layers": dict.fromkeys(self.users[tensor], tensor)}
        if tensor in self.offsets:
            layer, offsets = self.offsets[tensor]
            edge["offsets"] = {layer: offsets}
        return edge | ({"sizes": self.lacking[tensor]} if tensor in self.lacking else {})

    def group_name(self, tensor: str) -> str:
        return tensor if self.has_edge(tensor) else f"{self.users[tensor][0]}.{tensor}"

    def dimensions(self, layer: str) -> list[str]:
        pieces = [at for ranks in self.form[layer].values() for at in ranks]
        return list(dict.fromkeys(at for rank in pieces for at in ((rank,) if isinstance(rank, str) else rank)))

    def parts(self, *names: str) -> bool:
        """Return whether some layers have one of two dimensions, and other layers the other."""
        return all(any(name in self.dimensions(layer) for layer in self.form) for name in names)

    def dimension(self, axis: str, layer: str) -> str | None:
        """Return a layer's dimension on an axis; rows that a window reads and the reader's rows are one axis."""
        able = [axis, *(row for row, other in self.rows.items() if other == axis)]
        return next((name for name in able if name in self.dimensions(layer)), None)

    def problem(self, layer: str) -> dict[str, Any]:
        tensors = []
        for name, ranks in self.form[layer].items():
            projection = [rank if isinstance(rank, str) else {"terms": dict.fromkeys(rank, 1)} for rank in ranks]
            tensors.append({"name": name, "role": "input", "projection": projection})
        tensors[-1]["role"] = "output"
        return {
            "name": layer,
            "dimensions": {at: self.sizes[at] for at in self.dimensions(layer)},
            "tensors": tensors,
        }

    def architecture(self) -> dict[str, Any]:
        random = self.random

        def memory(name: str) -> dict[str, Any]:
            return {
                "name": name,
                "read_energy_pj": random.choice([1, 7.5]),
                "write_energy_pj": random.choice([2, 5]),
                "update_energy_pj": random.choice([None, 3]),
                "block_words": random.choice([1, 1, 4]),
                "leakage_pj_per_cycle": random.choice([0, 0.25]),
                "read_bandwidth_words_per_cycle": random.choice([None, 0.5, 2]),
                "write_bandwidth_words_per_cycle": random.choice([None, 0.5, 2]),
                "shared_bandwidth_words_per_cycle": random.choice([None, 1]),
                "bits_per_value": random.choice([{}, {}, {"output": 32}, {"B": 8}]),
            }

        clusters: list[dict[str, Any]] = [
            {"name": name, "memories": [memory(name)]} for name in ("DRAM", "Buffer", "Reg")[: 1 + self.levels]
        ]
        share = {"multicast": random.random() < 0.8, "reduction": random.random() < 0.8}
        clusters[1]["fanout"] = {"size": self.fanout, "axis": "X"} | share
        return {"name": "random", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}

    def tile(self, size: int, *others: int) -> int:
        """Return a tile that divides all sizes, and is smaller than each if they differ."""
        able = [tile for tile in range(1, size + 1) if size % tile == 0 or not self.divisible]
        if others:
            able = [tile for tile in able if all(s % tile == 0 and tile < s for s in (size, *others))]
        return self.random.choice(able or [max(size, *others)])

    def inside(self, axis: str, layers: list[str], tiles: dict[str, int]) -> list[int]:
        """Return the tiles of an axis in some layers, each once."""
        return sorted({tiles[self.dimension(axis, layer) or axis] for layer in layers})

    def part(self, layers: list[str], tiles: dict[str, int], kept: dict[str, set[str]]) -> dict[str, Any]:
        """Return a part: entries with random loops and keeps, then branches or a layer."""
        random, leaf = self.random, len(layers) == 1
        tiles, kept = dict(tiles), {level: set(names) for level, names in kept.items()}
        axes = [
            at
            for at in tiles
            if all(self.dimension(at, layer) if not leaf else at in self.dimensions(layer) for layer in layers)
        ]
        below = {t for layer in layers for t in self.form[layer]}
        entries: list[dict[str, Any]] = []
        cuts = self.cut(layers) if not leaf else []
        inside = [set(self.form_tensors(some)) for some in cuts]
        for level in ("Buffer", "Reg")[: self.levels]:
            for last in (False, True):
                if f"{level}!" in kept:
                    break  # a fanout outside has left this level
                able = sorted(t for t in below - kept[level] if self.may_keep(t, layers, kept))
                keep = [t for t in able if random.random() < (0.35 if not leaf else 0.6)]
                if last and level == ("Buffer", "Reg")[self.levels - 1] and not leaf:
                    keep += [t for t in self.due(layers, inside, kept) if t not in keep and t in able]
                for t in keep:
                    kept[level].add(t)
                order = random.sample(axes, len(axes))
                loops = {
                    at: self.tile(*(self.inside(at, layers, tiles)))
                    if random.random() < 0.5 and at not in "rst"
                    else max(self.inside(at, layers, tiles))
                    for at in axes
                }
                tiles |= {
                    name: min(size, tiles[name])
                    for at, size in loops.items()
                    for name in (at, *(x for x, y in self.rows.items() if y == at and not leaf))
                }
                entry = {"target": level, "keep": keep, "temporal_tile_sizes": dict(loops), "temporal_order": order}
                if level == "Buffer" and last and self.levels == 2 and random.random() < (0.2 if not leaf else 0.8):
                    spatial, room = dict(loops), self.fanout
                    for at in random.sample(axes, len(axes)):
                        if len(self.inside(at, layers, tiles)) > 1:
                            continue
                        spatial[at] = random.choice(
                            [t for t in range(1, tiles[at] + 1) if tiles[at] % t == 0 and tiles[at] // t <= room]
                        )
                        room //= tiles[at] // spatial[at]
                    entry["spatial_tile_sizes"] = spatial
                    if spatial != loops:
                        kept["Buffer!"] = set()
                    tiles |= {at: min(size, tiles[at]) for at, size in spatial.items()}
                entries.append(entry)
        if leaf:
            inner = "Reg" if self.levels == 2 else "Buffer"
            order = random.sample(axes, len(axes))
            entries.append({"target": inner, "temporal_tile_sizes": dict.fromkeys(axes, 1), "temporal_order": order})
            return {"layer": layers[0], "entries": [self.named(item, layers[0]) for item in entries]}
        return {
            "entries": [self.named(item, None) for item in entries],
            "branches": [self.part(some, tiles, kept) for some in cuts],
        }

    def cut(self, layers: list[str]) -> list[list[str]]:
        """Return the layers of the branches: each layer alone, or some of them together."""
        if len(layers) > 2 and self.random.random() < 0.5:
            at = self.random.randint(1, len(layers) - 1)
            return [layers[:at], layers[at:]]
        return [[layer] for layer in layers]

    def form_tensors(self, layers: list[str]) -> list[str]:
        return [t for layer in layers for t in self.form[layer]]

    def may_keep(self, tensor: str, layers: list[str], kept: dict[str, set[str]]) -> bool:
        """Return whether a tensor may be kept here: its home encloses all its users."""
        if tensor not in self.fused or any(tensor in names for names in kept.values()):
            return True
        return set(self.users[tensor]) <= set(layers)

    def due(self, layers: list[str], inside: list[set[str]], kept: dict[str, set[str]]) -> list[str]:
        """Return the fused tensors that need a home now, since the branches part their users."""
        homeless = [t for t in sorted(self.fused) if not any(t in names for names in kept.values())]
        return [t for t in homeless if set(self.users[t]) <= set(layers) and sum(t in names for names in inside) > 1]

    def named(self, entry: dict[str, Any], layer: str | None) -> dict[str, Any]:
        names = {t: t if layer else self.group_name(t) for t in self.users}
        return entry | ({"keep": [names[t] for t in entry["keep"]]} if "keep" in entry else {})
