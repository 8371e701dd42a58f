"""Correlation of two cost models over sampled mappings: ranks, ratios, and where they disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import methodcaller

import numpy as np

from tilewright.application.run.ranks import kendall, spearman
from tilewright.application.run.sampling import LayerSample
from tilewright.figures import Figure, Sheet
from tilewright.mapspace.batch import Floats
from tilewright.schema.objective import Objective
from tilewright.tables import Column, numbers

QUANTILES = (5, 25, 50, 75, 95)
"""Quantiles of ratios, in percent."""
CORRELATIONS = Sheet(
    Figure("layer", Column("layer"), kind=str, meaning="Name of the layer."),
    Figure("first", Column("model a"), kind=str, meaning="Cost model a."),
    Figure("second", Column("model b"), kind=str, meaning="Cost model b."),
    Figure("figure", Column("figure"), kind=str, meaning="Compared figure: energy, cycles or another objective."),
    Figure("layers", numbers("layers"), kind=int, meaning="Number of layers."),
    Figure("mappings", numbers("mappings", rank=2), kind=int, meaning="Mappings that both models accept."),
    Figure(
        "tau",
        numbers("Kendall", "tau-b", decimals=3),
        meaning="Kendall's tau-b; of several layers the median. None if one model gives all mappings equal figures.",
    ),
    Figure("tau_least", numbers("least tau-b", "of a layer", decimals=3), meaning="Least tau-b of a layer."),
    Figure("rho", numbers("Spearman", "rho", decimals=3), meaning="Spearman's rho; of several layers the median."),
    *(
        Figure(
            f"ratio_{q}",
            numbers("b / a", f"{q} %", decimals=3),
            methodcaller("ratio", q),
            meaning=f"Quantile of b / a: {q} % of the mappings have a smaller ratio.",
        )
        for q in QUANTILES
    ),
    views={
        "rows": "layer first second figure mappings tau rho ratio_5 ratio_25 ratio_50 ratio_75 ratio_95",
        "table": "first second mappings:2 tau rho ratio_5:1 ratio_25:4 ratio_50 ratio_75:4 ratio_95:1",
        "all": "first second layers:3 mappings:2 tau tau_least rho:1 ratio_5:4 ratio_25:5 ratio_50 ratio_75:5 ratio_95:4",
        "all, rows": "first second figure layers mappings tau tau_least rho ratio_5 ratio_25 ratio_50 ratio_75 ratio_95",
    },
)
"""Figures of a pair of models. `tau` and `rho` of several layers are medians; their ratios are those of all mappings."""


@dataclass(frozen=True, eq=False)
class Correlation:
    """Two cost models on the mappings of one layer that both accept, or on those of all layers.

    Attributes:
        layer: Name of the layer; empty for all layers.
        figure: Name of the compared figure: `energy`, `cycles` or another objective.
        mappings: Number of mappings that both models accept.
        tau, rho: Kendall's tau-b and Spearman's rho; None if one model gives all mappings equal figures.
        ratios: Figure of `second` over that of `first`, [mappings]. Mappings with a figure of zero are left out.
        worst: Indices of the mappings in the sample whose ratios are furthest from the median, the furthest first.
    """

    layer: str
    first: str
    second: str
    figure: str
    mappings: int
    tau: float | None
    rho: float | None
    ratios: Floats
    layers: int = 1
    tau_least: float | None = None
    worst: tuple[int, ...] = ()

    def ratio(self, percent: float) -> float | None:
        """Return a quantile of the ratio; None without ratios."""
        return float(np.percentile(self.ratios, percent)) if len(self.ratios) else None


def correlations(sample: LayerSample, objectives: Sequence[Objective], worst: int) -> list[Correlation]:
    """Return the correlation of each pair of models in each objective."""
    return [
        _correlation(sample, first, second, objective, worst)
        for first, second in combinations(sample.costs, 2)
        for objective in objectives
    ]


def _correlation(sample: LayerSample, first: str, second: str, objective: Objective, worst: int) -> Correlation:
    both = sample.costs[first].valid & sample.costs[second].valid
    one, other = (sample.costs[model].of(objective)[both] for model in (first, second))
    positive = (one > 0) & (other > 0)
    ratios = other[positive] / one[positive]
    distances = np.abs(np.log(ratios) - np.median(np.log(ratios))) if len(ratios) else ratios
    furthest = np.argsort(-distances, kind="stable")[:worst]
    return Correlation(
        layer=sample.problem.name,
        first=first,
        second=second,
        figure=objective.name,
        mappings=int(both.sum()),
        tau=kendall(one, other),
        rho=spearman(one, other),
        ratios=ratios,
        worst=tuple(np.flatnonzero(both)[positive][furthest].tolist()),
    )


def over_layers(layers: Sequence[Correlation]) -> Correlation:
    """Return one pair of models in one figure over all layers: median correlations, and the ratios of all mappings."""
    taus = [one.tau for one in layers if one.tau is not None]
    rhos = [one.rho for one in layers if one.rho is not None]
    return Correlation(
        layer="",
        first=layers[0].first,
        second=layers[0].second,
        figure=layers[0].figure,
        mappings=sum(one.mappings for one in layers),
        tau=float(np.median(taus)) if taus else None,
        rho=float(np.median(rhos)) if rhos else None,
        ratios=np.concatenate([one.ratios for one in layers]),
        layers=len(layers),
        tau_least=min(taus, default=None),
    )
