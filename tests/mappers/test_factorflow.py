"""`factorflow` compared with the recorded mappings of the original and of Sunstone."""

import pytest

from support.recorded.searches import RecordedRun, factorflow, sunstone
from tilewright.application.run.search import search
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec

RUNS = [each for each in factorflow() if each.fits]


@pytest.mark.parametrize("recorded", RUNS[::6], ids=str)
def test_factorflow_does_as_well_as_the_original(recorded: RecordedRun) -> None:
    """No worse than the mapping that FactorFlow found, both evaluated by the same model."""
    space = recorded.space
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    theirs = recorded.mapping
    assert space.contains(theirs[0])
    cost = float(evaluator.evaluate_batch(theirs).edp[0])
    assert cost == pytest.approx(recorded.edp_pj_cycles, rel=0.15)  # their model leaves a little out
    result = search(installed().make(MapperSpec, "factorflow"), Task(space), evaluator, Budget())
    assert result.stop == "finished" and result.value <= cost * (1 + 1e-9)


def test_mappings_that_do_not_fit_are_known() -> None:
    """FactorFlow's check of capacities leaves strides out; ours does not."""
    for recorded in factorflow():
        assert recorded.candidates.fits()[0] == recorded.fits, str(recorded)


@pytest.mark.parametrize("recorded", sunstone(), ids=str)
def test_sunstones_recorded_mappings_are_of_the_space(recorded: RecordedRun) -> None:
    """Its model has no bandwidth of L1, by which the kernels are bound here."""
    space = recorded.space
    assert space.contains(recorded.mapping[0]) and recorded.candidates.fits()[0]
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    cost = float(evaluator.evaluate_batch(recorded.mapping).edp[0])
    assert 0.95 < cost / recorded.edp_pj_cycles < (1.0001 if recorded.workload == "sunstone_layers" else 1.7)
