"""Workloads: equal layers are counted once, and what is not mapped keeps its reason."""

import re

import numpy as np
import pytest
from hypothesis import given

from support.problems import problem_of
from support.products import products
from tilewright.errors import InputError
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright.testing.strategies import problems


@given(problems())
def test_equal_work_has_one_key_whatever_its_name(problem: Problem) -> None:
    other = problem.model_copy(update={"name": "other", "source": "elsewhere"})
    assert Problem.model_validate(other.model_dump()).content_key == problem.content_key
    layers = (Layer(problem=problem), Layer(problem=other, after=(problem.name,)))
    workload = Workload(name="w", layers=layers)
    (distinct,) = workload.distinct()
    assert distinct.count == 2 and workload.macs == 2 * problem.macs
    assert list(workload.graph.edges) == [(problem.name, "other")]
    assert workload.graph.nodes["other"]["macs"] == problem.macs


def test_unmapped_operators_keep_their_reason() -> None:
    layer = Layer(problem=problem_of("M", "M K"))
    skipped = Unmapped(name="r", operator="Relu", reason="works element by element", operations=4)
    workload = Workload(name="w", layers=(layer,), unmapped=(skipped,))
    assert Workload.from_yaml(workload.to_yaml()) == workload
    with pytest.raises(ValueError, match="not a layer"):
        Workload(name="w", layers=(Layer(problem=layer.problem, after=("x",)),))
    with pytest.raises(ValueError, match="layer names repeat: p"):
        Workload(name="w", layers=(layer, layer))


READS = """
kind: workload
name: heads
layers:
  - problem: {name: project, dimensions: {M: 4, N: 6, K: 2}, tensors: [
      {name: A, role: input, projection: [M, K]}, {name: B, role: weight, projection: [K, N]},
      {name: Z, role: output, projection: [M, N]}]}
  - problem: {name: scores, dimensions: {H: 3, M: 4, K: 2}, tensors: [
      {name: A, role: input, projection: [H, M, K]}, {name: B, role: weight, projection: [H, K]},
      {name: Z, role: output, projection: [H, M]}]}
    after: [project]
    reads:
      A: [{maker: project, sizes: {t: 4, h: 3, c: 2}, made: [t, 2*h + c], read: [h, t, c]}]
"""


def test_reads_have_the_words_of_maker_and_reader() -> None:
    workload = Workload.from_yaml(READS)
    assert Workload.from_yaml(workload.to_yaml()) == workload
    assert Workload.model_validate_json(workload.model_dump_json()) == workload
    ((layer, tensor, read),) = workload.edges
    made, words = read.points()
    assert (layer, tensor) == ("scores", "A")
    found = {
        tuple(map(int, b)): tuple(map(int, a)) for a, b in zip(np.transpose(made), np.transpose(words), strict=True)
    }
    assert found == {(h, t, c): (t, 2 * h + c) for h in range(3) for t in range(4) for c in range(2)}
    assert read.offsets is None  # columns become heads and channels


