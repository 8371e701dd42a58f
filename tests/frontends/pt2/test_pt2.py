"""Exported programs: what is mapped, defaults that are not written, symbolic sizes, and archives that are none."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support.exported import Size, node, program, save
from tilewright.errors import InputError
from tilewright_frontends import Pt2Options
from tilewright_frontends.nests import Unsupported
from tilewright_frontends.pt2 import archive, read_file
from tilewright_frontends.pt2.sizes import OpenSizeError, value_of


def one(target: str, shapes: Mapping[str, Sequence[Size]], folder: Path, **words: Any) -> tw.Workload:
    """A program of one call, whose arguments are all its tensors but `out`."""
    arguments = {name: f"%{name}" for name in shapes if name != "out"}
    data = program(list(arguments), shapes, [node(target, "out", **(arguments | words))])
    return read_file(Path(save(data, folder / "one.pt2")), "one.pt2", None, {})


def text(workload: tw.Workload) -> list[str]:
    return [str(layer.problem) for layer in workload.layers]


def test_a_convolution_has_the_defaults_that_are_not_written(tmp_path: Path) -> None:
    found = one("aten.conv2d.default", {"input": (2, 3, 9, 9), "weight": (8, 3, 3, 3), "out": (2, 8, 7, 7)}, tmp_path)

    assert text(found) == [
        "Outputs[N, K, P, Q] += Inputs[N, C, P + R, Q + S] * Weights[K, C, R, S]; N=2 K=8 C=3 P=7 Q=7 R=3 S=3"
    ]


@pytest.mark.parametrize("stride", [2, [2], [2, 2]])
def test_one_stride_is_for_all_axes(stride: Any, tmp_path: Path) -> None:
    shapes = {"input": (1, 8, 10, 10), "weight": (8, 2, 3, 3), "out": (1, 8, 5, 5)}
    found = one("aten.conv2d.padding", shapes, tmp_path, stride=stride, padding="same", dilation=[1, 1], groups=4)
    (layer,) = found.layers

    assert layer.problem.operation == "conv2d" and "2*P + R" in str(layer.problem)
    assert dict(layer.problem.dimensions) == {"N": 1, "G": 4, "K": 2, "C": 2, "P": 5, "Q": 5, "R": 3, "S": 3}


def test_convolutions_of_every_kind(tmp_path: Path) -> None:
    depthwise = one("aten.conv1d.default", {"input": (4, 9), "weight": (4, 1, 3), "out": (4, 7)}, tmp_path, groups=4)
    deep = one(
        "aten.conv3d.default", {"input": (1, 2, 4, 5, 6), "weight": (3, 2, 1, 2, 3), "out": (1, 3, 4, 4, 4)}, tmp_path
    )
    shapes = {"input": (1, 4, 5, 5), "weight": (4, 6, 2, 2), "out": (1, 6, 10, 10)}
    transposed = one("aten.conv_transpose2d.input", shapes, tmp_path, stride=[2, 2])
    general = one(
        "aten.convolution.default", shapes, tmp_path, stride=[2], padding=[0], dilation=[1], transposed=True, groups=1
    )

    assert depthwise.layers[0].problem.operation == "depthwise_conv1d"
    assert deep.macs == 3 * 2 * 1 * 2 * 3 * 4 * 4 * 4
    assert transposed.layers[0].problem.operation == "conv_transpose2d" and transposed.macs == 4 * 6 * 4 * 25
    assert general.layers[0].problem.dimensions == transposed.layers[0].problem.dimensions


@pytest.mark.parametrize(
    ("target", "shapes", "macs"),
    [
        ("aten.linear.default", {"input": (2, 7, 5), "weight": (3, 5), "bias": (3,), "out": (2, 7, 3)}, 210),
        ("aten.linear.default", {"input": (5,), "weight": (3, 5), "out": (3,)}, 15),
        ("aten.mm.default", {"self": (2, 5), "mat2": (5, 3), "out": (2, 3)}, 30),
        ("aten.bmm.default", {"self": (4, 2, 5), "mat2": (4, 5, 3), "out": (4, 2, 3)}, 120),
        ("aten.addmm.default", {"self": (3,), "mat1": (2, 5), "mat2": (5, 3), "out": (2, 3)}, 30),
        ("aten.baddbmm.default", {"self": (4, 2, 3), "batch1": (4, 2, 5), "batch2": (4, 5, 3), "out": (4, 2, 3)}, 120),
        ("aten.matmul.default", {"self": (6, 4, 2, 5), "other": (4, 5, 3), "out": (6, 4, 2, 3)}, 720),
        ("aten.mv.default", {"self": (2, 5), "vec": (5,), "out": (2,)}, 10),
    ],
)
def test_products(target: str, shapes: dict[str, Sequence[Size]], macs: int, tmp_path: Path) -> None:
    found = one(target, shapes, tmp_path)

    assert found.macs == macs and [layer.problem.operation for layer in found.layers] == ["gemm"]


def test_an_einsum_keeps_its_letters(tmp_path: Path) -> None:
    shapes = {"a": (2, 3, 4), "b": (4, 5), "out": (5, 2)}
    data = program(
        ["a", "b"], shapes, [node("aten.einsum.default", "out", equation="abk,kn->na", tensors=["%a", "%b"])]
    )
    found = read_file(Path(save(data, tmp_path / "one.pt2")), "one.pt2", None, {})

    assert text(found) == ["Z[n, a] += A[a, b, k] * B[k, n]; a=2 b=3 k=4 n=5"]


@pytest.mark.parametrize("kernel", ["scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"])
def test_attention_is_two_products_counted_in_full(kernel: str, tmp_path: Path) -> None:
    shapes = {"query": (2, 8, 5, 16), "key": (2, 8, 7, 16), "value": (2, 8, 7, 4), "out": (2, 8, 5, 4)}
    found = one(f"aten.{kernel}.default", shapes, tmp_path, is_causal=True)

    assert [layer.name for layer in found.layers] == ["out.scores", "out.context"]
    assert [layer.after for layer in found.layers] == [(), ("out.scores",)]
    assert found.macs == 2 * 8 * 5 * 7 * (16 + 4)


def test_queries_that_share_keys_read_them_once_for_all(tmp_path: Path) -> None:
    shapes = {"query": (1, 8, 5, 16), "key": (1, 2, 5, 16), "value": (1, 2, 5, 16), "out": (1, 8, 5, 16)}
    found = one("aten.scaled_dot_product_attention.default", shapes, tmp_path, enable_gqa=True)

    for layer in found.layers:
        keys = layer.problem.operands[1]
        assert layer.problem.tensor_words(keys) == 2 * 5 * 16 and layer.problem.macs == 8 * 5 * 5 * 16


NET: dict[str, Sequence[Size]] = {
    "x": ("s0", 3, 8, "s1"),
    "w": (4, 3, 3, 3),
    "conv": ("s0", 4, 6, "s1 - 2"),
    "relu": ("s0", 4, 6, "s1 - 2"),
    "flat": ("s0", "24*s1 - 48"),
    "v": (10, 144),
    "linear": ("s0", 10),
}
NODES = [
    node("aten.conv2d.default", "conv", "features.0", input="%x", weight="%w", bias=None),
    node("aten.relu.default", "relu", "features.1", self="%conv"),
    node("aten.view.default", "flat", self="%relu", size=[-1, 144]),
    node("aten.linear.default", "linear", "L['self'].classifier", input="%flat", weight="%v"),
]


def test_a_network_has_names_links_and_what_is_not_mapped(tmp_path: Path) -> None:
    path = save(program(["x"], NET, NODES), tmp_path / "net.pt2")
    workload = tw.load(path, "workload", batch=2, sizes={"s1": 8})

    assert [(layer.name, layer.after) for layer in workload.layers] == [
        ("features.0", ()),
        ("classifier", ("features.0",)),
    ]
    assert workload.macs == 2 * 4 * 6 * 6 * 27 + 2 * 144 * 10
    assert [(each.operator, each.operations) for each in workload.unmapped] == [
        ("aten.relu.default", 2 * 4 * 6 * 6),
        ("aten.view.default", 0),
    ]
    assert workload.source is not None and "torch 2.9.0" in workload.source


def test_earlier_archives_have_the_program_at_the_top(tmp_path: Path) -> None:
    data = program(["x"], NET, NODES)
    path = save(data, tmp_path / "net.pt2", "serialized_exported_program.json")

    assert tw.load(path, "workload", sizes={"s0": 1, "s1": 8}).macs == 4 * 6 * 6 * 27 + 1440


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "has the open size s"),
        ({"sizes": {"s1": 8}}, "has the open size s0"),
        ({"sizes": {"s3": 8}}, "no symbolic size called 's3'; it has: s0, s1"),
        ({"batch": 1, "sizes": {"s1": 2}}, "the inner sizes differ: 0 and 144"),
    ],
)
def test_sizes_that_are_missing_or_wrong(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = save(program(["x"], NET, NODES), tmp_path / "net.pt2")

    try:
        found = str(tw.load(path, "workload", **options).unmapped)
    except InputError as error:
        found = str(error)
    assert told in found


@given(st.integers(1, 40), st.integers(1, 40))
def test_expressions_are_those_of_sums_products_and_quotients(a: int, b: int) -> None:
    sizes = {"s0": a, "s77": b}
    for text, value in {
        "s0": a,
        "2*s0 + 3": 2 * a + 3,
        "s0*s77 - 1": a * b - 1,
        "((s0 + 3)//2)": (a + 3) // 2,
        "Max(1, s0 - s77)": max(1, a - b),
        "Min(s0, s77)": min(a, b),
        "-(2 - s0)//s77": -(2 - a) // b,
        "Mod(s0, 5)": a % 5,
        "CeilDiv(s0, 4)": -(-a // 4),
    }.items():
        assert value_of(text, sizes) == value


@pytest.mark.parametrize(
    "odd", ["", "s0(", "s0**9", "sqrt(s0)", "s0/2", "s0 if s0 else 1", "1//0", "x" * 2000, "True", "9**9**9", "s0.a"]
)
def test_other_expressions_are_refused(odd: str) -> None:
    with pytest.raises(Unsupported):
        value_of(odd, {"s0": 4})
    with pytest.raises(OpenSizeError, match="s1"):
        value_of("s0 + s1", {"s0": 4})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda data: data | {"schema_version": {"major": 9, "minor": 0}},
            "version 9 of torch.export's schema; expected 8",
        ),
        (lambda data: {"a": 1}, "it has no graph_module"),
        (lambda data: "{", "is not JSON"),
        (lambda data: "[" * 100_000, "is not JSON"),
        (lambda data: data | {"graph_module": {"graph": {"nodes": 3}}}, "is not a valid exported program"),
        (
            lambda data: program(["x"], {"x": (1,), "y": (1,)}, [node("aten.relu.default", "y", self="%x")]),
            "it has no tensor product",
        ),
    ],
)
def test_what_is_no_program_is_refused(change: Any, told: str, tmp_path: Path) -> None:
    path = save(change(program(["x"], NET, NODES)), tmp_path / "net.pt2")

    with pytest.raises(InputError) as error:
        read_file(Path(path), "net.pt2", None, {})
    assert told in str(error.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_a_bad_file(method: int, tmp_path: Path) -> None:
    path = tmp_path / "one.pt2"
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("one/models/model.json", json.dumps({"text": list(range(1000))}))
        start = file.infolist()[0].header_offset + 30 + len("one/models/model.json")
    data = bytearray(path.read_bytes())
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)

    with pytest.raises(InputError, match=r"cannot read .*one\.pt2"):
        archive.read_program(path)


def test_archives_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.pt2").write_text("no archive")
    with zipfile.ZipFile(tmp_path / "two.pt2", "w") as found:
        found.writestr("models/a.json", "{}")
        found.writestr("models/b.json", "{}")
    save("{}", tmp_path / "none.pt2", "model.json")
    with zipfile.ZipFile(tmp_path / "bomb.pt2", "w", zipfile.ZIP_DEFLATED) as found:
        found.writestr("models/a.json", b" " * 2**20)
    monkeypatch.setattr(archive, "MAX_BYTES", 2**19)

    for name, told in {
        "text": "not a zip file", "two": "several programs: models/a.json", "none": "no program",
        "bomb": "more than", "absent": "No such file",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=told):
            archive.read_program(tmp_path / f"{name}.pt2")


def test_nothing_is_unpickled_and_damaged_programs_are_refused_or_read(tmp_path: Path) -> None:
    """Every value of the JSON in turn becomes something else."""
    whole = json.dumps(program(["x"], NET, NODES))
    random = np.random.default_rng(0)
    odds: tuple[Any, ...] = (None, 3, -1, "x", [], {}, True)
    for odd in odds:
        for _ in range(30):
            data = json.loads(whole)
            place: Any = data
            while isinstance(place, dict | list) and place:
                keys: list[Any] = sorted(place) if isinstance(place, dict) else list(range(len(place)))
                key = keys[int(random.integers(len(keys)))]
                inner = place[key]
                if not isinstance(inner, dict | list) or not inner or random.random() < 0.2:
                    place[key] = odd
                    break
                place = inner
            path = Path(save(data, tmp_path / "odd.pt2"))
            try:
                read_file(path, "odd.pt2", 1, {"s1": 8})
            except InputError as error:
                assert str(error)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError):
        Pt2Options.model_validate({"sizes": {"s0": 0}})


@pytest.mark.parametrize(("ends", "returned"), [("y", []), ("y a", ["a"]), ("y b", ["a"]), ("c", ["c"])])
def test_a_result_that_the_program_returns_is_marked(ends: str, returned: list[str], tmp_path: Path) -> None:
    shapes = {"x": (4, 8), "w": (8, 8)} | dict.fromkeys("abcy", (4, 8))
    nodes = [
        node("aten.mm.default", "a", self="%x", mat2="%w"),
        node("aten.relu.default", "b", self="%a"),
        node("aten.mm.default", "c", self="%b", mat2="%w"),
        node("aten.mm.default", "y", self="%c", mat2="%w"),
    ]
    data = program(["x"], shapes, nodes)
    data["graph_module"]["graph"]["outputs"] = [{"as_tensor": {"name": each}} for each in ends.split()]
    found = read_file(Path(save(data, tmp_path / "small.pt2")), "small.pt2", None, {})
    assert [layer.name for layer in found.layers if layer.returned] == returned
