"""Hypothesis strategies for random problems, architectures and perfect mappings, small enough to execute."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from tilewright.schema.architecture import (
    Architecture,
    Cluster,
    Compute,
    Fanout,
    Memory,
    Network,
    Port,
)
from tilewright.schema.density import Density
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem, Rank, Role, Tensor
from tilewright.schema.sparse import (
    MetadataStorage,
    RankFormat,
    Saving,
    SparseAction,
    SparseCompute,
    SparseMemory,
    TensorFormat,
)
from tilewright.schema.timing import Instruction, Requests, Rows, Timing

SIZES = (1, 2, 3, 4, 5, 6, 8, 9, 12)
_LETTERS = "ABCDEFG"
PORTS = (
    Port(moves=FrozenDict({"input": ("reads", "fills"), "output": ("updates",)}), words_per_cycle=2.0),
    Port(moves=FrozenDict({"output": ("reads", "drains")})),
)
"""Ports of a memory: one for reads and writes, or one without a limit; otherwise the two bandwidths."""
WIDTHS: tuple[dict[str, int], ...] = ({}, {}, {"output": 24}, {"output": 48, "T0": 8}, {"weight": 12, "T1": 32})
"""Bits per value, for memories with words of 16 bits."""


_ENERGIES: tuple[dict[SparseAction, float], ...] = ({}, {"gated_read": 0.5}, {"metadata_fill": 2.0, "compression": 1.0})


def prime_factors(number: int) -> list[int]:
    """Return the prime factors with multiplicity, ascending.

    >>> prime_factors(12)
    [2, 2, 3]
    """
    factors = []
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors


@st.composite
def problems(draw: st.DrawFn, max_dimensions: int = 6, max_macs: int = 4096, max_operands: int = 3) -> Problem:
    """Draw affine problems with 1 to 3 operands.

    Each coordinate sums up to two dimensions, with strides and dilations.
    """
    count = draw(st.integers(1, max_dimensions))
    sizes: dict[str, int] = {}
    for letter in _LETTERS[:count]:
        room = max_macs // math.prod(sizes.values())
        sizes[letter] = draw(st.sampled_from([size for size in SIZES if size <= max(1, room)]))
    names = list(sizes)

    def rank() -> Rank:
        terms = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        return Rank.model_validate({"terms": {name: draw(st.integers(1, 3)) for name in terms}})

    operands = draw(st.integers(1, max_operands))
    roles: list[Role] = ["input", *["weight"] * (operands - 1), "output"]  # type: ignore[list-item]
    tensors = tuple(
        Tensor(name=f"T{index}", role=role, projection=tuple(rank() for _ in range(draw(st.integers(0, 3)))))
        for index, role in enumerate(roles)
    )
    return Problem.model_validate({"name": "random", "dimensions": sizes, "tensors": tensors})


_SENT: dict[str, st.SearchStrategy[Any]] = {
    "burst_words": st.sampled_from([1, 1, 3, 8]),
    "latency_cycles": st.sampled_from([0, 0, 2, 20]),
    "requests": st.none()
    | st.builds(
        Requests,
        along=st.permutations(_LETTERS).map(lambda letters: tuple(letters[:4])),
        words=st.sampled_from([1, 3, 64]),
        cycles=st.sampled_from([1, 3]),
        return_cycles=st.sampled_from([None, None, 4]),
    ),
    "rows": st.none()
    | st.builds(
        Rows, words=st.sampled_from([2, 16]), miss_cycles=st.sampled_from([1, 9]), banks=st.sampled_from([1, 2, 4])
    ),
}
_FETCHED = st.builds(
    Timing,
    prefetch=st.sampled_from(["any", "next", "next", "none"]),
    reload=st.sampled_from([False, False, True]),
    step_cycles=st.sampled_from([0, 0, 7, 50]),
    **_SENT,
)
TIMINGS = _FETCHED | _FETCHED | st.builds(Timing, prefetch=st.just("through"), **_SENT)
"""Timings of memories."""


@st.composite
def architectures(
    draw: st.DrawFn,
    max_clusters: int = 4,
    roomy: bool = True,
    widths: bool = False,
    shared: bool | None = None,
    timed: bool = False,
    unlinked: bool = False,
) -> Architecture:
    """Draw chains of clusters, some of them virtual, with fanouts along X and Y.

    Memories have random block sizes and bandwidths. With `roomy`, their capacity is unlimited. With `widths`, values
    may be wider or narrower than a word, and memories that are not roomy may store distinct words only. With `shared`, by default as `widths`, reads and writes may share a bandwidth.
    With `timed`, tiles may have to wait, and networks have latencies. With `unlinked`, neighbours may not forward some tensors.
    """
    shared = widths if shared is None else shared
    clusters = []
    for index in range(draw(st.integers(1, max_clusters))):
        fanout = Fanout(
            size=draw(st.sampled_from([1, 2, 3, 4, 6])),
            axis=draw(st.sampled_from(["X", "Y"])),
            multicast=draw(st.integers(0, 5)) > 0,
            reduction=draw(st.integers(0, 5)) > 0,
            unlinked=draw(st.sampled_from([(), (), ("T0",), ("output", "weight")])) if unlinked else (),
            network=Network(latency_cycles=draw(st.integers(0, 3)) if timed else 0),
        )
        memories: tuple[Memory, ...] = ()
        if index == 0 or draw(st.integers(0, 3)):
            memories = (
                Memory(
                    name=f"M{index}",
                    capacity_words=None if index == 0 or roomy else draw(st.integers(1, 200)),
                    technology="dram" if index == 0 else "sram",
                    read_energy_pj=draw(st.sampled_from([0.5, 2.0, 64.0])),
                    write_energy_pj=draw(st.sampled_from([0.25, 3.0, 80.0])),
                    update_energy_pj=draw(st.sampled_from([None, 5.0])),
                    read_bandwidth_words_per_cycle=draw(st.sampled_from([None, 0.5, 4.0])),
                    write_bandwidth_words_per_cycle=draw(st.sampled_from([None, 0.75, 3.0])),
                    shared_bandwidth_words_per_cycle=draw(st.sampled_from([None, None, 1.0, 4.5])) if shared else None,
                    ports=draw(st.sampled_from([(), (), (), PORTS])),
                    block_words=draw(st.sampled_from([1, 1, 4])),
                    bits_per_value=FrozenDict(draw(st.sampled_from(WIDTHS)) if widths else {}),
                    multiple_buffering=draw(st.sampled_from([1.0, 1.0, 2.0])),
                    footprint=draw(st.sampled_from(["box", "box", "distinct"])) if widths and not roomy else "box",
                    timing=draw(TIMINGS) if timed else Timing(),
                    leakage_pj_per_cycle=draw(st.sampled_from([0.0, 0.0, 0.25])),
                    power_gated_at=draw(st.sampled_from([None, "M0"])),
                ),
            )
        clusters.append(Cluster(name=f"C{index}", memories=memories, fanout=fanout))
    compute = Compute(energy_per_operation_pj=0.5)
    if timed:
        compute = Compute(
            energy_per_operation_pj=0.5,
            cycles_per_operation=draw(st.sampled_from([1, 1, 2])),
            operands=draw(st.sampled_from([2, 2, 3])),
            fill_drain_cycles=draw(st.sampled_from([0, 0, 5])),
            start_cycles=draw(st.sampled_from([0, 0, 30])),
            instruction=draw(
                st.none()
                | st.builds(
                    Instruction,
                    memory=st.sampled_from([memory.name for cluster in clusters for memory in cluster.memories]),
                    dimensions=st.permutations(_LETTERS).map(tuple),
                    iterations=st.integers(1, 4),
                    cycles=st.integers(1, 9),
                    load_cycles=st.sampled_from([0, 0, 12]),
                    issue_cycles=st.sampled_from([0, 0, 6]),
                )
            ),
        )
    return Architecture(name="random", clusters=tuple(clusters), compute=compute)


@st.composite
def sparse(draw: st.DrawFn, problem: Problem, architecture: Architecture) -> tuple[Problem, Architecture]:
    """Draw densities for a problem, and sparse hardware for an architecture: formats, savings, compute units."""
    densities = st.none() | st.builds(
        Density, distribution=st.sampled_from(("structured", "uniform")), density=st.sampled_from((0.0, 0.1, 0.5, 1.0))
    )
    tensors = tuple(tensor.model_copy(update={"density": draw(densities)}) for tensor in problem.tensors)
    names = problem.tensor_names
    bits = st.sampled_from((None, None, 0, 3, 8))

    def rank(compressed: bool) -> RankFormat:
        kind = draw(st.sampled_from(("CP", "B", "RLE") if compressed else ("UOP", "UB")))
        widths = {} if kind == "UB" else {"metadata_bits": draw(bits), "payload_bits": draw(bits)}
        groups = st.none() | st.just("all") | st.just((problem.dimension_names,)) | st.just(())
        return RankFormat.model_validate({"format": kind, "flatten": draw(groups)} | widths)

    def form() -> TensorFormat:
        outer, inner = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        ranks = [False] * outer + [True] * inner or [True]
        return TensorFormat(ranks=tuple(map(rank, ranks)), fill=draw(st.sampled_from(("outer", "inner"))))

    def saving(kind: str) -> Saving:
        empty = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        return Saving.model_validate({kind: draw(st.sampled_from(names)), "when_empty": empty})

    def action() -> Saving:
        kind = draw(st.sampled_from(("gate", "skip", "skip_units")))
        first = saving(kind)
        return first if draw(st.booleans()) else Saving(best_of=(first, saving(kind)))

    def memory(source: Memory) -> Memory:
        if not draw(st.booleans()):
            return source
        formats = {name: form() for name in names if draw(st.booleans())}
        sparse_part = SparseMemory(
            formats=FrozenDict(formats),
            actions=tuple(action() for _ in range(draw(st.integers(0 if formats else 1, 2)))),
            metadata=MetadataStorage(
                width_bits=16, depth=draw(st.integers(0, 64)), default_bits=draw(st.integers(0, 1)) * 4
            ),
            decompresses=draw(st.booleans()),
            compresses=draw(st.booleans()),
            energies_pj=FrozenDict(draw(st.sampled_from(_ENERGIES))),
        )
        return source.model_copy(update={"sparse": sparse_part})

    unit = draw(st.none() | st.builds(SparseCompute, gate=st.just(True), skip=st.booleans(), gated_pj=st.just(0.125)))
    made = architecture.with_memories(memory)
    made = made.model_copy(update={"compute": made.compute.model_copy(update={"sparse": unit})})
    return problem.model_copy(update={"tensors": tensors}), made


@st.composite
def mappings(draw: st.DrawFn, problem: Problem, architecture: Architecture) -> Mapping:
    """Draw perfect mappings that are legal except for capacity and fanout.

    Every cluster with a memory keeps random tensors, at one or two entries. The outermost one keeps
    most tensors, and all that no other cluster keeps.
    """
    slots: list[tuple[str, tuple[str, ...] | None, bool]] = []  # target, keep, may unroll
    for index, cluster in enumerate(architecture.clusters):
        last = index == len(architecture.clusters) - 1
        if cluster.memories:
            kept = [name for name in problem.tensor_names if draw(st.integers(0, 1 if index else 7))]
            later = [] if index == 0 else [name for name in kept if draw(st.integers(0, 3)) == 0]
            slots.append((cluster.name, tuple(name for name in kept if name not in later), False))
            if later:
                slots.append((cluster.name, tuple(later), False))
        if cluster.fanout.size > 1 or last or draw(st.booleans()):
            slots.append((cluster.name, None, True))
    lost = set(problem.tensor_names).difference(*(keep or () for _, keep, _ in slots))
    slots[0] = (slots[0][0], (*(slots[0][1] or ()), *sorted(lost)), False)
    steps = [index for index in range(1, len(slots))]
    unrolling = [index for index, slot in enumerate(slots) if slot[2]]
    room = {index: architecture.cluster(slots[index][0]).fanout.size for index in unrolling}
    temporal = [dict.fromkeys(problem.dimensions, 1) for _ in slots]
    spatial = [dict.fromkeys(problem.dimensions, 1) for _ in slots]
    for name, size in problem.dimensions.items():
        for factor in prime_factors(size):
            able = [index for index in unrolling if factor <= room[index]]
            if able and (not steps or draw(st.integers(0, 2)) == 0):
                index = draw(st.sampled_from(able))
                room[index] //= factor
                spatial[index][name] *= factor
            elif steps:
                temporal[draw(st.sampled_from(steps))][name] *= factor
            else:
                spatial[unrolling[0]][name] *= factor
    tile = dict.fromkeys(problem.dimensions, 1)
    entries: list[Entry] = []
    for index in range(len(slots) - 1, -1, -1):
        target, keep, _ = slots[index]
        inner = dict(tile)
        outer = {name: inner[name] * spatial[index][name] for name in inner}
        entries.append(
            Entry(
                target=target,
                keep=keep,
                temporal_order=tuple(draw(st.permutations(list(tile)))),
                temporal_tile_sizes=FrozenDict(outer),
                spatial_tile_sizes=FrozenDict(inner),
                spatial_order=tuple(draw(st.permutations(list(tile)))),
                unicast=tuple(name for name in problem.tensor_names if draw(st.integers(0, 7)) == 0),
            )
        )
        tile = {name: outer[name] * temporal[index][name] for name in outer}
    return Mapping(entries=tuple(reversed(entries)))
