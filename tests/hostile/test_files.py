"""Files that once broke a reader: each is one message or is read, and is neither a traceback nor waited for."""

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from onnx import helper

from support import DATA
from support.command import Command, Ran, command
from support.onnx_models import model_of, save

pytestmark = pytest.mark.hostile

HOSTILE = DATA / "hostile"
GEMM = "nk,km->nm; n=4 k=5 m=6"
LONG = "x" * 60_000


@pytest.fixture
def tilewright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    return command(monkeypatch, capsys)


def mapped(run: Command, workload: object, *words: object, arch: object = "eyeriss") -> Ran:
    return run("map", workload, "--arch", arch, "--evaluations", 20, "--no-cache", *words)


def is_one_message(ran: Ran, *parts: str) -> bool:
    """Exit code 2, one error of some lines, nothing else."""
    short = len(ran.err) < 11_000 and ran.err.count("error:") == 1 and "Traceback" not in ran.err
    return (ran.code, ran.out) == (2, "") and short and all(part in ran.err for part in parts)


# -- what is given on the command line ----------------------------------------------------------------------------


def test_a_formula_longer_than_a_file_name(tilewright: Command) -> None:
    assert mapped(tilewright, (HOSTILE / "long.txt").read_text()).code == 0


@pytest.mark.parametrize("name", [LONG, f"{LONG}.yaml", f"{LONG}.onnx", "a\0b", "a\0b.yaml", "/" * 5000, "\x1b[31m"])
def test_names_of_any_length_and_content(tilewright: Command, name: str) -> None:
    assert is_one_message(mapped(tilewright, name))
    assert is_one_message(mapped(tilewright, GEMM, arch=name))
    assert is_one_message(mapped(tilewright, GEMM, "--constraints", name))
    if "\0" not in name:  # no program can be given one, and click asks for the file
        assert is_one_message(tilewright("evaluate", "--mapping", name))
        assert is_one_message(tilewright("convert", name, "--to", "tilewright"))


def test_a_formula_of_any_length(tilewright: Command) -> None:
    assert is_one_message(mapped(tilewright, f"{'a' * 60_000}->a; a=2"), "at most 10,000")


# -- files that were found ----------------------------------------------------------------------------------------

MAPPED: list[tuple[str, str]] = [
    ("laughs3.yaml", "too large: it has more than 100,000 values"),
    ("redos18.onnx", "cannot read the equation"),
    ("onnx_abort.onnx", "onnx_abort"),  # what of it breaks first depends on the version of onnx
    ("onnx_memory.onnx", "onnx_memory"),
]


@pytest.mark.parametrize(("file", "message"), MAPPED)
def test_workloads_that_are_refused(tilewright: Command, file: str, message: str) -> None:
    if file == "onnx_abort.onnx" and sys.platform != "linux":
        return  # how onnx was compiled decides whether it looks
    assert is_one_message(mapped(tilewright, HOSTILE / file), message)


CONVERTED: list[tuple[str, list[str], str]] = [
    ("accelforge", ["jinja.yaml"], "took longer than it may"),
    ("accelforge", ["jinja_mem.yaml"], "takes more than 256 MiB of memory"),
    ("accelforge", ["af/arch.yaml", "af/workload.yaml", "af/mapping.yaml"], "Main: 'read' has energy inf"),
    ("timeloop", ["tl_empty.yaml"], "the architecture has no memory"),
    ("zigzag", ["accelerator.yaml", "workload.yaml", "mapping.yaml"], "spatial_mapping.D1[0]"),
]


@pytest.mark.parametrize(("notation", "files", "message"), CONVERTED, ids=lambda value: str(value)[:30])
def test_files_of_other_tools_that_are_refused(
    tilewright: Command, notation: str, files: Sequence[str], message: str
) -> None:
    paths = [HOSTILE / file for file in files]
    assert is_one_message(tilewright("convert", *paths, "--from", notation, "--to", "tilewright"), message)


@pytest.mark.parametrize(
    "template", ["{{ lipsum(100000) }}", "{{ 'x' * 10**10 }}", "{{ 9**(9**9) }}", "{{ '%99999999999d' % 1 }}"]
)
def test_templates_are_filled_in_within_limits(tilewright: Command, tmp_path: Path, template: str) -> None:
    (tmp_path / "arch.yaml").write_text(f"arch: {template}\n")
    ran = tilewright("convert", tmp_path / "arch.yaml", "--from", "accelforge", "--to", "tilewright")
    assert is_one_message(ran, "the template cannot be rendered")


HARDWARE = [
    ("a_e300.yaml", "read_energy_pj: expected a value less than or equal to 1000000000000000"),
    ("a_bw324.yaml", "read_bandwidth_words_per_cycle: must be at least 1e-09"),
    ("a_cap400.yaml", "capacity_words: expected a value less than or equal to 9007199254740992"),
]


@pytest.mark.parametrize(("file", "message"), HARDWARE)
def test_hardware_beyond_all_numbers(tilewright: Command, file: str, message: str) -> None:
    assert is_one_message(mapped(tilewright, GEMM, arch=HOSTILE / file), message)


def test_a_long_vector_is_read_without_its_elements(tilewright: Command) -> None:
    assert mapped(tilewright, HOSTILE / "onnx_vector.onnx").code == 0


def test_layers_with_long_names_have_files_of_their_own(tilewright: Command, tmp_path: Path) -> None:
    assert mapped(tilewright, HOSTILE / "longname.yaml", "-o", tmp_path / "out").code == 0
    names = sorted(path.name for path in (tmp_path / "out").glob("*.yaml"))
    assert len(names) == 3 and max(map(len, names)) < 100


