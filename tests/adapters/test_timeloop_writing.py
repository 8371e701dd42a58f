"""Writing Timeloop's files: what is read back equals what was written, and costs the same."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.adapter import InputSet
from tilewright.document import parse_document
from tilewright.errors import NotConformableError
from tilewright.mapspace import MapSpace
from tilewright.report import Report
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_costmodels.timeloop.model import TimeloopModel

EXAMPLES = int(os.environ.get("TILEWRIGHT_EXAMPLES", "100"))
"""Random triples of problem, architecture and mapping per property."""
OURS = "tilewright.yaml"
PARTS = ("problem", "architecture", "mapping", "constraints")
KNOWN = {
    *("uneven", "siblings", "unvisited", "step_after_split", "two_loops", "two_axes", "multicast", "imperfect", "axis"),
    *("coverage", "backing", "keep", "split"),
}
many = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
versions = pytest.mark.parametrize("adapter", [TimeloopAdapter("v3"), TimeloopAdapter("v4")], ids=["v3", "v4"])


def read(adapter: TimeloopAdapter, files: dict[str, str], *, ours: bool = True) -> InputSet:
    """What the files say; without `ours`, what Timeloop sees of them."""
    return adapter.read([parse_document(text, source=name) for name, text in files.items() if ours or name != OURS])


def figures(report: Report) -> object:
    """All figures that are not names; levels that keep nothing have none."""
    levels = [
        (level.instances, level.cycles, level.energy_pj, [tuple(counts) for counts in level.tensors.values()])
        for level in report.levels
        if level.tensors
    ]
    return (report.valid, report.cycles, report.energy_pj, report.utilization, levels)


def price(inputs: InputSet) -> Report:
    assert inputs.problem and inputs.architecture and inputs.mapping
    return TimeloopModel().bind(inputs.problem, inputs.architecture).explain(inputs.mapping)


def holds(adapter: TimeloopAdapter, inputs: InputSet) -> bool:
    """Check the law on one set of inputs; whether it could be written."""
    verdict = adapter.expressible(inputs)
    if not verdict:
        assert {reason.code for reason in verdict.reasons} <= KNOWN
        assert all(reason.where and reason.message for reason in verdict.reasons)
        with pytest.raises(NotConformableError) as caught:
            adapter.render(inputs)
        assert caught.value.reasons == verdict.reasons
        return False
    files = adapter.render(inputs)
    again, seen = read(adapter, files), read(adapter, files, ours=False)
    assert all(getattr(again, part) == getattr(inputs, part) for part in PARTS)
    assert figures(price(seen)) == figures(price(inputs))
    return True


@versions
@many
@given(st.data())
def test_any_mapping_comes_back_and_costs_the_same_or_is_refused(adapter: TimeloopAdapter, data: st.DataObject) -> None:
    problem = data.draw(problems(max_dimensions=7, max_macs=400, max_operands=4))
    architecture = data.draw(architectures(roomy=False))
    holds(adapter, InputSet(problem, architecture, data.draw(mappings(problem, architecture))))


@versions
@many
@given(st.data())
def test_mappings_of_a_map_space_come_back_and_cost_the_same(adapter: TimeloopAdapter, data: st.DataObject) -> None:
    problem = data.draw(problems(max_dimensions=7, max_macs=400, max_operands=4))
    architecture = data.draw(architectures(roomy=False))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    for mapping in MapSpace.of(problem, architecture).sample(rng, 3):
        holds(adapter, InputSet(problem, architecture, mapping))
