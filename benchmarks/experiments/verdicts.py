"""The page benchmarks/papers_verdicts.md: a verdict for each claim of the five papers, generated from the CSV files of the results.

A claim has the paper's sentence in our words, its figure, ours, a verdict and the reason. If ours is a measurement, the verdict is
decided by the figure, not written down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from benchmarks.experiments.framework import Row, distinct, geomean, load, number, ratios, shown, table

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be decided"]
VERDICTS: tuple[Verdict, ...] = ("holds", "holds in part", "does not hold", "cannot be decided")
Finding = tuple[str, Verdict]
"""Our figure, and the verdict."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper.

    Attributes:
        place: Figure, table, algorithm or rule.
        says: The sentence in our words.
        figure: The paper's figure.
        finding: Ours from the results, or a fixed finding by a command.
        why: The reason for the verdict; may be empty if the claim holds.
        see: Experiment, command or test.
    """

    place: str
    says: str
    figure: str
    finding: Callable[[Results], Finding] | Finding
    why: str
    see: str


class Results:
    """Rows of experiments in a folder."""

    def __init__(self, folder: Path) -> None:
        self.rows: Callable[[str], list[Row]] = cache(lambda name: load(folder / f"{name}.csv"))

    def over(
        self, experiment: str, tool: str, base: str | None = None, value: str = "edp", layers: Sequence[str] = ()
    ) -> list[float]:
        """Ratios of a tool to another one, or to the least, for each layer with both."""
        rows = self.rows(experiment)
        cells = ratios(rows, value, base)
        return [
            cells[layer, tool]
            for layer in layers or distinct(rows, "layer")
            if (layer, tool) in cells and cells[layer, tool] > 0
        ]

    def missing(self, experiment: str, tool: str) -> tuple[int, int]:
        """Layers without a mapping, and all layers."""
        mine = [row for row in self.rows(experiment) if row["tool"] == tool]
        return sum(not row["edp"] for row in mine), len(mine)

    def seconds(self, experiment: str, tool: str) -> float:
        return sum(number(row, "cpu_seconds") for row in self.rows(experiment) if row["tool"] == tool)

    def column(self, experiment: str, name: str) -> list[float]:
        return [number(row, name) for row in self.rows(experiment)]


def decided(text: str, holds: bool, part: bool = False) -> Finding:
    """The finding with its verdict: `part` counts if the claim does not hold."""
    return text, "holds" if holds else "holds in part" if part else "does not hold"


def span(values: Iterable[float]) -> str:
    """Least and most of some figures; `-` without any."""
    known = sorted(values)
    if not known:
        return "-"
    return f"{shown(known[0])} to {shown(known[-1])}"


def best_of_all(experiment: str, tool: str, others: Sequence[str] = ()) -> Callable[[Results], Finding]:
    """A tool has the least EDP of all on each layer, or is beaten by less than 2 %."""

    def finding(results: Results) -> Finding:
        mine = results.over(experiment, tool)
        rest = [geomean(results.over(experiment, other)) for other in others]
        told = f"at most {max(mine):.3g} times the least" + (f"; the others {span(rest)}" if rest else "")
        return decided(told, max(mine) <= 1.02, geomean(mine) <= 1.02)

    return finding


PROGRAMS = Path(__file__).with_name("programs.csv")
"""CPU seconds of searches by the authors' own programs, recorded once: Timeloop's mapper with one thread (stops: 20,000 invalid or 500
worse mappings), CoSA's program solved by Gurobi on layers of ResNet-50, and Sunstone's example."""


def of_program(program: str, search: str) -> list[float]:
    """CPU seconds per layer of another program."""
    return [
        number(row, "cpu_seconds") for row in load(PROGRAMS) if (row["program"], row["search"]) == (program, search)
    ]


def faster(
    experiment: str, tool: str, others: Sequence[str], paper: Callable[[float], bool], timeloop: bool = False
) -> Callable[[Results], Finding]:
    """CPU seconds of others over those of a tool. `timeloop`: its program and Sunstone's are compared, too."""

    def finding(results: Results) -> Finding:
        factors = {other: results.seconds(experiment, other) / results.seconds(experiment, tool) for other in others}
        told = ", ".join(f"{other} {factor:.2g} times" for other, factor in factors.items())
        good = [paper(factor) for factor in factors.values()]
        if not timeloop:
            return decided(told, all(good), any(good))
        theirs, mine = of_program("Timeloop", "random-pruned"), of_program("Sunstone", "its example")
        told += f"; by the programs, Timeloop {span(theirs)} s a layer, Sunstone {span(mine)} s"
        return decided(told, all(good), any(good) or min(theirs) > max(mine))

    return finding


