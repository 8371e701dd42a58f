"""Edges between layers of ZigZag's workloads: `operand_source` names makers, whose words follow from names and sizes."""

from pathlib import Path

import pytest

import tilewright as tw
from support.edges import edges
from tilewright_adapters.zigzag import ZigZagAdapter

LAYER = """- id: {id}
  name: {name}
  operator_type: Gemm
  equation: O[m][n]+=I[m][k]*W[k][n]
  loop_dims: [M, N, K]
  loop_sizes: [4, 4, 4]
  operand_precision: {{I: 8, W: 8, O: 16, O_final: 8}}
  {sources}
"""


def workload(folder: Path, *sources: str) -> Path:
    path = folder / "workload.yaml"
    path.write_text("".join(LAYER.format(id=at, name="abc"[at], sources=source) for at, source in enumerate(sources)))
    return path


@pytest.mark.parametrize(
    ("second", "after"),
    [
        ("operand_source: {I: 0, W: 1}", ("a",)),
        ("operand_source: {I: 1, W: 1}", ()),
        ("operand_source: {I: 0, W: 0}", ("a",)),
        ("operand_source: {I: 0}\n  constant_operands: [W]", ("a",)),
        ("operand_source: {I: 0}", None),
        ("operand_source: {I: 7, W: 1}", None),
        ("constant_operands: []", None),
    ],
)
def test_words_of_square_matrices_do_not_follow(second: str, after: tuple[str, ...] | None, tmp_path: Path) -> None:
    path = workload(tmp_path, "operand_source: {I: 0, W: 0}", second)
    problems = {name: ZigZagAdapter().parse([path / name]).problem for name in "ab"}
    given = ZigZagAdapter().edges(path, {name: each for name, each in problems.items() if each is not None})
    assert given["a"] == {}
    found = None if "b" not in given else tuple({read.maker for reads in given["b"].values() for read in reads})
    assert found == after
    assert all(read.cut is not None for reads in given.get("b", {}).values() for read in reads)


def test_a_maker_that_is_not_mapped_is_unknown(tmp_path: Path) -> None:
    path = workload(tmp_path, "operand_source: {I: 0, W: 0}", "operand_source: {I: 0, W: 1}")
    problem = ZigZagAdapter().parse([path / "b"]).problem
    assert problem is not None and ZigZagAdapter().edges(path, {"b": problem}) == {}


def test_a_network_of_the_file_has_the_edges(tmp_path: Path) -> None:
    path = workload(tmp_path, "operand_source: {I: 0, W: 0}", "operand_source: {I: 0, W: 1}")
    network = tw.load(path, "workload")
    assert [layer.after for layer in network.layers] == [(), ("a",)]


CONV = """- id: {id}
  name: {name}
  operator_type: Conv
  equation: O[b][k][oy][ox]+=I[b][c][iy][ix]*W[k][c][fy][fx]
  dimension_relations: [iy={stride}*oy+1*fy, ix={stride}*ox+1*fx]
  loop_dims: [B, K, C, OY, OX, FY, FX]
  loop_sizes: {sizes}
  pr_loop_dims: [IY, IX]
  {more}
  operand_precision: {{I: 8, W: 8, O: 16, O_final: 8}}
  operand_source: {{I: {source}, W: {id}}}
"""


def convolutions(folder: Path, *layers: tuple[list[int], int, str]) -> list[str]:
    """The edges of convolutions that read one another: sizes, stride and further lines of each."""
    path = folder / "workload.yaml"
    texts = [
        CONV.format(id=at, name="abc"[at], source=max(0, at - 1), sizes=sizes, stride=stride, more=more)
        for at, (sizes, stride, more) in enumerate(layers)
    ]
    path.write_text("".join(texts))
    return edges(tw.load(path, "workload"))


FIRST = ([1, 6, 3, 8, 8, 3, 3], 1, "padding: [[1, 1], [1, 1]]")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (([1, 4, 6, 8, 8, 3, 3], 1, "padding: [[1, 1], [1, 1]]"), "[x0, x1, x2, x3] at [x0, x1, x2 + 1, x3 + 1]"),
        (([1, 4, 6, 4, 4, 3, 3], 2, "padding: [[0, 1], [0, 1]]"), "[x0, x1, x2, x3] at [x0, x1, x2, x3]"),
        (([1, 4, 6, 4, 4, 1, 1], 2, ""), "[x0, x1, x2, x3] at [x0, x1, x2, x3]"),  # the last row is not read
        (([1, 4, 6, 8, 8, 3, 3], 1, ""), "?"),  # the padding is not stated
        (([1, 4, 6, 6, 8, 3, 3], 1, "padding: [[0, 0], [0, 0]]"), "?"),
        (([1, 4, 5, 8, 8, 3, 3], 1, "padding: [[1, 1], [1, 1]]"), "?"),  # other channels
    ],
)
def test_convolutions_read_the_words_of_their_source(
    second: tuple[list[int], int, str], words: str, tmp_path: Path
) -> None:
    (found,) = convolutions(tmp_path, FIRST, second)
    assert found.startswith(f"b.I = a{words}")


GEMM = LAYER.replace("[4, 4, 4]", "{sizes}")


@pytest.mark.parametrize(
    ("sizes", "sources", "known"),
    [
        ("[5, 7, 3]", "I: 0, W: 1", True),
        ("[5, 7, 5]", "I: 0, W: 1", False),  # a matrix of 5 x 5 might be transposed
        ("[3, 7, 5]", "I: 1, W: 0", True),
        ("[3, 5, 5]", "I: 1, W: 0", False),  # transposed
    ],
)
def test_products_read_the_words_of_their_source(sizes: str, sources: str, known: bool, tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    inner = sizes.strip("[]").split(", ")[2]
    first = f"[5, {inner}, 4]" if "I: 0" in sources else "[5, 7, 4]"
    given = [(first, "operand_source: {I: 0, W: 0}"), (sizes, f"operand_source: {{{sources}}}")]
    texts = [GEMM.format(id=at, name="ab"[at], sizes=each, sources=text) for at, (each, text) in enumerate(given)]
    path.write_text("".join(texts))
    (read,) = [each for _, _, each in tw.load(path, "workload").edges]
    assert (read.cut is None) == known
    if known:
        assert read.offsets == (0, 0)


def test_a_layer_without_sources_is_a_maker_too(tmp_path: Path) -> None:
    path = workload(tmp_path, "constant_operands: []", "operand_source: {I: 0, W: 1}")
    first, second = tw.load(path, "workload").layers
    assert first.after is None and second.after == ("a",)
