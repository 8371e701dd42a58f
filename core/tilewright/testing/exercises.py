"""One typical use of each kind of plugin, without checks of the results."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.errors import NotConformableError
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.mapper import Budget, Run
from tilewright.plugin.specs import (
    AdapterSpec,
    AlgorithmSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    MapperSpec,
    PluginSpec,
    StrategySpec,
)
from tilewright.testing.checks.estimator import questions
from tilewright.testing.checks.groupmapper import tasks
from tilewright.testing.checks.mapper import REFUSALS, driven
from tilewright.testing.checks.strategy import explored, task
from tilewright.testing.corpus import Sample
from tilewright.testing.kit import Subject


def exercise(subject: Subject) -> None:
    """Build the plugin and use it once. All its errors are passed to the caller."""
    EXERCISES[type(subject.spec)](subject)


def _mapper(subject: Subject) -> None:
    for sample in subject.samples():
        run = Run(np.random.default_rng(7), Budget(200))
        with suppress(*REFUSALS):
            for _ in driven(subject.make(), sample, run):
                pass


def _group_mapper(subject: Subject) -> None:
    for asked in tasks():
        with suppress(NotConformableError):
            subject.make().search_group(asked)


def _cost_model(subject: Subject) -> None:
    sample = _first(subject)
    evaluator = subject.make().bind(sample.problem, sample.architecture)
    evaluator.evaluate_batch(sample.batch(4))
    for mapping in sample.batch(4):
        evaluator.explain(mapping)


def _frontend(subject: Subject) -> None:
    frontend = subject.make()
    for source in subject.all_sources():
        frontend.recognises(source)
        frontend.load(source)


def _adapter(subject: Subject) -> None:
    sample, adapter = _first(subject), subject.make()
    for mapping in sample.batch(4):
        inputs = InputSet(sample.problem, sample.architecture, mapping)
        if not adapter.expressible(inputs):
            continue
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / Path(name).name for name in adapter.render(inputs)]
            for path, text in zip(paths, adapter.render(inputs).values(), strict=True):
                path.write_text(text, encoding="utf-8")
            adapter.parse(paths)


def _algorithm(subject: Subject) -> None:
    algorithm = subject.make()
    for sample in subject.samples():
        with suppress(NotConformableError):
            algorithm.alternatives(sample.problem)


def _estimator(subject: Subject) -> None:
    estimator = subject.make()
    for question in questions(subject):
        estimator.estimate(*question)


def _strategy(subject: Subject) -> None:
    explored(subject.make(), task())


def _first(subject: Subject) -> Sample:
    return subject.samples()[0]


EXERCISES: dict[type[PluginSpec[Any]], Callable[[Subject], None]] = {
    MapperSpec: _mapper,
    GroupMapperSpec: _group_mapper,
    CostModelSpec: _cost_model,
    FrontendSpec: _frontend,
    AdapterSpec: _adapter,
    EstimatorSpec: _estimator,
    AlgorithmSpec: _algorithm,
    StrategySpec: _strategy,
}
