"""Approximations of the built-in cost models: what each does not count exactly, and how it counts instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.plugin.specs import Approximation

if TYPE_CHECKING:
    from tilewright.plugin.route import Route
    from tilewright.schema.sparse import Saving


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


def _first_halo(route: Route) -> str | None:
    along = ", ".join(route.neighbour_overlaps)
    return (
        f"neighbours' tiles overlap along {along} (halo): each gets a copy in the first step, and only words that are new to "
        "all in later ones; in execution, one delivery serves all"
        if along
        else None
    )


def _sliding(route: Route) -> str | None:
    along = ", ".join(route.time_overlaps)
    return f"consecutive tiles overlap along {along}: credited only while the direction is unchanged" if along else None


def _whole(route: Route) -> str | None:
    along = ", ".join(route.time_overlaps)
    return (
        f"consecutive tiles overlap along {along}: each moves as a whole; in execution, new words only"
        if along
        else None
    )


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


def _acting(route: Route) -> list[tuple[str, Saving]]:
    """Return the actions on the tensor of a count, with the memory that has them."""
    return [
        (memory.name, option)
        for memory in route.architecture.memories
        if memory.sparse is not None
        for saving in memory.sparse.actions_on(route.problem.tensors)
        for option in saving.options
        if option.tensor == route.tensor.name
    ]


def _sparse_means(route: Route) -> str | None:
    if not route.architecture.sparse_parts:
        return None
    names = {route.tensor.name, *(name for _, option in _acting(route) for name in option.when_empty)}
    drawn = [tensor.name for tensor in route.problem.tensors if tensor.name in names and tensor.density is not None]
    text = f"zeros of {', '.join(drawn)}: the expected count, rounded down; in execution, the mean of random draws"
    return text if drawn else None


def _sparse_sums(route: Route) -> str | None:
    if not route.tensor.is_output or route.action == "updates" or not _acting(route):
        return None
    return "as many first reads are saved as without zeros; in execution, none of sums whose updates were all saved"


def _sparse_tiles(route: Route) -> str | None:
    acting = _acting(route)
    inside = [loop for loop in route.mapping.loops() if loop.spatial and loop.dimension in route.tensor.dimensions]
    memories = ", ".join(dict.fromkeys(name for name, _ in acting))
    text = f"actions of {memories} on {route.tensor.name}: conditions are looked for in other tiles than execution has"
    blocks = any(memory.block_words > 1 for memory in route.architecture.memories if memory.name in dict(acting))
    return text if len(acting) > 1 or (acting and (inside or blocks or route.inner is not None)) else None


def _sparse_uncompressed(route: Route) -> str | None:
    memory = route.architecture.cluster(route.mapping.entries[route.outer].target).memory_for(route.tensor)
    tensor_format = memory.sparse.format_of(route.tensor) if memory is not None and memory.sparse is not None else None
    if tensor_format is None or tensor_format.is_compressed:
        return None
    return "zeros take no accesses, although no rank is compressed; in execution, they do"


REMAINDER = Approximation("remainder", "tiles that do not divide", _remainder)
LINK_TRANSFERS = Approximation("link_transfers", "words forwarded between neighbours", _link_transfers)
HOLES = Approximation("holes", "bounding boxes with words that are not touched", _holes)
HALO = Approximation("halo", "neighbours' tiles that overlap", _halo)
FIRST_HALO = Approximation("halo", "neighbours' tiles that overlap in the first step", _first_halo)
SLIDING = Approximation("sliding", "tiles that overlap the previous one", _sliding)
WHOLE = Approximation("sliding", "tiles that overlap the previous one", _whole)
TWO_ITERATIONS = Approximation(
    "two_iterations", "coordinates moved by several loops; two iterations of each are visited", _two_iterations
)
BYPASS = Approximation("bypass", "levels that bypass a tensor with overlapping tiles", _bypass)
SHARING = Approximation("sharing", "equal tiles of sub-clusters, some of them edge tiles", _sharing)
FIRST_READS = Approximation("first_reads", "outputs whose first partial sum is written without a read", _first_reads)

SPARSE_MEANS = Approximation("sparse_means", "expected counts of random zeros", _sparse_means)
SPARSE_SUMS = Approximation("sparse_sums", "first reads of partial sums whose updates were saved", _sparse_sums)
SPARSE_TILES = Approximation("sparse_tiles", "conditions of gating and skipping in other tiles", _sparse_tiles)
SPARSE_UNCOMPRESSED = Approximation("sparse_uncompressed", "zeros in formats without compression", _sparse_uncompressed)

OF_SPARSE = (SPARSE_MEANS, SPARSE_SUMS, SPARSE_TILES, SPARSE_UNCOMPRESSED)
OF_TIMELOOP = (LINK_TRANSFERS, HOLES, HALO, SLIDING, TWO_ITERATIONS, BYPASS, SHARING, FIRST_READS, *OF_SPARSE)
OF_MAESTRO = (REMAINDER, FIRST_HALO, SLIDING, FIRST_READS)
OF_ZIGZAG = (HOLES, HALO, WHOLE, FIRST_READS)
