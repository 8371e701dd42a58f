"""`optimal` on 81 pairs of layers and machines that appear in no table: what is proved within a limit of time and memory.

    python benchmarks/pairs.py -o pairs.csv                  # all pairs; start it again and it goes on where it was
    python benchmarks/pairs.py llama --machines deep_5 --seconds 10
    python benchmarks/pairs.py -o pairs.csv --report         # only the tables of what there is
    python benchmarks/pairs.py --networks                    # contractions of 8 to 40 dimensions, on all machines
    python benchmarks/pairs.py --growth                      # the table of growth.md

Eighteen layers of recent networks and nine machines with two to six memories make 162 pairs; every second one is searched, with perfect
factors and no constraints. One row per pair: what is proved, CPU seconds from a warm start, memory of the proof, states.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import string
import sys
import time
from pathlib import Path

import tilewright as tw
from tilewright.application.run.search import search
from tilewright.mapspace.counting import prime_powers
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.architecture import Architecture

CONV = "O[n,k,p,q] += I[n,c,{0}p+r,{0}q+s] * W[k,c,r,s]; "
DEPTHWISE = "O[n,g,p,q] += I[n,g,{0}p+r,{0}q+s] * W[g,r,s]; "
LAYERS = {
    "convnext_dw7x7": DEPTHWISE.format(1) + "n=1 g=96 p=56 q=56 r=7 s=7",
    "convnext_pw": CONV.format(1) + "n=1 k=384 c=96 p=56 q=56 r=1 s=1",
    "convnext_down": CONV.format(2) + "n=1 k=192 c=96 p=28 q=28 r=2 s=2",
    "efficientnet_dw5x5_s2": DEPTHWISE.format(2) + "n=1 g=144 p=28 q=28 r=5 s=5",
    "efficientnet_pw": CONV.format(1) + "n=1 k=240 c=40 p=28 q=28 r=1 s=1",
    "mobilenet_dw3x3_b16": DEPTHWISE.format(1) + "n=16 g=192 p=28 q=28 r=3 s=3",
    "vit_qkv": "mk,kn->mn; m=197 k=768 n=2304",
    "vit_mlp_b64": "mk,kn->mn; m=12608 k=768 n=3072",
    "vit_scores": "bmk,bnk->bmn; b=12 m=197 n=197 k=64",
    "llama_query": "mk,kn->mn; m=2048 k=4096 n=4096",
    "llama_ffn": "mk,kn->mn; m=512 k=4096 n=11008",
    "llama_scores": "bmk,bnk->bmn; b=32 m=2048 n=2048 k=128",
    "llama_decode": "mk,kn->mn; m=1 k=4096 n=32000",
    "mixtral_experts": "emk,ekn->emn; e=8 m=128 k=4096 n=14336",
    "conv3d_stem": "O[n,k,t,p,q] += I[n,c,t+d,p+r,q+s] * W[k,c,d,r,s]; n=1 k=64 c=3 t=16 p=112 q=112 d=3 r=3 s=3",
    "conv3d_deep": "O[n,k,t,p,q] += I[n,c,t+d,p+r,q+s] * W[k,c,d,r,s]; n=1 k=256 c=128 t=8 p=28 q=28 d=3 r=3 s=3",
    "resnet_3x3_b64": CONV.format(1) + "n=64 k=128 c=128 p=28 q=28 r=3 s=3",
    "resnet_stem_b64": CONV.format(2) + "n=64 k=64 c=3 p=112 q=112 r=7 s=7",
}


def contraction(count: int) -> str:
    """A contraction of two tensors, as tensor networks have: `count` dimensions of 2 and 3, one of which indexes all tensors."""
    names = string.ascii_letters[:count]
    m, k, n, g = names[: count // 3], names[count // 3 : 2 * count // 3], names[2 * count // 3 : -1], names[-1]
    sizes = " ".join(f"{name}={2 + (number % 6 == 0)}" for number, name in enumerate(names))
    return f"{m}{k}{g},{k}{n}{g}->{m}{n}{g}; {sizes}"


NETWORKS = {f"contraction_{count}": contraction(count) for count in (8, 12, 16, 20, 30, 40)}
PRODUCT, CONV3D = "mk,kn->mn; m={0} k={0} n={0}", LAYERS["conv3d_stem"].split(";")[0]
BATCH = CONV.format(1) + "n={0} k={1} c={1} p=28 q=28 r=3 s=3"
GROWTH = {
    "product_64": (PRODUCT.format(64), "chain_4"),
    "product_16384": (PRODUCT.format(16384), "chain_4"),
    **{f"product_1024_on_{count}": (PRODUCT.format(1024), f"chain_{count}") for count in range(2, 8)},
    "decode": ("k,kn->n; k=8192 n=28672", "chain_5"),
    "mla_decode": ("bhqc,bkc->bhqk; b=32 h=128 q=1 k=32768 c=512", "chain_5"),
    "kv_decode": ("bhqd,bhkd->bhqk; b=64 h=8 q=8 k=131072 d=128", "chain_5"),
    "attention": ("bhqd,bhkd->bhqk; b=16 h=32 q=2048 k=2048 d=128", "chain_5"),
    "experts": ("etk,ekn->etn; e=128 t=64 k=7168 n=2048", "chain_5"),
    "triangle_product": ("ikc,jkc->ijc; i=384 j=384 k=384 c=128", "chain_4"),
    "scan": ("bldn,bln->bld; b=8 l=2048 d=5120 n=16", "chain_4"),
    "swin_windows": ("bwhqd,bwhkd->bwhqk; b=8 w=64 h=12 q=49 k=49 d=32", "chain_4"),
    "conv_256_128": (CONV.format(1) + "n=1 k=256 c=128 p=28 q=28 r=3 s=3", "chain_3"),
    "conv_64_b256": (CONV.format(1) + "n=256 k=64 c=64 p=56 q=56 r=3 s=3", "eyeriss"),
    "conv_64_b2": (BATCH.format(2, 64), "chain_3"),
    "conv_64_b4": (BATCH.format(4, 64), "chain_3"),
    "conv_128_b16_union": (BATCH.format(16, 128), "union_edge"),
    **{f"conv_128_b16_on_{count}": (BATCH.format(16, 128), f"chain_{count}") for count in (3, 4, 5)},
    "conv_stride_2_b8": (CONV.format(2) + "n=8 k=128 c=64 p=28 q=28 r=3 s=3", "chain_4"),
    "depthwise_b8": (DEPTHWISE.format(1) + "n=8 g=192 p=28 q=28 r=3 s=3", "chain_3"),
    "grouped_b32": ("O[n,g,k,p,q] += I[n,g,c,p+r,q+s] * W[g,k,c,r,s]; n=32 g=32 k=8 c=8 p=28 q=28 r=3 s=3", "chain_4"),
    "conv3d": (CONV3D + "; n=1 k=96 c=48 t=12 p=28 q=28 d=3 r=3 s=3", "chain_3"),
    "conv3d_b8": (CONV3D + "; n=8 k=96 c=48 t=12 p=28 q=28 d=3 r=3 s=3", "chain_4"),
    "contraction": ("abcdg,cdefgh->abefh; a=12 b=24 c=12 d=24 e=12 f=24 g=8 h=16", "chain_4"),
}
"""Layers of the growth table, each with its machine."""
CHAINS = {2: (5,), 3: (17, 5), 4: (20, 13, 5), 5: (22, 17, 12, 5), 6: (22, 18, 14, 9, 4), 7: (24, 20, 16, 12, 8, 4)}
"""On-chip memories of a chain, outermost first, as powers of two words."""
CHAIN_PJ = (18, 8, 4, 1.5, 0.6, 0.15)
LIBRARY = ("sunstone_conventional", "gemmini", "eyeriss", "simba", "tpu_v1", "sunstone_simba")
FAILED = "failed"
"""Gap of a search that failed."""
SIZES = {1: (16384,), 3: (1048576, 16384, 256), 4: (4194304, 262144, 16384, 256)}
"""On-chip memories of a deep machine, outermost first, in words; the fanout of 16 x 16 is outside the innermost one."""
COLUMNS = (
    "layer",
    "machine",
    "dimensions",
    "primes",
    "memories",
    "edp",
    "gap",
    "cpu_seconds",
    "mib",
    "states",
    "widest",
)


def machines() -> dict[str, Architecture]:
    """Six machines of the library, and three chains of 2, 4 and 5 memories that hold all tensors."""
    chains = {f"deep_{len(sizes) + 1}": deep(sizes) for sizes in SIZES.values()}
    return {name: tw.load(name, "architecture") for name in LIBRARY} | chains


def deep(sizes: tuple[int, ...]) -> Architecture:
    """A chain of memories. A word costs 200 pJ in the DRAM and 0.05 pJ times the root of the words elsewhere."""
    memories = [{"name": "DRAM", "technology": "dram", "read_energy_pj": 200, "write_energy_pj": 200}]
    for level, words in enumerate(sizes):
        energy = 0.05 * math.sqrt(words)
        memory = {"name": f"L{len(sizes) - level}", "read_energy_pj": energy, "write_energy_pj": energy}
        memories.append(memory | {"capacity_words": words})
    memories[0]["read_bandwidth_words_per_cycle"] = memories[0]["write_bandwidth_words_per_cycle"] = 16
    clusters: list[dict[str, object]] = [{"name": f"C{n}", "memories": [item]} for n, item in enumerate(memories)]
    clusters[-2]["fanout"] = {"size": 16, "axis": "X"}
    clusters.insert(-1, {"name": "Column", "fanout": {"size": 16, "axis": "Y"}})
    name = f"deep_{len(memories)}"
    return Architecture.model_validate({"name": name, "clusters": clusters, "compute": {"energy_per_operation_pj": 1}})


def chain(count: int) -> Architecture:
    """A chain of memories that hold all tensors, with 256 sub-clusters in two fanouts outside the innermost one."""
    clusters: list[dict[str, object]] = []
    for level, energy in enumerate((64, *CHAIN_PJ[1 - count :])):
        memory: dict[str, object] = {"name": f"M{level}", "read_energy_pj": energy, "write_energy_pj": energy}
        memory |= {"capacity_words": 2 ** CHAINS[count][level - 1]} if level else {"technology": "dram"}
        if level < count - 1:
            bandwidth = 64 if level else 32
            memory |= {"read_bandwidth_words_per_cycle": bandwidth, "write_bandwidth_words_per_cycle": bandwidth}
        clusters.append({"name": f"C{level}", "memories": [memory]})
    if count > 2:
        clusters[-3]["fanout"] = {"size": 16, "axis": "Y"}
    clusters[-2]["fanout"] = {"size": 16 if count > 2 else 256, "axis": "X"}
    name = f"chain_{count}"
    return Architecture.model_validate(
        {"name": name, "clusters": clusters, "compute": {"energy_per_operation_pj": 0.4}}
    )


def measured(layer: str, machine: str, architecture: Architecture, seconds: float) -> dict[str, object]:
    """Return one row. The gap of a failed search is `FAILED`, and its reason goes to the standard error."""
    formulas = LAYERS | NETWORKS | {name: formula for name, (formula, _) in GROWTH.items()}
    problem = tw.load(formulas[layer], "problem")
    space = tw.space(problem, arch=architecture, constraints="none")
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    mapper = installed().make(MapperSpec, "optimal")
    search(mapper, Task(space), evaluator, Budget(evaluations=1))  # compiles
    result = search(mapper, Task(space), evaluator, Budget(seconds=seconds), clock=time.process_time)
    sizes = [size for size in problem.sizes if size > 1]
    gap = result.gap if result.error is None else None
    if gap is None:
        print(f"{layer} on {machine} failed: {result.error or result.stop}", file=sys.stderr, flush=True)
    return {
        "layer": layer,
        "machine": machine,
        "dimensions": len(sizes),
        "primes": sum(power for size in sizes for _, power in prime_powers(size)),
        "memories": len(architecture.memories),
        "edp": f"{result.value:.6g}",
        "gap": FAILED if gap is None else f"{gap:.3g}",
        "cpu_seconds": f"{result.cpu_seconds:.2f}",
        "mib": round(result.figures.get("memory_mib", 0)),
        "states": int(result.figures.get("states", 0)),
        "widest": int(result.figures.get("widest", 0)),
    }


def report(rows: list[dict[str, str]]) -> None:
    """Print how many are proved, and the geometric mean of states by dimensions, prime factors and memories."""
    gaps = [_gap(row) for row in rows]
    print(
        f"# {sum(gap < 1e-8 for gap in gaps)} of {len(rows)} proved, {sum(1e-8 <= gap < 0.01 for gap in gaps)} below 1 %, "
        f"{sum(math.isinf(gap) for gap in gaps)} failed"
    )
    for by in ("dimensions", "primes", "memories", "machine"):
        for value, group in itertools.groupby(sorted(rows, key=lambda row: _place(row[by])), key=lambda row: row[by]):
            some = list(group)
            proved = sum(_gap(row) < 1e-8 for row in some)
            mean = (_mean([float(row[name]) for row in some]) for name in ("cpu_seconds", "states", "mib"))
            seconds, states, mib = mean
            print(f"{by} {value}: {proved} of {len(some)} proved; {seconds:.2f} s, {states:,.0f} states, {mib:.0f} MiB")


def _gap(row: dict[str, str]) -> float:
    return math.inf if row["gap"] == FAILED else float(row["gap"])


def _place(value: str) -> tuple[int, str]:
    return (int(value), "") if value.isdecimal() else (0, value)


def _mean(values: list[float]) -> float:
    return math.exp(sum(math.log(max(value, 0.01)) for value in values) / len(values))


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", help="only layers whose names begin so")
    parser.add_argument("--machines", help="only these, separated by commas")
    parser.add_argument("--seconds", type=float, default=60, help="CPU time of each search")
    parser.add_argument(
        "-o", "--output", type=Path, help="CSV file; pairs that it has are not searched again, but for failed ones"
    )
    parser.add_argument("--networks", action="store_true", help="search contractions of many dimensions")
    parser.add_argument(
        "--growth", action="store_true", help="search the layers of the growth table, each on its machine"
    )
    parser.add_argument("--report", action="store_true", help="search nothing")
    arguments = parser.parse_args()
    path, rows = arguments.output, []
    if path and path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["gap"] != FAILED]
    done = {(row["layer"], row["machine"]) for row in rows}
    chosen = arguments.machines.split(",") if arguments.machines else None
    pairs = [pair for n, pair in enumerate(itertools.product(LAYERS, machines().items())) if n % 2 == 0]
    if arguments.networks:
        pairs = list(itertools.product(NETWORKS, machines().items()))
    if arguments.growth:
        known = {f"chain_{count}": chain(count) for count in CHAINS}
        known |= {name: tw.load(name, "architecture") for name in ("eyeriss", "union_edge")}
        pairs = [(layer, (name, known[name])) for layer, (_, name) in GROWTH.items()]
    for layer, (machine, architecture) in () if arguments.report else pairs:
        wanted = not arguments.layers or layer.startswith(tuple(arguments.layers))
        if (layer, machine) in done or not wanted or (chosen and machine not in chosen):
            continue
        row = {name: str(value) for name, value in measured(layer, machine, architecture, arguments.seconds).items()}
        rows.append(row)
        print(",".join(row.values()), flush=True)
        if path:
            with path.open("w", newline="", encoding="utf-8") as file:
                table = csv.DictWriter(file, COLUMNS)
                table.writeheader()
                table.writerows(rows)
    if rows:
        report(rows)


if __name__ == "__main__":
    main()
