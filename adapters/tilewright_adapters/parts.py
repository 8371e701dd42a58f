"""Parts of an input set: each may be given once, and parts that a notation lacks are reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from tilewright.errors import InputError, Location, Reason
from tilewright.plugin.adapter import InputSet

_UNPLACED = {
    "constraints": "{title} cannot express constraints",
    "group": "{title} cannot express group mappings, of several layers",
    "directives": "{title} cannot express directives, whose tiles may overlap",
    "model_options": "{title} cannot express model options: {options}",
}


def gathered(found: Iterable[tuple[str, object, Location]]) -> InputSet:
    """Return an input set from named parts. Raises InputError if a part is repeated."""
    parts: dict[str, Any] = {}
    for name, value, location in found:
        if name in parts:
            raise InputError(f"{name} is repeated", location=location, hint="give each part once")
        parts[name] = value
    return InputSet(**parts)


def reason(code: str, where: str, message: str) -> Reason:
    """Return a reason against writing an input set."""
    return Reason(code=code, where=where, message=message)


def unplaced(title: str, inputs: InputSet, held: Collection[str], sparse: bool = False) -> Iterator[Reason]:
    """Yield a reason for each part that is not in `held`, and one if there is nothing to write.

    Densities and sparse hardware are such parts, unless `sparse` is set.

    Args:
        title: name of the files, for messages.
        inputs: the input set.
        held: parts that the notation can express.
        sparse: whether it can express densities and sparse hardware.
    """
    for name, message in _UNPLACED.items():
        part = getattr(inputs, name)
        if part and name not in held:
            where = f"{name} {part.name}" if name != "model_options" else "the input set"
            yield reason(name, where, message.format(title=title, options=", ".join(inputs.model_options)))
    for tensor in () if sparse or inputs.problem is None else inputs.problem.tensors:
        if tensor.density is not None:
            yield reason("density", f"tensor {tensor.name}", f"{title} cannot express densities")
    for part in () if sparse or inputs.architecture is None else inputs.architecture.parts:
        if part.sparse is not None:
            yield reason("sparse", part.name, f"{title} cannot express sparse hardware")
    if inputs.group is None and all(getattr(inputs, name) is None for name in held):
        *others, last = held
        yield reason("nothing", "the input set", f"there is no {', '.join(others)} or {last}")