# -- figures of single claims --------------------------------------------------------------------------------------


def sizes(results: Results) -> Finding:
    rows = results.rows("sunstone_table_1")
    ended = {tool: [int(number(row, "evaluated")) for row in rows if row["tool"] == tool and row["stop"] == "finished"]
             for tool in ("Sunstone", "Marvel", "Interstellar", "dMaze-fast")}  # fmt: skip
    every, mine = len(distinct(rows, "layer")), ended.pop("Sunstone")
    told = f"ends on {len(mine)} of {every} layers, after {span(mine)}; " + ", ".join(f"{tool} on {len(some)}" for tool, some in ended.items())  # fmt: skip
    return decided(told, len(mine) == every and not any(ended.values()), len(mine) > max(map(len, ended.values())))


def quality(results: Results) -> Finding:
    worst = {tool: max(results.over("sunstone_table_1", tool)) for tool in ("TL-slow", "CoSA", "Interstellar", "dMaze-fast", "Sunstone")}  # fmt: skip
    told = ", ".join(f"{tool} {value:.3g}" for tool, value in worst.items())
    return decided(told, worst["CoSA"] >= 1.3 and worst["Sunstone"] <= 1.02, worst["Sunstone"] <= 1.02)


def no_mapping(experiment: str, *tools: str) -> Callable[[Results], Finding]:
    """Some layers have no valid mapping by each of these tools."""

    def finding(results: Results) -> Finding:
        counts = {tool: results.missing(experiment, tool) for tool in tools}
        told = ", ".join(f"{tool} {some} of {every}" for tool, (some, every) in counts.items())
        return decided(told, all(some for some, _ in counts.values()), any(some for some, _ in counts.values()))

    return finding


def pruned(before: str, after: str, low: float, high: float) -> Callable[[Results], Finding]:
    """Part that a rule prunes; in part if it prunes more than the paper writes."""

    def finding(results: Results) -> Finding:
        pairs = zip(results.column("sunstone_pruning", before), results.column("sunstone_pruning", after), strict=True)
        parts = [1 - kept / every for every, kept in pairs]
        return decided(
            f"{min(parts):.0%} to {max(parts):.0%}",
            max(parts) >= high - 0.05 and max(parts) <= max(high, 0.999) and min(parts) >= low - 0.05,
            max(parts) >= low,
        )

    return finding


def simba(tool: str, layer: str, paper: float) -> Callable[[Results], Finding]:
    def finding(results: Results) -> Finding:
        (value,) = results.over("sunstone_fig_8", tool, layers=[layer])
        return decided(f"{value:.3g}", abs(value / paper - 1) <= 0.1, value > 1.02)

    return finding


def timeloop_simba(results: Results) -> Finding:
    value = geomean(results.over("sunstone_fig_8", "TL-slow", "Sunstone"))
    return decided(f"{value:.3g}", abs(value / 1.5 - 1) <= 0.1, value > 1.1)


def same_latency(results: Results) -> Finding:
    values = results.over("sunstone_fig_8", "TL-slow", "Sunstone", "cycles")
    return decided(
        f"{span(values)}; equal on {sum(abs(v - 1) < 0.01 for v in values)} of {len(values)}",
        max(values) <= 1.02,
        min(values) <= 1.02,
    )


def decision_orders(results: Results) -> tuple[dict[str, float], dict[str, int]]:
    rows = results.rows("sunstone_table_6")
    edp, count = {}, {}
    for tool in distinct(rows, "tool"):
        mine = [row for row in rows if row["tool"] == tool]
        edp[tool] = sum(number(row, "edp") for row in mine)
        count[tool] = sum(int(row["evaluated"]) for row in mine)
    return edp, count


def within_a_level(results: Results) -> Finding:
    edp, count = decision_orders(results)
    values = [value for tool, value in edp.items() if tool.startswith("bottom_up")]
    sizes = [value for tool, value in count.items() if tool.startswith("bottom_up")]
    told = f"EDP within {max(values) / min(values) - 1:.2%}; spaces within {max(sizes) / min(sizes):.2g} times"
    return decided(told, max(values) <= 1.01 * min(values) and max(sizes) <= 1.3 * min(sizes), max(values) <= 1.01 * min(values))  # fmt: skip


