"""Parser of Timeloop's `mapping`: a list of directives, collected by level."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field, replace

from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop.cursor import Cursor, refuse_unknown
from tilewright_adapters.timeloop.reading.hierarchy import Hierarchy

_FACTOR = re.compile(r"(?:([A-Za-z_]\w*?)\s*+=\s*+|([A-Za-z_]++)\s*+)(\d{1,15})(?:\s*+,\s*+(\d{1,15}))?[\s,]*+")
_ALL = ("len(spec.problem.instance)", "len(spec.problem.shape.dimensions)")
UNREAD = {
    "no_temporal_reuse": "temporal reuse disabled",
    "rmw_on_first_writeback": "read of the first partial sum",
    "rmw_first_update": "read of the first partial sum",
    "passthrough": "pass-through buffers",
    "no_coalesce": "pass-through buffers",
}
"""Keys that are refused: they would change results."""
FACTOR_MACROS = {"factors_only", "no_iteration_over_dataspaces", "must_iterate_over_dataspaces"}
"""Timeloop v4's abbreviations for factors of 1."""
SEARCHED = {"maximize_dims", "maximize_dims_capacity", "default_max_factor", "default_min_factor", "remainders"}
"""Keys that narrow a search and do not affect a mapping."""
FIELDS = {
    "bypass": {"keep", "bypass", "keep_only", "bypass_only", "stream"},
    "temporal": {"factors", "permutation", "split", *FACTOR_MACROS, *SEARCHED},
    "spatial": {
        "factors",
        "permutation",
        "split",
        "no_multicast_no_reduction",
        "no_reuse",
        "no_link_transfer",
        *FACTOR_MACROS,
        *SEARCHED,
    },
    "parallelism": {"min"},
    "overbooking": {"proportion"},
}
_IGNORED = {
    ("bypass", "stream"): "in a bypass directive is ignored, as in Timeloop",
    ("temporal", "split"): "in a temporal directive is ignored, as in Timeloop",
    ("overbooking", "proportion"): "is ignored: as in Timeloop, it has no effect without allow_overbooking",
}
"""Keys that are not read, by kind of directive, with the end of the warning."""
KINDS = {name: "bypass" for name in ("bypass", "bypassing", "datatype", "dataspace")} | {
    "temporal": "temporal",
    "spatial": "spatial",
}


@dataclass(frozen=True)
class Factor:
    """A loop of `end` iterations.

    It has `last` iterations if all outer loops of its dimension are at their last.
    """

    end: int
    last: int
    where: Cursor


@dataclass
class LevelDirectives:
    """Directives of one level; permutations list all dimensions, outermost first."""

    keep: list[str]
    temporal: MappingOf[str, Factor] = field(default_factory=dict)
    spatial: MappingOf[str, Factor] = field(default_factory=dict)
    temporal_order: tuple[str, ...] = ()
    spatial_order: tuple[str, ...] = ()
    in_x: frozenset[str] = frozenset()
    """Dimensions whose spatial factors lie along X; the others lie along Y."""
    unicast: tuple[str, ...] = ()

    def axes(self) -> frozenset[str]:
        """Return the axes along which the level unrolls."""
        return frozenset("X" if name in self.in_x else "Y" for name, f in self.spatial.items() if f.end != 1)


@dataclass(frozen=True)
class Directives:
    """Directives of all levels, outermost first."""

    where: Cursor
    levels: MappingOf[str, LevelDirectives]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ParsedDirective:
    """One directive or constraint, as parsed."""

    where: Cursor
    target: str
    kind: str
    fields: dict[str, Cursor]
    is_rule: bool = False
    """Whether it is a constraint, which supplies values that the mapping omits (v4)."""


