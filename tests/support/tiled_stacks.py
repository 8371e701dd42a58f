"""Brute force over nests of shared loops on stacks of convolutions, to compare with the group mapper.

cd tests && python -m support.tiled_stacks 500 --start 0

As in `support.tiled_groups`. In addition, the last loop may step rows that windows read. A layer starts at the first step at
which the group is legal, and the room of a result at home is counted by stepping through the loop.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Collection, Iterator
from typing import Any

from support import tiled_groups
from support.tally import tally
from support.tiled_groups import ORACLE, TIMELOOP, Case, branch_cost, solution
from tilewright.application.run.branch_table import BranchTable
from tilewright.application.run.branches import ragged_dimensions
from tilewright.application.run.evaluation import evaluate_group
from tilewright.application.run.group_search import branch_table
from tilewright.mapspace.group_legality import group_legality
from tilewright.plugin.groupmapper import BranchCase
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import EDP, ENERGY, Objective


class Stack(Case):
    """A random stack on a random machine: products over channels, windows over rows with strides and zeros around."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        random = self.random
        if self.objective == EDP:
            self.objective = ENERGY
        self.count = random.choice((2, 2, 3))
        self.channels = [random.choice((1, 2, 3) if self.count == 2 else (1, 2)) for _ in range(self.count + 1)]
        self.deep = [number > 0 and random.random() < 0.3 for number in range(self.count)]
        for number in range(self.count):
            if self.deep[number]:
                self.channels[number + 1] = self.channels[number]
        self.kernels = [random.choice((1, 2, 3)) for _ in range(self.count)]
        self.strides = [random.choice((1, 1, min(2, kernel))) for kernel in self.kernels]
        self.pads = [random.randint(0, kernel - 1) for kernel in self.kernels]
        rows = random.choice((2, 3, 4, 6))
        self.results = [rows]
        for number in range(self.count - 1, 0, -1):
            after = random.randint(0, self.kernels[number] - 1)
            read = (rows - 1) * self.strides[number] + self.kernels[number] - self.pads[number] - after
            if read < 1:
                self.pads[number], read = 0, (rows - 1) * self.strides[number] + self.kernels[number]
            rows = read
            self.results.insert(0, rows)
        self.capacity = random.choice((8, 12, 16, 24, 40, 60))

    def layer(self, number: int) -> dict[str, Any]:
        into, out, row, tap = f"c{number}", f"c{number + 1}", f"p{number}", f"r{number}"
        window = {"terms": {row: self.strides[number], tap: 1}}
        names = [out] if self.deep[number] else [into, out]
        sizes = {into: self.channels[number], out: self.channels[number + 1]}
        axis = out if self.deep[number] else into
        return {
            "name": f"L{number}",
            "dimensions": {name: sizes[name] for name in names}
            | {row: self.results[number], tap: self.kernels[number]},
            "tensors": [
                {"name": f"T{number}", "role": "input", "projection": [axis, window]},
                {"name": f"W{number}", "role": "weight", "projection": [*names, tap]},
                {"name": f"T{number + 1}", "role": "output", "projection": [out, row]},
            ],
        }

    def group(self, first: int = 0, last: int | None = None) -> GroupMapping:
        numbers = range(first, self.count if last is None else last + 1)
        layers = [self.layer(number) for number in numbers]
        edges = [
            {
                "tensor": f"T{number}",
                "layers": {f"L{number - 1}": f"T{number}", f"L{number}": f"T{number}"},
                "offsets": {f"L{number}": [0, self.pads[number]]},
                "zeros": True,
            }
            for number in numbers[1:]
        ]
        shared = [edge["tensor"] for edge in edges]
        kept = [
            *shared,
            *(
                f"{layer['name']}.{tensor['name']}"
                for layer in layers
                for tensor in layer["tensors"]
                if tensor["name"] not in shared
            ),
        ]
        inner = self.architecture()["clusters"][-1]["name"]
        branches = [
            {
                "layer": layer["name"],
                "entries": [
                    {
                        "target": inner,
                        "temporal_tile_sizes": dict.fromkeys(layer["dimensions"], 1),
                        "temporal_order": list(layer["dimensions"]),
                    }
                ],
            }
            for layer in layers
        ]
        return GroupMapping.model_validate(
            {
                "name": f"stack {first}",
                "layers": layers,
                "edges": edges,
                "tree": {"entries": [{"target": "DRAM", "keep": kept}], "branches": branches},
                "architecture": self.architecture(),
            }
        )

    def rates(self, first: int, last: int) -> list[int]:
        """Return the rows of each layer for one row of the last one."""
        return [math.prod(self.strides[number + 1 : last + 1]) for number in range(first, last + 1)]

    def loops(self, first: int, last: int) -> Iterator[tuple[dict[str, int], int | None]]:
        """Yield tiles of channels that all layers step, in all orders, and the tile of the rows."""
        names = [f"c{number}" for number in range(first + 1, last + 2)]
        outputs = [f"c{number + 1}" for number in range(first, last + 1)]
        # along a chain of depthwise layers, channels are one dimension, with a name in each layer
        chained = all(self.deep[number] for number in range(first + 1, last + 1))
        size = self.channels[first + 1]
        tiles = [tile for tile in range(1, size) if size % tile == 0] if chained and last > first else []
        channel = [dict.fromkeys(outputs, tile) for tile in tiles]
        assert names == outputs
        rates = self.rates(first, last)
        lengths = [rows / rate for rows, rate in zip(self.results[first : last + 1], rates, strict=True)]
        steps: list[int | None] = [None]
        if last > first and all(length.is_integer() for length in lengths):
            steps += [tile for tile in range(1, int(min(lengths))) if all(length % tile == 0 for length in lengths)]
        for sizes in [{}, *channel]:
            for step in steps:
                yield sizes, step


