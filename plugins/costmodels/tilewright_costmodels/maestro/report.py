"""MAESTRO's figures as a report."""

from __future__ import annotations

from typing import Any

from tilewright.notations.directives import OUTPUT
from tilewright.notations.directives.tiles import L1_ENERGY, L2_ENERGY, NJ_PER_MAC
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.report import LevelReport, Report, TensorCounts
from tilewright_costmodels.maestro.doubts import doubts, overflows, shortages
from tilewright_costmodels.maestro.figures import Figures

PJ_PER_MAC = NJ_PER_MAC * 1000


class MaestroReport(Report):
    """`columns`: MAESTRO's own CSV row; None in it is NaN (something over 0)."""

    columns: FrozenDict[str, Any] = FrozenDict()


def report_of(figures: Figures, l1_accesses: int | None, faithful: bool) -> MaestroReport:
    """The report of one layer. Energies are MAESTRO's units of a MAC at the 0.23 pJ of its CSV.

    Buffers too small make it invalid unless `faithful`: then it is a warning, as with MAESTRO.
    """
    reasons = tuple(overflows(figures))
    warnings = [*doubts(figures), *shortages(figures)]
    columns = FrozenDict(figures.columns(l1_accesses))
    macs, name = figures.layer.macs, figures.layer.name
    if reasons and not faithful:
        return MaestroReport(
            model="maestro",
            problem=name,
            valid=False,
            reasons=reasons,
            warnings=tuple(warnings),
            macs=macs,
            columns=columns,
        )
    energy = figures.total_energy * PJ_PER_MAC
    lanes = figures.hardware.num_pes * figures.hardware.simd_lanes
    return MaestroReport(
        model="maestro",
        problem=name,
        valid=True,
        warnings=(*warnings, *map(str, reasons)),
        macs=macs,
        cycles=figures.runtime_cycles,
        energy_pj=energy,
        edp=energy * figures.runtime_cycles,
        utilization=figures.num_macs / (lanes * figures.runtime_cycles),
        compute_energy_pj=figures.num_macs * PJ_PER_MAC,
        levels=levels_of(figures),
        columns=columns,
    )


def levels_of(figures: Figures) -> tuple[LevelReport, ...]:
    """L2, and L1 as one memory: MAESTRO counts the accesses of all PEs together."""
    l2, l1 = {}, {}
    for name, tensor in figures.tensors.items():
        up = tensor.l2_write if name == OUTPUT else 0
        l2[name] = TensorCounts(
            reads=tensor.l2_read,
            fills=tensor.l2_write - up,
            updates=up,
            instances=1,
            tile_words=tensor.l2_size_req // 2,
            energy_pj=(tensor.l2_read + tensor.l2_write) * L2_ENERGY * PJ_PER_MAC,
        )
        up = tensor.l1_write if name == OUTPUT else 0
        l1[name] = TensorCounts(
            reads=tensor.l1_read,
            fills=tensor.l1_write - up,
            updates=up,
            instances=1,
            tile_words=tensor.l1_size_req // 2,
            energy_pj=tensor.l1_accesses * L1_ENERGY * PJ_PER_MAC,
        )
    return tuple(
        LevelReport(
            name=name,
            instances=1,
            cycles=figures.runtime_cycles,
            energy_pj=sum(counts.energy_pj for counts in tensors.values()),
            tensors=FrozenDict(tensors),
        )
        for name, tensors in (("L2", l2), ("L1 of all PEs", l1))
    )
