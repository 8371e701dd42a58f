"""MAESTRO's own files: read unchanged, evaluated as MAESTRO does, refused with a location and a reason."""

from pathlib import Path
from typing import Any

import pytest

from support.recorded.maestro import differences, hardware_of, layer_of, load
from tilewright.errors import InputError
from tilewright_adapters import MaestroFiles
from tilewright_adapters.maestro import MaestroAdapter
from tilewright_costmodels import MaestroOptions
from tilewright_costmodels.maestro.model import MaestroModel
from tilewright_notations.directives import DirectiveHardware, DirectiveProgram

CASES = load("cases")
SOUND = [case for case in CASES if case["status"] != "nonsense"]
REJECTS = load("rejects")


def read(case: dict[str, Any], folder: Path) -> DirectiveProgram:
    """The case's mapping file with its hardware file, where it had one."""
    mapping, hardware = folder / "case.m", folder / "hardware.m"
    mapping.write_text(case["mapping_file"])
    files = [mapping]
    if case["hardware_file"] is not None:
        hardware.write_text(case["hardware_file"])
        files.append(hardware)
    program = MaestroAdapter().parse(files).directives
    assert isinstance(program, DirectiveProgram)
    return program


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_files_say_what_was_recorded_and_cost_it(case: dict[str, Any], tmp_path: Path) -> None:
    program = read(case, tmp_path)
    (layer,) = program.layers
    assert layer == layer_of(case).model_copy(update={"name": layer.name})
    lanes = case["hardware"]["simd_lanes"]  # is given on MAESTRO's command line
    if case["hardware_file"] is None:  # all of it was, twice
        program = program.model_copy(update={"hardware": hardware_of(case)})
    assert program.hardware.model_copy(update={"simd_lanes": lanes}) == hardware_of(case)
    (report,) = MaestroModel(MaestroOptions(faithful=True, simd_lanes=lanes)).explain_directives(program)
    if case["status"] == "nonsense":
        assert not report.valid and report.reasons[0].code == "work"
        return
    assert differences(report.model_dump()["columns"], case["columns"]) == []
    assert report.valid and report.cycles == case["columns"]["runtime_cycles"]
    wrong = [warning for warning in report.warnings if f"the layer has {case['macs']}" in warning]
    assert len(wrong) == (case["status"] == "suspect_mac_count")


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case["id"])
def test_buffers_too_small_are_invalid_and_thin_wires_a_warning_where_maestro_warns(
    case: dict[str, Any], tmp_path: Path
) -> None:
    program = read(case, tmp_path)
    if case["hardware_file"] is None:
        program = program.model_copy(update={"hardware": hardware_of(case)})
    (report,) = MaestroModel(MaestroOptions(simd_lanes=case["hardware"]["simd_lanes"])).explain_directives(program)
    buffers = [warning for warning in case["warnings"] if "WARNING:Buffer" in warning]
    slow = [warning for warning in case["warnings"] if "WARNING:BW" in warning]
    assert len(report.reasons) == len(buffers) and report.valid == (not buffers)
    assert len([warning for warning in report.warnings if "MAESTRO requires" in warning]) == len(slow)
    assert len(buffers) + len(slow) == len(case["warnings"])


PRICED = {
    "two independent spatial maps",
    "PEs not multiple of cluster",
    "output-centric Dimensions",
    "TRCONV",
    "offset larger than size",
    "offset smaller than size without overlap dim",
    "stride: two negative edges",
    "spatial partial cluster loses work",
    "multi-output tile with stride 2",
    "inner tile larger than outer tile",
    "second CONV layer with batch",
}
"""Figures of inputs that MAESTRO and Tilewright accept: wrong or surprising, but defined."""


