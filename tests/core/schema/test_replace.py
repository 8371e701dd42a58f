"""Changes by path: what is named changes, nothing else, and what comes out is checked as a file is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.errors import InputError
from tilewright.testing.strategies import architectures, problems

EYERISS = tw.library.architecture("eyeriss")
CONV = tw.load("quickflow_convs/V", kind="problem")


@given(architectures(), st.integers(1, 2**20))
def test_one_capacity_changes_and_nothing_else(architecture: tw.Architecture, words: int) -> None:
    for memory in architecture.memories:
        new = architecture.replace({f"{memory.name}.capacity_words": words})
        assert [each.capacity_words for each in new.memories] == [
            words if each.name == memory.name else each.capacity_words for each in architecture.memories
        ]
        assert new.replace({f"{memory.name}.capacity_words": memory.capacity_words}) == architecture


@given(problems(), st.data())
def test_one_size_changes_and_nothing_else(problem: tw.Problem, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(problem.dimension_names))
    new = problem.replace({f"dimensions.{name}": 7})

    assert new.dimensions == {**problem.dimensions, name: 7}
    assert new.replace({f"dimensions.{name}": problem.dimensions[name]}) == problem


def test_nested_fields_and_several_at_once() -> None:
    new = EYERISS.replace(
        {"Column.fanout.size": 4, "PE.fanout.network.energy_per_hop_pj": 2, "compute.word_bits": 8, "clock_ghz": 0.2}
    )

    assert (new.clusters[2].fanout.size, new.clusters[3].fanout.network.energy_per_hop_pj) == (4, 2.0)
    assert (new.compute.word_bits, new.clock_ghz) == (8, 0.2)
    assert CONV.replace({"name": "x", "tensors.Inputs.role": "weight"}).tensor("Inputs").role == "weight"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"GlobalBufer.capacity_words": 1}, "did you mean 'GlobalBuffer.capacity_words'"),
        ({"GlobalBuffer.capacity": 1}, "known: GlobalBuffer.name"),
        ({"nothing": 1}, "paths begin with DRAM, GlobalBuffer, Column, PE"),
        ({"GlobalBuffer.capacity_words": -1}, "greater than or equal to 1"),
        ({"GlobalBuffer.capacity_words": "many"}, "expected a whole number of words"),
        ({"GlobalBuffer.name": "x"}, "refers to 2 values"),
        ({"DRAM.fanout.axis": "no axis"}, "axis"),
        ({"kind": "problem"}, "no value at 'kind'"),
    ],
)
def test_wrong_changes_say_what_is_right(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        EYERISS.replace(changes)
    assert said in str(error.value)


def test_a_dimension_in_other_letters_is_suggested() -> None:
    with pytest.raises(InputError, match="did you mean 'dimensions.N'"):
        CONV.replace({"dimensions.n": 4})
