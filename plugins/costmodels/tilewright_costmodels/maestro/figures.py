"""Metrics that MAESTRO prints for a layer, under the names of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.errors import NotConformableError, Reason
from tilewright_costmodels.maestro import tables as at
from tilewright_costmodels.maestro.analysis import analyse
from tilewright_costmodels.maestro.machine import TENSORS, Machine
from tilewright_costmodels.maestro.tables import FILTER, INPUT, L1, L2, OUTPUT, PhaseStep
from tilewright_notations.directives import DirectiveHardware, DirectiveLayer
from tilewright_notations.directives.completion import complete_table
from tilewright_notations.directives.table import letters_of, names_of
from tilewright_notations.directives.tiles import L1_ENERGY, L2_ENERGY, NJ_PER_MAC

Figure = int | float | None


@dataclass(frozen=True)
class Figures:
    """All results for one layer.

    Attributes:
        counts: [level, tensor, action] (`tables.AnalysisScratch.counts`).
        required: elements of buffer for both copies of a tile, [level, tensor].
        steps: phases that compute, in MAESTRO's order.
        starts: whether the first of them is the very first step, which waits until its tiles have arrived.
        active_pes: mean over steps.
    """

    layer: DirectiveLayer
    hardware: DirectiveHardware
    counts: list[list[list[int]]]
    required: list[list[int]]
    cycles: int
    energy_pj: float
    steps: list[PhaseStep]
    starts: bool
    active_pes: float

    @property
    def macs(self) -> int:
        """Operations, as MAESTRO counts them."""
        return self.counts[L1][INPUT][at.READS]

    def writes(self, level: int, tensor: int) -> int:
        """Return fills and updates."""
        return self.counts[level][tensor][at.FILLS] + self.counts[level][tensor][at.UPDATES]

    @property
    def l1_accesses(self) -> int:
        """Accesses of all tensors to L1."""
        return sum(map(sum, self.counts[L1]))

    def activity_energy_nj(self, l1_accesses: int | None = None) -> float:
        """Return the CSV's energy, in nJ, without operations and reads of outputs.

        With several levels MAESTRO adds the L1 accesses before it counts those of this layer.

        Args:
            l1_accesses: L1 accesses of the previous layer; None: there is none.
        """
        l2 = sum(map(sum, self.counts[L2])) - self.counts[L2][OUTPUT][at.READS]
        l1 = self.l1_accesses if len(self.layer.levels) == 1 else l1_accesses or 0
        return NJ_PER_MAC * (L2_ENERGY * l2 + L1_ENERGY * l1)

    def columns(self, l1_accesses: int | None = None) -> dict[str, Any]:
        """Return the CSV row. None represents NaN (a division by 0)."""
        energy = self.activity_energy_nj(l1_accesses)
        throughput = _ratio(self.macs, self.cycles)
        row: dict[str, Any] = {
            "num_pes": self.hardware.num_pes,
            "runtime_cycles": self.cycles,
            "activity_energy_nj": energy,
            "throughput_macs_per_cycle": throughput,
            "throughput_per_energy": None if throughput is None else _ratio(throughput * 1e9, energy),
            "ops_per_joule": _ratio(self.macs * 1e9, energy),
            "vector_width": self.hardware.simd_lanes,
            "offchip_bw_req_elements_per_cycle": self.offchip_bandwidth(),
            "l2_size_req": sum(self.required[L2]),
            "l1_size_req": sum(self.required[L1]),
            "multicast_factor_weight": _ratio(self.writes(L1, FILTER), self.counts[L2][FILTER][at.READS]),
            "multicast_factor_input": _ratio(self.writes(L1, INPUT), self.counts[L2][INPUT][at.READS]),
            "num_input_elements": self.writes(L2, INPUT),
            "num_weight_elements": self.writes(L2, FILTER),
            "num_macs": self.macs,
            "avg_utilized_pes": self.active_pes,
        }
        row |= self._bandwidth() | self._delays() | self._silicon()
        row["tensors"] = {
            name: {
                "l1_read": self.counts[L1][tensor][at.READS],
                "l1_write": self.writes(L1, tensor),
                "l2_read": self.counts[L2][tensor][at.READS],
                "l2_write": self.writes(L2, tensor),
                "reuse_factor": _ratio(self.counts[L1][tensor][at.READS], self.writes(L1, tensor)),
            }
            for tensor, name in enumerate(TENSORS)
        }
        return row

    @property
    def peak_bandwidth(self) -> int:
        """Elements per cycle that the busiest step needs to hide its transfers."""
        return max((_busiest(step) // step.compute_delay for step in self.steps), default=0)

    def _bandwidth(self) -> dict[str, Figure]:
        peak, last = self.peak_bandwidth, self.steps[-1]
        average = sum(step.occurrences * _busiest(step) // step.compute_delay for step in self.steps)
        return {
            "noc_bw_req_elements_per_cycle": peak,
            "peak_bw_req": peak,
            "avg_bw_req": _ratio(average, sum(step.occurrences for step in self.steps)),
            "arithmetic_intensity": _ratio(last.macs, last.input_sent + last.filter_sent),
        }

    def _delays(self) -> dict[str, Figure]:
        result: dict[str, Figure] = {}
        count = sum(step.occurrences for step in self.steps)
        for name, field in (("ingress", "ingress_delay"), ("egress", "egress_delay"), ("compute", "compute_delay")):
            values = [getattr(step, field) for step in self.steps]
            total = sum(step.occurrences * value for step, value in zip(self.steps, values, strict=True))
            result[f"{name}_delay_min"] = min(values)
            result[f"{name}_delay_max"] = max(0, *values)
            result[f"{name}_delay_avg"] = int(total / count)
        return result

    def offchip_bandwidth(self) -> int:
        """Return MAESTRO's off-chip requirement, in elements per cycle.

        It is halved at every phase, so it depends on the order of phases.
        """
        need, value = self.required[L2], 0
        for step in self.steps:
            wanted = max(need[OUTPUT] // step.compute_delay, (need[INPUT] + need[FILTER]) // step.compute_delay)
            value = max(value, wanted) // 2
        return value

    def _silicon(self) -> dict[str, Figure]:
        """Return area and power, of the required buffer sizes instead of the given ones."""
        pes, lanes, width = self.hardware.num_pes, self.hardware.simd_lanes, self.hardware.noc_bandwidth
        l1, l2 = max(1, sum(self.required[L1])), max(1, sum(self.required[L2]))
        bus, arbiter = (14.662 * pes + 28.895) * width, 1.2886 * pes**2 + 5.5814 * pes - 23.711
        power = {
            "pe_power": pes * 1.2223 * lanes,
            "l1_power": 0.00345 * l1 * pes,
            "l2_power": 0.00345 * l2,
            "noc_power": 0.0008 * bus + 0.00034 * max(arbiter, 1000),
        }
        area = pes * (283 * lanes + 0.104 * l1) + 0.104 * l2 + 101.7938 * bus + 395.473 * max(arbiter, 1)
        return {"area_um2": area, "power_mw": sum(power.values()), **power}


def figures_of(layer: DirectiveLayer, hardware: DirectiveHardware, machine: Machine) -> Figures:
    """Analyse one layer.

    Raises:
        NotConformableError: MAESTRO refuses the layer.
    """
    table = complete_table(layer, hardware)
    result, scratch = analyse(letters_of(layer), machine.numbers.boundless, table, explain=True)
    error = scratch.errors[0, 0].tolist()
    if error[0] != at.FINE:
        raise NotConformableError("cost model maestro", [_reason(error, layer, table.size.tolist())])
    steps = [PhaseStep(*step) for step in scratch.steps[: scratch.phases[0]].tolist()]
    return Figures(
        layer=layer,
        hardware=hardware,
        counts=scratch.counts.tolist(),
        required=scratch.required.tolist(),
        cycles=int(scratch.states[0, 0]["cycles"]),
        energy_pj=float(result.energy_pj[0]),
        steps=[step for step in steps if step.compute_delay > 0],
        starts=steps[0].compute_delay > 0,
        active_pes=float(scratch.states[0, 0]["active"]),
    )


def _reason(error: list[int], layer: DirectiveLayer, sizes: list[list[int]]) -> Reason:
    code, level, which, number = error
    size, dimension = sizes[level][which], names_of(layer)[which]
    kind, where, message = {
        at.MOVES: (
            "moving",
            f"dimension {dimension}",
            f"the map of size {size} in level {level} must move over {number}, although nominally one step covers everything",
        ),
        at.OVERFLOW: (
            "overflow",
            "dataflow",
            f"a phase of level {level} occurs {number} times; expected fewer than 2**31, the range of MAESTRO's counter",
        ),
        at.NO_WORK_INSIDE: (
            "work",
            "dataflow",
            f"a step of level {level} has operations, but the next level finds none",
        ),
        at.IDLE: ("work", f"layer {layer.name}", "the dataflow performs no operation"),
    }[code]
    return Reason(code=kind, where=where, message=message)


def _busiest(step: PhaseStep) -> int:
    """Return the elements in the busier direction, down or up."""
    return max(step.input_sent + step.filter_sent, step.egress)


def _ratio(over: float, under: float) -> float | None:
    return over / under if under else None
