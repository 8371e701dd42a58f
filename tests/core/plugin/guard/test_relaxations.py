"""Relaxations: one that is none is the failure of its cost model, and plugins get no arrays of the map space."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import PluginError
from tilewright.plugin import Relaxation
from tilewright.plugin.guard.models import GuardedEvaluator, guarded_evaluator
from tilewright.testing.reference import PlainModel

SPACE = tw.space("nk,km->nm; n=4 k=4 m=4", "eyeriss")


class Changed:
    """An evaluator whose relaxation has other fields; `told` receives what it was asked with."""

    def __init__(self, told: Callable[[Relaxation, Any], object]) -> None:
        self.told, self.evaluator = told, PlainModel().bind(SPACE.problem, SPACE.architecture)

    def evaluate_batch(self, batch: Any) -> Any:
        return self.evaluator.evaluate_batch(batch)

    def explain(self, mapping: Any) -> Any:
        return self.evaluator.explain(mapping)

    def relaxation(self, skeleton: Any, keeps: Any = None) -> Any:
        return self.told(self.evaluator.relaxation(skeleton, keeps), keeps)


def guarded(told: Callable[[Relaxation, Any], object]) -> GuardedEvaluator:
    evaluator: Any = Changed(told)
    return guarded_evaluator(evaluator, SPACE.problem, SPACE.architecture)


def with_field(name: str, change: Callable[[Any], object]) -> Callable[[Relaxation, Any], object]:
    def told(relaxation: Relaxation, _: object) -> Relaxation:
        object.__setattr__(relaxation, name, change(getattr(relaxation, name)))
        return relaxation

    return told


WRONG: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "not a number": ("read_pj", lambda prices: prices * np.nan, "nan in read_pj"),
    "endless": ("fill_pj", lambda prices: prices + np.inf, "inf in fill_pj"),
    "negative": ("update_pj", lambda prices: prices - 1e9, "in update_pj"),
    "no bandwidth": (
        "read_bandwidth",
        lambda words: words * 0 if np.isfinite(words).all() else 0.0 / words,
        "0 in read_bandwidth",
    ),
    "nan bandwidth": ("shared_bandwidth", lambda words: words * np.nan, "nan in shared_bandwidth"),
    "leakage": ("leakage_pj", lambda leaks: leaks - 1, "-1 in leakage_pj"),
    "memory": ("memory", lambda indices: indices + 90, "in memory"),
    "gate": ("gate", lambda indices: indices - 1, "-1 in gate"),
    "moved": ("moved", lambda _: np.full((5, 3), 2.0), "2 in moved"),
    "shape": ("memory", lambda indices: indices[1:], "integers of shape"),
    "kind": ("shared", lambda shared: shared.astype(float), "bools of shape"),
    "text": ("read_pj", lambda _: "cheap", "a str as read_pj, an array is expected"),
    "list": ("gate", lambda gate: gate.tolist(), "a list as gate, an array is expected"),
    "text of a number": ("compute_pj", lambda _: "1", "numbers of shape ()"),
    "huge": ("cycles_per_operation", lambda _: 1e80, "1e+80 in cycles_per_operation"),
    "switch": ("exact", lambda _: None, "None as exact, a bool is expected"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_relaxation_that_is_none_names_its_model(name: str) -> None:
    field, change, told = WRONG[name]
    with pytest.raises(
        PluginError, match=r"cost model 'Changed' failed: relaxation returned a Relaxation with "
    ) as error:
        guarded(with_field(field, change)).relaxation(SPACE.skeleton, SPACE.keeps)
    assert told in str(error.value)


def test_the_space_keeps_its_arrays() -> None:
    before = SPACE.keeps[0].copy()

    def told(relaxation: Relaxation, keeps: Any) -> Relaxation:
        for array in keeps:
            array[:] = False
        return relaxation

    assert guarded(told).relaxation(SPACE.skeleton, SPACE.keeps) is not None
    assert (SPACE.keeps[0] == before).all()


def test_a_relaxation_in_order_passes() -> None:
    assert guarded(lambda relaxation, _: relaxation).relaxation(SPACE.skeleton, None) is not None
    assert guarded(lambda *_: None).relaxation(SPACE.skeleton, None) is None
