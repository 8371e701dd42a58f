"""Proofs by `optimal` under `pipelined` equal the enumeration of the map space."""

import pytest

from support.pipelined import proofs
from support.profiles import first


@pytest.mark.parametrize("count", first(1, 4, 25))
def test_a_bound_is_never_above_the_enumerated_optimum(count: int) -> None:
    assert proofs(count, 0, 5_000)["proved"] > 0.4 * count
