"""Checks of the answers of frontends, adapters, estimators and algorithms.

Each returns the contract violation in a few words, or None. It takes the answer, then the arguments of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingOf
from pathlib import PurePosixPath, PureWindowsPath
from typing import TypeVar

from pydantic import ValidationError

from tilewright.errors import Reason, Verdict
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.edges import Edges
from tilewright.plugin.estimator import Estimate
from tilewright.plugin.guard.calls import Owner, checked, described
from tilewright.plugin.program import Program
from tilewright.schema.alternative import Alternative
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Workload
from tilewright.values import plain_fault

Part = TypeVar("Part")
PARTS: dict[str, type] = {
    "problem": Problem,
    "architecture": Architecture,
    "mapping": Mapping,
    "constraints": Constraints,
    "directives": Program,
    "group": GroupMapping,
}
"""Field of an input set -> type of its value, unless None."""


def converted(program: Program, kind: type[Part], convert: Callable[[], Part]) -> Part:
    """Return the part of a program that one of its methods converts to a schema, checked."""
    owner = Owner("program", program.name)

    def fault_of(part: Part) -> str | None:
        return None if isinstance(part, kind) else f"is {described(part)}"

    return checked(owner, f"its {kind.__name__}", convert, fault_of)


def fault_of_edges(answer: object, _: object, problems: MappingOf[str, Problem]) -> str | None:
    """Return why the answer is no edges between these layers, or None."""
    if not isinstance(answer, MappingOf):
        return f"it returned {described(answer)}; expected a mapping from layers to reads"
    try:
        layers_with(problems, answer)
    except (ValueError, AttributeError, TypeError) as error:
        return f"its edges are invalid: {error}"
    return None


def layers_with(problems: MappingOf[str, Problem], edges: Edges) -> tuple[Layer, ...]:
    """Return the layers of a file with their edges.

    Raises:
        ValueError: The edges do not match the problems.
    """
    layers = []
    for name, problem in problems.items():
        known = edges.get(name)
        reads = FrozenDict({tensor: tuple(sources) for tensor, sources in (known or {}).items()})
        after = tuple(dict.fromkeys(read.maker for sources in reads.values() for read in sources))
        named = problem.model_copy(update={"name": name})
        layers.append(Layer(problem=named, after=None if known is None else after, reads=reads))
    return Workload(name="layers", layers=tuple(layers)).layers


def fault_of_flag(answer: object, *_: object) -> str | None:
    """Return the contract violation in an answer of yes or no in a few words, or None."""
    return None if isinstance(answer, bool) else f"returned {described(answer)}, True or False is expected"


def fault_of_verdict(verdict: object, *_: object) -> str | None:
    """Return the contract violation in a verdict in a few words, or None."""
    reasons: object = verdict.reasons if isinstance(verdict, Verdict) else None
    if isinstance(reasons, tuple) and all(isinstance(reason, Reason) for reason in reasons):
        return None
    return f"returned {described(verdict)}, a Verdict with Reasons is expected"


def fault_of_items(kind: type, expected: str, items: object, *_: object) -> str | None:
    """Return the contract violation in a tuple of one type in a few words, or None."""
    if isinstance(items, tuple) and all(isinstance(item, kind) for item in items):
        return None
    return f"returned {described(items)}, a tuple of {expected} is expected"


def fault_of_workload(workload: object, *_: object) -> str | None:
    """Return the contract violation in a loaded workload in a few words, or None."""
    if not isinstance(workload, Workload):
        return f"returned {described(workload)}, a Workload is expected"
    layers: object = workload.layers
    whole = isinstance(layers, tuple) and all(
        isinstance(layer, Layer) and isinstance(layer.problem, Problem) for layer in layers
    )
    if not whole:
        return "returned a Workload whose layers are none"
    try:
        Workload.model_validate({name: getattr(workload, name) for name in Workload.model_fields})
    except (ValueError, AttributeError) as error:
        return f"returned a Workload that is none: {' '.join(str(error).split())[:200]}"
    return None


def fault_of_files(files: object, *_: object) -> str | None:
    """Return the contract violation in rendered files in a few words, or None.

    Names must stay below the output folder.
    """
    if not isinstance(files, MappingOf) or not files:
        return f"returned {described(files)}{' without files' if files == {} else ''}, names with texts are expected"
    for name, text in files.items():
        if not isinstance(name, str) or not isinstance(text, str):
            return f"returned {described(name)} with {described(text)}, names with texts are expected"
        for path in (PurePosixPath(name), PureWindowsPath(name)):
            if not path.parts or path.anchor or ".." in path.parts or "\0" in name:
                return f"wants to write {name[:80]!r}, which is no name below the folder that it is given"
    return None


def fault_of_inputs(inputs: object, *_: object) -> str | None:
    """Return the contract violation in parsed inputs in a few words, or None."""
    if not isinstance(inputs, InputSet):
        return f"returned {described(inputs)}, an InputSet is expected"
    for name, kind in PARTS.items():
        value = getattr(inputs, name)
        if value is not None and not isinstance(value, kind):
            return f"returned {described(value)} as {name}, {kind.__name__} or None is expected"
    warnings: object = inputs.warnings
    if not isinstance(warnings, tuple) or not all(isinstance(warning, str) for warning in warnings):
        return f"returned {described(warnings)} as warnings, a tuple of texts is expected"
    options: object = inputs.model_options
    if not isinstance(options, MappingOf) or not all(isinstance(key, str) for key in options):
        return f"returned {described(options)} as model_options, names with values are expected"
    return None


def fault_of_estimate(answer: object, *_: object) -> str | None:
    """Return the contract violation in an estimator's answer."""
    if not isinstance(answer, Estimate | Reason):
        return f"returned {described(answer)}, an Estimate or a Reason is expected"
    if isinstance(answer, Reason):
        words: object = answer.message
        return None if isinstance(words, str) and words.strip() else "refuses without a word"
    try:
        Estimate.model_validate(answer.model_dump(include=set(Estimate.model_fields), warnings=False))
    except ValueError as error:
        return f"returned an Estimate that is none: {' '.join(str(error).split())[:200]}"
    return None


def fault_of_alternatives(answer: object, problem: Problem) -> str | None:
    """Return the contract violation in an algorithm's answer."""
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes) or not answer:
        return f"returned {described(answer)}, a list of at least one Alternative is expected; refuse with NotConformableError"
    for alternative in answer:
        if not isinstance(alternative, Alternative):
            return f"returned {described(alternative)} among them, an Alternative is expected"
        try:
            whole = Alternative.model_validate_json(alternative.model_dump_json())
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"]))
            return f"returned an Alternative that is none: {where}: {plain_fault(fault)}"
        except (ValueError, AttributeError) as error:
            return f"returned an Alternative that is none: {' '.join(str(error).split())[:200]}"
        wrong = next(whole.faults(problem), None)
        if wrong:
            return f"returned {whole.name}: {wrong}"
    names = [alternative.name for alternative in answer]
    return None if len(set(names)) == len(names) else f"returned alternatives that have one name: {', '.join(names)}"