def top_down_size(results: Results) -> Finding:
    _, count = decision_orders(results)
    down = count["top_down, unrolling_tiling_ordering"]
    factors = [down / value for tool, value in count.items() if tool.startswith("bottom_up")]
    return decided(f"{span(factors)} times", min(factors) >= 10, min(factors) >= 2)


def top_down_edp(results: Results) -> Finding:
    edp, _ = decision_orders(results)
    saved = 1 - edp["top_down, unrolling_tiling_ordering"] / min(value for tool, value in edp.items() if tool.startswith("bottom_up"))  # fmt: skip
    return decided(f"{saved:.2%} lower", saved >= 0.02, saved > 0.001)


def naive_gain(results: Results) -> Finding:
    from benchmarks.experiments.sunstone import naive_fig_9

    gains = naive_fig_9(results.rows("sunstone_fig_9"))
    (array, *_), shared = list(gains.values()), gains["and weights serve the batch"]
    return decided(
        f"{shared[1]:.3g} if naive weights serve the batch, {array[1]:.3g} with the reuse of the array alone",
        False,
        abs(shared[1] / 2.9 - 1) <= 0.2,
    )


def overheads(key: str, paper: float) -> Callable[[Results], Finding]:
    def finding(results: Results) -> Finding:
        from benchmarks.experiments.sunstone import PARTS, RESNET, first_reordering

        rows = results.rows("sunstone_fig_9")
        if key == "reordering":
            part = first_reordering(rows)
            return decided(f"{part:.2%}", 0.5 <= part / paper <= 2)
        total = {name: sum(RESNET[row["layer"]] * number(row, name) for row in rows) for name in (*PARTS, "number of instructions")}  # fmt: skip
        value = total["number of instructions"] if key == "number" else total[key] / sum(total[name] for name in PARTS)
        told = f"{value / 1e6:.3g} million" if key == "number" else f"{value:.1%}"
        return decided(told, abs(value / paper - 1) <= 0.15, abs(value / paper - 1) <= 0.4)

    return finding


def rules_keep_edp(results: Results) -> Finding:
    rows = results.rows("thesis_authors")
    mine, authors = (
        [number(row, key) / number(row, "edp, sound") for row in rows] for key in ("edp, paper", "edp, authors")
    )
    told = f"{geomean(mine):.3g} ({span(mine)}); the authors' program {geomean(authors):.3g} ({span(authors)})"
    return decided(told, geomean(mine) <= 1.02, geomean(mine) <= 1.05)


def shrunk(results: Results) -> Finding:
    rows = results.rows("thesis_fig_6_11")
    factors = [number(row, "all") / number(row, "all rules") for row in rows]
    return decided(f"{min(factors):.0e} to {max(factors):.0e}", min(factors) >= 1e6)


def joint_best(results: Results) -> Finding:
    rows = results.rows("thesis_fig_7_2")
    losses = []
    for label in distinct(rows, "layer"):
        grid, joint = (row for row in rows if row["layer"] == label)
        losses.append(number(joint, "edp") / number(grid, "edp") - 1)
    return decided(f"{min(losses):+.2%} to {max(losses):+.2%}", max(losses) <= 0.001, max(losses) <= 0.02)


def joint_part(key: str, holds: Callable[[list[float]], bool], what: str) -> Callable[[Results], Finding]:
    def finding(results: Results) -> Finding:
        rows = results.rows("thesis_fig_7_2")
        if key not in rows[0]:
            return "not counted", "cannot be decided"
        factors = []
        for label in distinct(rows, "layer"):
            grid, joint = (row for row in rows if row["layer"] == label)
            factors.append(number(grid, key) / number(joint, key))
        return decided(f"{span(factors)} times fewer {what}", holds(factors), max(factors) > 1.05)

    return finding


def lowest_edp_of_kernels(results: Results) -> Finding:
    values = results.over("thesis_fig_6_9", "TL-slow", "Sunstone")
    edge = [value for value in results.over("thesis_fig_6_9", "TL-slow", "Sunstone", layers=[layer for layer in distinct(results.rows("thesis_fig_6_9"), "layer") if "edge" in layer])]  # fmt: skip
    return decided(f"{span(values)}; edge up to {max(edge):.3g}", min(values) >= 1, True)


