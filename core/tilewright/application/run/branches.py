"""Evaluation of a group mapping by any cost model that evaluates layers.

A branch starts with nothing in the entries inside it. So the loops outside a part are visits: the model evaluates the
layer without them, and its counts are multiplied by their trips. Three rules add up what the branches share:

- A shared tile that several layers read is filled once, for the first of them.
- Sums that an earlier visit began are read again. Only the first partial sum of each word is written.
- Tiles are alive over time (`group_peaks`).

Words that do not exist (padding) are taken off in proportion (`PaddedUse`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

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
from tilewright.reports import Accesses, InstanceCounts, Limit, Report, TensorCounts
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping, Path, Place
from tilewright.schema.mapping import Mapping
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
        own = [row for tensor in layer.path.problem.tensors for row in layer.rows(tensor, moved)]
        rows += own
        limits[name] = [layer.computing(), *port_limits(group.architecture.memories, layer.moved(own))]
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
    for path in group.paths.values():
        shared = path.starts[-1]
        for number, (entry, inner) in enumerate(zip(path.mapping.entries[:shared], _inner_tiles(path), strict=False)):
            for at, size in entry.temporal_tile_sizes.items():
                if size % entry.spatial_tile_sizes[at] or entry.spatial_tile_sizes[at] % inner[at]:
                    text = f"a shared tile of {at} does not divide the one outside it; give it a size that divides"
                    yield Reason(code="imperfect", where=f"{path.problem.name}, entry {number}", message=text)


def _inner_tiles(path: Path) -> Iterator[FrozenDict[str, int]]:
    """Yield the tile sizes inside each shared entry."""
    for entry in path.mapping.entries[1 : path.starts[-1]]:
        yield entry.temporal_tile_sizes
    yield path.mapping.entries[path.starts[-1] - 1].spatial_tile_sizes


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
    def _reports(self) -> dict[int, Report]:
        return {}

    def report(self, cut: int) -> Report:
        """Return the model's report on the layer within one visit."""
        if cut not in self._reports:
            problem, mapping = self._visit(cut)
            self._reports[cut] = self.bind(problem, self.architecture).explain(mapping)
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

    def _visit(self, cut: int) -> tuple[Problem, Mapping]:
        entries, factors = list(self._mapping.entries), self._mapping.factors()
        if not cut:
            return self.path.problem, self._mapping
        tile = dict(entries[cut - 1].spatial_tile_sizes)
        for number in range(cut - 1, -1, -1):
            inner, tile = tile, {at: size * factors[number][1][at] for at, size in tile.items()}
            sizes = {"temporal_tile_sizes": FrozenDict(tile), "spatial_tile_sizes": FrozenDict(inner)}
            entries[number] = entries[number].model_copy(update=sizes)
        problem = self.path.problem.replace({f"dimensions.{at}": size for at, size in tile.items()})
        return problem, Mapping(entries=tuple(entries))

    def visits(self, cut: int) -> int:
        """Return the product of the trips of the temporal loops that are visits."""
        return math.prod(trips for temporal, _ in self._mapping.factors()[:cut] for trips in temporal.values())

    def cuts(self, tensor: Tensor) -> list[int]:
        """Return the cut of the link into each storage entry but the first, and of that into compute."""
        keepers, name = self.path.keepers(tensor.name), self.path.names[tensor.name]
        cuts = []
        for entry in keepers[1:]:
            again = ends_with_sequence(self.group, name, self.path, entry)
            cuts.append(entry + 1 if again else self.path.starts[entry])
        return [*cuts, 0 if tensor.is_output else self.path.starts[-1]]

    def refusals(self) -> Iterator[Reason]:
        """Yield the reasons against the layer."""
        where = self.path.problem.name
        for cut in sorted({0}.union(*map(self.cuts, self.path.problem.tensors))):
            report = self.report(cut)
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
            served, left = divmod(
                self._counts(cut, self._memory(tensor, outer), tensor).reads * self.visits(cut), words
            )
            alike = math.prod(
                loop.trips
                for loop in self.path.mapping.loops()
                if loop.spatial and loop.dimension not in tensor.dimensions
            )
            if left or not served or alike % served:
                return False
            if inner is not None:
                fills = self._counts(cut, self._memory(tensor, inner), tensor).fills * self.visits(cut)
                if fills != use.moved(inner, inner, cut, clip=False):
                    return False
        return True

    def _padded(self, tensor: Tensor) -> PaddedUse | None:
        """Return the layer's use of an operand with words that do not exist; None if all do."""
        use = padded_use(self.group, self.path.names[tensor.name], self.path.problem.name)
        return use if use is not None and use.padded else None

    def computing(self) -> Limit:
        """Return the limit of the compute units; whether it binds depends on the words of the group."""
        limit = next(candidate for candidate in self.report(0).limits if candidate.action == "compute")
        return limit.model_copy(update={"binding_cycles": 0})

    def rows(self, tensor: Tensor, moved: set[tuple[str, Place, int]]) -> Iterator[GroupRow]:
        """Yield the accesses to a tensor, outermost memory first.

        Args:
            moved: shared tiles that other layers have filled; those of this layer are added.
        """
        name, keepers, cuts = self.path.names[tensor.name], self.path.keepers(tensor.name), self.cuts(tensor)
        memories = [self._memory(tensor, entry) for entry in keepers]
        whole = [self._counts(0, memory, tensor) for memory in memories]
        padded = self._padded(tensor)
        filled = [True] * (len(keepers) + 1)  # the links that this layer counts: into each entry, and into compute
        for number, entry in enumerate(keepers[1:], 1):
            place = (name, *self.path.places[entry])
            filled[number] = place not in moved
            if not tensor.is_output:
                moved.add(place)
        for number, (memory, all_visits) in enumerate(zip(memories, whole, strict=True)):
            inward = cuts[number]
            inside, reads = self._counts(inward, memory, tensor), 0
            updates, fills = inside.updates * self.visits(inward), 0
            inner = keepers[number + 1] if number + 1 < len(keepers) else None
            if filled[number + 1]:
                reads = inside.reads * self.visits(inward)
                if padded:
                    links = (padded.moved(keepers[number], inner, inward, clip) for clip in (True, False))
                    reads = reads * next(links) // next(links)
            if tensor.is_output:  # the first partial sum of a word is not read
                first = all_visits.updates - all_visits.reads
                reads = max(updates - first, 0)
            if number and filled[number]:
                outward = cuts[number - 1]
                visit = self._counts(outward, memory, tensor)
                fills = visit.fills * self.visits(outward)
                if padded:
                    fills = padded.moved(keepers[number], keepers[number], outward)
                if tensor.is_output:
                    fills = max((visit.fills + visit.updates - visit.reads) * self.visits(outward) - first, 0)
            instances = all_visits.instances
            total = [InstanceCounts(total=count * instances, most=count) for count in (reads, fills, updates)]
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
                tensor_pj(memory, tensor, reads, fills, updates)
                * float(charged(prices_of(self.architecture)[memory.name], instances)),
            )

    def moved(self, rows: list[GroupRow]) -> dict[str, tuple[Counter[int], Counter[int]]]:
        """Return memory -> slices that are read and written, all instances alike."""
        moved = {memory.name: (Counter[int](), Counter[int]()) for memory in self.architecture.memories}
        memories = {memory.name: memory for memory in self.architecture.memories}
        theirs = {name: own for own, name in self.path.names.items()}
        for row in rows:
            own = row.accesses
            slices = memories[own.level].slices_of(self.path.problem.tensor(theirs[own.tensor]))
            moved[own.level][0][0] += own.reads.most * slices
            moved[own.level][1][0] += (own.fills.most + own.updates.most) * slices
        return moved

    def _memory(self, tensor: Tensor, entry: int) -> Memory:
        memory = self.architecture.cluster(self.path.mapping.entries[entry].target).memory_for(tensor)
        assert memory is not None, "legality has been checked"
        return memory

    def _counts(self, cut: int, memory: Memory, tensor: Tensor) -> TensorCounts:
        return next(level for level in self.report(cut).levels if level.name == memory.name).tensors[tensor.name]
