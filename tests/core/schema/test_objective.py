"""Objectives are products of powers of energy and cycles. Nothing else knows which there are."""

import itertools
import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from support import ROOT
from tilewright.errors import InputError
from tilewright.plugin import Costs, Objective
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, KNOWN, ObjectiveName
from tilewright.values import Model

EVERY = [Objective(*powers) for powers in itertools.product(range(10), repeat=2) if math.gcd(*powers) == 1]
FIGURES = st.floats(1e-3, 1e9), st.integers(1, 2**40), st.sampled_from(EVERY)


def test_a_name_stands_for_an_objective() -> None:
    assert [(each.name, each.title, each.unit, each.is_additive) for each in (*KNOWN, Objective(2, 1))] == [
        ("edp", "EDP", "pJ x cycles", False),
        ("ed2p", "ED2P", "pJ x cycles^2", False),
        ("energy", "energy", "pJ", True),
        ("cycles", "cycles", "cycles", True),
        ("e2dp", "E2DP", "pJ^2 x cycles", False),
    ]
    assert len(EVERY) == len({each.name for each in EVERY}) == 57
    assert all(Objective.named(each.name) == each == Objective.named(each) for each in EVERY)


@pytest.mark.parametrize("name", ["latency", "EDP", "ed", "e1dp", "ed1p", "e2d2p", "e0dp", "ed10p", "edp2", "", "3"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"objective is '{name}'; expected edp, ed2p, energy or cycles"):
        Objective.named(name)


@pytest.mark.parametrize("powers", [(0, 0), (2, 0), (0, 2), (2, 2), (3, 6), (-1, 1), (1, 10)])
def test_powers_without_a_meaning_of_their_own_are_refused(powers: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="expected 0 to 9 without a common divisor"):
        Objective(*powers)


@given(*FIGURES)
def test_arrays_have_the_values_of_numbers(energy: float, cycles: int, objective: Objective) -> None:
    value = objective.value(energy, cycles)
    assert value == pytest.approx(energy**objective.energy_power * cycles**objective.cycle_power)
    pair = np.array([energy, 1.0]), np.array([cycles, 1.0])
    assert objective.value(*pair).tolist() == [value, 1.0]
    assert Costs(np.ones(2, np.bool_), *pair).of(objective).tolist() == [value, 1.0]
    assert objective.needed(energy, cycles) == tuple(
        figure for figure, power in zip((energy, cycles), objective.powers, strict=True) if power
    )


def test_energy_and_cycles_are_their_own_values() -> None:
    """Whole cycles stay whole, and no digit changes."""
    assert ENERGY.value(0.1, 3) == 0.1 and EDP.value(0.1, 3) == 0.1 * 3
    assert (CYCLES.value(0.1, 3), type(CYCLES.value(0.1, 3))) == (3, int)
    assert ED2P.value(math.inf, math.inf) == ENERGY.value(math.inf, math.inf) == math.inf


@given(*FIGURES, st.floats(0, 1e9), st.floats(0, 1e9))
def test_the_derivatives_bound_every_increase(
    energy: float, cycles: int, objective: Objective, more: float, longer: float
) -> None:
    worth, time = objective.derivatives(energy, cycles)
    bound = objective.value(energy, cycles) + worth * more + time * longer
    assert objective.value(energy + more, cycles + longer) >= bound * (1 - 1e-9)


def test_models_store_the_name() -> None:
    class Holder(Model):
        objective: Objective | None

    for each in (*EVERY, None):
        stored = Holder(objective=each).model_dump_json()
        assert stored == ('{"objective":null}' if each is None else f'{{"objective":"{each.name}"}}')
        assert Holder.model_validate_json(stored).objective == each
    with pytest.raises(ValueError, match="objective is 'latency'; expected edp"):
        Holder.model_validate({"objective": "latency"})
    assert {"type": "string"} in Holder.model_json_schema()["properties"]["objective"]["anyOf"]


def test_one_module_and_two_texts_name_ed2p() -> None:
    """So a further objective needs no other change in the product; `e2dp` needs none at all."""
    files = (path for name in ("core", "plugins", "adapters") for path in (ROOT / name).rglob("*.py"))
    naming = {file.name for file in files if "__pycache__" not in file.parts and "ed2p" in file.read_text().lower()}
    assert naming == {"objective.py", "settings.py", "fusion.py"}


def test_a_product_of_other_powers_serves_a_whole_run(tmp_path: Path) -> None:
    """A search, its file, its certificate, and a comparison of mappers."""
    words: dict[str, Any] = {"objective": "e2dp", "cache": tmp_path / "cache", "progress": False}
    problem = "nk,km->nm; n=6 k=4 m=4"
    report = tw.map(problem, "union_edge", mapper="optimal", folder=tmp_path / "run", **words)
    (layer,) = report.layers
    assert layer.result is not None and layer.report is not None and layer.result.proved == "yes"
    assert layer.result.value == pytest.approx((layer.energy_pj or 0.0) ** 2 * (layer.cycles or 0))
    assert layer.result.value == layer.report.of("e2dp") and report.data()["objective"] == "e2dp"
    (file,) = (tmp_path / "run").glob("*.certificate.yaml")
    assert "has less E2DP than" in file.read_text() and "objective: e2dp" in file.read_text()
    checked = tw.verify_certificate(file, samples=10)
    assert checked.right, str(checked)
    exhaustive = tw.map(problem, "union_edge", mapper="exhaustive", **words).layers[0].result
    assert exhaustive is not None and exhaustive.value == layer.result.value
    again = tw.map(problem, "union_edge", mapper="optimal", **words).layers[0]
    assert again.result is not None and again.result.value == layer.result.value
    compared = tw.compare(problem, "union_edge", mappers=["quickflow", "random"], evaluations=50, **words)
    assert "E2DP by each model" in str(compared)


def test_a_comparison_with_a_text_names_what_to_compare() -> None:
    with pytest.raises(TypeError, match="no text; compare its name with 'edp': objective.name"):
        assert Objective(1, 1) == "edp"
    assert Objective(1, 1) == Objective.named("edp") and Objective(1, 1) != Objective(1, 2)


def test_type_checkers_know_all_names() -> None:
    """Powers 0 to 9 without a common divisor."""
    assert sorted(get_args(ObjectiveName)) == sorted(objective.name for objective in EVERY)
    assert all(Objective.named(name).name == name for name in get_args(ObjectiveName))
