"""Programs that stand for `timeloop-model`: one that behaves, and some that do not.

They are written when they are asked for, into a folder that goes when Python ends.
"""

import atexit
import functools
import shutil
import sys
import tempfile
from pathlib import Path

_PRINT = """
def show(levels, computes, compute_energy, cycles, energy):
    out = ["Buffer and Arithmetic Levels", "----------------------------", "Level 0", "-------", "=== MAC ===", ""]
    out += ["    SPECS", "    -----", "    Word bits             : 16", "", "    STATS", "    -----"]
    out += [f"    Computes (total)        : {computes}", f"    Cycles                  : {cycles}"]
    out += [f"    Energy (total)          : {compute_energy!r} pJ", ""]
    for number, name, tensors in levels:
        out += [f"Level {number}", "-------", f"=== {name} ===", "", "    SPECS", "    -----"]
        out += ["        Technology                   : SRAM", "        Size                         : 1", ""]
        out += ["    MAPPING", "    -------", "    Loop nest:", "      for K in [0:2)", "", "    STATS", "    -----"]
        out += [f"    Cycles               : {cycles}", "    Bandwidth throttling : 1.00"]
        for tensor, (partition, tile, instances, reads, fills, updates, pj) in tensors.items():
            out += [f"    {tensor}:"]
            for what, value in (
                ("Partition size", partition), ("Utilized capacity", tile), ("Utilized instances (max)", instances),
                ("Utilized clusters (max)", instances), ("Scalar reads (per-instance)", reads),
                ("Scalar fills (per-instance)", fills), ("Scalar updates (per-instance)", updates),
                ("Energy (per-instance)", "0.00 pJ"), ("Energy (total)", f"{pj!r} pJ"),
                ("Temporal Reduction Energy (total)", "0.00 pJ"),
            ):
                out += [f"        {what:<40} : {value}"]
        out += [""]
    out += ["Networks", "--------", "", "Summary Stats", "-------------", "Utilization: 1.00", f"Cycles: {cycles}"]
    out += [f"Energy: {energy / 1e6:.2f} uJ", "", f"Computes = {computes}"]
    with open("timeloop-model.stats.txt", "w") as file:
        file.write("\\n".join(out))
"""
_CHEAP = """
import re

text = open("map.yaml").read()
levels, cycles, computes = [], 1, 1
for part in re.split(r"\\n  - ", text)[1:]:
    part = " ".join(part.split())
    name = re.search(r"target: (\\S+?)[,} ]", part + " ")[1]
    if "type: bypass" in part:
        keep = re.search(r"keep: \\[(.*?)\\]", part)[1]
        levels.append((name, [word.strip() for word in keep.split(",") if word.strip()]))
        continue
    trips = 1
    for factor in re.findall(r"[A-Za-z]=(\\d+)", part):
        trips *= int(factor)
    computes *= trips
    cycles *= trips if "type: temporal" in part else 1
rows = [
    (len(levels) - index, name, {t: (1, 1, 1, cycles, 1, 0, float(cycles)) for t in keep})
    for index, (name, keep) in enumerate(levels)
]
total = computes + sum(float(cycles) for _, keep in levels for _ in keep)
show(rows[::-1], computes, float(computes), cycles, total)
"""
_GOOD = """
import sys
from pathlib import Path

from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

inputs = TimeloopAdapter().parse([Path(name) for name in sys.argv[1:]])
report = TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
if not report.valid:
    print("ERROR: couldn't map level:", report.reasons[0])
    sys.exit(1)
rows = []
for index, level in enumerate(report.levels):
    counts = {
        name: (c.partition_words, c.tile_words, c.instances, c.reads, c.fills, c.updates, c.energy_pj)
        for name, c in level.tensors.items()
    }
    if counts:
        rows.append((len(report.levels) - index, level.name, counts))
show(rows[::-1], report.macs, report.compute_energy_pj, report.cycles, report.energy_pj)
"""
_BAD = {
    "crashes": "import os, sys\nprint('about to fall', flush=True)\nos.abort()\n",
    "gives_up": "import sys\nprint('ERROR: parsing mapping: product of all factors is 7')\nsys.exit(1)\n",
    "fails_silently": "import sys\nsys.exit(3)\n",
    "writes_nothing": "print('done')\n",
    "hangs": "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\ntime.sleep(600)\n",
    "prints_garbage": "open('timeloop-model.stats.txt', 'wb').write(bytes(range(256)) * 50)\n",
    "prints_half": _PRINT + "show([], 1, 1.0, 1, 1.0)\n",
    "prints_nan": _PRINT + _CHEAP.replace("float(cycles))", "float('nan'))"),
    "adds_up_wrongly": _PRINT + _CHEAP.replace("cycles, total)", "cycles, 9e9)"),
    "knows_more_levels": _PRINT + _CHEAP.replace("len(levels) - index", "len(levels) - index + 1"),
}


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fake-timeloop-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def program(name: str) -> str:
    """Return the path of a fake program.

    `good` evaluates with the built-in model, `cheap` returns constant figures at once, and the others
    fail in the way of their name.
    """
    text = {"good": _PRINT + _GOOD, "cheap": _PRINT + _CHEAP}.get(name) or _BAD[name]
    flags = "" if name == "good" else " -IS"
    path = _folder() / name
    path.write_text(f"#!{sys.executable}{flags}\n{text}", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


BAD = tuple(_BAD)
