"""Some of the proofs that `test_proofs` compares with an enumeration, few and small enough for every run."""

from collections import Counter

import pytest

from support.proofs.checking import check
from support.proofs.drawing import KINDS, Kind, draw

LIMIT = 2_000
"""Mappings of the largest space enumerated here."""
SEEDS = range(15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("capped", [False, True])
def test_proofs_cost_what_an_enumeration_finds(kind: Kind, capped: bool) -> None:
    seen = Counter[str]()
    for seed in SEEDS:
        verdict = check(draw(seed, kind), LIMIT, capped=capped)
        assert not verdict.wrong, (seed, verdict.wrong)
        seen[verdict.status] += 1
    assert seen["proved"] >= 3 and not seen["gap left"], seen


def test_bounds_of_narrow_searches_are_never_above_the_optimum() -> None:
    for seed in SEEDS:
        verdict = check(draw(seed), LIMIT, relaxed=seed % 2 == 0, parts=seed % 3 == 0, width=1 + seed % 5, orders=1)
        assert not verdict.wrong, (seed, verdict.wrong)
