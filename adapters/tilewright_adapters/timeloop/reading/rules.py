"""Conversion of Timeloop's map space constraints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import (
    Constraints,
    JointRule,
    KeepRule,
    SpatialRule,
    TemporalRule,
    TripRange,
    UnsearchedRule,
    Variant,
)
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop.cursor import Cursor
from tilewright_adapters.timeloop.reading.directives import (
    KINDS,
    ParsedDirective,
    checked,
    factor_text,
    ignored,
    keeping,
    ones,
    permutation_parts,
    split,
    tensors,
)
from tilewright_adapters.timeloop.reading.maximizing import maximal
from tilewright_adapters.timeloop.reading.nodes import Nodes
from tilewright_adapters.timeloop.reading.sections import CONSTRAINTS, Sections

_BOUND = re.compile(r"([A-Za-z_]\w*?)\s*+(?:(<=|>=|=)\s*+)?(\d{1,15})[\s,]*+")
_KINDS = KINDS | {
    "utilization": "parallelism",
    "parallelism": "parallelism",
    "max_overbooked_proportion": "overbooking",
}
_UNICAST = ("no_multicast_no_reduction", "no_reuse")


@dataclass
class Notes:
    """Warnings, and rules that the map space does not have."""

    warnings: list[str]
    unsearched: list[UnsearchedRule] = field(default_factory=list)

    def warn(self, cursor: Cursor, text: str) -> None:
        """Add a warning with its place."""
        self.warnings.append(f"{_place(cursor)}: {text}")

    def leave(
        self,
        cursor: Cursor,
        name: str,
        why: str,
        joint: JointRule | None = None,
        *,
        missing: bool = False,
        quiet: bool = False,
    ) -> None:
        """Add a rule that is not searched, and a warning about it."""
        rule = UnsearchedRule(name=name, where=_place(cursor), why=why, missing=missing, joint=joint)
        self.unsearched.append(rule)
        if not quiet:
            self.warnings.append(f"{rule}; it is not searched")


def _place(cursor: Cursor) -> str:
    return str(cursor.document.locate(cursor.path))


def lists(sections: Sections, notes: Notes) -> Iterator[Cursor]:
    """Yield the lists of constraints, from every section that some version uses. Raises InputError."""
    for name in CONSTRAINTS:
        section = sections.parts.get(name)
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
            why = "all tiles divide here, in Timeloop they need not; --factors ragged searches some others"
            notes.leave(fields["template"], f"template {fields['template'].value}", why, missing=True)


def rules_in(section: Cursor, tree: Nodes) -> Iterator[ParsedDirective]:
    """Yield the rules of one list.

    In old files, rules may be inside `attributes`, or be a list below one target.
    """
    for item in section.items("constraints"):
        fields = item.fields("a constraint")
        target = fields.pop("target", None) or fields.pop("name", None)
        if target is None:
            raise item.error("the constraint has no 'target'")
        for inner in fields["constraints"].items("constraints") if "constraints" in fields else [item]:
            parts = inner.fields("a constraint")
            for word in ("target", "name"):
                parts.pop(word, None)
            if "attributes" in parts:
                parts |= parts.pop("attributes").fields("attributes")
            if "type" not in parts:
                raise inner.error("the constraint has no 'type'")
            kind = _KINDS[parts.pop("type").choice("constraint type", _KINDS)]
            elsewhere = tree.unrolled_at.get(str(target.value)) if kind == "spatial" else None
            yield ParsedDirective(inner, elsewhere or level_of(target, tree), kind, parts, is_rule=True)


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
    first: tuple[str, ...] = ()
    """The innermost dimensions, innermost first, as in Timeloop. In space, the first ones along X."""
    last: tuple[str, ...] = ()
    """The outermost dimensions, innermost first."""
    split: int | None = None
    maximize: Cursor | None = None
    capacity: int | None = None
    where: Cursor | None = None

    def fixed(self) -> dict[str, int]:
        """Return the trips that are fixed."""
        return {name: trips.min for name, trips in self.trips.items() if trips.min == trips.max}

    def between(self, names: Sequence[str]) -> list[str]:
        """Return the dimensions whose place the permutation leaves open."""
        return [name for name in names if name not in self.first and name not in self.last]


def read_rules(
    said: list[ParsedDirective], problem: Problem, tree: Nodes, architecture: Architecture, notes: Notes
) -> Constraints:
    """Return the constraints; `notes` receives warnings, and the rules that are not searched.

    Raises:
        InputError: a name is unknown, or rules contradict each other.
    """
    rules = [checked(directive) for directive in said]
    notes.warnings += ignored(rules)
    loops: dict[tuple[str, str], _Loops] = {}
    for rule in rules:
        if rule.kind in ("temporal", "spatial"):
            _gather(loops.setdefault((rule.target, rule.kind), _Loops()), rule, problem, notes)
    _maximize(loops, problem, tree, notes)
    temporal: list[TemporalRule] = []
    spatial: list[SpatialRule] = []
    for level in tree.levels.storage:  # without a rule, too, a dimension lies along one axis
        loops.setdefault((level.name, "spatial"), _Loops(where=level.where))
    for (target, kind), loop in loops.items():
        if kind == "temporal":
            temporal += _in_time(target, loop, problem)
        else:
            spatial += _in_space(target, loop, problem, architecture, notes)
    for rule in (rule for rule in rules if rule.kind == "parallelism"):
        spatial = _in_use(rule, spatial, tree, architecture, notes)
    said_keep = keeping(rules, problem, tree.levels, tree.parallel)
    outermost, gone = tree.levels.names[0], said_keep[tree.levels.names[0]][1]
    if gone:
        told = ", ".join(name for name in problem.tensor_names if name in gone)
        where = next((rule.where for rule in rules if rule.kind == "bypass" and rule.target == outermost), None)
        why = f"{told} at {outermost}; in map spaces the outermost memory keeps all tensors"
        notes.leave(where or tree.levels.where, "bypass", why, missing=True)
    keep = [_keep(name, *said_keep[name], problem) for name in tree.levels.names[1:] if name not in tree.levels.dummies]
    variant = Variant(
        temporal=tuple(temporal), spatial=tuple(spatial), keep=tuple(keep), unsearched=tuple(notes.unsearched)
    )
    return Constraints(name="timeloop", variants=(variant,))


def unicast_of(said: Sequence[ParsedDirective], problem: Problem, architecture: Architecture) -> Architecture:
    """Return the architecture whose fanouts send tensors separately, as spatial constraints of a search say.

    Raises:
        InputError: a constraint names some operands only, which no fanout can express.
    """
    roles: dict[str, tuple[bool, bool]] = {}
    for rule in said:
        for word in _UNICAST if rule.kind == "spatial" else ():
            cursor = rule.fields.get(word)
            names = tensors(cursor, problem) if cursor is not None and cursor.value else set()
            operands = {tensor.name for tensor in problem.tensors if not tensor.is_output}
            kinds = [part for part in (operands, set(problem.tensor_names) - operands) if part & names]
            if cursor is not None and any(not part <= names for part in kinds):
                told = ", ".join(name for name in problem.tensor_names if name in names)
                raise cursor.error(
                    f"{word} of {told} alone is not supported in a search: it would change results",
                    hint="name all operands, all results, or all tensors",
                )
            before = roles.get(rule.target, (False, False))
            roles[rule.target] = before[0] or operands <= names, before[1] or bool(names - operands)
    clusters = []
    for cluster in architecture.clusters:
        operands_too, results_too = roles.get(cluster.name) or roles.get(
            cluster.name.removesuffix("_X"), (False, False)
        )
        update = ({"multicast": False} if operands_too else {}) | ({"reduction": False} if results_too else {})
        clusters.append(cluster.model_copy(update={"fanout": cluster.fanout.model_copy(update=update)}))
    return architecture.model_copy(update={"clusters": tuple(clusters)}) if roles else architecture


def _keep(name: str, keep: set[str], bypass: set[str], problem: Problem) -> KeepRule:
    """Return a keep rule; unlisted tensors are optional, as in Timeloop's mapper."""
    names = problem.tensor_names
    return KeepRule(
        memory=name,
        keep=tuple(t for t in names if t in keep and t not in bypass),
        bypass=tuple(t for t in names if t in bypass),
        free=tuple(t for t in names if t not in keep and t not in bypass),
    )


