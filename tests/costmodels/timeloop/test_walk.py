"""The closed form of `timeloop` equals the stepwise visit of the loop nest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.profiles import scaled
from support.timeloop_walk import walk
from tilewright.schema.architecture import Architecture, Network
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel


@st.composite
def triples(draw: st.DrawFn, units: int = 1) -> tuple[Problem, Architecture, Mapping]:
    """Draw inputs whose NoCs cost energy, with at least `units` compute units below the innermost cluster."""
    problem = draw(problems(max_macs=1024))
    plain = draw(architectures(widths=True, unlinked=True))
    *outer, last = plain.clusters
    last = last.model_copy(update={"fanout": last.fanout.model_copy(update={"size": max(units, last.fanout.size)})})
    plain = plain.model_copy(update={"clusters": (*outer, last)})
    network = Network(energy_per_hop_pj=0.375, energy_per_router_pj=0.0625, energy_per_ingress_pj=0.125)
    clusters = tuple(
        cluster.model_copy(update={"fanout": cluster.fanout.model_copy(update={"network": network})})
        for cluster in plain.clusters
    )
    architecture = plain.model_copy(update={"clusters": clusters})
    return problem, architecture, draw(mappings(problem, architecture))


@scaled(2)
@given(triples() | triples(units=4), st.booleans())
def test_closed_form_equals_literal_walk(triple: tuple[Problem, Architecture, Mapping], links: bool) -> None:
    problem, architecture, mapping = triple
    report = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture).explain(mapping)
    assert report.valid, report.reasons
    walked = walk(problem, architecture, mapping, link_transfers=links)
    assert report.cycles == walked.cycles
    assert report.energy_pj == pytest.approx(walked.energy_pj, rel=1e-9)
    for level, expected in zip(report.levels, walked.levels, strict=True):
        assert level.name == expected.name
        for name, counts in expected.tensors.items():
            found = level.tensors[name]
            assert (found.reads, found.fills, found.updates) == (counts.reads, counts.fills, counts.updates)
            assert (found.tile_words, found.partition_words) == (counts.tile_words, counts.partition_words)