def listed(
    section: Cursor, levels: Hierarchy, unrolled_at: MappingOf[str, str], kinds: MappingOf[str, str] = KINDS
) -> Iterator[ParsedDirective]:
    """Yield the directives of a list. Raises InputError.

    `unrolled_at` maps names in spatial directives to the level that unrolls.
    """
    if isinstance(section.value, dict) and "type" in section.value:
        raise section.error(
            f"a mapping of type {section.value['type']} is not supported",
            hint="give a list of directives for one problem",
        )
    seen: set[tuple[str, str]] = set()
    for directive in section.items("mapping"):
        fields = directive.fields("a directive")
        for needed in ("target", "type"):
            if needed not in fields:
                raise directive.error(f"the directive has no '{needed}'")
        kind = kinds[fields.pop("type").choice("directive type", kinds)]
        target = fields.pop("target")
        elsewhere = unrolled_at.get(str(target.value)) if kind == "spatial" else None
        name = elsewhere or _target(target, levels.names)
        if kind != "bypass" and (name, kind) in seen:
            raise directive.error(f"the {kind} directive for {name} is repeated")
        seen.add((name, kind))
        yield ParsedDirective(directive, name, kind, fields)


def read_directives(
    where: Cursor, said: Iterable[ParsedDirective], problem: Problem, levels: Hierarchy, parallel: Parallel
) -> Directives:
    """Return the directives by level; levels that only unroll keep nothing. Raises InputError."""
    dims = problem.dimension_names
    by_level = {name: LevelDirectives([], temporal_order=dims, spatial_order=dims) for name in levels.names}
    directives = [checked(directive) for directive in said if directive.kind in KINDS.values()]
    for name, (_, bypass) in keeping(directives, problem, levels, parallel).items():
        by_level[name].keep = [] if name in levels.dummies else [t for t in problem.tensor_names if t not in bypass]
    gathered: dict[tuple[str, str], _Gathered] = {}
    for directive in sorted(directives, key=lambda parsed: parsed.is_rule):
        if directive.kind != "bypass":
            gathered.setdefault((directive.target, directive.kind), _Gathered()).add(directive, problem)
    warnings = list(ignored(directives))
    for (target, kind), loops in gathered.items():
        warnings += loops.guesses(dims)
        loops.apply_defaults(by_level[target], kind, problem)
    return Directives(where, by_level, tuple(warnings))


Parallel = Sequence[Sequence[tuple[tuple[str, ...], frozenset[str]]]]
"""Groups of parallel branches: levels of each branch, and tensors kept in a branch without levels."""


def checked(directive: ParsedDirective) -> ParsedDirective:
    """Return a directive without empty fields. Raises InputError for unsupported fields."""
    fields = {
        name: cursor
        for name, cursor in directive.fields.items()
        if cursor.value not in ([], None, "") or (name == "factors_only" and cursor.value is not None)
    }
    for name, what in UNREAD.items():
        cursor = fields.pop(name, None)
        if cursor is not None and cursor.value:
            raise cursor.error(f"{name} ({what}) is not supported: it would change results")
    if directive.kind == "temporal" and "no_reuse" in fields:
        raise fields["no_reuse"].error("no_reuse in a temporal directive is not supported: it would change results")
    refuse_unknown(fields, FIELDS[directive.kind], f"a {directive.kind} directive")
    return replace(directive, fields=fields)


def ignored(said: Iterable[ParsedDirective]) -> Iterator[str]:
    """Yield a warning for the first occurrence of each key that is not read."""
    told: set[tuple[str, str]] = set()
    for directive in said:
        for name, cursor in directive.fields.items():
            key = (directive.kind, name)
            if key in _IGNORED and key not in told:
                told.add(key)
                yield f"{cursor.document.locate(cursor.path)}: {name} {_IGNORED[key]}"


def keeping(
    said: Iterable[ParsedDirective], problem: Problem, levels: Hierarchy, parallel: Parallel
) -> dict[str, tuple[set[str], set[str]]]:
    """Return level -> tensors to keep and tensors to bypass. Raises InputError."""
    result: dict[str, tuple[set[str], set[str]]] = {name: (set(), set()) for name in levels.names}
    everything = set(problem.tensor_names)
    for directive in said:
        if directive.kind == "bypass":
            keep, bypass = result[directive.target]
            named = {word: tensors(cursor, problem) for word, cursor in directive.fields.items()}
            only, without = named.get("keep_only"), named.get("bypass_only")
            kept = named.get("keep", set()) | (only or set()) | (everything - without if without else set())
            gone = named.get("bypass", set()) | (without or set()) | (everything - only if only else set())
            bypass -= kept - gone  # of two contradicting directives the later one counts
            bypass |= gone
            keep -= gone
            keep |= kept - gone
    for group in parallel:
        branches = [(names, set(passed).union(*(result[name][0] for name in names))) for names, passed in group]
        nowhere = everything.difference(*(kept for _, kept in branches))
        if nowhere:
            raise levels.where.error(
                f"{', '.join(sorted(nowhere))}: no branch of a !Parallel keeps it",
                hint="keep it in a branch, or add a branch !Nothing that keeps it",
            )
        for names, kept in branches:
            for name in names:
                result[name][1].update(everything - kept)
    return result


