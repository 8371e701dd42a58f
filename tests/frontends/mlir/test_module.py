"""Modules of MLIR as JAX, torch-mlir, IREE and TensorFlow print them, and written by hand: the layers that come out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload
from tilewright_frontends import MlirOptions, OnnxOptions, mlir
from tilewright_frontends.einsum import EinsumFrontend
from tilewright_frontends.mlir import MlirFrontend
from tilewright_frontends.mlir.module import read_workload
from tilewright_frontends.mlir.parse import parse
from tilewright_frontends.onnx import OnnxFrontend

DATA = Path(__file__).parents[2] / "data" / "mlir"
EXPECTED: dict[str, list[str]] = json.loads((DATA / "expected.json").read_text("utf-8"))
"""File -> nests, as an independent reader saw them; names of dimensions are its own."""
REFUSED = [
    "'(d1 mod 2)' in a subscript is not a sum of loop variables",
    "'(d1 floordiv 2)' in a subscript is not a sum of loop variables",
    "loop 2 has no constant upper bound; fix the shape, do not tile",
    "loop 2 has no constant upper bound; fix the shape, do not tile",
    "loop 2 has no constant lower bound; fix the shape, do not tile",
    "affine.if in the body",
    "it ends with arith.maximumf, not with an addition to the result",
    "it ends with arith.subf, not with an addition to the result",
    "nothing is multiplied: a sum",
    "arith.divf in the product",
    "an imperfect nest: affine.store, arith.constant next to a loop; initialise in a separate nest",
    "2 stores in the body; expected one",
    "the result is assigned, not summed into",
    "the sum does not add to the element of the result that is stored",
    "the result is also a factor",
    "a subscript is read from memory",
    "loop 2 indexes no tensor: it repeats the same work",
    "runs forwards in one subscript and backwards in another",
    "an imperfect nest: affine.load, affine.store next to a loop; initialise in a separate nest",
    "its contents are not read",
]
"""Messages for the functions of affine_refused, in their order."""


def load(name: str, options: MlirOptions | None = None) -> Workload:
    return MlirFrontend(options or MlirOptions()).load(str(DATA / name))


def read(text: str, batch: int | None = None, sizes: dict[str, int] | None = None) -> Workload:
    return read_workload(parse(text, "net.mlir"), "net", "net.mlir", batch, sizes or {})


def shape_of(problem: Problem) -> tuple[int, Counter[tuple[int, tuple[tuple[int, ...], ...]]]]:
    """Return the properties that do not depend on names and orders.

    These are the MACs and, for each dimension longer than 1, its size and its coefficients in each tensor.
    """
    dimensions = Counter(
        (
            size,
            tuple(
                tuple(sorted(rank.terms.get(name, 0) for rank in tensor.projection)[::-1][:1])
                for tensor in problem.tensors
            ),
        )
        for name, size in problem.dimensions.items()
        if size > 1
    )
    return problem.macs, dimensions


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name]])
def test_layers_are_those_of_an_independent_reader(name: str) -> None:
    found = [shape_of(layer.problem) for layer in load(name).layers]
    assert found == [shape_of(EinsumFrontend().load(nest).layers[0].problem) for nest in EXPECTED[name]]


@pytest.mark.parametrize("dialect", ["stablehlo", "tosa"])
def test_resnet50_is_that_of_onnx(dialect: str) -> None:
    found, onnx = load(f"torch_resnet50.{dialect}.generic.mlir"), OnnxFrontend(OnnxOptions()).load("resnet50")
    assert (len(found.layers), found.macs) == (54, 4_089_184_256)
    assert sorted(map(str, (shape_of(layer.problem) for layer in found.layers))) == sorted(
        map(str, (shape_of(layer.problem) for layer in onnx.layers))
    )
    convolutions = [
        [layer.problem for layer in net.layers if layer.problem.operation == "conv2d"] for net in (found, onnx)
    ]
    assert {each.content_key for each in convolutions[0]} == {each.content_key for each in convolutions[1]}


def test_every_refusal_says_where_and_why() -> None:
    with pytest.raises(InputError) as caught:
        load("affine_refused.generic.mlir")
    first, *lines = str(caught.value).splitlines()
    assert "it has no tensor product over affine loops" in first
    assert len(lines) == len(REFUSED)
    for line, reason in zip(lines, REFUSED, strict=True):
        assert reason in line
        assert "affine_refused.generic.mlir:" in line


def test_functions_are_followed_each_time_they_are_called() -> None:
    workload = load("calls.stablehlo.generic.mlir")
    assert [layer.name for layer in workload.layers] == ["dot_general_11", "dot_general_11_2", "dot_general_11_3"]
    assert [layer.after for layer in workload.layers] == [(), ("dot_general_11",), ("dot_general_11_2",)]


def test_layers_are_named_after_their_locations() -> None:
    workload = load("conv_nhwc.debuginfo.generic.mlir")
    assert [layer.name for layer in workload.layers] == [
        "jit_convnhwc_conv_general_dilated",
        "jit_convnhwc_conv_general_dilated_2",
    ]


def test_what_is_not_mapped_is_listed_with_its_share() -> None:
    found = {each.name: each for each in load("attention_scores.tf.mlir").unmapped}
    assert found["Softmax_4"].operations == 2 * 4 * 16 * 16
    assert found["Softmax_4"].reason.startswith("4:5: ")


@pytest.mark.parametrize("data", ["2.0e-02", '"0x0AD7A33C"', "0"])
def test_weights_that_one_number_stands_for_are_not_written_out(data: str) -> None:
    text = f"""
