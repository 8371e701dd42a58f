"""Conversion of Timeloop's map space constraints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, KeepRule, SpatialRule, TemporalRule, TripRange, Variant
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop.cursor import Cursor
from tilewright_adapters.timeloop.reading.directives import (
    KINDS,
    WIDER,
    ParsedDirective,
    checked,
    factor_text,
    ignored,
    keeping,
    ones,
    permutation,
    split,
)
from tilewright_adapters.timeloop.reading.nodes import Nodes
from tilewright_adapters.timeloop.reading.sections import CONSTRAINTS, Sections

_BOUND = re.compile(r"([A-Za-z_]\w*?)\s*+(?:(<=|>=|=)\s*+)?(\d{1,15})[\s,]*+")
_UNREAD = {
    "utilization": "a minimum utilization of all units",
    "parallelism": "a minimum utilization of all units",
    "max_overbooked_proportion": "tiles that may overflow a memory",
    "no_link_transfer": "links disabled",
    "no_multicast": "multicast disabled",
    "no_reduction": "reduction disabled",
    "no_multicast_no_reduction": "multicast and reduction disabled",
}


def lists(sections: Sections, warnings: list[str]) -> Iterator[Cursor]:
    """Yield the lists of constraints, from every section that some version uses. Raises InputError."""
    for name in CONSTRAINTS:
        section = sections.found.get(name)
        if section is None or not section.value:
            continue
        if isinstance(section.value, list):
            yield section
            continue
        fields = section.fields(name)
        chosen = fields.get("constraints")
        if chosen is not None and isinstance(chosen.value, str):
            word = f"constraints_{chosen.value}"
            if word not in fields:
                raise chosen.error(f"the section has no {word}")
            yield fields[word]
        elif chosen is not None and chosen.value:
            yield chosen
        if "targets" in fields and fields["targets"].value:
            yield fields["targets"]
        if "template" in fields and fields["template"].value not in ("uber", None):
            place = section.document.locate(fields["template"].path)
            warnings.append(f"{place}: the template of the map space is ignored: all tiles divide")


def rules_in(section: Cursor, tree: Nodes, warnings: list[str]) -> Iterator[ParsedDirective]:
    """Yield the rules of one list.

    In old files, rules may be inside `attributes`, or be a list below one target.
    """
    kinds = KINDS | {name: name for name in _UNREAD}
    for item in section.items("constraints"):
        fields = item.fields("a constraint")
        target = fields.pop("target", None) or fields.pop("name", None)
        if target is None:
            raise item.error("the constraint has no 'target'")
        for inner in fields["constraints"].items("constraints") if "constraints" in fields else [item]:
            own = inner.fields("a constraint")
            for word in ("target", "name"):
                own.pop(word, None)
            if "attributes" in own:
                own |= own.pop("attributes").fields("attributes")
            if "type" not in own:
                raise inner.error("the constraint has no 'type'")
            kind = kinds[own.pop("type").choice("constraint type", kinds)]
            if kind in _UNREAD:
                place = inner.document.locate(inner.path)
                warnings.append(f"{place}: {kind} ({_UNREAD[kind]}) is not supported: ignored")
                continue
            elsewhere = tree.unrolled_at.get(str(target.value)) if kind == "spatial" else None
            yield ParsedDirective(inner, elsewhere or level_of(target, tree), kind, own, is_rule=True)


def level_of(target: Cursor, tree: Nodes) -> str:
    """Return the level of a rule; Timeloop numbers levels from the innermost."""
    names = tree.levels.names
    if isinstance(target.value, int) and 0 <= target.value < len(names):
        return names[-1 - target.value]
    return target.choice("storage level", names)


@dataclass
class _Loops:
    """Bounds on the temporal or spatial loops of one level."""

    trips: dict[str, TripRange] = field(default_factory=dict)
    order: tuple[str, ...] | None = None
    """Order, innermost first, as in Timeloop."""
    split: int | None = None
    where: Cursor | None = None


def read_rules(
    said: list[ParsedDirective], problem: Problem, tree: Nodes, architecture: Architecture
) -> tuple[Constraints, list[str]]:
    """Return the constraints, and warnings about those that are wider than Timeloop's.

    Raises:
        InputError: a name is unknown, or rules contradict each other.
    """
    rules = [checked(each) for each in said]
    warnings = list(ignored(rules))
    loops: dict[tuple[str, str], _Loops] = {}
    for rule in rules:
        if rule.kind != "bypass":
            _gather(loops.setdefault((rule.target, rule.kind), _Loops()), rule, problem, warnings)
    temporal: list[TemporalRule] = []
    spatial: list[SpatialRule] = []
    for (target, kind), found in loops.items():
        if kind == "temporal":
            temporal += _in_time(target, found, problem, warnings)
        else:
            spatial += _in_space(target, found, problem, architecture, warnings)
    said_keep = keeping(rules, problem, tree.levels, tree.parallel)
    outermost, gone = tree.levels.names[0], said_keep[tree.levels.names[0]][1]
    if gone:
        told = ", ".join(name for name in problem.tensor_names if name in gone)
        warnings.append(
            f"bypass of {told} at {outermost} is ignored: in map spaces the outermost memory keeps all tensors"
        )
    keep = [_keep(name, *said_keep[name], problem) for name in tree.levels.names[1:] if name not in tree.levels.dummies]
    variant = Variant(temporal=tuple(temporal), spatial=tuple(spatial), keep=tuple(keep))
    return Constraints(name="timeloop", variants=(variant,)), warnings


def _keep(name: str, keep: set[str], bypass: set[str], problem: Problem) -> KeepRule:
    """Return a keep rule; unlisted tensors are optional, as in Timeloop's mapper."""
    names = problem.tensor_names
    return KeepRule(
        memory=name,
        keep=tuple(t for t in names if t in keep and t not in bypass),
        bypass=tuple(t for t in names if t in bypass),
        free=tuple(t for t in names if t not in keep and t not in bypass),
    )


