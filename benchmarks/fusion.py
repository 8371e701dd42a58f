"""Fused networks: energy without fusion, within a budget of cycles, with results that stay on chip, and the bound on the gain.

    python benchmarks/fusion.py                                    # all networks and architectures, as a Markdown table
    python benchmarks/fusion.py --network mobilenetv2 --arch simba
    python benchmarks/fusion.py --write                            # into docs/fusion.md, and a part into README.md

The networks of the library are read by `onnx`, and the transformers are built by `transformers`. MobileNetV2 is built here from its
published sizes, with the words that layers read.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.plugin.result import proof
from tilewright.schema.problem import Problem
from tilewright.schema.read import shape_of
from tilewright_frontends import nests

ARCHITECTURES = ("eyeriss", "simba", "tpu_v1")
SLACK = 1.1
"""Budget of cycles, in the fewest cycles that the network takes without fusion."""
POINTS = 4
"""Points of each layer's front from which the budget is met."""
ROOT = Path(__file__).parent.parent
PLACE = re.compile(r"(?<=<!-- fused networks -->\n).*?(?=<!-- end of fused networks -->)", re.DOTALL)


class _Network:
    """Layers in order, with their reads."""

    def __init__(self, name: str) -> None:
        self.name, self.layers = name, list[dict[str, Any]]()

    def add(self, problem: Problem, **reads: Sequence[dict[str, Any]]) -> str:
        after = list(dict.fromkeys(read["maker"] for each in reads.values() for read in each))
        own = {name: list(each) for name, each in reads.items() if each}
        self.layers.append({"problem": problem.model_dump(mode="json"), "after": after, "reads": own})
        return problem.name

    def workload(self) -> tw.Workload:
        return tw.Workload.model_validate({"name": self.name, "layers": self.layers})


def mobilenetv2() -> tw.Workload:
    """Return MobileNetV2 at 224 x 224 (Sandler et al., CVPR 2018, table 2), without its classifier."""
    network = _Network("mobilenetv2")

    def add(
        name: str,
        makers: list[str],
        groups: int,
        channels: tuple[int, int],
        rows: int,
        window: int = 1,
        stride: int = 1,
    ) -> str:
        problem = nests.convolution(name, 1, groups, channels, (rows, rows), (window, window), (stride, stride), (1, 1))
        return network.add(problem, Inputs=[_read(network, maker, problem, window // 2) for maker in makers])

    rows, inward = 112, 32
    live = [add("conv1", [], 1, (32, 3), rows, 3, 2)]
    for block, (expansion, outward, repeats, stride) in enumerate(
        [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    ):
        for number in range(repeats):
            wide, name = inward * expansion, f"b{block}_{number}"
            makers = [add(f"{name}_pw1", live, 1, (wide, inward), rows)] if expansion > 1 else live
            step = stride if number == 0 else 1
            rows //= step
            dw = add(f"{name}_dw", makers, wide, (1, 1), rows, 3, step)
            made = add(f"{name}_pw2", [dw], 1, (outward, wide), rows)
            live = [*live, made] if step == 1 and inward == outward else [made]
            inward = outward
    add("conv2", live, 1, (1280, inward), rows)
    return network.workload()


def _read(network: _Network, maker: str, reader: Problem, pad: int) -> dict[str, Any]:
    """Return the read of a convolution: a channel is one coordinate or a group, and rows and columns are padded in front."""
    made = Problem.model_validate(next(each["problem"] for each in network.layers if each["problem"]["name"] == maker))
    (_, *channels, rows, columns), seen = shape_of(made, "Outputs"), shape_of(reader, "Inputs")
    sizes = {"n": 1, "c": max(channels), "p": min(rows, seen[-2] - pad), "q": min(columns, seen[-1] - pad)}
    ends = [["n", "c", *["0"] * (len(shape) - 4)] for shape in (shape_of(made, "Outputs"), seen)]
    return {
        "maker": maker,
        "sizes": sizes,
        "made": [*ends[0], "p", "q"],
        "read": [*ends[1], *(f"{at} + {pad}" for at in "pq")],
    }


NETWORKS: dict[str, Callable[[], tw.Workload]] = {
    "gpt3_6_7b": lambda: tw.load("gpt3_6_7b", "workload"),
    "bert_base": lambda: tw.load("bert_base", "workload"),
    "llama3_8b": lambda: tw.load("llama3_8b", "workload"),
    "mobilenetv2": mobilenetv2,
    "resnet50": lambda: tw.load("resnet50", "workload"),
    "bert_base, 128 tokens": lambda: tw.load("bert_base", "workload", sizes={"seq": 128}),
    "shufflenet": lambda: tw.load("shufflenet", "workload"),
    "squeezenet": lambda: tw.load("squeezenet", "workload"),
}
IN_README = 5
"""Networks of the README's table: the first ones."""
COLUMNS = {
    "network": "---",
    "architecture": "---",
    "bound on the gain, %": "---:",
    "unfused, mJ": "---:",
    "budgeted, mJ": "---:",
    "fused, mJ": "---:",
    "saved, %": "---:",
    "results that stay": "---:",
    "gap": "---",
    "CPU s": "---:",
}


def row(name: str, arch: str) -> list[str]:
    """Return the cells of a network on an architecture."""
    started, network = time.process_time(), NETWORKS[name]()
    found = tw.fuse_network(network, arch, objective="energy", cache=False, progress=False)
    fronts = tw.front(network, arch, points=POINTS, cache=False, progress=False)
    fewest = sum(front.points[0].cycles * front.distinct.count for front in fronts.fronts)
    within = fronts.within(SLACK * fewest)
    seconds = time.process_time() - started
    millijoules = [f"{pj / 1e9:,.4g}" for pj in (found.gain.unfused, within.energy_pj, found.value)]
    staying = f"{len(found.residents)} of {len(found.gain.may_stay)}"
    gaps = [proof(gap) or "none" for gap in (found.gap, within.gap)]
    gap = "0" if set(gaps) == {"yes"} else f"budgeted {gaps[1]}" if gaps[0] == "yes" else ", ".join(gaps)
    percent = ["unknown" if share is None else f"{100 * share:.2f}" for share in (found.gain.gain, found.saved)]
    return [name, arch, percent[0], *millijoules, percent[1], staying, gap.replace("to ", ""), f"{seconds:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", help="start of a network's name; may be repeated")
    parser.add_argument("--arch", action="append", help="architecture; may be repeated")
    parser.add_argument("--write", action="store_true", help="replace the tables in docs/fusion.md and README.md")
    given = parser.parse_args()
    head = [_line(COLUMNS), _line(COLUMNS.values())]
    print(*head, sep="\n")
    lines = list[tuple[str, str]]()
    for name in NETWORKS:
        for arch in given.arch or ARCHITECTURES:
            if not given.network or name.startswith(tuple(given.network)):
                lines.append((name, _line(row(name, arch))))
                print(lines[-1][1], flush=True)
    for file, names in (("docs/fusion.md", [*NETWORKS]), ("README.md", [*NETWORKS][:IN_README])) if given.write else ():
        table = "\n".join([*head, *(text for name, text in lines if name in names)]) + "\n"
        before, after = PLACE.split((ROOT / file).read_text())
        (ROOT / file).write_text(f"{before}{table}\n{after}")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
