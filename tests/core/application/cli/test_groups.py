"""Group mappings at the command line: evaluate, convert, and models that refuse them."""

import json
import re
from pathlib import Path

import pytest

import tilewright as tw
from support import EXAMPLE_FILES
from support.command import Command

EXAMPLE = EXAMPLE_FILES / "two_products.yaml"
CONVOLUTIONS = EXAMPLE_FILES / "two_convolutions.yaml"
RECORDED = Path(__file__).parents[3] / "data" / "groups" / "mlp2_fused_m2.yaml"


def test_the_page_shows_the_loop_tree_and_its_figures() -> None:
    page = (EXAMPLE_FILES.parent / "docs" / "fusion.md").read_text(encoding="utf-8")
    assert f"```\n{tw.GroupMapping.from_file(CONVOLUTIONS)}\n```" in page
    group = tw.GroupMapping.from_file(EXAMPLE)
    assert f"```\n{group}\n```" in page
    (report,) = tw.evaluate(group, models="oracle").reports
    counts = {level.name: level.tensors for level in report.levels}
    assert "Hidden" not in counts["DRAM"] and counts["Buffer"]["Hidden"].tile_words == 128
    for tensor, row in counts["DRAM"].items():
        layer, _, name = tensor.partition(".")
        problem = group.paths[layer].problem
        assert row.reads + row.updates == problem.tensor_words(problem.tensor(name))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{P: 1}}", "{P: 4}}", "64 in second from row 2 on; expected a temporal tile that divides the starts"),
        ("{P: 1}}", "{P: 1, K: 1}, temporal_order: [P, K]}", "make that the last loop outside the home"),
        ("second: Inputs}}", "second: Inputs}, offsets: {second: [1, 0]}}", "reads a window along P"),
        ("P: 64", "P: 62", "reads a window along P"),
    ],
)
def test_halos_that_a_home_cannot_keep_are_refused(
    tilewright: Command, tmp_path: Path, old: str, new: str, told: str
) -> None:
    text = CONVOLUTIONS.read_text(encoding="utf-8").replace("second: P}}", "second: P}, K: {first: K, second: C}}")
    text = text.replace("temporal_order: [R", "temporal_order: [P, R")
    assert old in text
    (tmp_path / "group.yaml").write_text(text.replace(old, new), encoding="utf-8")
    for model in ("oracle", "timeloop"):
        (result,) = tilewright("evaluate", tmp_path / "group.yaml", "--model", model, "--json").data["results"]
        assert any(each["code"] == "halo" and told in each["message"] for each in result["reasons"])


def test_inputs_and_results_are_whole_in_some_memory(tilewright: Command, tmp_path: Path) -> None:
    text = (
        EXAMPLE.read_text(encoding="utf-8").replace("keep: [Inputs]", "keep: []").replace("keep: [Outputs]", "keep: []")
    )
    tiled = text.replace("DRAM, keep: [up.Inputs, ", "DRAM, keep: [").replace(", down.Outputs]", "]")
    tiled = tiled.replace("keep: [Hidden]", "keep: [Hidden, up.Inputs, down.Outputs]")
    branch = text.replace("DRAM, keep: [up.Inputs, ", "DRAM, keep: [").replace("keep: []", "keep: [Inputs]", 1)
    branch = branch.replace(", temporal_tile_sizes: {M: 4}", "")
    told = {
        tiled: {"tensor up.Inputs": "in loops over M", "tensor down.Outputs": "in loops over M"},
        branch: {"tensor up.Inputs": "in one branch only"},
    }
    for wrong, places in told.items():
        (tmp_path / "group.yaml").write_text(wrong, encoding="utf-8")
        for model in ("oracle", "timeloop"):
            (result,) = tilewright("evaluate", tmp_path / "group.yaml", "--model", model, "--json").data["results"]
            assert [each["code"] for each in result["reasons"]] == ["home"] * len(places)
            found = {each["where"]: each["message"] for each in result["reasons"]}
            assert found.keys() == places.keys() and all(text in found[at] for at, text in places.items())


