"""`edges_by_name`: a layer reads what another operation wrote under the same name, word by word or in an unknown way."""

from collections.abc import Mapping
from typing import Any

import pytest

from support.problems import problem_of
from tilewright.errors import PluginError
from tilewright.plugin.edges import Access, Edges, Operation, edges_by_name
from tilewright.plugin.guard.answers import fault_of_edges, layers_with
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.kinds import guarded
from tilewright.plugin.specs import AdapterSpec
from tilewright.schema.problem import Problem
from tilewright.schema.read import Read


def problem(name: str, sizes: Mapping[str, int], out: str, operand: str) -> Problem:
    """Return a problem with one operand; letters are dimensions, `p+r` is a window."""
    tensors = [
        {"name": "A", "role": "input", "projection": operand.split()},
        {"name": "Z", "role": "output", "projection": out.split()},
    ]
    return Problem.model_validate({"name": name, "dimensions": dict(sizes), "tensors": tensors})


def step(name: str, read: str, write: str, made: Problem | None, ranks: Any = ("M M", "M M"), **more: Any) -> Operation:
    operands = {"A": Access(read, tuple(ranks[1].split()))}
    return Operation(name, operands, Access(write, tuple(ranks[0].split())), made, **more)


A = problem("a", {"M": 4, "N": 6}, "M N", "M")
B = problem("b", {"M": 4, "N": 6}, "M", "M N")


def chain(*between: Operation, ranks: Any = ("M", "M N"), other: Problem = B) -> Edges:
    first = step("a", "x", "y", A, ("M N", "M"))
    return edges_by_name([first, *between, step("b", between[-1].result.value if between else "y", "z", other, ranks)])


def test_equal_coordinates_need_no_terms() -> None:
    assert chain() == {"a": {"A": ()}, "b": {"A": (Read(maker="a"),)}}
    layers = layers_with({"a": A, "b": B}, chain())
    assert [layer.after for layer in layers] == [(), ("a",)]


def test_coordinates_in_another_order_and_of_other_sizes() -> None:
    """Words of the larger shape that the smaller one lacks are padding, or are not read."""
    wide = problem("b", {"P": 4, "R": 3, "N": 6}, "P", "N P+R")
    (read,) = chain(ranks=("P", "N M"), other=wide)["b"]["A"]
    assert read == Read.model_validate(
        {"maker": "a", "sizes": {"x0": 6, "x1": 4}, "made": ["x1", "x0"], "read": ["x0", "x1"]}
    )
    assert read.within(A, wide, "A") == read


def test_renamed_coordinates_are_unknown() -> None:
    (read,) = chain(ranks=("K", "K N"))["b"]["A"]
    assert read.maker == "a" and read.cut is not None and "renamed" in read.cut


def test_a_copy_passes_words_and_another_operation_does_not() -> None:
    ranks = ("M N", "M N")
    copied = chain(step("c", "y", "w", None, ranks, copies=True))
    assert copied["b"]["A"] == (Read(maker="a"),)
    (read,) = chain(step("c", "y", "w", None, ranks))["b"]["A"]
    assert read.maker == "a" and read.cut is not None and read.cut.startswith("c is no layer")


def test_values_that_are_written_twice_or_read_before_are_unknown() -> None:
    first, second = step("a", "x", "y", A, ("M N", "M")), step("b", "y", "z", B, ("M", "M N"))
    early = edges_by_name([second, first])["b"]["A"]
    assert [read.maker for read in early] == ["a"] and "before it is written" in str(early[0].cut)
    again = step("c", "x", "y", A.model_copy(update={"name": "c"}), ("M N", "M"))
    both = edges_by_name([first, again, second])["b"]["A"]
    assert [read.maker for read in both] == ["a", "c"] and all("more than once" in str(read.cut) for read in both)


def test_a_result_that_an_operation_at_the_end_reads_must_leave_the_chip() -> None:
    end = step("end", "y", "out", None, ("M N", "M N"))
    first, second = step("a", "x", "y", A, ("M N", "M")), step("b", "y", "z", B, ("M", "M N"))
    (read,) = edges_by_name([first, end, second])["b"]["A"]
    assert read.cut == "end, which is no layer, reads the result, too"


def test_edges_of_a_plugin_are_checked() -> None:
    problems = {"a": A, "b": B}
    assert fault_of_edges(chain(), None, problems) is None
    assert "expected a mapping" in str(fault_of_edges([1], None, problems))
    for wrong in ({"b": {"X": (Read(maker="a"),)}}, {"b": {"A": (Read(maker="q"),)}}, {"b": {"A": 1}}, {"b": 3}):
        assert "its edges are invalid" in str(fault_of_edges(wrong, None, problems))


class Careless:
    def expressible(self, inputs: object) -> None: ...

    def render(self, inputs: object) -> None: ...

    def parse(self, files: object) -> None: ...

    def layers(self, file: object) -> tuple[str, ...]:
        return ("a",)

    def edges(self, file: object, problems: object) -> object:
        return {"a": {"A": (Read(maker="nowhere"),)}}


def test_wrong_edges_are_the_plugin_s_fault() -> None:
    adapter = guarded(AdapterSpec, Careless(), Owner("adapter", "careless"))
    with pytest.raises(PluginError, match="its edges are invalid"):
        adapter.edges(None, {"a": problem_of("M", "M K")})