def _gather(loops: _Loops, rule: ParsedDirective, problem: Problem, warnings: list[str]) -> None:
    fields = rule.fields
    loops.where = rule.where
    named: set[str] = set()
    for word in ("factors", "factors_only"):
        if word in fields:
            for name, trips in _bounds(fields[word], problem, warnings):
                if name in loops.trips and loops.trips[name] != trips:
                    trips = _both(loops.trips[name], trips, fields[word], name)
                loops.trips[name] = trips
                named.add(name)
    for name in ones(fields, problem, named):
        loops.trips[name] = TripRange(min=1, max=1)
    if "permutation" in fields:
        order = permutation(fields["permutation"], problem.dimension_names)
        if loops.order not in (None, order):
            raise fields["permutation"].error(f"the {rule.kind} permutation for {rule.target} is repeated")
        loops.order = order
    if "split" in fields:
        loops.split = split(fields["split"], problem.dimension_names)
    for word in sorted(WIDER & fields.keys()):
        place = fields[word].document.locate(fields[word].path)
        warnings.append(f"{place}: {word} of {rule.target} is ignored: the mapper decides")


def _both(one: TripRange, other: TripRange, where: Cursor, name: str) -> TripRange:
    least = max(one.min, other.min)
    most = min((each.max for each in (one, other) if each.max is not None), default=None)
    if most is not None and most < least:
        raise where.error(f"factors of {name} contradict each other")
    return TripRange(min=least, max=most)


def _bounds(cursor: Cursor, problem: Problem, warnings: list[str]) -> Iterator[tuple[str, TripRange]]:
    """Parse `K=3`, `K<=4` and `K>=2`; 0 and values above the size mean the whole dimension."""
    text, position = factor_text(cursor).strip(), 0
    while position < len(text):
        match = _BOUND.match(text, position)
        if match is None:
            raise cursor.error(
                f"cannot read the factors from '{text[position:]}'", hint="write them as K=4, K<=4 or K>=4"
            )
        name, sign, number = match[1], match[2] or "=", int(match[3])
        if name not in problem.dimensions:
            raise cursor.error(f"unknown dimension '{name}'", hint=f"one of {', '.join(problem.dimension_names)}")
        size = problem.dimensions[name]
        if number > size and sign != "<=":
            place = cursor.document.locate(cursor.path)
            warnings.append(f"{place}: {name}{sign}{number} exceeds the dimension: read as {size}, as Timeloop does")
        number = min(number or size, size)
        yield name, TripRange(min=1 if sign == "<=" else number, max=None if sign == ">=" else number)
        position = match.end()


def _in_time(target: str, loops: _Loops, problem: Problem, warnings: list[str]) -> Iterator[TemporalRule]:
    free = [name for name in problem.dimension_names if not _is_one(loops.trips.get(name))]
    order = tuple(name for name in (loops.order or ())[::-1] if name in free)
    if order and len(order) < len(free) and loops.where is not None:
        place = loops.where.document.locate(loops.where.path)
        others = ", ".join(name for name in free if name not in order)
        warnings.append(
            f"{place}: {target}: loops over {others} may be inside {', '.join(order)}; in Timeloop only outside"
        )
    rule = TemporalRule(
        memory=target,
        only=None if len(free) == len(problem.dimensions) else tuple(free),
        factors=FrozenDict({name: loops.trips[name] for name in free if name in loops.trips}),
        order=order if len(order) > 1 else (),
    )
    if rule != TemporalRule(memory=target):
        yield rule


def _is_one(trips: TripRange | None) -> bool:
    return trips is not None and trips.max == 1


def _in_space(
    target: str, loops: _Loops, problem: Problem, architecture: Architecture, warnings: list[str]
) -> Iterator[SpatialRule]:
    """Yield one rule for each axis along which the level fans out."""
    dims = problem.dimension_names
    axes = [
        (cluster.fanout.axis, cluster.name)
        for name in (target, f"{target}_X")
        for cluster in architecture.clusters
        if cluster.name == name and cluster.fanout.size > 1
    ]
    inward = (*(loops.order or ()), *(name for name in dims if name not in (loops.order or ())))
    for axis, cluster in axes:
        allowed = [name for name in dims if not _is_one(loops.trips.get(name))]
        if len(axes) == 2 and loops.split is not None:
            side = inward[: loops.split] if axis == "X" else inward[loops.split :]
            allowed = [name for name in allowed if name in side]
        bounded = {name: loops.trips[name] for name in allowed if name in loops.trips}
        if len(axes) == 2 and loops.split is None and bounded and loops.where is not None:
            if axis == axes[0][0]:
                place = loops.where.document.locate(loops.where.path)
                names = ", ".join(bounded)
                warnings.append(f"{place}: {target}: {names} may lie along X or Y: lower bounds are ignored")
            bounded = {name: TripRange(max=trips.max) for name, trips in bounded.items() if trips.max is not None}
        rule = SpatialRule(
            cluster=cluster,
            only=None if len(allowed) == len(dims) else tuple(allowed),
            factors=FrozenDict(bounded),
        )
        if rule != SpatialRule(cluster=cluster):
            yield rule
