"""Parts of an input set: each may be given once, and parts that a notation lacks are reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import InputError, Location, Reason
from tilewright.plugin.adapter import InputSet, NotationTable

_UNPLACED = {
    "constraints": "{title} cannot express constraints",
    "group": "{title} cannot express group mappings, of several layers",
    "directives": "{title} cannot express directives, whose tiles may overlap",
    "model_options": "{title} cannot express model options: {options}",
}


@dataclass
class Written:
    """Files, or sections of one, as data; and reasons why others cannot be written."""

    files: dict[str, Any] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)


def gathered(sections: Iterable[tuple[str, object, Location]]) -> InputSet:
    """Return an input set from named parts. Raises InputError if a part is repeated."""
    parts: dict[str, Any] = {}
    for name, value, location in sections:
        if name in parts:
            raise InputError(f"{name} is repeated", location=location, hint="give each part once")
        parts[name] = value
    return InputSet(**parts)


def reason(code: str, where: str, message: str) -> Reason:
    """Return a reason against writing an input set."""
    return Reason(code=code, where=where, message=message)


def unplaced(table: NotationTable, inputs: InputSet, held: Collection[str]) -> Iterator[Reason]:
    """Yield a reason for each part and each attribute of hardware without a place, and one if there is nothing to write.

    Args:
        table: attributes that the notation can express. If sparse hardware is one, it can express densities, too.
        inputs: the input set.
        held: parts that the notation can express.
    """
    title = table.title
    for name, message in _UNPLACED.items():
        part = getattr(inputs, name)
        if part and name not in held:
            where = f"{name} {part.name}" if name != "model_options" else "the input set"
            yield reason(name, where, message.format(title=title, options=", ".join(inputs.model_options)))
    for tensor in () if "sparse" in table.written or inputs.problem is None else inputs.problem.tensors:
        if tensor.density is not None:
            yield reason("density", f"tensor {tensor.name}", f"{title} cannot express densities")
    if inputs.architecture is not None:
        yield from table.refused(inputs.architecture, inputs.problem)
    if inputs.group is None and all(getattr(inputs, name) is None for name in held):
        *others, last = held
        yield reason("nothing", "the input set", f"there is no {', '.join(others)} or {last}")


def unwritten_bits(table: NotationTable, inputs: InputSet) -> Iterator[Reason]:
    """Yield a reason for each tensor that states the bits of a value, for notations without a place for them."""
    for tensor in () if inputs.problem is None else inputs.problem.tensors:
        if tensor.bits is not None:
            yield reason("bits", f"tensor {tensor.name}", f"{table.title} cannot express the bits of a value")
