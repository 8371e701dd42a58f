"""MACs of real ONNX files: `python -m support.real_networks FOLDER ...` compares those in folders with `tests/data/onnx/macs.tsv`.

The table has 149 files of the package onnx, and 26 of other packages and repositories: PP-OCR, ddddocr, magika, silero-vad,
ZigZag's workloads and the networks of MLPerf Tiny. Open dimensions are 1 for a batch, and 64 otherwise.
"""

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx

from tilewright.errors import InputError
from tilewright.schema.workload import Workload
from tilewright_frontends.onnx import read_file

TABLE = Path(__file__).parents[1] / "data" / "onnx" / "macs.tsv"
SHIPPED = Path(onnx.__file__).parent / "backend" / "test" / "data"
FOLDERS = "light", "pytorch-operator", "pytorch-converted", "simple"


def shipped() -> list[Path]:
    """Return the networks and exports that come with the package onnx, large ones first."""
    return [path for folder in FOLDERS for path in sorted((SHIPPED / folder).glob("**/*.onnx"))]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def recorded() -> dict[str, tuple[int, int]]:
    """Return the layers and the MACs of each file, by its digest."""
    rows = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:])
    return {key: (int(layers), int(macs)) for key, _, layers, macs in rows}


def read(path: Path) -> Workload:
    """Return a network, with sizes for its open dimensions."""
    batch: int | None = None
    sizes = dict[str, int]()
    while True:
        try:
            return read_file(path, path.stem, path.name, batch, sizes)
        except InputError as error:
            names = re.findall(r"--size (\S+)=", error.hint or "")
            if "--batch 1" in (error.hint or "") and batch is None:
                batch = 1
            elif names and not {*names} & sizes.keys():
                sizes |= dict.fromkeys(names, 64)
            else:
                raise


def compared(paths: Iterator[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the files that the table has, and whether their layers and MACs are as recorded."""
    known = recorded()
    for path in paths:
        if (key := digest(path)) in known:
            work = read(path)
            yield path, (sum(layer.count for layer in work.layers), work.macs) == known[key]


if __name__ == "__main__":
    every = list(compared(path for folder in (SHIPPED, *map(Path, sys.argv[1:])) for path in folder.glob("**/*.onnx")))
    for path, equal in every:
        if not equal:
            print(f"differs: {path}")
    print(f"{sum(equal for _, equal in every)} equal of {len(every)}")
