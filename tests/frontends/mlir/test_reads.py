"""Which words the layers of a module read, in every dialect: expected coordinates are written by hand."""

import pytest

from support.edges import edges
from tilewright.schema.workload import Workload
from tilewright_frontends.mlir.module import read_workload
from tilewright_frontends.mlir.parse import parse


def read(text: str) -> Workload:
    return read_workload(parse(text, "net.mlir"), "net", "net.mlir", None, {})


def main(arguments: str, *lines: str) -> Workload:
    """The function `main` with these arguments and lines, of which the last one is its result."""
    return read("\n".join([f"func.func @main({arguments}) {{", *lines[:-1], f"return {lines[-1]}", "}"]))


TOSA = """
%zp = "tosa.const"() <{{values = dense<0.0> : tensor<1xf32>}}> : () -> tensor<1xf32>
%0 = tosa.conv2d %x, %w, %b, %zp, %zp {{acc_type = f32, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}} : (tensor<1x8x8x4xf32>, tensor<6x3x3x4xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x8x6xf32>
%1 = tosa.clamp %0 {{min_val = 0.0 : f32, max_val = 6.0 : f32}} : (tensor<1x8x8x6xf32>) -> tensor<1x8x8x6xf32>
{line}
%3 = tosa.conv2d %2, %v, %c, %zp, %zp {{acc_type = f32, pad = array<i64: 0, 1, 0, 1>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>}} : (tensor<1x8x8x6xf32>, tensor<5x3x3x6xf32>, tensor<5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x5xf32>
"""
TOSA_ARGUMENTS = (
    "%x: tensor<1x8x8x4xf32>, %w: tensor<6x3x3x4xf32>, %b: tensor<6xf32>, %v: tensor<5x3x3x6xf32>, %c: tensor<5xf32>, "
    "%d: tensor<3x3x6x1xf32>, %s: tensor<1x1x1x6xf32>"
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "%2 = tosa.depthwise_conv2d %1, %d, %b, %zp, %zp {acc_type = f32, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<1x8x8x6xf32>, tensor<3x3x6x1xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x8x6xf32>",
            [
                "depthwise_conv2d_6.Inputs = conv2d_4[0, k, p, q] at [0, k, p + 1, q + 1] via clamp_5",
                "conv2d_7.Inputs = depthwise_conv2d_6[0, g, p, q] at [0, g, p, q]",
            ],
        ),
        (
            "%2 = tosa.mul %1, %s, %zp : (tensor<1x8x8x6xf32>, tensor<1x1x1x6xf32>, tensor<1xf32>) -> tensor<1x8x8x6xf32>",
            ["conv2d_7.Inputs = conv2d_4[0, k, p, q] at [0, k, p, q] via clamp_5 mul_6"],
        ),
        (
            "%2 = tosa.add %1, %0 : (tensor<1x8x8x6xf32>, tensor<1x8x8x6xf32>) -> tensor<1x8x8x6xf32>",
            ["conv2d_7.Inputs = conv2d_4[0, k, p, q] at [0, k, p, q] via clamp_5 add_6"],
        ),
        (
            "%2 = tosa.max_pool2d %1 {kernel = array<i64: 3, 3>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x8x8x6xf32>) -> tensor<1x8x8x6xf32>",
            ["conv2d_7.Inputs = conv2d_4? tosa.max_pool2d 'max_pool2d_6' has coordinates that are not known"],
        ),
        (
            "%2 = tosa.reverse %1 {axis = 1 : i32} : (tensor<1x8x8x6xf32>) -> tensor<1x8x8x6xf32>",
            ["conv2d_7.Inputs = conv2d_4? tosa.reverse 'reverse_6' has coordinates that are not known"],
        ),
        (
            "%2 = tosa.transpose %1 {perms = array<i32: 0, 2, 1, 3>} : (tensor<1x8x8x6xf32>) -> tensor<1x8x8x6xf32>",
            ["conv2d_7.Inputs = conv2d_4[0, k, p, q] at [0, k, q, p] via clamp_5"],
        ),
    ],
)
def test_tosa(line: str, expected: list[str]) -> None:
    found = main(TOSA_ARGUMENTS, TOSA.format(line=line), "%3 : tensor<1x4x4x5xf32>")
    assert edges(found) == expected


