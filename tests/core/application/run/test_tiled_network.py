"""Layers of a network that share loops: each part is a group of its own."""

from support.tiled_groups import CHAINS, TIMELOOP, Case
from tilewright.application.run.evaluation import evaluate_group
from tilewright.application.run.tiled_network import _only
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
