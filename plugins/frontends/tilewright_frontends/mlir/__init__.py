"""`mlir`: the products of tensors in a module of MLIR (StableHLO, TOSA, linalg, affine, TensorFlow); every other
operation is listed with its reason.

Nothing is executed and no weight is read: shapes are enough.
"""

from __future__ import annotations

from pathlib import Path

from tilewright.schema.workload import Workload
from tilewright_frontends import MlirOptions
from tilewright_frontends.mlir.module import read_workload
from tilewright_frontends.mlir.parse import read


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
        return read_workload(read(path), name, source, self.options.batch, self.options.sizes)
