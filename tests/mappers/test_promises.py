"""Requirements of every mapper, on random problems and architectures, and the own rules of each one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import interrupts
from support.grid import OPTIONS, usable
from support.profiles import scaled
from tilewright.application.run.search import search
from tilewright.errors import NotConformableError, NoValidMappingError, SpaceTooLargeError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Costs, Evaluator
from tilewright.plugin.mapper import Budget, Mapper, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, problems
from tilewright_costmodels import OracleOptions
from tilewright_costmodels.oracle.model import OracleModel

pytestmark = pytest.mark.exhaustive
SHORT_SAMPLE = 16

"""Random pairs of problem and architecture per mapper and property."""
MAPPERS = sorted(each.spec.name for each in usable(MapperSpec) if each.distribution == "tilewright")
REFUSALS = (SpaceTooLargeError, NotConformableError, NoValidMappingError)
pairs = st.tuples(problems(max_dimensions=6, max_macs=400), architectures(roomy=False, widths=True))
few = scaled(0.06)


def mapper(name: str) -> Mapper:
    return installed().make(MapperSpec, name, OPTIONS[name] if name == "mindmappings" else {})


def evaluator_of(space: MapSpace) -> Evaluator:
    return installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)


def run(
    name: str, space: MapSpace, evaluator: Evaluator | None = None, seed: int = 3, evaluations: int = 1500
) -> Result:
    return search(mapper(name), Task(space), evaluator or evaluator_of(space), Budget(evaluations), seed=seed)


@pytest.mark.parametrize("name", MAPPERS)
@few
@given(pairs)
def test_the_best_is_legal_of_the_space_and_right(name: str, pair: tuple[Problem, Architecture]) -> None:
    """Never an invalid mapping, no crash, and the same again; what it found computes the right result."""
    space = MapSpace.of(*pair, rules=None)
    result, again = run(name, space), run(name, space)

    assert result.error is None or isinstance(result.error, REFUSALS), result.error
    assert (result.best, result.value, result.evaluated) == (again.best, again.value, again.evaluated)
    assert result.rejected == 0
    if result.best is not None:
        assert legality(space.problem, space.architecture, result.best)
        assert space.contains(result.best), space.contains(result.best)
        report = OracleModel(OracleOptions()).bind(space.problem, space.architecture).explain(result.best)
        assert report.valid, report.reasons


class Watched:
    """Model that may be interrupted, and whose clock advances with every batch."""

    def __init__(self, evaluator: Evaluator, interrupted_at: int | None = None) -> None:
        self.evaluator, self.interrupted_at = evaluator, interrupted_at
        self.batches, self.best = 0, np.inf

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        if not len(batch):  # to warm up
            return self.evaluator.evaluate_batch(batch)
        if self.batches == self.interrupted_at:
            interrupts.press()
        self.batches += 1
        costs = self.evaluator.evaluate_batch(batch)
        self.best = min(self.best, float(costs.edp.min(initial=np.inf)))
        return costs

    def evaluate(self, mapping: Mapping) -> Costs:
        return self.evaluator.evaluate(mapping)

    def explain(self, mapping: Mapping) -> Report:
        return self.evaluator.explain(mapping)


@pytest.mark.parametrize("name", MAPPERS)
@few
@given(pairs, st.integers(0, 4))
def test_whatever_stops_it_the_best_so_far_is_returned(
    name: str, pair: tuple[Problem, Architecture], batches: int
) -> None:
    space = MapSpace.of(*pair, rules=None)
    interrupted = Watched(evaluator_of(space), batches)
    with interrupts.heard():
        result = search(mapper(name), Task(space), interrupted, Budget(1500))
    assert result.stop in ("cancelled", "finished", "evaluations") or isinstance(result.error, REFUSALS)
    assert result.value == interrupted.best

    late = Watched(evaluator_of(space))
    result = search(mapper(name), Task(space), late, Budget(1500, seconds=batches + 0.5), clock=lambda: late.batches)
    assert result.stop in ("deadline", "finished", "evaluations") or isinstance(result.error, REFUSALS)
    assert late.batches <= batches + 1
    assert result.value == late.best
