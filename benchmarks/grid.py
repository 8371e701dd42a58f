"""Every mapper under every cost model on six small problems and three architectures: what is found.

python benchmarks/grid.py            # the table, in half a minute
python benchmarks/grid.py --write    # into docs/mappers.md
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support import ROOT
from support.grid import table

MANUAL = ROOT / "docs/mappers.md"
PLACE = re.compile(r"(?<=<!-- grid -->\n)(.*?)(?=\n<!-- end of grid -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the table in docs/mappers.md")
    given, text = parser.parse_args(), table()
    print(text)
    if given.write:
        MANUAL.write_text(PLACE.sub(lambda _: text, MANUAL.read_text()))


if __name__ == "__main__":
    main()