def alive(case: Stack, first: int, number: int, tile: int, starts: list[int], last: int) -> int:
    """Return the most rows of tensor T`number` at home, by stepping through the loop."""
    rates = case.rates(first, last)
    maker, reader = number - 1 - first, number - first
    made = set[int]()
    most, stride, pad = 0, case.strides[number], case.pads[number]
    kernel, taken = case.kernels[number], tile * rates[reader]
    length = case.results[number] // rates[reader]
    end = starts[reader] + length
    for step in range(0, end, tile):
        first_row = (step - starts[maker]) * rates[maker]
        if step >= starts[maker]:
            made |= set(range(first_row, min(first_row + tile * rates[maker], case.results[number - 1])))
        if step < starts[reader]:
            most = max(most, len(made))
            continue
        row = (step - starts[reader]) * rates[reader]
        window = set(range(row * stride - pad, (row + taken - 1) * stride - pad + kernel))
        most = max(most, len(made | window))
        later = (row + taken) * stride - pad
        made = {at for at in made | window if at >= later}
    return most


def trees(
    case: Stack, first: int, last: int, table: BranchTable, objective: Objective, whole: Collection[int] = ()
) -> Iterator[GroupMapping]:
    """Yield the group mappings with one nest of shared loops that no sum crosses, for all places of all tensors.

    `whole`: numbers of the results that are whole at home meanwhile, before or after, too.
    """
    group = case.group(first, last)
    for channel, step in case.loops(first, last):
        yield from placed(case, group, first, last, channel, step, table, objective, whole)


def placed(
    case: Stack,
    group: GroupMapping,
    first: int,
    last: int,
    channel: dict[str, int],
    step: int | None,
    table: BranchTable,
    objective: Objective,
    whole: Collection[int],
) -> Iterator[GroupMapping]:
    numbers, rates = list(range(first, last + 1)), case.rates(first, last)
    loops = ([("C", next(iter(channel.values())))] if channel else []) + ([("P", step)] if step else [])
    axes: dict[str, dict[str, str]] = {}
    if channel:
        axes["C"] = {f"L{number}": f"c{number + 1}" for number in numbers}
    if step:
        axes["P"] = {f"L{number}": f"p{number}" for number in numbers}
    made = [f"T{number}" for number in numbers[1:]]
    ends = {f"L{number}.T{number}" for number in whole} | {f"L{number - 1}.T{number}" for number in whole}
    operands = [name for name in group.users if group.maker(name) is None and name not in ends]
    taken = sum(case.channels[number] * _rows(case, first, number, None, [], last) for number in whole)
    depths = [None, *range(len(loops) + 1)]
    home = group.architecture.memories[1]
    options = itertools.permutations(loops) if not step else [tuple(loops)]
    for order in options:
        for homes in itertools.product((False, True), repeat=len(made)):
            at_home = [name for name, is_home in zip(made, homes, strict=True) if is_home]
            for places in itertools.product(depths, repeat=len(operands)):
                kept = {name: depth for name, depth in zip(operands, places, strict=True) if depth is not None}
                if (loops and not at_home and not kept) or not all(
                    _is_place(case, name, depth, order) for name, depth in kept.items()
                ):
                    continue
                data = _data(case, group, axes, rates, order, at_home, kept, numbers, step, ends)
                if data is None:
                    continue
                tree, starts = data
                tiles = [_tile(case, number, channel, step, rate) for number, rate in zip(numbers, rates, strict=True)]
                words = {name: _box(case, name, kept[name], order, numbers, rates, channel, step) for name in kept}
                branches = list[dict[str, Any]]()
                for number, sizes in zip(numbers, tiles, strict=True):
                    room = taken + sum(words.values())
                    for name in at_home:
                        at = int(name[1:])
                        channels = channel.get(f"c{at}", case.channels[at])
                        rows = _rows(case, first, at, step, starts, last)
                        stays = step is not None and _stays(case, first, at, starts)
                        room += channels * rows if stays or at - 1 <= number <= at else 0
                    problem = next(layer for layer in group.layers if layer.name == f"L{number}")
                    small = problem.replace({f"dimensions.{name}": size for name, size in sizes.items()})
                    here = frozenset(
                        tensor.name
                        for tensor in problem.tensors
                        if tensor.name in at_home
                        or f"L{number}.{tensor.name}" in kept
                        or f"L{number}.{tensor.name}" in ends
                    )
                    if room > (home.usable_words or math.inf):
                        break
                    cost = branch_cost(table, BranchCase(small, here, room * home.word_bits, problem), objective)
                    if not math.isfinite(cost.energy_pj):
                        break
                    branches.append({"layer": problem.name, "entries": list(cost.entries)})
                if len(branches) == len(numbers):
                    yield GroupMapping.model_validate(tree | {"tree": tree["tree"] | {"branches": branches}})


