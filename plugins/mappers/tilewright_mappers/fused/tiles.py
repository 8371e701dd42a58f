"""Search of groups on any hierarchy: loops that all layers of an interval share, and branches that the host maps.

An interval of layers has one nest of shared loops, from the outermost memory to the home. Each visit of its steps runs
all layers, in sequence, on the tiles that the loops leave. The last loop may step rows that windows read: then layers
start one after the other, and the home keeps the rows that are read again. A *choice* has the tile of each shared axis,
and the order of the loops. Of each tensor that a layer makes for others, it has whether the tile is at home between them. Of each other
operand, it has the place of a tile at home, outside some of the loops, or none.

The host's mapper of layers gives the costs of a visit (`BranchMapper`). So energy and cycles of a choice are sums over its
layers, plus the words that fill the kept tiles. Choices are taken in the order of lower bounds, and a branch is mapped
only if its choice may be the best. docs/fusion_proof.md ("Any hierarchy") states the space and the lemmas.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.interrupts import mark_result_found
from tilewright.mapspace.sliding import alive_rows, words_of_boxes
from tilewright.plugin.groupmapper import BranchCase, BranchCost, BranchMapper
from tilewright.plugin.result import PROOF_TOLERANCE
from tilewright.prices import port_limits, prices_of, rounding_difference, tensor_pj, transfer_cycles
from tilewright.reports import Limit
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright.schema.problem import Problem, Tensor
from tilewright_mappers.fused.limits import Limits, OutOfTime
from tilewright_mappers.fused.pacing import Pacing, pacing
from tilewright_mappers.fused.parts import subsets
from tilewright_mappers.fused.solution import Axis, Shared, ranked

BATCH = 8
"""Branches that are mapped at once."""
MAX_CHOICES = 200_000
"""Choices of one interval that are listed. Intervals with more are not fused, and have no bound of their own."""
TOLERANCE = 1e-9
"""Relative distance of costs that count as equal."""

Pair = tuple[int, int]
"""Numbers of a layer, and of its tensor."""
Key = tuple[str, str, frozenset[str], int]
"""Contents of a tile and of its layer, the tensors at home, and bits that others take."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A tile of an operand that the home keeps outside some of the shared loops.

    `users`: layer -> its number of the tensor. `depth`: shared loops outside the tile. `moved`: words that fill it in all steps.
    """

    users: tuple[Pair, ...]
    depth: int
    moved: int
    bits: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to fuse the layers of an interval.

    `loops`: axis and tile, outermost first. `homes`: positions among the shared tensors. `cases`: the branch of each layer,
    and `visits`: how often it runs; a shorter visit counts as its share. `starts`: row of the last axis at which each layer
    starts. `fills`: ports that fill kept tiles, for each layer.
    """

    loops: tuple[tuple[Axis, int], ...]
    homes: tuple[int, ...]
    kept: tuple[Kept, ...]
    cases: tuple[BranchCase, ...]
    visits: tuple[float, ...]
    energy_pj: float
    starts: tuple[int, ...]
    fills: tuple[tuple[Limit, ...], ...]

    def cycles(self, at: int, cost: BranchCost) -> float:
        """Return the cycles of all visits of a layer, whose tiles are filled meanwhile."""
        visits = self.visits[at]
        busy = {(limit.name, limit.action): limit.words or 0 for limit in cost.limits}
        filling = (
            float(
                transfer_cycles(
                    fill.words_per_cycle, (fill.words or 0) + visits * busy.get((fill.name, fill.action), 0)
                )
            )
            for fill in self.fills[at]
            if fill.words_per_cycle is not None
        )
        return max([visits * cost.cycles, *filling])


@dataclass(frozen=True, slots=True)
class Costs:
    """Energy and cycles of the best mapping; lower bounds on both; and the least of both that searches have found."""

    energy_pj: float
    cycles: float
    least_pj: float = 0.0
    least_cycles: float = 0.0
    found_pj: float = 0.0
    found_cycles: float = 0.0


@dataclass(frozen=True, slots=True)
class Fused:
    """The best known part of the tree for an interval of layers, and a lower bound on the objective of all of them."""

    first: int
    energy_pj: float
    cycles: float
    bound: float
    choice: Choice | None
    entries: tuple[tuple[dict[str, Any], ...], ...]
    whole: frozenset[int] = frozenset()
    """Results that are whole at home meanwhile, before or after, too."""


