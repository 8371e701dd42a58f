"""Fused networks: the bound on the gain, and the energy without and with results that stay on chip.

    python benchmarks/fusion.py                                    # all networks and architectures, as a Markdown table
    python benchmarks/fusion.py --network mobilenetv2 --arch simba

The networks of the library are read by `onnx`. MobileNetV2 and the transformer blocks are built here from their published sizes, with
the words that layers read. The results of a block's residual additions and norms are read as new inputs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import tilewright as tw
from tilewright.schema.problem import Problem
from tilewright.schema.read import shape_of
from tilewright_frontends import nests

ARCHITECTURES = ("eyeriss", "simba", "tpu_v1")


class _Network:
    """Layers in order, with their reads."""

    def __init__(self, name: str, count: int = 1) -> None:
        self.name, self.count, self.layers = name, count, list[dict[str, Any]]()

    def add(self, problem: Problem, **reads: Sequence[dict[str, Any]]) -> str:
        after = list(dict.fromkeys(read["maker"] for each in reads.values() for read in each))
        own = {name: list(each) for name, each in reads.items() if each}
        self.layers.append(
            {"problem": problem.model_dump(mode="json"), "after": after, "reads": own, "count": self.count}
        )
        return problem.name

    def workload(self) -> tw.Workload:
        return tw.Workload.model_validate({"name": self.name, "layers": self.layers})


def transformer(
    name: str, tokens: int, hidden: int, heads: int, mlp: int, count: int, shared: int = 1, gated: bool = False
) -> tw.Workload:
    """Return `count` equal blocks; `shared` heads have one key and one value."""
    network, head, groups = _Network(name, count), hidden // heads, heads // shared
    sizes = {"G": groups, "H": shared, "T": tokens, "S": tokens, "D": head}
    grid = {"g": groups, "h": shared, "t": tokens, "d": head}
    flat = [f"{shared * head}*g + {head}*h + d" if shared > 1 else f"{head}*g + d"]
    letters = "gh" if shared > 1 else "g"
    if shared == 1:
        del sizes["H"], grid["h"]
    up = letters.upper()

    def read(maker: str, made: list[str], seen: list[str]) -> list[dict[str, Any]]:
        return [{"maker": maker, "sizes": grid, "made": made, "read": seen}]

    def contraction(name: str, *tensors: str) -> Problem:
        *operands, output = [nests.plain(list(each)) for each in tensors]
        return nests.contraction(name, sizes, operands, output)

    q = network.add(nests.gemm("q", (tokens, hidden), (hidden, hidden)))
    for each in "kv":
        network.add(nests.gemm(each, (tokens, hidden), (hidden, groups * head)))
    spread = [*letters, "t", "d"]
    keys = [
        {
            "maker": "k",
            "sizes": {"g": groups, "s": tokens, "d": head},
            "made": ["s", f"{head}*g + d"],
            "read": ["g", "s", "d"],
        }
    ]
    scores = network.add(contraction("scores", f"{up}TD", "GSD", f"{up}TS"), A=read(q, ["t", *flat], spread), B=keys)
    values = [{**keys[0], "maker": "v"}]
    context = network.add(contraction("context", f"{up}TS", "GSD", f"{up}TD"), A=[{"maker": scores}], B=values)
    network.add(nests.gemm("out", (tokens, hidden), (hidden, hidden)), A=read(context, spread, ["t", *flat]))
    made = [network.add(nests.gemm(each, (tokens, hidden), (hidden, mlp))) for each in ("up", "gate")[: 1 + gated]]
    network.add(nests.gemm("down", (tokens, mlp), (mlp, hidden)), A=[{"maker": each} for each in made])
    return network.workload()


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
    "gpt3_6.7b, 2,048 tokens": lambda: transformer("gpt3_6.7b", 2048, 4096, 32, 16384, 32),
    "bert_base, 512 tokens": lambda: transformer("bert_base", 512, 768, 12, 3072, 12),
    "bert_base, 128 tokens": lambda: transformer("bert_base", 128, 768, 12, 3072, 12),
    "llama3_8b, 2,048 tokens": lambda: transformer("llama3_8b", 2048, 4096, 32, 14336, 32, 4, True),
    "mobilenetv2": mobilenetv2,
    "resnet50": lambda: tw.load("resnet50"),
    "shufflenet": lambda: tw.load("shufflenet"),
    "squeezenet": lambda: tw.load("squeezenet"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", help="start of a network's name; may be repeated")
    parser.add_argument("--arch", action="append", help="architecture; may be repeated")
    arguments = parser.parse_args()
    print(
        "| network | architecture | unfused mJ | fused mJ | saved % | at most % | results that stay | proved | CPU s |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |")
    for name, build in NETWORKS.items():
        if arguments.network and not name.startswith(tuple(arguments.network)):
            continue
        for arch in arguments.arch or ARCHITECTURES:
            started = time.process_time()
            found = tw.fuse_network(build(), arch, objective="energy", cache=False, progress=False)
            seconds = time.process_time() - started
            staying = f"{len(found.residents)} of {len(found.gain.may_stay)}"
            figures = [
                f"{found.gain.unfused / 1e9:,.4g}",
                f"{found.value / 1e9:,.4g}",
                f"{100 * found.saved:.2f}",
                f"{100 * found.gain.gain:.2f}",
            ]
            state = "yes" if found.proved else f"to {100 * (found.gap or 0):.2g} %"
            print("|", " | ".join([name, arch, *figures, staying, state, f"{seconds:.0f}"]), "|", flush=True)


if __name__ == "__main__":
    main()
