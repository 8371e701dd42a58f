"""Comparison of `timeloop` with execution, on random sparse triples: problem, machine, mapping.

    PYTHONPATH=tests python -m support.sparse_executed COUNT [-s SEED] [-o FILE]

compares COUNT triples. Every figure must agree with the mean of random draws within three standard errors and Timeloop's
rounding, or within the bound of the traits that apply to it. A figure that does not agree is judged again on fresh draws, on
more of them each time. The output has the numbers of triples and figures, and every violation. For each trait it has the number
of figures that needed it, and the used part of its bound where it was the only one. The exit code is 1 after a violation.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from support.sparse_triples import Triple, drawn
from tilewright.reports import Report
from tilewright.schema.problem import Tensor
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.oracle.result import Words, inside
from tilewright_costmodels.oracle.sparse.execution import UPDATE, Executor, KeptTensor, Key, SparseRun
from tilewright_costmodels.oracle.sparse.patterns import Flags, nonzeros, order_of_visits
from tilewright_costmodels.oracle.trace import Ints, trace_operations
from tilewright_costmodels.timeloop.model import TimeloopModel

ACTIONS = ("reads", "fills", "updates")
KINDS = ("actual", "gated", "skipped")
PIECES = ("metadata", "payload")
STAGES = (24, 384, 4096)
"""Draws of the first judgement, and of the next ones."""
ERRORS = 3.0
"""Standard errors by which a figure may differ."""
STEPS = 3
"""Roundings of one count, each by less than one per instance: format, outer action, own action."""
Figure = tuple[str, ...]
Figures = dict[Figure, NDArray[np.float64]]
"""Figure -> its total over all instances, [draw]."""


class Judged(Executor):
    """An execution that also counts by how much Timeloop's mean occupancies of ranks may be off."""

    slack: dict[Key, NDArray[np.float64]]
    """[rank, metadata or payload, kind, action, draw]."""

    def run(self, without: Collection[Key] = ()) -> SparseRun:
        draws = next(iter(self.present.values())).shape[1]
        self.slack = {key: np.zeros((len(place.ranks), 2, 3, 3, draws)) for key, place in self.places.items()}
        return super().run(without)

    def _add(
        self, place: KeptTensor, kind: int, action: int, flags: Flags, holder: Ints, ranks: slice = slice(None)
    ) -> None:
        super()._add(place, kind, action, flags, holder, ranks)
        if not place.ranks:
            return
        slack = replace(place.contents, units=_slack(place, self._odd(place)))  # type: ignore[arg-type]
        inexact = replace(place, contents=slack)
        self.slack[place.entry, place.tensor.name][ranks, :, kind, action] += self._pieces(inexact, flags, holder)[
            ranks
        ]

    def _odd(self, place: KeptTensor) -> bool:
        """Return whether Timeloop may take ranks here, or those from a memory inside, to have other tiles."""
        inner = [other for (at, name), other in self.places.items() if name == place.tensor.name and at >= place.entry]
        windows = any(len(rank.terms) > 1 for rank in place.tensor.projection)
        return windows or any(
            any(rank.length == 1 for rank in other.ranks)
            or not other.omits_zeros
            or (other.memory.sparse is not None and other.memory.sparse.formats[place.tensor.name].fill == "inner")
            for other in inner
            if other.has_format
        )


def _slack(place: KeptTensor, odd: bool) -> NDArray[np.float64]:
    """Return by how much Timeloop's pieces of a tile may be off, [rank, metadata or payload, tile, draw].

    Coordinates of a fiber are those of the mean one, rounded up. With several ranks, the share of empty fibers is taken off
    twice. Of a structured density, one more or one fewer fiber is empty. A rank without a loop has the tile of another one, and
    so may have one with several loops that are filled from the inside. Loops of one trip decide on the order of ranks that are
    not compressed. Of windows, ranks are cut along other boundaries.
    """
    slack = np.zeros(place.contents.units.shape)
    several = len(place.ranks) > 1
    structured = place.tensor.density is not None and place.tensor.density.distribution == "structured"
    fibers_in_all = 1
    for number in range(len(place.ranks) - 1, -1, -1):
        rank, kind = place.ranks[number], place.ranks[number].spec.format
        fibers, filled = place.contents.fibers[number], place.contents.filled[number]
        per_fiber = {"B": rank.length, "UOP": rank.length + 1}.get(kind, 1)
        slack[number] += fibers if kind in ("CP", "B") else 0
        if several and kind != "UB":
            slack[number] += filled.mean() * (1 - fibers.mean() / fibers_in_all) + structured * per_fiber
        if several and odd:  # all coordinates and their fibers
            slack[number] += np.maximum(2 * place.contents.sizes[:, None], fibers_in_all * (rank.length + 1))
        fibers_in_all *= rank.length
    return slack


