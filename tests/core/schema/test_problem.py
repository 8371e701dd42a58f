"""Problems: one key for equal work, ranks as sums, tiles as bounding boxes, and what is refused."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import InputError
from tilewright.schema.problem import Problem, Rank, parse_terms


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9), min_size=1, max_size=3))
def test_ranks_are_written_as_sums(terms: dict[str, int]) -> None:
    rank = Rank.model_validate({"terms": terms})
    assert parse_terms(str(rank)) == terms
    assert Rank.model_validate(str(rank)) == rank


def test_a_tile_is_the_bounding_box_of_what_it_touches() -> None:
    problem = Problem.from_yaml(
        """
        name: c
        dimensions: {P: 5, R: 3}
        tensors:
        - {name: I, role: input, projection: [4*P + R]}
        - {name: W, role: weight, projection: [R]}
        - {name: O, role: output, projection: [P]}
        """
    )
    inputs = problem.tensor("I")
    assert problem.tensor_words(inputs) == 1 + 4 * 4 + 2
    assert problem.tile_words(inputs, {"P": 2, "R": 3}) == 7  # one word between the windows is never used
    assert problem.projection_matrix(inputs).tolist() == [[4, 1]]
    assert problem.is_affine and problem.macs == 15


@given(
    terms=st.dictionaries(st.sampled_from("abc"), st.integers(1, 6), min_size=1, max_size=3),
    sizes=st.lists(st.integers(1, 8), min_size=3, max_size=3),
)
def test_distinct_words_are_those_that_some_iteration_touches(terms: dict[str, int], sizes: list[int]) -> None:
    data = {"name": "p", "dimensions": dict(zip("abc", sizes, strict=True))}
    tensors = [{"name": "T", "role": role, "projection": [{"terms": terms}, "b"]} for role in ("input", "output")]
    problem = Problem.model_validate(data | {"tensors": [tensors[0], tensors[1] | {"name": "O"}]})
    extents, tensor = dict(problem.dimensions), problem.tensors[0]
    reached = [range(extents[name]) for name in terms]
    touched = {sum(c * i for c, i in zip(terms.values(), point, strict=True)) for point in itertools.product(*reached)}
    values = len(touched) if len(terms) <= 2 else 1 + sum(c * (extents[name] - 1) for name, c in terms.items())
    assert problem.distinct_words(tensor, extents) == values * extents["b"]
    assert problem.distinct_words(tensor, extents) <= problem.tile_words(tensor, extents)
    assert problem.is_strided or problem.distinct_words(tensor, extents) == problem.tile_words(tensor, extents)


PROBLEM = """
name: g
dimensions: {M: 4, K: 4}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: Z, role: output, projection: [M]}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("M: 4, ", "M: 4.5, ", "<text>:3:17: dimensions.M: expected a whole number"),
        ("M: 4, ", "M: true, ", "<text>:3:17: dimensions.M"),
        ("M: 4, ", "1M: 4, ", "dimensions"),
        ("role: output", "role: input", "exactly one tensor must have role output"),
        ("name: Z", "name: A", "tensor names repeat: A"),
        ("projection: [M]", "projection: [M*]", "cannot read 'M*'"),
        ("projection: [M]", "projection: [0*M]", "projection[0]"),
        ("projection: [M]", "projection: [M, N]", "uses dimension N, which has no size"),
        ("role: input", "roll: input", "unknown key 'roll'; did you mean 'role'?"),
    ],
)
def test_problems_that_make_no_sense_are_refused(old: str, new: str, message: str) -> None:
    assert old in PROBLEM
    with pytest.raises(InputError) as caught:
        Problem.from_yaml(PROBLEM.replace(old, new))
    assert message in str(caught.value)
