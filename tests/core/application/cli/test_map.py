"""`tilewright map`: tables, JSON, files, and what a user's mistakes look like."""

import csv
import json
from pathlib import Path

import pytest

from support.command import Command, interrupted
from tilewright.application.cli.mapping import _of_one
from tilewright.schema.mapped import MappedProblem

GEMM = "nk,km->nm; n=8 k=12 m=6"


def test_a_formula_is_mapped_and_its_file_evaluates_to_the_same_figures(tilewright: Command, tmp_path: Path) -> None:
    ran = tilewright("map", GEMM, "--arch", "eyeriss", "--evaluations", 3000, "-o", tmp_path, "--json")
    assert ran.code == 0
    layer = ran.data["layers"][0]
    assert layer["best"]["valid"] and 0 < layer["search"]["evaluated"] <= 3000
    assert layer["best"]["edp"] == layer["best"]["energy_pj"] * layer["best"]["cycles"]

    evaluated = tilewright("evaluate", "--mapping", tmp_path / layer["best"]["mapping_file"], "--json")
    result = evaluated.data["results"][0]
    for key in ("cycles", "energy_pj", "edp", "utilization"):
        assert result[key] == layer["best"][key]


def test_the_folder_holds_mappings_and_summaries(tilewright: Command, tmp_path: Path) -> None:
    ran = tilewright("map", "bert_base", "--arch", "eyeriss", "--evaluations", 2000, "-o", tmp_path / "out", "--json")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary == ran.data
    with (tmp_path / "out" / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["layer"] for row in rows] == [layer["name"] for layer in summary["layers"]]
    for layer in summary["layers"]:
        found = MappedProblem.from_file(tmp_path / "out" / layer["best"]["mapping_file"])
        assert found.problem.name == layer["name"]
        assert found.provenance is not None and found.provenance.mapper.name == "optimal"
    totals = summary["totals"]
    assert totals["energy_pj"] == pytest.approx(
        sum(each["best"]["energy_pj"] * each["count"] for each in summary["layers"])
    )
    assert totals["edp"] == totals["energy_pj"] * totals["cycles"]


