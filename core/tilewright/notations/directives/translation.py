"""A mapping of ours as directives, by way of `nest`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilewright.compiled import for_kernel, integer
from tilewright.mapspace.batch import Bools, Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import place
from tilewright.notations.directives.nest import (
    BYPASS_L1,
    BYPASS_L2,
    FINE,
    FOLD,
    LEVELS,
    PIECES,
    REPEATED,
    STEPPED_WINDOW,
    STRIDED_WINDOW,
    UNEVEN,
    UNICAST,
    Nests,
    scratch_of,
    write_rows,
)
from tilewright.notations.directives.plan import Plan
from tilewright.notations.directives.program import WINDOWS, DirectiveHardware, DirectiveLayer, Map
from tilewright.notations.directives.roles import Roles, refusal
from tilewright.notations.directives.table import MAX_LEVELS, NOWHERE, Table, empty_table, letters_of, names_of
from tilewright.schema.architecture import Cluster
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem


def directives_of(
    problem: Problem, mapping: Mapping, roles: Roles, plan: Plan
) -> tuple[DirectiveLayer, DirectiveHardware]:
    """The layer and the part of the hardware that the mapping uses. The mapping is legal.

    Raises:
        NotConformableError: tensors sent separately, bypassed or unevenly held; a filter cut in time outside L1, or in
            space under a stride or unequally; a dimension that would need two loops in one level; a fold that is not
            full; more levels than MAESTRO knows.
    """
    layer = layer_of(problem, roles)
    letters = letters_of(layer)
    table = empty_table(1, len(letters.sizes))
    batch = MappingBatch.pack(problem, [mapping])
    nests = nests_of(batch, roles, plan, layer)
    write_rows(letters, nests, np.ones(1, dtype=np.bool_), integer(0), table, scratch_of(nests, table))
    if table.fault[0, 0]:
        raise refusal(*_reason(table.fault[0].tolist(), mapping, problem, roles, plan, names_of(layer)))
    levels = tuple(tuple(_maps(table, level, names_of(layer))) for level in range(table.levels[0]))
    clusters = table.clusters[0, : len(levels)].tolist()
    hardware = DirectiveHardware(
        num_pes=math.prod(clusters),
        noc_bandwidth=plan.noc_bandwidth,
        noc_latency=plan.noc_latency,
        offchip_bandwidth=plan.offchip_bandwidth,
        simd_lanes=int(table.lanes[0]),
    )
    return layer.model_copy(update={"levels": levels, "cluster_sizes": tuple(clusters[1:])}), hardware


def layer_of(problem: Problem, roles: Roles) -> DirectiveLayer:
    """The problem as a layer without dataflow."""
    sizes = roles.sizes(problem)
    return DirectiveLayer.model_validate(
        {"name": problem.name, "type": roles.type, "dimensions": sizes, "strides": dict(roles.strides), "levels": ((),)}
    )


def nests_of(mappings: MappingBatch | Candidates, roles: Roles, plan: Plan, layer: DirectiveLayer) -> Nests:
    """A batch or candidates for `write_rows`; `layer` is the problem's."""
    names, space = names_of(layer), mappings.space if isinstance(mappings, Candidates) else mappings
    problem, entries = space.problem, space.skeleton.entries
    played = {letter: problem.dimensions[name] for name, letter in roles.letters.items()}
    dims, tensors = len(problem.dimensions), len(problem.tensors)
    slides = {window: name for name, window in WINDOWS.items() if layer.type != "GEMM"}

    def held_in(cluster: Cluster) -> Bools:
        return for_kernel(np.array([entry.holds and entry.target == cluster.name for entry in entries]))

    by_entry = [(index, in_space) for index in range(len(entries)) for in_space in (False, True)][1:]
    nests = Nests(
        letter=_ints([names.index(roles.letters[name]) for name in problem.dimension_names]),
        whole=_ints([played.get(name, 1) for name in names]),
        refused=_ints(
            [
                [STEPPED_WINDOW if name in slides else FINE for name in names],
                [STRIDED_WINDOW if layer.stride(slides.get(name, "")) != 1 else FINE for name in names],
            ]
        ),
        idle=_ints([names.index(name) for name in "RMNK" if name in played]),
        last_resort=integer(names.index("C") if "C" in names else 0),
        l2=held_in(plan.l2),
        l1=held_in(plan.l1),
        slots=_ints([(entry, in_space, NOWHERE if in_space else entry) for entry, in_space in by_entry]),
        trips=for_kernel(np.zeros((0, 0, dims), dtype=np.int64)),
        temporal=for_kernel(np.zeros((0, len(entries), dims), dtype=np.int64)),
        spatial=for_kernel(np.zeros((0, len(entries), dims), dtype=np.int64)),
        order=for_kernel(np.zeros((0, 0, dims), dtype=np.int8)),
        spatial_order=for_kernel(np.zeros((0, len(entries), dims), dtype=np.int8)),
        keep=for_kernel(_keeps(mappings)),
        unicast=for_kernel(np.zeros((0, len(entries), tensors), dtype=np.bool_)),
    )
    if isinstance(mappings, Candidates):
        blocks = {slot: block for block, slot in enumerate(mappings.space.temporal_slots)}
        slots = [(slot.entry, slot.spatial, blocks.get(index, NOWHERE)) for index, slot in enumerate(mappings.space.slots)]
        return nests._replace(trips=for_kernel(mappings.trips), slots=_ints(slots), order=for_kernel(mappings.orders))
    given: dict[str, Any] = {
        name: for_kernel(array)
        for name in ("temporal", "spatial", "order", "spatial_order", "unicast")
        if (array := getattr(mappings, name)) is not None
    }
    return nests._replace(**given)


