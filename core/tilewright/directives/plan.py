"""An architecture of ours as MAESTRO sees it: DRAM or none, one L2, PEs with an L1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.architecture import Architecture, Cluster, Memory
from tilewright.directives.roles import refusal

UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class Plan:
    """Which cluster is what. Figures None: without limit."""

    dram: Cluster | None
    l2: Cluster
    l1: Cluster
    noc_bandwidth: int
    noc_latency: int
    offchip_bandwidth: int


def plan_of(architecture: Architecture) -> Plan:
    """Raises NotConformableError: not two or three levels of memory, or a bandwidth below one word per cycle."""
    holding = [cluster for cluster in architecture.clusters if cluster.memories]
    if len(holding) not in (2, 3):
        names = ", ".join(cluster.name for cluster in holding)
        message = f"has memories in {names}; MAESTRO has L2 and L1, and DRAM as a bandwidth"
        raise refusal("levels", architecture.name, message)
    if architecture.compute.cycles_per_operation != 1:
        raise refusal("compute", architecture.name, "an operation takes several cycles; in MAESTRO it takes one")
    dram, (l2, l1) = holding[0] if len(holding) == 3 else None, holding[-2:]
    network = l2.fanout.network
    return Plan(
        dram=dram,
        l2=l2,
        l1=l1,
        noc_bandwidth=_words(network.bandwidth_words_per_cycle, f"network of {l2.name}"),
        noc_latency=network.latency_cycles,
        offchip_bandwidth=min((_read(memory) for memory in dram.memories), default=UNLIMITED) if dram else UNLIMITED,
    )


def _read(memory: Memory) -> int:
    return _words(memory.read_bandwidth_words_per_cycle, memory.name)


def _words(bandwidth: float | None, where: str) -> int:
    """MAESTRO takes whole words per cycle; fractions are rounded down."""
    if bandwidth is None:
        return UNLIMITED
    if bandwidth < 1:
        raise refusal("bandwidth", where, f"{bandwidth} words per cycle; MAESTRO takes whole ones, 1 at least")
    return min(math.floor(bandwidth), UNLIMITED)
