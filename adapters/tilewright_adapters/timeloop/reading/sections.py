"""Sections of Timeloop's files, and warnings about those that are not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tilewright.expressions import resolved
from tilewright.schema.document import Document, suggestion
from tilewright_adapters.merging import merged
from tilewright_adapters.timeloop.cursor import Cursor

OURS = "tilewright"
"""Name of the section for content that Timeloop's files cannot express."""
CONSTRAINTS = (
    "constraints",
    "mapspace_constraints",
    "architecture_constraints",
    "arch_constraints",
    "mapspace",
    "extra_mapping_constraints",
)
_SECTIONS = {
    "architecture": "architecture",
    "arch": "architecture",
    "problem": "problem",
    "shape": "shape",
    "mapping": "mapping",
    "ERT": "ERT",
    "energy_reference_table": "ERT",
    "ART": "ART",
    "area_reference_table": "ART",
    "variables": "variables",
    "sparse_optimizations": "sparse_optimizations",
    OURS: OURS,
} | {name: name for name in CONSTRAINTS}
_SILENT = {
    *("ART_summary", "ERT_summary", "dumped_by_timeloop_front_end"),
    *("verbose", "version", "action_counts"),
}
_UNUSED = {
    "evaluator": "settings of Timeloop's model",
    "model": "settings of Timeloop's model",
    "compound_components": "Accelergy's component descriptions",
    "components": "Accelergy's component descriptions",
}
_METRICS = {"edp": "edp", "energy": "energy", "delay": "cycles"}
"""Timeloop's metrics -> objectives. Others are kept by their name."""
SPARSE = {
    "sparse_optimizations": "sparse hardware",
    "densities": "sparse tensors",
    "commonDensity": "sparse tensors",
}
"""Keys of sparse runs."""
_BY_NAME = "constraints_"
"""Prefix of a section's named constraints: `constraints: x` selects `constraints_x`."""


def is_timeloop(document: Document) -> bool:
    """Return whether a document is empty, or has a section that Timeloop knows."""
    if not isinstance(document.data, dict):
        return not document.data
    names = {str(key).replace("-", "_") for key in document.data}
    known = {*_SECTIONS, *_UNUSED, *SPARSE, "layout", "mapper"}
    return not names or any(name in known or (name != "version" and _is_silent(name)) for name in names)


def unread(text: str) -> tuple[str, ...]:
    """Return the sections of a template, if none of them is read, so that it need not be rendered; else nothing.

    A template that includes other files has sections that its text does not show.
    """
    lines = [line for line in text.splitlines() if line.strip() and line[0] not in " \t#-"]
    shown = [line for line in lines if not line.startswith(("{%", "{#", "{{add_to_path(", "{{ add_to_path("))]
    names = [line.partition(":")[0].strip().replace("-", "_") for line in shown]
    if "include" in text or any(name not in _UNUSED and not _is_silent(name) for name in names):
        return ()
    return tuple(name for name in dict.fromkeys(names) if name in _UNUSED)


def ignored(name: str) -> str:
    """Return the warning about a section that is not read."""
    return f"{name} ({_UNUSED[name]}) is ignored"


def _is_silent(name: str) -> bool:
    """Return whether a section is left out without a warning."""
    return name in _SILENT or name.endswith("ignore") or "globals" in name


@dataclass
class Sections:
    """Sections by name, and warnings about omitted ones."""

    parts: dict[str, Cursor] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    dense: bool = False
    """Whether sparse content is omitted."""
    one_energy: bool = False
    """Whether the dearest action of a component's energy table is the energy of all."""
    objective: str | None = None
    """Metric that Timeloop's mapper would minimise."""
    sparse_nodes: list[tuple[str, Cursor]] = field(default_factory=list)
    """Names of v4's nodes with their `sparse_optimizations`."""
    given: Mapping[str, object] = field(default_factory=dict)
    """Values of variables, which take precedence over those in the files."""

    @classmethod
    def of(
        cls,
        documents: Iterable[Document],
        dense: bool = False,
        given: Mapping[str, object] | None = None,
        warnings: Iterable[str] = (),
        one_energy: bool = False,
    ) -> Sections:
        """Return the sections of the documents; `warnings` come first among its warnings.

        Raises:
            InputError: a section is repeated, unknown, or unsupported and could affect results.
        """
        result = cls(dense=dense, given=given or {}, warnings=[*warnings], one_energy=one_energy)
        for document in documents:
            for key, cursor in Cursor(merged(document)).fields("the file").items():
                result._add(key, cursor)
        return result

    def variables(self) -> dict[str, object]:
        """Return the variables in order, so that one may use earlier ones. Raises InputError."""
        section = self.parts.get("variables")
        if section is None or not section.value:
            return dict(self.given)
        parts = section.items("variables") if isinstance(section.value, list) else [section]
        values = dict(self.given)
        for name, cursor in (item for part in parts for item in part.fields("variables").items()):
            if name not in self.given:
                values[name] = resolved(cursor.value, values)
        return values

    def omit(self, name: str, cursor: Cursor) -> None:
        """Omit a key of SPARSE with a warning."""
        if not cursor.value:
            return
        of = (
            f" of {', '.join(map(str, cursor.value))}" if isinstance(cursor.value, dict) and name == "densities" else ""
        )
        self.warnings.append(f"{cursor.document.locate(cursor.path)}: {name}{of} ({SPARSE[name]}) omitted")

    def _add(self, key: str, cursor: Cursor) -> None:
        place = cursor.document.locate(cursor.path)
        if _is_silent(key):
            return
        if key == "mapper":
            self._mapper(cursor)
            return
        if key in _UNUSED:
            self.warnings.append(f"{place}: {ignored(key)}")
            return
        if key in SPARSE and (self.dense or key != "sparse_optimizations"):
            self.omit(key, cursor)
            return
        if key == "layout":
            if cursor.value:
                raise cursor.error("layout (data layouts) is not supported: it could change results")
            return
        if key not in _SECTIONS:
            known = sorted({*_SECTIONS, *_SILENT, *_UNUSED, "mapper"} - {OURS})
            raise cursor.error(
                f"Timeloop has no section '{key}'{suggestion(key, known)}", hint=f"known: {', '.join(known)}"
            )
        first = self.parts.get(_SECTIONS[key])
        if first is None or not first.value:  # Timeloop writes empty sections, and repeats equal ones in several files
            self.parts[_SECTIONS[key]] = cursor
        elif cursor.value and cursor.value != first.value:
            raise cursor.error(f"{key} is repeated; the first is at {first.document.locate(first.path)}")

    def _mapper(self, cursor: Cursor) -> None:
        """Read the objective of Timeloop's own search: its first metric, since the others decide ties only. Raises InputError."""
        told = f"{cursor.document.locate(cursor.path)}: mapper (settings of Timeloop's own search) is ignored"
        fields = cursor.fields("mapper") if cursor.value else {}
        given = fields.get("optimization_metric", fields.get("optimization_metrics"))
        if given is None or not given.value:
            self.warnings.append(told)
            return
        several = isinstance(given.value, list)
        words = [metric.text("a metric") for metric in (given.items("metrics") if several else [given])]
        names = [_METRICS.get(word, word) for word in words]
        if self.objective not in (None, names[0]):
            raise given.error(f"optimization_metrics is repeated: {names[0]} after {self.objective}")
        self.objective = names[0]
        ties = f"; {', '.join(names[1:])} would decide ties: --pareto N shows energy and cycles" if names[1:] else ""
        self.warnings.append(f"{told}, except its objective: {names[0]}, unless --objective is given{ties}")
