"""An architecture as a table for notebooks."""

from __future__ import annotations

from typing import Any

from tilewright.formats import figure
from tilewright.markup import Head, tabulated


def machine_table(machine: Any) -> str:
    """Return memories, fanouts, compute and vector units of an `Architecture` as HTML."""
    figures = (
        (machine.clock_ghz, "GHz"),
        (machine.technology_nm, "nm"),
        (machine.area_um2 and machine.area_um2 * 1e-6, "mm2"),
    )
    told = [f"{machine.name}: {machine.compute_instances:,} compute units"]
    told += [f"{value:.4g} {unit}" for value, unit in figures if value is not None]
    rows = [
        (
            cluster.name,
            memory.name if memory else "",
            "; ".join(memory.summary()) if memory else "",
            cluster.fanout.told,
        )
        for cluster in machine.clusters
        for memory in cluster.memories or (None,)
    ]
    rows.append(("", machine.compute.name, f"{figure(machine.compute.energy_per_operation_pj)} pJ per operation", ""))
    rows += [("", unit.name, f"vector unit of {unit.lanes:,} lanes at {unit.memory}", "") for unit in machine.units]
    heads = [Head(name) for name in ("cluster", "memory", "sizes and energies", "sub-clusters")]
    return tabulated(", ".join(told), heads, rows)
