"""The bounds of `timeloop` on partial mappings never exceed the least cost of any completion."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright.mapspace.batch import Ints, MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Bounder, Costs
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, problems
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

MOST = 4000
"""Mappings of the largest space that is enumerated."""


def prefixes(batch: MappingBatch, entries: int) -> Ints:
    """A number per mapping, equal for those that agree in their outermost entries."""
    parts: list[np.ndarray] = [batch.temporal, batch.spatial, batch.order, batch.keep]
    parts += [part for part in (batch.spatial_order, batch.unicast) if part is not None]
    rows: Ints = np.concatenate([part[:, :entries].reshape(len(batch), -1).astype(np.int64) for part in parts], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def check(evaluator: Bounder, batch: MappingBatch, costs: Costs) -> None:
    """Every depth, every prefix, both figures."""
    for entries in range(1, len(batch.skeleton) + 1):
        bounds = evaluator.bound(batch, entries)
        group = prefixes(batch, entries)
        for bounded, cost in ((bounds.energy_pj, costs.energy_pj), (bounds.cycles, costs.cycles)):
            least = np.full(group.max() + 1, np.inf)
            np.minimum.at(least, group, cost)
            assert (bounded <= least[group]).all(), entries
        assert not (costs.valid & ~bounds.valid).any()


@given(problems(), architectures(widths=True), st.builds(TimeloopOptions), st.booleans())
def test_no_completion_costs_less(
    problem: Problem, architecture: Architecture, options: TimeloopOptions, outermost: bool
) -> None:
    space = MapSpace.of(problem, architecture, rules=None)
    assume(0 < space.size <= MOST)
    batch = Candidates.join(list(space.enumerate())).batch()
    if not outermost:  # the first tensor bypasses the outermost memory
        keep = batch.keep.copy()
        keep[:, 0, 0] = False
        batch = replace(batch, keep=keep)
    evaluator = TimeloopModel(options).dense(problem, architecture)
    check(evaluator, batch, evaluator.evaluate_batch(batch))


GEMM = """
name: gemm
dimensions: {M: 4, N: 4, K: 4}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: B, role: weight, projection: [K, N]}
- {name: Z, role: output, projection: [M, N]}
"""

ARRAY = """
name: array
clusters:
- {name: DRAM, memories: [{name: DRAM, technology: dram, read_energy_pj: 64, write_energy_pj: 64, read_bandwidth_words_per_cycle: 2}]}
- {name: Buffer, memories: [{name: Buffer, capacity_words: 24, read_energy_pj: 2, write_energy_pj: 2, block_words: 2}], fanout: {size: 4}}
- {name: PE, memories: [{name: Register, holds: [weight, output], capacity_words: 4, read_energy_pj: 0.5, write_energy_pj: 0.5}]}
compute: {energy_per_operation_pj: 0.2}
"""


def test_bounds_are_worth_having_and_tighten() -> None:
    problem, architecture = Problem.from_yaml(GEMM), Architecture.from_yaml(ARRAY)
    batch = MapSpace.of(problem, architecture, rules=None).sample(np.random.default_rng(0), 4000).batch()
    evaluator = TimeloopModel(TimeloopOptions()).dense(problem, architecture)
    costs = evaluator.evaluate_batch(batch)
    check(evaluator, batch, costs)
    share = [
        (evaluator.bound(batch, entries).energy_pj[costs.valid] / costs.energy_pj[costs.valid]).mean()
        for entries in range(1, len(batch.skeleton) + 1)
    ]
    assert share[0] > 0.3 and share[-1] == 1 and share == sorted(share)


def test_bounds_are_in_the_unit_of_the_energies() -> None:
    problem, data = Problem.from_yaml(GEMM), Architecture.from_yaml(ARRAY).to_data()
    found = list[list[float]]()
    for factor in (1.0, 2.0**-20):
        for each in [memory for cluster in data["clusters"] for memory in cluster["memories"]]:
            each |= {name: each[name] * factor for name in ("read_energy_pj", "write_energy_pj")}
        data["compute"]["energy_per_operation_pj"] *= factor
        architecture = Architecture.model_validate(data)
        batch = MapSpace.of(problem, architecture, rules=None).sample(np.random.default_rng(0), 100).batch()
        evaluator = TimeloopModel(TimeloopOptions()).dense(problem, architecture)
        bounds = [evaluator.bound(batch, entries).energy_pj for entries in range(1, len(batch.skeleton) + 1)]
        found.append((np.array(bounds) / factor).ravel().tolist())
    assert found[0] == found[1]


def test_no_completion_of_what_does_not_fit_is_valid() -> None:
    problem, architecture = Problem.from_yaml(GEMM), Architecture.from_yaml(ARRAY)
    batch = MapSpace.of(problem, architecture, rules=None).sample(np.random.default_rng(0), 500).batch()
    evaluator = TimeloopModel(TimeloopOptions()).dense(problem, architecture)
    whole = (batch.temporal[:, 1] == 4).all(axis=1) & batch.keep[:, 1].all(axis=1)  # 48 words in 24
    assert whole.any()
    bounds = evaluator.bound(batch, 2)
    assert not bounds.valid[whole].any() and np.isinf(bounds.energy_pj[whole]).all()


@pytest.mark.parametrize("entries", [0, -1, 99])
def test_entries_that_do_not_exist_are_refused(entries: int) -> None:
    problem, architecture = Problem.from_yaml(GEMM), Architecture.from_yaml(ARRAY)
    batch = MapSpace.of(problem, architecture, rules=None).sample(np.random.default_rng(0), 2).batch()
    with pytest.raises(ValueError, match="entries is"):
        TimeloopModel(TimeloopOptions()).dense(problem, architecture).bound(batch, entries)
