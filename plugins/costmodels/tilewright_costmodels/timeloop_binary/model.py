"""The cost model `timeloop_binary`: what `timeloop-model` itself says."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from tilewright.errors import Reason
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.costmodel import ScalarEvaluator
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import LevelReport, Limit, NetworkReport, Report, TensorCounts, overlapping
from tilewright_costmodels import TimeloopBinaryOptions
from tilewright_costmodels.timeloop_binary.program import Ended, run
from tilewright_costmodels.timeloop_binary.stats import (
    Section,
    Stats,
    Unreadable,
    count,
    energy,
    number,
    read_stats,
    whole,
)

NAME = "timeloop_binary"
OUTPUT = "timeloop-model.stats.txt"
_OURS = "tilewright.yaml"
"""What the adapter writes for Tilewright alone."""


class TimeloopBinaryModel:
    """The program, which is looked for when it is first used."""

    def __init__(self, options: TimeloopBinaryOptions) -> None:
        self.path = options.path
        self.seconds = options.seconds

    def bind(self, problem: Problem, architecture: Architecture) -> TimeloopBinaryEvaluator:
        return TimeloopBinaryEvaluator(problem, architecture, self.path, self.seconds)


class TimeloopBinaryEvaluator(ScalarEvaluator):
    """The program bound to one problem and one architecture; it is started once for every mapping."""

    def __init__(self, problem: Problem, architecture: Architecture, path: str, seconds: float) -> None:
        self.problem = problem
        self.architecture = architecture
        self.path = path
        self.seconds = seconds

    def explain(self, mapping: Mapping) -> Report:
        """Timeloop's own account. A mapping that its files cannot say, a crash, a time-out and output that cannot be
        read give `valid` false and the reason."""
        report = Report(model=NAME, problem=self.problem.name, macs=self.problem.macs, valid=False)
        verdict = legality(self.problem, self.architecture, mapping)
        reasons = tuple(reason for reason in verdict.reasons if reason.code != "fanout")
        if reasons:
            return report.model_copy(update={"reasons": reasons})
        adapter: Adapter = installed().make(AdapterSpec, "timeloop")
        inputs = InputSet(self.problem, self.architecture, mapping)
        said = adapter.expressible(inputs)
        if not said:
            return report.model_copy(update={"reasons": said.reasons})
        files = {name: text for name, text in adapter.render(inputs).items() if name != _OURS}
        ended = _run_once(self.path, tuple(files.items()), self.seconds)
        failure = _failure(ended, self.path, self.seconds)
        if failure is None:
            try:
                return _report(report, read_stats(ended.wrote or ""), self.problem, self.architecture, mapping)
            except Unreadable as error:
                failure = Reason(code="unreadable", where=OUTPUT, message=f"cannot be read: {error}")
        return report.model_copy(update={"reasons": (failure,)})


@functools.lru_cache(maxsize=1024)
def _run_once(path: str, files: tuple[tuple[str, str], ...], seconds: float) -> Ended:
    """The same files give the same statistics: Timeloop is started once for them."""
    return run(path, dict(files), OUTPUT, seconds)


def _failure(ended: Ended, path: str, seconds: float) -> Reason | None:
    if ended.late:
        return Reason(code="timeout", where=path, message=f"took longer than {seconds:g} s and was stopped")
    if ended.code is None:
        return Reason(code="absent", where=path, message=f"could not be started: {ended.printed}")
    complaint = next((line for line in reversed(ended.printed.splitlines()) if "ERROR" in line), None)
    if ended.code == 0 and ended.wrote is not None:
        return None
    if complaint is not None:
        return Reason(code="rejected", where=path, message=complaint.strip())
    how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with exit code {ended.code}"
    last = " ".join(ended.printed.split())[-200:]
    return Reason(code="crashed", where=path, message=f"{how} and wrote no {OUTPUT}; it last said: {last or 'nothing'}")


def _report(report: Report, stats: Stats, problem: Problem, architecture: Architecture, mapping: Mapping) -> Report:
    """Raises Unreadable: levels are missing, or the parts do not add up to the whole."""
    held = [entry.target for entry in mapping.entries if entry.keep is not None]
    kept = [entry.keep or () for entry in mapping.entries if entry.keep is not None]
    numbers = {len(held) - index: name for index, name in enumerate(held)}  # Timeloop counts from the innermost
    if not set(stats.levels) <= {0, *numbers}:
        raise Unreadable(f"{max(stats.levels)} storage levels, {len(held)} were asked for")
    levels = []
    for index, tensors in enumerate(kept):
        section = stats.levels.get(len(held) - index)
        if section is None and tensors:
            raise Unreadable(f"nothing about {held[index]}")
        levels.append(_level(held[index], section or Section(), tensors, stats.cycles))
    compute = number(stats.levels[0].fields.get("Energy (total)", "none"))
    leakage = sum(number(each.fields.get("Leakage energy (total)", "0")) for each in stats.levels.values())
    titles = {section.title: numbers[index] for index, section in stats.levels.items() if index}
    networks = tuple(_networks(stats, titles, problem))
    total = (
        compute + leakage + sum(level.energy_pj for level in levels) + sum(network.energy_pj for network in networks)
    )
    if not math.isclose(total, stats.energy_pj, rel_tol=0.01, abs_tol=0.02e6):
        raise Unreadable(f"energies add up to {total:g} pJ, the summary says {stats.energy_pj:g} pJ")
    return report.model_copy(
        update={
            "valid": True,
            "warnings": tuple(_warnings(stats, problem, leakage)),
            "cycles": stats.cycles,
            "energy_pj": total,
            "edp": total * stats.cycles,
            "utilization": problem.macs / (architecture.compute_instances * stats.cycles),
            "compute_energy_pj": compute,
            "levels": tuple(levels),
            "networks": networks,
            "limits": _limits(stats, numbers),
        }
    )


def _level(name: str, section: Section, tensors: tuple[str, ...], cycles: int) -> LevelReport:
    found: dict[str, TensorCounts] = {}
    for tensor in tensors:
        fields = section.tensors.get(tensor)
        if fields is None:
            raise Unreadable(f"nothing about {tensor} in {name}")
        capacity = "Utilized capacity" if "Utilized capacity" in fields else "Max utilized data storage capacity"
        found[tensor] = TensorCounts(
            reads=count(fields, "Scalar reads (per-instance)"),
            fills=count(fields, "Scalar fills (per-instance)"),
            updates=count(fields, "Scalar updates (per-instance)"),
            instances=count(fields, "Utilized instances (max)"),
            tile_words=count(fields, capacity),
            energy_pj=energy(fields),
            partition_words=count(fields, "Partition size"),
        )
    return LevelReport(
        name=name,
        instances=max((counts.instances for counts in found.values()), default=0),
        cycles=count(section.fields, "Cycles") if "Cycles" in section.fields else cycles,
        energy_pj=sum(counts.energy_pj for counts in found.values()),
        tensors=FrozenDict(found),
    )


def _limits(stats: Stats, names: dict[int, str]) -> tuple[Limit, ...]:
    """The cycles that Timeloop gives compute and each memory; none where they are not those of the run."""
    limits = [
        Limit(
            name=names.get(index, "compute"),
            action="access" if index else "compute",
            cycles=whole(section.fields["Cycles"]),
        )
        for index, section in sorted(stats.levels.items())
        if "Cycles" in section.fields
    ]
    found = overlapping(limits) if limits else ()
    return found if any(limit.binding_cycles == stats.cycles for limit in found) else ()


def _networks(stats: Stats, titles: dict[str, str], problem: Problem) -> Iterator[NetworkReport]:
    for upper, section in stats.networks:
        for tensor in problem.tensor_names:
            fields = section.tensors.get(tensor)
            if fields is None:
                continue
            yield NetworkReport(
                name=titles.get(upper, upper),
                tensor=tensor,
                ingresses=count(fields, "Ingresses") if "Ingresses" in fields else 0,
                link_transfers=count(fields, "Link transfers") if "Link transfers" in fields else 0,
                spatial_reductions=count(fields, "Spatial reductions") if "Spatial reductions" in fields else 0,
                energy_pj=energy(fields, network=True),
            )


def _warnings(stats: Stats, problem: Problem, leakage: float) -> Iterator[str]:
    for word in ("Computes (total)", "Actual Computes (total)"):
        given = stats.levels[0].fields.get(word)
        if given is not None and number(given) != problem.macs:
            yield f"Timeloop counts {given} operations, the problem has {problem.macs}"
    if leakage:
        yield f"{leakage:g} pJ of the energy is leakage, which belongs to no tensor"
