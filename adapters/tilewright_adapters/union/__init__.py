"""Union's abstractions in YAML, laid out as in the paper's Figures 5, 7 and 9.

Union's own files were never published. Details that the figures omit are Tilewright's (see docs/adapters.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tilewright.errors import NotConformableError, Reason, Verdict
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import HARDWARE_ATTRIBUTES, InputSet, NotationTable
from tilewright.schema.document import dump_yaml
from tilewright_adapters.parts import unplaced, unwritten_bits
from tilewright_adapters.union.read import operation_of, read_files
from tilewright_adapters.union.write import WORDS, architecture_text, mapping_text, problem_text

TABLE = NotationTable("Union's files", written=HARDWARE_ATTRIBUTES - {"sparse"})
PARTS = ("problem", "architecture", "mapping", "constraints")


class UnionAdapter:
    """An adapter for problem, architecture, mapping and constraints, in one file or several."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read all files as one input set.

        Convolutions may use the input's rows and columns, Y and X.

        Raises:
            InputError: the files are invalid; with file and line.
        """
        return read_files(files)

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return reasons against directives, model options and ambiguous mappings."""
        return Verdict(reasons=tuple(_reasons(inputs)))

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Return one file per part."""
        verdict = self.expressible(inputs)
        if not verdict:
            raise NotConformableError("adapter union", verdict.reasons)
        problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
        files = {}
        if problem is not None:
            files["problem.yaml"] = problem_text(problem)
        if architecture is not None:
            files["architecture.yaml"] = architecture_text(architecture)
        if mapping is not None and problem is not None and architecture is not None:
            files["mapping.yaml"] = mapping_text(problem, architecture, mapping)
        if inputs.constraints is not None:
            files["constraints.yaml"] = dump_yaml({"constraints": inputs.constraints.to_data()})
        return files


def _reasons(inputs: InputSet) -> Iterator[Reason]:
    problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
    yield from unplaced(TABLE, inputs, PARTS)
    yield from unwritten_bits(TABLE, inputs)
    word = None if problem is None else problem.operation
    if problem is not None and operation_of(WORDS.get(word or "", word)) != word:
        message = f"'{word}' would be read as '{operation_of(word)}'"
        yield Reason(code="operation", where=f"problem {problem.name}", message=message)
    if mapping is None:
        return
    if problem is None or architecture is None:
        missing = "problem" if problem is None else "architecture"
        message = f"tile sizes and keeps have no meaning without the {missing}"
        yield Reason(code="incomplete", where="mapping", message=message)
        return
    for reason in legality(problem, architecture, mapping).reasons:
        if reason.code in ("dimension", "target", "tensor"):
            yield reason
    if mapping.dimension_names != problem.dimension_names and any(
        entry.spatial_order is None and sum(trips > 1 for trips in spatial.values()) > 1
        for entry, (_, spatial) in zip(mapping.entries, mapping.factors(), strict=True)
    ):
        message = "several dimensions are unrolled, and the mapping's dimension order differs from the problem's"
        yield Reason(code="dimension_order", where="mapping", message=message)
