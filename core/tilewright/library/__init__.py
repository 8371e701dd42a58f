"""The library: architectures, their constraints and workloads with published numbers, as files.

Every file says in `source` where its numbers come from and what had to be assumed.
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
    """Names of the files in `architectures`, `constraints`, `spaces` or `workloads`."""
    found = (files(__name__) / folder).iterdir()
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in found if entry.name.endswith(".yaml")))


def architectures() -> dict[str, str]:
    """Name -> one line: compute units and memories, outermost first."""
    found = {name: architecture(name) for name in names("architectures")}
    return {
        name: f"{each.compute_instances:,} compute units; {', '.join(memory.name for memory in each.memories)}"
        for name, each in found.items()
    }


def workloads() -> dict[str, str]:
    """Name -> one line: layers and unit operations."""
    found = {name: workload(name) for name in names("workloads")}
    return {name: f"{len(each.layers)} layers; {each.macs:,} unit operations" for name, each in found.items()}


@cache
def architecture(name: str) -> Architecture:
    """Raises UnknownNameError."""
    from tilewright.schema.architecture import Architecture

    _known("architecture", name, names("architectures"))
    return _load(Architecture, "architectures", name)


@cache
def workload(name: str) -> Workload:
    """A workload, or with `name/layer` one layer of it as a workload of its own. Raises UnknownNameError."""
    from tilewright.schema.workload import Workload

    name, _, layer_name = name.partition("/")
    _known("workload", name, names("workloads"))
    if not layer_name:
        return _load(Workload, "workloads", name)
    whole = workload(name)
    layers = {layer.name: layer for layer in whole.layers}
    _known(f"layer of {name}", layer_name, layers)
    one = layers[layer_name].model_copy(update={"after": ()})
    return Workload(name=layer_name, source=whole.source, layers=(one,))


def constraints_for(architecture_name: str) -> dict[str, Constraints]:
    """The named constraints that come with an architecture; empty for one of the user's own."""
    prefix = f"{architecture_name}."
    return {name.removeprefix(prefix): _constraints(name) for name in names("constraints") if name.startswith(prefix)}


def default_constraints(architecture_name: str) -> Constraints | None:
    """The published dataflow of an architecture, which applies by default; None if it has none."""
    return next((each for each in constraints_for(architecture_name).values() if each.default), None)


def constraints(architecture_name: str, name: str) -> Constraints:
    """Named constraints of an architecture. Raises UnknownNameError."""
    known = constraints_for(architecture_name)
    if name not in known:
        raise UnknownNameError(
            f"{architecture_name} has no constraints called '{name}'{suggestion(name, known)}; "
            f"known: {', '.join([*known, 'none'])}",
            hint="or give a constraints file of your own",
        )
    return known[name]


@cache
def _constraints(name: str) -> Constraints:
    from tilewright.schema.constraints import Constraints

    return _load(Constraints, "constraints", name)


def text(name: str) -> str | None:
    """The file of an architecture, of constraints (`eyeriss.row_stationary`), of a space or of a workload, as it is shipped; None where
    there is none of that name."""
    for folder in ("architectures", "constraints", "spaces", "workloads"):
        if name in names(folder):
            return (files(__name__) / folder / f"{name}.yaml").read_text(encoding="utf-8")
    return None


def _load(model: type[M], folder: str, name: str) -> M:
    with as_file(files(__name__) / folder / f"{name}.yaml") as path:
        return validate(model, read_document(path))


def _known(what: str, name: str, known: Iterable[str]) -> None:
    known = list(known)
    if name not in known:
        raise UnknownNameError(
            f"no {what} is called '{name}'{suggestion(name, known)}; known: {', '.join(known)}",
            hint="tilewright library lists them; one of your own is given as a YAML file",
        )
