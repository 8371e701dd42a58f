"""Construction of a mapping from blocks: loops, then kept tensors, then an unrolling.

Adapters use it for notations without entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field, replace

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem


@dataclass
class LoopBlock:
    """Temporal loops, then tensors kept on a cluster, then a spatial unrolling.

    Attributes:
        target: the cluster.
        keep: tensors kept there; None: no storage level.
        loops: dimension and tile size of each loop, outermost first.
        unrolled: dimension -> tile of a sub-cluster, outermost first.
        unicast: tensors sent to each sub-cluster separately.
    """

    target: str
    keep: list[str] | None = None
    loops: list[tuple[str, int]] = field(default_factory=list)
    unrolled: dict[str, int] = field(default_factory=dict)
    unicast: tuple[str, ...] = ()


def mapping_of(problem: Problem, blocks: Sequence[LoopBlock]) -> Mapping:
    """Return the mapping of these blocks; see `entries_of`."""
    return Mapping(entries=entries_of(problem.dimensions, problem.tensor_names, blocks))


def entries_of(
    dimensions: MappingOf[str, int], tensor_names: Sequence[str], blocks: Sequence[LoopBlock]
) -> tuple[Entry, ...]:
    """Return one entry per block, or several if a dimension has two loops.

    Two loops must stay apart, because merging them changes the traffic of sliding windows.

    Args:
        dimensions: dimension -> tile size outside the first block.
        tensor_names: the tensors in their order.
        blocks: the blocks, outermost first.
    """
    tile = dict(dimensions)
    entries = []
    for block in (part for item in blocks for part in _without_repeats(item)):
        tile |= dict(block.loops)
        stepping = list(dict.fromkeys(name for name, _ in block.loops))
        placed = (*block.unrolled, *(name for name in dimensions if name not in block.unrolled))
        temporal = FrozenDict(tile)
        tile |= block.unrolled
        entries.append(
            Entry(
                target=block.target,
                keep=None if block.keep is None else tuple(name for name in tensor_names if name in block.keep),
                temporal_order=(*stepping, *(name for name in dimensions if name not in stepping)),
                temporal_tile_sizes=temporal,
                spatial_tile_sizes=FrozenDict(tile),
                spatial_order=placed if _inverted(dimensions, block) else None,
                unicast=block.unicast,
            )
        )
    return tuple(entries)


def _inverted(dimensions: MappingOf[str, int], block: LoopBlock) -> bool:
    """Return whether the unrollings have another order than the dimensions."""
    return list(block.unrolled) != [name for name in dimensions if name in block.unrolled]


def _without_repeats(block: LoopBlock) -> Iterator[LoopBlock]:
    loops: list[tuple[str, int]] = []
    for name, size in block.loops:
        if name in (dimension for dimension, _ in loops):
            yield LoopBlock(block.target, loops=loops)
            loops = []
        loops = [*loops, (name, size)]
    yield replace(block, loops=loops)
