"""Fused networks: energy or cycles without fusion, with results that stay whole or in tiles, and the bound on any fusion.

    python benchmarks/fusion.py                                    # all rows, as a Markdown table
    python benchmarks/fusion.py --network mobilenetv2 --arch simba --objective cycles
    python benchmarks/fusion.py --write                            # into benchmarks/fusion.md

The networks are the library's, and FSRCNN on an accelerator of DeFiNES (`benchmarks/defines`).
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tilewright as tw

ROOT = Path(__file__).parent.parent
DEFINES = tuple(
    f"benchmarks/defines/{name}_df.yaml" for name in ("meta_prototype", "edge_tpu", "tpu", "ascend", "tesla_npu")
)
"""Accelerators of DeFiNES, with the unrolling that it prescribes (`constraints.yaml`)."""
CNN, TRANSFORMER = ("eyeriss", "simba", "examples/npu.yaml", *DEFINES), ("eyeriss", "simba", "examples/tpu_v4i.yaml")
"""Architectures of networks."""
SECONDS = 240.0
"""Limit of each layer's search, and of those of all shared loops of a network together."""
ROOM = 16
"""Factor of the room of the home, in `reasons`."""
PAGE = ROOT / "benchmarks/fusion.md"
PLACE = re.compile(r"(?<=<!-- fused networks -->\n).*?(?=<!-- end of fused networks -->)", re.DOTALL)


NETWORKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpt3_6_7b", "bert_base", "llama3_8b"), TRANSFORMER),
    **dict.fromkeys(("mobilenetv2", "resnet50", "efficientnet_b0", "shufflenet", "squeezenet"), CNN),
    **dict.fromkeys(("vgg19", "densenet121"), ("eyeriss", "examples/npu.yaml")),
    "fsrcnn": DEFINES[:1],
}
"""Network -> its architectures."""
UNITS = {"energy": (1e9, "mJ"), "cycles": (1e6, "M")}
"""Objective -> pJ or cycles of its unit, and the unit's name."""
COLUMNS = {
    "network": "---",
    "architecture": "---",
    "objective": "---",
    "bound on the gain, %": "---:",
    "unfused": "---:",
    "fused": "---:",
    "saved, %": "---:",
    "share loops": "---:",
    "stay whole": "---:",
    "gap to any fusion, %": "---:",
    "gap in the space, %": "---:",
    "CPU s": "---:",
}


def row(name: str, arch: str, objective: str, limit: float | None) -> list[str]:
    """Return the cells of a network on an architecture."""
    started, options = time.process_time(), dict[str, Any](objective=objective)
    machine = ROOT / arch if arch.endswith(".yaml") else arch
    network = tw.load(ROOT / "benchmarks/defines/fsrcnn.workload.yaml" if name == "fsrcnn" else name, "workload")
    if arch in DEFINES:
        options["constraints"] = ROOT / arch.replace("_df.yaml", ".constraints.yaml")
    fused = tw.fuse_network(network, machine, seconds=limit, cache=False, progress=False, **options)
    seconds = time.process_time() - started
    sharing = sum(part.last + 1 - part.first for part in fused.parts)
    gap = None if fused.gain.least is None else max(0.0, 1 - fused.gain.least / fused.value)
    shares = fused.gain.gain, fused.saved, gap, fused.gap if fused.searched_gap is None else fused.searched_gap
    scale, unit = UNITS[objective]
    percent = ["unknown" if share is None else f"{100 * share:.2f}" for share in shares]
    return [
        name,
        fused.architecture.name,
        objective,
        percent[0],
        *(f"{value / scale:,.4g} {unit}" for value in (fused.gain.unfused, fused.value)),
        percent[1],
        f"{sharing} of {len(fused.layers)}",
        str(len(fused.residents)),
        *percent[2:],
        f"{seconds:.0f}",
    ]


