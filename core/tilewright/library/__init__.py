"""Library of architectures, their constraints, spaces and workloads with published numbers, as files.

The field `source` of every file names the origin of its numbers and the assumptions made.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, TypeVar

from tilewright.errors import UnknownNameError
from tilewright.schema.document import FileModel, read_document, suggestion, validate

if TYPE_CHECKING:
    from tilewright.schema.architecture import Architecture
    from tilewright.schema.constraints import Constraints
    from tilewright.schema.workload import Workload

M = TypeVar("M", bound=FileModel)


@cache
def names(folder: str) -> tuple[str, ...]:
    """Return the names of the files in `architectures`, `constraints`, `spaces` or `workloads`."""
    entries = (files(__name__) / folder).iterdir()
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml")))


def architectures() -> dict[str, str]:
    """Return a one-line summary per architecture: compute units and memories, outermost first."""
    by_name = {name: architecture(name) for name in names("architectures")}
    return {
        name: f"{machine.compute_instances:,} compute units; {', '.join(memory.name for memory in machine.memories)}"
        for name, machine in by_name.items()
    }


def workloads() -> dict[str, str]:
    """Return a one-line summary per workload: layers and unit operations, or that it is a list of layers."""
    by_name = {name: workload(name) for name in names("workloads")}
    return {
        name: f"{len(content.layers)} layers; "
        + ("a list without a total" if content.is_list else f"a network of {content.macs:,} unit operations")
        for name, content in by_name.items()
    }


@cache
def architecture(name: str) -> Architecture:
    """Return the architecture with this name, or raise UnknownNameError."""
    from tilewright.schema.architecture import Architecture

    _known("architecture", name, names("architectures"))
    return _load(Architecture, "architectures", name)


@cache
def workload(name: str) -> Workload:
    """Return the workload with this name, or with `name/layer` one of its layers as a workload.

    Raises:
        UnknownNameError: There is no such workload or layer.
    """
    from tilewright.schema.workload import Workload

    name, _, layer_name = name.partition("/")
    _known("workload", name, names("workloads"))
    if not layer_name:
        return _load(Workload, "workloads", name)
    return workload(name).only(layer_name)


def constraints_for(architecture_name: str) -> dict[str, Constraints]:
    """Return the named constraints of an architecture; empty for one that is not in the library."""
    prefix = f"{architecture_name}."
    return {name.removeprefix(prefix): _constraints(name) for name in names("constraints") if name.startswith(prefix)}


def default_constraints(architecture_name: str) -> Constraints | None:
    """Return the published dataflow of an architecture, its default constraints; None if it has none."""
    return next((candidate for candidate in constraints_for(architecture_name).values() if candidate.default), None)


def dataflow_of(architecture: Architecture) -> Constraints | None:
    """Return the constraints that apply to an architecture by default; None if there are none.

    Raises:
        UnknownNameError: The architecture names a dataflow that is not in the library.
    """
    if architecture.dataflow is None:
        return default_constraints(architecture.name)
    return constraints(*architecture.dataflow.split(".", 1))


def twin(machine: Architecture) -> str | None:
    """Return the name of a dataflow that does not apply, because its hardware has another name here."""
    for name in names("architectures") if dataflow_of(machine) is None else ():
        dataflow = default_constraints(name)
        if dataflow is not None and architecture(name).has_hardware_of(machine):
            return f"{name}.{dataflow.name}"
    return None


def constraints(architecture_name: str, name: str) -> Constraints:
    """Return the named constraints of an architecture, or raise UnknownNameError."""
    known = constraints_for(architecture_name)
    if name not in known:
        raise UnknownNameError(
            f"{architecture_name} has no constraints called '{name}'{suggestion(name, known)}; "
            f"known: {', '.join([*known, 'none'])}",
            hint="or give a constraints file",
        )
    return known[name]


@cache
def _constraints(name: str) -> Constraints:
    from tilewright.schema.constraints import Constraints

    return _load(Constraints, "constraints", name)


def text(name: str) -> str | None:
    """Return the text of a library file, or None if there is no file of that name.

    An architecture names its dataflow. `name` is an architecture, constraints (`eyeriss.row_stationary`), a space or a workload.
    """
    for folder in ("architectures", "constraints", "spaces", "workloads"):
        if name in names(folder):
            content = (files(__name__) / folder / f"{name}.yaml").read_text(encoding="utf-8")
            dataflow = default_constraints(name) if folder == "architectures" else None
            if dataflow is None:
                return content
            line = f"name: {name}\n"  # a copy may get another name, and keeps its dataflow
            return content.replace(line, f"{line}dataflow: {name}.{dataflow.name}\n", 1)
    return None


def _load(model: type[M], folder: str, name: str) -> M:
    with as_file(files(__name__) / folder / f"{name}.yaml") as path:
        return validate(model, read_document(path))


def other_kind(name: str) -> str:
    """Return `; it is a workload` for the name of a file in the library, otherwise an empty text."""
    kinds = {"architectures": "an architecture", "workloads": "a workload", "spaces": "a space of architectures"}
    return next((f"; it is {kind}" for folder, kind in kinds.items() if name in names(folder)), "")


def _known(what: str, name: str, known: Iterable[str]) -> None:
    known = list(known)
    if name not in known:
        raise UnknownNameError(
            f"no {what} is called '{name}'{other_kind(name) or suggestion(name, known)}; known: {', '.join(known)}",
            hint="tilewright library lists them; or give a YAML file",
        )
