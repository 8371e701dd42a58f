"""Mapping reports: frozen data with totals, tables, rows and files."""

import csv
import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright.tables import Table

GEMM = "nk,km->nm; n=8 k=6 m=6"
TENSORS: list[Any] = [
    {"name": name, "role": role, "projection": projection}
    for name, role, projection in (("A", "input", ["M", "K"]), ("B", "weight", ["K", "N"]), ("Z", "output", ["M", "N"]))
]
TWO: dict[str, Any] = {
    "kind": "workload",
    "name": "pair",
    "layers": [
        {"problem": {"name": name, "dimensions": {"M": 4, "N": 2, "K": size}, "tensors": TENSORS}, "after": []}
        for name, size in (("one", 4), ("other", 8))
    ],
}


@pytest.fixture
def report() -> tw.MappingReport:
    return tw.map(GEMM, arch="eyeriss", evaluations=300)


def test_a_report_is_frozen_and_has_typed_fields(report: tw.MappingReport) -> None:
    (layer,) = report.layers
    assert report.complete and (report.macs, layer.count) == (288, 1)
    assert (report.cycles, report.energy_pj, report.edp) == (layer.cycles, layer.energy_pj, layer.edp)
    assert layer.report is not None and layer.result is not None and layer.result.evaluated == 300
    assert layer.edp == layer.report.edp == pytest.approx(layer.result.value)
    assert report["einsum"] is layer
    with pytest.raises(KeyError):
        report["nothing"]
    with pytest.raises(FrozenInstanceError):
        report.layers = ()  # type: ignore[misc]


def test_totals_count_layers_as_often_as_they_occur() -> None:
    report = tw.map("squeezenet", arch="eyeriss", evaluations=60)

    assert report.cycles == sum(layer.cycles * layer.count for layer in report.layers if layer.cycles is not None)
    assert sum(layer.count for layer in report.layers) == len(report.workload.layers) > len(report.layers)
    assert report[report.workload.layers[-1].name] in report.layers


