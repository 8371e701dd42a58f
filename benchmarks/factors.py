"""Tiles that divide against ragged ones: EDP and CPU seconds of `optimal` on pairs of layers and machines.

    python benchmarks/factors.py -o factors.csv --seconds 10     # start it again and it goes on where it was
    python benchmarks/factors.py -o factors.csv --report         # the table of what there is

Thirty layers, with the sizes of popular networks, and four machines make 120 pairs. Each is searched with `perfect` and `ragged` factors,
under the published dataflow. The row "as needed" takes the ragged result for layers with a size that few tiles divide, else the perfect one.
Layers of one machine alternate, so that a part of the run is a sample of all.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from pathlib import Path

import tilewright as tw
from tilewright.schema.divisors import has_few_divisors

GEMM, CONV = "mk,kn->mn; ", "O[n,k,p,q] += I[n,c,{0}p+r,{0}q+s] * W[k,c,r,s]; n=1 "
TOKENS = (197, 577, 50, 257, 77, 128, 512)
PROJECTIONS = ((768, 768), (768, 3072), (1024, 4096))
LAYERS = {f"gemm_{m}_{k}_{n}": f"{GEMM}m={m} k={k} n={n}" for m in TOKENS for k, n in PROJECTIONS} | {
    "attention_197": "bmk,bnk->bmn; b=12 m=197 n=197 k=64",
    "vocabulary": GEMM + "m=128 k=768 n=50257",
    "llama_ffn": GEMM + "m=512 k=4096 n=11008",
    "conv_13": CONV.format(1) + "k=384 c=256 p=13 q=13 r=3 s=3",
    "conv_27": CONV.format(1) + "k=256 c=96 p=27 q=27 r=5 s=5",
    "conv_28": CONV.format(1) + "k=128 c=128 p=28 q=28 r=3 s=3",
    "conv_17": CONV.format(1) + "k=192 c=160 p=17 q=17 r=1 s=7",
    "conv_35": CONV.format(1) + "k=64 c=192 p=35 q=35 r=1 s=1",
    "patches": CONV.format(16) + "k=768 c=3 p=14 q=14 r=16 s=16",
}
MACHINES = ("eyeriss", "simba", "tpu_v1", "gemmini")
FACTORS = ("perfect", "ragged")
COLUMNS = ("layer", "machine", "factors", "edp", "gap", "cpu_seconds")


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of the file, none if there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def measure(path: Path, seconds: float) -> None:
    """Append a row per search that the file does not have."""
    done = {(row["layer"], row["machine"], row["factors"]) for row in rows_of(path)}
    names = list(LAYERS)
    for index in range(len(names) * len(MACHINES)):
        layer, machine = names[index * 7 % len(names)], MACHINES[(index + index // len(names)) % len(MACHINES)]
        for factors in FACTORS:
            if (layer, machine, factors) in done:
                continue
            report = tw.map(
                LAYERS[layer], machine, mapper="optimal", factors=factors, seconds=seconds, cache=False, progress=False
            )
            search = report.data()["layers"][0]["search"]
            edp = report.data()["layers"][0]["best"]["edp"]
            row = (layer, machine, factors, edp or math.inf, search["gap"], round(search["cpu_seconds"], 2))
            new = not path.exists()
            with path.open("a", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream)
                writer.writerows([COLUMNS, row] if new else [row])


def _ratio(rows: dict[str, dict[str, str]], factors: str) -> float:
    """Return the EDP of one kind of factors over that of perfect ones."""
    return float(rows[factors]["edp"]) / float(rows["perfect"]["edp"])


def _chosen(name: str, layer: str) -> str:
    """Return the factors of a layer under a rule."""
    if name != "as needed":
        return name
    sizes = tw.load(LAYERS[layer], kind="problem").sizes
    return "ragged" if any(map(has_few_divisors, sizes)) else "perfect"


def report(path: Path) -> str:
    """Return a table of the pairs that were searched with all kinds of factors, and the means."""
    pairs: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in rows_of(path):
        pairs.setdefault((row["layer"], row["machine"]), {})[row["factors"]] = row
    whole = {key: rows for key, rows in pairs.items() if len(rows) == len(FACTORS)}
    lines = ["| layer | machine | ragged EDP / perfect EDP | gap, ragged | CPU s, perfect | CPU s, ragged |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: |"]
    for (layer, machine), kinds in sorted(whole.items()):
        gap = 100 * float(kinds["ragged"]["gap"] or 1)
        seconds = [kinds[factors]["cpu_seconds"] for factors in FACTORS]
        cells = [layer, machine, f"{_ratio(kinds, 'ragged'):.3f}", f"{gap:.1f} %", *seconds]
        lines.append(f"| {' | '.join(cells)} |")
    for name in ("perfect", "as needed", "ragged") if whole else ():
        chosen = {key: _chosen(name, key[0]) for key in whole}
        ratio = statistics.geometric_mean(_ratio(rows, chosen[key]) for key, rows in whole.items())
        cpu = sum(float(rows[chosen[key]]["cpu_seconds"]) for key, rows in whole.items())
        proved = sum(float(rows[chosen[key]]["gap"] or 1) < 1e-8 for key, rows in whole.items())
        lines.append(
            f"{name}: {len(whole)} pairs, {proved} proved, EDP {ratio:.3f} by geometric mean, {cpu:.0f} CPU seconds in all"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if not arguments.report:
        measure(arguments.output, arguments.seconds)
    print(report(arguments.output))