def unlinked(said: Iterable[ParsedDirective], problem: Problem) -> dict[str, set[str]]:
    """Return level -> tensors whose link transfers below it are switched off. Raises InputError."""
    result: dict[str, set[str]] = {}
    for directive in said:
        cursor = directive.fields.get("no_link_transfer") if directive.kind == "spatial" else None
        if cursor is not None and cursor.value:
            result.setdefault(directive.target, set()).update(tensors(cursor, problem))
    return result


def tensors(cursor: Cursor, problem: Problem) -> set[str]:
    """Return the tensors of a list; `*` means all tensors. Raises InputError."""
    if isinstance(cursor.value, list) and "*" in cursor.value:
        return set(problem.tensor_names)
    return set(cursor.names("tensor", problem.tensor_names))


def ones(fields: MappingOf[str, Cursor], problem: Problem, named: Iterable[str]) -> set[str]:
    """Return dimensions that v4's abbreviations fix at 1. Raises InputError.

    `named` are the dimensions that `factors_only` lists.
    """

    def indexing(cursor: Cursor) -> set[str]:
        return {name for tensor in tensors(cursor, problem) for name in problem.tensor(tensor).dimensions}

    result: set[str] = set()
    if "factors_only" in fields:
        result |= set(problem.dimensions) - set(named)
    if "no_iteration_over_dataspaces" in fields:
        result |= indexing(fields["no_iteration_over_dataspaces"])
    if "must_iterate_over_dataspaces" in fields:
        result |= set(problem.dimensions) - indexing(fields["must_iterate_over_dataspaces"])
    return result


@dataclass
class _Gathered:
    """Temporal or spatial directives of one level, combined."""

    factors: dict[str, Factor] = field(default_factory=dict)
    permutation: tuple[str, ...] | None = None
    split: int | None = None
    unicast: set[str] = field(default_factory=set)

    def add(self, directive: ParsedDirective, problem: Problem) -> None:
        """Add a directive. Raises InputError if it contradicts another."""
        fields, dims = directive.fields, problem.dimension_names
        what = f"{directive.kind} directive for {directive.target}"
        for name, factor in _factors_of(directive, problem).items():
            before = self.factors.setdefault(name, factor)
            if (before.end, before.last) != (factor.end, factor.last):
                raise factor.where.error(f"the {what} is repeated, with another factor of {name}")
        if "permutation" in fields and self.permutation is None:
            self.permutation = permutation(fields["permutation"], dims)
        if "split" in fields and self.split is None:
            self.split = split(fields["split"], dims)
        for word in ("no_multicast_no_reduction", "no_reuse"):
            if word in fields:
                self.unicast |= tensors(fields[word], problem)

    def apply_defaults(self, level: LevelDirectives, kind: str, problem: Problem) -> None:
        """Apply Timeloop's defaults: unlisted dimensions are outermost, and all lie along X."""
        dims = problem.dimension_names
        given = self.permutation or ()
        whole = (*given, *(name for name in dims if name not in given))
        if kind == "temporal":
            level.temporal, level.temporal_order = self.factors, whole[::-1]
            return
        level.spatial, level.spatial_order = self.factors, whole[::-1]
        level.in_x = frozenset(whole[: len(dims) if self.split is None else self.split])
        level.unicast = tuple(name for name in problem.tensor_names if name in self.unicast)

    def guesses(self, dims: tuple[str, ...]) -> Iterator[str]:
        """Yield a warning if the order of some loops with several trips is not given."""
        given = self.permutation or ()
        non_unit = [name for name in dims if name not in given and name in self.factors and self.factors[name].end != 1]
        if not non_unit or (len(non_unit) == 1 and not given):
            return
        place = self.factors[non_unit[0]].where
        yield (
            f"{place.document.locate(place.path)}: the permutation lacks {', '.join(non_unit)}: "
            "read as outermost, in reverse order of the problem"
        )


