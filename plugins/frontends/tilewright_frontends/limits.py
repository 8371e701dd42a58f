"""Reading of untrusted files in a child process with limits of time and memory.

Parsers, C++ code included, may run for ever or crash their process.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tilewright.child import ChildFailed, limited
from tilewright.errors import InputError
from tilewright.schema.workload import Workload


def read_limited(read: Callable[..., Workload], path: Path, *words: object, seconds: int, memory: int) -> Workload:
    """Return the result of `read(path, *words)`, called in a child process.

    Args:
        read: the function to call.
        path: the file to read.
        words: further arguments.
        seconds: limit of CPU time.
        memory: limit in bytes.

    Raises:
        InputError: `read` raised it, or exceeded a limit.
    """
    try:
        workload: Workload = limited(read, path, *words, seconds=seconds, memory=memory)
    except ChildFailed as failure:
        raise InputError(f"{path} cannot be read: the reading process {failure}") from None
    return workload
