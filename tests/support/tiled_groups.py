"""Brute force over nests of shared loops on random hierarchies, to compare with the bound and the result of the group mapper.

cd tests && python -m support.tiled_groups 500 --start 0

Every nest of shared loops is built as a group mapping, with each operand and each result kept at any depth or nowhere, and
with each set of results that are whole at home between nests. It is priced by `timeloop`. Nothing is pruned, and nothing of the search is used but the host's branch table: `test_proofs.py`
judges the mapper of single layers. The result is executed by `oracle`, too.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Collection, Iterator
from functools import partial
from random import Random
from typing import Any

from support.tally import tally
from tilewright.application.run.branch_table import BranchTable
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.application.run.group_search import branch_table
from tilewright.plugin.groupmapper import BranchCase, BranchCost, GroupResult, GroupTask
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import CYCLES, EDP, ENERGY, Objective
from tilewright.schema.problem import Problem
from tilewright_mappers.fused.group import FusedGroupMapper

ORACLE, TIMELOOP = build_model("oracle"), build_model("timeloop", {"link_transfers": False})
CHAINS: tuple[tuple[dict[str, str], ...], ...] = (
    ({"T0": "ma", "W0": "ab", "T1": "mb"}, {"T1": "mb", "W1": "bc", "T2": "mc"}),
    ({"Q": "hmd", "K": "hnd", "P": "hmn"}, {"P": "hmn", "V": "hne", "Z": "hme"}),
    ({"T0": "ma", "W0": "ab", "T1": "mb"}, {"T0": "ma", "W1": "ac", "T2": "mc"}),
    (
        {"T0": "ma", "W0": "ab", "T1": "mb"},
        {"T1": "mb", "W1": "bc", "T2": "mc"},
        {"T2": "mc", "W2": "cd", "T3": "md"},
    ),
    ({"Q": "hmd", "K": "hnd", "P": "hmn"}, {"P": "hmn", "V": "hne", "Z": "hme"}, {"Z": "hme", "W": "hef", "O": "hmf"}),
)
"""Tensors of each layer, with a letter for each dimension; the last one is the result."""


MORE: tuple[tuple[dict[str, str], ...], ...] = (
    ({"T0": "ma", "W0": "ab", "T1": "mb"}, {"T1": "mb", "W1": "bc", "T2": "mc"}, {"T1": "mb", "W2": "bd", "T3": "md"}),
    ({"T0": "mb", "W0": "ba", "T1": "ma"}, {"T1": "mb", "W0": "ba", "T2": "ma"}, {"T1": "mb", "W1": "bc", "T3": "mc"}),
    CHAINS[2],
    CHAINS[0],
)
"""Results that two layers read, and operands in common."""


SUMS: tuple[tuple[tuple[dict[str, str], ...], dict[str, int]], ...] = (
    (
        (
            {"T0": "ma", "W0": "ab", "T1": "mb"},
            {"T0": "ma", "W1": "ab", "T2": "mb"},
            {"T2": "mb", "W2": "bc", "T3": "mc"},
        ),
        {"T1": 1},
    ),
    (
        (
            {"T0": "ma", "W0": "ab", "T1": "mb"},
            {"T1": "mb", "W1": "bc", "T2": "mc"},
            {"T2": "mc", "W2": "cb", "T3": "mb"},
        ),
        {"T1": 2},
    ),
    (({"T0": "ma", "W0": "ab", "T1": "mb"}, {"X": "mc", "W1": "cb", "T2": "mb"}), {"T1": 1}),
    (
        (
            {"T0": "ma", "W0": "ab", "T1": "mb"},
            {"X": "mc", "W1": "cb", "T2": "mb"},
            {"Y": "md", "W2": "db", "T3": "mb"},
        ),
        {"T1": 1, "T2": 2},
    ),
)
"""Layers, and results -> the layer that adds each to its own."""

KNOWN: dict[Any, dict[int, tuple[float, float, BranchCost]]] = {}
"""Costs of branches by the room that others take."""


class Case:
    """A random group on a random machine: memories, then an array, then registers.

    `rough`: with costs that are rounded, in blocks or in cycles, with leakage, a time limit, and tensors of several readers.
    `sums`: layers that add results to their own.
    """

    def __init__(self, seed: int, rough: bool = False, sums: bool = False) -> None:
        self.random = random = Random(seed)
        self.layers, self.added = random.choice(SUMS) if sums else (random.choice(CHAINS), {})
        letters = sorted({at for tensors in self.layers for ranks in tensors.values() for at in ranks})
        few = len(self.layers) > 2
        self.sizes = {at: random.choice((1, 1, 2) if few else (1, 2, 2, 3, 4)) for at in letters}
        self.capacity = random.choice((4, 6, 8, 12, 16, 24, 40))
        self.objective: Objective = random.choice((ENERGY, ENERGY, CYCLES, EDP))
        self.levels = random.choice((1, 2))
        self.units = random.choice((1, 2, 4))
        self.energies = [random.choice(able) for able in ([50, 200], [4, 20], [1, 3], [0.1, 0.5])]
        self.bandwidths: list[float | None] = [random.choice((None, None, 1, 4)) for _ in range(4)]
        self.held = random.choice((None, ["weight"], ["output"], ["input", "output"]))
        self.seconds, self.leakage, self.blocks = None if not rough else 1000.0, [0.0] * 4, [1] * 4
        if rough:
            self.layers = random.choice(MORE)
            few = len(self.layers) > 2
            self.sizes = {at: random.choice((1, 2) if few else (1, 2, 2, 4)) for at in "abcdm"}
            self.sizes["b"] = self.sizes["a"]
            self.bandwidths = [random.choice((None, None, 0.7, 3)) for _ in range(4)]
            self.leakage = [random.choice((0.0, 0.0, 10.0, 100.0)) for _ in range(4)]
            self.blocks = [random.choice((1, 1, 2, 4)) for _ in range(4)]

    def architecture(self) -> dict[str, Any]:
        names = ["DRAM", "Home", "Local", "Register"]
        memories: list[dict[str, Any]] = [
            {
                "name": name,
                "read_energy_pj": energy,
                "write_energy_pj": energy * 1.25,
                "shared_bandwidth_words_per_cycle": bandwidth,
                "leakage_pj_per_cycle": leaked,
                "block_words": block,
            }
            for name, energy, bandwidth, leaked, block in zip(
                names, self.energies, self.bandwidths, self.leakage, self.blocks, strict=True
            )
        ]
        memories[1]["capacity_words"] = self.capacity
        memories[2]["capacity_words"] = 4
        memories[3] |= {"capacity_words": 2, "holds": self.held}
        clusters: list[dict[str, Any]] = [{"name": one["name"], "memories": [one]} for one in memories]
        if self.levels == 1:
            del clusters[2]
        clusters[-2]["fanout"] = {"size": self.units}
        return {"name": "machine", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}

    def group(self, first: int = 0, last: int | None = None) -> GroupMapping:
        """Return some of the layers, without loops that they share."""
        form = self.layers[first : len(self.layers) if last is None else last + 1]
        layers = [
            {
                "name": f"L{number}",
                "dimensions": {at: self.sizes[at] for at in sorted({at for ranks in tensors.values() for at in ranks})},
                "tensors": [
                    {"name": name, "role": role, "projection": list(ranks)}
                    for (name, ranks), role in zip(tensors.items(), ("input", "weight", "output"), strict=True)
                ],
            }
            for number, tensors in enumerate(form, first)
        ]
        users: dict[str, dict[str, str]] = {}
        for number, tensors in enumerate(form, first):
            for name in tensors:
                users.setdefault(name, {})[f"L{number}"] = name
        makers = {list(tensors)[-1] for tensors in form}
        names = {layer["name"] for layer in layers}
        added = {
            name: [f"L{self.added[name]}"] for name in users if name in makers and f"L{self.added.get(name)}" in names
        }
        edges = [
            {"tensor": name, "layers": used, "added": added.get(name, [])}
            for name, used in users.items()
            if len(used) > 1 or name in added
        ]
        shared = {edge["tensor"] for edge in edges}
        kept = [name if name in shared else f"{next(iter(used))}.{name}" for name, used in users.items()]
        inner = self.architecture()["clusters"][-1]["name"]
        branches = [
            {
                "layer": layer["name"],
                "entries": [
                    {
                        "target": inner,
                        "temporal_order": list(layer["dimensions"]),
                        "temporal_tile_sizes": dict.fromkeys(list(layer["dimensions"]), 1),
                    }
                ],
            }
            for layer in layers
        ]
        return GroupMapping.model_validate(
            {
                "name": f"group {first}",
                "layers": layers,
                "edges": edges,
                "tree": {"entries": [{"target": "DRAM", "keep": kept}], "branches": branches},
                "architecture": self.architecture(),
            }
        )


def trees(
    group: GroupMapping,
    table: BranchTable,
    objective: Objective,
    leaving: Collection[str] = (),
    whole: Collection[str] = (),
    taken: int = 0,
) -> Iterator[GroupMapping]:
    """Yield the group mappings with one nest of shared loops that no sum crosses, for all places of all tensors.

    `leaving`: results that other layers read, too, so that they go out, or are among those that are `whole` at home. `taken`:
    words of the home that results of others take meanwhile.
    """
    problems, users = list(group.layers), group.users
    made = [name for name in users if group.maker(name) is not None and len(group.needs[name]) > 1]
    letters = [
        at
        for at in problems[0].dimensions
        if all(at in problem.output.dimensions for problem in problems)
        and all(
            at in problem.tensor(operand).dimensions
            for name in made
            for problem in problems
            for layer, operand in users[name].items()
            if layer == problem.name
        )
    ]
    for count in range(len(letters) + 1):
        for order in itertools.permutations(letters, count):
            sizes = [
                [n for n in range(1, problems[0].dimensions[at]) if problems[0].dimensions[at] % n == 0] for at in order
            ]
            for tiles in itertools.product(*sizes):
                stay = [name for name in made if name not in leaving and name not in whole]
                yield from placed(group, table, objective, dict(zip(order, tiles, strict=True)), stay, whole, taken)


def placed(
    group: GroupMapping,
    table: BranchTable,
    objective: Objective,
    loops: dict[str, int],
    made: list[str],
    whole: Collection[str],
    taken: int,
) -> Iterator[GroupMapping]:
    """Yield the group mappings with some shared loops: results at home or not, operands kept at any depth or not."""
    users, needs, (outer, inner) = (
        group.users,
        group.needs,
        (cluster.name for cluster in group.architecture.clusters[:2]),
    )
    operands = [name for name in users if group.maker(name) is None and name not in whole]
    axes = {at: dict.fromkeys((problem.name for problem in group.layers), at) for at in loops}
    depths = [None, *range(len(loops) + 1)]
    for homes in itertools.product((False, True), repeat=len(made)):
        at_home = [name for name, is_home in zip(made, homes, strict=True) if is_home]
        for places in itertools.product(depths, repeat=len(operands)):
            kept = {name: depth for name, depth in zip(operands, places, strict=True) if depth is not None}
            if not all(_is_place(group, name, depth, list(loops)) for name, depth in kept.items()):
                continue
            entries: list[dict[str, Any]] = [{"target": inner, "keep": [n for n, depth in kept.items() if depth == 0]}]
            for depth, (at, tile) in enumerate(loops.items(), 1):
                keeps = [n for n, place in kept.items() if place == depth]
                entries.append({"target": inner, "keep": keeps, "temporal_tile_sizes": {at: tile}})
            entries[-1]["keep"] += at_home
            entries.insert(0, {"target": inner, "keep": list(whole)})
            words = {
                n: _words(group, n, dict(list(loops.items())[: kept.get(n, len(loops))])) for n in (*kept, *at_home)
            } | {name: _words(group, name, {}) for name in whole}
            names, branches = [problem.name for problem in group.layers], list[dict[str, Any]]()
            for number, problem in enumerate(group.layers):
                alive = taken + sum(
                    size
                    for name, size in words.items()
                    if name in kept
                    or name in whole
                    or min(map(names.index, needs[name])) <= number <= max(map(names.index, needs[name]))
                )
                own_home = frozenset(
                    used[problem.name] for name, used in users.items() if name in words and problem.name in used
                )
                inner_problem = problem.replace({f"dimensions.{at}": size for at, size in loops.items()})
                home = group.architecture.memories[1]
                if alive > (home.usable_words or math.inf):
                    break
                cost = branch_cost(table, BranchCase(inner_problem, own_home, alive * home.word_bits), objective)
                if not math.isfinite(cost.energy_pj):
                    break
                branches.append({"layer": problem.name, "entries": list(cost.entries)})
            if len(branches) < len(names):
                continue
            out = [name for name in users if name not in at_home and name not in whole]
            root = [{"target": outer, "keep": out}, *entries]
            yield GroupMapping.model_validate(
                group.to_data() | {"axes": axes, "tree": {"entries": root, "branches": branches}}
            )


def _is_place(group: GroupMapping, name: str, depth: int, loops: list[str]) -> bool:
    """Return whether a tile of an operand may be kept there: one layer's, outside a loop that does not move it."""
    users = group.users[name]
    if len(users) > 1:
        return True
    layer, operand = next(iter(users.items()))
    tensor = next(problem for problem in group.layers if problem.name == layer).tensor(operand)
    return depth < len(loops) and loops[depth] not in tensor.dimensions


