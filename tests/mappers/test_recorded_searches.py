"""The staged search on recorded tasks: the optimum that an enumeration found, with as many states as were recorded."""

from typing import Any

import pytest

from support.proofs.checking import PROVED, ROUNDING
from support.proofs.searches import KNOWN, recorded, searched


@pytest.mark.parametrize("task", recorded(), ids=lambda task: str(task["seed"]))
def test_a_search_proves_the_least_cost_with_the_recorded_states(task: dict[str, Any]) -> None:
    """More states come from a weaker bound or less dominance. Fewer need a proof, and then `support.proofs.searches`."""
    least = task["cost"]
    for run, known in zip(task["runs"], KNOWN, strict=True):
        result = searched(task, known)
        assert result.error is None
        assert result.value >= least * (1 - ROUNDING)
        assert result.figures["states"] == run["states"]
        if run["bound"] is None:
            assert result.lower_bound is None
            continue
        assert result.lower_bound is not None
        assert run["bound"] * (1 - ROUNDING) <= result.lower_bound <= least * (1 + ROUNDING)
        if run["bound"] >= least * (1 - PROVED):
            assert result.value <= least * (1 + PROVED)
