"""Layers of a network that share loops, where that costs less than results that stay whole.

Layers that follow one another and are executed equally often are one run. No result of a run stays at home beyond it, so
runs are independent: each takes the cheaper of both ways.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.application.run.branch_table import BranchTable
from tilewright.application.run.case_costs import LayerCost
from tilewright.application.run.evaluation import evaluate_group
from tilewright.application.run.fused_vectors import vectors_between
from tilewright.application.run.group_search import BuiltGroupMapper, search_group
from tilewright.application.run.group_vectors import GroupVectors, joined_vectors, rows_of
from tilewright.application.run.network_groups import LeftOut, NetworkGroup, group_of_layers
from tilewright.application.run.resident import Placement, ResidentNetwork
from tilewright.application.run.vector_network import CountedVector
from tilewright.errors import NotConformableError, Reason
from tilewright.interrupts import stop_requested
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping, Path
from tilewright.schema.objective import CYCLES, EDP
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
        vectors: vector layers between them, on tiles; None: there is none, or nothing counts them.
    """

    first: int
    last: int
    count: int
    mapping: GroupMapping
    report: Report
    left_out: tuple[LeftOut, ...] = ()
    vectors: GroupVectors | None = None

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(self.mapping.tree.layers())

    def keeps(self, maker: str, reader: str) -> bool:
        """Return whether words of one layer stay on chip until another one reads them."""
        group, root = self.mapping, self.mapping.tree.entries[0].keep or ()
        made = [name for name in group.users if group.maker(name) == maker and name not in root]
        adders = {layer for name in made for layer in group.needs[name].keys() - group.users[name].keys()}
        return any(reader in group.users[name] for name in made) or any(self.keeps(one, reader) for one in adders)


@dataclass(frozen=True)
class TiledRun:
    """Layers of a network that follow one another: parts share loops, and the other layers are mapped on their own.

    `left` says why vector layers between them do not work on tiles.
    """

    first: int
    last: int
    parts: tuple[TiledPart, ...]
    left: tuple[str, ...] = ()


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
        bound: lower bound on the network's objective over the mappings that were searched, with results whole or in tiles.
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
    network: ResidentNetwork,
    placed: Placement,
    mapper: BuiltGroupMapper,
    seconds: float | None,
    vectors: Sequence[CountedVector] = (),
) -> TiledSearch:
    """Search group mappings of all runs.

    Args:
        placed: the best choice of results that stay whole.
        seconds: time limit of all searches together.
        vectors: vector layers of the network, each on its own.
    """
    counted = {one.layer.name: one for one in vectors if one.report.valid}
    cheaper, refused, spaces = list[TiledRun](), list[Unsearched](), dict[str, None]()
    layers, bound = network.workload.layers, placed.bound
    ends = math.inf if seconds is None else time.monotonic() + seconds
    for first, last in runs(network) if network.home is not None else ():
        numbers = range(first, last + 1)
        whole, least = math.fsum(placed.bounds[at] for at in numbers), math.fsum(map(network.least, numbers))
        covered = least
        if not stop_requested() and time.monotonic() <= ends:
            try:
                joined = _joined(network, placed, first, last, counted)
                stays = {resident.maker for resident in placed.residents}
                trials = [] if joined is None else list(_trials(network, mapper, joined, ends, counted, first, stays))
                run = _cheapest(network, placed, trials, counted, first, last)
            except NotConformableError as error:  # whole results remain
                names = tuple(layers[at].name for at in numbers)
                refused.append(Unsearched(names, "; ".join(str(reason) for reason in error.reasons) or str(error)))
                continue
            if trials:
                cheaper += [] if run is None else [run]
                if run is None and trials[0].run.left:
                    names = tuple(layers[at].name for at in numbers)
                    refused.append(Unsearched(names, "; ".join(trials[0].run.left)))
                covered = max(least, min(whole, *(trial.bound for trial in trials)))
                spaces |= dict.fromkeys(trial.space for trial in trials)
        bound += layers[first].count * (covered - whole)
    return TiledSearch(tuple(cheaper), tuple(refused), bound, tuple(spaces))


