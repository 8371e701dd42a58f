"""The full form of a group: a program that knows nothing else executes it, and gets the layers' results."""

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import tilewright as tw
from support import EXAMPLE_FILES
from support.command import Command, command
from support.profiles import first
from support.random_groups import random_group
from support.schemas import faults
from support.sliding_groups import Stack
from tilewright.errors import InputError, InvalidMappingError
from tilewright.mapspace.group_legality import group_legality
from tilewright.schema.group.full import FullGroup

Words = dict[tuple[str, tuple[int, ...]], int]
"""Group's name of a tensor and coordinates of a word -> its value."""


class Program:
    """Executes the plain data of a full group, as docs/json.md says."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.layers = data["layers"]
        self.results = results_of(data)
        self.made, self.operations = Counter[tuple[str, tuple[int, ...]]](), Counter[str]()
        self.starts = {layer["name"]: dict[str, int]() for layer in self.layers}
        self.ends = {
            layer["name"]: {name: size + layer["skipped"].get(name, 0) for name, size in layer["dimensions"].items()}
            for layer in self.layers
        }

    def run(self) -> Words:
        self.visit(self.layers, 0)
        return dict(self.made)

    def visit(self, layers: list[dict[str, Any]], depth: int) -> None:
        if not layers:
            return
        head = layers[0]
        if depth == len(head["loops"]):
            self.operate(
                head,
                [range(self.starts[head["name"]].get(name, 0), end) for name, end in self.ends[head["name"]].items()],
            )
            return self.visit(layers[1:], depth)
        inside = head["loops"][depth]["layers"]
        run, rest = layers[: len(inside)], layers[len(inside) :]
        assert [layer["name"] for layer in run] == inside
        loops = [layer["loops"][depth] for layer in run]
        for key in ("trips", "kind", "cluster", "axis", "layers"):
            assert all(loop[key] == loops[0][key] for loop in loops), key
        pieces = [
            (self.starts[layer["name"]].get(loop["dimension"], 0), self.ends[layer["name"]][loop["dimension"]])
            for layer, loop in zip(run, loops, strict=True)
        ]
        for step in range(loops[0]["trips"]):
            for layer, loop, (start, end) in zip(run, loops, pieces, strict=True):
                at = start + step * loop["tile"]
                self.starts[layer["name"]][loop["dimension"]] = min(at, end)
                self.ends[layer["name"]][loop["dimension"]] = min(at + loop["tile"], end)
            self.visit(run, depth + 1)
        for layer, loop, (start, end) in zip(run, loops, pieces, strict=True):
            self.starts[layer["name"]][loop["dimension"]], self.ends[layer["name"]][loop["dimension"]] = start, end
        return self.visit(rest, depth)

    def operate(self, layer: dict[str, Any], ranges: list[range]) -> None:
        names = list(layer["dimensions"])
        for point in itertools.product(*ranges):
            at = {name: value - layer["skipped"].get(name, 0) for name, value in zip(names, point, strict=True)}
            if all(0 <= value < layer["dimensions"][name] for name, value in at.items()):
                self.operations[layer["name"]] += 1
                operate(layer, at, self.made, self.results)


def results_of(data: dict[str, Any]) -> set[str]:
    """Tensors that layers make."""
    return {t["group_name"] for layer in data["layers"] for t in layer["tensors"] if t["role"] == "output"}


def operate(
    layer: dict[str, Any], at: dict[str, int], made: Counter[tuple[str, tuple[int, ...]]], results: set[str]
) -> None:
    """Execute one operation; padding is zero, and so are words of a result that no layer makes. The first one at a word adds other results."""
    value = 1
    for tensor in sorted(layer["tensors"], key=lambda tensor: tensor["role"] == "output"):
        own = tuple(sum(c * at[name] for name, c in rank["terms"].items()) for rank in tensor["coordinates"])
        word = tuple(point - offset for point, offset in zip(own, tensor["offsets"], strict=True))
        there = tensor["existing"] is None or all(
            low <= x <= high for x, (low, high) in zip(word, tensor["existing"], strict=True)
        )
        key = (tensor["group_name"], word)
        if tensor["role"] == "output":
            before = [made[other, own] for other in layer["adds"]] if key not in made else []
            made[key] += sum(before, value) if there else 0
        else:
            drawn = 0 if tensor["group_name"] in results else Random(str(key)).randint(1, 9)
            value *= made.get(key, drawn) if there else 0


def alone(data: dict[str, Any]) -> Words:
    """What the layers compute one after the other."""
    made = Counter[tuple[str, tuple[int, ...]]]()
    for layer in data["layers"]:
        for point in itertools.product(*map(range, layer["dimensions"].values())):
            operate(layer, dict(zip(layer["dimensions"], point, strict=True)), made, results_of(data))
    return dict(made)


def check(group: tw.GroupMapping) -> dict[str, Any]:
    full = tw.full_group(group)
    data: dict[str, Any] = json.loads(full.to_json())
    assert faults(data) == [] and FullGroup.model_validate(data) == full
    program = Program(data)
    assert program.run() == alone(data)
    assert program.operations == {layer.name: layer.macs for layer in group.layers}
    for layer in full.layers:
        assert [tile.depth for tile in layer.tiles] == sorted(tile.depth for tile in layer.tiles)
        for tile in layer.tiles:
            assert layer.name in tile.layers
            for other in full.layers:
                same = [
                    one
                    for one in other.tiles
                    if (one.memory, one.layers, one.depth) == (tile.memory, tile.layers, tile.depth)
                ]
                assert (other.name in tile.layers) <= bool(same)
    return data


def legal_groups(count: int) -> list[int]:
    """Seeds of legal random groups that are small."""
    seeds = []
    for seed in itertools.count():
        group = random_group(seed, divisible=seed % 3 > 0, padding=0.4 * (seed % 2), inner=0.2)
        if not group_legality(group).reasons and sum(layer.macs for layer in group.layers) < 1500:
            seeds.append(seed)
        if len(seeds) == count:
            return seeds
    raise AssertionError


@pytest.mark.parametrize("part", first(1, *range(12)))
def test_a_program_of_the_full_form_has_the_results_of_the_layers(part: int) -> None:
    shared = 0
    for seed in legal_groups(4 * (part + 1))[4 * part :]:
        data = check(random_group(seed, divisible=seed % 3 > 0, padding=0.4 * (seed % 2), inner=0.2))
        shared += any(len(loop["layers"]) > 1 for layer in data["layers"] for loop in layer["loops"])
    assert shared


@pytest.mark.parametrize("part", first(1, *range(8)))
def test_layers_may_take_several_rows_at_a_step_and_start_late(part: int) -> None:
    stacks = (Stack(seed).group() for seed in itertools.count(1000 * part))
    legal = (
        group
        for group in stacks
        if group is not None
        and not group_legality(group).reasons
        and sum(layer.macs for layer in group.layers) < 1500
        and len({loop.entry for path in group.paths.values() for loop in path.mapping.loops()}) > 1
    )
    tiles = set()
    for group in itertools.islice(legal, 6):
        data = check(group)
        tiles |= {loop["tile"] for layer in data["layers"] for loop in layer["loops"] if len(loop["layers"]) > 1}
    assert tiles


def test_layers_add_results() -> None:
    groups = (Stack(seed, sums=True).group() for seed in itertools.count())
    able = (group for group in groups if group is not None and any(edge.added for edge in group.edges))
    legal = (group for group in able if sum(layer.macs for layer in group.layers) < 1500 and group_legality(group))
    for group in itertools.islice(legal, 4):
        adds = [(tensor, layer["name"]) for layer in check(group)["layers"] for tensor in layer["adds"]]
        assert sorted(adds) == sorted((edge.tensor, name) for edge in group.edges for name in edge.added)


def test_padding_is_read_as_zero() -> None:
    forms = ("window", "convolutions")
    groups = (random_group(seed, padding=1.0, forms=forms) for seed in range(60))
    legal = (group for group in groups if not group_legality(group).reasons)
    data = [check(group) for group in itertools.islice(legal, 4)]
    assert any(tensor["existing"] for group in data for layer in group["layers"] for tensor in layer["tensors"])


def test_layers_of_one_loop_end_together() -> None:
    """The loop over rows has 66 steps; `second` has 64 rows, and starts two steps later."""
    data = check(tw.load(EXAMPLE_FILES / "two_convolutions.yaml", "group_mapping"))
    first_layer, second = data["layers"]
    assert [layer["skipped"] for layer in data["layers"]] == [{}, {"P": 2}]
    for layer in data["layers"]:
        assert (layer["loops"][0]["dimension"], layer["loops"][0]["trips"], layer["loops"][0]["layers"]) == (
            "P", 66, ["first", "second"],
        )  # fmt: skip
        assert math.prod(loop["trips"] for loop in layer["loops"]) == 66 * 3 * 2 * 2
    hidden = [tile for layer in data["layers"] for tile in layer["tiles"] if tile["layers"] == ["first", "second"]]
    assert [(tile["memory"], tile["depth"], tile["words"]) for tile in hidden] == [("Buffer", 1, 2), ("Buffer", 1, 6)]
    assert second["tiles"][0]["tensor"] == "Weights" and [
        tile["words"] for tile in second["tiles"] if tile["tensor"] == "Outputs"
    ] == [128, 1]
    assert first_layer["tensors"][2]["group_name"] == "Hidden"


def test_the_command_writes_a_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run: Command = command(monkeypatch, capsys)
    data = run("convert", EXAMPLE_FILES / "two_products.yaml", "--full", "--json").data
    assert data == json.loads(tw.full_group(EXAMPLE_FILES / "two_products.yaml").to_json())
    assert data["kind"] == "full_group_mapping" and [layer["name"] for layer in data["layers"]] == ["up", "down"]
    with pytest.raises(InputError, match="not of a group"):
        tw.full_group(EXAMPLE_FILES / "union_figure_5.yaml")
    with pytest.raises(InputError, match="is a group mapping"):
        tw.full_mapping(EXAMPLE_FILES / "two_products.yaml")


def test_a_group_that_is_not_legal_has_no_full_form() -> None:
    group = tw.load(EXAMPLE_FILES / "two_products.yaml", "group_mapping")
    small = group.model_copy(update={"architecture": group.architecture.replace({"Buffer.capacity_words": 40})})
    with pytest.raises(InvalidMappingError, match="words"):
        tw.full_group(small)
