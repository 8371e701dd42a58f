"""The notation of Timeloop v0.2 and v0.3: one YAML file or several, read together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.adapter import InputSet
from tilewright.architecture import Architecture
from tilewright.conformability import Reason, Verdict
from tilewright.document import read_document, suggestion
from tilewright.errors import InputError, NotConformableError
from tilewright.problem import Problem
from tilewright_adapters.timeloop import directives as directive_lists
from tilewright_adapters.timeloop import levels as level_lists
from tilewright_adapters.timeloop.cursor import Cursor
from tilewright_adapters.timeloop.energies import read_energies
from tilewright_adapters.timeloop.shape import read_problem

_SECTIONS = {
    "architecture": "architecture",
    "arch": "architecture",
    "problem": "problem",
    "mapping": "mapping",
    "ERT": "ERT",
    "energy_reference_table": "ERT",
}
_AREA = {"ART", "ART_summary", "ERT_summary", "area_reference_table"}
_UNUSED = {
    "mapper": "settings of Timeloop's own search",
    "mapspace": "constraints of the map space",
    "constraints": "constraints of the map space",
    "mapspace_constraints": "constraints of the map space",
    "architecture_constraints": "constraints of the map space",
    "compound_components": "Accelergy's component descriptions",
    "components": "Accelergy's component descriptions",
}
_CHANGING = {
    "sparse_optimizations": "sparse hardware",
    "layout": "data layouts",
    "variables": "v4 variables",
    "model": "settings of the model",
}


@dataclass
class _Sections:
    found: dict[str, Cursor] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, path: Path) -> None:
        document = read_document(path)
        for key, cursor in Cursor(document).fields("the file").items():
            if key in _AREA:
                continue
            if key in _UNUSED:
                self.warnings.append(f"{document.locate(cursor.path)}: {key} ({_UNUSED[key]}) is not read")
            elif key in _CHANGING:
                raise cursor.error(f"{key} ({_CHANGING[key]}) cannot be read: it could change the figures")
            elif key not in _SECTIONS:
                known = sorted({*_SECTIONS, *_AREA, *_UNUSED})
                raise cursor.error(
                    f"Timeloop has no section '{key}'{suggestion(key, known)}", hint=f"known: {', '.join(known)}"
                )
            elif _SECTIONS[key] in self.found:
                first = self.found[_SECTIONS[key]]
                raise cursor.error(f"a second {key}; the first is at {first.document.locate(first.path)}")
            else:
                self.found[_SECTIONS[key]] = cursor


class TimeloopAdapter:
    """Reads Timeloop's input files."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """One input set of all files together.

        A storage level becomes a cluster with one memory of its name; where a level fans out along X and Y, a virtual
        cluster `<level>_X` follows that fans out along X.

        Raises:
            InputError: with file and line; everything that would change figures and has no place in the schemas.
        """
        sections = _Sections()
        for path in files:
            sections.add(path)
        found = sections.found
        if not found:
            raise InputError("no architecture, problem or mapping in these files", hint="name Timeloop's YAML files")
        problem = _problem(found)
        levels = level_lists.read_levels(found["architecture"]) if "architecture" in found else None
        warnings = sections.warnings + list(levels.warnings if levels else ())
        if levels is None or problem is None or "mapping" not in found:
            if "mapping" in found:
                missing = "architecture" if levels is None else "problem"
                raise found["mapping"].error(
                    f"a mapping cannot be read without its {missing}", hint=f"add the {missing}"
                )
            architecture = _architecture(levels, found, None)
            return InputSet(problem=problem, architecture=architecture, warnings=tuple(warnings))
        directives = directive_lists.read_directives(found["mapping"], problem, levels.names)
        architecture = _architecture(levels, found, directives)
        assert architecture is not None
        mapping = directive_lists.build(directives, problem, tuple(architecture.cluster_index))
        return InputSet(
            problem=problem,
            architecture=architecture,
            mapping=mapping,
            warnings=(*warnings, *directives.warnings),
        )

    def expressible(self, inputs: InputSet) -> Verdict:
        return Verdict(reasons=(Reason(code="not_built", where="", message="writing Timeloop files is not built yet"),))

    def render(self, inputs: InputSet) -> dict[str, str]:
        raise NotConformableError("adapter timeloop", self.expressible(inputs).reasons)


def _problem(found: dict[str, Cursor]) -> Problem | None:
    if "problem" not in found:
        return None
    with found["problem"].checked():
        return read_problem(found["problem"])


def _architecture(
    levels: level_lists.Levels | None, found: dict[str, Cursor], directives: directive_lists.Directives | None
) -> Architecture | None:
    if levels is None:
        return None
    energies = read_energies(found["ERT"]) if "ERT" in found else {}
    splits = {name: level.axes() for name, level in directives.levels.items()} if directives else {}
    return level_lists.build(levels, energies, splits)
