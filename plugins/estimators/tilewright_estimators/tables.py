"""The estimator `tables`: tabulated costs of arrays (CACTI), compute units (Aladdin) and DRAM.

It needs no other program. It refuses sizes that its tables do not cover.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.errors import Reason
from tilewright.plugin.estimator import COMPONENTS, Accuracy, Attribute, Estimate
from tilewright_estimators import arithmetic, arrays
from tilewright_estimators.grid import Figures, Sram, cacti_grid
from tilewright_estimators.sizes import Refused, check_asked

GRID = Accuracy(
    source="CACTI 7 with Accelergy's settings at 300 K, 1,570 runs, log-log between them",
    error="of 160 runs between its points, median / 9 of 10 / worst: read 3 / 12 / 28 %, write 2 / 8 / 20 %, area 3 / 8 / 28 %, "
    "leakage 3 / 16 / 41 %",
    valid="512 B to 4 MiB, 32 to 512 bits wide, 1 to 32 banks of 64 rows or more, one port, 22 to 90 nm",
    cell="itrs-lstp, 6T",
)


@dataclass(frozen=True)
class TablesEstimator:
    """The estimator; its answers are the same on every host."""

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        try:
            check_asked(component, action, COMPONENTS)
            if component not in ("sram", "smart_buffer"):
                return arithmetic.estimate(component, attributes, technology_nm)
            return arrays.estimate(
                component,
                attributes,
                action,
                technology_nm,
                lambda sizes: _figures(sizes, technology_nm),
                lambda _: GRID,
            )
        except Refused as refused:
            return refused.reason


def _figures(sizes: dict[str, float], node: float) -> Figures:
    if sizes["ports"] != 1:
        raise Refused("range", f"{sizes['ports']:g} ports; the grid has one that reads and writes")
    grid, width = cacti_grid(), sizes["width_bits"]
    try:
        return grid.at(Sram(node, sizes["size_bits"] / 8, width, int(sizes["banks"])))
    except ValueError as error:
        least = grid.axes[2][0]
        wider = f"; block_words: {math.ceil(least / width)} makes accesses wide enough" if 0 < width < least else ""
        raise Refused("range", f"{error}{wider}") from None
