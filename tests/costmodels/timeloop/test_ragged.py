"""Tiles that do not divide: `timeloop` counts what is executed, where it does so of tiles that divide.

RAGGED_EXAMPLES=100000 python -m pytest tests/costmodels/timeloop/test_ragged.py tries as many, in hours.
"""

import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from support.ragged import Case, ragged
from tilewright.mapspace.batch import MappingBatch
from tilewright.run.differences import differences
from tilewright.schema.report import Report
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.approximations import OF_TIMELOOP
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopModel

EXAMPLES = settings(max_examples=int(os.environ.get("RAGGED_EXAMPLES", settings().max_examples)))


def both(case: Case, links: bool = False) -> tuple[Report, Report]:
    """What is executed, and what `timeloop` says."""
    problem, architecture, mapping = case
    executed = OracleModel(OracleOptions()).bind(problem, architecture).explain(mapping)
    found = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture).explain(mapping)
    assert executed.valid and found.valid, (executed.reasons, found.reasons)
    return executed, found


@EXAMPLES
@given(ragged(plain=True))
def test_all_is_as_executed_where_tiles_are_equal_or_disjoint(case: Case) -> None:
    executed, found = both(case)
    assert differences(*case, executed, found, ()) == ()
    assert found.cycles == executed.cycles
    assert [(limit.name, limit.action, limit.words) for limit in found.limits] == [
        (limit.name, limit.action, limit.words) for limit in executed.limits
    ]
    assert [level.instances for level in found.levels] == [level.instances for level in executed.levels]
    for mine, other in zip(found.levels, executed.levels, strict=True):
        assert {name: (row.instances, row.tile_words) for name, row in mine.tensors.items()} == {
            name: (row.instances, row.tile_words) for name, row in other.tensors.items()
        }
    if all(memory.block_words == 1 for memory in case[1].memories):
        assert found.energy_pj == pytest.approx(executed.energy_pj, rel=1e-9)


@EXAMPLES
@given(ragged(), st.booleans())
def test_every_difference_has_a_cause(case: Case, links: bool) -> None:
    executed, found = both(case, links)
    computing = [report.limits[0].cycles for report in (executed, found)]
    assert computing[0] == computing[1]
    for each in differences(*case, executed, found, OF_TIMELOOP):
        assert set(Counter(cause.code for cause in each.causes)) - {"rounding"}, each


@given(ragged(), st.booleans())
def test_batch_equals_scalar(case: Case, links: bool) -> None:
    problem, architecture, mapping = case
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture)
    report = evaluator.explain(mapping)
    costs = evaluator.evaluate_batch(MappingBatch.pack(problem, [mapping, mapping]))
    assert costs.valid.all() and report.contradiction() is None and report.energy_pj is not None
    np.testing.assert_allclose(costs.energy_pj, report.energy_pj, rtol=1e-12)
    assert (costs.cycles == report.cycles).all()


@given(ragged(), st.booleans())
def test_no_bound_is_above_the_cost(case: Case, links: bool) -> None:
    problem, architecture, mapping = case
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture)
    batch = MappingBatch.pack(problem, [mapping])
    costs = evaluator.evaluate_batch(batch)
    for entries in range(1, len(batch.skeleton) + 1):
        bounds = evaluator.bound(batch, entries)
        assert (
            bounds.valid.all() and (bounds.energy_pj <= costs.energy_pj).all() and (bounds.cycles <= costs.cycles).all()
        )


@pytest.mark.parametrize("arch", ["eyeriss", "simba"])
def test_trips_of_a_ragged_space_cost_what_their_tile_sizes_do(arch: str) -> None:
    space = tw.space("quickflow_convs/VIII", arch, factors="ragged")
    drawn = space.sample(np.random.default_rng(5), 2000)
    for links in (True, False):
        evaluator = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(space.problem, space.architecture)
        costs, tiles = evaluator.evaluate_candidates(drawn), evaluator.evaluate_batch(drawn.batch())
        valid = np.flatnonzero(costs.valid)
        assert len(valid) and tiles.valid[valid].all()
        np.testing.assert_array_equal(costs.energy_pj[valid], tiles.energy_pj[valid])
        np.testing.assert_array_equal(costs.cycles[valid], tiles.cycles[valid])
        report = evaluator.explain(drawn[int(valid[0])])
        assert report.energy_pj == pytest.approx(costs.energy_pj[valid[0]], rel=1e-12)
        assert report.cycles == costs.cycles[valid[0]]