def test_the_same_seed_gives_the_same_files(tilewright: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        tilewright(
            "map", GEMM, "--arch", "simba", "--evaluations", 20000, "--seed", 7, "--no-cache", "-o", tmp_path / name
        )
    one, other = (sorted((tmp_path / name).glob("*.yaml")) for name in ("a", "b"))
    assert [path.read_text() for path in one] == [path.read_text() for path in other]


def test_equal_layers_are_mapped_once_and_operators_without_loops_are_listed(tilewright: Command) -> None:
    ran = tilewright("map", "squeezenet", "--arch", "eyeriss", "--evaluations", 500, "--json")
    assert ran.code == 0
    assert sum(layer["count"] for layer in ran.data["layers"]) == 26
    assert len(ran.data["layers"]) == 18
    assert {"Relu", "MaxPool", "Concat", "Softmax"} <= {each["operator"] for each in ran.data["unmapped"]}
    assert all(each["reason"] for each in ran.data["unmapped"])
    table = tilewright("map", "squeezenet", "--arch", "eyeriss", "--evaluations", 500)
    assert "% of work" in table.out and "MaxPool" in table.out and "total" in table.out


@pytest.mark.parametrize("objective", ["edp", "energy", "cycles"])
def test_exhaustive_proves_the_objective(tilewright: Command, objective: str) -> None:
    words = ("map", "nk,km->nm; n=2 k=3 m=2", "--arch", "union_edge", "--objective", objective, "--json")
    exact = tilewright(*words, "--mapper", "exhaustive").data["layers"][0]
    drawn = tilewright(*words, "--evaluations", 5000).data["layers"][0]
    key = {"edp": "edp", "energy": "energy_pj", "cycles": "cycles"}[objective]
    assert exact["search"]["stop"] == "finished" and exact["search"]["gap"] == 0
    assert exact["search"]["lower_bound"] == pytest.approx(exact["best"][key], rel=1e-12)
    assert exact["best"][key] <= drawn["best"][key]


MISTAKES = [
    (("nope", "--arch", "eyeriss"), "no workload is called 'nope'"),
    (("resnet5", "--arch", "eyeriss"), "did you mean 'resnet50'"),
    ((GEMM, "--arch", "eyerissx"), "did you mean 'eyeriss'"),
    ((GEMM, "--arch", "absent.yaml"), "there is no file absent.yaml"),
    (("nk,km->nm; n=8 k=12", "--arch", "eyeriss"), "dimension m has no size"),
    (("nk,km->nm; n=8 k=12 m=0", "--arch", "eyeriss"), "expected 1 to"),
    ((GEMM, "--arch", "eyeriss", "--mapper", "randon"), "did you mean 'random'"),
    ((GEMM, "--arch", "eyeriss", "--model", "timelop"), "did you mean 'timeloop'"),
    ((GEMM, "--arch", "eyeriss", "--constraints", "row_stationry"), "did you mean 'row_stationary'"),
    ((GEMM, "--arch", "eyeriss", "--mapper", "random", "--mapper-option", "bach=3"), "did you mean 'batch'"),
    ((GEMM, "--arch", "eyeriss", "--mapper-option", "batch"), "KEY=VALUE"),
    ((GEMM, "--arch", "eyeriss", "--objective", "edpp"), "edpp"),
    ((GEMM, "--arch", "eyeriss", "--batch", "2"), "batch"),
    (("quickflow_convs/XXX", "--arch", "eyeriss"), "has no layer 'XXX'"),
    ((GEMM,), "--arch"),
    (
        ("quickflow_convs/I", "--arch", "eyeriss", "--mapper", "exhaustive"),
        " mappings; the limit of the mapper is 10000000",
    ),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_mistake_is_told_in_one_message(tilewright: Command, words: tuple[str, ...], message: str) -> None:
    ran = tilewright("map", *words)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_ragged_yaml_is_told_with_its_line(tilewright: Command, tmp_path: Path) -> None:
    path = tmp_path / "arch.yaml"
    path.write_text("name: a\nclusters:\n  - name: D\n   memories: []\n")
    ran = tilewright("map", GEMM, "--arch", path)
    assert ran.code == 2 and f"{path}:4:" in ran.err
    path.write_text("name: a\nclusters:\n  - {name: D, memorys: []}\ncompute: {energy_per_operation_pj: 1}\n")
    ran = tilewright("map", GEMM, "--arch", path)
    assert ran.code == 2 and f"{path}:3:" in ran.err and "did you mean 'memories'" in ran.err


def test_no_valid_mapping_says_what_to_try(tilewright: Command, tmp_path: Path) -> None:
    path = tmp_path / "arch.yaml"
    path.write_text(
        """
name: cramped
clusters:
  - {name: D, memories: [{name: D, read_energy_pj: 1, write_energy_pj: 1}]}
  - {name: B, memories: [{name: B, capacity_words: 2, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 1}
"""
    )
    constraints = tmp_path / "constraints.yaml"
    constraints.write_text("name: keep_all\nvariants: [{keep: [{memory: B, keep: [input, weight, output]}]}]\n")
    limits = ("--arch", path, "--constraints", constraints, "--evaluations", 500, "--json")
    usual = tilewright("map", GEMM, *limits)
    assert usual.code == 1 and "no valid mapping found" in usual.err and "try --mapper random" in usual.err
    constructive = tilewright("map", GEMM, *limits, "--mapper", "quickflow")
    assert constructive.code == 1 and "no start mapping fits" in constructive.err
    ran = tilewright("map", GEMM, *limits, "--mapper", "random")
    assert ran.code == 1
    assert "no valid mapping found" in ran.err and "--constraints" in ran.err
    assert "of 200 sampled, 200 because of B [capacity], such as: the tiles need " in ran.err
    (layer,) = ran.data["layers"]
    why = layer["search"]["rejections"]
    assert why["sampled"] == 200 and why["reasons"][0]["code"] == "capacity"
    compared = tilewright("compare", GEMM, *limits[:4], "--mappers", "random", "--models", "timeloop", *limits[4:])
    (row,) = compared.data["rows"]
    assert row["search"]["rejections"] == why and "200 because of B" in row["reasons"][0]["message"]


def test_an_empty_space_is_told(tilewright: Command, tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.yaml"
    constraints.write_text("name: c\nvariants: [{spatial: [{cluster: GlobalBuffer, factors: {n: 5}}]}]\n")
    ran = tilewright("map", GEMM, "--arch", "eyeriss", "--constraints", constraints)
    assert ran.code == 1 and "constraints" in ran.err and "Traceback" not in ran.err


def test_interrupting_keeps_what_is_done(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = ["map", "resnet50", "--arch", "eyeriss", "--mapper", "random", "--seconds", "60", "--no-cache", "--json"]
    code, out, err = interrupted(1, *words, "-o", str(folder))
    assert code == 130, err
    assert "interrupted" in err and "Traceback" not in err
    data = json.loads(out)
    assert data["layers"][-1]["search"]["stop"] == "cancelled"
    assert data["layers"][-1]["best"]["valid"]
    assert (folder / data["layers"][-1]["best"]["mapping_file"]).exists()
    assert json.loads((folder / "summary.json").read_text()) == data


def test_a_model_that_takes_no_mapping_of_an_architecture_is_refused_at_once(tilewright: Command) -> None:
    """Eyeriss has no place for weights in its global buffer; MAESTRO wants every tensor there."""
    ran = tilewright("map", "resnet50/n0", "--arch", "eyeriss", "--model", "maestro", "--json")
    (layer,) = ran.data["layers"]
    assert ran.code == 2 and layer["search"]["evaluated"] == 0
    assert "cost model maestro does not support this: cluster GlobalBuffer: no memory there may hold" in layer["error"]
    assert "[bypass]" in layer["error"] and "another architecture" in ran.err


def test_other_letters_of_constraints_are_told(tilewright: Command, tmp_path: Path) -> None:
    """A GEMM's M is the weights' own dimension in constraints; transformers call it N."""
    (tmp_path / "own.yaml").write_text(
        "name: own\nvariants: [{structure: gemm, temporal: [{memory: Accumulator, only: [N]}]}]\n"
    )
    words = ("map", "bert_base/encoder.mlp.up", "--arch", "tpu_v1", "--mapper", "random", "--evaluations", 20)
    ran = tilewright(*words, "--constraints", tmp_path / "own.yaml")
    assert "letters in constraints 'own' for encoder.mlp.up: M is N, N is M" in ran.err
    assert "letters" not in tilewright(*words).err


def test_the_closing_hint_selects_one_layer_of_several_sources(
    tilewright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer is picked already, or is a part of the only file beside folders; otherwise its source is unknown."""
    (tmp_path / "folder").mkdir()
    assert _of_one(["map", "net/a", "net/b", "--fuse"], ["net/a", "net/b"], "a") == ["map", "net/a", "--fuse"]
    work, folder = str(tmp_path / "work.yaml"), str(tmp_path / "folder")
    assert _of_one(["map", work, folder], [work, folder], "Y") == ["map", f"{work}/Y", folder]
    assert _of_one(["map", "net"], ["net"], "a") == ["map", "net/a"]
    assert _of_one(["map", "net", "other"], ["net", "other"], "a") is None
    words = ["map", "quickflow_convs/I", "quickflow_convs/II", "--arch", "eyeriss", "--evaluations", "30"]
    monkeypatch.setattr("sys.argv", ["tilewright", *words])
    said = tilewright(*words).err.splitlines()[-1]
    assert said == "a layer with its mapping: tilewright map quickflow_convs/I --arch eyeriss --evaluations 30"


def test_a_warning_is_said_once(tilewright: Command) -> None:
    ran = tilewright("map", "ijk,jr,kr->ir; i=4 j=4 k=4 r=4", "--arch", "eyeriss", "--evaluations", 30)
    assert ran.code == 0 and ran.err.count("3 operands are multiplied") == 1