def test_batched_products_of_an_attention() -> None:
    product = "stablehlo.dot_general"
    found = main(
        "%x: tensor<2x6x8xf32>, %w: tensor<8x8xf32>",
        *(
            f"%{each} = {product} %x, %w, contracting_dims = [2] x [0] : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>"
            for each in "qk"
        ),
        *(f"%{each}4 = stablehlo.reshape %{each} : (tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32>" for each in "qk"),
        f"%s = {product} %q4, %k4, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x2x6x6xf32>",
        f"%o = {product} %s, %k4, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<2x2x6x6xf32>, tensor<2x6x2x4xf32>) -> tensor<2x2x6x4xf32>",
        "%t = stablehlo.transpose %o, dims = [0, 2, 1, 3] : (tensor<2x2x6x4xf32>) -> tensor<2x6x2x4xf32>",
        "%r = stablehlo.reshape %t : (tensor<2x6x2x4xf32>) -> tensor<2x6x8xf32>",
        f"%e = {product} %r, %w, contracting_dims = [2] x [0] : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>",
        "%sl = stablehlo.slice %e [0:2, 1:5, 0:8] : (tensor<2x6x8xf32>) -> tensor<2x4x8xf32>",
        f"%f = {product} %sl, %w, contracting_dims = [2] x [0] : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>",
        "%cc = stablehlo.concatenate %f, %sl, dim = 1 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x8x8xf32>",
        f"%g = {product} %cc, %w, contracting_dims = [2] x [0] : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>",
        "%e, %g : tensor<2x6x8xf32>, tensor<2x8x8xf32>",
    )
    q, k, s, o, e, f, g = (layer.name for layer in found.layers)
    assert edges(found) == [
        f"{s}.A = {q}[m0, m1, 4*no + ni] at [m0, m1, no, ni]",
        f"{s}.B = {k}[m0, m1, 4*no + ni] at [m0, m1, no, ni]",
        f"{o}.A = {s}[b0, b1, m, n] at [b0, b1, m, n]",
        f"{o}.B = {k}[m0, m1, 4*no + ni] at [m0, m1, no, ni]",
        f"{e}.A = {o}[b0, b1, m, n] at [b0, m, 4*b1 + n]",
        f"{f}.A = {e}[m0, m1 + 1, n] at [m0, m1, n]",
        f"{g}.A = {f}[m0, m1, n] at [m0, m1, n]",
        f"{g}.A = {e}[m0, m1 + 1, n] at [m0, m1 + 4, n]",
    ]
    assert [layer.name for layer in found.layers if layer.returned] == [e]


def test_linalg_convolutions_behind_padding() -> None:
    same = "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}"
    found = main(
        "%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x6xf32>, %v: tensor<3x3x6x5xf32>, %i: tensor<1x6x6x6xf32>, %j: tensor<1x6x6x5xf32>",
        "%z = arith.constant 0.0 : f32",
        "%f = linalg.fill ins(%z : f32) outs(%i : tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>",
        f"%0 = linalg.conv_2d_nhwc_hwcf {same} ins(%x, %w : tensor<1x8x8x4xf32>, tensor<3x3x4x6xf32>) outs(%f : tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>",
        "%p = tensor.pad %0 low[0, 1, 1, 0] high[0, 1, 1, 0] {",
        "^bb0(%a: index, %b: index, %c: index, %d: index):",
        "tensor.yield %z : f32",
        "} : tensor<1x6x6x6xf32> to tensor<1x8x8x6xf32>",
        f"%1 = linalg.conv_2d_nhwc_hwcf {same} ins(%p, %v : tensor<1x8x8x6xf32>, tensor<3x3x6x5xf32>) outs(%j : tensor<1x6x6x5xf32>) -> tensor<1x6x6x5xf32>",
        "%1 : tensor<1x6x6x5xf32>",
    )
    first, second = (layer.name for layer in found.layers)
    assert edges(found) == [f"{second}.Inputs = {first}[0, k, p, q] at [0, k, p + 1, q + 1]"]


