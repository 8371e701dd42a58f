"""Rules of another tool's files that are not searched, compared with a mapping.

The searched space is then wider than the files'. Its optimum is also that of the files' space if it satisfies these rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, JointRule, UnsearchedRule, Variant
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.values import attributes


@dataclass(frozen=True)
class JudgedRule:
    """A rule that is not searched. `fault` is how the mapping breaks it; None: it does not, or nothing can tell."""

    rule: UnsearchedRule
    fault: str | None

    @property
    def satisfied(self) -> bool | None:
        """Whether the mapping satisfies the rule; None if nothing can tell."""
        return self.fault is None if self.rule.joint is not None else None

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return attributes(self.rule, "name where why missing") | attributes(self, "satisfied fault")

    def __str__(self) -> str:
        return f"{self.rule}; the mapping has {self.fault}" if self.fault else str(self.rule)


def judged(rules: Variant | None, mapping: Mapping, architecture: Architecture) -> tuple[JudgedRule, ...]:
    """Return the rules that are not searched, each compared with the mapping."""
    return tuple(
        JudgedRule(rule, None if rule.joint is None else next(_faults(rule.joint, mapping, architecture), None))
        for rule in (() if rules is None else rules.unsearched)
    )


def unsearched_notes(constraints: Constraints, problems: Iterable[Problem]) -> tuple[str, ...]:
    """Return a line for each file whose rules are not all searched for these problems."""
    variants = [constraints.variant_for(problem) for problem in problems if constraints.variants]
    words: dict[tuple[str, bool], dict[str, None]] = {}
    for rule in (rule for variant in variants if variant is not None for rule in variant.unsearched):
        words.setdefault((rule.file, rule.missing), {})[rule.name] = None
    return tuple(
        f"the searched space {'lacks mappings' if missing else 'is wider than that'} of {file}: "
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not searched; `map` says whether the mapping fits"
        for (file, missing), names in words.items()
    )


def covers_files(rules: Sequence[JudgedRule]) -> bool:
    """Return whether a proof for the searched space holds for the files' space, too, with the mapping in it."""
    return all(rule.satisfied and not rule.rule.missing for rule in rules)


def statement(rules: Sequence[JudgedRule], proved: bool) -> tuple[str, ...]:
    """Return lines that say how the searched space and the mapping relate to the files' rules; none if all are searched.

    Args:
        rules: the rules that are not searched.
        proved: whether the mapping is optimal in the searched space.
    """
    if not rules:
        return ()
    files = ", ".join(dict.fromkeys(rule.rule.file for rule in rules))
    held = "the rule" if len(rules) == 1 else f"the {len(rules)} rules"
    if covers_files(rules):
        best = ", so it is optimal under all of its rules, too" if proved else ""
        which = "is" if len(rules) == 1 else "are"
        return (f"the mapping satisfies {held} of {files} that {which} not searched{best}",)
    claim = "optimal in" if proved else "searched in"
    wider = [rule for rule in rules if not rule.rule.missing and not rule.satisfied]
    lines: list[str] = []
    if wider:
        broken = any(rule.fault for rule in wider)
        about = "the mapping breaks its rules" if broken else "it is unknown whether the mapping satisfies its rules"
        lines += [f"{claim} a space wider than that of {files}; {about}:", *(f"  {rule}" for rule in wider)]
    missing = [rule for rule in rules if rule.rule.missing]
    if missing:
        lines += [f"{claim} a space that lacks mappings of {files}:", *(f"  {rule}" for rule in missing)]
    return tuple(lines)


def _faults(rule: JointRule, mapping: Mapping, architecture: Architecture) -> Iterator[str]:
    """Yield how a mapping breaks a rule."""
    over = {name: dict.fromkeys(mapping.dimension_names, 1) for name in rule.clusters}
    for entry, (_, spatial) in zip(mapping.entries, mapping.factors(), strict=True):
        for name, trips in spatial.items() if entry.target in over else ():
            over[entry.target][name] *= trips
    for name, bounds in rule.factors.items():
        trips = math.prod(loops.get(name, 1) for loops in over.values())
        if not bounds.min <= trips <= (bounds.max or trips):
            yield f"{trips} trips of {name}"
    unrolled = [[name for name, trips in over[cluster].items() if trips > 1] for cluster in rule.clusters]
    for name in mapping.dimension_names if rule.apart else ():
        axes = [cluster for cluster, names in zip(rule.clusters, unrolled, strict=True) if name in names]
        if len(axes) > 1:
            yield f"{name} over {' and '.join(axes)}"
    ranks = {name: number for number, name in enumerate(rule.first)}
    ranks |= {name: len(ranks) + 1 + number for number, name in enumerate(rule.last)}
    middle = len(rule.first)
    for number, names in enumerate(unrolled):
        for name in names:
            later = [other for others in unrolled[number + 1 :] for other in others]
            wrong = [other for other in later if ranks.get(other, middle) < ranks.get(name, middle)]
            if wrong:
                yield f"{name} over {rule.clusters[number]}, and {wrong[0]} over a later fanout"
    for cluster, names, most in zip(rule.clusters, unrolled, rule.others, strict=False):
        others = [name for name in names if name not in ranks]
        if len(others) > most:
            yield f"{', '.join(others)} over {cluster}"
    used = math.prod(trips for loops in over.values() for trips in loops.values())
    size = math.prod(architecture.cluster(name).fanout.size for name in rule.clusters)
    if used < rule.min_utilization * size * (1 - 1e-12):
        yield f"{used} of {size} sub-clusters in use"
