"""Layers of a network that share loops: each part is a group of its own."""

from typing import Any

import pytest

import tilewright as tw
from support.products import products
from support.profiles import first
from support.tiled_groups import CHAINS, TIMELOOP, Case
from tilewright.application.run import tiled_network
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.application.run.network_groups import group_of_layers
from tilewright.application.run.tiled_network import _apart, _layers, _only
from tilewright.errors import NotConformableError, Reason
from tilewright.schema.group import GroupMapping


def test_a_part_is_a_group_where_other_layers_lack_its_axes() -> None:
    """L0 and L1 share a loop over m, and L2 does not; so the whole has no axis m outside, and the part has one."""
    case = Case(0)
    case.layers, case.capacity = CHAINS[3], 40
    case.sizes = dict.fromkeys("abcdm", 2)
    data = case.group().to_data()
    first, second, third = data["tree"]["branches"]
    loop = {"target": "Home", "keep": ["T1"], "temporal_tile_sizes": {"m": 1}}
    shared = {"entries": [{"target": "Home", "keep": []}, loop], "branches": [first, second]}
    kept = [name for name in case.group().users if name != "T1"]
    tree = {"entries": [{"target": "DRAM", "keep": kept}], "branches": [shared, third]}
    group = GroupMapping.model_validate(data | {"axes": {"m": {"L0": "m", "L1": "m"}}, "tree": tree})
    given = group.to_data()["tree"]
    part = _only(group, ["L0", "L1"], given["branches"][0], given["entries"])
    whole, own = evaluate_group(TIMELOOP, group), evaluate_group(TIMELOOP, part)
    assert whole.valid and own.valid and "L1.T2" in (part.tree.entries[0].keep or ())
    of_both = [row for row in whole.accesses if row.layer != "L2" and row.tensor != "T2"]
    assert of_both == [row for row in own.accesses if row.tensor != "L1.T2"]


def bottleneck(rows: int = 8) -> tw.Workload:
    """Return three convolutions, the second one with a stride of 2 and padding, and a product of its own after them."""

    def layer(name: str, sizes: dict[str, int], window: int, **reads: Any) -> dict[str, Any]:
        row, column = ({"terms": {at: window, tap: 1}} for at, tap in (("P", "R"), ("Q", "S")))
        return {
            "problem": {
                "name": name,
                "dimensions": sizes,
                "tensors": [
                    {"name": "I", "role": "input", "projection": ["C", row, column]},
                    {"name": "W", "role": "weight", "projection": ["K", "C", "R", "S"]},
                    {"name": "O", "role": "output", "projection": ["K", "P", "Q"]},
                ],
            },
            **reads,
        }

    half = rows // 2
    point, square = {"R": 1, "S": 1}, {"R": 3, "S": 3}
    # a window reads the rows -1 to 2 * half - 1 of the result before it
    padded = {
        "maker": "expand",
        "sizes": {"k": 16, "p": rows, "q": rows},
        "made": [{"terms": {"k": 1}}, {"terms": {"p": 1}}, {"terms": {"q": 1}}],
        "read": [{"terms": {"k": 1}}, {"terms": {"p": 1}, "offset": 1}, {"terms": {"q": 1}, "offset": 1}],
    }
    return tw.Workload.model_validate(
        {
            "name": "bottleneck",
            "layers": [
                layer("expand", {"K": 16, "C": 4, "P": rows, "Q": rows} | point, 1, after=[]),
                layer(
                    "square",
                    {"K": 4, "C": 16, "P": half, "Q": half} | square,
                    2,
                    after=["expand"],
                    reads={"I": [padded]},
                ),
                layer(
                    "project",
                    {"K": 4, "C": 4, "P": half, "Q": half} | point,
                    1,
                    after=["square"],
                    reads={"I": [{"maker": "square"}]},
                ),
            ],
        }
    )


