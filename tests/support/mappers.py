"""Spaces of the corpus, and searches of them by the plain model."""

import numpy as np

from tilewright.application.run.search import search
from tilewright.mapspace.constructive.placement import Placement
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import MapperSpec
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainEvaluator

FLAT, ARRAY, CONV = (SAMPLES[number].space for number in (1, 2, 3))


def run(name: str, space: MapSpace, budget: Budget = Budget(), **options: object) -> Result:  # noqa: B008
    evaluator = PlainEvaluator(space.problem, space.architecture)
    return search(installed().make(MapperSpec, name, options), Task(space), evaluator, budget, seed=1)


def placement(space: MapSpace) -> Placement:
    return Placement.of(space, np.random.default_rng(0))
