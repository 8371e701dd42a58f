"""`tilewright verify`: wrong mappings of each kind are named, right ones are compared with the models."""

from pathlib import Path

import pytest

from support.command import Command
from support.recorded.exercises import runs

PROBLEM = """
name: line
dimensions: {P: 4, R: 3}
tensors:
- {name: I, role: input, projection: [P + R]}
- {name: W, role: weight, projection: [R]}
- {name: O, role: output, projection: [P]}
"""
ARCH = """
name: pair
clusters:
- {name: D, memories: [{name: D, technology: dram, read_energy_pj: 8, write_energy_pj: 8}], fanout: {size: 2}}
- {name: B, memories: [{name: B, capacity_words: 12, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 0.5}
"""
MAPPING = """
entries:
- {target: D, keep: [I, W, O], temporal_tile_sizes: {P: 4, R: 3}}
- {target: D, spatial_tile_sizes: {P: 2}}
- {target: B, keep: [I, W, O]}
- {target: B, temporal_tile_sizes: {P: 1, R: 1}, temporal_order: [P, R]}
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    paths = {}
    for name, text in (("problem", PROBLEM), ("arch", ARCH), ("mapping", MAPPING)):
        paths[name] = tmp_path / f"{name}.yaml"
        paths[name].write_text(text)
    return paths


def words(files: dict[str, Path]) -> list[object]:
    return ["verify", "--mapping", files["mapping"], "--problem", files["problem"], "--arch", files["arch"]]


def test_a_right_mapping_is_compared_with_the_models(tilewright: Command, files: dict[str, Path]) -> None:
    """Two elements need inputs 0-3 and 2-5 at once: 6 reads where `timeloop`, which knows no halo, counts 8."""
    ran = tilewright(*words(files), "--json")
    assert ran.code == 0
    assert [ran.data[key] for key in ("right", "legal", "complete", "result", "reasons")] == [True] * 4 + [[]]
    assert ran.data["executed"]["execution"]["operations"] == 12
    timeloop = next(each for each in ran.data["models"] if each["model"] == "timeloop")
    assert timeloop["compared"] == 18
    (found,) = timeloop["differences"]
    assert (found["level"], found["tensor"], found["action"]) == ("D", "I", "reads")
    assert (found["executed"], found["counted"]) == (6, 8)
    assert "halo" in [cause["code"] for cause in found["causes"]]

    table = tilewright(*words(files))
    assert table.code == 0
    assert "complete  yes" in table.out and "12 counts" not in table.out
    assert "timeloop: 1 of 18 counts differ" in table.out and "neighbours' tiles overlap along P (halo)" in table.out


def test_models_that_agree_say_so(tilewright: Command, files: dict[str, Path]) -> None:
    files["problem"].write_text(PROBLEM.replace("[P + R]", "[P, R]"))
    assert "timeloop: all 18 counts equal the execution" in tilewright(*words(files)).out


def test_other_energies_are_told_where_no_count_differs(tilewright: Command, files: dict[str, Path]) -> None:
    """Two instances with 5 words and 1 word: blocks of 4 are 3 accesses, and Timeloop counts 2."""
    files["problem"].write_text(
        "name: p\ndimensions: {P: 6}\ntensors: [{name: I, role: input, projection: [P]}, {name: O, role: output, projection: [P]}]"
    )
    files["mapping"].write_text("entries:\n- {target: D, keep: [I, O], temporal_tile_sizes: {P: 6}, spatial_tile_sizes: {P: 5}}\n- {target: B, keep: [I, O]}\n- {target: B, temporal_tile_sizes: {P: 1}}")  # fmt: skip
    arch = files["arch"].read_text(encoding="utf-8")
    files["arch"].write_text(arch.replace("capacity_words: 12", "capacity_words: 20, block_words: 4"))
    found = next(each for each in tilewright(*words(files), "--json").data["models"] if each["model"] == "timeloop")
    assert found["differences"] == [] and [each["figure"] for each in found["costs"]] == ["energy_pj"]
    assert [cause["code"] for cause in found["costs"][0]["causes"]] == ["blocks"]
    told = tilewright(*words(files)).out
    assert "counts equal the execution" in told and "other energy: " in told and "[blocks]" in told


def test_short_tiles_are_right_and_timeloop_counts_them(tilewright: Command, files: dict[str, Path]) -> None:
    files["problem"].write_text(PROBLEM.replace("P: 4", "P: 3"))
    files["mapping"].write_text(MAPPING.replace("P: 4", "P: 3"))
    ran = tilewright(*words(files))
    assert ran.code == 0 and "right     yes: 3 words of the result are correct" in ran.out
    assert "timeloop: 1 of 18 counts differ" in ran.out and "neighbours' tiles overlap along P (halo)" in ran.out


WRONG = {
    "uncovered iterations": (
        ("temporal_tile_sizes: {P: 1, R: 1}", "temporal_tile_sizes: {P: 1}"),
        {
            "coverage": "the innermost tile has 3 iterations; expected 1",
            "uncovered": "8 of 12 iterations are never executed, P=0 R=1 for one",
            "result": "4 of 4 words of the result are wrong",
        },
    ),
    "part of the problem": (
        ("temporal_tile_sizes: {P: 4, R: 3}", "temporal_tile_sizes: {P: 4, R: 2}"),
        {"coverage": "the tiles cover 2 iterations, the problem has 3", "uncovered": "4 of 12 iterations"},
    ),
    "more than the problem": (
        ("temporal_tile_sizes: {P: 4, R: 3}", "temporal_tile_sizes: {P: 4, R: 5}"),
        {
            "coverage": "the tiles cover 5 iterations, the problem has 3",
            "outside": "8 operations are on iterations that the problem does not have",
        },
    ),
    "overlapping tiles": (
        ("- {target: B, keep: [I, W, O]}", "- {target: B, keep: [I, W, O], temporal_tile_sizes: {P: 3}}"),
        {
            "nesting": "temporal tile of 3 exceeds the enclosing tile of 2",
            "overlap": "3 of 12 iterations are executed more than once, P=2 R=0 2 times",
            "outside": "3 operations",
            "result": "1 of 4 words of the result are wrong, O[2] is",
        },
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_mapping_is_named_with_numbers(tilewright: Command, files: dict[str, Path], kind: str) -> None:
    (old, new), expected = WRONG[kind]
    assert old in MAPPING
    files["mapping"].write_text(MAPPING.replace(old, new))
    ran = tilewright(*words(files), "--json")
    assert ran.code == 1
    assert (ran.data["right"], ran.data["legal"], ran.data["complete"]) == (False, False, False)
    assert ran.data["models"] == []
    reasons = {reason["code"]: reason["message"] for reason in ran.data["reasons"]}
    for code, message in expected.items():
        assert message in reasons[code]
    table = tilewright(*words(files))
    assert table.code == 1 and "legal     no" in table.out and "complete  no" in table.out
    for message in expected.values():
        assert message in " ".join(table.out.split())


@pytest.mark.parametrize(
    ("which", "old", "new", "code", "message"),
    [
        ("arch", "capacity_words: 12", "capacity_words: 8", "capacity", "the tiles need 9 words, 8 fit"),
        ("mapping", "{P: 2}", "{P: 1}", "fanout", "uses 4 sub-clusters, but the cluster has 2"),
    ],
    ids=["overflow", "too much fanout"],
)
def test_what_computes_rightly_may_still_be_impossible(
    tilewright: Command, files: dict[str, Path], which: str, old: str, new: str, code: str, message: str
) -> None:
    text = files[which].read_text()
    assert old in text
    files[which].write_text(text.replace(old, new))
    ran = tilewright(*words(files), "--json")
    assert ran.code == 1
    assert [ran.data[key] for key in ("right", "legal", "complete", "result")] == [False, False, True, True]
    assert [(each["code"], each["message"]) for each in ran.data["reasons"]] == [(code, message)]


def test_names_that_nobody_knows_leave_nothing_to_execute(tilewright: Command, files: dict[str, Path]) -> None:
    files["mapping"].write_text(MAPPING.replace("target: B", "target: C"))
    ran = tilewright(*words(files))
    assert ran.code == 1 and "pair has no cluster 'C'" in ran.out and "the mapping cannot be executed" in ran.out


def test_bad_input_ends_with_2(tilewright: Command, files: dict[str, Path]) -> None:
    assert tilewright("verify").code == 2
    ran = tilewright("verify", "--mapping", files["mapping"])
    assert ran.code == 2 and "--problem" in ran.err
    ran = tilewright(*words(files), "--option", "max_operations=11")
    assert ran.code == 2 and "12 operations" in ran.err and "expected at most 11" in ran.err and ran.out == ""
    files["problem"].write_text("just words")
    ran = tilewright(*words(files))
    assert ran.code == 2 and str(files["problem"]) in ran.err and "Traceback" not in ran.err


def test_a_file_of_map_needs_nothing_else(tilewright: Command, tmp_path: Path) -> None:
    tilewright("map", "nk,km->nm; n=4 k=6 m=6", "--arch", "eyeriss", "--evaluations", 300, "-o", tmp_path)
    (path,) = tmp_path.glob("0*.yaml")
    ran = tilewright("verify", "--mapping", path)
    assert ran.code == 0 and "24 words of the result are correct" in ran.out


def test_only_a_model_that_executes_can_judge(tilewright: Command, files: dict[str, Path]) -> None:
    named, unnamed = (tilewright(*words(files), *more, "--json") for more in (("--by", "oracle"), ()))
    assert named.code == 0 and named.data == unnamed.data
    ran = tilewright(*words(files), "--by", "timeloop")
    assert ran.code == 2 and "cost model 'timeloop' does not execute mappings" in ran.err and "oracle" in ran.err
    assert "did you mean 'oracle'" in tilewright(*words(files), "--by", "oracl").err


def test_what_timeloop_itself_reported_is_laid_beside_ours(tilewright: Command, tmp_path: Path) -> None:
    old, new = (
        next(run for run in runs() if run.id.startswith(start)) for start in ("82747bc_timeloop_01", "2ffec69_timeloop")
    )
    recorded, files = old.write(tmp_path)
    ran = tilewright("diff-stats", recorded, *files)
    assert ran.code == 0 and "62 of 67 values are equal" in ran.out
    assert (
        "first_fills: in Timeloop before version 3 (May 2023) the first writes of outputs are counted as fills; compare with"
        in ran.out
    )
    data = tilewright("diff-stats", recorded, *files, "--json").data
    assert data["compared"] == 67 and data["unexplained"] == 0
    assert [cause["code"] for cause in data["causes"]] == ["one_energy", "first_fills"]
    recorded.write_text(
        old.report.replace("Scalar updates (per-instance)            : 0", "Scalar updates (per-instance) : 1")
    )
    ran = tilewright("diff-stats", recorded, *files)
    assert ran.code == 1 and "values differ for an unknown reason" in ran.out
    recorded.write_text(new.report)
    ran = tilewright("diff-stats", recorded, *files)
    assert ran.code in (1, 2)
    ran = tilewright("diff-stats", recorded, *files, "--from", "loopnest")
    assert ran.code == 2 and "Traceback" not in ran.err


def test_a_certificate_is_checked(tilewright: Command, tmp_path: Path) -> None:
    work = "O[p] += I[p+r] * W[r]; p=4 r=3"
    assert tilewright("map", work, "--arch", "union_edge", "--mapper", "exhaustive", "-o", tmp_path).code == 0
    (file,) = tmp_path.glob("*.certificate.yaml")

    ran = tilewright("verify", "--certificate", file, "--samples", 100)
    assert ran.code == 0 and "11 of 11 checks passed, 0 failed" in ran.out and ran.err == ""
    data = tilewright("verify", "--certificate", file, "--samples", 100, "--json").data
    assert data["right"] and data["gap"] == 0 and data["bound"] == data["value"] and len(data["checks"]) == 11

    file.write_text(
        file.read_text().replace("factors: perfect", "factors: ragged").replace("tilewright: 0", "tilewright: 9")
    )
    other = tilewright("verify", "--certificate", file, "--samples", 100)
    assert other.code == 1 and "not confirmed" in other.out
    assert "warning: it was made with tilewright 9" in other.err


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("capacity_words: 12,", "capacity_words: 13,", "architecture"),
        ("dimensions: {P: 4,", "dimensions: {P: 8,", "problem"),
    ],
)
def test_a_certificate_whose_architecture_has_changed_says_what_to_do(
    old: str, new: str, part: str, tilewright: Command, files: dict[str, Path], tmp_path: Path
) -> None:
    tilewright("map", files["problem"], "--arch", files["arch"], "--mapper", "optimal", "-o", tmp_path / "out")
    (certificate,) = (tmp_path / "out").glob("*.certificate.yaml")
    text = certificate.read_text()
    assert old in text
    certificate.write_text(text.replace(old, new))
    ran = tilewright("verify", "--certificate", certificate, "--samples", 20)
    assert ran.code == 1 and f"{part} changed since" in ran.out and "please report" not in ran.out
    assert "map it again: `tilewright map PROBLEM --arch ARCH -o FOLDER`" in ran.out


def test_what_is_verified_is_one_of_two(tilewright: Command, files: dict[str, Path]) -> None:
    for given in ([], ["--mapping", files["mapping"], "--certificate", files["mapping"]]):
        ran = tilewright("verify", *given)
        assert ran.code == 2 and "either FILE, with a mapping, or --certificate FILE" in ran.err
    ran = tilewright(*words(files), "--samples", 3)
    assert ran.code == 2 and "--samples is for a certificate" in ran.err
    ran = tilewright("verify", "--certificate", files["mapping"], "--by", "oracle")
    assert ran.code == 2 and "--by is for a mapping" in ran.err
    ran = tilewright("verify", "--certificate", files["mapping"])
    assert ran.code == 2 and "mapping.yaml" in ran.err
