"""`load`: names, files, formulas, dicts and objects; wrong ones say what is right."""

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support import EXAMPLE_FILES
from tilewright import errors, library
from tilewright.application.api import load as loading
from tilewright.application.conversion.recognition import read
from tilewright.plugin.registry import installed
from tilewright.schema.document import FileModel

CONV = tw.load("quickflow_convs/V", kind="problem")
EYERISS = tw.load("eyeriss", kind="architecture")

DATA = Path(__file__).parents[3] / "data"

KNOWN: list[tuple[Any, type[FileModel]]] = [
    ("quickflow_convs", tw.Workload),
    ("quickflow_convs/V", tw.Problem),
    ("squeezenet", tw.Workload),
    ("eyeriss", tw.Architecture),
    ("eyeriss.row_stationary", tw.Constraints),
    ("nk,km->nm; n=4 k=5 m=6", tw.Problem),
    (str(EXAMPLE_FILES / "gemm.mapping.yaml"), tw.Mapping),
    (EXAMPLE_FILES / "gemm.problem.yaml", tw.Problem),
    (EXAMPLE_FILES / "small.arch.yaml", tw.Architecture),
    (EXAMPLE_FILES / "three_layers.workload.yaml", tw.Workload),
    (EYERISS.to_data(), tw.Architecture),
    ({key: value for key, value in CONV.to_data().items() if key != "kind"}, tw.Problem),
    (CONV, tw.Problem),
    (EYERISS, tw.Architecture),
]


@pytest.mark.parametrize(("source", "kind"), KNOWN, ids=lambda value: str(value)[:30])
def test_what_is_clear_needs_no_kind(source: Any, kind: type[FileModel]) -> None:
    assert type(tw.load(source)) is kind


@pytest.mark.parametrize("found", [CONV, EYERISS, tw.load("quickflow_convs"), tw.load("eyeriss.row_stationary")])
def test_files_and_dicts_say_what_objects_say(found: Any, tmp_path: Path) -> None:
    (tmp_path / "it.yaml").write_text(found.to_yaml())

    assert tw.load(found) is found
    assert tw.load(tmp_path / "it.yaml") == tw.load(str(tmp_path / "it.yaml")) == tw.load(found.to_data()) == found


def test_a_kind_may_be_asked_for() -> None:
    assert [layer.problem for layer in tw.load("quickflow_convs/V", kind="workload").layers] == [CONV]
    assert tw.load(CONV, kind="workload").layers[0].problem == CONV
    assert tw.load(tw.Workload.of(CONV), kind="problem") == CONV


def test_a_mapping_file_is_a_mapping_and_all_its_parts(tmp_path: Path) -> None:
    report = tw.map("nk,km->nm; n=4 k=4 m=4", EYERISS, evaluations=100, folder=tmp_path)
    (file,) = tmp_path.glob("0*.yaml")
    mapped = tw.load(file)

    assert isinstance(mapped, tw.MappedProblem) and mapped.mapping == report.layers[0].mapping
    assert tw.load(file, kind="architecture") == EYERISS
    assert tw.load(file, kind="problem") == report.layers[0].problem


def test_a_file_of_a_frontend_is_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    path.write_text((DATA / "mlir" / "intensli2.tf.mlir").read_text("utf-8"), "utf-8")
    for source in (path, str(path)):
        assert isinstance(tw.load(source), tw.Workload)


def test_a_file_of_another_tool_is_an_architecture_or_a_workload() -> None:
    hardware = tw.load(EXAMPLE_FILES / "timeloop/arch.yaml")
    assert isinstance(hardware, tw.Architecture) and hardware.memories[0].name == "DRAM"
    assert isinstance(tw.load(EXAMPLE_FILES / "timeloop/problem.yaml"), tw.Workload)


def test_options_go_to_the_frontend() -> None:
    assert tw.load("squeezenet", "workload", batch=3).layers[0].problem.dimensions["N"] == 3
    with pytest.raises(errors.InputError, match="did you mean 'batch'"):
        tw.load("squeezenet", bach=3)
    with pytest.raises(errors.InputError, match="batch cannot be set"):
        tw.load("eyeriss", batch=3)


