"""`tilewright evaluate`: reports, invalid mappings, and inputs that cannot be read."""

from pathlib import Path

import pytest

from support.command import Command
from tilewright.plugin.capabilities import Capabilities
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

PROBLEM = """
name: gemm
dimensions: {M: 4, N: 6, K: 8}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: B, role: weight, projection: [K, N]}
- {name: Z, role: output, projection: [M, N]}
"""
ARCH = """
name: two
clusters:
- {name: D, memories: [{name: D, technology: dram, read_energy_pj: 10, write_energy_pj: 10}]}
- {name: B, memories: [{name: B, capacity_words: 40, read_energy_pj: 1, write_energy_pj: 1}], fanout: {size: 4}}
compute: {energy_per_operation_pj: 0.5}
"""
MAPPING = """
entries:
- {target: D, keep: [A, B, Z], temporal_tile_sizes: {M: 4, N: 6, K: 8}}
- {target: B, keep: [A, B, Z], temporal_tile_sizes: {N: 2, K: 4}, temporal_order: [N, K, M]}
- {target: B, temporal_tile_sizes: {N: 1, K: 1}, spatial_tile_sizes: {M: 1}, temporal_order: [K, N, M]}
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    paths = {}
    for name, text in (("problem", PROBLEM), ("arch", ARCH), ("mapping", MAPPING)):
        paths[name] = tmp_path / f"{name}.yaml"
        paths[name].write_text(text)
    return paths


def words(files: dict[str, Path]) -> list[object]:
    return ["evaluate", "--mapping", files["mapping"], "--problem", files["problem"], "--arch", files["arch"]]


def test_a_small_product_has_the_figures_worked_out_by_hand(tilewright: Command, files: dict[str, Path]) -> None:
    """4x6x8 operations on 4 lanes: 48 cycles.

    A (4x4 tiles) is fetched for each of 3 x 2 steps: 96 words; B once: 48; Z stays while K steps:
    24 words, never read back. B holds 16 + 8 + 8 = 32 words.
    """
    result = tilewright(*words(files), "--json").data["results"][0]
    assert result["valid"] and result["macs"] == 192 and result["cycles"] == 48 and result["utilization"] == 1
    levels = {level["name"]: level["tensors"] for level in result["levels"]}
    assert levels["D"]["A"]["reads"] == 96 and levels["D"]["B"]["reads"] == 48
    assert (levels["D"]["Z"]["updates"], levels["D"]["Z"]["reads"]) == (24, 0)
    assert levels["B"]["A"] | {"energy_pj": 0} == {
        "reads": 192, "fills": 96, "updates": 0, "instances": 1, "tile_words": 16, "energy_pj": 0, "partition_words": 32, "sparse": None,
    }  # fmt: skip
    assert (levels["B"]["B"]["reads"], levels["B"]["B"]["fills"]) == (48, 48)  # one read serves four lanes
    assert (levels["B"]["Z"]["updates"], levels["B"]["Z"]["reads"]) == (192, 168)
    assert result["edp"] == result["energy_pj"] * result["cycles"]


def test_an_invalid_mapping_is_a_result_with_reasons(tilewright: Command, files: dict[str, Path]) -> None:
    files["arch"].write_text(ARCH.replace("capacity_words: 40", "capacity_words: 31"))
    ran = tilewright(*words(files), "--json")
    assert ran.code == 0
    result = ran.data["results"][0]
    assert result["valid"] is False and result["cycles"] is None
    assert [(reason["code"], reason["where"]) for reason in result["reasons"]] == [("capacity", "B")]
    assert "32" in result["reasons"][0]["message"] and "31" in result["reasons"][0]["message"]


def test_a_tensor_that_bypasses_the_outermost_memory_has_no_traffic_outside(
    tilewright: Command, files: dict[str, Path]
) -> None:
    """B is in the buffer from the start: no DRAM reads, no fills, 48 words less to read and to write."""
    whole = tilewright(*words(files), "--json").data["results"][0]
    files["mapping"].write_text(
        MAPPING.replace("keep: [A, B, Z], temporal_tile_sizes: {M: 4", "keep: [A, Z], temporal_tile_sizes: {M: 4")
    )
    result = tilewright(*words(files), "--json").data["results"][0]
    levels = {level["name"]: level["tensors"] for level in result["levels"]}
    assert "B" not in levels["D"] and (levels["B"]["B"]["reads"], levels["B"]["B"]["fills"]) == (48, 0)
    assert result["energy_pj"] == whole["energy_pj"] - 48 * 10 - 48 * 1
    assert result["warnings"] == ["B bypasses D: traffic outside B is not counted for it"]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("M: 4, N: 6, K: 8}}", "M: 8, N: 6, K: 8}}", "coverage"),
        ("temporal_tile_sizes: {N: 1, K: 1}", "temporal_tile_sizes: {N: 1, K: 2}", "coverage"),
        ("temporal_tile_sizes: {N: 2, K: 4}", "temporal_tile_sizes: {N: 12, K: 4}", "nesting"),
        ("spatial_tile_sizes: {M: 1}", "spatial_tile_sizes: {M: 1, N: 1}", "fanout"),
        ("keep: [A, B, Z]", "keep: [A, Z]", "backing"),
        ("target: B, keep", "target: E, keep", "target"),
    ],
)
def test_every_broken_rule_has_its_code(
    tilewright: Command, files: dict[str, Path], old: str, new: str, code: str
) -> None:
    text = (
        MAPPING.replace("temporal_tile_sizes: {N: 1, K: 1}", "temporal_tile_sizes: {N: 2, K: 1}")
        if code == "fanout"
        else MAPPING
    )
    assert old in text
    files["mapping"].write_text(text.replace(old, new))
    ran = tilewright(*words(files), "--json")
    assert ran.code == 0
    assert code in [reason["code"] for reason in ran.data["results"][0]["reasons"]]


@pytest.mark.parametrize(
    ("which", "text", "message"),
    [
        ("problem", PROBLEM.replace("K: 8", "K: -8"), "greater than or equal to 1"),
        ("problem", PROBLEM.replace("projection: [K, N]", "projection: [K, J]"), "dimension J, which has no size"),
        ("problem", "just words", "expected keys and values"),
        ("problem", "", "empty"),
        ("problem", PROBLEM + "name: again\n", "key 'name' is repeated"),
        ("arch", ARCH.replace("read_energy_pj: 10, ", ""), "'read_energy_pj' is missing"),
        ("arch", ARCH.replace("capacity_words", "capacity_word"), "did you mean 'capacity_words'"),
        ("arch", "kind: problem\nname: x", "expected a file of kind 'architecture'"),
        ("mapping", MAPPING.replace("[K, N, M]", "[K, N, N]"), "temporal_order must list every dimension once"),
        ("mapping", MAPPING.replace(", temporal_order: [N, K, M]", ""), "temporal_order must list them"),
    ],
)
def test_unreadable_input_is_told_with_its_place(
    tilewright: Command, files: dict[str, Path], which: str, text: str, message: str
) -> None:
    files[which].write_text(text)
    ran = tilewright(*words(files), "--json")
    assert ran.code == 2 and message in ran.data["error"]["message"] and ran.data["error"]["exit_code"] == 2
    assert message in ran.err and str(files[which]) in ran.err and "Traceback" not in ran.err


def test_a_call_without_a_mapping_says_what_to_type(tilewright: Command, files: dict[str, Path]) -> None:
    assert "--mapping FILE" in tilewright("evaluate").err
    ran = tilewright("evaluate", "--mapping", files["mapping"])
    assert ran.code == 2 and "--problem" in ran.err
    ran = tilewright("evaluate", "--from", "timelop", files["mapping"])
    assert ran.code == 2 and "did you mean 'timeloop'" in ran.err


def test_problem_and_architecture_may_be_named(tilewright: Command, files: dict[str, Path]) -> None:
    ran = tilewright(
        "evaluate", "--mapping", files["mapping"], "--arch", files["arch"],
        "--problem", "Z[M,N] += A[M,K] * B[K,N]; M=4 N=6 K=8",
    )  # fmt: skip
    assert ran.code == 0 and "cycles  48, limited by compute" in ran.out


def test_several_models_stand_side_by_side_with_an_account(tilewright: Command, files: dict[str, Path]) -> None:
    both = [*words(files), "--model", "timeloop", "--model", "oracle"]
    data = tilewright(*both, "--json").data
    assert [result["model"] for result in data["results"]] == ["timeloop", "oracle"]
    assert data["differences"] == []  # nothing slides and nothing is bypassed: Timeloop is exact
    assert "timeloop, oracle agree on every count" in tilewright(*both).out

    files["problem"].write_text(PROBLEM.replace("projection: [M, K]", "projection: [M + K]"))
    data = tilewright(*both, "--json").data
    assert data["differences"]
    for row in data["differences"]:
        assert set(row["counts"]) == {"timeloop", "oracle"} and len(set(row["counts"].values())) == 2
    assert "where they differ" in tilewright(*both).out


def test_a_refusal_is_a_row_with_its_reason(tilewright: Command, files: dict[str, Path]) -> None:
    files["arch"].write_text(ARCH.replace("fanout: {size: 4}", "fanout: {size: 4, axis: Z}"))
    ran = tilewright(*words(files), "--model", "timeloop", "--model", "oracle")
    assert ran.code == 0 and "[axis]" in ran.out and "oracle" in ran.out


def test_a_model_that_is_not_installed_is_a_row_beside_others(
    tilewright: Command, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    absent = ["--model", "timeloop_binary"]
    ran = tilewright(*words(files), "--model", "timeloop", *absent, "--json")
    evaluated, failed = ran.data["results"]
    assert ran.code == 0 and evaluated["valid"] and not failed["valid"]
    assert [reason["code"] for reason in failed["reasons"]] == ["plugin_failed"]
    assert tilewright(*words(files), *absent).code == 3


def test_an_option_may_be_for_one_model(tilewright: Command, files: dict[str, Path]) -> None:
    both = [*words(files), "--model", "timeloop", "--model", "oracle"]
    small = tilewright(*both, "--model-option", "oracle.max_operations=10", "--json").data
    assert [result["valid"] for result in small["results"]] == [True, False]
    ran = tilewright(*both, "--model-option", "maestro.faithful=true")
    assert ran.code == 2 and "not one of timeloop, oracle" in ran.err and "--model maestro" in ran.err


def test_a_model_must_declare_that_it_takes_tensors_which_bypass_the_outermost_memory() -> None:
    parts = Problem.from_yaml(PROBLEM), Architecture.from_yaml(ARCH)
    inside = MAPPING.replace("keep: [A, B, Z], temporal_tile_sizes: {M: 4", "keep: [A, Z], temporal_tile_sizes: {M: 4")
    assert Capabilities().judge_mapping(*parts, Mapping.from_yaml(MAPPING))
    verdict = Capabilities().judge_mapping(*parts, Mapping.from_yaml(inside))
    assert [str(reason) for reason in verdict.reasons] == [
        "entry 0 on D: B bypasses it; every tensor must be kept there [bypass]"
    ]
    assert Capabilities(inner_backing_store=True).judge_mapping(*parts, Mapping.from_yaml(inside))