def _gather(loops: _Loops, rule: ParsedDirective, problem: Problem, notes: Notes) -> None:
    fields = rule.fields
    loops.where = rule.where
    named: set[str] = set()
    bounded: dict[str, set[str]] = {"<=": set(), ">=": set()}

    def limit(name: str, trips: TripRange, where: Cursor) -> None:
        loops.trips[name] = _both(loops.trips.get(name, TripRange()), trips, where, name)

    for word in ("factors", "factors_only"):
        if word in fields:
            for name, sign, trips in _bounds(fields[word], problem, notes):
                limit(name, trips, fields[word])
                named.add(name)
                bounded.setdefault(sign, set()).add(name)
    for name in ones(fields, problem, named):
        limit(name, TripRange(min=1, max=1), rule.where)
    for word, sign in (("default_max_factor", "<="), ("default_min_factor", ">=")):
        bound = fields[word].whole(word) if word in fields else None
        for name, size in problem.dimensions.items() if bound is not None else ():
            if name not in bounded[sign]:
                most = min(bound or size, size)
                limit(name, TripRange(max=most) if sign == "<=" else TripRange(min=most), fields[word])
    if "permutation" in fields:
        parts = permutation_parts(fields["permutation"], problem.dimension_names)
        if (loops.first, loops.last) not in (((), ()), parts):
            raise fields["permutation"].error(f"the {rule.kind} permutation for {rule.target} is repeated")
        loops.first, loops.last = parts
    if "split" in fields:
        loops.split = split(fields["split"], problem.dimension_names)
    if "maximize_dims" in fields:
        loops.maximize = fields["maximize_dims"]
    if "maximize_dims_capacity" in fields:
        loops.capacity = fields["maximize_dims_capacity"].whole("maximize_dims_capacity")


