"""Workloads: equal layers are counted once, and what is not mapped keeps its reason."""

import pytest
from hypothesis import given

from support.problems import problem_of
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright.testing.strategies import problems


@given(problems())
def test_equal_work_has_one_key_whatever_its_name(problem: Problem) -> None:
    other = problem.model_copy(update={"name": "other", "source": "elsewhere"})
    assert Problem.model_validate(other.model_dump()).content_key == problem.content_key
    layers = (Layer(problem=problem), Layer(problem=other, after=(problem.name,)))
    workload = Workload(name="w", layers=layers)
    (distinct,) = workload.distinct()
    assert distinct.count == 2 and workload.macs == 2 * problem.macs
    assert list(workload.graph.edges) == [(problem.name, "other")]
    assert workload.graph.nodes["other"]["macs"] == problem.macs


def test_unmapped_operators_keep_their_reason() -> None:
    layer = Layer(problem=problem_of("M", "M K"))
    skipped = Unmapped(name="r", operator="Relu", reason="works element by element", operations=4)
    workload = Workload(name="w", layers=(layer,), unmapped=(skipped,))
    assert Workload.from_yaml(workload.to_yaml()) == workload
    with pytest.raises(ValueError, match="not a layer"):
        Workload(name="w", layers=(Layer(problem=layer.problem, after=("x",)),))
    with pytest.raises(ValueError, match="layer names repeat: p"):
        Workload(name="w", layers=(layer, layer))
