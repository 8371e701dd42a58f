"""Conformance kit for plugin authors and for Tilewright's own plugins.

A plugin distribution needs one test file:

    from tilewright.testing import Case, parametrize_conformance

    @parametrize_conformance("tilewright-genetic")
    def test_conformance(case: Case) -> None:
        case.run()

This file runs all checks. `check_plugin` runs them without pytest. `tilewright.testing.strategies` generates random
problems, architectures and mappings for hypothesis.
"""

from tilewright.application.algorithms.equality import Equality, executed
from tilewright.testing.kit import Check, CheckFailure, Subject
from tilewright.testing.run import (
    Case,
    Outcome,
    cases,
    check_plugin,
    checks_for,
    parametrize_conformance,
    registrations_of,
)

__all__ = [
    "Case",
    "Check",
    "CheckFailure",
    "Equality",
    "Outcome",
    "Subject",
    "cases",
    "check_plugin",
    "checks_for",
    "executed",
    "parametrize_conformance",
    "registrations_of",
]
