"""Comparison of `timeloop` with execution, on random mappings with tiles that need not divide.

    PYTHONPATH=tests python -m support.executed COUNT [-s SEED] [-o FILE]

tries COUNT mappings of tensors with equal or disjoint tiles, where no count may differ. It then tries COUNT mappings of any
tensors, every other one with link transfers. There the bounds of the listed traits (docs/ragged.md) limit all differences.
The output has the numbers of mappings and of correct ones, and every violation. For each trait it has the number of mappings
with that cause, and the used part of its bound where it was the only one. The exit code is 1 after a violation.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from support.ragged import Case, drawn
from support.traits import Walk, used
from tilewright.application.run.differences import Difference, differences
from tilewright.reports import Report
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.approximations import OF_TIMELOOP
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopModel

EQUAL, ANY = "equal or disjoint tiles", "any tensors"


def both(case: Case, links: bool = False) -> tuple[Report, Report]:
    """What is executed, and what `timeloop` says."""
    problem, architecture, mapping = case
    executed = OracleModel(OracleOptions()).bind(problem, architecture).explain(mapping)
    counted = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture).explain(mapping)
    assert executed.valid and counted.valid, (executed.reasons, counted.reasons)
    return executed, counted


def unequal(case: Case) -> Iterator[str]:
    """What is not as executed, of tensors whose tiles are equal or disjoint: nothing may be.

    But for a cycle that Timeloop has too many, of perfect tiles: it divides by words per cycle of computing, which floating point rounds.
    """
    executed, counted = both(case)
    spare = int(case[2].is_perfect)
    yield from (f"{difference}" for difference in differences(*case, executed, counted, ()))

    def figures(report: Report) -> Iterator[tuple[str, object]]:
        yield "limits", [(limit.name, limit.action, limit.words) for limit in report.limits]
        for level in report.levels:
            yield level.name, level.instances
            yield level.name, {name: (row.instances, row.tile_words) for name, row in level.tensors.items()}

    for (name, said), (_, true) in zip(figures(counted), figures(executed), strict=True):
        if said != true:
            yield f"{name}: {said}, executed {true}"
    for mine, other in zip(counted.limits, executed.limits, strict=True):
        if not 0 <= mine.cycles - other.cycles <= spare * (mine.name != "compute"):
            yield f"cycles: {mine}, executed {other}"
    leaks = any(memory.leakage_pj_per_cycle for memory in case[1].memories)
    if all(memory.block_words == 1 for memory in case[1].memories) and not (
        leaks and counted.cycles != executed.cycles
    ):
        pj, really = counted.energy_pj or 0.0, executed.energy_pj or 0.0
        if not math.isclose(pj, really, rel_tol=1e-9):
            yield f"energy: {pj}, executed {really}"


@dataclass(frozen=True)
class Compared:
    """What differs of one mapping, with its traits and the part of their bounds that it takes; and what is wrong."""

    differences: tuple[tuple[Difference, list[str], float], ...]
    faults: tuple[str, ...]


def compared(case: Case, links: bool) -> Compared:
    """Of any tensors: what no listed trait explains is wrong, and so is what is more than its bound."""
    executed, counted = both(case, links)
    walk = Walk(case)
    all_of_them = tuple(
        (difference, *used(walk, counted, difference))
        for difference in differences(*case, executed, counted, OF_TIMELOOP)
    )
    faults = [f"{difference}: {share:.3g} of the bounds" for difference, _, share in all_of_them if share > 1.0]
    computing = [report.limits[0].cycles for report in (executed, counted)]
    if computing[0] != computing[1]:
        faults.append(f"computing: {computing[1]} cycles, executed {computing[0]}")
    return Compared(all_of_them, tuple(faults))


@dataclass
class Tally:
    """Tried mappings and their results."""

    first: int
    seed: int
    number: Counter[str] = field(default_factory=Counter)
    ragged: Counter[str] = field(default_factory=Counter)
    faulty: Counter[str] = field(default_factory=Counter)
    not_legal: int = 0
    as_executed: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)
    most: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    faults: list[str] = field(default_factory=list)

    def next(self) -> None:
        """Try the two mappings of a seed."""
        for plain, kind in ((True, EQUAL), (False, ANY)):
            case = drawn(Random(f"{self.seed} {plain}"), plain)
            if case is None:
                self.not_legal += 1
                continue
            faults = [*unequal(case)] if plain else self._any(compared(case, self.seed % 2 > 0))
            self.number[kind] += 1
            self.ragged[kind] += not case[2].is_perfect
            self.faulty[kind] += bool(faults)
            self.faults += [f"seed {self.seed}, {kind}: {fault}" for fault in faults]
        self.seed += 1

    def _any(self, result: Compared) -> tuple[str, ...]:
        self.as_executed += not result.differences
        self.causes.update({code for _, codes, _ in result.differences for code in codes})
        for code, share in ((codes[0], share) for _, codes, share in result.differences if len(codes) == 1):
            self.alone[code], self.most[code] = self.alone[code] + 1, max(self.most[code], share)
        return result.faults

    def lines(self) -> Iterator[str]:
        yield f"seeds {self.first} to {self.seed - 1}, {time.process_time():.0f} s of CPU time; not legal: {self.not_legal}"
        for kind, held in ((EQUAL, "equal to what is executed"), (ANY, "equal or within the bounds of their traits")):
            total, faulty = self.number[kind], self.faulty[kind]
            yield f"{kind}: {total} mappings, {self.ragged[kind]} ragged; {total - faulty} {held}, {faulty} not"
        yield f"{ANY}, every count as executed: {self.as_executed}"
        for code in sorted(self.causes):
            used = f"{self.most[code]:.3g} of the bound at most" if self.alone[code] else "never alone"
            yield f"  {code}: cause in {self.causes[code]} mappings; alone of {self.alone[code]} counts, {used}"
        yield from self.faults[:100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="mappings of either kind")
    parser.add_argument("-s", "--seed", type=int, default=0, help="of the first one; each has a seed of its own")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("executed.txt"), help="what was found, written anew at times"
    )
    given = parser.parse_args()
    tally, written, done = Tally(given.seed, given.seed), time.monotonic(), False
    while not done:
        tally.next()
        done = min(tally.number[EQUAL], tally.number[ANY]) >= given.count
        if done or time.monotonic() > written + 30:
            written = time.monotonic()
            given.output.write_text("\n".join([*tally.lines(), "done" if done else "not done yet", ""]))
    print(given.output.read_text())
    raise SystemExit(bool(tally.faults))


if __name__ == "__main__":
    main()