def spread(column: str) -> Callable[[Results], float]:
    return lambda results: max(results.column("union_fig_3", column)) / min(results.column("union_fig_3", column))


def scatter(results: Results) -> Finding:
    energy, cycles = spread("energy_pj")(results), spread("cycles")(results)
    return decided(f"energy {energy:.3g} times, cycles {cycles:.3g} times", energy > 2 and cycles > 2)


def steps(results: Results) -> Finding:
    rows = results.rows("union_fig_6")
    sets = [{row["Inputs"] for row in rows if row["step"] == step} for step in ("1", "2", "3")]
    told = f"{len(sets[0] & sets[1])} and {len(sets[1] & sets[2])} of {len(sets[0])} inputs stay"
    return decided(told, sets[0] == sets[1] and 0 < len(sets[1] & sets[2]) < len(sets[1]))


def ttgt(results: Results) -> Finding:
    rows = [row for row in results.rows("union_fig_8") if row["axes"] == "one dimension" and row["layer"].endswith("_16")]  # fmt: skip
    factors = []
    for layer in distinct(rows, "layer"):
        native, other = (row for row in rows if row["layer"] == layer)
        factors.append(number(native, "edp") / number(other, "edp"))
    return decided(f"native {span(factors)} times", min(factors) > 1)


def per_axis(results: Results, size: str) -> dict[str, list[float]]:
    """Layer -> the least EDP of all pairs of dimensions with one on each axis, by `maestro`, from the narrowest ratio to the balanced one."""
    layers: dict[str, dict[float, float]] = {}
    for row in results.rows("union_fig_10"):
        layer, colon, _ = row["layer"].partition(":")
        if colon and row["edp"] and (row["model"], row["size"]) == ("maestro", size):
            mine = layers.setdefault(layer, {})
            place = number(row, "place")
            mine[place] = min(number(row, "edp"), mine.get(place, math.inf))
    return {layer: [mine[place] for place in sorted(mine)] for layer, mine in layers.items()}


def balanced(results: Results) -> Finding:
    """With one dimension per axis: the balanced ratio is best for most layers, and the narrowest one costs more."""
    layers = [
        values
        for size in ("edge", "cloud")
        for layer, values in per_axis(results, size).items()
        if not layer.startswith("thin")
    ]
    best = sum(values[-1] <= 1.02 * min(values) for values in layers)
    narrow = [values[0] / values[-1] for values in layers]
    half = len(layers) / 2
    text = f"within 2 % of the least in {best} of {len(layers)}; the narrowest ratio costs {span(narrow)} times"
    return decided(text, best > half and sum(value > 1.02 for value in narrow) > half, best > half)


def thin(results: Results) -> Finding:
    (values,) = (values for layer, values in per_axis(results, "cloud").items() if layer.startswith("thin"))
    return decided(f"32 x 64 costs {values[-1] / values[0]:.3g} times 1 x 2048", values[-1] > 1.1 * values[0])


def knees(results: Results) -> Finding:
    rows = [row for row in results.rows("union_fig_11") if row["model"] == "timeloop"]
    places = {}
    for layer in distinct(rows, "layer"):
        mine = [(float(row["place"]), number(row, "edp")) for row in rows if row["layer"] == layer]
        least = min(value for _, value in mine)
        places[layer] = min(at for at, _ in mine if all(value <= 1.05 * least for place, value in mine if place >= at))
    others = [value for layer, value in places.items() if layer != "ResNet50-2"]
    return decided(
        f"ResNet50-2 from {places['ResNet50-2']:.3g}, others from {span(others)} GB/s",
        places["ResNet50-2"] == 2 and min(others) >= 6,
        places["ResNet50-2"] <= min(others),
    )


def cosa_gain(value: str, over: str, paper: float) -> Callable[[Results], Finding]:
    def finding(results: Results) -> Finding:
        gain = 1 / geomean(results.over("cosa_speedup", "cosa, published form", over, value))
        return decided(f"{gain:.3g} times", abs(gain / paper - 1) <= 0.15, gain >= paper)

    return finding


def gpu(results: Results) -> Finding:
    gain = 1 / geomean(results.over("cosa_gpu", "cosa, published form", "random", "cycles"))
    return f"by a model, {gain:.3g} times the speed of the best of 50 random mappings", "cannot be decided"


