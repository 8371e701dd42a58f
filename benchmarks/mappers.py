"""Every mapper on the published layers and the library's accelerators: what it finds, and what it costs to find it.

    python benchmarks/mappers.py --quick                 # some minutes
    python benchmarks/mappers.py -o DIR --seconds 10     # all of it; start it again and it goes on where it was
    python benchmarks/mappers.py -o DIR --mappers optimal --seconds 60    # into the same folder: distances from the optimum
    python benchmarks/mappers.py -o DIR --report         # only the summary and the plots of what there is

`DIR/mappers.csv` has one row per search; `DIR/summary.md` and `DIR/*.svg` are made
from it. All mappings are evaluated by one model, under the dataflow that belongs to each accelerator. Mappings that
FactorFlow and Sunstone found (tests/data/mappers) are evaluated beside them, with the CPU seconds it took them. Where a mapper proved
the optimum of a space, the distance of all from it is told.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import library
from tilewright.application.run.search import search
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Progress
from tilewright.plugin.specs import CostModelSpec, MapperSpec

ARCHITECTURES = ("eyeriss", "simba", "tpu_v1", "sunstone_conventional")
GEMMS = ("KQV", "KTQ", "VScores", "FF1", "MB1", "MB2")
KERNELS = ("mttkrp_nell2", "ttmc_nell2", "sddmm_cant", "mmc_attention", "tcl_vgg")
QUICK = {
    "quickflow_convs": ("I", "V", "VIII"),
    "factorflow_gemms": ("KQV", "MB6"),
    "sunstone_kernels": ("mmc_attention",),
    "sunstone_layers": ("resnet18_conv4_x",),
}
LEFT_OUT = ("exhaustive", "mindmappings")
"""Mappers that are not for spaces of this size, or that train for longer than the time limit."""
NEAR = 1.05
"""A space counts as solved within so much of the best EDP known."""
SURE = 1 + 1e-8
"""What is nearer than this is the same."""
RECORDED = ", recorded"
"""How the names of tools end whose mappings were not found here."""


@dataclass(frozen=True)
class Row:
    """One search with its trace and proved bound.

    `trace`: `seconds/mappings/EDP` at every improvement, in CPU seconds from the start.
    `lower_bound`: proved lower bound of the EDP; 0 without a proof.
    """

    workload: str
    layer: str
    architecture: str
    mapper: str
    seed: int
    limit_seconds: float
    valid: bool
    edp: float
    energy_pj: float
    cycles: float
    utilization: float
    evaluated: int
    valid_mappings: int
    cpu_seconds: float
    wall_seconds: float
    stop: str
    error: str
    trace: str
    lower_bound: float = 0.0

    @property
    def space(self) -> tuple[str, str, str]:
        return self.workload, self.layer, self.architecture

    @property
    def key(self) -> tuple[object, ...]:
        return *self.space, self.mapper, self.seed, self.limit_seconds

    @property
    def steps(self) -> list[tuple[float, float]]:
        """(CPU seconds, EDP) of every improvement."""
        parts = [step.split("/") for step in self.trace.split()]
        return [(float(seconds), float(edp)) for seconds, _, edp in parts]

    @classmethod
    def read(cls, data: dict[str, str]) -> Row:
        kinds: dict[str, Callable[[str], Any]] = {
            "str": str,
            "int": int,
            "float": float,
            "bool": lambda text: text == "True",
        }
        return cls(**{field.name: kinds[str(field.type)](data[field.name]) for field in fields(cls)})


def spaces(quick: bool) -> Iterator[tuple[str, str, str, MapSpace]]:
    """(workload, layer, architecture, space)."""
    for workload in ("quickflow_convs", "factorflow_gemms", "sunstone_kernels", "sunstone_layers"):
        for layer in library.workload(workload).layers:
            name = layer.problem.name
            if name not in (QUICK[workload] if quick else _chosen(workload, name)):
                continue
            for place in ARCHITECTURES:
                yield workload, name, place, tw.space(layer.problem, arch=place)


def _chosen(workload: str, layer: str) -> Sequence[str]:
    """The layer itself, if the full run has it."""
    wanted = {
        "quickflow_convs": True,
        "factorflow_gemms": layer in GEMMS,
        "sunstone_kernels": layer in KERNELS,
        "sunstone_layers": layer.startswith(("resnet18", "incv3_inf")) and not layer.endswith("stride2"),
    }
    return (layer,) if wanted[workload] else ()


def measure(where: tuple[str, str, str], space: MapSpace, mapper: str, model: str, seed: int, seconds: float) -> Row:
    """One search, from a warm start: what is compiled or tabulated once is not counted."""
    registry = installed()
    evaluator = registry.make(CostModelSpec, model).bind(space.problem, space.architecture)
    drawn = space.sample(np.random.default_rng(0), 64)
    evaluator.evaluate_batch(drawn.take(drawn.fits()).batch())
    trace: list[str] = []
    best = math.inf
    started = time.process_time()

    def watch(progress: Progress) -> None:
        nonlocal best
        if progress.best < best:
            best = progress.best
            trace.append(f"{time.process_time() - started:.4g}/{progress.evaluated}/{best:.10g}")

    result = search(
        registry.make(MapperSpec, mapper), Task(space), evaluator, Budget(seconds=seconds), seed=seed, on_progress=watch
    )
    report = None if result.best is None else evaluator.explain(result.best)
    return Row(
        *where,
        mapper=mapper,
        seed=seed,
        limit_seconds=seconds,
        valid=report is not None,
        edp=result.value,
        energy_pj=math.inf if report is None or report.energy_pj is None else report.energy_pj,
        cycles=math.inf if report is None or report.cycles is None else report.cycles,
        utilization=0.0 if report is None or report.utilization is None else report.utilization,
        evaluated=result.evaluated,
        valid_mappings=result.valid,
        cpu_seconds=round(result.cpu_seconds, 4),
        wall_seconds=round(result.wall_seconds, 4),
        stop=result.stop,
        error="" if result.error is None else str(result.error).splitlines()[0],
        trace=" ".join(trace),
        lower_bound=result.lower_bound or 0.0,
    )


def recorded(where: tuple[str, str, str], evaluator: Evaluator) -> Row | None:
    """What another tool found for this space, evaluated by our model; None if nothing, or nothing that fits, is recorded."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from support.recorded.searches import factorflow, sunstone

    for record in (*factorflow(), *sunstone()):
        if (record.workload, record.layer, record.architecture) == where:
            costs = evaluator.evaluate_batch(record.mapping)
            if not costs.valid[0]:
                return None
            edp, energy, cycles = float(costs.edp[0]), float(costs.energy_pj[0]), float(costs.cycles[0])
            seconds, count = record.cpu_seconds, record.evaluations
            return Row(
                *where, record.tool + RECORDED, 0, math.inf, True, edp, energy, cycles, 0.0, count, count, seconds, seconds,
                "recorded", "", f"{seconds}/{count}/{edp:.10g}",
            )  # fmt: skip
    return None


