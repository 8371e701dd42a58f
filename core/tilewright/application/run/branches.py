"""Evaluation of a group mapping by any cost model that evaluates layers.

A branch starts with nothing in the entries inside it. So the loops outside a part are visits: the model evaluates the
layer without them, and its counts are multiplied by their trips. Three rules add up what the branches share:

- A shared tile that several layers read is filled once, for the first of them.
- Sums that an earlier visit began are read again. Only the first partial sum of each word is written.
- Tiles are alive over time (`group_peaks`).

Where shared tiles do not divide, the last visits are shorter: each kind of visit is evaluated, and counted as often as it
happens. Words that do not exist (padding) are taken off in proportion (`PaddedUse`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tilewright.errors import Reason
from tilewright.mapspace.exact import group_overflow
from tilewright.mapspace.group_legality import (
    ends_with_sequence,
    group_legality,
    has_one_tile,
    tile_peaks,
)
from tilewright.mapspace.group_padding import PaddedUse, padded_use
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.group_reports import GroupRow, group_report
from tilewright.prices import charged, port_limits, prices_of, tensor_pj
from tilewright.reports import Accesses, InstanceCounts, Limit, Report
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping, Path, Place
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem, Tensor

Bind = Callable[[Problem, Architecture], Evaluator]


def evaluate_branches(model: str, bind: Bind, group: GroupMapping) -> Report:
    """Return the report of a group, counted by a model that evaluates its branches.

    Args:
        model: the model's name.
        bind: returns the model bound to a problem and an architecture.

    Returns:
        An invalid report if the group is illegal, or has something that branches do not count.

    Raises:
        TilewrightError: the model does not accept a branch, or crashed.
    """
    report = Report(model=model, problem=group.name, valid=False, macs=sum(problem.macs for problem in group.layers))
    reasons = group_legality(group).reasons or tuple(_uncounted(group))
    if reasons:
        return report.model_copy(update={"reasons": reasons})
    unlimited = group.architecture.with_memories(lambda memory: memory.model_copy(update={"capacity_words": None}))
    layers = {name: _Layer(group, path, bind, unlimited) for name, path in group.paths.items()}
    moved = set[tuple[str, Place, int]]()
    rows, limits = list[GroupRow](), dict[str, list[Limit]]()
    for name, layer in layers.items():
        reasons += tuple(layer.refusals())
        if reasons:
            continue
        accesses = [row for tensor in layer.path.problem.tensors for row in layer.rows(tensor, moved)]
        rows += accesses
        limits[name] = [layer.computing(), *port_limits(group.architecture.memories, layer.moved(accesses))]
    if reasons:
        return report.model_copy(update={"reasons": reasons})
    return group_report(report, group, rows, limits, tile_peaks(group))


def _uncounted(group: GroupMapping) -> Iterator[Reason]:
    """Yield a reason for everything that is counted only by executing it."""
    for name in group.architecture.sparse_parts:
        yield Reason(code="sparse", where=name, message="sparse hardware is not counted in groups; use dense hardware")
    yield from group_overflow(group.name, group.layers)
    for tensor in group.users:
        for layer in group.users[tensor]:
            use = padded_use(group, tensor, layer)
            obstacle = use.obstacle() if use else None
            if obstacle is not None:
                text = f"{layer} uses words that do not exist (padding), and {obstacle}; only execution counts that"
                yield Reason(code="padding", where=f"tensor {tensor}", message=text)
        if not has_one_tile(group, tensor):
            text = "its readers use different parts of a shared tile, which only execution counts; keep it in an outer part"
            yield Reason(code="tile", where=f"tensor {tensor}", message=text)
    for name, path in group.paths.items():
        ragged = ragged_dimensions(path)
        obstacle = _ragged_obstacle(group, path, ragged) if ragged else None
        if obstacle is not None:
            text = f"a shared tile of {ragged[0]} does not divide the one outside it, and {obstacle}; give it a size that divides"
            yield Reason(code="imperfect", where=name, message=text)


def _divides(whole: int, entries: Sequence[Entry], at: str) -> bool:
    """Return whether each tile of a dimension divides the one outside it."""
    sizes = [whole, *(size for e in entries for size in (e.temporal_tile_sizes[at], e.spatial_tile_sizes[at]))]
    return not any(outer % inner for outer, inner in itertools.pairwise(sizes))


def _is_unrolled(entries: Sequence[Entry], at: str) -> bool:
    return any(entry.spatial_tile_sizes[at] != entry.temporal_tile_sizes[at] for entry in entries)


def ragged_dimensions(path: Path) -> list[str]:
    """Return the dimensions of a layer along which a shared tile does not divide the one outside it."""
    shared = path.mapping.entries[: path.starts[-1]]
    return [at for at, whole in path.problem.dimensions.items() if not _divides(whole, shared, at)]


def _ragged_obstacle(group: GroupMapping, path: Path, ragged: Sequence[str]) -> str | None:
    """Return why shorter visits are counted only by executing them; None if they are not."""
    shared, layer = path.mapping.entries[: path.starts[-1]], path.problem.name
    if any(_is_unrolled(shared, at) for at in ragged):
        return "units share it out"
    factors = path.mapping.factors()[: len(shared)]
    outside = {name for trips, _ in factors for name, count in trips.items() if count > 1}
    if outside - path.problem.output.dimensions:
        return "a sum crosses the shared loops"
    uses = (padded_use(group, path.names[tensor.name], layer) for tensor in path.problem.tensors)
    return "words do not exist (padding)" if any(use is not None and use.padded for use in uses) else None


MostAndTotal = npt.NDArray[np.int64]
"""Accesses at the busiest instance, and at all instances."""
NO_ACCESSES: MostAndTotal = np.zeros(2, dtype=np.int64)


@dataclass(frozen=True)
class _Visit:
    """Visits of one kind: their number, and the layer's sizes and mapping in each."""

    number: int
    problem: Problem
    mapping: Mapping


