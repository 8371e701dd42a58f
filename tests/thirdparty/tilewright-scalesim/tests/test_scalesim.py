"""SCALE-Sim's files are read by a distribution of its own, which imports public modules only."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tilewright_scalesim
from tilewright_scalesim import TopologyOptions
from tilewright_scalesim.configuration import Configuration
from tilewright_scalesim.topology import Topology

import tilewright as tw
from tilewright.errors import InputError, Location, NotConformableError
from tilewright.plugin import HARDWARE_ATTRIBUTES, AdapterSpec, FrontendSpec, InputSet, discover
from tilewright.testing import Case, parametrize_conformance

HERE = Path(__file__).parent
PUBLIC = {"tilewright", "tilewright.plugin", "tilewright.errors", "tilewright.testing"}
HARDWARE_ALONE = "a configuration has no problem and no mapping, which the corpus has"


@parametrize_conformance(
    "tilewright-scalesim",
    sources={"topologies": [str(HERE / "layers.csv"), str(HERE / "gemms.csv")]},
    expected_failures=dict.fromkeys(
        (
            "check_adapter_round_trip",
            "check_adapter_stays_in_its_folder",
            "check_adapter_renders_the_same_twice",
            "check_adapter_drops_nothing_silently",
            "check_adapter_accepts_a_problem_by_its_structure",
            "check_adapter_refuses_what_it_cannot_express",
            "check_adapter_reads_what_is_in_the_files",
            "check_adapter_refuses_damaged_files",
        ),
        HARDWARE_ALONE,
    ),
)
def test_conformance(case: Case) -> None:
    case.run()


def test_the_host_finds_both() -> None:
    assert discover().find(FrontendSpec, "topologies").distribution == "tilewright-scalesim"
    assert discover().find(AdapterSpec, "scalesim").distribution == "tilewright-scalesim"


@pytest.mark.parametrize("disabled", ["", "tilewright/scalesim"])
def test_the_built_in_frontend_comes_first(disabled: str) -> None:
    words = [
        "map",
        "layers.csv",
        "--arch",
        "eyeriss",
        "--mapper",
        "random",
        "--evaluations",
        "20",
        "--no-cache",
        "--json",
    ]
    environment = {**os.environ, "TILEWRIGHT_DISABLE": disabled}
    run = subprocess.run(
        [sys.executable, "-m", "tilewright", *words],
        cwd=HERE,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    note = "layers.csv is read by frontend 'topologies' of tilewright-scalesim 0.1.0"
    assert (note in run.stderr) == bool(disabled) and '"Conv2_1"' in run.stdout


def test_it_imports_public_modules_only() -> None:
    files = sorted(Path(tilewright_scalesim.__file__).parent.glob("*.py"))
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    names |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    ours = {name for name in names if name.partition(".")[0] == "tilewright"}
    assert len(files) == 3 and ours and ours <= PUBLIC


def test_a_topology_has_the_work_of_its_layers() -> None:
    """Outputs of Conv1 are (30 - 7) // 2 + 1 = 12 rows and columns."""
    workload = Topology(TopologyOptions()).load(str(HERE / "layers.csv"))
    assert [(layer.name, layer.problem.macs) for layer in workload.layers] == [
        ("Conv1", 8 * 3 * 12 * 12 * 7 * 7),
        ("Conv2_1", 8 * 8 * 12 * 12 * 3 * 3),
        ("FC", 320),
    ]
    builtin = tw.load(str(HERE / "layers.csv"), "workload")
    assert [layer.problem.macs for layer in builtin.layers] == [layer.problem.macs for layer in workload.layers]
    (product,) = Topology(TopologyOptions(batch=2)).load(str(HERE / "gemms.csv")).layers
    assert dict(product.problem.dimensions) == {"M": 256, "N": 64, "K": 32}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Layer,M,N,K,Sparsity\nA,1,1,1,1:4\n", r":1: the columns are Layer, M, N, K, Sparsity"),
        ("Layer,M,N,K\nA,1,1\n", r":2: 3 whole numbers from 1 are expected"),
        ("Layer,M,N,K\nA,1,1,0\n", r":2: 3 whole numbers from 1 are expected"),
        ("Layer,M,N,K\nA,1,1,x\n", r":2: invalid literal"),
        ("Layer,M,N,K\n", "the file has no layer"),
        ("L, H height, H width, F height, F width, Channels, Filters, Strides,\nA, 2, 2, 3, 3, 1, 1, 1,\n", "does not fit"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_topology_has_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        Topology(TopologyOptions()).load(str(tmp_path / "bad.csv"))


def test_a_configuration_comes_back(tmp_path: Path) -> None:
    inputs = Configuration().parse([HERE / "scale.cfg"])
    architecture = inputs.architecture
    assert architecture is not None and architecture.compute_instances == 128
    assert [memory.usable_words for memory in architecture.memories] == [None, 32 * 1024, 32 * 1024, 16 * 1024]
    assert inputs.warnings == ("SCALE-Sim has no energies: all are 0", "ignored: dataflow = ws")
    (tmp_path / "again.cfg").write_text(Configuration().render(InputSet(architecture=architecture))["scale.cfg"])
    assert Configuration().parse([tmp_path / "again.cfg"]).architecture == architecture


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("ArrayHeight:    16\n", "", r"\[architecture_presets\] has no ArrayHeight"),
        ("Bandwidth : 10\n", "", r"has no Bandwidth"),
        ("16", "many", "invalid literal"),
        ("16", "0", "greater than or equal to 1"),
        ("[architecture_presets]", "[other]", "architecture_presets"),
    ],
)
def test_what_is_wrong_in_a_configuration_is_named(old: str, new: str, words: str, tmp_path: Path) -> None:
    text = (HERE / "scale.cfg").read_text(encoding="utf-8")
    (tmp_path / "bad.cfg").write_text(text.replace(old, new, 1) if old != "16" else text.replace("    16", new, 1))
    with pytest.raises(InputError, match=f"not a configuration of SCALE-Sim: .*{words}") as caught:
        Configuration().parse([tmp_path / "bad.cfg"])
    assert caught.value.location == Location(str(tmp_path / "bad.cfg")) and "cannot read" not in str(caught.value)


def test_attributes_that_it_lacks_are_refused_without_being_named() -> None:
    """Among them are those that a later Tilewright adds."""
    architecture = Configuration().parse([HERE / "scale.cfg"]).architecture
    assert architecture is not None
    leaking = architecture.replace({"IfmapSRAM.leakage_pj_per_cycle": 1.0, "FilterSRAM.block_words": 2})
    with pytest.raises(NotConformableError) as refused:
        Configuration().render(InputSet(architecture=leaking))
    assert [str(reason) for reason in refused.value.reasons] == [
        "IfmapSRAM: it leaks; SCALE-Sim has no energies [leakage]",
        "FilterSRAM: an access moves 2 words; SCALE-Sim's configurations cannot express it [block]",
    ]
    assert {"leakage_pj_per_cycle", "block_words"} <= HARDWARE_ATTRIBUTES
    other = architecture.replace({"DRAM.read_energy_pj": 1.0})
    assert [reason.code for reason in Configuration().expressible(InputSet(architecture=other)).reasons] == ["form"]


def test_a_layer_is_mapped_onto_the_array() -> None:
    architecture = Configuration().parse([HERE / "scale.cfg"]).architecture
    assert architecture is not None
    result = tw.map(str(HERE / "gemms.csv"), arch=architecture, mapper="random", objective="cycles", evaluations=200)
    assert result.complete and result.warnings == ()