# -- the table of all searches -----------------------------------------------------------------------------------


def load(path: Path) -> list[Row]:
    """All rows that are complete; a row that was cut off is left out and searched again."""
    if not path.exists():
        return []
    rows = []
    with path.open(newline="", encoding="utf-8") as file:
        for data in csv.DictReader(file):
            if all(data.get(field.name) is not None for field in fields(Row)):
                rows.append(Row.read(data))
    return rows


def save(path: Path, rows: Sequence[Row]) -> None:
    """Write all rows, so that the file is whole at any time."""
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    part.replace(path)


def run(folder: Path, mappers: Sequence[str], model: str, seeds: int, seconds: float, quick: bool) -> list[Row]:
    """Search what is not in the table yet. Ctrl-C keeps what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mappers.csv"
    rows = load(path)
    done = {row.key for row in rows}
    for *names, space in spaces(quick):
        where = (str(names[0]), str(names[1]), str(names[2]))
        evaluator = installed().make(CostModelSpec, model).bind(space.problem, space.architecture)
        theirs = recorded(where, evaluator)
        if theirs is not None and theirs.key not in done:
            rows.append(theirs)
        for mapper in mappers:
            for seed in range(seeds):
                if (*where, mapper, seed, seconds) in done:
                    continue
                row = measure(where, space, mapper, model, seed, seconds)
                if row.stop == "cancelled":
                    raise KeyboardInterrupt
                rows.append(row)
                save(path, rows)
                print(f"{'/'.join(where):55}{mapper:18}{row.edp:12.4g}{row.cpu_seconds:8.2f} s  {row.stop}", flush=True)
    return rows


# -- what it amounts to ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """Results of one mapper over all its spaces.

    EDP ratios are to the best known EDP, over the spaces where the mapper found a mapping. Distances
    are to the proved optimum, over the spaces with a proof. `proved` counts these spaces, and
    `optimal` those where the mapper found a best mapping.
    """

    mapper: str
    spaces: int
    found: int
    best: int
    ratio: float
    worst: float
    seconds: float
    evaluated: float
    near: int
    seconds_to_near: float
    proved: int
    optimal: int
    distance: float
    farthest: float


def best_known(rows: Sequence[Row]) -> dict[tuple[str, str, str], float]:
    """The least EDP of each space."""
    best: dict[tuple[str, str, str], float] = {}
    for row in rows:
        best[row.space] = min(best.get(row.space, math.inf), row.edp)
    return best


def optima(rows: Sequence[Row]) -> dict[tuple[str, str, str], float]:
    """The least EDP of each space of which it was proved that there is none below."""
    bounds: dict[tuple[str, str, str], float] = {}
    for row in rows:
        bounds[row.space] = max(bounds.get(row.space, 0.0), row.lower_bound)
    return {space: least for space, least in best_known(rows).items() if least <= bounds[space] * SURE}


def geomean(values: Sequence[float]) -> float:
    """nan of nothing."""
    return math.exp(sum(math.log(max(value, 1e-12)) for value in values) / len(values)) if values else math.nan


def seconds_to(row: Row, edp: float) -> float:
    """CPU seconds until it had so good a mapping; inf if never."""
    return next((seconds for seconds, value in row.steps if value <= edp), math.inf)


def summarise(rows: Sequence[Row]) -> list[Summary]:
    """Best first."""
    best, optimum = best_known(rows), optima([row for row in rows if not row.mapper.endswith(RECORDED)])
    result = []
    for mapper in sorted({row.mapper for row in rows}):
        mine = [row for row in rows if row.mapper == mapper]
        valid = [row for row in mine if row.valid]
        ratios = [row.edp / best[row.space] for row in valid]
        reached = [seconds_to(row, NEAR * best[row.space]) for row in valid]
        soon = [seconds for seconds in reached if math.isfinite(seconds)]
        distances = [row.edp / optimum[row.space] for row in valid if row.space in optimum]
        result.append(
            Summary(
                mapper,
                len(mine),
                len(valid),
                sum(ratio <= 1 + 1e-9 for ratio in ratios),
                geomean(ratios),
                max(ratios, default=math.nan),
                geomean([row.cpu_seconds for row in mine]),
                geomean([float(max(1, row.evaluated)) for row in mine]),
                len(soon),
                geomean(soon),
                len(distances),
                sum(distance <= SURE for distance in distances),
                geomean(distances),
                max(distances, default=math.nan),
            )  # fmt: skip
        )
    return sorted(result, key=lambda row: (-row.found / row.spaces, row.ratio))


def table(summaries: Sequence[Summary]) -> str:
    """As Markdown."""
    lines = [
        f"| mapper | spaces | found | best known | EDP ratio | worst | CPU s | mappings | within {NEAR - 1:.0%} | CPU s to it "
        "| optimum known | optimum found | x optimum | farthest |",
        "| --- |" + " ---: |" * 13,
    ]
    for row in summaries:
        lines.append(
            f"| {row.mapper} | {row.spaces} | {row.found} | {row.best} | {row.ratio:.3f} | {row.worst:.2f} "
            f"| {row.seconds:.2f} | {row.evaluated:,.0f} | {row.near} | {row.seconds_to_near:.2f} "
            f"| {row.proved} | {row.optimal} | {row.distance:.3f} | {row.farthest:.2f} |"
        )
    return "\n".join(lines) + "\n"


def side_by_side(rows: Sequence[Row]) -> str:
    """Per space the EDP over the best known, as Markdown: one column per mapper."""
    best = best_known(rows)
    mappers = [summary.mapper for summary in summarise(rows)]
    cells: dict[tuple[tuple[str, str, str], str], float] = {}
    for row in rows:
        cells[row.space, row.mapper] = min(cells.get((row.space, row.mapper), math.inf), row.edp)
    lines = ["| space | best EDP | " + " | ".join(mappers) + " |", "| --- |" + " ---: |" * (1 + len(mappers))]
    for space, least in best.items():
        ratios = [cells.get((space, mapper), math.nan) / least for mapper in mappers]
        shown = ["" if math.isnan(ratio) else "-" if math.isinf(ratio) else f"{ratio:.3f}" for ratio in ratios]
        lines.append(f"| {'/'.join(space)} | {least:.4g} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def beside(rows: Sequence[Row]) -> str:
    """Where another tool's mapping is recorded: EDP over its EDP, and CPU seconds until as good, beside its own."""
    theirs = {row.space: row for row in rows if row.mapper.endswith(RECORDED)}
    mappers = [summary.mapper for summary in summarise(rows) if not summary.mapper.endswith(RECORDED)]
    lines = [
        "| space | recorded | EDP, pJ x cycles | CPU s | "
        + " | ".join(f"{name}: EDP, CPU s" for name in mappers)
        + " |",
        "| --- | --- |" + " ---: |" * (2 + len(mappers)),
    ]
    for space, row in theirs.items():
        cells = []
        for mapper in mappers:
            mine = min(
                (other for other in rows if (other.space, other.mapper) == (space, mapper)), key=lambda other: other.edp
            )
            soon = seconds_to(mine, row.edp * (1 + 1e-9))
            cells.append(f"{mine.edp / row.edp:.3f}, " + (f"{soon:.2f}" if math.isfinite(soon) else "never"))
        tool = row.mapper.removesuffix(RECORDED)
        lines.append(f"| {'/'.join(space)} | {tool} | {row.edp:.4g} | {row.cpu_seconds:.2f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def plot(rows: Sequence[Row], folder: Path) -> None:
    """Three figures: EDP ratios, spaces solved over time, convergence."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    best = best_known(rows)
    names = [row.mapper for row in summarise(rows) if not row.mapper.endswith(RECORDED)]
    mine = {name: [row for row in rows if row.mapper == name] for name in names}
    colours = {name: pyplot.colormaps["tab20"](index % 20) for index, name in enumerate(names)}
    times = np.geomspace(1e-2, max(row.cpu_seconds for row in rows if not row.mapper.endswith(RECORDED)) + 1e-2, 200)

    figure, axes = pyplot.subplots(figsize=(8, 0.35 * len(names) + 1.5), layout="constrained")
    ratios = [[row.edp / best[row.space] for row in mine[name] if row.valid] or [math.nan] for name in names]
    axes.boxplot(ratios[::-1], orientation="horizontal", tick_labels=names[::-1], whis=(0, 100))
    axes.set(xscale="log", xlabel="EDP over the best known (box: quartiles, whiskers: all)")
    figure.savefig(folder / "edp_ratio.svg")

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for name in names:
        reached = np.array([seconds_to(row, NEAR * best[row.space]) for row in mine[name]])
        axes.step(times, [(reached <= limit).mean() for limit in times], label=name, color=colours[name], where="post")
    axes.set(
        xscale="log", xlabel="CPU seconds", ylabel=f"share of spaces within {NEAR - 1:.0%} of the best", ylim=(0, 1)
    )
    axes.legend(fontsize="small")
    figure.savefig(folder / "time_to_solution.svg")

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for name in names:
        curves = np.array([_curve(row, times, best[row.space]) for row in mine[name]])
        axes.plot(times, np.median(curves, axis=0), label=name, color=colours[name])
    axes.set(xscale="log", yscale="log", xlabel="CPU seconds", ylabel="EDP so far over the best known (median space)")
    axes.legend(fontsize="small")
    figure.savefig(folder / "convergence.svg")


def _curve(row: Row, times: np.ndarray, best: float) -> list[float]:
    """Best so far over the best known at some times; inf before the first mapping."""
    steps = row.steps
    return [min((edp for seconds, edp in steps if seconds <= limit), default=math.inf) / best for limit in times]


def report(rows: Sequence[Row], folder: Path) -> None:
    """Summary on the screen and in the folder, and plots."""
    text = table(summarise(rows))
    whole = "\n".join([text, side_by_side(rows), beside(rows)])
    (folder / "summary.md").write_text(whole, encoding="utf-8")
    print(text)
    plot(rows, folder)
    print(f"written to {folder}")


def main() -> None:
    names = [plugin.spec.name for plugin in installed().of_kind(MapperSpec) if plugin.spec.name not in LEFT_OUT]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("mapper-benchmark"), help="folder of the results")
    parser.add_argument("--quick", action="store_true", help="seven layers, and 2 seconds per search")
    parser.add_argument("--seconds", type=float, help="limit of one search (10, or 2 with --quick)")
    parser.add_argument("--seeds", type=int, default=1, help="searches per mapper and space")
    parser.add_argument("--mappers", default=",".join(names), help="which, by comma")
    parser.add_argument("--model", default="timeloop", help="the cost model that evaluates everything")
    parser.add_argument("--report", action="store_true", help="search nothing, report what there is")
    args = parser.parse_args()
    seconds = args.seconds or (2.0 if args.quick else 10.0)
    if args.report:
        rows = load(args.output / "mappers.csv")
    else:
        try:
            rows = run(args.output, args.mappers.split(","), args.model, args.seeds, seconds, args.quick)
        except KeyboardInterrupt:
            rows = load(args.output / "mappers.csv")
            print("interrupted; the same command goes on from here", file=sys.stderr)
    if rows:
        report(rows, args.output)


if __name__ == "__main__":
    main()
