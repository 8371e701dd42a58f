"""Frontend and Algorithm: the doors through which work comes in, and is put another way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tilewright.schema.alternative import Alternative
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload


@runtime_checkable
class Frontend(Protocol):
    """Makes a workload from a source (a file name, a formula, a library name it declared)."""

    def recognises(self, source: str) -> bool:
        """Cheap and never raises: does this look like mine?"""
        ...

    def load(self, source: str) -> Workload:
        """Read it. Raises InputError with the place of the fault; lists what it does not map in `unmapped`."""
        ...


@runtime_checkable
class Algorithm(Protocol):
    """Turns a problem into equivalent work."""

    def alternatives(self, problem: Problem) -> Sequence[Alternative]:
        """One or more ways to compute the problem, the one to prefer first; the same for the same problem. Raises
        NotConformableError with the reasons where the algorithm does not apply."""
        ...
