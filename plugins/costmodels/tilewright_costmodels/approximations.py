"""Approximations of the built-in cost models: what each does not count exactly, and how it counts instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.plugin.specs import Approximation

if TYPE_CHECKING:
    from tilewright.plugin.route import Route


def _remainder(route: Route) -> str | None:
    return None if route.mapping.is_perfect else "tiles do not divide; in execution, edge tiles are smaller"


def _link_transfers(route: Route) -> str | None:
    words = route.link_transfers
    text = f"neighbours forward {words} words (link transfers); in execution, all come from the parent"
    return text if words else None


def _holes(route: Route) -> str | None:
    if route.holes is None:
        return None
    box, touched = route.holes
    return f"bounding boxes with holes: a tile spans {box} words and touches {touched}"


def _halo(route: Route) -> str | None:
    along = ", ".join(route.neighbour_overlaps)
    return (
        f"neighbours' tiles overlap along {along} (halo): each gets a copy; in execution, one delivery serves all"
        if along
        else None
    )


def _sliding(route: Route) -> str | None:
    along = ", ".join(route.time_overlaps)
    return f"consecutive tiles overlap along {along}: credited only while the direction is unchanged" if along else None


def _two_iterations(route: Route) -> str | None:
    shared = "; ".join(route.shared_coordinates)
    return f"iterations 0 and 1 represent all: {shared}" if shared else None


def _bypass(route: Route) -> str | None:
    if route.is_plain or not route.bypassed:
        return None
    return (
        f"stationarity and multicast are lost through {', '.join(route.bypassed)}, which bypasses {route.tensor.name}"
    )


def _sharing(route: Route) -> str | None:
    along = ", ".join(route.uneven_sharing)
    text = f"equal tiles along {along} are multicast at the average rate; in execution, edge tiles move at other times"
    return text if along else None


def _first_reads(route: Route) -> str | None:
    if not route.tensor.is_output or route.is_plain or route.action == "updates":
        return None
    return "first-read elision: first writes are computed from tile sizes; in execution, they are counted"


REMAINDER = Approximation("remainder", "tiles that do not divide", _remainder)
LINK_TRANSFERS = Approximation("link_transfers", "words forwarded between neighbours", _link_transfers)
HOLES = Approximation("holes", "bounding boxes with words that are not touched", _holes)
HALO = Approximation("halo", "neighbours' tiles that overlap", _halo)
SLIDING = Approximation("sliding", "tiles that overlap the previous one", _sliding)
TWO_ITERATIONS = Approximation(
    "two_iterations", "coordinates moved by several loops; two iterations of each are visited", _two_iterations
)
BYPASS = Approximation("bypass", "levels that bypass a tensor with overlapping tiles", _bypass)
SHARING = Approximation("sharing", "equal tiles of sub-clusters, some of them edge tiles", _sharing)
FIRST_READS = Approximation("first_reads", "outputs whose first partial sum is written without a read", _first_reads)

OF_TIMELOOP = (LINK_TRANSFERS, HOLES, HALO, SLIDING, TWO_ITERATIONS, BYPASS, SHARING, FIRST_READS)
OF_MAESTRO = (REMAINDER, HALO, SLIDING, FIRST_READS)
OF_ZIGZAG = (HOLES, HALO, SLIDING, FIRST_READS)
