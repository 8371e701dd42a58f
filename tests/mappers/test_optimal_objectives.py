"""What `optimal` proves depends on an objective by its powers alone: its kernel, Lemma 4's margin, and whole proofs."""

import dataclasses
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.profiles import first
from support.proofs.checking import check
from support.proofs.drawing import KINDS, Kind, draw
from tilewright.plugin import Objective
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY
from tilewright_mappers.optimal.kernel.multicast import product
from tilewright_mappers.optimal.search_instance import rounding_margin

PRODUCTS = (EDP, ED2P, Objective(2, 1), Objective(1, 3), Objective(3, 2))


@given(st.sampled_from((*PRODUCTS, ENERGY, CYCLES)), st.floats(0.1, 1e9), st.integers(1, 2**40))
def test_the_kernel_computes_the_objective_and_its_derivatives(
    objective: Objective, energy: float, cycles: int
) -> None:
    (a, b), time = objective.powers, float(cycles)
    assert product(a, b, energy, time) == pytest.approx(objective.value(energy, time), rel=1e-15)
    slopes = a * product(a - 1, b, energy, time), b * product(a, b - 1, energy, time)
    assert slopes == pytest.approx(objective.derivatives(energy, time), rel=1e-15)


@given(st.sampled_from(PRODUCTS), st.floats(0.1, 1e9), st.floats(0, 1), st.integers(1, 10**6), st.floats(0.01, 1))
def test_the_margin_pays_for_one_more_cycle(
    objective: Objective, energy: float, leaking: float, cycles: int, share: float
) -> None:
    """Lemma 4: E and D are those of the dominated mapping; the other one leaks for a cycle longer."""
    least = max(1.0, share * cycles)
    worse = objective.value(energy, float(cycles))
    margin = rounding_margin(objective, worse, least)
    better = energy - margin + leaking * energy / cycles
    assume(better > 0)  # no mapping has less energy than none
    assert objective.value(better, cycles + 1.0) <= worse * (1 + 1e-9)


def test_the_margin_of_edp_is_as_before() -> None:
    assert rounding_margin(EDP, 7.1e12, 1234.5) == 3.0 * 7.1e12 / 1234.5**2
    assert rounding_margin(ENERGY, 1.0, 1.0) == rounding_margin(CYCLES, 1.0, 1.0) == float("inf")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", first(1, "ed2p", "e2dp"))
def test_proofs_of_products_cost_what_an_enumeration_finds(kind: Kind, name: str) -> None:
    seen = Counter[str]()
    for seed in range(25):
        verdict = check(dataclasses.replace(draw(seed, kind), objective=name), 1_000)
        assert not verdict.wrong, (seed, verdict.wrong)
        seen[verdict.status] += 1
    assert seen["proved"] >= 3 and not seen["gap left"], seen


@pytest.mark.parametrize("name", first(1, "e3d2p", "ed2p", "e2dp"))
def test_bounds_of_narrow_searches_are_never_above_the_least_product(name: str) -> None:
    for seed in range(12):
        inputs = dataclasses.replace(draw(seed), objective=name)
        verdict = check(inputs, 1_000, relaxed=seed % 2 == 0, parts=seed % 3 == 0, width=1 + seed % 5, orders=1)
        assert not verdict.wrong, (seed, verdict.wrong)
