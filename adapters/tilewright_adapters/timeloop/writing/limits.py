"""Conversion of constraints to Timeloop's, with reasons for everything they cannot express."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.errors import InputError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.constraints import KeepRule, SpatialRule, TemporalRule, TripRange, Variant
from tilewright.schema.problem import Problem, Tensor
from tilewright_adapters.timeloop.writing.outline import Outline

_ONE = TripRange(min=1, max=1)


@dataclass
class LevelConstraint:
    """One list entry for level `level`; permutations are innermost first, with Tilewright's names."""

    level: int
    kind: str
    factors: dict[str, TripRange] = field(default_factory=dict)
    permutation: tuple[str, ...] = ()
    split: int | None = None
    keep: tuple[str, ...] = ()
    bypass: tuple[str, ...] = ()

    def factor_words(self, plan: Outline) -> list[str]:
        """Return the factors as words such as `K=4`, `K<=4` and `K>=2`."""
        words = []
        for name, trips in self.factors.items():
            letter = plan.letters[name]
            if trips.max == trips.min:
                words.append(f"{letter}={trips.min}")
                continue
            words += [f"{letter}>={trips.min}"] if trips.min > 1 else []
            words += [f"{letter}<={trips.max}"] if trips.max is not None else []
        return words


def limits(inputs: InputSet, plan: Outline, at_least: bool) -> list[LevelConstraint]:
    """Return the constraints in `inputs`, and refuse in `plan` those that Timeloop cannot express.

    Args:
        inputs: the input set.
        plan: the outline.
        at_least: whether this version of Timeloop has lower bounds.
    """
    constraints = inputs.constraints
    if constraints is None or plan.reasons:
        return []
    problem, architecture = inputs.problem, inputs.architecture
    if problem is None or architecture is None:
        plan.refuse("parts", "constraints", "constraints can only be written with a problem and an architecture")
        return []
    if constraints.aspect:
        plan.refuse("aspect", constraints.name, "they set an aspect ratio; write an architecture with that shape")
    try:
        rules = constraints.rules_for(problem, architecture)
    except InputError as error:
        plan.refuse("constraints", constraints.name, error.message)
        return []
    if rules is None:
        plan.refuse("constraints", constraints.name, f"no variant applies to problem {problem.name}")
        return []
    if rules.storage or constraints.uneven:
        plan.refuse("uneven", constraints.name, "storage entries of one level at several loops; Timeloop has one level")
    bounds = _in_time(rules, problem, plan) + _in_space(rules, problem, architecture, plan)
    bounds += _keeps(rules, problem, plan)
    for limit in bounds:
        for name, trips in limit.factors.items():
            if trips.min > 1 and trips.min != trips.max and not at_least:
                where = plan.storage[limit.level].name
                plan.refuse("at_least", where, f"{name} has a lower bound of {trips.min}; v0.3 has upper bounds only")
    return bounds


def _allowed(only: tuple[str, ...] | None, problem: Problem) -> list[str]:
    return [name for name in problem.dimension_names if only is None or name in only]


def _factors(rule: TemporalRule | SpatialRule, problem: Problem) -> dict[str, TripRange]:
    """Return bounds: 1 for dimensions that may have no loop, none for unbounded ones."""
    allowed = _allowed(rule.only, problem)
    factors = {name: rule.factors.get(name, TripRange()) if name in allowed else _ONE for name in problem.dimensions}
    return {name: trips for name, trips in factors.items() if trips != TripRange()}


def _in_time(rules: Variant, problem: Problem, plan: Outline) -> list[LevelConstraint]:
    result = []
    levels = [storage.memory.name for storage in plan.storage]
    seen: set[str] = set()
    for rule in rules.temporal:
        if rule.memory in seen:
            plan.refuse("constraints", rule.memory, "two rules for its loops; Timeloop supports one")
        seen.add(rule.memory)
        factors = _factors(rule, problem)
        non_unit = [name for name in problem.dimensions if factors.get(name) != _ONE]
        order = tuple(name for name in rule.order if name in non_unit)
        if len(order) > 1 and set(order) != set(non_unit):
            others = ", ".join(name for name in non_unit if name not in order)
            plan.refuse(
                "order",
                rule.memory,
                f"an order of {', '.join(order)} without {others}; Timeloop would put those outside",
            )
        innermost = tuple(name for name in rule.innermost if name in non_unit)
        if rule.outermost or (innermost and order):
            told = "loops that are outermost, or innermost besides an order; only innermost ones or a whole order are written"
            plan.refuse("order", rule.memory, told)
        permutation = order[::-1] if len(order) > 1 else innermost[::-1]
        result.append(LevelConstraint(levels.index(rule.memory), "temporal", factors, permutation))
    return result


