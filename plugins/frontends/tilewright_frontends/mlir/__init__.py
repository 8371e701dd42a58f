"""`mlir`: tensor products in an MLIR module (StableHLO, TOSA, linalg, affine, torch, TensorFlow, onnx-mlir, COMET).

Every other operation is listed with its reason. Nothing is executed and no weight is read, because
shapes are sufficient. A child process with limits of time and memory reads the file.
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
"""CPU time for reading a file, and again for every MiB of it; xdsl needs 2 to 4 s per MiB."""
MEMORY, LARGE, MEMORY_OF_LARGE = 768 * _MEBIBYTE, 8 * _MEBIBYTE, 2048 * _MEBIBYTE
"""Memory for a file, size of a large file, memory for a large file; all in bytes.

xdsl needs up to 45 times the size of the file.
"""


class MlirFrontend:
    """A frontend that reads .mlir files."""

    def __init__(self, options: MlirOptions) -> None:
        self.options = options

    def recognises(self, source: str) -> bool:
        return source.endswith(".mlir")

    def load(self, source: str) -> Workload:
        """Return the workload of a module.

        Raises:
            InputError: the file is unreadable, a size is missing or unknown, or nothing can be
                mapped.
        """
        path = Path(source)
        name = path.name.removesuffix(".mlir").removesuffix(".generic") or path.name
        size = os.path.getsize(path) if is_file(path) else 0
        seconds, memory = SECONDS * (1 + size // _MEBIBYTE), MEMORY if size < LARGE else MEMORY_OF_LARGE
        words = (name, source, self.options.batch, self.options.sizes)
        return read_limited(read_file, path, *words, seconds=seconds, memory=memory)


def read_file(path: Path, name: str, source: str, batch: int | None, sizes: Mapping[str, int]) -> Workload:
    """Read a module as a workload. Raises InputError."""
    return read_workload(read(path), name, source, batch, sizes)