def machine(words: int) -> tw.Architecture:
    memories: list[dict[str, Any]] = [
        {"name": "DRAM", "read_energy_pj": 100, "write_energy_pj": 100},
        {"name": "SRAM", "read_energy_pj": 2, "write_energy_pj": 2, "capacity_words": words},
        {"name": "RF", "read_energy_pj": 0.1, "write_energy_pj": 0.1, "capacity_words": 8},
    ]
    clusters: list[dict[str, Any]] = [{"name": one["name"], "memories": [one]} for one in memories]
    clusters[1]["fanout"] = {"size": 32}
    return tw.Architecture.model_validate(
        {"name": "small", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.2}}
    )


@pytest.mark.parametrize("words", first(1, 1000, 800))
def test_convolutions_with_stride_and_padding_share_rows(words: int) -> None:
    network = bottleneck()
    fused = tw.fuse_network(network, machine(words), objective="energy", cache=False)
    (part,) = fused.parts
    assert fused.saved > 0.1 and fused.bound is not None and fused.bound <= fused.value * (1 + 1e-9)
    assert all(edge.zeros == (edge.tensor == "expand.O") for edge in part.mapping.edges)
    executed = evaluate_group(build_model("oracle"), part.mapping)
    assert executed.valid, executed.reasons
    # in registers, `timeloop` credits windows that slide along any loop, and an execution those of the last step
    assert executed.energy_pj == pytest.approx(part.report.energy_pj, rel=0.01)
    moved = {row.tensor: row.reads.total for row in part.report.accesses if row.level == "DRAM"}
    assert "expand.O" not in moved and moved["expand.I"] == 4 * 8 * 8


def test_results_that_stay_whole_join_parts() -> None:
    """Two nests exchange a result that is whole at home: they are one part of the network."""
    case = Case(0)
    case.layers, case.capacity = CHAINS[3], 40
    case.sizes = dict.fromkeys("abcdm", 2)
    data = case.group().to_data()
    whole = {"target": "Home", "keep": ["T1"]}
    kept = [name for name in case.group().users if name != "T1"]
    tree = {"entries": [{"target": "DRAM", "keep": kept}, whole], "branches": data["tree"]["branches"]}
    group = GroupMapping.model_validate(data | {"tree": tree})
    assert evaluate_group(TIMELOOP, group).valid
    parts = [_layers(part) for part, _ in _apart(group, group.to_data()["tree"])]
    assert parts == [["L0", "L1"], ["L2"]]


def test_runs_that_are_refused_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **settings: object) -> None:
        reason = Reason(code="network", where="expand", message="networks that cost energy are not counted in groups")
        raise NotConformableError("the search of fused groups", (reason,))

    monkeypatch.setattr(tiled_network, "search_group", refuse)
    fused = tw.fuse_network(bottleneck(), machine(1000), objective="energy", cache=False)
    assert not fused.parts
    (message,) = fused.messages()
    assert message.startswith("note: no shared loops of expand to project were searched: expand: networks that cost")


def test_shared_entries_inside_a_part_have_the_names_of_its_group() -> None:
    """L1 and L2 keep the result of L0, which is outside: in the group of L1, L2 and L3 it is an operand of L1 alone."""
    memories = [
        {"name": name, "read_energy_pj": pj, "write_energy_pj": pj} for name, pj in (("DRAM", 64), ("Buffer", 1))
    ]
    clusters = [{"name": memory["name"], "memories": [memory]} for memory in memories]
    machine = {"name": "small", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}
    network = tw.Workload.model_validate(products(4, (4,) * 5))
    layers = [layer.name for layer in network.layers]
    data = group_of_layers(network, layers, tw.Architecture.model_validate(machine)).group.to_data()
    tree = data["tree"]
    tree["entries"][0]["keep"] = [name for name in tree["entries"][0]["keep"] if name not in ("L1.C", "L2.C")]
    tree["entries"].append({"target": "Buffer", "keep": ["L2.C"]})
    first, *shared, last = tree["branches"]
    tree["branches"] = [first, {"entries": [{"target": "Buffer", "keep": ["L0.C", "L1.C"]}], "branches": shared}, last]
    group = GroupMapping.model_validate(data)
    (alone, _), (part, outside) = _apart(group, tree)
    assert alone["layer"] == "L0"
    piece = _only(group, layers[1:], part, outside)
    assert piece.paths["L1"].mapping.entries[-2].keep == ("A", "C")
    assert evaluate_group(TIMELOOP, piece).valid