@pytest.mark.parametrize("model", ["oracle", "timeloop"])
def test_what_is_on_chip_before_or_after_a_group_takes_its_room_all_the_time(model: str) -> None:
    data = tw.GroupMapping.from_file(EXAMPLE).to_data()
    outer = {"target": "DRAM", "keep": ["up.Inputs", "up.Weights", "down.Outputs"]}
    data["tree"]["entries"] = [outer, {"target": "Buffer", "keep": ["Hidden", "down.Weights"]}]
    for branch, kept in zip(data["tree"]["branches"], (["Inputs", "Weights"], []), strict=True):
        branch["entries"][0]["keep"] = kept
    need = 16 * 32 + 32 * 8 + 16 * 8 + 8 * 32  # down.Weights while up runs, too
    for words, codes in ((need - 1, ["alive"]), (need, [])):
        data["architecture"]["clusters"][1]["memories"][0]["capacity_words"] = words
        (result,) = tw.evaluate(tw.GroupMapping.model_validate(data), models=model).reports
        assert [reason.code for reason in result.reasons] == codes
    levels = {level.name: level for level in result.levels}
    assert levels["Buffer"].used_words == need and "down.Weights" not in levels["DRAM"].tensors


def test_evaluate_prints_a_report_and_the_tree(tilewright: Command) -> None:
    ran = tilewright("evaluate", EXAMPLE, "--model", "oracle")
    assert ran.code == 0 and "two products on buffered by oracle: 8,192 MACs" in ran.out
    assert "Hidden" in ran.out and "then down:" in ran.out


def test_timeloop_counts_what_execution_counts(tilewright: Command) -> None:
    ran = tilewright("evaluate", EXAMPLE, "--model", "timeloop", "--model", "oracle")
    assert ran.code == 0 and "timeloop, oracle agree on every count" in ran.out


def test_models_without_groups_refuse_by_name(tilewright: Command) -> None:
    ran = tilewright("evaluate", EXAMPLE, "--model", "maestro", "--json")
    (result,) = ran.data["results"]
    assert not result["valid"] and [each["code"] for each in result["reasons"]] == ["groups"]
    assert re.search(r"accept them: .*oracle, timeloop", result["reasons"][0]["message"])


def test_verify_and_map_refuse_groups_with_the_command_that_takes_them(tilewright: Command) -> None:
    for words in (("verify", "--mapping", EXAMPLE), ("map", EXAMPLE, "--arch", "eyeriss")):
        ran = tilewright(*words)
        assert ran.code == 2 and "evaluate" in ran.err and ("oracle" in ran.err or "map --fuse" in ran.err)


def test_map_fuse_writes_the_optimal_group(tilewright: Command, tmp_path: Path) -> None:
    group = tw.GroupMapping.from_file(EXAMPLE)
    (tmp_path / "arch.yaml").write_text(group.architecture.to_yaml(), encoding="utf-8")
    words = ("map", EXAMPLE, "--arch", tmp_path / "arch.yaml", "--fuse", "--objective", "energy")
    ran = tilewright(*words, "-o", tmp_path / "out")
    page = (EXAMPLE_FILES.parent / "docs" / "fusion.md").read_text(encoding="utf-8")
    table = page.split("For the two products:\n\n```\n")[1].split("```")[0]
    assert ran.code == 0 and "proved optimal" in ran.out
    assert [line.split() for line in table.splitlines()] == [line.split() for line in ran.out.splitlines()[1:5]]
    again = tilewright("evaluate", tmp_path / "out" / "group.yaml", "--json").data["results"][0]
    found = tilewright(*words, "--json").data
    assert found["gap"] == 0 and found["fused"]["energy_pj"] == again["energy_pj"]


