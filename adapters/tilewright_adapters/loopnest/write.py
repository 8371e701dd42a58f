"""Rendering of loop nests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.loopnest.words import pairs, word

Sizes = MappingOf[str, int]

WIDE = 100
"""Maximum column of comments."""


def write_text(problem: Problem | None, architecture: Architecture | None, mapping: Mapping | None) -> str:
    """Return the whole text; parts that are None are omitted."""
    blocks = []
    if mapping is not None:
        blocks.append(list(_Nest(problem, architecture, mapping).lines()))
    if problem is not None:
        blocks.append(list(_problem(problem)))
    if architecture is not None:
        blocks.append(list(_architecture(architecture)))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _problem(problem: Problem) -> Iterator[str]:
    skip = ("name", "schema_version", "kind", "dimensions", "tensors")
    yield f"problem {word(problem.name)}{pairs(problem, skip)}"
    yield f"  dimensions {_sizes(problem.dimensions)}"
    for tensor in problem.tensors:
        yield f"  tensor {tensor.name} {tensor.role} [{', '.join(map(str, tensor.projection))}]"


def _architecture(architecture: Architecture) -> Iterator[str]:
    skip = ("name", "schema_version", "kind", "clusters", "compute")
    yield f"architecture {word(architecture.name)}{pairs(architecture, skip)}"
    for cluster in architecture.clusters:
        yield f"  cluster {word(cluster.name)}"
        for memory in cluster.memories:
            yield f"    memory {word(memory.name)}{pairs(memory)}"
        fanout = pairs(cluster.fanout)
        if fanout:
            yield f"    fanout{fanout}"
    yield f"  compute {word(architecture.compute.name)}{pairs(architecture.compute)}"


class _Nest:
    """Lines of a mapping; text after `#` is for readers and is not parsed."""

    def __init__(self, problem: Problem | None, architecture: Architecture | None, mapping: Mapping) -> None:
        self.problem, self.architecture, self.mapping = problem, architecture, mapping
        self.order = mapping.entries[0].temporal_order
        self.homes: dict[str, str] = {}

    def lines(self) -> Iterator[str]:
        lines = list(self._with_comments())
        column = min(WIDE, max((len(text) for text, comment in lines if comment), default=0))
        for text, comment in lines:
            yield f"{text:<{column}}  # {comment}" if comment else text

    def _with_comments(self) -> Iterator[tuple[str, str]]:
        """Yield text and comment of every line."""
        incoming = self.mapping.entries[0].temporal_tile_sizes
        yield f"nest {_sizes(incoming)}", ""
        if self.order != self.mapping.dimension_names:
            yield f"order {', '.join(self.order)}", ""
        depth = 0
        for entry in self.mapping.entries:
            temporal, spatial = entry.temporal_tile_sizes, entry.spatial_tile_sizes
            stepping = [name for name in entry.temporal_order if temporal[name] != incoming[name]]
            for name in stepping:
                yield (
                    f"{'  ' * depth}for {_loop(name, incoming, temporal)}",
                    self._held() + _last(name, incoming, temporal),
                )
                depth += 1
            yield f"{'  ' * depth}at {entry.target}{self._clauses(entry, stepping)}", self._take(entry)
            for name in entry.spatial_order or self.mapping.dimension_names:
                if spatial[name] != temporal[name]:
                    comment = self._along(entry) + _last(name, temporal, spatial)
                    yield f"{'  ' * depth}spatial for {_loop(name, temporal, spatial)}", comment
                    depth += 1
            incoming = spatial
        yield f"{'  ' * depth}compute", self._held()

    def _clauses(self, entry: Entry, stepping: list[str]) -> str:
        clauses = []
        if entry.keep is not None:
            clauses.append(f"hold {', '.join(entry.keep) or '-'}")
        if entry.unicast:
            clauses.append(f"unicast {', '.join(entry.unicast)}")
        if entry.temporal_order != completed(stepping, self.order):
            clauses.append(f"order {', '.join(entry.temporal_order)}")
        if entry.spatial_order is not None:
            clauses.append(f"spatial_order {', '.join(entry.spatial_order)}")
        return f": {'; '.join(clauses)}" if clauses else ""

    def _held(self) -> str:
        """Return the current memory of each tensor."""
        return " ".join(f"{tensor}:{home}" for tensor, home in self.homes.items())

    def _take(self, entry: Entry) -> str:
        """Record the tensors' new memories; return the words that they occupy."""
        said: dict[str, int] = {}
        for name in entry.keep or ():
            memory = self._memory(entry.target, name)
            self.homes[name] = memory or entry.target
            if memory and self.problem is not None:
                words = self.problem.tile_words(self.problem.tensor(name), self._covered(entry))
                said[memory] = said.get(memory, 0) + words
        return ", ".join(f"{memory} {words:,}" for memory, words in said.items()) + (" words" if said else "")

    def _covered(self, entry: Entry) -> dict[str, int]:
        assert self.problem is not None
        return {name: entry.temporal_tile_sizes.get(name, 1) for name in self.problem.dimensions}

    def _memory(self, target: str, tensor: str) -> str | None:
        if self.problem is None or self.architecture is None or tensor not in self.problem.tensor_names:
            return None
        index = self.architecture.cluster_index.get(target)
        memories = () if index is None else self.architecture.clusters[index].memories
        able = [memory.name for memory in memories if memory.may_hold(self.problem.tensor(tensor))]
        return able[0] if len(able) == 1 else None

    def _along(self, entry: Entry) -> str:
        index = None if self.architecture is None else self.architecture.cluster_index.get(entry.target)
        if self.architecture is None or index is None:
            return ""
        fanout = self.architecture.clusters[index].fanout
        return f"along {fanout.axis}, {fanout.size} there"


def completed(stepping: Sequence[str], order: Sequence[str]) -> tuple[str, ...]:
    """Return the order of all dimensions, given those with loops.

    This is the nest's own order if it agrees. Otherwise the other dimensions follow, innermost.
    """
    if list(stepping) == [name for name in order if name in stepping]:
        return tuple(order)
    return (*stepping, *(name for name in order if name not in stepping))


def _loop(name: str, whole: Sizes, tile: Sizes) -> str:
    return f"{name} in {-(-whole[name] // tile[name])} x {tile[name]}"


def _last(name: str, whole: Sizes, tile: Sizes) -> str:
    """Return a remark if the last tile is smaller."""
    rest = whole[name] % tile[name]
    return f" (last tile {rest})" if rest and whole[name] > tile[name] else ""


def _sizes(sizes: Sizes) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())
