"""`mlir`: the products of tensors in a module of MLIR (StableHLO, TOSA, linalg, affine, TensorFlow); every other
operation is listed with its reason.

Nothing is executed and no weight is read: shapes are enough. What reads a file does so in a child process with limits of
time and memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tilewright.files import is_file
from tilewright.schema.workload import Workload
from tilewright_frontends import MlirOptions
from tilewright_frontends.limits import read_limited
from tilewright_frontends.mlir.module import read_workload
from tilewright_frontends.mlir.parse import read

_MEBIBYTE = 2**20
SECONDS = 5
"""CPU time for reading a file, and so much again for every MiB of it, of which xdsl reads one in 2 to 4 s."""
MEMORY, LARGE, MEMORY_OF_LARGE = 768 * _MEBIBYTE, 8 * _MEBIBYTE, 2048 * _MEBIBYTE
"""Bytes for reading a file, of so many bytes or more, too: xdsl takes up to 45 times its size."""


class MlirFrontend:
    """Loads .mlir files."""

    def __init__(self, options: MlirOptions) -> None:
        self.options = options

    def recognises(self, source: str) -> bool:
        return source.endswith(".mlir")

    def load(self, source: str) -> Workload:
        """Raises InputError: unreadable files, sizes that are missing or do not exist, nothing to map."""
        path = Path(source)
        name = path.name.removesuffix(".mlir").removesuffix(".generic") or path.name
        size = os.path.getsize(path) if is_file(path) else 0
        seconds, memory = SECONDS * (1 + size // _MEBIBYTE), MEMORY if size < LARGE else MEMORY_OF_LARGE
        words = (name, source, self.options.batch, self.options.sizes)
        return read_limited(read_file, path, *words, seconds=seconds, memory=memory)


def read_file(path: Path, name: str, source: str, batch: int | None, sizes: Mapping[str, int]) -> Workload:
    """Raises InputError."""
    return read_workload(read(path), name, source, batch, sizes)
