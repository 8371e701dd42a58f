"""Pretty-printed StableHLO, TOSA and torch, as JAX and torch-mlir write them, against their generic form."""

from pathlib import Path

import pytest

from tilewright.errors import InputError
from tilewright.schema.workload import Workload
from tilewright_frontends.mlir.module import read_workload
from tilewright_frontends.mlir.parse import parse
from tilewright_frontends.mlir.text import bits_of

FORMS = Path(__file__).parents[2] / "data" / "mlir" / "forms"
"""NAME.pretty.mlir and NAME.generic.mlir: the same module of JAX 0.10 or torch-mlir 20261001."""
MACS = {
    "jax_attn": 2 * 2 * 4 * 9 * 11 * 8,
    "jax_calls3": 3 * 8 * 16 * 16,
    "jax_scan": 5 * 8 * 16 * 16,
    "jax_sort": 8 * 16 * 16,
    "jax_grad": 2 * (2 * 16 * 16 * 16 * 27),
    "jax_convt": 8 * 8 * 9 * 4 * 6,
    "jax_convg": 2 * 3 * 7 * 3 * 6,
    "torch_conv_torch": 64 * 8 * 27 + 64 * 8 * 9 + 64 * 8 * 6 * 4 + 60,
    "torch_conv_tosa": 64 * 8 * 27 + 64 * 8 * 9 + 64 * 8 * 6 * 4 + 60,
    "torch_conv_stablehlo": 64 * 8 * 27 + 64 * 8 * 9 + 64 * 8 * 6 * 4 + 60,
}


def read(text: str, batch: int | None = None) -> Workload:
    return read_workload(parse(text, "net.mlir"), "net", "net.mlir", batch, {})


def load(name: str) -> Workload:
    return read((FORMS / name).read_text("utf-8"))


def edges(workload: Workload) -> list[list[int]]:
    places = {layer.name: place for place, layer in enumerate(workload.layers)}
    return [[places[name] for name in layer.after or ()] for layer in workload.layers]


@pytest.mark.parametrize("name", MACS)
def test_pretty_form_is_read_as_generic_form(name: str) -> None:
    pretty, generic = load(f"{name}.pretty.mlir"), load(f"{name}.generic.mlir")
    assert pretty.macs == generic.macs == MACS[name]
    assert [layer.problem.content_key for layer in pretty.layers] == [
        layer.problem.content_key for layer in generic.layers
    ]
    assert [layer.count for layer in pretty.layers] == [layer.count for layer in generic.layers]
    assert edges(pretty) == edges(generic)
    assert [(each.operator, each.operations) for each in pretty.unmapped] == [
        (each.operator, each.operations) for each in generic.unmapped
    ]


def test_every_pair_is_compared() -> None:
    assert {path.name.partition(".")[0] for path in FORMS.glob("*.pretty.mlir")} == MACS.keys()


def test_a_loop_counts_its_layers() -> None:
    """`lax.scan` over five steps."""
    (layer,) = load("jax_scan.pretty.mlir").layers
    assert layer.count == 5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("compare LT", "compare NE"),
        ("dense<5> : tensor<i32>", "dense<0> : tensor<i32>"),
        ("stablehlo.add %iterArg_0, %c_2", "stablehlo.multiply %iterArg_0, %c_2"),
        ("%iterArg_0 = %c,", "%iterArg_0 = %arg2,"),
    ],
)
def test_a_loop_without_a_known_number_of_iterations_is_told(old: str, new: str) -> None:
    text = (FORMS / "jax_scan.pretty.mlir").read_text("utf-8")
    assert old in text
    with pytest.raises(InputError, match="its contents are not read; they have stablehlo.dot_general"):
        read(text.replace(old, new))


def test_locations_name_the_layers_of_pretty_form() -> None:
    assert [layer.name for layer in load("jax_grad.debug.mlir").layers] == [
        "jit_grad_jvp_conv_general_dilated",
        "jit_grad_transpose_jvp_conv_general_dilated",
    ]