class Branches:
    """Costs of branches, mapped when they are asked for, and bounds on those that are not.

    **Lemma (tiles).** Let no rule restrict the loops outside the home, and let a small tile be inside a large one. Let the
    small one have no more room, and the same tensors at home. Its visits, repeated over the large tile, cost no less than
    a visit of the large tile. The loops between both are loops of one of its mappings. Both need equal sizes of the
    dimensions that the result lacks, since a later visit reads the sums of an earlier one.

    Args:
        architecture: the machine, whose costs are rounded (`visit_rounding`).
    """

    def __init__(
        self, mapper: BranchMapper, architecture: Architecture, home: Memory, objective: Objective, limits: Limits
    ) -> None:
        self.mapper, self.room, self.objective, self.limits = mapper, home.usable_bits, objective, limits
        self.is_free = mapper.is_free
        self.architecture = architecture
        self.is_cut = False
        """Whether the user has interrupted."""
        self.has_gaps = False
        """Whether a search has found no mapping that costs as little as its bound."""
        self._known: dict[Key, tuple[Sequence[BranchCost], Costs]] = {}
        self._lost: dict[tuple[Tensor, ...], tuple[float, float]] = {}
        self._solved: dict[tuple[str, tuple[int, ...]], list[tuple[BranchCase, Costs]]] = {}
        self._home_is_least = mapper.home_is_least(objective)
        powers = objective.powers
        self._objectives = (objective,) if not all(powers) else (objective, ENERGY, CYCLES)

    def _key(self, case: BranchCase) -> Key:
        layer = case.layer or case.problem
        return case.problem.content_key, layer.content_key, case.at_home, case.reserved_bits

    def is_known(self, case: BranchCase) -> bool:
        """Return whether the branch was mapped, or fits as it was mapped with all room."""
        return self._known_of(case) is not None

    def next_of(self, case: BranchCase) -> BranchCase:
        """Return the branch to map next for an unknown one: first with all room, whose costs bound it."""
        roomy = replace(case, reserved_bits=0)
        return case if self._key(roomy) in self._known else roomy

    def _known_of(self, case: BranchCase) -> tuple[Sequence[BranchCost], Costs] | None:
        exact = self._known.get(self._key(case))
        roomy = self._known.get(self._key(replace(case, reserved_bits=0))) if exact is None else None
        if roomy is not None and all(cost.used_bits + case.reserved_bits <= self.room for cost in roomy[0]):
            return roomy
        return exact

    def ask(self, cases: Sequence[BranchCase]) -> None:
        """Map branches that are not known.

        Raises:
            OutOfTime: The time is over, or the user has interrupted.
        """
        todo = list({self._key(case): case for case in cases if self._key(case) not in self._known}.values())
        for start in range(0, len(todo), BATCH):
            self.limits.check()
            some = todo[start : start + BATCH]
            columns = [self.mapper.branches(some, objective) for objective in self._objectives]
            for case, costs in zip(some, zip(*columns, strict=False), strict=False):
                one = self._counted(costs)
                self._known[self._key(case)] = costs, one
                self._solved.setdefault(self._family(case), []).append((case, one))
                self.has_gaps |= (one.least_pj, one.least_cycles) != (one.found_pj, one.found_cycles)
            if any(len(column) < len(some) for column in columns):
                mark_result_found()
                self.is_cut = True
                raise OutOfTime

    def ask_largest(self, cases: Sequence[BranchCase]) -> None:
        """Map the branches that bound others of the same layer and sizes, because they have more tensors at home.

        Raises:
            OutOfTime: The time is over, or the user has interrupted.
        """
        unique = {self._key(case): case for case in cases}
        alike = dict[tuple[str, str], list[frozenset[str]]]()
        for problem, layer, at_home, _ in unique:
            alike.setdefault((problem, layer), []).append(at_home)
        self.ask(
            [
                case
                for (problem, layer, at_home, _), case in unique.items()
                if not self._home_is_least or not any(other > at_home for other in alike[problem, layer])
            ]
        )

    def best(self, case: BranchCase) -> BranchCost:
        """Return the mapping of a known branch."""
        known = self._known_of(case)
        assert known is not None, "the caller has asked for it"
        return known[0][0]

    def costs(self, case: BranchCase) -> Costs:
        """Return the costs of one visit of a known branch."""
        known = self._known_of(case)
        assert known is not None, "the caller has asked for it"
        return known[1]

    def _counted(self, by_objective: Sequence[BranchCost]) -> Costs:
        """Return the costs of a visit from its best mapping by each objective."""
        best, *others = by_objective
        energy, _ = self.objective.powers
        by_energy, by_cycles = others or (best if energy else None, None if energy else best)
        figures = list[float]()
        for one, metric in ((by_energy, "energy_pj"), (by_cycles, "cycles")):
            least, cost = (0.0, 0.0) if one is None else (one.bound, getattr(one, metric))
            is_near = not math.isfinite(cost) or least >= cost * (1 - PROOF_TOLERANCE)
            figures += [least, least if is_near else cost]
        least_pj, found_pj, least_cycles, found_cycles = figures
        return Costs(best.energy_pj, best.cycles, least_pj, least_cycles, found_pj, found_cycles)

    def least(
        self, case: BranchCase, visits: float = 1, ragged: bool = False, estimated: bool = False
    ) -> tuple[float, float]:
        """Return lower bounds on energy and cycles of all visits, known or not.

        Args:
            ragged: the tile need not divide those that are known, so the results are estimates.
            estimated: return estimates, as if no mapping cost less than those that searches have found.
        """
        tensors = case.problem.tensors
        if tensors not in self._lost:
            self._lost[tensors] = visit_rounding(self.architecture, case.problem)
        lost_pj, lost_cycles = self._lost[tensors]

        def repeated(costs: Costs, times: float) -> tuple[float, float]:
            more = max(0.0, times - 1)
            pair = (costs.found_pj, costs.found_cycles) if estimated else (costs.least_pj, costs.least_cycles)
            return times * pair[0] - more * lost_pj, times * pair[1] - more * lost_cycles

        if self.is_known(case):
            energy, cycles = repeated(self.costs(case), visits)
            return max(0.0, energy), max(0.0, cycles)
        least_pj = least_cycles = 0.0
        if self.is_free:
            for known, costs in self._solved.get(self._family(case), ()):
                if known.at_home != case.at_home and not (self._home_is_least and known.at_home > case.at_home):
                    continue
                pairs = list(zip(known.problem.sizes, case.problem.sizes, strict=True))
                fits = known.reserved_bits <= case.reserved_bits
                if fits and (ragged or not any(larger % size for larger, size in pairs)):
                    parts = math.prod(larger / size for larger, size in pairs)
                    energy, cycles = repeated(costs, visits / parts)
                    least_pj, least_cycles = max(least_pj, energy), max(least_cycles, cycles)
        return least_pj, least_cycles

    def _family(self, case: BranchCase) -> tuple[str, tuple[int, ...]]:
        """Return what branches have in common that may bound one another."""
        problem = case.problem
        sums = tuple(size for name, size in problem.dimensions.items() if name not in problem.output.dimensions)
        return (case.layer or problem).content_key, sums


