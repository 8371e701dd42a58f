"""Tilewright's own YAML files as a notation: problem, architecture, mapping and constraints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import InputError, NotConformableError, Verdict
from tilewright.estimation.architectures import read_architecture
from tilewright.files import file_and_member
from tilewright.plugin.adapter import HARDWARE_ATTRIBUTES, InputSet, NotationTable
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.document import YAML_SUFFIXES, Document, FileModel, read_document, validate
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import MappedProblem, kind_of
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload
from tilewright_adapters.members import chosen, files_of
from tilewright_adapters.parts import gathered, unplaced

TABLE = NotationTable("Tilewright's files", written=HARDWARE_ATTRIBUTES, units=True)
PARTS = ("problem", "architecture", "mapping", "constraints", "group")


class NativeAdapter:
    """An adapter for the files that `evaluate --mapping --problem --arch` reads."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read any of Tilewright's files, each part once; a file written by `map` has three parts.

        `workload.yaml/LAYER` selects a layer.

        Raises:
            InputError: a file is invalid, a part is repeated, or no layer of several is selected; with file and line.
        """
        if not files:
            raise InputError("no files to read", hint="give problem, architecture and mapping files")
        named = [
            (read_document(file), layer)
            for file, layer in map(file_and_member, files_of(files, YAML_SUFFIXES, "Tilewright"))
        ]
        return gathered(
            (part, value, document.locate(()))
            for document, layer in named
            for part, value in _parts(document, layer).items()
        )

    def layers(self, file: Path) -> tuple[str, ...]:
        """Return the layers of a workload. Raises InputError."""
        document = read_document(file)
        if kind_of(document) != "workload":
            return ()
        return tuple(layer.name for layer in validate(Workload, document).layers)

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return reasons against directives and model options."""
        return Verdict(reasons=tuple(unplaced(TABLE, inputs, PARTS)))

    def render(self, inputs: InputSet) -> dict[str, str]:
        verdict = self.expressible(inputs)
        if not verdict:
            raise NotConformableError("adapter tilewright", verdict.reasons)
        return {f"{part}.yaml": getattr(inputs, part).to_yaml() for part in PARTS if getattr(inputs, part) is not None}


def _parts(document: Document, layer: str | None) -> dict[str, object]:
    kind = kind_of(document)
    if kind == "workload":
        layers = validate(Workload, document).layers
        index = chosen([member.name for member in layers], layer, document.locate(()), "layer")
        return {"problem": layers[index].problem}
    if layer is not None:
        raise InputError(f"{document.source} is not a workload, so it has no layer {layer}")
    if kind == "mapped":
        whole = validate(MappedProblem, document)
        return {"problem": whole.problem, "architecture": whole.architecture, "mapping": whole.mapping}
    if kind == "group_mapping":
        return {"group": validate(GroupMapping, document)}
    models: dict[str, type[FileModel]] = {
        "problem": Problem,
        "architecture": Architecture,
        "mapping": Mapping,
        "constraints": Constraints,
    }
    kind = kind or next((part for part, key in _SIGNS.items() if key in document.data), None)
    if kind is None or kind not in models:
        raise InputError(
            f"the file has kind '{kind}'" if kind else "the file has no 'kind'",
            location=document.locate(("kind",)),
            hint=f"expected kind: {', '.join(models)}, mapped, group_mapping or workload",
        )
    return {kind: read_architecture(document) if kind == "architecture" else validate(models[kind], document)}


_SIGNS = {"problem": "tensors", "architecture": "clusters", "mapping": "entries", "constraints": "variants"}
"""Part -> key that identifies a file without `kind`."""
