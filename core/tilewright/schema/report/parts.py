"""Parts of a report: counts by level and tensor, networks, what limits the cycles, what was executed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tilewright.schema.frozen import FrozenDict
from tilewright.values import Model

Objective = Literal["edp", "energy", "cycles"]
"""What a search makes small."""


class TensorCounts(Model):
    """Accesses of one tensor at one level, per instance of the memory, in values, which take a word each unless the memory's
    `bits_per_value` says otherwise; energy over all instances."""

    reads: int
    fills: int
    updates: int
    instances: int
    tile_words: int
    energy_pj: float
    partition_words: int | None = None


class LevelReport(Model):
    """One memory. `instances` are those in use; `cycles` what its bandwidth makes of the run; leakage is part of the energy.

    `used_words` of the `capacity_words` of an instance are taken by the tiles; None: not told, or no limit.
    """

    name: str
    instances: int
    cycles: int
    energy_pj: float
    leakage_pj: float = 0.0
    tensors: FrozenDict[str, TensorCounts] = FrozenDict()
    used_words: int | None = None
    capacity_words: int | None = None


LimitAction = Literal["compute", "read", "write", "access", "send", "collect", "load", "unload"]


class Limit(Model):
    """What a run may have to wait for: compute, a memory's reads or writes, the NoC.

    `cycles`: what the run would take if everything else were faster. `binding_cycles`: those of the report's cycles in
    which all else waits for this; those of all limits add up to the report's. `words` pass at `words_per_cycle`, both of
    the busiest instance.
    """

    name: str
    action: LimitAction
    cycles: int
    binding_cycles: int = 0
    words: int | None = None
    words_per_cycle: float | None = None


def overlapping(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """The limits of a run in which everything overlaps: the slowest (of equals the first) binds all of its cycles."""
    found = list(limits)
    slowest = max(range(len(found)), key=lambda index: found[index].cycles)
    found[slowest] = found[slowest].model_copy(update={"binding_cycles": found[slowest].cycles})
    return tuple(found)


class Delivery(Model):
    """`accesses` words, each sent to `multicast` sub-clusters; `scatter` groups of that size side by side."""

    multicast: int
    scatter: int
    accesses: int
    hops: float


class NetworkReport(Model):
    """The traffic of one tensor over the network below a level, per instance of the level; energy over all of them."""

    name: str
    tensor: str
    ingresses: int
    deliveries: tuple[Delivery, ...] = ()
    link_transfers: int = 0
    spatial_reductions: int = 0
    hops: float = 0.0
    energy_pj: float = 0.0


class InstanceCounts(Model):
    """A count over the instances of a memory: the sum, and that of the busiest instance."""

    total: int
    most: int


class Served(Model):
    """`words` accesses that each served `children` sub-clusters (or added up what so many sent)."""

    children: int
    words: int


class Accesses(Model):
    """What really happened to one tensor in one memory. `instances` are those that ever held a word of it.

    `served`: the accesses from inside, by how many sub-clusters (or compute units) shared one.
    """

    level: str
    tensor: str
    instances: int
    reads: InstanceCounts
    fills: InstanceCounts
    updates: InstanceCounts
    served: tuple[Served, ...] = ()


class Execution(Model):
    """What a model that runs the mapping saw, be the mapping legal or not.

    Iterations of the problem: `missing` were never executed, `repeated` more than once; `outside` operations were on
    iterations that the problem has not. `wrong_words` of the `result_words` differ from the true result.
    """

    operations: int
    missing: int
    repeated: int
    outside: int
    result_words: int
    wrong_words: int
    accesses: tuple[Accesses, ...] = ()

    @property
    def complete(self) -> bool:
        """Every iteration was executed exactly once, and nothing else."""
        return not (self.missing or self.repeated or self.outside)
