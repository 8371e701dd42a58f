"""Interfaces of frontends, which load workloads, and of algorithms, which rewrite problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tilewright.schema.alternative import Alternative
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload


@runtime_checkable
class Frontend(Protocol):
    """A reader of workloads from a source: a file name, a formula, or a library name that it declares.

    Example:
        >>> from tilewright.plugin import Frontend, FrontendSpec, installed
        >>> isinstance(installed().make(FrontendSpec, "einsum"), Frontend)
        True
    """

    def recognises(self, source: str) -> bool:
        """Return whether the source looks like this frontend's; cheap, and never raises."""
        ...

    def load(self, source: str) -> Workload:
        """Load a workload. Its `unmapped` lists operations without a mapping.

        Raises:
            InputError: The source is invalid; the message names the location.
        """
        ...


@runtime_checkable
class Algorithm(Protocol):
    """A rewriter of a problem into equivalent work.

    Example:
        >>> from tilewright.plugin import Algorithm, AlgorithmSpec, installed
        >>> isinstance(installed().make(AlgorithmSpec, "im2col"), Algorithm)
        True
    """

    def alternatives(self, problem: Problem) -> Sequence[Alternative]:
        """Return one or more alternatives, the preferred one first. Equal problems give equal results.

        Raises:
            NotConformableError: The algorithm does not apply, with the reasons.
        """
        ...
