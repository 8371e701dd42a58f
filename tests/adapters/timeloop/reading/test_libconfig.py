"""Timeloop's oldest files: libconfig, flat architectures, shapes that are only named."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import InputError, Location
from tilewright.plugin.adapter import InputSet
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_adapters.timeloop.reading.libconfig import parse_libconfig
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

WHOLE = """
# a comment
arch : {
  arithmetic : { name = "MACs"; instances = 8; word_bits = 8; meshX = 4; };  // another
  storage = (
    { name = "Regs"; entries = 16; instances = 8; meshX = 4; word_bits = 8; },
    { name = "Buffer"; sizeKB = 1; instances = 1; word-bits = 8; block-size = 0x4, },
    { name = "DRA" "M"; technology = "DRAM"; instances = 1; word_bits = 8; bandwidth = 4.0; }
  );
};
problem : { R = 3; S = 1; P = 4; Q = 2; C = 2L; K = 4; N = 1; Wstride = 2; };
mapping = (
  { target = "Regs"; type = "datatype"; keep = [ "Weights" ]; bypass = [ "Inputs", "Outputs" ]; },
  { target = 0; type = "temporal"; factors = "R3 C2"; permutation = "RC SPQKN"; },
  { target = 1; type = "spatial"; factors = "K4 Q2"; permutation = "KQ RSPCN"; split = 1; },
  { target = 2; type = "temporal"; factors = "P=4"; permutation = "PQKRSCN"; }
);
mapspace = { constraints = "none"; constraints_none = ( ); };
/* over
   and out */
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "sample.cfg"
    path.write_text(text)
    return path


def read(folder: Path, text: str) -> InputSet:
    return TimeloopAdapter().parse([write(folder, text)])


def test_an_old_file_is_read_as_it_is(tmp_path: Path) -> None:
    inputs = read(tmp_path, WHOLE)
    assert inputs.problem and inputs.architecture and inputs.mapping and inputs.constraints is None
    assert [(c.name, c.fanout.axis, c.fanout.size) for c in inputs.architecture.clusters] == [
        ("DRAM", "X", 1),
        ("Buffer", "Y", 2),
        ("Buffer_X", "X", 4),
        ("Regs", "X", 1),
    ]
    assert str(inputs.problem.tensor("Inputs").projection[2]) == "R + 2*P"
    assert inputs.problem.dimension_names == ("R", "S", "P", "Q", "C", "K", "N")
    dram, buffer, regs = inputs.architecture.memories
    assert (buffer.capacity_words, buffer.block_words, regs.capacity_words) == (1024, 4, 16)
    assert dram.read_bandwidth_words_per_cycle == 2.0
    assert dram.read_energy_pj == 100.0
    (warning,) = inputs.warnings
    assert "Timeloop's estimates" in warning
    report = TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    assert report.valid and report.macs == 192


def test_shapes_come_in_sections_and_by_name(tmp_path: Path) -> None:
    gemm = """
problem: {shape: gemm_ABZ, M: 4, N: 2, K: 3}
"""
    separate = """
shape: {name: g, dimensions: [M, K], data-spaces: [{name: A, projection: [M, K]}, {name: Z, projection: [M], read-write: True}]}
"""
    path, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    path.write_text(gemm)
    other.write_text(separate)
    problem = TimeloopAdapter().parse([path]).problem
    assert problem is not None and problem.tensor_names == ("A", "B", "Z") and problem.sizes == (4, 2, 3)
    both = TimeloopAdapter().parse([path, other])
    assert both.problem is not None and both.problem.name == "g" and both.problem.sizes == (4, 3)
    assert len(both.warnings) == 1 and "'N'" in both.warnings[0]
    path.write_text("problem: {shape: resnet, M: 4}")
    with pytest.raises(InputError, match="unknown shape 'resnet'"):
        TimeloopAdapter().parse([path])
    path.write_text("problem: {shap: {name: g}, M: 4}")
    with pytest.raises(InputError, match="no 'shape', but 'shap'"):
        TimeloopAdapter().parse([path])


