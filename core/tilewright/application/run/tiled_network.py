"""Layers of a network that share loops, where that costs less than results that stay whole.

Layers that follow one another and are executed equally often are one run. No result of a run stays at home beyond it, so
runs are independent: each takes the cheaper of both ways.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.application.run.branch_table import BranchTable
from tilewright.application.run.evaluation import evaluate_group
from tilewright.application.run.group_search import BuiltGroupMapper, search_group
from tilewright.application.run.network_groups import LeftOut, NetworkGroup, group_of_layers
from tilewright.application.run.resident import Placement, ResidentNetwork
from tilewright.errors import NotConformableError
from tilewright.interrupts import stop_requested
from tilewright.plugin.groupmapper import GroupResult
from tilewright.reports import Report
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping, Path
from tilewright.schema.problem import Problem

WORTH = 1e-4
"""Least share of a run's cost that fusion might save, for the run to be searched."""


@dataclass(frozen=True)
class TiledPart:
    """Layers of a network that share loops, as a group mapping with its report.

    Attributes:
        first, last: positions of the layers.
        count: how often they are executed.
        left_out: reads between them that are no edges, so that their words leave the chip.
    """

    first: int
    last: int
    count: int
    mapping: GroupMapping
    report: Report
    left_out: tuple[LeftOut, ...] = ()

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(self.mapping.tree.layers())

    def keeps(self, maker: str, reader: str) -> bool:
        """Return whether words of one layer stay on chip until another one reads them."""
        users, root = self.mapping.users, self.mapping.tree.entries[0].keep or ()
        tensors = [name for name, used in users.items() if {maker, reader} <= used.keys()]
        return any(self.mapping.maker(name) == maker and name not in root for name in tensors)


@dataclass(frozen=True)
class TiledRun:
    """Layers of a network that follow one another: parts share loops, and the other layers are mapped on their own."""

    first: int
    last: int
    parts: tuple[TiledPart, ...]


@dataclass(frozen=True)
class Unsearched:
    """Layers of a network that follow one another, for which no shared loops were searched."""

    layers: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"no shared loops of {self.layers[0]} to {self.layers[-1]} were searched: {self.reason}"


@dataclass(frozen=True)
class TiledSearch:
    """Result of the searches of all runs.

    Attributes:
        runs: those for which a group mapping costs less than results that stay whole.
        unsearched: those that are refused.
        bound: lower bound on the network's objective in the spaces that were searched, with results whole or in tiles.
        spaces: the spaces of the group mapper, as it names them.
    """

    runs: tuple[TiledRun, ...]
    unsearched: tuple[Unsearched, ...]
    bound: float
    spaces: tuple[str, ...]


def runs(network: ResidentNetwork) -> Iterator[tuple[int, int]]:
    """Yield first and last position of the layers that follow one another and are executed equally often."""
    layers, first = network.workload.layers, 0
    for number, layer in enumerate(layers):
        following = layers[number + 1] if number + 1 < len(layers) else None
        if following is None or following.count != layer.count or following.after is None:
            if number > first:
                yield first, number
            first = number + 1


def tiled_runs(
    network: ResidentNetwork, placed: Placement, mapper: BuiltGroupMapper, seconds: float | None
) -> TiledSearch:
    """Search group mappings of all runs.

    Args:
        placed: the best choice of results that stay whole.
        seconds: time limit of all searches together.
    """
    cheaper, refused, spaces = list[TiledRun](), list[Unsearched](), dict[str, None]()
    layers, bound = network.workload.layers, placed.bound
    ends = math.inf if seconds is None else time.monotonic() + seconds
    for first, last in runs(network) if network.home is not None else ():
        numbers = range(first, last + 1)
        whole, least = math.fsum(placed.bounds[at] for at in numbers), math.fsum(map(network.least, numbers))
        covered = least
        if not stop_requested() and time.monotonic() <= ends:
            try:
                joined = _joined(network, placed, first, last)
                result = None if joined is None else _search(network, mapper, joined, ends)
            except NotConformableError as error:  # whole results remain
                names = tuple(layers[at].name for at in numbers)
                refused.append(Unsearched(names, "; ".join(str(reason) for reason in error.reasons) or str(error)))
                continue
            if joined is not None and result is not None:
                cheaper += _cheaper(network, placed, joined, result, first, last)
                covered = max(least, min(whole, result.bound))
                spaces[result.space or mapper.spec.space] = None
        bound += layers[first].count * (covered - whole)
    return TiledSearch(tuple(cheaper), tuple(refused), bound, tuple(spaces))


