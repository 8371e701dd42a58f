"""Approximations of the built-in cost models: what each does not count exactly, and how it counts instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.plugin.specs import Approximation

if TYPE_CHECKING:
    from tilewright.plugin.route import Route


def _remainder(route: Route) -> str | None:
    return None if route.mapping.is_perfect else "tiles do not divide; executed, the last ones are short"


def _link_transfers(route: Route) -> str | None:
    words = route.link_transfers
    text = f"{words} words are passed on between neighbours (link transfers); executed, all come from outside"
    return text if words else None


def _holes(route: Route) -> str | None:
    if route.holes is None:
        return None
    box, touched = route.holes
    return f"boxes with holes: a tile spans {box} words and touches {touched}"


def _halo(route: Route) -> str | None:
    along = ", ".join(route.neighbour_overlaps)
    return f"neighbours' tiles overlap along {along} (halo): sent to each alone; executed, shared" if along else None


def _sliding(route: Route) -> str | None:
    along = ", ".join(route.time_overlaps)
    return f"tiles overlap in time along {along}: credited only while the direction stays" if along else None


def _two_iterations(route: Route) -> str | None:
    shared = "; ".join(route.shared_coordinates)
    return f"iterations 0 and 1 stand for all: {shared}" if shared else None


def _bypass(route: Route) -> str | None:
    if route.is_plain or not route.bypassed:
        return None
    return f"stationarity and sharing are lost through {', '.join(route.bypassed)}, which bypasses {route.tensor.name}"


def _sharing(route: Route) -> str | None:
    along = ", ".join(route.uneven_sharing)
    text = f"equal tiles along {along} are shared as on average; executed, short ones move at other times"
    return text if along else None


def _first_reads(route: Route) -> str | None:
    if not route.tensor.is_output or route.is_plain or route.action == "updates":
        return None
    return "first-read elision: first writes are taken from tile sizes; executed, words are remembered"


REMAINDER = Approximation("remainder", "tiles that do not divide", _remainder)
LINK_TRANSFERS = Approximation("link_transfers", "words passed on between neighbours", _link_transfers)
HOLES = Approximation("holes", "bounding boxes larger than what is touched", _holes)
HALO = Approximation("halo", "neighbours' tiles that overlap", _halo)
SLIDING = Approximation("sliding", "tiles that overlap the one before", _sliding)
TWO_ITERATIONS = Approximation(
    "two_iterations", "coordinates moved by several loops, of which two iterations are looked at", _two_iterations
)
BYPASS = Approximation("bypass", "levels that a tensor with overlapping tiles bypasses", _bypass)
SHARING = Approximation("sharing", "equal tiles of sub-clusters, of which some are short", _sharing)
FIRST_READS = Approximation("first_reads", "outputs that are not read back the first time", _first_reads)

OF_TIMELOOP = (LINK_TRANSFERS, HOLES, HALO, SLIDING, TWO_ITERATIONS, BYPASS, SHARING, FIRST_READS)
OF_MAESTRO = (REMAINDER, HALO, SLIDING, FIRST_READS)
OF_ZIGZAG = (HOLES, HALO, SLIDING, FIRST_READS)
