"""Work and hardware from other tools' files, as `map` takes them."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tilewright as tw
from support.timeloop_inputs import SHAPE
from tilewright.application.api.plan import Plan
from tilewright.application.api.settings import Searches
from tilewright.application.conversion.map_inputs import _combined
from tilewright.errors import InputError, UnsupportedError
from tilewright.plugin import AdapterSpec, InputSet, installed
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, SpatialRule, Variant
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload

ARCH = """architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {width: 16, word-bits: 16}}
    subtree:
    - name: chip
      local:
      - {name: Buffer, class: SRAM, attributes: {depth: 64, width: 16, word-bits: 16}}
      - {name: MACC, class: intmac, attributes: {word-bits: 16}}
"""
RULES = """mapspace_constraints:
- {target: Buffer, type: temporal, factors: K=6}
"""
ENERGIES = """ERT:
  version: 0.3
  tables:
  - {name: system.DRAM, actions: [{name: read, energy: 100}, {name: write, energy: 110}, {name: update, energy: 120}]}
  - {name: system.chip.Buffer, actions: [{name: read, energy: 5}, {name: write, energy: 6}, {name: update, energy: 7}]}
  - {name: system.chip.MACC, actions: [{name: mac_random, energy: 1.5}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "layers").mkdir()
    for number, size in ((2, 6), (10, 3), (1, 12)):
        (tmp_path / "layers" / f"layer{number}.yaml").write_text(SHAPE.replace("SIZE", str(size)))
    for name, text in (("arch", ARCH), ("rules", RULES), ("ERT", ENERGIES)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def given(work: object, arch: object, **words: object) -> tuple[Workload, Architecture, Constraints]:
    plan = Plan.of(work, arch, ["random"], ["timeloop"], Searches(**words))  # type: ignore[arg-type, typeddict-item]
    return plan.workload, plan.architecture, plan.constraints


def test_a_folder_of_layers_and_several_files_of_hardware_are_mapped(folder: Path) -> None:
    report = tw.map(folder / "layers", [folder / "arch.yaml", folder / "ERT.yaml"], mapper="exhaustive", cache=False)
    assert [layer.name for layer in report.layers] == ["layer1", "layer2", "layer10"]
    assert report.complete and report.configuration.architecture.memories[0].read_energy_pj == 100
    (again,) = tw.evaluate(report["layer2"]).reports
    assert again.edp == report["layer2"].edp


def test_what_files_say_of_mappings_counts_for_each_size(folder: Path) -> None:
    """Since July 2022 Timeloop ignores a factor that exceeds the dimension; before, it took all of it."""
    files = [folder / "arch.yaml", folder / "ERT.yaml", folder / "rules.yaml"]
    work, architecture, constraints = given(folder / "layers", files)
    for layer, trips in zip(work.layers, (6, 6, None), strict=True):
        rules = constraints.rules_for(layer.problem, architecture)
        assert rules is not None
        assert [rule.factors["K"].min for rule in rules.temporal] == ([] if trips is None else [trips])
    assert constraints.rules_for(work.layers[0].problem.replace({"dimensions.K": 24}), architecture) is None
    assert given(folder / "layers", files, constraints="none")[2].variants == ()


def test_rules_that_are_the_same_for_all_layers_have_no_sizes(folder: Path) -> None:
    _, _, constraints = given(
        [folder / "layers" / "layer1.yaml", folder / "layers" / "layer2.yaml"],
        [folder / "arch.yaml", folder / "rules.yaml"],
    )
    (variant,) = constraints.variants
    assert variant.sizes is None and variant != Variant()


def test_work_of_ours_meets_the_rules_of_the_files(folder: Path) -> None:
    problem = tw.load("mk,kn->mn; m=8 n=4 k=6", "problem")
    with pytest.raises(InputError, match="unknown dimension 'K'") as raised:
        given(problem, [folder / "arch.yaml", folder / "rules.yaml"], notation="timeloop")
    assert raised.value.hint is not None and "--constraints none" in raised.value.hint
    work, architecture, constraints = given(problem, [folder / "arch.yaml", folder / "rules.yaml"], constraints="none")
    assert work.layers[0].problem == problem and not constraints.variants
    capital = Problem.model_validate_json(problem.model_dump_json().replace('"k"', '"K"'))
    work, architecture, constraints = given(capital, [folder / "arch.yaml", folder / "rules.yaml"])
    assert constraints.rules_for(work.layers[0].problem, architecture) is not None


def test_hardware_with_a_problem_of_its_own_leaves_that_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    problem = tw.load("mk,kn->mn; m=8 n=4 k=6", "problem")
    whole = folder / "whole.yaml"
    whole.write_text(ARCH + RULES + SHAPE.replace("SIZE", "12"))
    with caplog.at_level(logging.WARNING, "tilewright"):
        work, architecture, constraints = given(problem, [whole])
    assert work.layers[0].problem == problem and [memory.name for memory in architecture.memories] == ["DRAM", "Buffer"]
    assert not constraints.variants and "the problem in these files, gemm, is ignored" in caplog.text


def test_options_leave_the_notations_that_take_them(folder: Path) -> None:
    (folder / "odd.yaml").write_text("odd: 1")
    with pytest.raises(InputError) as raised:
        given([folder / "odd.yaml"], "eyeriss", reading={"set": {"a": 1}})
    assert "timeloop" in str(raised.value) and "loopnest" not in str(raised.value)
    with pytest.raises(InputError, match="no notation has these options\n(.*\n)*.*'loopnest': sett: unknown option"):
        given([folder / "odd.yaml"], "eyeriss", reading={"sett": 1})


def never(options: object) -> Any:
    raise AssertionError("what it needs is not there")


def test_an_adapter_that_cannot_be_made_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = installed()
    monkeypatch.setattr(registry, "registrations", list(registry.registrations))
    registry.add(AdapterSpec(name="absent", summary="", factory=never, needs=("no_such_module",)), "third-party")
    (folder / "odd.yaml").write_text("odd: 1")
    with pytest.raises(InputError, match="absent: .*no_such_module"):
        given([folder / "odd.yaml"], "eyeriss")


def test_a_program_of_several_layers_is_no_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program: Any = SimpleNamespace(name="net", layers=(None, None), architecture=never, problem=never, tiles=never)
    adapter: Any = SimpleNamespace(parse=lambda files: InputSet(directives=program), expressible=never, render=never)
    registry = installed()
    monkeypatch.setattr(registry, "registrations", list(registry.registrations))
    registry.add(AdapterSpec(name="programs", summary="", factory=lambda options: adapter), "third-party")
    (folder / "odd.yaml").write_text("odd: 1")
    with pytest.raises(InputError, match="odd has 2 layers; expected one"):
        given([folder / "odd.yaml"], "eyeriss", notation="programs")


@pytest.mark.parametrize("name", ["own.onnx", "own.mlir", "own.pt2", "own.yaml"])
def test_a_named_notation_reads_files_that_look_like_others(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem = tw.load("mk,kn->mn; m=8 n=4 k=6", "problem")
    adapter: Any = SimpleNamespace(parse=lambda files: InputSet(problem=problem), expressible=never, render=never)
    registry = installed()
    monkeypatch.setattr(registry, "registrations", list(registry.registrations))
    registry.add(AdapterSpec(name="own", summary="", factory=lambda options: adapter), "third-party")
    (tmp_path / name).write_text("kind: workload\nname: other\n")
    work, _, _ = given([tmp_path / name], "eyeriss", notation="own")
    assert work.layers[0].problem.tensors == problem.tensors
    with pytest.raises(InputError, match="none of the files is another tool's"):
        given([tmp_path / name], "eyeriss", notation="timeloop")
    with pytest.raises(tw.errors.UnknownPluginError, match="did you mean 'timeloop'"):
        given([tmp_path / name], "eyeriss", notation="timelop")


def test_files_of_ours_may_be_several(tmp_path: Path) -> None:
    for name, text in (("a", "mk,kn->mn; m=8 n=4 k=6"), ("b", "mk,kn->mn; m=2 n=4 k=6")):
        problem = tw.load(text, "problem").model_copy(update={"name": name})
        (tmp_path / f"{name}.yaml").write_text(problem.to_yaml())
    work, _, _ = given([tmp_path / "a.yaml", tmp_path / "b.yaml"], "eyeriss")
    assert [layer.name for layer in work.layers] == ["a", "b"]
    with pytest.raises(InputError, match="two layers are called a"):
        given([tmp_path / "a.yaml", tmp_path / "a.yaml"], "eyeriss")


def test_one_file_of_another_tool_is_loaded_by_itself(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tilewright"):
        architecture = tw.load(folder / "arch.yaml", "architecture")
    assert [memory.name for memory in architecture.memories] == ["DRAM", "Buffer"]
    assert "no energy table" in caplog.text
    assert tw.load(folder / "layers" / "layer2.yaml", "problem").macs == 8 * 4 * 6


@pytest.mark.parametrize(
    ("work", "arch", "words", "said"),
    [
        ("nk,km->nm; n=4 k=5 m=6", "eyeriss", {"notation": "timeloop"}, "none of the files is another tool's"),
        (["layers/layer1.yaml", "ours.yaml"], "eyeriss", {}, "some of these files are Tilewright's"),
        ("arch.yaml", "eyeriss", {}, "the file has no problem"),
        ("layers", "rules.yaml", {}, "no architecture"),
        ("layers", ["arch.yaml", "absent.yaml"], {}, "there is no file absent.yaml"),
        ("layers", [], {}, "a list of sources must contain only files"),
        ("empty", "eyeriss", {}, "empty has no files"),
    ],
)
def test_what_is_missing_is_said(
    work: object, arch: object, words: dict[str, object], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir()
    (folder / "ours.yaml").write_text(tw.load("nk,km->nm; n=4 k=5 m=6", "problem").to_yaml())
    with pytest.raises(InputError, match=said):
        given(work, arch, **words)


def test_a_list_of_layers_is_a_network(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As CoSA writes it; a dilation of 0 is none."""
    sizes = {"R": 3, "S": 3, "P": 8, "Q": 8, "C": 4, "K": 8, "N": 1, "Wdilation": 0, "Hdilation": 0, "Wstride": 1}
    for name, channels in (("a.1", 4), ("b.2", 2)):
        given_sizes = "".join(f"  {key}: {size}\n" for key, size in (sizes | {"C": channels}).items())
        (tmp_path / f"{name}.yaml").write_text(f"problem:\n  shape: cnn-layer\n{given_sizes}")
    (tmp_path / "layers.yaml").write_text("- b.2\n- a.1\n")
    with caplog.at_level(logging.WARNING, "tilewright"):
        work, _, _ = given(tmp_path / "layers.yaml", "eyeriss")
    assert [(layer.name, layer.problem.dimensions["C"]) for layer in work.layers] == [("b.2", 2), ("a.1", 4)]
    assert "Wdilation is 0: read as 1" in caplog.text
    assert tw.load(tmp_path / "layers.yaml" / "a.1", "problem").dimensions["C"] == 4
    with pytest.raises(InputError, match=r"there is no layer a\.2; did you mean"):
        given(tmp_path / "layers.yaml" / "a.2", "eyeriss", notation="timeloop")


def test_layers_of_several_in_a_file_are_mapped_with_their_rules(tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- name: default\n  spatial_mapping: {D1: ['K, 4']}\n")
    folder = Path(__file__).parents[4] / "examples" / "zigzag"
    work, architecture, constraints = given(folder / "workload.yaml", [folder / "accelerator.yaml", mapping])
    assert [layer.name for layer in work.layers] == ["conv1", "fc"]
    assert all(constraints.rules_for(layer.problem, architecture) is not None for layer in work.layers)
    assert given(folder / "workload.yaml" / "1", folder / "accelerator.yaml")[0].layers[0].problem.macs == 16 * 8 * 28


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("net.onnx", "net.onnx is a network, which only frontends read", "tilewright map .*net.onnx --arch FILE"),
        ("eyeriss.py", "eyeriss.py is a program; programs are not run", "tilewright library show"),
    ],
)
@pytest.mark.parametrize("notation", [None, "zigzag"])
def test_what_is_no_notation_is_told(folder: Path, name: str, said: str, hint: str, notation: str | None) -> None:
    (folder / name).write_bytes(b"\x08\x07\xff")
    with pytest.raises(InputError, match=said) as raised:
        tw.evaluate([folder / "arch.yaml", folder / name], notation=notation)
    assert raised.value.hint is not None and re.search(hint, raised.value.hint)


def test_files_without_a_mapping_are_told_to_be_searched(tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- name: default\n  spatial_mapping: {D1: ['K, 4']}\n")
    folder = Path(__file__).parents[4] / "examples" / "zigzag"
    with pytest.raises(InputError, match="no mapping in these files: temporal_ordering is incomplete") as raised:
        tw.evaluate([folder / "accelerator.yaml", folder / "workload.yaml" / "fc", mapping], notation="zigzag")
    assert raised.value.hint is not None and "tilewright map" in raised.value.hint


def test_sparse_hardware_of_no_public_timeloop_is_refused_as_its_own_notation(tmp_path: Path) -> None:
    """The message has nothing about other notations."""
    (tmp_path / "problem.yaml").write_text(SHAPE.replace("SIZE", "8"))
    sparse = "sparse_optimizations:\n  targets:\n  - {name: Buffer, action-optimization: [{type: position-skipping}]}\n"
    whole = tmp_path / "whole.yaml"
    whole.write_text(ARCH + SHAPE.replace("SIZE", "8") + sparse)
    calls: list[Callable[[], object]] = [
        lambda: tw.evaluate(whole),
        lambda: tw.load(whole, "workload"),
        lambda: tw.map(tmp_path / "problem.yaml", whole),
        lambda: tw.convert([whole], target="tilewright"),
    ]
    for call in calls:
        with pytest.raises(UnsupportedError, match=r"^read as timeloop.*whole.yaml:\d+:\d+: position-") as raised:
            call()
        assert "\n" not in raised.value.message and str(raised.value.hint).startswith("--dense")


def test_layers_of_equal_sizes_keep_their_own_rules() -> None:
    """Both products of an attention have the same sizes, and each file states which of them its array unrolls."""
    scores = Problem.model_validate(
        {
            "name": "scores",
            "dimensions": {"t": 4, "s": 4, "d": 2},
            "tensors": [
                {"name": "A", "role": "input", "projection": ["t", "d"]},
                {"name": "B", "role": "weight", "projection": ["s", "d"]},
                {"name": "Z", "role": "output", "projection": ["t", "s"]},
            ],
        }
    )
    data = scores.to_data() | {"name": "context"}
    for tensor, ranks in zip(data["tensors"], ("ts", "sd", "td"), strict=True):
        tensor["projection"] = list(ranks)
    context = Problem.model_validate(data)
    rules = [
        (problem, Constraints(name="array", variants=(Variant(spatial=(SpatialRule(cluster="Array", only=only),)),)))
        for problem, only in ((scores, ("s",)), (context, ("d",)))
    ]
    both = _combined(rules)
    assert both is not None and Constraints.from_yaml(both.to_yaml()) == both
    for problem, own in rules:
        variant = both.variant_for(problem)
        assert variant is not None and variant.for_any() == own.variants[0]
    assert both.variant_for(scores.replace({"dimensions.t": 8})) is None


def test_layers_of_equal_work_keep_the_rules_of_their_names(tmp_path: Path) -> None:
    """As in ZigZag, a mapping has the name of a layer. Both layers have the same sizes and tensors."""
    folder = Path(__file__).parents[4] / "examples" / "zigzag"
    layer = (
        "- id: {}\n  name: {}\n  operator_type: Gemm\n  equation: O[d][k]+=I[d][c]*W[c][k]\n  loop_dims: [D, K, C]\n"
    )
    layer += "  loop_sizes: [4, 8, 16]\n  operand_precision: {{W: 8, I: 8, O: 8, O_final: 8}}\n"
    (tmp_path / "work.yaml").write_text(layer.format(0, "first") + layer.format(1, "second"))
    (tmp_path / "mapping.yaml").write_text(
        "- name: first\n  spatial_mapping: {D1: ['K, 4']}\n- name: default\n  spatial_mapping: {D1: ['C, 4']}\n"
    )
    work, architecture, constraints = given(
        tmp_path / "work.yaml", [folder / "accelerator.yaml", tmp_path / "mapping.yaml"]
    )
    rules = [constraints.rules_for(constraints.labelled(each.problem), architecture) for each in work.layers]
    unrolled = [next(rule.only for rule in variant.spatial if rule.only) for variant in rules if variant]
    assert unrolled == [("K",), ("C",)] and len(work.distinct()) == 2
