"""The batch form as one compiled loop over mappings: the figures of `arrays`, several times as fast.

Needs numba (the extra `fast`).
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.mapspace.batch import Floats, MappingBatch
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin.costmodel import Costs
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright_costmodels.timeloop.account import account
from tilewright_costmodels.timeloop.arrays import wires_cost
from tilewright_costmodels.timeloop.kernel import GROUPS, INVALID, OPEN, Plan, Scratch, Wires, Work, price_rows
from tilewright_costmodels.timeloop.operand import Operand, plan_levels

Scalar = TypeVar("Scalar", bound=np.generic)


class CompiledPricer:
    """Prices batches for one problem and architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, link_transfers: bool) -> None:
        self.problem = problem
        self.architecture = architecture
        self.link_transfers = link_transfers
        self.work = _work(problem)
        self.plans: dict[Skeleton, Plan | None] = {}

    def price(self, batch: MappingBatch) -> Costs:
        """Prices of all mappings; `inf` where the model would not take one."""
        if batch.skeleton not in self.plans:
            self.plans[batch.skeleton] = _plan(self.problem, self.architecture, batch.skeleton)
        plan = self.plans[batch.skeleton]
        count, dims = len(batch), len(self.problem.sizes)
        energy, cycles = np.full(count, np.inf), np.full(count, np.inf)
        verdict = np.zeros(count, dtype=np.int8)
        if plan is not None:
            placed, unicast = batch.spatial_order, batch.unicast
            absent = (0, len(batch.skeleton))
            scratch = _scratch(self.work, plan)
            price_rows(
                self.work,
                plan,
                scratch,
                _wires(self.architecture, batch.skeleton, plan.most_children, len(scratch.table)),
                self.link_transfers,
                _frozen(batch.temporal),
                _frozen(batch.spatial),
                _frozen(batch.order),
                _frozen(np.zeros((*absent, dims), dtype=np.int8) if placed is None else placed),
                _frozen(batch.keep),
                _frozen(np.zeros((*absent, batch.keep.shape[2]), dtype=np.bool_) if unicast is None else unicast),
                verdict,
                energy,
                cycles,
            )
        for row in np.flatnonzero(verdict == OPEN).tolist():
            figures = account(self.problem, self.architecture, batch[row], self.link_transfers)
            energy[row], cycles[row] = figures.energy_pj, figures.cycles
        return Costs(verdict != INVALID, energy, cycles)