def _in_space(rules: Variant, problem: Problem, architecture: Architecture, plan: Outline) -> list[LevelConstraint]:
    """Return one limit per level, for both axes together."""
    result = []
    clusters = architecture.cluster_index
    for level, storage in enumerate(plan.storage):
        end = plan.storage[level + 1].cluster if level + 1 < len(plan.storage) else len(architecture.clusters)
        mine = [rule for rule in rules.spatial if storage.cluster <= clusters[rule.cluster] < end]
        if not mine:
            continue
        by_axis: dict[str, SpatialRule] = {}
        for rule in mine:
            axis = architecture.cluster(rule.cluster).fanout.axis
            if axis in by_axis:
                plan.refuse(
                    "constraints", rule.cluster, f"two rules along {axis} between two memories; Timeloop supports one"
                )
            if rule.min_utilization or rule.max_utilization != 1:
                plan.refuse("utilization", rule.cluster, "a bound on utilization; Timeloop bounds factors only")
            by_axis[axis] = rule
        result += _spatial(level, by_axis, problem, plan)
    return result


def _spatial(level: int, by_axis: dict[str, SpatialRule], problem: Problem, plan: Outline) -> list[LevelConstraint]:
    x, y = plan.fanout(level)
    axes = [axis for axis, size in (("X", x), ("Y", y)) if size > 1]
    if len(axes) < 2:
        return [
            LevelConstraint(level, "spatial", _factors(rule, problem)) for axis, rule in by_axis.items() if axis in axes
        ]
    factors = {
        axis: _factors(by_axis.get(axis, SpatialRule(cluster=plan.storage[level].name)), problem) for axis in axes
    }
    along = {axis: [name for name in problem.dimensions if factors[axis].get(name) != _ONE] for axis in axes}
    both = [name for name in along["X"] if name in along["Y"]]
    if both:
        plan.refuse(
            "axes",
            plan.storage[level].name,
            f"{', '.join(both)} may lie along X and along Y; Timeloop's constraints put a dimension on one of them",
        )
    rest = [name for name in problem.dimensions if name not in along["X"] and name not in along["Y"]]
    bounds = {name: factors["X" if name in along["X"] else "Y"].get(name, TripRange()) for name in problem.dimensions}
    bounds = {name: trips for name, trips in bounds.items() if trips != TripRange()}
    return [LevelConstraint(level, "spatial", bounds, (*along["X"], *along["Y"], *rest), len(along["X"]))]


def _keeps(rules: Variant, problem: Problem, plan: Outline) -> list[LevelConstraint]:
    """Return keep rules for every memory except the outermost.

    If unspecified, Timeloop's mapper would try both alternatives, whereas Tilewright keeps the tensor.
    """
    result = []
    for level, storage in enumerate(plan.storage[1:], start=1):
        rule = next((candidate for candidate in rules.keep if candidate.memory == storage.memory.name), None)
        choices = {tensor.name: _kept(tensor, storage.memory, rule, problem) for tensor in problem.tensors}
        keep, bypass = (tuple(name for name, said in choices.items() if said == word) for word in ("keep", "bypass"))
        result.append(LevelConstraint(level, "bypass", keep=keep, bypass=bypass))
    return result


def _kept(tensor: Tensor, memory: Memory, rule: KeepRule | None, problem: Problem) -> str:
    """Return keep, bypass or free, as the map space defines it.

    A memory too small for one word of each tensor may bypass any of them.
    """
    if not memory.may_hold(tensor):
        return "bypass"
    for choice, words in (("keep", rule.keep), ("bypass", rule.bypass), ("free", rule.free)) if rule else ():
        if tensor.name in words or tensor.role in words:
            return choice
    wanted = sum(memory.may_hold(operand) for operand in problem.tensors)
    return "keep" if memory.usable_words is None or wanted <= memory.usable_words else "free"
