"""Vector layers inside groups: tiles at home, the two forms of softmax, and units that overlap."""

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support import EXAMPLE_FILES
from support.unit_pipeline import MODEL, attention, branch, judged, machine
from tilewright.application.run.evaluation import evaluate_group
from tilewright.application.run.group_vectors import GroupVectors, Stage, joined_vectors, pipelined_cycles
from tilewright.errors import InputError
from tilewright.schema.group import GroupMapping

KINDS = ("add", "multiply", "exponential", "compare", "divide", "convert")
ROOT = {"target": "D", "keep": ["scores.Q", "scores.K", "context.V", "context.Z"]}
ROWS = {"target": "B", "keep": ["scores.Q", "P"], "temporal_tile_sizes": {"T": 2, "S": 8}}
BLOCKS = {"target": "B", "keep": ["P"], "temporal_tile_sizes": {"T": 2, "S": 4}}
RESULTS = ROWS | {"keep": ["scores.Q", "context.Z"]}


def group(*loops: dict[str, Any], **changes: Any) -> GroupMapping:
    """Return attention of 8 rows over 8 words, with 4 columns of queries and 2 of results."""
    data = attention(random.Random(0)) | {"name": "a", "architecture": machine(random.Random(0))}
    scores, context = {"T": 8, "S": 8, "D": 4}, {"T": 8, "S": 8, "E": 2}
    for layer, sizes in zip(data["layers"], (scores, context), strict=True):
        layer["dimensions"] = sizes
    data["architecture"]["units"] = [data["architecture"]["units"][0] | {"lanes": 2, "cycles": {}}]
    for cluster in data["architecture"]["clusters"]:
        cluster["memories"][0] |= dict.fromkeys(
            f"{kind}_bandwidth_words_per_cycle" for kind in ("read", "write", "shared")
        )
    data["architecture"]["clusters"][1]["memories"][0]["capacity_words"] = 400
    data["vectors"] = [{"name": "softmax", "operator": "Softmax", "tensor": "P", "row": ["S"]}]
    branches = [branch("scores", scores), branch("context", context)]
    return GroupMapping.model_validate(data | {"tree": {"entries": [ROOT, *loops], "branches": branches}} | changes)


def joined(made: GroupMapping) -> GroupVectors:
    result = joined_vectors(MODEL, made, evaluate_group(MODEL, made))
    assert result is not None
    return result


def test_tiles_pass_through_stages() -> None:
    """The example of the module."""
    stages = [Stage("array", Fraction(10)), Stage("vector", Fraction(8)), Stage("array", Fraction(10))]
    assert pipelined_cycles(stages, 100) == 10 + 10 + 98 * 20 + 10 + 10
    assert [pipelined_cycles(stages, tiles) for tiles in (1, 2)] == [28, 10 + 10 + 10 + 10]