def _frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Contiguous and read-only: one type for the compiler, whatever made the batch."""
    array = np.ascontiguousarray(array).view()
    array.flags.writeable = False
    return array


def _work(problem: Problem) -> Work:
    operands = [Operand(problem, tensor) for tensor in problem.tensors]
    ranks = max(1, *(len(operand.matrix) for operand in operands))
    coefficients = np.zeros((len(operands), ranks, len(problem.sizes)), dtype=np.int64)
    for operand, matrix in zip(operands, coefficients, strict=True):
        matrix[: len(operand.matrix)] = operand.matrix
    used = coefficients != 0
    terms = used.sum(axis=2)
    ends = np.cumsum(terms).reshape(terms.shape)
    rank_of = np.where(used.any(axis=1), used.argmax(axis=1), -1)
    return Work(
        sizes=np.array(problem.sizes, dtype=np.int64),
        coefficients=coefficients,
        ranks=np.concatenate([(ends - terms)[:, :1], ends], axis=1),
        terms=np.concatenate([[0], ends[:, -1]]),
        term_dims=np.ascontiguousarray(np.argwhere(used)[:, 2]),
        term_coefficients=coefficients[used],
        term_last=np.isin(np.arange(used.sum()), ends - 1),
        radix=np.array([operand.radix if operand.exact else 0 * operand.radix for operand in operands], dtype=np.int64),
        capacity=np.array([min(operand.capacity, 2**62) for operand in operands], dtype=np.int64),
        relevant=used.any(axis=1),
        sliding=np.array([operand.sliding for operand in operands]),
        rank_of=rank_of,
        separable=np.array([operand.separable for operand in operands]),
        alone=used.any(axis=1) & (np.take_along_axis(terms, np.maximum(rank_of, 0), axis=1) == 1),
        is_output=np.array([tensor.is_output for tensor in problem.tensors]),
        words=np.array([problem.tensor_words(tensor) for tensor in problem.tensors], dtype=np.float64),
    )


def _plan(problem: Problem, architecture: Architecture, skeleton: Skeleton) -> Plan | None:
    """None if nothing over the skeleton is legal."""
    if any(entry.target not in architecture.cluster_index for entry in skeleton.entries):
        return None
    targets = [architecture.cluster_index[entry.target] for entry in skeleton.entries]
    clusters = [architecture.clusters[target] for target in targets]
    homes = [[cluster.memory_for(tensor) for tensor in problem.tensors] for cluster in clusters]
    if (
        targets != sorted(targets)
        or not skeleton.entries[0].holds
        or any(entry.holds and cluster.is_virtual for entry, cluster in zip(skeleton.entries, clusters, strict=True))
    ):
        return None
    plans = plan_levels(skeleton, architecture)
    numbers = {memory.name: number for number, memory in enumerate(architecture.memories)}
    memories = architecture.memories
    inside = [architecture.mesh(plan.cluster_index) for plan in plans[1:]] + [
        architecture.mesh(len(architecture.clusters))
    ]
    built = {
        memory.name: architecture.instances[index] // memory.instances_per_macro
        for index, cluster in enumerate(architecture.clusters)
        for memory in cluster.memories
    }
    unlimited = math.inf

    def column(values: list[float | int | None]) -> Floats:
        return np.array([unlimited if value is None else value for value in values], dtype=np.float64)

    def rows(values: list[Any], kind: type[np.generic]) -> NDArray[Any]:
        return np.array(values, dtype=kind)

    return Plan(
        allowed=rows(
            [
                [entry.holds and home is not None for home in row]
                for entry, row in zip(skeleton.entries, homes, strict=True)
            ],
            np.bool_,
        ),
        may_split=rows([target not in targets[index + 1 :] for index, target in enumerate(targets)], np.bool_),
        first_alike=rows([targets.index(target) for target in targets], np.int64),
        vertical=rows([cluster.fanout.axis == "Y" for cluster in clusters], np.bool_),
        shares=rows(
            [
                [
                    cluster.fanout.reduction if tensor.is_output else cluster.fanout.multicast
                    for tensor in problem.tensors
                ]
                for cluster in clusters
            ],
            np.bool_,
        ),
        start=rows([plan.start for plan in plans], np.int64),
        stop=rows([plan.splits[-1] + 1 for plan in plans], np.int64),
        across=rows([math.prod(n for axis, n in mesh.items() if axis != "Y") for mesh in inside], np.int64),
        down=rows([mesh.get("Y", 1) for mesh in inside], np.int64),
        width=rows([plan.width for plan in plans], np.int64),
        height=rows([plan.height for plan in plans], np.int64),
        memory=rows(
            [[-1 if home is None else numbers[home.name] for home in homes[plan.start]] for plan in plans], np.int64
        ),
        built=column([built[memory.name] for memory in memories]),
        usable=column([memory.usable_words for memory in memories]),
        read_energy=column([memory.read_energy_pj for memory in memories]),
        write_energy=column([memory.write_energy_pj for memory in memories]),
        update_energy=column(
            [
                memory.write_energy_pj if memory.update_energy_pj is None else memory.update_energy_pj
                for memory in memories
            ]
        ),
        block=column([memory.block_words for memory in memories]),
        read_bandwidth=column([memory.read_bandwidth_words_per_cycle for memory in memories]),
        write_bandwidth=column([memory.write_bandwidth_words_per_cycle for memory in memories]),
        limited=rows(
            [
                (memory.read_bandwidth_words_per_cycle, memory.write_bandwidth_words_per_cycle) != (None, None)
                for memory in memories
            ],
            np.bool_,
        ),
        compute_energy=problem.macs * architecture.compute.energy_per_operation_pj,
        cycles_per_operation=float(architecture.compute.cycles_per_operation),
        most_children=max(math.prod(mesh.values()) for mesh in inside),
    )


def _scratch(work: Work, plan: Plan) -> Scratch:
    entries, dims, levels = len(plan.allowed), len(work.sizes), len(plan.start)
    tensors, ranks = len(work.words), work.coefficients.shape[1]
    loops, memories, children = entries * dims, len(plan.usable), plan.most_children
    places = 4
    while places < 2 * children:
        places *= 2
    return Scratch(
        np.zeros(dims, np.int64),
        np.ones((entries, 2, dims)),
        np.ones(entries, np.bool_),
        np.ones(entries),
        np.zeros((levels, tensors)),
        np.zeros(memories),
        np.zeros(loops + 1, np.int64),
        np.zeros(loops + 1),
        np.zeros(loops + 1, np.int64),
        np.zeros(loops + 1, np.int64),
        np.ones(loops + 2),
        np.zeros(levels, np.int64),
        np.zeros(loops + 1, np.int64),
        np.zeros(loops + 1, np.int64),
        np.zeros(loops + 1, np.int64),
        np.zeros(loops + 1, np.int64),
        np.zeros(levels + 1, np.int64),
        np.ones(levels),
        np.ones(levels + 1),
        np.zeros(levels),
        np.zeros(levels),
        np.zeros(levels),
        np.zeros(levels),
        np.zeros(levels),
        np.zeros(levels),
        np.zeros(memories),
        np.zeros(memories),
        np.zeros((1, 1, dims), np.int64),
        np.zeros(ranks, np.int64),
        np.zeros(ranks, np.int64),
        np.zeros(ranks, np.int64),
        np.zeros(ranks, np.int64),
        np.zeros(1),
        np.zeros(1, np.bool_),
        np.zeros(1, np.int64),
        np.zeros(children, np.int64),
        np.zeros(children, np.int64),
        np.zeros(children, np.bool_),
        np.zeros(places, np.int64),
        np.zeros(places, np.int64),
        np.zeros(1, np.int64),
    )


def _wires(architecture: Architecture, skeleton: Skeleton, most_children: int, places: int) -> Wires | None:
    if not any(wires_cost(cluster) for cluster in architecture.clusters):
        return None
    clusters = [architecture.clusters[plan.cluster_index] for plan in plan_levels(skeleton, architecture)]
    networks = [cluster.fanout.network for cluster in clusters]
    levels = len(clusters)
    return Wires(
        np.array([network.energy_per_hop_pj for network in networks], dtype=np.float64),
        np.array([network.energy_per_router_pj for network in networks], dtype=np.float64),
        np.array([network.energy_per_ingress_pj for network in networks], dtype=np.float64),
        np.array([any(m.technology == "dram" for m in cluster.memories) for cluster in clusters], dtype=np.bool_),
        np.zeros(places, np.int64),
        np.zeros(most_children, np.int64),
        np.zeros(most_children, np.int64),
        np.zeros(most_children),
        np.zeros(most_children, np.int64),
        np.zeros(most_children, np.int64),
        np.zeros(most_children, np.int64),
        np.zeros(most_children + 1, np.int64),
        np.zeros(most_children + 1),
        np.zeros(levels, np.int64),
        np.zeros((levels, GROUPS), np.int64),
        np.zeros((levels, GROUPS), np.int64),
        np.zeros((levels, GROUPS)),
        np.zeros((levels, GROUPS)),
    )
