"""Parts of a report: counts by level and tensor, networks, limits of the cycles, execution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tilewright.schema.frozen import FrozenDict
from tilewright.values import Model


class AccessCounts(Model):
    """Accesses of three kinds.

    Example:
        >>> from tilewright.plugin import AccessCounts
        >>> AccessCounts(reads=4).fills
        0
    """

    reads: int = 0
    """Reads."""
    fills: int = 0
    """Fills from outside."""
    updates: int = 0
    """Updates from inside."""


class MetadataCounts(Model):
    """Pieces of metadata.

    Example:
        >>> from tilewright.plugin import MetadataCounts
        >>> MetadataCounts(stored=4).actual.reads
        0
    """

    stored: int = 0
    """Pieces with the fullest tile."""
    actual: AccessCounts = AccessCounts()
    """Accesses that are executed."""
    gated: AccessCounts = AccessCounts()
    """Accesses that are gated."""
    skipped: AccessCounts = AccessCounts()
    """Accesses that are skipped."""


class RankCounts(Model):
    """Metadata and payloads of one rank of a tensor's format.

    Example:
        >>> from tilewright.plugin import RankCounts
        >>> RankCounts(format="CP").metadata.stored
        0
    """

    format: str
    """Format of the rank."""
    metadata: MetadataCounts = MetadataCounts()
    """Pieces of metadata."""
    payload: MetadataCounts = MetadataCounts()
    """Payloads."""


class SparseCounts(Model):
    """Accesses of one tensor at one level of sparse hardware, per instance of the memory.

    Accesses in no field but `dense` do not exist: a format omits them, or an action of an outer memory saves them.

    Example:
        >>> from tilewright.plugin import AccessCounts, SparseCounts
        >>> SparseCounts(dense=AccessCounts(reads=8), stored_words=4, average_instances=1.0).gated.reads
        0
    """

    dense: AccessCounts
    """Accesses without zeros."""
    gated: AccessCounts = AccessCounts()
    """Accesses that are gated."""
    skipped: AccessCounts = AccessCounts()
    """Accesses that are skipped."""
    metadata: tuple[RankCounts, ...] = ()
    """Counts of each rank, outermost first; empty without a format."""
    decompressions: int = 0
    """Values that are expanded."""
    compressions: int = 0
    """Values that are compressed."""
    stored_words: int
    """Words of the fullest tile."""
    metadata_bits: int = 0
    """Bits of metadata of the fullest tile."""
    average_instances: float
    """Instances with work, on average; `instances` of the counts is the maximum."""


class TensorCounts(Model):
    """Accesses of one tensor at one level, in values per instance of the memory.

    Energy is over all instances. A value occupies one word unless the memory's `bits_per_value` gives another width.

    Example:
        >>> from tilewright.plugin import TensorCounts
        >>> TensorCounts(reads=8, fills=4, updates=0, instances=1, tile_words=4, energy_pj=12.0).tile_words
        4
    """

    reads: int
    """Values read."""
    fills: int
    """Values that arrive from outside."""
    updates: int
    """Values that arrive from inside."""
    instances: int
    """Instances that hold some of it."""
    tile_words: int
    """Values of the largest tile."""
    energy_pj: float
    """Energy in pJ."""
    partition_words: int | None = None
    """Values for which an instance has room; None: not reported."""
    sparse: SparseCounts | None = None
    """Counts of sparse hardware. `reads`, `fills` and `updates` are then those that are executed."""

    @property
    def stored_words(self) -> int:
        """Words that the tile occupies: those of its fullest form if it is compressed."""
        return self.tile_words if self.sparse is None else self.sparse.stored_words


class LevelReport(Model):
    """One memory.

    Example:
        >>> from tilewright.plugin import LevelReport
        >>> LevelReport(name="Buffer", instances=2, cycles=8, energy_pj=12.0).leakage_pj
        0.0
    """

    name: str
    """Name of the memory."""
    instances: int
    """Instances in use."""
    cycles: int
    """Least cycles of the run by its bandwidth."""
    energy_pj: float
    """Energy in pJ, with leakage."""
    leakage_pj: float = 0.0
    """Energy in pJ that leaks."""
    tensors: FrozenDict[str, TensorCounts] = FrozenDict()
    """Accesses of each tensor."""
    used_words: int | None = None
    """Words that tiles occupy in an instance; None: not reported."""
    capacity_words: int | None = None
    """Words of an instance; None: not reported, or no limit."""


LimitAction = Literal["compute", "read", "write", "access", "send", "collect", "load", "unload", "link", "wait"]


ACTIONS = {
    "compute": "", "read": "reads", "write": "writes", "access": "bandwidth", "send": "to the inside",
    "collect": "to the outside", "load": "in", "unload": "out", "link": "busiest link", "wait": "with its waits",
}  # fmt: skip
"""Action of a limit -> its printed name."""


class Limit(Model):
    """One possible bottleneck of a run: compute, a memory's reads or writes, or the NoC.

    Example:
        >>> from tilewright.plugin import Limit
        >>> Limit(name="DRAM", action="read", cycles=8, words=32, words_per_cycle=4).title
        'DRAM reads'
    """

    name: str
    """Name of the part."""
    action: LimitAction
    """Action of the part."""
    cycles: int
    """Length of the run if everything else were faster."""
    binding_cycles: int = 0
    """Cycles in which all else waits for it; those of all limits add up to the report's cycles."""
    words: int | None = None
    """Words that the busiest instance moves."""
    words_per_cycle: float | None = None
    """Bandwidth of an instance."""

    @property
    def title(self) -> str:
        """Name in tables and charts, such as `DRAM reads` or `compute`."""
        return f"{self.name} {ACTIONS[self.action]}".rstrip()