def test_whole_rows_stay_at_home() -> None:
    """Four tiles of two rows: each row takes 41 operations, two a cycle; DRAM moves none of its words."""
    made = joined(group(ROWS))
    (softmax,) = made.vectors
    assert (softmax.form, softmax.tiles, softmax.operations, softmax.cycles) == ("whole", 4, 8 * 41, 8 * 41 // 2)
    assert [level.name for level in softmax.parts[0].report.levels] == ["B"]
    assert softmax.energy_pj == 8 * 41 + 64 * (3 + 1 + 1) * 2  # three sweeps; exponentials and results are written
    assert made.sequential_cycles == 64 * 4 + 64 * 2 + 164
    # 64 cycles of scores, 41 of the softmax and 32 of the context for each tile
    assert made.overlapped_cycles == 64 + 64 + 2 * (64 + 32) + 41 + 32


def test_cut_rows_are_online() -> None:
    """Eight tiles of half a row: two rescale the partial results of each row, which are scaled at its end."""
    made = joined(group(RESULTS, BLOCKS))
    (softmax,) = made.vectors
    parts = [(part.role, part.layer.operator, part.layer.rows, part.layer.row, part.times) for part in softmax.parts]
    assert softmax.form == "online" and parts == [
        ("block", "SoftmaxBlock", 2, 4, 8),
        ("late", "SoftmaxRescale", 2, 2, 8),
        ("end", "SoftmaxScale", 2, 2, 4),
    ]
    assert softmax.operations == 8 * (2 * 4 * 4 + 2 * 3 + 2 * 2) + 4 * (2 * 2 + 2)
    # 32 cycles of scores, 19 + 2 of the vector unit and 16 of the context; 3 at the end of a row
    assert made.overlapped_cycles == 4 * (32 + 32 + 19 + 2 + 16 + 3)


@pytest.mark.parametrize(
    ("loops", "changes", "reason"),
    [
        ([ROWS, BLOCKS], {}, "its rows are cut into 2 tiles; B does not keep the partial results of context"),
        ([RESULTS, BLOCKS], {"operator": "LayerNormalization"}, "its rows are cut into 2 tiles; only a softmax may be online"),
        ([ROWS], {"operands": [{"name": "Y", "words": 63}], "operator": "Mul"}, "do not divide the words"),
    ],
)  # fmt: skip
def test_what_is_not_counted_has_a_reason(loops: list[dict[str, Any]], changes: dict[str, Any], reason: str) -> None:
    vector = {"name": "softmax", "operator": "Softmax", "tensor": "P", "row": ["S"]} | changes
    if loops == [ROWS, BLOCKS]:
        loops = [ROWS | {"keep": ["scores.Q"]}, BLOCKS]
    made = joined(group(*loops, vectors=[vector]))
    assert reason in str(made.vectors[0].reason) and made.vectors[0].cycles is None and made.vector_cycles == 0
    assert made.alone == "a vector layer is not counted"


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ({"tensor": "Q"}, "Q is no edge that a layer makes and another one reads; expected one of P"),
        ({"row": ["D"]}, "D is no dimension of P in scores"),
        ({"name": "scores"}, "layer names repeat: scores"),
        ({"operator": "Softmx"}, "no operator is called Softmx; did you mean 'Softmax'"),
    ],
)
def test_faults_say_what_to_type(vector: dict[str, Any], message: str) -> None:
    data = group(ROWS).to_data()
    data["vectors"] = [{"name": "softmax", "operator": "Softmax", "tensor": "P", "row": ["S"]} | vector]
    with pytest.raises(InputError, match=message):
        tw.load(data, "group_mapping")


def test_evaluations_print_them_and_files_keep_them(tmp_path: Any) -> None:
    made = group(ROWS)
    assert GroupMapping.from_yaml(made.to_yaml()) == made and "vectors" not in group(ROWS, vectors=[]).to_data()
    report = tw.evaluate(made)
    assert "cycles, overlapped: 393" in str(report) and "whole" in str(report)
    (units,) = report.data()["units"]
    assert units["overlapped_cycles"] == 393 and units["timeline"][0]["unit"] == "MAC"
    (tmp_path / "group.yaml").write_text(made.to_yaml(), encoding="utf-8")
    drawn = tw.plot(tmp_path / "group.yaml", tmp_path / "units.svg").read_text(encoding="utf-8")
    assert "V, softmax of tile 0: " in drawn


@pytest.mark.parametrize(
    ("example", "form", "cycles", "times"),
    [
        ("fusemax", "online", 2 * 768 * 4096**2 * 64 // 65536, (28.72, 26.78)),
        ("flash_attention", "whole", 2 * 32 * 2048**2 * 128 // 65536, (1.748, 1.252)),
    ],
)
def test_examples_have_the_times_of_the_manual(
    example: str, form: str, cycles: int, times: tuple[float, float]
) -> None:
    report = tw.evaluate(EXAMPLE_FILES / f"{example}.yaml")
    ((made,), (layers,)) = report.units, report.reports
    clock = made.architecture.clock_ghz or 0
    assert [one.form for one in made.vectors] == [form] and layers.cycles == cycles
    found = [cycles / clock * 1e-6 for cycles in (made.sequential_cycles, made.overlapped_cycles)]
    assert found == pytest.approx(times, rel=1e-3)


def test_a_search_of_groups_counts_the_form() -> None:
    """With 20 words, layers cost as much around cut rows, but an online softmax costs more than a whole one."""
    data = group(ROWS).to_data()
    data["architecture"]["clusters"][1]["memories"][0]["capacity_words"] = 20
    report = tw.fuse(data, objective="energy")
    assert report.units is not None and [one.form for one in report.units.vectors] == ["whole"]
    assert "no loop cuts the rows of a softmax, without the costs of vector layers" in str(report)
    assert report.proved and report.certificate is None


@given(st.integers(0, 10**9))
def test_overlapped_units_equal_a_simulation_of_events(seed: int) -> None:
    assert judged(seed).partition(":")[0] in ("equal", "alone", "illegal", "no vector layer")


@pytest.mark.exhaustive
def test_overlapped_units_equal_a_simulation_of_events_often() -> None:
    answers = [judged(seed).partition(":")[0] for seed in range(300)]
    assert answers.count("equal") > 200 and set(answers) <= {"equal", "alone", "illegal", "no vector layer"}