@pytest.mark.parametrize("case", REJECTS, ids=lambda case: case["name"])
def test_rejects_are_refused_with_a_reason_or_evaluated_with_a_warning(case: dict[str, Any], tmp_path: Path) -> None:
    mapping = tmp_path / "case.m"
    mapping.write_text(case["mapping_file"])
    given = case["hardware"]
    hardware = tmp_path / "hardware.m"
    hardware.write_text(
        f"num_pes: {given['num_pes']}\nnoc_bw_cstr: {given['noc_bandwidth']}\n"
        f"NoC_NumHops: {given['noc_latency']}\noffchip_bw_cstr: {given['offchip_bandwidth']}\n"
    )
    try:
        read = MaestroAdapter().parse([mapping, hardware])
    except InputError as error:
        assert case["name"] not in PRICED and str(tmp_path) in error.message
        return
    program = read.directives
    if program is None:
        assert case["name"] == "layer without dataflow" and read.problem is not None
        return
    reports = MaestroModel(MaestroOptions()).explain_directives(program)
    if case["name"] not in PRICED:
        assert not any(report.valid for report in reports) and reports[0].reasons[0].message
        return
    rows = case["rows"]
    if case["name"] == "second CONV layer with batch":
        assert any("MAESTRO treats N" in warning for warning in reports[1].warnings)
        reports, rows = reports[:1], rows[:1]
    if case["name"] == "output-centric Dimensions":  # MAESTRO forgets rows and columns in this one column
        assert rows[0]["num_input_elements"] == 4
        rows = [rows[0] | {"num_input_elements": 144}]
    for report, row in zip(reports, rows, strict=True):
        assert differences(report.model_dump()["columns"], row) == []
        if row["num_macs"] != case["macs"]:
            assert any(f"counts {row['num_macs']} operations" in warning for warning in report.warnings)


BARE = " Layer A {\n Type: GEMM\n Dimensions { M: 4, N: 6, K: 8 }\n }"
GEMM = "Network n {\n Layer A {\n Type: GEMM\n Dimensions { M: 4, N: 6, K: 8 }\n Dataflow { SpatialMap(1,1) M; }\n }"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "is empty"),
        (GEMM, 6, "found the end of the file"),
        (GEMM.replace("{ M: 4", "{M: 4") + "\n}", 4, "braces must be separated by blanks"),
        (GEMM.replace("SpatialMap", "SpacialMap") + "\n}", 5, "did you mean 'SpatialMap'"),
        (GEMM.replace("Dimensions { M: 4, N: 6, K: 8 }", "") + "\n}", 5, "Dimensions must come before Dataflow"),
        (GEMM.replace("M: 4", "M: 4, M: 5") + "\n}", 4, "size of M has two values, 4 and 5"),
        (GEMM + "\n} more", 7, "found 'more' after the network"),
        (GEMM.replace("(1,1)", "(MTile,1)") + "\n}", 5, "unknown constant 'MTile'"),
        (GEMM.replace("(1,1)", "(MTile,1)") + "\n}", 5, "write 'Constant MTile 1' above the Network"),
        ("Dataflow {\n SpatialMap(1,1) M;\n}", 3, "this is a dataflow without a Network"),
        ("Constant MTile 2\n" + GEMM.replace("(1,1)", "(MTle,1)") + "\n}", 6, "did you mean 'MTile'"),
        (GEMM.replace("(1,1)", "(Sz(Q),1)") + "\n}", 5, "'Q' is not a dimension of this layer"),
        (GEMM.replace("GEMM", "BMM") + "\n}", 3, "no batched matrix product"),
        (f"Network n {{\n{BARE}\n{BARE.replace('A', 'B')}\n}}", 5, "no earlier layer to copy it from"),
        (GEMM.replace("M: 4, ", "") + "\n}", 5, "has no dimension M"),
        (GEMM.replace("N: 6, ", "") + "\n}", 6, "GEMM needs dimension N"),
    ],
)
def test_faults_are_named_with_their_line(text: str, line: int | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "case.m"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        MaestroAdapter().parse([path])
    assert message in str(caught.value)
    assert line is None or (caught.value.location is not None and caught.value.location.line == line)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("num_pes: 4\nnoc_bw: 3", 2, "did you mean 'noc_bw_cstr'"),
        ("num_pes: 4\nNumPEs: 4", 2, "given twice"),
        ("num_pes: 0", 1, "from 1 to 2^40"),
        ("num_pes:", 1, "found the end of the file"),
    ],
)
def test_faults_of_hardware_files_too(text: str, line: int, message: str, tmp_path: Path) -> None:
    mapping, hardware = tmp_path / "case.m", tmp_path / "hardware.m"
    mapping.write_text(GEMM + "\n}")
    hardware.write_text(text)
    with pytest.raises(InputError) as caught:
        MaestroAdapter().parse([mapping, hardware])
    assert message in str(caught.value)
    assert caught.value.location is not None and caught.value.location.line == line


def test_words_of_older_hardware_files(tmp_path: Path) -> None:
    mapping, hardware = tmp_path / "case.m", tmp_path / "hardware.m"
    mapping.write_text(GEMM.replace("M: 4", "M: 4, M: 4") + "\n}")  # a shipped file repeats a size
    hardware.write_text("NumPEs: 256\nL1Size: 256\nL2Size: 4096\nNoC_BW: 64\nNoC_NumHops: 1\n")
    program = MaestroAdapter().parse([mapping, hardware]).directives
    assert isinstance(program, DirectiveProgram)
    assert program.hardware == DirectiveHardware(num_pes=256, l1_size=256, l2_size=4096, noc_bandwidth=64)


