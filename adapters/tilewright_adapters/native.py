"""Tilewright's own YAML files as a notation: problem, architecture, mapping and constraints, one file each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import InputError, NotConformableError, Verdict
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.document import Document, FileModel, read_document, validate
from tilewright.schema.mapped import MappedProblem, kind_of
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload
from tilewright_adapters.parts import gathered, unplaced

PARTS = ("problem", "architecture", "mapping", "constraints")


class NativeAdapter:
    """Reads and writes the files that `evaluate --mapping --problem --arch` takes."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Any of our files together, each part once; a file that `map` wrote brings three.

        Raises:
            InputError: with file and line; a part stands twice, or a workload has several layers.
        """
        if not files:
            raise InputError("no files to read", hint="name problem, architecture and mapping files")
        documents = [read_document(path) for path in files]
        return gathered((part, value, each.locate(())) for each in documents for part, value in _parts(each).items())

    def expressible(self, inputs: InputSet) -> Verdict:
        """All but programs of directives and options of models."""
        return Verdict(reasons=tuple(unplaced("our files", inputs, PARTS)))

    def render(self, inputs: InputSet) -> dict[str, str]:
        verdict = self.expressible(inputs)
        if not verdict:
            raise NotConformableError("adapter tilewright", verdict.reasons)
        return {f"{part}.yaml": getattr(inputs, part).to_yaml() for part in PARTS if getattr(inputs, part) is not None}


def _parts(document: Document) -> dict[str, object]:
    kind = kind_of(document)
    if kind == "mapped":
        whole = validate(MappedProblem, document)
        return {"problem": whole.problem, "architecture": whole.architecture, "mapping": whole.mapping}
    if kind == "workload":
        layers = validate(Workload, document).layers
        if len(layers) != 1:
            raise InputError(f"{len(layers)} layers; one was expected", location=document.locate(()))
        return {"problem": layers[0].problem}
    models: dict[str, type[FileModel]] = {
        "problem": Problem,
        "architecture": Architecture,
        "mapping": Mapping,
        "constraints": Constraints,
    }
    kind = kind or next((part for part, key in _SIGNS.items() if key in document.data), None)
    if kind is None or kind not in models:
        raise InputError(
            f"the file is of kind '{kind}'" if kind else "the file does not say of what kind it is",
            location=document.locate(("kind",)),
            hint=f"expected kind: {', '.join(models)}, mapped or workload",
        )
    return {kind: validate(models[kind], document)}


_SIGNS = {"problem": "tensors", "architecture": "clusters", "mapping": "entries", "constraints": "variants"}
"""The key that gives a file away which does not say its kind."""
