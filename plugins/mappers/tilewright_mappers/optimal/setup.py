"""Arrays of one task: ports, layout of states, choices per slot, and the context of each boundary."""

from __future__ import annotations

import copy
import itertools
import math
from functools import cache

import numpy as np

from tilewright.compiled import for_kernel
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Bools, Floats, Ints
from tilewright.mapspace.limits import Limits
from tilewright.plugin import Objective, Relaxation
from tilewright_mappers.optimal.kernel.state import EACH, FIRST, USED
from tilewright_mappers.optimal.kernel.tables import (
    ALWAYS,
    MAYBE,
    NEVER,
    Ahead,
    Costing,
    Keeping,
    Layout,
    Level,
)
from tilewright_mappers.optimal.outer import KEPT, LOOPS, UNROLLED, Outer
from tilewright_mappers.optimal.shape import ints, shape_of


class Setup:
    """Everything about a task that stays constant during a search."""

    def __init__(
        self, space: Limits, relaxation: Relaxation, objective: Objective, most_cycles: float = math.inf
    ) -> None:
        self.space, self.relaxation = space, relaxation
        self.shape = shape_of(space.problem, space.factors == "ragged")
        self.tensors, self.dims = len(self.shape.output), len(self.shape.sizes)
        self.levels = self._levels()
        self.most_slots = max(1, *(len(spatial) for _, spatial in self.levels))
        memories = space.architecture.memories
        self.slices = space.tile_rules.slices
        self.words = self.slices / np.array([[memory.slices_per_word] for memory in memories])
        """[M, T]: words of memory M per value of tensor T."""
        limits = (relaxation.read_bandwidth, relaxation.write_bandwidth)
        self.ports = [
            (m, way) for m in range(len(relaxation.gate)) for way in (0, 1) if limits[way][m] < self._most_words(m, way)
        ]
        leaks = bool(relaxation.leakage_pj.any())
        self.energy = objective != "cycles"
        cycles = objective != "energy" or leaks or most_cycles < math.inf
        if not cycles:
            self.ports = []
        kept = np.where(np.logical_or(*space.keeps), relaxation.memory, -1)
        self.through = [[p for p, (m, _) in enumerate(self.ports) if m in kept[:, t]] for t in range(self.tensors)]
        """Per tensor, indices of the ports that its words may use."""
        self.costing = Costing(
            energy=self.energy,
            cycles=cycles,
            product=objective == "edp",
            dominate=relaxation.exact,
            whole=relaxation.whole_cycles,
            links=relaxation.neighbours,
            outputs=int(self.shape.output.sum()),
            margin=0.0,
            compute_pj=float(relaxation.compute_pj),
            most_cycles=float(most_cycles),
            bandwidth=for_kernel(np.array([limits[way][m] for m, way in self.ports], np.float64)),
        )
        self.layout = self._layout()
        slots = space.slots
        self.most = ints([slot.most or 1 if slot.spatial else 1 for slot in slots])
        self.trips = for_kernel(
            np.array(
                [
                    [
                        (slot.lowest[d] <= row) & (row <= slot.highest[d]) & (row > 0)
                        for d, row in enumerate(self.shape.trip)
                    ]
                    for slot in slots
                ],
                np.bool_,
            )
        )
        alone = np.array([slot.spatial and slot.most == 1 for slot in slots])
        self.able = for_kernel(np.asarray(self.trips[:, :, 1:].any(axis=2) & ~alone[:, None]))
        self.rounded = self._is_rounded()
        self.tiles = self._tiles()
        always, free = space.keeps
        self.always, self.free = always, free
        self.outer = Outer(self)
        self.leakage = self._leakage()
        """[E, M]: pJ per cycle of a memory, at the innermost entry that may keep a tensor in it."""
        # all passes of a search use the same context
        self.level, self.keeping, self.ahead = cache(self._level), cache(self._keeping), cache(self._ahead)

    @property
    def counts_in_part(self) -> bool:
        """Whether some tensor is undercounted in every mapping."""
        return bool((self.shape.odd | self.shape.blind).any())

    def without_dominance(self) -> Setup:
        """Return a copy whose states never dominate each other."""
        return self._with(self.costing._replace(dominate=False))

    def against_rounding(self, limit: float) -> Setup:
        """Return a copy whose dominance test tolerates one cycle of rounding (Lemma 4).

        Args:
            limit: the cutoff; mappings that cost more need no proof.
        """
        if self.rounded:
            return self.without_dominance()
        relaxation, shape = self.relaxation, self.shape
        first, words = relaxation.memory[0], shape.least * self.words[relaxation.memory[0], range(self.tensors)]
        limits = np.where(shape.output, relaxation.write_bandwidth[first], relaxation.read_bandwidth[first])
        units = float(math.prod(int(self.most[s]) for s in self.space.spatial_slots))
        operations = float(math.prod(self.space.problem.sizes))
        inner = [min(np.flatnonzero(self.always[1:, t]) + 1, default=len(self.always)) for t in range(self.tensors)]
        delivered = np.array([self._delivers(t, 0, int(entry)) for t, entry in enumerate(inner)])
        words = np.where(delivered & ~shape.odd, words, 0.0)
        cycles = max(operations * relaxation.cycles_per_operation / units, float((words / limits).max()))
        margin = 3.0 * limit / cycles**2 if self.costing.product else math.inf
        return self._with(self.costing._replace(margin=margin))

    def _with(self, costing: Costing) -> Setup:
        result = copy.copy(self)
        result.costing = costing
        return result

    def _levels(self) -> list[tuple[list[int], list[int]]]:
        """Return (temporal, spatial) slots per level, outermost first.

        Raises:
            NotConformableError: temporal loops are inside an unrolling without a memory between.
        """
        levels: list[tuple[list[int], list[int]]] = []
        place = {(slot.entry, slot.spatial): number for number, slot in enumerate(self.space.slots)}
        for index, entry in enumerate(self.space.skeleton.entries):
            if (index, False) in place:
                temporal, spatial = levels[-1]
                if spatial or temporal:
                    message = "loops in time stand inside of an unrolling, without a memory between; use quickflow"
                    raise NotConformableError("mapper optimal", (Reason(code="skeleton", where="", message=message),))
                temporal.append(place[index, False])
            if entry.holds:
                levels.append(([], []))
            if (index, True) in place:
                levels[-1][1].append(place[index, True])
        return levels

    def _most_words(self, memory: int, way: int) -> float:
        """Return the maximum words per cycle through a port; inf if a fanout is inside its memory.

        Without a fanout a tile has at most one value per iteration, apart from holes. So each entry
        moves at most one value of each tensor per cycle. Outputs are written from both sides.
        """
        kept = self.relaxation.memory == memory
        entries = np.flatnonzero(kept.any(axis=1))
        if len(entries) == 0 or any(slot.spatial and slot.entry >= entries[0] for slot in self.space.slots):
            return math.inf
        words = 0.0
        for t in np.flatnonzero(kept.any(axis=0)):
            ranks = self.space.problem.tensors[t].projection
            holes = math.prod(max(rank.terms.values()) for rank in ranks)
            values = holes * (2 if way and self.shape.output[t] else 1) * len(np.flatnonzero(kept[:, t]))
            words += values * self.words[memory, t]
        return words / self.relaxation.cycles_per_operation

    def _is_rounded(self) -> bool:
        """Return whether first reads of an output are rounded per sub-cluster (Lemma 4).

        That happens if windows, or dimensions with holes, may be unrolled.
        """
        problem = self.space.problem
        places = [place.terms for t in np.flatnonzero(self.shape.vague) for place in problem.tensors[t].projection]
        uneven = [d for terms in places if len(terms) > 1 or max(terms.values()) > 1 for d in terms]
        columns = [problem.dimension_names.index(d) for d in uneven]
        return bool(self.able[np.ix_(self.space.spatial_slots, columns)].any())

    def _layout(self) -> Layout:
        tensors, dims, ports = self.tensors, self.dims, len(self.ports)
        ranks = int(self.shape.rank.max(initial=-1)) + 1
        usual = USED + self.most_slots
        conf = usual + 3 * tensors
        keys = conf + self.most_slots * dims
        unrolled = keys + 2
        left = unrolled + (tensors + 1 if self.shape.ragged else 0)
        side = FIRST + EACH * tensors
        last = side + ranks
        port = last + (dims + 1 if self.shape.ragged else 0)
        used = [len(through) for through in self.through]
        pending = port + ports + np.cumsum([0, *used])
        credit = pending[-1] + np.cumsum([0, *np.where(self.shape.output, used, 0)])
        flows = sum(self.through, []), sum((self.through[t] for t in np.flatnonzero(self.shape.output)), [])
        return Layout(
            used=USED, usual=usual, inner=usual + tensors, window=usual + 2 * tensors, conf=conf, keys=keys,
            trace=keys, flag=keys + 1, unrolled=unrolled, left=left, tile=left + dims, integers=left + 2 * dims,
            tensors=FIRST, side=side, last=last, port=port, pending=ints(pending), credit=ints(credit),
            through=ints([*[-1] * port, *range(ports), *flows[0], *flows[1]]), numbers=int(credit[-1]),
        )  # fmt: skip

    def _tiles(self) -> Bools:
        """Return [S, D, K]: whether the slots outside slot S can iterate that many tiles."""
        shape, slots = self.shape, len(self.space.slots)
        result = np.zeros((slots, self.dims, shape.left.shape[1]), np.bool_)
        for d in range(self.dims):
            lefts, trips = shape.left[d][shape.left[d] > 0], shape.trip[d][shape.trip[d] > 0]
            able = lefts == 1
            for s in range(slots):
                result[s, d, : len(able)] = able
                before = np.zeros_like(able)
                for k, left in enumerate(lefts):
                    taken = trips[self.trips[s, d, : len(trips)] & (trips <= left)]
                    if not shape.ragged:
                        taken = taken[left % taken == 0]
                    before[k] = able[np.searchsorted(-lefts, left // -taken)].any()
                able = before
        return for_kernel(result)

    # -- stages ----------------------------------------------------------------------------------------------

    def _level(self, number: int) -> Level:
        spatial = self.levels[number][1]
        clusters = [
            self.space.architecture.cluster(self.space.skeleton.entries[self.space.slots[s].entry].target)
            for s in spatial
        ]
        vertical = [cluster.fanout.axis == "Y" for cluster in clusters]
        pad = self.most_slots - len(spatial)
        kept, fill_pj = self._inside(number)
        across = [cluster.fanout.size for cluster, down in zip(clusters, vertical, strict=True) if not down]
        return Level(
            slot=ints(spatial + [-1] * pad),
            vertical=for_kernel(np.array(vertical + [False] * pad, np.bool_)),
            least=ints([self.space.slots[s].least for s in spatial] + [1] * pad),
            width=math.prod(across),
            kept=ints(kept),
            fill_pj=for_kernel(fill_pj),
            alone=not any(self.able[s].any() for s in self.space.spatial_slots if s < min(spatial, default=0)),
        )

    def _inside(self, number: int) -> tuple[Ints, Floats]:
        """Return whether the entry directly inside a level keeps tensors, and pJ per value written.

        Compute units keep nothing, but may share words (`MAYBE`).
        """
        entries = [self.space.slots[s].entry for s in self.levels[number][1]]
        holds = [
            e for e, entry in enumerate(self.space.skeleton.entries) if entry.holds and e > min(entries, default=e)
        ]
        if not holds:
            return np.full(self.tensors, MAYBE), np.zeros(self.tensors)
        always, free, memory = self.always[holds[0]], self.free[holds[0]], self.relaxation.memory[holds[0]]
        cost = self.relaxation.fill_pj[memory] * self.words[memory, range(self.tensors)]
        return np.where(always, ALWAYS, np.where(free, MAYBE, NEVER)), np.where(always | free, cost, 0.0)

    def shared(self, number: int) -> Bools:
        rows = np.ones((self.most_slots, self.tensors), np.bool_)
        for k, s in enumerate(self.levels[number][1]):
            rows[k] = self.relaxation.shared[self.space.slots[s].entry]
        return for_kernel(rows)

    def _keeping(self, entry: int) -> Keeping:
        relaxation, shape = self.relaxation, self.shape
        memory = relaxation.memory[entry]
        here = np.maximum(memory, 0)
        words, slices = self.words[here, range(self.tensors)], self.slices[here, range(self.tensors)]

        def port(way: int) -> Ints:
            some = [[self.ports[p] for p in through] for through in self.through]
            return ints([row.index((m, way)) if (m, way) in row else -1 for row, m in zip(some, memory, strict=True)])

        usable = [memory.usable_slices for memory in self.space.architecture.memories]
        return Keeping(
            outermost=entry == 0,
            read_pj=for_kernel(relaxation.read_pj[here] * words),
            fill_pj=for_kernel(relaxation.fill_pj[here] * words),
            update_pj=for_kernel(np.where(shape.output, relaxation.update_pj[here] * words, 0.0)),
            reads=port(0),
            writes=port(1),
            leakage=for_kernel(self.leakage[entry]),
            memory=ints(memory),
            words=for_kernel(words),
            slices=for_kernel(slices),
            usable=for_kernel(np.array(usable, np.float64)),
        )

    def _leakage(self) -> Floats:
        """Return [E, M]: pJ per cycle, at the innermost entry that may use a memory.

        Several entries of a cluster may use the same memory, which leaks once.
        """
        found = np.zeros((len(self.always), len(self.relaxation.leakage_pj)))
        for m in range(found.shape[1]):
            users = np.flatnonzero(((self.always | self.free) & (self.relaxation.memory == m)).any(axis=1))
            found[users[-1:], m] = self.relaxation.leakage_pj[self.relaxation.gate == m].sum()
        return found

    def _delivers(self, t: int, outer: int, inner: int) -> bool:
        """Return whether an entry delivers every distinct word of a tensor to another one (Lemma 10).

        Both entries keep the tensor. The exception is a window unrolled between them with link
        transfers.
        """
        if self.shape.ragged and self.costing.links and inner == len(self.always):
            return False
        between = [s for s in self.space.spatial_slots if outer <= self.space.slots[s].entry < inner]
        return not any(self._passes_windows(t, s) for s in between)

    def _passes_windows(self, t: int, slot: int) -> bool:
        """Return whether a window may be unrolled in a slot, so that neighbours may forward its words."""
        return self.costing.links and bool((self.able[slot] & (self.shape.rank[t] >= 0)).any())

    def ahead_of_fanout(self, number: int) -> Ahead:
        """Return the context outside the spatial slots of a level."""
        first, last = (self.space.slots[self.levels[number][1][k]].entry for k in (0, -1))
        return self.ahead(last + 1, self.levels[number][1][0], None, (first, KEPT))

    def _ahead(self, entry: int, slot: int, level: int | None = None, place: tuple[int, int] | None = None) -> Ahead:
        """Return the context outside a boundary: entries before `entry` and slots before `slot`.

        Args:
            entry: 0 at the end of the search, where nothing is left outside.
            slot: the slots before this one are outside.
            level: the level whose spatial slots are open, if any.
            place: the key in the tables of outer traffic, if not the default.
        """
        place = place or ((entry, LOOPS) if level is None else (entry - 1, UNROLLED))
        relaxation, space, shape = self.relaxation, self.space, self.shape
        slots = np.full(len(space.slots), -2, np.int64)
        slots[[s for s in space.spatial_slots if s < slot]] = -1
        if level is not None:
            slots[self.levels[level][1]] = range(len(self.levels[level][1]))
        near = np.zeros((self.tensors, len(slots), self.dims), np.bool_)
        passes, apart = np.zeros(self.tensors, np.bool_), np.zeros((self.tensors, len(slots)), np.bool_)
        for number, (_, spatial) in enumerate(self.levels):
            if spatial and slots[spatial[0]] > -2:
                never = self._inside(number)[0] == NEVER
                apart[:, spatial[0]] = never if self.costing.links else slots[spatial[0]] == -1
                for t in range(self.tensors):
                    passes[t] |= not never[t] and any(self._passes_windows(t, s) for s in spatial)
        read, update, rest = np.zeros((3, self.tensors))
        keeper, slices, usable = np.full(self.tensors, -1), np.zeros(self.tensors), np.full(self.tensors, np.inf)
        last, between, cycles = *np.zeros((2, self.tensors), np.bool_), np.zeros(self.tensors)
        beyond = np.zeros((self.tensors, len(slots)), np.bool_)
        distinct, compulsory = np.zeros((2, self.tensors))
        read_pj, fill_pj, update_pj = (
            each[:, None] * self.words for each in (relaxation.read_pj, relaxation.fill_pj, relaxation.update_pj)
        )
        for t in range(self.tensors if entry else 0):
            sure = max(e for e in range(entry) if self.always[e, t])
            maybe = [e for e in range(sure, entry) if self.always[e, t] or self.free[e, t]]
            read[t] = min(read_pj[relaxation.memory[e, t], t] for e in maybe)
            update[t] = min(update_pj[relaxation.memory[e, t], t] for e in maybe)
            last[t] = maybe == [0]
            if maybe == [sure]:
                m = relaxation.memory[sure, t]
                limits = relaxation.write_bandwidth if shape.output[t] else relaxation.read_bandwidth
                cycles[t] = self.words[m, t] / limits[m] if self.costing.cycles else 0.0
            beyond[t] = [slots[s] > -2 and space.slots[s].entry < sure for s in range(len(slots))]
            m, between[t] = relaxation.memory[sure, t], sure > 0
            keeper[t] = sure * len(self.slices) + m
            slices[t], usable[t] = self.slices[m, t], space.architecture.memories[m].usable_slices
            for s in space.spatial_slots:
                if slots[s] > -2 and space.slots[s].entry >= sure:
                    window = shape.rank[t] >= 0
                    near[t, s] = (~shape.moves[t] | window) & relaxation.shared[space.slots[s].entry, t]
                    near[t, s] |= window & self.costing.links
            if shape.odd[t]:
                continue
            inside = min((e for e in range(entry, len(self.always)) if self.always[e, t]), default=len(self.always))
            distinct[t] = shape.least[t] if self._delivers(t, sure, inside) else 0.0
            kept = [e for e in range(sure + 1) if self.always[e, t]]
            compulsory[t] = len(kept) > 1 and self._delivers(t, *kept[:2])
            for outer, inner in itertools.pairwise(kept):
                given, taken = relaxation.memory[[outer, inner], t]
                each = read_pj[given, t] + fill_pj[taken, t]
                if self._delivers(t, outer, inner):
                    rest[t] += update_pj[given, t] if shape.output[t] else each
        for t in range(self.tensors):
            if shape.whole[keeper == keeper[t]] @ slices[keeper == keeper[t]] <= usable[t]:
                keeper[keeper == keeper[t]] = -1  # the whole tensors fit
        table = self.outer.tables.get(place)
        counted, enters = np.zeros((2, self.tensors))
        for t, link in self.outer.each() if table else ():
            if link[1] < entry:
                counted[t] += self.outer.once_pj(t, link)
            elif link[0] < entry:
                enters[t] = self.outer.enters_pj(t, link)
        return Ahead(
            slots=for_kernel(slots),
            most=self.most,
            able=self.able,
            near=for_kernel(near),
            passes=for_kernel(passes),
            apart=for_kernel(apart),
            read_pj=for_kernel(read),
            update_pj=for_kernel(update),
            rest_pj=for_kernel(rest),
            distinct=for_kernel(distinct),
            compulsory=for_kernel(compulsory),
            last=for_kernel(last),
            between=for_kernel(between),
            cycles=for_kernel(cycles),
            beyond=for_kernel(beyond),
            memory=ints(relaxation.memory[0]),
            words=for_kernel(self.words[relaxation.memory[0], range(self.tensors)] * (entry > 0)),
            read_bandwidth=for_kernel(relaxation.read_bandwidth),
            write_bandwidth=for_kernel(relaxation.write_bandwidth),
            keeper=ints(keeper),
            slices=for_kernel(slices),
            usable=for_kernel(usable),
            outer=for_kernel(table.energy if table else np.zeros((0, 0, 0))),
            share=for_kernel(table.share if table else np.ones(1)),
            across=for_kernel(self.outer.across(table, apart, slots) if table else np.ones(1)),
            direct=table.direct if table else -1,
            split=for_kernel(np.array([s in self.outer.split for s in range(len(space.slots))])),
            row=ints(table.row if table else np.zeros(self.tensors)),
            counted=for_kernel(counted),
            enters_pj=for_kernel(enters),
        )