def branch_cost(table: BranchTable, case: BranchCase, objective: Objective) -> BranchCost:
    """Return the cost of a branch. Less room costs no less: where it costs the same, so does all room between."""
    known = KNOWN.setdefault((id(table), case.problem.content_key, case.at_home, objective), {})
    room = case.reserved_bits
    if room not in known:
        above = min((at for at in known if at > room), default=None)
        below = max((at for at in known if at < room), default=None)
        if above is not None and below is not None and known[above][:2] == known[below][:2]:
            return known[above][2]
        (cost,) = table.branches([case], objective)
        known[room] = cost.energy_pj, cost.cycles, cost
    return known[room][2]


def _words(group: GroupMapping, name: str, sizes: dict[str, int]) -> int:
    layer, operand = next(iter(group.users[name].items()))
    problem: Problem = next(one for one in group.layers if one.name == layer)
    return math.prod(sizes.get(at, problem.dimensions[at]) for at in problem.tensor(operand).dimensions)


def brute(case: Case, table: BranchTable) -> float:
    """Return the least cost of all cuts into intervals, each with one nest; inf if there is none."""
    count = len(case.layers)
    objectives = (case.objective,) if case.objective.is_additive else (case.objective, ENERGY, CYCLES)
    group = case.group()
    users = {name: [int(layer[1:]) for layer in used] for name, used in group.needs.items() if len(used) > 1}
    crossing = {name: at for name, at in users.items() if group.maker(name) is not None}
    best: list[dict[frozenset[str], list[tuple[float, float]]]] = [{frozenset(): [(0.0, 0.0)]}]
    for end in range(count):
        rows = dict[frozenset[str], list[tuple[float, float]]]()
        for start in range(end + 1):
            able = [
                name
                for name, at in crossing.items()
                if min(at) <= end and max(at) >= start and (min(at) < start or max(at) > end)
            ]
            for stay in itertools.chain.from_iterable(
                itertools.combinations(able, number) for number in range(len(able) + 1)
            ):
                before = frozenset(name for name in stay if min(crossing[name]) < start)
                after = frozenset(name for name in stay if max(crossing[name]) > end)
                if before in best[start]:
                    costs = _interval(case, start, end, stay, users, table, objectives)
                    rows.setdefault(after, []).extend(
                        (row[0] + cost[0], row[1] + cost[1]) for row in best[start][before] for cost in costs
                    )
        best.append({live: list(set(some)) for live, some in rows.items()})
    return min((case.objective.value(*row) for row in best[count].get(frozenset(), [])), default=math.inf)