def _joined(network: ResidentNetwork, placed: Placement, first: int, last: int) -> NetworkGroup | None:
    """Return a run as a group; None if sharing loops gains nothing, or cannot be told."""
    layers, configuration = network.workload.layers[first : last + 1], network.configuration
    before = math.fsum(cost.value for cost in placed.costs[first : last + 1])
    least = math.fsum(network.least(number) for number in range(first, last + 1))
    if not before - least > WORTH * before:
        return None
    architecture, *others = [configuration.architecture_for(layer.problem) for layer in layers]
    if any(other != architecture for other in others):
        return None
    joined = group_of_layers(network.workload, [layer.name for layer in layers], architecture)
    return joined if joined.group.edges else None


def _search(network: ResidentNetwork, mapper: BuiltGroupMapper, joined: NetworkGroup, ends: float) -> GroupResult:
    configuration = network.configuration
    table = BranchTable(configuration, network.search, _origins(network, joined))
    table.share(network.cases)
    return search_group(
        mapper,
        joined.group,
        configuration.model,
        configuration.objective,
        None if math.isinf(ends) else max(0.0, ends - time.monotonic()),
        table=table,
        apart=joined.apart,
        rows=frozenset().union(*joined.rows.values()),
    )


def _cheaper(
    network: ResidentNetwork, placed: Placement, joined: NetworkGroup, result: GroupResult, first: int, last: int
) -> list[TiledRun]:
    """Return the parts of a run that share loops, if they cost less than results that stay whole."""
    objective, before = network.configuration.objective, math.fsum(one.value for one in placed.costs[first : last + 1])
    parts = tuple(_parts(network, joined, result.group, first))
    inside = {number for part in parts for number in range(part.first, part.last + 1)}
    alone = [network.costs[network.case(at, frozenset())].value for at in range(first, last + 1) if at not in inside]
    together = [part.report.of(objective) for part in parts]
    if None in together or math.fsum([*alone, *(value or 0.0 for value in together)]) >= before * (1 - WORTH):
        return []
    return [TiledRun(first, last, parts)]


def _origins(
    network: ResidentNetwork, joined: NetworkGroup
) -> dict[str, tuple[Problem, FrozenDict[str, tuple[str, ...]]]]:
    """Return each layer of the network, and its dimensions -> those of the group that are parts of each, outermost first."""
    origins = dict[str, tuple[Problem, FrozenDict[str, tuple[str, ...]]]]()
    for name, dimensions in joined.dimensions.items():
        parts = dict[str, list[tuple[int, str]]]()
        for part, (dimension, factor) in dimensions.items():
            parts.setdefault(dimension, []).append((-factor, part))
        own = {dimension: tuple(part for _, part in sorted(some)) for dimension, some in parts.items()}
        origins[name] = network.workload.layer(name).problem, FrozenDict(own)
    return origins


def _parts(network: ResidentNetwork, joined: NetworkGroup, group: GroupMapping, first: int) -> Iterator[TiledPart]:
    """Yield the parts of a group that share tiles, each as a group of its own."""
    order = [layer.name for layer in network.workload.layers]
    data = group.to_data()["tree"]
    for part, outside in _apart(group, data):
        names = _layers(part)
        if "layer" in part:
            continue
        own = _only(group, names, part, outside)
        apart = tuple(read for read in joined.left_out if {read.maker, read.reader} <= set(names))
        report = evaluate_group(network.configuration.model, own)
        start = order.index(names[0])
        yield TiledPart(start, start + len(names) - 1, network.workload.layers[first].count, own, report, apart)


