"""`tilewright convert`: between any two notations, refused with reasons, lossy only when asked."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from support import EXAMPLE_FILES
from support.command import Command
from tilewright.application.conversion.conversion import CORE, convert
from tilewright.application.conversion.dropped import SIMPLIFICATIONS, simplified
from tilewright.application.conversion.recognition import recognised
from tilewright.errors import InputError, NotConformableError, PluginError, Reason, Verdict
from tilewright.files import read_text
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.registry import Registry
from tilewright.plugin.specs import AdapterSpec
from tilewright.schema.problem import Problem
from tilewright_adapters.native import NativeAdapter

GEMM = [EXAMPLE_FILES / name for name in ("gemm.mapping.yaml", "gemm.problem.yaml", "small.arch.yaml")]
PARTS = ("problem", "architecture", "mapping", "constraints")


@pytest.fixture
def divisible(tmp_path: Path) -> list[Path]:
    """The example with its two registers held one after the other, as Timeloop wants them."""
    text = (
        GEMM[0].read_text().replace("keep: [Weights, Outputs]}", "keep: [Weights]}\n  - {target: PE, keep: [Outputs]}")
    )
    (tmp_path / "separate.yaml").write_text(text)
    return [tmp_path / "separate.yaml", *GEMM[1:]]


class Upper:
    """A notation of capital letters: a problem's name. It refuses sources and mappings."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        name = read_text(files[0]).strip().lower()
        text = f"{{name: {name}, dimensions: {{M: 2}}, tensors: [{{name: A, role: input, projection: [M]}}, {{name: Z, role: output, projection: [M]}}]}}"
        return InputSet(problem=Problem.from_yaml(text), warnings=("sizes are guessed",))

    def expressible(self, inputs: InputSet) -> Verdict:
        reasons = []
        if inputs.problem is None:
            reasons.append(Reason(code="nothing", where="", message="no problem"))
        elif inputs.problem.source:
            reasons.append(Reason(code="source", where=inputs.problem.name, message="no place for a source"))
        if inputs.mapping is not None:
            reasons.append(Reason(code="mapping", where="", message="no place for a mapping"))
        return Verdict(reasons=tuple(reasons))

    def render(self, inputs: InputSet) -> dict[str, str]:
        assert inputs.problem is not None and self.expressible(inputs)
        return {"NAME": inputs.problem.name.upper()}


class Crashing(Upper):
    def parse(self, files: Sequence[Path]) -> InputSet:
        raise RuntimeError("boom")


@pytest.fixture
def registry() -> Registry:
    found = Registry()
    for spec in (
        AdapterSpec(name="ours", summary="", factory=lambda options: NativeAdapter()),
        AdapterSpec(name="upper", summary="", factory=lambda options: Upper()),
        AdapterSpec(name="crashing", summary="", factory=lambda options: Crashing()),
    ):
        found.add(spec, "test")
    return found


