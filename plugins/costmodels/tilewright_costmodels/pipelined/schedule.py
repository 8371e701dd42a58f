"""Schedule of one mapping: cycles of the work on tiles, and of the transfers that it waits for.

Steps of a storage level are the iterations of the temporal loops at or outside its entry. A
*boundary* between two steps is the position of the outermost loop that advances there. It decides
which tiles change, and all boundaries at one position are alike. So each level adds up few kinds of
steps instead of visiting all of them. docs/cycles.md states the rules.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace

from tilewright.mapspace.batch import Floats
from tilewright.prices import Price, port_time
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.timing import Requests

RUN = -1
"""Boundary at the start and at the end of the run, outside all loops."""


@dataclass(frozen=True)
class Traffic:
    """Values moved per instance over the whole run, [levels, tensors] each, as `timeloop` counts them."""

    reads: Floats
    fills: Floats
    updates: Floats
    compute_cycles: float


@dataclass(frozen=True)
class TileTransfer:
    """Tile of one tensor at a storage level, and the words of one transfer.

    These are an even part of the total. Where each step loads its operands again, they are the whole tile.
    """

    prefetch: str
    innermost: int
    """Position of the innermost loop that moves the tile, or transfers it again; RUN: none does."""
    times: int
    """Number of transfers."""
    source: str
    target: str
    latency: float
    read: float
    """Slices that one instance of the source reads, in whole bursts."""
    filled: float
    """Slices that one instance of the target writes."""
    updated: float
    """Slices that one instance of the source writes, in whole bursts."""
    read_requests: float
    """Cycles of the requests and the rows for `read` in the source."""
    updated_requests: float
    """Cycles of the requests and the rows for `updated`."""
    outer: TileTransfer | None = None
    """Transfer of an even part of the words that pass through the source."""

    def times_over(self, factor: float) -> TileTransfer:
        """Return the transfer of a multiple of its words, without the outer one."""
        names = "latency", "read", "filled", "updated", "read_requests", "updated_requests"
        return replace(self, outer=None, **{name: getattr(self, name) * factor for name in names})

    def passed_to(self, inner: TileTransfer) -> TileTransfer:
        """Return the even part of all words that a transfer of an inner tile brings."""
        part = self.times_over(self.times / inner.times)
        outer = self.outer and self.outer.passed_to(inner)
        return replace(part, innermost=inner.innermost, times=inner.times, outer=outer)

    def chain(self) -> Iterator[TileTransfer]:
        """Yield the transfer and the outer ones."""
        yield self
        if self.outer:
            yield from self.outer.chain()


@dataclass(frozen=True)
class LevelTransfers:
    """Temporal loops of one storage level, and its tiles."""

    first: int
    """Position of its first loop."""
    trips: tuple[int, ...]
    tiles: tuple[TileTransfer, ...]
    step_cycles: int
    """Least cycles of a step."""


def levels_of(
    problem: Problem, architecture: Architecture, mapping: Mapping, holding: Sequence[int], traffic: Traffic
) -> list[LevelTransfers]:
    """Return the storage levels of a legal mapping, outermost first.

    Args:
        holding: entries that are storage levels.
        traffic: its counts, by index in `holding`.
    """
    loops = [loop for loop in mapping.loops() if not loop.spatial and loop.entry <= holding[-1]]
    levels: list[LevelTransfers] = []
    passing: dict[str, TileTransfer] = {}
    first = 0
    for number, entry in enumerate(holding):
        outside = [loop for loop in loops if loop.entry <= entry]
        tiles, cluster = [], architecture.cluster(mapping.entries[entry].target)
        kept = [cluster.memory_for(problem.tensor(name)) for name in mapping.entries[entry].keep or ()]
        for index, tensor in enumerate(problem.tensors):
            keepers = [at for at in range(number + 1) if tensor.name in (mapping.entries[holding[at]].keep or ())]
            if len(keepers) < 2 or keepers[-1] != number:
                continue
            ends = [architecture.cluster_index[mapping.entries[holding[at]].target] for at in keepers[-2:]]
            source, target = (architecture.clusters[end].memory_for(tensor) for end in ends)
            assert source is not None and target is not None, "legality has been checked"
            moving = [at for at, loop in enumerate(outside) if loop.dimension in tensor.dimensions]
            innermost = moving[-1] if moving else RUN
            times, parent = math.prod(loop.trips for loop in outside[: innermost + 1]), keepers[-2]
            read, filled, updated = (
                float(words) / times
                for words in (
                    traffic.reads[parent, index],
                    traffic.fills[number, index],
                    traffic.updates[parent, index],
                )
            )
            if target.timing.reload and not tensor.is_output:
                innermost = len(outside) - 1
                whole = problem.tile_words(tensor, mapping.entries[entry].temporal_tile_sizes)
                read, filled = (read / filled * whole, whole) if filled else (read, filled)
            requests = target.timing.requests
            asked, returned = request_cycles(problem, mapping, tensor, holding[parent], entry, source, requests)
            passes = target.timing.prefetch == "through"
            tile = TileTransfer(
                prefetch=target.timing.prefetch,
                innermost=innermost,
                times=math.prod(loop.trips for loop in outside[: innermost + 1]),
                source=source.name,
                target=target.name,
                latency=latency_cycles(architecture, source, *ends),
                read=slices_in_bursts(source, tensor, read),
                filled=0.0 if passes else filled * target.slices_of(tensor),
                updated=slices_in_bursts(source, tensor, updated),
                read_requests=read * asked,
                updated_requests=updated * returned,
            )
            if tensor.name in passing:
                tile = replace(tile, outer=passing.pop(tensor.name).passed_to(tile))
            if passes:
                passing[tensor.name] = tile
            else:
                tiles.append(tile)
        timings = [memory.timing for memory in kept if memory is not None]
        if entry == holding[-1]:
            tiles += [replace(tile, prefetch="any") for tile in passing.values()]
        elif timings and all(timing.prefetch == "through" for timing in timings):
            continue
        step_cycles = max((timing.step_cycles for timing in timings), default=0)
        trips = tuple(loop.trips for loop in outside[first:])
        levels.append(LevelTransfers(first, trips, tuple(tiles), step_cycles))
        first = len(outside)
    return levels


def latency_cycles(architecture: Architecture, source: Memory, outer: int, inner: int) -> int:
    """Return the cycles from the request of a transfer between two clusters to its first word."""
    passed = architecture.clusters[outer:inner]
    return source.timing.latency_cycles + sum(cluster.fanout.network.latency_cycles for cluster in passed)


def slices_in_bursts(memory: Memory, tensor: Tensor, values: float) -> float:
    """Return the slices of a memory that values of a tensor take, in whole bursts."""
    return in_bursts(values * memory.words_of(tensor), memory.timing.burst_words) * memory.slices_per_word


def in_bursts(words: float, burst: int) -> float:
    """Return the words of a transfer in whole bursts. Bursts of one word are not rounded."""
    return math.ceil(words / burst - 1e-9) * burst if burst > 1 else words


def request_cycles(
    problem: Problem,
    mapping: Mapping,
    tensor: Tensor,
    outer: int,
    inner: int,
    source: Memory,
    requests: Requests | None,
) -> tuple[float, float]:
    """Return the cycles of requests and rows per value that moves between two storage entries, inwards and back.

    Without requests, a tile is one run. A run of requests spans the tiles of all sub-clusters, so it contains their
    unrolled loops.
    """
    if requests is None and source.timing.rows is None:
        return 0.0, 0.0
    if requests is None:
        values = problem.tile_words(tensor, mapping.entries[inner].temporal_tile_sizes)
        opened = row_cycles(source, values * source.words_of(tensor)) / values
        return opened, opened
    along = next((name for name in requests.along if name in tensor.dimensions), None)
    values = math.prod(
        loop.trips
        for loop in mapping.loops()
        if loop.dimension == along and (loop.entry > inner or (loop.spatial and loop.entry >= outer))
    )
    words = values * source.words_of(tensor)
    count, opened = math.ceil(words / requests.words), row_cycles(source, words)
    asked, returned = requests.cycles, requests.return_cycles or requests.cycles
    return (count * asked + opened) / values, (count * returned + opened) / values


def row_cycles(source: Memory, words: float) -> float:
    """Return the cycles that the rows of a run add to those of its words.

    In steady state, b banks deliver b rows in the cycles of their words, or of a miss and one row, the larger of both.
    """
    rows = source.timing.rows
    if rows is None:
        return 0.0
    opened = math.ceil(words / rows.words)
    rate = source.shared_bandwidth_words_per_cycle or source.read_bandwidth_words_per_cycle
    cycles = words / rate if rate else 0.0
    return max(0.0, (opened * rows.miss_cycles - (rows.banks - 1) * cycles) / rows.banks)


def transfer_cycles(
    tiles: Iterable[TileTransfer],
    prices: MappingOf[str, Price],
    arriving: int | None,
    leaving: int | None,
    latency: bool = True,
) -> float:
    """Return the cycles in which tiles arrive at one boundary and leave at another; None: none do.

    Transfers share the bandwidths of their memories, and send their requests in sequence. Different memories work at
    the same time. Words that pass through a memory arrive there first.
    """
    tiles = list(tiles)
    outer = [tile.outer for tile in tiles if tile.outer]
    before = transfer_cycles(outer, prices, arriving, leaving, latency) if outer else 0.0
    read, written, asked = (defaultdict[str, float](float) for _ in range(3))
    waits = 0.0
    for tile in tiles:
        if arriving is not None and arriving <= tile.innermost and (tile.read or tile.filled):
            read[tile.source] += tile.read
            asked[tile.source] += tile.read_requests
            written[tile.target] += tile.filled
            waits = max(waits, tile.latency)
        if leaving is not None and leaving <= tile.innermost:
            written[tile.source] += tile.updated
            asked[tile.source] += tile.updated_requests
    for name in {**read, **written}.keys() & prices.keys():
        asked[name] += float(port_time(prices[name], read[name], written[name]))
    return before + max(asked.values(), default=0.0) + (waits if latency else 0.0)


def steps_of(level: LevelTransfers, start: int, end: int) -> dict[tuple[int, int], int]:
    """Count the steps of a level between two boundaries outside, by the boundaries before and after each."""
    pairs = Counter[tuple[int, int]]()
    innermost = level.first + len(level.trips) - 1
    for position, trips in reversed(list(enumerate(level.trips, level.first))):
        pairs = Counter({pair: count * trips for pair, count in pairs.items()})
        if position == innermost:
            pairs[position, position] += trips - 2
        else:
            pairs[innermost, position] += trips - 1
            pairs[position, innermost] += trips - 1
    if not level.trips:
        return {(start, end): 1}
    pairs[start, innermost] += 1
    pairs[innermost, end] += 1
    return {pair: count for pair, count in pairs.items() if count}


def slowdown(
    problem: Problem, architecture: Architecture, mapping: Mapping, holding: Sequence[int], stationary: int
) -> float:
    """Return the cycles of computing, as a multiple of those without `Compute.instruction`.

    Args:
        stationary: position of the innermost loop that moves a tile nearest to the array.
    """
    instruction, operation_cycles = architecture.compute.instruction, architecture.compute.cycles_per_operation
    if instruction is None:
        return 1.0
    index = architecture.cluster_index
    below = index[architecture.cluster_of(instruction.memory).name]
    step = max(entry for entry in holding if index[mapping.entries[entry].target] <= below)
    along = next((name for name in instruction.dimensions if name in problem.dimensions), None)
    iterations = math.prod(
        loop.trips for loop in mapping.loops() if not loop.spatial and loop.entry > step and loop.dimension == along
    )
    whole, rest = divmod(iterations, instruction.iterations)
    cycles = whole * max(instruction.cycles, instruction.iterations * operation_cycles)
    cycles += max(instruction.cycles, rest * operation_cycles) if rest else 0
    loops = [loop.trips for loop in mapping.loops() if not loop.spatial]
    parts = math.prod(loops[stationary + 1 :]) / iterations
    last = max(instruction.cycles, (rest or instruction.iterations) * operation_cycles)
    loaded = parts * cycles + max(0, instruction.load_cycles - last)
    issued = parts * (whole + bool(rest)) * instruction.issue_cycles
    return max(loaded, issued) / (parts * iterations * operation_cycles)


class Schedule:
    """Cycles of the work between boundaries, level by level."""

    def __init__(
        self,
        architecture: Architecture,
        prices: MappingOf[str, Price],
        levels: Sequence[LevelTransfers],
        compute_cycles: float,
        stationary: int,
    ):
        """Prepare the schedule.

        Args:
            prices: memory with a bandwidth -> prices.
            levels: from `levels_of`.
            compute_cycles: of all steps together.
            stationary: position of the innermost loop that moves a tile of the innermost level.
        """
        self.levels, self.prices = levels, prices
        self.compute_cycles = compute_cycles / math.prod(trips for level in levels for trips in level.trips)
        self.fill_drain_cycles, self.stationary = architecture.compute.fill_drain_cycles, stationary
        self._tiles = [
            {kind: [tile for tile in level.tiles if tile.prefetch == kind] for kind in ("next", "none")}
            for level in levels
        ]
        self._found: dict[tuple[int, int, int], float] = {}
        self._moved: dict[tuple[int, str, int | None, int | None], float] = {}

    def cycles(self, number: int = 0, start: int = RUN, end: int = RUN) -> float:
        """Return the cycles of the steps of a level between two boundaries outside; the default is the whole run."""
        if number == len(self.levels):
            return self.compute_cycles + (self.fill_drain_cycles if start <= self.stationary else 0)
        key = number, start, end
        if key not in self._found:
            self._found[key] = self._sum(number, start, end)
        return self._found[key]

    def _transfer(self, number: int, kind: str, arriving: int | None, leaving: int | None) -> float:
        """Return `transfer_cycles` of the tiles of one kind at a level."""
        key = number, kind, arriving, leaving
        if key not in self._moved:
            tiles = self._tiles[number][kind]
            self._moved[key] = transfer_cycles(tiles, self.prices, arriving, leaving) if tiles else 0.0
        return self._moved[key]

    def _sum(self, number: int, start: int, end: int) -> float:
        level = self.levels[number]
        cycles = self._transfer(number, "next", start, None) + self._transfer(number, "next", None, end)
        for (before, after), count in steps_of(level, start, end).items():
            overlapped = self._transfer(
                number, "next", after if after >= level.first else None, before if before >= level.first else None
            )
            step = max(self.cycles(number + 1, before, after), overlapped)
            step += self._transfer(number, "none", before, None) + self._transfer(number, "none", None, after)
            cycles += count * max(step, level.step_cycles)
        return cycles


def schedule_cycles(
    problem: Problem,
    architecture: Architecture,
    prices: MappingOf[str, Price],
    mapping: Mapping,
    holding: Sequence[int],
    traffic: Traffic,
) -> float:
    """Return the cycles of the schedule of a legal mapping; see `levels_of`."""
    levels = levels_of(problem, architecture, mapping, holding, traffic)
    kept = mapping.entries[holding[-1]].keep or ()
    moved = {name for tensor in problem.tensors if tensor.name in kept for name in tensor.dimensions}
    loops = [loop for loop in mapping.loops() if not loop.spatial and loop.entry <= holding[-1]]
    stationary = max((at for at, loop in enumerate(loops) if loop.dimension in moved), default=RUN)
    compute_cycles = traffic.compute_cycles * slowdown(problem, architecture, mapping, holding, stationary)
    schedule = Schedule(architecture, prices, levels, compute_cycles, stationary)
    return max(schedule.cycles(), busy_cycles(levels, prices))


def busy_cycles(levels: Sequence[LevelTransfers], prices: MappingOf[str, Price]) -> float:
    """Return the cycles of the busiest memory: all transfers of the run, without latencies."""
    every = [part.times_over(part.times) for level in levels for tile in level.tiles for part in tile.chain()]
    return transfer_cycles(every, prices, RUN, RUN, latency=False)
