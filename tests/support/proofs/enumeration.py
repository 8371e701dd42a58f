"""All mappings of a task, enumerated from its documents by nested choices: tiles, then loop orders, then what memories keep.

Nothing here uses `tilewright.mapspace` but the arrays of a batch, which cost models read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from support.proofs.drawing import Document, Inputs
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.skeleton import Skeleton, SkeletonEntry
from tilewright.schema.problem import Problem

Rows = NDArray[np.int64]


class TooLargeError(Exception):
    """The task has more mappings than are wanted."""


@dataclass
class Place:
    """One entry of all mappings: it holds tensors, or has the temporal loops inside a memory, or unrolls a cluster."""

    cluster: str
    holds: tuple[Document, ...] = ()
    tensors: list[str] | None = None
    """Tensors that may be held here; None: any."""
    loops: bool = False
    unrolls: bool = False
    least: int = 1
    most: int = 1
    trips: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bounds on the trips of dimensions; the others are free."""
    order: tuple[str, ...] = ()
    outermost: tuple[str, ...] = ()
    innermost: tuple[str, ...] = ()


class Enumeration:
    """All mappings of a task.

    Args:
        inputs: the documents.
        limit: more combinations of tiles than this are refused.

    Raises:
        TooLargeError: there are more.
    """

    def __init__(self, inputs: Inputs, limit: int) -> None:
        self.problem = inputs.problem
        self.ragged = inputs.constraints["factors"] == "ragged"
        self.names: tuple[str, ...] = tuple(inputs.problem["dimensions"])
        self.sizes: tuple[int, ...] = tuple(inputs.problem["dimensions"].values())
        self.rules: Document = inputs.constraints["variants"][0]
        self.places = self._places(inputs.architecture)
        self.tensors: list[Document] = inputs.problem["tensors"]
        self.kept = self._kept()
        self.tiles = self._tilings(limit)

    @property
    def size(self) -> int:
        """How many mappings there are."""
        orders = sum(math.prod(len(order) for order in self._orders(row)) for row in self._moving())
        return orders * len(self.kept)

    def batches(self, at_once: int = 100_000) -> Iterator[MappingBatch]:
        """Yield all mappings, each once."""
        moving = self._moving()
        kinds, kind_of = np.unique(moving, axis=0, return_inverse=True)
        for number, kind in enumerate(kinds):
            tiles = self.tiles[kind_of.ravel() == number]
            variants = list(itertools.product(itertools.product(*self._orders(kind)), self.kept))
            some = max(1, at_once // len(variants))
            for start in range(0, len(tiles), some):
                yield self._batch(tiles[start : start + some], variants)

    def _places(self, architecture: Document) -> list[Place]:
        """Entries, outermost first. The memories of the outermost cluster hold at once, others in sequence."""
        clusters, places = architecture["clusters"], []
        temporal = {rule["memory"]: rule for rule in self.rules.get("temporal", ())}
        spatial = {rule["cluster"]: rule for rule in self.rules.get("spatial", ())}
        storage = {rule["cluster"]: rule["entries"] for rule in self.rules.get("storage", ())}
        for number, cluster in enumerate(clusters):
            memories = cluster.get("memories", [])
            by_name = {memory["name"]: memory for memory in memories}
            plain = [{"memory": name} for name in by_name]
            held = [([by_name[entry["memory"]]], entry.get("tensors")) for entry in storage.get(cluster["name"], plain)]
            for together, tensors in [(memories, None)] if number == 0 else held:
                rule = temporal.get(together[-1]["name"], {})
                places.append(Place(cluster["name"], holds=tuple(together), tensors=tensors))
                place = Place(cluster["name"], loops=True, trips=self._bounds(rule))
                place.order, place.outermost, place.innermost = (
                    tuple(rule.get(part, ())) for part in ("order", "outermost", "innermost")
                )
                places.append(place)
            size = cluster.get("fanout", {}).get("size", 1)
            if size > 1 or number == len(clusters) - 1:
                rule = spatial.get(cluster["name"], {})
                least = math.ceil(rule.get("min_utilization", 0.0) * size * (1 - 1e-12))
                most = math.floor(rule.get("max_utilization", 1.0) * size * (1 + 1e-12))
                place = Place(cluster["name"], unrolls=True, least=max(1, least), most=max(1, most))
                place.trips = self._bounds(rule)
                places.append(place)
        return places

    def _bounds(self, rule: Document) -> dict[str, tuple[int, int]]:
        bounds = {}
        for name, size in zip(self.names, self.sizes, strict=True):
            low, high = 1, size
            if "only" in rule and name not in rule["only"]:
                high = 1
            if name in rule.get("factors", {}):
                told = rule["factors"][name]
                told = {"min": told, "max": told} if isinstance(told, int) else told
                low, high = told.get("min", 1), min(high, told.get("max", size))
            bounds[name] = low, high
        return bounds

    def _kept(self) -> list[NDArray[np.bool_]]:
        """[place, tensor] of each choice."""
        fixed = np.zeros((len(self.places), len(self.tensors)), np.bool_)
        free: list[tuple[int, int]] = []
        rules = {rule["memory"]: rule for rule in self.rules.get("keep", ())}
        for p, place in enumerate(self.places):
            for t, tensor in enumerate(self.tensors):
                memory = next((part for part in place.holds if _may_hold(part, tensor)), None)
                if memory is None or not (place.tensors is None or tensor["name"] in place.tensors):
                    continue
                told = [
                    way for way in ("keep", "bypass", "free") if tensor["name"] in _rule(rules, memory).get(way, ())
                ]
                way = told[0] if told else "keep" if self._has_room(memory) else "free"
                if p == 0 or way == "keep":
                    fixed[p, t] = True
                elif way == "free":
                    free.append((p, t))
        choices = []
        for chosen in itertools.product((False, True), repeat=len(free)):
            kept = fixed.copy()
            for (p, t), on in zip(free, chosen, strict=True):
                kept[p, t] = on
            choices.append(kept)
        return choices

    def _has_room(self, memory: Document) -> bool:
        """Whether a memory can hold one value of each tensor that it may hold."""
        if "capacity_words" not in memory:
            return True
        word, bits = memory.get("word_bits", 16), memory.get("bits_per_value", {})
        wanted = sum(
            bits.get(tensor["name"], bits.get(tensor["role"], word))
            for tensor in self.tensors
            if _may_hold(memory, tensor)
        )
        return bool(wanted <= math.floor(memory["capacity_words"] / memory.get("multiple_buffering", 1.0)) * word)

    def _tilings(self, limit: int) -> Rows:
        """[n, place, dimension]: iterations of the tile inside each place."""
        rows = np.zeros((1, len(self.places), 0), np.int64)
        most = np.array([place.most if place.unrolls else np.inf for place in self.places])
        for name, size in zip(self.names, self.sizes, strict=True):
            chains = np.array(list(self._chains(name, size)), np.int64).reshape(-1, len(self.places))
            if len(rows) * len(chains) > limit:
                raise TooLargeError(f"{len(rows) * len(chains)} combinations of tiles")
            left, right = np.repeat(rows, len(chains), axis=0), np.tile(chains, (len(rows), 1))
            rows = np.concatenate([left, right[:, :, None]], axis=2)
            rows = rows[(self._trips(rows).prod(axis=2) <= most).all(axis=1)]
        least = np.array([place.least for place in self.places])
        return np.asarray(rows[(self._trips(rows).prod(axis=2) >= least).all(axis=1)])

    def _trips(self, tiles: Rows) -> Rows:
        """[n, place, dimension] of the dimensions that the tiles have."""
        sizes = np.array(self.sizes[: tiles.shape[2]])
        outside = np.concatenate([np.broadcast_to(sizes, tiles[:, :1].shape), tiles[:, :-1]], axis=1)
        return np.asarray(-(-outside // tiles))

    def _chains(self, name: str, size: int) -> Iterator[tuple[int, ...]]:
        """Yield the tiles of one dimension inside each place, outermost first."""
        divisors = {n: [m for m in range(1, n + 1) if n % m == 0] for n in range(1, size + 1)}

        def inwards(outside: int, place: int) -> Iterator[tuple[int, ...]]:
            if place == len(self.places):
                if outside == 1:
                    yield ()
                return
            here = self.places[place]
            low, high = here.trips[name] if here.trips else (1, 1)
            # a tile divides the one outside, unless that is the whole dimension and tiles may be ragged
            whole = self.ragged and outside == size
            for tile in range(1, outside + 1) if whole else divisors[outside]:
                if low <= -(-outside // tile) <= high:
                    for rest in inwards(tile, place + 1):
                        yield (tile, *rest)

        return inwards(size, 0)

    def _moving(self) -> NDArray[np.bool_]:
        """[n, block, dimension]: which temporal loops have more than one trip."""
        blocks = [p for p, place in enumerate(self.places) if place.loops]
        return np.asarray(self._trips(self.tiles)[:, blocks] > 1)

    def _orders(self, moving: NDArray[np.bool_]) -> list[list[tuple[int, ...]]]:
        """Of each block all orders of its moving loops that its rule allows; the others stand outside."""
        blocks = [place for place in self.places if place.loops]
        result = []
        for place, row in zip(blocks, moving, strict=True):
            loops = [d for d in range(len(self.names)) if row[d]]
            rest = [d for d in range(len(self.names)) if not row[d]]
            parts = (place.outermost, place.order, place.innermost)
            first, ruled, last = ([at for at in map(self.names.index, part) if row[at]] for part in parts)
            orders = [list(order) for order in itertools.permutations(loops)]
            result.append(
                [
                    (*rest, *order)
                    for order in orders
                    if [d for d in order if d in ruled] == ruled
                    and order[: len(first)] == first
                    and order[len(order) - len(last) :] == last
                ]
            )
        return result

    def _batch(
        self, tiles: Rows, variants: list[tuple[tuple[tuple[int, ...], ...], NDArray[np.bool_]]]
    ) -> MappingBatch:
        n, m, places, dims = len(tiles), len(variants), len(self.places), len(self.names)
        inside = np.repeat(tiles, m, axis=0)
        before = np.concatenate([np.broadcast_to(np.array(self.sizes), inside[:, :1].shape), inside[:, :-1]], axis=1)
        unrolls = np.array([place.unrolls for place in self.places])
        order = np.tile(np.arange(dims, dtype=np.int8), (m, places, 1))
        blocks = [p for p, place in enumerate(self.places) if place.loops]
        for v, (orders, _) in enumerate(variants):
            order[v, blocks] = orders
        keep = np.array([kept for _, kept in variants])
        entries = tuple(SkeletonEntry(place.cluster, bool(place.holds)) for place in self.places)
        return MappingBatch(
            Problem.model_validate(self.problem),
            Skeleton(entries),
            np.where(unrolls[:, None], before, inside),
            inside,
            np.tile(order, (n, 1, 1)),
            np.tile(keep, (n, 1, 1)),
        )


def _may_hold(memory: Document, tensor: Document) -> bool:
    return "holds" not in memory or tensor["role"] in memory["holds"] or tensor["name"] in memory["holds"]


def _rule(rules: dict[str, Document], memory: Document) -> Document:
    return rules.get(memory["name"], {})
