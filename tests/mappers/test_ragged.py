"""Mappers in ragged spaces: what they propose is of the space, and no worse than what they find among perfect factors."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.application.run.search import search
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Costs
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Variant
from tilewright.schema.problem import Problem
from tilewright.testing.reference import PlainEvaluator

pytestmark = pytest.mark.exhaustive
SHORT_SAMPLE = 12

MAPPERS = {each.spec.name: each.spec for each in installed().of_kind(MapperSpec) if each.distribution == "tilewright"}
RAGGED = ("random", "exhaustive", "optimal", "sunstone", "quickflow", "gamma", "factorflow", "local")

GEMM = Problem.from_yaml(
    """
name: gemm
dimensions: {M: 7, N: 10, K: 5}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: B, role: weight, projection: [K, N]}
- {name: Z, role: output, projection: [M, N]}
"""
)
CONV = Problem.from_yaml(
    """
name: conv
dimensions: {K: 5, P: 7, R: 3}
tensors:
- {name: I, role: input, projection: [2 * P + R]}
- {name: W, role: weight, projection: [K, R]}
- {name: O, role: output, projection: [K, P]}
"""
)
CHIP = Architecture.from_yaml(
    """
name: chip
clusters:
- {name: D, memories: [{name: D, read_energy_pj: 64, write_energy_pj: 64}]}
- name: G
  memories: [{name: G, capacity_words: 60, read_energy_pj: 4, write_energy_pj: 4}]
  fanout: {size: 4}
- name: R
  memories: [{name: R, capacity_words: 8, read_energy_pj: 1, write_energy_pj: 1}]
compute: {energy_per_operation_pj: 1}
"""
)


def rules(problem: Problem) -> Variant:
    one, two, *_ = problem.dimensions
    return Variant.model_validate(
        {
            "temporal": [{"memory": "D", "only": [one, two]}, {"memory": "G", "order": [two, one]}],
            "spatial": [{"cluster": "G", "min_utilization": 0.5}],
            "keep": [{"memory": "G", "free": ["weight"]}],
        }
    )


SPACES = [
    MapSpace.of(problem, CHIP, ruled, factors="ragged") for problem in (GEMM, CONV) for ruled in (None, rules(problem))
]


class Watching(PlainEvaluator):
    """Looks at some of what it is given."""

    def __init__(self, space: MapSpace) -> None:
        super().__init__(space.problem, space.architecture)
        self.space, self.rng = space, np.random.default_rng(0)

    def evaluate_candidates(self, given: Candidates) -> Costs:
        batch = given.batch()
        for mapping in batch.take(self.rng.integers(0, len(batch), min(4, len(batch)))):
            assert self.space.contains(mapping), self.space.contains(mapping)
        assert np.array_equal(Candidates.of(self.space, batch).trips, given.trips)
        return self.evaluate_batch(batch)


def run(name: str, space: MapSpace) -> Result:
    mapper = installed().make(MapperSpec, name, {"limit": 10**12} if name == "exhaustive" else {})
    return search(mapper, Task(space), Watching(space), Budget(evaluations=4000), seed=1)


def test_the_others_say_that_they_take_perfect_factors_only() -> None:
    assert {name for name, spec in MAPPERS.items() if spec.capabilities.imperfect_factors} == set(RAGGED)


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("space", SPACES, ids=["gemm", "gemm, rules", "conv", "conv, rules"])
def test_what_they_propose_is_of_the_ragged_space(name: str, space: MapSpace) -> None:
    if name == "exhaustive":  # of something smaller
        space = replace(
            space, problem=space.problem.model_copy(update={"dimensions": dict.fromkeys(space.problem.dimensions, 3)})
        )
    result = run(name, space)
    assert result.error is None and result.best is not None, result
    assert space.contains(result.best), space.contains(result.best)


@pytest.mark.parametrize("name", ["sunstone", "quickflow", "gamma", "factorflow"])
@pytest.mark.parametrize("space", SPACES, ids=["gemm", "gemm, rules", "conv", "conv, rules"])
def test_ragged_is_never_worse(name: str, space: MapSpace) -> None:
    """7 x 10 x 5 over four sub-clusters leaves most of them idle without ragged tiles."""
    assert run(name, space).value <= run(name, replace(space, factors="perfect")).value * (1 + 1e-9)
