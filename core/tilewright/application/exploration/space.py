"""Architecture spaces: a machine with choices, expressions and limits, whose points are counted, built and checked."""

from __future__ import annotations

import copy
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from tilewright import library
from tilewright.errors import InputError, Reason
from tilewright.estimation.architectures import read_architecture, without_outdated
from tilewright.expressions import ExpressionError, Number, evaluate, variables
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.document import (
    YAML_SUFFIXES,
    Document,
    FileModel,
    Path_,
    parse_document,
    read_document,
    suggestion,
)
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Name
from tilewright.schema.units import MACHINE, SHORT, fields_of, with_fields
from tilewright.values import MisplacedError, Model

Finite = Annotated[float, Field(allow_inf_nan=False)]
Choice = Finite | Annotated[str, Field(max_length=200)]
MAX_VALUES = 10_000
"""Maximum number of values of one choice."""
_LIMIT = re.compile(r"(.+?)(<=|>=|==|<|>)(.+)")
_HOLDS = {"<=": float.__le__, ">=": float.__ge__, "==": float.__eq__, "<": float.__lt__, ">": float.__gt__}
OF_MACHINES = ("area_mm2", "compute_units")
"""Names of machine properties that limits may use, in addition to the choices."""


class Range(Model):
    """Numbers from `first` to at most `last`, each `plus` or `times` the one before."""

    first: Annotated[float, Field(gt=0, le=1e15)]
    """The first number."""
    last: Annotated[float, Field(gt=0, le=1e15)]
    """Limit of the numbers."""
    plus: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Difference of two neighbours."""
    times: Annotated[float, Field(gt=1, allow_inf_nan=False)] | None = None
    """Ratio of two neighbours."""

    @model_validator(mode="after")
    def _steps(self) -> Self:
        if (self.plus is None) == (self.times is None):
            raise ValueError("give plus or times, one of them")
        steps = (self.last - self.first) / self.plus if self.plus else math.log(self.last / self.first, self.times or 2)
        if steps < 0 or steps >= MAX_VALUES:
            raise ValueError(f"a range has 1 to {MAX_VALUES:,} values")
        return self

    def values(self) -> tuple[float, ...]:
        """Return all values of the range."""
        values = [self.first]
        while (more := values[-1] + self.plus if self.plus else values[-1] * (self.times or 2)) <= self.last * (
            1 + 1e-9
        ):
            values.append(more)
        return tuple(values)


class Looked(Model):
    """Numbers that go with the values of a choice, one for each, in their order."""

    of: str
    """Name of the choice."""
    values: tuple[Finite, ...]
    """One number for each value of the choice."""


def _as_text(value: object) -> object:
    """Return a number as the expression that it is."""
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class ArchitectureSpace(FileModel):
    """A machine with choices.

    Example:
        >>> import tilewright as tw
        >>> sorted(tw.architecture_space("sunstone_l1").choices)
        ['inputs', 'outputs', 'weights']
    """

    schema_version: Literal[1] = 1
    kind: Literal["space"] = "space"
    name: Name
    """Name of the space."""
    source: str | None = None
    """Origin of the space."""
    base: str | None = None
    """An architecture of the library, or the file of one, relative to the folder of this file. `architecture` keeps its contents."""
    architecture: dict[str, Any] | None = None
    """An architecture written out as in its own file, in place of `base`; it may give components and sizes."""
    choices: FrozenDict[str, Range | tuple[Choice, ...]]
    """Name -> values or a range. A name with dots, such as `GLB.capacity_words`, is where the value goes, too."""
    tables: FrozenDict[str, Looked] = FrozenDict()
    """Name -> numbers that go with a choice, such as energies with sizes; named in `set` and `limits` like choices."""
    set: FrozenDict[str, Annotated[str, BeforeValidator(_as_text)]] = FrozenDict()
    """Where a value goes -> a number, the name of a choice, or an expression over those."""
    limits: tuple[str, ...] = ()
    """Comparisons over choices, `area_mm2` and `compute_units`, such as `inputs + weights < 128`."""

    @model_validator(mode="before")
    @classmethod
    def _with_file(cls, data: Any, info: ValidationInfo) -> Any:
        base = data.get("base") if isinstance(data, Mapping) else None
        if not isinstance(base, str) or not base.endswith(YAML_SUFFIXES) or data.get("architecture") is not None:
            return data
        try:
            content = read_document(os.path.join((info.context or {}).get("folder", ""), base)).data
        except InputError as error:
            raise MisplacedError(f"base: {error}", "base") from None
        if not isinstance(content, dict) or "clusters" not in content:
            raise MisplacedError(f"base: {base} is no architecture; expected a file of kind: architecture", "base")
        return {name: value for name, value in data.items() if name != "base"} | {"architecture": content}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.base is None) == (self.architecture is None):
            raise ValueError("give base or architecture, one of them")
        empty = [name for name, values in self.choices.items() if values == ()]
        if empty or not self.choices:
            raise MisplacedError(f"choices without values: {', '.join(empty) or 'all'}", "choices", *empty[:1])
        for number, limit in enumerate(self.limits):
            if not _LIMIT.fullmatch(limit):
                text = f"the limit '{limit}' is no comparison; expected such as 'a + b <= 128'"
                raise MisplacedError(text, "limits", number)
        for name, table in self.tables.items():
            if name in self.choices:
                raise MisplacedError(f"{name} is a choice and a table", "tables", name)
            if table.of not in self.choices:
                raise MisplacedError(f"table {name} goes with '{table.of}', which is no choice", "tables", name, "of")
            if len(table.values) != len(self.values_of(table.of)):
                text = f"table {name} has {len(table.values)} values for {len(self.values_of(table.of))} of {table.of}"
                raise MisplacedError(text, "tables", name, "values")
        data = self._data
        places: dict[Path_, str] = {}
        for path in (*(name for name in self.choices if "." in name), *self.set):
            given = "choices" if path in self.choices else "set"
            try:
                added = places_of(data, path)
            except ValueError as error:
                raise MisplacedError(str(error), given, path) from None
            for place in added:
                if place in places:
                    raise MisplacedError(f"{path} and {places[place]} are one value", given, path)
                places[place] = path
        self._check_variables()
        return self

    def _check_variables(self) -> None:
        """Raises ValueError: an expression names what is neither a choice nor a table."""
        known = [*self.choices, *self.tables]
        texts: list[tuple[Path_, str, list[str]]] = [
            (("set", path), text, known) for path, text in self.set.items() if text not in known
        ]
        for at, limit in enumerate(self.limits):
            texts += [(("limits", at), side, [*known, *OF_MACHINES]) for side in _sides(limit)]
        for where, text, names in texts:
            for name in sorted(variables(text) - set(names)):
                what = f"set {where[1]}" if where[0] == "set" else f"limit '{self.limits[int(where[1])]}'"
                raise MisplacedError(f"{what}: there is no choice or table '{name}'{suggestion(name, names)}", *where)

    @property
    def _data(self) -> dict[str, Any]:
        """Data of the machine, with the names of fields."""
        if self.architecture is not None:
            return with_fields(self.architecture)
        text = library.text(str(self.base)) if self.base in library.names("architectures") else None
        if text is None:
            known = library.names("architectures")
            told = (
                f"no architecture is called '{self.base}'{suggestion(str(self.base), known)}; known: {', '.join(known)}"
            )
            raise MisplacedError(told, "base")
        return with_fields(parse_document(text).data)

    def places(self, path: str) -> tuple[Path_, ...]:
        """Return the paths in the machine's data of a field; none for a choice that is no field."""
        return () if "." not in path and path not in self.set else places_of(self._data, path)

    def values_of(self, name: str) -> tuple[Choice, ...]:
        """The values of a choice, whole numbers as such."""
        given = self.choices[name]
        values = given.values() if isinstance(given, Range) else given
        return tuple(int(value) if isinstance(value, float) and value == int(value) else value for value in values)

    def __len__(self) -> int:
        """How many points there are, exactly, those that no limit allows included."""
        return math.prod(len(self.values_of(name)) for name in self.choices)

    def values(self, index: int) -> dict[str, Choice]:
        """The choices of point `index`, the last choice fastest. Raises IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(f"point {index} of {len(self)}")
        choices: dict[str, Choice] = {}
        for name in reversed(list(self.choices)):
            values = self.values_of(name)
            index, at = divmod(index, len(values))
            choices[name] = values[at]
        return dict(reversed(choices.items()))

    def index(self, places: Sequence[int]) -> int:
        """Return the index of the point whose choices have the values at `places`."""
        number = 0
        for name, place in zip(self.choices, places, strict=True):
            number = number * len(self.values_of(name)) + place
        return number

    def points(self) -> Iterator[Point]:
        """Return all points in order, checked."""
        return map(self.point, range(len(self)))

    def point(self, index: int) -> Point:
        """Return a point with its architecture, or the reasons why it has none. Raises IndexError, PluginError."""
        values = self.values(index)
        numbers = {name: value for name, value in values.items() if not isinstance(value, str)}
        for name, table in self.tables.items():
            numbers[name] = table.values[self.values_of(table.of).index(values[table.of])]
        try:
            broken = [*self._broken(numbers, of_machines=False)]
            if broken:
                return Point(index, values, None, tuple(broken))
            architecture = self._built(index, values, numbers)
        except ExpressionError as error:
            return Point(index, values, None, (Reason(code="expression", where=self.name, message=str(error)),))
        except InputError as error:
            told = error.message.removeprefix(f"{self._called(index)}: ")
            return Point(index, values, None, (Reason(code="architecture", where=self.name, message=told),))
        known: dict[str, Number] = {"compute_units": architecture.compute_instances}
        if architecture.area_um2 is not None:
            known["area_mm2"] = architecture.area_um2 * 1e-6
        try:
            broken = [*self._broken(numbers | known, of_machines=True)]
        except ExpressionError as error:
            broken = [Reason(code="limit", where=self.name, message=str(error))]
        return Point(index, values, None if broken else architecture, tuple(broken))

    def _broken(self, numbers: Mapping[str, Number], of_machines: bool) -> Iterator[Reason]:
        """Yield the violated conditions, either those about machines or the others. Raises ExpressionError."""
        for limit in self.limits:
            match = _LIMIT.fullmatch(limit)
            assert match is not None
            if any(re.search(rf"\b{name}\b", limit) for name in OF_MACHINES) != of_machines:
                continue
            left, right = (float(evaluate(side, numbers)) for side in (match[1], match[3]))
            if not _HOLDS[match[2]](left, right):
                yield Reason(code="limit", where=limit, message=f"{left:.6g} {match[2]} {right:.6g} does not hold")

    def _built(self, index: int, values: Mapping[str, Choice], numbers: Mapping[str, Number]) -> Architecture:
        """Return the architecture of a point. Raises InputError, ExpressionError."""
        base = self._data
        data = copy.deepcopy(base)
        data["name"] = f"{self.name}_{index}"
        given = {name: value for name, value in values.items() if "." in name}
        given |= {path: values[text] if text in values else evaluate(text, numbers) for path, text in self.set.items()}
        for path, value in given.items():
            for place in places_of(data, path):
                _put(data, place, value)
        return read_architecture(Document(without_outdated(base, data), self._called(index)))

    def _called(self, index: int) -> str:
        return f"{self.name}, point {index}"


def _sides(limit: str) -> tuple[str, ...]:
    match = _LIMIT.fullmatch(limit)
    return () if match is None else (match[1], match[3])


@dataclass(frozen=True)
class Point:
    """Point of a space; if `architecture` is None, `reasons` explain why."""

    index: int
    values: Mapping[str, Choice]
    architecture: Architecture | None
    reasons: tuple[Reason, ...] = ()


class Points:
    """Points of a space by their index, each built once. A copy in another process builds its own."""

    def __init__(self, space: ArchitectureSpace) -> None:
        self.space = space
        self.built = cache(space.point)

    def __call__(self, index: int) -> Point:
        return self.built(index)

    def __reduce__(self) -> tuple[type[Points], tuple[ArchitectureSpace]]:
        return Points, (self.space,)


def places_of(data: Mapping[str, Any], path: str) -> tuple[Path_, ...]:
    """Return the paths in an architecture's data of a field like `GLB.capacity_words`, `Row.fanout.size` or `clock_ghz`.

    A short name has the places of its fields: `GLB.capacity`, `Row.fanout`, `clock`, and `GLB.bandwidth`, which is
    several if the memory states several. `data` has the names of fields, not short keys.

    Raises:
        ValueError: no memory, cluster or field has this name.
    """
    head, _, rest = path.partition(".")
    steps = tuple(rest.split(".")) if rest else ()
    if not steps and (head in Architecture.model_fields or SHORT.get(head) in MACHINE):
        return ((SHORT.get(head, head),),)
    if head == "compute" and steps:
        return (("compute", *steps),)
    names: list[str] = ["compute"]
    for at, cluster in enumerate(_parts(data.get("clusters"))):
        for number, memory in enumerate(_parts(cluster.get("memories"))):
            names.append(str(memory.get("name")))
            fields = fields_of(steps[0], memory) if steps else ()
            if names[-1] == head and steps and fields[0] in Memory.model_fields:
                return tuple(("clusters", at, "memories", number, field, *steps[1:]) for field in fields)
        names.append(str(cluster.get("name")))
        if names[-1] == head and steps == ("fanout",):
            return (("clusters", at, "fanout", "size"),)
        if names[-1] == head and steps and steps[0] in Cluster.model_fields:
            return (("clusters", at, *steps),)
    raise ValueError(
        f"the machine has nothing at '{path}'{suggestion(head, names)}; it has {', '.join(dict.fromkeys(names))}"
    )


def _parts(listed: object) -> list[dict[str, Any]]:
    """Clusters or memories; what is none is for the architecture's own rules to tell, and holds its place here."""
    return [part if isinstance(part, dict) else {} for part in listed] if isinstance(listed, list) else []


def _put(data: dict[str, Any], place: Path_, value: object) -> None:
    *way, last = place
    here: Any = data
    for step in way:
        if isinstance(here, dict) and step == "component" and isinstance(here.get(step), str):
            here[step] = {"name": here[step]}  # its short form
        here = here.setdefault(step, {}) if isinstance(here, dict) else here[step]
    if not isinstance(here, dict):
        raise InputError(f"{'.'.join(map(str, place))} is below what is no part of a machine")
    here[last] = value
