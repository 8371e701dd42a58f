"""Cost model `zigzag`: ZigZag's cost model on given mappings, without ZigZag's search."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.child import ChildFailed, shared_child
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.legality import legality
from tilewright.plugin.costmodel import ScalarEvaluator
from tilewright.reports import LevelReport, Limit, Report, TensorCounts, overlapping
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import ZigZagOptions
from tilewright_costmodels.zigzag.request import request
from tilewright_costmodels.zigzag.worker import answer_request
from tilewright_notations.operand_loops import held, inexpressible, operands, unsuited

NAME = "zigzag"


class ZigZagModel:
    """ZigZag in a child process. The time for the first mapping includes loading ZigZag."""

    def __init__(self, options: ZigZagOptions) -> None:
        self.options = options

    def bind(self, problem: Problem, architecture: Architecture) -> ZigZagEvaluator:
        """Bind ZigZag to a problem and an architecture.

        Raises:
            NotConformableError: ZigZag's layers cannot express the problem.
        """
        reasons = tuple(unsuited(problem))
        if reasons:
            raise NotConformableError(f"cost model {NAME}", reasons)
        return ZigZagEvaluator(problem, architecture, self.options.seconds)


@dataclass(frozen=True)
class ZigZagEvaluator(ScalarEvaluator):
    """ZigZag, bound to one problem and one architecture."""

    problem: Problem
    architecture: Architecture
    seconds: float

    def explain(self, mapping: Mapping) -> Report:
        """Return ZigZag's report.

        `valid` is False, with the reason, if ZigZag cannot express the mapping, raises an error or
        times out.
        """
        problem, architecture = self.problem, self.architecture
        reasons = legality(problem, architecture, mapping).reasons or tuple(
            inexpressible(problem, architecture, mapping)
        )
        report = Report(model=NAME, problem=problem.name, macs=problem.macs, valid=False, reasons=reasons)
        if reasons:
            return report
        try:
            message = json.dumps(request(problem, architecture, mapping))
        except ValueError as error:
            reason = Reason(code="widths", where="mapping", message=str(error))
            return report.model_copy(update={"reasons": (reason,)})
        try:
            answer = _answer(message, self.seconds)
        except ChildFailed as failure:
            reason = Reason(code=failure.code, where=NAME, message=str(failure))
            return report.model_copy(update={"reasons": (reason,)})
        cycles = max(1, math.ceil(answer["cycles"]))
        work = problem.macs * architecture.compute.cycles_per_operation
        return report.with_costs(
            answer["energy_pj"],
            cycles,
            architecture.compute_instances,
            utilization=work / (architecture.compute_instances * cycles),
            warnings=tuple(_warnings(architecture, answer)),
            compute_energy_pj=answer["compute_energy_pj"],
            levels=tuple(self._levels(mapping, answer, cycles)),
            limits=tuple(_limits(answer, cycles)),
            busy_units=work / max(1.0, answer["computing"]),
        )

    def _levels(self, mapping: Mapping, answer: dict[str, Any], cycles: int) -> Iterator[LevelReport]:
        tensors = operands(self.problem)
        rows = {
            (residence.memory, tensors[operand].name): _counts(row)
            for operand, residences in held(self.problem, self.architecture, mapping).items()
            for residence, row in zip(residences, answer["operands"][operand], strict=True)
        }
        for memory in self.architecture.memories:
            counts = {name: rows[memory, name] for name in self.problem.tensor_names if (memory, name) in rows}
            if counts:
                yield LevelReport(
                    name=memory.name,
                    instances=max(row.instances for row in counts.values()),
                    cycles=cycles,
                    energy_pj=sum(row.energy_pj for row in counts.values()),
                    tensors=FrozenDict(counts),
                )


@functools.lru_cache(maxsize=1024)
def _answer(message: str, seconds: float) -> dict[str, Any]:
    """Return ZigZag's answer to a message. Equal messages are sent once.

    Raises:
        ChildFailed: ZigZag failed or timed out.
    """
    answer: dict[str, Any] = shared_child(quiet=True).ask(answer_request, json.loads(message), seconds=seconds)
    return answer


def _limits(answer: dict[str, Any], cycles: int) -> Iterator[Limit]:
    """Yield the limits on cycles: compute and ports, which overlap, then loading before and unloading after them."""
    computing = round(answer["computing"])
    loading, unloading = round(answer["loading"]), round(answer["unloading"])
    overlapped = cycles - loading - unloading
    ports = [
        Limit(name=name, action="read" if reads else "write", cycles=computing + round(stalled))
        for name, reads, stalled in answer["ports"]
    ]
    overlapped_cycles = {"cycles": overlapped, "binding_cycles": overlapped}  # rounding: the limit's own may differ
    for limit in overlapping([Limit(name="compute", action="compute", cycles=computing), *ports]):
        yield limit.model_copy(update=overlapped_cycles) if limit.binding_cycles else limit
    yield Limit(name="first tiles", action="load", cycles=loading, binding_cycles=loading)
    yield Limit(name="last tiles", action="unload", cycles=unloading, binding_cycles=unloading)


def _counts(row: dict[str, Any]) -> TensorCounts:
    """Return ZigZag's four directions as reads, fills and updates.

    Words that leave, inwards or outwards, are reads. Words from outside are fills; results from
    inside are updates.
    """
    return TensorCounts(
        reads=row["to_low"] + row["to_high"],
        fills=row["by_high"],
        updates=row["by_low"],
        instances=row["instances"],
        tile_words=row["tile_words"],
        energy_pj=row["energy_pj"],
    )


def _warnings(architecture: Architecture, answer: dict[str, Any]) -> Iterator[str]:
    """Yield the composition of the cycles, and the parts of the architecture that ZigZag cannot express."""
    yield (
        f"cycles: {answer['computing']:,.0f} computing, {answer['stalled']:,.0f} stalled, "
        f"{answer['loading']:,.0f} loading first, {answer['unloading']:,.0f} unloading last"
    )
    costly = [cluster.name for cluster in architecture.clusters if cluster.fanout.network.takes_energy]
    adding = [m.name for m in architecture.memories if m.accumulation_energy_pj != m.write_energy_pj]
    leaking = [memory.name for memory in architecture.memories if memory.leakage_pj_per_cycle]
    for names, feature, consequence in (
        (costly, "network energy: that below", "is not included"),
        (adding, "energy of updates: updates of", "cost a write"),
        (leaking, "leakage: that of", "is not included"),
    ):
        if names:
            yield f"ZigZag has no {feature} {', '.join(names)} {consequence}"
