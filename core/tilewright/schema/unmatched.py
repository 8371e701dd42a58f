"""Names in architectures and constraints that match nothing in any problem.

They are reported but are not errors, because they may refer to other problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import get_args

from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import NO_CONSTRAINTS, Constraints, Variant
from tilewright.schema.document import suggestion
from tilewright.schema.problem import Problem, Role
from tilewright.schema.structure import LETTERS

ROLES: tuple[str, ...] = get_args(Role)


def unmatched(
    problems: Sequence[Problem], architecture: Architecture, constraints: Constraints = NO_CONSTRAINTS
) -> tuple[str, ...]:
    """Return a sentence for each name that no problem has, with the names that exist.

    Checked are tensors that memories may hold, and tensors and dimensions of rules.
    """
    tensors = list(dict.fromkeys(chain(*(problem.tensor_names for problem in problems), ROLES)))
    told = [
        _sentence(f"memory {memory.name} of {architecture.name} holds", "tensor", word, tensors)
        for memory in architecture.memories
        for word in memory.holds or ()
        if word not in tensors
    ]
    told += [
        _sentence(f"memory {memory.name} of {architecture.name} has bits_per_value of", "tensor", word, tensors)
        for memory in architecture.memories
        for word in memory.bits_per_value
        if word not in tensors
    ]
    told += [
        _sentence(f"memory {memory.name} of {architecture.name} has sparse parts of", "tensor", word, tensors)
        for memory in architecture.memories
        for word in (() if memory.sparse is None else memory.sparse.names)
        if word not in tensors
    ]
    for variant in constraints.variants:
        served = [problem for problem in problems if constraints.variant_for(problem) is variant]
        letters = chain(*(problem.dimension_names for problem in served)) if served else ()
        dimensions = list(dict.fromkeys(letters if variant.structure is None else LETTERS[variant.structure]))
        for what, where, word in _words(variant) if served else ():
            known = dimensions if what == "dimension" else tensors
            if word not in known:
                told.append(_sentence(f"constraints {constraints.name}: the rule for {where} names", what, word, known))
    return tuple(dict.fromkeys(told))


def _words(variant: Variant) -> Iterator[tuple[str, str, str]]:
    """Yield (dimension or tensor, location, name) for every name in the rules."""
    for temporal in variant.temporal:
        for word in (
            *(temporal.only or ()),
            *temporal.factors,
            *temporal.outermost,
            *temporal.order,
            *temporal.innermost,
        ):
            yield "dimension", temporal.memory, word
    for spatial in variant.spatial:
        for word in (*(spatial.only or ()), *spatial.factors):
            yield "dimension", spatial.cluster, word
    for rule in variant.keep:
        for word in (*rule.keep, *rule.bypass, *rule.free):
            yield "tensor", rule.memory, word


def _sentence(where: str, what: str, word: str, known: Sequence[str]) -> str:
    near = suggestion(word, known).removeprefix("; ")
    return f"{where} {what} '{word}', which does not exist; {f'{near} ' if near else ''}known: {', '.join(known)}"