@dataclass(frozen=True)
class _Counts:
    """Accesses of all visits: at an instance, and at all of them."""

    reads: MostAndTotal
    fills: MostAndTotal
    updates: MostAndTotal
    instances: int
    tile_words: int


@dataclass(frozen=True)
class _Layer:
    """One layer of a legal group, evaluated with and without the loops of its visits.

    A *cut* is a number of entries, whose temporal loops are visits.
    """

    group: GroupMapping
    path: Path
    bind: Bind
    architecture: Architecture

    @cached_property
    def _reports(self) -> dict[int, list[tuple[int, Report]]]:
        return {}

    def reports(self, cut: int) -> list[tuple[int, Report]]:
        """Return how often each kind of visit happens, and the model's report on the layer within one."""
        if cut not in self._reports:
            self._reports[cut] = [
                (visit.number, self.bind(visit.problem, self.architecture).explain(visit.mapping))
                for visit in self.visits(cut)
            ]
        return self._reports[cut]

    @cached_property
    def _mapping(self) -> Mapping:
        """The path, with memories in the architecture's order where loops do not forbid it."""
        position, factors = self.architecture.cluster_index, self.path.mapping.factors()
        entries = list(self.path.mapping.entries)
        for last in range(len(entries) - 1, 0, -1):
            for number in range(last):
                outer, inner = entries[number : number + 2]
                unrolled = max(max(factors[at][1].values()) for at in (number, number + 1)) > 1
                if position[outer.target] <= position[inner.target] or unrolled:
                    continue
                held = {"target": inner.target, "keep": inner.keep, "unicast": inner.unicast}
                if not outer.keep:
                    entries[number] = outer.model_copy(update={"target": inner.target, "keep": None})
                elif max(factors[number + 1][0].values()) == 1:
                    theirs = {"target": outer.target, "keep": outer.keep, "unicast": outer.unicast}
                    entries[number : number + 2] = [outer.model_copy(update=held), inner.model_copy(update=theirs)]
        return Mapping(entries=tuple(entries))

    @cached_property
    def ragged(self) -> bool:
        """Whether some visits are shorter than others."""
        return bool(ragged_dimensions(self.path))

    @property
    def _all_visits(self) -> int:
        """The cut whose visits together are the whole layer. No sum crosses shorter visits."""
        return self.path.starts[-1] if self.ragged else 0

    def _whole(self, tensor: Tensor) -> list[Memory]:
        """Return the memories whose words of a tensor are counted over all visits together."""
        keepers = self.path.keepers(tensor.name)
        return [self._memory(tensor, one) for one, cut in zip(keepers, self.cuts(tensor), strict=True) if not cut]

    def _is_even(self, visit: _Visit) -> bool:
        """Return whether all instances in use work alike: no dimension with a ragged tile is shared out."""
        entries = visit.mapping.entries
        return all(
            _divides(whole, entries, at) or not _is_unrolled(entries, at)
            for at, whole in visit.problem.dimensions.items()
        )

    def visits(self, cut: int) -> list[_Visit]:
        """Return the kinds of visits; where shared tiles divide, there is one."""
        dimensions = list(self.path.problem.dimensions)
        return [
            self._visit(
                cut,
                {at: size for at, (size, _) in zip(dimensions, kind, strict=True)},
                math.prod(count for _, count in kind),
            )
            for kind in itertools.product(*(self._sizes(cut, at) for at in dimensions))
        ]

    def _sizes(self, cut: int, at: str) -> list[tuple[int, int]]:
        """Return the sizes of a dimension inside the temporal loops that are visits, each with the number of such tiles."""
        sizes = {self.path.problem.dimensions[at]: 1}
        for entry in self._mapping.entries[:cut]:
            tile, inner = entry.temporal_tile_sizes[at], Counter[int]()
            for size, count in sizes.items():
                inner[min(tile, size)] += count * max(1, size // tile)
                inner[size % tile] += count if size > tile else 0
            units = entry.temporal_tile_sizes[at] // entry.spatial_tile_sizes[at]
            sizes = {-(-size // units): count for size, count in inner.items() if size and count}
        return list(sizes.items())

    def _visit(self, cut: int, sizes: dict[str, int], number: int) -> _Visit:
        """Return the visits in which the tile inside the last loop of them has some sizes."""
        entries, factors = list(self._mapping.entries), self._mapping.factors()
        if not cut:
            return _Visit(1, self.path.problem, self._mapping)
        for inside in range(cut, len(entries)):
            update = {
                key: FrozenDict({at: min(size, sizes[at]) for at, size in getattr(entries[inside], key).items()})
                for key in ("temporal_tile_sizes", "spatial_tile_sizes")
            }
            entries[inside] = entries[inside].model_copy(update=update)
        tile = sizes
        for outside in range(cut - 1, -1, -1):
            inner, tile = tile, {at: size * factors[outside][1][at] for at, size in tile.items()}
            update = {"temporal_tile_sizes": FrozenDict(tile), "spatial_tile_sizes": FrozenDict(inner)}
            entries[outside] = entries[outside].model_copy(update=update)
        problem = self.path.problem.replace({f"dimensions.{at}": size for at, size in tile.items()})
        return _Visit(number, problem, Mapping(entries=tuple(entries)))

    def cuts(self, tensor: Tensor) -> list[int]:
        """Return the cut of the link into each storage entry but the first, and of that into compute."""
        keepers, name = self.path.keepers(tensor.name), self.path.names[tensor.name]
        cuts = []
        for entry in keepers[1:]:
            again = ends_with_sequence(self.group, name, self.path, entry)
            cuts.append(entry + 1 if again else self.path.starts[entry])
        return [*cuts, self._all_visits if tensor.is_output else self.path.starts[-1]]

    def refusals(self) -> Iterator[Reason]:
        """Yield the reasons against the layer."""
        where = self.path.problem.name
        cuts = sorted({0}.union(*map(self.cuts, self.path.problem.tensors)))
        if self.ragged and not all(self._is_even(visit) for cut in cuts[1:] for visit in self.visits(cut)):
            text = "a shorter visit leaves units idle in its last steps, which only execution counts; give a size that divides"
            yield Reason(code="imperfect", where=where, message=text)
            return
        for report in [report for cut in cuts for _, report in self.reports(cut)]:
            if not report.valid:
                yield from (
                    reason.model_copy(update={"where": f"{where}, {reason.where}"}) for reason in report.reasons
                )
                return
            if report.meshes or any(network.energy_pj for network in report.networks):
                text = "networks that cost energy or limit the speed are not counted in groups"
                yield Reason(code="network", where=where, message=text)
                return
            if not any(limit.action == "compute" for limit in report.limits):
                yield Reason(code="limits", where=where, message="the model does not report the cycles of computing")
                return
            for tensor in self.path.problem.tensors:
                links = [network.link_transfers for network in report.networks if network.tensor == tensor.name]
                if any(links[:-1]) and len(set(self.cuts(tensor))) > 1:
                    text = "neighbours forward its words; how often is not counted in groups (link_transfers: false)"
                    yield Reason(code="forwarding", where=f"{where}, tensor {tensor.name}", message=text)
                    return
        for tensor in self.path.problem.tensors:
            if self.ragged and any(self._counts(0, one, tensor).instances > 1 for one in self._whole(tensor)):
                text = f"several instances keep {tensor.name} outside shorter visits, which only execution counts"
                yield Reason(code="imperfect", where=where, message=text)
                return
            if not self._counts_as_executed(tensor):
                text = "it has padding, and the model counts a tile that moves along it in its own way; use oracle"
                yield Reason(code="padding", where=f"{where}, tensor {tensor.name}", message=text)

    def _counts_as_executed(self, tensor: Tensor) -> bool:
        """Return whether the model counts a padded operand as an execution does, if all words existed."""
        use = self._padded(tensor)
        if use is None:
            return True
        keepers, cuts = self.path.keepers(tensor.name), self.cuts(tensor)
        for outer, inner, cut in zip(keepers, [*keepers[1:], None], cuts, strict=True):
            words = use.moved(outer, inner, cut, clip=False)
            served, left = divmod(int(self._counts(cut, self._memory(tensor, outer), tensor).reads[0]), words)
            alike = math.prod(
                loop.trips
                for loop in self.path.mapping.loops()
                if loop.spatial and loop.dimension not in tensor.dimensions
            )
            if left or not served or alike % served:
                return False
            if inner is not None:
                fills = self._counts(cut, self._memory(tensor, inner), tensor).fills
                if fills[0] != use.moved(inner, inner, cut, clip=False):
                    return False
        return True

    def _padded(self, tensor: Tensor) -> PaddedUse | None:
        """Return the layer's use of an operand with words that do not exist; None if all do."""
        use = padded_use(self.group, self.path.names[tensor.name], self.path.problem.name)
        return use if use is not None and use.padded else None

    def computing(self) -> Limit:
        """Return the limit of the compute units; whether it binds depends on the words of the group."""
        reports = self.reports(self._all_visits)
        limits = [
            (number, next(candidate for candidate in report.limits if candidate.action == "compute"))
            for number, report in reports
        ]
        cycles = sum(number * limit.cycles for number, limit in limits)
        return limits[0][1].model_copy(update={"binding_cycles": 0, "cycles": cycles})

    def rows(self, tensor: Tensor, moved: set[tuple[str, Place, int]]) -> Iterator[GroupRow]:
        """Yield the accesses to a tensor, outermost memory first.

        Args:
            moved: shared tiles that other layers have filled; those of this layer are added.
        """
        name, keepers, cuts = self.path.names[tensor.name], self.path.keepers(tensor.name), self.cuts(tensor)
        memories = [self._memory(tensor, entry) for entry in keepers]
        whole = [self._counts(self._all_visits, memory, tensor) for memory in memories]
        padded = self._padded(tensor)
        filled = [True] * (len(keepers) + 1)  # the links that this layer counts: into each entry, and into compute
        for number, entry in enumerate(keepers[1:], 1):
            place = (name, *self.path.places[entry])
            filled[number] = place not in moved
            if not tensor.is_output:
                moved.add(place)
        for number, (memory, all_visits) in enumerate(zip(memories, whole, strict=True)):
            inward = cuts[number]
            inside, reads, fills = self._counts(inward, memory, tensor), NO_ACCESSES, NO_ACCESSES
            updates = inside.updates
            inner = keepers[number + 1] if number + 1 < len(keepers) else None
            if filled[number + 1]:
                reads = inside.reads
                if padded:
                    links = (padded.moved(keepers[number], inner, inward, clip) for clip in (True, False))
                    reads = reads * next(links) // next(links)
            if tensor.is_output:  # the first partial sum of a word is not read
                first = all_visits.updates - all_visits.reads
                reads = np.maximum(updates - first, 0)
            if number and filled[number]:
                outward = cuts[number - 1]
                visit = self._counts(outward, memory, tensor)
                fills = visit.fills
                if padded:
                    fills = padded.moved(keepers[number], keepers[number], outward) * np.array([1, visit.instances])
                if tensor.is_output:
                    fills = np.maximum(visit.fills + visit.updates - visit.reads - first, 0)
            instances = all_visits.instances
            moves = reads, fills, updates
            total = [InstanceCounts(total=int(count[1]), most=int(count[0])) for count in moves]
            yield GroupRow(
                Accesses(
                    level=memory.name,
                    tensor=name,
                    layer=self.path.problem.name,
                    instances=instances,
                    reads=total[0],
                    fills=total[1],
                    updates=total[2],
                ),
                padded.tile_words(keepers[number]) if padded else all_visits.tile_words,
                tensor_pj(memory, tensor, *(float(count[1] / instances) for count in moves))
                * float(charged(prices_of(self.architecture)[memory.name], instances)),
            )

    def moved(self, rows: list[GroupRow]) -> dict[str, tuple[Counter[int], Counter[int]]]:
        """Return memory -> slices that are read and written, all instances alike."""
        moved = {memory.name: (Counter[int](), Counter[int]()) for memory in self.architecture.memories}
        memories = {memory.name: memory for memory in self.architecture.memories}
        names = {name: tensor for tensor, name in self.path.names.items()}
        for row in rows:
            counts = row.accesses
            slices = memories[counts.level].slices_of(self.path.problem.tensor(names[counts.tensor]))
            moved[counts.level][0][0] += counts.reads.most * slices
            moved[counts.level][1][0] += (counts.fills.most + counts.updates.most) * slices
        return moved

    def _memory(self, tensor: Tensor, entry: int) -> Memory:
        memory = self.architecture.cluster(self.path.mapping.entries[entry].target).memory_for(tensor)
        assert memory is not None, "legality has been checked"
        return memory

    def _counts(self, cut: int, memory: Memory, tensor: Tensor) -> _Counts:
        """Return the accesses of all visits of a cut."""
        counts = [
            (number, next(level for level in report.levels if level.name == memory.name).tensors[tensor.name])
            for number, report in self.reports(cut)
        ]

        def moved(kind: str) -> MostAndTotal:
            rows = [(number * getattr(access, kind), access.instances) for number, access in counts]
            return np.array([sum(count for count, _ in rows), sum(count * instances for count, instances in rows)])

        instances, words = (max(getattr(access, name) for _, access in counts) for name in ("instances", "tile_words"))
        return _Counts(moved("reads"), moved("fills"), moved("updates"), instances, words)
