"""MAESTRO's figures as a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.errors import Reason
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.report import LevelReport, Report, TensorCounts
from tilewright_costmodels.maestro.doubts import doubts, shortages
from tilewright_costmodels.maestro.figures import Figures
from tilewright_costmodels.maestro.machine import Machine


class MaestroReport(Report):
    """`columns`: MAESTRO's own CSV row; None in it is NaN (something over 0)."""

    columns: FrozenDict[str, Any] = FrozenDict()


def report_of(figures: Figures, machine: Machine, faithful: bool, l1_accesses: int | None = None) -> MaestroReport:
    """The report of one layer; `l1_accesses`: those of the layer before, in MAESTRO's own files.

    Buffers too small make it invalid unless `faithful`: then it is a warning, as with MAESTRO.
    """
    reasons = tuple(_overflows(figures, machine))
    common: dict[str, Any] = {
        "model": "maestro",
        "problem": figures.layer.name,
        "macs": figures.layer.macs,
        "columns": FrozenDict(figures.columns(l1_accesses)),
    }
    warnings = (*doubts(figures), *shortages(figures))
    if reasons and not faithful:
        return MaestroReport(**common, valid=False, reasons=reasons, warnings=warnings)
    return MaestroReport(
        **common,
        valid=True,
        warnings=(*warnings, *map(str, reasons), *machine.notes),
        cycles=figures.cycles,
        energy_pj=figures.energy_pj,
        edp=figures.energy_pj * figures.cycles,
        utilization=figures.macs / (machine.operations_per_cycle * figures.cycles),
        compute_energy_pj=figures.macs * machine.numbers.energy_per_operation_pj,
        levels=tuple(_levels(figures, machine)),
    )


def _levels(figures: Figures, machine: Machine) -> Iterator[LevelReport]:
    """The memories of L2, then those of L1, each as one: MAESTRO counts the accesses of all PEs together."""
    for number, memory in enumerate(machine.memories):
        tensors = {}
        for level, tensor in zip(*(machine.numbers.home == number).nonzero(), strict=True):
            counts = figures.counts[level][tensor]
            tensors[machine.tensors[tensor]] = TensorCounts(
                **dict(zip(("reads", "fills", "updates"), counts, strict=True)),
                instances=1,
                tile_words=figures.required[level][tensor] // 2,
                energy_pj=sum(
                    count * float(energy)
                    for count, energy in zip(counts, machine.numbers.energies[level, tensor], strict=True)
                ),
            )
        energy = sum(each.energy_pj for each in tensors.values())
        yield LevelReport(
            name=memory, instances=1, cycles=figures.cycles, energy_pj=energy, tensors=FrozenDict(tensors)
        )


def _overflows(figures: Figures, machine: Machine) -> Iterator[Reason]:
    """Memories that MAESTRO's own requirement (two copies of every tile) does not fit."""
    for number, memory in enumerate(machine.memories):
        homes = zip(*(machine.numbers.home == number).nonzero(), strict=True)
        need, given = sum(figures.required[level][tensor] for level, tensor in homes), machine.numbers.capacity[number]
        if need > given:
            message = f"MAESTRO asks for {need} words (two copies of every tile), {given} fit"
            yield Reason(code="capacity", where=memory, message=message)
