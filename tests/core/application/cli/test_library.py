"""`tilewright library`: its contents, and the producers and consumers of a workload's tensors."""

import json
from pathlib import Path

import networkx as nx
import pytest

import tilewright as tw
from support.command import Command
from tilewright import library


def test_architectures_and_workloads_are_listed(tilewright: Command) -> None:
    data = tilewright("library", "--json").data
    assert {each["name"] for each in data["archs"]} == set(library.names("architectures"))
    assert {"resnet50", "quickflow_convs"} <= {each["name"] for each in data["workloads"]}
    assert "resnet50" not in tilewright("library", "archs").out


def test_architectures_name_the_cost_models_that_fit(tilewright: Command) -> None:
    models = {each["name"]: each["models"] for each in tilewright("library", "archs", "--json").data["archs"]}
    assert "maestro" in models["union_edge"] and models == {name: tw.fit(name).fitting for name in models}
    (line,) = (line for line in tilewright("library", "archs").out.splitlines() if line.startswith("tpu_v1 "))
    assert line.endswith(", ".join(models["tpu_v1"])) and "maestro" not in line


def test_a_workload_is_shown_with_what_feeds_what(tilewright: Command, tmp_path: Path) -> None:
    """In words, in JSON, and as a graph in two formats: always the same edges."""
    shown = tilewright("library", "layers", "resnet50", "--json").data["layers"]
    edges = {(before, layer["name"]) for layer in shown for before in layer["after"]}
    assert len(edges) > len(shown) > 50
    files = [tmp_path / name for name in ("net.graphml", "net.json")]
    for file in files:
        ran = tilewright("library", "layers", "resnet50", "-o", file)
        assert ran.code == 0 and f"{len(edges)} edges" in ran.err
    assert all(", ".join(layer["after"]) in ran.out for layer in shown)
    graphs = nx.read_graphml(files[0]), nx.node_link_graph(json.loads(files[1].read_text()), edges="edges")
    for graph in graphs:
        assert set(graph.edges) == edges
        assert all(graph.nodes[layer["name"]]["macs"] == layer["macs"] for layer in shown)


@pytest.mark.parametrize(
    "name",
    [
        "eyeriss",
        "eyeriss.row_stationary",
        "quickflow_convs",
        "quickflow_convs/III",
        "resnet50",
        "nk,km->nm; n=4 k=5 m=6",
    ],
)
def test_a_file_to_start_from_is_printed_as_it_is_shipped(tilewright: Command, name: str, tmp_path: Path) -> None:
    shown, file = tilewright("library", "show", name), tmp_path / "mine.yaml"
    assert shown.code == 0 and tilewright("library", "show", name, "-o", file).code == 0
    dataflow = "dataflow: eyeriss.row_stationary\n" if name == "eyeriss" else ""  # a copy names it, for other names
    copied = tw.load(file)
    assert not dataflow or (isinstance(copied, tw.Architecture) and copied.dataflow == "eyeriss.row_stationary")
    assert file.read_text() == shown.out
    assert (copied.model_copy(update={"dataflow": None}) if dataflow else copied) == tw.load(name)
    assert tw.load(tilewright("library", "show", name, "--json").data) == copied
    folder = {"eyeriss": "architectures", "quickflow_convs": "workloads", "eyeriss.row_stationary": "constraints"}
    if name in folder:
        shipped = Path(library.__file__).parent / folder[name] / f"{name}.yaml"
        assert dataflow in shown.out and shown.out.replace(dataflow, "", 1) == shipped.read_text()
        assert name != "eyeriss" or shown.out.startswith("# ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show",), "missing argument"),
        (("show", "eyeris"), "did you mean 'eyeriss'"),
        (("layers", "resnet51"), "did you mean 'resnet50'"),
        (("layers", "resnet50", "-o", "net.png"), "cannot write a graph as net.png"),
        (("layers", "resnet50", "-o", "absent/net.json"), "cannot write"),
        (("show", "eyeriss", "-o", "absent/mine.yaml"), "cannot write"),
    ],
)
def test_wrong_calls_say_what_to_type(tilewright: Command, words: tuple[str, ...], said: str) -> None:
    ran = tilewright("library", *words)
    assert ran.code == 2 and said in ran.err and "Traceback" not in ran.err
