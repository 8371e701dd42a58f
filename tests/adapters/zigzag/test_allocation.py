"""ZigZag's rule of allocation: which loops each memory keeps, and how far words reach."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.mapspace.legality import legality
from tilewright_adapters.loopblocks import LoopBlock, mapping_of
from tilewright_adapters.zigzag.allocation import DoesNotFitError, Store, Stored, allocated, distinct, reach
from tilewright_notations.operand_loops import precision


def test_the_rule_of_allocation() -> None:
    """Each operand takes the loops that leave the fewest words to fetch; the outermost memory takes the rest."""
    far = Store("far", 10**6, ("I", "W", "O"), frozenset({"D1"}))
    near = Store("near", 8, ("W",), frozenset())
    stored = {
        "I": Stored(("M", "K"), (), 8, 8),
        "W": Stored(("K",), (), 8, 8),
        "O": Stored(("M",), (), 8, 8),
    }
    order = [("M", 4), ("K", 2), ("M", 3)]
    assert allocated([near, far], stored, order, {}) == {"I": [3], "W": [1, 2], "O": [3]}
    twice = replace(near, bits=16)
    assert allocated([twice, far], stored, order, {})["W"] == [3, 0]
    doubled = replace(near, double=True)
    with pytest.raises(DoesNotFitError, match="near has 8 bits, and the spatial loops need 16"):
        allocated([doubled, far], stored, order, {})
    with pytest.raises(DoesNotFitError, match="near is too small for all of W"):
        allocated([near, replace(far, operands=("I", "O"))], stored, order, {})


def test_reach_is_what_the_innermost_memories_move() -> None:
    near = Store("near", 8, ("W",), frozenset({"D1"}), widths={"W": 24})
    far = Store("far", 99, ("W", "O"), frozenset({"D1", "D2"}), widths={"W": 8, "O": 16})
    stored = {"W": Stored(("K",), (), 8, 8), "O": Stored(("M",), (), 8, 8)}
    assert reach([near, far], stored) == {("D1", "K"): (3, "near")}
    alone = reach([far], stored)
    assert alone["D2", "M"] == (2, "far") and alone["D2", "K"] == (1, "far")


@given(a=st.integers(1, 4), b=st.integers(1, 4), i=st.integers(1, 12), j=st.integers(1, 12))
def test_distinct_values_where_windows_overlap_or_touch(a: int, b: int, i: int, j: int) -> None:
    values = len({a * x + b * y for x in range(i) for y in range(j)})
    assume(i >= b and j >= a)  # ZigZag's formula counts beyond
    assert distinct(a, i, b, j) == values


@pytest.mark.parametrize(
    ("outside", "finished"),
    [
        ([("K", 3)], True),
        ([("M", 2), ("K", 3)], True),  # the tile stays while K steps
        ([("K", 3), ("M", 2)], False),  # it leaves and comes back
    ],
)
def test_sums_that_stay_are_finished_further_out(outside: list[tuple[str, int]], finished: bool) -> None:
    problem = tw.load("O[M] += I[M,K] * W[K]; M=4 K=6", kind="problem")
    energies = {"read_energy_pj": 1, "write_energy_pj": 1, "word_bits": 8}
    near = {"name": "near", "holds": ["output"], **energies, "bits_per_value": {"output": 24}}
    memories = [{"name": "far", **energies}, near]
    clusters = [{"name": memory["name"], "memories": [memory]} for memory in memories]
    architecture = tw.load(
        {"kind": "architecture", "name": "two", "clusters": clusters, "compute": {"energy_per_operation_pj": 1}},
        kind="architecture",
    )
    blocks = [
        LoopBlock("far", ["I", "W", "O"]),
        LoopBlock("near", ["O"], outside),
        LoopBlock("near", None, [("K", 1), ("M", 1)]),
    ]
    mapping = mapping_of(problem, blocks)
    assert legality(problem, architecture, mapping)

    if finished:
        assert precision(problem, architecture, mapping)[0] == {"I": 8, "W": 8, "O": 24, "O_final": 8}
    else:
        with pytest.raises(ValueError, match="O 24, 8"):
            precision(problem, architecture, mapping)