def reasons(name: str, arch: str, objective: str, limit: float | None) -> None:
    """Print what fusion saves on a machine, and on two that differ from it in one thing.

    In the second one, weights start in a memory that costs as much as the home, so that tiles may read them again. The words that they then read
    are priced as those of DRAM, too. The third one has a larger home.
    """
    machine = tw.load(ROOT / arch if arch.endswith(".yaml") else arch, "architecture")
    (dram, *_), home = machine.clusters[0].memories, machine.clusters[1].memories[0]
    near = dram.model_copy(update={"name": "Weights", "holds": ("weight",), "read_energy_pj": home.read_energy_pj})
    outer = dram.model_copy(update={"holds": ("input", "output")}), near
    apart = (machine.clusters[0].model_copy(update={"memories": outer}), *machine.clusters[1:])
    room = {"capacity_words": ROOM * (home.capacity_words or 0)}
    machines = {
        "as it is": machine,
        "weights cost as at home": machine.model_copy(update={"clusters": apart}),
        f"{ROOM} times the room": machine.with_memories(lambda m: m.model_copy(update=room) if m == home else m),
    }
    unfused, options = math.inf, dict[str, Any](objective=objective, seconds=limit, cache=False, progress=False)
    for title, one in machines.items():
        fused = tw.fuse_network(name, one, **options)
        unfused = min(unfused, fused.gain.unfused) if one is machine else unfused
        sharing = {at for part in fused.parts for at in range(part.first, part.last + 1)}
        alone = [cost.layer.report for at, cost in enumerate(fused.costs) if at not in sharing and cost.layer]
        words = sum(
            counts.reads
            for report in [*(part.report for part in fused.parts), *alone]
            if report is not None
            for level in report.levels
            if level.name == near.name
            for counts in level.tensors.values()
        )
        moved = 1 - (fused.value + words * (dram.read_energy_pj - home.read_energy_pj)) / unfused
        shares = [f"{100 * share:.2f}" for share in (fused.gain.gain or 0.0, fused.saved, *([moved] if words else ()))]
        print(
            _line([name, arch, title, f"{len(sharing)} share loops", f"{len(fused.residents)} whole", *shares]),
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", help="start of a network's name; may be repeated")
    parser.add_argument("--arch", action="append", help="architecture; may be repeated")
    parser.add_argument("--objective", choices=list(UNITS), default="energy")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit of each layer, and of all shared loops")
    parser.add_argument("--defaults", action="store_true", help="limits of `map --fuse`, as in the rows of npu")
    parser.add_argument("--write", action="store_true", help="put the rows into benchmarks/fusion.md")
    parser.add_argument(
        "--reasons", action="store_true", help="print what is saved if weights cost less, or the home is larger"
    )
    given = parser.parse_args()
    limit = None if given.defaults else given.seconds
    print(_line(COLUMNS), _line(COLUMNS.values()), sep="\n")
    for name, arch in ((name, arch) for name, architectures in NETWORKS.items() for arch in architectures):
        if (given.arch and arch not in given.arch) or (given.network and not name.startswith(tuple(given.network))):
            continue
        if given.reasons:
            reasons(name, arch, given.objective, limit)
            continue
        cells = row(name, arch, given.objective, limit)
        print(_line(cells), flush=True)
        if given.write:
            _write(cells)


def _write(cells: list[str]) -> None:
    """Put a row into the table of benchmarks/fusion.md, in the place of the one of this network, architecture and objective."""
    text, head = PAGE.read_text(), [_line(COLUMNS), _line(COLUMNS.values())]
    match = PLACE.search(text)
    assert match is not None, "the page has the marks"
    lines = match[0].splitlines()
    rows = [line for line in lines[2:] if line] if lines[:2] == head else []
    table = {tuple(line.split(" | ")[:3]): line for line in [*rows, _line(cells)]}
    ordered = [table[key] for key in sorted(table, key=lambda key: (key[0], key[2]))]
    PAGE.write_text(text.replace(match[0], "\n".join([*head, *ordered, "", ""])))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
