"""MAESTRO bound to a problem and an architecture of ours."""

from __future__ import annotations

import numpy as np

from tilewright.errors import NotConformableError, Reason
from tilewright.mapspace.batch import Bools, MappingBatch
from tilewright.mapspace.legality import legal, legality
from tilewright.notations.directives.nest import scratch_of, write_rows
from tilewright.notations.directives.plan import plan_of
from tilewright.notations.directives.roles import roles_of
from tilewright.notations.directives.table import Table, complete_rows, empty_table, letters_of
from tilewright.notations.directives.translation import directives_of, layer_of, nests_of
from tilewright.plugin.costmodel import BatchEvaluator, Costs
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report
from tilewright_costmodels.maestro.analysis import analyse
from tilewright_costmodels.maestro.figures import figures_of
from tilewright_costmodels.maestro.machine import machine_of
from tilewright_costmodels.maestro.report import report_of
from tilewright_costmodels.maestro.work import FINE, INEXACT, Result

CHUNK = 1024
"""Mappings taken together: their directives stay in cache."""


class MaestroEvaluator(BatchEvaluator):
    """Evaluates mappings by translating them to directives. Energies are those of the architecture."""

    def __init__(self, problem: Problem, architecture: Architecture, faithful: bool) -> None:
        """Raises NotConformableError: no layer or no hardware of MAESTRO is like this."""
        self.problem = problem
        self.architecture = architecture
        self.faithful = faithful
        self.roles = roles_of(problem)
        self.plan = plan_of(architecture)
        self.layer = layer_of(problem, self.roles)
        self.letters = letters_of(self.layer)
        self.machine = machine_of(self.layer, architecture, self.roles, self.plan)

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        """The costs of a batch."""
        judged = legal(self.problem, self.architecture, batch)
        parts = [
            self._costs(batch.take(slice(start, start + CHUNK)), judged[start : start + CHUNK])
            for start in range(0, len(batch), CHUNK)
        ]
        return Costs.join(parts) if parts else Costs.gather([])

    def _costs(self, batch: MappingBatch, judged: Bools) -> Costs:
        table = self._directives(batch, judged)
        result = analyse(self.letters, self.machine.numbers, table)
        cycles, energy = result.cycles.astype(np.float64), result.energy_pj
        valid = (result.fault[:, 0] == FINE) & (result.fits | self.faithful)
        for row in np.flatnonzero(result.fault[:, 0] == INEXACT).tolist():
            one = analyse(self.letters, self.machine.numbers, Table(*(field[row : row + 1] for field in table)))
            valid[row] = one.fault[0, 0] == FINE and (one.fits[0] or self.faithful)
            cycles[row], energy[row] = one.cycles[0], one.energy_pj[0]
        return Costs(valid, np.where(valid, energy, np.inf), np.where(valid, cycles, np.inf))

    def results(self, batch: MappingBatch) -> Result:
        """Every count of a batch."""
        judged = legal(self.problem, self.architecture, batch)
        return analyse(self.letters, self.machine.numbers, self._directives(batch, judged))

    def _directives(self, batch: MappingBatch, judged: Bools) -> Table:
        table = empty_table(len(batch), len(self.letters.sizes))
        nests = nests_of(batch, self.roles, self.plan, self.layer)
        write_rows(self.letters, nests, judged, table, scratch_of(table))
        complete_rows(self.letters, table)
        return table

    def explain(self, mapping: Mapping) -> Report:
        """The full account; `valid` false and every reason for a mapping that is illegal or has no directives."""
        verdict = legality(self.problem, self.architecture, mapping)
        if not verdict:
            return self._invalid(verdict.reasons)
        try:
            figures = figures_of(*directives_of(self.problem, mapping, self.roles, self.plan), self.machine)
        except NotConformableError as error:
            return self._invalid(error.reasons)
        return report_of(figures, self.machine, self.faithful)

    def _invalid(self, reasons: tuple[Reason, ...]) -> Report:
        return Report(model="maestro", problem=self.problem.name, valid=False, reasons=reasons, macs=self.problem.macs)
