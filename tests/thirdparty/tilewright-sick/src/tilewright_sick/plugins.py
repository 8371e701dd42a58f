"""A plugin of each kind that works, but for what fails in one place."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright import Architecture, Mapping, Problem, Workload
from tilewright.errors import InputError, Verdict
from tilewright.plugin import (
    AdapterSpec,
    CostModelSpec,
    FrontendSpec,
    InputSet,
    MapperSpec,
    MappingBatch,
    PluginSpec,
    Proposals,
    Run,
    Task,
)
from tilewright.testing.reference import PlainEvaluator, PlainModel
from tilewright_sick.faults import FAULTS


def _happens(place: str, value: Any, *arguments: Any) -> Any:
    """What is returned there, or what happens instead."""
    sick, _, fault = os.environ.get("TILEWRIGHT_SICK", "").partition(" ")
    return FAULTS[sick][fault](value, *arguments) if sick == place else value


class Mapper:
    def search(self, task: Task, run: Run) -> Any:
        return _happens("mapper.search", self._search(task, run), task, run)

    def _search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield _happens("mapper.step", task.space.sample(run.rng, 16), task, run)


class CostModel(PlainModel):
    def bind(self, problem: Problem, architecture: Architecture) -> Any:
        evaluator = Evaluator(problem, architecture)
        return _happens("costmodel.bind", evaluator, problem, architecture)


class Evaluator(PlainEvaluator):
    def evaluate_batch(self, batch: MappingBatch) -> Any:
        costs = super().evaluate_batch(batch)
        return _happens("costmodel.evaluate_batch", costs, batch) if len(batch) else costs

    def explain(self, mapping: Mapping) -> Any:
        verdict = super().explain(mapping)
        return _happens("costmodel.explain", verdict, mapping)


class Frontend:
    """Reads `sick:` and a formula."""

    def recognises(self, source: str) -> Any:
        return _happens("frontend.recognises", source.startswith("sick:"), source)

    def load(self, source: str) -> Any:
        problem = {
            "name": "sick",
            "dimensions": {"M": 4, "N": 4},
            "tensors": [
                {"name": "A", "role": "input", "projection": ["M"]},
                {"name": "B", "role": "weight", "projection": ["N"]},
                {"name": "Z", "role": "output", "projection": ["M", "N"]},
            ],
        }
        return _happens("frontend.load", Workload.of(Problem.model_validate(problem)), source)


class Adapter:
    """Our own YAML, each part in its file."""

    def expressible(self, inputs: InputSet) -> Any:
        return _happens("adapter.expressible", Verdict(), inputs)

    def render(self, inputs: InputSet) -> Any:
        parts = {"problem": inputs.problem, "architecture": inputs.architecture, "mapping": inputs.mapping}
        files = {f"{name}.yaml": part.to_yaml() for name, part in parts.items() if part is not None}
        return _happens("adapter.render", files, inputs)

    def parse(self, files: Sequence[Path]) -> Any:
        named = {path.name.split(".")[-2]: path for path in files}
        if not {"problem", "arch", "mapping"} <= set(named):
            raise InputError("a problem, an arch and a mapping are expected")
        inputs = InputSet(
            Problem.from_file(named["problem"]),
            Architecture.from_file(named["arch"]),
            Mapping.from_file(named["mapping"]),
        )
        return _happens("adapter.parse", inputs, files)


def sick_specs() -> list[PluginSpec[Any]]:
    """A plugin called `sick` of each kind."""
    kinds: dict[Any, type] = {
        MapperSpec: Mapper, CostModelSpec: CostModel, FrontendSpec: Frontend, AdapterSpec: Adapter,
    }  # fmt: skip

    def maker(made: type) -> Callable[[Any], Any]:
        return lambda options: _happens(f"{made.__name__.lower()}.factory", made(), options)

    return [kind(name="sick", summary="Is sick.", factory=maker(made)) for kind, made in kinds.items()]
