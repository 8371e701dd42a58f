"""JSON schemas accept what Tilewright writes and reads, in the short and in the full form, and refuse what it refuses."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support import EXAMPLE_FILES, ROOT
from support.command import Command
from support.schemas import faults, validator, written_faults
from tilewright.application.api.load.kinds import SCHEMAS
from tilewright.application.cli.schema import KINDS, json_schema
from tilewright.application.exploration.space import ArchitectureSpace
from tilewright.errors import InputError
from tilewright.schema.document import FileModel, parse_document, read_document
from tilewright.testing.strategies import architectures, mappings, problems, sparse

OURS = sorted(
    path
    for folder in (ROOT / "core" / "tilewright" / "library", EXAMPLE_FILES)
    for path in folder.rglob("*.yaml")
    if "\nkind: " in f"\n{path.read_text()}"
)


def data_of(path: Path) -> Any:
    return read_document(path).data


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_schemas_with_an_identity(kind: str, tilewright: Command) -> None:
    schema = tilewright("schema", kind).data
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"].startswith(f"urn:tilewright:{kind}:") and schema["description"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_fields_are_described(kind: str) -> None:
    fields = [
        (path[-1], field)
        for path, part in values({kind: json_schema(kind)})
        if path[-1] == "properties" and path[-2:] != ("properties", "properties")
        for path, field in values(part)
        if len(path) == 1
    ]
    bare = [name for name, field in fields if "description" not in field and name not in ("schema_version", "kind")]
    assert fields and bare == []


def test_what_is_shipped_is_valid() -> None:
    assert len(OURS) > 60 and {data_of(path)["kind"] for path in OURS} > {"architecture", "space", "workload"}
    assert {path.name: faults(data_of(path)) for path in OURS if faults(data_of(path))} == {}


@pytest.mark.exhaustive
def test_what_commands_write_is_valid(tilewright: Command, tmp_path: Path) -> None:
    tilewright("map", "nk,km->nm; n=8 k=8 m=8", "--arch", "eyeriss", "-o", tmp_path / "layer")
    tilewright(
        "map",
        EXAMPLE_FILES / "three_layers.workload.yaml",
        "--arch",
        "simba",
        "--evaluations",
        20,
        "-o",
        tmp_path / "net",
    )
    tilewright("map", EXAMPLE_FILES / "two_products.yaml", "--fuse", "-o", tmp_path / "group")
    tilewright(
        "compare", "nk,km->nm; n=8 k=8 m=8", "--arch", "eyeriss", "--evaluations", 20, "-o", tmp_path / "compared"
    )
    written = [path for path in tmp_path.rglob("*.yaml") if data_of(path).get("kind") in KINDS]
    assert {data_of(path)["kind"] for path in written} == {"mapped", "certificate", "group_mapping"}
    assert written_faults(tmp_path) == {}


@given(st.data())
def test_short_and_full_forms_are_valid(data: st.DataObject) -> None:
    problem = data.draw(problems())
    architecture = data.draw(architectures(widths=True, timed=True))
    if data.draw(st.booleans()):
        problem, architecture = data.draw(sparse(problem, architecture))
    mapping = data.draw(mappings(problem, architecture))
    models: tuple[FileModel, ...] = (problem, architecture, mapping)
    for model in models:
        assert faults(model.to_data()) == [] and faults(model.model_dump(mode="json")) == []


def test_reports_are_valid() -> None:
    (report,) = tw.evaluate(
        EXAMPLE_FILES / "gemm.mapping.yaml",
        problem=EXAMPLE_FILES / "gemm.problem.yaml",
        arch=EXAMPLE_FILES / "small.arch.yaml",
    ).reports
    assert faults(report.model_dump(mode="json")) == []


def wrong(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield copies of a document with one fault each."""
    yield "an unknown key", data | {"colour": "red"}
    yield "another kind of value", [data]
    yield "another version", data | {"schema_version": 99}
    for path, value in values(data):
        if isinstance(value, dict) and "name" in value:
            yield f"{path} has a name with a space", changed(data, (*path, "name"), "two words")
            yield f"{path} has an unknown key", changed(data, (*path, "colour"), "red")
            yield (
                f"{path} has no name",
                changed(data, path, {key: part for key, part in value.items() if key != "name"}),
            )
        if isinstance(value, int) and not isinstance(value, bool) and path[-1] != "schema_version":
            yield f"{path} is below zero", changed(data, path, -value - 1)
            yield f"{path} is a list", changed(data, path, [value])
            yield f"{path} is text", changed(data, path, "many")


def values(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if path:
        yield path, data
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from values(value, (*path, key))


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    data = copy.deepcopy(data)
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return data


MODELS: dict[str, type[FileModel]] = {**SCHEMAS, "space": ArchitectureSpace}
FILES = [
    EXAMPLE_FILES / name
    for name in (
        "gemm.problem.yaml",
        "gemm.mapping.yaml",
        "small.arch.yaml",
        "three_layers.workload.yaml",
        "two_products.yaml",
        "thousand_machines.yaml",
    )
] + [ROOT / "core/tilewright/library/constraints/gemmini.full_array.yaml"]


def test_what_the_reader_refuses_is_refused() -> None:
    """Where a fault concerns one value. Rules of several values are beyond a schema."""
    refused, missed = 0, list[str]()
    for file in FILES:
        data = data_of(file)
        for text, other in wrong(data):
            try:
                MODELS[data["kind"]].from_yaml(json.dumps(other))
            except InputError:
                refused += 1
                if not list(validator(data["kind"]).iter_errors(other)):
                    missed.append(f"{file.name}: {text}")
            else:
                assert not faults(other), (file.name, text)
    assert refused > 200 and len(missed) <= refused // 20, missed


def test_units_and_components_are_valid(tilewright: Command) -> None:
    """As `library new` writes them; a part without a component needs its energies."""
    data = parse_document(tilewright("library", "new", "mine", "--buffer-bandwidth", "64B/cycle").out).data
    assert data["clusters"][1]["memories"][0]["size"] == "128 KiB" and faults(data) == []
    for path, value in (("size", 128), ("size", "128 KB"), ("bandwidth", "8 GB"), ("component", None)):
        wrong = copy.deepcopy(data)
        wrong["clusters"][1]["memories"][0][path] = value
        if value is None:
            del wrong["clusters"][1]["memories"][0][path]
        assert faults(wrong), (path, value)
        with pytest.raises(InputError):
            tw.load(wrong)
