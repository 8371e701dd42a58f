"""Documents of hardware: `explore`, `export`, `space`, `estimate`, `calibrate` and `plugins fit`."""

from __future__ import annotations

from typing import Literal

from tilewright.application.documents.listings import ErrorData
from tilewright.application.exploration.records import Outcome
from tilewright.documents import Document, Output
from tilewright.errors import Reason
from tilewright.reports.costs import COSTS


class ExploredRow(Document):
    """Point of an explored space. Further keys are the choices of the space, each with its value."""

    _figures = ((COSTS, "explore"),)

    _open = True
    point: int
    """Index of the point."""
    gap: float | None
    """Widest gap of a layer: (objective - bound) / objective; None without bounds."""
    shared_layers: int
    """Number of layers whose mappings were found on other machines."""
    on_front: bool
    """Whether no other point is better in energy, cycles or area without being worse in another. Of points with equal costs,
    only the one with the smallest memories is."""
    outcome: Outcome
    """Whether its layers were searched."""
    reason: str | None
    """Why it has no values; None if it has."""


class ExploreOutput(Output):
    """Result of `explore --json` and `export --json`."""

    _optional = ("error",)
    kind: Literal["explore_output"] = "explore_output"
    """Kind of document."""
    exploration: str
    """Key of the exploration in its store."""
    workload: str
    """Name of the workload."""
    space: str
    """Name of the space of architectures."""
    size: int
    """Number of points of the space."""
    strategy: str
    """Strategy that chose the points."""
    asked: int
    """Number of points to try."""
    objective: str
    """Name of the objective."""
    points: list[ExploredRow]
    """Points that were tried."""
    error: ErrorData | None
    """Error that ended the exploration early; absent without one."""


class SpaceRow(Document):
    """Point of a space. Further keys are the choices of the space, each with its value."""

    _figures = ((COSTS, "space"),)

    _open = True
    point: int
    """Index of the point."""
    compute_units: int | None
    """Compute units of the architecture; None if the point is invalid."""
    reason: str | None
    """Why the point is invalid; None if it is valid."""


class SpaceOutput(Output):
    """Result of `space --json`."""

    kind: Literal["space_output"] = "space_output"
    """Kind of document."""
    space: str
    """Name of the space of architectures."""
    size: int
    """Number of points of the space."""
    judged: int
    """Number of points that were checked."""
    valid: int
    """Number of valid ones among them."""
    points: list[SpaceRow]
    """Checked points."""


class EstimateRow(Document):
    """Estimate of one action."""

    component: str
    """Kind of component."""
    action: str
    """Action, such as `read`."""
    energy_pj: float
    """Energy of one action of one instance, in pJ."""
    bits: int
    """Bits that the action moves or computes."""
    area_um2: float | None
    """Area of one instance in um2; None if unknown."""
    leakage_w: float | None
    """Leakage of one instance in W; None if unknown."""
    estimator: str
    """Estimator that answered first."""
    version: str | None
    """Version of its distribution."""
    source: str
    """Origin of its figures."""
    error: str
    """Measured error of such figures, or that none was measured."""
    valid: str
    """Range of sizes to which the error applies."""
    cell: str | None
    """Cell type of a memory."""


class Refusal(Document):
    """Estimator that has no figure for an action."""

    action: str
    """Action, such as `read`."""
    estimator: str
    """Name of the estimator."""
    code: str
    """Stable code of the reason."""
    message: str
    """The reason in words."""


class EstimateOutput(Output):
    """Result of `estimate --json`."""

    kind: Literal["estimate_output"] = "estimate_output"
    """Kind of document."""
    component: str
    """Kind of component."""
    sizes: dict[str, float | str]
    """Attributes of the component."""
    technology_nm: float
    """Technology node in nm."""
    estimates: list[EstimateRow]
    """Answers that count, one for each action."""
    refusals: list[Refusal]
    """Estimators without an answer."""


class ErrorsRow(Document):
    """Factors between predicted and measured cycles."""

    measurements: str
    """Set of rows: as given, fitted, unseen, or those of the test."""
    rows: int
    """Number of rows."""
    mean: float
    """Weighted geometric mean of the factors."""
    median: float
    """Median of the factors."""
    worst: float
    """Largest factor."""
    spearman: float | None
    """Rank correlation of predicted and measured cycles; None if all are equal."""


class PredictionRow(Document):
    """Cycles of one measurement."""

    where: str
    """File and line."""
    test: bool
    """Whether it is of the test, which no fit sees."""
    weight: float
    """Weight of its error in the mean."""
    measured: float
    """Measured cycles."""
    given: float
    """Cycles predicted with the values before."""
    fitted: float
    """Cycles predicted with the fitted values."""
    unseen: float | None
    """Cycles predicted by a fit without its fold; None for the test, or if the calibration ended early."""
    reason: str | None
    """For the rows that fit worst: the two largest limits of the predicted cycles; None for others."""


class CalibrateOutput(Output):
    """Result of `calibrate --json`."""

    kind: Literal["calibrate_output"] = "calibrate_output"
    """Kind of document."""
    arch: str
    """Name of the architecture."""
    model: str
    """Name of the cost model."""
    before: dict[str, str | bool | int | float]
    """Parameter -> its value before."""
    after: dict[str, str | bool | int | float]
    """Parameter -> its fitted value."""
    errors: list[ErrorsRow]
    """Errors of the predictions."""
    predictions: list[PredictionRow]
    """Predicted and measured cycles of all rows."""
    stopped: str | None
    """Option or key that ended the calibration early; None if none did."""


class FitRow(Document):
    """Answer of a cost model about a problem."""

    model: str
    """Name of the cost model."""
    problem: str
    """Name of the problem."""
    fits: bool
    """Whether the model accepts it."""
    reasons: list[Reason]
    """Why it does not."""
    hint: str | None
    """Next step; None if the model fits."""


class FitOutput(Output):
    """Result of `plugins fit --json`."""

    kind: Literal["fit_output"] = "fit_output"
    """Kind of document."""
    arch: str
    """Name of the architecture."""
    constraints: str
    """Name of the constraints."""
    fitting: list[str]
    """Cost models that accept every problem."""
    fits: list[FitRow]
    """A row for each model and problem."""
