"""JAX itself: what it lowers to StableHLO is read with the shapes that its own `make_jaxpr` says.

Run by `tox run -e py312-learned`, where JAX is installed.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tilewright.schema.problem import Problem, Tensor
from tilewright_frontends.mlir import read_file

Shape = tuple[int, ...]
Row = tuple[str, int, tuple[Any, ...]]
"""Kind, multiplications, and what says the shapes of operands and result."""


def array(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def mlp(x: Any, w: Any, v: Any) -> Any:
    return jnp.dot(jax.nn.relu(jnp.dot(x, w)), v)


def net(x: Any, w: Any, v: Any, u: Any) -> Any:
    """Two convolutions, the second with a stride, and a classifier."""
    y = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    z = jax.nn.gelu(lax.conv_general_dilated(y, v, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return jnp.mean(z, axis=(1, 2)) @ u


def attention(q: Any, k: Any, v: Any, w: Any) -> Any:
    """Heads as an axis, scores, softmax, context, and the projection out, which sums over heads."""
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
    context = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
    return jnp.einsum("bthd,hde->bte", context, w)


def block(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def called(x: Any, w: Any) -> Any:
    """A function that is outlined, and called three times."""
    for _ in range(3):
        x = jax.jit(block)(x, w)
    return x


def convolution(**words: Any) -> Callable[[Any, Any], Any]:
    return lambda x, w: lax.conv_general_dilated(x, w, **words)


def einsum(formula: str) -> Callable[..., Any]:
    return lambda *operands: jnp.einsum(formula, *operands)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mlp": (mlp, (array(8, 32), array(32, 64), array(64, 10))),
    "net": (net, (array(2, 16, 16, 3), array(3, 3, 3, 8), array(3, 3, 8, 16), array(16, 10))),
    "attention": (attention, (array(2, 12, 4, 8), array(2, 20, 4, 8), array(2, 20, 4, 8), array(4, 8, 32))),
    "vmapped": (jax.vmap(mlp, in_axes=(0, None, None)), (array(5, 8, 32), array(32, 64), array(64, 10))),
    "called": (called, (array(4, 16), array(16, 16))),
    "intensli2": (einsum("dbea,ec->abcd"), (array(6, 5, 7, 4), array(7, 3))),
    "ccsd7": (einsum("adec,ebd->abc"), (array(4, 5, 6, 7), array(6, 3, 5))),
    "ccsd-t4": (einsum("dfgb,geac->abcdef"), (array(3, 4, 5, 2), array(5, 2, 3, 4))),
    "chain": (einsum("ij,jk,kl->il"), (array(4, 5), array(5, 6), array(6, 7))),
    "bilinear": (einsum("bi,oij,bj->bo"), (array(4, 5), array(3, 5, 6), array(4, 6))),
    "strided": (convolution(window_strides=(2, 3), padding="VALID"), (array(2, 3, 17, 19), array(8, 3, 3, 4))),
    "dilated": (
        convolution(window_strides=(1, 1), padding="SAME", rhs_dilation=(2, 2)),
        (array(2, 3, 12, 12), array(8, 3, 3, 3)),
    ),
    "transposed": (
        convolution(window_strides=(1, 1), padding=((1, 1), (1, 1)), lhs_dilation=(2, 2)),
        (array(2, 3, 7, 7), array(8, 3, 2, 2)),
    ),
    "groups": (
        convolution(window_strides=(1, 1), padding="SAME", feature_group_count=4),
        (array(2, 8, 9, 9), array(12, 2, 3, 3)),
    ),
    "depthwise": (
        convolution(window_strides=(1,), padding="SAME", feature_group_count=6),
        (array(2, 6, 9), array(6, 1, 3)),
    ),
    "3 axes": (
        convolution(window_strides=(1, 2, 1), padding="VALID"),
        (array(1, 2, 5, 6, 7), array(4, 2, 2, 3, 3)),
    ),
}


def equations(jaxpr: Any) -> Iterator[Any]:
    """All of them, those of what is called included."""
    for equation in jaxpr.eqns:
        inner = [value for value in equation.params.values() if hasattr(value, "eqns") or hasattr(value, "jaxpr")]
        for each in inner:
            yield from equations(getattr(each, "jaxpr", each))
        if not inner:
            yield equation


def long(shape: Shape) -> Shape:
    """Sizes other than 1, sorted: axes of size 1 and their order are no matter of the work."""
    return tuple(sorted(size for size in shape if size > 1))


def told_by_jax(function: Callable[..., Any], shapes: tuple[Any, ...]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for equation in equations(jax.make_jaxpr(function)(*shapes).jaxpr):
        left, right = (tuple(each.aval.shape) for each in equation.invars[:2]) if len(equation.invars) > 1 else ((), ())
        result = tuple(equation.outvars[0].aval.shape)
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            macs = math.prod(result) * math.prod(left[axis] for axis in contracted)
            if contracted:  # an outer product sums nothing: it is listed, not mapped
                found["product", macs, (*sorted([long(left), long(right)]), long(result))] += 1
        elif equation.primitive.name == "conv_general_dilated":
            numbers = equation.params["dimension_numbers"]
            transposed = any(parameter > 1 for parameter in equation.params["lhs_dilation"])
            spatial = (numbers.lhs_spec if transposed else numbers.out_spec)[2:]
            positions = [(left if transposed else result)[axis] for axis in spatial]
            batch = left[numbers.lhs_spec[0]]
            known = math.prod(left) if transposed else math.prod(result)
            found["conv", batch * math.prod(right) * math.prod(positions), (math.prod(right), known)] += 1
    return found


def read_here(function: Callable[..., Any], shapes: tuple[Any, ...], folder: Path) -> Counter[Row]:
    module = jax.jit(function).lower(*shapes).compiler_ir("stablehlo")
    path = folder / "lowered.mlir"
    path.write_text(module.operation.get_asm(print_generic_op_form=True, large_elements_limit=16), encoding="utf-8")
    found: Counter[Row] = Counter()
    for layer in read_file(path, "lowered", str(path), None, {}).layers:
        problem = layer.problem
        if problem.operation is not None and "conv" in problem.operation:
            data, weight = problem.operands
            known = data if "transpose" in problem.operation else problem.output
            found["conv", problem.macs, (problem.tensor_words(weight), problem.tensor_words(known))] += layer.count
        else:
            left, right = (_shape(problem, tensor) for tensor in problem.operands)
            found["product", problem.macs, (*sorted([left, right]), _shape(problem, problem.output))] += layer.count
    return found


def _shape(problem: Problem, tensor: Tensor) -> Shape:
    return long(tuple(problem.dimensions[name] for rank in tensor.projection for name in rank.terms))


@pytest.mark.parametrize("case", CASES)
def test_shapes_are_those_of_make_jaxpr(case: str, tmp_path: Path) -> None:
    function, shapes = CASES[case]
    told = told_by_jax(function, shapes)

    assert told and read_here(function, shapes, tmp_path) == told
