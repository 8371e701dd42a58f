"""Reader of topologies: each line is a layer, a convolution on a padded input or a product of matrices."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tilewright import Problem, Workload
from tilewright.errors import InputError, Location
from tilewright.plugin import Layer
from tilewright_scalesim import TopologyOptions

GEMM = ("m", "n", "k")
CONVOLUTION = ("height", "width", "height", "width", "channels", "filter", "stride")
"""Words in the columns after the name, in their order. A second stride is that along the width."""
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Topology:
    """Frontend without state except its options."""

    options: TopologyOptions

    def recognises(self, source: str) -> bool:
        """Return whether the source is a CSV file."""
        return source.endswith(".csv")

    def load(self, source: str) -> Workload:
        """Return the layers; raise InputError with file and line."""
        (_, header), *rows = _rows(source)
        titles = [title.lower() for title in header[1:]]
        product = tuple(titles) == GEMM
        if not product and not _is_convolution(titles):
            raise InputError(
                f"the columns are {', '.join(header)}",
                location=Location(source, 1),
                hint="expected a name with M, N, K, or with sizes of input and filter, channels, filters and strides",
            )
        layers = []
        for line, row in rows:
            try:
                sizes = [int(cell) for cell in row[1:]]
                if len(sizes) != len(titles) or min(sizes) < 1:
                    raise ValueError(f"{len(titles)} whole numbers from 1 are expected")
                data = self._product(*sizes) if product else self._convolution(*sizes)
                name = re.sub(r"\W+", "_", row[0]).strip("_") or f"line_{line}"
                layers.append(Layer(problem=Problem.model_validate({"name": name} | data)))
            except ValueError as error:
                raise InputError(_first(error), location=Location(source, line)) from None
        try:
            return Workload(name=re.sub(r"\W+", "_", Path(source).stem), source=source, layers=tuple(layers))
        except ValidationError as error:
            raise InputError(_first(error), location=Location(source)) from None

    def _product(self, m: int, n: int, k: int) -> dict[str, Any]:
        return {
            "operation": "gemm",
            "dimensions": {"M": m * self.options.batch, "N": n, "K": k},
            "tensors": _tensors(["M", "K"], ["K", "N"], ["M", "N"]),
        }

    def _convolution(
        self, rows: int, columns: int, high: int, wide: int, channels: int, filters: int, down: int, along: int = 0
    ) -> dict[str, Any]:
        along = along or down
        if high > rows or wide > columns:
            raise ValueError(f"a filter of {high} x {wide} does not fit an input of {rows} x {columns}")
        outputs = {"P": (rows - high) // down + 1, "Q": (columns - wide) // along + 1}
        whole = ["N", "C", f"{down}*P + R", f"{along}*Q + S"]
        return {
            "operation": "conv2d",
            "dimensions": {"N": self.options.batch, "K": filters, "C": channels, **outputs, "R": high, "S": wide},
            "tensors": _tensors(whole, ["K", "C", "R", "S"], ["N", "K", "P", "Q"]),
        }


def _is_convolution(titles: list[str]) -> bool:
    """Return whether the columns are those of CONVOLUTION, perhaps with a second stride."""
    words = (*CONVOLUTION, "stride")
    return len(titles) in (7, 8) and all(word in title for title, word in zip(titles, words, strict=False))


def _tensors(*projections: list[str]) -> list[dict[str, Any]]:
    names = (("Ifmap", "input"), ("Filter", "weight"), ("Ofmap", "output"))
    return [{"name": name, "role": role, "projection": p} for (name, role), p in zip(names, projections, strict=True)]


def _rows(source: str) -> list[tuple[int, list[str]]]:
    """Return lines that are not empty, with their numbers. SCALE-Sim ends each with a comma."""
    try:
        if Path(source).stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        with open(source, encoding="utf-8", newline="") as file:
            lines = list(enumerate(csv.reader(file, strict=True), start=1))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot read {source[:200]!r}: {error}", hint="give a CSV file in UTF-8") from None
    rows = [(line, [cell.strip() for cell in row]) for line, row in lines]
    rows = [(line, row[:-1] if row and not row[-1] else row) for line, row in rows if any(row)]
    if len(rows) < 2:
        raise InputError("the file has no layer", location=Location(source))
    return rows


def _first(error: ValueError) -> str:
    return error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
