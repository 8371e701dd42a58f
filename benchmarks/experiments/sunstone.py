"""Sunstone (Olyaiy et al., ISPASS 2023): its tables and figures of mappers, orders of decisions and overheads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

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
    number,
    problems,
    ratios,
    searched,
    table,
)

PAPER = "Sunstone (ISPASS 2023)"
SUNSTONE = Tool("Sunstone", "sunstone")
TIMELOOP_FAST = Tool("TL-fast", "timeloop_random", {"timeout": 20_000, "victory": 25})
TIMELOOP_SLOW = Tool("TL-slow", "timeloop_random", {"timeout": 80_000, "victory": 1_500})
DMAZE_FAST = Tool("dMaze-fast", "dmazerunner", {"array": 0.8, "inner": 0.8, "outer": 0.5}, ends=False)
DMAZE_SLOW = Tool(
    "dMaze-slow", "dmazerunner", {"array": 0.8, "inner": 0.6, "outer": 0.4, "reduction": True}, ends=False
)
INTERSTELLAR = Tool("Interstellar", "interstellar", ends=False)
MARVEL = Tool("Marvel", "marvel", ends=False)
COSA = Tool("CoSA", "cosa", {"objective_form": "published"})
COSA_HERE = Tool("cosa, energy form", "cosa")
KERNELS = {
    "MTTKRP nell2": "mttkrp_nell2",
    "MTTKRP netflix": "mttkrp_netflix",
    "TTMc nell2": "ttmc_nell2",
    "TTMc netflix": "ttmc_netflix",
    "SDDMM bcsstk17": "sddmm_bcsstk17",
    "SDDMM cant": "sddmm_cant",
}
UPDATES = ("3x3_early", "5x5_early", "1x7_deep", "3x1_deep")
RESNET = dict(conv1=1, conv2_x=4, conv3_1=1, conv3_x=3, conv4_1=1, conv4_x=3, conv5_1=1, conv5_x=3)
"""Layers of ResNet-18, and how often each occurs."""
AS_PUBLISHED = (
    "Mappings are evaluated by `timeloop` at the library's energies, and mappers are written after the papers' texts. Times are of one "
    "thread of this project's compiled mappers; the paper's are of the authors' programs with eight threads."
)


def limits(run: Run) -> dict[str, Any]:
    """Counted mappings, so that results do not depend on the machine; the time only ends what counts none."""
    return {"evaluations": run.pick(100_000, 200_000), "seconds": run.pick(300, 600)}


# -- Table I -------------------------------------------------------------------------------------------------------

SIZES = {"TL-slow": "3.69e10", "CoSA": "as Timeloop", "Marvel": "1.36e9", "Interstellar": "1.40e9", "dMaze-fast": "1.97e5", "Sunstone": "5.89e3"}  # fmt: skip
WORSE = {"TL-slow": "1.9", "CoSA": "1.5", "Marvel": "-", "Interstellar": "1.4", "dMaze-fast": "1.1", "Sunstone": "1"}


def measure_table_1(run: Run) -> Iterator[Row]:
    names = [f"incv3_inf_{name}" for name in run.pick(UPDATES[:1], UPDATES)]
    paper = Tool("Sunstone", "sunstone", {"principles": "paper"}, ends=False)
    for name, problem in problems("sunstone_layers", names).items():
        space = tw.space(problem, "sunstone_conventional")
        for row in searched(
            run, {name: problem}, "sunstone_conventional",
            (TIMELOOP_SLOW, COSA, MARVEL, INTERSTELLAR, DMAZE_FAST, paper, Tool("sunstone, sound", "sunstone")), **limits(run),
        ):  # fmt: skip
            yield row | {"size": float(space.size), "factorizations": float(space.factorizations)}


def show_table_1(rows: list[Row]) -> Iterator[str]:
    cells = ratios(rows, "edp")
    first = distinct(rows, "layer")[0]
    lines: list[list[object]] = []
    for tool in distinct(rows, "tool"):
        mine = [row for row in rows if row["tool"] == tool]
        values = [cells[row["layer"], tool] for row in mine if row["edp"]]
        evaluated = next(row for row in mine if row["layer"] == first)
        lines.append([tool, SIZES.get(tool, "-"), int(number(evaluated, "evaluated")), evaluated["stop"],
                      WORSE.get(tool, "-"), max(values, default=math.nan), f"{len(mine) - len(values)} of {len(mine)}"])  # fmt: skip
    yield table(
        ("tool", "space (paper)", f"evaluated, {first}", "the search", "worse EDP, up to (paper)", "EDP / least, worst", "no mapping"),
        lines,
    )  # fmt: skip
    yield (
        f"The map space of {first} has {number(rows[0], 'factorizations'):.3g} factorisations and {number(rows[0], 'size'):.3g} mappings."
    )


# -- Figures 6, 7, 8 -----------------------------------------------------------------------------------------------


def measure_fig_6(run: Run) -> Iterator[Row]:
    layers = {label: problems("sunstone_kernels", [name])[name] for label, name in KERNELS.items()}
    yield from searched(run, layers, "sunstone_conventional", (SUNSTONE, TIMELOOP_FAST, TIMELOOP_SLOW), **limits(run))


def measure_fig_7(run: Run) -> Iterator[Row]:
    tools = (SUNSTONE, TIMELOOP_FAST, TIMELOOP_SLOW, DMAZE_FAST, DMAZE_SLOW, INTERSTELLAR, COSA, MARVEL)
    names = [f"incv3_wu_{name}" for name in run.pick(UPDATES[1:3], UPDATES)]
    layers = {name.removeprefix("incv3_wu_"): problem for name, problem in problems("sunstone_layers", names).items()}
    yield from searched(run, layers, "sunstone_conventional", tools, **limits(run))


def measure_fig_8(run: Run) -> Iterator[Row]:
    names = [f"resnet18_{name}" for name in run.pick(("conv2_x", "conv3_x", "conv4_x", "conv5_x"), RESNET)]
    layers = {name.removeprefix("resnet18_"): problem for name, problem in problems("sunstone_layers", names).items()}
    hybrid = Tool("TL-hybrid", "timeloop_hybrid")
    tools = (SUNSTONE, TIMELOOP_SLOW, hybrid, COSA, COSA_HERE)
    yield from searched(run, layers, "sunstone_simba", tools, **limits(run))


def show_times(rows: list[Row]) -> Iterator[str]:
    yield compared(rows, "edp", "EDP / least")


# -- Table VI ------------------------------------------------------------------------------------------------------

ORDERS = {
    ("bottom_up", "unrolling_tiling_ordering"): (99_350, 4.8),
    ("bottom_up", "tiling_unrolling_ordering"): (121_050, 4.8),
    ("bottom_up", "ordering_tiling_unrolling"): (108_298, 4.8),
    ("top_down", "unrolling_tiling_ordering"): (7_391_620, 4.6),
}


def measure_table_6(run: Run) -> Iterator[Row]:
    tools = [
        Tool(f"{inter}, {intra}", "sunstone", {"principles": "paper", "inter": inter, "intra": intra}, ends=False)
        for inter, intra in ORDERS
    ]
    names = [f"resnet18_{name}" for name in run.pick(("conv4_x",), RESNET)]
    yield from searched(run, problems("sunstone_layers", names), "sunstone_conventional", tools, **limits(run))


def show_table_6(rows: list[Row]) -> Iterator[str]:
    lines: list[list[object]] = []
    for tool, (size, edp) in zip(distinct(rows, "tool"), ORDERS.values(), strict=True):
        mine = [row for row in rows if row["tool"] == tool]
        cut = sum(row["stop"] != "finished" for row in mine)
        total = sum(number(row, "edp") for row in mine)
        lines.append([tool.replace("_", " "), size, sum(int(row["evaluated"]) for row in mine), edp,
                      total / min(sum(number(row, "edp") for row in rows if row["tool"] == other) for other in distinct(rows, "tool")),
                      f"{cut} of {len(mine)}"])  # fmt: skip
    yield table(("order", "space (paper)", "evaluated", "EDP, 1e11 (paper)", "EDP / least", "stopped early"), lines)


# -- Figure 9 ------------------------------------------------------------------------------------------------------

WORDS_PER_INSTRUCTION = 256 / 16
PARTS = ("MAC", "DRAM", "SB", "NBin", "NBout", "instructions", "reordering")


def measure_fig_9(run: Run) -> Iterator[Row]:
    """Energies of the best mapping, words that its array needs from outside, and overheads from its transfers."""
    for name, problem in problems("sunstone_layers", [f"resnet18_{name}" for name in RESNET]).items():
        report = tw.map(problem, "diannao", mapper="sunstone", progress=False, **limits(run))
        layer = report.layers[0]
        if layer.interrupted:
            raise KeyboardInterrupt
        assert layer.report is not None and layer.result is not None
        levels = {level.name: level for level in layer.report.levels}
        dram = tw.load("diannao", kind="architecture").memories[0].read_energy_pj
        buffers = {
            tensor: counts
            for place in ("NBin", "SB", "NBout")
            for tensor, counts in levels[place].tensors.items()
        }  # fmt: skip
        transfers = 0.0
        for tensor, counts in levels["DRAM"].tensors.items():
            transfers += (counts.reads + counts.updates) / buffers[tensor].tile_words
        row = {place: levels[place].energy_pj for place in ("DRAM", "SB", "NBin", "NBout")}
        moved = problem.tensor_words(problem.tensor("Inputs"))
        yield {
            "layer": name.removeprefix("resnet18_"),
            "MAC": layer.report.compute_energy_pj or 0.0,
            **row,
            "instructions": transfers * WORDS_PER_INSTRUCTION * dram,
            "reordering": 2 * moved * dram,
            "number of instructions": transfers,
            "operations": problem.macs,
            **{f"{tensor} at the array": counts.reads + counts.updates for tensor, counts in buffers.items()},
            "Outputs, once": problem.tensor_words(problem.tensor("Outputs")),
            "DRAM, pJ": dram,
            "cpu_seconds": round(layer.result.cpu_seconds, 3),
        }


BATCH = 16
NAIVE: dict[str, Callable[[float, float, float, float], float]] = {
    "of the array": lambda inputs, weights, outputs, once: inputs + weights + outputs,
    "and sums stay in the array": lambda inputs, weights, outputs, once: inputs + weights + once,
    "and weights serve the batch": lambda inputs, weights, outputs, once: inputs + weights / BATCH + once,
}
"""Reuse of a naive execution -> words from DRAM, from the words at the array."""
PUBLISHED_GAIN = 2.9


def naive_fig_9(rows: list[Row]) -> dict[str, tuple[float, float]]:
    """Reuse -> (words from DRAM per operation, naive / optimised energy) over ResNet-18; the last one is solved for the paper's gain."""
    keys = ("MAC", "operations", *(part for part in PARTS if part != "MAC"))
    total = {key: sum(RESNET[row["layer"]] * number(row, key) for row in rows) for key in keys}
    whole, dram = sum(total[part] for part in PARTS), number(rows[0], "DRAM, pJ")
    columns = ("Inputs at the array", "Weights at the array", "Outputs at the array", "Outputs, once")
    gains = {}
    for name, words in NAIVE.items():
        moved = sum(RESNET[row["layer"]] * words(*(number(row, column) for column in columns)) for row in rows)
        gains[name] = moved / total["operations"], (total["MAC"] + moved * dram) / whole
    solved = (PUBLISHED_GAIN * whole - total["MAC"]) / dram / total["operations"]
    return gains | {"that gives the paper's gain": (solved, PUBLISHED_GAIN)}