"builtin.module"() ({{
  "func.func"() <{{function_type = (tensor<8x65536xf32>) -> tensor<8x1048576xf32>, sym_name = "main"}}> ({{
  ^bb0(%x: tensor<8x65536xf32>):
    %w = "tosa.const"() <{{values = dense<{data}> : tensor<1x65536x1048576xf32>}}> : () -> tensor<1x65536x1048576xf32>
    %a = "tosa.reshape"(%x) : (tensor<8x65536xf32>) -> tensor<1x8x65536xf32>
    %y = "tosa.matmul"(%a, %w) : (tensor<1x8x65536xf32>, tensor<1x65536x1048576xf32>) -> tensor<1x8x1048576xf32>
    "func.return"(%y) : (tensor<1x8x1048576xf32>) -> ()
  }}) : () -> ()
}}) : () -> ()
"""
    assert read(text).macs == 8 * 2**36


@pytest.mark.parametrize("text", ["#", "# = affine_map<(d0) -> (d0)>", "\ufeff module {}", "#[[["])
def test_what_begins_with_no_word_of_mlir_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="net.mlir:1:1: "):
        read(text)


def test_the_front_door_loads_it() -> None:
    assert tw.load(str(DATA / "intensli2.tf.mlir"), "problem").macs == 16**5


# -- sizes -----------------------------------------------------------------------------------------------------------

OPEN = """
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?x64xf32>, tensor<64x32xf32>) -> tensor<?x32xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<?x64xf32>, %w: tensor<64x32xf32>):
    %0 = "stablehlo.tanh"(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
    %1 = "stablehlo.slice"(%0) : (tensor<?x64xf32>) -> tensor<?x64xf32>
    %2 = "stablehlo.dot"(%USED, %w) : (tensor<?x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    "func.return"(%2) : (tensor<8x32xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""


def test_open_sizes_are_asked_for_by_name() -> None:
    text = OPEN.replace("%USED", "%0")
    with pytest.raises(InputError, match="open shape, \\? x 64"):
        read(text)
    assert read(text, batch=8).macs == read(text, sizes={"arg0_0": 8}).macs == 8 * 64 * 32
    with pytest.raises(InputError, match="no dynamic dimension called 'arg0_1'; it has: arg0_0"):
        read(text, sizes={"arg0_1": 8})


def test_a_size_that_nobody_knows_is_not_guessed() -> None:
    with pytest.raises(InputError, match="open shape"):
        read(OPEN.replace("%USED", "%1"), batch=8)


def test_batch_says_nothing_where_all_is_fixed() -> None:
    with pytest.raises(InputError, match="--batch has no effect; omit it"):
        load("mlp.stablehlo.generic.mlir", MlirOptions(batch=2))


# -- contradictions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            "convnet_nchw.stablehlo.generic.mlir",
            "tensor<16x3x3x3xf32>) -> tensor<1x16x16x16xf32>",
            "tensor<16x4x3x3xf32>) -> tensor<1x16x16x16xf32>",
            "channels",
        ),
        (
            "convnet_nchw.stablehlo.generic.mlir",
            "window_strides = array<i64: 2, 2>",
            "window_strides = array<i64: 3, 3>",
            "the number of window positions differ",
        ),
        (
            "mlp.stablehlo.generic.mlir",
            "rhs_contracting_dimensions = [0]",
            "rhs_contracting_dimensions = [1]",
            "has sizes",
        ),
        (
            "contractions_linalg.generic.mlir",
            "tensor<16x16xf32>, tensor<16x16x16x16xf32>) -> tensor<16x16x16x16xf32>\n",
            "tensor<16x8xf32>, tensor<16x16x16x16xf32>) -> tensor<16x16x16x16xf32>\n",
            "sizes",
        ),
    ],
)
def test_an_operation_that_contradicts_itself_is_refused(name: str, old: str, new: str, said: str) -> None:
    text = (DATA / name).read_text("utf-8")
    assert old in text
    with pytest.raises(InputError, match=said):
        read(_typed(text, old, new))


