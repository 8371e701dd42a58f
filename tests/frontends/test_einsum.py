"""The einsum frontend: expressions are read as written, and every error has a position."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.edges import edges
from tilewright.errors import InputError
from tilewright.schema.problem import Problem
from tilewright.testing.strategies import problems
from tilewright_frontends.einsum import EinsumFrontend, parse_einsum

CONVOLUTION = "O[n,k,p,q] += I[n,c,2p+r,2q+s] * W[k,c,r,s]; n=1 k=256 c=128 p=56 q=56 r=3 s=3"


def speakable(problem: Problem) -> bool:
    """Can a line say it: every dimension indexes some operand."""
    return {name for tensor in problem.operands for name in tensor.dimensions} == set(problem.dimensions)


@given(problems().filter(speakable))
def test_a_problem_written_as_a_line_is_read_back(problem: Problem) -> None:
    read = parse_einsum(str(problem))
    assert (read.dimensions, read.tensors) == (problem.dimensions, problem.tensors)
    assert list(read.dimensions) == list(problem.dimensions)


@given(problems().filter(speakable), st.data())
def test_blanks_signs_and_commas_change_nothing(problem: Problem, data: st.DataObject) -> None:
    line = str(problem).replace("+=", data.draw(st.sampled_from(["+=", "=", " = "])))
    formula, sizes = line.split(";")
    blank = data.draw(st.sampled_from(["", " ", "  ", "\t"]))
    formula = formula.replace(" ", blank)
    if data.draw(st.booleans()):
        formula = formula.replace("2*", "2").replace("3*", "3")
    sizes = data.draw(st.sampled_from([" ", ",", ", ", " , ", "\n"])).join(sizes.split())
    assert parse_einsum(f"{formula};{sizes}").tensors == problem.tensors


@given(st.data())
def test_the_short_form_means_what_numpy_computes(data: st.DataObject) -> None:
    """A nest that walks all dimensions and adds products gives numpy.einsum's result."""
    operands = data.draw(st.lists(st.text("abcd", min_size=1, max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(operands)))
    output = "".join(data.draw(st.permutations(used)))[: data.draw(st.integers(0, len(used)))]
    sizes = {name: data.draw(st.integers(1, 3)) for name in used}
    formula = f"{','.join(operands)}->{output}"
    problem = parse_einsum(f"{formula}; {' '.join(f'{name}={size}' for name, size in sizes.items())}")
    arrays = [
        np.arange(1, 1 + np.prod([sizes[name] for name in letters])).reshape([sizes[name] for name in letters])
        for letters in operands
    ]
    result = np.zeros([sizes[name] for name in output], dtype=np.int64)
    for point in np.ndindex(*problem.sizes):
        at = dict(zip(problem.dimensions, point, strict=True))
        places = [
            tuple(sum(c * at[name] for name, c in rank.terms.items()) for rank in tensor.projection)
            for tensor in (*problem.operands, problem.output)
        ]
        result[places[-1]] += np.prod([array[place] for array, place in zip(arrays, places[:-1], strict=True)])
    np.testing.assert_array_equal(result, np.einsum(formula, *arrays))


@given(st.text("ijIW[]+*=;,. 0123->n", max_size=40))
def test_any_text_is_a_problem_or_an_input_error(text: str) -> None:
    try:
        assert parse_einsum(text).macs >= 1
    except InputError as error:
        assert error.location is not None
        assert 1 <= (error.location.column or 0) <= len(text) + 1


def test_a_convolution_with_strides() -> None:
    problem = parse_einsum(CONVOLUTION)
    assert problem.macs == 256 * 128 * 56 * 56 * 9
    assert problem.tensor_words(problem.tensor("I")) == 128 * 113 * 113
    assert [tensor.role for tensor in problem.tensors] == ["input", "weight", "output"]


def test_strides_and_dilations_are_coefficients() -> None:
    problem = parse_einsum("O[p] += I[2p+3*r] * W[r]; p=4, r=2")
    assert str(problem.tensor("I").projection[0]) == "2*p + 3*r"


def test_terms_of_one_dimension_add_up() -> None:
    assert str(parse_einsum("O[p] += I[p+2p]; p=4").tensor("I").projection[0]) == "3*p"


def test_a_formula_loads_as_one_layer() -> None:
    assert EinsumFrontend().load(CONVOLUTION).layers[0].problem == parse_einsum(CONVOLUTION)


@pytest.mark.parametrize(
    ("formula", "roles"),
    [
        ("Z[i,k] += A[i,j] * B[j,k]", ["input", "weight"]),
        ("Z[i,k] += weights[i,j] * B[j,k]", ["weight", "input"]),
        ("Z[i,k] += X[i,j] * Y[j,k]", ["input", "weight"]),
        ("Z[i,k] += W1[i,j] * W2[j,k]", ["input", "weight"]),
        ("Z[i,k] += A[i,j] * B[j,k] * W[j,k]", ["input", "input", "weight"]),
        ("Z[i,k] += A[i,j] * B[j,k] * C[j,k]", ["input", "weight", "weight"]),
        ("Z[i] += W[i,j] * W2[k]", ["input", "weight"]),
        ("Z[i] += W[i,j,k]", ["input"]),
    ],
)
def test_roles_follow_the_names_or_else_the_order(formula: str, roles: list[str]) -> None:
    problem = parse_einsum(f"{formula}; i=2 j=3 k=4")
    assert [tensor.role for tensor in problem.operands] == roles


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        (CONVOLUTION, "conv2d"),
        ("O[k,p] += I[c,p+r] * W[k,c,r]; k=2 c=2 p=3 r=3", "conv1d"),
        ("O[k,o,p,q] += I[c,o+t,p+r,q+s] * W[k,c,t,r,s]; k=2 c=2 o=2 p=3 q=3 t=2 r=3 s=3", "conv3d"),
        ("O[g,p,q] += I[g,p+r,q+s] * W[g,r,s]; g=4 p=3 q=3 r=3 s=3", "depthwise_conv2d"),
        ("O[k,p+r,q+s] += I[c,p,q] * W[k,c,r,s]; k=2 c=4 p=3 q=3 r=3 s=3", "conv_transpose2d"),
        ("nk,km->nm; n=2 k=3 m=4", "gemm"),
        ("bnk,bkm->bnm; b=2 n=2 k=3 m=4", "gemm"),
        ("i,i->i; i=3", None),
        ("i,i->; i=3", None),
        ("ij,jk,jl->ikl; i=2 j=2 k=2 l=2", None),
        ("ij->i; i=2 j=2", None),
    ],
)
def test_the_operation_is_named_where_the_structure_shows_it(line: str, operation: str | None) -> None:
    assert parse_einsum(line).operation == operation


