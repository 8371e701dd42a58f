"""Vela's estimates of single convolutions on an Ethos-U55, for benchmarks/silicon.py. It needs the package ethos-u-vela.

    python benchmarks/vela.py                 # the convolutions of benchmarks/silicon/nvdla.csv; writes silicon/ethos_u.csv

Each convolution becomes a .tflite file of int8 values with random weights. Strides above 3 are left out, which the NPU lacks.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent / "silicon"
VELA = "vela"
OPTIONS = "--accelerator-config ethos-u55-256 --verbose-performance".split()
COLUMNS = {"npu_cycles": "NPU", "sram_cycles": "SRAM AC", "flash_cycles": "OffFlash AC", "cycles": "Op Cycles"}
INT8, INT32 = 9, 2
"""Types of tensors in the schema of TensorFlow Lite."""


class Writer:
    """A file of TensorFlow Lite, table by table."""

    def __init__(self) -> None:
        self.builder: Any = import_module("flatbuffers").Builder(1 << 16)

    def table(self, kind: str, **fields: Any) -> Any:
        """Write a table; lists of tables, arrays and texts come before it."""
        module, written = import_module(f"ethosu.vela.tflite.{kind}"), {}
        for name, value in fields.items():
            if isinstance(value, str):
                value = self.builder.CreateString(value)
            elif isinstance(value, np.ndarray):
                value = self.builder.CreateNumpyVector(value)
            elif isinstance(value, list):
                getattr(module, f"{kind}Start{name}Vector")(self.builder, len(value))
                for table in reversed(value):
                    self.builder.PrependUOffsetTRelative(table)
                value = self.builder.EndVector()
            written[name] = value
        getattr(module, f"{kind}Start")(self.builder)
        for name, value in written.items():
            getattr(module, f"{kind}Add{name}")(self.builder, value)
        return getattr(module, f"{kind}End")(self.builder)

    def tensor(self, name: str, shape: Sequence[int], kind: int, buffer: int, scale: float) -> Any:
        values = {"Scale": np.full(1, scale, np.float32), "ZeroPoint": np.zeros(1, np.int64)}
        quantised = self.table("QuantizationParameters", **values)
        return self.table(
            "Tensor", Shape=np.array(shape, np.int32), Type=kind, Buffer=buffer, Name=name, Quantization=quantised
        )


def convolution(file: Path, channels: int, size: int, filters: int, window: int, stride: int, same: bool) -> int:
    """Write one convolution, and return its rows of results."""
    rows = -(-size // stride) if same else (size - window) // stride + 1
    weights = np.random.default_rng(0).integers(-127, 127, (filters, window, window, channels), dtype=np.int8)
    to = Writer()
    texts: list[Any] = [{}, {"Data": weights.reshape(-1).view(np.uint8)}, {"Data": np.zeros(4 * filters, np.uint8)}]
    buffers = [to.table("Buffer", **fields) for fields in texts]
    tensors = [
        to.tensor("in", (1, size, size, channels), INT8, 0, 0.05),
        to.tensor("weights", weights.shape, INT8, 1, 0.05),
        to.tensor("bias", (filters,), INT32, 2, 0.0025),
        to.tensor("out", (1, rows, rows, filters), INT8, 0, 0.05),
    ]
    ways = {"StrideW": stride, "StrideH": stride, "DilationWFactor": 1, "DilationHFactor": 1}
    options = to.table("Conv2DOptions", Padding=0 if same else 1, **ways)
    inputs, outputs = np.array([0, 1, 2], np.int32), np.array([3], np.int32)
    one = to.table(
        "Operator", OpcodeIndex=0, Inputs=inputs, Outputs=outputs, BuiltinOptionsType=1, BuiltinOptions=options
    )
    graph = to.table("SubGraph", Tensors=tensors, Inputs=inputs[:1], Outputs=outputs, Operators=[one], Name="main")
    code = to.table("OperatorCode", BuiltinCode=3, DeprecatedBuiltinCode=3, Version=1)
    model = to.table("Model", Version=3, OperatorCodes=[code], Subgraphs=[graph], Description="", Buffers=buffers)
    to.builder.Finish(model, b"TFL3")
    file.write_bytes(to.builder.Output())
    return rows


def estimated(folder: Path, *sizes: int) -> dict[str, int]:
    """Return Vela's cycles of a convolution, and its rows of results."""
    channels, size, filters, window, stride, same = sizes
    rows = convolution(folder / "one.tflite", channels, size, filters, window, stride, bool(same))
    words = [VELA, "one.tflite", *OPTIONS, "--output-dir", "out"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    with (folder / "out/one_per-layer.csv").open(newline="") as text:
        parts = list(csv.DictReader(text))
    return {"P": rows} | {key: sum(int(float(part[name])) for part in parts) for key, name in COLUMNS.items()}


def main() -> None:
    with (FOLDER / "nvdla.csv").open(newline="") as text:
        given = list(csv.DictReader(text))
    told: dict[tuple[int, ...], dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in given:
            channels, size, filters, window, stride, rows = (int(row[name]) for name in "C H K R stride P".split())
            same = int(window == 1 or rows == -(-size // stride))
            key = channels, size, filters, window, stride, same
            if stride <= 3 and key not in told:
                named = dict(zip("C H K R stride same".split(), key, strict=True))
                told[key] = {"network": row["network"], "layer": row["layer"], **named, **estimated(Path(folder), *key)}
                print(told[key], file=sys.stderr, flush=True)
    with (FOLDER / "ethos_u.csv").open("w", newline="") as text:
        table = csv.DictWriter(text, next(iter(told.values())), lineterminator="\n")
        table.writeheader()
        table.writerows(told.values())


if __name__ == "__main__":
    main()
