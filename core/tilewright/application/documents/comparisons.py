"""Documents of comparisons: `compare` and `correlate`."""

from __future__ import annotations

from typing import Literal

from tilewright.application.documents.searches import GroupData
from tilewright.application.run.correlation import CORRELATIONS
from tilewright.application.run.searched import PROBLEMS, SEARCHES
from tilewright.documents import Document, Output
from tilewright.errors import Reason
from tilewright.plugin.result import CommonReason
from tilewright.reports.costs import COSTS
from tilewright.schema.workload import Content


class Price(Document):
    """Costs of a mapping by one cost model."""

    _figures = ((COSTS, "json"),)

    valid: bool
    """Whether the model evaluates the mapping."""
    reasons: list[Reason]
    """Why it does not."""
    warnings: list[str]
    """Parts that the model does not count, or counts in another way."""
    model: str
    """Name of the cost model."""


class MeasuredPrice(Price):
    """Costs of a mapping by one cost model, with the distance from the best."""

    distance: float | None
    """How many times the highest lower bound the value is; None without a bound."""
    optimum_proved: bool | None
    """Whether that bound is the optimum, and proved; None without a bound."""
    optimum_claimed_by: str | None
    """Plugins whose claim the bound is; None: it is proved, or there is none."""


class ComparedSearch(Document):
    """Search of one mapper."""

    _figures = ((SEARCHES, "compare"),)


class CompareRow(Document):
    """Search of a layer by a mapper under a cost model."""

    _figures = ((PROBLEMS, "compare"),)

    mapper: str
    """Name of the mapper."""
    guide: str
    """Cost model of the search."""
    valid: bool
    """Whether a mapping was found."""
    reasons: list[Reason]
    """Why none was found."""
    mapping_file: str | None
    """Name of the mapping file; None if none was written."""
    search: ComparedSearch
    """The search."""
    prices: list[MeasuredPrice]
    """Costs of its mapping by each model."""


class CompareOutput(Output):
    """Result of `compare --json`, and `compare.json`."""

    kind: Literal["compare_output"] = "compare_output"
    """Kind of document."""
    workload: str
    """Name of the workload."""
    content: Content
    """Whether the workload is a whole network or a list of layers."""
    arch: str
    """Name of the architecture."""
    objective: str
    """Name of the objective."""
    mappers: list[str]
    """Names of the mappers."""
    models: list[str]
    """Names of the cost models."""
    complete: bool
    """Whether all searches ran to their end."""
    rows: list[CompareRow]
    """A row for each search."""


class GroupRow(Document):
    """Search of a group by a group mapper under a cost model."""

    mapper: str
    """Name of the group mapper."""
    guide: str
    """Cost model of the search."""
    valid: bool
    """Whether a mapping was found."""
    reasons: list[Reason]
    """Why none was found."""
    seconds: float
    """Duration of the search."""
    space: str
    """The searched space, in words."""
    bound: float | None
    """Lower bound on the objective in the space; None if none is stated, or if it is refuted."""
    proved: str
    """Proof of the mapping: `yes`, `no`, a gap, a claim, or `refuted`."""
    mapping: GroupData | None
    """The group mapping in the form of its file."""
    prices: list[Price]
    """Costs of its mapping by each model."""


class CompareGroupsOutput(Output):
    """Result of `compare GROUP --json`."""

    kind: Literal["compare_groups_output"] = "compare_groups_output"
    """Kind of document."""
    group: str
    """Name of the group."""
    arch: str
    """Name of the architecture."""
    objective: str
    """Name of the objective."""
    mappers: list[str]
    """Names of the group mappers."""
    models: list[str]
    """Names of the cost models."""
    complete: bool
    """Whether all searches ran."""
    rows: list[GroupRow]
    """A row for each search."""


class Refused(Document):
    """Sampled mappings that a model refuses."""

    mappings: int
    """Number of refused mappings."""
    sampled: int
    """Number of mappings whose reasons were asked."""
    reasons: list[CommonReason]
    """Reasons, the most common first."""


class Pair(Document):
    """Two cost models over all layers."""

    _figures = ((CORRELATIONS, "all, rows"),)


class LayerPair(Document):
    """Two cost models over the mappings of a layer."""

    _figures = ((CORRELATIONS, "rows"),)

    files: list[str]
    """Names of the mapping files on which the two disagree most."""


class SampledLayer(Document):
    """Sampled mappings of one layer."""

    name: str
    """Name of the layer."""
    dimensions: dict[str, int]
    """Dimension -> its size."""
    mappings: int
    """Legal mappings that were evaluated."""
    drawn: int
    """Mappings that were drawn."""
    stopped: str | None
    """Reason why the evaluation ended early; None if it did not."""
    left_out: dict[str, list[Reason]]
    """Model -> why it has no costs at all."""
    refused: dict[str, Refused]
    """Model -> the mappings that it refuses."""
    pairs: list[LayerPair]
    """Correlations of each pair of models and figure."""
    energy_pj: dict[str, dict[str, float]]
    """Model -> memory or other part -> mean energy in pJ."""
    explained: int
    """Number of mappings behind these energies."""
    unsplit: str | None
    """Why energies by memory are not known; None if they are."""
    points: dict[str, list[float | None]]
    """Model -> the objective of the first mappings; None where the model refuses one."""


class CorrelateOutput(Output):
    """Result of `correlate --json`, and `correlate.json`."""

    kind: Literal["correlate_output"] = "correlate_output"
    """Kind of document."""
    workload: str
    """Name of the workload."""
    content: Content
    """Whether the workload is a whole network or a list of layers."""
    arch: str
    """Name of the architecture."""
    constraints: str
    """Name of the constraints."""
    objective: str
    """Name of the objective."""
    models: list[str]
    """Names of the cost models."""
    samples: int
    """Requested number of mappings of each layer."""
    seed: int
    """Seed of the sample."""
    complete: bool
    """Whether all mappings of all layers were evaluated."""
    pairs: list[Pair]
    """Correlations of each pair of models and figure, over all layers."""
    layers: list[SampledLayer]
    """The samples."""
    conventions: dict[str, dict[str, str]]
    """Topic -> model -> its rule, where the models differ."""
