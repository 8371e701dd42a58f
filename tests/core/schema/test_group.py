"""Group mappings are read and written whatever their layers are called."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

import tilewright as tw
from support import EXAMPLE_FILES
from support.tiled_groups import SUMS, Case
from tilewright.errors import InputError
from tilewright.schema.group import GroupMapping

EXAMPLE = yaml.safe_load((EXAMPLE_FILES / "two_products.yaml").read_text(encoding="utf-8"))


def named(old: Any, new: str) -> Any:
    """Return the example with another name of the layer `up`."""
    if isinstance(old, dict):
        return {named(key, new): named(value, new) for key, value in old.items()}
    if isinstance(old, list):
        return [named(each, new) for each in old]
    return f"{new}{old[2:]}" if isinstance(old, str) and old.partition(".")[0] == "up" else old


@given(st.text(st.characters(max_codepoint=0xFFFF), min_size=1, max_size=12).filter(str.isprintable))
@example("conv 1")
@example("/net/mm_1")
@example("a.b")
@example("# x: {[, ]")
@example("mlp'\"\n  keep: [")
def test_layers_may_have_any_name(name: str) -> None:
    group = GroupMapping.model_validate(named(EXAMPLE, name))
    assert GroupMapping.from_yaml(group.to_yaml()) == group == GroupMapping.from_yaml(group.to_json())
    assert f"{name}.Weights" in group.users


@pytest.mark.parametrize("name", ["conv 1", "/net/mm_1"])
def test_the_search_returns_names_as_they_are(name: str, tmp_path: Path) -> None:
    found = tw.fuse(GroupMapping.model_validate(named(EXAMPLE, name)), objective="energy", folder=tmp_path)
    assert found.fused.energy_pj == 118_784.0
    assert GroupMapping.from_file(tmp_path / "group.yaml") == found.mapping


def test_two_tensors_of_a_group_have_two_names() -> None:
    data = {**EXAMPLE, "edges": [{**EXAMPLE["edges"][0], "tensor": "down.Weights"}]}
    with pytest.raises(InputError, match=r"edge down\.Weights and tensor Weights of layer down are both named down\.W"):
        GroupMapping.from_yaml(yaml.safe_dump(data))
    layers = [{**EXAMPLE["layers"][0], "name": "a.b"}, {**EXAMPLE["layers"][1], "name": "a"}]
    layers[0]["tensors"] = [
        each | ({"name": "c"} if each["name"] == "Weights" else {}) for each in layers[0]["tensors"]
    ]
    layers[1]["tensors"] = [
        each | ({"name": "b.c"} if each["name"] == "Weights" else {}) for each in layers[1]["tensors"]
    ]
    leaves = [{"layer": each["name"], "entries": []} for each in layers]
    data = {key: EXAMPLE[key] for key in ("schema_version", "kind", "name", "architecture")}
    data |= {"layers": layers, "tree": {"entries": [], "branches": leaves}}
    with pytest.raises(InputError, match=r"tensor c of layer a\.b and tensor b\.c of layer a are both named a\.b\.c"):
        GroupMapping.from_yaml(yaml.safe_dump(data))


@pytest.mark.parametrize("name", [[1], {"a": 1}, None])
def test_the_dimension_of_an_axis_is_a_name(name: Any) -> None:
    axes = {axis: dict.fromkeys(layers, name) for axis, layers in EXAMPLE["axes"].items()}
    with pytest.raises(InputError, match="axes"):
        GroupMapping.from_yaml(yaml.safe_dump(EXAMPLE | {"axes": axes}))


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (["L1"], "L1 cannot add T1: expected a result of the group, and layers that neither make nor read it"),
        (["L2", "L2"], "L2 is listed twice; expected each layer once"),
        (["L9"], "there is no layer L9"),
    ],
)
def test_a_layer_that_adds_a_result_neither_makes_nor_reads_it(added: list[str], message: str) -> None:
    case = Case(0, sums=True)
    case.layers, case.added = SUMS[1]
    case.sizes = {"m": 4, "a": 2, "b": 2, "c": 2}
    data = case.group().to_data()
    assert GroupMapping.model_validate(data).needs["T1"] == {"L0": "T1", "L1": "T1", "L2": "T3"}
    data["edges"][0]["added"] = added
    with pytest.raises(ValueError, match=message):
        GroupMapping.model_validate(data)


def test_a_result_that_is_added_has_the_same_size() -> None:
    case = Case(0, sums=True)
    case.layers, case.added = SUMS[2]
    case.sizes = {"m": 4, "a": 2, "b": 2, "c": 2}
    data = case.group().to_data()
    data["layers"][1]["dimensions"]["b"] = 3
    with pytest.raises(ValueError, match=r"L1 adds T1, but their sizes are 4 x 2 and 4 x 3"):
        GroupMapping.model_validate(data)
