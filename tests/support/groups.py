"""Compare `timeloop` with `oracle` on random groups, or damage group files and expect messages.

cd tests && python -m support.groups 20000 --start 0
cd tests && python -m support.groups 20000 --mutate
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from support import EXAMPLE_FILES
from support.mutations import mutated_text
from support.random_groups import FORMS, random_group
from support.tally import tally
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import TilewrightError
from tilewright.mapspace.group_legality import group_legality, is_padded, keeps_halo
from tilewright.reports import Report
from tilewright.schema.group import GroupMapping

TIMELOOP, ORACLE = build_model("timeloop", {"link_transfers": False}), build_model("oracle")


def figures(report: Report) -> dict[Any, Any]:
    """Return counts by memory, layer and tensor, peaks, and limits of a valid report."""
    assert report.valid, report.reasons
    counts = {
        (row.level, row.layer, row.tensor): (row.instances, row.reads.total, row.fills.total, row.updates.total)
        for row in report.accesses
    }
    peaks = {level.name: (level.used_words, level.instances) for level in report.levels}
    limits = {(limit.name, limit.action): (limit.cycles, limit.binding_cycles, limit.words) for limit in report.limits}
    return counts | peaks | limits | {"cycles": report.cycles}


def compared(seed: int, forms: Sequence[str] = tuple(FORMS), padding: float = 0.3, inner: float = 0) -> str:
    """Return the outcome of one random group; every third one has ragged tiles."""
    group = random_group(seed, seed % 3 > 0, forms=forms, padding=padding, inner=inner)
    return judged(group) if group_legality(group) else "illegal"


def judged(group: GroupMapping) -> str:
    """Return the outcome of comparing `timeloop` with execution on a legal group."""
    report, executed = evaluate_group(TIMELOOP, group), evaluate_group(ORACLE, group)
    if executed.valid and _lost(group, executed):
        return "WRONG: an input or a final result is nowhere as a whole"
    if not report.valid:
        return f"refused by timeloop ({','.join(sorted({reason.code for reason in report.reasons}))})"
    if not executed.valid:
        return "WRONG: refused by oracle"
    kind = " with halos" if any(keeps_halo(group, tensor) for tensor in group.users) else ""
    kind += " with inputs or results on chip" if any(_ends_inside(group, "DRAM")) else ""
    kind += " with padding" if any(is_padded(group, tensor) for tensor in group.users) else ""
    if _found_again(group, report, executed):
        return f"equal{kind}, but for windows that find words again"
    if figures(report) != figures(executed) or abs(report.energy_pj - executed.energy_pj) > 1e-9 * executed.energy_pj:  # type: ignore[operator]
        return "WRONG: counts differ"
    return f"equal{kind}"


def _ends_inside(group: GroupMapping, memory: str) -> Iterator[tuple[str, str, int]]:
    """Yield tensor, layer and outermost storage entry of inputs and final results that a memory does not keep."""
    for tensor, users in group.users.items():
        roles = {group.paths[layer].problem.tensor(name).is_output for layer, name in users.items()}
        is_added = len(group.needs[tensor]) > len(users)
        for layer, operand in users.items() if roles != {True, False} and not is_added else ():
            entry = group.paths[layer].keepers(operand)[0]
            if group.paths[layer].mapping.entries[entry].target != memory:
                yield tensor, layer, entry


def _lost(group: GroupMapping, executed: Report) -> bool:
    """Return whether some words of an input or a final result are neither in DRAM nor always in their home.

    All instances of a home together have each word of the tensor once, at least.
    """
    rows = {(row.level, row.layer, row.tensor): row for row in executed.accesses}
    for tensor, layer, entry in _ends_inside(group, "DRAM"):
        path = group.paths[layer]
        use, home = path.problem.tensor(group.users[tensor][layer]), path.mapping.entries[entry]
        words, tile = path.problem.tensor_words(use), path.problem.tile_words(use, home.temporal_tile_sizes)
        if path.places[entry][0] or tile * rows[home.target, layer, tensor].instances < words:
            return True
    return False


def _found_again(group: GroupMapping, report: Report, executed: Report) -> bool:
    """Return whether the counts differ only where windows find words that are not of the step before."""
    counts, others = figures(report), figures(executed)
    rows = {key for key in counts if isinstance(key, tuple) and len(key) == 3 and counts[key] != others[key]}
    windows = {
        (layer, tensor)
        for tensor, users in group.users.items()
        for layer, name in users.items()
        if any(len(rank.terms) > 1 for rank in group.paths[layer].problem.tensor(name).projection)
    }
    fewer = all(
        (row[1], row[2]) in windows and all(a >= b for a, b in zip(counts[row], others[row], strict=True))
        for row in rows
    )
    peaks = {level.name: level.used_words for level in report.levels} == {
        level.name: level.used_words for level in executed.levels
    }
    return bool(rows) and fewer and peaks


def damaged(seed: int, texts: list[str]) -> str:
    """Return the outcome of one damaged file."""
    random = Random(seed)
    text = mutated_text(random, random.choice(texts))
    try:
        group = GroupMapping.from_yaml(text)
        return "evaluated" if evaluate_group(TIMELOOP, group).valid else "refused by the model"
    except TilewrightError:
        return "message"


def main() -> int:
    """Print how many groups have each outcome; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="groups")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--inner", type=float, default=0, help="share with inputs or results that DRAM does not keep")
    parser.add_argument("--mutate", action="store_true", help="damage files of groups")
    arguments = parser.parse_args()
    examples = ("two_products.yaml", "two_convolutions.yaml")
    texts = [EXAMPLE_FILES.joinpath(name).read_text(encoding="utf-8") for name in examples]
    texts += [random_group(seed, padding=0.3).to_yaml() for seed in range(20 if arguments.mutate else 0)]

    def outcome(seed: int) -> str:
        try:
            return damaged(seed, texts) if arguments.mutate else compared(seed, inner=arguments.inner)
        except Exception:
            traceback.print_exc()
            return "WRONG: crashed"

    return tally(outcome, range(arguments.start, arguments.start + arguments.count), "groups", every=500)


if __name__ == "__main__":
    sys.exit(main())
