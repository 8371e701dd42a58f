"""Timeloop's files, read and written: v0.2, v0.3 and v4, YAML or (for reading) libconfig."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tilewright.adapter import InputSet
from tilewright.architecture import Architecture
from tilewright.conformability import Verdict
from tilewright.document import Document, parse_document, read_document
from tilewright.errors import InputError, NotConformableError
from tilewright.problem import Problem
from tilewright_adapters.timeloop import directives as directive_lists
from tilewright_adapters.timeloop import keepsake
from tilewright_adapters.timeloop import levels as level_lists
from tilewright_adapters.timeloop.energies import read_energies
from tilewright_adapters.timeloop.outline import outline
from tilewright_adapters.timeloop.sections import OURS, Sections
from tilewright_adapters.timeloop.shape import read_problem
from tilewright_adapters.timeloop.write import write_v3


class TimeloopAdapter:
    """Reads Timeloop's input files of any version, writes those of one."""

    def __init__(self, version: Literal["v3", "v4"] = "v3") -> None:
        self.name = "timeloop" if version == "v3" else "timeloop_v4"
        self._write = write_v3

    def parse(self, files: Sequence[Path]) -> InputSet:
        """One input set of all files together.

        A storage level becomes a cluster with one memory of its name; where a level fans out along X and Y, a virtual
        cluster `<level>_X` follows that fans out along X.

        Raises:
            InputError: with file and line; everything that would change figures and has no place in the schemas.
        """
        return self.read([read_document(path) for path in files])

    def read(self, documents: Sequence[Document]) -> InputSet:
        """As `parse`, from documents. Raises InputError."""
        sections = Sections.of(documents)
        ours = sections.found.pop(OURS, None)
        plain = _read(sections)
        if ours is None:
            return plain
        whole = keepsake.read(ours, plain)
        plan = outline(whole)
        again = None if plan.reasons else _read_back(write_v3(plan))
        if again is None or any(getattr(again, part) != getattr(plain, part) for part in keepsake.PARTS):
            raise ours.error(
                "this section was written for other Timeloop files than these",
                hint="leave the file out to read what Timeloop's files say by themselves",
            )
        return whole

    def expressible(self, inputs: InputSet) -> Verdict:
        """Every construct that Timeloop's files cannot say."""
        return Verdict(reasons=tuple(outline(inputs).reasons))

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Files of this version, and, where our names and notes have no place in them, `tilewright.yaml` beside."""
        plan = outline(inputs)
        if plan.reasons:
            raise NotConformableError(f"adapter {self.name}", plan.reasons)
        files = self._write(plan)
        return files | keepsake.write(inputs, _read_back(files))


def _read_back(files: dict[str, str]) -> InputSet:
    return _read(Sections.of(parse_document(text, source=name) for name, text in files.items()))


def _read(sections: Sections) -> InputSet:
    found = sections.found
    if not found:
        raise InputError("no architecture, problem or mapping in these files", hint="name Timeloop's files")
    problem = _problem(sections)
    levels = level_lists.read_levels(found["architecture"]) if "architecture" in found else None
    warnings = sections.warnings + list(levels.warnings if levels else ())
    if levels is None or problem is None or "mapping" not in found:
        if "mapping" in found:
            missing = "architecture" if levels is None else "problem"
            raise found["mapping"].error(f"a mapping cannot be read without its {missing}", hint=f"add the {missing}")
        architecture = _architecture(levels, sections, None)
        return InputSet(problem=problem, architecture=architecture, warnings=tuple(warnings))
    directives = directive_lists.read_directives(found["mapping"], problem, levels.names)
    architecture = _architecture(levels, sections, directives)
    assert architecture is not None
    return InputSet(
        problem=problem,
        architecture=architecture,
        mapping=directive_lists.build(directives, problem, tuple(architecture.cluster_index)),
        warnings=(*warnings, *directives.warnings),
    )


def _problem(sections: Sections) -> Problem | None:
    if "problem" not in sections.found:
        return None
    with sections.found["problem"].checked():
        return read_problem(sections.found["problem"])


def _architecture(
    levels: level_lists.Levels | None, sections: Sections, directives: directive_lists.Directives | None
) -> Architecture | None:
    if levels is None:
        return None
    energies = read_energies(sections.found["ERT"]) if "ERT" in sections.found else {}
    splits = {name: level.axes() for name, level in directives.levels.items()} if directives else {}
    return level_lists.build(levels, energies, splits)
