"""Fused networks: energy without fusion, with results that stay whole or in tiles, and the bound on any fusion.

    python benchmarks/fusion.py                                    # all rows, as a Markdown table
    python benchmarks/fusion.py --network mobilenetv2 --arch simba
    python benchmarks/fusion.py --write                            # into benchmarks/fusion.md

The networks are the library's, and FSRCNN on an accelerator of DeFiNES (`benchmarks/defines`).
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tilewright as tw

ROOT = Path(__file__).parent.parent
PROTOTYPE = "benchmarks/defines/meta_prototype_df.yaml"
"""An accelerator of DeFiNES, which prescribes its unrolling."""
CNN, TRANSFORMER = ("eyeriss", "simba", "examples/npu.yaml", PROTOTYPE), ("eyeriss", "simba", "examples/tpu_v4i.yaml")
"""Architectures of networks."""
SECONDS = 240.0
"""Limit of each layer's search, and of those of all shared loops of a network together."""
PAGE = ROOT / "benchmarks/fusion.md"
PLACE = re.compile(r"(?<=<!-- fused networks -->\n).*?(?=<!-- end of fused networks -->)", re.DOTALL)


NETWORKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpt3_6_7b", "bert_base", "llama3_8b"), TRANSFORMER),
    **dict.fromkeys(("mobilenetv2", "resnet50", "efficientnet_b0", "shufflenet", "squeezenet"), CNN),
    "fsrcnn": (PROTOTYPE,),
}
"""Network -> its architectures."""
DEFINES = ROOT / "benchmarks/defines"
"""FSRCNN, the machine and the unrolling that DeFiNES published."""
COLUMNS = {
    "network": "---",
    "architecture": "---",
    "bound on the gain, %": "---:",
    "unfused, mJ": "---:",
    "fused, mJ": "---:",
    "saved, %": "---:",
    "share loops": "---:",
    "stay whole": "---:",
    "gap to any fusion, %": "---:",
    "gap in the space, %": "---:",
    "CPU s": "---:",
}


def row(name: str, arch: str) -> list[str]:
    """Return the cells of a network on an architecture."""
    started, options = time.process_time(), dict[str, Any]()
    machine = ROOT / arch if arch.endswith(".yaml") else arch
    network = tw.load(DEFINES / "fsrcnn.workload.yaml" if name == "fsrcnn" else name, "workload")
    if arch == PROTOTYPE:
        options["constraints"] = DEFINES / "meta_prototype.constraints.yaml"
    fused = tw.fuse_network(
        network, machine, objective="energy", seconds=SECONDS, cache=False, progress=False, **options
    )
    seconds = time.process_time() - started
    sharing = sum(part.last + 1 - part.first for part in fused.parts)
    gap = None if fused.gain.least is None else max(0.0, 1 - fused.gain.least / fused.value)
    shares = fused.gain.gain, fused.saved, gap, fused.gap if fused.searched_gap is None else fused.searched_gap
    percent = ["unknown" if share is None else f"{100 * share:.2f}" for share in shares]
    return [
        name,
        fused.architecture.name,
        percent[0],
        *(f"{pj / 1e9:,.4g}" for pj in (fused.gain.unfused, fused.value)),
        percent[1],
        f"{sharing} of {len(fused.layers)}",
        str(len(fused.residents)),
        *percent[2:],
        f"{seconds:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", help="start of a network's name; may be repeated")
    parser.add_argument("--arch", action="append", help="architecture; may be repeated")
    parser.add_argument("--write", action="store_true", help="put the rows into benchmarks/fusion.md")
    given = parser.parse_args()
    print(_line(COLUMNS), _line(COLUMNS.values()), sep="\n")
    for name, arch in ((name, arch) for name, architectures in NETWORKS.items() for arch in architectures):
        if (given.arch and arch not in given.arch) or (given.network and not name.startswith(tuple(given.network))):
            continue
        cells = row(name, arch)
        print(_line(cells), flush=True)
        if given.write:
            _write(cells)


def _write(cells: list[str]) -> None:
    """Put a row into the table of benchmarks/fusion.md, in the place of the one of this network and architecture."""
    text, head = PAGE.read_text(), [_line(COLUMNS), _line(COLUMNS.values())]
    match = PLACE.search(text)
    assert match is not None, "the page has the marks"
    lines = match[0].splitlines()
    rows = [line for line in lines[2:] if line] if lines[:2] == head else []
    table = {tuple(line.split(" | ")[:2]): line for line in [*rows, _line(cells)]}
    PAGE.write_text(text.replace(match[0], "\n".join([*head, *table.values(), "", ""])))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