def _interval(
    case: Case,
    start: int,
    end: int,
    stay: Collection[str],
    users: dict[str, list[int]],
    table: BranchTable,
    objectives: Collection[Objective],
) -> list[tuple[float, float]]:
    """Return energy and cycles of all mappings of some layers, while some results are whole at home."""
    group = case.group(start, end)
    leaving = [name for name, used in group.needs.items() if len(used) < len(users.get(name, used))]
    inside = {name: [at for at in range(start, end + 1) if name in case.layers[at]] for name in stay}
    # a tensor that one layer uses is named after it
    whole = [name if name in group.users else f"L{at[0]}.{name}" for name, at in inside.items() if at]
    taken = sum(_words(case.group(), name, {}) for name, at in inside.items() if not at)
    costs = set[tuple[float, float]]()
    for objective in objectives:
        for tree in trees(group, table, objective, leaving, whole, taken):
            report = evaluate_group(TIMELOOP, tree)
            assert report.valid, (report.reasons, str(tree))
            costs.add((report.energy_pj or 0.0, float(report.cycles or 0)))
    return list(costs)


def solution(case: Case, table: BranchTable) -> GroupResult:
    """Return the result of the built-in group mapper."""
    task = GroupTask(case.group(), partial(evaluate_group, TIMELOOP), case.objective, case.seconds, table)
    return FusedGroupMapper().search_group(task)


