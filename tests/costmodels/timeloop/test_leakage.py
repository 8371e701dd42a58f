"""Leakage: per cycle and instance in use, or per instance below a switch in use."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.schema.architecture import Architecture
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopModel

MODELS = [TimeloopModel(TimeloopOptions()), OracleModel(OracleOptions())]


def tight(architecture: Architecture) -> Architecture:
    return architecture.replace({f"{memory.name}.leakage_pj_per_cycle": 0.0 for memory in architecture.memories})


@pytest.mark.parametrize("model", MODELS, ids=["timeloop", "oracle"])
@given(st.data())
def test_leakage_is_cycles_by_instances(model: TimeloopModel | OracleModel, data: st.DataObject) -> None:
    problem = data.draw(problems(max_dimensions=4, max_macs=200))
    architecture = data.draw(architectures())
    mapping = data.draw(mappings(problem, architecture))
    report = model.bind(problem, architecture).explain(mapping)
    without = model.bind(problem, tight(architecture)).explain(mapping)
    assert report.valid == without.valid
    if not report.valid:
        return
    assert report.energy_pj and without.energy_pj and report.cycles and report.compute_energy_pj
    in_use = {memory.name: 1 for memory in architecture.memories}
    in_use |= {level.name: max((t.instances for t in level.tensors.values()), default=1) for level in report.levels}
    expected = 0.0
    for level in report.levels:
        cluster = architecture.cluster_of(level.name)
        (memory,) = cluster.memories
        exist = architecture.instances[architecture.cluster_index[cluster.name]]
        instances = in_use[level.name] if memory.power_gated_at is None else exist * in_use["M0"]  # there is one M0
        leaked = memory.leakage_pj_per_cycle * report.cycles * instances
        assert level.leakage_pj == pytest.approx(leaked)
        expected += leaked
    assert report.energy_pj == pytest.approx(without.energy_pj + expected)
    assert np.isclose(sum(level.energy_pj for level in report.levels) + report.compute_energy_pj, report.energy_pj)
