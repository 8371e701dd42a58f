"""The recursion over levels: what every phase of a level moves, computes and takes in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.errors import NotConformableError, Reason
from tilewright.notations.directives import FILTER, INPUT, OUTPUT, DirectiveHardware, DirectiveLayer
from tilewright_costmodels.maestro.levels import Level
from tilewright_costmodels.maestro.phases import Phase, phases_of
from tilewright_costmodels.maestro.traffic import PhaseTraffic

Sizes = dict[str, int]
OPERANDS = (INPUT, FILTER)
COUNTER_LIMIT = 2**31
"""MAESTRO counts the steps of a phase in 32 bits and aborts, or goes on with a wrong number, beyond."""


@dataclass(frozen=True)
class Step:
    """A phase that does work: elements, operations, cycles, for one occurrence."""

    occurrences: int
    ingress: dict[str, int]
    egress: int
    macs: int
    ingress_delay: int
    egress_delay: int
    compute_delay: int
    cycles: int
    active_pes: float

    @property
    def busiest(self) -> int:
        """Elements on the busier way, down or up."""
        return max(sum(self.ingress.values()), self.egress)


@dataclass
class Analysis:
    """A level on one sub-problem. `required` are elements of buffer per tensor, both copies."""

    steps: list[Step] = field(default_factory=list)
    ingress: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OPERANDS, 0))
    egress: int = 0
    macs: int = 0
    counted_macs: int = 0
    """With those of phases that are passed over because they do no work, negative ones included."""
    required: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*OPERANDS, OUTPUT), 0))

    @property
    def cycles(self) -> int:
        return sum(step.occurrences * step.cycles for step in self.steps)

    @property
    def active_pes(self) -> float:
        """Mean over steps, not over time."""
        steps = sum(step.occurrences for step in self.steps)
        return sum(step.occurrences * step.active_pes for step in self.steps) / steps if steps else 0.0


class Analyst:
    """Analyses sub-problems of one layer; equal ones once."""

    def __init__(self, layer: DirectiveLayer, levels: tuple[Level, ...], hardware: DirectiveHardware) -> None:
        self.levels = levels
        self.hardware = hardware
        self.tensors = layer.tensors
        self._known: dict[tuple[int, tuple[int, ...]], Analysis] = {}

    def analyse(self, depth: int, sizes: Sizes) -> Analysis:
        """Level `depth` and all inside it on a sub-problem of `sizes`."""
        key = (depth, tuple(sizes[each.dimension] for each in self.levels[depth].maps))
        if key not in self._known:
            self._known[key] = self._analyse(depth, sizes)
        return self._known[key]

    def _analyse(self, depth: int, sizes: Sizes) -> Analysis:
        level, result = self.levels[depth], Analysis()
        for phase in phases_of(level, sizes):
            traffic = PhaseTraffic(level, phase)
            ingress = {name: traffic.ingress(self.tensors[name]) for name in OPERANDS}
            egress = traffic.egress(self.tensors[OUTPUT])
            macs = traffic.macs(self.tensors[OUTPUT])
            result.egress += phase.occurrences * egress
            result.counted_macs += phase.occurrences * macs
            if not result.steps:  # up to the first phase that does work
                for name in OPERANDS:
                    result.required[name] += 2 * ingress[name]
                result.required[OUTPUT] = 2 * egress
            critical = traffic.critical_macs(self.tensors[OUTPUT])
            if critical <= 0:
                continue
            result.macs += phase.occurrences * macs
            for name in OPERANDS:
                result.ingress[name] += phase.occurrences * ingress[name]
            if phase.occurrences >= COUNTER_LIMIT:
                raise _refusal("overflow", f"a phase of level {depth} occurs {phase.occurrences} times; 32 bits count")
            compute, active = self._inside(depth, phase, traffic, sizes, critical)
            if depth == 0 and compute <= 0:
                raise _refusal("work", f"a step of level {depth} has operations but the level inside finds none")
            arriving, leaving = self._delay(sum(ingress.values())), self._delay(egress)
            cycles = compute + arriving if phase.moved is None else max(compute, arriving, leaving)
            if depth == 0:
                cycles = max(cycles, *self._offchip(result))
            result.steps.append(
                Step(phase.occurrences, ingress, egress, macs, arriving, leaving, compute, cycles, active)
            )
        return result

    def _delay(self, elements: int) -> int:
        return self.hardware.noc_latency - -elements // self.hardware.noc_bandwidth - 1

    def _offchip(self, result: Analysis) -> tuple[int, int]:
        """Every step loads and stores a whole tile of the outer buffer, half of it hidden."""
        bandwidth = self.hardware.offchip_bandwidth
        loads = result.required[INPUT] + result.required[FILTER]
        return loads // bandwidth // 2, result.required[OUTPUT] // bandwidth // 2

    def _inside(
        self, depth: int, phase: Phase, traffic: PhaseTraffic, sizes: Sizes, critical: int
    ) -> tuple[int, float]:
        """Cycles that one step computes, and PEs at work in it."""
        clusters = traffic.spread.clusters
        if depth + 1 == len(self.levels):
            return -(-critical // self.hardware.simd_lanes), float(clusters)
        cycles, active = 0, 0.0
        for count, inner in self._sub_problems(depth, phase, traffic):
            analysis = self.analyse(depth + 1, inner)
            cycles = max(cycles, analysis.cycles)
            active += count * analysis.active_pes
        return cycles, active

    def _sub_problems(self, depth: int, phase: Phase, traffic: PhaseTraffic) -> Iterator[tuple[int, Sizes]]:
        """(how many sub-clusters, what each works on)."""
        level, clusters = self.levels[depth], traffic.spread.clusters
        first = phase.states[level.first_spatial]
        if not (first.edge and first.partial_last):
            yield clusters, self._tile(level, phase, short=clusters == 1)
            return
        yield 1, self._tile(level, phase, short=True)
        if clusters > 1:
            yield clusters - 1, self._tile(level, phase, short=False)

    def _tile(self, level: Level, phase: Phase, short: bool) -> Sizes:
        sizes = {}
        for each, state in zip(level.maps, phase.states, strict=True):
            extent = level.extents[each.dimension]
            partial = state.edge and (short or not each.spatial)
            sizes[each.dimension] = extent.part if partial else extent.full
        return sizes


def _refusal(code: str, message: str) -> NotConformableError:
    return NotConformableError("cost model maestro", [Reason(code=code, where="dataflow", message=message)])