def test_reads_without_coordinates_are_one_to_one() -> None:
    chain = READS.replace("H: 3, M: 4, K: 2", "H: 4, K: 6").replace("[H, M, K]", "[H, K]").replace("[H, M]", "[H]")
    chain = chain.replace(
        "{maker: project, sizes: {t: 4, h: 3, c: 2}, made: [t, 2*h + c], read: [h, t, c]}", "{maker: project}"
    )
    ((_, _, read),) = Workload.from_yaml(chain).edges
    assert read.offsets == (0, 0)
    together = Workload.together([Workload.from_yaml(chain)], [2])
    assert together.layers[1].reads["A"][0].maker == "heads/project"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("maker: project", "maker: projekt", "scores is not after projekt; did you mean 'project'?"),
        ("      A: [{maker", "      C: [{maker", "scores has no operand C"),
        ("made: [t, 2*h + c]", "made: [t, 3*h + c]", "project.Z is 4 x 6: 3*h + c reaches 7; expected less than 6"),
        ("made: [t,", "made: [t +,", "expected terms like"),
        ("read: [h, t, c]", "read: [h, t]", "read lacks coordinate c"),
        ("read: [h, t, c]", "read: [h, t, c, 0]", "scores.A is 3 x 4 x 2: expected 3 coordinates, not 4"),
        ("read: [h, t, c]", "read: [h + c, t, 0]", "read has several points of one word: h + c"),
        (
            "read: [h, t, c]",
            "read: [h, t, K]",
            "coordinate K has no size; expected one of t, h, c, or its size in sizes (K: N)",
        ),
        (
            "read: [h, t, c]",
            "read: [h, t, 0]",
            "read lacks coordinate c: expected one word of the operand at each point; made",
        ),
        ("h: 3, c: 2}", "h: 3}", "coordinate c has no size"),
        (
            ", made: [t, 2*h + c], read: [h, t, c]",
            "",
            "sizes needs made and read: give sizes, made and read, or maker alone",
        ),
        ("sizes: {t: 4, h: 3, c: 2}, made: [t, 2*h + c], read: [h, t, c]", "whole: [h]", "whole needs made and read"),
        (", read: [h, t, c]", "", "made and read need each other"),
        ("made: [t", "cut: pooling, made: [t", "a read that is cut has no coordinates"),
        ("sizes: {t: 4, h: 3, c: 2}, made: [t, 2*h + c], read: [h, t, c]", "whole: []", "expected one shape"),
    ],
)
def test_reads_that_contradict_the_layers(old: str, new: str, message: str) -> None:
    assert old in READS
    with pytest.raises(InputError, match=re.escape(message)):
        Workload.from_yaml(READS.replace(old, new))


def test_layers_whose_makers_are_not_stated_are_unknown() -> None:
    """An empty `after` states that a layer reads no results. The first layer of a network has none to read."""
    problems = [problem_of("M", "M K").model_copy(update={"name": name}) for name in "abc"]
    layers = (Layer(problem=problems[0]), Layer(problem=problems[1]), Layer(problem=problems[2], after=()))
    workload = Workload(name="w", layers=layers)
    assert workload.unknown == ("b",) and Workload.from_yaml(workload.to_yaml()) == workload
    both = Workload.together([workload, workload.model_copy(update={"name": "v"})], [1, 2])
    assert both.unknown == ("w/b", "v/b") and both.layers[3].after == ()


def test_operands_of_one_value_have_one_shape() -> None:
    data = products(4, (3, 5), makers=()) | {"name": "two"}
    layer = data["layers"][0] | {"after": [], "inputs": {"A": "x"}}
    other = layer | {"problem": layer["problem"] | {"name": "L1"}}
    network = Workload.model_validate(data | {"layers": [layer, other]})
    assert Workload.from_yaml(network.to_yaml()) == network
    together = Workload.together([network, network.model_copy(update={"name": "again"})], [1, 1])
    assert [each.inputs["A"] for each in together.layers] == ["two/x", "two/x", "again/x", "again/x"]
    wide = other | {"problem": other["problem"] | {"dimensions": {"M": 4, "K": 4, "N": 5}}}
    for bad, message in (
        (wide, "L1.A is 4 x 4, but L0.A is 4 x 3: expected one shape for x"),
        (other | {"inputs": {"a": "x"}}, "L1 has no operand a"),
    ):
        with pytest.raises(ValueError, match=message):
            Workload.model_validate(data | {"layers": [layer, bad]})


def test_words_that_a_layer_outside_may_read_are_unknown() -> None:
    """L2 does not state whose results it reads, so those of the layers before it may have to leave."""
    data = products(4, (4, 4, 4, 4))
    del data["layers"][2]["after"], data["layers"][2]["reads"]
    workload = Workload.model_validate(data)
    (read,) = workload.picked(["L0", "L1"])[1].reads["A"]
    assert read.cut is not None and "L2 is not among the layers" in read.cut