def test_there_and_back_is_the_same(tilewright: Command, divisible: list[Path], tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    ran = tilewright("convert", *divisible, "--from", "tilewright", "--to", "timeloop", "-o", there)
    assert ran.code == 0, ran.err
    assert "tilewright/timeloop" in ran.err
    ran = tilewright("convert", *there.iterdir(), "--from", "timeloop", "--to", "tilewright", "-o", back)
    assert ran.code == 0, ran.err
    native = NativeAdapter()
    before, after = native.parse(divisible), native.parse(sorted(back.iterdir()))
    assert all(getattr(before, part) == getattr(after, part) for part in PARTS)


def test_all_reasons_are_given_and_nothing_is_written(tilewright: Command, tmp_path: Path) -> None:
    ran = tilewright("convert", *GEMM, "--from", "tilewright", "--to", "timeloop", "-o", tmp_path / "out")
    assert ran.code == 2
    assert "WeightRegister and SumRegister at once" in ran.err and "[siblings]" in ran.err and "[unvisited]" in ran.err
    assert "--lossy" in ran.err
    assert not (tmp_path / "out").exists()


def test_refusals_are_json_too(tilewright: Command) -> None:
    ran = tilewright("convert", *GEMM, "--from", "tilewright", "--to", "timeloop", "--json")
    assert ran.code == 2
    assert ran.data["refused"] and {reason["code"] for reason in ran.data["reasons"]} == {"siblings", "unvisited"}


def test_lossy_lists_what_it_dropped(tilewright: Command, tmp_path: Path) -> None:
    ran = tilewright(
        "convert", *GEMM, "--from", "tilewright", "--to", "timeloop", "--lossy", "-o", tmp_path, "--json"
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (field,) = ran.data["dropped"]
    assert field["what"] == "mapping.siblings" and "entry 4 on PE" in field["message"]
    assert ran.data["route"] == ["tilewright", CORE, "timeloop"]
    for file in ran.data["files"]:
        assert Path(file["path"]).read_text() == file["text"]
    evaluated = tilewright("evaluate", "--from", "timeloop", *(file["path"] for file in ran.data["files"]), "--json")
    assert evaluated.data["results"][0]["valid"]


def test_without_a_folder_files_are_printed(tilewright: Command, divisible: list[Path]) -> None:
    ran = tilewright("convert", *divisible, "--from", "tilewright", "--to", "timeloop")
    assert ran.code == 0 and "# map.yaml\n" in ran.out and "architecture:" in ran.out


def test_files_read_are_never_overwritten(tilewright: Command, tmp_path: Path) -> None:
    ours = tmp_path / "mapping.yaml"
    ours.write_text("x")
    ran = tilewright("convert", ours, "--from", "tilewright", "--to", "tilewright")
    assert ran.code == 2 and "both tilewright" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "timelop", "--to", "tilewright"), "did you mean 'timeloop'"),
        (("--from", "timeloop", "--to", "tilewrigth"), "did you mean 'tilewright'"),
        (("--from", "timeloop", "--to", "tilewright"), "there is no file"),
    ],
)
def test_wrong_calls_say_what_is_wrong(tilewright: Command, words: tuple[str, ...], said: str) -> None:
    ran = tilewright("convert", "absent.yaml", *words)
    assert ran.code == 2 and said in ran.err and "Traceback" not in ran.err


def test_two_adapters_and_the_core_between(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "name").write_text("ab")
    made = convert([tmp_path / "name"], "upper", "ours", registry)
    assert made.route == ("upper", CORE, "ours") and made.adapters == ("test/upper", "test/ours")
    assert made.warnings == ("sizes are guessed",)


def test_a_crash_is_the_plugins_fault(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="adapter 'crashing' of test .* failed: parse raised RuntimeError: boom"):
        convert([tmp_path], "crashing", "ours", registry)


def test_lossy_drops_no_more_than_it_must(registry: Registry) -> None:
    made = convert(GEMM, "ours", "upper", registry, lossy=True)
    assert [field.what for field in made.dropped] == ["mapping"]
    assert made.files == {"NAME": "GEMM64"}
    with pytest.raises(NotConformableError, match="no place for a mapping"):
        convert(GEMM, "ours", "upper", registry)


def test_lossy_refuses_what_cannot_be_left_out(registry: Registry) -> None:
    with pytest.raises(NotConformableError, match="no problem"):
        convert(GEMM[2:], "ours", "upper", registry, lossy=True)


def test_every_simplification_says_what_it_took(divisible: list[Path]) -> None:
    inputs = NativeAdapter().parse(GEMM)
    for simplify in SIMPLIFICATIONS:
        made = simplify(inputs)
        if made is not None:
            assert made[0] != inputs and made[1].what and made[1].message


def test_nothing_is_dropped_for_a_notation_that_holds_it_all() -> None:
    inputs = NativeAdapter().parse(GEMM)
    assert simplified(inputs, NativeAdapter().expressible) == (inputs, ())


def test_our_files_say_twice_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="problem is repeated"):
        NativeAdapter().parse([GEMM[1], GEMM[1]])
    (tmp_path / "odd.yaml").write_text("{kind: dog}")
    with pytest.raises(InputError, match="the file has kind 'dog'"):
        NativeAdapter().parse([tmp_path / "odd.yaml"])


@pytest.mark.parametrize("example", ["union_figure_5", "union_figure_9b"])
def test_the_notation_of_files_is_told_by_reading_them(tilewright: Command, example: str, tmp_path: Path) -> None:
    path = EXAMPLE_FILES / f"{example}.yaml"
    ran = tilewright("convert", path, "--to", "loopnest", "-o", tmp_path, "--json")
    assert ran.data["from"] == "union" and "union" in ran.err
    told = tilewright("evaluate", "--from", "union", path).out
    for words in (["--mapping", path], [path], [tmp_path / "loopnest.txt"], ["--mapping", tmp_path / "loopnest.txt"]):
        assert tilewright("evaluate", *words).out == told
    ran = tilewright("convert", path, "--to", "union")
    assert ran.code == 2 and "the files are already in union" in ran.err


