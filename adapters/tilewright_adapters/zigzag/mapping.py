"""Conversion of ZigZag's mapping of a layer.

It consists of spatial loops per array dimension and temporal loops in one order. The allocation
rule determines what each memory keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, SpatialRule, TripRange, UnsearchedRule, Variant
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.loopblocks import LoopBlock, mapping_of
from tilewright_adapters.zigzag.accelerator import Accelerator
from tilewright_adapters.zigzag.allocation import Store, ZigZagLoop, allocated, reach, summing
from tilewright_adapters.zigzag.files import LayerMapping
from tilewright_adapters.zigzag.workload import Layer

Unrolled = dict[str, dict[str, int]]
"""Dimension of the array -> dimension of the layer -> trips."""


class NonNestedError(Exception):
    """Error: residency does not nest.

    An inner memory keeps its tile for longer than an outer memory keeps another operand's tile.
    Nested clusters cannot express this.
    """


def chosen(mappings: Sequence[LayerMapping], name: str | None, operator: str | None) -> LayerMapping | None:
    """Return the mapping for a layer's name, its operator type, or `default`, as ZigZag chooses."""
    for wanted in (name, operator, "default"):
        for mapping in mappings:
            if wanted is not None and mapping.name == wanted:
                return mapping
    return None


def unrolled(
    said: LayerMapping, sizes: MappingOf[str, int], array: MappingOf[str, int], warnings: list[str]
) -> Unrolled:
    """Return the unrolling, cut to the array and the layer as ZigZag does."""
    counts: Unrolled = {}
    so_far = dict.fromkeys(sizes, 1)
    for axis, texts in (said.spatial_mapping or {}).items():
        if axis not in array:
            raise ValueError(f"spatial_mapping names {axis}; the array has {', '.join(array)}")
        counts[axis] = {}
        room = array[axis]
        for text in texts:
            name, _, number = text.partition(",")
            name, count = name.strip().upper(), int(number)
            if name not in sizes:
                warnings.append(f"the layer has no dimension {name}, which is unrolled over {axis}: ignored")
                continue
            most = max(1, min(room, -(-sizes[name] // so_far[name])))
            if count > most:
                warnings.append(
                    f"{name} is unrolled over {axis} {count} times: reduced to {most}, which fit the array and the layer"
                )
            count = min(count, most)
            counts[axis][name] = count
            so_far[name] *= count
            room //= max(1, count)
    return counts


def within_reach(unrolling: Unrolled, stores: Sequence[Store], layer: Layer) -> tuple[Unrolled, list[str]]:
    """Return the unrolling, cut to what innermost memories can move in one cycle, and messages."""
    limits = reach(stores, layer.stored)
    cut, told = dict[str, dict[str, int]](), []
    for axis, counts in unrolling.items():
        cut[axis] = {}
        for name, count in counts.items():
            most, memory = limits.get((axis, name), (count, ""))
            if count > most:
                told.append(f"{name} is unrolled over {axis} {count} times, but {memory} moves {most} at once")
            cut[axis][name] = max(1, min(count, most))
    return cut, told


def ordering(said: LayerMapping, sizes: MappingOf[str, int], unrolling: Unrolled) -> list[tuple[str, int]] | None:
    """Return the temporal loops, innermost first; None if ZigZag would search for them.

    Raises:
        ValueError: the loops do not match what the spatial loops leave.
    """
    left = {
        name: -(-size // math.prod(axis.get(name, 1) for axis in unrolling.values())) for name, size in sizes.items()
    }
    named = [(name.upper(), count) for name, count in said.temporal_ordering if name.upper() in sizes]
    given = dict.fromkeys(sizes, 1)
    for name, count in named:
        given[name] *= 1 if isinstance(count, str) else count
    loops = []
    for name, count in named:
        number = -(-left[name] // given[name]) if isinstance(count, str) else count
        if isinstance(count, str):
            given[name] *= number
        loops.append((name, number))
    if any(number > 1 and name not in dict(named) for name, number in left.items()):
        return None
    for name, number in left.items():
        if given[name] != number:
            raise ValueError(
                f"temporal_ordering has {given[name]} iterations of {name}; the spatial loops leave {number}"
            )
    return [(name, number) for name, number in loops if number > 1]


def spatial_loops(unrolling: Unrolled, sizes: MappingOf[str, int]) -> dict[str, list[ZigZagLoop]]:
    """Return the spatial loops per array dimension.

    The widest unrolling of a ragged dimension has a fraction, as in ZigZag, so that the remaining
    steps are whole.
    """
    loops: dict[str, list[ZigZagLoop]] = {}
    for axis, counts in unrolling.items():
        loops[axis] = []
        for name, count in counts.items():
            all_counts = {other_axis: other[name] for other_axis, other in unrolling.items() if name in other}
            widest = next(other_axis for other_axis, number in all_counts.items() if number == max(all_counts.values()))
            width: int | float = count
            if axis == widest:
                before = math.prod(
                    n
                    for other_axis, n in all_counts.items()
                    if list(unrolling).index(other_axis) < list(unrolling).index(axis)
                )
                steps = math.ceil(sizes[name] / (count * before))
                exact = sizes[name] / steps / before
                width = int(exact) if exact == int(exact) else exact
            loops[axis].append((name, width))
    return loops


def linked(stores: Sequence[Store], links: MappingOf[str, str]) -> list[Store]:
    """Return the memories with operands of the layer.

    `links`: operand of the layer -> operand of memories.
    """
    back = {memory: operand for operand, memory in links.items()}
    return [
        replace(
            store,
            operands=tuple(back[name] for name in store.operands),
            widths={back[name]: bits for name, bits in store.widths.items()},
        )
        for store in stores
    ]


def build(
    accelerator: Accelerator, stores: Sequence[Store], layer: Layer, unrolling: Unrolled, order: list[tuple[str, int]]
) -> tuple[Mapping, frozenset[str], MappingOf[str, Sequence[int]]]:
    """Return the mapping that ZigZag would evaluate, the memories that receive partial sums, and the loops they keep.

    The loops are the number for each operand and memory, from `allocated`.

    Raises:
        DoesNotFitError: a memory is too small.
        NonNestedError: an inner memory keeps its tile for longer than an outer memory keeps another
            operand's tile.
    """
    spatial = spatial_loops(unrolling, layer.problem.dimensions)
    taken = allocated(stores, layer.stored, order, spatial)
    index = accelerator.architecture.cluster_index
    places = [
        (index[accelerator.cluster_of[store.name]], operand, len(order) - sum(taken[operand][: level + 1]))
        for operand in taken
        for level, store in enumerate(store for store in stores if operand in store.operands)
    ]
    held = _nested_residency(places, layer, order, accelerator.architecture)
    mapping = nest(accelerator.architecture, layer.problem, held, unrolling, accelerator.unrolled_at, order)
    return mapping, summing(stores, layer.stored["O"], order, spatial, taken["O"]), taken


def _nested_residency(
    places: Sequence[tuple[int, str, int]], layer: Layer, order: Sequence[tuple[str, int]], architecture: Architecture
) -> dict[tuple[int, int], list[str]]:
    """Return (temporal loops outside, cluster) -> operands kept there, clusters outermost first.

    Loops that do not index an operand leave its tile unchanged. The tile may therefore be kept
    inside these loops. It must be if an outer cluster keeps another operand for a shorter time.

    Args:
        places: cluster, operand, temporal loops outside.
        layer: the layer.
        order: temporal loops, innermost first.
        architecture: the architecture.

    Raises:
        NonNestedError: no such order exists.
    """
    outermost_first = [name for name, _ in reversed(order)]
    held: dict[tuple[int, int], list[str]] = {}
    before, outer = 0, ""
    for cluster in sorted({place[0] for place in places}):
        here = [place for place in places if place[0] == cluster]
        furthest = before
        for _, operand, outside in sorted(here, key=lambda row: row[2]):
            between = outermost_first[outside:before]
            if any(layer.stored[operand].indexed_by(name) for name in between):
                raise NonNestedError(
                    f"{architecture.clusters[cluster].name} keeps its tile of {operand} for longer than the outer memory {outer} "
                    "keeps its own"
                )
            held.setdefault((max(outside, before), cluster), []).append(operand)
            furthest = max(furthest, outside)
        if furthest > before or not outer:
            before, outer = furthest, architecture.clusters[cluster].name
    return held


def nest(
    architecture: Architecture,
    problem: Problem,
    held: MappingOf[tuple[int, int], Sequence[str]],
    unrolling: Unrolled,
    unrolled_at: MappingOf[str, str],
    order: Sequence[tuple[str, int]],
) -> Mapping:
    """Return a mapping from the tensors kept at each point.

    Args:
        architecture: the architecture.
        problem: the problem.
        held: (temporal loops outside, cluster) -> tensors.
        unrolling: the spatial loops.
        unrolled_at: dimension of the array -> cluster with that fanout.
        order: temporal loops, innermost first.
    """
    outermost_first, done = list(reversed(order)), 0
    tile = dict(problem.dimensions)

    def cut(name: str, count: int) -> int:
        tile[name] = -(-tile[name] // count)
        return tile[name]

    def trips(loops: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Merge adjacent loops of one dimension; the files have one for each prime factor."""
        runs = groupby(loops, key=lambda loop: loop[0])
        return [(name, cut(name, math.prod(count for _, count in run))) for name, run in runs]

    blocks: list[LoopBlock] = []
    for number, cluster in enumerate(architecture.clusters):
        here = sorted(outside for outside, at in held if at == number)
        for outside in here:
            blocks.append(LoopBlock(cluster.name, list(held[outside, number]), trips(outermost_first[done:outside])))
            done = outside
        here_unrolled = [
            factors for axis, factors in unrolling.items() if factors and unrolled_at[axis] == cluster.name
        ]
        if number == len(architecture.clusters) - 1 and done < len(order):  # loops inside all kept tiles
            blocks.append(LoopBlock(cluster.name, loops=trips(outermost_first[done:])))
        elif here_unrolled and not here:
            blocks.append(LoopBlock(cluster.name))
        for counts in here_unrolled:
            blocks[-1].unrolled |= {name: cut(name, count) for name, count in counts.items()}
    return mapping_of(problem, blocks)


def single_buffered(
    architecture: Architecture, problem: Problem, mapping: Mapping
) -> tuple[Architecture, tuple[str, ...]]:
    """Return the architecture without double buffering where all kept tensors are whole, and these memories.

    ZigZag's allocation rule doubles a tile only if it is a part of the tensor.
    """
    whole: dict[str, bool] = {}
    for entry in mapping.entries:
        for name in entry.keep or ():
            tensor = problem.tensor(name)
            memory = architecture.cluster(entry.target).memory_for(tensor)
            assert memory is not None, "the rule keeps what a memory may hold"
            is_whole = all(
                entry.temporal_tile_sizes[dimension] == problem.dimensions[dimension] for dimension in tensor.dimensions
            )
            whole[memory.name] = whole.get(memory.name, True) and is_whole
    single = {
        memory.name for memory in architecture.memories if memory.multiple_buffering > 1 and whole.get(memory.name)
    }
    changed = architecture.with_memories(
        lambda memory: memory.model_copy(update={"multiple_buffering": 1.0}) if memory.name in single else memory
    )
    return changed, tuple(sorted(single))


def constraints(said: LayerMapping, unrolling: Unrolled, accelerator: Accelerator, where: str) -> Constraints | None:
    """Return the constraints of a mapping without an order of loops.

    These fix the unrolling. For array dimensions with a hint, they fix which dimensions may be
    unrolled. A part of an order is not searched; `where` is its place.
    """
    rules = []
    for axis, counts in unrolling.items():
        factors = {name: TripRange(min=count, max=count) for name, count in counts.items()}
        rules.append(
            SpatialRule(cluster=accelerator.unrolled_at[axis], only=tuple(counts), factors=FrozenDict(factors))
        )
    for axis, names in (said.spatial_mapping_hint or {}).items():
        if axis in accelerator.unrolled_at and axis not in unrolling:
            only = tuple(name.upper() for name in names)
            rules.append(SpatialRule(cluster=accelerator.unrolled_at[axis], only=only))
    order = ", ".join(f"{name} {count}" for name, count in said.temporal_ordering)
    why = f"the order {order}, which leaves loops open"
    unsearched = (UnsearchedRule(name="temporal_ordering", where=where, why=why),) if order else ()
    if not rules and not unsearched:
        return None
    return Constraints(
        name="zigzag",
        architecture=accelerator.architecture.name,
        factors="as_prescribed",
        variants=(Variant(spatial=tuple(rules), unsearched=unsearched),),
    )
