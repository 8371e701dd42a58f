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
    by_tool,
    compared,
    distinct,
    geomean,
    number,
    problems,
    ratios,
    searched,
    table,
)
from tilewright.plugin.mapper import Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright_mappers import CosaOptions
from tilewright_mappers.cosa.mapper import Cosa

PAPER = "CoSA (ISCA 2021)"
VALID = 5
"""Number of random schedules; the best one counts."""
TOOLS = (
    Tool("hybrid", "timeloop_hybrid"),
    Tool("cosa, published form", "cosa", {"objective_form": "published"}),
    Tool("cosa, energy form", "cosa"),
)
FEW = {
    "AlexNet": ("conv2", "conv5", "fc7"),
    "ResNeXt-50": ("conv3_group", "conv4_expand"),
    "DeepBench": ("ocr_09", "face_recognition_14"),
}
RESNET = (1, 2)
"""Distinct problems of ResNet-50 in the quick run, by position."""
FILES = {
    "AlexNet": "cosa_alexnet_layers",
    "ResNet-50": "resnet50",
    "ResNeXt-50": "cosa_resnext50_layers",
    "DeepBench": "cosa_deepbench",
}


def layers(network: str, quick: bool) -> dict[str, tw.Problem]:
    """Distinct problems of a network, under `network: layer`."""
    if network == "ResNet-50":
        every = [layer.problem for layer in tw.load("resnet50", kind="workload").distinct()]
        chosen = [every[index] for index in RESNET] if quick else every
    else:
        chosen = list(problems(FILES[network], FEW[network] if quick else None).values())
    return {f"{network}: {problem.name}": problem for problem in chosen}


def best_random(
    label: str, problem: tw.Problem, arch: str, valid: int = VALID, constraints: str = "none", by: str = "edp"
) -> Row:
    """The best of the first valid random mappings."""
    space = tw.space(problem, arch, constraints=constraints)
    evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
    evaluator.evaluate_batch(space.sample(np.random.default_rng(0), 1).batch())  # compiles
    started = time.process_time()
    rng, drawn, kept = np.random.default_rng(0), 0, np.empty((0, 3))
    while len(kept) < valid and drawn < 1_000_000:
        batch = space.sample(rng, 4096)
        drawn += len(batch)
        costs = evaluator.evaluate_batch(batch.take(batch.fits()).batch())
        mine = np.stack([costs.edp, costs.energy_pj, costs.cycles], axis=1)[costs.valid]
        kept = np.concatenate([kept, mine])[:valid]
    column = ("edp", "energy_pj", "cycles").index(by)
    edp, energy, cycles = kept[kept[:, column].argmin()] if len(kept) else (None, None, None)
    return {
        "layer": label, "tool": "random", "edp": edp, "energy_pj": energy, "cycles": cycles, "utilization": None,
        "evaluated": drawn, "stop": "finished", "cpu_seconds": round(time.process_time() - started, 3),
    }  # fmt: skip


def measure(run: Run, arch: str, networks: tuple[str, ...]) -> Iterator[Row]:
    for network in networks:
        for label, problem in layers(network, run.quick).items():
            yield best_random(label, problem, arch)
            yield from searched(run, {label: problem}, arch, TOOLS, seconds=run.pick(30, 120))


def show(rows: list[Row]) -> Iterator[str]:
    """Geometric means per network: cycles of random over those of each tool, then energies."""
    tools = [tool for tool in distinct(rows, "tool") if tool != "random"]
    cells = {key: ratios(rows, key, "random") for key in ("cycles", "energy_pj")}
    networks = distinct([{"network": row["layer"].partition(":")[0]} for row in rows], "network")
    lines: list[list[object]] = []
    for network in (*networks, "all"):
        mine = [layer for layer in distinct(rows, "layer") if network in ("all", layer.partition(":")[0])]
        means = [1 / geomean(cells[key][layer, tool] for layer in mine) for key in cells for tool in tools]
        lines.append([network, len(mine), *means])
    head = [f"{what}, {tool}" for what in ("speed-up", "energy") for tool in tools]
    yield table(("random / tool", "layers", *head), lines)
    hybrid, cosa = (
        geomean(cells["cycles"][layer, tool] for layer in distinct(rows, "layer")) for tool in (tools[0], tools[-1])
    )
    seconds = [
        f"{tool} {np.mean([number(row, 'cpu_seconds') for row in rows if row['tool'] == tool]):.2g}"
        for tool in distinct(rows, "tool")
    ]
    yield (
        f"Against `timeloop_hybrid`, `cosa` is {hybrid / cosa:.3g} times as fast in its energy form. "
        f"CPU seconds per layer: {', '.join(seconds)}."
    )


def chart(rows: list[Row]) -> Chart:
    cells, names = ratios(rows, "cycles", "random"), distinct(rows, "layer")
    curves = {
        tool: (names, [1 / cells[name, tool] for name in names]) for tool in distinct(rows, "tool") if tool != "random"
    }
    return Chart("layer", "speed-up over random", curves, "y", points=True)


VARIANTS = ("cosa_simba_8x8", "cosa_simba_large_buffers")


def measure_variants(run: Run) -> Iterator[Row]:
    networks = ("AlexNet",) if run.quick else tuple(FILES)
    for arch in VARIANTS:
        for row in measure(run, arch, networks):
            yield row | {"layer": f"{arch}: {row['layer'].replace(': ', ' ')}"}


GPU = "cosa_k80"
TRIALS = 50
"""Number of random mappings, in place of the trials of TVM's tuner; the best one counts."""