def executor(case: Triple, draws: int, seed: int) -> Judged:
    problem, architecture, mapping = case
    trace = trace_operations(problem, mapping, 10**6)
    iterations = inside(problem, trace)
    words = {tensor.name: Words(problem, tensor) for tensor in problem.tensors}
    touched = {name: word.of_iteration[iterations] for name, word in words.items()}
    random = np.random.default_rng(seed)
    present = {}
    for tensor in problem.tensors:
        visits = order_of_visits(mapping, trace.points, touched[tensor.name])
        present[tensor.name] = nonzeros(problem, tensor, words[tensor.name], visits, random, draws)
    coordinates = {name: word.coordinates for name, word in words.items()}
    return Judged(problem, architecture, mapping, trace, touched, coordinates, present)


def executed(run: SparseRun, judged: Judged) -> Figures:
    """Return all figures of an execution."""
    figures: Figures = {}
    for key, counts in run.counts.items():
        place = judged.places[key]
        for (number, kind), (index, action) in product(enumerate(KINDS), enumerate(ACTIONS)):
            at = place.memory.name, key[1], kind, action
            figures[at] = counts.data[number, index].astype(np.float64)
            for rank, (part, pieces) in product(range(len(place.ranks)), enumerate(PIECES)):
                figures[*at, f"{pieces} {rank}"] = counts.metadata[rank, part, number, index]
    for number, kind in enumerate(KINDS):
        figures["operations", kind] = run.operations[number].astype(np.float64)
    return figures


def closed(report: Report) -> dict[Figure, tuple[float, float]]:
    """Return the figures that a report has, and the instances over which each is rounded."""
    figures: dict[Figure, tuple[float, float]] = {}
    for level in report.levels:
        for name, counts in level.tensors.items():
            sparse = counts.sparse
            assert sparse is not None
            instances = sparse.average_instances
            for kind, row in zip(KINDS, (counts, sparse.gated, sparse.skipped), strict=True):
                for action in ACTIONS:
                    figures[level.name, name, kind, action] = getattr(row, action) * instances, instances
                    for rank, both in enumerate(reversed(sparse.metadata)):
                        for pieces in PIECES:
                            count = getattr(getattr(getattr(both, pieces), kind), action)
                            figures[level.name, name, kind, action, f"{pieces} {rank}"] = count * instances, instances
    for kind in KINDS:
        count = getattr(report, f"{kind}_operations")
        figures["operations", kind] = float(count), 2.0
    return figures


