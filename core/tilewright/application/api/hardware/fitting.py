"""`fit`: cost models that accept a workload on an architecture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.application.api.call_arguments import checked, names_of
from tilewright.application.api.hardware.fits import Fit, advice, fit_of, fit_table
from tilewright.application.api.load import Source
from tilewright.application.api.plan import Plan, Sources
from tilewright.application.api.settings import Searches
from tilewright.application.documents.hardware import FitOutput, FitRow
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.workload import Workload
from tilewright.tables import Table, Tabular
from tilewright.values import attributes

COMMON = Workload.model_validate(
    {
        "name": "common",
        "layers": [
            {
                "problem": {
                    "name": "matrix product",
                    "operation": "gemm",
                    "dimensions": {"M": 8, "N": 8, "K": 8},
                    "tensors": [
                        {"name": "A", "role": "input", "projection": ["M", "K"]},
                        {"name": "B", "role": "weight", "projection": ["K", "N"]},
                        {"name": "Z", "role": "output", "projection": ["M", "N"]},
                    ],
                }
            },
            {
                "problem": {
                    "name": "convolution",
                    "operation": "conv2d",
                    "dimensions": {"N": 1, "K": 8, "C": 4, "P": 4, "Q": 4, "R": 3, "S": 3},
                    "tensors": [
                        {"name": "I", "role": "input", "projection": ["N", "C", "P + R", "Q + S"]},
                        {"name": "W", "role": "weight", "projection": ["K", "C", "R", "S"]},
                        {"name": "O", "role": "output", "projection": ["N", "K", "P", "Q"]},
                    ],
                }
            },
        ],
    }
)
"""Default workload: small problems that represent all others."""


@dataclass(frozen=True, repr=False)
class FitReport(Tabular):
    """Cost models that accept the problems on an architecture, with reasons for the others.

    Example:
        >>> import tilewright as tw
        >>> report = tw.fit("eyeriss", models="timeloop")
        >>> {row["model"] for row in report.rows()}
        {'timeloop'}
    """

    architecture: Architecture
    constraints: Constraints
    fits: tuple[Fit, ...]

    def __repr__(self) -> str:
        return f"<FitReport of {self.architecture.name}: {', '.join(self.fitting) or 'no model fits'}>"

    @property
    def fitting(self) -> list[str]:
        """Models that accept every problem."""
        models = dict.fromkeys(model_fit.model for model_fit in self.fits)
        return [model for model in models if all(model_fit.fits for model_fit in self.fits if model_fit.model == model)]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per model and problem."""
        return [
            {
                **attributes(model_fit, "model problem fits"),
                "reasons": [reason.model_dump(mode="json") for reason in model_fit.reasons],
                "hint": advice(model_fit, self.fits) or None,
            }
            for model_fit in self.fits
        ]

    def data(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return FitOutput(
            arch=self.architecture.name,
            constraints=self.constraints.name,
            fitting=self.fitting,
            fits=[FitRow(**row) for row in self.rows()],
        ).data()

    def tables(self) -> Sequence[Table | str]:
        """Return a row per model and answer; problems with the same answer share one."""
        return [
            fit_table(
                self.fits, self.fits, f"cost models on {self.architecture.name}, constraints {self.constraints.name}"
            )
        ]


@checked
def fit(
    arch: Sources,
    workload: Sources | None = None,
    *,
    models: str | Sequence[str | CostModel] | None = None,
    constraints: Source | None = None,
    factors: str | None = None,
) -> FitReport:
    """Return which cost models accept a workload on an architecture, as `tilewright plugins fit` does.

    Nothing is searched.

    Args:
        arch, workload: As for `map`. The default workload is a small matrix product and a small convolution.
        models: Names of installed cost models, or objects. Default: all installed ones.
        constraints, factors: As for `map`.

    Raises:
        CallError, InputError, UnknownNameError: An argument is invalid; the message names the valid ones.

    Example:
        >>> import tilewright as tw
        >>> tw.fit("eyeriss", models="timeloop").rows()[0]["model"]
        'timeloop'
    """
    named = (
        [registration.name for registration in installed().of_kind(CostModelSpec)]
        if models is None
        else names_of("models", models)
    )
    settings: Searches = {"constraints": constraints, "factors": factors}
    plan = Plan.of(COMMON if workload is None else workload, arch, [], named, settings)
    fits = [
        fit_of(model, distinct.problem, plan.architecture, plan.constraints)
        for model in plan.models
        for distinct in plan.workload.distinct()
    ]
    return FitReport(plan.architecture, plan.constraints, tuple(fits))
