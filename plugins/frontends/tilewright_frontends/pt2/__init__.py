"""`pt2`: programs written by `torch.export.save`, read without torch.

The file is an archive with JSON; nothing is executed or unpickled. A child process with limits of
time and memory reads the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tilewright.schema.workload import Workload
from tilewright_frontends import Pt2Options
from tilewright_frontends.limits import read_limited
from tilewright_frontends.nests import refusing
from tilewright_frontends.pt2.archive import read_program
from tilewright_frontends.pt2.program import read_workload

SECONDS = 30
"""CPU time for reading a file, whose JSON has at most `archive.MAX_BYTES`."""
MEMORY = 2048 * 2**20
"""Memory for reading a file, in bytes."""


class Pt2Frontend:
    """A frontend that reads .pt2 files."""

    def __init__(self, options: Pt2Options) -> None:
        self.options = options

    def recognises(self, source: str) -> bool:
        return source.endswith(".pt2")

    def load(self, source: str) -> Workload:
        """Return the workload of a program.

        Raises:
            InputError: the file is unreadable or of another version, a size is missing or unknown,
                or nothing can be mapped.
        """
        words = (source, self.options.batch, self.options.sizes)
        return read_limited(read_file, Path(source), *words, seconds=SECONDS, memory=MEMORY)


def read_file(path: Path, source: str, batch: int | None, sizes: Mapping[str, int]) -> Workload:
    """Read a program as a workload. Raises InputError."""
    program = read_program(path)
    with refusing(f"{source} is not a valid exported program"):
        return read_workload(program, path.stem, source, batch, sizes)