def outcome(seed: int, rough: bool = False, sums: bool = False) -> str:
    """Compare the result of a seed with brute force."""
    case = Case(seed, rough, sums)
    KNOWN.clear()
    table = branch_table(case.group().architecture, TIMELOOP)
    result, least = solution(case, table), brute(case, table)
    value = result.of(case.objective)
    executed = evaluate_group(ORACLE, result.group)
    if not executed.valid:
        return f"WRONG: it cannot be executed: {executed.reasons}"
    if abs((executed.of(case.objective) or 0) - value) > 1e-6 * value:
        return f"WRONG: executed {executed.of(case.objective)}, counted {value}"
    if result.bound > least * (1 + 1e-6):
        return f"WRONG: bound {result.bound} is above {least}"
    if value > least * (1 + 1e-6):
        is_exact = case.objective.is_additive and not rough  # rounded costs are compared as if each visit had its own
        return f"{'WRONG' if is_exact else 'worse'}: {value}, but {least} exists by {case.objective}"
    return "proved" if result.proved else f"equal, bound lower by {case.objective}"


def main() -> int:
    """Print the outcomes; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--rough", action="store_true", help="costs that are rounded, limits, several readers")
    parser.add_argument("--sums", action="store_true", help="layers that add results to their own")
    arguments = parser.parse_args()
    return tally(
        partial(outcome, rough=arguments.rough, sums=arguments.sums),
        range(arguments.start, arguments.start + arguments.count),
        "groups",
    )


if __name__ == "__main__":
    sys.exit(main())
