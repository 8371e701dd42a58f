"""Files of others are read in a child process that may take only so much: what reads them, C++ code included, may take for ever
or end the program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tilewright.child import NoAnswer, limited
from tilewright.errors import InputError
from tilewright.schema.workload import Workload


def read_limited(read: Callable[..., Workload], path: Path, *words: object, seconds: int, memory: int) -> Workload:
    """What `read(path, *words)` returns, in a child with `seconds` of CPU time and `memory` bytes.

    Raises InputError: what `read` raises, and that it takes more.
    """
    try:
        found: Workload = limited(read, path, *words, seconds=seconds, memory=memory)
    except NoAnswer as failure:
        raise InputError(f"{path} cannot be read: the process that did so {failure}") from None
    return found
