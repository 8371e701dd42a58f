"""The cost model `timeloop`: Timeloop's figures on the same inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from tilewright.errors import InputError, NotConformableError, Reason
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.legality import legality
from tilewright.plugin.costmodel import BatchEvaluator, Costs
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report
from tilewright_costmodels.timeloop.account import account
from tilewright_costmodels.timeloop.arrays import ArrayPricer
from tilewright_costmodels.timeloop.bounds import bound
from tilewright_costmodels.timeloop.nest import levels_of

if TYPE_CHECKING:
    from tilewright_costmodels.timeloop.compiled import CompiledPricer

EXACT = 2**53
"""Largest product that double precision, which Timeloop and the arrays count in, holds exactly."""


Arrays = Literal["auto", "numpy", "numba"]


class TimeloopModel:
    """Counts, energies and cycles of Timeloop (docs/timeloop.md gives the rules and where they differ from truth)."""

    def __init__(self, link_transfers: bool = True, arrays: Arrays = "auto") -> None:
        """`arrays`: what prices batches, with the same figures. Raises InputError: numba is asked for and not there."""
        self.link_transfers = link_transfers
        self.compiled = arrays != "numpy" and find_spec("numba") is not None
        if arrays == "numba" and not self.compiled:
            raise InputError("numba is not installed", hint="type: pip install 'tilewright[fast]'")

    def bind(self, problem: Problem, architecture: Architecture) -> TimeloopEvaluator:
        """Raises NotConformableError: axes other than X and Y, unclear homes of tensors, counts beyond 2**53."""
        reasons = tuple(_refusals(problem, architecture))
        if reasons:
            raise NotConformableError("cost model timeloop", reasons)
        return TimeloopEvaluator(problem, architecture, self.link_transfers, self.compiled)


class TimeloopEvaluator(BatchEvaluator):
    """The model bound to one problem and one architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, link_transfers: bool, compiled: bool) -> None:
        self.problem = problem
        self.architecture = architecture
        self.link_transfers = link_transfers
        self._compiled = compiled

    @cached_property
    def _arrays(self) -> ArrayPricer:
        return ArrayPricer(self.problem, self.architecture, self.link_transfers)

    @cached_property
    def _pricer(self) -> ArrayPricer | CompiledPricer:
        arrays = self._arrays
        most = 2**62 // self.architecture.compute_instances
        exact = all(o.exact and o.capacity < most for o in arrays.operands if o.sliding or arrays.wired)
        if not self._compiled or not exact:
            return arrays
        from tilewright_costmodels.timeloop.compiled import CompiledPricer  # numba takes half a second to import

        return CompiledPricer(self.problem, self.architecture, self.link_transfers)

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        return self._pricer.price(batch)

    def bound(self, batch: MappingBatch, entries: int) -> Costs:
        """Lower bounds over all completions of the outermost `entries` entries (see `Bounder`)."""
        if not 1 <= entries <= len(batch.skeleton):
            raise ValueError(f"entries is {entries}; expected 1 to {len(batch.skeleton)}")
        if entries == len(batch.skeleton):
            return self.evaluate_batch(batch)
        return bound(self._arrays, batch, entries)

    def explain(self, mapping: Mapping) -> Report:
        """The full account; `valid` false and every reason for a mapping that Timeloop would not take."""
        problem, architecture = self.problem, self.architecture
        verdict = legality(problem, architecture, mapping)
        reasons = [reason for reason in verdict.reasons if reason.code != "fanout"]
        warnings = []
        if not any(reason.code in ("dimension", "target", "tensor", "order", "nesting") for reason in reasons):
            expansion = list(_expansion(architecture, mapping))
            reasons = expansion + reasons
            if not expansion:
                warnings = [
                    f"{reason}; accepted, because Timeloop's model only checks the total along each axis"
                    for reason in verdict.reasons
                    if reason.code == "fanout"
                ]
            if not mapping.is_perfect:
                reasons.append(
                    Reason(
                        code="imperfect",
                        where="mapping",
                        message="tiles do not divide; Timeloop's versions disagree on remainders and none is exact",
                    )
                )
        report = Report(
            model="timeloop",
            problem=problem.name,
            macs=problem.macs,
            valid=not reasons,
            reasons=tuple(reasons),
            warnings=tuple(warnings),
        )
        if reasons:
            return report
        figures = account(problem, architecture, mapping, self.link_transfers)
        return report.model_copy(
            update={
                "cycles": figures.cycles,
                "energy_pj": figures.energy_pj,
                "edp": figures.energy_pj * figures.cycles,
                "utilization": problem.macs / (architecture.compute_instances * figures.cycles),
                "compute_energy_pj": figures.compute_energy_pj,
                "levels": figures.levels,
                "networks": figures.networks,
            }
        )


def _refusals(problem: Problem, architecture: Architecture) -> Iterator[Reason]:
    for cluster in architecture.clusters:
        if cluster.fanout.size > 1 and cluster.fanout.axis not in ("X", "Y"):
            yield Reason(
                code="axis",
                where=f"cluster {cluster.name}",
                message=f"fans out along {cluster.fanout.axis}; only X and Y are known",
            )
        for tensor in problem.tensors:
            try:
                cluster.memory_for(tensor)
            except ValueError as error:
                yield Reason(code="home", where=f"cluster {cluster.name}", message=str(error))
    if largest_count(problem) > EXACT:
        yield Reason(
            code="overflow",
            where=problem.name,
            message=f"{problem.macs} operations give counts beyond 2**53, which are not exact",
        )


def largest_count(problem: Problem) -> int:
    """An upper bound on every count: operations, times the holes that strides leave in bounding boxes."""
    spread = max(math.prod(sum(rank.terms.values()) for rank in tensor.projection) for tensor in problem.tensors)
    return problem.macs * spread


def _expansion(architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    """Timeloop's own check of parallelism, innermost level first: instances in use, in total and along each axis."""
    used = {"X": 1, "Y": 1}
    rows: list[Reason] = []
    levels = levels_of(mapping, architecture)
    places = [(level.name, level.cluster_index) for level in levels]
    places.append((architecture.compute.name, len(architecture.clusters)))
    for (name, index), level in zip(places, [None, *levels], strict=True):
        if level is not None:
            for loop in level.split:
                used["Y" if loop.cluster.fanout.axis == "Y" else "X"] *= loop.trips
        mesh = architecture.mesh(index)
        exist = {"X": math.prod(n for axis, n in mesh.items() if axis != "Y"), "Y": mesh.get("Y", 1)}
        checks = [(math.prod(used.values()), math.prod(exist.values()), "instances")]
        checks += [(used[axis], exist[axis], f"instances along {axis}") for axis in ("X", "Y")]
        for count, limit, what in checks:
            if count > limit:
                rows.append(Reason(code="fanout", where=name, message=f"{count} {what} used, {limit} exist"))
                break
    yield from reversed(rows)
