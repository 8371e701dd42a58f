"""Why ResNet-50 gains little by fusion where the home is small, shown by execution.

    python benchmarks/fusion_executed.py                  # all machines, as a Markdown table
    python benchmarks/fusion_executed.py --arch simba --objective cycles

`oracle` cannot execute the network itself, so it has an eighth of its channels, and two sevenths of its rows and columns. The home
has 1/98 of its words, since results have about 1/98 of theirs, and 16 times as many in the second row of a machine. Everything else
of the machine is as it is. Each layer is executed as it was mapped, with and without fusion.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.application.run.evaluation import build_model, evaluate, evaluate_group
from tilewright.reports import Report

ROOT = Path(__file__).parent.parent
MACHINES = ("eyeriss", "simba", "examples/npu.yaml")
CHANNELS, SIDE = 8, 3.5
"""Factors by which channels, and rows and columns, are smaller."""
SHARE = CHANNELS * SIDE * SIDE
"""Words of a result, divided by those of the reduced network's."""
ROOMS = (1, 16)
COLUMNS = ("architecture", "home, words", "bound on the gain, %", "stay whole", "share loops", "saved, %", "executed, %", "layers with equal energy and cycles", "CPU s")  # fmt: skip


def reduced(network: tw.Workload) -> tw.Workload:
    """Return a network of convolutions with fewer channels, rows and columns. Windows and strides are as they are."""

    def size(name: str, value: int) -> int:
        if name.upper() in ("P", "Q"):  # the last step of a stride reads one row less
            return round((value + value % 2) / SIDE) - value % 2 if value > 7 else round(value / SIDE)
        return value // CHANNELS if name.upper() in ("K", "C", "M", "N") and value >= CHANNELS else value

    data = network.to_data()
    for layer in data["layers"]:
        sizes = layer["problem"]["dimensions"]
        layer["problem"]["dimensions"] = {name: size(name, value) for name, value in sizes.items()}
        for read in (read for reads in layer.get("reads", {}).values() for read in reads if "sizes" in read):
            read["sizes"] = {name: size(name, value) for name, value in read["sizes"].items()}
    del data["source"]
    return tw.Workload.model_validate(data | {"name": f"small_{network.name}"})


def without_reads(network: tw.Workload) -> tw.Workload:
    """Return a network that does not tell what its layers read, so that nothing is fused."""
    layers = [layer.model_copy(update={"reads": {}}) for layer in network.layers]
    data = network.to_data() | {"layers": [layer.model_dump(mode="json", exclude_defaults=True) for layer in layers]}
    return tw.Workload.model_validate(data)


def executed(fused: tw.NetworkFusion) -> tuple[float, int]:
    """Return the objective of all layers as they are executed, and for how many energy and cycles are those of the search."""
    model = build_model("oracle", {"max_operations": 10**7})
    known = dict[Any, tuple[float, bool]]()
    values, equal, sharing = list[float](), 0, set[int]()

    def compared(told: Report | None, report: Report) -> tuple[float, bool]:
        assert told is not None and report.energy_pj is not None and told.energy_pj is not None, report.reasons
        value = fused.gain.objective.value(report.energy_pj, report.cycles or 0)
        return value, math.isclose(report.energy_pj, told.energy_pj) and report.cycles == told.cycles

    for part in fused.parts:
        value, is_equal = compared(part.report, evaluate_group(model, part.mapping))
        values, equal = [*values, value], equal + is_equal * (part.last + 1 - part.first)
        sharing |= set(range(part.first, part.last + 1))
    for at, cost in enumerate(fused.costs):
        layer = cost.layer
        if (
            at in sharing
            or layer is None
            or layer.architecture is None
            or layer.result is None
            or layer.result.best is None
        ):
            continue
        key = layer.problem.content_key, layer.architecture, layer.result.best
        if key not in known:
            report = evaluate(model, layer.problem, layer.architecture, layer.result.best)
            known[key] = compared(layer.report, report)
        values, equal = [*values, known[key][0]], equal + known[key][1]
    return math.fsum(values), equal


def row(arch: str, room: int, objective: str) -> list[str]:
    """Return the cells of a machine whose home has `room` times the room that the reduced network needs."""
    started = time.process_time()
    network = reduced(tw.load("resnet50", "workload"))
    machine = tw.load(ROOT / arch if arch.endswith(".yaml") else arch, "architecture")
    home = machine.clusters[1].memories[0]
    words = int((home.capacity_words or 0) * room / SHARE)
    machine = machine.with_memories(lambda m: m.model_copy(update={"capacity_words": words}) if m == home else m)
    options = dict[str, Any](objective=objective, cache=False, progress=False)
    fused = tw.fuse_network(network, machine, **options)
    plain = tw.fuse_network(without_reads(network), machine, **options)
    before, after = executed(plain), executed(fused)
    assert fused.gain.gain is not None, "all reads are known"
    shares = [f"{100 * share:.2f}" for share in (fused.gain.gain, fused.saved, 1 - after[0] / before[0])]
    equal = f"{before[1]} and {after[1]} of {len(fused.costs)}"
    seconds = f"{time.process_time() - started:.0f}"
    return [
        machine.name,
        f"{words:,}",
        shares[0],
        str(len(fused.residents)),
        str(sum(part.last + 1 - part.first for part in fused.parts)),
        *shares[1:],
        equal,
        seconds,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=MACHINES, help="architecture; may be repeated")
    parser.add_argument("--objective", choices=("energy", "cycles"), default="energy")
    given = parser.parse_args()
    for cells in (COLUMNS, ["---", *["---:"] * (len(COLUMNS) - 1)]):
        print(f"| {' | '.join(cells)} |")
    for arch in given.arch or MACHINES:
        for room in ROOMS:
            print(f"| {' | '.join(row(arch, room, given.objective))} |", flush=True)


if __name__ == "__main__":
    main()