def _both(one: TripRange, other: TripRange, where: Cursor, name: str) -> TripRange:
    least = max(one.min, other.min)
    most = min((trips.max for trips in (one, other) if trips.max is not None), default=None)
    if most is not None and most < least:
        raise where.error(f"factors of {name} contradict each other")
    return TripRange(min=least, max=most)


def _bounds(cursor: Cursor, problem: Problem, notes: Notes) -> Iterator[tuple[str, str, TripRange]]:
    """Parse `K=3`, `K<=4` and `K>=2`, with the sign; 0 means the whole dimension."""
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
        position = match.end()
        if number > size and sign == "=":
            notes.warn(cursor, f"{name}={number} exceeds the dimension: not read, as in Timeloop since July 2022")
            continue
        if number > size and sign == ">=":
            raise cursor.error(f"{name}>={number} exceeds the dimension, which has {size} iterations")
        number = min(number or size, size)
        yield name, sign, TripRange(min=1 if sign == "<=" else number, max=None if sign == ">=" else number)


def _maximize(loops: Mapping[tuple[str, str], _Loops], problem: Problem, tree: Nodes, notes: Notes) -> None:
    """Fix the factors of `maximize_dims`: unrollings first, from the innermost level outwards.

    Raises:
        InputError: a dimension is unknown, or there is no capacity.
    """
    left = dict(problem.dimensions)
    for level_loops in loops.values():
        for name, trips in level_loops.fixed().items():
            left[name] = -(-left[name] // trips)
    names = tree.levels.names
    for kind, index in ((kind, index) for kind in ("spatial", "temporal") for index in reversed(range(len(names)))):
        level_loops = loops.get((names[index], kind), _Loops())
        if level_loops.maximize is None:
            continue
        x, y = tree.levels.fanout(index)
        capacity = level_loops.capacity if level_loops.capacity is not None or kind == "temporal" else x * y
        if capacity is None:
            raise level_loops.maximize.error("maximize_dims of temporal loops needs a maximize_dims_capacity")
        for group in _groups(level_loops.maximize, problem):
            room = capacity
            for bounds in level_loops.trips.values():
                room //= bounds.min
            told = ", ".join(name for name in group if name in level_loops.trips)
            if told:  # Timeloop refuses that
                why = f"maximize_dims of {names[index]} is ignored, because {told} has a factor"
                notes.leave(level_loops.maximize, "maximize_dims", why)
                continue
            factors = maximal(left, group, room)
            if factors is None:
                why = f"{', '.join(group)} of {names[index]} have too many divisors to compare"
                notes.leave(level_loops.maximize, "maximize_dims", why)
                continue
            odd = {name: trips for name, trips in factors.items() if left[name] % trips}
            for name in group:
                trips = factors[name]
                left[name] = -(-left[name] // trips)
                if name not in odd:
                    level_loops.trips[name] = TripRange(min=trips, max=trips)
            if odd:
                told = ", ".join(f"{name}={trips}" for name, trips in odd.items())
                why = f"{told} at {names[index]} would not divide; it is free here"
                notes.leave(level_loops.maximize, "maximize_dims", why, missing=True)


def _groups(cursor: Cursor, problem: Problem) -> list[tuple[str, ...]]:
    """Return the groups of dimensions of a `maximize_dims`. Raises InputError."""
    nested = isinstance(cursor.value, list) and any(isinstance(item, list) for item in cursor.value)
    parts = cursor.items("maximize_dims") if nested else [cursor]
    return [part.names("dimension", problem.dimension_names) for part in parts]


def _in_time(target: str, loops: _Loops, problem: Problem) -> Iterator[TemporalRule]:
    free = [name for name in problem.dimension_names if not _is_one(loops.trips.get(name))]
    inner, outer = ([name for name in part[::-1] if name in free] for part in (loops.first, loops.last))
    whole = (*outer, *inner) if len(outer) + len(inner) == len(free) else ()
    rule = TemporalRule(
        memory=target,
        only=None if len(free) == len(problem.dimensions) else tuple(free),
        factors=FrozenDict({name: loops.trips[name] for name in free if name in loops.trips}),
        order=whole if len(whole) > 1 else (),
        outermost=() if whole else tuple(outer),
        innermost=() if whole else tuple(inner),
    )
    if rule != TemporalRule(memory=target):
        yield rule


def _is_one(trips: TripRange | None) -> bool:
    return trips is not None and trips.max == 1


def _in_space(
    target: str, loops: _Loops, problem: Problem, architecture: Architecture, notes: Notes
) -> Iterator[SpatialRule]:
    """Yield one rule for each axis along which the level fans out."""
    dims = problem.dimension_names
    axes = {
        cluster.fanout.axis: cluster.name
        for name in (target, f"{target}_X")
        for cluster in architecture.clusters
        if cluster.name == name and cluster.fanout.size > 1
    }
    able = [name for name in dims if not _is_one(loops.trips.get(name))]
    sides = {axis: [name for name in able if axis in _axes(name, loops, dims)] for axis in axes}
    both = len(axes) == 2 and any(name in sides["Y"] for name in sides["X"])
    for axis, cluster in axes.items():
        allowed = sides[axis]
        bounded = {name: loops.trips[name] for name in allowed if name in loops.trips}
        if both:
            bounded = {
                name: TripRange(max=trips.max) if all(name in side for side in sides.values()) else trips
                for name, trips in bounded.items()
                if trips.max is not None or not all(name in side for side in sides.values())
            }
        rule = SpatialRule(
            cluster=cluster,
            only=None if len(allowed) == len(dims) else tuple(allowed),
            factors=FrozenDict(bounded),
        )
        if rule != SpatialRule(cluster=cluster):
            yield rule
    if both or _crowded(loops, dims, sides):
        _leave_axes(target, loops, dims, sides, axes, notes)


def _axes(name: str, loops: _Loops, dims: Sequence[str]) -> str:
    """Return the axes along which a dimension may lie: with a split, its place in the permutation decides."""
    if loops.split is None:
        return "XY"
    if name in loops.first:
        return "X" if loops.first.index(name) < loops.split else "Y"
    if name in loops.last:
        return "X" if len(dims) - len(loops.last) + loops.last.index(name) < loops.split else "Y"
    most = _others(loops, dims)
    return ("X" if most[0] else "") + ("Y" if most[1] else "")


def _others(loops: _Loops, dims: Sequence[str]) -> tuple[int, int]:
    """Return how many dimensions that the permutation leaves out lie along X and along Y, with a split."""
    between = len(loops.between(dims))
    along = min(max(0, (loops.split or 0) - len(loops.first)), between)
    return along, between - along


def _crowded(loops: _Loops, dims: Sequence[str], sides: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a split allows fewer of the other dimensions along an axis than may have a loop there."""
    if loops.split is None:
        return False
    most = dict(zip("XY", _others(loops, dims), strict=True))
    return any(len(set(side) & set(loops.between(dims))) > most[axis] for axis, side in sides.items())


def _leave_axes(
    target: str,
    loops: _Loops,
    dims: Sequence[str],
    sides: Mapping[str, Sequence[str]],
    axes: Mapping[str, str],
    notes: Notes,
) -> None:
    """Leave out what no rule for one fanout can express: along which of the axes a dimension lies."""
    assert loops.where is not None  # it is set with the first rule
    shared = [name for name in dims if all(name in side for side in sides.values())]
    lower = {name: loops.trips[name] for name in shared if name in loops.trips and loops.trips[name].min > 1}
    order = sorted(axes, key="XY".index)
    joint = JointRule(
        clusters=tuple(axes[axis] for axis in order),
        factors=FrozenDict(lower),
        apart=len(axes) == 2,
        first=loops.first,
        last=loops.last,
        others=() if loops.split is None else tuple(_others(loops, dims)["XY".index(axis)] for axis in order),
    )
    why = f"{', '.join(lower)} may lie along X or Y: lower bounds are left out; " if lower else ""
    why += f"a dimension lies along one axis of {target}, which a permutation with a split states"
    notes.leave(loops.where, "spatial", why, joint, quiet=not lower)


def _in_use(
    rule: ParsedDirective, spatial: list[SpatialRule], tree: Nodes, architecture: Architecture, notes: Notes
) -> list[SpatialRule]:
    """Return the rules with the least fraction of all units in use, where rules for single fanouts can express it.

    Raises:
        InputError: the constraint is not at the innermost level, or no mapping satisfies it.
    """
    if "min" not in rule.fields:
        raise rule.where.error("a constraint on parallelism has no 'min'", hint="write min: 0.5 for half of all units")
    least = rule.fields["min"].number("min")
    if rule.target != tree.levels.names[-1]:
        innermost = tree.levels.names[-1]
        raise rule.where.error(
            f"parallelism is constrained at {rule.target}", hint=f"name the innermost level, {innermost}"
        )
    if least > 1:
        raise rule.fields["min"].error(f"no mapping uses {least:g} times all units", hint="write at most 1")
    fanouts = [cluster.name for cluster in architecture.clusters if cluster.fanout.size > 1]
    if least == 0 or not fanouts:
        return spatial
    if len(fanouts) > 1 and least < 1:
        why = f"at least {least:g} of all units in use, over {len(fanouts)} fanouts together"
        notes.leave(rule.where, "utilization", why, JointRule(clusters=tuple(fanouts), min_utilization=least))
        return spatial
    by_cluster = {limit.cluster: limit for limit in spatial}
    for name in fanouts:
        before = by_cluster.get(name, SpatialRule(cluster=name))
        by_cluster[name] = before.model_copy(update={"min_utilization": least})
    return list(by_cluster.values())
