"""The cost model `maestro`: MAESTRO's figures on the same inputs."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.errors import NotConformableError
from tilewright.notations.directives import DirectiveProgram
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright.schema.report import Report
from tilewright_costmodels import MaestroOptions
from tilewright_costmodels.maestro.evaluator import MaestroEvaluator
from tilewright_costmodels.maestro.figures import figures_of
from tilewright_costmodels.maestro.machine import machine_of_directives
from tilewright_costmodels.maestro.report import report_of


class MaestroModel:
    """Data-centric analysis (docs/maestro.md gives the rules and where they differ from truth)."""

    def __init__(self, options: MaestroOptions) -> None:
        """Options but `faithful` are fields of `DirectiveHardware`; they replace those of programs of directives."""
        self.faithful = options.faithful
        self.hardware = options.model_dump(exclude={"faithful"}, exclude_none=True)

    def bind(self, problem: Problem, architecture: Architecture) -> MaestroEvaluator:
        """Raises NotConformableError: the problem is no layer of MAESTRO, or the memories are not L2 and L1."""
        return MaestroEvaluator(problem, architecture, self.faithful)

    def explain_directives(self, program: DirectiveProgram) -> tuple[Report, ...]:
        """One report per layer, in MAESTRO's order."""
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
                first = "has" if first_has else "has not"
                note = f"in one file MAESTRO would treat N as in its first {layer.type} layer, which {first} it"
                report = report.model_copy(update={"warnings": (*report.warnings, note)})
            yield report
            l1_accesses = figures.l1_accesses
