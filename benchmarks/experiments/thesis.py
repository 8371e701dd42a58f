"""Sunstone's thesis (C. Ng, UBC, 2022): mappers on its machines, its ablation, and sizes of buffers chosen with the mapping."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

import numpy as np

import tilewright as tw
from benchmarks import mindmappings
from benchmarks.experiments.framework import (
    Chart,
    Experiment,
    Row,
    Run,
    Tool,
    by_tool,
    compared,
    distinct,
    number,
    problems,
    searched,
    table,
)
from benchmarks.experiments.sunstone import KERNELS, SUNSTONE, TIMELOOP_FAST, TIMELOOP_SLOW, UPDATES, limits
from tilewright.application.exploration.joint import JointSearch
from tilewright.mapspace.looporders import ordering_trie, reuse_maximal
from tilewright.plugin import Budget
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.objective import EDP
from tilewright_strategies.sunstone_arch import Tiles

PAPER = "Sunstone-arch (thesis of C. Ng, UBC, 2022)"
DMAZE_FAST = Tool("dMaze-fast", "dmazerunner", {"array": 1.0, "inner": 0.8, "outer": 0.5}, ends=False)
DMAZE_SLOW = Tool(
    "dMaze-slow", "dmazerunner", {"array": 0.8, "inner": 0.8, "outer": 0.5, "reduction": True}, ends=False
)
INTERSTELLAR = Tool("Interstellar", "interstellar", ends=False)
MOBILENET = ("b2_pw1", "b2_dw", "b3_pw2", "b5_pw1", "b7_dw", "b7_pw2", "b12_dw", "b15_pw2")


def measure_machines(run: Run) -> Iterator[Row]:
    mobile = problems("sunstone_mobilenetv2_layers", run.pick(("b2_pw1", "b5_pw1", "b7_dw"), MOBILENET))
    layers = ("resnet18_conv2_x", "resnet18_conv4_x")
    resnet = problems("sunstone_layers", run.pick(layers[1:], (*layers, "resnet18_conv3_x", "resnet18_conv5_x")))
    every = (SUNSTONE, TIMELOOP_FAST, TIMELOOP_SLOW, DMAZE_FAST, DMAZE_SLOW, INTERSTELLAR)
    for arch, work, tools in (
        ("sunstone_edge_unified", mobile, every),
        ("sunstone_edge", resnet, every[:3]),
        ("sunstone_conventional", resnet, every),
        ("sunstone_datacenter", resnet, every[:3]),
    ):
        for row in searched(run, work, arch, tools, **limits(run)):
            yield row | {"layer": f"{row['layer']} on {arch.removeprefix('sunstone_')}"}


def measure_sweep(run: Run) -> Iterator[Row]:
    mobile = problems("sunstone_mobilenetv2_layers", run.pick(("b5_pw1", "b7_dw", "b7_pw2"), MOBILENET))
    names = [f"incv3_wu_{name}" for name in run.pick(("5x5_early", "1x7_deep"), UPDATES)]
    tools = [Tool("equal", "cosa", {"objective_form": "published"})]
    for role in ("input", "weight", "output"):
        options = {"objective_form": "published", "utilization_of": {role: 2.0}}
        tools.append(Tool(f"{role} twice", "cosa", options))
    every = (*tools, Tool("cosa, energy form", "cosa"), SUNSTONE)
    for arch, work in (
        ("sunstone_edge_unified", mobile),
        ("sunstone_conventional", problems("sunstone_layers", names)),
    ):
        for row in searched(run, work, arch, every, **limits(run)):
            yield row | {"layer": f"{row['layer']} on {arch.removeprefix('sunstone_')}"}


LEARNED = ("conv2_x", "conv3_x", "conv4_x", "conv5_x")
"""3 x 3 convolutions of one class, so that one surrogate serves them."""


def measure_learned(run: Run) -> Iterator[Row]:
    """Median EDP over the seeds of Sunstone, Mind Mappings, the start of its best mapping, and as many random mappings."""
    names = [f"resnet18_{name}" for name in LEARNED]
    for name, problem in problems("sunstone_layers", names).items():
        space = tw.space(problem, "sunstone_conventional", constraints="none")
        sound = mindmappings.result(space, "sunstone", 0)
        learned = [mindmappings.result(space, "mindmappings", seed) for seed in range(run.pick(1, 5))]
        random = [mindmappings.result(space, "random", seed, result.evaluated) for seed, result in enumerate(learned)]
        starts = [result.value * result.figures.get("improvement", 1.0) for result in learned]
        training = learned[0].figures["training_cpu_seconds"]
        for tool, values, seconds in (
            ("Sunstone", [sound.value], sound.cpu_seconds),
            ("Mind Mappings", [result.value for result in learned], statistics.median(result.figures["search_cpu_seconds"] for result in learned)),
            ("its best mapping's start", starts, math.nan),
            ("random", [result.value for result in random], statistics.median(result.cpu_seconds for result in random)),
        ):  # fmt: skip
            yield {
                "layer": name.removeprefix("resnet18_"),
                "tool": tool,
                "edp": statistics.median(values),
                "evaluated": learned[0].evaluated if tool != "Sunstone" else sound.evaluated,
                "moved": statistics.median(result.figures["moved"] for result in learned),
                "training_cpu_seconds": training,
                "cpu_seconds": seconds,
            }


def show_learned(rows: list[Row]) -> Iterator[str]:
    yield compared(rows, "edp", "EDP / Sunstone's", "Sunstone")
    learned = next(row for row in rows if row["tool"] == "Mind Mappings")
    moves = [number(row, "moved") for row in rows if row["tool"] == "Mind Mappings"]
    yield (
        f"Mind Mappings and random search evaluate {learned['evaluated']} mappings. Training the surrogate took "
        f"{number(learned, 'training_cpu_seconds'):.0f} CPU seconds in addition. Descents move by {min(moves):.3g} to {max(moves):.3g}, "
        "as a distance of vectors."
    )


def measure_kernels(run: Run) -> Iterator[Row]:
    layers = {label: problems("sunstone_kernels", [name])[name] for label, name in KERNELS.items()}
    for arch in ("sunstone_edge_unified", "sunstone_conventional"):
        for row in searched(run, layers, arch, (SUNSTONE, TIMELOOP_SLOW), **limits(run)):
            yield row | {"layer": f"{row['layer']} on {arch.removeprefix('sunstone_')}"}


ABLATION = {
    "conv2": ("sunstone_layers", "resnet18_conv2_x"),
    "conv10": ("sunstone_layers", "resnet18_conv4_x"),
    "conv15": ("sunstone_layers", "resnet18_conv5_x"),
    "3x3 early": ("sunstone_layers", "incv3_inf_3x3_early"),
    "1x7 deep": ("sunstone_layers", "incv3_inf_1x7_deep"),
    "b2-pw1": ("sunstone_mobilenetv2_layers", "b2_pw1"),
    "b6-pw1": ("sunstone_mobilenetv2_layers", "b5_pw1"),
}


def measure_ablation(run: Run) -> Iterator[Row]:
    for label in run.pick(("conv10", "b2-pw1", "b6-pw1"), ABLATION):
        workload, name = ABLATION[label]
        problem = problems(workload, [name])[name]
        space = tw.space(problem, "sunstone_edge", constraints="none")
        levels = sum(not slot.spatial for slot in space.slots) - 1
        loops = sum(size > 1 for size in problem.dimensions.values())
        (row,) = searched(
            run, {label: problem}, "sunstone_edge", [Tool("paper", "sunstone", {"principles": "paper"}, ends=False)],
            **limits(run),
        )  # fmt: skip
        (best,) = searched(run, {label: problem}, "sunstone_edge", [SUNSTONE], **limits(run))
        yield {
            "layer": label,
            "all": float(space.factorizations) * math.factorial(loops) ** levels,
            "loop order": float(space.factorizations) * len(reuse_maximal(ordering_trie(problem))) ** levels,
            "all rules": row["evaluated"],
            "stop": row["stop"],
            "edp": row["edp"],
            "edp, sound": best["edp"],
            "cpu_seconds": row["cpu_seconds"] + best["cpu_seconds"],
        }


def show_ablation(rows: list[Row]) -> Iterator[str]:
    sizes = ("all", "loop order", "all rules")
    yield table(
        ("layer", "all mappings", "reuse-maximal orders", "evaluated under all rules", "the search", "EDP / sound"),
        [
            [row["layer"], *(f"{number(row, size):.2e}" for size in sizes), row["stop"], number(row, "edp") / number(row, "edp, sound")]
            for row in rows
        ],
    )  # fmt: skip


def chart_ablation(rows: list[Row]) -> Chart:
    layers = [row["layer"] for row in rows]
    curves = {name: (layers, [number(row, name) for row in rows]) for name in ("all", "loop order", "all rules")}
    return Chart("layer", "mappings", curves, "y", points=True)


L1_KEPT = {
    "name": "all_kept",
    "variants": [
        {"keep": [{"memory": "L2", "keep": ["Inputs", "Weights", "Outputs"]}, {"memory": "InputL1", "keep": ["Inputs"]},
                  {"memory": "WeightL1", "keep": ["Weights"]}, {"memory": "OutputL1", "keep": ["Outputs"]}]}
    ],
}  # fmt: skip
ARCH_LAYERS = {"conv1": "conv1", "conv2": "conv2_x", "conv3": "conv3_1", "conv4": "conv4_1"}


WIDE = {"width": 150, "tries": 1500, "rounds": 1}
"""Options of the one search for all machines: three times as many candidates per step, in one round."""


def measure_arch(run: Run) -> Iterator[Row]:
    """The mapper once per triple, and once for all triples that some tile needs, cheapest first."""
    points = [point for point in tw.architecture_space("sunstone_l1").points() if point.architecture is not None]
    machines = [point.architecture for point in points if point.architecture is not None]
    model = installed().make(CostModelSpec, "timeloop")
    for label, name in ARCH_LAYERS.items():
        problem = problems("sunstone_layers", [f"resnet18_{name}"])[f"resnet18_{name}"]
        tiles = Tiles.of(problem, machines)
        needed = sorted(set(tiles.owner[tiles.maximal].tolist()), key=lambda place: float(tiles.price[place]))
        for tool, runs, options, most in (
            ("grid", [[place] for place in range(len(machines))], {}, run.pick(10_000, 40_000)),
            ("sunstone_arch", [needed], run.pick({}, WIDE), run.pick(50_000, None)),
        ):
            mapper = installed().make(MapperSpec, "sunstone", options)
            values: dict[int, float] = {}
            counts = np.zeros(5)
            for places in runs:
                spaces = [tw.space(problem, machines[place], constraints=L1_KEPT) for place in places]
                joint = JointSearch(spaces, [model.bind(problem, space.architecture) for space in spaces], EDP)
                result = joint.run(mapper, Budget(evaluations=most))
                values |= {place: value for place, (value, _) in zip(places, joint.best(), strict=True)}
                counts += [(joint.evaluated > 0).sum(), *joint.tiles, result.evaluated, result.cpu_seconds]
            best = min(values, key=lambda place: values[place])
            yield {
                "layer": label,
                "tool": tool,
                "edp": values[best],
                "sizes": "/".join(str(value) for value in points[best].values.values()),
                **dict(
                    zip(("triples", "l1_tiles", "l2_tiles", "mappings"), counts[:4].astype(int).tolist(), strict=True)
                ),
                "cpu_seconds": round(float(counts[4]), 3),
            }


def show_arch(rows: list[Row]) -> Iterator[str]:
    lines: list[list[object]] = []
    for label in distinct(rows, "layer"):
        grid, joint = (row for row in rows if row["layer"] == label)
        lines.append([label, grid["sizes"], joint["sizes"], f"{100 * (number(joint, 'edp') / number(grid, 'edp') - 1):.3f} %",
                      *(f"{joint[key]} of {grid[key]}" for key in ("triples", "l1_tiles", "l2_tiles", "mappings")),
                      f"{number(joint, 'cpu_seconds'):.0f} of {number(grid, 'cpu_seconds'):.0f}"])  # fmt: skip
    yield table(
        ("layer", "best of the grid", "best of sunstone_arch", "loss", "triples (7.2)", "L1 tiles (7.3)", "L2 tiles (7.4)", "mappings", "CPU s"),
        lines,
    )  # fmt: skip


def chart_arch(rows: list[Row]) -> Chart:
    layers = distinct(rows, "layer")
    curves = {}
    for key, what in (("triples", "triples (7.2)"), ("l1_tiles", "L1 tiles (7.3)"), ("l2_tiles", "L2 tiles (7.4)")):
        cells = {(row["layer"], row["tool"]): number(row, key) for row in rows}
        curves[what] = (layers, [cells[layer, "sunstone_arch"] / cells[layer, "grid"] for layer in layers])
    return Chart("layer", "searched by sunstone_arch / by the grid", curves, points=True)


EXPERIMENTS = (
    Experiment(
        "thesis_fig_6_1",
        PAPER,
        "Figures 6.1 and 6.2",
        "mappers on the four machines of Table 6.3",
        "Sunstone's mappings are as good as those of all others or better, often by far. dMaze-fast finds none on some layers.",
        "Mappings are evaluated by `timeloop` at the library's energies. Timeloop's random search has 8 threads and an hour in the thesis, "
        "and one thread and the same criteria here. MobileNetV2's layers have their true strides.",
        "five of eight layers of MobileNetV2, three of ResNet-18; searches of more than 100,000 mappings (200,000).",
        measure_machines,
        lambda rows: [compared(rows, "edp", "EDP / least")],
        by_tool,
    ),
    Experiment(
        "thesis_fig_6_7",
        PAPER,
        "Figure 6.7",
        "CoSA with other shares of the buffers",
        "With half of L1 for one tensor, CoSA matches Sunstone on some layers (b7-pw2, 5x5 early). It finds mappings where the equal "
        "split had none. No setting is best for all layers.",
        "`cosa` needs no split, because its capacities are those of the sum. Instead the utilization of one tensor counts twice. So all its "
        "mappings are valid, and the settings differ less.",
        "five of eight layers of MobileNetV2, two of four of Inception-v3.",
        measure_sweep,
        lambda rows: [compared(rows, "edp", "EDP / least")],
        by_tool,
    ),
    Experiment(
        "thesis_fig_6_8",
        PAPER,
        "Figure 6.8",
        "Mind Mappings",
        "Mind Mappings is consistently worse than Sunstone. The thesis suspects a fault in the published program, which then returns its "
        "random start.",
        "The thesis uses the architecture of the authors' program, but does not print it. There each tensor has its own banks. Here it is "
        "`sunstone_conventional` without banks. `mindmappings` is written after the paper, without that fault, so it improves its starts.",
        "four of five seeds.",
        measure_learned,
        show_learned,
        lambda rows: by_tool(rows, y="EDP / Sunstone's", base="Sunstone"),
        ("jax", "learned"),
    ),
    Experiment(
        "thesis_fig_6_9",
        PAPER,
        "Figure 6.9",
        "kernels other than convolutions on the two machines with one L1",
        "Sunstone's mappings have a lower EDP than those of TL-slow, by up to 2 times on the edge machine.",
        "Mappings are evaluated by `timeloop` at the library's energies. TL-slow has 8 threads and an hour in the thesis, and one thread "
        "and the same criteria here.",
        "nothing.",
        measure_kernels,
        lambda rows: [compared(rows, "edp", "EDP / least")],
        by_tool,
    ),
    Experiment(
        "thesis_fig_6_11",
        PAPER,
        "Figure 6.11",
        "the space under each rule",
        "Loop orders, alpha-beta bounds, unrolling and tiles each reduce the space, together by many orders of magnitude, and EDP is the same.",
        "The columns are counted, except the last: what `sunstone` with `principles=paper` evaluates. The authors' alpha-beta bound is not "
        "built, because it is no bound. Unrolling and tiles depend on one another in the search, so they are shown together.",
        "four of seven layers; searches of more than 100,000 mappings (200,000).",
        measure_ablation,
        show_ablation,
        chart_ablation,
    ),
    Experiment(
        "thesis_fig_7_2",
        PAPER,
        "Figures 7.2 to 7.4",
        "sizes of three L1 buffers, chosen with the mapping",
        "The joint search finds the grid's best configuration on conv2 to conv4, and one within 0.1 % on conv1. It prunes up to 30 % of "
        "the configurations (conv4), and evaluates up to 7 times fewer L1 tiles.",
        "The thesis prints neither shapes nor energies, so these are others. The grid's searches stop after 40,000 mappings each; the joint "
        "search ends itself, with three times as many candidates per step, and one round. Both count the tiles that they evaluate. An L2 tile "
        "counts once for each L1 tile in it.",
        "searches of more than 10,000 mappings (40,000) for the grid, and 50,000 for the joint search, with the default options.",
        measure_arch,
        show_arch,
        chart_arch,
    ),
)  # fmt: skip
