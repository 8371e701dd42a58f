"""What compiled functions keep on disk, and what they use of numba and llvmlite."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from support import ROOT
from tilewright.compiled import for_kernel, passed_by_pointer

pytestmark = pytest.mark.process

PART = """
from tilewright.compiled import kernel_part

@kernel_part
def grow(number: int) -> int:
    return number + {step}
"""
KERNEL = """
from part import grow
from tilewright.compiled import compiled

@compiled
def twice(number: int) -> int:
    return grow(grow(number))

print(twice(1), sum(twice.stats.cache_hits.values()))
"""


def ran(folder: Path, program: str, kept: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(kept or "")}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)


def run(folder: Path, kept: Path | None = None) -> list[str]:
    return ran(folder, "import kernel", kept).stdout.split()


def test_a_change_of_a_part_in_another_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "part.py").write_text(PART.format(step=1))
    assert run(tmp_path) == ["3", "0"] and run(tmp_path) == ["3", "1"]
    (tmp_path / "part.py").write_text(PART.format(step=10))
    assert run(tmp_path) == ["21", "0"]


def test_environments_with_the_same_code_share_what_is_kept(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a", "b", "c")]
    for place, step in zip(places, (1, 1, 10), strict=True):
        place.mkdir()
        (place / "kernel.py").write_text(KERNEL)
        (place / "part.py").write_text(PART.format(step=step))
    kept = tmp_path / "kept"
    assert [run(place, kept) for place in places] == [["3", "0"], ["3", "1"], ["21", "0"]]
    assert run(places[0], kept) == ["3", "1"]
    assert not list(tmp_path.rglob("__pycache__/*.nbi"))


INTERRUPTED = """
import signal

from llvmlite.binding import ExecutionEngine

from tilewright.interrupts import preserving_results

signal.signal(signal.SIGINT, signal.default_int_handler)
set_callbacks = ExecutionEngine.set_object_cache
pressed = []


def set_interrupting(engine, notify, get):
    def interrupted(*arguments):
        if not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
        notify(*arguments)

    set_callbacks(engine, interrupted, get)


ExecutionEngine.set_object_cache = set_interrupting
try:
    with preserving_results():
        import kernel
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_while_llvm_calls_back_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "part.py").write_text(PART.format(step=1))
    found = ran(tmp_path, INTERRUPTED)
    assert (found.stdout, found.stderr) == ("interrupted\n", "")


@passed_by_pointer
class Inner(NamedTuple):
    most: float
    open: bool


@passed_by_pointer
class Outer(NamedTuple):
    number: int
    sizes: NDArray[np.int64]
    rows: NDArray[np.float64]
    flags: NDArray[np.bool_]
    inner: Inner
    narrow: np.int8


def total(outer: Outer, step: int) -> float:
    found = 0.0
    for i in range(len(outer.sizes)):
        for j in range(outer.rows.shape[1]):
            outer.rows[i, j] += step * outer.sizes[i]
            found += outer.rows[i, j] if outer.flags[j] else -outer.inner.most
    row = outer.rows[1]
    return float(found + outer.number * row[2] + (outer.narrow if outer.inner.open else 0) + outer.rows.strides[0])


TOTAL: Any = numba.njit(total)


def outer_of(rows: NDArray[np.float64]) -> Outer:
    flags = for_kernel(np.array([True, False, True]))
    return Outer(-7, np.array([3, 1 << 40]), rows, flags, Inner(0.5, True), np.int8(-3))


def test_structures_read_as_the_named_tuples_that_they_are() -> None:
    plain, kernel = (outer_of(np.arange(6.0).reshape(2, 3)) for _ in range(2))
    assert [TOTAL(kernel, step) for step in (1, 2)] == [total(plain, step) for step in (1, 2)]
    assert (kernel.rows == plain.rows).all()
    assert len(TOTAL.signatures) == 1


def test_structures_have_arrays_without_gaps_alone() -> None:
    with pytest.raises(TypeError, match="Outer.rows is array.*an array without gaps"):
        TOTAL(outer_of(np.arange(12.0).reshape(2, 6)[:, ::2]), 1)


PUBLIC = re.compile(
    r"numba(\.(njit|types|extending|core\.event|config|__version__)|\.(types|extending)\.[a-zA-Z]\w*|\.core\.event\.\w+"
    r"|\.config\.[A-Z_]+)?|llvmlite\.ir(\.[a-zA-Z]\w*)?"
)


def used(source: str) -> Iterator[str]:
    """Full names that a module imports or reads from numba and llvmlite."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        yield from (name for name in names if re.match(r"(numba|llvmlite)(\.[\w.]+)?$", name))


def test_only_public_interfaces_of_numba_and_llvmlite_are_used() -> None:
    files = [path for folder in ("core", "plugins", "adapters") for path in (ROOT / folder).rglob("*.py")]
    names = {(path.relative_to(ROOT), name) for path in files for name in used(path.read_text(encoding="utf-8"))}
    assert {"numba.extending.register_jitable", "llvmlite.ir"} <= {name for _, name in names}
    assert [f"{path}: {name}" for path, name in sorted(names) if not PUBLIC.fullmatch(name)] == []


@pytest.mark.parametrize(
    "source",
    (
        "from numba import _dynfunc",
        "from numba.core import cgutils, event",
        "import numba.core.compiler as compiler",
        "import numba; numba.core.codegen",
        "from numba.core.codegen import JITCodeLibrary",
        "import llvmlite.binding",
        "from llvmlite import binding",
    ),
)
def test_private_interfaces_are_recognised(source: str) -> None:
    assert not all(PUBLIC.fullmatch(name) for name in used(source))