def bounds(
    case: Triple, report: Report, judged: Judged, run: SparseRun, figures: Figures
) -> dict[Figure, dict[str, float]]:
    """Return figure -> trait -> by how much it may differ for that."""
    limits: defaultdict[Figure, dict[str, float]] = defaultdict(dict)

    def add(figure: Figure, trait: str, bound: float) -> None:
        if bound > 0:
            limits[figure][trait] = limits[figure].get(trait, 0.0) + bound

    slack = judged.slack
    for figure, trait, bound in _of_actions(judged, figures):
        add(figure, trait, bound)
    for kind, (name, conditions) in product(KINDS, _conditions(judged).items()):
        if conditions - {tensor.name for tensor in case[0].operands if tensor.name != name}:
            add(("operations", kind), "conditions", len(judged.trace.points) * (1 - run.left[name]))
    quirks = {
        (code, *where)
        for text in report.warnings
        for code in re.findall(r"\[(\w+)\]$", text)
        for where in re.findall(r"(\w+) in (\w+)", text)
    }
    for key, counts in run.counts.items():
        place, (_, name) = judged.places[key], key
        level, output = place.memory.name, place.tensor.is_output
        row = next(memory for memory in report.levels if memory.name == level).tensors[name]
        assert row.sparse is not None
        ever = _dense(place, judged, key)
        zeros = 1 - float(judged.present[name].mean())
        existing = row.sparse.average_instances / row.instances
        apart = abs(existing - float((place.contents.held > 0).mean())) * _overlaps(place.tensor)
        for (number, kind), (index, action) in product(enumerate(KINDS), enumerate(ACTIONS)):
            at = level, name, kind, action
            windows = (
                float(abs(getattr(row.sparse.dense, action) * row.instances - ever[action])) + apart * ever[action]
            )
            unsummed = float(counts.unsummed.mean()) if action == "reads" and output else 0.0
            mean = float(figures[at].mean())
            add(at, "windows", windows)
            add(at, "first_reads", unsummed)
            add(at, "uncompressed_scaled", (mean * zeros + 1) * (place.has_format and not place.omits_zeros))
            add(at, "first_occupancy", mean * (("first_occupancy", name, level) in quirks))
            for rank, (part, pieces) in product(range(len(place.ranks)), enumerate(PIECES)):
                figure = *at, f"{pieces} {rank}"
                per_word = float(place.contents.units[rank, part].max()) / place.contents.sizes.min()
                add(figure, "windows", windows * per_word)
                if action == "reads":  # in execution, or by the words that the closed form stores
                    stored = getattr(row.sparse.metadata[len(place.ranks) - 1 - rank], pieces).stored
                    by_words = unsummed * stored / max(1, row.sparse.stored_words)
                    add(figure, "first_reads", max(by_words, float(counts.unsummed_pieces[rank, part].mean())))
                add(figure, "ranks", float(slack[key][rank, part, number, index].mean()))
                add(figure, "metadata_not_scaled", float(counts.omitted[rank, part, index].mean()))
                here = counts.metadata[rank, part, :, index].sum(axis=0)
                if action == "reads" and ("metadata_reads_lost", name, level) in quirks:  # inexact updates
                    updates = (counts.metadata + slack[key])[rank, part, :, UPDATE].sum(axis=0)
                    updates += counts.omitted[rank, part, UPDATE]
                    add(figure, "metadata_reads_lost", float(here.mean() + updates.mean()))
                add(figure, "first_occupancy", float(here.mean()) * (("first_occupancy", name, level) in quirks))
    return limits


def _overlaps(tensor: Tensor) -> bool:
    """Return whether tiles overlap, so that they cannot all hold the mean number of nonzeros of a structured density."""
    structured = tensor.density is not None and tensor.density.distribution == "structured"
    return structured and any(len(rank.terms) > 1 for rank in tensor.projection)


def _dense(place: KeptTensor, judged: Judged, key: Key) -> dict[str, int]:
    """Return the accesses that are executed without zeros, over all instances."""
    count = len(place.accesses)
    outer = [entry for entry, name in judged.places if name == key[1] and entry < key[0]]
    filled = len(judged.places[max(outer), key[1]].accesses.entering[0]) if outer else 0
    if not place.tensor.is_output:
        return {"reads": count, "fills": filled, "updates": 0}
    return {"reads": count - len(np.unique(place.accesses.sums)), "fills": filled, "updates": count}


def _conditions(judged: Judged) -> dict[str, set[str]]:
    """Return operand -> tensors whose zeros save its accesses."""
    conditions: defaultdict[str, set[str]] = defaultdict(set)
    operands = {tensor.name for tensor in judged.problem.operands}
    for _, saving in judged.actions():
        for option in saving.options:
            if option.tensor in operands:
                conditions[option.tensor] |= set(option.when_empty)
    return conditions


