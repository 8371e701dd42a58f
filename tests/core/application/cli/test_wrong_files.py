"""Wrong files, one fault each: the reader refuses them at their line, in plain words, and so does the published schema."""

import copy
import json
from typing import Any

import pytest

import tilewright as tw
from support import EXAMPLE_FILES, ROOT
from support.messages import RAW
from support.schemas import faults
from tilewright.application.api.load.kinds import SCHEMAS
from tilewright.application.exploration.space import ArchitectureSpace
from tilewright.errors import InputError
from tilewright.schema.document import FileModel, read_document
from tilewright.schema.mapped.certificate import Certificate

MISSING = "MISSING"
FILES = {
    "problem": EXAMPLE_FILES / "gemm.problem.yaml",
    "workload": EXAMPLE_FILES / "three_layers.workload.yaml",
    "architecture": EXAMPLE_FILES / "small.arch.yaml",
    "mapping": EXAMPLE_FILES / "gemm.mapping.yaml",
    "group_mapping": EXAMPLE_FILES / "two_products.yaml",
    "constraints": ROOT / "core/tilewright/library/constraints/gemmini.full_array.yaml",
    "space": EXAMPLE_FILES / "thousand_machines.yaml",
}
MODELS: dict[str, type[FileModel]] = {**SCHEMAS, "space": ArchitectureSpace, "certificate": Certificate}
WRONG: tuple[tuple[str, str, Any], ...] = (
    ("problem", "name", MISSING),
    ("problem", "name", ""),
    ("problem", "name", 7),
    ("problem", "colour", "red"),
    ("problem", "schema_version", 2),
    ("problem", "dimensions", MISSING),
    ("problem", "dimensions", {}),
    ("problem", "dimensions", ["M", "N"]),
    ("problem", "dimensions/M", 0),
    ("problem", "dimensions/M", -64),
    ("problem", "dimensions/M", 6.5),
    ("problem", "dimensions/M", "64"),
    ("problem", "dimensions/two words", 4),
    ("problem", "tensors", {"name": "Inputs"}),
    ("problem", "tensors/0/role", "operand"),
    ("problem", "tensors/0/role", MISSING),
    ("problem", "tensors/0/name", "2nd"),
    ("problem", "tensors/0/projection", "N"),
    ("problem", "tensors/0/projection/0", 3),
    ("problem", "tensors/0/projection/0", {"terms": {"N": 0}}),
    ("problem", "tensors/0/projection/0", {"terms": {}}),
    ("problem", "tensors/0/density", {"distribution": "random"}),
    ("problem", "tensors/0/bits", 0),
    ("problem", "tensors/0/bit", 8),
    ("workload", "layers", MISSING),
    ("workload", "layers", {}),
    ("workload", "layers/0/count", 0),
    ("workload", "layers/0/problem", MISSING),
    ("workload", "layers/0/after", "conv_1x1"),
    ("workload", "content", "lists"),
    ("architecture", "clusters", []),
    ("architecture", "clusters", MISSING),
    ("architecture", "clusters/0/name", "off chip"),
    ("architecture", "clusters/0/memories/0/read_energy_pj", -1),
    ("architecture", "clusters/0/memories/0/read_energy_pj", "cheap"),
    ("architecture", "clusters/0/memories/0/technology", "flash"),
    ("architecture", "clusters/1/memories/0/capacity_words", 0),
    ("architecture", "clusters/1/memories/0/capacity_words", 1.5),
    ("architecture", "clusters/1/memories/0/block_words", -2),
    ("architecture", "clusters/1/memories/0/energy", 2),
    ("architecture", "clusters/1/fanout/size", [16, 16]),
    ("architecture", "clusters/1/fanout/size", 0),
    ("architecture", "clusters/1/fanout/axis", "y"),
    ("architecture", "clusters/1/fanout/multicast", "maybe"),
    ("architecture", "clusters/3/memories/0/holds", "weight"),
    ("architecture", "compute", MISSING),
    ("architecture", "compute", 3),
    ("architecture", "clock_ghz", 0),
    ("mapping", "entries", []),
    ("mapping", "entries/0/target", MISSING),
    ("mapping", "entries/0/keep", "Inputs"),
    ("mapping", "entries/0/temporal_tile_sizes/M", 0),
    ("mapping", "entries/0/temporal_tile_sizes/M", "many"),
    ("mapping", "entries/0/order", ["M"]),
    ("group_mapping", "tree", MISSING),
    ("group_mapping", "edges/0/layers", {}),
    ("group_mapping", "edges/0/offsets", {"up": ["0"]}),
    ("group_mapping", "layers", []),
    ("group_mapping", "axes/M", ["up"]),
    ("constraints", "variants/0/structure", "pooling"),
    ("constraints", "variants/0/temporal/0/memory", MISSING),
    ("constraints", "variants/0/spatial/0/factors/K", -16),
    ("constraints", "variants/0/spatial/0/only", "K"),
    ("constraints", "factors", "prime"),
    ("space", "choices", []),
    ("space", "choices/columns", 8),
    ("space", "name", MISSING),
    ("space", "limits", 3),
    ("mapped", "mapping", MISSING),
    ("mapped", "figures/cycles", "few"),
    ("mapped", "provenance/seed", MISSING),
    ("certificate", "gap", "small"),
    ("certificate", "claim/of", "model"),
    ("certificate", "bound", MISSING),
)  # fmt: skip
"""Kind of file, path to a value, and the value that replaces it."""


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A right file of each kind."""
    folder = tmp_path_factory.mktemp("run")
    tw.map("nk,km->nm; n=4 k=4 m=4", "eyeriss", mapper="exhaustive", cache=False, progress=False, folder=folder)
    files = FILES | {"mapped": folder / "001_einsum.yaml", "certificate": folder / "001_einsum.certificate.yaml"}
    return {kind: read_document(file).data for kind, file in files.items()}


def with_fault(data: Any, path: str, value: Any) -> Any:
    data = copy.deepcopy(data)
    *outer, last = [int(step) if step.isdecimal() else step for step in path.split("/")]
    place = data
    for step in outer:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return data


def test_the_right_files_are_right(documents: dict[str, Any]) -> None:
    assert len(WRONG) >= 50 and {kind for kind, *_ in WRONG} == documents.keys()
    for kind, data in documents.items():
        assert faults(data) == []
        MODELS[kind].from_yaml(json.dumps(data))


@pytest.mark.parametrize(("kind", "path", "value"), WRONG)
def test_wrong_files_are_refused_by_reader_and_schema(
    kind: str, path: str, value: Any, documents: dict[str, Any]
) -> None:
    wrong = with_fault(documents[kind], path, value)
    with pytest.raises(InputError) as error:
        MODELS[kind].from_yaml(json.dumps(wrong, indent=1), source="f.json")
    assert str(error.value).startswith("f.json:") and not RAW.search(str(error.value))
    assert faults(wrong | {"kind": kind})