def overlapping(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Return the limits of a run in which everything overlaps.

    The slowest one, or the first of equals, binds all of its cycles.

    Example:
        >>> from tilewright.plugin import Limit, overlapping
        >>> reads, compute = Limit(name="DRAM", action="read", cycles=8), Limit(name="compute", action="compute", cycles=5)
        >>> [(limit.name, limit.binding_cycles) for limit in overlapping([reads, compute])]
        [('DRAM', 8), ('compute', 0)]
    """
    joint = list(limits)
    slowest = max(range(len(joint)), key=lambda index: joint[index].cycles)
    joint[slowest] = joint[slowest].model_copy(update={"binding_cycles": joint[slowest].cycles})
    return tuple(joint)


class Delivery(Model):
    """Words that are sent in one way.

    Example:
        >>> from tilewright.plugin import Delivery
        >>> Delivery(multicast=4, scatter=1, accesses=10, hops=2.0).accesses
        10
    """

    multicast: int
    """Sub-clusters that each word is sent to."""
    scatter: int
    """Groups of them in parallel."""
    accesses: int
    """Number of words."""
    hops: float
    """Hops of one word, on average."""


class NetworkReport(Model):
    """Traffic of one tensor over the network below a level, per instance of the level.

    Energy is over all instances.

    Example:
        >>> from tilewright.plugin import NetworkReport
        >>> NetworkReport(name="NoC", tensor="A", ingresses=4).energy_pj
        0.0
    """

    name: str
    """Name of the level."""
    tensor: str
    """Name of the tensor."""
    ingresses: int
    """Words that enter the network."""
    deliveries: tuple[Delivery, ...] = ()
    """Words by the way in which they are sent."""
    link_transfers: int = 0
    """Words that neighbours forward."""
    spatial_reductions: int = 0
    """Partial sums that the network adds."""
    hops: float = 0.0
    """Hops of all words."""
    energy_pj: float = 0.0
    """Energy in pJ."""


class MeshReport(Model):
    """Words on the links of one mesh, over the whole run. All instances of the mesh carry the same.

    Example:
        >>> from tilewright.plugin import FrozenDict, MeshReport
        >>> MeshReport(name="array", tensors=("A",), loads=FrozenDict({"east": 4})).loads["east"]
        4
    """

    name: str
    """Name of the cluster."""
    tensors: tuple[str, ...]
    """Tensors that it carries."""
    loads: FrozenDict[str, int]
    """Link -> its words, the busiest first. Its ends are routers (x, y), `memory` outside, or the `node` of a router. Idle links are left out."""


class InstanceCounts(Model):
    """A count over the instances of a memory: the sum, and the maximum of one instance.

    Example:
        >>> from tilewright.plugin import InstanceCounts
        >>> InstanceCounts(total=8, most=4).most
        4
    """

    total: int
    """Sum over the instances."""
    most: int
    """Maximum of one instance."""


class Served(Model):
    """Accesses that serve equally many sub-clusters, or add up their partial sums.

    Example:
        >>> from tilewright.plugin import Served
        >>> Served(children=4, words=10).words
        10
    """

    children: int
    """Sub-clusters that share one access."""
    words: int
    """Number of accesses."""


class Accesses(Model):
    """Accesses of one tensor in one memory, executed or counted.

    Example:
        >>> from tilewright.plugin import Accesses, InstanceCounts
        >>> count = InstanceCounts(total=8, most=4)
        >>> Accesses(level="Buffer", tensor="A", instances=2, reads=count, fills=count, updates=count).reads.total
        8
    """

    level: str
    """Name of the memory."""
    tensor: str
    """Name of the tensor."""
    layer: str | None = None
    """Layer of a group; None outside groups."""
    instances: int
    """Instances that ever held a word of it."""
    reads: InstanceCounts
    """Reads."""
    fills: InstanceCounts
    """Fills from outside."""
    updates: InstanceCounts
    """Updates from inside."""
    served: tuple[Served, ...] = ()
    """Accesses from inside, by the sub-clusters or compute units that shared one."""


class Execution(Model):
    """Measurements of a model that executes the mapping, whether it is legal or not.

    Example:
        >>> from tilewright.plugin import Execution
        >>> Execution(operations=8, missing=0, repeated=0, outside=0, result_words=4, wrong_words=0).wrong_words
        0
    """

    operations: int
    """Operations that were executed."""
    missing: int
    """Iterations of the problem that were never executed."""
    repeated: int
    """Iterations that were executed more than once."""
    outside: int
    """Operations on iterations that the problem lacks."""
    result_words: int
    """Words of the result."""
    wrong_words: int
    """Words that differ from the true result."""
    accesses: tuple[Accesses, ...] = ()
    """Accesses of each tensor in each memory."""

    @property
    def complete(self) -> bool:
        """Whether every iteration was executed exactly once, and no other."""
        return not (self.missing or self.repeated or self.outside)