def cosa_time(results: Results) -> Finding:
    rows = results.rows("cosa_speedup")
    mean = {}
    for tool in distinct(rows, "tool"):
        mine = [number(row, "cpu_seconds") for row in rows if row["tool"] == tool]
        mean[tool] = sum(mine) / len(mine)
    factor = mean["hybrid"] / mean["cosa, published form"]
    theirs, solved = (
        sum(some) / len(some) for some in (of_program("Timeloop", "hybrid"), of_program("CoSA", "Gurobi"))
    )
    told = (
        f"{factor:.2g} times: hybrid {mean['hybrid']:.2g} s, cosa {mean['cosa, published form']:.2g} s; by the programs {theirs / solved:.2g} "
        f"times: {theirs:.2g} s and {solved:.2g} s"
    )
    return decided(told, factor >= 30, theirs / solved >= 5)


def cosa_samples(results: Results) -> Finding:
    mean = {}
    for tool in ("hybrid", "random"):
        mine = [number(row, "evaluated") for row in results.rows("cosa_speedup") if row["tool"] == tool]
        mean[tool] = sum(mine) / len(mine)
    return f"hybrid evaluates {mean['hybrid']:,.0f}, random draws {mean['random']:,.0f}", "cannot be decided"


def cosa_terms(results: Results) -> Finding:
    totals = {row["tool"]: number(row, "total") for row in results.rows("cosa_fig_8")}
    mine = totals["cosa, published form"]
    told = ", ".join(f"{tool} {total:.3g}" for tool, total in totals.items() if tool in ("random", "hybrid", "cosa, published form"))  # fmt: skip
    return decided(told, mine <= min(totals.values()) * (1 + 1e-6))


def cosa_variant(name: str) -> Callable[[Results], Finding]:
    def finding(results: Results) -> Finding:
        layers = [layer for layer in distinct(results.rows("cosa_variants"), "layer") if layer.startswith(f"{name}:")]
        over = {
            base: 1 / geomean(results.over("cosa_variants", "cosa, published form", base, "cycles", layers))
            for base in ("random", "hybrid")
        }
        told = ", ".join(f"{factor:.3g} times as fast as {base}" for base, factor in over.items())
        return decided(told, min(over.values()) > 1)

    return finding


def quickflow_best(results: Results) -> Finding:
    cells = ratios(results.rows("quickflow_fig_6"), "edp", "QuickFlow")
    layers = distinct(results.rows("quickflow_fig_6"), "layer")
    others = [min(value for (layer, tool), value in cells.items() if layer == name and tool != "QuickFlow" and value > 0) for name in layers]  # fmt: skip
    return decided(f"{geomean(others):.4g} times, {span(others)}", geomean(others) >= 1.15, geomean(others) >= 1.015)


def quickflow_baselines(results: Results) -> Finding:
    rows = results.rows("quickflow_baselines")
    cells = ratios(rows, "edp", "QuickFlow")
    best = []
    for name in distinct(rows, "layer"):
        best.append(min(value for (layer, tool), value in cells.items() if layer == name and tool != "QuickFlow" and value > 0))  # fmt: skip
    return decided(f"{geomean(best):.3g} times, {span(best)}", geomean(best) >= 1.15, geomean(best) >= 1.015)


def quickflow_worst(
    tools: Sequence[str], paper: float, as_published: Sequence[str] = ()
) -> Callable[[Results], Finding]:
    """The worst EDP of some tools over QuickFlow's; `as_published`: the same tools with the settings of their programs."""

    def finding(results: Results) -> Finding:
        worst = max(max(results.over("quickflow_fig_6", tool, "QuickFlow")) for tool in tools)
        told = f"up to {shown(worst)} times"
        if as_published:
            over = [results.over("quickflow_baselines", tool, "QuickFlow") for tool in as_published]
            worst = max(map(max, over))
            told += (
                f"; as published up to {shown(worst)}, {' and '.join(shown(geomean(row)) for row in over)} on average"
            )
        return decided(told, worst >= paper / 2, worst >= 1.3)

    return finding


