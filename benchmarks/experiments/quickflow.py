"""QuickFlow (Ronzani and Silvano): five mappers on sixty spaces, its two ablations, and the speed of the cost model."""

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
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.objective import ObjectiveName

PAPER = "QuickFlow"
ARCHITECTURES = ("eyeriss", "simba", "tpu_v1")
QUICKFLOW = Tool("QuickFlow", "quickflow")
TOOLS = (
    QUICKFLOW,
    Tool("FactorFlow", "factorflow"),
    Tool("LOMA-7", "loma", {"limit": 7}),
    Tool("SALSA", "salsa", ends=False),
    Tool("Timeloop-D", "timeloop_random"),
    Tool("Timeloop-L", "timeloop_random", {"timeout": 15_000, "victory": 7_500}),
)


def spaces(every: int = 1) -> Iterator[tuple[str, str, tw.Problem]]:
    """(label, architecture, problem) of every first, second or so convolution, under the architecture's own dataflow."""
    for arch in ARCHITECTURES:
        for name, problem in list(problems("quickflow_convs").items())[::every]:
            yield f"{name} on {arch}", arch, problem


def on_each(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """(architecture, its rows)."""
    for arch in ARCHITECTURES:
        yield arch, [row for row in rows if row["layer"].endswith(f" on {arch}")]


def measure_fig_6(run: Run) -> Iterator[Row]:
    for label, arch, problem in spaces(run.pick(4, 1)):
        yield from searched(
            run,
            {label: problem},
            arch,
            TOOLS,
            constraints=None,
            evaluations=run.pick(20_000, 100_000),
            seconds=run.pick(60, 600),
        )


BASELINES: tuple[tuple[Tool, ObjectiveName], ...] = (
    (QUICKFLOW, "edp"),
    (Tool("FactorFlow, one start", "factorflow", {"unrollings": 0}), "edp"),
    (Tool("LOMA-7, latency", "loma", {"limit": 7, "unrollings": 3}), "cycles"),
    (Tool("SALSA, latency", "salsa", {"unrollings": 1, "chains": 1}), "cycles"),
    (TOOLS[-2], "edp"),
    (TOOLS[-1], "edp"),
)
"""As the paper runs them: FactorFlow from all factors outside, and ZigZag's defaults, which minimise the latency."""


def measure_baselines(run: Run) -> Iterator[Row]:
    for label, arch, problem in spaces(run.pick(10, 1)):
        for tool, objective in BASELINES:
            yield from searched(run, {label: problem}, arch, (tool,), constraints=None, objective=objective, evaluations=100_000, seconds=60)  # fmt: skip


def show_baselines(rows: list[Row]) -> Iterator[str]:
    cells, tools = ratios(rows, "edp", "QuickFlow"), distinct(rows, "tool")
    lines: list[list[object]] = []
    for arch, mine in on_each(rows):
        layers = distinct(mine, "layer")
        least = [min(cells[layer, tool] for tool in tools[1:] if cells[layer, tool] > 0) for layer in layers]
        lines.append([arch, *(geomean(cells[layer, tool] for layer in layers) for tool in tools[1:]), geomean(least), max(least)])  # fmt: skip
    yield table(("EDP / QuickFlow's, geometric mean", *tools[1:], "the best of them", "worst"), lines)


def show_fig_6(rows: list[Row]) -> Iterator[str]:
    yield compared(rows, "edp", "EDP / least")
    cells, tools, layers = ratios(rows, "edp", "QuickFlow"), distinct(rows, "tool"), distinct(rows, "layer")
    lines: list[list[object]] = []
    for tool in tools:
        mine = [row for row in rows if row["tool"] == tool]
        values = [cells[layer, tool] for layer in layers if cells[layer, tool] > 0]
        lines.append([tool, f"{len(values)} of {len(layers)}", geomean(values), max(values), geomean(number(row, "evaluated") for row in mine),
                      geomean(max(number(row, "cpu_seconds"), 1e-3) for row in mine)])  # fmt: skip
    yield table(("tool", "found", "EDP / QuickFlow's", "worst", "mappings visited", "CPU s"), lines)


def measure_orders(run: Run) -> Iterator[Row]:
    """Every order of the loops of QuickFlow's mapping, up to a limit, evaluated by the model."""
    most = run.pick(50_000, 500_000)
    for label, arch, problem in spaces(run.pick(3, 1)):
        report = tw.map(problem, arch, mapper="quickflow", seconds=60, progress=False)
        layer = report.layers[0]
        if layer.interrupted:
            raise KeyboardInterrupt
        assert layer.result is not None and layer.result.best is not None and layer.edp is not None
        started = time.process_time()
        space = tw.space(problem, arch)
        evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
        one = Candidates.of(space, MappingBatch.pack(space.problem, [layer.result.best]))
        orders = space.reordered(one, most)
        best = min(
            float(evaluator.evaluate_batch(orders.take(slice(begin, begin + 8192)).batch()).edp.min())
            for begin in range(0, len(orders), 8192)
        )
        yield {
            "layer": label,
            "edp": layer.edp,
            "orders": len(orders),
            "edp, all orders": best,
            "cpu_seconds": round(layer.result.cpu_seconds + time.process_time() - started, 3),
        }


def show_orders(rows: list[Row]) -> Iterator[str]:
    same = sum(number(row, "edp, all orders") >= number(row, "edp") * (1 - 1e-9) for row in rows)
    lines: list[list[object]] = []
    for arch, mine in on_each(rows):
        least = min(number(row, "edp, all orders") / number(row, "edp") for row in mine)
        lines.append([arch, len(mine), max(int(row["orders"]) for row in mine), least])
    yield table(("architecture", "spaces", "orders evaluated, up to", "least EDP of them / QuickFlow's"), lines)
    yield f"No order is better in {same} of {len(rows)} spaces."


def measure_hops(run: Run) -> Iterator[Row]:
    tools = (QUICKFLOW, Tool("N = 8, M = 1", "quickflow", {"hops": [8, 8, 8], "repeats": 1}))
    for label, arch, problem in spaces(run.pick(3, 1)):
        yield from searched(run, {label: problem}, arch, tools, constraints=None, seconds=run.pick(60, 600))


def show_hops(rows: list[Row]) -> Iterator[str]:
    cells = ratios(rows, "edp", "QuickFlow")
    lines: list[list[object]] = []
    for arch, mine in on_each(rows):
        layers, tools = distinct(mine, "layer"), distinct(mine, "tool")
        means = [geomean(number(row, "cpu_seconds") for row in mine if row["tool"] == tool) for tool in tools]
        ended = sum(row["stop"] == "finished" for row in mine if row["tool"] == tools[1])
        lines.append([arch, len(layers), min(cells[layer, tools[1]] for layer in layers), *means, ended])
    yield table(
        (
            "architecture",
            "spaces",
            "EDP with N = 8 / default, least",
            "CPU s, default",
            "CPU s, N = 8",
            "searches ended",
        ),
        lines,
    )
    better = [1 - value for (_, tool), value in cells.items() if tool != "QuickFlow" and value < 1 - 1e-9]
    count = len(distinct(rows, "layer"))
    yield f"N = 8 is better in {len(better)} of {count} spaces, by {max(better, default=0):.2%} at most."


KINDS = {"I-X": (("I", "V"), 3255), "XI-XII": (("XI", "XII"), 7941), "XIII-XV": (("XIV", "XV"), 5280), "XVI-XVII": (("XVI", "XVII"), 1359), "XVIII-XX": (("XVIII", "XX"), 1314)}  # fmt: skip


def measure_table_3(run: Run) -> Iterator[Row]:
    for kind, (names, theirs) in KINDS.items():
        seconds, evaluated, alone = 0.0, 0, 0.0
        for arch in ARCHITECTURES:
            for problem in problems("quickflow_convs", names[:1] if run.quick else names).values():
                space = tw.space(problem, arch)
                evaluator = installed().make(CostModelSpec, "timeloop").bind(space.problem, space.architecture)
                drawn = space.sample(np.random.default_rng(0), 20_000)
                batch = drawn.take(drawn.fits()).batch()
                evaluator.evaluate_batch(batch)
                started = time.process_time()
                evaluator.evaluate_batch(batch)
                seconds, evaluated = seconds + time.process_time() - started, evaluated + len(batch)
                started = time.process_time()
                for index in range(min(100, len(batch))):
                    evaluator.evaluate_batch(batch.take(slice(index, index + 1)))
                alone += (time.process_time() - started) / min(100, len(batch)) / len(ARCHITECTURES)
        single = alone if run.quick else alone / len(names)
        yield {"kind": kind, "QuickFlow": theirs, "in batches": evaluated / seconds, "single mappings": 1 / single}


def show_table_3(rows: list[Row]) -> Iterator[str]:
    keys = ("QuickFlow", "in batches", "single mappings")
    yield table(
        ("evaluations per second", "QuickFlow (paper)", "`timeloop`, in batches", "single mappings"),
        [[row["kind"], *(number(row, key) for key in keys)] for row in rows],
    )


def chart_table_3(rows: list[Row]) -> Chart:
    kinds = [row["kind"] for row in rows]
    curves = {
        key: (kinds, [number(row, key) for row in rows]) for key in ("QuickFlow", "in batches", "single mappings")
    }
    return Chart("convolutions", "evaluations per second", curves, "y", points=True)


EXPERIMENTS = (
    Experiment(
        "quickflow_fig_6",
        PAPER,
        "Figure 6",
        "five mappers on twenty convolutions and three architectures",
        "QuickFlow's mappings are the best in all spaces. It improves EDP 1.2 times on average over the best of the others, and is 4.6 to 34 "
        "times faster. Timeloop is worse by up to 18,000 times, LOMA and SALSA by up to 27, FactorFlow by up to 2.4.",
        "All mappers are evaluated by `timeloop` and compiled, and have one thread. So their times differ less than those of five programs, and "
        "`factorflow` has ended where the paper's runs for minutes.",
        "45 of 60 spaces; searches of SALSA of more than 20,000 mappings.",
        measure_fig_6,
        show_fig_6,
        by_tool,
    ),
    Experiment(
        "quickflow_baselines",
        PAPER,
        "Figure 6, the other mappers",
        "the other mappers with the settings of their programs",
        "QuickFlow improves EDP 1.2 times on average over the best of the others, 1.0 to 2.1 times; each tool has its default settings.",
        "FactorFlow starts from all factors outside. LOMA and SALSA minimise the latency, as ZigZag does by default, with three unrollings "
        "and one chain. In Figure 6 they minimise EDP under the model that judges them. Here `timeloop` is their model, too, ZigZag's in the paper.",
        "nine of ten spaces.",
        measure_baselines,
        show_baselines,
        by_tool,
    ),
    Experiment(
        "quickflow_orders",
        PAPER,
        "Section V, first ablation",
        "all loop orders instead of the one-shot order",
        "Evaluating all orders takes hours, and finds no better mapping in any of the sixty spaces.",
        "The orders of QuickFlow's last mapping are evaluated, not those of every visited one.",
        "two of three spaces; more than 50,000 orders per space (500,000).",
        measure_orders,
        show_orders,
        lambda rows: Chart(
            "space",
            "least EDP of all orders / QuickFlow's",
            {"orders": ([row["layer"] for row in rows], [number(row, "edp, all orders") / number(row, "edp") for row in rows])},
            points=True,
        ),
    ),
    Experiment(
        "quickflow_hops",
        PAPER,
        "Section V, second ablation",
        "eight hops in all rounds (N = 8, M = 1)",
        "The search takes more than an hour, and is better in 6 of 60 spaces, by at most 0.7 %.",
        "A search here also restarts from other unrollings, so its default is wider than the paper's.",
        "two of three spaces; searches of more than 60 s (600 s).",
        measure_hops,
        show_hops,
        by_tool,
    ),
    Experiment(
        "quickflow_table_3",
        PAPER,
        "Table III",
        "speed of the cost model",
        "QuickFlow's model evaluates 1,314 to 7,941 mappings per second, 3.7 times as many as Timeloop and ZigZag, with Timeloop's results.",
        "Other computer, and other model: `timeloop` is compiled and has Timeloop's counts. Timeloop and ZigZag are not run here, because "
        "neither is a dependency.",
        "one of two convolutions per kind.",
        measure_table_3,
        show_table_3,
        chart_table_3,
    ),
)  # fmt: skip
