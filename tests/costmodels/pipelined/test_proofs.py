"""Proofs by `optimal` under `pipelined` equal the enumeration of the map space."""

import pytest

from support.pipelined import proofs

pytestmark = pytest.mark.exhaustive


def test_a_bound_is_never_above_the_enumerated_optimum() -> None:
    assert proofs(25, 0, 5_000)["proved"] > 10
