"""A Tilewright architecture in MAESTRO's terms: an optional DRAM, one L2, PEs with an L1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.errors import NotConformableError
from tilewright.plugin.adapter import NotationTable
from tilewright.schema.architecture import Architecture, Cluster, Memory, Network
from tilewright.schema.problem import Problem
from tilewright_notations.directives.roles import refusal

UNLIMITED = 2**31 - 1
TABLE = NotationTable(
    "MAESTRO's files",
    written=("capacity_words", "read_bandwidth_words_per_cycle", "bandwidth_words_per_cycle", "latency_cycles"),
    beside=(
        *("technology", "word_bits", "update_energy_pj", "write_bandwidth_words_per_cycle", "ports", "block_words"),
        *("instances_per_macro", "multiple_buffering", "leakage_pj_per_cycle", "power_gated_at", "energy_per_hop_pj"),
        *("energy_per_router_pj", "energy_per_ingress_pj"),
    ),
    instead={
        "cycles_per_operation": "MAESTRO has one",
        "footprint": "MAESTRO counts bounding boxes",
        "operands": "MAESTRO's has two",
        "shared_bandwidth": "MAESTRO has none of that kind",
        "timing": "MAESTRO has its own rules for waits",
        "widths": "MAESTRO counts words",
    },
)


@dataclass(frozen=True)
class Plan:
    """Clusters that act as DRAM, L2 and L1, with bandwidths in words per cycle, latency in cycles."""

    dram: Cluster | None
    l2: Cluster
    l1: Cluster
    noc_bandwidth: int
    noc_latency: int
    offchip_bandwidth: int

    @property
    def l1_words(self) -> int | None:
        """Total capacity of the memories of one PE, in words; None if unlimited."""
        return _capacity(self.l1)

    @property
    def l2_words(self) -> int | None:
        """Total capacity of L2's memories, in words; None if unlimited."""
        return _capacity(self.l2)


def plan_of(architecture: Architecture, problem: Problem | None = None) -> Plan:
    """Return the architecture in MAESTRO's terms, for a problem (None: any).

    Raises:
        NotConformableError: MAESTRO cannot express the memory levels, a bandwidth, the networks or an attribute.
    """
    holding = [cluster for cluster in architecture.clusters if cluster.memories]
    if len(holding) not in (2, 3):
        names = ", ".join(cluster.name for cluster in holding)
        message = f"has memories in {names}; MAESTRO has L2 and L1, and DRAM as a bandwidth"
        raise refusal("levels", architecture.name, message)
    # formats that save nothing do no harm, and cost models refuse all others by their capabilities
    if refused := tuple(reason for reason in TABLE.refused(architecture, problem) if reason.code != "sparse"):
        raise NotConformableError("MAESTRO", refused)
    dram, (l2, l1) = holding[0] if len(holding) == 3 else None, holding[-2:]
    network = l2.fanout.network
    _check_networks(architecture, l2)
    return Plan(
        dram=dram,
        l2=l2,
        l1=l1,
        noc_bandwidth=_words(network.bandwidth_words_per_cycle, f"network of {l2.name}"),
        noc_latency=network.latency_cycles,
        offchip_bandwidth=min((_read(memory) for memory in dram.memories), default=UNLIMITED) if dram else UNLIMITED,
    )


def _capacity(cluster: Cluster) -> int | None:
    words = [memory.capacity_words for memory in cluster.memories]
    return None if None in words else sum(count for count in words if count is not None)


def _check_networks(architecture: Architecture, l2: Cluster) -> None:
    """Check that all fanouts from L2 inwards have equal networks, with multicast and reduction."""
    plain, network = Network(), l2.fanout.network
    for cluster in architecture.clusters[architecture.cluster_index[l2.name] :]:
        fanout = cluster.fanout
        where = f"fanout of {cluster.name}"
        if fanout.size > 1 and not (fanout.multicast and fanout.reduction):
            raise refusal("multicast", where, "has no multicast or no reduction; in MAESTRO every network has both")
        for field in ("bandwidth_words_per_cycle", "latency_cycles"):
            value = getattr(fanout.network, field)
            if fanout.size > 1 and value not in (getattr(plain, field), getattr(network, field)):
                message = f"{field} is {value}, at {l2.name} it is {getattr(network, field)}; MAESTRO has one network"
                raise refusal("network", where, message)


def _read(memory: Memory) -> int:
    return _words(memory.read_bandwidth_words_per_cycle, memory.name)


def _words(bandwidth: float | None, where: str) -> int:
    """Return the bandwidth rounded down, because MAESTRO accepts whole words per cycle."""
    if bandwidth is None:
        return UNLIMITED
    if bandwidth < 1:
        raise refusal("bandwidth", where, f"{bandwidth} words per cycle; MAESTRO needs at least 1")
    return min(math.floor(bandwidth), UNLIMITED)