def test_figures_that_a_mapper_declares_are_printed_and_on_the_page(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    report = tw.map(GEMM, arch="eyeriss", mapper="cosa", evaluations=30, folder=tmp_path / "run")
    search = report.data()["layers"][0]["search"]
    assert "figures of cosa" in str(report) and f"{search['figures']['compute']:,.2f}" in str(report)
    page = (tmp_path / "run/report.html").read_text()
    assert "Figures of the mapper" in page and "traffic[B]" in page
    assert "figures of" not in str(tw.map(GEMM, arch="eyeriss", mapper="random", evaluations=30))


def test_reports_print(report: tw.MappingReport) -> None:
    text = str(report)
    assert "einsum on eyeriss (constraints row_stationary), mapper optimal, model timeloop" in text
    assert str(report.layers[0].mapping) in text and "300 mappings evaluated in" in text
    assert "stopped by --evaluations 300; --evaluations 3000 lets it go on" in text.splitlines()
    assert report.data()["layers"][0]["search"]["stopped_by"] == "--evaluations 300"
    assert report._repr_html_().startswith("<pre>einsum on eyeriss")
    assert repr(report) == "<MappingReport of einsum on eyeriss: 1 layers>"
    frame = report.to_frame()
    assert list(frame["layer"]) == ["einsum"] and frame["edp"][0] == report.edp


def test_a_layer_keeps_its_sizes_in_rows_and_on_a_narrow_terminal() -> None:
    report = tw.map("resnet50", "eyeriss", mapper="random", evaluations=20)
    (table, *_) = [part for part in report.tables() if isinstance(part, Table)]

    assert report.rows()[0]["sizes"] == report.layers[0].problem.long_dimensions == "K=64 C=3 P=112 Q=112 R=7 S=7"
    for layer in report.layers:
        (line,) = (line for line in table.lines(80) if line.startswith(f"{layer.name} "))
        assert layer.problem.long_dimensions in line


def test_saved_files_and_rows_agree(report: tw.MappingReport, tmp_path: Path) -> None:
    assert report.rows()[0]["mapping_file"] is None
    folder = report.save(tmp_path / "new" / "folder")
    with (folder / "summary.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["mapping_file"] == "001_einsum.yaml" and float(row["edp"]) == report.edp
    loaded = tw.load(folder / "001_einsum.yaml")
    assert isinstance(loaded, tw.MappedProblem) and loaded.mapping == report.layers[0].mapping


def test_data_carry_the_mapping_and_where_energy_and_cycles_go(report: tw.MappingReport) -> None:
    (row,), (layer,) = json.loads(json.dumps(report.data()))["layers"], report.layers

    assert tw.load(row["mapping"], "mapping") == layer.mapping and row["nest"] == str(layer.mapping).splitlines()
    assert sum(part["energy_pj"] for part in row["energy"]) == pytest.approx(layer.energy_pj)
    assert row["limits"][0]["binding_cycles"] == layer.cycles


def test_the_graph_has_the_energy_of_each_layer_with_its_repetitions() -> None:
    report = tw.map("bert_base", "union_edge", mapper="random", evaluations=50, cache=False)
    graph = report.graph

    assert set(graph.edges) == {
        (before, layer.name) for layer in report.workload.layers for before in layer.after or ()
    }
    assert sum(node["energy_pj"] for _, node in graph.nodes(data=True)) == pytest.approx(report.energy_pj)
    assert sum(node["cycles"] for _, node in graph.nodes(data=True)) == report.cycles
    assert sorted(map(tuple, report.data()["links"])) == sorted(graph.edges)


def test_the_graph_of_the_best_ways_adds_up_to_the_totals() -> None:
    report = tw.map(
        "resnet50/n0", "union_edge", mapper="random", evaluations=50, cache=False, algorithms="native,im2col"
    )

    assert [node["energy_pj"] for _, node in report.graph.nodes(data=True)] == [report.energy_pj]


def test_a_layer_without_a_mapping_has_no_energy_in_the_graph() -> None:
    report = tw.map("resnet50/n0", "union_edge", mapper="random", evaluations=50, cache=False, algorithms="ttgt")

    assert ["energy_pj" in node for _, node in report.graph.nodes(data=True)] == [False]


def test_a_list_of_layers_has_no_total(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"mapper": "random", "evaluations": 20, "cache": False, "progress": False}
    listed = tw.map("union_dnn_layers", "eyeriss", folder=tmp_path / "list", **settings)
    network = tw.map("squeezenet", "eyeriss", folder=tmp_path / "network", **settings)
    for report, content in ((listed, "layers"), (network, "network")):
        totals = {name: report.data()["totals"][name] for name in ("macs", "cycles", "energy_pj", "edp")}
        assert report.complete and report.data()["content"] == content == report.workload.content
        assert totals == {name: getattr(report, name) for name in totals}
        assert {value is None for value in totals.values()} == {content == "layers"}
        page = (report.folder / "report.html" if report.folder else tmp_path).read_text("utf-8")
        assert ("list of layers, no total" in page) == (content == "layers")
    assert "union_dnn_layers is a list of layers, not a network: it has no total" in str(listed)
    assert not any(line.startswith("total") for line in str(listed).splitlines()) and "% of energy" not in str(listed)
    assert any(line.startswith("total") for line in str(network).splitlines())
    several = tw.map("union_dnn_layers/DLRM-1", "eyeriss", **settings)
    assert several.edp is not None  # one layer is itself


@pytest.mark.parametrize("content", ["layers", "network"])
def test_what_adds_layers_up_refuses_lists(content: str) -> None:
    work = tw.load({**tw.load(TWO, "workload").to_data(), "content": content}, "workload")
    fronts = tw.front(work, "eyeriss", points=2, cache=False, progress=False)
    if content == "network":
        assert fronts.within(1e9).energy_pj > 0
        assert tw.fusion_gain(work, "eyeriss", objective="energy", cache=False, progress=False).unfused > 0
        return
    with pytest.raises(InputError, match="pair is a list of layers, not a network"):
        fronts.within(1e9)
    with pytest.raises(InputError, match="pair is a list of layers, not a network"):
        tw.fusion_gain(work, "eyeriss", objective="energy", cache=False, progress=False)
    assert tw.load({"kind": "workload", **work.to_data()}, "workload") == work