def visit_rounding(architecture: Architecture, problem: Problem) -> tuple[float, float]:
    """Return pJ and cycles that one visit takes at most beyond its share of a group, which rounds once for all visits.

    Each tensor moves whole blocks.
    """
    leaked, cycles = rounding_difference(architecture)
    blocks = (
        price.macros * (price.read_pj + price.fill_pj + (price.update_pj if tensor.is_output else 0.0))
        for price in prices_of(architecture).values()
        for tensor in problem.tensors
        if price.block > 1
    )
    return math.fsum([leaked, *blocks]), cycles


class TiledInterval:
    """Choices of one interval of layers.

    Args:
        problems: the layers of the interval, in order.
        shared: the tensors that several of them use, with numbers of layers inside the interval.
        leaving: such results that layers outside read, too. They go out, and loops step them as if they stayed.
        axes: for each axis, the dimension of each layer.
        stays: uses of results that are whole at home.
        stays_bits: room of the home that such results take, others' included.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        shared: Sequence[Shared],
        leaving: Sequence[Shared],
        axes: Sequence[Axis],
        architecture: Architecture,
        home: Memory,
        stays: frozenset[Pair] = frozenset(),
        stays_bits: int = 0,
    ) -> None:
        self.problems, self.shared, self.home, self.leaving = problems, shared, home, leaving
        self.outer = architecture.clusters[0]
        self.stays, self.stays_bits = stays, stays_bits
        self.room = home.usable_bits - stays_bits
        self.made = [at for at, tensor in enumerate(shared) if tensor.made]
        self.able = [
            at
            for at in self.made
            if all(home.may_hold(problems[layer].tensors[number]) for layer, number in shared[at].users.items())
        ]
        self._problems: dict[tuple[int, tuple[int, ...]], Problem] = {}
        self._wholes: dict[tuple[int, tuple[int, ...], frozenset[str]], BranchCase] = {}
        paces = {axis: self._pacing(axis) for axis in axes}
        self.paces = {axis: pace for axis, pace in paces.items() if pace is not None}

    def _pacing(self, axis: Axis) -> Pacing | None:
        """Return the pace of each layer in a shared loop over an axis; None if a sum crosses it, or layers step it apart."""
        for at, dimension in enumerate(axis):
            problem = self.problems[at]
            name = list(problem.dimensions)[dimension]
            if name not in problem.output.dimensions:
                return None
        pace = pacing(self.problems, axis, [*(self.shared[at] for at in self.made), *self.leaving])
        sizes = {self.problems[at].sizes[dimension] for at, dimension in enumerate(axis)}
        return pace if pace is not None and (pace.windows or len(sizes) == 1) else None

    def choices(self, ragged: bool = False) -> Iterator[Choice]:
        """Yield all choices that fit the home: those with a ragged tile, or those without one."""
        axes, sizes = list(self.paces), [max(pace.lengths) for pace in self.paces.values()]
        more = [set(pace.ragged_tiles() if ragged else ()) for pace in self.paces.values()]
        able = [[*pace.tiles(), *some] for pace, some in zip(self.paces.values(), more, strict=True)]
        for tiles in itertools.product(*able):  # large tiles bound small ones
            is_ragged = any(tile in some for tile, some in zip(tiles, more, strict=True))
            if is_ragged != ragged or not self._is_once(tiles, sizes):
                continue
            loops = [(axis, tile) for axis, tile, size in zip(axes, tiles, sizes, strict=True) if tile < size]
            sliding = [loop for loop in loops if self.paces[loop[0]].slides]
            if len(sliding) > 1:
                continue  # a home keeps rows along one axis
            seen = set[object]()
            for order in itertools.permutations(loop for loop in loops if loop not in sliding):
                for choice in self._of_order((*order, *sliding)):
                    key = choice.homes, frozenset((kept.users, kept.moved, kept.bits) for kept in choice.kept)
                    if key not in seen:
                        seen.add(key)
                        yield choice

    def _is_once(self, tiles: Sequence[int], sizes: Sequence[int]) -> bool:
        """Return whether no dimension of a layer is stepped by two axes."""
        used = [
            (at, dimension)
            for axis, tile, size in zip(self.paces, tiles, sizes, strict=True)
            if tile < size
            for at, dimension in enumerate(axis)
        ]
        return len(set(used)) == len(used)

    def _tile(self, at: int, loops: Sequence[tuple[Axis, int]]) -> dict[str, int]:
        """Return the sizes of a layer inside some shared loops."""
        sizes = dict(self.problems[at].dimensions)
        names = list(sizes)
        for axis, tile in loops:
            sizes[names[axis[at]]] = tile * self.paces[axis].rows[at]
        return sizes

    def resized(self, at: int, sizes: dict[str, int]) -> Problem:
        """Return a layer with other sizes."""
        key = at, tuple(sizes.values())
        if key not in self._problems:
            self._problems[key] = self.problems[at].replace(
                {f"dimensions.{name}": size for name, size in sizes.items()}
            )
        return self._problems[key]

    def whole(self, at: int, case: BranchCase) -> BranchCase:
        """Return the visit of a whole layer that bounds one of its tiles: with all room, and sizes along sums as they are."""
        names, key = case.problem.output.dimensions, (at, case.problem.sizes, case.at_home)
        if key not in self._wholes:
            sizes = {
                name: size if name in names else case.problem.dimensions[name]
                for name, size in self.problems[at].dimensions.items()
            }
            self._wholes[key] = BranchCase(self.resized(at, sizes), case.at_home, 0, self.problems[at])
        return self._wholes[key]

    def _trips(self, at: int, loops: Sequence[tuple[Axis, int]]) -> float:
        """Return the steps of a layer in some shared loops; a shorter one counts as its share."""
        lengths = [(self.paces[axis].lengths[at], tile) for axis, tile in loops]
        return math.prod(length / tile if length % tile else length // tile for length, tile in lengths)

    def _bits(self, users: Sequence[Pair], loops: Sequence[tuple[Axis, int]]) -> tuple[int, int]:
        """Return words and bits of a tensor's tile inside some loops; the widest use decides."""
        words, bits = 0, 0
        for at, number in users:
            problem = self.problems[at]
            tensor = problem.tensors[number]
            words = problem.tile_words(tensor, self._tile(at, loops))
            bits = max(bits, words * self.home.bits_of(tensor))
        return words, bits

    def _home_bits(self, shared: Shared, loops: Sequence[tuple[Axis, int]], starts: Sequence[int]) -> tuple[int, bool]:
        """Return the room of a result at home, and whether rows of it stay between the steps of the last loop."""
        boxes = [shared.box(at, self.problems[at], self._tile(at, loops)) for at in shared.users]
        width = max(self.home.bits_of(self.problems[at].tensors[number]) for at, number in shared.users.items())
        bits = words_of_boxes(boxes) * width
        coordinate = shared.stepped(0, loops[-1][0]) if loops else None
        if coordinate is None or not self.paces[loops[-1][0]].slides:
            return bits, False
        axis, tile = loops[-1]
        windows = [
            replace(window, lag=starts[reader] - starts[maker])
            for maker, reader, window in self.paces[axis].windows
            if maker == shared.first and reader in shared.needs
        ]
        if not any(window.stays for window in windows):
            return bits, False
        others = [[part for at, part in enumerate(box) if at != coordinate] for box in boxes]
        return alive_rows(windows, tile) * words_of_boxes(others) * width, True

    def _of_order(self, order: Sequence[tuple[Axis, int]]) -> Iterator[Choice]:
        """Yield the choices with some loops in an order."""
        tiles = [self.resized(at, self._tile(at, order)) for at in range(len(self.problems))]
        visits = tuple(self._trips(at, order) for at in range(len(self.problems)))
        starts = self.paces[order[-1][0]].starts(order[-1][1]) if order else (0,) * len(self.problems)
        places = [self._places(users, order) for users in self._external()]
        for homes in subsets(self.able, large_first=True):
            pairs = {pair for at in homes for pair in self.shared[at].users.items()}
            room_of = {at: self._home_bits(self.shared[at], order, starts) for at in homes}
            for kept in itertools.product(*places):
                some = tuple(place for place in kept if place is not None)
                if not homes and not some and order:
                    continue
                at_home = pairs | {pair for place in some for pair in place.users}
                base = sum(place.bits for place in some)
                cases = []
                for at, problem in enumerate(tiles):
                    alive = sum(
                        bits
                        for number, (bits, stays) in room_of.items()
                        if stays or self.shared[number].first <= at <= self.shared[number].last
                    )
                    names = frozenset(problem.tensors[t].name for layer, t in at_home | self.stays if layer == at)
                    room = self.stays_bits + base + alive
                    cases.append(BranchCase(problem, names, room, self.problems[at]))
                if any(case.reserved_bits > self.room + self.stays_bits for case in cases):
                    continue
                energy, fills = sum(self._fill_pj(place) for place in some), self._fill_limits(some)
                yield Choice(tuple(order), homes, some, tuple(cases), visits, energy, starts, fills)

    def _external(self) -> list[tuple[Pair, ...]]:
        """Return the users of each operand that no layer of the interval makes, and that the home may keep."""
        shared = {pair for tensor in (*self.shared, *self.leaving) for pair in tensor.users.items()} | self.stays
        groups = [tuple(tensor.users.items()) for tensor in self.shared if not tensor.made and tensor.alike]
        groups += [
            ((at, number),)
            for at, problem in enumerate(self.problems)
            for number, tensor in enumerate(problem.tensors)
            if not tensor.is_output and (at, number) not in shared
        ]
        return [users for users in groups if all(self._may_keep(*pair) for pair in users)]

    def _may_keep(self, at: int, number: int) -> bool:
        """Return whether the home may keep a tensor, whose dimensions are in one coordinate each."""
        tensor = self.problems[at].tensors[number]
        terms = [name for rank in tensor.projection for name in rank.terms]
        return len(set(terms)) == len(terms) and self.home.may_hold(tensor)

    def _places(self, users: Sequence[Pair], order: Sequence[tuple[Axis, int]]) -> list[Kept | None]:
        """Return where a tile of an operand may be kept: right outside a loop that does not move it.

        Elsewhere a place inside that loop has fewer words, and is filled as often. Right outside the branches, an operand
        of several layers gains, and one whose window slides along the last loop: only new rows are filled there.
        """
        moving, several = [], len(users) > 1
        for axis, _ in order:
            moved = {
                list(self.problems[at].dimensions)[axis[at]] in self.problems[at].tensors[number].dimensions
                for at, number in users
            }
            if len(moved) > 1:
                return [None]  # one layer would need another tile than the others
            moving.append(moved == {True})
        sliding = [self._new_rows(users[0], loop) is not None for loop in order]
        if several and any(sliding):
            return [None]
        places: list[Kept | None] = [None]
        for depth in range(len(order) + 1):
            outside, is_last = order[:depth], depth == len(order)
            if any(sliding[: depth - 1]) or (depth and sliding[depth - 1] and not is_last):
                continue  # its window would slide along a loop that is not the last one
            if is_last and several and order and moving[-1] and self.paces[order[-1][0]].slides:
                continue  # layers that start at different times need different tiles
            if (is_last and (several or (depth and sliding[-1]))) or (not is_last and not moving[depth]):
                words, bits = self._bits(users, outside)
                trips = self._trips(users[0][0], outside)
                moved_words = trips * words
                if depth and sliding[-1] and is_last:
                    new = self._new_rows(users[0], order[-1])
                    assert new is not None, "it slides"
                    rows, all_rows = new
                    sweeps = self._trips(users[0][0], order[:-1])
                    moved_words = words * sweeps + words // all_rows * rows * (trips - sweeps)
                if bits <= self.room:
                    places.append(Kept(tuple(users), depth, round(moved_words), bits))
        return places

    def _new_rows(self, user: Pair, loop: tuple[Axis, int]) -> tuple[int, int] | None:
        """Return the new rows of an operand at a step of a loop, and all rows of its tile. None if all are new."""
        at, number = user
        problem = self.problems[at]
        name, sizes = list(problem.dimensions)[loop[0][at]], self._tile(at, [loop])
        for rank in problem.tensors[number].projection:
            if name in rank.terms:
                rows = 1 + sum(c * (sizes[other] - 1) for other, c in rank.terms.items())
                new = rank.terms[name] * sizes[name]
                return (new, rows) if new < rows else None
        return None

    def fill_once_pj(self, at: int, number: int) -> float:
        """Return pJ that fill the home with a whole tensor of a layer."""
        problem = self.problems[at]
        words = problem.tensor_words(problem.tensors[number])
        return self._fill_pj(Kept(((at, number),), 0, words, 0))

    def _fill_pj(self, kept: Kept) -> float:
        at, number = kept.users[0]
        tensor = self.problems[at].tensors[number]
        outer = self.outer.memory_for(tensor)
        assert outer is not None, "the outermost cluster may hold all tensors"
        return tensor_pj(outer, tensor, kept.moved, 0, 0) + tensor_pj(self.home, tensor, 0, kept.moved, 0)

    def _fill_limits(self, some: Sequence[Kept]) -> tuple[tuple[Limit, ...], ...]:
        """Return the ports of both memories that fill the tiles of each layer."""
        limits = list[tuple[Limit, ...]]()
        for layer, problem in enumerate(self.problems):
            moved = dict[str, tuple[Counter[int], Counter[int]]]()
            memories = dict[str, Memory]()
            for kept in some:
                at, number = kept.users[0]
                outer = self.outer.memory_for(problem.tensors[number]) if at == layer else None
                for memory, is_written in ((outer, False), (self.home, True)) if outer is not None else ():
                    assert memory is not None
                    memories[memory.name] = memory
                    slices = kept.moved * memory.slices_of(problem.tensors[number])
                    moved.setdefault(memory.name, (Counter(), Counter()))[is_written][0] += slices
            limits.append(tuple(port_limits(list(memories.values()), moved)))
        return tuple(limits)


