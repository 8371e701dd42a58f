"""Queried estimators, their order, and the messages if none answers."""

from collections.abc import Mapping
from typing import Any

import pytest

import tilewright as tw
from tilewright.errors import InputError, NotEstimatedError, PluginError, UnknownPluginError
from tilewright.estimation.asking import Estimators, Question
from tilewright.plugin import Accuracy, Attribute, Estimate, EstimatorSpec, Reason, Registry
from tilewright.plugin.guard.calls import BUILTIN
from tilewright.plugin.guard.processes import warn_once

ABOUT = Accuracy(source="somebody", error="unknown", valid="anywhere")


class Fixed:
    """Always the same energy; None: a refusal."""

    def __init__(self, energy: float | None) -> None:
        self.energy = energy
        self.seen: list[Mapping[str, Attribute]] = []

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        self.seen.append(attributes)
        if self.energy is None:
            return Reason(code="range", where="", message="too small for me")
        return Estimate(energy_pj=self.energy, bits=1, accuracy=ABOUT)


def registry(home: str | None = None, **priorities: tuple[float | None, Any]) -> Registry:
    found = Registry()
    for name, (priority, plugin) in priorities.items():
        spec = EstimatorSpec(
            name=name, summary=".", factory=lambda options, plugin=plugin: plugin, priority=priority,  # type: ignore[misc]
            components={"sram": {"size_bits": 1, "width_bits": 1}},
        )  # fmt: skip
        found.add(spec, home or name)
    return found


def question(pin: str | None = None, component: str = "sram", **offered: Attribute) -> Question:
    return Question(component, {}, "read", 45, offered, pin)


def energy(known: Registry, named: dict[str, Any] | None = None, pin: str | None = None) -> float:
    return Estimators(named, known).ask(question(pin)).estimate.energy_pj


def test_the_highest_priority_answers_then_the_name_decides() -> None:
    known = registry(b=(1, Fixed(1)), a=(1, Fixed(2)), high=(7, Fixed(None)), waiting=(None, Fixed(4)))

    assert energy(known) == 2
    assert energy(known, {"b": {}}) == 1
    assert energy(known, {"waiting": {}, "b": {}}) == 4
    assert energy(known, pin="waiting") == 4


def test_built_in_estimators_are_queried_first_and_who_else_answers_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Installing a package changes no figure."""
    known = registry("tilewright", tables=(0, Fixed(1)), asked=(None, Fixed(2)))
    for name, priority, answer in (("all", 1e9, 3), ("tables", 1e9, 4)):
        known.add(registry("elsewhere", **{name: (priority, Fixed(answer))}).registrations[0].spec, "elsewhere", "2.0")
    assert energy(known) == 1 and energy(known, {"elsewhere/all": {}}) == 3 and caplog.text == ""
    known.registrations[0] = registry("tilewright", tables=(0, Fixed(None))).registrations[0]
    warn_once.cache_clear()
    assert energy(known) == 3
    assert "note: sram is estimated by estimator 'all' of elsewhere 2.0" in caplog.text


def test_where_nobody_answers_every_refusal_is_told() -> None:
    known = registry(a=(1, Fixed(None)), waiting=(None, Fixed(4)))
    with pytest.raises(NotEstimatedError) as told:
        Estimators(None, known).ask(question())
    with pytest.raises(NotEstimatedError, match="does not know 'abacus'; known: sram"):
        Estimators(None, known).ask(question(component="abacus"))

    assert [(reason.where, reason.code) for reason in told.value.reasons] == [
        ("a/a", "range"),
        ("waiting/waiting", "unasked"),
    ]
    assert told.value.data()["reasons"] and "read of sram at 45 nm" in told.value.headline


def test_sizes_that_follow_are_handed_to_those_that_take_them() -> None:
    plugin = Fixed(1)
    Estimators(None, registry(BUILTIN, a=(1, plugin))).ask(question(size_bits=8, width_bits=2, adder_bits=4))

    assert plugin.seen == [{"size_bits": 8, "width_bits": 2}]


def test_one_that_breaks_is_passed_over_unless_it_was_named() -> None:
    known = registry(a=(2, Fixed(-1)), b=(1, Fixed(3)))

    with pytest.raises(PluginError, match="estimator 'a' of a .* failed"):
        energy(known, pin="a")
    with pytest.raises(PluginError):
        energy(known, {"a": {}})
    assert energy(known) == 3


class Odd:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def estimate(self, *words: object) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


WHOLE = Estimate(energy_pj=1, bits=1, accuracy=ABOUT)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "returned None"),
        (1.5, "returned a float"),
        (WHOLE.model_copy(update={"energy_pj": float("nan")}), "that is none"),
        (WHOLE.model_copy(update={"area_um2": -1.0}), "that is none"),
        (WHOLE.model_copy(update={"accuracy": "good"}), "that is none"),
        (Reason(code="x", where="", message=" "), "refuses without a word"),
        (KeyError("K"), "raised KeyError"),
        (SystemExit(3), "ended the program"),
    ],
)
def test_whatever_comes_back_is_checked(answer: object, said: str) -> None:
    with pytest.raises(PluginError, match=said):
        energy(registry(a=(1, Odd(answer))), pin="a")


def test_a_component_is_estimated_action_by_action() -> None:
    report = tw.estimate("sram", {"size_bits": 524288, "width_bits": 64}, technology_nm=45)

    assert report.energy_pj("read") == pytest.approx(25.87, rel=1e-3)
    assert report.area_um2 == pytest.approx(209050, rel=1e-3)
    assert [row["action"] for row in report.data()["estimates"]] == ["read", "write"]
    assert "pJ/bit" in str(report) and "CACTI" in str(report)


def test_words_are_checked() -> None:
    with pytest.raises(InputError, match="expected nanometres"):
        tw.estimate("sram", technology_nm="45nm")  # type: ignore[arg-type]
    with pytest.raises(UnknownPluginError, match="did you mean 'tables'"):
        tw.estimate("sram", technology_nm=45, estimator="table")
    with pytest.raises(InputError, match="estimator is not named"), tw.estimators("tables", cacti={"program": "x"}):
        pass
    with tw.estimators("tables"):
        assert tw.estimate("dummy", technology_nm=45).answers["read"].estimator == "tables"