def first_reordering(rows: list[Row]) -> float:
    """Part of the energy for reordering the first layer's inputs alone: later ones are written in the order of their reader."""
    whole = sum(RESNET[row["layer"]] * number(row, part) for row in rows for part in PARTS if part != "reordering")
    return number(rows[0], "reordering") / (whole + number(rows[0], "reordering"))


def show_fig_9(rows: list[Row]) -> Iterator[str]:
    lines: list[list[object]] = []
    keys = ("number of instructions", *PARTS)
    total = {key: sum(RESNET[row["layer"]] * number(row, key) for row in rows) for key in keys}
    for row in (*rows, {"layer": "ResNet-18", **total}):
        whole = sum(number(row, part) for part in PARTS)
        shares = [f"{number(row, part) / whole:.1%}" for part in PARTS]
        lines.append([row["layer"], *shares, number(row, "number of instructions")])
    yield table(("layer", *PARTS, "instructions, number"), lines)
    yield table(
        ("reuse of the naive execution", "words from DRAM per operation", "naive / optimised"),
        [[name, *figures] for name, figures in naive_fig_9(rows).items()],
    )
    yield f"Reordering the first layer's inputs alone takes {first_reordering(rows):.2%}."


def chart_fig_9(rows: list[Row]) -> Chart:
    layers = [row["layer"] for row in rows]
    curves = {part: (layers, [number(row, part) * 1e-6 for row in rows]) for part in PARTS}
    return Chart("layer", "uJ", curves, "y", points=True)


