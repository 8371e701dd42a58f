"""Documents of searches: `map`, with `--pareto` and `--fuse`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tilewright.application.algorithms.printed import OFFERS
from tilewright.application.run.group_vectors import GROUP_VECTORS
from tilewright.application.run.roofline import ROOFLINE, roof_of
from tilewright.application.run.searched import PROBLEMS, SEARCHES
from tilewright.application.run.vector_network import VECTORS
from tilewright.documents import Document, FileData, OriginData, Output
from tilewright.errors import Reason
from tilewright.reports import AccessCounts, Limit, Report, SparseCounts, TensorCounts
from tilewright.reports.costs import COSTS
from tilewright.reports.printed import PARTS
from tilewright.schema.alternative import Movement
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.mapping import Mapping
from tilewright.schema.mapping.full import FullLoop, FullTile
from tilewright.schema.mapping.levels import Level
from tilewright.schema.workload import Content

MappingData = Annotated[dict[str, Any], FileData(Mapping)]
"""A mapping as its file has it, without what entries inherit."""
GroupData = Annotated[dict[str, Any], FileData(GroupMapping)]
ReportData = Annotated[dict[str, Any], FileData(Report)]


class EnergyRow(Document):
    """Energy of one tensor in one component. Rows of memories have the counts of the report, too."""

    _figures = ((PARTS, "rows"),)

    level: str
    """Memory, `NoC of NAME`, `compute` or `unnamed parts`."""
    tensor: str | None
    """Name of the tensor, or `leakage`; None for compute and for energy of no component."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add the counts, which have flat names."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        whole = handler.resolve_ref_schema(schema)
        counts, sparse, kinds = (
            model.model_json_schema()["properties"] for model in (TensorCounts, SparseCounts, AccessCounts)
        )
        flat = {name: part for name, part in counts.items() if name != "sparse"}
        for name, part in sparse.items():
            if SparseCounts.model_fields[name].annotation is AccessCounts:
                told = part["description"]
                flat |= {
                    f"{name}_{kind}": one | {"description": f"{told} {one['description']}"}
                    for kind, one in kinds.items()
                }
            elif name != "metadata":
                flat[name] = part
        whole["properties"] = flat | whole["properties"]
        return schema


EnergyData = Annotated[dict[str, Any], FileData(EnergyRow)]


class RunOutput(Output):
    """First keys of the documents of a run: the work, the machine and the plugins."""

    workload: str
    """Name of the workload."""
    content: Content
    """Whether the workload is a whole network or a list of layers."""
    arch: str
    """Name of the architecture."""
    constraints: str
    """Name of the constraints, and of the notation that must express the mappings."""
    mapper: str
    """Name of the mapper."""
    model: str
    """Name of the cost model."""


class RooflineRow(Document):
    """An operator below the roofline of the machine: its traffic with the outermost memory, and its fraction of the peak."""

    _figures = ((ROOFLINE, "json"),)

    @classmethod
    def of(cls, report: Report | None, architecture: Architecture | None) -> RooflineRow | None:
        """Return the figures of an operator; None without a valid report."""
        roof = roof_of(report, architecture)
        return None if roof is None else cls(**ROOFLINE.data("json", roof))


class Best(Document):
    """Costs of the best mapping of a layer, and its files."""

    _figures = ((COSTS, "json"),)

    valid: bool
    """Whether a mapping was found."""
    mapping_file: str | None
    """Name of the mapping file; None if none was written."""
    certificate_file: str | None
    """Name of the certificate; None if nothing was proved, or written."""


class Search(Document):
    """Search of a layer."""

    _figures = ((SEARCHES, "map"),)


class Unsearched(Document):
    """Rule of another tool's file that is not searched, compared with the mapping."""

    name: str
    """Name of the rule."""
    where: str
    """Part of the machine that it concerns."""
    why: str
    """Why it is not searched."""
    missing: bool
    """Whether the searched space lacks mappings that the rule allows; else it has more."""
    satisfied: bool | None
    """Whether the mapping satisfies the rule; None if nothing can tell."""
    fault: str | None
    """How the mapping breaks it; None if it does not."""


