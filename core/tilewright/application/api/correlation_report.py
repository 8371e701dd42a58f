"""Correlation report: results of `correlate`, one per layer, pair of models and figure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.application.api.plots import CorrelationPlots
from tilewright.application.documents.comparisons import CorrelateOutput, LayerPair, Pair, Refused, SampledLayer
from tilewright.application.run.artifacts.summaries import folder_message, interrupted_message, save_summary
from tilewright.application.run.conventions import conventions_between, conventions_table
from tilewright.application.run.correlation import CORRELATIONS, Correlation, correlations, over_layers
from tilewright.application.run.evaluation import FAILED, BuiltModel
from tilewright.application.run.sampling import LayerSample
from tilewright.errors import OutputError
from tilewright.figures import Figure, Sheet
from tilewright.files import RunFolder, file_name
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapped import MappedProblem
from tilewright.schema.objective import Objective
from tilewright.schema.workload import Workload
from tilewright.tables import Column, Table, Tabular, csv_text, numbers
from tilewright.values import grouped

PLOTTED = 800
"""Maximum number of mappings in a chart, an equal share of each layer."""
FEW_LAYERS = 3
"""Maximum number of layers whose pairs have full tables; of more, a table has only the correlations."""
SAMPLES = Sheet(
    Figure("layer"),
    Figure("mapping"),
    Figure("model"),
    Figure("valid"),
    Figure("energy_pj"),
    Figure("cycles"),
    views={"csv": "layer mapping model valid energy_pj cycles"},
)
"""Figures of one mapping under one model."""


@dataclass(frozen=True, repr=False)
class CorrelationReport(Tabular):
    """Results of `correlate`, with one row per layer, pair of models and figure.

    `layers` are the samples with their costs. `folder` contains the summaries, and the mappings on which two models
    disagree most.

    Example:
        >>> import tilewright as tw
        >>> report = tw.correlate("nk,km->nm; n=4 k=4 m=4", "eyeriss", models="timeloop,pipelined", samples=20)
        >>> [model.name for model in report.models]
        ['timeloop', 'pipelined']
    """

    workload: Workload
    architecture: Architecture
    constraints: Constraints
    objective: Objective
    models: tuple[BuiltModel, ...]
    layers: tuple[LayerSample, ...]
    samples: int
    seed: int
    worst: int = 1
    folder: Path | None = None
    unwritten: OutputError | None = None

    def __repr__(self) -> str:
        names = ", ".join(model.name for model in self.models)
        return f"<CorrelationReport of {self.workload.name} on {self.architecture.name}: {names}>"

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """The compared figures: energy, cycles, and the objective."""
        listed = [Objective.named("energy"), Objective.named("cycles"), self.objective]
        return tuple({objective.name: objective for objective in listed}.values())

    @cached_property
    def correlations(self) -> tuple[Correlation, ...]:
        """Correlations of each layer, pair of models and figure."""
        return tuple(one for layer in self.layers for one in correlations(layer, self.objectives, self.worst))

    @cached_property
    def pairs(self) -> tuple[Correlation, ...]:
        """Correlations of each pair of models and figure, over all layers."""
        names = [model.name for model in self.models]
        groups = grouped(((one.first, one.second, one.figure), one) for one in self.correlations)
        ordered = sorted(groups, key=lambda key: (names.index(key[0]), names.index(key[1])))
        return tuple(over_layers(groups[key]) for key in ordered)

    @cached_property
    def conventions(self) -> dict[str, dict[str, str]]:
        """Topic -> model -> its rule, where the models differ. A model that declares none has no entry."""
        return conventions_between([model.name for model in self.models])

    @property
    def missing(self) -> int:
        """Number of layers that an interruption prevented."""
        return len(self.workload.distinct()) - len(self.layers)

    @property
    def failed(self) -> bool:
        """Whether there is no pair of models because a plugin failed."""
        reasons = [reason for layer in self.layers for listed in layer.left_out.values() for reason in listed]
        return not self.correlations and any(reason.code == FAILED for reason in reasons)

    def save(self, folder: str | Path) -> Path:
        """Write `correlate.json`, `correlate.csv`, `samples.csv` and mapping files, as `correlate -o` does.

        Raises:
            OutputError: A file cannot be written.
        """
        run = RunFolder(folder)
        if (failure := self.summarised(run).unwritten) is not None:
            raise failure
        return run.path

    def summarised(self, folder: RunFolder | None) -> CorrelationReport:
        """Write the files, and return the report with its folder."""
        if folder is None:
            return self
        for name, mapped in self._files():
            folder.write(name, mapped.to_yaml())
        saved = replace(self, folder=folder.path)
        save_summary(folder, "correlate", saved.data(), [*CORRELATIONS.view("rows")], saved.rows())
        folder.write("samples.csv", csv_text([*SAMPLES.view("csv")], self.sample_rows()))
        return replace(saved, unwritten=folder.failure)

    def _files(self) -> Iterator[tuple[str, MappedProblem]]:
        """Yield names and contents of the mapping files: those on which two models disagree most in the objective."""
        for one, layer in self._in_objective():
            for name, index in zip(self._names[id(one)], one.worst, strict=True):
                mapping = layer.mapping(index)
                yield name, MappedProblem(mapping=mapping, problem=layer.problem, architecture=layer.architecture)

    @cached_property
    def _names(self) -> dict[int, list[str]]:
        """Names of the mapping files of each correlation in the objective, by its `id`."""
        numbers_from_1 = count(1)
        return {
            id(one): [
                file_name(f"{next(numbers_from_1):03d}", one.layer, one.first, one.second) + ".yaml" for _ in one.worst
            ]
            for one, _ in self._in_objective()
        }

    def _in_objective(self) -> list[tuple[Correlation, LayerSample]]:
        """Return the correlations in the objective with the sample of their layer."""
        by_name = {layer.problem.name: layer for layer in self.layers}
        return [(one, by_name[one.layer]) for one in self.correlations if one.figure == self.objective.name]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per layer, pair of models and figure."""
        return [CORRELATIONS.data("rows", one) for one in self.correlations]

    def sample_rows(self) -> list[dict[str, Any]]:
        """Return one dict per layer, mapping and model: its energy in pJ and its cycles; empty if the model refuses it."""
        return [
            SAMPLES.data(
                "csv",
                {
                    "layer": layer.problem.name,
                    "mapping": index,
                    "model": model,
                    "valid": bool(costs.valid[index]),
                    "energy_pj": float(costs.energy_pj[index]) if costs.valid[index] else "",
                    "cycles": float(costs.cycles[index]) if costs.valid[index] else "",
                },
            )
            for layer in self.layers
            for model, costs in layer.costs.items()
            for index in range(len(costs))
        ]

    def data(self) -> dict[str, Any]:
        """Return the JSON document of `correlate --json` and `correlate.json`."""
        return CorrelateOutput(
            workload=self.workload.name,
            content=self.workload.content,
            arch=self.architecture.name,
            constraints=self.constraints.name,
            objective=self.objective.name,
            models=[model.name for model in self.models],
            samples=self.samples,
            seed=self.seed,
            complete=not self.missing and not any(layer.stopped for layer in self.layers),
            pairs=[Pair(**CORRELATIONS.data("all, rows", one)) for one in self.pairs],
            layers=[self._layer(layer) for layer in self.layers],
            conventions=self.conventions,
        ).data()

    def _layer(self, layer: LayerSample) -> SampledLayer:
        name, share = layer.problem.name, max(1, PLOTTED // len(self.layers))
        return SampledLayer(
            name=name,
            dimensions=dict(layer.problem.dimensions),
            mappings=len(layer),
            drawn=layer.drawn,
            stopped=layer.stopped or None,
            left_out={model: list(reasons) for model, reasons in layer.left_out.items()},
            refused={
                model: Refused(
                    mappings=int((~layer.costs[model].valid).sum()),
                    sampled=rejections.sampled,
                    reasons=list(rejections.reasons),
                )
                for model, rejections in layer.refused.items()
            },
            pairs=[
                LayerPair(**CORRELATIONS.data("rows", one), files=self._written(one))
                for one in self.correlations
                if one.layer == name
            ],
            energy_pj={model: dict(parts) for model, parts in layer.parts.items()},
            explained=layer.explained,
            unsplit=layer.unsplit or None,
            points={
                model: [_finite(value) for value in costs.of(self.objective)[:share]]
                for model, costs in layer.costs.items()
            },
        )

    def _written(self, one: Correlation) -> list[str]:
        return [] if self.folder is None else self._names.get(id(one), [])

    @property
    def plot(self) -> CorrelationPlots:
        """Chart of the report: `plot.scatter()`."""
        return CorrelationPlots(json.loads(json.dumps(self.data())))

    def messages(self) -> list[str]:
        """Return messages that the user needs to interpret the results."""
        messages = []
        if self.constraints.uneven:
            messages.append("note: the constraints allow uneven mappings; even ones are sampled")
        short = [layer for layer in self.layers if layer.costs and not layer.stopped and len(layer) < self.samples]
        messages += [
            f"note: {layer.problem.name}: {len(layer):,} of {layer.drawn:,} drawn mappings are legal" for layer in short
        ]
        messages += [
            f"warning: {layer.problem.name}: energies by memory are those of {layer.explained} mappings: {layer.unsplit}"
            for layer in self.layers
            if layer.unsplit
        ]
        cut = [layer.problem.name for layer in self.layers if layer.stopped == "deadline"]
        if cut:
            messages.append(f"stopped by --seconds: {', '.join(cut)} have fewer than {self.samples:,} mappings")
        stopped = [layer.problem.name for layer in self.layers if layer.stopped == "cancelled"]
        messages += [f"interrupted: the mappings so far of {', '.join(stopped)} are compared"] if stopped else []
        messages += interrupted_message([], self.missing, len(self.workload.distinct()), "layers were not sampled")
        return [*messages, *folder_message(self.folder, self.unwritten)]

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.messages()])

    def tables(self) -> Sequence[Table | str]:
        """Return the pairs of models over all layers, each layer, energies by memory, refusals and conventions."""
        title = f"{self.objective.title} of {self.workload.name} on {self.architecture.name}"
        pairs = [one for one in self.pairs if one.figure == self.objective.name]
        several = len(self.layers) > 1
        tables: list[Table | str] = [] if pairs else [f"{title}: no mapping was evaluated by two models"]
        if several and pairs:
            shown = CORRELATIONS.shown("all", lambda one: one)
            tables.append(Table.of(shown, pairs, f"{title}: median of the layers, and ratios of all mappings"))
        if len(self.layers) <= FEW_LAYERS:
            for layer in self.layers:
                rows = [one for one, of in self._in_objective() if of is layer]
                if rows:
                    shown = CORRELATIONS.shown("table", lambda one: one)
                    tables.append(Table.of(shown, rows, f"{title if not several else layer.problem.name}"))
        elif pairs:
            tables.append(self._matrix(pairs))
        tables += [part for part in (self._energies(), self._refusals()) if part is not None]
        if self.conventions:
            tables.append(conventions_table(self.conventions, [model.name for model in self.models]))
        return tables

    def _matrix(self, pairs: Sequence[Correlation]) -> Table:
        """Return Kendall's tau-b of each layer and pair of models."""
        columns = [numbers(f"{pair.first}", pair.second, decimals=2, rank=1 + at) for at, pair in enumerate(pairs)]
        table = Table("layer", *columns, title=f"tau-b of {self.objective.title} by layer")
        taus = {(one.layer, one.first, one.second): one.tau for one, _ in self._in_objective()}
        for layer in self.layers:
            name = layer.problem.name
            table.add_row(name, *(taus.get((name, pair.first, pair.second)) for pair in pairs))
        return table

    def _energies(self) -> Table | None:
        """Return the mean share of each memory in the energy, by model, over the layers."""
        shares: dict[str, dict[str, list[float]]] = {}
        told = [layer for layer in self.layers if layer.explained]
        for layer in told:
            for model, parts in layer.parts.items():
                total = sum(parts.values())
                for place in parts:
                    shares.setdefault(place, {})
                for place, pj in parts.items():
                    shares[place].setdefault(model, []).append(pj / total if total else 0.0)
        counts = {model: sum(model in layer.parts for layer in told) for model in (model.name for model in self.models)}
        models = [model for model, count in counts.items() if count]
        if not models:
            return None
        table = Table(
            "part",
            *(numbers(model, "%", decimals=1, rank=1 + at) for at, model in enumerate(models)),
            title="energy by memory: mean share of the layers that a model accepts",
        )
        for place, of in shares.items():
            table.add_row(place, *(100 * sum(of[model]) / counts[model] if model in of else None for model in models))
        return table

    def _refusals(self) -> Table | None:
        """Return which models refuse layers or mappings, with the first reason of each kind."""
        table = Table("model", "refuses", Column("reason", wrapped=True), title="refused")
        groups = grouped(
            ((model, reasons[0].code if reasons else ""), (layer.problem.name, str(reasons[0]) if reasons else ""))
            for layer in self.layers
            for model, reasons in layer.left_out.items()
        )
        for (model, _), listed in groups.items():
            names = [name for name, _ in listed]
            every = len(names) == len(self.layers)
            table.add_row(model, "all layers" if every else f"layers {', '.join(names)}", listed[0][1])
        for model in (model.name for model in self.models):
            layers = [layer for layer in self.layers if model in layer.refused]
            refused = sum(int((~layer.costs[model].valid).sum()) for layer in layers)
            total = sum(len(layer) for layer in self.layers if model in layer.costs)
            common = grouped(
                (reason.code, reason.example) for layer in layers for reason in layer.refused[model].reasons
            )
            if refused:
                table.add_row(
                    model,
                    f"{refused:,} of {total:,} mappings",
                    "; ".join(f"{examples[0]} [{code}]" for code, examples in common.items()) or "no reason is given",
                )
        return table if table.rows else None


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
