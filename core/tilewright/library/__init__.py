"""The library: architectures, their constraints and workloads with published numbers, as files.

Every file says in `source` where its numbers come from and what had to be assumed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, TypeVar

from tilewright.document import FileModel, read_document, suggestion, validate
from tilewright.errors import UnknownNameError

if TYPE_CHECKING:
    from tilewright.architecture import Architecture
    from tilewright.constraints import Constraints
    from tilewright.workload import Workload

M = TypeVar("M", bound=FileModel)


@cache
def names(folder: str) -> tuple[str, ...]:
    """Names of the files in `architectures`, `constraints` or `workloads`."""
    found = (files(__name__) / folder).iterdir()
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in found if entry.name.endswith(".yaml")))


def _load(model: type[M], folder: str, name: str) -> M:
    with as_file(files(__name__) / folder / f"{name}.yaml") as path:
        return validate(model, read_document(path))


def _known(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UnknownNameError(
            f"no {what} is called '{name}'{suggestion(name, known)}; known: {', '.join(known)}",
            hint="tilewright library lists them; one of your own is given as a YAML file",
        )


@cache
def architecture(name: str) -> Architecture:
    """Raises UnknownNameError."""
    from tilewright.architecture import Architecture

    _known("architecture", name, names("architectures"))
    return _load(Architecture, "architectures", name)


@cache
def workload(name: str) -> Workload:
    """Raises UnknownNameError."""
    from tilewright.workload import Workload

    _known("workload", name, names("workloads"))
    return _load(Workload, "workloads", name)


@cache
def constraints_of(architecture_name: str) -> dict[str, Constraints]:
    """The named constraints that come with an architecture; empty for one of the user's own."""
    from tilewright.constraints import Constraints

    prefix = f"{architecture_name}."
    return {
        name.removeprefix(prefix): _load(Constraints, "constraints", name)
        for name in names("constraints")
        if name.startswith(prefix)
    }


def constraints(architecture_name: str, name: str) -> Constraints:
    """Named constraints of an architecture. Raises UnknownNameError."""
    known = constraints_of(architecture_name)
    if name not in known:
        raise UnknownNameError(
            f"{architecture_name} has no constraints called '{name}'{suggestion(name, known)}; "
            f"known: {', '.join([*known, 'none'])}",
            hint="or give a constraints file of your own",
        )
    return known[name]


def dataflow(architecture_name: str) -> Constraints | None:
    """The published dataflow of an architecture, which applies by default; None if it has none."""
    return next((each for each in constraints_of(architecture_name).values() if each.default), None)
