"""The estimator `cacti`: runs the CACTI program once per size, with Accelergy's settings.

CACTI accepts arrays of at least 32 bits by 64 rows per bank, at 22, 32, 45, 65 and 90 nm. Other
sizes are extrapolated like in hwcomponents. Small arrays are scaled from the next larger array.
Other nodes are interpolated linearly, and nodes below 22 nm are scaled from 22 nm.
"""

from __future__ import annotations

import csv
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from tilewright.errors import PluginError, Reason
from tilewright.plugin.estimator import Accuracy, Attribute, Estimate
from tilewright_estimators import ARRAYS, CactiOptions, arrays
from tilewright_estimators.grid import Figures
from tilewright_estimators.sizes import Refused, check_asked

NODES = (22, 32, 45, 65, 90)
MIN_NM = 7
MIN_WIDTH, MIN_ROWS = 32, 64
"""Minimum bits of an access, and rows of a bank."""
MAX_BYTES, MAX_WIDTH, MAX_BANKS, MAX_PORTS = 2**28, 2**13, 64, 4
CELL = "itrs-lstp, 6T"
SOURCE = "CACTI with Accelergy's settings at 300 K, run for this size"
VALID = "32 bits or wider, 64 rows per bank or more, 22, 32, 45, 65 or 90 nm"
COLUMNS = {
    "read_pj": ("Dynamic read energy (nJ)", 1e3),
    "write_pj": ("Dynamic write energy (nJ)", 1e3),
    "leak_mw": ("Standby leakage per bank(mW)", 1.0),
    "area_um2": ("Area (mm2)", 1e6),
}
"""Field of `Figures` -> CACTI's column and the factor of its unit."""