def _of_actions(judged: Judged, figures: Figures) -> Iterator[tuple[Figure, str, float]]:
    """Yield figure, trait and bound of actions whose conditions Timeloop may look for in other tiles than execution.

    The figure is between those with and without the action. If a tile stays for several tiles of its memory, or over loops
    outside that memory, Timeloop looks at one of them; it saves at most the share of operations with a zero condition. So it
    does of windows: words stay for several tiles, and instances share them. If a loop in time and one over units step both
    tensors, the tile of the condition is too small (`second_coiteration`).
    """
    table = {key: _doubts(judged, key) for key in judged.savings()}
    doubtful = {key: doubts for key, doubts in table.items() if doubts}
    sets = [[key] for key in doubtful]
    for left_out in [*sets, *([list(doubtful)] if len(sets) > 1 else [])]:
        key = left_out[0]
        windows = any(len(rank.terms) > 1 for rank in judged.problem.tensor(key[1]).projection)
        zeros = _zeros(judged, key) if windows or {"stationary", "coiterated"} & {*doubtful[key]} else 0.0
        without = executed(judged.run(without=left_out), judged)
        for figure, values in without.items():
            place = figure[:-1] if figure[0] == "operations" else figure[:2]
            actual = (*place, "actual", *figure[len(place) + 1 :])
            moved = abs(float(values.mean() - figures[figure].mean()))
            yield figure, "tiles", moved + zeros * max(float(values.mean()), float(without[actual].mean()))
    for entry, name in doubtful:  # another alternative may be of the other kind
        level = judged.places[entry, name].memory.name
        if "alternatives" in doubtful[entry, name]:
            for figure in figures:
                if figure[:2] == (level, name) and figure[2] != "actual":
                    both = sum(float(figures[level, name, kind, *figure[3:]].mean()) for kind in KINDS[1:])
                    yield figure, "tiles", both


def _doubts(judged: Judged, key: Key) -> list[str]:
    """Return the traits of the action that counts for a tensor in a memory."""
    (entry, name), problem = key, judged.problem
    candidates = [
        option
        for at, saving in judged.actions()
        for option in saving.options
        if option.tensor == name and judged.place(name, at).entry == entry
    ]
    last = len(judged.mapping.entries)
    child = next((at for at, of in sorted(judged.places) if of == name and at > entry), last)
    inside = [
        loop
        for loop in judged.mapping.loops()
        if (loop.entry, loop.spatial) >= (entry, True) and (loop.entry, loop.spatial) <= (child, False)
    ]
    unrolled, stepped = ([loop for loop in inside if loop.spatial == kind] for kind in (True, False))
    dimensions = problem.tensor(name).dimensions
    terms = [[term for term in rank.terms if problem.dimensions[term] > 1] for rank in problem.tensor(name).projection]
    slides = any(loop.dimension in window for loop in stepped for window in terms if len(window) > 1)
    targets = {part.target for part in judged.mapping.entries[entry:child]}
    fanouts = sum(judged.architecture.cluster(target).fanout.size > 1 for target in targets)
    conditions = [problem.tensor(other) for option in candidates for other in option.when_empty]
    shared = {
        loop.dimension
        for loop in inside
        if loop.dimension in dimensions and any(loop.dimension in condition.dimensions for condition in conditions)
    }
    densities = [tensor.density.distribution for tensor in conditions if tensor.density is not None]
    traits = {
        "nested": any(of == name and at != entry for at, of in judged.savings()),
        "alternatives": len(candidates) > 1,
        "unrolled": any(loop.dimension in dimensions for loop in unrolled) or (bool(unrolled) and fanouts > 1),
        "stationary": child != last and (slides or not any(loop.dimension in dimensions for loop in stepped)),
        "coiterated": bool(unrolled) and len(shared) > 1,
        "structured": bool(unrolled) and "structured" in densities,
    }
    return [trait for trait, holds in traits.items() if holds]


def _zeros(judged: Judged, key: Key) -> float:
    """Return the share of operations for which some condition of a tensor's actions is zero."""
    names = {
        other
        for _, saving in judged.actions()
        for option in saving.options
        if option.tensor == key[1]
        for other in option.when_empty
    }
    nonzero = [judged.present[name][judged.touched[name]] for name in sorted(names)]
    return 1 - float(np.logical_and.reduce(nonzero).mean())


@dataclass
class Judgement:
    """Figures of one triple: how many, the traits of those that need one with the used part, and violations."""

    figures: int
    needed: list[tuple[tuple[str, ...], float]]
    faults: list[str]


