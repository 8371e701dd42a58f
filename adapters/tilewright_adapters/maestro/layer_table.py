"""Tables of layers (CSV) of GAMMA and the tools that follow it, as text of MAESTRO."""

from __future__ import annotations

import csv
from io import StringIO

from tilewright.errors import InputError, Location

HEADERS = (("K", "C", "Y", "X", "R", "S"), ("M", "N", "K"), ("O", "I"))
"""First columns of a table: convolutions, matrix products, fully connected layers. The last column is T."""
_CONV, _DEPTHWISE, _PRODUCT, _CONNECTED = "1", "2", "3", "0"


def is_layer_table(text: str) -> bool:
    """Return whether the first line is the header of a table of layers."""
    header = [word.strip() for word in text.partition("\n")[0].split(",")]
    return (
        len(header) == 7 and header[-1] == "T" and any(tuple(header[: len(columns)]) == columns for columns in HEADERS)
    )


def maestro_text(text: str, source: str) -> str:
    """Return a network of MAESTRO, with each layer `L1`, `L2`, ... on the line of its row.

    The columns are sizes as in MAESTRO: Y and X are those of the input, with stride 1. T is the
    type: 0 fully connected (O, I), 1 convolution, 2 depthwise, 3 matrix product (M, N, K).

    Raises:
        InputError: a row is invalid; with file and line.
    """
    lines = ["Network layers {"]
    rows = list(csv.reader(StringIO(text)))[1:]
    for number, row in enumerate(rows, start=2):
        words = [word.strip() for word in row]
        if not any(words):
            lines.append("")
            continue
        place = Location(source, number)
        if len(words) != 7 or not all(word.isdecimal() for word in words):
            raise InputError("expected seven whole numbers: six sizes and the type T", location=place)
        *sizes, kind = words
        if kind not in (_CONV, _DEPTHWISE, _PRODUCT, _CONNECTED):
            raise InputError(
                f"type {kind}; expected 0 (fully connected), 1, 2 (depthwise) or 3 (product)", location=place
            )
        if kind == _PRODUCT:
            m, n, k = sizes[:3]
            sizes = [n, k, m, "1", "1", "1"]
        elif kind == _CONNECTED:
            sizes = [*sizes[:2], "1", "1", "1", "1"]
        dimensions = ", ".join(f"{name}: {size}" for name, size in zip("KCYXRS", sizes, strict=True))
        name = "DSCONV" if kind == _DEPTHWISE else "CONV"
        lines.append(f"Layer L{number - 1} {{ Type: {name} Dimensions {{ {dimensions} }} }}")
    return "\n".join(lines) + " }\n"
