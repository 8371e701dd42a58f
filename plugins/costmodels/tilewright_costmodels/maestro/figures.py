"""The figures MAESTRO prints for a layer, under the names of its columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tilewright.errors import NotConformableError, Reason
from tilewright.notations.directives import FILTER, INPUT, OUTPUT, WINDOWS, DirectiveHardware, DirectiveLayer
from tilewright.notations.directives.tiles import L1_ENERGY, L2_ENERGY, NJ_PER_MAC
from tilewright_costmodels.maestro.analysis import Analysis, Analyst, Step
from tilewright_costmodels.maestro.levels import Level, levels_of

Figure = int | float | None


@dataclass(frozen=True)
class TensorFigures:
    """Elements of one tensor, over the whole layer; `_req` are buffer sizes."""

    l1_read: int
    l1_write: int
    l2_read: int
    l2_write: int
    l1_size_req: int
    l2_size_req: int

    @property
    def reuse_factor(self) -> float | None:
        return self.l1_read / self.l1_write if self.l1_write else None

    @property
    def l1_accesses(self) -> int:
        return self.l1_read + self.l1_write


@dataclass(frozen=True)
class Figures:
    """Everything about one layer; energies in units of one MAC unless the name says otherwise."""

    layer: DirectiveLayer
    hardware: DirectiveHardware
    tensors: dict[str, TensorFigures]
    runtime_cycles: int
    num_macs: int
    steps: tuple[Step, ...]
    avg_utilized_pes: float
    offchip_bw_req: int

    @property
    def l1_size_req(self) -> int:
        return sum(tensor.l1_size_req for tensor in self.tensors.values())

    @property
    def l2_size_req(self) -> int:
        return sum(tensor.l2_size_req for tensor in self.tensors.values())

    @property
    def total_energy(self) -> float:
        """Accesses of both buffers and operations."""
        l2 = sum(tensor.l2_read + tensor.l2_write for tensor in self.tensors.values())
        l1 = sum(tensor.l1_accesses for tensor in self.tensors.values())
        return L2_ENERGY * l2 + L1_ENERGY * l1 + self.num_macs

    def activity_energy_nj(self, l1_accesses: int | None = None) -> float:
        """The CSV's energy: no operations, no output reads, and L1 accesses as they were known before this layer's
        second level was counted: `l1_accesses` of the layer before (None: there was none)."""
        l2 = sum(tensor.l2_read + tensor.l2_write for tensor in self.tensors.values())
        l2 -= self.tensors[OUTPUT].l2_read
        if len(self.layer.levels) == 1:
            l1 = sum(tensor.l1_accesses for tensor in self.tensors.values())
        else:
            l1 = l1_accesses or 0
        return NJ_PER_MAC * (L2_ENERGY * l2 + L1_ENERGY * l1)

    def columns(self, l1_accesses: int | None = None) -> dict[str, Any]:
        """The CSV row. None stands for NaN (something over 0)."""
        energy = self.activity_energy_nj(l1_accesses)
        throughput = _ratio(self.num_macs, self.runtime_cycles)
        row: dict[str, Any] = {
            "num_pes": self.hardware.num_pes,
            "runtime_cycles": self.runtime_cycles,
            "activity_energy_nj": energy,
            "throughput_macs_per_cycle": throughput,
            "throughput_per_energy": None if throughput is None else _ratio(throughput * 1e9, energy),
            "ops_per_joule": _ratio(self.num_macs * 1e9, energy),
            "vector_width": self.hardware.simd_lanes,
            "offchip_bw_req_elements_per_cycle": self.offchip_bw_req,
            "l2_size_req": self.l2_size_req,
            "l1_size_req": self.l1_size_req,
            "multicast_factor_weight": _ratio(self.tensors[FILTER].l1_write, self.tensors[FILTER].l2_read),
            "multicast_factor_input": _ratio(self.tensors[INPUT].l1_write, self.tensors[INPUT].l2_read),
            "num_input_elements": self.tensors[INPUT].l2_write,
            "num_weight_elements": self.tensors[FILTER].l2_write,
            "num_macs": self.num_macs,
            "avg_utilized_pes": self.avg_utilized_pes,
        }
        row |= self._bandwidth() | self._delays() | self._silicon()
        row["tensors"] = {
            name: {
                "l1_read": tensor.l1_read,
                "l1_write": tensor.l1_write,
                "l2_read": tensor.l2_read,
                "l2_write": tensor.l2_write,
                "reuse_factor": tensor.reuse_factor,
            }
            for name, tensor in self.tensors.items()
        }
        return row

    @property
    def peak_bandwidth(self) -> int:
        """Elements per cycle that the busiest step needs to hide its transfers."""
        return max((step.busiest // step.compute_delay for step in self.steps), default=0)

    def _bandwidth(self) -> dict[str, Figure]:
        peak = self.peak_bandwidth
        average = sum(step.occurrences * step.busiest // step.compute_delay for step in self.steps)
        last = sum(self.steps[-1].ingress.values()) if self.steps else 0
        return {
            "noc_bw_req_elements_per_cycle": peak,
            "peak_bw_req": peak,
            "avg_bw_req": _ratio(average, sum(step.occurrences for step in self.steps)),
            "arithmetic_intensity": _ratio(self.steps[-1].macs, last) if self.steps else None,
        }

    def _delays(self) -> dict[str, Figure]:
        result: dict[str, Figure] = {}
        count = sum(step.occurrences for step in self.steps)
        for name in ("ingress", "egress", "compute"):
            values = [getattr(step, f"{name}_delay") for step in self.steps]
            total = sum(step.occurrences * value for step, value in zip(self.steps, values, strict=True))
            result[f"{name}_delay_min"] = min(values, default=None)
            result[f"{name}_delay_max"] = max(0, *values) if values else None
            result[f"{name}_delay_avg"] = int(total / count) if count else None
        return result

    def _silicon(self) -> dict[str, Figure]:
        """Area and power; of the required buffer sizes, not of those given."""
        pes, lanes, width = self.hardware.num_pes, self.hardware.simd_lanes, self.hardware.noc_bandwidth
        l1, l2 = max(1, self.l1_size_req), max(1, self.l2_size_req)
        bus, arbiter = (14.662 * pes + 28.895) * width, 1.2886 * pes**2 + 5.5814 * pes - 23.711
        power = {
            "pe_power": pes * 1.2223 * lanes,
            "l1_power": 0.00345 * l1 * pes,
            "l2_power": 0.00345 * l2,
            "noc_power": 0.0008 * bus + 0.00034 * max(arbiter, 1000),
        }
        area = pes * (283 * lanes + 0.104 * l1) + 0.104 * l2 + 101.7938 * bus + 395.473 * max(arbiter, 1)
        return {"area_um2": area, "power_mw": sum(power.values()), **power}


def figures_of(layer: DirectiveLayer, hardware: DirectiveHardware) -> Figures:
    """Analyse one layer. Raises NotConformableError with the reasons MAESTRO has to refuse it."""
    levels = levels_of(layer, hardware)
    analysis = Analyst(layer, levels, hardware).analyse(0, dict(layer.dimensions))
    if not analysis.steps:
        reason = Reason(code="work", where=f"layer {layer.name}", message="the dataflow does no operation at all")
        raise NotConformableError("cost model maestro", [reason])
    return Figures(
        layer=layer,
        hardware=hardware,
        tensors=_tensor_figures(layer, levels, analysis),
        runtime_cycles=analysis.cycles,
        num_macs=analysis.macs,
        steps=tuple(analysis.steps),
        avg_utilized_pes=analysis.active_pes,
        offchip_bw_req=_offchip_bandwidth(analysis),
    )


def _tensor_figures(layer: DirectiveLayer, levels: tuple[Level, ...], analysis: Analysis) -> dict[str, TensorFigures]:
    result = {}
    for name, dimensions in layer.tensors.items():
        words = words_held(layer, name)
        result[name] = TensorFigures(
            l1_read=analysis.counted_macs if name == OUTPUT else analysis.macs,
            l1_write=analysis.counted_macs if name == OUTPUT else analysis.ingress[name],
            l2_read=words if name == OUTPUT else analysis.ingress[name],
            l2_write=analysis.egress if name == OUTPUT else words,
            l1_size_req=2 * math.prod(levels[-1].extents[d].full for d in dimensions),
            l2_size_req=analysis.required[name],
        )
    return result


def words_held(layer: DirectiveLayer, tensor: str) -> int:
    """Elements of a whole tensor as MAESTRO counts them: outputs regardless of strides."""
    dimensions = layer.tensors[tensor]
    if tensor == OUTPUT:
        return math.prod(_unstrided_outputs(layer, d) for d in dimensions)
    return math.prod(layer.dimensions[d] for d in dimensions)


def _unstrided_outputs(layer: DirectiveLayer, dimension: str) -> int:
    if layer.type == "GEMM" or dimension not in WINDOWS:
        return layer.dimensions[dimension]
    return layer.dimensions[dimension] - layer.dimensions[WINDOWS[dimension]] + 1


def _offchip_bandwidth(analysis: Analysis) -> int:
    """Halved again at every phase, so it depends on their order."""
    loads = analysis.required[INPUT] + analysis.required[FILTER]
    value = 0
    for step in analysis.steps:
        value = max(value, analysis.required[OUTPUT] // step.compute_delay, loads // step.compute_delay) // 2
    return value


def _ratio(over: float, under: float) -> float | None:
    return over / under if under else None