def _keeps(mappings: MappingBatch | Candidates) -> Bools:
    """What is kept, of one mapping where all keep the same."""
    if isinstance(mappings, MappingBatch):
        return mappings.keep
    return mappings.space.keeps[0][None] if mappings.keep is None else mappings.keep


def _ints(values: Sequence[object]) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))


def _maps(table: Table, level: int, names: tuple[str, ...]) -> Iterator[Map]:
    """The directives of a level of the first row."""
    spatial = (table.unrolled[0, level], table.pair[0, level])
    for letter in table.order[0, level].tolist():
        if letter != NOWHERE:
            size, offset = int(table.size[0, level, letter]), int(table.offset[0, level, letter])
            yield Map(spatial=letter in spatial, size=size, offset=offset, dimension=names[letter])


def _reason(
    fault: list[int], mapping: Mapping, problem: Problem, roles: Roles, plan: Plan, names: tuple[str, ...]
) -> tuple[str, str, str]:
    """Code, place and message of what `write_rows` found."""
    code, which, size, trips, tile = fault
    if code == UNICAST:
        sent = ", ".join(mapping.entries[which].unicast)
        return (
            "unicast",
            place(mapping, which),
            f"sends {sent} to each sub-cluster separately; MAESTRO always multicasts",
        )
    if code in (BYPASS_L2, BYPASS_L1):
        name = (plan.l2 if code == BYPASS_L2 else plan.l1).name
        kept = {tensor for entry in mapping.entries if entry.target == name for tensor in entry.keep or ()}
        missing = ", ".join(tensor for tensor in problem.tensor_names if tensor not in kept)
        return "bypass", name, f"{missing} bypasses it; in MAESTRO every tensor goes through L2 and L1"
    if code == UNEVEN:
        return "uneven", plan.l1.name, "holds tiles of different entries; MAESTRO has one tile per PE"
    if code == LEVELS:
        return "levels", "mapping", f"needs more than {MAX_LEVELS} levels of clusters; MAESTRO has at most {MAX_LEVELS}"
    kind, message = {
        STEPPED_WINDOW: ("window", "steps outside L1; MAESTRO wants filters whole in time"),
        STRIDED_WINDOW: ("window", "is unrolled under a stride; MAESTRO's diagonals are those of stride 1"),
        REPEATED: ("repeated", "would need two loops in one level; MAESTRO has one per dimension"),
        FOLD: ("fold", f"steps by {size} and is unrolled {trips} times {tile} in one level"),
        PIECES: ("window", f"{size} are unrolled {trips} times {tile}; a diagonal's pieces are equal"),
    }[code]
    return kind, f"dimension {roles.dimension(names[which])}", message