def test_ways_of_writing_that_shipped_files_have(tmp_path: Path) -> None:
    """Read unusual but accepted syntax of MAESTRO's files.

    Blanks precede parentheses, commas and colons are missing, and names contain digits. Cluster sizes
    are names, and comments follow any line and the network.
    """
    path = tmp_path / "case.m"
    path.write_text(
        "Constant Len 12; // of a sequence\n\nNetwork 0 { // first\n\tLayer CONV_1\t{ //good\n"
        "Type: CONV \nDimensions { N: Len, K 64, C:3 R: 3, S:3,Y:8 ,X:8 }\nDataflow {\n"
        "TemporalMap (16,16) K; // TemporalMap(4,4) K;\n SpatialMap(Sz(R), 1) Y;Cluster(Sz(S), P);\n"
        "\tSpatialMap(1,1) X;\n SpatialMap(1,1) S; TemporalMap(Sz(R),Sz(R)) R }\n} //end\n}\n\n//Accelerator {\n//  PE { NumPEs: 128 }\n//}\n"
    )
    program = MaestroAdapter().parse([path]).directives
    assert isinstance(program, DirectiveProgram)
    (layer,) = program.layers
    assert (program.name, layer.name, layer.cluster_sizes) == ("0", "CONV_1", (3,))
    assert dict(layer.dimensions) == {"N": 12, "K": 64, "C": 3, "R": 3, "S": 3, "Y": 8, "X": 8}
    assert [[str(each) for each in level] for level in layer.levels] == [
        ["TemporalMap(16,16) K", "SpatialMap(3,1) Y"],
        ["SpatialMap(1,1) X", "SpatialMap(1,1) S", "TemporalMap(3,3) R"],
    ]
    (report,) = MaestroModel(MaestroOptions(num_pes=12)).explain_directives(program)
    assert report.valid


def test_sizes_by_name_constants_comments_and_copied_dataflows(tmp_path: Path) -> None:
    path = tmp_path / "case.m"
    path.write_text(
        "Constant Rows 2;\n// a comment\nNetwork n {\n"
        " Layer A {\n Type: CONV Stride { X: 2, Y: 2 }\n Dimensions { K 4, C 3, R 3, S 3, Y' 2, X' 3 }\n"
        " Dataflow { SpatialMap(Rows,2) K; TemporalMap(Sz(R), Sz(R)) R; Cluster(2, L); SpatialMap(1,1) C; } }\n"
        " Layer B { Type: CONV Dimensions { K 8, C 3, R 1, S 1, Y 4, X 4 } }\n}\n"
    )
    program = MaestroAdapter().parse([path]).directives
    assert isinstance(program, DirectiveProgram)
    first, second = program.layers
    assert (first.dimensions["Y"], first.dimensions["X"]) == (5, 7)
    assert [str(each) for level in first.levels for each in level] == [
        "SpatialMap(2,2) K",
        "TemporalMap(3,3) R",
        "SpatialMap(1,1) C",
    ]
    assert second.levels == first.levels and second.cluster_sizes == (2,)
    assert program.hardware == DirectiveHardware(num_pes=7, noc_latency=0, offchip_bandwidth=70_000)


@pytest.mark.parametrize("case", [case for case in SOUND if case["hardware_file"] is None], ids=lambda case: case["id"])
def test_hardware_of_the_command_line_is_given_as_options(case: dict[str, Any], tmp_path: Path) -> None:
    options = hardware_of(case).model_dump(exclude_none=True)
    (report,) = MaestroModel(MaestroOptions(faithful=True, **options)).explain_directives(read(case, tmp_path))
    assert differences(report.model_dump()["columns"], case["columns"]) == []


def test_pes_outside_clusters_are_warned_of(tmp_path: Path) -> None:
    case = next(case for case in REJECTS if case["name"] == "PEs not multiple of cluster")
    mapping = tmp_path / "case.m"
    mapping.write_text(case["mapping_file"])
    program = MaestroAdapter().parse([mapping]).directives
    assert isinstance(program, DirectiveProgram)
    (report,) = MaestroModel(MaestroOptions(num_pes=16)).explain_directives(program)
    assert report.valid and "1 of 16 PEs are in no cluster of 3; MAESTRO ignores them" in report.warnings


