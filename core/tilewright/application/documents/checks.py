"""Documents of evaluations and checks: `evaluate`, `verify` and `diff-stats`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from tilewright.application.documents.searches import EnergyRow, GroupUnits, ReportData
from tilewright.application.run.differences import Cause, CostDifference, Difference
from tilewright.documents import Document, FileData, Output
from tilewright.errors import Reason
from tilewright.plugin.route import Action
from tilewright.reports import Report


class EvaluatedReport(Report):
    """Report of a cost model, as `evaluate` prints it."""

    energy: tuple[EnergyRow, ...] = ()
    """Energies by component and tensor, with `--explain`; they add up to the total."""


class DifferingLimit(Document):
    """Limit that binds cycles of one model, where the cycles of models differ."""

    model: str
    """Name of the cost model."""
    problem: str
    """Name of the problem."""
    limit: str
    """Name of the limit."""
    cycles: int
    """Cycles that it needs alone."""
    binding_cycles: int
    """Cycles in which all else waits for it."""
    words: int | None
    """Words that the busiest instance moves."""
    words_per_cycle: float | None
    """Bandwidth of an instance."""
    others: dict[str, int | None]
    """Other model -> cycles that it needs for the same limit; None: it has no such limit."""


class DifferingCount(Document):
    """Count in which models differ, in words per instance."""

    _optional = ("causes",)
    level: str
    """Name of the memory."""
    tensor: str
    """Name of the tensor."""
    action: Action
    """Reads, fills or updates."""
    counts: dict[str, int | None]
    """Model -> its count; None: it has none."""
    causes: list[Cause] | None
    """Declared conventions and approximations that may explain it; absent for groups."""


class EvaluateOutput(Output):
    """Result of `evaluate --json`."""

    _optional = ("limits", "conventions", "differences", "units")
    kind: Literal["evaluate_output"] = "evaluate_output"
    """Kind of document."""
    results: list[Annotated[dict[str, Any], FileData(EvaluatedReport)]]
    """Reports of the cost models, in the requested order."""
    limits: list[DifferingLimit] | None
    """Limits that bind the cycles of each model where these differ; absent with one model."""
    conventions: dict[str, dict[str, str]] | None
    """Topic -> model -> its rule, where the models differ; absent with one model."""
    differences: list[DifferingCount] | None
    """Counts that differ; absent unless several models evaluate one mapping."""
    units: list[GroupUnits] | None = None
    """Vector layers of a group by each model with a valid report; absent if the group has none."""


class EqualityResult(Document):
    """Execution of a problem and of an alternative on the same numbers."""

    words: int
    """Words of the result."""
    wrong: int
    """Words that differ."""
    mixed: list[str]
    """Tensors of the steps where one word would have to hold several words of the problem's tensor."""
    scattered: list[str]
    """Tensors without a movement whose words are not evenly spaced."""


class VerifiedAlternative(Document):
    """Alternative that the mapped problem is a step of."""

    algorithm: str
    """Plugin that offers it."""
    name: str
    """Name of the alternative."""
    problem: str
    """Name of the problem that the steps compute."""
    right: bool
    """Whether no check failed."""
    equality: EqualityResult | None
    """The execution; None if the problem is too large."""
    faults: list[str]
    """Why the steps do not compute the problem."""


class VerifiedModel(Document):
    """Report of another cost model next to the execution."""

    model: str
    """Name of the cost model."""
    valid: bool
    """Whether it evaluates the mapping."""
    reasons: list[Reason]
    """Why it does not."""
    warnings: list[str]
    """Parts that the model does not count, or counts in another way."""
    cycles: int | None
    """Cycles by the model."""
    energy_pj: float | None
    """Energy by the model, in pJ."""
    compared: int
    """Number of counts that both have."""
    differences: list[Difference]
    """Counts that differ."""
    costs: list[CostDifference]
    """Energy and cycles, where they differ."""


class VerifyOutput(Output):
    """Result of `verify --json`."""

    kind: Literal["verify_output"] = "verify_output"
    """Kind of document."""
    right: bool
    """Whether the mapping is legal, complete and numerically right, and its alternatives are right."""
    legal: bool
    """Whether it breaks no rule of legality."""
    complete: bool | None
    """Whether every iteration was executed exactly once; None if it cannot be executed."""
    result: bool | None
    """Whether the computed tensor is correct; None if it cannot be executed."""
    reasons: list[Reason]
    """Why the mapping is not valid."""
    executed: ReportData
    """Report of the execution."""
    alternatives: list[VerifiedAlternative]
    """Alternatives that the mapped problem is a step of."""
    models: list[VerifiedModel]
    """Other cost models next to the execution."""


class CheckResult(Document):
    """Check of a certificate."""

    name: str
    """Name of the check."""
    passed: bool | None
    """Whether it passed; None if it could not run."""
    message: str
    """Result of the check, in words."""
    tried: int
    """Number of mappings evaluated for it."""


class CertificateOutput(Output):
    """Result of `verify --certificate --json`."""

    kind: Literal["certificate_output"] = "certificate_output"
    """Kind of document."""
    right: bool
    """Whether no check failed, and the bound was proved again."""
    problem: str
    """Name of the problem, the group or the network."""
    arch: str
    """Name of the architecture."""
    objective: str
    """Name of the objective."""
    value: float
    """Value of the mapping."""
    bound: float
    """Lower bound in the space."""
    gap: float
    """Part of the value by which it may exceed the minimum."""
    mappings: int | None
    """Number of mappings of the space; None for groups and networks."""
    warnings: list[str]
    """Versions other than those that it was made with."""
    checks: list[CheckResult]
    """The checks."""


class RecordedRow(Document):
    """Figure of another tool's report, with Tilewright's."""

    level: str
    """Memory, compute unit, network or `total`."""
    tensor: str | None
    """Name of the tensor, if the figure concerns one."""
    figure: str
    """Name of the figure."""
    recorded: float
    """Value of the other tool."""
    ours: float
    """Value of Tilewright."""
    equal: bool
    """Whether they are equal, up to the printed digits."""
    causes: list[str]
    """Codes of known causes of the difference."""


class DiffStatsOutput(Output):
    """Result of `diff-stats --json`."""

    kind: Literal["diff_stats_output"] = "diff_stats_output"
    """Kind of document."""
    recorded: str
    """Path of the other tool's report."""
    model: str
    """Name of the cost model."""
    compared: int
    """Number of figures."""
    unexplained: int
    """Number of differences without a known cause."""
    causes: list[Reason]
    """Known causes of differences, each once."""
    figures: list[RecordedRow]
    """All figures."""