def measure_gpu(run: Run) -> Iterator[Row]:
    """Cycles on the model of a GPU, for the distinct problems of ResNet-50."""
    tools = (*TOOLS[1:], Tool("optimal", "optimal"))
    for label, problem in layers("ResNet-50", run.quick).items():
        name = label.partition(": ")[2]
        yield best_random(name, problem, GPU, TRIALS, "thread_blocks", "cycles")
        yield from searched(
            run, {name: problem}, GPU, tools, constraints="thread_blocks", objective="cycles", seconds=run.pick(30, 120)
        )


def show_gpu(rows: list[Row]) -> Iterator[str]:
    yield compared(rows, "cycles", "cycles / those of random", "random")
    cells, names = ratios(rows, "cycles", "random"), distinct(rows, "layer")
    form = TOOLS[1].label
    seconds = {
        tool: np.mean([number(row, "cpu_seconds") for row in rows if row["tool"] == tool])
        for tool in distinct(rows, "tool")
    }
    yield (
        f"By the model, schedules of `cosa` in its published form are {1 / geomean(cells[name, form] for name in names):.3g} times as fast "
        f"as the best of {TRIALS} random ones, and {geomean(cells[name, form] / cells[name, 'optimal'] for name in names):.3g} times as slow "
        f"as those of `optimal`. CPU seconds per layer: {', '.join(f'{tool} {value:.2g}' for tool, value in seconds.items())}."
    )


def chart_gpu(rows: list[Row]) -> Chart:
    return by_tool(rows, "cycles", "cycles / those of random", "random")


TERMS = ("utilization", "compute", "traffic", "total")


def measure_terms(run: Run) -> Iterator[Row]:
    """Terms of the published objective for the mapping of each tool."""
    wanted = {"K": 512, "C": 512, "P": 7, "R": 3}
    problem = next(
        candidate for candidate in layers("ResNet-50", False).values() if wanted.items() <= candidate.dimensions.items()
    )
    space = tw.space(problem, "cosa_simba", constraints="none")
    mapper = Cosa(CosaOptions(objective_form="published"))
    random = Tool("random", "random")
    balanced = Tool("cosa, balanced form", "cosa", {"objective_form": "balanced"})
    for tool in (random, *TOOLS, balanced):
        limits = {"evaluations": 5_000} if tool is random else {"seconds": run.pick(30, 120)}
        report = tw.map(
            problem, "cosa_simba", mapper=tool.mapper, mapper_options=dict(tool.options), progress=False, **limits
        )
        (layer,) = report.layers
        if layer.interrupted:
            raise KeyboardInterrupt
        assert layer.result is not None and layer.result.best is not None
        terms = mapper.figures(Task(space), layer.result.best)
        yield {
            "tool": tool.label,
            **{term: terms[term] for term in TERMS},
            "cycles": layer.cycles,
            "edp": layer.edp,
            "cpu_seconds": round(layer.result.cpu_seconds, 3),
        }


def show_terms(rows: list[Row]) -> Iterator[str]:
    least = min(number(row, "edp") for row in rows)
    yield table(
        ("tool", *TERMS, "cycles", "EDP / least"),
        [
            [row["tool"], *(number(row, term) for term in (*TERMS, "cycles")), number(row, "edp") / least]
            for row in rows
        ],
    )


def chart_terms(rows: list[Row]) -> Chart:
    tools = [row["tool"] for row in rows]
    return Chart(
        "tool",
        "term, natural logarithm",
        {term: (tools, [number(row, term) for row in rows]) for term in TERMS},
        points=True,
    )


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
        "Schedules of CoSA are 1.5 times as fast as those of Timeloop's hybrid search, and take 1.2 times less energy. They are found 90 "
        "times as fast. A layer takes 4.2 s, random 4.6 s, and hybrid 379.9 s.",
        f"{WHY} Grouped convolutions of ResNeXt-50 keep their groups here.",
        "all but nine layers; searches of more than 30 s (120 s).",
        lambda run: measure(run, "cosa_simba", tuple(FILES)),
        show,
        chart,
    ),
    Experiment(
        "cosa_fig_8",
        PAPER,
        "Figure 8",
        "breakdown of the objective, a layer of ResNet-50",
        "CoSA's schedule has the best total of all, and is good in each term: utilization, compute and traffic.",
        "The paper prints bars. Weights are those of the authors' code. Terms are counted from the mappings, also those of other tools. Here the "
        "random mapping is the best of 5,000 drawn.",
        "searches of more than 30 s (120 s).",
        measure_terms,
        show_terms,
        chart_terms,
    ),
    Experiment(
        "cosa_variants",
        PAPER,
        "Figure 9",
        "an array of 8 x 8 elements, and larger buffers",
        "CoSA's schedules stay faster than those of random and hybrid on both variants.",
        f"{WHY} Sizes of the larger buffers are assumed; the paper's factors are not in the project's copy of its text.",
        "all but three layers of AlexNet; searches of more than 30 s (120 s).",
        measure_variants,
        show,
        chart,
    ),
    Experiment(
        "cosa_gpu",
        PAPER,
        "section V-E",
        "ResNet-50 on the model of a GPU, `cosa_k80`",
        "A schedule of CoSA, found in one shot, is faster on a GPU than that of TVM's tuner after its measured trials, as a geometric mean over "
        "the layers of ResNet-50. It is found in much less time.",
        "Nothing is measured on a GPU here: `timeloop` counts, without warps, caches and latencies, so the paper's speed-up cannot be decided. "
        "Fifty random mappings stand for the tuner's trials, which learn from measurements. The paper's factors are not in the project's copy of its text. "
        "`optimal` shows what is left to gain under this model. A block has 1,024 threads of 64 registers.",
        "all but two layers; searches of more than 30 s (120 s).",
        measure_gpu,
        show_gpu,
        chart_gpu,
    ),
)  # fmt: skip