def _is_place(case: Stack, name: str, depth: int, order: tuple[tuple[str, int], ...]) -> bool:
    """Return whether a tile of one layer's operand may be kept there: outside a loop that does not move it, or sliding in the last."""
    layer, operand = name.split(".")
    number = int(layer[1:])
    steps = {"C": f"c{number + 1}", "P": f"p{number}"}
    tensor = next(one for one in case.layer(number)["tensors"] if one["name"] == operand)
    used = {at for rank in tensor["projection"] for at in (rank["terms"] if isinstance(rank, dict) else [rank])}
    if depth < len(order):
        return steps[order[depth][0]] not in used
    slides = case.kernels[number] > case.strides[number] and steps["P"] in used
    return bool(order) and order[-1][0] == "P" and slides


def _tile(case: Stack, number: int, channel: dict[str, int], step: int | None, rate: int) -> dict[str, int]:
    sizes = {f"c{number + 1}": channel.get(f"c{number + 1}", case.channels[number + 1])}
    return sizes | ({f"p{number}": step * rate} if step else {})


def _stays(case: Stack, first: int, number: int, starts: list[int]) -> bool:
    late = starts[number - first] - starts[number - 1 - first]
    return case.kernels[number] > case.strides[number] or case.pads[number] != 0 or late != 0


def _rows(case: Stack, first: int, number: int, step: int | None, starts: list[int], last: int) -> int:
    """Return the rows of a result at home."""
    window = (case.results[number] - 1) * case.strides[number] + case.kernels[number]
    if step is None:
        return max(case.results[number - 1], window)
    if not _stays(case, first, number, starts):
        rates = case.rates(first, last)
        read = (step * rates[number - first] - 1) * case.strides[number] + case.kernels[number]
        return max(step * rates[number - 1 - first], read)
    return alive(case, first, number, step, starts, last)


def _box(
    case: Stack,
    name: str,
    depth: int,
    order: tuple[tuple[str, int], ...],
    numbers: list[int],
    rates: list[int],
    channel: dict[str, int],
    step: int | None,
) -> int:
    """Return the words of an operand's tile inside some of the loops."""
    layer, operand = name.split(".")
    number = int(layer[1:])
    outside = {axis for axis, _ in order[:depth]}
    sizes = dict(case.layer(number)["dimensions"])
    if "C" in outside:
        sizes[f"c{number + 1}"] = channel[f"c{number + 1}"]
    if "P" in outside and step:
        sizes[f"p{number}"] = step * rates[numbers.index(number)]
    tensor = next(one for one in case.layer(number)["tensors"] if one["name"] == operand)
    words = 1
    for rank in tensor["projection"]:
        terms = rank["terms"] if isinstance(rank, dict) else {rank: 1}
        words *= 1 + sum(factor * (sizes[at] - 1) for at, factor in terms.items())
    return words