def _factors_of(directive: ParsedDirective, problem: Problem) -> dict[str, Factor]:
    """Return the factors of one directive; bounds in a constraint are left to the mapping."""
    fields = directive.fields
    result: dict[str, Factor] = {}
    for word in ("factors", "factors_only"):
        if word in fields:
            text = factor_text(fields[word])
            text = re.sub(r"(?<!\w)\w++\s*+[<>]=\s*+\d++[\s,]*+", "", text) if directive.is_rule else text
            result |= _factors(text, fields[word], problem)
    for name in ones(fields, problem, result):
        if result.setdefault(name, Factor(1, 1, directive.where)).end != 1:
            raise directive.where.error(f"{directive.target} iterates over {name}, which a directive forbids")
    return result


def _target(cursor: Cursor, names: tuple[str, ...]) -> str:
    if isinstance(cursor.value, int) and 0 <= cursor.value < len(names):
        return names[-1 - cursor.value]  # Timeloop numbers storage levels from the innermost
    return cursor.choice("storage level", names)


def factor_text(cursor: Cursor) -> str:
    """Return factors on one line, from `K=3 C=4`, `K3 C4`, a list of these, or a mapping."""
    value = cursor.value
    if isinstance(value, dict):
        value = [f"{name}={factor}" for name, factor in value.items()]
    return " ".join(map(str, value)) if isinstance(value, list) else str(value or "").partition("#")[0]


def _factors(text: str, cursor: Cursor, problem: Problem) -> dict[str, Factor]:
    """Parse `K=3`, `K=5,3` (a remainder) and `K=0` (the whole dimension)."""
    dims = problem.dimension_names
    result: dict[str, Factor] = {}
    position = 0
    text = text.strip()
    while position < len(text):
        match = _FACTOR.match(text, position)
        if match is None:
            raise cursor.error(f"cannot read the factors from '{text[position:]}'", hint="write them as K=4 C=2")
        name = match[1] or match[2]
        if name not in dims:
            raise cursor.error(f"unknown dimension '{name}'", hint=f"one of {', '.join(dims)}")
        if name in result:
            raise cursor.error(f"dimension {name} has two factors")
        end = int(match[3]) or problem.dimensions[name]
        result[name] = Factor(end, int(match[4] or end), cursor)
        if not 0 < result[name].last <= end:
            raise cursor.error(f"{name}={match[3]},{match[4]}: the remainder must lie between 1 and {end}")
        position = match.end()
    return result


def split(cursor: Cursor, dims: tuple[str, ...]) -> int:
    """Return how many dimensions of a permutation lie along X. Raises InputError.

    Timeloop v4 may write an expression for all dimensions.
    """
    return len(dims) if str(cursor.value).strip() in _ALL else cursor.whole("split", 0)


def permutation_parts(cursor: Cursor, dims: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the innermost and the outermost dimensions of a constraint's permutation, both innermost first.

    The outermost ones follow a `_`. Raises InputError.
    """
    value = cursor.value
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value or "").partition("#")[0]
    whole = permutation(cursor.with_value(text.replace("_", " ") if "_" not in dims else text), dims)
    inner = permutation(cursor.with_value(text.partition("_")[0]), dims) if "_" in text and "_" not in dims else whole
    return inner, whole[len(inner) :]


def permutation(cursor: Cursor, dims: tuple[str, ...]) -> tuple[str, ...]:
    """Return a permutation, innermost first, from adjacent letters, separated names, or a list."""
    value = cursor.value
    words = [str(word) for word in value] if isinstance(value, list) else re.split(r"[\s,]+", str(value or "").strip())
    names: list[str] = []
    for word in words:
        names += [word] if word in dims else list(word)
    for name in names:
        if name not in dims:
            raise cursor.error(f"unknown dimension '{name}' in '{value}'", hint=f"one of {', '.join(dims)}")
    if len(set(names)) != len(names):
        raise cursor.error(f"a dimension is repeated in '{value}'")
    return tuple(names)
