"""Relaxation of the cost model, for mappers that prove optimality (see `tilewright.plugin.Relaxation`)."""

from __future__ import annotations

import numpy as np

from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin import Relaxation
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright_costmodels.timeloop.tables import Tables


def relaxation_of(
    problem: Problem, architecture: Architecture, skeleton: Skeleton, tables: Tables, link_transfers: bool
) -> Relaxation:
    """Return the least costs of words: a part of a block costs that part of it, and networks cost nothing.

    Timeloop charges at most as many instances as there are complete macros. So the least part of the accesses that it charges
    is the one of a fanout in full use: complete macros over instances. First fills are omitted.
    """
    memories, rows = architecture.memories, tables.hardware.memory
    per_word = np.array([memory.slices_per_word for memory in memories], dtype=np.float64)
    charged = rows["macros"] / rows["instances"] / [memory.block_words for memory in memories]
    fanouts = [architecture.cluster(entry.target).fanout for entry in skeleton.entries]
    shared = [[fan.reduction if tensor.is_output else fan.multicast for tensor in problem.tensors] for fan in fanouts]
    return Relaxation(
        memory=tables.rules.memory,
        read_pj=rows["read_pj"] * charged,
        fill_pj=rows["fill_pj"] * charged,
        update_pj=rows["update_pj"] * charged,
        read_bandwidth=rows["read_bandwidth"] / per_word,
        write_bandwidth=rows["write_bandwidth"] / per_word,
        shared_bandwidth=rows["shared_bandwidth"] / per_word,
        shared=np.array(shared, dtype=np.bool_),
        neighbours=link_transfers,
        leakage_pj=rows["leakage_pj"],
        gate=rows["gate"],
        compute_pj=tables.hardware.compute_energy_pj,
        cycles_per_operation=tables.hardware.cycles_per_operation,
        exact=not (tables.has_network_energy or tables.hardware.first_fills)
        and bool((charged == 1).all() and (tables.rules.slices % per_word[:, None] == 0).all()),
        whole_cycles=True,
        linear=True,
    )