@dataclass(frozen=True)
class CactiEstimator:
    """The estimator. It stores the results of its runs, so that equal questions run CACTI once."""

    options: CactiOptions
    _known: dict[tuple[float, int, int, int, int], Figures] = field(default_factory=dict, compare=False, repr=False)

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        """Return the estimate of one action, or the reason why there is none.

        Raises:
            PluginError: the program cannot be started, exceeds its time limit, or prints no table.
        """
        try:
            check_asked(component, action, ARRAYS)
            if not MIN_NM <= technology_nm <= NODES[-1]:
                raise Refused("technology", f"{technology_nm:g} nm; expected {MIN_NM} to {NODES[-1]} nm")
            return arrays.estimate(
                component,
                attributes,
                action,
                technology_nm,
                lambda sizes: self._at(technology_nm, sizes),
                lambda sizes: _accuracy(technology_nm, sizes),
            )
        except Refused as refused:
            return refused.reason

    def _at(self, node: float, sizes: dict[str, float]) -> Figures:
        """Return the costs of an array at any node."""
        if node < NODES[0]:
            scale = node / NODES[0]
            return _scaled(self._array(NODES[0], sizes), math.sqrt(scale), 0.79 * math.sqrt(scale), scale)
        low, high = max(size for size in NODES if size <= node), min(size for size in NODES if size >= node)
        if low == high:
            return self._array(low, sizes)
        part = (node - low) / (high - low)
        ends = self._array(low, sizes), self._array(high, sizes)
        return Figures(*((1 - part) * getattr(ends[0], name) + part * getattr(ends[1], name) for name in COLUMNS))

    def _array(self, node: int, sizes: dict[str, float]) -> Figures:
        """Return the costs of an array at a node that CACTI supports.

        An array that is too small is scaled from the next larger one that CACTI accepts.
        """
        width, banks = _smallest_array(sizes)
        rows = sizes["size_bits"] / sizes["width_bits"]
        most = max(rows, MIN_ROWS * sizes["banks"])
        wide, deep = sizes["width_bits"] / width, rows / most
        figures = self._run(node, int(width * most // 8), width // 8, banks, int(sizes["ports"]))
        return _scaled(figures, (0.7 * wide + 0.3) * deep**0.78, wide * deep, wide * deep)

    def _run(self, node: int, size: int, block: int, banks: int, ports: int) -> Figures:
        """Return CACTI's result for an array; sizes in bytes."""
        key = (node, size, block, banks, ports)
        if key not in self._known:
            asked = "\n".join(
                (
                    f"-size (bytes) {size}",
                    f"-read-write port {ports}",
                    f"-block size (bytes) {block}",
                    f"-technology (u) {node / 1000}",
                    f"-output/input bus width {8 * block}",
                    f"-UCA bank {banks}",
                )
            )
            self._known[key] = self._read(self._printed(asked), banks)
        return self._known[key]

    def _printed(self, asked: str) -> str:
        """Return the table that CACTI writes next to its input file."""
        program = shutil.which(os.path.expanduser(self.options.program))
        if program is None:
            raise PluginError(f"there is no program {self.options.program}", hint="--estimator-option program=PATH")
        settings = (files(__package__) / "cacti.cfg").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
            file = Path(name) / "array.cfg"
            file.write_text(f"{settings}{asked}\n", encoding="utf-8")
            try:  # CACTI looks for its technology tables in the working directory
                done = subprocess.run(
                    [os.path.abspath(program), "-infile", str(file)],
                    cwd=Path(program).resolve().parent,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=self.options.seconds,
                )
            except subprocess.TimeoutExpired:
                raise PluginError(f"CACTI took longer than {self.options.seconds:g} s") from None
            except OSError as error:
                raise PluginError(f"CACTI could not be started: {error}") from None
            table = file.with_suffix(".cfg.out")
            if not table.is_file():
                said = done.stdout.decode("utf-8", "replace").strip().splitlines() or ["nothing"]
                raise Refused(
                    "cacti", f"CACTI refused the array (exit code {done.returncode}); its last line: {said[-1]}"
                )
            return table.read_text(encoding="utf-8", errors="replace")

    def _read(self, table: str, banks: int) -> Figures:
        rows = list(csv.DictReader(table.splitlines(), skipinitialspace=True))
        try:
            columns = {name: float(rows[-1][column]) * factor for name, (column, factor) in COLUMNS.items()}
        except (LookupError, TypeError, ValueError) as error:
            raise PluginError(f"CACTI's table cannot be read: {error}") from None
        return Figures(**columns | {"leak_mw": columns["leak_mw"] * banks})


def _smallest_array(sizes: dict[str, float]) -> tuple[int, int]:
    """Return the smallest width in bits, and the banks, that CACTI accepts. Raises Refused."""
    banks, ports = int(sizes["banks"]), int(sizes["ports"])
    if banks > MAX_BANKS or banks & (banks - 1):
        raise Refused("range", f"{banks} banks; expected 1, 2, 4 ... {MAX_BANKS}")
    if ports > MAX_PORTS or ports & (ports - 1):
        raise Refused("range", f"{ports} ports; expected 1, 2 or {MAX_PORTS}")
    if (
        sizes["size_bits"] > 8 * MAX_BYTES
        or sizes["width_bits"] > MAX_WIDTH
        or sizes["size_bits"] < sizes["width_bits"]
    ):
        raise Refused(
            "range",
            f"the array is too large or too small; expected one row to {MAX_BYTES:,} bytes, at most {MAX_WIDTH:,} bits wide",
        )
    return max(MIN_WIDTH, 8 * math.ceil(sizes["width_bits"] / 8)), banks


def _scaled(figures: Figures, energy: float, leakage: float, area: float) -> Figures:
    return Figures(
        figures.read_pj * energy, figures.write_pj * energy, figures.leak_mw * leakage, figures.area_um2 * area
    )


def _accuracy(node: float, sizes: dict[str, float]) -> Accuracy:
    rows = sizes["size_bits"] / sizes["width_bits"]
    small = sizes["width_bits"] < MIN_WIDTH or sizes["width_bits"] % 8 or rows < MIN_ROWS * sizes["banks"]
    exact = node in NODES and not small
    error = "none against CACTI" if exact else "extrapolated from CACTI by hwcomponents' rules, not measured"
    return Accuracy(source=SOURCE, error=error, valid=VALID, cell=CELL)
