"""Edges between layers of ZigZag's workloads: `operand_source` names makers, and no words."""

from pathlib import Path

import pytest

import tilewright as tw
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
    path.write_text("".join(LAYER.format(id=at, name="abc"[at], sources=each) for at, each in enumerate(sources)))
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
def test_sources_name_makers_and_no_words(second: str, after: tuple[str, ...] | None, tmp_path: Path) -> None:
    path = workload(tmp_path, "operand_source: {I: 0, W: 0}", second)
    problems = {name: ZigZagAdapter().parse([path / name]).problem for name in "ab"}
    edges = ZigZagAdapter().edges(path, {name: each for name, each in problems.items() if each is not None})
    assert edges["a"] == {}
    found = None if "b" not in edges else tuple({read.maker for reads in edges["b"].values() for read in reads})
    assert found == after
    assert all(read.cut is not None for reads in edges.get("b", {}).values() for read in reads)


def test_a_maker_that_is_not_mapped_is_unknown(tmp_path: Path) -> None:
    path = workload(tmp_path, "operand_source: {I: 0, W: 0}", "operand_source: {I: 0, W: 1}")
    problem = ZigZagAdapter().parse([path / "b"]).problem
    assert problem is not None and ZigZagAdapter().edges(path, {"b": problem}) == {}


def test_a_network_of_the_file_has_the_edges(tmp_path: Path) -> None:
    path = workload(tmp_path, "operand_source: {I: 0, W: 0}", "operand_source: {I: 0, W: 1}")
    network = tw.load(path, "workload")
    assert [layer.after for layer in network.layers] == [(), ("a",)]
