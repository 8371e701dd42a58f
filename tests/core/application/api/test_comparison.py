"""`compare`: what the command line prints, as an object."""

import pytest

import tilewright as tw
from support.command import Command, command

LINE = "nk,km->nm; n=4 k=4 m=4"


@pytest.fixture
def report() -> tw.ComparisonReport:
    return tw.compare(
        LINE, arch="union_edge", mappers=["random", "local"], models=["timeloop", "oracle"], evaluations=60
    )


def test_every_mapper_under_every_model_by_all(report: tw.ComparisonReport) -> None:
    found = [(row.point.mapper, row.point.model) for row in report.searches]
    assert found == [("random", "timeloop"), ("local", "timeloop"), ("random", "oracle"), ("local", "oracle")]
    for row in report.searches:
        assert [each.model for each in row.reports] == ["timeloop", "oracle"]
        assert tw.evaluate(row.layer, models="oracle").reports[0].edp == row.reports[1].edp
    assert report.complete


def test_it_finds_what_the_command_line_finds(
    report: tw.ComparisonReport, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    words = ("--mappers", "random,local", "--models", "timeloop,oracle", "--evaluations", 60)
    ran = run("compare", LINE, "--arch", "union_edge", *words, "--json")
    assert [row["prices"] for row in ran.data["rows"]] == [row["prices"] for row in report.data()["rows"]]
    assert ran.data.keys() == report.data().keys()


def test_options_may_be_for_one() -> None:
    report = tw.compare(
        LINE, arch="union_edge", mappers="random", models="timeloop,oracle", evaluations=20,
        model_options={"oracle": {"max_operations": 10}},
    )  # fmt: skip
    assert [row.layer.report is not None for row in report.searches] == [True, False]
    assert "expected at most 10" in str(report)