Rows = frozenset[tuple[str, str]]
"""Dimensions of layers that no shared loop may step."""


@dataclass(frozen=True)
class _Trial:
    """One search of a run: its mapping, and what its bound covers."""

    run: TiledRun
    bound: float
    space: str

    @property
    def refused(self) -> str | None:
        """Why a vector layer may not work on tiles; None: all may."""
        vectors = [one for part in self.run.parts if part.vectors is not None for one in part.vectors.refused]
        return next((f"{one.vector.name} {one.reason}" for one in vectors), None)

    @property
    def crowded(self) -> bool:
        """Whether units do not overlap for lack of room at home."""
        return any(part.vectors is not None and part.vectors.crowded for part in self.run.parts)


def _joined(
    network: ResidentNetwork, placed: Placement, first: int, last: int, vectors: Mapping[str, CountedVector]
) -> NetworkGroup | None:
    """Return a run as a group; None if sharing loops gains nothing, or cannot be told."""
    layers, configuration = network.workload.layers[first : last + 1], network.configuration
    before = math.fsum(cost.value for cost in placed.costs[first : last + 1])
    least = math.fsum(network.least(number) for number in range(first, last + 1))
    names = {layer.name for layer in layers}
    between = [one.report.of(configuration.objective) or 0.0 for one in vectors.values() if names & {*one.layer.before}]
    if not before - least + math.fsum(between) > WORTH * before:
        return None
    architecture, *others = [configuration.architecture_for(layer.problem) for layer in layers]
    if any(other != architecture for other in others):
        return None
    # a vector layer that adds results counts their words itself
    joined = group_of_layers(network.workload, [layer.name for layer in layers], architecture, sums=not vectors)
    return joined if joined.group.edges else None


def _trials(
    network: ResidentNetwork,
    mapper: BuiltGroupMapper,
    joined: NetworkGroup,
    ends: float,
    vectors: Mapping[str, CountedVector],
    first: int,
    whole: Collection[str],
) -> Iterator[_Trial]:
    """Yield the results of the searches of a run; without vector layers there is one. They start from results that stay whole.

    With them, rows of a softmax may also be cut. Tiles may save time although the layers alone are not faster. If units do not
    overlap for lack of room, tiles get half the home.
    """
    configuration, group, last = network.configuration, joined.group, first + len(joined.group.layers) - 1
    origins = _origins(network, joined)
    table = BranchTable(configuration, network.search, origins)
    table.share(network.cases)
    objective, rows = configuration.objective, Rows().union(*joined.rows.values())
    todo, left = [(rows, objective, table)], dict[tuple[str, str], str]()
    if vectors:
        between = vectors_between(network.workload, joined)
        group, left = group.model_copy(update={"vectors": between.vectors}), dict(between.left)
        always = Rows().union(
            *(row for name, row in joined.rows.items() if name not in {v.tensor for v in group.vectors})
        )
        cut, tiled = rows_of(group)[1] - always, EDP if objective == CYCLES else objective
        pairs = ((rows, objective), *(((rows, tiled), (rows - cut, tiled)) if group.vectors else ()))
        todo = [(kept, one, table) for kept, one in dict.fromkeys(pairs)]
    for number, (kept, one, branches) in enumerate(todo):
        if number and (stop_requested() or time.monotonic() > ends):
            return
        machine = branches.configuration.architecture_for(network.workload.layers[first].problem)
        result = search_group(
            mapper,
            group.model_copy(update={"architecture": machine}),
            configuration.model,
            one,
            None if math.isinf(ends) else max(0.0, ends - time.monotonic()),
            table=branches,
            apart=joined.apart | left.keys(),
            rows=kept,
            stays=frozenset(tensor for tensor in group.users if group.maker(tensor) in whole),
        )
        made = result.group.model_copy(update={"architecture": group.architecture})
        run = TiledRun(first, last, tuple(_parts(network, joined, made, first)), tuple(left.values()))
        exact = one == objective and branches is table
        trial = _Trial(run, result.bound if exact else 0.0, result.space or mapper.spec.space)
        yield trial
        if trial.crowded and objective == CYCLES and branches is table and table.home is not None:
            half = configuration.on_architecture(_with_half(configuration.architecture, table.home.name))
            todo.append((kept, one, BranchTable(half, network.search, origins)))