class MapLayer(Document):
    """Distinct problem of the workload, with its best mapping."""

    _figures = ((PROBLEMS, "map"),)

    best: Best
    """Costs of the best mapping."""
    mapping: MappingData | None
    """The mapping in the form of its file; None if none was found."""
    nest: list[str] | None
    """Lines of the loop nest as text."""
    loops: list[FullLoop]
    """All loops of more than one step, outermost first."""
    tiles: list[FullTile]
    """All tiles, outermost first, with the number of loops outside them."""
    levels: list[Level]
    """Loops next to the memories of the architecture."""
    energy: list[EnergyData]
    """Energies by component and tensor, which add up to the total."""
    limits: list[Limit]
    """Possible bottlenecks; the first one binds most cycles."""
    roofline: RooflineRow | None
    """Its place below the roofline; None without a mapping."""
    search: Search
    """The search."""
    unsearched: list[Unsearched]
    """Rules of other tools' files that are not searched."""
    error: str | None
    """Why there is no mapping, or what failed on the way."""


class Unmapped(Document):
    """Operator of the network that is no loop nest."""

    name: str
    """Name of the operator."""
    operator: str
    """Kind of operator."""
    reason: str
    """Why it is not mapped."""
    operations: int | None
    """Estimated scalar operations; None if unknown."""
    counted: bool
    """Whether a vector layer counts it in the totals with vector layers."""
    origin: OriginData | None
    """Place in the network's file."""


class VectorRow(Document):
    """Vector layer of the network: an operator without a product, on a vector unit. Costs are None if it is not counted."""

    _figures = ((VECTORS, "json"), (COSTS, "steps"))

    reads: list[str] | None
    """Names of the layers that it reads; None: unknown."""
    reason: str | None
    """Why it is not counted; None: it is."""
    roofline: RooflineRow | None
    """Its place below the roofline, with all operations as MACs; None if it is not counted."""


class UnitBar(Document):
    """Work of one layer on the time line of the units."""

    name: str
    """Name of the layer."""
    unit: str
    """Name of the unit."""
    start: int
    """First cycle."""
    end: int
    """Cycle after the last one."""
    count: int
    """Number of executions of its segment; the bar is that of the first one."""
    segment: int
    """Number of its segment: neighbours with equal counts."""


class GroupVectorRow(Document):
    """Vector layer of a group, on all tiles."""

    _figures = ((GROUP_VECTORS, "json"),)

    energy_pj: float | None
    """Energy in pJ; None: it is not counted."""
    cycles: int | None
    """Cycles of its unit; None: it is not counted."""
    reason: str | None
    """Why it is not counted; None: it is."""


class GroupUnits(Document):
    """Vector layers of a group, and the totals of all units with those that are counted."""

    vectors: list[GroupVectorRow]
    """Vector layers in order of execution."""
    vector_cycles: int
    """Cycles of the vector layers."""
    vector_energy_pj: float
    """Energy of the vector layers in pJ."""
    sequential_cycles: int
    """Cycles of all layers, in sequence."""
    overlapped_cycles: int
    """Cycles with units in parallel, where they may overlap."""
    network_energy_pj: float
    """Energy of all layers in pJ, in sequence."""
    alone: str | None
    """Why units do not overlap; None: they do."""
    timeline: list[UnitBar]
    """Work of units and ports of memories on the first tiles; empty if units do not overlap."""


class Offer(Document):
    """Alternative algorithm for a layer, with its costs for one occurrence."""

    _figures = (
        (OFFERS, "json"),
        (COSTS, "steps"),
    )

    layer: str
    """Name of the layer."""
    count: int
    """Number of executions of the layer."""
    algorithm: str
    """Plugin that offers it."""
    name: str
    """Name of the alternative."""
    best: bool
    """Whether it costs least."""
    steps: list[str]
    """Names of the steps, as layers."""
    dimensions: dict[str, list[str]]
    """Dimension of the steps -> the dimensions of the problem that it replaces."""
    movements: list[Movement]
    """Rearrangements of tensors in the outermost memory."""
    exact: bool | None
    """Whether the result is exact, apart from rounding."""
    remark: str | None
    """Limits of the alternative, in words."""
    reasons: list[Reason]
    """Why it does not apply."""


class Totals(Document):
    """Sums over all layers, each as often as it occurs. None while a layer has no mapping, and for a list of layers."""

    _figures = ((COSTS, "totals"),)

    area_um2: float | None
    """Area of the architecture in um2; None if unknown."""
    clock_ghz: float | None
    """Clock of the architecture in GHz; None if unknown."""