def judged(case: Triple, report: Report, seed: int) -> Judgement:
    """Judge the report of a triple."""
    told = closed(report)
    open_figures, needed = set(told), dict[Figure, tuple[tuple[str, ...], float]]()
    faults: list[str] = []
    for stage, draws in enumerate(STAGES):
        execution = executor(case, draws, 1000 * seed + stage)
        run = execution.run()
        figures = executed(run, execution)
        assert set(figures) == set(told), set(figures) ^ set(told)
        off = {figure: _off(*told[figure], figures[figure]) for figure in open_figures}
        off = {figure: value for figure, value in off.items() if value > 0}
        limits = bounds(case, report, execution, run, figures) if off else {}
        faults = []
        open_figures = set()
        for figure, excess in off.items():
            limit = limits.get(figure, {})
            used = excess / sum(limit.values()) if limit else math.inf
            needed[figure] = tuple(sorted(limit)), used
            if used > 1:
                open_figures.add(figure)
                mean = figures[figure].mean()
                faults.append(f"{' '.join(figure)}: {told[figure][0]:.6g}, executed {mean:.6g}; bounds {limit}")
        if not faults:
            break
    return Judgement(len(told), [need for need in needed.values() if need[1] <= 1], faults)


def _off(value: float, instances: float, sample: NDArray[np.float64]) -> float:
    """Return by how much a figure differs beyond sampling and rounding."""
    draws = len(sample)
    sampling = ERRORS * float(sample.std(ddof=1)) / math.sqrt(draws)
    difference = abs(value - float(sample.mean()))
    if sampling == 0.0:  # what never happened in n draws may happen in one of n / 9
        sampling = ERRORS**2 * max(value, float(sample.mean())) / draws
    return difference - sampling - STEPS * max(instances, 1.0) - 1e-6 * abs(value)


@dataclass
class Tally:
    """Tried triples and their results."""

    first: int
    seed: int
    refused: Counter[str] = field(default_factory=Counter)
    number: Counter[str] = field(default_factory=Counter)
    needed: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)
    most: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    faults: list[str] = field(default_factory=list)

    def next(self) -> None:
        """Try the triple of a seed."""
        seed, self.seed = self.seed, self.seed + 1
        case = drawn(Random(str(seed)))
        if case is None:
            self.refused["not legal"] += 1
            return
        report = TimeloopModel(TimeloopOptions(link_transfers=False)).bind(*case[:2]).explain(case[2])
        if not report.valid or report.actual_operations is None:
            self.refused[report.reasons[0].code if report.reasons else "dense"] += 1
            return
        result = judged(case, report, seed)
        self.number["triples"] += 1
        self.number["figures"] += result.figures
        self.number["triples without a trait"] += not result.needed and not result.faults
        for traits, used in result.needed:
            self.needed.update(traits)
            if len(traits) == 1:
                self.alone[traits[0]] += 1
                self.most[traits[0]] = max(self.most[traits[0]], used)
        self.number["figures with a trait"] += len(result.needed)
        self.number["violations"] += len(result.faults)
        self.faults += [f"seed {seed}: {fault}" for fault in result.faults]

    def lines(self) -> Iterator[str]:
        yield f"seeds {self.first} to {self.seed - 1}, {time.process_time():.0f} s of CPU time"
        yield "refused: " + ", ".join(f"{code} {count}" for code, count in sorted(self.refused.items()))
        yield ", ".join(f"{name} {count}" for name, count in self.number.items())
        for trait in sorted(self.needed):
            used = f"{self.most[trait]:.3g} of the bound at most" if self.alone[trait] else "never alone"
            yield f"  {trait}: in {self.needed[trait]} figures; alone in {self.alone[trait]}, {used}"
        yield from self.faults[:100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="triples")
    parser.add_argument("-s", "--seed", type=int, default=0, help="of the first one; each has a seed of its own")
    parser.add_argument("-o", "--output", type=Path, default=Path("sparse.txt"), help="what was found")
    given = parser.parse_args()
    tally, written, done = Tally(given.seed, given.seed), time.monotonic(), False
    while not done:
        tally.next()
        done = tally.number["triples"] >= given.count
        if done or time.monotonic() > written + 30:
            written = time.monotonic()
            given.output.write_text("\n".join([*tally.lines(), "done" if done else "not done yet", ""]))
    print(given.output.read_text())
    raise SystemExit(bool(tally.faults))


if __name__ == "__main__":
    main()
