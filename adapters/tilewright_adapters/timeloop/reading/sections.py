"""Timeloop's files, section by section: which section stands where, and what is said of those that are not read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.schema.document import Document, suggestion
from tilewright_adapters.timeloop.cursor import Cursor
from tilewright_adapters.timeloop.reading.merging import merged

OURS = "tilewright"
"""The section with what Timeloop's files have no place for."""
CONSTRAINTS = ("constraints", "mapspace_constraints", "architecture_constraints", "arch_constraints", "mapspace")
_SECTIONS = {
    "architecture": "architecture",
    "arch": "architecture",
    "problem": "problem",
    "shape": "shape",
    "mapping": "mapping",
    "ERT": "ERT",
    "energy_reference_table": "ERT",
    "variables": "variables",
    OURS: OURS,
} | {name: name for name in CONSTRAINTS}
_SILENT = {
    *("ART", "ART_summary", "ERT_summary", "area_reference_table", "dumped_by_timeloop_front_end", "globals"),
    *("verbose", "version", "action_counts"),
}
_UNUSED = {
    "mapper": "settings of Timeloop's own search",
    "evaluator": "settings of Timeloop's model",
    "compound_components": "Accelergy's component descriptions",
    "components": "Accelergy's component descriptions",
}
_CHANGING = {
    "sparse_optimizations": "sparse hardware",
    "layout": "data layouts",
    "model": "settings of the model",
}
_BY_NAME = "constraints_"
"""`constraints: x` in a section stands for its `constraints_x`."""


@dataclass
class Sections:
    """Sections by name, and warnings about what is left out."""

    found: dict[str, Cursor] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Sections:
        """Raises InputError: a section twice, or one that nobody knows or that could change the figures."""
        result = cls()
        for document in documents:
            for key, cursor in Cursor(merged(document)).fields("the file").items():
                result._add(key, cursor)
        return result

    def _add(self, key: str, cursor: Cursor) -> None:
        place = cursor.document.locate(cursor.path)
        if key in _SILENT or key.endswith("ignore"):
            return
        if key in _UNUSED:
            self.warnings.append(f"{place}: {key} ({_UNUSED[key]}) is not read")
            return
        if key in _CHANGING:
            if cursor.value:
                raise cursor.error(f"{key} ({_CHANGING[key]}) cannot be read: it could change the figures")
            return
        if key not in _SECTIONS:
            known = sorted({*_SECTIONS, *_SILENT, *_UNUSED} - {OURS})
            raise cursor.error(
                f"Timeloop has no section '{key}'{suggestion(key, known)}", hint=f"known: {', '.join(known)}"
            )
        first = self.found.get(_SECTIONS[key])
        if first is None or not first.value:  # Timeloop writes empty sections, too
            self.found[_SECTIONS[key]] = cursor
        elif cursor.value:
            raise cursor.error(f"a second {key}; the first is at {first.document.locate(first.path)}")