def test_places_are_remembered() -> None:
    document = parse_libconfig('a = {\n  b : (1, "x" "y",\n  [ true ]);\n}', "f.cfg")
    assert document.data == {"a": {"b": [1, "xy", [True]]}}
    assert document.locate(("a", "b", 2)) == Location("f.cfg", 3, 3)
    assert parse_libconfig(r'q = "a \"b\" \\";', "f.cfg").data == {"q": 'a "b" \\'}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "f.cfg:1:5: expected a value"),
        ("a = {\nb = 1", "f.cfg:2:6: expected '}'"),
        ("a = 1;\na = 2;", "f.cfg:2:1: 'a' is repeated"),
        ("a = word;", "double quotes"),
        ("a = (1 2)", "expected ',' or ')'"),
        ('@include "x.cfg"', "@include is not supported"),
        ("a = $", "cannot read '$'"),
        ('a = "open', "cannot read"),
        (") a = 1;", "expected a setting"),
        ("a 1", "expected '=' or ':'"),
        ("a = " + "(" * 500, "more than 100 levels"),
        ("a = " + "9" * 5000, "too many digits"),
        ("a = /* for ever", "cannot read '/'"),
    ],
)
def test_faults_have_a_line(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_libconfig(text, "f.cfg")
    assert words in str(caught.value)


@given(st.text(alphabet='ab=:;,(){}[]"#/*\\ \n019.xeL@-', max_size=60))
def test_whatever_stands_there_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(parse_libconfig(text, "f.cfg").data, dict)
    except InputError as error:
        assert str(error).startswith("f.cfg:")


def test_faults_of_meaning_have_a_line_too(tmp_path: Path) -> None:
    for old, new, words in (
        ("entries = 16", "entries = 16.5", "sample.cfg:6:"),
        ('target = "Regs"', 'target = "Reg"', "did you mean 'Regs'"),
        ("K4 Q2", "K4 Q2 X3", "unknown dimension 'X'"),
        ('constraints = "none"', 'constraints = "some"', "the section has no constraints_some"),
        ("meshX = 4; };  //", "};  //", "MACs has no mesh"),
        ("meshX = 4; };  //", "meshX = 0; };  //", "meshX of MACs must be a whole number, at least 1 (found 0)"),
        ("meshX = 4; };  //", "meshY = 16; };  //", "8 instances are not meshX 0 times meshY 16"),
        ("word_bits = 8; meshX = 4; };  //", f"word_bits = {10**200}; meshX = 4; }};  //", "at most 2^62"),
    ):
        assert old in WHOLE
        try:
            message = "; ".join(read(tmp_path, WHOLE.replace(old, new, 1)).warnings)
        except InputError as error:
            message = str(error)
        assert words in message


def test_sections_that_are_for_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("problem: {shape: gemm, M: 1, N: 1, K: 1}\nmacros_ignore: [1]\nglobals: {}\nmapper: {timeout: 1}\n")
    inputs = TimeloopAdapter().parse([path])
    assert [("mapper" in warning) for warning in inputs.warnings] == [True]


def test_attributes_may_be_arithmetic(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("""
architecture:
  version: 0.2
  subtree:
  - name: top
    attributes: {bits: 16}
    local:
    - {name: DRAM, class: DRAM, attributes: {datawidth: bits, width: datawidth * 4}}
    - {name: Buf, class: SRAM, attributes: {datawidth: bits, n_words: 4, width: bits * n_words, depth: INF}}
    - {name: MAC, class: intmac, attributes: {datawidth: bits // 2}}
""")
    arch = TimeloopAdapter().parse([path]).architecture
    assert arch is not None
    dram, buffer = arch.memories
    assert (dram.block_words, buffer.block_words, buffer.capacity_words) == (4, 4, None)
    assert arch.compute.word_bits == 8
