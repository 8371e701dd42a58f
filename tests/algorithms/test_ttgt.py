"""TTGT: every contraction of two tensors, exactly; Union's sizes; what lies right is not moved."""

import math

import pytest
from hypothesis import given

import tilewright as tw
from support.contractions import contractions
from tilewright.application.algorithms.equality import executed
from tilewright.errors import NotConformableError
from tilewright.plugin import Alternative, installed
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.schema.problem import Problem

TTGT = installed().make(AlgorithmSpec, "ttgt")


def alternative(problem: Problem) -> Alternative:
    (found,) = TTGT.alternatives(problem)
    return found


def moved(formula: str) -> dict[str, tuple[int, int]]:
    found = alternative(tw.load(formula, kind="problem"))
    return {move.tensor: (move.words_read, move.words_written) for move in found.movements}


@given(contractions())
def test_it_computes_the_same_tensor_and_reads_at_equal_distances(problem: Problem) -> None:
    found = alternative(problem)
    seen = executed(problem, found)

    assert list(found.faults(problem)) == []
    assert seen is not None and seen.right and seen.scattered == ()


@given(contractions())
def test_the_product_has_the_operations_of_what_is_not_summed_before(problem: Problem) -> None:
    found = alternative(problem)
    product = found.steps.layers[-1].problem
    alone = [name for name in problem.dimensions if name[0] in "xy"]

    assert product.macs == math.prod(size for name, size in problem.dimensions.items() if name not in alone)
    assert len(found.steps.layers) == 1 + len({name[0] for name in alone if problem.dimensions[name] > 1})


@pytest.mark.parametrize(
    ("name", "sizes", "tensors", "words"),
    [
        ("intensli2_16", (4096, 16, 16), "AC", 262_144),
        ("intensli2_64", (262_144, 64, 64), "AC", 67_108_864),
        ("ccsd7_16", (256, 16, 256), "ABC", 147_456),
        ("ccsd7_64", (4096, 64, 4096), "ABC", 34_603_008),
        ("ccsd-t4_16", (4096, 4096, 16), "AC", 33_685_504),
        ("ccsd-t4_32", (32_768, 32_768, 32), "AC", 2_149_580_800),
    ],
)
def test_sizes_are_those_of_unions_table_iii(name: str, sizes: tuple[int, ...], tensors: str, words: int) -> None:
    problem = tw.load(f"union_tensor_contractions/{name}", kind="problem")
    found = alternative(problem)
    (layer,) = found.steps.layers

    assert tuple(layer.problem.dimensions[each] for each in "MNK") == sizes
    assert [move.tensor for move in found.movements] == list(tensors) and found.words_moved == words


@pytest.mark.parametrize(
    "formula",
    [
        "mk,kn->mn; m=4 n=5 k=6",
        "km,nk->nm; m=4 n=5 k=6",
        "gabk,gkn->gnab; g=2 a=3 b=4 n=5 k=6",
        "abkl,lkn->nab; a=3 b=4 n=5 k=2 l=1",
        "i,j->ij; i=3 j=4",
        "amk,kn->mn; a=1 m=4 n=5 k=6",
    ],
)
def test_what_lies_right_is_not_moved(formula: str) -> None:
    assert moved(formula) == {}


def test_of_two_orders_the_one_that_moves_less_is_taken() -> None:
    """A has K as k, l and B as l, k; B is the smaller."""
    assert moved("mkl,lkn->mn; m=100 n=2 k=3 l=4") == {"B": (24, 24)}
    assert moved("mkl,lkn->mn; m=2 n=100 k=3 l=4") == {"A": (24, 24)}


def test_what_one_operand_has_alone_is_summed_before() -> None:
    problem = tw.load("mxk,kn->mn; m=4 x=7 n=5 k=6", kind="problem")
    found = alternative(problem)
    before, product = found.steps.layers

    assert dict(before.problem.dimensions) == {"M": 4, "K": 6, "X0": 7} and before.problem.operand_count == 1
    assert dict(product.problem.dimensions) == {"M": 4, "N": 5, "K": 6}
    assert product.problem.operands[0].name == before.problem.output.name == "A_summed"
    assert found.movements == ()


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("ik,kj,jl->il; i=2 j=3 k=4 l=5", "operands"),
        ("ii,ij->j; i=3 j=4", "affine"),
        ("O[p] += I[p+r] * W[r]; p=4 r=3", "affine"),
        ("O[p] += I[2p,k] * W[k]; p=4 k=3", "affine"),
    ],
)
def test_what_it_does_not_apply_to_is_refused(formula: str, code: str) -> None:
    with pytest.raises(NotConformableError) as told:
        alternative(tw.load(formula, kind="problem"))

    assert [reason.code for reason in told.value.reasons] == [code]


def test_a_result_with_a_dimension_of_its_own_is_refused() -> None:
    problem = Problem.model_validate(
        {
            "name": "broadcast",
            "dimensions": {"m": 4, "k": 3, "z": 2},
            "tensors": [
                {"name": "A", "role": "input", "projection": ["m", "k"]},
                {"name": "B", "role": "weight", "projection": ["k"]},
                {"name": "Z", "role": "output", "projection": ["m", "z"]},
            ],
        }
    )
    with pytest.raises(NotConformableError, match=r"z is in Z only \[result_only\]"):
        alternative(problem)
