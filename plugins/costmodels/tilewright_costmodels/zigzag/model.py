"""The cost model `zigzag`: what ZigZag's cost model says about a mapping, without any search of its own."""

from __future__ import annotations

import atexit
import functools
import json
import math
from collections.abc import Iterator
from typing import Any

from tilewright.child import Child, NoAnswer
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.legality import legality
from tilewright.notations.operand_loops import Held, held, operands, unsaid, unsuited
from tilewright.plugin.costmodel import ScalarEvaluator
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import LevelReport, Limit, Report, TensorCounts, overlapping
from tilewright_costmodels import ZigZagOptions
from tilewright_costmodels.zigzag.request import request
from tilewright_costmodels.zigzag.worker import reply

NAME = "zigzag"


class ZigZagModel:
    """ZigZag in a process of its own; the time for the first mapping includes loading it."""

    def __init__(self, options: ZigZagOptions) -> None:
        self.seconds = options.seconds

    def bind(self, problem: Problem, architecture: Architecture) -> ZigZagEvaluator:
        """Raises NotConformableError: a problem that ZigZag's layers cannot be."""
        reasons = tuple(unsuited(problem))
        if reasons:
            raise NotConformableError(f"cost model {NAME}", reasons)
        return ZigZagEvaluator(problem, architecture, self.seconds)


class ZigZagEvaluator(ScalarEvaluator):
    """ZigZag bound to one problem and one architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, seconds: float) -> None:
        self.problem = problem
        self.architecture = architecture
        self.seconds = seconds

    def explain(self, mapping: Mapping) -> Report:
        """ZigZag's account. A mapping that it cannot be told, an error of its own and a time-out give `valid` false and
        the reason."""
        report = Report(model=NAME, problem=self.problem.name, macs=self.problem.macs, valid=False)
        reasons = legality(self.problem, self.architecture, mapping).reasons
        reasons = reasons or tuple(unsaid(self.problem, self.architecture, mapping))
        if not reasons:
            asked = json.dumps(request(self.problem, self.architecture, mapping))
            try:
                found = _answer(asked, self.seconds)
            except NoAnswer as failure:
                found, reasons = {}, (Reason(code=failure.code, where=NAME, message=str(failure)),)
            if "failed" in found:
                reasons = (Reason(code="rejected", where=NAME, message=found["failed"]),)
        if reasons:
            return report.model_copy(update={"reasons": reasons})
        return self._priced(report, mapping, found)

    def _priced(self, report: Report, mapping: Mapping, answer: dict[str, Any]) -> Report:
        cycles = max(1, math.ceil(answer["cycles"]))
        return report.model_copy(
            update={
                "valid": True,
                "warnings": tuple(_warnings(self.architecture, answer)),
                "cycles": cycles,
                "energy_pj": answer["energy_pj"],
                "edp": answer["energy_pj"] * cycles,
                "utilization": self.problem.macs
                * self.architecture.compute.cycles_per_operation
                / (self.architecture.compute_instances * cycles),
                "compute_energy_pj": answer["compute_energy_pj"],
                "levels": _levels(self.problem, self.architecture, mapping, answer, cycles),
                "limits": tuple(_limits(answer, cycles)),
                "busy_units": self.problem.macs
                * self.architecture.compute.cycles_per_operation
                / max(1.0, answer["computing"]),
            }
        )


@functools.lru_cache(maxsize=1024)
def _answer(asked: str, seconds: float) -> dict[str, Any]:
    """The same mapping is asked for once. Raises NoAnswer."""
    found: dict[str, Any] = process().ask(reply, json.loads(asked), seconds=seconds)
    return found


@functools.cache
def process() -> Child:
    """Where ZigZag runs; it ends with this program."""
    child = Child(quiet=True)
    atexit.register(child.close)
    return child


def _levels(
    problem: Problem, architecture: Architecture, mapping: Mapping, answer: dict[str, Any], cycles: int
) -> tuple[LevelReport, ...]:
    tensors = operands(problem)
    found: dict[str, dict[str, TensorCounts]] = {}
    for operand, places in held(problem, architecture, mapping).items():
        for place, row in zip(places, answer["operands"][operand], strict=True):
            found.setdefault(place.memory.name, {})[tensors[operand].name] = _counts(place, row)
    return tuple(
        LevelReport(
            name=memory.name,
            instances=max(each.instances for each in found[memory.name].values()),
            cycles=cycles,
            energy_pj=sum(each.energy_pj for each in found[memory.name].values()),
            tensors=FrozenDict(
                {name: found[memory.name][name] for name in problem.tensor_names if name in found[memory.name]}
            ),
        )
        for memory in architecture.memories
        if memory.name in found
    )


def _limits(answer: dict[str, Any], cycles: int) -> Iterator[Limit]:
    """Computing at the pace of the slowest port, then what is loaded before and unloaded after it."""
    computing = round(answer["computing"])
    loading, unloading = round(answer["loading"]), round(answer["unloading"])
    while_computing = cycles - loading - unloading
    ports = [
        Limit(name=name, action="read" if reads else "write", cycles=computing + round(stalled))
        for name, reads, stalled in answer["ports"]
    ]
    whole = {"cycles": while_computing, "binding_cycles": while_computing}  # but for what was rounded
    for limit in overlapping([Limit(name="compute", action="compute", cycles=computing), *ports]):
        yield limit.model_copy(update=whole) if limit.binding_cycles else limit
    yield Limit(name="first tiles", action="load", cycles=loading, binding_cycles=loading)
    yield Limit(name="last tiles", action="unload", cycles=unloading, binding_cycles=unloading)


def _counts(place: Held, row: dict[str, Any]) -> TensorCounts:
    """What goes out, inwards or outwards, is read; what comes in from outside fills; results from inside update."""
    return TensorCounts(
        reads=row["to_low"] + row["to_high"],
        fills=row["by_high"],
        updates=row["by_low"],
        instances=row["instances"],
        tile_words=row["tile_words"],
        energy_pj=row["energy_pj"],
    )


def _warnings(architecture: Architecture, answer: dict[str, Any]) -> list[str]:
    """Where the cycles come from, and what of the architecture ZigZag has no place for."""
    told = [
        f"cycles: {answer['computing']:,.0f} computing, {answer['stalled']:,.0f} stalled, "
        f"{answer['loading']:,.0f} loading first, {answer['unloading']:,.0f} unloading last"
    ]
    networks = [
        cluster.name
        for cluster in architecture.clusters
        if any(value for name, value in cluster.fanout.network if name.startswith("energy"))
    ]
    if networks:
        told.append(f"ZigZag has no energy of NoCs: that below {', '.join(networks)} is left out")
    adding = [m.name for m in architecture.memories if m.accumulation_energy_pj != m.write_energy_pj]
    if adding:
        told.append(f"ZigZag has no energy of updates: those of {', '.join(adding)} cost a write")
    leaking = [memory.name for memory in architecture.memories if memory.leakage_pj_per_cycle]
    if leaking:
        told.append(f"ZigZag has no leakage: that of {', '.join(leaking)} is left out")
    return told