GENERIC = """
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#turn = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
#bias = affine_map<(d0, d1, d2) -> (d2)>
#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> ({b})>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @main(%x: tensor<2x6x8xf32>, %w: tensor<2x8x4xf32>, %bias: tensor<4xf32>, %i: tensor<2x6x4xf32>, %j: tensor<2x4x6xf32>, %h: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {{
  %0 = linalg.batch_matmul ins(%x, %w : tensor<2x6x8xf32>, tensor<2x8x4xf32>) outs(%i : tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  %1 = linalg.generic {{indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%0, %bias : tensor<2x6x4xf32>, tensor<4xf32>) outs({out} : tensor<2x6x4xf32>) {{
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.addf %p, {second} : f32
    linalg.yield %s : f32
  }} -> tensor<2x6x4xf32>
  %2 = linalg.generic {{indexing_maps = [#id, #turn], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%1 : tensor<2x6x4xf32>) outs(%j : tensor<2x4x6xf32>) {{
  ^bb0(%p: f32, %r: f32):
    linalg.yield %p : f32
  }} -> tensor<2x4x6xf32>
  %3 = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}} ins(%2, %1 : tensor<2x4x6xf32>, tensor<2x6x4xf32>) outs(%h : tensor<2x4x4xf32>) {{
  ^bb0(%p: f32, %q: f32, %r: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %r, %m : f32
    linalg.yield %s : f32
  }} -> tensor<2x4x4xf32>
  return %3 : tensor<2x4x4xf32>
}}
"""


@pytest.mark.parametrize(
    ("out", "second", "subscript", "expected"),
    [
        (
            "%i",
            "%q",
            "b, k, n",
            [
                "generic_19.A = batch_matmul_9[b0, m, n] at [b0, n, m] via generic_10",
                "generic_19.B = batch_matmul_9[b0, m, n] at [b0, m, n] via generic_10",
            ],
        ),
        (
            "%i",
            "%q",
            "b, 5 - k, n",
            [
                "generic_19.A = batch_matmul_9? generic_19 reads A in another order",
                "generic_19.B = batch_matmul_9? generic_19 reads B in another order",
            ],
        ),
        (
            "%0",
            "%r",
            "b, k, n",
            [
                "generic_19.A = batch_matmul_9[b0, m, n] at [b0, n, m] via generic_10",
                "generic_19.B = batch_matmul_9[b0, m, n] at [b0, m, n] via generic_10",
            ],
        ),
    ],
)
def test_nests_of_linalg(out: str, second: str, subscript: str, expected: list[str]) -> None:
    """A bias, a transposition and a product; the second one runs backwards, the third one adds to what it replaces."""
    result = read(GENERIC.format(b=subscript.replace("5 - k", "-k + 5"), out=out, second=second))
    assert edges(result) == expected


