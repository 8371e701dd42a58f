"""Networks of the library next to the figures of their papers, as docs/library.md prints them."""

import math

import pytest

import tilewright as tw
from support import ROOT
from tilewright.application.api.load import workload_names
from tilewright.schema.workload import Workload

HEAD = "| network | layers | MACs | published | weights | published parameters | source |"
PRODUCTS = (".scores", ".context")
"""Ends of the names of products of two results, which have no weights."""
COUNTED = {
    # parameters by torchvision, or by BVLC for AlexNet; those that no layer has: biases of layers, scales and shifts of batch norms
    "resnet50": (25_557_032, 1000 + 2 * 26_560),
    "vgg19": (143_667_240, 5_504 + 9_192),
    "densenet121": (7_978_856, 1000 + 2 * 41_824),
    "squeezenet": (1_235_496, 3_944),
    "alexnet": (60_965_224, 10_568),
    "mobilenetv2": (3_504_872, 1000 + 2 * 17_056),
    "efficientnet_b0": (5_288_548, 1000 + 9_340 + 2 * 21_008),
}
POSITIONS = {"alexnet": {54: 55, 26: 27, 12: 13}, "inception_v1": {55: 56, 27: 28, 13: 14, 6: 7}}
"""Rows and columns of a file's network -> those of the paper's."""
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def weights(workload: Workload) -> int:
    """Return the words of all weights, once for every repetition of a layer."""
    return sum(
        layer.count * layer.problem.tensor_words(tensor)
        for layer in workload.layers
        if not layer.name.endswith(PRODUCTS)
        for tensor in layer.problem.tensors
        if tensor.role == "weight"
    )


def macs_at(workload: Workload, positions: dict[int, int]) -> int:
    """Return the MACs with other numbers of rows and columns."""
    return sum(
        layer.count
        * math.prod(
            positions.get(size, size) if name in "PQ" else size for name, size in layer.problem.dimensions.items()
        )
        for layer in workload.layers
    )


def table() -> dict[str, list[str]]:
    lines = iter((ROOT / "docs/library.md").read_text("utf-8").splitlines())
    next(line for line in lines if line == HEAD)
    next(lines)
    rows = dict[str, list[str]]()
    for line in lines:
        if not line.startswith("|"):
            return rows
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name.strip("`")] = cells
    return rows


def number(text: str) -> float:
    value, unit = text.split()
    return float(value.replace(",", "")) * UNITS[unit]


def written(value: int) -> str:
    """Return four digits and a unit."""
    unit, step = next((unit, step) for unit, step in reversed(UNITS.items()) if value >= step)
    return f"{float(f'{value / step:.4g}'):,.10g} {unit}"


ROWS = table()


def test_the_table_has_every_network() -> None:
    networks = {name for name in workload_names() if not tw.load(name, "workload").is_list}
    assert set(ROWS) == networks


@pytest.mark.parametrize("name", ROWS)
def test_networks_have_the_operations_and_weights_of_their_papers(name: str) -> None:
    network, (layers, macs, published, own, parameters, _) = tw.load(name, "workload"), ROWS[name]
    assert layers == str(sum(layer.count for layer in network.layers))
    assert (macs, own) == (written(network.macs), written(weights(network)))
    if published != "-":  # the paper of inception_v1 rounds to one digit
        found = macs_at(network, POSITIONS.get(name, {}))
        assert found == pytest.approx(number(published), rel=0.06 if name == "inception_v1" else 0.005)
    if parameters != "-":  # without biases, norms and tables of look-ups
        assert weights(network) <= 1.03 * number(parameters)
        assert weights(network) >= 0.72 * number(parameters)


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_exactly_those_that_others_count(name: str) -> None:
    published, others = COUNTED[name]
    assert weights(tw.load(name, "workload")) + others == published


def test_what_lists_are() -> None:
    lists = {name for name in tw.library.names("workloads") if tw.library.workload(name).is_list}
    assert lists == set(tw.library.names("workloads")) - {"efficientnet_b0", "mobilenetv2"}
    assert not {name for name in lists if name in ROWS}
