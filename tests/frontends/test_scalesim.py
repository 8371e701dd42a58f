"""Topologies of SCALE-Sim: layers, multiplications, and what is wrong in a row."""

from itertools import product
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright.schema.workload import Workload
from tilewright_frontends import ScaleSimOptions
from tilewright_frontends.scalesim import ScaleSimFrontend

DATA = Path(__file__).parents[1] / "data" / "scalesim"
HEAD = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,"


def written(folder: Path, text: str) -> str:
    (folder / "net.csv").write_text(text, encoding="utf-8")
    return str(folder / "net.csv")


def macs(workload: Workload) -> dict[str, int]:
    return {layer.name: layer.problem.macs for layer in workload.layers}


def counted(rows: int, columns: int, high: int, wide: int, channels: int, filters: int, down: int, along: int) -> int:
    """Count the multiplications by sliding the window over the input."""
    windows = [
        (top, left)
        for top, left in product(range(0, rows, down), range(0, columns, along))
        if top + high <= rows and left + wide <= columns
    ]
    return len(windows) * high * wide * channels * filters


def test_rows_are_convolutions_on_padded_inputs() -> None:
    """A window lies within its input: (30 - 7) // 2 + 1 = 12 rows. Headings, comments and empty lines are no layers."""
    workload = tw.load(DATA / "convolutions.csv", "workload")
    assert macs(workload) == {
        "Conv1": counted(30, 30, 7, 7, 3, 8, 2, 2),
        "Conv2_1": counted(14, 12, 3, 3, 8, 8, 1, 1),
        "Conv2_2": counted(14, 14, 3, 5, 8, 4, 3, 3),
        "Block_FC": 320,
        "FC": 640,
    }
    assert macs(workload)["Conv1"] == 8 * 3 * 12 * 12 * 7 * 7
    assert [part.name for part in workload.unmapped] == ["Bad"]
    assert workload.unmapped[0].reason == "11: Filter Width is missing"
    origin = workload.layers[1].origin
    assert origin is not None and (origin.node, origin.file, origin.line) == ("Conv2 1", "convolutions.csv", 4)
    assert tw.load(f"{DATA / 'convolutions.csv'}/FC", "problem").macs == 640


def test_a_depthwise_row_has_the_multiplications_that_scale_sim_counts() -> None:
    """SCALE-Sim 2 runs a row with DP in its name once for each channel, with one channel and the filters of the row."""
    workload = tw.load(DATA / "depthwise.csv", "workload")
    assert macs(workload) == {"DP1": 16 * 6 * 6 * 9, "DP2": 16 * 2 * 6 * 6 * 9, "Conv_dw": 16 * 6 * 6 * 9}
    assert [layer.problem.operation for layer in workload.layers] == ["depthwise_conv2d", "depthwise_conv2d", "conv2d"]
    assert workload.layers[0].problem.output.projection[1].terms == {"G": 1}


def test_rows_are_products_with_the_sparsity_of_their_weights() -> None:
    workload = tw.load(DATA / "products.csv", "workload")
    assert macs(workload) == {"GEMM_1": 3 * 5 * 16, "n2": 7 * 5 * 16}
    densities = [layer.problem.tensor("B").density for layer in workload.layers]
    assert densities[0] is not None and densities[0].density == 0.75 and densities[1] is None


def test_further_columns_are_strides_batches_and_types() -> None:
    """uSystolic-Sim separates columns by tabs behind commas, and has both strides."""
    workload = tw.load(DATA / "usystolic.csv", "workload")
    assert macs(workload) == {"Conv1": 2 * counted(9, 9, 3, 3, 2, 4, 2, 1)}
    assert [part.reason for part in workload.unmapped] == ["3: layer type POOL; SCALE-Sim maps GEMM alone"]
    assert workload.source is not None and workload.source.endswith("without the columns Eh")


def test_tabs_may_separate_columns(tmp_path: Path) -> None:
    text = f"\ufeff{HEAD}\r\nA, 5, 5, 3, 3, 2, 4, 1,\r\n".replace(", ", "\t").replace(",", "")
    assert macs(tw.load(written(tmp_path, text), "workload")) == {"A": counted(5, 5, 3, 3, 2, 4, 1, 1)}


def test_letters_get_their_sizes(tmp_path: Path) -> None:
    file = written(tmp_path, f"{HEAD}\ngate, 1, B, 1, 1, H, H, 1,\n")
    with pytest.raises(InputError, match="its sizes B, H are letters") as caught:
        tw.load(file, "workload")
    assert caught.value.hint == "give them: --size B=N --size H=N"
    assert macs(tw.load(file, "workload", sizes={"B": 4, "H": 16})) == {"gate": 4 * 16 * 16}
    with pytest.raises(InputError, match="no size called 'D'; it has: B, H"):
        tw.load(file, "workload", sizes={"B": 4, "H": 16, "D": 1})


def test_a_batch_multiplies_convolutions(tmp_path: Path) -> None:
    assert tw.load(DATA / "depthwise.csv", "workload", batch=4).layers[0].problem.dimensions["N"] == 4
    with pytest.raises(InputError, match="its products have no batch"):
        tw.load(DATA / "products.csv", "workload", batch=4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"{HEAD}\nA, 2, 2, 3, 3, 1, 1, 1,\n",
            r"no layer; line 2: a filter of 3 x 3 is larger than its input of 2 x 2",
        ),
        (f"{HEAD}\n", "no layer"),
        (f"{HEAD}\nA, 5, 5, 3, 3, 1 2, 1, 1,\n", "line 2: Channels is '1 2'; expected a whole number from 1"),
        (f"{HEAD}\nA, 5, 5, 3, 3, 1, 1, 0,\n", "Strides is '0'"),
        (f"{HEAD} Sparsity,\nA, 5, 5, 3, 3, 1, 1, 1, 5:4,\n", "Sparsity is '5:4'; expected N:M"),
        ("Layer name, IFMAP Height, Channels\nA, 1, 1\n", r"net.csv:1: its columns are Layer name, IFMAP Height"),
        ("Layer,M,N,K\nA,1,1\n", "K is missing"),
        ("Layer,M,N,K\n" + "A,1,1,1\n" * 10_001, "more than 10,000 layers"),
    ],
)
def test_what_is_wrong_has_its_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        tw.load(written(tmp_path, text), "workload")


def test_other_tables_are_not_recognised(tmp_path: Path) -> None:
    frontend = ScaleSimFrontend(ScaleSimOptions())
    others = ("K,C,Y,X,R,S,T\n1,1,1,1,1,1,1\n", "name,M,N,K\nA,1,1,1\n", "a,b\n", "\n")
    assert not any(frontend.recognises(written(tmp_path, text)) for text in others)
    assert not frontend.recognises(str(tmp_path)) and not frontend.recognises("absent.csv")
    assert tw.load(written(tmp_path, others[0]), "workload").macs == 1


def test_a_topology_is_mapped(tmp_path: Path) -> None:
    result = tw.map(str(DATA / "products.csv"), "simba", mapper="random", evaluations=20, cache=False, progress=False)
    assert result.complete