def test_einsums_and_convolutions_of_tensorflow() -> None:
    def einsum(result: str, a: str, b: str, equation: str, types: str) -> str:
        return f'%{result} = "tf.Einsum"(%{a}, %{b}) {{equation = "{equation}"}} : {types}'

    found = main(
        "%x: tensor<2x6x8xf32>, %w: tensor<8x2x4xf32>",
        einsum("q", "x", "w", "btd,dhk->bthk", "(tensor<2x6x8xf32>, tensor<8x2x4xf32>) -> tensor<2x6x2x4xf32>"),
        einsum("s", "q", "q", "bthk,bshk->bhts", "(tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x2x6x6xf32>"),
        '%p = "tf.Softmax"(%s) : (tensor<2x2x6x6xf32>) -> tensor<2x2x6x6xf32>',
        einsum("o", "p", "q", "bhts,bshk->bthk", "(tensor<2x2x6x6xf32>, tensor<2x6x2x4xf32>) -> tensor<2x6x2x4xf32>"),
        "%o : tensor<2x6x2x4xf32>",
    )
    q, s, o = (layer.name for layer in found.layers)
    (softmax,) = found.unmapped
    same = "[b, t, h, k] at [b, t, h, k]"
    assert edges(found) == [
        f"{s}.A = {q}{same}",
        f"{s}.B = {q}{same}",
        f"{o}.A = {s}[b, h, t, s] at [b, h, t, s] via {softmax.name} whole s",
        f"{o}.B = {q}{same}",
    ]

    found = main(
        "%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x6xf32>, %v: tensor<3x3x6x2xf32>, %b: tensor<6xf32>",
        '%0 = "tf.Conv2D"(%x, %w) {padding = "SAME", strides = [1, 1, 1, 1]} : (tensor<1x8x8x3xf32>, tensor<3x3x3x6xf32>) -> tensor<1x8x8x6xf32>',
        '%1 = "tf.BiasAdd"(%0, %b) : (tensor<1x8x8x6xf32>, tensor<6xf32>) -> tensor<1x8x8x6xf32>',
        '%2 = "tf.Conv2D"(%1, %v) {padding = "SAME", strides = [1, 2, 2, 1]} : (tensor<1x8x8x6xf32>, tensor<3x3x6x2xf32>) -> tensor<1x4x4x2xf32>',
        "%2 : tensor<1x4x4x2xf32>",
    )
    first, second = (layer.name for layer in found.layers)
    assert edges(found) == [f"{second}.Inputs = {first}[0, k, p, q] at [0, k, p, q] via {found.unmapped[0].name}"]


def tensor(*sizes: int) -> str:
    return f"!torch.vtensor<[{','.join(map(str, sizes))}],f32>"


def test_the_torch_dialect() -> None:
    small, middle = tensor(1, 3, 8, 8), tensor(1, 6, 8, 8)
    conv = "!torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.int"
    found = main(
        f"%x: {small}, %w: {tensor(6, 3, 3, 3)}, %v: {tensor(4, 6, 3, 3)}, %u: {tensor(10, 256)}",
        "%none = torch.constant.none",
        "%int1 = torch.constant.int 1",
        "%int0 = torch.constant.int 0",
        "%int-1 = torch.constant.int -1",
        "%1 = torch.prim.ListConstruct %int1, %int1 : (!torch.int, !torch.int) -> !torch.list<int>",
        f"%c = torch.aten.conv2d %x, %w, %none, %1, %1, %1, %int1 : {small}, {tensor(6, 3, 3, 3)}, {conv} -> {middle}",
        f"%r = torch.aten.relu %c : {middle} -> {middle}",
        f"%d = torch.aten.conv2d %r, %v, %none, %1, %1, %1, %int1 : {middle}, {tensor(4, 6, 3, 3)}, {conv} -> {tensor(1, 4, 8, 8)}",
        f"%f = torch.aten.flatten.using_ints %d, %int1, %int-1 : {tensor(1, 4, 8, 8)}, !torch.int, !torch.int -> {tensor(1, 256)}",
        f"%t = torch.aten.transpose.int %u, %int0, %int1 : {tensor(10, 256)}, !torch.int, !torch.int -> {tensor(256, 10)}",
        f"%m = torch.aten.mm %f, %t : {tensor(1, 256)}, {tensor(256, 10)} -> {tensor(1, 10)}",
        f"%m : {tensor(1, 10)}",
    )
    first, second, last = (layer.name for layer in found.layers)
    assert edges(found) == [
        f"{second}.Inputs = {first}[0, k, p, q] at [0, k, p + 1, q + 1] via {found.unmapped[0].name}",
        f"{last}.A = {second}[0, k, p, q] at [0, 64*k + 8*p + q]",
    ]


