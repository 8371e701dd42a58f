"""Section for content that Timeloop's files cannot express: names, notes and roles.

Timeloop ignores the section. It is valid only while Timeloop's own files have not changed.
"""

from __future__ import annotations

from typing import Any

from tilewright.plugin.adapter import SIDECAR, InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.document import FileModel, dump_yaml, validate
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop.cursor import Cursor, refuse_unknown
from tilewright_adapters.timeloop.reading.sections import OURS

PARTS: dict[str, type[FileModel]] = {
    "problem": Problem,
    "architecture": Architecture,
    "mapping": Mapping,
    "constraints": Constraints,
}
_HEAD = """\
# Names, notes and roles that Timeloop's files cannot express. Only Tilewright reads this file.
"""


def write(inputs: InputSet, plain: InputSet) -> dict[str, str]:
    """Return a file with the parts of `inputs` that differ from `plain`.

    `plain` is the result of reading Timeloop's files.
    """
    parts: dict[str, Any] = {}
    for name in PARTS:
        part = getattr(inputs, name)
        if part != getattr(plain, name):
            parts[name] = None if part is None else part.to_data()
    return {SIDECAR: _HEAD + dump_yaml({OURS: parts})} if parts else {}


def read(section: Cursor, plain: InputSet) -> InputSet:
    """Return `plain` with its parts replaced by those of the section. Raises InputError."""
    fields = section.fields(f"the section {OURS}")
    refuse_unknown(fields, PARTS, f"the section {OURS}")
    parts: dict[str, Any] = {}
    for name, cursor in fields.items():
        parts[name] = None if cursor.value is None else validate(PARTS[name], cursor.document.at(*cursor.path))
    kept: dict[str, Any] = {name: getattr(plain, name) for name in PARTS}
    return InputSet(**kept | parts, warnings=plain.warnings)
