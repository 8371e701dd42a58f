"""Report: everything a cost model has to say about one mapping. Its JSON form is what `evaluate --json` prints."""

from __future__ import annotations

from tilewright.conformability import Reason
from tilewright.document import Model
from tilewright.frozen import FrozenDict


class TensorCounts(Model):
    """Accesses of one tensor at one level, per instance of the memory, in words; energy over all instances."""

    reads: int
    fills: int
    updates: int
    instances: int
    tile_words: int
    energy_pj: float
    partition_words: int | None = None


class LevelReport(Model):
    """One memory. `instances` are those in use; `cycles` what its bandwidth makes of the run."""

    name: str
    instances: int
    cycles: int
    energy_pj: float
    tensors: FrozenDict[str, TensorCounts] = FrozenDict()


class Delivery(Model):
    """`accesses` words, each sent to `multicast` sub-clusters; `scatter` groups of that size side by side."""

    multicast: int
    scatter: int
    accesses: int
    hops: float


class NetworkReport(Model):
    """The traffic of one tensor over the wires below a level, per instance of the level; energy over all of them."""

    name: str
    tensor: str
    ingresses: int
    deliveries: tuple[Delivery, ...] = ()
    link_transfers: int = 0
    spatial_reductions: int = 0
    hops: float = 0.0
    energy_pj: float = 0.0


class Report(Model):
    """A priced mapping; with `valid` false, `reasons` says why and the figures are absent."""

    model: str
    problem: str
    valid: bool
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[str, ...] = ()
    macs: int
    cycles: int | None = None
    energy_pj: float | None = None
    edp: float | None = None
    """energy_pj x cycles."""
    utilization: float | None = None
    compute_energy_pj: float | None = None
    levels: tuple[LevelReport, ...] = ()
    networks: tuple[NetworkReport, ...] = ()