def test_an_attention_of_the_torch_dialect() -> None:
    heads, flat = tensor(1, 2, 6, 4), tensor(1, 6, 8)
    lines = ["%none = torch.constant.none", "%false = torch.constant.bool false", "%f = torch.constant.float 0.0"]
    lines += [f"%int{each} = torch.constant.int {each}" for each in (1, 2, 4, 6, 8)]
    lines += [
        "%s = torch.prim.ListConstruct %int1, %int6, %int2, %int4 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>",
        "%b = torch.prim.ListConstruct %int1, %int6, %int8 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>",
    ]
    for each in "qkv":
        lines += [
            f"%{each}0 = torch.aten.linear %x, %w, %none : {flat}, {tensor(8, 8)}, !torch.none -> {flat}",
            f"%{each}1 = torch.aten.view %{each}0, %s : {flat}, !torch.list<int> -> {tensor(1, 6, 2, 4)}",
            f"%{each}2 = torch.aten.transpose.int %{each}1, %int1, %int2 : {tensor(1, 6, 2, 4)}, !torch.int, !torch.int -> {heads}",
        ]
    lines += [
        f"%a = torch.aten.scaled_dot_product_attention %q2, %k2, %v2, %none, %f, %false, %none, %false : {heads}, {heads}, {heads}, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> {heads}",
        f"%t = torch.aten.transpose.int %a, %int1, %int2 : {heads}, !torch.int, !torch.int -> {tensor(1, 6, 2, 4)}",
        f"%v = torch.aten.view %t, %b : {tensor(1, 6, 2, 4)}, !torch.list<int> -> {flat}",
        f"%o = torch.aten.linear %v, %w, %none : {flat}, {tensor(8, 8)}, !torch.none -> {flat}",
    ]
    found = main(f"%x: {flat}, %w: {tensor(8, 8)}", *lines, f"%o : {flat}")
    q, k, v, scores, context, out = (layer.name for layer in found.layers)
    softmax = f"{scores.removesuffix('.scores')}.softmax"
    assert softmax in [each.name for each in found.unmapped]
    assert edges(found) == [
        f"{scores}.A = {q}[m, 4*no + ni] at [no, m, ni]",
        f"{scores}.B = {k}[m, 4*no + ni] at [no, m, ni]",
        f"{context}.A = {scores}[b1, m, n] at [b1, m, n] via {softmax} whole n",
        f"{context}.B = {v}[m, 4*no + ni] at [no, m, ni]",
        f"{out}.A = {context}[b1, m, n] at [m, 4*b1 + n]",
    ]
    assert found.layers[4].after == (scores, v)


def test_operators_of_onnx_mlir() -> None:
    found = main(
        "%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %v: tensor<6x6x3x3xf32>",
        '%none = "onnx.NoValue"() {value} : () -> none',
        '%0 = "onnx.Conv"(%x, %w, %none) {dilations = [1, 1], group = 1 : si64, kernel_shape = [3, 3], onnx_node_name = "a", pads = [1, 1, 1, 1], strides = [1, 1]} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>, none) -> tensor<1x6x8x8xf32>',
        '%1 = "onnx.Relu"(%0) {onnx_node_name = "r"} : (tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32>',
        '%2 = "onnx.Conv"(%1, %v, %none) {dilations = [1, 1], group = 1 : si64, kernel_shape = [3, 3], onnx_node_name = "b", pads = [1, 1, 0, 0], strides = [2, 2]} : (tensor<1x6x8x8xf32>, tensor<6x6x3x3xf32>, none) -> tensor<1x6x4x4xf32>',
        "%2 : tensor<1x6x4x4xf32>",
    )
    assert edges(found) == ["b.Inputs = a[0, k, p, q] at [0, k, p + 1, q + 1] via r"]


# -- buffers, loops and calls

