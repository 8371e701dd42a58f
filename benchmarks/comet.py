"""Reads a checkout of COMET (github.com/pnnl/COMET): multiplications of its dense products, and what is refused.

    git clone https://github.com/pnnl/COMET
    python benchmarks/comet.py COMET

tests/data/comet/products.csv has the statement, the sizes and the multiplications of each file, counted by hand at commit b80a7a7e.
The other files have sparse tensors, or no product; they are refused by name. The exit code is 1 if a figure differs.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import tilewright as tw
from tilewright.errors import InputError

TABLE = Path(__file__).resolve().parents[1] / "tests/data/comet/products.csv"
PRODUCTS, SPARSE, NONE, OTHER = (
    "dense products",
    "refused: a tensor is sparse",
    "refused: no product",
    "refused: another reason",
)


def expected() -> dict[str, tuple[str, str, list[int]]]:
    """Return path -> statement, sizes, and the multiplications of its products."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            row["path"]: (row["statement"], row["sizes"], [int(part) for part in row["multiplications"].split("+")])
            for row in csv.DictReader(file)
        }


def read(path: Path) -> tuple[str, list[int]]:
    """Return the kind of a file, and the multiplications of its products."""
    try:
        workload = tw.load(path, "workload")
    except InputError as error:
        told = str(error)
        return SPARSE if "is sparse" in told else NONE if "no product" in told else OTHER, []
    return PRODUCTS, [layer.problem.macs for layer in workload.layers]


def compared(checkout: Path) -> Iterator[tuple[str, str, list[int], list[int]]]:
    """Yield each file with its kind, the multiplications that are read, and those that are expected."""
    table = expected()
    paths = {path.relative_to(checkout).as_posix(): path for path in checkout.rglob("*.ta")}
    for name in sorted(paths | table):
        kind, counts = read(paths[name]) if name in paths else ("absent", [])
        yield name, kind, counts, table[name][2] if name in table else []


def main() -> int:
    """Print the files whose figures differ, and how many there are of each kind."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("checkout", type=Path, help="folder of a clone of COMET")
    rows = list(compared(arguments.parse_args().checkout))
    wrong = [row for row in rows if row[2] != row[3] or row[1] in (OTHER, "absent")]
    for name, kind, counts, wanted in wrong:
        print(f"{name}: {kind}; multiplications {counts}, expected {wanted}")
    kinds = Counter(kind for _, kind, _, _ in rows)
    print(f"{len(rows)} files: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    print(
        f"{len(expected()) - sum(bool(row[3]) for row in wrong)} of {len(expected())} files with products are as expected"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
