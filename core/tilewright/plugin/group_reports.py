"""Report of a group mapping, from the counts of its layers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilewright.prices import leakage_pj, operations_pj
from tilewright.reports import Accesses, InstanceCounts, LevelReport, Limit, Report, TensorCounts, overlapping
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping


@dataclass(frozen=True)
class GroupRow:
    """Accesses of one layer to one tensor in one memory, the largest tile in words, and pJ of all instances.

    >>> none, moved = InstanceCounts(total=0, most=0), InstanceCounts(total=64, most=64)
    >>> counts = Accesses(level="DRAM", tensor="A", layer="first", instances=1, reads=moved, fills=none, updates=none)
    >>> GroupRow(counts, tile_words=64, energy_pj=640.0).accesses.reads.total
    64
    """

    accesses: Accesses
    tile_words: int
    energy_pj: float


def group_report(
    report: Report,
    group: GroupMapping,
    rows: Sequence[GroupRow],
    limits: Mapping[str, Sequence[Limit]],
    peaks: Mapping[str, float],
) -> Report:
    """Return a valid copy of a report with the costs of a group; layers run in sequence.

    A model that counts a group itself (`GroupModel`) makes its report of its counts. Here is a group of one layer:

    >>> import numpy as np, tilewright as tw
    >>> problem, eyeriss = tw.load("nk,km->nm; n=4 k=4 m=4", "problem"), tw.load("eyeriss", "architecture")

    A mapping is a group.

    >>> mapping = tw.space(problem, eyeriss).sample(np.random.default_rng(0), 1)[0]
    >>> group = GroupMapping.of(problem, eyeriss, mapping)

    It moves 64 words of A.

    >>> none, moved = InstanceCounts(total=0, most=0), InstanceCounts(total=64, most=64)
    >>> words = Accesses(level="DRAM", tensor="einsum.A", layer="einsum", instances=1, reads=moved, fills=none, updates=none)
    >>> limits = {"einsum": [Limit(name="compute", action="compute", cycles=64)]}

    The report has the cycles of the slowest limit.

    >>> head = Report(model="mine", problem=group.name, macs=problem.macs, valid=False)
    >>> peaks = {memory.name: 16 for memory in eyeriss.memories}
    >>> group_report(head, group, [GroupRow(words, tile_words=16, energy_pj=640.0)], limits, peaks).cycles
    64

    Args:
        rows: the accesses, with the group's names of the tensors.
        limits: layer -> limits on its cycles; each layer takes as long as its slowest one.
        peaks: every memory -> words alive at one moment, at most.
    """
    architecture = group.architecture
    joint = {layer: overlapping(layer_limits) for layer, layer_limits in limits.items()}
    cycles = sum(max(limit.cycles for limit in layer_limits) for layer_limits in joint.values())
    joined = _joined(joint)
    used = Counter[str]()
    for row in rows:
        used[row.accesses.level] = max(used[row.accesses.level], row.accesses.instances)
    # an empty storage entry leaks, too
    targets = {
        entry.target for path in group.paths.values() for entry in path.mapping.entries if entry.keep is not None
    }
    levels, leaked = [], leakage_pj(architecture, cycles, used)
    for cluster in architecture.clusters:
        instances = max([1, *(used[memory.name] for memory in cluster.memories)])
        for memory in cluster.memories if cluster.name in targets else ():
            tensors = _tensors(row for row in rows if row.accesses.level == memory.name)
            levels.append(
                LevelReport(
                    name=memory.name,
                    instances=instances,
                    cycles=max((limit.cycles for limit in joined if limit.name == memory.name), default=0),
                    energy_pj=math.fsum(tensor.energy_pj for tensor in tensors.values()) + leaked[memory.name],
                    leakage_pj=leaked[memory.name],
                    tensors=FrozenDict(tensors),
                    used_words=int(peaks[memory.name]),
                    capacity_words=memory.usable_words,
                )
            )
    compute_pj = operations_pj(architecture.compute, report.macs)
    return report.with_costs(
        math.fsum([compute_pj, *(level.energy_pj for level in levels)]),
        cycles,
        architecture.compute_instances,
        limits=joined,
        compute_energy_pj=compute_pj,
        levels=tuple(levels),
        architecture=architecture.name,
        clock_ghz=architecture.clock_ghz,
        area_um2=architecture.area_um2,
        accesses=tuple(row.accesses for row in rows),
        layer_limits=FrozenDict(joint),
    )


def _tensors(rows: Iterator[GroupRow]) -> dict[str, TensorCounts]:
    """Return the counts of each tensor, added up over the layers."""
    tensors = dict[str, TensorCounts]()
    for row in rows:
        accesses = row.accesses
        known = tensors.get(accesses.tensor) or TensorCounts(
            reads=0, fills=0, updates=0, instances=0, tile_words=0, energy_pj=0.0
        )
        tensors[accesses.tensor] = TensorCounts(
            reads=known.reads + _average(accesses.reads, accesses),
            fills=known.fills + _average(accesses.fills, accesses),
            updates=known.updates + _average(accesses.updates, accesses),
            instances=max(known.instances, accesses.instances),
            tile_words=max(known.tile_words, row.tile_words),
            energy_pj=known.energy_pj + row.energy_pj,
        )
    return tensors


def _average(counts: InstanceCounts, accesses: Accesses) -> int:
    return math.floor(counts.total / accesses.instances + 0.5)


def _joined(limits: Mapping[str, Sequence[Limit]]) -> tuple[Limit, ...]:
    """Return the limits of all layers, added up by name and action."""
    joined = dict[tuple[str, str], Limit]()
    for limit in (limit for rows in limits.values() for limit in rows):
        known = joined.get((limit.name, limit.action))
        joined[limit.name, limit.action] = limit if known is None else known.model_copy(
            update={
                "cycles": known.cycles + limit.cycles,
                "binding_cycles": known.binding_cycles + limit.binding_cycles,
                "words": None if limit.words is None else limit.words + (known.words or 0),
            }
        )  # fmt: skip
    return tuple(joined.values())