ATEN = """
module {{
  func.func @main(%x: !torch.vtensor<[2,8,9],f32>, %w: !torch.vtensor<[9,5],f32>, %v: !torch.vtensor<[5,9],f32>,
                  %b: !torch.vtensor<[5],f32>, %q: !torch.vtensor<[2,4,6,8],f32>, %k: !torch.vtensor<[2,4,7,8],f32>) {{
    %none = torch.constant.none
    %false = torch.constant.bool false
    %float0 = torch.constant.float 0.000000e+00
    %str = torch.constant.str "bik,kj->bij"
    %0 = torch.prim.ListConstruct %x, %w : (!torch.vtensor<[2,8,9],f32>, !torch.vtensor<[9,5],f32>) -> !torch.list<vtensor>
    {}
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("operation", "sizes"),
    [
        (
            "torch.aten.matmul %x, %w : !torch.vtensor<[2,8,9],f32>, !torch.vtensor<[9,5],f32> -> !torch.vtensor<[2,8,5],f32>",
            ["B0=2 M=8 N=5 K=9"],
        ),
        (
            "torch.aten.linear %x, %v, %b : !torch.vtensor<[2,8,9],f32>, !torch.vtensor<[5,9],f32>, !torch.vtensor<[5],f32>"
            " -> !torch.vtensor<[2,8,5],f32>",
            ["M=16 N=5 K=9"],
        ),
        (
            "torch.aten.addmm %b, %v, %w, %none, %none : !torch.vtensor<[5],f32>, !torch.vtensor<[5,9],f32>,"
            " !torch.vtensor<[9,5],f32>, !torch.none, !torch.none -> !torch.vtensor<[5,5],f32>",
            ["M=5 N=5 K=9"],
        ),
        (
            "torch.aten.einsum %str, %0, %none : !torch.str, !torch.list<vtensor>, !torch.none -> !torch.vtensor<[2,8,5],f32>",
            ["b=2 i=8 k=9 j=5"],
        ),
        (
            "torch.aten.scaled_dot_product_attention %q, %k, %k, %none, %float0, %false, %none, %false :"
            " !torch.vtensor<[2,4,6,8],f32>, !torch.vtensor<[2,4,7,8],f32>, !torch.vtensor<[2,4,7,8],f32>, !torch.none,"
            " !torch.float, !torch.bool, !torch.none, !torch.bool -> !torch.vtensor<[2,4,6,8],f32>",
            ["B0=2 B1=4 M=6 N=7 K=8", "B0=2 B1=4 M=6 N=8 K=7"],
        ),
    ],
)
def test_products_of_the_torch_dialect(operation: str, sizes: list[str]) -> None:
    result = read(ATEN.format(f"%r = {operation}"))
    assert [str(layer.problem).partition("; ")[2] for layer in result.layers] == sizes
    softmax = [2 * 4 * 6 * 7 * 5] if "attention" in operation else []  # five operations each, listed as for ONNX
    assert [each.operations for each in result.unmapped] == softmax


def test_older_products_of_tosa() -> None:
    result = read("""
