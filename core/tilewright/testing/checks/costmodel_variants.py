"""Contract checks for cost models: what a change of names, sizes, capacities or loops may change, and what not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.legality import legal
from tilewright.mapspace.skeleton import Skeleton
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Costs, Evaluator
from tilewright.plugin.specs import CostModelSpec
from tilewright.testing.corpus import Sample, with_other_names
from tilewright.testing.kit import CheckFailure, Subject, check, first_row, require

COUNT = 6
"""Mappings of each sample."""
LONG = 2**12
"""Factor of the sizes of a large problem."""
SLOW = 3
"""Cycles of an operation on slow hardware."""
CAPACITIES = (7, 12, 24)
"""Words of memories that some mappings fill."""


def _bound(subject: Subject) -> Iterator[tuple[Sample, Evaluator, MappingBatch, Costs]]:
    """Yield the samples with some mappings that the model accepts, and their costs."""
    for sample in subject.samples():
        evaluator: Evaluator = subject.make().bind(sample.problem, sample.architecture)
        drawn = sample.batch(2 * COUNT, seed=11)
        batch = drawn.take(evaluator.evaluate_batch(drawn).valid).take(slice(0, COUNT))
        if len(batch):
            yield sample, evaluator, batch, evaluator.evaluate_batch(batch)


def _moved(batch: MappingBatch, sample: Sample) -> MappingBatch:
    """Return the same loops as mappings of another sample with as many dimensions, tensors and entries."""
    skeleton = Skeleton.for_architecture(sample.architecture, sample.rules.storage)
    return replace(batch, problem=sample.problem, skeleton=skeleton)


@check(CostModelSpec)
def check_costmodel_does_not_depend_on_names(subject: Subject) -> None:
    """Other names of dimensions, tensors, memories and clusters have the same costs."""
    for sample, _, batch, costs in _bound(subject):
        other = with_other_names(sample)
        try:
            again = subject.make().bind(other.problem, other.architecture).evaluate_batch(_moved(batch, other))
        except NotConformableError as error:
            require(False, f"{sample}: with other names of dimensions, tensors and memories, bind refuses it: {error}")
            continue
        same = np.array_equal(costs.valid, again.valid) and all(
            np.allclose(one, two, rtol=1e-9)
            for one, two in ((costs.energy_pj, again.energy_pj), (costs.cycles, again.cycles))
        )
        require(
            same,
            f"{sample}: with other names of dimensions, tensors and memories, energies are {again.energy_pj[:3]}, cycles {again.cycles[:3]}; "
            f"expected {costs.energy_pj[:3]} and {costs.cycles[:3]}; use roles, technologies and positions, not names",
        )


@check(CostModelSpec)
def check_costmodel_counts_the_units_in_use(subject: Subject) -> None:
    """A mapping takes at least the cycles of its operations on the compute units that it unrolls over; slow operations count."""
    for sample, _, batch, costs in _bound(subject):
        used = (-(-batch.temporal // batch.spatial)).prod(axis=(1, 2)).astype(np.float64)
        least = sample.problem.macs / used
        cycles = {1: costs.cycles}
        try:
            slow = sample.architecture.replace({"compute.cycles_per_operation": SLOW})
            cycles[SLOW] = subject.make().bind(sample.problem, slow).evaluate_batch(batch).cycles
        except NotConformableError:
            pass
        for slowness, counted in cycles.items():
            row = first_row(counted < slowness * least * (1 - 1e-9))
            if row is not None:
                raise CheckFailure(
                    f"{sample}: {counted[row]:g} cycles for {sample.problem.macs} operations of {slowness} cycles on {used[row]:g} units; "
                    f"expected at least {slowness * least[row]:g}. The mapping:\n{batch[row].to_yaml()}"
                )


@check(CostModelSpec)
def check_costmodel_counts_large_problems(subject: Subject) -> None:
    """With more iterations in loops over the outermost memory, energy and cycles grow with the operations; no number overflows or saturates.

    Models that execute mappings are exempt.
    """
    if getattr(subject.spec, "executes", False):
        return
    for sample, _, batch, costs in _bound(subject):
        names = [name for name, size in sample.problem.dimensions.items() if size > 1][:3]
        large = sample.problem.replace({f"dimensions.{name}": LONG * sample.problem.dimensions[name] for name in names})
        try:
            evaluator = subject.make().bind(large, sample.architecture)
        except NotConformableError:
            continue
        longer = np.array([LONG if name in names else 1 for name in large.dimensions], dtype=np.int64)
        temporal, spatial = batch.temporal.copy(), batch.spatial.copy()
        temporal[:, 0], spatial[:, 0] = temporal[:, 0] * longer, spatial[:, 0] * longer
        grown = evaluator.evaluate_batch(replace(batch, problem=large, temporal=temporal, spatial=spatial))
        both = grown.valid & costs.valid
        times = large.macs / sample.problem.macs
        for what, before, after in (
            ("energy", costs.energy_pj[both], grown.energy_pj[both]),
            ("cycles", costs.cycles[both], grown.cycles[both]),
        ):
            low, high = GROWTH[0] * times * before, GROWTH[1] * times * before
            row = first_row((after < low) | (after > high) | ~np.isfinite(after))
            if row is not None:
                raise CheckFailure(
                    f"{sample}: with {LONG:,} times the iterations of {', '.join(names)} in loops over the outermost memory, {what} is {after[row]:g}; "
                    f"expected about {times * before[row]:g}; count in 64 bits or floats, without limits"
                )


GROWTH = (1 / 64, 64.0)
"""Least and largest growth of costs, as multiples of the growth of the operations."""


@check(CostModelSpec)
def check_costmodel_accepts_full_memories(subject: Subject) -> None:
    """A legal mapping that is valid in large memories is valid in smaller ones, too, if it is legal there.

    Models with copies of tiles, or of outputs over windows, are exempt.
    """
    capabilities = subject.spec.capabilities
    if capabilities.tile_copies > 1 or capabilities.outputs_span_windows:
        return
    for sample, _, batch, costs in _bound(subject):
        for words in CAPACITIES:
            machine = sample.architecture.replace(
                {f"{memory.name}.capacity_words": words for memory in sample.architecture.memories[1:]}
            )
            fits = legal(sample.problem, machine, batch) & costs.valid
            valid = subject.make().bind(sample.problem, machine).evaluate_batch(batch).valid
            row = first_row(fits & ~valid)
            if row is not None:
                raise CheckFailure(
                    f"{sample}: with memories of {words} words, a mapping is invalid that is legal, and valid in larger memories; "
                    f"tiles may fill a memory. The mapping:\n{batch[row].to_yaml()}"
                )


@check(CostModelSpec)
def check_costmodel_charges_no_bypassed_memory(subject: Subject) -> None:
    """A memory that all tensors bypass costs no energy, if the model takes all prices from the architecture."""
    for sample in subject.samples():
        memories = sample.architecture.memories
        names = [f"{memory.name}.{kind}_energy_pj" for memory in memories for kind in ("read", "write", "update")]
        free = {**dict.fromkeys(names, 0.0), "compute.energy_per_operation_pj": 0.0}
        for memory in memories[1:]:
            space = MapSpace.of(sample.problem, sample.architecture, sample.rules).with_optional(memory.name)
            batch = space.sample(np.random.default_rng(2), 64).batch()
            places = [
                index
                for index, entry in enumerate(batch.skeleton.entries)
                if entry.target == sample.architecture.cluster_of(memory.name).name
            ]
            held = [number for number, tensor in enumerate(sample.problem.tensors) if memory.may_hold(tensor)]
            unused = np.flatnonzero(~batch.keep[:, places][:, :, held].any(axis=(1, 2)))
            for prices, expected in (
                ({}, False),
                ({f"{memory.name}.{kind}_energy_pj": 1.0 for kind in ("read", "write", "update")}, True),
            ):
                machine = sample.architecture.replace({**free, **prices})
                try:
                    costs = subject.make().bind(sample.problem, machine).evaluate_batch(batch.take(unused))
                except NotConformableError:
                    break
                paid = costs.energy_pj[costs.valid]
                if not expected and paid.any():
                    return  # it has prices of its own
                require(
                    not expected or not paid.any(),
                    f"{sample}: {paid.max(initial=0.0):g} pJ are paid for {memory.name}, which all tensors bypass; count what `keep` says",
                )


@check(CostModelSpec)
def check_costmodel_blocks_cost_one_access(subject: Subject) -> None:
    """Blocks of several words take no more energy than single words, at the same price of an access."""
    for sample, _, batch, costs in _bound(subject):
        memory = sample.architecture.memories[0]
        try:
            machine = sample.architecture.replace({f"{memory.name}.block_words": 4})
            blocked = subject.make().bind(sample.problem, machine).evaluate_batch(batch)
        except NotConformableError:
            continue
        both = costs.valid & blocked.valid
        require(
            bool((blocked.energy_pj[both] <= costs.energy_pj[both] * (1 + 1e-9)).all()),
            f"{sample}: with blocks of 4 words in {memory.name}, energy rises from {costs.energy_pj[both][:3]} to {blocked.energy_pj[both][:3]}",
        )