EXPERIMENTS = (
    Experiment(
        "sunstone_table_1",
        PAPER,
        "Table I",
        "size of the searched space, and quality of the mappings",
        "For a layer of Inception-v3, Sunstone searches 5.89e3 mappings, dMazeRunner 1.97e5, and the others 1.36e9 or more. "
        "All others find mappings with up to 1.1 to 1.9 times its EDP, or none for 10 to 60 % of the layers.",
        "The paper estimates spaces. Here the column counts what each mapper evaluated until it ended or reached its limit. The paper does "
        f"not name its layer. {AS_PUBLISHED}",
        "three of four layers; searches of more than 100,000 mappings (200,000).",
        measure_table_1,
        show_table_1,
        by_tool,
    ),
    Experiment(
        "sunstone_fig_6",
        PAPER,
        "Figure 6",
        "kernels other than convolutions",
        "Sunstone finds better EDP than Timeloop, in less time, on MTTKRP, TTMc and SDDMM.",
        AS_PUBLISHED,
        "nothing.",
        measure_fig_6,
        show_times,
        by_tool,
    ),
    Experiment(
        "sunstone_fig_7",
        PAPER,
        "Figure 7",
        "weight update of Inception-v3 at batch 16, conventional accelerator",
        "Sunstone's EDP is the least or equal to it. dMazeRunner has no valid mapping on several layers, Interstellar up to 1.4 times "
        "the EDP, Timeloop up to 1.9 times.",
        f"{AS_PUBLISHED} The paper's figure has neither CoSA nor Marvel. Here dMazeRunner is not limited to symmetric filters.",
        "two of four layers; searches of more than 100,000 mappings (200,000).",
        measure_fig_7,
        show_times,
        by_tool,
    ),
    Experiment(
        "sunstone_fig_8",
        PAPER,
        "Figure 8",
        "inference of ResNet-18 at batch 16, Simba-like accelerator",
        "CoSA is faster than Sunstone, but most of its mappings do not fit, and conv2 has 1.48 times the EDP. Timeloop is up to 900 "
        "times slower, and has 1.5 times the EDP over all layers.",
        f"{AS_PUBLISHED} `cosa` states windows exactly, so its mappings fit; the authors' program does not. Timeloop's manual constraints "
        "are not used.",
        "four of eight layers.",
        measure_fig_8,
        show_times,
        by_tool,
    ),
    Experiment(
        "sunstone_table_6",
        PAPER,
        "Table VI",
        "order of the decisions",
        "The three orders within a level give the same EDP with similar spaces. Top-down examines 60 to 70 times as many mappings, and "
        "its EDP is 4 % lower.",
        "The paper names its machine only as Eyeriss-like, as it calls the conventional one of Table IV. The mapper follows all candidates of every level, "
        "where the authors' bound between levels, which is no bound, drops some. So the counts differ in both directions.",
        "seven of eight layers; searches of more than 100,000 mappings (200,000).",
        measure_table_6,
        show_table_6,
        by_tool,
    ),
    Experiment(
        "sunstone_fig_9",
        PAPER,
        "Figure 9",
        "overheads of tiling and unrolling on DianNao",
        "Tiling and unrolling save 2.9 times the energy of ResNet-18. Instructions cost 5 % of it, and reordering 0.2 %. All layers take "
        "4.1 million instructions of 256 bits.",
        "The paper does not say which reuse its naive execution has. Its own figures do: 4.1 million instructions at 5 % make 5.8 pJ per "
        "operation at batch 16, as here, so naive words are few. Its gain needs sums that stay in the array, and weights read once per "
        "batch. An instruction is counted for each tile that DRAM sends or receives, and is read from DRAM. Reordering reads and writes "
        "the inputs of every layer once in the first table. The last row of it counts each layer as often as it occurs, without shortcuts and classifier.",
        "searches of more than 100,000 mappings (200,000).",
        measure_fig_9,
        show_fig_9,
        chart_fig_9,
    ),
)  # fmt: skip
