"""Comparison reports: tables, rows and files."""

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.application.run.sweep import Distance, Proofs
from tilewright.plugin import Proposals, Run, Task

pytestmark = pytest.mark.exhaustive

LINE = "nk,km->nm; n=4 k=4 m=4"


def test_it_prints_and_is_saved(tmp_path: Path) -> None:
    mappers, models = ["random", "local"], ["timeloop", "oracle"]
    report = tw.compare(LINE, arch="union_edge", mappers=mappers, models=models, evaluations=60)
    assert "einsum on union_edge: EDP by each model" in str(report) and " 1.00 " in str(report)
    assert report._repr_html_().startswith("<table><caption>einsum on union_edge")
    assert repr(report) == "<ComparisonReport of einsum on union_edge: 4 searches>"
    frame = report.to_frame()
    assert set(frame["sizes"]) == {"n=4 k=4 m=4"} and report.data()["rows"][0]["dimensions"] == {"n": 4, "k": 4, "m": 4}
    assert len(frame) == 8 and set(frame["model"]) == {"timeloop", "oracle"} and (frame["edp"] > 0).all()
    with (report.save(tmp_path) / "compare.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 8
    assert len(list(tmp_path.glob("0*.yaml"))) == 4


def test_distances_from_the_optimum_are_told_where_it_was_proved() -> None:
    mappers, models = ["exhaustive", "random", "local"], ["timeloop", "maestro"]
    small = "nk,km->nm; n=2 k=2 m=2"
    report = tw.compare(small, arch="union_edge", mappers=mappers, models=models, evaluations=100_000, cache=False)
    frame = report.to_frame()
    for model in models:
        mine = frame[frame["model"] == model]
        least = float(mine["edp"].min())
        assert mine["optimum_proved"].all() and (mine["distance"] * least).tolist() == pytest.approx(
            mine["edp"].tolist()
        )
    assert str(report).count("x optimum") == 2 and "and the proved optimum" in str(report)
    assert {row["prices"][0]["optimum_proved"] for row in report.data()["rows"]} == {True}

    none = tw.compare(LINE, arch="union_edge", mappers=["random", "local"], evaluations=60, cache=False)
    assert "x optimum" not in str(none) and none.to_frame()["distance"].isna().all()


NARROW = {"name": "narrow", "variants": [{"temporal": [{"memory": "L2", "only": ["n"]}]}]}
"""No loop but one over n inside L2."""


@dataclass(frozen=True)
class Half:
    """Draws some mappings, and proves half of what the best costs."""

    def search(self, task: Task, run: Run) -> Proposals:
        costs = yield task.space.sample(run.rng, 100)
        run.prove(float(costs.of(task.objective).min()) / 2)


def test_a_bound_with_a_gap_is_told_as_what_it_is() -> None:
    report = tw.compare(LINE, arch="union_edge", mappers=[Half(), "random"], models="timeloop", evaluations=100)
    first, second = report.to_frame().to_dict("records")
    assert first["distance"] == pytest.approx(2) and first["optimum_proved"] is False
    assert second["distance"] == pytest.approx(2 * second["edp"] / first["edp"])
    assert "<= 2.00" in str(report)


def test_a_proof_says_nothing_of_mappings_outside_its_space() -> None:
    proved, other = (
        tw.compare(LINE, arch="union_edge", mappers=mapper, evaluations=100_000, constraints=rules, cache=False)
        for mapper, rules in (("exhaustive", NARROW), ("random", None))
    )
    row = next(row for row in other.searches if row.layer.result is not None)
    best = None if row.layer.result is None else row.layer.result.best
    proofs = Proofs(proved.searches)
    assert best is not None and proofs.distance(best, "timeloop", 1.0) is None
    (own,) = proved.searches
    assert own.layer.result is not None and own.layer.result.best is not None
    assert proofs.distance(own.layer.result.best, "timeloop", own.layer.result.value) == Distance(1.0, True)
    assert proofs.distance(own.layer.result.best, "oracle", 1.0) is None