class Sensitivity(Document):
    """Effect of one larger bandwidth or capacity on the whole workload."""

    part: str
    """Name of the memory."""
    what: Literal["bandwidth", "capacity"]
    """All bandwidths that the memory states, or its capacity."""
    percent: float
    """How much larger it is."""
    energy_pj: float | None
    """Energy of all layers then, in pJ; None if a layer has no mapping, or no estimator knows the size."""
    cycles: int | None
    """Cycles of all layers then."""
    objective_change: float | None
    """Relative change of the objective; negative: it is less."""
    searched: bool
    """Whether mappings were searched again. Otherwise the same ones were evaluated."""
    proved: bool
    """Whether the change of the objective is one between two proved optima."""
    reason: str | None
    """Why there are no costs."""
    told: str
    """The effect in words."""


class MapOutput(RunOutput):
    """Result of `map --json`, and `summary.json`."""

    kind: Literal["map_output"] = "map_output"
    """Kind of document."""
    objective: str
    """Name of the objective."""
    seed: int
    """Seed of random numbers."""
    warnings: list[str]
    """Names that match nothing, and operations that do not fit."""
    layers: list[MapLayer]
    """Distinct problems in the workload's order; an interrupted run has fewer."""
    unmapped: list[Unmapped]
    """Operators that are not mapped."""
    vectors: list[VectorRow]
    """Vector layers; empty if the architecture has no vector unit."""
    timeline: list[UnitBar]
    """When each layer runs with units in parallel; empty if that is not known."""
    ports: list[UnitBar]
    """Words of each port of a memory on the same time line, from the start of each layer."""
    algorithms: list[Offer]
    """Alternatives of each layer; empty if no algorithms were requested."""
    links: list[tuple[str, str]]
    """Pairs of layers: the second reads a result of the first."""
    totals: Totals
    """Costs of the whole network."""
    sensitivity: list[Sensitivity]
    """Effects of larger bandwidths and capacities; empty if they were not requested."""


class FrontRow(Document):
    """Point of a Pareto front: a mapping that no other one beats in both energy and cycles."""

    _figures = ((COSTS, "front"),)

    most_cycles: int | None
    """Cycles within which no mapping has less energy, up to the gap; None: at any number."""
    gap: float | None
    """Part of the energy by which it may exceed the minimum; None if nothing is proved."""
    claimed_by: str | None
    """Plugins whose claim the proof is; None: it is proved, or there is none."""
    mapping_file: str | None
    """Name of the mapping file; None if none was written."""
    certificate_file: str | None
    """Name of the certificate; None if nothing was proved, or written."""
    mapping: MappingData | None
    """The mapping in the form of its file."""


class FrontLayer(Document):
    """Pareto front of one distinct problem."""

    _figures = ((PROBLEMS, "front"),)

    whole: bool
    """Whether the front is known to have no further points."""
    points: list[FrontRow]
    """The points, fewest cycles first."""
    error: str | None
    """Error of the search of fewest cycles."""


class FrontOutput(RunOutput):
    """Result of `map --pareto --json`, and `front.json`."""

    kind: Literal["front_output"] = "front_output"
    """Kind of document."""
    seed: int
    """Seed of random numbers."""
    warnings: list[str]
    """Operations that the compute units do not fit."""
    layers: list[FrontLayer]
    """Fronts of the distinct problems."""


class BudgetRow(Document):
    """Chosen mapping of some layers with one problem."""

    _figures = ((COSTS, "budget"),)

    layer: str
    """Name of the first layer with this problem."""
    dimensions: str
    """Dimensions longer than 1, as text."""
    count: int
    """Number of layers that use the mapping."""
    mapping: MappingData | None
    """The mapping in the form of its file."""


class BudgetOutput(Output):
    """Result of `map --pareto N --budget-cycles N --json`."""

    kind: Literal["budget_output"] = "budget_output"
    """Kind of document."""
    workload: str
    """Name of the network."""
    architecture: str
    """Name of the architecture."""
    most_cycles: float
    """Budget in cycles."""
    energy_pj: float
    """Energy of the network in pJ."""
    cycles: int
    """Cycles of the network."""
    bound: float
    """Lower bound on the energy within the budget, in pJ."""
    gap: float
    """Largest possible saving within the budget, as a fraction."""
    claimed_by: str | None
    """Plugins whose claim the bound is; None: it is proved."""
    layers: list[BudgetRow]
    """Chosen mappings."""


