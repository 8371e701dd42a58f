"""How commands end: one style of error, JSON where it is asked for, help and versions."""

import inspect
import json
import re
from pathlib import Path

import pytest

from support import EXAMPLE_FILES
from support.command import Command
from tilewright.application.cli import app
from tilewright.application.cli.common import key_values
from tilewright.application.cli.compare import compare_command
from tilewright.application.cli.hardware.explore import explore_command
from tilewright.application.cli.mapping import map_command
from tilewright.application.cli.options import PANELS
from tilewright.version import __version__

MISUSES = [
    (("mpa",), "tilewright: no such command 'mpa'", "tilewright --help"),
    (("map",), "tilewright map: missing argument 'WORKLOAD...'", "tilewright library workloads lists them"),
    (("map", "resnet50"), "tilewright map: missing option '--arch'", "tilewright library archs lists them"),
    (("map", "x", "--arch", "y", "--jobs", "0"), "tilewright map: invalid value for '--jobs'", "tilewright map --help"),
    (("map", "x", "--arch", "y", "--seconds", "abc"), "expected a number of seconds, without a unit", ""),
    (("estimate", "sram", "--technology", "45nm"), "expected a number of nanometres, without a unit", ""),
    (("map", "x", "--arch", "y", "--frob"), "tilewright map: no such option: --frob", "tilewright map --help"),
    (("evaluate", "--mapping", "absent.yaml"), "there is no file absent.yaml", "check the path"),
    (("map", "n->n; n=1", "--arch", "eyerissx"), "did you mean 'eyeriss'", ""),
    (("plugins", "show", "randm"), "did you mean 'random'", ""),
    (
        ("map", "x", "--arch", "y", "--algorithms", "native", "--algorithms=ttgt"),
        "tilewright map: --algorithms is given 2 times",
        "separate its values by commas: --algorithms NAME,...",
    ),
    (("map", "x", "--arch", "y", "--mappers", "a, b"), "--mapper takes one name here, not a, b", "--mapper a;"),
    (("map", "x", "--arch", "y", "--models=a", "--model", "b"), "--model takes one name here", "--model a; tilewright"),
    (
        ("explore", "x", "--space", "y", "--mappers", "a,b"),
        "--mapper takes one name here",
        "keep one of them: --mapper a",
    ),
    (("calibrate", "x", "--measured", "y", "--models", "a,b"), "--model takes one name here", "--model a;"),
    (("diff-stats", "x", "y", "--models", "a,b"), "--model takes one name here", "keep one of them: --model a;"),
    (
        ("compare", "n->n; n=1", "--arch", "y", "--mapper", "random", "--mappers=random"),
        "mappers must be a list of distinct names",
        "tilewright plugins lists them",
    ),
    (("library", "show", "x", "-o", "a", "--output", "b"), "library show: -o is given 2", "keep one of them: -o FILE"),
    (
        ("map", "n->n; n=1", "--arch", "y", "--mapper-option", "a=1", "--mapper-option", "a=2"),
        "--mapper-option has a twice",
        "keep one of them: --mapper-option a=VALUE",
    ),
]


@pytest.mark.parametrize(("words", "said", "hint"), MISUSES, ids=[" ".join(words) for words, *_ in MISUSES])
def test_errors_have_one_style_and_are_json_too(
    tilewright: Command, words: tuple[str, ...], said: str, hint: str
) -> None:
    ran = tilewright(*words)
    assert ran.code == 2 and ran.out == "" and ran.err.startswith("error: ") and said in ran.err
    assert hint in ran.err and "Usage" not in ran.err and ran.err.count("error") == 1
    as_json = tilewright(*words, "--json")
    error = as_json.data["error"]
    assert as_json.code == error["exit_code"] == 2 and as_json.err == ran.err
    assert said in error["message"] and hint in (error["hint"] or "") and error["code"] and error["reasons"] == []


def test_several_reasons_are_a_list(tilewright: Command) -> None:
    files = [EXAMPLE_FILES / name for name in ("gemm.mapping.yaml", "gemm.problem.yaml", "small.arch.yaml")]
    ran = tilewright("convert", *files, "--from", "tilewright", "--to", "timeloop", "--json")
    lines = ran.err.splitlines()
    assert lines[0] == "error: adapter tilewright/timeloop does not support this:"
    assert [line[:4] for line in lines[1:]] == ["  - ", "  - ", "  hi"]
    assert ran.data["error"]["reasons"] == ran.data["reasons"] and len(ran.data["reasons"]) == 2


@pytest.mark.parametrize("words", [("--version",), ("-V",)])
def test_the_version(tilewright: Command, words: tuple[str, ...]) -> None:
    assert tilewright(*words).out == f"tilewright {__version__}\n"