def _with_half(architecture: Architecture, home: str) -> Architecture:
    """Return the architecture whose home has half its room: the other half is for tiles of a second stage."""

    def changed(memory: Memory) -> Memory:
        words = memory.capacity_words
        update = {"capacity_words": None if words is None else max(1, words // 2)}
        return memory.model_copy(update=update) if memory.name == home else memory

    return architecture.with_memories(changed)


def _cheapest(
    network: ResidentNetwork,
    placed: Placement,
    trials: Sequence[_Trial],
    vectors: Mapping[str, CountedVector],
    first: int,
    last: int,
) -> TiledRun | None:
    """Return the mapping of a run that costs least, with its vector layers; None if results that stay whole cost less.

    Raises:
        NotConformableError: layers may share loops, but the vector layers between them may not work on tiles.
    """
    before = math.fsum(one.value for one in placed.costs[first : last + 1])
    best, least = None, before * (1 - WORTH)
    for trial in trials:
        value = _value(network, trial.run, vectors)
        if value is not None and trial.refused is None and value < least:
            best, least = trial.run, value * (1 - WORTH)
    refused = [trial.refused for trial in trials if trial.refused is not None]
    if best is None and refused:
        told = f"a vector layer between them may not work on tiles: {refused[0]}"
        where = network.workload.layers[first].name
        raise NotConformableError("a group of layers", [Reason(code="vector", where=where, message=told)])
    return best


def _value(network: ResidentNetwork, run: TiledRun, vectors: Mapping[str, CountedVector]) -> float | None:
    """Return the objective of a run, less what its vector layers cost on their own; None if something is not counted."""
    inside = {number for part in run.parts for number in range(part.first, part.last + 1)}
    objective, numbers = network.configuration.objective, range(run.first, run.last + 1)
    values = [network.costs[network.case(at, frozenset())].value for at in numbers if at not in inside]
    for part in run.parts:
        value = part.report.of(objective) if part.vectors is None else part.vectors.of(objective)
        if value is None:
            return None
        values.append(value)
        for one in part.vectors.vectors if part.vectors is not None else ():
            alone = vectors.get(one.vector.name)
            values.append(-(alone.report.of(objective) or 0.0) if alone is not None else 0.0)
    return math.fsum(values)


def _origins(
    network: ResidentNetwork, joined: NetworkGroup
) -> dict[str, tuple[Problem, FrozenDict[str, tuple[str, ...]]]]:
    """Return each layer of the network, and its dimensions -> those of the group that are parts of each, outermost first."""
    origins = dict[str, tuple[Problem, FrozenDict[str, tuple[str, ...]]]]()
    for name, dimensions in joined.dimensions.items():
        parts = dict[str, list[tuple[int, str]]]()
        for part, (dimension, factor) in dimensions.items():
            parts.setdefault(dimension, []).append((-factor, part))
        origin = {dimension: tuple(part for _, part in sorted(some)) for dimension, some in parts.items()}
        origins[name] = network.workload.layer(name).problem, FrozenDict(origin)
    return origins


def _parts(network: ResidentNetwork, joined: NetworkGroup, group: GroupMapping, first: int) -> Iterator[TiledPart]:
    """Yield the parts of a group that share tiles, each as a group of its own."""
    order = [layer.name for layer in network.workload.layers]
    data = group.to_data()["tree"]
    for part, outside in _apart(group, data):
        names = _layers(part)
        if "layer" in part:
            continue
        piece = _only(group, names, part, outside)
        apart = tuple(read for read in joined.left_out if {read.maker, read.reader} <= set(names))
        model, start = network.configuration.model, order.index(names[0])
        report, count = evaluate_group(model, piece), network.workload.layers[first].count
        made = joined_vectors(model, piece, report)
        yield TiledPart(start, start + len(names) - 1, count, piece, report, apart, made)


def _apart(group: GroupMapping, tree: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield parts of a tree, as data, that exchange nothing at home, with the entries outside each."""
    branches, outside = list(group.tree.branches), tree["entries"]
    moving = any(trips > 1 for path in group.paths.values() for trips in _trips(path, len(outside)))
    if moving or not branches:
        yield tree, []
        return
    uses = [set(branch.layers()) for branch in branches]
    kept = [name for entry in group.tree.entries[1:] for name in entry.keep or ()]
    spans = [[at for at, use in enumerate(uses) if use & group.needs[name].keys()] for name in kept]
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
        layers = {layer: name for layer, name in edge["layers"].items() if layer in names}
        added = [layer for layer in edge.get("added", ()) if layer in names and group.maker(edge["tensor"]) in layers]
        if len(layers) > 1 or added or (layers and edge.get("sizes")):
            offsets = {layer: row for layer, row in edge.get("offsets", {}).items() if layer in names}
            edges.append(edge | {"layers": layers, "offsets": offsets, "added": added})
        elif layers:
            renamed[edge["tensor"]] = ".".join(next(iter(layers.items())))

    def named(entry: dict[str, Any]) -> dict[str, Any]:
        kept = [renamed.get(name, name) for name in entry.get("keep") or () if users[name].keys() & set(names)]
        return entry | {"keep": kept}

    def within(tree: dict[str, Any]) -> dict[str, Any]:
        """Return a part of the tree with the names that its shared entries have now. A layer's have its own ones."""
        if "layer" in tree:
            return tree
        return tree | {"entries": [*map(named, tree["entries"])], "branches": [*map(within, tree["branches"])]}

    def among(key: str) -> dict[str, dict[str, Any]]:
        """Return the entries of some layers, on each axis that joins several of them."""
        entries = {
            axis: {layer: told for layer, told in layers.items() if layer in names}
            for axis, layers in data.get(key, {}).items()
        }
        return {axis: layers for axis, layers in entries.items() if len(layers) > 1}

    made = {edge["tensor"] for edge in edges if len(edge["layers"]) > 1 and group.maker(edge["tensor"]) in names}
    return GroupMapping.model_validate(
        data
        | {
            "name": " + ".join(names),
            "vectors": [vector for vector in data.get("vectors", ()) if vector["tensor"] in made],
            "axes": among("axes"),
            "paces": among("paces"),
            "edges": edges,
            "tree": within(part | {"entries": [*outside, *part["entries"]]}),
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
    parts, layers = [part for run in tiled for part in run.parts], network.workload.layers
    costs = tuple(
        network.costs[network.case(at, frozenset())] if at in numbers else cost for at, cost in enumerate(placed.costs)
    )
    energy, cycles = summed(network, costs, parts)
    value = network.configuration.objective.value(energy, cycles)
    least = math.fsum(layer.count * network.least(number) for number, layer in enumerate(layers))
    residents = tuple(resident for resident in placed.residents if resident.first not in numbers)
    return Placement(residents, costs, energy, cycles, value, min(placed.bound, least, value))


def summed(network: ResidentNetwork, costs: Sequence[LayerCost], parts: Sequence[TiledPart]) -> tuple[float, float]:
    """Return energy and cycles of a network whose layers cost these, if they share no loops."""
    together = {number for part in parts for number in range(part.first, part.last + 1)}
    energy, cycles = (
        math.fsum(
            [part.count * (getattr(part.report, name) or 0.0) for part in parts]
            + [
                layer.count * getattr(cost, name)
                for at, (layer, cost) in enumerate(zip(network.workload.layers, costs, strict=True))
                if at not in together
            ]
        )
        for name in ("energy_pj", "cycles")
    )
    return energy, cycles
