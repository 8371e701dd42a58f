"""A program that stands for CACTI: it answers what CACTI answered when it was run, and something plain for other arrays.

It is written when it is asked for, into a folder that goes when Python ends.
"""

import atexit
import functools
import shutil
import sys
import tempfile
from pathlib import Path

from support import ROOT

RUNS = ROOT / "tests" / "data" / "estimators" / "cacti_runs.csv"
_PROGRAM = """\
#!{python}
import csv, re, sys
text = open(sys.argv[2]).read()
asked = [float(re.search(rf"^-{{key}} +(\\S+)$", text, re.M)[1]) for key in (
    r"technology \\(u\\)", r"size \\(bytes\\)", r"block size \\(bytes\\)", "UCA bank", "read-write port")]
with open({runs!r}, newline="") as file:
    known = {{tuple(float(row[key]) for key in ("um", "bytes", "block_bytes", "banks", "ports")): row for row in csv.DictReader(file)}}
um, size, block, banks, ports = asked
energy = 3e-4 * size**0.5 * block * um * ports
plain = {{"read_nj": energy, "write_nj": energy, "leak_mw_per_bank": 2.5e-8 * size, "mm2": 7e-5 * size * um}}
row = known.get(tuple(asked), plain)
print("CACTI")
{behaviour}
with open(sys.argv[2] + ".out", "a") as file:
    file.write("Tech node (nm), Dynamic read energy (nJ), Dynamic write energy (nJ), Standby leakage per bank(mW), Area (mm2), \\n")
    file.write(f"{{um * 1e3}}, {{row['read_nj']}}, {{row['write_nj']}}, {{row['leak_mw_per_bank']}}, {{row['mm2']}}, \\n")
"""
BEHAVIOUR = {
    "good": "",
    "refusing": "print('ERROR: no valid tag organizations found'); sys.exit(1)",
    "slow": "import time; time.sleep(60)",
    "garbled": "row = dict.fromkeys(row, 'nothing')",
}


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fake-cacti-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def program(behaviour: str = "good") -> str:
    """The path of a program that behaves so."""
    path = _folder() / behaviour
    path.write_text(_PROGRAM.format(python=sys.executable, runs=str(RUNS), behaviour=BEHAVIOUR[behaviour]), "utf-8")
    path.chmod(0o755)
    return str(path)
