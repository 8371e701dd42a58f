"""A mapping from what notations without entries say: where tensors are held, and the loops between these places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem


@dataclass
class Step:
    """Loops in time, then what is held on a cluster, then a split.

    Attributes:
        target: the cluster.
        keep: tensors held there; None: no storage level.
        loops: dimension and the tile it steps by, outermost first.
        splits: dimension -> tile of a sub-cluster.
        unicast: tensors sent to each sub-cluster by themselves.
    """

    target: str
    keep: list[str] | None = None
    loops: list[tuple[str, int]] = field(default_factory=list)
    splits: dict[str, int] = field(default_factory=dict)
    unicast: tuple[str, ...] = ()


def mapping_of(problem: Problem, steps: Sequence[Step]) -> Mapping:
    """One entry per step, or several where a dimension turns twice: two loops are not one where windows slide."""
    tile = dict(problem.dimensions)
    entries = []
    for step in (turn for each in steps for turn in _in_turns(each)):
        tile |= dict(step.loops)
        stepping = list(dict.fromkeys(name for name, _ in step.loops))
        temporal = FrozenDict(tile)
        tile |= step.splits
        entries.append(
            Entry(
                target=step.target,
                keep=None if step.keep is None else tuple(name for name in problem.tensor_names if name in step.keep),
                temporal_order=(*stepping, *(name for name in problem.dimensions if name not in stepping)),
                temporal_tile_sizes=temporal,
                spatial_tile_sizes=FrozenDict(tile),
                unicast=step.unicast,
            )
        )
    return Mapping(entries=tuple(entries))


def _in_turns(step: Step) -> Iterator[Step]:
    loops: list[tuple[str, int]] = []
    for name, size in step.loops:
        if name in (each for each, _ in loops):
            yield Step(step.target, loops=loops)
            loops = []
        loops = [*loops, (name, size)]
    yield replace(step, loops=loops)
