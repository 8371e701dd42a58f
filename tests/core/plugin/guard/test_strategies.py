"""Strategies that break their contract become one error that names them."""

from collections.abc import Iterator
from typing import Any

import pytest

import tilewright as tw
from support.profiles import first
from tilewright.errors import InputError, PluginError
from tilewright.plugin import PointProposal, StrategySpec, installed

FORMULA = "nk,km->nm; n=4 k=4 m=4"
SPACE: dict[str, Any] = {
    "kind": "space",
    "name": "operations",
    "architecture": {
        "clusters": [
            {"name": "Main", "memories": [{"name": "Main", "read_energy_pj": 9, "write_energy_pj": 9}]},
            {"name": "Buffer", "memories": [{"name": "Buffer", "read_energy_pj": 1, "write_energy_pj": 1}]},
        ],
        "compute": {"energy_per_operation_pj": 1},
    },
    "choices": {"compute.energy_per_operation_pj": [1, 2, 3]},
}


class Fixed:
    """Yields fixed groups, whatever they are."""

    def __init__(self, *groups: Any) -> None:
        self.groups = groups

    def explore(self, task: Any) -> Iterator[Any]:
        for group in self.groups:  # noqa: UP028 -- `yield from` would send results to the tuple
            yield group


class Plain:
    def explore(self, task: Any) -> Any:
        return [[PointProposal(0)]]


class Raising:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def explore(self, task: Any) -> Iterator[Any]:
        yield [PointProposal(0)]
        raise self.error


def explored(strategy: Any, monkeypatch: pytest.MonkeyPatch, **words: Any) -> tw.ExplorationReport:
    registry = installed()
    monkeypatch.setattr(registry, "registrations", list(registry.registrations))
    registry.add(StrategySpec(name="fixed", summary="", factory=lambda options: strategy), "elsewhere", "1.0")
    return tw.explore(FORMULA, SPACE, strategy="fixed", mapper="exhaustive", cache=False, progress=False, **words)


@pytest.mark.parametrize(
    ("strategy", "said"),
    first(
        6,
        (Fixed(3), "yielded a int, a list of PointProposal is expected"),
        (Fixed([0]), "yielded a int among them"),
        (Fixed([PointProposal(3)]), "proposed point 3 of a space with 3"),
        (Fixed([PointProposal("0")]), "proposed point 0 of a space with 3"),  # type: ignore[arg-type]
        (Fixed([PointProposal(0), PointProposal(0)]), "proposed point 0 twice"),
        (Fixed([PointProposal(0)], [PointProposal(0)]), "proposed point 0 twice"),
        (Fixed([PointProposal(0, " ")]), "left point 0 out without a reason"),
        (Fixed([PointProposal(0, None, 1)]), "has a int as `together` of point 0"),  # type: ignore[arg-type]
        (Fixed(*[[]] * 2000), "proposed nothing 1,000 times in a row"),
        (Plain(), "explore returned a list, a generator is expected"),
        (Raising(KeyError("K")), "raised KeyError: 'K'"),
    ),
)
def test_a_broken_contract_names_the_strategy(strategy: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PluginError) as raised:
        explored(strategy, monkeypatch)
    assert "strategy 'fixed' of elsewhere 1.0 failed" in str(raised.value) and said in str(raised.value)


def test_more_points_than_asked_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PluginError, match="proposed more than 1 points"):
        explored(Fixed([PointProposal(0)], [PointProposal(1)]), monkeypatch, points=1)


def test_errors_for_the_user_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no such space"):
        explored(Raising(InputError("no such space")), monkeypatch)


def test_proposals_are_searched_or_left_out_with_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    report = explored(Fixed([PointProposal(2), PointProposal(0, "not today")]), monkeypatch)
    assert {point.index: point.told for point in report.points} == {2: None, 0: "not today"}
    assert report.complete and report.record.strategy == "fixed"