NEST = """
affine.for %i = 0 to 4 {{
  affine.for %j = 0 to 4 {{
    affine.for %k = 0 to 4 {{
      %a = affine.load %{a}[%i, %k] : memref<4x4xf32>
      %b = affine.load %{b}[%k, %j] : memref<4x4xf32>
      %c = affine.load %{c}[%i, %j] : memref<4x4xf32>
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %c, %m : f32
      affine.store %s, %{c}[%i, %j] : memref<4x4xf32>
    }}
  }}
}}
"""
ZERO = """
affine.for %i = 0 to 4 {{
  affine.for %j = 0 to 4 {{
    affine.store %z, %{c}[%i, %j] : memref<4x4xf32>
  }}
}}
"""


def nests(*lines: str) -> Workload:
    buffers = "%A: memref<4x4xf32>, %B: memref<4x4xf32>, %E: memref<4x4xf32>"
    return main(buffers, "%C = memref.alloc() : memref<4x4xf32>", "%z = arith.constant 0.0 : f32", *lines, "")


def test_nests_of_loops_read_what_others_wrote_into_a_buffer() -> None:
    found = nests(ZERO.format(c="C"), NEST.format(a="A", b="B", c="C"), NEST.format(a="C", b="B", c="E"))
    first, second = (layer.name for layer in found.layers)
    assert edges(found) == [f"{second}.A = {first}[m, n] at [m, n]"]


@pytest.mark.parametrize(
    "between",
    [
        NEST.format(a="A", b="A", c="C"),
        ZERO.format(c="C"),
        "%D = memref.subview %C[0, 0] [4, 4] [1, 1] : memref<4x4xf32> to memref<4x4xf32>\n" + ZERO.format(c="D"),
        '"memref.copy"(%A, %C) : (memref<4x4xf32>, memref<4x4xf32>) -> ()',
    ],
)
def test_words_of_a_buffer_that_is_written_again_are_unknown(between: str) -> None:
    found = nests(NEST.format(a="A", b="B", c="C"), between, NEST.format(a="C", b="B", c="E"))
    known = edges(found)
    assert known and all("?" in each for each in known)


def test_what_is_written_under_another_name_is_read() -> None:
    part = "%D = memref.subview %C[0, 0] [4, 4] [1, 1] : memref<4x4xf32> to memref<4x4xf32>"
    found = nests(part, NEST.format(a="A", b="B", c="D"), NEST.format(a="C", b="B", c="E"))
    first, second = found.layers
    assert second.after == (first.name,) and "?" in edges(found)[0]


PRODUCT = "stablehlo.dot_general {a}, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"


def test_values_that_a_loop_swaps_are_unknown() -> None:
    """After an even number of iterations the values are those before; the first one comes from `a` or from `b`."""
    found = main(
        "%x: tensor<4x4xf32>, %w: tensor<4x4xf32>",
        f"%a = {PRODUCT.format(a='%x')}",
        f"%b = {PRODUCT.format(a='%a')}",
        "%zero = stablehlo.constant dense<0> : tensor<i32>",
        "%r:3 = stablehlo.while(%i = %zero, %p = %a, %q = %b) : tensor<i32>, tensor<4x4xf32>, tensor<4x4xf32>",
        "cond {",
        "  %four = stablehlo.constant dense<4> : tensor<i32>",
        "  %t = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "  stablehlo.return %t : tensor<i1>",
        "} do {",
        "  %one = stablehlo.constant dense<1> : tensor<i32>",
        "  %n = stablehlo.add %i, %one : tensor<i32>",
        "  stablehlo.return %n, %q, %p : tensor<i32>, tensor<4x4xf32>, tensor<4x4xf32>",
        "}",
        f"%c = {PRODUCT.format(a='%r#1')}",
        "%c : tensor<4x4xf32>",
    )
    assert [edge.partition(" = ")[2] for edge in edges(found)[1:]] == [
        f"{found.layers[1].name}? the layer is executed several times"
    ]