def test_markup_in_a_name_is_a_name(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tilewright.application.api.progress._has_bars", lambda: True)
    ran = mapped(tilewright, HOSTILE / "n1.yaml")
    assert ran.code == 0 and "[/]" in ran.out


def test_escape_sequences_in_names_do_not_reach_the_terminal(tilewright: Command, tmp_path: Path) -> None:
    text = (HOSTILE / "n1.yaml").read_text().replace('"[/]"', '"a\\e[31mb\\a"')
    (tmp_path / "n.yaml").write_text(text)
    for words in ((), ("--json",), ("--seconds", 0.1)):
        ran = mapped(tilewright, tmp_path / "n.yaml", *words)
        assert ran.code == 0 and "\x1b" not in ran.out + ran.err and "\a" not in ran.out + ran.err
        assert "a\\x1b[31mb\\x07" in ran.out or "a\\u001b[31mb" in ran.out


# -- patterns that took quadratic time, and lists that took quadratic steps ---------------------------------------------

BLANKS = " " * 60_000
SLOW: list[tuple[str, str, str]] = [
    ("tilewright", "p.yaml", f"kind: problem\nname: x\ndimensions: {{M: 4}}\ntensors: [{{name: A, role: input, projection: ['2{BLANKS}!']}}]"),
    ("accelforge", "w.yaml", f"workload:\n  iteration_space_shape:\n    m: '0 <= m < 1{BLANKS}x'\n  einsums: ['Y[m] = X[m]']"),
    ("accelforge", "w.yaml", f"workload:\n  einsums: ['{'a' * 60_000}']"),
    ("loopnest", "n.txt", f"problem x\n  dimensions M=4\n  tensor a {'[' * 60_000}"),
    ("timeloop", "e.yaml", f"ERT: {{version: 0.3, tables: [{{name: '{'[' * 200_000}', actions: []}}]}}"),
    ("timeloop", "m.yaml", f"mapping: [{{target: D, type: temporal, factors: 'K{BLANKS}!'}}]"),
    ("timeloop", "c.cfg", f'arch = "{"a" * 60_000}";'),
    ("maestro", "m.m", "Network " + "a" * 60_000),
]  # fmt: skip


@pytest.mark.parametrize(("notation", "name", "text"), SLOW, ids=[f"{each[0]}-{each[2][:12]!r}" for each in SLOW])
def test_long_texts_are_refused_at_once(
    tilewright: Command, tmp_path: Path, notation: str, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    to = "tilewright" if notation != "tilewright" else "timeloop"
    assert is_one_message(tilewright("convert", tmp_path / name, "--from", notation, "--to", to), "at most 10,000")


def test_a_residual_stream_of_thousands_of_layers(tilewright: Command, tmp_path: Path) -> None:
    """Each layer reads the results of all before: their names alone are half a million."""
    nodes, constants = [], {"w": [[1.0] * 4] * 4}
    for index in range(1000):
        nodes.append(helper.make_node("MatMul", [f"s{index}", "w"], [f"p{index}"]))
        nodes.append(helper.make_node("Add", [f"s{index}", f"p{index}"], [f"s{index + 1}"]))
    path = save(model_of(nodes, {"s0": (4, 4)}, "s1000", constants=constants), tmp_path)
    data = tilewright("library", "layers", path, "--json").data
    assert [len(layer["after"]) for layer in data["layers"]] == list(range(1000))


def test_many_layers_of_one_name_are_told_at_once(tilewright: Command, tmp_path: Path) -> None:
    problem = "{name: a, dimensions: {M: 1}, tensors: [{name: A, role: input, projection: [M]}, {name: Z, role: output, projection: [M]}]}"
    (tmp_path / "w.yaml").write_text("kind: workload\nname: w\nlayers:\n" + f"- problem: {problem}\n" * 3000)
    assert is_one_message(mapped(tilewright, tmp_path / "w.yaml"), "layer names repeat: a")


# -- pipes, devices, folders in the place of files ---------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".yaml", ".onnx", ".m", ".txt", ".cfg", ".mlir"])
@pytest.mark.parametrize("make", ["fifo", "zero", "folder"])
def test_what_is_no_regular_file_is_not_waited_for(tilewright: Command, tmp_path: Path, suffix: str, make: str) -> None:
    import os

    path = tmp_path / f"odd{suffix}"
    kinds: dict[str, Callable[[], object]] = {
        "fifo": lambda: os.mkfifo(path),
        "zero": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }
    kinds[make]()
    words = (
        ("convert", path, "--to", "tilewright")
        if suffix in (".m", ".txt", ".cfg")
        else ("map", path, "--arch", "simba")
    )
    assert is_one_message(tilewright(*words))


def test_an_include_reads_regular_files_beside_it_only(tilewright: Command, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    nest = tmp_path / "below" / "nest.txt"
    shutil.copy(HOSTILE / "n1.yaml", tmp_path / "p.yaml")
    shutil.copy(HOSTILE / "n1.yaml", tmp_path / "below" / "p.yaml")
    for source, good in (
        ("p.yaml", True),
        ("../p.yaml", False),
        (str(tmp_path / "p.yaml"), False),
        ("a\\u0000b.yaml", False),
    ):
        nest.write_text(f'include problem "{source}"\n')
        ran = tilewright("convert", nest, "--from", "loopnest", "--to", "tilewright")
        assert (ran.code == 0) if good else is_one_message(ran)
