"""space_to_depth: strided convolutions with stride 1, whose filters are padded to whole strides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.application.algorithms.equality import executed
from tilewright.errors import NotConformableError
from tilewright.plugin import installed
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.schema.problem import Problem

STRIDES = installed().make(AlgorithmSpec, "space_to_depth")


@st.composite
def strided(draw: st.DrawFn) -> Problem:
    """One axis with a stride, and one with or without; with channels or without, the weights first or second."""
    channels = draw(st.sampled_from(["NC", "N", ""]))
    sizes = {name: draw(st.integers(1, 3)) for name in f"{channels}KPQ"} | {
        name: draw(st.integers(1, 5)) for name in "RS"
    }
    windows = [f"{draw(st.integers(2, 3))}*P + R", f"{draw(st.integers(1, 3))}*Q + S"]
    tensors = [
        {"name": "I", "role": "input", "projection": [*channels, *windows]},
        {"name": "W", "role": "weight", "projection": ["K", *channels.strip("N"), "R", "S"]},
    ]
    output = {"name": "O", "role": "output", "projection": [*channels.strip("C"), "K", "P", "Q"]}
    return Problem.model_validate(
        {"name": "conv", "dimensions": sizes, "tensors": [*draw(st.permutations(tensors)), output]}
    )


@given(strided())
def test_it_computes_the_same_tensor(problem: Problem) -> None:
    (way,) = STRIDES.alternatives(problem)
    assert list(way.faults(problem)) == []
    seen = executed(problem, way)
    assert seen is not None and seen.right and seen.scattered == ()
    assert not way.steps.layers[0].problem.is_strided


def test_nvdlas_words_of_a_1x1_with_stride_2() -> None:
    """ResNet-50's res3a_branch2a reads 784 KB and 128 KB of weights (nvdla/hw, perf sheet)."""
    text = "O[k,p,q] += I[c,2p+r,2q+s] * W[k,c,r,s]; k=128 c=256 p=28 q=28 r=1 s=1"
    (way,) = STRIDES.alternatives(tw.load(text, kind="problem"))
    step = way.steps.layers[0].problem
    assert [step.tensor_words(tensor) for tensor in step.tensors] == [784 * 1024, 128 * 1024, 98 * 1024]
    assert {move.tensor: move.words_written for move in way.movements} == {"I": 784 * 1024, "W": 128 * 1024}


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("O[p] += I[p+r] * W[r]; p=4 r=3", "all strides are 1"),
        ("O[p] += I[2p+2r] * W[r]; p=4 r=3", "r is dilated along an axis with a stride"),
        ("nk,km->nm; n=4 k=5 m=6", "it is not a convolution"),
    ],
)
def test_other_work_is_refused(formula: str, told: str) -> None:
    with pytest.raises(NotConformableError, match=told):
        STRIDES.alternatives(tw.load(formula, kind="problem"))


def test_digits_that_lose_numbers_are_refused() -> None:
    problem = tw.load("O[p] += I[2p+r] * W[r]; p=4 r=3", kind="problem")
    (way,) = STRIDES.alternatives(problem)
    few = way.model_copy(update={"digits": {"r": {"r_high": 1, "r_low": 2}}})
    assert any("fewer numbers than its 3" in fault for fault in few.faults(problem))
    none = way.model_copy(update={"digits": {}})
    assert any("r_high is not a dimension" in fault for fault in none.faults(problem))