def _apart(group: GroupMapping, tree: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield parts of a tree, as data, that exchange nothing at home, with the entries outside each."""
    branches, outside = list(group.tree.branches), tree["entries"]
    moving = any(trips > 1 for path in group.paths.values() for trips in _trips(path, len(outside)))
    if moving or not branches:
        yield tree, []
        return
    uses = [set(branch.layers()) for branch in branches]
    kept = [name for entry in group.tree.entries[1:] for name in entry.keep or ()]
    spans = [[at for at, own in enumerate(uses) if own & group.users[name].keys()] for name in kept]
    start = 0
    for end in range(len(branches)):
        if any(span and span[0] <= end < span[-1] for span in spans):
            continue
        some = tree["branches"][start : end + 1]
        yield (some[0] if len(some) == 1 else {"entries": [], "branches": some}), outside
        start = end + 1


def _layers(part: dict[str, Any]) -> list[str]:
    """Return the layers below a part of a tree, as data."""
    return [part["layer"]] if "layer" in part else [name for branch in part["branches"] for name in _layers(branch)]


def _trips(path: Path, entries: int) -> Iterator[int]:
    """Yield the trips of a layer's loops in the first entries."""
    for temporal, spatial in path.mapping.factors()[:entries]:
        yield from (*temporal.values(), *spatial.values())


def _only(
    group: GroupMapping, names: Sequence[str], part: dict[str, Any], outside: Sequence[dict[str, Any]]
) -> GroupMapping:
    """Return some layers of a group: a part of its tree, as data, inside entries that it shares with others."""
    users, data = group.users, group.to_data()
    edges, renamed = list[dict[str, Any]](), dict[str, str]()
    for edge in data.get("edges", ()):
        layers = {layer: own for layer, own in edge["layers"].items() if layer in names}
        if len(layers) > 1 or (layers and edge.get("sizes")):
            offsets = {layer: row for layer, row in edge.get("offsets", {}).items() if layer in names}
            edges.append(edge | {"layers": layers, "offsets": offsets})
        elif layers:
            renamed[edge["tensor"]] = ".".join(next(iter(layers.items())))

    def named(entry: dict[str, Any]) -> dict[str, Any]:
        kept = [renamed.get(name, name) for name in entry.get("keep") or () if users[name].keys() & set(names)]
        return entry | {"keep": kept}

    def among(key: str) -> dict[str, dict[str, Any]]:
        """Return the entries of some layers, on each axis that joins several of them."""
        own = {
            axis: {layer: told for layer, told in layers.items() if layer in names}
            for axis, layers in data.get(key, {}).items()
        }
        return {axis: layers for axis, layers in own.items() if len(layers) > 1}

    return GroupMapping.model_validate(
        data
        | {
            "name": " + ".join(names),
            "axes": among("axes"),
            "paces": among("paces"),
            "edges": edges,
            "tree": part | {"entries": [named(entry) for entry in (*outside, *part["entries"])]},
            "layers": [layer for layer in data["layers"] if layer["name"] in names],
        }
    )


def with_runs(placed: Placement, network: ResidentNetwork, tiled: Sequence[TiledRun]) -> Placement:
    """Return a placement in which some runs share loops; its bound is that of all fusion.

    Costs of layers that share loops are those without fusion.
    """
    if not tiled:
        return placed
    numbers = {number for run in tiled for number in range(run.first, run.last + 1)}
    parts = [part for run in tiled for part in run.parts]
    together = {number for part in parts for number in range(part.first, part.last + 1)}
    layers = network.workload.layers
    costs = tuple(
        network.costs[network.case(at, frozenset())] if at in numbers else cost for at, cost in enumerate(placed.costs)
    )
    energy, cycles = (
        math.fsum(
            [part.count * (getattr(part.report, name) or 0.0) for part in parts]
            + [layers[at].count * getattr(cost, name) for at, cost in enumerate(costs) if at not in together]
        )
        for name in ("energy_pj", "cycles")
    )
    value = network.configuration.objective.value(energy, cycles)
    least = math.fsum(layer.count * network.least(number) for number, layer in enumerate(layers))
    residents = tuple(resident for resident in placed.residents if resident.first not in numbers)
    return Placement(residents, costs, energy, cycles, value, min(placed.bound, least, value))