@pytest.mark.parametrize(
    ("source", "options", "error", "said"),
    [
        ("eyerisss", {}, errors.UnknownNameError, "did you mean 'eyeriss'"),
        ("resnet5", {}, errors.UnknownNameError, "did you mean 'resnet50'"),
        ("eyeriss.row_stationry", {}, errors.UnknownNameError, "did you mean 'eyeriss.row_stationary'"),
        ("quickflow_convs/XXX", {}, errors.UnknownNameError, "has no layer 'XXX'"),
        ("quickflow_convs", {"kind": "problem"}, errors.InputError, "20 layers; one was expected"),
        ("eyeriss", {"kind": "archtecture"}, errors.InputError, "did you mean 'architecture'"),
        ("eyeriss", {"kind": "workload"}, errors.UnknownNameError, "no workload is called 'eyeriss'"),
        (EYERISS, {"kind": "problem"}, errors.InputError, "expected workload, not an object of type Architecture"),
        ("absent.yaml", {}, errors.InputError, "there is no file absent.yaml"),
        ({"foo": 1}, {}, errors.InputError, "cannot tell the kind of this document; it has no kind"),
        ({"kind": "foo"}, {}, errors.InputError, "it has kind: foo"),
        ({"kind": {"foo": 1}}, {}, errors.InputError, "kind"),
        (3, {}, errors.InputError, "cannot load an object of type int"),
        ("eyeriss", {"kind": "mapping"}, errors.InputError, "expected mapping, not eyeriss"),
    ],
)
def test_wrong_sources_say_what_is_right(source: Any, options: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        tw.load(source, **options)
    assert said in str(raised.value)


def test_a_file_whose_kind_is_no_word(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("kind: {problem: 1}\ntensors: []\n")
    for kind in (None, "problem", "workload", "architecture"):
        with pytest.raises(errors.InputError, match="kind"):
            tw.load(tmp_path / "odd.yaml", kind)


def test_a_name_of_two_kinds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    names = library.names
    monkeypatch.setattr(library, "names", lambda folder: (*names(folder), "eyeriss"))
    with pytest.raises(errors.InputError, match="add kind='architecture' or kind='constraints'"):
        tw.load("eyeriss")


def test_constraints_by_name_file_dict_and_none(tmp_path: Path) -> None:
    published = tw.library.constraints("eyeriss", "row_stationary")
    (tmp_path / "c.yaml").write_text(published.to_yaml())
    sources = (None, "row_stationary", "eyeriss.row_stationary", tmp_path / "c.yaml", published.to_data(), published)

    assert [loading.load_constraints(source, EYERISS) for source in sources] == [published] * 6
    assert loading.load_constraints("none", EYERISS).name == "none"
    with pytest.raises(errors.InputError, match="is for eyeriss, not for simba"):
        loading.load_constraints(published, tw.library.architecture("simba"))


WORKLOAD = """
kind: workload
name: two
layers:
  - problem: {name: /a/MatMul, dimensions: {N: 2, K: 3}, tensors: &tensors [
      {name: A, role: input, projection: [K]}, {name: W, role: weight, projection: [N, K]},
      {name: Z, role: output, projection: [N]}]}
  - problem: {name: b, dimensions: {N: 4, K: 5}, tensors: *tensors}
"""


def test_a_layer_of_a_file_is_named_behind_it(tmp_path: Path) -> None:
    """Names may have slashes, as exporters write them, with or without the first."""
    file = tmp_path / "two.yaml"
    file.write_text(WORKLOAD)
    for name, macs in (("b", 20), ("/a/MatMul", 6), ("a/MatMul", 6)):
        assert tw.load(f"{file}/{name}", "problem").macs == macs == tw.load(f"{file}/{name}", "workload").macs
    assert len(tw.load(file, "workload").layers) == 2
    for name, said in (("c", "two.yaml has no layer 'c'"), ("", "has no layer ''")):
        with pytest.raises(tw.errors.UnknownNameError, match=said) as raised:
            tw.load(f"{file}/{name}", "workload")
        assert raised.value.hint == "its layers: /a/MatMul, b"
    with pytest.raises(tw.errors.InputError, match="there is no file .*three.yaml/b"):
        tw.load(f"{tmp_path}/three.yaml/b", "workload")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello world\n", "is plain text, 'hello world'; expected keys and values"),
        ("name: a\nclusters: [\n", "arch.yaml:3:1: not valid YAML"),
        ("# nothing\n", "is empty"),
    ],
)
def test_an_unreadable_file_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "arch.yaml").write_text(text)
    with pytest.raises(tw.errors.InputError) as raised:
        tw.load(tmp_path / "arch.yaml", "architecture")
    assert message in str(raised.value) and "loopnest" not in str(raised.value)


def test_a_file_that_is_not_there_names_a_similar_one(tmp_path: Path) -> None:
    (tmp_path / "network.onnx").touch()
    with pytest.raises(tw.errors.InputError, match="there is no file .*netwrk.onnx; did you mean '.*network.onnx'"):
        tw.load(str(tmp_path / "netwrk.onnx"), "workload")
    with pytest.raises(tw.errors.InputError, match="there is no file net.onx") as raised:
        tw.load("net.onx", "workload")
    assert raised.value.hint is not None and ".onnx" in raised.value.hint


@pytest.mark.parametrize("suffix", [".yaml", ".onnx", ".mlir"])
def test_an_empty_file_is_told(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a{suffix}").touch()
    with pytest.raises(tw.errors.InputError, match="is empty"):
        tw.load(tmp_path / f"a{suffix}", "workload")


def test_a_file_that_nobody_reads_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("something")
    with pytest.raises(tw.errors.InputError, match="a.txt: no installed adapter can read this") as raised:
        tw.load(tmp_path / "a.txt", "workload")
    assert raised.value.hint is not None and ".onnx" in raised.value.hint
    assert len(tw.load("bert_base/encoder.mlp.up", "workload").layers) == 1  # no name of a file


def test_the_notation_that_reads_furthest_complains(tmp_path: Path) -> None:
    text = "# of a layer\n- name: default\n  spatial_mapping: {D1: 'K, 16'}\n"
    (tmp_path / "mapping.yaml").write_text(text)
    with pytest.raises(tw.errors.InputError) as raised:
        read([tmp_path / "mapping.yaml"], None, installed())
    first, hint = str(raised.value).splitlines()
    assert first.endswith("mapping.yaml:3:25: [0].spatial_mapping.D1: expected a list (found 'K, 16') (read as zigzag)")
    assert "for another notation, --from NAME" in hint


def test_a_workload_without_layers_cannot_be_mapped() -> None:
    unmapped = [{"name": "r", "operator": "Relu", "reason": "works element by element", "operations": 3}]
    with pytest.raises(
        tw.errors.InputError, match="nothing has no layer that can be mapped; its operators are\n  Relu"
    ):
        tw.map({"kind": "workload", "name": "nothing", "layers": [], "unmapped": unmapped}, arch="eyeriss")
