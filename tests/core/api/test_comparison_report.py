"""Comparison reports: tables, rows and files."""

import csv
from pathlib import Path

import tilewright as tw

LINE = "nk,km->nm; n=4 k=4 m=4"


def test_it_prints_and_is_saved(tmp_path: Path) -> None:
    mappers, models = ["random", "local"], ["timeloop", "oracle"]
    report = tw.compare(LINE, arch="union_edge", mappers=mappers, models=models, evaluations=60)
    assert "einsum on union_edge: EDP by each model" in str(report) and " 1.00 " in str(report)
    assert report._repr_html_().startswith("<table><caption>einsum on union_edge")
    assert repr(report) == "<ComparisonReport of einsum on union_edge: 4 searches>"
    frame = report.to_frame()
    assert len(frame) == 8 and set(frame["model"]) == {"timeloop", "oracle"} and (frame["edp"] > 0).all()
    with (report.save(tmp_path) / "compare.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 8
    assert len(list(tmp_path.glob("0*.yaml"))) == 4
