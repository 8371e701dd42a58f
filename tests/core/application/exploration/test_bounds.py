"""Bounds: no mapping costs less, by any cost model that offers a relaxation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.map_spaces import rules
from support.problems import problem_of
from tilewright.errors import NotConformableError
from tilewright.mapspace.counting import used_words
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import CostModel, Relaxable
from tilewright.plugin.registry import installed
from tilewright.plugin.relaxed import least_of, relaxed_costs, usable_units
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Cutting
from tilewright.schema.problem import Problem
from tilewright.testing.reference import PlainModel
from tilewright.testing.strategies import architectures, problems

MODELS: dict[str, CostModel] = {"plain": PlainModel(), "timeloop": installed().make(CostModelSpec, "timeloop")}


@pytest.mark.parametrize("model", MODELS)
@given(problem=problems(), data=st.data())
def test_no_mapping_costs_less(model: str, problem: Problem, data: st.DataObject) -> None:
    architecture = data.draw(architectures(widths=model == "timeloop"))
    factors: Cutting = data.draw(st.sampled_from(("perfect", "ragged")))
    space = MapSpace.of(problem, architecture, data.draw(st.none() | rules(problem, architecture)), factors=factors)
    if space.factorizations == 0:
        return
    try:
        evaluator = MODELS[model].bind(problem, architecture)
    except NotConformableError:
        return
    batch = space.sample(np.random.default_rng(0), 200).batch()
    costs = evaluator.evaluate_batch(batch)
    energy, cycles = least_of(space, evaluator)

    assert (costs.energy_pj[costs.valid] >= energy * (1 - 1e-9)).all()
    assert (costs.cycles[costs.valid] >= cycles * (1 - 1e-9)).all()
    assert energy > 0 or not costs.energy_pj[costs.valid].any()

    relaxation = evaluator.relaxation(space.skeleton, space.keeps) if isinstance(evaluator, Relaxable) else None
    if relaxation is not None:  # the same of each mapping, by its words
        bounds = relaxed_costs(relaxation, architecture, batch)
        assert (costs.energy_pj >= bounds.energy_pj * (1 - 1e-9)).all()
        assert (costs.cycles >= bounds.cycles * (1 - 1e-9)).all()


def test_words_between_strides_are_not_used() -> None:
    problem = problem_of("n", "4*n+r", n=3, r=2)

    assert used_words(problem, problem.tensors[0]) == 6  # of 10 from the first to the last


def test_where_tiles_divide_fourteen_columns_take_eight() -> None:
    array = Architecture.from_yaml("""
name: array
clusters:
- {name: chip, memories: [{name: DRAM, read_energy_pj: 1, write_energy_pj: 1}], fanout: {size: 14}}
- {name: unit}
compute: {energy_per_operation_pj: 1}
""")
    problem = problem_of("n", "n", n=64)
    units = [usable_units(MapSpace.of(problem, array, None, factors=each)) for each in ("perfect", "ragged")]

    assert units == [8, 14]