FAULTS = [
    ("", 1, "expected a tensor"),
    ("O", 2, "expected '['"),
    ("O[n] I[n]; n=1", 6, "expected '+='"),
    ("O[n] += ; n=1", 9, "expected a tensor"),
    ("O[n] += I[n", 12, "expected '+', ',' or ']'"),
    ("O[n] += I[n,]; n=1", 13, "expected a dimension"),
    ("O[n] += I[n+1]; n=1", 14, "expected a dimension"),
    ("O[n] += I[n-1]; n=1", 12, "expected '+', ',' or ']'"),
    ("O[n] += I[n*2]; n=1", 12, "expected '+', ',' or ']'"),
    ("O[n] += I[0n]; n=1", 11, "a coefficient is 0; expected 1 to"),
    ("O[n] += I[2147483648n+n]; n=1", 23, "the coefficients of n add up to more than"),
    ("O[n] += I[n] I[n]; n=1", 14, "expected '*' and another operand"),
    ("O[n] += I[n]", 13, "the sizes are missing"),
    ("O[n] += I[n] * I[n]; n=1", 16, "tensor I is repeated"),
    ("O[n] += O[n]; n=1", 9, "tensor O is repeated"),
    ("O[n,q] += I[n,p]; n=1 p=1", 5, "dimension q has no size"),
    ("O[n] += I[n,p,q]; n=1", 13, "dimensions p, q have no size"),
    ("O[n,q] += I[n]; n=1 q=2", 5, "dimension q is in the result only"),
    ("O[] += I[]; ", 1, "the formula has no dimension"),
    ("O[n] += I[n]; n=1 m=2", 19, "no tensor has dimension m"),
    ("O[n] += I[n]; N=1", 15, "did you mean 'n'?"),
    ("O[batch] += I[batch]; bacth=1", 23, "did you mean 'batch'?"),
    ("O[n] += I[n]; n=1 n=2", 19, "dimension n has two sizes"),
    ("O[n] += I[n]; n=0", 17, "the size of n is 0; expected 1 to"),
    ("O[n] += I[n]; n=-4", 17, "the size of n is -4; expected 1 to"),
    ("O[n] += I[n]; n=2.5", 17, "the size of n is '2.5'; expected a whole number"),
    ("O[n] += I[n]; n=", 17, "the size of n is ''; expected a whole number"),
    ("O[n] += I[n]; n=" + "9" * 5000, 17, "expected 1 to 1099511627776"),
    ("O[n] += I[n]; n", 15, "expected a size like n=4"),
    ("O[n] += I[n]; n=1; m=2", 18, "expected a size"),
    ("nk,km->nm", 10, "the sizes are missing"),
    ("nk,km; n=1 k=1 m=1", 6, "expected a letter per dimension, ',' or '->'"),
    ("nk,k1->n; n=1 k=1", 5, "expected a letter per dimension"),
    ("nk,...->n; n=1 k=1", 4, "an ellipsis is not supported"),
    ("n->nn; n=1", 4, "a dimension is repeated in the result"),
    ("n->nm; n=1 m=1", 5, "dimension m is in the result only"),
    (",".join("a" * 26) + "->a; a=1", 1, "26 operands"),
    ("O[\N{LATIN SMALL LETTER E WITH ACUTE}] += I[n]; n=1", 3, "expected a dimension"),
]


