"""By how much counts of `timeloop` may differ from the executed ones, for each trait that `verify` lists (docs/ragged.md).

Every bound is words of the average instance, summed over the tiles that a mapping has when it is executed, piece by piece, without
any formula of the model. Of a count with several traits, bounds add up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, product
from operator import itemgetter

import numpy as np

from support.ragged import Case
from tilewright.application.run.differences import Difference
from tilewright.plugin.route import Route
from tilewright.reports import Report
from tilewright.schema.mapping import Loop
from tilewright_costmodels.oracle.trace import OperationTrace, trace_operations

ROUNDING = 1
"""Word by which averages over instances may differ, each rounded or cut off."""
Words = frozenset[tuple[int, ...]]
Event = tuple[int, int, "Tile"]
"""When, at which instance, what moves."""


@dataclass(frozen=True)
class Tile:
    """Data that an instance needs in one step.

    `touched` and `box`: the words it touches, and those of the bounding box. The same follows for the
    previous step, then whether a loop outside the innermost relevant loop advanced since, and the time.
    """

    touched: Words
    box: Words
    had: Words
    had_box: Words
    turned: bool
    came: int

    @property
    def new(self) -> Words:
        return self.touched - self.had


@dataclass(frozen=True)
class Step:
    """What moves at one time below one instance: different tiles, and those `alike`, which are the same as one of them."""

    tiles: list[Tile]
    alike: list[Tile]


Steps = dict[int, list[Step]]
"""By instance."""


@dataclass(frozen=True)
class Way:
    """The tiles of one tensor on the way between two entries that keep it, per step in time.

    `came`: by instance of the outer memory, what those inside need. `moved`: the same, but partial sums when they leave.
    `alone`: by instance of the inner one.
    """

    came: Steps
    moved: Steps
    alone: Steps


class Walk:
    """A mapping as it is executed; each way is walked once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ran = trace_operations(case[0], case[2], 10**6)
        self.nest = tuple(case[2].loops())
        self._ways: dict[tuple[str, int, int | None], Way] = {}

    def way(self, route: Route) -> Way:
        key = route.tensor.name, route.outer, route.inner
        if key not in self._ways:
            self._ways[key] = self._walked(route)
        return self._ways[key]

    def _walked(self, route: Route) -> Way:
        ran, entry = self.ran, route.inner  # None: compute, which has no register
        places, unit = (ran.unit_indices, 1) if entry is None else (ran.instances(entry), ran.units_per_instance[entry])
        moments = ran.time_steps if entry is None else ran.steps(entry)
        came = list(_tiles(self, route, moments.tolist(), places.tolist()))
        apart = list(_apart(self, route, unit))
        children = ran.units_per_instance[route.outer] // unit
        alone: defaultdict[int, list[Step]] = defaultdict(list)
        for _, place, tile in came:
            alone[place].append(Step([tile], []))
        steps = _steps(came, apart, children)
        leaves = route.tensor.is_output and entry is not None
        return Way(steps, _steps(_leaving(route, ran, came), apart, children) if leaves else steps, alone)


