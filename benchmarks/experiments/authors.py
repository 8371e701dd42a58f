"""The authors' Sunstone next to this project's: mappings of Figure 6.11 under one cost model, and what each published rule prunes.

`benchmarks/authors.py` recorded their program in authors.csv.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import tilewright as tw
from benchmarks.experiments import sunstone, thesis
from benchmarks.experiments.framework import (
    Chart,
    Experiment,
    Row,
    Run,
    Tool,
    geomean,
    load,
    number,
    problems,
    searched,
    table,
)
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import Placement
from tilewright.mapspace.constructive.tiling import maximal, tile_tree
from tilewright.mapspace.factoring.cuts import divisors
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Budget, Evaluator, Task
from tilewright.plugin.mapper import Run as SearchRun
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.problem import Problem
from tilewright_mappers.sunstone.moves import choices_of_order
from tilewright_mappers.sunstone.published import Published, partitioned_buffers

RECORD = Path(__file__).with_name("authors.csv")
ARRAY = (14, 12)
PUBLISHED = Tool("paper", "sunstone", {"principles": "paper"}, ends=False)


def recorded(figure: str) -> list[Row]:
    return [row for row in load(RECORD) if row["figure"] == figure]


def trips_of(text: str, problem: Problem) -> list[int]:
    """Trips per dimension of loops such as `P7 C2`."""
    sizes = {loop[0]: int(loop[1:]) for loop in text.split()}
    return [sizes.get(name, 1) for name in problem.dimension_names]


def authors_mapping(space: MapSpace, row: Row) -> Candidates:
    """The recorded mapping on `sunstone_edge`: loops of L1 in its innermost part, the array's on both axes."""
    inner, array, middle, outer = (trips_of(row[level], space.problem) for level in ("L1", "array", "L2", "DRAM"))
    across = next(
        part
        for part in itertools.product(*(divisors(size) for size in array))
        if np.prod(part) <= ARRAY[0] and np.prod(array) <= ARRAY[1] * np.prod(part)
    )
    trips = np.ones((1, len(space.slots), len(inner)), dtype=np.int64)
    spatial, temporal = [index for index, slot in enumerate(space.slots) if slot.spatial], space.temporal_slots
    for slot, loops in (
        (spatial[0], across),
        (spatial[1], [whole // part for whole, part in zip(array, across, strict=True)]),
        (temporal[0], outer),
        (temporal[1], middle),
        (temporal[-1], inner),
    ):
        trips[0, slot] = loops
    return Candidates(space, trips)


def least_edp(rows: Candidates, evaluator: Evaluator) -> float:
    """The EDP of one mapping with its best orders, chosen block by block from inside."""
    value = np.inf
    for block, orders in reversed(list(enumerate(choices_of_order(rows.space)))):  # type: ignore[arg-type]
        every = rows.take(np.zeros(len(orders), dtype=np.int64))
        changed = every.orders.copy()
        changed[:, block] = orders
        every = replace(every, order=changed)
        costs = evaluator.evaluate_batch(every.batch())
        edp = np.where(costs.valid, costs.edp, np.inf)
        rows, value = every.take(slice(int(edp.argmin()), int(edp.argmin()) + 1)), float(edp.min())
    return value


def measure_authors(run: Run) -> Iterator[Row]:
    for row in recorded("6.11")[:: run.pick(3, 1)]:
        workload, name = thesis.ABLATION[row["layer"]]
        problem = problems(workload, [name])[name]
        space = tw.space(problem, "sunstone_edge", constraints="none")
        evaluator = installed().make(CostModelSpec, "timeloop").bind(problem, space.architecture)
        tools = (PUBLISHED, sunstone.SUNSTONE)
        here = {
            cell["tool"]: cell
            for cell in searched(run, {row["layer"]: problem}, "sunstone_edge", tools, **sunstone.limits(run))
        }
        yield {
            "layer": row["layer"],
            "edp, authors": least_edp(authors_mapping(space, row), evaluator),
            "edp, paper": here["paper"]["edp"],
            "edp, sound": here["Sunstone"]["edp"],
            "cpu_seconds": sum(cell["cpu_seconds"] for cell in here.values()),
        }  # fmt: skip


def show_authors(rows: list[Row]) -> Iterator[str]:
    keys = ("edp, authors", "edp, paper")
    lines: list[list[object]] = [[row["layer"], *(number(row, key) / number(row, "edp, sound") for key in keys)] for row in rows]  # fmt: skip
    lines.append(["geometric mean", *(geomean(float(str(line[column])) for line in lines) for column in (1, 2))])
    yield table(("EDP / `sound`", "the authors' program", "`principles=paper`"), lines)


def chart_authors(rows: list[Row]) -> Chart:
    layers = [row["layer"] for row in rows]
    curves = {key: (layers, [number(row, key) / number(row, "edp, sound") for row in rows]) for key in ("edp, authors", "edp, paper")}  # fmt: skip
    return Chart("layer", "EDP / sound", curves, points=True)


def measure_pruning(run: Run) -> Iterator[Row]:
    """Counts on `sunstone_edge` at batch 1: tiles and unrollings by the rules here, the bound between levels by the authors' program."""
    for row in recorded("Table VI"):
        (problem,) = problems("sunstone_layers", [f"resnet18_{row['layer']}"]).values()
        problem = problem.model_copy(update={"dimensions": {**problem.dimensions, "N": 1}})
        space = tw.space(problem, "sunstone_edge", constraints="none")
        task, level = Task(space), partitioned_buffers(space)[0]
        search_run = SearchRun(np.random.default_rng(0), Budget())
        placement = Placement.of(space, search_run.rng)
        source, dims = int(placement.source_slot[0]), range(len(problem.dimensions))
        tiles = tile_tree(placement.start, source, level.loops[0], dims)
        unrolled = placement.start
        for slot in reversed(level.spatial):
            unrolled = tile_tree(unrolled, source, slot, dims)
        published = Published(task, search_run, choices_of_order(space), "unrolling_tiling_ordering", "bottom_up")
        kept = [
            published.unrolled(placement.start, level, placement.source_slot, allowed, False)
            for choice in published.reuse.choices("unrolling_tiling_ordering")
            for allowed in choice.unroll
        ]
        yield {
            "layer": row["layer"],
            "tiles": len(tiles),
            "tiles, kept": int(maximal(tiles, source, level.loops[0], dims).sum()),
            "unrollings": _different(unrolled, level.spatial),
            "unrollings, kept": _different(Candidates.join(kept), level.spatial),
            "L1 tiles": row["l1_tiles"],
            "L1 tiles, searched": row["l1_searched_8"],
            "L2 tiles": row["l2_tiles_unbounded"],
            "L2 tiles, searched": row["l2_tiles_8"],
        }


def _different(rows: Candidates, spatial: tuple[int, ...]) -> int:
    """Number of unrollings, regardless of the axis."""
    return len(np.unique(rows.trips[:, list(spatial)].prod(axis=1), axis=0))


PRUNED = {
    "tiles": ("tiles", "tiles, kept"),
    "unrollings": ("unrollings", "unrollings, kept"),
    "L1 tiles": ("L1 tiles", "L1 tiles, searched"),
    "L2 tiles": ("L2 tiles", "L2 tiles, searched"),
}


def show_pruning(rows: list[Row]) -> Iterator[str]:
    lines = [
        [row["layer"], *(f"{1 - number(row, after) / number(row, before):.1%} of {number(row, before):,.0f}" for before, after in PRUNED.values())]
        for row in rows
    ]  # fmt: skip
    yield table(("pruned", "tiles, by the Tiling Principle", "unrollings, by the Unrolling Principle", "L1 tiles, by the bound", "L2 tiles, by the bound"), lines)  # fmt: skip


def chart_pruning(rows: list[Row]) -> Chart:
    layers = [row["layer"] for row in rows]
    curves = {name: (layers, [1 - number(row, after) / number(row, before) for row in rows]) for name, (before, after) in PRUNED.items()}  # fmt: skip
    return Chart("layer", "pruned part", curves, points=True)


EXPERIMENTS = (
    Experiment(
        "sunstone_pruning",
        sunstone.PAPER,
        "Section III, and thesis 4.5 to 4.8",
        "how much each rule prunes on ResNet-18, 14 x 12 elements",
        "The Tiling Principle prunes up to 80 % of L1's tiles, the Unrolling Principle more than 90 % of the unrollings. The bound between "
        "levels prunes 50 to 80 % of the L1 tiles searched, and 60 to 90 % of the L2 tiles.",
        "Tiles and unrollings are counted here, for one image. The bound is that of the authors' program with eight workers; it is no lower "
        "bound, and prunes more than they write.",
        "nothing.",
        measure_pruning,
        show_pruning,
        chart_pruning,
    ),
    Experiment(
        "thesis_authors",
        thesis.PAPER,
        "Figure 6.11",
        "mappings of the authors' program under `timeloop`",
        "With all rules, EDP is as without them (geometric mean 1.0).",
        "Their program is deterministic, so its mappings are recorded. Each has its best loop orders by `timeloop`. "
        "`sound` is the default search here.",
        "four of seven layers.",
        measure_authors,
        show_authors,
        chart_authors,
    ),
)
