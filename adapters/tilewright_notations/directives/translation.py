"""Translation of a mapping to directives, by way of `nest`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.compiled import for_kernel, integer, interpreted
from tilewright.mapspace.batch import Bools, Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import place
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_notations.directives import nest
from tilewright_notations.directives.layer import DirectiveHardware, DirectiveLayer
from tilewright_notations.directives.nest import Cast, Nests
from tilewright_notations.directives.plan import Plan
from tilewright_notations.directives.roles import Roles, refusal
from tilewright_notations.directives.table import (
    MAX_LEVELS,
    NOWHERE,
    Letters,
    Table,
    empty_table,
    letters_of,
    maps_of,
    names_of,
    row,
)


def directives_of(
    problem: Problem, mapping: Mapping, roles: Roles, plan: Plan
) -> tuple[DirectiveLayer, DirectiveHardware]:
    """Translate a legal mapping to a layer with directives, and the hardware that it uses.

    Raises:
        NotConformableError: directives cannot express the mapping. Examples are a bypassed buffer,
            a filter cut by temporal loops outside L1, and two loops of a dimension in one level.
    """
    layer = layer_of(problem, roles)
    batch = MappingBatch.pack(problem, [mapping])
    nests = nests_of(batch, np.ones(1, dtype=np.bool_), form_of(batch, cast_of(problem, roles, layer), plan))
    table = written(letters_of(layer), nests, 0)
    if table.fault[0]:
        raise refusal(*_reason(table.fault.tolist(), mapping, problem, roles, plan, names_of(layer)))
    levels = tuple(maps_of(table, level, names_of(layer)) for level in range(table.levels[0]))
    clusters = table.clusters[: len(levels)].tolist()
    hardware = DirectiveHardware(
        num_pes=math.prod(clusters),
        noc_bandwidth=plan.noc_bandwidth,
        noc_latency=plan.noc_latency,
        offchip_bandwidth=plan.offchip_bandwidth,
        simd_lanes=int(table.lanes[0]),
    )
    return layer.model_copy(update={"levels": levels, "cluster_sizes": tuple(clusters[1:])}), hardware


def layer_of(problem: Problem, roles: Roles) -> DirectiveLayer:
    """Return the problem as a layer without dataflow."""
    sizes = roles.sizes(problem)
    return DirectiveLayer.model_validate(
        {"name": problem.name, "type": roles.type, "dimensions": sizes, "strides": dict(roles.strides), "levels": ((),)}
    )


def cast_of(problem: Problem, roles: Roles, layer: DirectiveLayer) -> Cast:
    """Return the letters that the problem's dimensions play; `layer` is the problem's layer."""
    names = names_of(layer)
    played = {letter: problem.dimensions[name] for name, letter in roles.letters.items()}
    strides, slides = letters_of(layer).strides, letters_of(layer).slides
    return Cast(
        letter=_ints([names.index(roles.letters[name]) for name in problem.dimension_names]),
        whole=row([played.get(name, 1) for name in names]),
        refused=_ints(
            [
                np.where(slides != NOWHERE, nest.STEPPED_WINDOW, nest.FINE),
                np.where((slides != NOWHERE) & (strides[slides] != 1), nest.STRIDED_WINDOW, nest.FINE),
            ]
        ),
        idle=_ints([names.index(name) for name in "RMNK" if name in played]),
        last_resort=integer(names.index("C") if "C" in names else 0),
    )


def form_of(mappings: MappingBatch | Candidates, cast: Cast, plan: Plan) -> Nests:
    """Return the arrays that all mappings over one skeleton or space share, without mappings."""
    if isinstance(mappings, Candidates):
        space = mappings.space
        entries, blocks = space.skeleton.entries, {slot: n for n, slot in enumerate(space.temporal_slots)}
        slots = [(slot.entry, int(slot.spatial), blocks.get(n, -1)) for n, slot in enumerate(space.slots)]
    else:
        entries = mappings.skeleton.entries
        slots = [(at // 2, at % 2, -1 if at % 2 else at // 2) for at in range(1, 2 * len(entries))]
    l2, l1 = ([entry.holds and entry.target == cluster.name for entry in entries] for cluster in (plan.l2, plan.l1))
    return Nests(cast=cast, l2=for_kernel(np.array(l2)), l1=for_kernel(np.array(l1)), slots=_ints(slots))


def nests_of(mappings: MappingBatch | Candidates, legal: Bools, form: Nests) -> Nests:
    """Return a batch or candidates as input of `nest.write_directives`."""
    if isinstance(mappings, Candidates):
        arrays: dict[str, NDArray[Any] | None] = {
            "trips": mappings.trips,
            "order": mappings.orders,
            "keep": mappings.kept,
        }
    else:
        names = ("temporal", "spatial", "order", "spatial_order", "keep", "unicast")
        arrays = {name: getattr(mappings, name) for name in names}
    arrays["legal"] = legal
    given: dict[str, Any] = {name: for_kernel(array) for name, array in arrays.items() if array is not None}
    return form._replace(**given)


def written(letters: Letters, nests: Nests, n: int) -> Table:
    """Return the directives of mapping n, which is legal, or the reason why it has none."""
    table = empty_table(int(letters.named))
    interpreted(nest.write_directives)(letters, nests, n, table, nest.scratch_of(nests, table))
    return table


def _ints(values: Sequence[object]) -> Ints:
    return for_kernel(np.array(values, dtype=np.int64))


def _reason(
    fault: list[int], mapping: Mapping, problem: Problem, roles: Roles, plan: Plan, names: tuple[str, ...]
) -> tuple[str, str, str]:
    """Return code, location and message of the reason that `nest.write_directives` found."""
    code, which, size, trips, tile = fault
    if code == nest.UNICAST:
        sent = ", ".join(mapping.entries[which].unicast)
        return (
            "unicast",
            place(mapping, which),
            f"sends {sent} to each sub-cluster separately; MAESTRO always multicasts",
        )
    if code in (nest.BYPASS_L2, nest.BYPASS_L1):
        name = (plan.l2 if code == nest.BYPASS_L2 else plan.l1).name
        kept = {tensor for entry in mapping.entries if entry.target == name for tensor in entry.keep or ()}
        missing = ", ".join(tensor for tensor in problem.tensor_names if tensor not in kept)
        return "bypass", name, f"{missing} bypasses it; MAESTRO keeps every tensor in L2 and L1"
    if code == nest.UNEVEN:
        return "uneven", plan.l1.name, "keeps tiles of different entries; MAESTRO has one tile per PE"
    if code == nest.LEVELS:
        return "levels", "mapping", f"needs more than {MAX_LEVELS} levels of clusters; MAESTRO has at most {MAX_LEVELS}"
    kind, message = {
        nest.STEPPED_WINDOW: ("window", "has temporal loops outside L1; MAESTRO does not tile filters temporally"),
        nest.STRIDED_WINDOW: ("window", "is unrolled under a stride; MAESTRO's diagonals have stride 1"),
        nest.REPEATED: ("repeated", "needs two loops in one level; MAESTRO has one per dimension"),
        nest.FOLD: ("fold", f"steps by {size} and is unrolled {trips} times {tile} in one level"),
        nest.PIECES: ("window", f"{size} are unrolled {trips} times {tile}; a diagonal's pieces are equal"),
    }[code]
    return kind, f"dimension {roles.dimension(names[which])}", message
