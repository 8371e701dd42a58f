"""Figures of searches, as JSON and CSV show them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter

from tilewright.application.run.artifacts.layers import spec_of
from tilewright.application.run.configuration import RunConfiguration, gap_reason, limit_of
from tilewright.application.run.network import MappedLayer
from tilewright.figures import Figure, Sheet
from tilewright.plugin.result import Result

NOTHING = Result(None, math.inf, 0, 0, 0, "failed", 0.0, 0.0, 0)
"""Result of a search that did not begin."""


@dataclass(frozen=True)
class Searched:
    """Search of a layer with its settings; None if its plugins could not be built."""

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
        """Why the proof leaves a gap, as a clause; None without a gap, and if nothing tells."""
        if self.configuration is None:
            return None
        return gap_reason(self.result, spec_of(self.configuration.mapper_record), self.configuration.budget)


SEARCHES = Sheet(
    *(
        Figure(key, of=attrgetter(f"result.{key}"))
        for key in ("evaluated", "valid", "rejected", "cpu_seconds", "wall_seconds")
    ),
    *(Figure(key, of=attrgetter(f"result.{key}")) for key in ("stop", "lower_bound", "gap", "figures")),
    *map(Figure, ("stopped_by", "gap_reason", "cut")),
    Figure("rejections", of=lambda search: search.result.rejections and search.result.rejections.model_dump()),
    Figure("history", of=lambda search: [list(step) for step in search.result.history]),
    Figure("cached", of=attrgetter("layer.cached")),
    Figure("error", of=lambda search: search.layer.error and search.layer.error.message),
    views={
        "map": "evaluated valid rejected cpu_seconds wall_seconds stop stopped_by lower_bound gap gap_reason figures rejections history cached",
        "map, csv": "evaluated stop stopped_by gap",
        "compare": "evaluated valid wall_seconds stop stopped_by lower_bound gap gap_reason cut rejections error",
        "compare, csv": "evaluated wall_seconds stop stopped_by gap cut",
    },
)