def test_a_layer_is_named_behind_its_file(tmp_path: Path) -> None:
    case = next(each for each in CASES if each["hardware_file"] is None)
    file = tmp_path / "two.m"
    first = case["mapping_file"].split("Layer", 1)
    body = first[1].rsplit("}", 1)[0]
    file.write_text(f"{first[0]}Layer{body}\nLayer second {{{body.split('{', 1)[1]}\n}}")
    both, second = (MaestroAdapter().parse([Path(f"{file}{name}")]).directives for name in ("", "/second"))
    assert both is not None and second is not None and len(both.layers) == 2
    assert second.layers == both.layers[1:] and second.layers[0].name == "second"
    with pytest.raises(InputError, match="there is no layer secnd; did you mean 'second'"):
        MaestroAdapter().parse([Path(f"{file}/secnd")])


MODEL = """Network net-1 {
 Layer Conv2d-1 {
  Type: CONV
  Stride { X: 2, Y: 2 }
  Dimensions { K: 8, C: 4, R: 3, S: 3, Y: 9, X: 9 }
  DATAFLOW
 }
 Layer dw 2 {
  Type: DSCONV
  Dimensions { K: 1, C: 4, R: 3, S: 3, Y: 6, X: 6 }
  DEPTHWISE
 }
}
"""
DATAFLOW = "Dataflow {\n SpatialMap(1,1) K;\n TemporalMap(Sz(R),1) Y;\n TemporalMap(Sz(S),1) X;\n}\n"
DEPTHWISE = "Dataflow {\n SpatialMap(1,1) C;\n TemporalMap(Sz(R),1) Y;\n TemporalMap(Sz(S),1) X;\n}\n"


def bare(text: str) -> str:
    return text.replace("DATAFLOW", "").replace("DEPTHWISE", "")


def test_names_may_have_signs_in_them(tmp_path: Path) -> None:
    (tmp_path / "a.m").write_text(MODEL.replace("DATAFLOW", DATAFLOW).replace("DEPTHWISE", DEPTHWISE))
    program = MaestroAdapter().parse([tmp_path / "a.m"]).directives
    assert program is not None and program.name == "net-1"
    assert [layer.name for layer in program.layers] == ["Conv2d-1", "dw 2"]
    one = MaestroAdapter().parse([tmp_path / "a.m" / "Conv2d-1"]).directives
    assert one is not None and one.layers == program.layers[:1]
    assert MaestroAdapter().layers(tmp_path / "a.m") == ("Conv2d-1", "dw 2")


@pytest.mark.parametrize("named", [True, False])
def test_a_dataflow_is_that_of_layers_without_one(named: bool, tmp_path: Path) -> None:
    """As if it stood in the file, which is all that MAESTRO takes; depthwise layers have the dataflow made for them."""
    whole, model, dataflow = tmp_path / "whole.m", tmp_path / "model.m", tmp_path / "flow.m"
    whole.write_text(MODEL.replace("DATAFLOW", DATAFLOW).replace("DEPTHWISE", DEPTHWISE))
    model.write_text(bare(MODEL))
    dataflow.write_text(DATAFLOW)
    (tmp_path / "dpt.m").write_text(DEPTHWISE)
    adapter = MaestroAdapter(MaestroFiles(dataflow=str(dataflow)) if named else None)
    read = adapter.parse([model] if named else [model, dataflow])
    assert read.directives == MaestroAdapter().parse([whole]).directives
    assert [text for text in read.warnings if "MAESTRO itself needs it written in that file" in text]


def test_a_layer_without_dataflow_is_a_problem_and_hardware_an_array(tmp_path: Path) -> None:
    (tmp_path / "model.m").write_text(bare(MODEL))
    (tmp_path / "hw.m").write_text("num_pes: 16\nl1_size_cstr: 64\n")
    read = MaestroAdapter().parse([tmp_path / "model.m" / "Conv2d-1", tmp_path / "hw.m"])
    assert read.directives is None and read.problem is not None and read.architecture is not None
    assert read.problem.macs == 8 * 4 * 3 * 3 * 4 * 4
    assert read.architecture.compute_instances == 16
    alone = MaestroAdapter().parse([tmp_path / "hw.m"])
    assert alone.architecture == read.architecture and alone.problem is None
    with pytest.raises(InputError, match="layer Conv2d-1 has no Dataflow") as raised:
        MaestroAdapter().parse([tmp_path / "model.m"])
    assert raised.value.hint is not None and "--dataflow" in raised.value.hint