def _data(
    case: Stack,
    group: GroupMapping,
    axes: dict[str, dict[str, str]],
    rates: list[int],
    order: tuple[tuple[str, int], ...],
    at_home: list[str],
    kept: dict[str, int],
    numbers: list[int],
    step: int | None,
    ends: Collection[str],
) -> tuple[dict[str, Any], list[int]] | None:
    """Return the group with its shared part, each layer as early as is legal; None if it is not legal at all."""
    entries: list[dict[str, Any]] = [
        {"target": "DRAM", "keep": [name for name in group.users if name not in at_home and name not in ends]},
        {"target": "Home", "keep": [name for name in group.users if name in ends]},
        {"target": "Home", "keep": [name for name, depth in kept.items() if depth == 0]},
    ]
    for depth, (axis, tile) in enumerate(order, 1):
        names = [name for name, place in kept.items() if place == depth]
        entries.append({"target": "Home", "keep": names, "temporal_tile_sizes": {axis: tile}})
    entries[-1]["keep"] += at_home
    whole: dict[str, Any] = group.to_data()
    plain = whole["tree"]["branches"]
    data = whole | {"axes": axes, "tree": {"entries": entries, "branches": plain}}
    starts = [0]
    for at in range(1, len(numbers)):
        for start in itertools.count(0, step or 1):
            if start > 40 * (step or 1):
                return None
            early: list[int] = [*starts, start, *([start] * (len(numbers) - at - 1))]
            if step is None:
                break
            paces = {f"L{n}": {"rows": rates[k], "start": early[k]} for k, n in enumerate(numbers)}
            built = GroupMapping.model_validate(data | {"paces": {"P": paces}})
            where = f"tensor T{numbers[at]},"
            reasons = group_legality(built).reasons
            if not any(reason.where.startswith(where) and reason.code in ("halo", "unfinished") for reason in reasons):
                break
        starts.append(0 if step is None else start)
    if step is not None:
        paces = {f"L{n}": {"rows": rates[k], "start": starts[k]} for k, n in enumerate(numbers)}
        data |= {"paces": {"P": paces}}
    verdict = group_legality(GroupMapping.model_validate(data))
    return None if any(reason.code != "alive" for reason in verdict.reasons) else (data, starts)


def brute(case: Stack, table: BranchTable) -> float:
    """Return the least cost of all cuts into intervals, each with one nest; inf if there is none."""
    best: list[dict[bool, float]] = [{False: 0.0}]  # by whether the result between two layers is whole at home
    for end in range(case.count):
        sums: dict[bool, float] = {}
        for start in range(end + 1):
            for before in (False, True) if start else (False,):
                for after in (False, True) if end + 1 < case.count else (False,):
                    whole = [number for number, stays in ((start, before), (end + 1, after)) if stays]
                    costs = [math.inf]
                    for tree in trees(case, start, end, table, case.objective, whole):
                        report = evaluate_group(TIMELOOP, tree)
                        if report.valid:  # otherwise such as a window that only execution counts
                            costs.append(report.of(case.objective) or 0.0)
                    known = best[start].get(before, math.inf)
                    sums[after] = min(sums.get(after, math.inf), known + min(costs))
        best.append(sums)
    return best[case.count][False]


def outcome(seed: int) -> str:
    """Compare the result of a seed with brute force."""
    case = Stack(seed)
    tiled_groups.KNOWN.clear()
    table = branch_table(case.group().architecture, TIMELOOP)
    least = brute(case, table)
    if math.isinf(least):
        return "nothing fits"
    result = solution(case, table)
    value = result.of(case.objective)
    executed = evaluate_group(ORACLE, result.group)
    halo = "sliding" if result.group.paces else "tiled" if result.group.axes else "not fused"
    is_ragged = any(map(ragged_dimensions, result.group.paths.values()))  # brute force tries tiles that divide
    halo += ", ragged" if is_ragged else ""
    if result.bound > least * (1 + 1e-6):
        return f"WRONG: bound {result.bound} is above {least}"
    if value > least * (1 + 1e-6):
        return f"WRONG: {value}, but {least} exists by {case.objective}"
    if value < least * (1 - 1e-6) and not is_ragged:
        return f"WRONG: {value} is below brute force, {least}"
    if executed.valid and abs((executed.of(case.objective) or 0) - value) > 1e-6 * value:
        return f"{halo}: counted {'more' if (executed.of(case.objective) or 0) < value else 'less'} than executed"
    return f"{halo}, {'proved' if result.proved else 'equal, bound lower'}"


def main() -> int:
    """Print the outcomes; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--start", type=int, default=0)
    arguments = parser.parse_args()
    return tally(outcome, range(arguments.start, arguments.start + arguments.count), "stacks")


if __name__ == "__main__":
    sys.exit(main())
