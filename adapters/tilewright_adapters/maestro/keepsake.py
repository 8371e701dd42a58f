"""What MAESTRO's files have no place for: names, energies, the tiles that directives came from, in a file beside.

MAESTRO does not need the file. On reading, it counts only as long as MAESTRO's own files still say what they said when
it was written.
"""

from __future__ import annotations

from pathlib import Path

from tilewright.adapter import InputSet
from tilewright.architecture import Architecture
from tilewright.document import Document, dump_yaml, read_document, validate
from tilewright.errors import InputError
from tilewright.mapping import Mapping
from tilewright.problem import Problem

FILE = "tilewright.yaml"
PARTS = ("problem", "architecture", "mapping")
_HEAD = """\
# What MAESTRO's files have no place for: names, energies, tiles. For Tilewright alone, MAESTRO does not need it.
"""


def is_keepsake(path: Path) -> bool:
    """MAESTRO's own files end in .m."""
    return path.suffix in (".yaml", ".yml")


def write(inputs: InputSet) -> dict[str, str]:
    """The file with all three parts."""
    parts = {name: getattr(inputs, name).to_data() for name in PARTS}
    return {FILE: _HEAD + dump_yaml({"maestro": parts})}


def read(path: Path) -> tuple[InputSet, Document]:
    """The three parts, and where they stand. Raises InputError."""
    document = read_document(path)
    data = document.data.get("maestro") if isinstance(document.data, dict) else None
    if not isinstance(data, dict) or set(data) != set(PARTS):
        message = f"{path} is no file that was written beside MAESTRO's: it lacks maestro: {', '.join(PARTS)}"
        raise InputError(message, hint="MAESTRO reads a mapping file and a hardware file")
    inputs = InputSet(
        problem=validate(Problem, document.at("maestro", "problem")),
        architecture=validate(Architecture, document.at("maestro", "architecture")),
        mapping=validate(Mapping, document.at("maestro", "mapping")),
    )
    return inputs, document
