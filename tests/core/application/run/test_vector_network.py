import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.random_vectors import agrees, network, simulated
from tilewright.application.run.vector_network import Bar, UnitTask, dependences, in_order, length, schedule
from tilewright.errors import InputError
from tilewright.schema.workload import Workload

TASKS = [
    UnitTask("scores", "array", 10, 1, ()),
    UnitTask("softmax", "vector", 6, 1, ("scores",)),
    UnitTask("gate", "vector", 4, 1, ("scores",)),
    UnitTask("context", "array", 10, 1, ("softmax",)),
]


def test_units_run_in_parallel_where_data_allow() -> None:
    """The example of the module."""
    bars = schedule(TASKS)
    assert bars[2:] == (Bar("gate", "vector", 16, 20), Bar("context", "array", 16, 26))
    assert length(bars) == simulated(TASKS) == 26


def test_a_segment_is_executed_as_often_as_it_counts() -> None:
    tasks = [
        UnitTask("a", "array", 5, 3, ()),
        UnitTask("v", "vector", 2, 3, ("a",)),
        UnitTask("b", "array", 4, 1, ("v",)),
    ]
    assert length(schedule(tasks)) == simulated(tasks) == 3 * 7 + 4


@given(st.integers(0, 10**9))
def test_the_schedule_equals_a_simulation_of_events(seed: int) -> None:
    assert agrees(seed)


@pytest.mark.exhaustive
def test_the_schedule_equals_a_simulation_of_events_often() -> None:
    assert all(map(agrees, range(2000)))


@given(st.integers(0, 10**9))
def test_units_in_parallel_are_never_slower(seed: int) -> None:
    tasks = network(random.Random(seed))
    assert length(schedule(tasks)) <= sum(task.cycles * task.count for task in tasks)


def vector(name: str, after: list[str], before: list[str]) -> dict[str, object]:
    sizes = {"rows": 4, "row": 1, "operands": [{"name": "X", "words": 4}], "result": 4}
    return {"name": name, "operator": "Relu", "after": after, "before": before} | sizes


def workload(*vectors: dict[str, object]) -> Workload:
    tensors = [{"name": n, "role": r, "projection": ["k"]} for n, r in (("I", "input"), ("O", "output"))]
    layers = [
        {"problem": {"name": name, "dimensions": {"k": 4}, "tensors": tensors}, "after": after}
        for name, after in (("one", []), ("two", ["one"]), ("three", ["two"]))
    ]
    return Workload.model_validate({"name": "w", "layers": layers, "vectors": list(vectors)})


def test_vector_layers_follow_what_they_read() -> None:
    work = workload(vector("late", ["early"], []), vector("early", ["one"], ["two"]), vector("first", [], ["one"]))
    assert in_order(work, dependences(work)) == ["first", "one", "early", "late", "two", "three"]


def test_layers_that_wait_for_each_other_are_named() -> None:
    with pytest.raises(InputError, match="w: layers wait for each other: ") as caught:
        dependences(workload(vector("v", ["two"], ["one"])))
    assert "v" in caught.value.message and "after and before" in str(caught.value.hint)
