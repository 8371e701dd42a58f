"""Where a cost model differs from what really happens, per level, tensor and action, and what in the mapping makes it so."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.report import Report
from tilewright.values import Model

Action = Literal["reads", "fills", "updates"]
ACTIONS: tuple[Action, ...] = ("reads", "fills", "updates")

TRAITS = {
    "remainder": "tiles that do not divide",
    "link_transfers": "words passed on between neighbours",
    "holes": "bounding boxes larger than what is touched",
    "halo": "neighbours' tiles that overlap",
    "sliding": "tiles that overlap the one before",
    "two_iterations": "coordinates moved by several loops, of which only two iterations are looked at",
    "bypass": "levels that a tensor with overlapping tiles bypasses",
    "first_reads": "outputs that are not read back the first time",
}
"""What a mapping may have that a cost model may declare not to count exactly: code -> meaning."""


class Cause(Model):
    """Why a count may differ: one of TRAITS that the model declares and the mapping has, `totals` (the model counts
    all instances together) or `rounding`. `code` is stable."""

    code: str
    message: str


class Difference(Model):
    """One count, words per instance: by execution and by the model."""

    level: str
    tensor: str
    action: Action
    executed: int
    counted: int
    causes: tuple[Cause, ...]


def compared(executed: Report, other: Report) -> int:
    """How many counts both reports have."""
    theirs = {(level.name, name) for level in other.levels for name in level.tensors}
    return len(ACTIONS) * sum((level.name, name) in theirs for level in executed.levels for name in level.tensors)


def differences(
    problem: Problem,
    architecture: Architecture,
    mapping: Mapping,
    executed: Report,
    other: Report,
    approximations: Collection[str],
) -> tuple[Difference, ...]:
    """Every count of `other` that is not the executed one, with what may explain it.

    Args:
        executed: a valid report of a model that executes.
        other: a valid report of another model on the same mapping.
        approximations: those of TRAITS that the other model declares.
    """
    theirs = {(level.name, name): counts for level in other.levels for name, counts in level.tensors.items()}
    found = []
    for level in executed.levels:
        for name, counts in level.tensors.items():
            if (level.name, name) not in theirs:
                continue
            for action in ACTIONS:
                really, said = getattr(counts, action), getattr(theirs[level.name, name], action)
                if really != said:
                    route = _route(problem, architecture, mapping, name, level.name, action)
                    known = tuple(cause for cause in _traits(route, action, other) if cause.code in approximations)
                    causes = known + tuple(_readings(executed, level.name, name, action, really, said))
                    found.append(
                        Difference(
                            level=level.name, tensor=name, action=action, executed=really, counted=said, causes=causes
                        )
                    )
    return tuple(found)


@dataclass(frozen=True)
class _Route:
    """The way of one tensor between two entries that keep it; `inner` None: to compute."""

    problem: Problem
    architecture: Architecture
    mapping: Mapping
    tensor: Tensor
    outer: int
    inner: int | None

    @cached_property
    def tile(self) -> dict[str, int]:
        """Dimension of the tensor -> iterations of the tile that is moved."""
        sizes = None if self.inner is None else self.mapping.entries[self.inner].temporal_tile_sizes
        return {name: 1 if sizes is None else sizes[name] for name in sorted(self.tensor.dimensions)}

    def words(self, shift: MappingOf[str, int] | None = None) -> set[tuple[int, ...]]:
        """What the tile touches, after its dimensions are shifted."""
        start = shift or {}
        ranges = [range(start.get(name, 0), start.get(name, 0) + size) for name, size in self.tile.items()]
        points = (dict(zip(self.tile, at, strict=True)) for at in product(*ranges))
        return {
            tuple(sum(c * at[name] for name, c in rank.terms.items()) for rank in self.tensor.projection)
            for at in points
        }

    @cached_property
    def is_plain(self) -> bool:
        """Any two tiles are equal or disjoint boxes."""
        names = [name for rank in self.tensor.projection for name in rank.terms]
        single = all(tuple(rank.terms.values()) == (1,) for rank in self.tensor.projection)
        return single and len(set(names)) == len(names)

    def overlaps(self, spatial: bool) -> Iterator[str]:
        """Dimensions whose loops, on the way (in space) or outside (in time), shift the tile onto part of itself."""
        last = len(self.mapping.entries) if self.inner is None else self.inner
        here = self.words()
        for loop in self.mapping.loops():
            on_the_way = self.outer <= loop.entry < last if spatial else loop.entry <= last
            if loop.spatial == spatial and on_the_way and loop.dimension in self.tile:
                there = self.words({loop.dimension: loop.tile})
                if here != there and here & there:
                    yield loop.dimension

    def crowded(self) -> Iterator[str]:
        """Coordinates that several loops in time move, and loops that move several coordinates, in words."""
        last = len(self.mapping.entries) if self.inner is None else self.inner
        stepping = [loop.dimension for loop in self.mapping.loops() if not loop.spatial and loop.entry <= last]
        for rank in self.tensor.projection:
            loops = [name for name in stepping if name in rank.terms]
            if len(loops) > 1 and len(rank.terms) > 1:
                yield f"loops over {', '.join(loops)} all move {rank}"
        for name in dict.fromkeys(stepping):
            if sum(name in rank.terms for rank in self.tensor.projection) > 1:
                yield f"{name} moves several coordinates at once"

    def bypassed(self) -> list[str]:
        """Storage levels on the way that do not keep the tensor."""
        last = len(self.mapping.entries) if self.inner is None else self.inner
        between = self.mapping.entries[self.outer + 1 : last]
        return [entry.target for entry in between if entry.keep is not None]


def _route(
    problem: Problem, architecture: Architecture, mapping: Mapping, name: str, level: str, action: Action
) -> _Route:
    """The way that a count speaks of: fills come from outside, reads and updates from inside."""
    keepers = [index for index, entry in enumerate(mapping.entries) if name in (entry.keep or ())]
    homes = {memory.name: cluster.name for cluster in architecture.clusters for memory in cluster.memories}
    here = next(at for at, index in enumerate(keepers) if mapping.entries[index].target == homes[level])
    at = here - 1 if action == "fills" and here else here
    inner = keepers[at + 1] if at + 1 < len(keepers) else None
    return _Route(problem, architecture, mapping, problem.tensor(name), keepers[at], inner)


def _readings(executed: Report, level: str, tensor: str, action: Action, really: int, said: int) -> Iterator[Cause]:
    """Differences of reading, not of counting."""
    rows = executed.execution.accesses if executed.execution else ()
    for row in rows:
        if (row.level, row.tensor) == (level, tensor) and getattr(row, action).total == said:
            yield Cause(code="totals", message=f"all {row.instances} instances together")
    if abs(really - said) == 1:
        yield Cause(code="rounding", message="an average over instances, rounded or cut off")


def _traits(route: _Route, action: Action, other: Report) -> Iterator[Cause]:
    """What of the route is in TRAITS."""
    name = route.tensor.name
    touched = len(route.words())
    box = route.problem.tile_words(route.tensor, {**dict.fromkeys(route.problem.dimensions, 1), **route.tile})
    links = sum(row.link_transfers for row in other.networks if row.tensor == name)
    halos, sliding, crowded = list(route.overlaps(True)), list(route.overlaps(False)), list(route.crowded())
    if not route.mapping.is_perfect:
        yield Cause(code="remainder", message="tiles do not divide; executed, the last ones are short")
    if links:
        text = f"{links} words are passed on between neighbours (link transfers); executed, all come from outside"
        yield Cause(code="link_transfers", message=text)
    if box != touched:
        text = f"boxes with holes: a tile spans {box} words and touches {touched}"
        yield Cause(code="holes", message=text)
    if halos:
        text = f"neighbours' tiles overlap along {', '.join(halos)} (halo): sent to each alone; executed, shared"
        yield Cause(code="halo", message=text)
    if sliding:
        text = (
            f"tiles overlap in time along {', '.join(dict.fromkeys(sliding))}: credited only while the direction stays"
        )
        yield Cause(code="sliding", message=text)
    if crowded:
        text = f"iterations 0 and 1 stand for all: {'; '.join(crowded)}"
        yield Cause(code="two_iterations", message=text)
    if not route.is_plain and route.bypassed():
        text = f"stationarity and sharing are lost through {', '.join(route.bypassed())}, which bypasses {name}"
        yield Cause(code="bypass", message=text)
    if route.tensor.is_output and not route.is_plain and action != "updates":
        text = "first-read elision: first writes are taken from tile sizes; executed, words are remembered"
        yield Cause(code="first_reads", message=text)
