"""What commands print and write, checked by the published JSON schemas."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from tilewright.application.cli.schema import KINDS, json_schema
from tilewright.schema.document import read_document


@cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(kind))


def faults(data: Any) -> list[str]:
    """Return how a file or a document differs from the schema of its kind; reports state none."""
    kind = data.get("kind", "report")
    return [f"{error.json_path}: {error.message}" for error in validator(kind).iter_errors(data)]


def written_faults(folder: Path) -> dict[str, list[str]]:
    """Return the faults of all YAML and JSON files below a folder that state a kind, by path; those without any are left out."""
    texts = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".yaml", ".json"):
            continue
        data = json.loads(path.read_text()) if path.suffix == ".json" else read_document(path).data
        if isinstance(data, dict) and data.get("kind") in KINDS:
            texts[str(path.relative_to(folder))] = faults(data)
    return {name: wrong for name, wrong in texts.items() if wrong}