class FusedGroupOutput(Output):
    """Result of `map GROUP --fuse --json`."""

    kind: Literal["fused_group_output"] = "fused_group_output"
    """Kind of document."""
    objective: str
    """Name of the objective."""
    proved: bool
    """Whether nothing in the space costs less."""
    space: str
    """The searched space, in words."""
    mapper: PluginRecord
    """The group mapper."""
    gap: float | None
    """Distance to the bound as a fraction of it; None without a bound."""
    bound: float | None
    """Lower bound on the objective in the space."""
    claimed_by: str | None
    """Group mapper whose claim the bound is; None if it is proved, or if there is none."""
    unfused_proved: bool
    """Whether the mapping without fusion is optimal, too."""
    saved_words: int
    """Words that the outermost memory moves less than without fusion."""
    mapping: GroupData
    """The group mapping in the form of its file."""
    fused: ReportData
    """Report of the group mapping."""
    unfused: ReportData
    """Report of the best mapping without fusion."""
    units: GroupUnits | None
    """Vector layers of the mapping; None: it has none, or the architecture has no vector unit."""


class GainOutput(Output):
    """Bound on what fusion can save in a network (`tw.fusion_gain`)."""

    kind: Literal["fusion_gain_output", "fused_network_output"] = "fusion_gain_output"
    """Kind of document."""
    workload: str
    """Name of the network."""
    architecture: str
    """Name of the architecture."""
    objective: str
    """Name of the objective."""
    unfused: float
    """The objective without fusion."""
    least: float | None
    """Lower bound on the objective with results in `home`; None if edges are unknown."""
    gain: float | None
    """Largest possible saving, as a fraction."""
    home: str | None
    """On-chip memory where results may stay; None if no single one may hold them."""
    claimed_by: str | None
    """Plugins whose claim the bound is; None: it is proved."""
    may_stay: list[str]
    """Layers whose results may stay."""
    unknown: list[str]
    """Layers for which the workload does not state whose results they read."""


class Resident(Document):
    """Result that stays on chip."""

    maker: str
    """Layer that makes it."""
    readers: list[str]
    """Layers that read it."""
    words: float
    """Its words of the memory; values may be narrower than a word."""


class NetworkLayer(Document):
    """Layer of a fused network."""

    _figures = ((COSTS, "layers"),)

    name: str
    """Name of the layer."""
    mapping: MappingData | None
    """The mapping in the form of its file."""


class NetworkGroupOutput(Document):
    """Layers of a fused network that share loops."""

    _figures = ((COSTS, "layers"),)

    layers: list[str]
    """Names of the layers, in order of execution."""
    count: int
    """How often they are executed."""
    mapping: GroupData
    """The group mapping in the form of its file."""
    units: GroupUnits | None
    """Vector layers on its tiles; None: there is none, or the architecture has no vector unit."""


class FusedUnits(Document):
    """Totals of a fused network with its vector layers."""

    _figures = ((COSTS, "fused vectors"),)


class FusedLink(Document):
    """Result that a layer reads."""

    maker: str
    """Layer that makes it."""
    reader: str
    """Layer that reads it."""
    operand: str | None
    """Tensor of the layer that reads it; None: it is not stated which words are read."""
    stays: bool
    """Whether the words stay on chip."""
    reason: str | None
    """Why they do not."""


class FusedNetworkOutput(GainOutput):
    """Result of `map NET --fuse --json`, and `network.json`."""

    _optional = ("links",)

    kind: Literal["fused_network_output"] = "fused_network_output"
    """Kind of document."""
    fused: float
    """The objective with fusion."""
    saved: float
    """Saving against the cost without fusion, as a fraction."""
    energy_pj: float
    """Energy of the network in pJ."""
    cycles: float
    """Cycles of the network."""
    bound: float | None
    """Lower bound over all choices of results that stay; None if edges are unknown."""
    gap: float | None
    """Largest possible further saving, as a fraction."""
    proved: bool
    """Whether no choice costs less."""
    searched_bound: float | None
    """If layers share loops, lower bound over the mappings that were searched; None for a product of energy and cycles."""
    searched_gap: float | None
    """Largest possible further saving there, as a fraction."""
    residents: list[Resident]
    """Results that stay."""
    groups: list[NetworkGroupOutput]
    """Layers that share loops."""
    layers: list[NetworkLayer]
    """Layers in the order of the workload; those of a group with their costs without fusion."""
    units: FusedUnits | None
    """Totals with vector layers; None without vector units."""
    unfused_units: FusedUnits | None
    """Totals with vector layers and without fusion; None without vector units."""
    links: list[FusedLink] | None = None
    """With `--graph`: results that layers read."""