func.func @main(%x: tensor<3x8xf32>, %w: tensor<5x8xf32>, %b: tensor<5xf32>) -> tensor<3x5xf32> {
  %0 = tosa.fully_connected %x, %w, %b : (tensor<3x8xf32>, tensor<5x8xf32>, tensor<5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
""")
    assert str(result.layers[0].problem).endswith("M=3 N=5 K=8")


def test_open_sizes_of_pretty_form() -> None:
    text = """
func.func public @main(%x: tensor<?x8xf32> {jax.arg_info = "x"}, %w: tensor<8x5xf32>) -> (tensor<?x5xf32>) {
  %0 = stablehlo.tanh %x : tensor<?x8xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  return %1 : tensor<4x5xf32>
}
"""
    assert read(text, batch=4).macs == 4 * 8 * 5
    with pytest.raises(InputError, match="net.mlir:4:8: operand 0 of stablehlo.dot_general has an open shape"):
        read(text)


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (
            "stablehlo.custom_call @gemm(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>",
            "it may contain a product of tensors",
        ),
        ("chlo.ragged_dot %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>", "it may contain a product"),
        (
            'torch.operator "tv.roi"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>',
            "which may contain a product ('tv.roi')",
        ),
        ("stablehlo.cosine %x : tensor<4x8xf32>", "not a product of tensors over affine loops"),
    ],
)
def test_what_may_be_a_product_is_told(operation: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        read(f"func.func @main(%x: tensor<4x8xf32>) {{\n  %0 = {operation}\n  return\n}}")
    assert reason in str(caught.value)


def test_a_split_file_loses_no_function() -> None:
    """The tests of MLIR's projects hold modules side by side, whose functions have equal names."""
    function = """func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xNxf32>) -> tensor<4xNxf32> {
  %0 = stablehlo.dot %x, %w : (tensor<4x8xf32>, tensor<8xNxf32>) -> tensor<4xNxf32>
  return %0 : tensor<4xNxf32>
}
"""
    two = [function.replace("N", size) for size in "35"]
    assert [layer.problem.macs for layer in read("// -----\n".join(two)).layers] == [4 * 8 * 3, 4 * 8 * 5]
    modules = [f"module {{\n{each}}}\n" for each in two]
    assert [layer.problem.macs for layer in read("\n".join(modules)).layers] == [4 * 8 * 3, 4 * 8 * 5]
    caller = "func.func @g(%x: tensor<4x8xf32>) {\n  call @f(%x, %x) : (tensor<4x8xf32>) -> ()\n  return\n}\n"
    with pytest.raises(InputError, match="it has 2 functions called 'f', and calls one of them"):
        read("".join([*two, caller]))


def test_a_layout_may_be_raw() -> None:
    text = """
func.func @f(%x: tensor<1x9x8x4xf32>, %w: tensor<3x3x4x6xf32>) -> tensor<1x7x6x6xf32> {
  %0 = "stablehlo.convolution"(%x, %w) {
    dimension_numbers = #stablehlo.conv<raw
      input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2],
      kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1],
      output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]
    >, feature_group_count = 1 : i64, batch_group_count = 1 : i64
  } : (tensor<1x9x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<1x7x6x6xf32>
  %1 = stablehlo.tanh %0 : tensor<1x7x6x6xf32>
  return %1 : tensor<1x7x6x6xf32>
}
"""
    assert str(read(text).layers[0].problem).endswith("N=1 K=6 C=4 P=7 Q=6 R=3 S=3")


def test_an_operation_may_take_several_lines() -> None:
    """As people write it; the comments contain operations of linalg."""
    result = read("""
// RUN: stablehlo-opt %s | FileCheck %s
// CHECK: linalg.matmul ins(%a, %b : tensor<3x2xf32>, tensor<2x3xf32>)
func.func @f(%x: tensor<2x9x10x3xf32>,
             %w: tensor<4x4x3x5xf32>)
  -> tensor<2x15x16x5xf32> {
  %0 = stablehlo.convolution(%x, %w)  // a window
    dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = { stride = [1, 1], pad = [[6, 6], [6, 6]],
               rhs_dilate = [2, 2] }
    {
      batch_group_count = 1 : i64,
      feature_group_count = 1 : i64,
      precision_config = [#stablehlo<precision DEFAULT>,
                          #stablehlo<precision DEFAULT>]
    } : (tensor<2x9x10x3xf32>, tensor<4x4x3x5xf32>) ->
    (tensor<2x15x16x5xf32>)
  %y, %z =
    stablehlo.optimization_barrier
      %0, %x : tensor<2x15x16x5xf32>, tensor<2x9x10x3xf32>
  %1 = stablehlo.dot_general %y, %y,
    batching_dims = [0] x [0],
    contracting_dims = [1, 2] x [1, 2]
    : (tensor<2x15x16x5xf32>, tensor<2x15x16x5xf32>)
    -> tensor<2x5x5xf32>
  return %0 : tensor<2x15x16x5xf32>
}
""")
    assert [str(layer.problem).partition("; ")[2] for layer in result.layers] == [
        "N=2 K=5 C=3 P=15 Q=16 R=4 S=4",
        "B0=2 M=5 N=5 K0=15 K1=16",
    ]
    assert result.layers[1].after == (result.layers[0].name,)


def test_tosa_with_groups_and_with_attributes_in_brackets() -> None:
    result = read("""
func.func @f(%x: tensor<1x8x8x4xf32>, %w: tensor<6x3x3x2xf32>, %v: tensor<6x3x3x4xf32>, %b: tensor<6xf32>) {
  %0 = tosa.conv2d %x, %w, %b {dilation = array<i64: 1, 1>, group = 2 : i64, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}
    : (tensor<1x8x8x4xf32>, tensor<6x3x3x2xf32>, tensor<6xf32>) -> tensor<1x8x8x6xf32>
  %1 = tosa.conv2d %x, %v, %b pad([1, 1, 1, 1]) stride([2, 2]) dilation([1, 1]) acc_type(f32)
    : (tensor<1x8x8x4xf32>, tensor<6x3x3x4xf32>, tensor<6xf32>) -> tensor<1x4x4x6xf32>
  return
}
""")
    assert [str(layer.problem).partition("; ")[2] for layer in result.layers] == [
        "N=1 G=2 K=3 C=2 P=8 Q=8 R=3 S=3",
        "N=1 K=6 C=4 P=4 Q=4 R=3 S=3",
    ]


def test_a_product_without_shapes_is_listed() -> None:
    with pytest.raises(InputError, match="tosa.matmul: the shape of an operand is not known"):
        read(
            "func.func @f(%x: tensor<*xf32>) {\n  %0 = tosa.matmul %x, %x : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>\n}"
        )


def test_the_form_for_storage_is_refused_with_the_command() -> None:
    with pytest.raises(InputError, match="vhlo is a form for storage") as caught:
        read('"builtin.module"() ({\n  "vhlo.func_v1"() : () -> ()\n}) : () -> ()')
    assert "--vhlo-legalize-to-stablehlo" in (caught.value.hint or "")


SQUARE = "func.func @f(%x: tensor<4x4xf32>) {\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("module {\n  %0 = tosa.abs %x : tensor<4xf32>\n", "net.mlir:1:8: a region is not closed"),
        ("%0 = tosa.abs %x : tensor<4xf32>\n}\n", "net.mlir:2:1: unexpected '}'"),
        ("%0 = tosa.abs (%x : tensor<4xf32>\n", "net.mlir:1:1: a bracket is not closed"),
        ("%0 = = tosa.abs %x : tensor<4xf32>\n", "net.mlir:1:1: expected an operation"),
        (")\ntosa.abs\n", "net.mlir:1:1: unexpected '\\)'"),
        ("tosa.abs {\n" * 2000, "regions are nested too deeply"),
        (
            SQUARE + "%0 = stablehlo.dot_general %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n}",
            "it has no dot_dimension_numbers",
        ),
        (
            SQUARE + "%0 = stablehlo.convolution(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n}",
            "it has no dimension_numbers",
        ),
    ],
)
def test_text_that_is_not_mlir_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(text)


NAMED = """
!data = tensor<1x10x10x512xf16>
!sum = tensor<1x8x8x512xf32>
func.func @conv(%w: tensor<3x3x512x512xf16>) -> !sum {
  %x = util.unfoldable_constant dense<1.0> : !data
  %y = linalg.conv_2d_nhwc_hwcf {
    dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>
  } ins(%x, %w : !data, tensor<3x3x512x512xf16>)
    outs(%x : !sum) -> !sum
  %z = linalg.matmul ins(%a, %b : tensor<8x4xi8>, tensor<4x2xi8>) outs(%c : tensor<8x2xi32>) -> tensor<8x2xi32>
  return %y : !sum
}
"""


def test_named_products_of_linalg_next_to_other_dialects() -> None:
    """xdsl knows no form of `util`; types have names, and operands have their types in brackets."""
    result = read(NAMED.replace("%w:", "%a: tensor<8x4xi8>, %b: tensor<4x2xi8>, %c: tensor<8x2xi32>, %w:"))
    assert [layer.problem.macs for layer in result.layers] == [64 * 512 * 512 * 9, 64]
    assert [[tensor.bits for tensor in layer.problem.tensors] for layer in result.layers] == [[16, 16, 32], [8, 8, 32]]


@pytest.mark.parametrize(
    ("types", "bits"),
    [
        (("tensor<4x8xbf16>", "tensor<8x2xbf16>", "tensor<4x2xf32>"), [16, 16, 32]),
        (("tensor<4x8xf8E4M3FN>", "tensor<8x2xi4>", "tensor<4x2xbf16>"), [8, 4, 16]),
        (("tensor<4x8x!quant.uniform<u8:f32, 0.5:3>>", "tensor<8x2xcomplex<f32>>", "tensor<4x2xsi32>"), [8, 64, 32]),
        (("tensor<4x8xf32>", "tensor<8x2xf32>", "tensor<4x2xf32>"), [None, None, None]),
    ],
)
def test_element_types_give_the_bits_of_values(types: tuple[str, str, str], bits: list[int | None]) -> None:
    a, b, z = types
    pretty = f"func.func @f(%a: {a}, %b: {b}) -> {z} {{\n%z = stablehlo.dot %a, %b : ({a}, {b}) -> {z}\n}}"
    generic = (
        '"builtin.module"() ({"func.func"() <{function_type = () -> (), sym_name = "f"}> ({\n'
        f'^bb0(%a: {a}, %b: {b}):\n%z = "stablehlo.dot"(%a, %b) : ({a}, {b}) -> {z}\n'
        '"func.return"() : () -> ()\n}) : () -> ()}) : () -> ()'
    )
    for text in (pretty, generic):
        (layer,) = read(text).layers
        assert [tensor.bits for tensor in layer.problem.tensors] == bits


@pytest.mark.parametrize(
    ("operation", "bits"),
    [
        ("torch.aten.addmm %c, %a, %b, %one, %one", [8, 8, 32]),
        ("torch.aten.mm %a, %b", [8, 8, 32]),
        ("torch.aten.scaled_dot_product_attention %q, %q, %q, %n, %p, %f, %n, %f", [16, 16, 16]),
    ],
)
def test_bits_of_the_torch_dialect(operation: str, bits: list[int]) -> None:
    q, a, b, z = (f"!torch.vtensor<[{each}" for each in ("2,4,8],f16>", "4,8],si8>", "8,2],si8>", "4,2],si32>"))
    many = operation.count("attention")
    kinds = ", ".join([q] * 3 + ["!torch.none"] * 5) if many else f"{a}, {b}"
    text = (
        f"func.func @f(%q: {q}, %a: {a}, %b: {b}, %c: {z}) -> {z} {{\n"
        "%one = torch.constant.int 1\n%n = torch.constant.none\n%f = torch.constant.bool false\n"
        f"%p = torch.constant.float 0.0\n%z = {operation} : {kinds} -> {q if many else z}\n}}"
    )
    for layer in read(text).layers:
        assert [tensor.bits for tensor in layer.problem.tensors] == bits


def test_a_region_that_is_executed_once_is_read() -> None:
    text = """
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>) -> tensor<4x2xf32> {
      %u = mhlo.constant dense<1.0> : tensor<2x3xf32>
      %y = "mhlo.fusion"(%x, %w) ({
        %z = "mhlo.dot"(%x, %w) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
        "mhlo.return"(%z) : (tensor<4x2xf32>) -> ()
      }) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
      %v = mhlo.dot %y, %u : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      return %y : tensor<4x2xf32>
    }
    """
    workload = read(text)
    assert [layer.problem.macs for layer in workload.layers] == [64, 24] and edges(workload) == [[], [0]]


GENERIC = """#map = affine_map<(d0, d1, d2) -> (A)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#product = {
  indexing_maps = [#map, #map1, #map2], // operands, then the result
  iterator_types = ["parallel", "parallel", "reduction"]
}
func.func @f(%a: tensor<S>, %b: tensor<8x16xbf16>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = linalg.generic ATTRIBUTES ins(%a, %b : tensor<S>, tensor<8x16xbf16>) outs(%c : tensor<4x16xf32>) {
  ^bb0(%in: bf16, %in_0: bf16, %out: f32):
    %1 = arith.extf %in : bf16 to f32
    %2 = arith.extf %in_0 : bf16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %out, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<4x16xf32>
  %5 = other.use %0 {of = 3} : tensor<4x16xf32>
  return %5 : tensor<4x16xf32>
}
"""


@pytest.mark.parametrize(
    "attributes", ["#product", '{indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel"]}']
)
def test_maps_are_read_next_to_operations_that_xdsl_lacks(attributes: str) -> None:
    """Modules of a split file have aliases of their own, and each keeps its line numbers."""
    text = GENERIC.replace("ATTRIBUTES", attributes)
    modules = [
        text.replace("(A)", rank).replace("S>", size)
        for rank, size in (("(d0, d2)", "4x8xbf16>"), ("(d2, d0)", "8x4xbf16>"))
    ]
    result = read("// -----\n\n".join(modules))
    assert [str(layer.problem) for layer in result.layers] == [
        "Z[M, N] += A[M, K] * B[K, N]; M=4 N=16 K=8",
        "Z[M, N] += A[K, M] * B[K, N]; M=4 N=16 K=8",
    ]
    assert [[tensor.bits for tensor in layer.problem.tensors] for layer in result.layers] == [[16, 16, 32]] * 2
    lines = text.count("\n")
    assert [each.reason.partition(":")[0] for each in result.unmapped] == ["17", str(17 + lines + 2)]
    with pytest.raises(InputError, match=r"net\.mlir:\d+:1: re-declaration of alias '#map'"):
        read("\n".join(modules))
    for old, new in (("(A)", "(d0 d2)"), ("[#map, #map1, #map2]", "[99999999999999999999]")):
        with pytest.raises(InputError, match=r"net\.mlir:9:3: indexing_maps of linalg\.generic"):
            read(text.replace(old, new).replace("(A)", "(d0, d2)"))


@pytest.mark.parametrize("foreign", ["", "  other.use %a : memref<64x32xf32>\n"])
@pytest.mark.parametrize(
    ("loop", "times"),
    [
        ("scf.for %i = %c0 to %c64 step %c16 {\n scf.for %j = %c0 to %c64 step %c32 {\nBODY\n }\n }", 4 * 2),
        ("scf.parallel (%i, %j) = (%c0, %c16) to (%c64, %c64) step (%c16, %c32) {\nBODY\n }", 4 * 2),
        ("scf.for %i = %c64 to %c0 step %c16 {\nBODY\n }", 0),
        ("scf.for %i = %c0 to %n step %c16 {\nBODY\n }", 0),
    ],
)
def test_a_tiled_product_counts_as_often_as_its_loops_run(loop: str, times: int, foreign: str) -> None:
    """By xdsl, and by this reader next to an operation that xdsl lacks. Loops of unknown length are listed."""
    body = "linalg.matmul ins(%a, %b : memref<64x32xf32>, memref<32x8xf32>) outs(%c : memref<64x8xf32>)"
    constants = "".join(f"  %c{each} = arith.constant {each} : index\n" for each in (0, 16, 32, 64))
    text = (
        "func.func @f(%a: memref<64x32xf32>, %b: memref<32x8xf32>, %c: memref<64x8xf32>, %n: index) {\n"
        f"{constants}  {body}\n{foreign}  {loop.replace('BODY', body)}\n  return\n}}\n"
    )
    result = read(text)
    assert result.macs == (1 + times) * 64 * 32 * 8
    listed = [each.reason for each in result.unmapped if each.operator.startswith("scf")]
    assert [each.partition(": ")[2] for each in listed] == (
        [] if times else ["control flow: its contents are not read; they have linalg.matmul"]
    )


def test_a_result_with_fewer_axes_than_the_map_is_malformed() -> None:
    text = (FORMS.parent / "torch_intensli2.linalg_generalized.mlir").read_text(encoding="utf-8")
    head, tail = text.split("} -> tensor<1x4096x16xf32>\n    %collapsed_1")
    with pytest.raises(InputError, match=r"linalg.generic is malformed"):
        read(f"{head}}} -> tensor<1x4096    %collapsed_1{tail}")


def test_a_width_of_many_digits_is_not_known() -> None:
    assert bits_of("f" + "9" * 5000) is None and bits_of("f32") == 32
