"""im2col: convolutions as matrix products; what the matrix costs, and when it is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.application.algorithms.equality import executed
from tilewright.errors import NotConformableError
from tilewright.plugin import installed
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.schema.problem import Problem

IM2COL = installed().make(AlgorithmSpec, "im2col")


@st.composite
def convolutions(draw: st.DrawFn) -> Problem:
    """One or two axes, with batch and groups or without, strides and dilations; the weights may come first."""
    small = st.integers(1, 3)
    sizes = {name: draw(small) for name in "NGKC"} | {name: draw(small) for name in "PQRS"}
    windows = [f"{draw(small)}*{axis} + {draw(small)}*{offset}" for axis, offset in ("PR", "QS")]
    tensors = [
        {"name": "I", "role": "input", "projection": ["N", "G", "C", *windows]},
        {"name": "W", "role": "weight", "projection": ["G", "K", "C", "R", "S"]},
    ]
    output = {"name": "O", "role": "output", "projection": ["N", "G", "K", "P", "Q"]}
    return Problem.model_validate(
        {"name": "conv", "dimensions": sizes, "tensors": [*draw(st.permutations(tensors)), output]}
    )


@given(convolutions())
def test_both_ways_compute_the_same_tensor(problem: Problem) -> None:
    explicit, implicit = IM2COL.alternatives(problem)
    for found in (explicit, implicit):
        seen = executed(problem, found)
        assert list(found.faults(problem)) == []
        assert seen is not None and seen.right
        assert not found.exact or seen.scattered == ()

    assert explicit.exact and explicit.steps == implicit.steps
    assert [move for move in explicit.movements if move.tensor != "I"] == list(implicit.movements)


def of_resnet(layer: str) -> tuple[Problem, int, int]:
    """(the problem, words read of the input, words of the matrix)."""
    problem = tw.load(f"resnet50/{layer}", kind="problem")
    explicit, _ = IM2COL.alternatives(problem)
    moved = {move.tensor: move for move in explicit.movements}.get("Inputs")
    return problem, 0 if moved is None else moved.words_read, 0 if moved is None else moved.words_written


def test_a_7x7_with_stride_2_has_a_matrix_of_its_windows() -> None:
    problem, read, written = of_resnet("n0")
    size = problem.dimensions

    assert written == size["N"] * size["P"] * size["Q"] * size["C"] * size["R"] * size["S"]
    assert read == problem.tensor_words(problem.operands[0])  # windows overlap: the box has no holes
    assert written / read == pytest.approx(11.7, abs=0.2)


def test_a_1x1_is_a_view() -> None:
    problem = tw.load("O[n,k,p,q] += I[n,c,p+r,q+s] * W[k,c,r,s]; n=1 k=4 c=3 p=5 q=5 r=1 s=1", kind="problem")
    explicit, implicit = IM2COL.alternatives(problem)

    assert explicit.movements == implicit.movements == () and implicit.exact


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("nk,km->nm; n=4 k=5 m=6", "it is a gemm"),
        ("O[p+r] += I[p] * W[r]; p=4 r=3", "it is a conv_transpose"),
        ("O[p] += I[p+r+s] * W[r,s]; p=4 r=3 s=2", "it is not a convolution"),
    ],
)
def test_other_work_is_refused(formula: str, told: str) -> None:
    with pytest.raises(NotConformableError, match=told):
        IM2COL.alternatives(tw.load(formula, kind="problem"))
