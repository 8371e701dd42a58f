"""Figures of layers and of their searches, as JSON, CSV and tables show them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter

from tilewright.application.run.artifacts.layers import spec_of
from tilewright.application.run.configuration import RunConfiguration, limit_message, limit_of
from tilewright.application.run.network import MappedLayer
from tilewright.documents import OriginData
from tilewright.figures import Figure, Sheet
from tilewright.plugin.result import Rejections, Result, Stop
from tilewright.tables import SIZES, Column, numbers

PROBLEMS = Sheet(
    Figure("name", of=attrgetter("problem.name"), kind=str, meaning="Name of the first layer with this problem."),
    Figure(
        "layer",
        Column("layer"),
        attrgetter("problem.name"),
        kind=str,
        meaning="Name of the first layer with this problem.",
    ),
    Figure(
        "layers",
        of=lambda distinct: list(distinct.layers),
        kind=list[str],
        meaning="Names of all layers with this problem.",
    ),
    Figure(
        "origins",
        of=lambda distinct: distinct.origins_data(),
        kind=dict[str, OriginData],
        meaning="Layer -> its place in the network's file.",
    ),
    Figure("origin", of=lambda distinct: str(distinct.origin or ""), kind=str, meaning="Place in the network's file."),
    Figure("sizes", SIZES, attrgetter("problem.long_dimensions"), kind=str, meaning="Dimensions longer than 1."),
    Figure(
        "stride",
        Column("stride"),
        attrgetter("problem.stride"),
        is_optional=True,
        kind=str | None,
        meaning="Strides of windows, such as 2 or 2x1; None if all are 1.",
    ),
    Figure(
        "dilation",
        Column("dilation"),
        attrgetter("problem.dilation"),
        is_optional=True,
        kind=str | None,
        meaning="Dilations of windows, such as 2 or 2x1; None if all are 1.",
    ),
    Figure("count", numbers("count"), kind=int, meaning="Number of executions in the network."),
    Figure("macs", numbers("MACs"), attrgetter("problem.macs"), kind=int, meaning="Operations of one execution."),
    Figure(
        "dimensions",
        of=lambda distinct: dict(distinct.problem.dimensions),
        kind=dict[str, int],
        meaning="Dimension -> its size.",
    ),
    views={
        "map": "name layers origins count macs dimensions stride dilation",
        "map, csv": "layer origin sizes stride dilation count macs",
        "map, table": "layer sizes:1 stride:4 dilation:4 count:5 macs:7",
        "compare": "layer layers origins count macs dimensions stride dilation",
        "compare, csv": "layer sizes stride dilation count macs",
        "front": "name layers origins dimensions stride dilation count",
        "front, csv": "layer sizes stride dilation count",
        "table": "layer sizes:1",
        "page": "stride dilation count macs",
    },
)
"""Figures of distinct problems."""
NOTHING = Result(None, math.inf, 0, 0, 0, "failed", 0.0, 0.0, 0)
"""Result of a search that did not begin."""


@dataclass(frozen=True)
class Searched:
    """Search of a layer with its configuration, which is None if the plugins could not be built."""

    layer: MappedLayer
    configuration: RunConfiguration | None

    @property
    def result(self) -> Result:
        return self.layer.result or NOTHING

    @property
    def stopped_by(self) -> str | None:
        """The limit that cut the search short, as an option; None if no limit did."""
        return None if self.configuration is None else limit_of(self.result.stop, self.configuration.budget)

    @property
    def cut(self) -> bool:
        """Whether a limit ended the search of a prover before it had its proof."""
        result, configuration = self.result, self.configuration
        if configuration is None or result.proved == "yes" or result.stop == "failed":
            return False
        spec, budget = spec_of(configuration.mapper_record), configuration.budget
        late = budget.seconds is not None and result.wall_seconds >= budget.seconds
        late |= budget.evaluations is not None and result.evaluated >= budget.evaluations
        return spec is not None and spec.proof_version is not None and (late or result.stop != "finished")

    @property
    def gap_reason(self) -> str | None:
        """Why the proof leaves a gap, as a clause after "because"; None without a gap, and if nothing tells."""
        result = self.result
        if self.configuration is None or result.proved in (None, "yes"):
            return None
        spec = spec_of(self.configuration.mapper_record)
        told = {} if spec is None else spec.gap_reasons
        causes = [name for name in told if name in result.figures]
        if causes:
            return told[max(causes, key=lambda name: result.figures[name])]
        if result.stop == "cancelled":
            return "the search was interrupted"
        return None if self.stopped_by is None else f"the search was {limit_message(self.stopped_by, '')}"


SEARCHES = Sheet(
    *(
        Figure(key, of=attrgetter(f"result.{key}"), kind=kind, meaning=text)
        for key, kind, text in (
            ("evaluated", int, "Mappings evaluated."),
            ("valid", int, "Legal ones among them."),
            ("rejected", int, "Mappings that the model accepts, but that break a rule of legality."),
            ("cpu_seconds", float, "CPU time of the search."),
            ("wall_seconds", float, "Duration of the search."),
            ("stop", Stop, "How the search ended."),
            ("lower_bound", float | None, "Lower bound on the objective; None if nothing is proved."),
            ("claimed_by", str | None, "Plugins whose claim the bound is; None: it is proved, or there is none."),
            ("gap", float | None, "Part of the value by which it may exceed the minimum; 0 is the optimum."),
            ("figures", dict[str, float], "Figures of the mapper, by name."),
        )
    ),
    Figure("stopped_by", kind=str | None, meaning="Option whose limit ended the search; None if no limit did."),
    Figure(
        "gap_reason", kind=str | None, meaning="Why the proof leaves a gap; None without a gap, or if nothing tells."
    ),
    Figure("cut", kind=bool, meaning="Whether a limit ended a prover before its proof."),
    Figure(
        "rejections",
        of=lambda search: search.result.rejections and search.result.rejections.model_dump(),
        kind=Rejections | None,
        meaning="Why no mapping is valid, from a sample; None if one is.",
    ),
    Figure(
        "history",
        of=lambda search: [list(step) for step in search.result.history],
        kind=list[tuple[int, float]],
        meaning="Number of evaluated mappings and objective, at each new best mapping.",
    ),
    Figure("cached", of=attrgetter("layer.cached"), kind=bool, meaning="Whether the result is of an earlier search."),
    Figure(
        "error",
        of=lambda search: search.layer.error and search.layer.error.message,
        kind=str | None,
        meaning="Error of the search; None if there was none.",
    ),
    views={
        "map": "evaluated valid rejected cpu_seconds wall_seconds stop stopped_by lower_bound claimed_by gap gap_reason figures rejections history cached",
        "map, csv": "evaluated stop stopped_by gap claimed_by",
        "compare": "evaluated valid wall_seconds stop stopped_by lower_bound claimed_by gap gap_reason cut rejections error",
        "compare, csv": "evaluated wall_seconds stop stopped_by gap claimed_by cut",
    },
)
