"""Better hardware never costs more: more bandwidth costs no cycles, a larger memory invalidates nothing."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.plugin.costmodel import CostModel
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopModel

both_models = pytest.mark.parametrize(
    "model", [TimeloopModel(TimeloopOptions()), OracleModel(OracleOptions())], ids=["timeloop", "oracle"]
)


def changed(architecture: Architecture, name: str, change: Callable[[Memory], dict[str, object]]) -> Architecture:
    """The architecture with one memory changed."""
    clusters = tuple(
        cluster.model_copy(
            update={
                "memories": tuple(
                    memory.model_copy(update=change(memory)) if memory.name == name else memory
                    for memory in cluster.memories
                )
            }
        )
        for cluster in architecture.clusters
    )
    return architecture.model_copy(update={"clusters": clusters})


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, Architecture, Mapping, str]:
    """A problem, an architecture with bandwidths and capacities, a mapping that may not fit, and one of the memories."""
    problem, architecture = draw(problems(max_macs=200)), draw(architectures(roomy=False, widths=True))
    mapping = draw(mappings(problem, architecture))
    return problem, architecture, mapping, draw(st.sampled_from([memory.name for memory in architecture.memories]))


@both_models
@given(case=cases(), times=st.sampled_from([1.5, 2.0, 7.0, None]))
def test_more_bandwidth_never_costs_cycles(
    case: tuple[Problem, Architecture, Mapping, str], times: float | None, model: CostModel
) -> None:
    problem, architecture, mapping, name = case

    def faster(memory: Memory) -> dict[str, object]:
        return {
            field: None if times is None or value is None else value * times
            for field, value in (
                ("read_bandwidth_words_per_cycle", memory.read_bandwidth_words_per_cycle),
                ("write_bandwidth_words_per_cycle", memory.write_bandwidth_words_per_cycle),
                ("shared_bandwidth_words_per_cycle", memory.shared_bandwidth_words_per_cycle),
            )
        }

    before = model.bind(problem, architecture).explain(mapping)
    after = model.bind(problem, changed(architecture, name, faster)).explain(mapping)
    assert after.valid == before.valid
    if before.cycles is not None and after.cycles is not None:
        assert after.cycles <= before.cycles
        assert [level.tensors for level in after.levels] == [level.tensors for level in before.levels]
        assert after.energy_pj is not None and before.energy_pj is not None
        assert after.energy_pj <= before.energy_pj, "less leaks"


@both_models
@given(case=cases(), more=st.sampled_from([1, 2, 100, None]))
def test_a_larger_memory_never_invalidates(
    case: tuple[Problem, Architecture, Mapping, str], more: int | None, model: CostModel
) -> None:
    problem, architecture, mapping, name = case

    def larger(memory: Memory) -> dict[str, object]:
        words = memory.capacity_words
        return {"capacity_words": None if words is None or more is None else words + more}

    before = model.bind(problem, architecture).explain(mapping)
    after = model.bind(problem, changed(architecture, name, larger)).explain(mapping)
    assert after.valid or not before.valid
    if before.valid:
        assert (after.cycles, after.energy_pj) == (before.cycles, before.energy_pj)
