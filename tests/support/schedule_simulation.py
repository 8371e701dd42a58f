"""Events of a schedule, one by one: every step of every storage level, the tiles that change there, and the clock.

It is the reference for the closed form of `pipelined`, and shares no code with it. Only the words of whole runs come from
outside. Each step compares the positions of tiles with those of its neighbours, and a level's clock starts when its
outer level has its tiles.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.timing import Instruction

Position = tuple[int, ...]
Words = MappingOf[tuple[int, str], tuple[float, float, float]]
"""(entry, tensor) -> values read, filled and updated per instance, over the whole run."""


@dataclass
class Held:
    """A tensor at a storage entry, and its position at every step there."""

    tensor: str
    source: Memory
    target: Memory
    latency: int
    positions: list[Position]
    words: tuple[float, float, float]
    """Words of one transfer: read from the source, written to the target, written back to the source."""
    requests: tuple[float, float]
    """Cycles of the requests for a transfer, inwards and back."""
    again: bool
    """Whether every step loads it."""
    before: list[tuple[Held, float]] = field(default_factory=list)
    """Transfers whose words pass through the source, and the part of one that this transfer waits for; innermost first."""

    @property
    def kind(self) -> str:
        return self.target.timing.prefetch

    @property
    def transfers(self) -> int:
        return sum(self.arrives(step) for step in range(len(self.positions)))

    def arrives(self, step: int) -> bool:
        return step == 0 or self.again or self.positions[step] != self.positions[step - 1]

    def leaves(self, step: int) -> bool:
        return step == len(self.positions) - 1 or self.positions[step] != self.positions[step + 1]


class Simulation:
    """One mapping that divides its problem evenly."""

    def __init__(
        self,
        problem: Problem,
        architecture: Architecture,
        mapping: Mapping,
        words: Words,
        compute_cycles: float,
    ) -> None:
        self.architecture = architecture
        entries = mapping.entries
        self.storage = [number for number, entry in enumerate(entries) if entry.keep is not None]
        loops = [loop for loop in mapping.loops() if not loop.spatial]
        self.steps: list[list[Position]] = []
        self.held: list[list[Held]] = []
        self.nearest: list[list[Position]] = []
        self.least: list[int] = []
        self.moved: dict[str, list[float]] = {}
        passing = defaultdict[str, list[Held]](list)
        for storage in self.storage:
            outside = [loop for loop in loops if loop.entry <= storage]
            steps = list(product(*(range(loop.trips) for loop in outside)))
            held, nearest = [], []
            for name in entries[storage].keep or ():
                tensor = problem.tensor(name)
                positions = [
                    tuple(at for at, loop in zip(step, outside, strict=True) if loop.dimension in tensor.dimensions)
                    for step in steps
                ]
                nearest.append(positions)
                outer = [number for number in range(storage) if name in (entries[number].keep or ())]
                if outer:
                    mine = self._hold(problem, mapping, name, outer[-1], storage, positions, words)
                    if mine.kind == "through":
                        passing[name].append(mine)
                    else:
                        mine.before = [
                            (inner, inner.transfers / mine.transfers) for inner in reversed(passing.pop(name, []))
                        ]
                        held.append(mine)
            cluster = architecture.cluster(entries[storage].target)
            homes = [cluster.memory_for(problem.tensor(name)) for name in entries[storage].keep or ()]
            self.nearest = nearest
            innermost = storage == self.storage[-1]
            if homes and all(home and home.timing.prefetch == "through" for home in homes) and not innermost:
                assert not held
                continue
            self.steps.append(steps)
            self.held.append(held)
            self.least.append(max([0, *(home.timing.step_cycles for home in homes if home)]))
        for request in (demand for those in passing.values() for demand in those):  # no inner memory asks for them
            (read, filled, updated), asked, times = request.words, sum(request.requests), request.transfers
            read, asked = (read, asked) if read + filled > 0 else (0.0, request.requests[1])
            self._add(request.source.name, [times * read, times * updated, times * asked])
        self.compute_cycles = compute_cycles / len(self.steps[-1])
        if architecture.compute.instruction is not None:
            self.compute_cycles *= self._issued(problem, mapping, architecture.compute.instruction)

    def _issued(self, problem: Problem, mapping: Mapping, instruction: Instruction) -> float:
        """Return the cycles of one tile's instructions, executed one by one, per cycle of its iterations."""
        order, cycles = self.architecture.cluster_index, self.architecture.compute.cycles_per_operation
        outer = [cluster.name for cluster in self.architecture.clusters]
        outer = outer[: order[self.architecture.cluster_of(instruction.memory).name] + 1]
        last = [number for number in self.storage if mapping.entries[number].target in outer][-1]
        known = [name for name in instruction.dimensions if name in problem.dimension_names]
        left = 1
        for loop in mapping.loops():
            if loop.entry > last and not loop.spatial and known and loop.dimension == known[0]:
                left *= loop.trips
        needed, spent, took, issued = left * cycles, 0, 0, 0
        while left > 0:
            covered = min(left, instruction.iterations)
            took = max(covered * cycles, instruction.cycles)
            spent, left, issued = spent + took, left - covered, issued + instruction.issue_cycles
        kept = sum(self._is_new(step) for step in range(len(self.steps[-1])))
        total = math.prod(loop.trips for loop in mapping.loops() if not loop.spatial)
        times = total * cycles / needed / kept  # until the nearest tiles change
        return max(times * spent + max(0, instruction.load_cycles - took), times * issued) / (times * needed)

    def _hold(
        self,
        problem: Problem,
        mapping: Mapping,
        name: str,
        outer: int,
        inner: int,
        positions: list[Position],
        words: Words,
    ) -> Held:
        tensor, order = problem.tensor(name), self.architecture.cluster_index
        near, far = (order[mapping.entries[number].target] for number in (outer, inner))
        source, target = (self.architecture.clusters[at].memory_for(tensor) for at in (near, far))
        assert source is not None and target is not None
        latency = source.timing.latency_cycles
        for cluster in self.architecture.clusters[near:far]:
            latency += cluster.fanout.network.latency_cycles
        transfers = 1 + sum(here != there for here, there in zip(positions, positions[1:], strict=False))
        burst = source.timing.burst_words

        def bursts(values: float) -> float:
            moved = values * source.words_of(tensor)
            return moved if burst == 1 else burst * math.ceil(round(moved / burst, 6))

        read, filled, updated = (
            count / transfers for count in (words[outer, name][0], words[inner, name][1], words[outer, name][2])
        )
        again = target.timing.reload and tensor.role != "output"
        if again and filled:
            sizes, whole = mapping.entries[inner].temporal_tile_sizes, 1
            for rank in tensor.projection:
                whole *= max(sum(step * (sizes[at] - 1) for at, step in rank.terms.items()), 0) + 1
            read, filled = read * whole / filled, whole
        stored = 0.0 if target.timing.prefetch == "through" else filled
        moved = bursts(read), stored * target.words_of(tensor), bursts(updated)
        runs = [self._requests(mapping, tensor, (outer, inner), *moving) for moving in ((read, False), (updated, True))]
        return Held(name, source, target, latency, positions, moved, (runs[0], runs[1]), again)

    def _requests(self, mapping: Mapping, tensor: Tensor, ends: tuple[int, int], values: float, back: bool) -> float:
        """Return the cycles of the requests for so many values of a tensor between two storage entries."""
        outer, inner = ends
        source, target = (self.architecture.cluster(mapping.entries[end].target).memory_for(tensor) for end in ends)
        assert source is not None and target is not None
        if target.timing.requests is None:
            run = 1
            for rank in tensor.projection:
                run *= 1 + sum(
                    step * (mapping.entries[inner].temporal_tile_sizes[at] - 1) for at, step in rank.terms.items()
                )
            return values / run * self._opened(source, run * source.words_of(tensor))
        run = 1
        for name in target.timing.requests.along:
            if name in tensor.dimensions:
                run = mapping.entries[inner].temporal_tile_sizes[name]
                for entry in range(outer, inner):
                    run *= mapping.factors()[entry][1][name]
                break
        pieces, words = 0, run * source.words_of(tensor)
        while words > 0:
            pieces, words = pieces + 1, words - target.timing.requests.words
        opened = self._opened(source, run * source.words_of(tensor))
        asks = target.timing.requests
        cycles = asks.return_cycles if back and asks.return_cycles is not None else asks.cycles
        return values / run * (pieces * cycles + opened)

    def _opened(self, source: Memory, words: float) -> float:
        """Return the cycles that opening the rows of a run adds to moving its words."""
        rows, rate = (
            source.timing.rows,
            source.shared_bandwidth_words_per_cycle or source.read_bandwidth_words_per_cycle,
        )
        if rows is None:
            return 0.0
        moved, opening, left = words / rate if rate else 0.0, 0, words
        while left > 0:
            opening, left = opening + rows.miss_cycles, left - rows.words
        return max(moved, (moved + opening) / rows.banks) - moved

    def run(self) -> float:
        """Return the cycles of the run."""
        end = self._block(0, range(len(self.steps[0])), 0.0)
        return max([end, *(self._busy(name, *amounts) for name, amounts in self.moved.items())])

    def _busy(self, name: str, read: float, written: float, asked: float) -> float:
        """Return the cycles of a memory that moves so many words."""
        memory = next(part for part in self.architecture.memories if part.name == name)
        rates = (
            (read, memory.read_bandwidth_words_per_cycle),
            (written, memory.write_bandwidth_words_per_cycle),
            (read + written, memory.shared_bandwidth_words_per_cycle),
        )
        return asked + max(amount / rate if rate else 0.0 for amount, rate in rates)

    def _block(self, level: int, steps: range, now: float) -> float:
        """Return the time at which a block of steps ends that starts now."""
        if level == len(self.steps):
            return self._compute(steps.start, now)
        count = len(self.steps[level + 1]) // len(self.steps[level]) if level + 1 < len(self.steps) else 1
        now += self._transfer(level, "next", steps[0], None)
        for step in steps:
            least = now + self.least[level]
            now += self._transfer(level, "none", step, None)
            worked = self._block(level + 1, range(step * count, (step + 1) * count), now)
            ahead = step + 1 if step != steps[-1] else None
            last = step - 1 if step != steps[0] else None
            now = max(worked, now + self._transfer(level, "next", ahead, last))
            now = max(least, now + self._transfer(level, "none", None, step))
            self._transfer(level, "any", step, step)  # only keeps the memories busy
        now += self._transfer(level, "next", None, steps[-1])
        return now

    def _compute(self, step: int, now: float) -> float:
        return now + self.compute_cycles + (self.architecture.compute.fill_drain_cycles if self._is_new(step) else 0)

    def _is_new(self, step: int) -> bool:
        return step == 0 or any(positions[step] != positions[step - 1] for positions in self.nearest)

    def _transfer(self, level: int, kind: str, arriving: int | None, leaving: int | None) -> float:
        """Return the cycles of moving the tiles that arrive for one step and those that leave after another."""
        mine = [(held, held, 1.0) for held in self.held[level] if held.kind == kind]
        mine += [(held, other, part) for held, _, _ in mine for other, part in held.before]
        return sum(
            self._move([one for one in mine if place(one) == at], arriving, leaving)
            for at in range(1 + max((place(one) for one in mine), default=0))
        )

    def _move(self, those: list[tuple[Held, Held, float]], arriving: int | None, leaving: int | None) -> float:
        """Return the cycles of transfers at the same time: of a tile that changes, or a part of what passes on to it."""
        reads, writes, asked = (defaultdict[str, float](float) for _ in range(3))
        busy, latency = 0.0, 0.0
        for tile, held, part in those:
            read, filled, updated = (part * amount for amount in held.words)
            if arriving is not None and tile.arrives(arriving) and read + filled > 0:
                reads[held.source.name] += read
                asked[held.source.name] += part * held.requests[0]
                writes[held.target.name] += filled
                latency = max(latency, part * held.latency)
            if leaving is not None and tile.leaves(leaving):
                writes[held.source.name] += updated
                asked[held.source.name] += part * held.requests[1]
        for name in {memory.name for _, held, _ in those for memory in (held.source, held.target)}:
            amounts = reads[name], writes[name], asked[name]
            busy = max(busy, self._busy(name, *amounts))
            self._add(name, amounts)
        return busy + latency

    def _add(self, name: str, amounts: Sequence[float]) -> None:
        """Count words and requests of a memory."""
        self.moved[name] = [sum(pair) for pair in zip(self.moved.get(name, [0.0] * 3), amounts, strict=True)]


def place(one: tuple[Held, Held, float]) -> int:
    """Return how many transfers come between a tile and the words that pass on to it."""
    tile, held, _ = one
    return next((at for at, (other, _) in enumerate(tile.before, 1) if other is held), 0)
