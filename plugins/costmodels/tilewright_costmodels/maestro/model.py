"""Cost model `maestro`: MAESTRO's results on the same inputs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewright.compiled import interpreted
from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Bools, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.exact import overflow
from tilewright.mapspace.legality import legal, legality
from tilewright.plugin.costmodel import BatchEvaluator, Costs
from tilewright.plugin.program import Program
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import MaestroOptions
from tilewright_costmodels.maestro.analysis import EXACT, analyse, empty_result
from tilewright_costmodels.maestro.figures import figures_of
from tilewright_costmodels.maestro.kernel import analyse_all
from tilewright_costmodels.maestro.machine import machine_of, machine_of_directives
from tilewright_costmodels.maestro.report import report_of
from tilewright_costmodels.maestro.tables import BEYOND_INT64, scratch_for
from tilewright_notations.directives import DirectiveProgram
from tilewright_notations.directives.nest import UNKNOWN, Nests, scratch_of
from tilewright_notations.directives.plan import plan_of
from tilewright_notations.directives.roles import roles_of
from tilewright_notations.directives.table import Letters, empty_table, fill_in, letters_of
from tilewright_notations.directives.translation import cast_of, directives_of, form_of, layer_of, nests_of, written


class _FormKernel:
    """Tables and scratch arrays of the kernel, for all mappings of one form."""

    def __init__(self, form: Nests, dimensions: Letters) -> None:
        count = int(dimensions.named)
        self.form, self.table, self.work = form, empty_table(count), scratch_for(count, np.int64)
        self.scratch = scratch_of(form, self.table)


class MaestroEvaluator(BatchEvaluator):
    """Evaluator that translates mappings to directives. Energies are those of the architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, faithful: bool) -> None:
        """Translate the problem and the architecture.

        Raises:
            NotConformableError: MAESTRO cannot express the problem or the architecture.
        """
        self.problem = problem
        self.architecture = architecture
        self.faithful = faithful
        self.roles = roles_of(problem)
        self.plan = plan_of(architecture, problem)
        layer = layer_of(problem, self.roles)
        self.cast = cast_of(problem, self.roles, layer)
        self.dimensions = letters_of(layer)
        self.machine = machine_of(layer, architecture, self.roles, self.plan)
        self.numbers = self.machine.numbers.boundless if faithful else self.machine.numbers
        self._last: tuple[object, _FormKernel | None] = None, None
        self._lock = threading.Lock()  # one thread at a time may use the scratch arrays

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.architecture, self.faithful)

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """Return the costs of a batch."""
        return self._costs(batch, legal(self.problem, self.architecture, batch))

    def evaluate_candidates(self, candidates: Candidates) -> Costs:
        """Return the costs of candidates: by their trips if these divide, otherwise as a batch of tiles."""
        if candidates.space.factors == "ragged":
            return self.evaluate_batch(candidates.batch())
        return self._costs(candidates, candidates.legal())

    def _costs(self, mappings: MappingBatch | Candidates, is_legal: Bools) -> Costs:
        dimensions, numbers, result = self.dimensions, self.numbers, empty_result(len(mappings))
        with self._lock:
            kernel = self._kernel(mappings)
            nests = nests_of(mappings, is_legal, kernel.form)
            kernel.scratch.l1[0] = UNKNOWN
            analyse_all(dimensions, numbers, nests, kernel.scratch, kernel.table, False, EXACT, result, kernel.work)
        for n in np.flatnonzero(result.code == BEYOND_INT64).tolist():
            table = written(dimensions, nests, n)
            interpreted(fill_in)(dimensions, table)
            one, _ = analyse(dimensions, numbers, table)
            result.energy_pj[n], result.cycles[n] = one.energy_pj[0], one.cycles[0]
        return Costs(result.cycles < np.inf, result.energy_pj, result.cycles)

    def _kernel(self, mappings: MappingBatch | Candidates) -> _FormKernel:
        of = mappings.space if isinstance(mappings, Candidates) else mappings.skeleton
        last_space, kernel = self._last
        if kernel is None or last_space is not of:
            kernel = _FormKernel(form_of(mappings, self.cast, self.plan), self.dimensions)
            self._last = of, kernel
        return kernel

    def explain(self, mapping: Mapping) -> Report:
        """Return the report of one mapping.

        If it is illegal or has no directives, `valid` is False and the report lists every reason.
        """
        reasons = legality(self.problem, self.architecture, mapping).reasons
        if not reasons:
            try:
                figures = figures_of(*directives_of(self.problem, mapping, self.roles, self.plan), self.machine)
                return report_of(figures, self.machine, self.faithful)
            except NotConformableError as error:
                reasons = error.reasons
        return Report(model="maestro", problem=self.problem.name, valid=False, reasons=reasons, macs=self.problem.macs)


class MaestroModel:
    """Data-centric analysis.

    docs/maestro.md states the rules, and where they differ from execution.
    """

    def __init__(self, options: MaestroOptions) -> None:
        """Keep the options. Those other than `faithful` are fields of `DirectiveHardware`, and replace a program's."""
        self.faithful = options.faithful
        self.hardware = options.model_dump(exclude={"faithful"}, exclude_none=True)

    def bind(self, problem: Problem, architecture: Architecture) -> MaestroEvaluator:
        """Bind the model to a problem and an architecture.

        Raises:
            NotConformableError: MAESTRO has no such layer, counts exceed 2**53, or the memories are not L2 and L1.
        """
        if reasons := tuple(overflow(problem)):
            raise NotConformableError("cost model maestro", reasons)
        return MaestroEvaluator(problem, architecture, self.faithful)

    def explain_directives(self, program: Program) -> tuple[Report, ...]:
        """Return one report per layer, in MAESTRO's order.

        Raises:
            NotConformableError: The program is in another notation.
        """
        if not isinstance(program, DirectiveProgram):
            reason = Reason(code="notation", where=f"program {program.name}", message="is not in MAESTRO's directives")
            raise NotConformableError("cost model maestro", [reason])
        return tuple(self._layers(program))

    def _layers(self, program: DirectiveProgram) -> Iterator[Report]:
        l1_accesses: int | None = None
        batched: dict[str, bool] = {}
        hardware = program.hardware.model_copy(update=self.hardware)
        for layer in program.layers:
            has_batch = "N" in layer.dimensions and layer.type != "GEMM"
            first_has = batched.setdefault(layer.type, has_batch)
            try:
                machine = machine_of_directives(layer, hardware)
                figures = figures_of(layer, hardware, machine)
            except NotConformableError as error:
                yield Report(model="maestro", problem=layer.name, valid=False, reasons=error.reasons, macs=layer.macs)
                continue
            report = report_of(figures, machine, self.faithful, l1_accesses)
            if has_batch != first_has:
                first = "has N" if first_has else "has no N"
                note = f"MAESTRO treats N as in the first {layer.type} layer of a file, which {first}"
                report = report.model_copy(update={"warnings": (*report.warnings, note)})
            yield report
            l1_accesses = figures.l1_accesses
