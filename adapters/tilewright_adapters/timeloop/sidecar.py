"""What Timeloop's files have no place for: our names, notes and roles, in a section of their own.

Timeloop ignores the section. On reading, it counts only as long as Timeloop's own files still say what they said when
it was written.
"""

from __future__ import annotations

from typing import Any

from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.document import FileModel, dump_yaml, validate
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop.cursor import Cursor, refuse_unknown
from tilewright_adapters.timeloop.reading.sections import OURS

FILE = "tilewright.yaml"
PARTS: dict[str, type[FileModel]] = {
    "problem": Problem,
    "architecture": Architecture,
    "mapping": Mapping,
    "constraints": Constraints,
}
_HEAD = """\
# What Timeloop's files have no place for: names, notes, roles. For Tilewright alone, Timeloop does not need it.
"""


def write(inputs: InputSet, plain: InputSet) -> dict[str, str]:
    """The file with those parts of `inputs` that `plain`, read back from Timeloop's files, does not equal."""
    parts: dict[str, Any] = {}
    for name in PARTS:
        part = getattr(inputs, name)
        if part != getattr(plain, name):
            parts[name] = None if part is None else part.to_data()
    return {FILE: _HEAD + dump_yaml({OURS: parts})} if parts else {}


def read(section: Cursor, plain: InputSet) -> InputSet:
    """`plain` with the parts of the section in place of its own. Raises InputError."""
    fields = section.fields(f"the section {OURS}")
    refuse_unknown(fields, PARTS, f"the section {OURS}")
    parts: dict[str, Any] = {}
    for name, cursor in fields.items():
        parts[name] = None if cursor.value is None else validate(PARTS[name], cursor.document.at(*cursor.path))
    kept: dict[str, Any] = {name: getattr(plain, name) for name in PARTS}
    return InputSet(**kept | parts, warnings=plain.warnings)