def _steps(events: Iterable[Event], apart: list[tuple[int, int]], children: int) -> Steps:
    """Tiles that come and move at one time are shared where they are the same; the one that has least of it stands for all."""
    steps: defaultdict[int, list[Step]] = defaultdict(list)
    for _, together in groupby(sorted(events, key=itemgetter(0)), itemgetter(0)):
        step: defaultdict[int, defaultdict[object, list[Tile]]] = defaultdict(lambda: defaultdict(list))
        for _, place, tile in together:
            separate = tuple(place // weight % trips for weight, trips in apart)
            step[place // children][separate, tile.touched, tile.came].append(tile)
        for parent, groups in step.items():
            ordered = [sorted(tiles, key=lambda tile: len(tile.had & tile.touched)) for tiles in groups.values()]
            steps[parent].append(
                Step([tiles[0] for tiles in ordered], [tile for tiles in ordered for tile in tiles[1:]])
            )
    return steps


def _leaving(route: Route, ran: OperationTrace, entered: list[Event]) -> Iterator[Event]:
    """Return the same for partial sums when they leave an instance.

    They leave when the instance's tile changes, or when the outer memory's tile changes while the
    instance is idle.
    """
    assert route.inner is not None
    ratio = ran.time_steps_per_tile[route.outer] // ran.time_steps_per_tile[route.inner]
    children = ran.units_per_instance[route.outer] // ran.units_per_instance[route.inner]
    outer: defaultdict[tuple[int, int], Words] = defaultdict(frozenset)
    begins: dict[int, int] = {}
    of_place: defaultdict[int, list[tuple[int, Tile]]] = defaultdict(list)
    for moment, place, tile in entered:
        outer[moment // ratio, place // children] |= tile.touched
        begins.setdefault(moment // ratio, moment)
        of_place[place].append((moment, tile))
    end = entered[-1][0] + 1
    none: Words = frozenset()
    nothing = Tile(none, none, none, none, False, end)
    for place, tiles in of_place.items():
        for (moment, tile), (until, after) in pairwise([*tiles, (end, nothing)]):
            touched, box = tile.touched, tile.box
            for step, first in begins.items():
                if moment < first < until:
                    stays = touched & outer.get((step, place // children), touched)
                    if stays != touched:
                        yield first, place, Tile(touched, box, stays, stays, True, moment)
                        touched = box = stays
            yield until, place, Tile(touched, box, after.touched, after.box, after.turned, moment)


def _apart(walk: Walk, route: Route, unit: int) -> Iterator[tuple[int, int]]:
    """Loops in space on the way whose sub-clusters share nothing: the distance of neighbours, and the trips."""
    _, architecture, mapping = walk.case
    for loop in walk.ran.spatial:
        entry = mapping.entries[loop.entry]
        fanout = architecture.cluster(entry.target).fanout
        shared = fanout.reduction if route.tensor.is_output else fanout.multicast
        last = len(mapping.entries) if route.inner is None else route.inner
        if route.outer <= loop.entry < last and (route.tensor.name in entry.unicast or not shared):
            yield loop.weight // unit, loop.trips


def _tiles(walk: Walk, route: Route, moments: list[int], places: list[int]) -> Iterator[Event]:
    """(Moment, instance, tile), in order of time."""
    (problem, _, mapping), nest = walk.case, walk.nest
    last = len(mapping.entries) if route.inner is None else route.inner
    loops = [loop for loop in nest if not loop.spatial and loop.entry <= last]
    moving = [number for number, loop in enumerate(loops) if loop.dimension in route.tensor.dimensions]
    innermost = moving[-1] if moving else -1
    names = problem.dimension_names
    ranks = [[rank.terms.get(name, 0) for name in names] for rank in route.tensor.projection]
    words = (walk.ran.points @ np.array(ranks, dtype=np.int64).reshape(-1, len(names)).T).tolist()
    needed: defaultdict[tuple[int, int], list[tuple[list[int], tuple[int, ...]]]] = defaultdict(list)
    for moment, place, point, word in zip(moments, places, walk.ran.points.tolist(), words, strict=True):
        needed[moment, place].append((point, tuple(word)))
    before: dict[int, tuple[Words, Words, tuple[int, ...]]] = {}
    for (moment, place), visits in sorted(needed.items(), key=itemgetter(0)):
        points, at = zip(*visits, strict=True)
        box = touched = frozenset(at)
        if len(touched) > 1:
            box = frozenset(product(*(range(min(values), max(values) + 1) for values in zip(*touched, strict=True))))
        if route.inner is None:
            yield moment, place, Tile(touched, box, frozenset(), frozenset(), False, moment)
            continue
        digits = _digits(nest, last, dict(zip(names, map(min, zip(*points, strict=True)), strict=True)))
        had, had_box, then = before.get(place, (frozenset(), frozenset(), digits))
        turned = next((number for number, pair in enumerate(zip(digits, then, strict=True)) if pair[0] != pair[1]), -1)
        before[place] = touched, box, digits
        yield moment, place, Tile(touched, box, had, had_box, 0 <= turned < innermost, moment)


def _digits(nest: Sequence[Loop], last: int, first: dict[str, int]) -> tuple[int, ...]:
    """The trips at hand of the loops in time down to an entry, of the tile that begins at an iteration."""
    rest, digits = dict(first), []
    for loop in nest:
        digit, rest[loop.dimension] = divmod(rest[loop.dimension], loop.tile)
        if not loop.spatial and loop.entry <= last:
            digits.append(digit)
    return tuple(digits)


def bounds(walk: Walk, report: Report, difference: Difference) -> dict[str, tuple[float, float]]:
    """By trait: how many words less, and how many more, an instance may be said to move."""
    level, name, fills = difference.level, difference.tensor, difference.action == "fills"
    route = Route.of(*walk.case, report, name, level, difference.action)
    way = walk.way(route)
    came, moved = (way.alone, way.alone) if fills else (way.came, way.moved)
    steps = [step for steps in moved.values() for step in steps]
    tiles = [tile for step in steps for tile in step.tiles]
    coming = [step for steps in came.values() for step in steps]

    def average(words: float) -> float:
        return words / len(came)

    stays = average(sum(len(tile.touched & tile.had) for tile in tiles))
    doubted = average(sum(len(tile.touched & tile.had) for tile in tiles if tile.turned))
    jumps = average(sum(len(tile.new) for step in coming for tile in step.tiles if tile.turned))
    halo = average(sum(map(_shared, steps)))
    alike = average(sum(len(tile.new) for step in steps for tile in step.alike))
    partition = next(row.tensors[name].partition_words for row in report.levels if row.name == level) or 0
    whole = [
        frozenset[tuple[int, ...]]().union(*(tile.touched for step in group for tile in step.tiles))
        for group in came.values()
    ]
    total = average(sum(map(len, whole)))
    below, above = (average(words) for words in _passed_on(walk, report, route))
    return {
        "holes": (
            average(sum(len(tile.box & tile.had_box) - len(tile.touched & tile.had) for tile in tiles)),
            average(sum(len(tile.box) - len(tile.touched) for tile in tiles)),
        ),
        "halo": (0.0, halo),
        "sliding": (0.0, doubted),
        "two_iterations": (jumps, doubted),
        "bypass": (0.0, stays + halo + alike),
        "sharing": (average(sum(len(tile.touched) for step in coming for tile in step.alike)), alike),
        "first_reads": (max(0.0, partition - total), max(0.0, total - partition)),
        "link_transfers": (0.0 if fills else below, 0.0 if fills else above),
    }


def _shared(step: Step) -> int:
    """New words of different tiles that move at one time, but for the first of each."""
    new = [tile.new for tile in step.tiles]
    return sum(map(len, new)) - len(frozenset().union(*new))


def _passed_on(walk: Walk, report: Report, route: Route) -> tuple[float, float]:
    """Words of all instances that neighbours pass on, on the way and on that which ends where it begins."""
    _, architecture, mapping = walk.case
    name, holds = route.tensor.name, [at for at, entry in enumerate(mapping.entries) if entry.keep is not None]
    keepers = [at for at in holds if name in (mapping.entries[at].keep or ())]
    before = max((at for at in keepers if at < route.outer), default=route.outer)
    below = above = 0.0
    rows = [row for row in report.networks if row.tensor == name]
    for at, row in zip(holds, rows, strict=True):
        words = (row.link_transfers + 0.5 * (row.link_transfers > 0)) * len(np.unique(walk.ran.instances(at)))
        if route.outer <= at and (route.inner is None or at < route.inner):
            below += words
        elif before <= at < route.outer:
            above += words
    return below, above


def used(walk: Walk, report: Report, difference: Difference) -> tuple[list[str], float]:
    """The traits that are causes of a difference, and the part of their bounds, together, that it takes; more than one is wrong."""
    allowed = bounds(walk, report, difference)
    codes = [cause.code for cause in difference.causes if cause.code in allowed]
    words = difference.counted - difference.executed
    most = sum(allowed[code][words > 0] for code in codes)
    rest = abs(words) - ROUNDING
    if not codes or rest > most + 1e-9:
        return codes, math.inf
    return codes, max(0.0, rest) / most if most else 0.0
