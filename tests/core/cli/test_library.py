"""`tilewright library`: what there is, and what feeds what in a workload."""

import json
from pathlib import Path

import networkx as nx
import pytest

from support.command import Command
from tilewright import library


def test_architectures_and_workloads_are_listed(tilewright: Command) -> None:
    data = tilewright("library", "--json").data
    assert {each["name"] for each in data["archs"]} == set(library.names("architectures"))
    assert {"resnet50", "quickflow_convs"} <= {each["name"] for each in data["workloads"]}
    assert "resnet50" not in tilewright("library", "archs").out


def test_a_workload_is_shown_with_what_feeds_what(tilewright: Command, tmp_path: Path) -> None:
    """In words, in JSON, and as a graph in two formats: always the same edges."""
    shown = tilewright("library", "show", "resnet50", "--json").data["layers"]
    edges = {(before, layer["name"]) for layer in shown for before in layer["after"]}
    assert len(edges) > len(shown) > 50
    files = [tmp_path / name for name in ("net.graphml", "net.json")]
    for file in files:
        ran = tilewright("library", "show", "resnet50", "-o", file)
        assert ran.code == 0 and f"{len(edges)} edges" in ran.err
    assert all(", ".join(layer["after"]) in ran.out for layer in shown)
    graphs = nx.read_graphml(files[0]), nx.node_link_graph(json.loads(files[1].read_text()), edges="edges")
    for graph in graphs:
        assert set(graph.edges) == edges
        assert all(graph.nodes[layer["name"]]["macs"] == layer["macs"] for layer in shown)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show",), "needs a workload"),
        (("show", "resnet51"), "did you mean 'resnet50'"),
        (("archs", "resnet50"), "tilewright library show resnet50"),
        (("show", "resnet50", "-o", "net.png"), "cannot be written as net.png"),
        (("show", "resnet50", "-o", "absent/net.json"), "cannot write to absent/net.json"),
    ],
)
def test_wrong_calls_say_what_to_type(tilewright: Command, words: tuple[str, ...], said: str) -> None:
    ran = tilewright("library", *words)
    assert ran.code == 2 and said in ran.err and "Traceback" not in ran.err