def test_files_of_a_set_may_stand_behind_the_options(
    tilewright: Command, divisible: list[Path], tmp_path: Path
) -> None:
    tilewright("convert", *divisible, "--to", "timeloop", "-o", tmp_path)
    mapping, problem, arch = (tmp_path / f"{name}.yaml" for name in ("map", "problem", "arch"))
    told = tilewright("evaluate", "--from", "timeloop", mapping, problem, arch).out
    assert tilewright("evaluate", "--mapping", mapping, "--problem", problem, "--arch", arch).out == told
    assert tilewright("convert", mapping, problem, arch, "--to", "timeloop_v4", "--json").data["from"] == "timeloop"
    ran = tilewright("evaluate", mapping, problem)
    assert ran.code == 2 and "a mapping needs its architecture (read as timeloop and timeloop_v4)" in ran.err
    ran = tilewright("evaluate", mapping, tmp_path / "absent.yaml")
    assert ran.code == 2 and "there is no file" in ran.err
    ran = tilewright("verify", "--mapping", mapping)
    assert ran.code == 2 and "Traceback" not in ran.err


def test_notations_without_an_option_that_is_given_say_nothing(tilewright: Command, tmp_path: Path) -> None:
    (tmp_path / "net.m").write_text("Network n {\nLayer a {\nType: CONV\nDimensions { K: 4, C: 4 }\n}\n}\n")
    (tmp_path / "flow.m").write_text("Dataflow {\nSpatialMap(Tile,Tile) K;\n}\n")
    ran = tilewright("evaluate", tmp_path / "net.m", "--dataflow", tmp_path / "flow.m")
    assert ran.code == 2 and "flow.m:2:12" in ran.err and "unknown constant 'Tile'" in ran.err
    assert "unknown option" not in ran.err


def test_files_in_several_notations_need_a_word(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "two").write_text("kind: problem\n" + UPPER)
    registry.add(AdapterSpec(name="another", summary="", factory=lambda options: NativeAdapter()), "test")
    found, said = recognised([tmp_path / "two"], registry, unlike="test/another")
    assert found.spec.name == "ours" and said.problem is not None
    registry.add(AdapterSpec(name="wild", summary="", factory=lambda options: Wild()), "test")
    with pytest.raises(InputError, match="as another and as ours and as wild") as caught:
        recognised([tmp_path / "two"], registry)
    assert "--from ours" in str(caught.value)


UPPER = "name: n\ndimensions: {M: 2}\ntensors: [{name: A, role: input, projection: [M]}, {name: Z, role: output, projection: [M]}]\n"


class Wild(Upper):
    """Reads anything, as the same."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        return InputSet(problem=Problem.from_yaml(UPPER.replace("name: n", "name: other")))


def test_a_layer_of_our_workloads_is_named_behind_the_file(tilewright: Command) -> None:
    words = ("--from", "tilewright", "--to", "timeloop")
    workload = EXAMPLE_FILES / "three_layers.workload.yaml"
    ran = tilewright("convert", f"{workload}/gemm", GEMM[2], *words)
    assert ran.code == 0 and "# problem.yaml" in ran.out, ran.err
    several = tilewright("convert", workload, GEMM[2], *words)
    assert (
        several.code == 2
        and "the file has 3 layers; select one" in several.err
        and "/LAYER; known: conv_3x3" in several.err
    )
    other = tilewright("convert", f"{GEMM[2]}/gemm", *words)
    assert other.code == 2 and "is not a workload, so it has no layer gemm" in other.err


def test_files_of_an_earlier_conversion_are_told(tilewright: Command, tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "stale.yaml").write_text("stale: true\n")
    (folder / "notes.txt").write_text("mine\n")
    ran = tilewright("convert", EXAMPLE_FILES / "zigzag" / "accelerator.yaml", "--to", "tilewright", "-o", folder)
    assert ran.code == 0 and f"{folder} also has stale.yaml, which this conversion did not write" in ran.err