def _typed(text: str, old: str, new: str) -> str:
    """With the first `old` replaced, and all types of the values concerned where shapes change."""
    return text.replace(old, new) if "tensor<" not in old else _retyped(text, old, new)


def _retyped(text: str, old: str, new: str) -> str:
    before, after = old.split(",")[0].split(")")[0], new.split(",")[0].split(")")[0]
    return text.replace(before, after)


def test_a_function_that_calls_itself_is_refused() -> None:
    text = (DATA / "calls.stablehlo.generic.mlir").read_text("utf-8").replace("callee = @relu", "callee = @block")
    with pytest.raises(InputError, match="function block calls itself"):
        read(text)


def test_calls_that_unfold_without_end_are_refused() -> None:
    functions = "\n".join(
        f'"func.func"() <{{function_type = () -> (), sym_name = "f{number}"}}> ({{\n'
        + f'  "func.call"() <{{callee = @f{number + 1}}}> : () -> ()\n' * 10
        + '  "func.return"() : () -> ()\n}) : () -> ()'
        for number in range(12)
    )
    with pytest.raises(InputError, match="unfold into more than"):
        read(f'"builtin.module"() ({{\n{functions}\n}}) : () -> ()')


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("OPEN", 1),
        ("#loc1 = loc(OPEN", 13),
        ("#loc1 = loc(OPEN)\n#loc2 = loc(unknown)", 13),
        ("#loc1 = loc(callsite(", 13),
    ],
)
def test_an_open_string_or_location_is_refused_at_once(text: str, column: int) -> None:
    """xdsl's own pattern for strings takes twice as long for every character of one that is not closed."""
    with pytest.raises(InputError, match=rf"net.mlir:1:{column}: a string or location is not closed"):
        read(text.replace("OPEN", '"' + "a" * 100))


@pytest.mark.parametrize(
    ("operation", "program"), [("vhlo.custom_call @f(%x)", "stablehlo-opt"), ("shape.unheard %x", "mlir-opt")]
)
def test_an_operation_whose_pretty_form_is_not_read_is_named(operation: str, program: str) -> None:
    text = f"func.func @main(%x: tensor<4x8xf32>) {{\n  %0 = {operation} : tensor<4x8xf32>\n}}"
    with pytest.raises(InputError, match=f"net.mlir:2:8: the pretty form of {operation.split()[0]} is not") as caught:
        parse(text, "net.mlir")
    assert f"{program} net.mlir --mlir-print-op-generic" in (caught.value.hint or "")


def endless(*_: object) -> None:
    while True:
        pass


def boundless(*_: object) -> None:
    bytearray(2**30)


@pytest.mark.parametrize(
    ("reading", "said"), [(endless, "took longer than it may"), (boundless, "takes more than 768 MiB of memory")]
)
def test_a_file_is_read_within_limits(monkeypatch: pytest.MonkeyPatch, reading: Callable[..., None], said: str) -> None:
    """Whatever reading it does."""
    monkeypatch.setattr(mlir, "SECONDS", 1)
    monkeypatch.setattr(mlir, "read_file", reading)
    with pytest.raises(InputError, match=f"mlp.stablehlo.generic.mlir cannot be read: the reading process {said}"):
        load("mlp.stablehlo.generic.mlir")


