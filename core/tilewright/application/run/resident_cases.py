"""Cases of a layer whose tensors may stay in the home: its architecture, and the ports that they share.

docs/fusion_proof.md ("Room beside residents") has the lemmas.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from tilewright.prices import more_leaked_pj, port_limits, price_of
from tilewright.reports import Limit, Report
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.objective import Objective
from tilewright.schema.problem import Problem

HOME = "_resident"
"""Suffix of the copy of the home that keeps resident tensors while one layer is mapped."""


@dataclass(frozen=True)
class Case:
    """One layer's problem, its resident tensors, and the bits of the home that live tensors take."""

    problem: str
    resident: frozenset[str]
    reserved: int


def left_of(home: Memory, problem: Problem, case: Case) -> Memory | None:
    """Return the home with the room of other tensors in a case; None if live tensors do not fit.

    Its words are slices if whole words are not exact. Without room, its capacity is 0 (docs/fusion_proof.md, Lemma 1).
    """
    holds = tuple(t.name for t in problem.tensors if home.may_hold(t) and t.name not in case.resident)
    if home.usable_words is None:
        return home.model_copy(update={"holds": holds})
    left = home.usable_words * home.word_bits - case.reserved
    if left < 0:
        return None
    if left % home.word_bits:
        home = home.in_slices()
    words = left // home.word_bits
    capacity = math.ceil(words * home.multiple_buffering)
    while math.floor(capacity / home.multiple_buffering) < words:  # the product was rounded
        capacity += 1
    return home.model_copy(update={"holds": holds, "capacity_words": capacity})


def on_chip(architecture: Architecture, problem: Problem, home: Memory, case: Case) -> Architecture | None:
    """Return the architecture of a layer in a case; None if live tensors do not fit.

    Resident tensors start at a copy of the home beside the outermost memories, and bypass the home itself.
    """
    place = architecture.cluster_index[architecture.cluster_of(home.name).name]
    left = left_of(home, problem, case)
    if left is None:
        return None

    def without(memory: Memory) -> Memory:
        holds = tuple(t.name for t in problem.tensors if memory.may_hold(t) and t.name not in case.resident)
        return left if memory.name == home.name else memory.model_copy(update={"holds": holds})

    clusters = [
        cluster.model_copy(update={"memories": tuple(map(without, cluster.memories))}) if number <= place else cluster
        for number, cluster in enumerate(architecture.clusters)
    ]
    if case.resident:
        update = {"name": home.name + HOME, "holds": tuple(sorted(case.resident)), "capacity_words": None}
        copy = home.model_copy(update=update | {"leakage_pj_per_cycle": 0.0, "area_um2": None})
        # the last memory of a cluster names the loops inside it, so that rules on these loops apply
        clusters[0] = clusters[0].model_copy(update={"memories": (copy, *clusters[0].memories)})
    return architecture.model_copy(update={"clusters": tuple(clusters)})


def shared_port(home: Memory, problem: Problem, report: Report) -> Limit | None:
    """Return the slowest port of the home, with the words of its copy; None if no port limits it."""
    moved = Counter[int](), Counter[int]()
    for level in report.levels:
        if level.name in (home.name, home.name + HOME):
            for name, counts in level.tensors.items():
                slices = home.slices_of(problem.tensor(name))
                moved[0][0] += counts.reads * slices
                moved[1][0] += (counts.fills + counts.updates) * slices
    return max(port_limits((home,), {home.name: moved}), key=lambda limit: limit.cycles, default=None)


def counted(home: Memory | None, problem: Problem, report: Report) -> tuple[float, float] | None:
    """Return energy in pJ and cycles of a report, or None if it is invalid. The home and its copy share their ports."""
    energy, cycles = report.energy_pj, report.cycles
    if energy is None or cycles is None:
        return None
    port = None if home is None else shared_port(home, problem, report)
    if port is not None and port.cycles > cycles:
        energy += more_leaked_pj(math.fsum(level.leakage_pj for level in report.levels), cycles, port.cycles)
        cycles = port.cycles
    return energy, cycles


def priced_by_port(architecture: Architecture, home: Memory, action: str) -> Architecture:
    """Return the architecture whose energy, in pJ, is the slices that one port of the home and its copy move."""
    none = {"read_energy_pj": 0.0, "write_energy_pj": 0.0, "update_energy_pj": None, "leakage_pj_per_cycle": 0.0}
    one = none | {"read_energy_pj": float(action != "write"), "write_energy_pj": float(action != "read")}

    def priced(memory: Memory) -> Memory:
        if memory.name not in (home.name, home.name + HOME):
            return memory.model_copy(update=none)
        return memory.in_slices().model_copy(update=one | {"block_words": 1})

    memories = architecture.with_memories(priced)
    energies = ("energy_per_hop_pj", "energy_per_router_pj", "energy_per_ingress_pj")
    clusters = []
    for cluster in memories.clusters:
        network = cluster.fanout.network.model_copy(update=dict.fromkeys(energies, 0.0))
        clusters.append(cluster.model_copy(update={"fanout": cluster.fanout.model_copy(update={"network": network})}))
    compute = memories.compute.model_copy(update={"energy_per_operation_pj": 0.0})
    return memories.model_copy(update={"clusters": tuple(clusters), "compute": compute})


def is_cheaper(home: Memory, architecture: Architecture, objective: Objective) -> bool:
    """Return whether a tensor costs no more if it starts at the home instead of the outermost memories.

    Accesses to the home cost no more energy. If time counts (cycles, or memories that leak), no port limits the home: it serves all tensors
    that start there, and outermost memories serve others at the same time.
    """
    timed = objective.cycle_power > 0 or any(memory.leakage_pj_per_cycle for memory in architecture.memories)
    near = price_of(home)
    if home.block_words > 1 or (timed and any(map(math.isfinite, near.bandwidths))):
        return False
    for outer in architecture.clusters[0].memories:
        far = price_of(outer)
        if (home.word_bits, home.bits_per_value) != (outer.word_bits, outer.bits_per_value):
            return False
        if any(
            near_pj / near.block > far_pj / far.block
            for near_pj, far_pj in zip(near.energies, far.energies, strict=True)
        ):
            return False
    return True
