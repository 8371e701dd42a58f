"""Parts of a report: counts by level and tensor, networks, limits of the cycles, execution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tilewright.schema.frozen import FrozenDict
from tilewright.values import Model


class AccessCounts(Model):
    """Accesses of three kinds."""

    reads: int = 0
    fills: int = 0
    updates: int = 0


class MetadataCounts(Model):
    """Pieces of metadata: `stored` with the fullest tile, and accesses that are executed, gated, skipped."""

    stored: int = 0
    actual: AccessCounts = AccessCounts()
    gated: AccessCounts = AccessCounts()
    skipped: AccessCounts = AccessCounts()


class RankCounts(Model):
    """Metadata and payloads of one rank of a tensor's format."""

    format: str
    metadata: MetadataCounts = MetadataCounts()
    payload: MetadataCounts = MetadataCounts()


class SparseCounts(Model):
    """Accesses of one tensor at one level of sparse hardware, per instance of the memory.

    `dense` are the accesses without zeros. Accesses in no other field do not exist: a format omits
    them, or an action of an outer memory saves them.
    """

    dense: AccessCounts
    gated: AccessCounts = AccessCounts()
    skipped: AccessCounts = AccessCounts()
    metadata: tuple[RankCounts, ...] = ()
    """Counts of each rank, outermost first; empty without a format."""
    decompressions: int = 0
    compressions: int = 0
    stored_words: int
    """Words of the fullest tile."""
    metadata_bits: int = 0
    """Bits of metadata of the fullest tile."""
    average_instances: float
    """Instances with work, on average; `instances` of the counts is the maximum."""


class TensorCounts(Model):
    """Accesses of one tensor at one level, in values per instance of the memory.

    Energy is over all instances. A value occupies one word unless the memory's `bits_per_value` gives another width.
    """

    reads: int
    fills: int
    updates: int
    instances: int
    tile_words: int
    energy_pj: float
    partition_words: int | None = None
    sparse: SparseCounts | None = None
    """Counts of sparse hardware. `reads`, `fills` and `updates` are then those that are executed."""

    @property
    def stored_words(self) -> int:
        """Words that the tile occupies: those of its fullest form if it is compressed."""
        return self.tile_words if self.sparse is None else self.sparse.stored_words


class LevelReport(Model):
    """One memory.

    `instances` are those in use. `cycles` is the run's lower bound from its bandwidth. Leakage is part of the energy.
    Tiles occupy `used_words` of the `capacity_words` of an instance; None: not reported, or no limit.
    """

    name: str
    instances: int
    cycles: int
    energy_pj: float
    leakage_pj: float = 0.0
    tensors: FrozenDict[str, TensorCounts] = FrozenDict()
    used_words: int | None = None
    capacity_words: int | None = None


LimitAction = Literal["compute", "read", "write", "access", "send", "collect", "load", "unload", "link", "wait"]


ACTIONS = {
    "compute": "", "read": "reads", "write": "writes", "access": "bandwidth", "send": "to the inside",
    "collect": "to the outside", "load": "in", "unload": "out", "link": "busiest link", "wait": "with its waits",
}  # fmt: skip
"""Action of a limit -> its printed name."""


class Limit(Model):
    """One possible bottleneck of a run: compute, a memory's reads or writes, or the NoC.

    `cycles` is the length of the run if everything else were faster. `binding_cycles` are the
    cycles in which all else waits for this; those of all limits add up to the report's cycles.
    `words` at `words_per_cycle` are those of the busiest instance.
    """

    name: str
    action: LimitAction
    cycles: int
    binding_cycles: int = 0
    words: int | None = None
    words_per_cycle: float | None = None

    @property
    def title(self) -> str:
        """Name in tables and charts, such as `DRAM reads` or `compute`."""
        return f"{self.name} {ACTIONS[self.action]}".rstrip()


def overlapping(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Return the limits of a run in which everything overlaps.

    The slowest one, or the first of equals, binds all of its cycles.
    """
    joint = list(limits)
    slowest = max(range(len(joint)), key=lambda index: joint[index].cycles)
    joint[slowest] = joint[slowest].model_copy(update={"binding_cycles": joint[slowest].cycles})
    return tuple(joint)


class Delivery(Model):
    """`accesses` words, each sent to `multicast` sub-clusters, by `scatter` groups in parallel."""

    multicast: int
    scatter: int
    accesses: int
    hops: float


class NetworkReport(Model):
    """Traffic of one tensor over the network below a level, per instance of the level.

    Energy is over all instances.
    """

    name: str
    tensor: str
    ingresses: int
    deliveries: tuple[Delivery, ...] = ()
    link_transfers: int = 0
    spatial_reductions: int = 0
    hops: float = 0.0
    energy_pj: float = 0.0


class MeshReport(Model):
    """Words on the links of one mesh, over the whole run.

    All instances of the mesh carry the same. `loads` maps a link to its words, the busiest first.
    Its ends are routers (x, y), `memory` outside, or the `node` of a router. Idle links are left out.
    """

    name: str
    tensors: tuple[str, ...]
    loads: FrozenDict[str, int]


class InstanceCounts(Model):
    """A count over the instances of a memory: the sum, and the maximum of one instance."""

    total: int
    most: int


class Served(Model):
    """`words` accesses, each serving `children` sub-clusters, or adding up their partial sums."""

    children: int
    words: int


class Accesses(Model):
    """Accesses of one tensor in one memory, executed or counted.

    `instances` are those that ever held a word of it. `served` groups the accesses from inside by the number of
    sub-clusters or compute units that shared one. In a group, the accesses are those of `layer`.
    """

    level: str
    tensor: str
    layer: str | None = None
    instances: int
    reads: InstanceCounts
    fills: InstanceCounts
    updates: InstanceCounts
    served: tuple[Served, ...] = ()


class Execution(Model):
    """Measurements of a model that executes the mapping, whether it is legal or not.

    Of the problem's iterations, `missing` were never executed and `repeated` more than once. `outside` operations were
    on iterations that the problem lacks. Of `result_words`, `wrong_words` differ from the true result.
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
        """Whether every iteration was executed exactly once, and no other."""
        return not (self.missing or self.repeated or self.outside)