def test_help_has_whole_summaries_and_options_under_headings(tilewright: Command) -> None:
    listed = " ".join(tilewright("--help").out.split())
    for command in (map_command, compare_command, explore_command):
        assert (command.__doc__ or "").partition("\n")[0] in listed
    assert "..." not in listed.partition("Commands:")[2]
    blocks = dict(re.findall(r"^(\S.*):\n((?:  .*\n|\n(?=  ))*)", tilewright("map", "--help").out, flags=re.MULTILINE))
    assert {"Arguments", "Options", *PANELS} == blocks.keys()
    assert "--seconds" in blocks["Limits of a search"] and "--arch" in blocks["Options"]
    names = {parameter.name for parameter in inspect.signature(map_command).parameters.values()}
    names |= inspect.signature(explore_command).parameters.keys() | {"traceback", "help"}
    assert {name for panel in PANELS.values() for name in panel} <= names


@pytest.mark.parametrize("words", [(), ("-h",), ("--help",)])
def test_help_is_no_error(tilewright: Command, words: tuple[str, ...]) -> None:
    ran = tilewright(*words)
    assert ran.code == 0 and "Usage: tilewright" in ran.out and "compare" in ran.out and ran.err == ""


@pytest.mark.parametrize("command", ["map", "evaluate", "compare", "convert", "verify", "plugins", "library", "schema"])
def test_every_command_has_help(tilewright: Command, command: str) -> None:
    ran = tilewright(command, "-h")
    assert ran.code == 0 and f"Usage: tilewright {command}" in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines())


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("ma", "map"),
        ("map resn", "resnet50"),
        ("map resnet50 --arch gem", "gemmini"),
        ("map resnet50 --mapper quick", "quickflow"),
        ("compare resnet50 --mappers random,sun", "random,sunstone"),
        ("evaluate --model orac", "oracle"),
        ("convert a.yaml --to loop", "loopnest"),
    ],
)
def test_shells_complete_commands_and_names(
    typed: str, completed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TILEWRIGHT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"tilewright {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    with pytest.raises(SystemExit):
        app(prog_name="tilewright")
    assert capsys.readouterr().out.split() == [completed]


def test_quiet_leaves_the_result(tilewright: Command, tmp_path: Path) -> None:
    words = ("map", "nk,km->nm; n=4 k=4 m=4", "--arch", "eyeriss", "--evaluations", 50, "-o", tmp_path)
    loud, quiet = tilewright(*words), tilewright(*words, "-q")
    assert "written to" in loud.err and quiet.err == "" and "einsum on eyeriss" in quiet.out
    assert json.loads((tmp_path / "summary.json").read_text())["layers"][0]["best"]["valid"]


def test_numbers_behind_zeros_are_names() -> None:
    assert key_values(["layer=007", "n=7", "zero=0", "x=0.5"], "--set") == {"layer": "007", "n": 7, "zero": 0, "x": 0.5}


def test_too_little_memory_is_one_message(tilewright: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*arguments: object, **settings: object) -> None:
        raise MemoryError

    monkeypatch.setattr("tilewright.map", short)
    ran = tilewright("map", "n->n; n=1", "--arch", "eyeriss")
    assert ran.code == 2 and ran.err.startswith("error: there is not enough memory") and "Traceback" not in ran.err


GEMM = "nk,km->nm; n=2 k=2 m=2"


@pytest.mark.parametrize(
    "models",
    [("--models", "timeloop,oracle"), ("--model", "timeloop", "--models=oracle"), ("--model=timeloop, oracle",)],
    ids=" ".join,
)
def test_names_of_plugins_are_repeated_or_have_commas(
    tilewright: Command, tmp_path: Path, models: tuple[str, ...]
) -> None:
    """Singular and plural are one option; a mapping is a position, or follows `--mapping`."""
    compared = tilewright(
        "compare", GEMM, "--arch", "eyeriss", "--mapper", "random", *models, "--evaluations", 9, "--json"
    )
    assert compared.data["models"] == ["timeloop", "oracle"]
    words = ("--mappers", "random", "--model", "timeloop", "--evaluations", 99, "-o", tmp_path, "--force")
    assert tilewright("map", GEMM, "--arch", "eyeriss", *words).code == 0
    (file,) = tmp_path.glob("*einsum*.yaml")
    evaluated = tilewright("evaluate", file, *models, "--json").data["results"]
    assert [result["model"] for result in evaluated] == ["timeloop", "oracle"]
    both = [word.replace("oracle", "pipelined") for word in models]
    verified = [tilewright("verify", *place, *both, "--json").data for place in ([file], ["--mapping", file])]
    assert verified[0] == verified[1]
    assert [model["model"] for model in verified[0]["models"]] == ["timeloop", "pipelined"]
    assert "oracle executes the mapping" in tilewright("verify", file, *models).err


def test_help_shows_one_spelling(tilewright: Command) -> None:
    for name, shown, other in (("map", "--model NAME", "--models"), ("evaluate", "--models X,Y,...", "--model ")):
        text = tilewright(name, "--help").out
        assert shown in text and other not in text
