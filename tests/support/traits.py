"""By how much counts of `timeloop` may differ from the executed ones, for each trait that `verify` lists (docs/ragged.md).

Every bound is words of the average instance, summed over the tiles that a mapping has when it is executed, piece by piece, without
any formula of the model. Of a count with several traits, bounds add up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise, product
from operator import itemgetter

from support.ragged import Case
from tilewright.plugin.route import Route
from tilewright.run.differences import Difference
from tilewright.schema.mapping import Mapping
from tilewright.schema.report import Report
from tilewright_costmodels.oracle.trace import Trace, trace

ROUNDING = 1
"""Word by which averages over instances may differ, each rounded or cut off."""
Words = frozenset[tuple[int, ...]]
Event = tuple[int, int, "Tile"]
"""When, at which instance, what moves."""


@dataclass(frozen=True)
class Tile:
    """What an instance needs in one step: the words it touches, and those of the box around them; the same of what it had before;
    and whether a loop outside of the innermost one that moves the tile has moved on since then."""

    touched: Words
    box: Words
    had: Words
    had_box: Words
    turned: bool


@dataclass(frozen=True)
class Way:
    """The tiles of one tensor on the way between two entries that keep it, per step in time.

    `served`: by instance of the outer memory, what those inside need, a tile that may be shared once; `alone`: by instance of
    the inner one.
    """

    served: dict[int, list[list[Tile]]]
    alone: dict[int, list[list[Tile]]]


def way_of(case: Case, route: Route) -> Way:
    """Walk a mapping as it is executed."""
    problem, _, mapping = case
    ran = trace(problem, mapping, 10**6)
    entry = route.inner  # None: compute, which has no register
    places, unit = (ran.places, 1) if entry is None else (ran.instances(entry), ran.places_per_instance[entry])
    moments = ran.moments if entry is None else ran.steps(entry)
    apart = list(_apart(case, route, unit, ran))
    served: defaultdict[int, list[list[Tile]]] = defaultdict(list)
    alone: defaultdict[int, list[list[Tile]]] = defaultdict(list)
    entered = list(_tiles(case, route, ran, moments.tolist(), places.tolist()))
    for _, place, tile in entered:
        alone[place].append([tile])
    moved = _leaving(route, ran, entered) if route.tensor.is_output and entry is not None else entered
    for _, events in groupby(sorted(moved, key=itemgetter(0)), itemgetter(0)):
        step: defaultdict[int, dict[object, Tile]] = defaultdict(dict)
        for _, place, tile in events:
            here = step[place * unit // ran.places_per_instance[route.outer]]
            key = tuple(place // weight % trips for weight, trips in apart), tile.touched
            if key not in here or len(here[key].had & tile.touched) > len(tile.had & tile.touched):
                here[key] = tile  # the one that has least of it stands for all
        for parent, tiles in step.items():
            served[parent].append(list(tiles.values()))
    return Way(served, alone)


def _leaving(route: Route, ran: Trace, entered: list[Event]) -> Iterator[Event]:
    """The same of partial sums, when they leave an instance, which `had` what stays: when its tile moves on, or when that of the
    memory outside does while it is idle."""
    assert route.inner is not None
    ratio = ran.moments_per_step[route.outer] // ran.moments_per_step[route.inner]
    children = ran.places_per_instance[route.outer] // ran.places_per_instance[route.inner]
    outer: defaultdict[tuple[int, int], Words] = defaultdict(frozenset)
    begins: dict[int, int] = {}
    of_place: defaultdict[int, list[tuple[int, Tile]]] = defaultdict(list)
    for moment, place, tile in entered:
        outer[moment // ratio, place // children] |= tile.touched
        begins.setdefault(moment // ratio, moment)
        of_place[place].append((moment, tile))
    end = entered[-1][0] + 1
    none: Words = frozenset()
    nothing = Tile(none, none, none, none, turned=False)
    for place, tiles in of_place.items():
        for (moment, tile), (until, after) in pairwise([*tiles, (end, nothing)]):
            touched, box = tile.touched, tile.box
            for step, first in begins.items():
                if moment < first < until:
                    stays = touched & outer.get((step, place // children), touched)
                    if stays != touched:
                        yield first, place, Tile(touched, box, stays, stays, turned=True)
                    touched = box = stays
            yield until, place, Tile(touched, box, after.touched, after.box, after.turned)


def _apart(case: Case, route: Route, unit: int, ran: Trace) -> Iterator[tuple[int, int]]:
    """Loops in space on the way whose sub-clusters share nothing: the distance of neighbours, and the trips."""
    _, architecture, mapping = case
    for loop in ran.spatial:
        entry = mapping.entries[loop.entry]
        fanout = architecture.cluster(entry.target).fanout
        shared = fanout.reduction if route.tensor.is_output else fanout.multicast
        last = len(mapping.entries) if route.inner is None else route.inner
        if route.outer <= loop.entry < last and (route.tensor.name in entry.unicast or not shared):
            yield loop.weight // unit, loop.trips


def _tiles(case: Case, route: Route, ran: Trace, moments: list[int], places: list[int]) -> Iterator[Event]:
    """(Moment, instance, tile), in order of time."""
    problem, _, mapping = case
    last = len(mapping.entries) if route.inner is None else route.inner
    loops = [loop for loop in mapping.loops() if not loop.spatial and loop.entry <= last]
    moving = [number for number, loop in enumerate(loops) if loop.dimension in route.tensor.dimensions]
    innermost = moving[-1] if moving else -1
    needed: defaultdict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
    for moment, place, point in zip(moments, places, ran.points.tolist(), strict=True):
        needed[moment, place].append(tuple(point))
    names = problem.dimension_names
    before: dict[int, tuple[Words, Words, tuple[int, ...]]] = {}
    for (moment, place), points in sorted(needed.items()):
        first = dict(zip(names, (min(each) for each in zip(*points, strict=True)), strict=True))
        digits = _digits(mapping, last, first)
        at = [dict(zip(names, point, strict=True)) for point in points]
        touched = frozenset(
            tuple(sum(c * each[name] for name, c in rank.terms.items()) for rank in route.tensor.projection)
            for each in at
        )
        box = frozenset(product(*(range(min(each), max(each) + 1) for each in zip(*touched, strict=True))))
        had, had_box, then = before.get(place, (frozenset(), frozenset(), digits))
        turned = next((number for number, pair in enumerate(zip(digits, then, strict=True)) if pair[0] != pair[1]), -1)
        before[place] = touched, box, digits
        if route.inner is None:
            had = had_box = frozenset()
        yield moment, place, Tile(touched, box, had, had_box, 0 <= turned < innermost)


def _digits(mapping: Mapping, last: int, first: dict[str, int]) -> tuple[int, ...]:
    """The trips at hand of the loops in time down to an entry, of the tile that begins at an iteration."""
    rest, found = dict(first), []
    for loop in mapping.loops():
        digit, rest[loop.dimension] = divmod(rest[loop.dimension], loop.tile)
        if not loop.spatial and loop.entry <= last:
            found.append(digit)
    return tuple(found)


def bounds(case: Case, found: Report, difference: Difference) -> dict[str, tuple[float, float]]:
    """By trait: how many words less, and how many more, an instance may be said to move."""
    level, name, fills = difference.level, difference.tensor, difference.action == "fills"
    route = Route.of(*case, found, name, level, difference.action)
    way = way_of(case, route)
    parties = list((way.alone if fills else way.served).values())
    tiles = [tile for steps in parties for step in steps for tile in step]

    def average(words: float) -> float:
        return words / len(parties)

    stays = average(sum(len(tile.touched & tile.had) for tile in tiles))
    turned = [tile for tile in tiles if tile.turned]
    doubted = average(sum(len(tile.touched & tile.had) for tile in turned))
    halo = average(sum(_shared(step) for steps in parties for step in steps))
    partition = next(row.tensors[name].partition_words for row in found.levels if row.name == level) or 0
    own = average(sum(len(frozenset().union(*(tile.touched for step in steps for tile in step))) for steps in parties))
    below, above = (average(words) for words in _passed_on(case, found, route))
    return {
        "holes": (
            average(sum(len(tile.box & tile.had_box) - len(tile.touched & tile.had) for tile in tiles)),
            average(sum(len(tile.box) - len(tile.touched) for tile in tiles)),
        ),
        "halo": (0.0, halo),
        "sliding": (0.0, doubted),
        "two_iterations": (average(sum(len(tile.touched - tile.had) for tile in turned)), doubted),
        "bypass": (0.0, stays + halo),
        "first_reads": (max(0.0, partition - own), max(0.0, own - partition)),
        "link_transfers": (0.0 if fills else below, 0.0 if fills else above),
    }


def _shared(step: list[Tile]) -> int:
    """Words that several sub-clusters fetch in one step, but for the first of them."""
    new = [tile.touched - tile.had for tile in step]
    return sum(map(len, new)) - len(frozenset().union(*new))


def _passed_on(case: Case, found: Report, route: Route) -> tuple[float, float]:
    """Words of all instances that neighbours pass on, on the way and on that which ends where it begins."""
    _, architecture, mapping = case
    name, holds = route.tensor.name, [at for at, entry in enumerate(mapping.entries) if entry.keep is not None]
    keepers = [at for at in holds if name in (mapping.entries[at].keep or ())]
    before = max((at for at in keepers if at < route.outer), default=route.outer)
    below = above = 0.0
    rows = [row for row in found.networks if row.tensor == name]
    ran = trace(case[0], mapping, 10**6)
    for at, row in zip(holds, rows, strict=True):
        words = (row.link_transfers + 0.5 * (row.link_transfers > 0)) * len(set(ran.instances(at).tolist()))
        if route.outer <= at and (route.inner is None or at < route.inner):
            below += words
        elif before <= at < route.outer:
            above += words
    return below, above


def used(case: Case, found: Report, difference: Difference) -> tuple[list[str], float]:
    """The traits that are causes of a difference, and the part of their bounds, together, that it takes; more than one is wrong."""
    allowed = bounds(case, found, difference)
    codes = [cause.code for cause in difference.causes if cause.code in allowed]
    words = difference.counted - difference.executed
    most = sum(allowed[code][words > 0] for code in codes)
    rest = abs(words) - ROUNDING
    if not codes or rest > most + 1e-9:
        return codes, math.inf
    return codes, max(0.0, rest) / most if most else 0.0
