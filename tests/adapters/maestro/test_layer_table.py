"""Tables of layers in CSV, as GAMMA and its successors have them."""

from pathlib import Path

import pytest

import tilewright as tw
from support.command import Command
from tilewright.errors import InputError

CONVOLUTIONS = "K,C,Y,X,R,S,T\n64,3,224,224,3,3,1\n1,32,112,112,3,3,2\n"


def test_each_row_is_a_layer_with_maestros_sizes(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text(CONVOLUTIONS)
    first, second = tw.load(tmp_path / "net.csv", "workload").layers
    assert first.name == "L1" and first.problem.macs == 64 * 3 * 9 * 222 * 222  # as many as positions of the filter
    assert second.problem.macs == 32 * 9 * 110 * 110


@pytest.mark.parametrize(
    ("text", "macs"),
    [("M,N,K,0,0,0,T\n512,64,768,1,1,1,3\n", 512 * 64 * 768), ("O,I,0,0,0,0,T\n10,20,1,1,1,1,0\n", 200)],
)
def test_products_and_fully_connected_layers(tmp_path: Path, text: str, macs: int) -> None:
    (tmp_path / "net.csv").write_text(text)
    (layer,) = tw.load(tmp_path / "net.csv", "workload").layers
    assert layer.problem.macs == macs


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("64,3,224,224,3,1", "net.csv:4: expected seven whole numbers"),
        ("64,3,x,224,3,3,1", "net.csv:4: expected seven whole numbers"),
        ("64,3,224,224,3,3,9", "net.csv:4: type 9"),
    ],
)
def test_faults_have_lines(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "net.csv").write_text(CONVOLUTIONS + row + "\n")
    with pytest.raises(InputError) as caught:
        tw.load(tmp_path / "net.csv", "workload")
    assert message in str(caught.value)


def test_a_table_is_mapped(tilewright: Command, tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text(CONVOLUTIONS)
    ran = tilewright(
        "map", tmp_path / "net.csv", "--arch", "eyeriss", "--mapper", "random", "--evaluations", 50, "--json"
    )
    assert ran.code == 0 and [layer["name"] for layer in ran.data["layers"]] == ["L1", "L2"]
