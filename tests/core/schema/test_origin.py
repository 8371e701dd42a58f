"""Origins: places of layers in the files of their networks, and layers that are named by them."""

import pytest

from support.problems import problem_of
from tilewright.errors import Location, UnknownNameError
from tilewright.schema.origin import Origin
from tilewright.schema.workload import Layer, Workload

ORIGINS = {
    "m_fc_2": Origin(node="/m/fc", output="a", file="net.onnx"),
    "m_fc": Origin(node="m_fc", file="net.onnx"),
    "dot_7": Origin.at(Location("folder/net.mlir", 7, 12)),
    "twin": Origin(node="fc", output="b"),
    "other": Origin(node="fc", output="c"),
    "made": None,
}
WORKLOAD = Workload(
    name="net",
    layers=tuple(
        Layer(problem=problem_of("M", "M K").model_copy(update={"name": name}), origin=origin)
        for name, origin in ORIGINS.items()
    ),
)


def test_an_origin_is_told_in_the_words_of_its_file() -> None:
    assert [str(origin) for origin in ORIGINS.values()] == [
        "/m/fc, output a, net.onnx", "m_fc, net.onnx", "net.mlir:7:12", "fc, output b", "fc, output c", "None"
    ]  # fmt: skip
    assert [origin.short for origin in ORIGINS.values() if origin] == ["/m/fc", "m_fc", "net.mlir:7:12", "fc", "fc"]
    assert Workload.from_yaml(WORKLOAD.to_yaml()) == WORKLOAD


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("m_fc", "m_fc"), ("/m/fc", "m_fc_2"), ("m/fc", "m_fc_2"), ("a", "m_fc_2"), ("c", "other"), ("made", "made")
    ],
)  # fmt: skip
def test_a_layer_is_found_by_its_name_or_by_that_in_its_file(name: str, layer: str) -> None:
    found = WORKLOAD.only(name)
    assert [each.name for each in found.layers] == [layer] and found.layers[0].origin == ORIGINS[layer]


def test_names_that_no_layer_or_several_have() -> None:
    with pytest.raises(UnknownNameError, match="several layers from 'fc'") as several:
        WORKLOAD.only("fc")
    assert several.value.hint == "name one: twin, other"
    with pytest.raises(UnknownNameError, match="net.onnx has no layer '/m/f'; did you mean '/m/fc'"):
        WORKLOAD.only("/m/f", "net.onnx")


def test_equal_layers_keep_their_origins() -> None:
    (distinct,) = WORKLOAD.distinct()
    assert distinct.origin == ORIGINS["m_fc_2"] and set(distinct.origins) == set(ORIGINS) - {"made"}
    assert distinct.origins_data()["dot_7"] == {"file": "net.mlir", "line": 7, "column": 12}
    assert [layer.origin for layer in Workload.together([WORKLOAD], [2]).layers] == list(ORIGINS.values())