def fused_interval(
    interval: TiledInterval,
    first: int,
    branches: Branches,
    objective: Objective,
    most: float,
    limits: Limits,
    ragged: bool = False,
) -> Fused:
    """Return the best choice of an interval, and a lower bound on all of them.

    Args:
        most: a known cost: choices that cost no less are not of interest.
        ragged: choices with a ragged tile. Their costs are estimates, as if all visits were alike, and there is no bound.
    """
    best, best_value, best_costs = None, math.inf, (math.inf, math.inf)
    heap: list[tuple[float, int, float, Choice]] = []
    bound = 0.0
    least_known = math.inf  # the least bound of choices whose branches are mapped

    def lower(choice: Choice, estimated: bool = False) -> float:
        energy, cycles = choice.energy_pj, 0.0
        for case, visits, fills in zip(choice.cases, choice.visits, choice.fills, strict=True):
            least = branches.least(case, visits, ragged, estimated)
            energy, cycles = energy + least[0], cycles + max(least[1], *(fill.cycles for fill in fills), 0.0)
        return objective.value(energy, cycles)

    def bounds(choice: Choice) -> tuple[float, float]:
        """Return what a choice may cost, and a lower bound, which is less where searches have left gaps."""
        least = lower(choice)
        return (max(least, lower(choice, estimated=True)) if branches.has_gaps else least), least

    def costs_of(choice: Choice) -> tuple[float, float]:
        pairs = zip(choice.visits, map(branches.costs, choice.cases), strict=True)
        energy = choice.energy_pj + math.fsum(visits * cost.energy_pj for visits, cost in pairs)
        return energy, math.fsum(choice.cycles(at, branches.best(case)) for at, case in enumerate(choice.cases))

    counter = itertools.count()
    listed: list[Choice] = []
    try:
        for choice in interval.choices(ragged):
            limits.check()
            listed.append(choice)
            if len(listed) > MAX_CHOICES:
                raise OutOfTime
        if branches.is_free:
            branches.ask_largest(
                [interval.whole(at, case) for choice in listed for at, case in enumerate(choice.cases)]
            )
        for choice in listed:
            value, least = bounds(choice)
            heap.append((value, next(counter), least, choice))
        heapq.heapify(heap)
        while heap:
            limits.check()
            value, number, _, choice = heapq.heappop(heap)
            now, least = bounds(choice)
            if now > value * (1 + TOLERANCE) and heap and now > heap[0][0]:
                heapq.heappush(heap, (now, number, least, choice))
                continue
            is_near = best_value < most and best_value - now <= now - least  # it may save less than its own gap
            if is_near or now >= min(best_value, most) * (1 - TOLERANCE):
                bound = min([least, *(one[2] for one in heap)])
                heap.append((now, number, least, choice))
                break
            unknown = [(at, case) for at, case in enumerate(choice.cases) if not branches.is_known(case)]
            if unknown:
                wholes = [interval.whole(at, case) for at, case in unknown] if branches.is_free else []
                missing = [case for case in wholes if not branches.is_known(case)]
                missing = missing or [branches.next_of(case) for _, case in unknown]
                heapq.heappush(heap, (now, number, least, choice))
                branches.ask(missing)
                continue
            costs = costs_of(choice)
            if math.isfinite(costs[0]):
                least_known = min(least_known, least)
            if ranked(objective, *costs) < ranked(objective, *best_costs):
                best, best_value, best_costs = choice, objective.value(*costs), costs
        else:
            bound = min(best_value, most)
    except OutOfTime:
        bound = min((one[2] for one in heap), default=0.0)
        if branches.is_cut:
            raise
    for value, _, _, choice in heap if best is not None else ():  # of equal values, the other cost decides
        if value <= best_value * (1 + TOLERANCE) and all(map(branches.is_known, choice.cases)):
            costs = costs_of(choice)
            if ranked(objective, *costs) < ranked(objective, *best_costs):
                best, best_value, best_costs = choice, objective.value(*costs), costs
    entries = () if best is None else tuple(branches.best(case).entries for case in best.cases)
    bound = -math.inf if ragged else min(bound, best_value, least_known)
    return Fused(first, *best_costs, bound, best, entries)
