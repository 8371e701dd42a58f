"""`map NET --fuse --graph`: which results stay for which readers, and why the others do not."""

import json
from typing import Any

import pytest

import tilewright as tw
from support.command import command
from support.products import products
from tilewright.application.api.fusion_graph import FusionGraph
from tilewright.schema.workload import Workload

MACHINE = tw.Architecture.model_validate(
    {
        "name": "small",
        "clusters": [
            {
                "name": "DRAM",
                "memories": [{"name": "DRAM", "technology": "dram", "read_energy_pj": 64, "write_energy_pj": 64}],
            },
            {
                "name": "Buffer",
                "memories": [
                    {
                        "name": "Buffer",
                        "holds": ["input", "output"],
                        "read_energy_pj": 1,
                        "write_energy_pj": 1,
                        "capacity_words": 2048,
                    }
                ],
            },
        ],
        "compute": {"energy_per_operation_pj": 0.5},
    }
)
SMALL = MACHINE.replace({"Buffer.capacity_words": 1023})


def drawn(data: dict[str, Any], arch: Any = MACHINE) -> FusionGraph:
    workload, architecture = tw.load(data, "workload"), tw.load(arch, "architecture")
    fusion = tw.fuse_network(workload, architecture, objective="energy", progress=False)
    return FusionGraph(fusion)


def test_each_read_says_whether_it_stays_and_why_not() -> None:
    data = products(16, (8, 32, 8, 8, 8, 8))
    layers = data["layers"]
    layers[1]["returned"] = True
    layers[3]["reads"]["A"][0]["cut"] = "a pooling"
    layers[4]["reads"] = {}
    made = drawn(data)
    assert [(read.maker, read.reader, read.operand, read.reason) for read in made.reads] == [
        ("L0", "L1", "A", None),
        ("L1", "L2", "A", "the network returns the result of L1"),
        ("L2", "L3", "A", "a pooling"),
        ("L3", "L4", None, "it is not stated which words are read"),
    ]
    assert made.graph.edges["L0", "L1"] == {"stays": True}
    assert made.graph.edges["L2", "L3"] == {"stays": False, "reason": "a pooling"}
    energies = [node["energy_pj"] for _, node in made.graph.nodes(data=True)]
    assert sum(energies) == pytest.approx(made.fusion.energy_pj)
    assert "1 of 4 reads stay" in repr(made) and "the network returns the result of L1" in str(made)
    assert made.data()["links"][0] == {"maker": "L0", "reader": "L1", "operand": "A", "stays": True, "reason": None}


@pytest.mark.parametrize(
    ("change", "arch", "reason"),
    [
        ({}, "tpu_v1", "no single on-chip memory may hold both operands and results"),
        ({}, SMALL, None),  # it stays in tiles
        ({"rows": True}, SMALL, "its 1,024 words do not fit Buffer, which has 1,023"),
        ({"count": 3}, MACHINE, "L1 and L0 have different counts, 3 and 1"),
        ({"weight": True}, MACHINE, "Buffer may not hold L1.B (weight)"),
        ({"later": True}, MACHINE, "it is not stated whose results L2 reads"),
    ],
)
def test_reasons_of_results_that_may_not_stay(change: dict[str, Any], arch: Any, reason: str | None) -> None:
    sizes = (8, 32, 8, 8) if "later" in change else (8, 32, 8)
    data = products(32, sizes)
    layer = data["layers"][1]
    if "weight" in change:
        layer["problem"]["dimensions"]["N"] = 32
        layer["problem"]["dimensions"]["K"] = 32
        layer["reads"] = {"B": layer["reads"]["A"]}
    if "rows" in change:  # an operator between both layers needs all rows together
        words = {"sizes": {"m": 32, "n": 32}, "made": ["m", "n"], "read": ["m", "n"], "whole": ["m"]}
        layer["reads"] = {"A": [{"maker": "L0"} | words]}
    if "count" in change:
        layer["count"] = 3
    if "later" in change:
        for key in ("after", "reads"):
            del data["layers"][2][key]
    assert drawn(data, arch).reads[0].reason == reason


def test_a_sum_stays_with_its_last_maker() -> None:
    """The reader takes the sum of two results, which is complete with the second one."""
    data = products(16, (8, 8, 8, 8), makers=(0, 1))
    data["layers"][1] |= {"after": [], "reads": {}}
    data["layers"][2] |= {"after": ["L0", "L1"], "reads": {"A": [{"maker": "L0"}, {"maker": "L1"}]}}
    made = drawn(data)
    assert [(read.maker, read.stays) for read in made.reads] == [("L0", True), ("L1", True)]


def test_the_command_draws_the_graph(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    file = tmp_path / "net.yaml"
    file.write_text(Workload.model_validate(products(16, (8, 32, 8))).to_yaml())
    run = command(monkeypatch, capsys)
    words = ("map", file, "--arch", "eyeriss", "--fuse", "--objective", "energy", "--graph")
    ran = run(*words)
    assert ran.code == 0, ran.err
    assert "results that stay in GlobalBuffer" in ran.out and "L1.A" in ran.out
    told = json.loads(run(*words, "--json").out)
    assert [link["stays"] for link in told["links"]] == [True] and told["residents"]
    refused = run("map", "examples/two_products.yaml", "--fuse", "--graph")
    assert refused.code == 2 and "--graph" in refused.err


@pytest.mark.parametrize("cut", [None, "a pooling"])
def test_results_of_other_words_are_no_sum(cut: str | None) -> None:
    """One row is added to all rows of another result; or an operator hides the words of that row, which is then the reason."""
    data = products(16, (8, 8, 8, 8), makers=(0, 1))
    data["layers"][1] |= {"after": [], "reads": {}}
    data["layers"][1]["problem"]["dimensions"]["M"] = 1
    row = {"maker": "L1", "sizes": {"m": 16, "n": 8}, "made": [0, "n"], "read": ["m", "n"]}
    hidden = {"maker": "L1", "cut": cut}
    data["layers"][2] |= {"after": ["L0", "L1"], "reads": {"A": [{"maker": "L0"}, hidden if cut else row]}}
    reason = f"L2.A reads L1: {cut}" if cut else "L2.A joins L0 with results of other words"
    assert drawn(data).reads[0].reason == reason
