"""Loops around a matrix product: exact, nothing transposed, partial sums read again."""

from hypothesis import given

import tilewright as tw
from support.contractions import contractions
from tilewright.application.algorithms.equality import executed
from tilewright.plugin import Alternative, installed
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.schema.problem import Problem


def alternative(problem: Problem) -> Alternative:
    (found,) = installed().make(AlgorithmSpec, "loop_over_gemm").alternatives(problem)
    return found


@given(contractions())
def test_it_computes_the_same_tensor_and_reads_at_equal_distances(problem: Problem) -> None:
    found = alternative(problem)
    seen = executed(problem, found)
    (step,) = found.steps.layers

    assert list(found.faults(problem)) == []
    assert seen is not None and seen.right and seen.scattered == ()
    assert step.problem.macs * step.count == problem.macs


def test_runs_that_stand_side_by_side_are_one_dimension() -> None:
    found = alternative(tw.load("abkcl,klm->abcm; a=2 b=3 c=4 k=5 l=6 m=7", kind="problem"))

    assert found.dimensions == {"M": ("a", "b"), "N": ("m",), "K": ("l",)}
    (step,) = found.steps.layers
    assert step.count == 4 * 5


def test_partial_sums_of_a_loop_that_sums_are_read_again() -> None:
    found = alternative(tw.load("kml,nlk->mn; m=4 n=5 k=6 l=2", kind="problem"))

    assert found.dimensions["K"] == ("k",)
    assert [(move.tensor, move.words_read, move.words_written) for move in found.movements] == [("Z", 20, 0)]
