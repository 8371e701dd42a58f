"""Random stacks of convolutions that share a loop over rows: strides, padding, batches, ragged tiles, late starts.

cd tests && python -m support.sliding_groups 5000 --start 0
cd tests && python -m support.sliding_groups 5000 --sums
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from random import Random
from typing import Any

from support.groups import judged
from support.tally import tally
from tilewright.application.run.branches import ragged_dimensions
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.group_legality import group_legality, keeps_halo
from tilewright.mapspace.sliding import window_along
from tilewright.schema.group import GroupMapping


class Stack:
    """Layers of a seed, from the last to the first, with one or two coordinates in space.

    `zeros`: words around a result exist. `late`: layers may start later, or earlier, than their windows need.
    `sums`: all results have equal sizes, and layers may add earlier ones to their own.
    """

    def __init__(self, seed: int, sums: bool = False) -> None:
        self.random = random = Random(seed)
        self.sums = sums
        self.count = random.choice((3, 3, 4) if sums else (2, 2, 3))
        self.space = random.choice((1, 1, 2))
        self.batch = random.choice((1, 1, 2))
        self.zeros = random.random() < 0.6
        self.rows, self.layers, self.offsets = [1], list[dict[str, Any]](), list[list[int]]()
        sizes = [random.choice((2, 3, 4, 6, 8)), *([random.choice((1, 2, 3))] * (self.space - 1))]
        channels = random.choice((1, 2))
        for _ in range(self.count):
            sizes, channels = self._layer(sizes, channels)
        self.layers.reverse()
        self.offsets.reverse()
        self.rows.reverse()

    def _layer(self, sizes: list[int], channels: int) -> tuple[list[int], int]:
        """Put a layer with a result of some sizes in front; return the sizes of what it reads."""
        random, number = self.random, self.count - len(self.layers) - 1
        kernels, strides, reads, offsets = list[int](), list[int](), list[int](), list[int]()
        for size in sizes:
            kernel = random.choice((1, 2, 3))
            stride = random.choice([1, 1, *range(1, kernel + 1)])
            before, after = random.randint(0, kernel - 1), random.randint(0, kernel - 1)
            if self.sums:
                stride, after = 1, kernel - 1 - before
            read = (size - 1) * stride + kernel - before - after
            if read < 1:
                before, after, read = 0, 0, (size - 1) * stride + kernel
            kernels, strides, reads = [*kernels, kernel], [*strides, stride], [*reads, read]
            offsets.append(before)
        is_depthwise, inputs = random.random() < 0.3, channels if self.sums else random.choice((1, 2))
        dimensions = {"b": self.batch, "k": channels} | ({} if is_depthwise else {"c": inputs})
        dimensions |= {f"p{at}": size for at, size in enumerate(sizes)} | {
            f"r{at}": size for at, size in enumerate(kernels)
        }
        windows = [{"terms": {f"p{at}": stride, f"r{at}": 1}} for at, stride in enumerate(strides)]
        taps, channel = [f"r{at}" for at in range(len(sizes))], "k" if is_depthwise else "c"
        self.layers.append(
            {
                "name": f"L{number}",
                "dimensions": dimensions,
                "tensors": [
                    {"name": "I", "role": "input", "projection": ["b", channel, *windows]},
                    {"name": "W", "role": "weight", "projection": ["k", *([] if is_depthwise else ["c"]), *taps]},
                    {"name": "O", "role": "output", "projection": ["b", "k", *(f"p{at}" for at in range(len(sizes)))]},
                ],
            }
        )
        self.offsets.append([0, 0, *offsets])
        self.rows.append(self.rows[-1] * strides[0])
        return reads, channels if is_depthwise else inputs

    def group(self) -> GroupMapping | None:
        """Return the stack under a random tree; None if its layers do not take whole rows of the axis."""
        random, rows = self.random, self.rows[1:]
        lengths = [layer["dimensions"]["p0"] / taken for layer, taken in zip(self.layers, rows, strict=True)]
        if any(not length.is_integer() for length in lengths):
            return None
        ragged = random.random() < 0.5
        able = [tile for tile in range(1, int(min(lengths))) if ragged or all(length % tile == 0 for length in lengths)]
        tile = random.choice(able or [int(max(lengths))])
        edges = [
            {
                "tensor": f"T{at}",
                "layers": {f"L{at}": "O", f"L{at + 1}": "I"},
                "offsets": {f"L{at + 1}": self.offsets[at + 1]},
                "zeros": self.zeros,
            }
            for at in range(self.count - 1)
        ]
        for at in range(self.count - 2) if self.sums else ():
            edges[at]["added"] = sorted(
                random.sample([f"L{n}" for n in range(at + 2, self.count)], random.choice((0, 1, 1)))
            )
        fused = [at for at in range(self.count - 1) if random.random() < 0.85]
        axes = {"P": {layer["name"]: "p0" for layer in self.layers}, "B": {layer["name"]: "b" for layer in self.layers}}
        operands = [
            "L0.I",
            *(f"L{at}.W" for at in range(self.count)),
            *(f"T{at}" for at in range(self.count - 1) if at not in fused),
        ]
        outer = [*operands, f"L{self.count - 1}.O"]
        kept = {name: random.choice((None, 0, 1, 2)) for name in operands if not name.startswith("T")}
        entries: list[dict[str, Any]] = [{"target": "DRAM", "keep": outer}]
        sizes: dict[str, int] = {}
        for depth, (axis, size) in enumerate((("", 0), ("B", 1), ("P", tile))):
            sizes = {axis: size} if axis else {}
            names = [name for name, place in kept.items() if place == depth]
            entries.append({"target": "Buffer", "keep": names, "temporal_tile_sizes": sizes})
        entries[-1]["keep"] += [f"T{at}" for at in fused]
        data = {
            "name": "stack",
            "layers": self.layers,
            "edges": edges,
            "axes": axes,
            "paces": {"P": {f"L{at}": {"rows": taken, "start": 0} for at, taken in enumerate(rows)}},
            "architecture": self.architecture(),
        }
        starts = self.starts(data, tile)
        data["paces"] = {
            "P": {f"L{at}": {"rows": n, "start": s} for at, (n, s) in enumerate(zip(rows, starts, strict=True))}
        }
        branches = [self.branch(at, tile * rows[at], kept, fused) for at in range(self.count)]
        return GroupMapping.model_validate(data | {"tree": {"entries": entries, "branches": branches}})

    def starts(self, data: dict[str, Any], tile: int) -> list[int]:
        """Return the start of each layer: as late as windows need, or by chance another one."""
        plain = [{"layer": f"L{at}", "entries": [{"target": "Buffer"}]} for at in range(self.count)]
        group, starts = GroupMapping.model_validate(data | {"tree": {"branches": plain}}), [0]
        for at in range(self.count - 1):
            window = window_along(group, f"T{at}", f"L{at}", f"L{at + 1}", "P")
            lag = 0 if window is None else window.least_lag(tile)
            lag += tile * self.random.choice((0, 0, 0, 0, 1, 2, -1))
            starts.append(max(0, starts[-1] + lag))
        return starts

    def branch(self, at: int, rows: int, kept: dict[str, int | None], fused: list[int]) -> dict[str, Any]:
        """Return a layer's part: some tensors in the buffer, then loops, the array, and registers."""
        random, layer = self.random, self.layers[at]
        sizes = dict(layer["dimensions"]) | {"p0": min(rows, layer["dimensions"]["p0"]), "b": 1}
        able = [
            name for name in ("I", "W") if kept.get(f"L{at}.{name}") is None and not (name == "I" and at - 1 in fused)
        ]
        names = [name for name in able if random.random() < 0.4]
        if at not in fused and random.random() < 0.4:
            names.append("O")
        inner = {
            name: size if name[0] == "r" or random.random() < 0.5 else random.choice(divisors(size))
            for name, size in sizes.items()
        }
        units = (
            {name: size for name, size in inner.items() if name == "k" and size <= 2} if random.random() < 0.5 else {}
        )
        order = random.sample(list(inner), len(inner))
        entries: list[dict[str, Any]] = [{"target": "Buffer", "keep": names}]
        entries.append({"target": "Buffer", "temporal_tile_sizes": inner, "temporal_order": order})
        entries[-1]["spatial_tile_sizes"] = inner | dict.fromkeys(units, 1)
        ones = dict.fromkeys(inner, 1)
        registers = [name for name in ("I", "W", "O") if random.random() < 0.4]
        # windows are whole until the innermost loops: elsewhere `timeloop` credits overlap as Timeloop does
        entries.append({"target": "Register", "keep": registers})
        entries.append({"target": "Register", "temporal_tile_sizes": ones, "temporal_order": order})
        return {"layer": layer["name"], "entries": entries}

    def architecture(self) -> dict[str, Any]:
        random = self.random
        memories = [
            {
                "name": name,
                "read_energy_pj": random.choice((1, 7.5)),
                "write_energy_pj": random.choice((2, 5)),
                "shared_bandwidth_words_per_cycle": random.choice((None, 1)),
            }
            for name in ("DRAM", "Buffer", "Register")
        ]
        clusters: list[dict[str, Any]] = [{"name": one["name"], "memories": [one]} for one in memories]
        clusters[1]["fanout"] = {"size": 2}
        return {"name": "machine", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}


def outcome(seed: int, sums: bool = False) -> str:
    """Compare `timeloop` with execution on the stack of a seed."""
    stack = Stack(seed, sums)
    group = stack.group()
    if group is None:
        return "no whole rows"
    kind = "zeros" if stack.zeros else "no zeros"
    kind += ", ragged" if any(ragged_dimensions(path) for path in group.paths.values()) else ""
    verdict = group_legality(group)
    if not verdict:
        return f"illegal ({','.join(sorted({reason.code for reason in verdict.reasons}))})"
    halo = any(keeps_halo(group, tensor) for tensor in group.users)
    kind += ", sums" if any(edge.added for edge in group.edges) else ""
    return f"{kind}{', halo' if halo else ''}: {judged(group)}"


def main() -> int:
    """Print how many stacks have each outcome; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="stacks")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--sums", action="store_true", help="layers that add results to their own")
    arguments = parser.parse_args()
    return tally(
        partial(outcome, sums=arguments.sums),
        range(arguments.start, arguments.start + arguments.count),
        "stacks",
        every=500,
    )


if __name__ == "__main__":
    sys.exit(main())
