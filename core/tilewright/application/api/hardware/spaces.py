"""`architecture_space`: families of architectures."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tilewright import library
from tilewright.application.api.call_arguments import checked
from tilewright.application.api.load import Source, architecture_data, load_architecture
from tilewright.application.documents.hardware import SpaceOutput, SpaceRow
from tilewright.application.exploration.space import ArchitectureSpace, Choice, Point
from tilewright.errors import InputError, UnknownNameError
from tilewright.reports.costs import COSTS
from tilewright.schema.document import Document, parse_document, read_document, suggestion, validate
from tilewright.tables import Column, Shown, Table, Tabular, numbers
from tilewright.values import grouped

Row = TypeVar("Row")

SpaceSource = str | os.PathLike[str] | Mapping[str, Any] | ArchitectureSpace
"""Source of a space of architectures."""


@checked
def architecture_space(source: SpaceSource) -> ArchitectureSpace:
    """Return a space of architectures from a library name, a YAML file, a dict or an object.

    Raises:
        UnknownNameError: The name is unknown.
        InputError: The file or dict is invalid; the message gives the location.

    Example:
        >>> import tilewright as tw
        >>> tw.architecture_space("sunstone_l1").name
        'sunstone_l1'
    """
    if isinstance(source, ArchitectureSpace):
        return source
    if isinstance(source, Mapping):
        return validate(ArchitectureSpace, Document(dict(source), "dict"))
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"a space of architectures is a name, a file, a dict or an object, not {source!r}")
    name = os.fspath(source)
    known = library.names("spaces")
    if name in known:
        return ArchitectureSpace.from_yaml(library.text(name) or "", source=name)
    if name.endswith((".yaml", ".yml", ".json")):
        return validate(ArchitectureSpace, read_document(name))
    raise UnknownNameError(
        f"no space of architectures is called '{name}'{suggestion(name, known)}; known: {', '.join(known)}",
        hint="or give a YAML file of kind: space",
    )


def swept(arch: Source, vary: Mapping[str, Any]) -> ArchitectureSpace:
    """Return the space of one architecture with some values of its fields, all combinations of them.

    Args:
        arch: Name, file, dict or object.
        vary: Field -> its values: a list, or a text with commas, such as `{"GlobalBuffer.capacity": "32KiB,64KiB"}`.
            A field is a path as in spaces, or `MEMORY.capacity`, `MEMORY.bandwidth`, `CLUSTER.fanout`, `clock`.
            `bandwidth` is each bandwidth that the memory states. Numbers without a unit have that of the field.

    Raises:
        InputError, UnknownNameError: The architecture, a field or a value is invalid.
    """
    machine, data = load_architecture(arch), architecture_data(arch)
    dataflow = library.dataflow_of(machine)
    if dataflow is not None:
        data["dataflow"] = f"{machine.family}.{dataflow.name}"
    space = {
        "kind": "space",
        "name": machine.name,
        "architecture": data,
        "choices": {path: _values(path, given) for path, given in vary.items()},
        "set": {path: path for path in vary if "." not in path},
    }
    return validate(ArchitectureSpace, Document(space, "vary"))


def fixed_energies(space: ArchitectureSpace) -> list[str]:
    """Return the memories whose capacity is chosen, but whose energies are the same for all capacities."""
    first = next((point.architecture for point in space.points() if point.architecture is not None), None)
    given = {place for path in (*space.choices, *space.set) for place in space.places(path)}
    memories = [] if first is None else [
        (memory, ("clusters", at, "memories", number))
        for at, cluster in enumerate(first.clusters)
        for number, memory in enumerate(cluster.memories)
    ]  # fmt: skip
    return [
        memory.name
        for memory, place in memories
        if (*place, "capacity_words") in given and (*place, "read_energy_pj") not in given and memory.component is None
    ]


def _values(path: str, given: Any) -> list[Any]:
    """Return the values of a field. Raises InputError."""
    listed = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    values = list(listed) if isinstance(listed, list | tuple) else [listed]
    if "" in values or not values:
        raise InputError(f"{path}: a value is missing", hint=f"such as {path}=A,B,C")
    read = [parse_document(one, source=f"vary {path}").data if isinstance(one, str) else one for one in values]
    for value in read:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise InputError(
                f"{path}: {value!r} is no value; expected numbers, sizes and names", hint=f"such as {path}=A,B,C"
            )
    return read


@dataclass(frozen=True, repr=False)
class SpaceReport(Tabular):
    """Points of a space, each with the architecture or the reason why it is invalid."""

    space: ArchitectureSpace
    points: tuple[Point, ...]

    @classmethod
    def of(cls, space: ArchitectureSpace, most: int | None = None) -> SpaceReport:
        """Check the first points of a space, at most `most` of them.

        Raises:
            PluginError: An estimator that was named failed.
        """
        count = len(space) if most is None else min(most, len(space))
        return cls(space, tuple(map(space.point, range(count))))

    def __repr__(self) -> str:
        return f"<SpaceReport of {self.space.name}: {len(self.points)} of {len(self.space)} points>"

    @property
    def valid(self) -> int:
        """Number of points that are valid architectures."""
        return sum(point.architecture is not None for point in self.points)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per point: choices, compute units and area, or the reason why it is invalid."""
        return [
            {"point": point.index, **point.values}
            | {"compute_units": None if point.architecture is None else point.architecture.compute_instances}
            | COSTS.data("space", point.architecture)
            | {"reason": "; ".join(map(str, point.reasons)) or None}
            for point in self.points
        ]

    def data(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return SpaceOutput(
            space=self.space.name,
            size=len(self.space),
            judged=len(self.points),
            valid=self.valid,
            points=[SpaceRow(**row) for row in self.rows()],
        ).data()

    def tables(self) -> Sequence[Table | str]:
        judged = "" if len(self.points) == len(self.space) else f", {len(self.points):,} of them checked"
        refused = Counter(reason.where or reason.code for point in self.points for reason in point.reasons[:1])
        lines: list[Table | str] = [f"{self.space.name}: {len(self.space):,} points{judged}, {self.valid:,} valid"]
        lines += [f"  {count:,} refused by {where}" for where, count in refused.most_common()]
        columns: list[Shown[Point]] = [
            Shown("point", lambda point: str(point.index)),
            *choice_columns(self.space.choices, lambda point: point.values),
            Shown(numbers("units"), lambda point: point.architecture.compute_instances if point.architecture else None),
            *COSTS.shown("space", lambda point: point.architecture),
        ]
        table = Table.of(columns, [point for point in self.points if point.architecture is not None])
        why = grouped(
            ("; ".join(map(str, point.reasons)), point.index)
            for point in self.points
            if point.reasons and point.reasons[0].code != "limit"
        )
        reasons = Table(numbers("points"), "such as", Column("refused because", wrapped=True))
        for told, points in sorted(why.items(), key=lambda item: -len(item[1])):
            reasons.add_row(len(points), str(points[0]), told)
        return [*lines, "", *(part for part in (table, reasons) if part.rows)]


def choice_columns(names: Iterable[str], values: Callable[[Row], Mapping[str, Choice]]) -> list[Shown[Row]]:
    """Return the columns of choices; a name such as `GLB.capacity_words` takes two header lines."""

    def column(name: str) -> Shown[Row]:
        owner, _, field = name.partition(".")
        return Shown(Column(owner, field), lambda row: choice_text(values(row)[name]))

    return list(map(column, names))


def choice_text(value: Choice) -> str:
    """Return the value of a choice as text."""
    return value if isinstance(value, str) else f"{value:,.10g}"
