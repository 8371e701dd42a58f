"""CoSA (Huang et al., ISCA 2021): its schedules against random ones and Timeloop's hybrid search, on three machines."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import tilewright as tw
from benchmarks.experiments.framework import (
    Chart,
    Experiment,
    Row,
    Run,
    Tool,
    distinct,
    geomean,
    number,
    problems,
    ratios,
    searched,
    table,
)
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec

PAPER = "CoSA (ISCA 2021)"
VALID = 5
"""Random schedules of which the best counts."""
TOOLS = (
    Tool("hybrid", "timeloop_hybrid"),
    Tool("cosa, published form", "cosa", {"objective_form": "published"}),
    Tool("cosa, energy form", "cosa"),
)
FEW = {
    "AlexNet": ("conv2", "conv5", "fc7"),
    "ResNet-50": (1, 2),
    "ResNeXt-50": ("conv3_group", "conv4_expand"),
    "DeepBench": ("ocr_09", "face_recognition_14"),
}
FILES = {"AlexNet": "cosa_alexnet", "ResNet-50": "resnet50", "ResNeXt-50": "cosa_resnext50", "DeepBench": "cosa_deepbench"}


def layers(network: str, quick: bool) -> dict[str, tw.Problem]:
    """Distinct problems of a network, under `network: layer`."""
    if network == "ResNet-50":
        every = [each.problem for each in tw.load("resnet50", kind="workload").distinct()]
        chosen = [every[int(index)] for index in FEW[network]] if quick else every
    else:
        chosen = list(problems(FILES[network], FEW[network] if quick else None).values())
    return {f"{network}: {each.name}": each for each in chosen}


def best_random(label: str, problem: tw.Problem, arch: str) -> Row:
    """The best of the first valid random mappings."""
    started = time.process_time()
    space = tw.space(problem, arch, constraints="none")
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    rng, drawn, found = np.random.default_rng(0), 0, np.empty((0, 3))
    while len(found) < VALID and drawn < 1_000_000:
        batch = space.sample(rng, 4096)
        drawn += len(batch)
        costs = evaluator.evaluate_batch(batch.take(batch.fits()).batch())
        mine = np.stack([costs.edp, costs.energy_pj, costs.cycles], axis=1)[costs.valid]
        found = np.concatenate([found, mine])[:VALID]
    edp, energy, cycles = found[found[:, 0].argmin()] if len(found) else (None, None, None)
    return {
        "layer": label, "tool": "random", "edp": edp, "energy_pj": energy, "cycles": cycles, "utilization": None,
        "evaluated": drawn, "stop": "finished", "cpu_seconds": round(time.process_time() - started, 3),
    }  # fmt: skip


def measure(run: Run, arch: str, networks: tuple[str, ...]) -> Iterator[Row]:
    for network in networks:
        for label, problem in layers(network, run.quick).items():
            yield best_random(label, problem, arch)
            yield from searched(run, {label: problem}, arch, TOOLS, seconds=run.pick(8, 60))


def show(rows: list[Row]) -> Iterator[str]:
    """Geometric means per network: cycles of random over those of each tool, then energies."""
    tools = [tool for tool in distinct(rows, "tool") if tool != "random"]
    found = {key: ratios(rows, key, "random") for key in ("cycles", "energy_pj")}
    networks = distinct([{"network": row["layer"].partition(":")[0]} for row in rows], "network")
    lines: list[list[object]] = []
    for network in (*networks, "all"):
        mine = [layer for layer in distinct(rows, "layer") if network in ("all", layer.partition(":")[0])]
        means = [1 / geomean(found[key][layer, tool] for layer in mine) for key in found for tool in tools]
        lines.append([network, len(mine), *means])
    head = [f"{what}, {tool}" for what in ("speed-up", "energy") for tool in tools]
    yield table(("random / tool", "layers", *head), lines)
    hybrid, cosa = (geomean(found["cycles"][layer, tool] for layer in distinct(rows, "layer")) for tool in (tools[0], tools[-1]))
    seconds = {tool: sum(number(row, "cpu_seconds") for row in rows if row["tool"] == tool) for tool in distinct(rows, "tool")}
    yield (
        f"Against `timeloop_hybrid`, `cosa` is {hybrid / cosa:.3g} times as fast in its energy form. "
        f"CPU seconds per layer: {', '.join(f'{tool} {value / len(distinct(rows, "layer")):.2g}' for tool, value in seconds.items())}."
    )


def chart(rows: list[Row]) -> Chart:
    found, names = ratios(rows, "cycles", "random"), distinct(rows, "layer")
    curves = {
        tool: (names, [1 / found[name, tool] for name in names]) for tool in distinct(rows, "tool") if tool != "random"
    }
    return Chart("layer", "speed-up over random", curves, "y", points=True)


VARIANTS = ("cosa_simba_8x8", "cosa_simba_large_buffers")


def measure_variants(run: Run) -> Iterator[Row]:
    networks = ("AlexNet",) if run.quick else tuple(FEW)
    for arch in VARIANTS:
        for row in measure(run, arch, networks):
            yield row | {"layer": f"{arch}: {row['layer'].replace(': ', ' ')}"}


WHY = (
    "CoSA's file has no energies, so Sunstone's are used, and `timeloop` evaluates all mappings. `random` is the best of five valid mappings, "
    "as in the paper. HiGHS solves the programs, Gurobi in the paper. `timeloop_hybrid` has one thread and its default limits."
)
EXPERIMENTS = (
    Experiment(
        "cosa_speedup",
        PAPER,
        "Figures 6 and 7, Table VI",
        "speed-up and energy on four networks, by Timeloop",
        "Schedules of CoSA are 1.5 times as fast as those of Timeloop's hybrid search, take 1.2 times less energy, and are found 90 times as "
        "fast: 4.2 s per layer, random 4.6 s, hybrid 379.9 s.",
        f"{WHY} Grouped convolutions of ResNeXt-50 keep their groups here.",
        "all but nine of 132 layers; searches of more than 8 s (60 s).",
        lambda run: measure(run, "cosa_simba", tuple(FEW)),
        show,
        chart,
    ),
    Experiment(
        "cosa_variants",
        PAPER,
        "Figure 9",
        "an array of 8 x 8 elements, and larger buffers",
        "CoSA's schedules stay faster than those of random and hybrid on both variants.",
        f"{WHY} Sizes of the larger buffers are assumed; the paper's factors are not in the project's copy of its text.",
        "all but three layers of AlexNet; searches of more than 8 s (60 s).",
        measure_variants,
        show,
        chart,
    ),
)  # fmt: skip
