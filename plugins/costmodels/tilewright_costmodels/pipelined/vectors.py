"""Cycles of a vector layer whose rows arrive, wait and leave; docs/vector.md has the rules."""

from __future__ import annotations

import math

from tilewright.plugin.composed import slowed
from tilewright.prices import is_limited, prices_of
from tilewright.reports import Limit, Report
from tilewright.schema.architecture import Memory
from tilewright.schema.problem import Tensor
from tilewright_costmodels.pipelined.schedule import (
    RUN,
    LevelTransfers,
    Schedule,
    TileTransfer,
    busy_cycles,
    latency_cycles,
    slices_in_bursts,
)
from tilewright_costmodels.vector.counts import Moved, Placement, VectorCounts, counts_of
from tilewright_costmodels.vector.report import report_of


def pipelined_vector(placed: Placement) -> Report:
    """Return the report of a vector layer: counts by formula, and the cycles of a schedule if that takes longer.

    A step is a row of the busiest unit, or a block of a row that is cut, in each pass.

    Raises:
        NotConformableError: See `Placement.check`; a memory on the way has requests, rows, or words that pass through (`timing`).
    """
    counts = counts_of(placed)
    report, architecture = report_of(placed, counts), placed.architecture
    memories = {memory.name: memory for path in placed.paths.values() for memory in path}
    for memory in memories.values():
        timing = memory.timing
        if timing.requests is not None or timing.rows is not None or timing.prefetch == "through":
            placed.refuse("timing", f"requests, rows and words that pass through {memory.name} are not counted for it")
    steps = placed.rows(placed.memory.name) * (1 if placed.blocks is None else placed.blocks * placed.work.passes)
    tiles = [
        _transfer(placed, counts, tensor, outer, inner, steps)
        for tensor in placed.layer.tensors
        for outer, inner in zip(placed.paths[tensor.name], placed.paths[tensor.name][1:], strict=False)
    ]
    slowest = max(memory.timing.step_cycles for memory in memories.values())
    level = LevelTransfers(0, (steps,), tuple(tiles), slowest)
    prices = {name: price for name, price in prices_of(architecture).items() if is_limited(price)}
    lanes = next(limit.cycles for limit in report.limits if limit.action == "compute")
    plain = architecture.model_copy(
        update={"compute": architecture.compute.model_copy(update={"fill_drain_cycles": 0})}
    )
    cycles = max(Schedule(plain, prices, [level], lanes, RUN).cycles(), busy_cycles([level], prices))
    slow = slowed(architecture, report, [Limit(name="schedule", action="wait", cycles=math.ceil(cycles - 1e-6))])
    busy = (report.utilization or 0.0) * (report.cycles or 0)
    return slow.model_copy(update={"utilization": busy / (slow.cycles or 1)})


def _transfer(
    placed: Placement, counts: VectorCounts, tensor: Tensor, outer: Memory, inner: Memory, steps: int
) -> TileTransfer:
    """Return the words of a tensor that move between two memories in a step. Shared words that stay move once."""
    moved, filled = (counts.moved.get((memory.name, tensor.name), Moved()) for memory in (outer, inner))
    shared = {operand.name for operand in placed.layer.operands if operand.shared}
    times = 1 if tensor.name in shared and placed.holds(inner) else steps
    architecture = placed.architecture
    ends = (architecture.cluster_index[architecture.cluster_of(memory.name).name] for memory in (outer, inner))
    return TileTransfer(
        prefetch=inner.timing.prefetch,
        innermost=RUN if times == 1 else 0,
        times=times,
        source=outer.name,
        target=inner.name,
        latency=latency_cycles(architecture, outer, *ends),
        read=0.0 if tensor.is_output else slices_in_bursts(outer, tensor, moved.most_read / times),
        filled=0.0 if tensor.is_output else filled.most_written / times * inner.slices_of(tensor),
        updated=slices_in_bursts(outer, tensor, moved.most_written / times) if tensor.is_output else 0.0,
        read_requests=0.0,
        updated_requests=0.0,
    )