def test_map_fuse_owns_its_folder(tilewright: Command, tmp_path: Path) -> None:
    """Another run's folder is refused; with --force no file of that run stays, not even a proof."""
    out, group = tmp_path / "out", tw.GroupMapping.from_file(EXAMPLE)
    mapped = tilewright("map", "nk,km->nm; n=4 k=4 m=4", "--arch", "eyeriss", "--evaluations", 20, "-o", out, "--quiet")
    assert mapped.code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    words = ("map", EXAMPLE, "--arch", tmp_path / "arch.yaml", "--fuse", "--objective", "energy", "-o", out)
    (tmp_path / "arch.yaml").write_text(group.architecture.to_yaml(), encoding="utf-8")
    refused = tilewright(*words)
    assert refused.code == 2 and "contains files of another run: einsum by " in refused.err and "--force" in refused.err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    forced = tilewright(*words, "--force")
    assert forced.code == 0 and f"written to {out}" in forced.err
    files = {"group.yaml", "group.certificate.yaml"}
    assert {path.name for path in out.iterdir()} == files | {"run.json"}
    assert json.loads((out / "run.json").read_text())["work"] == f"{group.name} by fusion"

    # a search of the same group that is cut leaves no proof of an earlier one behind
    cut = tilewright(*words, "--seconds", 0)
    assert cut.code == 0 and "proved optimal" not in cut.out
    assert {path.name for path in out.iterdir()} == {"group.yaml", "run.json"}
    other = tilewright("map", "nk,km->nm; n=4 k=4 m=4", "--arch", "eyeriss", "--evaluations", 20, "-o", out)
    assert other.code == 2 and f"files of another run: {group.name} by fusion" in other.err


def test_a_group_file_of_the_user_is_not_replaced(tilewright: Command, tmp_path: Path) -> None:
    arch = tmp_path / "arch.yaml"
    arch.write_text(tw.GroupMapping.from_file(EXAMPLE).architecture.to_yaml(), encoding="utf-8")
    (tmp_path / "group.yaml").write_text("mine", encoding="utf-8")
    ran = tilewright("map", EXAMPLE, "--arch", arch, "--fuse", "-o", tmp_path)
    assert ran.code == 2 and "another run: unknown" in ran.err
    assert (tmp_path / "group.yaml").read_text(encoding="utf-8") == "mine"


def test_map_fuse_refuses_other_settings_by_name(tilewright: Command) -> None:
    ran = tilewright("map", EXAMPLE, "--arch", "eyeriss", "--fuse", "--patience", "5", "--mapper", "random")
    assert ran.code == 2 and "--patience" in ran.err and "--mapper" in ran.err


def test_accelforge_files_become_one_group_file_that_evaluates_the_same(tilewright: Command, tmp_path: Path) -> None:
    assert tilewright("convert", RECORDED, "--to", "tilewright", "-o", tmp_path).code == 0
    told = [tilewright("evaluate", each, "--model", "oracle").out for each in (RECORDED, tmp_path / "group.yaml")]
    assert told[0] == told[1] and "14.46 nJ" in told[0]


@pytest.mark.parametrize("notation", ["timeloop", "zigzag", "loopnest", "union", "maestro"])
def test_other_notations_refuse_groups(tilewright: Command, notation: str) -> None:
    ran = tilewright("convert", EXAMPLE, "--to", notation)
    assert ran.code != 0 and "cannot express group mappings" in ran.err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{up: M, down: M}", "{up: M, down: X}", r"group.yaml:5:\d+: .*down has no dimension X"),
        (
            "M: {up: M, down: M}",
            "M: {up: M, down: M}, N: {up: M, down: M}",
            "axes M and N both step M of up; expected one axis for a dimension",
        ),
        ("down: Inputs}}", "down: Input}}", "down has no tensor Input"),
        ("[Hidden]", "[Hiden]", "no layer below has a tensor Hiden"),
        ("layer: down", "layer: dwn", "every layer has one place in the tree; check down, dwn"),
        (
            "keep: [Hidden], temporal_tile_sizes: {M: 4}",
            "keep: [Hidden], temporal_tile_sizes: {K: 4}",
            "K is no axis of",
        ),
    ],
)
def test_faults_have_a_place(tilewright: Command, tmp_path: Path, old: str, new: str, told: str) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "group.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    ran = tilewright("evaluate", tmp_path / "group.yaml", "--model", "oracle")
    assert ran.code == 2 and re.search(told, ran.err) and "group.yaml:" in ran.err
