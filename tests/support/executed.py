"""Whether `timeloop` says what is executed, of random mappings whose tiles need not divide.

    PYTHONPATH=tests python -m support.executed COUNT [-s SEED] [-o FILE]

tries so many of tensors whose tiles are equal or disjoint, where nothing may differ, and so many of any tensors, every other one with
link transfers, where nothing may differ by more than the bounds of the listed traits (docs/ragged.md). Writes how many there were, how
many had a difference, and of every trait in how many mappings it was a cause, and how much of its bound was used where it was alone.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from support.ragged import Case, drawn
from support.traits import Walk, used
from tilewright.run.differences import Difference, differences
from tilewright.schema.report import Report
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.approximations import OF_TIMELOOP
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopModel


def both(case: Case, links: bool = False) -> tuple[Report, Report]:
    """What is executed, and what `timeloop` says."""
    problem, architecture, mapping = case
    executed = OracleModel(OracleOptions()).bind(problem, architecture).explain(mapping)
    found = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture).explain(mapping)
    assert executed.valid and found.valid, (executed.reasons, found.reasons)
    return executed, found


def unequal(case: Case) -> Iterator[str]:
    """What is not as executed, of tensors whose tiles are equal or disjoint: nothing may be.

    But for a cycle that Timeloop has too many, of perfect tiles: it divides by words per cycle of computing, which floating point rounds.
    """
    executed, found = both(case)
    spare = int(case[2].is_perfect)
    yield from (f"{each}" for each in differences(*case, executed, found, ()))

    def figures(report: Report) -> Iterator[tuple[str, object]]:
        yield "limits", [(limit.name, limit.action, limit.words) for limit in report.limits]
        for level in report.levels:
            yield level.name, level.instances
            yield level.name, {name: (row.instances, row.tile_words) for name, row in level.tensors.items()}

    for (name, said), (_, true) in zip(figures(found), figures(executed), strict=True):
        if said != true:
            yield f"{name}: {said}, executed {true}"
    for mine, other in zip(found.limits, executed.limits, strict=True):
        if not 0 <= mine.cycles - other.cycles <= spare * (mine.name != "compute"):
            yield f"cycles: {mine}, executed {other}"
    leaks = any(memory.leakage_pj_per_cycle for memory in case[1].memories)
    if all(memory.block_words == 1 for memory in case[1].memories) and not (leaks and found.cycles != executed.cycles):
        pj, really = found.energy_pj or 0.0, executed.energy_pj or 0.0
        if not math.isclose(pj, really, rel_tol=1e-9):
            yield f"energy: {pj}, executed {really}"


@dataclass(frozen=True)
class Compared:
    """What differs of one mapping, with its traits and the part of their bounds that it takes; and what is wrong."""

    differences: tuple[tuple[Difference, list[str], float], ...]
    faults: tuple[str, ...]


def compared(case: Case, links: bool) -> Compared:
    """Of any tensors: what no listed trait explains is wrong, and so is what is more than its bound."""
    executed, found = both(case, links)
    walk = Walk(case)
    all_of_them = tuple((each, *used(walk, found, each)) for each in differences(*case, executed, found, OF_TIMELOOP))
    faults = [f"{each}: {share:.3g} of the bounds" for each, _, share in all_of_them if share > 1.0]
    computing = [report.limits[0].cycles for report in (executed, found)]
    if computing[0] != computing[1]:
        faults.append(f"computing: {computing[1]} cycles, executed {computing[0]}")
    return Compared(all_of_them, tuple(faults))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="mappings of either kind")
    parser.add_argument("-s", "--seed", type=int, default=0, help="of the first one; each has a seed of its own")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("executed.txt"), help="what was found, written anew at times"
    )
    given = parser.parse_args()
    tried, faults = Counter[str](), list[str]()
    causes, alone, most = Counter[str](), Counter[str](), defaultdict[str, float](float)
    seed, noted = given.seed, time.monotonic()
    while tried["any tensors"] < given.count:
        for plain in (True, False):
            case = drawn(Random(f"{seed} {plain}"), plain)
            if case is None:
                tried["not legal"] += 1
                continue
            tried["equal or disjoint tiles" if plain else "any tensors"] += 1
            tried["of both, ragged"] += not case[2].is_perfect
            if plain:
                faults += [f"seed {seed}, plain: {each}" for each in unequal(case)]
                continue
            found = compared(case, seed % 2 > 0)
            faults += [f"seed {seed}: {each}" for each in found.faults]
            tried["of any tensors, all counts as executed"] += not found.differences
            causes.update({code for _, codes, _ in found.differences for code in codes})
            for code, share in ((codes[0], share) for _, codes, share in found.differences if len(codes) == 1):
                alone[code], most[code] = alone[code] + 1, max(most[code], share)
        seed += 1
        done = tried["any tensors"] >= given.count
        if done or time.monotonic() > noted + 30:
            noted = time.monotonic()
            rows = [f"{name}: {number}" for name, number in tried.items()]
            rows += [
                f"{name}: {causes[name]} mappings; alone {alone[name]} counts, {most[name]:.3g} of the bound at most"
                for name in sorted(causes)
            ]
            given.output.write_text(
                "\n".join([f"seeds {given.seed} to {seed - 1}", *rows, f"faults: {len(faults)}", *faults[:100], ""])
            )
    print(given.output.read_text())
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
