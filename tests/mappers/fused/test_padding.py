"""Fused groups with padding: the optimum is that of brute force, and its costs are those of the cost models."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import EXAMPLE_FILES
from support.fused_arrays import least
from support.fused_padded import PaddedPair
from support.group_searches import search_group
from support.profiles import scaled
from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.errors import NotConformableError
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import ENERGY
from tilewright_mappers.fused.padding import PaddedWindow

ORACLE, TIMELOOP = build_model("oracle"), build_model("timeloop")


def check(seed: int) -> None:
    pair = PaddedPair(seed)
    brute = least(pair)
    if brute is None:
        with pytest.raises(NotConformableError):
            search_group(pair.group(), pair.objective)
        return
    result = search_group(pair.group(), pair.objective)
    told = result.of(pair.objective)
    assert told == pytest.approx(brute, rel=1e-9)
    executed, counted = (evaluate_group(model, result.group).of(pair.objective) for model in (ORACLE, TIMELOOP))
    assert executed is not None and executed <= told * (1 + 1e-9)
    assert counted is None or counted == pytest.approx(told, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2, 42])
def test_padded_pairs_cost_what_brute_force_finds(seed: int) -> None:
    check(seed)


@pytest.mark.exhaustive
@scaled(1)
@given(st.integers(0, 2**32))
def test_random_padded_pairs_cost_what_brute_force_finds(seed: int) -> None:
    check(seed)


@given(st.data())
def test_words_of_a_padded_window_are_those_of_its_sets(data: st.DataObject) -> None:
    sizes = data.draw(st.tuples(st.integers(1, 8), st.integers(1, 4)))
    first = data.draw(st.integers(0, 3))
    window = PaddedWindow(sizes, first, data.draw(st.integers(first, 9)))
    divisors = [[n for n in range(1, size + 1) if size % n == 0] for size in sizes]
    tile = (data.draw(st.sampled_from(divisors[0])), data.draw(st.sampled_from(divisors[1])))
    starts = [(a, b) for a in range(0, sizes[0], tile[0]) for b in range(0, sizes[1], tile[1])]
    exist = set(range(window.first, window.last + 1))
    tiles = {start: set(range(sum(start), sum(start) + sum(tile) - 1)) & exist for start in starts}
    assert window.filling(tile) == sum(map(len, tiles.values()))
    assert window.held(tile) == max(map(len, tiles.values()))
    assert window.used == sum(a + b in exist for a in range(sizes[0]) for b in range(sizes[1]))
    for last, size in enumerate(sizes):
        step = (tile[0], 0) if last == 0 else (0, tile[1])
        before = {start: (start[0] - step[0], start[1] - step[1]) for start in starts}
        new = [len(tiles[start] - tiles.get(before[start], set())) for start in starts]
        assert window.slid(tile, last, size) == sum(new)
        assert window.slid(tile, last, tile[last]) == window.filling(tile)


def padded_convolutions() -> GroupMapping:
    """Return two convolutions of three taps over 12 rows, of which the tensors have no more."""
    data = GroupMapping.from_file(EXAMPLE_FILES / "two_convolutions.yaml").to_data()
    for layer in data["layers"]:
        layer["dimensions"]["P"] = 12
    data["edges"] = [
        {"tensor": "Inputs", "layers": {"first": "Inputs"}, "sizes": [12, 2]},
        {"tensor": "Hidden", "layers": {"first": "Outputs", "second": "Inputs"}},
    ]
    ones = dict.fromkeys(("P", "R", "C", "K"), 1)
    leaf = [{"target": "Buffer", "temporal_tile_sizes": ones, "temporal_order": list(ones)}]
    kept = ["Inputs", "first.Weights", "Hidden", "second.Weights", "second.Outputs"]
    branches = [{"layer": name, "entries": leaf} for name in ("first", "second")]
    data["tree"] = {"entries": [{"target": "DRAM", "keep": kept}], "branches": branches}
    data["axes"] = {}
    return GroupMapping.model_validate(data)


def test_words_that_do_not_exist_are_not_moved() -> None:
    group = padded_convolutions()
    result = search_group(group, ENERGY)  # FFM: 10,104 pJ; executed without drains: 9,600 in 42 words
    for model in (ORACLE, TIMELOOP):
        assert evaluate_group(model, result.group).energy_pj == result.energy_pj == 9_600


def test_a_padded_window_that_is_too_long_is_refused() -> None:
    data = padded_convolutions().to_data()
    for layer in data["layers"]:
        layer["dimensions"] |= {"P": 2**21, "R": 3}
    data["edges"][0]["sizes"] = [2**21, 2]
    with pytest.raises(NotConformableError, match="first reads a window with more than 4,194,304 pairs"):
        search_group(GroupMapping.model_validate(data))


@pytest.mark.parametrize(
    ("edge", "change", "text"),
    [
        (1, {"offsets": {"second": [0, 1]}}, "along a coordinate that is one dimension"),
        (1, {"sizes": [11, 2]}, "makes words that do not exist"),
        (1, {"offsets": {"first": [1, 0]}}, "its maker has an offset"),
    ],
)
def test_other_padding_is_refused(edge: int, change: dict[str, Any], text: str) -> None:
    data = padded_convolutions().to_data()
    data["edges"][edge] |= change
    with pytest.raises(NotConformableError, match=text):
        search_group(GroupMapping.model_validate(data))
