"""What is given in the wrong place: the message says what it is, and what to type."""

from pathlib import Path

import pytest

from support import EXAMPLE_FILES
from support.command import Command

WORK = "nk,km->nm; n=4 k=4 m=4"
SMALL = EXAMPLE_FILES / "small.arch.yaml"


@pytest.fixture
def run(tilewright: Command, tmp_path: Path) -> Path:
    """The folder of a run."""
    words = ("--arch", "eyeriss", "--mapper", "random", "--evaluations", 20, "-o", tmp_path / "run", "-q")
    assert tilewright("map", WORK, *words).code == 0
    return tmp_path / "run"


def test_the_folder_of_a_run_is_no_input(tilewright: Command, run: Path) -> None:
    for words in (
        ("map", run, "--arch", "eyeriss"),
        ("map", WORK, "--arch", run),
        ("map", run, "--arch", "eyeriss", "--from", "timeloop"),
        ("evaluate", run),
        ("evaluate", run, "--from", "timeloop"),
        ("convert", run, "--to", "loopnest"),
        ("convert", run, "--full"),
        ("library", "layers", run),
        ("compare", run, "--arch", "eyeriss", "--mappers", "random"),
    ):
        ran = tilewright(*words)
        assert ran.code == 2 and f"{run} is the folder of a run, not an input" in ran.err, ran.err
        assert f"`tilewright evaluate {run}/001_einsum.yaml` evaluates a mapping of it" in ran.err
    assert tilewright("evaluate", run / "001_einsum.yaml").code == 0
    (run / "run.json").unlink()
    assert "is the folder of a run" in tilewright("evaluate", run).err


def test_a_summary_is_no_input(tilewright: Command, run: Path) -> None:
    for words in (("map", run / "summary.json", "--arch", "eyeriss"), ("evaluate", run / "summary.json")):
        ran = tilewright(*words)
        assert ran.code == 2 and "this one is of kind 'map_output'" in ran.err and "it is a result" in ran.err


@pytest.mark.parametrize(
    ("words", "told", "hint"),
    [
        (("map", WORK, "--arch", SMALL, "--set", "Buffer.capacity_words=9"), "none of the files is another tool's", "--vary FIELD=VALUE"),
        (("map", "eyeriss", "resnet50"), "missing option '--arch'", "eyeriss is an architecture: --arch eyeriss"),
        (("map", WORK, SMALL), "missing option '--arch'", f"{SMALL} is an architecture: --arch {SMALL}"),
        (("map", WORK), "missing option '--arch'", "tilewright library archs lists them"),
        (
            ("map", *sorted((EXAMPLE_FILES / "timeloop").glob("*.yaml"))),
            "missing option '--arch'",
            "tilewright map PROBLEM --arch FILE --arch FILE",
        ),
        (("map", "resnet50", "--arch", "resnet50"), "no architecture is called 'resnet50'; it is a workload", ""),
        (("map", "eyeriss", "--arch", "eyeriss"), "no workload is called 'eyeriss'; it is an architecture", ""),
        (("map", "resnet50", "--arch", "EYERISS"), "no architecture is called 'EYERISS'; did you mean 'eyeriss'?", ""),
        (("estimate", "SRAM", "--technology", 45), "does not know 'SRAM'; did you mean 'sram'?", ""),
        (
            ("estimate", "sram", "--technology", 45, "--size", "capacity_words=65536"),
            "no attribute 'capacity_words'; its size is stated in bits, as size_bits",
            "",
        ),
    ],
)  # fmt: skip
def test_misuse(words: tuple[object, ...], told: str, hint: str, tilewright: Command) -> None:
    ran = tilewright(*words)
    assert ran.code == 2 and told in ran.err and hint in ran.err, ran.err


def test_a_kind_of_chart_is_one_that_the_source_has(tilewright: Command, run: Path) -> None:
    assert (
        "kind must be one of energy, latency, roofline, convergence, not 'bar'"
        in tilewright("plot", run, "--kind", "bar").err
    )
    assert "has no chart of kind pareto" in tilewright("plot", run, "--kind", "pareto").err
