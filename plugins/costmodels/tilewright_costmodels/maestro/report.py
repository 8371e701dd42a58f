"""Report of MAESTRO's results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tilewright.errors import Reason
from tilewright.reports import LevelReport, Limit, LimitAction, Report, TensorCounts
from tilewright.schema.frozen import FrozenDict
from tilewright_costmodels.maestro.consistency import bandwidth_warnings, consistency_warnings
from tilewright_costmodels.maestro.figures import Figures
from tilewright_costmodels.maestro.machine import UNLIMITED, Machine
from tilewright_costmodels.maestro.tables import FILTER, INPUT, L2, OUTPUT
from tilewright_notations.directives import DirectiveHardware

_FREE = DirectiveHardware().noc_bandwidth
"""Bandwidth if none is specified."""


class MaestroReport(Report):
    """Report with MAESTRO's own CSV row in `columns`. None in it is NaN (a division by 0)."""

    columns: FrozenDict[str, Any] = FrozenDict()


def report_of(figures: Figures, machine: Machine, faithful: bool, l1_accesses: int | None = None) -> MaestroReport:
    """Return the report of one layer.

    Buffers that are too small make it invalid. With `faithful` they are a warning only, as in MAESTRO.

    Args:
        l1_accesses: L1 accesses of the previous layer, in MAESTRO's own files.
    """
    reasons = tuple(_overflows(figures, machine))
    report = MaestroReport(
        model="maestro",
        problem=figures.layer.name,
        macs=figures.layer.macs,
        valid=False,
        reasons=reasons,
        warnings=(*consistency_warnings(figures), *bandwidth_warnings(figures)),
        columns=FrozenDict(figures.columns(l1_accesses)),
    )
    if reasons and not faithful:
        return report
    # MAESTRO's count may differ from the layer's in both directions; only the lower one fits its cycles
    operations = min(figures.macs, figures.layer.macs)
    return report.with_costs(
        figures.energy_pj,
        figures.cycles,
        machine.operations_per_cycle,
        reasons=(),
        warnings=(*report.warnings, *map(str, reasons), *machine.notes),
        compute_energy_pj=figures.macs * machine.numbers.energy_per_operation_pj,
        utilization=operations / (machine.operations_per_cycle * figures.cycles),
        busy_units=figures.active_pes * figures.hardware.simd_lanes,
        limits=tuple(_limits(figures)),
        levels=tuple(_levels(figures, machine)),
    )


def _levels(figures: Figures, machine: Machine) -> Iterator[LevelReport]:
    """Yield the memories of L2, then those of L1. MAESTRO counts the accesses of all PEs together, as one memory."""
    for number, memory in enumerate(machine.memories):
        tensors = {}
        for level, tensor in zip(*(machine.numbers.memory_index == number).nonzero(), strict=True):
            counts, energies = figures.counts[level][tensor], machine.numbers.energies[level, tensor].tolist()
            tensors[machine.tensors[tensor]] = TensorCounts(
                **dict(zip(("reads", "fills", "updates"), counts, strict=True)),
                instances=1,
                tile_words=figures.required[level][tensor] // 2,
                energy_pj=sum(count * energy for count, energy in zip(counts, energies, strict=True)),
            )
        required, available = _required_and_available(figures, machine, number)
        yield LevelReport(
            name=memory,
            instances=1,
            cycles=figures.cycles,
            energy_pj=sum(row.energy_pj for row in tensors.values()),
            tensors=FrozenDict(tensors),
            used_words=required,
            capacity_words=None if available == UNLIMITED else available,
        )


def _required_and_available(figures: Figures, machine: Machine, memory: int) -> tuple[int, int]:
    """Return the words that MAESTRO requires, for two copies of every tile, and the words that fit."""
    homes = zip(*(machine.numbers.memory_index == memory).nonzero(), strict=True)
    return sum(figures.required[level][tensor] for level, tensor in homes), int(machine.numbers.capacity[memory])


def _overflows(figures: Figures, machine: Machine) -> Iterator[Reason]:
    """Yield the memories that do not hold MAESTRO's requirement."""
    for number, memory in enumerate(machine.memories):
        required, available = _required_and_available(figures, machine, number)
        if required > available:
            message = f"MAESTRO requires {required} words (two copies of every tile), {available} fit"
            yield Reason(code="capacity", where=memory, message=message)


def _limits(figures: Figures) -> Iterator[Limit]:
    """Yield what the steps wait for: in each step the slowest of compute and transfers.

    The very first step computes after its tiles have arrived. With several levels a step computes
    in whole clusters, including the transfers within them.
    """
    hardware, required = figures.hardware, figures.required[L2]
    inward, outward = required[INPUT] + required[FILTER], required[OUTPUT]  # of a whole tile of L2, half of it hidden
    offchip = [inward // hardware.offchip_bandwidth // 2, outward // hardware.offchip_bandwidth // 2]
    separate, binding, words = Counter[int](), Counter[int](), Counter[int]()
    for number, step in enumerate(figures.steps):
        times, count = [step.compute_delay, max(0, step.ingress_delay), step.egress_delay, *offchip], step.occurrences
        first = step.compute_delay + step.ingress_delay if number == 0 and figures.starts else 0
        if first:
            times[2] = 0
        if first > max(times[3:]):
            binding.update({0: first - times[1], 1: times[1]})
        else:
            slowest = max(range(5), key=lambda index: times[index])
            binding[slowest] += count * times[slowest]
        separate.update({index: count * time for index, time in enumerate(times)})
        words.update({1: count * (step.input_sent + step.filter_sent), 2: count * step.egress})
    names: list[tuple[str, LimitAction, int | None]] = [
        ("compute" if len(figures.layer.levels) == 1 else "compute in clusters", "compute", None),
        ("NoC", "send", hardware.noc_bandwidth),
        ("NoC", "collect", hardware.noc_bandwidth),
        ("off-chip", "read", hardware.offchip_bandwidth),
        ("off-chip", "write", hardware.offchip_bandwidth),
    ]
    for index, (name, action, bandwidth) in enumerate(names):
        yield Limit(
            name=name,
            action=action,
            cycles=min(separate[index], figures.cycles),
            binding_cycles=binding[index],
            words=words.get(index),
            words_per_cycle=None if bandwidth == _FREE else bandwidth,
        )
