"""Networks with their vector layers on five machines: `python -m benchmarks.vector [SECONDS]` prints the table of benchmarks/vector.md.

The library's machines have no vector unit. Those that are added here are assumptions: as many lanes as a row of the array, at the
global buffer, and energies of an operation relative to a MAC.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tilewright as tw
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.vector import OPERATORS, Operation, Unit
from tilewright.schema.workload import Workload

NETWORKS = ("resnet50", "mobilenetv2", "bert_base", "vit_b16", "llama3_8b", "mixtral_8x7b")
LANES = {
    "eyeriss": ("GlobalBuffer", 14),
    "simba": ("GlobalBuffer", 64),
    "tpu_v1": ("UnifiedBuffer", 256),
    "sunstone_edge": ("L2", 14),
}
"""Machine of the library -> memory and lanes of its vector unit."""
RATIOS: dict[Operation, float] = {
    "add": 0.5, "compare": 0.5, "convert": 0.5, "multiply": 1.0, "divide": 4.0, "exponential": 4.0,
}  # fmt: skip
"""Kind of operation -> its energy, in MACs."""


def with_unit(name: str) -> Architecture:
    """Return a machine of the library with a vector unit."""
    architecture = tw.load(name, kind="architecture")
    memory, lanes = LANES[name]
    mac = architecture.compute.energy_per_operation_pj
    unit = Unit(
        name="VectorUnit",
        lanes=lanes,
        memory=memory,
        energy_pj=FrozenDict({kind: ratio * mac for kind, ratio in RATIOS.items()}),
        cycles=FrozenDict({"exponential": 4.0, "divide": 4.0}),
    )
    return architecture.model_copy(update={"units": (unit,)})


def machines() -> list[Architecture]:
    """Return the five machines."""
    return [
        *map(with_unit, LANES),
        tw.load(Path(__file__).parents[1] / "examples" / "tpu_v4i.yaml", kind="architecture"),
    ]


def attention(seconds: float) -> None:
    """Print one attention of GPT-3 6.7B, with 2,048 tokens on TPU-v4i, next to AccelForge's figures, in ms.

    AccelForge counts one operation an element of the softmax, and keeps the scores on chip. `alone` is the time of the
    units without that of memories.
    """
    machine = machines()[-1]
    network = tw.load("gpt3_6_7b", kind="workload", sizes={"seq": 2048})
    chosen = [layer for layer in network.layers if layer.name.endswith((".scores", ".context"))]
    softmax = [vector.model_copy(update={"count": 1}) for vector in network.vectors if vector.operator == "Softmax"]
    scores, context = (layer.model_copy(update={"count": 1, "reads": FrozenDict()}) for layer in chosen)
    layers = (scores.model_copy(update={"after": ()}), context.model_copy(update={"after": (scores.name,)}))
    work = Workload(name="attention", layers=layers, vectors=tuple(softmax))
    single = machine.units[0].model_copy(update={"operators": FrozenDict({"Softmax": OPERATORS["Exp"]})})
    print(
        "| | AccelForge | alone, one operation | alone, the table | with memories, one operation | with memories, the table |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    columns = list[list[int]]()
    for architecture in (machine.model_copy(update={"units": (single,)}), machine):
        report = tw.map(work, architecture, objective="cycles", seconds=seconds, progress=False)
        totals = report.data()["totals"]
        alone = [
            sum(limit.cycles for one in reports if one for limit in one.limits if limit.action == "compute")
            for reports in ([layer.report for layer in report.layers], [vector.report for vector in report.vectors])
        ]
        columns.insert(len(columns) // 2, alone)
        columns.append([totals[key] for key in ("cycles", "vector_cycles", "sequential_cycles", "overlapped_cycles")])
    names = ("matrix units", "vector units", "all, in sequence", "all, overlapped")
    for number, (name, theirs) in enumerate(zip(names, ("0.499", "0.250", "-", "-"), strict=True)):
        cells = [
            f"{column[number] / (machine.clock_ghz or 1.0) / 1e6:.3f}" if number < len(column) else "-"
            for column in columns
        ]
        print(f"| {name} | {theirs} | {' | '.join(cells)} |")


def main(seconds: float) -> None:
    """Print a row for each network and machine, and one attention next to AccelForge's figures."""
    print(
        "| network | machine | matrix cycles | vector cycles | in sequence | overlapped | matrix energy | vector energy |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for network in NETWORKS:
        for architecture in machines():
            report = tw.map(network, architecture, objective="cycles", seconds=seconds, progress=False)
            totals = report.data()["totals"]
            cycles = ("cycles", "vector_cycles", "sequential_cycles", "overlapped_cycles")
            numbers = [f"{totals[key] / 1e6:,.3f}" if totals[key] else "-" for key in cycles]
            numbers += [
                f"{totals[key] * 1e-9:,.3f}" if totals[key] else "-" for key in ("energy_pj", "vector_energy_pj")
            ]
            print(f"| `{network}` | `{architecture.name}` | {' | '.join(numbers)} |", flush=True)
    print()
    attention(seconds)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