def quickflow_times(results: Results) -> Finding:
    mine = results.seconds("quickflow_fig_6", "QuickFlow")
    factors = {tool: results.seconds("quickflow_fig_6", tool) / mine for tool in ("FactorFlow", "LOMA-7", "SALSA", "Timeloop-D", "Timeloop-L")}  # fmt: skip
    told = ", ".join(f"{tool} {factor:.2g}" for tool, factor in factors.items())
    return decided(told, min(factors.values()) >= 1, max(factors.values()) >= 2)


def quickflow_visits(results: Results) -> Finding:
    rows = results.rows("quickflow_fig_6")
    mean = {tool: geomean(number(row, "evaluated") for row in rows if row["tool"] == tool) for tool in distinct(rows, "tool")}  # fmt: skip
    mine = mean.pop("QuickFlow")
    told = ", ".join(f"{tool} {value / mine:.2g}" for tool, value in mean.items())
    return decided(f"{mine:,.0f} visited; {told} times", min(mean.values()) > mine, max(mean.values()) > 2 * mine)


def all_orders(results: Results) -> Finding:
    pairs = zip(results.column("quickflow_orders", "edp, all orders"), results.column("quickflow_orders", "edp"), strict=True)  # fmt: skip
    better = [1 - every / mine for every, mine in pairs]
    return decided(f"better in {sum(v > 1e-9 for v in better)} of {len(better)}", max(better) <= 1e-9)


def eight_hops(results: Results) -> Finding:
    values = [1 - value for value in results.over("quickflow_hops", "N = 8, M = 1", "QuickFlow")]
    better = [value for value in values if value > 1e-9]
    return decided(
        f"better in {len(better)} of {len(values)}, by {max(better, default=0):.2%} at most",
        len(better) <= 6 and max(better, default=0) <= 0.007,
    )


def model_rate(results: Results) -> Finding:
    paper, mine = results.column("quickflow_table_3", "QuickFlow"), results.column("quickflow_table_3", "single mappings")  # fmt: skip
    factors = [ours / theirs for ours, theirs in zip(mine, paper, strict=True)]
    return f"{span(mine)} single mappings per second, {span(factors)} times the paper's", "cannot be decided"


def claims() -> dict[str, tuple[Claim, ...]]:
    """Claims by paper."""
    from benchmarks.experiments.claims import CLAIMS

    return CLAIMS


HEAD = """# What the papers claim, and what holds here

<!-- Generated by benchmarks/papers.py from the CSV files in {folder}/. Do not edit: python benchmarks/papers.py --page -->

Of {count} claims of five papers, {counts}.

A row has the paper's sentence in our words, its figure, ours, the verdict and its reason.
Figures are from the CSV files of the experiments, and decide the verdicts.
Mappings are evaluated by `timeloop` at the library's energies; the papers print neither energies nor EDP.
`holds in part`: the direction holds, but not the figure, or not on all layers.
`cannot be decided`: the paper does not say what it measured, or its program, machine or data are not public.

`by the programs`: CPU seconds of the authors' own programs, recorded once, on other layers ([runs](experiments/programs.csv)).

A name such as `sunstone_fig_7` is an [experiment](papers.md): `python benchmarks/papers.py sunstone_fig_7`.
Other commands run in a clone of the repository.
[Another page](papers_coverage.md) says which items work here.
"""


def judged(folder: Path) -> Iterator[tuple[str, Claim, Finding]]:
    """Yield (paper, claim, finding); a claim whose experiment has no results in the folder is not measured."""
    results = Results(folder)
    for paper, some in claims().items():
        for claim in some:
            try:
                finding = claim.finding(results) if callable(claim.finding) else claim.finding
            except FileNotFoundError:
                finding = "not measured", "cannot be decided"
            yield paper, claim, finding


def page(folder: Path) -> str:
    """The whole page."""
    rows = list(judged(folder))
    verdicts = [verdict for _, _, (_, verdict) in rows]
    counts = ", ".join(f"{verdicts.count(verdict)}: {verdict}" for verdict in VERDICTS)
    parts = [HEAD.format(folder=folder.name, count=len(rows), counts=counts).strip()]
    for paper in claims():
        cells = [
            [claim.place, claim.says, claim.figure, ours, verdict, claim.why, claim.see]
            for name, claim, (ours, verdict) in rows
            if name == paper
        ]
        parts += [f"## {paper}", table(("where", "the paper", "its figure", "ours", "verdict", "why", "see"), cells)]
    return "\n\n".join(parts) + "\n"