PRETTY = """
func.func @f(%a: tensor<4x8x16xf32>, %b: tensor<4x16x32xf32>, %c: tensor<4x8x32xf32>, %w: tensor<3x16x5xf32>, %o: tensor<4x3x5xf32>) {
  %r = linalg.batch_matmul
    ins(%a, %b : tensor<4x8x16xf32>, tensor<4x16x32xf32>) outs(%c : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  %s = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<2> : tensor<1xi64>}
    ins(%a, %w : tensor<4x8x16xf32>, tensor<3x16x5xf32>) outs(%o : tensor<4x3x5xf32>) -> tensor<4x3x5xf32>
  %t = linalg.abs ins(%r : tensor<4x8x32xf32>) outs(%c : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  return
}
"""


def test_named_operators_of_linalg_are_read_as_they_are_written() -> None:
    """xdsl has only some of them."""
    result = read(PRETTY)
    assert [layer.problem.macs for layer in result.layers] == [4 * 8 * 16 * 32, 4 * 3 * 5 * 3 * 16]
    assert [each.operator for each in result.unmapped] == ["linalg.abs"]


@pytest.mark.parametrize("data", ["2.0e-02", "0", '"0x0AD7A33C"'])
def test_a_large_constant_in_pretty_form_keeps_its_shape(data: str) -> None:
    result = read(f"""
func.func @f(%a: tensor<8x65536xf32>, %o: tensor<8x1048576xf32>) {{
  %w = arith.constant {{kept = true}} dense<{data}> : tensor<65536x1048576xf32>
  %z = arith.constant dense<{data}> : tensor<64x512xf32>
  %r = linalg.matmul ins(%a, %w : tensor<8x65536xf32>, tensor<65536x1048576xf32>) outs(%o : tensor<8x1048576xf32>) -> tensor<8x1048576xf32>
  return
}}
""")
    assert result.macs == 8 * 2**36
    assert not result.unmapped


@pytest.mark.parametrize(("ends", "returned"), [("%y", []), ("%y, %a", ["a"]), ("%y, %b", ["a"]), ("%c", ["c"])])
def test_a_result_that_a_module_returns_is_marked(ends: str, returned: list[str]) -> None:
    kind, dims = (
        "tensor<8x8xf32>",
        "contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>",
    )
    kinds = ", ".join([kind] * len(ends.split()))
    text = f"""func.func @main(%x: {kind}, %w: {kind}) -> ({kinds}) {{
  %a = stablehlo.dot_general %x, %w, {dims}
  %b = stablehlo.tanh %a : {kind}
  %c = stablehlo.dot_general %b, %w, {dims}
  %y = stablehlo.dot_general %c, %w, {dims}
  return {ends} : {kinds}
}}"""
    found = read_workload(parse(text, "small.mlir"), "small", "small.mlir", None, {})
    assert ["acy"[number] for number, layer in enumerate(found.layers) if layer.returned] == returned


COMET = (DATA / "products.ta.mlir").read_text("utf-8")


def test_a_tensor_of_comet_is_read_from_its_assignment() -> None:
    """`ta.set_op` gives the words of a product to a tensor; fills and second assignments end that."""
    workload = read(COMET)
    assert [layer.after for layer in workload.layers] == [(), ("mul_14",)]
    (edge,) = workload.layers[1].reads["A"]
    assert edge.cut is None
    assert [(part.operator, part.operations) for part in workload.unmapped] == [("ta.elews_mul", 128)]
    assert [(layer.operator, layer.after) for layer in workload.vectors] == [("Mul", ("mul_16",))]
    line = next(line for line in COMET.splitlines() if '"ta.set_op"(%9' in line)
    for again in (line, line.replace('ta.set_op"(%9, ', 'ta.fill"(').replace("(tensor<8x2xf64>, ", "(")):
        (edge,) = read(COMET.replace(line, f"{line}\n{again}")).layers[1].reads["A"]
        assert edge.cut == "a tensor is written more than once"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("tensor<8x4xf64>", "!ta.sparse_tensor<f64, i64, 8, 4, d, unk>", "an operand is sparse"),
        ("plusxy_times", "minxy_plusxy", "semiring minxy_plusxy is no sum of products"),
        ('MaskType = "none"', 'MaskType = "push"', "mask push: which words are computed depends on data"),
    ],
)
def test_sparse_operands_masks_and_other_semirings_of_comet_are_listed(old: str, new: str, told: str) -> None:
    workload = read(COMET.replace(old, new, -1 if old.startswith("tensor") else 1))
    assert told in [part.reason.partition(": ")[2] for part in workload.unmapped]
