"""Documents that commands print: each kind has a schema that says what every key means, and refuses other data."""

import json
from pathlib import Path
from typing import Any

import pytest

from support import EXAMPLE_FILES
from support.command import Command, command
from support.profiles import first
from support.schemas import faults, validator
from tilewright.application.documents import OUTPUT_KINDS, output_model
from tilewright.application.documents.searches import Best, EnergyRow
from tilewright.reports.costs import COSTS

LAYER = ("nk,km->nm; n=4 k=4 m=4", "--arch", "eyeriss", "--mapper", "random", "--evaluations", 20)
MADE: dict[str, tuple[object, ...]] = {
    "evaluate_output": (
        *("evaluate", "--mapping", EXAMPLE_FILES / "gemm.mapping.yaml", "--problem", EXAMPLE_FILES / "gemm.problem.yaml"),
        *("--arch", EXAMPLE_FILES / "small.arch.yaml", "--models", "timeloop,oracle", "--explain"),
    ),
    "space_output": ("space", EXAMPLE_FILES / "thousand_machines.yaml", "--points", 3),
    "estimate_output": ("estimate", "sram", "--technology", 45, "--size", "size_bits=524288", "--size", "width_bits=64"),
    "layers_output": ("library", "layers", EXAMPLE_FILES / "three_layers.workload.yaml"),
    "error_output": ("map", "nothing", "--arch", "eyeriss"),
    "map_output": ("map", *LAYER),
    "front_output": ("map", *LAYER, "--pareto", 2),
    "generate_output": ("map", "gpt2", *LAYER[1:], "--prefill", 4, "--decode", 1),
    "budget_output": ("map", *LAYER, "--pareto", 2, "--budget-cycles", 10**9),
    "explore_output": (
        *("explore", LAYER[0], "--space", EXAMPLE_FILES / "thousand_machines.yaml", "--points", 2),
        *("--mapper", "random", "--evaluations", 20),
    ),
    "correlate_output": ("correlate", *LAYER[:3], "--models", "timeloop,oracle", "--samples", 10),
    "compare_output": ("compare", *LAYER[:3], "--mappers", "random", "--models", "timeloop", "--evaluations", 20),
    "fit_output": ("plugins", "fit", "eyeriss", "--models", "timeloop"),
}  # fmt: skip
"""Kind -> a cheap command that prints it. Tests of the other commands check theirs, since all JSON of a test is checked."""


@pytest.mark.parametrize("kind", first(6, *MADE))
def test_a_command_prints_its_kind(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    run: Command = command(monkeypatch, capsys)
    ran = run(*MADE[kind], "--json")
    assert ran.data["kind"] == kind, ran.err
    assert faults(ran.data | {"kind": "map_output" if kind != "map_output" else "mapping"})


def test_every_kind_has_a_model() -> None:
    assert [output_model(kind).model_fields["kind"].default for kind in OUTPUT_KINDS] == [*OUTPUT_KINDS]


def without(data: Any, key: str) -> Any:
    return {name: value for name, value in data.items() if name != key}


def test_documents_that_lack_a_key_or_have_another_type_are_refused() -> None:
    error: dict[str, Any] = {"code": "x", "message": "m", "hint": None, "reasons": [], "exit_code": 2, "location": None}
    data = {"schema_version": 1, "kind": "error_output", "error": error}
    assert faults(data) == [] and faults(data | {"added": "later"}) == []
    assert all(faults(without(data, key)) for key in ("schema_version", "error"))
    assert all(faults(data | {"error": without(error, key)}) for key in error)
    assert faults(data | {"error": error | {"exit_code": "two"}}) and faults(data | {"schema_version": 2})


def test_a_document_has_exactly_the_figures_of_its_views() -> None:
    costs: dict[str, Any] = dict.fromkeys(COSTS.keys("json"))
    own: dict[str, Any] = {"valid": True, "mapping_file": None, "certificate_file": None}
    assert [*Best(**own, **costs).data()] == [*costs, *own]
    for odd in (without(costs, "edp"), costs | {"speed": 3}):
        with pytest.raises(TypeError, match="Best has other figures: (edp|speed)"):
            Best(**own, **odd)


def test_rows_of_energies_have_no_key_without_a_meaning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = command(monkeypatch, capsys)(*MADE["evaluate_output"], "--json")
    known = EnergyRow.model_json_schema()["properties"]
    assert {key for row in ran.data["results"][0]["energy"] for key in row} <= known.keys()
    assert {"gated_reads", "dense_updates", "metadata_bits"} < known.keys() and "sparse" not in known
    assert all(part["description"] for part in known.values())


def test_the_schema_of_a_mapping_is_part_of_the_documents() -> None:
    schema = validator("map_output").schema
    assert isinstance(schema, dict) and {"Mapping", "FullLoop", "FullTile"} < schema["$defs"].keys()
    assert json.dumps(schema).count('"description"') > 150