@pytest.mark.parametrize(("line", "column", "message"), FAULTS, ids=[fault[2][:40] for fault in FAULTS])
def test_a_caret_stands_below_the_fault(line: str, column: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_einsum(line)
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.column == column
    shown, caret = caught.value.message.splitlines()[-2:]
    assert caret == " " * (caret.index("^")) + "^"
    assert (shown + " ")[caret.index("^")] == (line + " ")[column - 1]


def test_missing_sizes_are_asked_for_together() -> None:
    with pytest.raises(InputError) as caught:
        parse_einsum("O[n] += I[n,p,q]; n=1")
    assert caught.value.hint == "add p=... q=..."


def test_a_long_line_is_shown_around_the_fault() -> None:
    with pytest.raises(InputError) as caught:
        parse_einsum("O[n] += " + " * ".join(f"I{index}[n]" for index in range(500)) + "; m=1")
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("source", "mine"),
    [(CONVOLUTION, True), ("nk,km->nm; n=4", True), ("nk,km; n=4", True), ("resnet50", False), ("net.onnx", False)],
)
def test_formulas_are_recognised(source: str, mine: bool) -> None:
    assert EinsumFrontend().recognises(source) is mine


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (f"O[k] += A[{','.join('k' * 101)}]; k=2", "more than 100 coordinates of A"),
        (f"O[k] += {' * '.join(f'A{n}[k]' for n in range(100))}; k=2", "more than 100 tensors"),
        (f"O[k] += A[{'+'.join(f'k{n}' for n in range(101))}]; k=2", "more than 100 dimensions"),
        (f"{'k' * 101}->k; k=2", "more than 100 dimensions of one tensor"),
    ],
)
def test_a_problem_has_so_many_parts(formula: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_einsum(formula)


def test_several_formulas_are_a_network() -> None:
    network = EinsumFrontend().load(
        "H[m,n] += X[m,k] * W1[k,n]; Y[m,p] += H[m,n] * W2[n,p]; Z[m,q] += H[m,q] * Y[m,r] * V[r,q]; m=4 k=8 n=16 p=8 q=10 r=8"
    )
    assert [str(layer.problem) for layer in network.layers] == [
        "H[m, n] += X[m, k] * W1[k, n]; m=4 k=8 n=16",
        "Y[m, p] += H[m, n] * W2[n, p]; m=4 n=16 p=8",
        "Z[m, q] += H[m, q] * Y[m, r] * V[r, q]; m=4 q=10 r=8",
    ]
    assert [layer.after for layer in network.layers] == [(), ("H",), ("H", "Y")]
    same = "[x0, x1] at [x0, x1]"
    assert edges(network) == [f"Y.H = H{same}", f"Z.H = H{same}", f"Z.Y = Y{same}"]
    first = network.edges[1][2]
    assert dict(first.sizes) == {"x0": 4, "x1": 10}  # of 16 columns


def test_a_result_that_is_read_before_it_is_written_is_unknown() -> None:
    network = EinsumFrontend().load("Y[m,p] += H[m,n] * W[n,p]; H[m,n] += X[m,k] * V[k,n]; m=4 k=8 n=16 p=8")
    assert edges(network) == ["Y.H = H? Y reads H before it is written"]


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("H[m] += X[m] * W[m]; H[m] += G[m] * W[m]; m=4", 22, "H is the result of two formulas"),
        ("H[m,n] += X[m,n] * W[n]; G[m] += H[m] * V[m]; m=4 n=2", 26, "H has 2 coordinates before, and 1 here"),
        ("H[m] += X[m] * W[m]; G[m,n] += H[m] * V[m]; m=4 n=2", 26, "dimension n is in the result only"),
        ("H[m] += X[m] * W[m]; G[n] += H[n] * V[n]; m=4", 24, "dimension n has no size"),
    ],
)
def test_faults_of_several_formulas(line: str, column: int, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"einsum:1:{column}: {message}")):
        EinsumFrontend().load(line)