def test_values_that_pass_a_function_without_a_body_are_unknown() -> None:
    result = read(
        "\n".join(
            [
                "func.func private @other(tensor<4x4xf32>) -> tensor<4x4xf32>",
                "func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {",
                f"%a = {PRODUCT.format(a='%x')}",
                "%b = func.call @other(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>",
                f"%c = {PRODUCT.format(a='%b')}",
                "return %c : tensor<4x4xf32>",
                "}",
            ]
        )
    )
    first, second = result.layers
    assert second.after == (first.name,) and "?" in edges(result)[0]


SOFTMAX = """
%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
%zero = stablehlo.constant dense<0.0> : tensor<f32>
%m = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
%n = stablehlo.broadcast_in_dim %m, dims = [{axis}] : (tensor<4xf32>) -> tensor<4x4xf32>
%d = stablehlo.subtract %a, %n : tensor<4x4xf32>
%e = stablehlo.exponential %d : tensor<4x4xf32>
%s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
%t = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
%p = stablehlo.divide %e, %t : tensor<4x4xf32>
"""


def test_a_softmax_of_single_operations_needs_rows_whole() -> None:
    """Each row gets its own maximum and sum back. A maximum that another row gets is a second read."""
    arguments = "%x: tensor<4x4xf32>, %w: tensor<4x4xf32>"
    first, last = f"%a = {PRODUCT.format(a='%x')}", f"%c = {PRODUCT.format(a='%p')}"
    found = main(arguments, first, SOFTMAX.format(axis=0), last, "%c : tensor<4x4xf32>")
    a, c = (layer.name for layer in found.layers)
    on_the_way = " ".join(each.name for each in found.unmapped if "broadcast" not in each.name)
    assert edges(found) == [f"{c}.A = {a}[m, n] at [m, n] via {on_the_way} whole n"]

    turned = main(arguments, first, SOFTMAX.format(axis=1), last, "%c : tensor<4x4xf32>")
    assert len(edges(turned)) > 1  # two ways that differ, so the result may not stay


def test_a_sum_alone_has_no_words() -> None:
    total = "%p = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>"
    product = "%c = stablehlo.dot_general %p, %w, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>"
    zero = "%zero = stablehlo.constant dense<0.0> : tensor<f32>"
    first = f"%a = {PRODUCT.format(a='%x')}"
    found = main("%x: tensor<4x4xf32>, %w: tensor<4x4xf32>", zero, first, total, product, "%c : tensor<4xf32>")
    assert "? words are summed: " in edges(found)[0]


def test_a_maximum_with_its_place_needs_rows_whole() -> None:
    """A nest of linalg with two results, as torch-mlir prints a softmax: rows keep an axis of size 1."""
    result = read(
        """
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
func.func @main(%x: tensor<4x6xf32>, %w: tensor<6x5xf32>, %v: tensor<5x3xf32>, %i: tensor<4x5xf32>, %j: tensor<4x1xf32>, %k: tensor<4x1xi64>, %l: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %a = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%i : tensor<4x5xf32>) -> tensor<4x5xf32>
  %m:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<4x5xf32>) outs(%j, %k : tensor<4x1xf32>, tensor<4x1xi64>) {
  ^bb0(%p: f32, %q: f32, %r: i64):
    %n = linalg.index 1 : index
    %o = arith.index_cast %n : index to i64
    %s = arith.maximumf %p, %q : f32
    %t = arith.cmpf ogt, %p, %q : f32
    %u = arith.select %t, %o, %r : i64
    linalg.yield %s, %u : f32, i64
  } -> (tensor<4x1xf32>, tensor<4x1xi64>)
  %b = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%a, %m#0 : tensor<4x5xf32>, tensor<4x1xf32>) outs(%i : tensor<4x5xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x5xf32>
  %c = linalg.matmul ins(%b, %v : tensor<4x5xf32>, tensor<5x3xf32>) outs(%l : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %c : tensor<4x3xf32>
}
"""
    )
    a, c = (layer.name for layer in result.layers)
    names = " ".join(each.name for each in result.unmapped)
    assert edges(result) == [f"{c}.A = {a}[m, n] at [m, n] via {names} whole n"]
