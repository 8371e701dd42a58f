"""Levels of a mapping: tiles, use of memories, bypassed and stationary tensors; and their pictures."""

import math
from pathlib import Path

import pytest
from hypothesis import given

import tilewright as tw
from support.problems import triples
from tilewright.errors import InputError
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapped import BoundMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.mapping.levels import levels_of
from tilewright.schema.problem import Problem

Triple = tuple[Problem, Architecture, Mapping]


@given(triples())
def test_loops_tiles_and_tensors_are_those_of_the_mapping(triple: Triple) -> None:
    problem, architecture, mapping = triple
    levels = levels_of(mapping, problem, architecture)
    memories = [memory for level in levels for memory in level.memories]
    loops = list(mapping.loops())
    tiles = [(memory.name, tile) for memory in memories for tile in memory.tiles]

    assert [text for level in levels for text in level.loops] == [
        f"for {loop.dimension} in {loop.trips}" for loop in loops if not loop.spatial
    ]
    assert sum(len(level.unrolled) for level in levels) == sum(loop.spatial for loop in loops)
    assert len(tiles) == sum(len(entry.keep or ()) for entry in mapping.entries)
    assert {memory.name for memory in memories} == {memory.name for memory in architecture.memories}
    for _, tile in tiles:
        others = {
            dimension for dimension in problem.dimensions if dimension not in problem.tensor(tile.tensor).dimensions
        }
        assert {loop.split()[0] for loop in tile.loops} <= others and tile.steps <= math.prod(
            problem.dimensions[each] for each in others
        )
    for memory in memories:
        kept = {tile.tensor for name, tile in tiles if name == memory.name}
        able = {
            tensor.name
            for tensor in problem.tensors
            if next(m for m in architecture.memories if m.name == memory.name).may_hold(tensor)
        }
        assert kept & set(memory.bypassed) == set() and kept | set(memory.bypassed) == able


@pytest.fixture(scope="module")
def weight_stationary() -> BoundMapping:
    """Weights are fetched once, and stay while the inputs pass."""
    architecture = Architecture.model_validate(
        {
            "name": "small",
            "clusters": [
                {"name": "DRAM", "memories": [{"name": "DRAM", "read_energy_pj": 1, "write_energy_pj": 1}]},
                {"name": "Buffer", "memories": [{"name": "Buffer", "capacity_words": 64, "read_energy_pj": 1, "write_energy_pj": 1}],
                 "fanout": {"size": 4}},
            ],
            "compute": {"energy_per_operation_pj": 1},
        }
    )  # fmt: skip
    mapping = Mapping.model_validate(
        {
            "entries": [
                {"target": "DRAM", "keep": ["A", "B", "Z"], "temporal_tile_sizes": {"n": 8, "k": 8, "m": 4}},
                {"target": "Buffer", "keep": ["B"], "temporal_order": ["k", "n"], "temporal_tile_sizes": {"n": 1, "k": 4, "m": 4},
                 "spatial_tile_sizes": {"n": 1, "k": 4, "m": 1}},
                {"target": "Buffer", "temporal_order": ["k"], "temporal_tile_sizes": {"n": 1, "k": 1, "m": 1}},
            ]
        }
    )  # fmt: skip
    return BoundMapping.of(mapping, tw.load("nk,km->nm; n=8 k=8 m=4", "problem"), architecture)


def test_a_stationary_tile_and_a_bypass_are_told(weight_stationary: BoundMapping) -> None:
    outer, inner, _ = weight_stationary.levels()
    (buffer,) = inner.memories
    (tile,) = buffer.tiles

    assert [each.words for each in outer.memories[0].tiles] == [64, 32, 32]
    assert (tile.tensor, tile.words, tile.steps, tile.loops) == ("B", 16, 8, ("n 8",))
    assert (buffer.used_words, buffer.capacity_words, buffer.bypassed) == (16, 64, ("A", "Z"))
    assert inner.loops == ("for k in 2", "for n in 8") and inner.unrolled == ("parallel for m in 4 over Buffer",)


def test_a_mapping_is_drawn_beside_its_memories(weight_stationary: BoundMapping, tmp_path: Path) -> None:
    drawing = tw.draw(weight_stationary, tmp_path / "m.svg")
    text = (tmp_path / "m.svg").read_text(encoding="utf-8")

    for shown in (
        "Buffer, 25 % of 64 words",
        "B 16 words, stationary for 8 steps",
        "A bypasses",
        "4 MAC",
        "parallel for m in 4 over Buffer",
    ):
        assert f">{shown}</text>" in text.replace("\u00a0", " ")
    assert drawing.description == str(weight_stationary) and text == drawing.svg()


def test_a_mapping_of_another_architecture_is_not_drawn(weight_stationary: BoundMapping) -> None:
    with pytest.raises(InputError, match="Buffer does not exist"):
        tw.draw(BoundMapping.of(weight_stationary, weight_stationary.problem, tw.load("eyeriss", "architecture")))
    with pytest.raises(InputError, match="other dimensions"):
        tw.draw(
            BoundMapping.of(
                weight_stationary, tw.load("ab,bc->ac; a=8 b=8 c=4", "problem"), weight_stationary.architecture
            )
        )


@pytest.mark.parametrize("name", tw.library.names("architectures"))
def test_architectures_of_the_library_are_drawn(name: str) -> None:
    architecture = tw.load(name, "architecture")
    text = tw.draw(architecture).svg()

    assert all(f">{memory.name}</text>" in text for memory in architecture.memories)
    assert f">{architecture.compute_instances:,} in total</text>" in text


def test_what_has_no_picture_is_refused() -> None:
    with pytest.raises(InputError, match="Problem has no picture"):
        tw.draw(tw.load("ab,bc->ac; a=8 b=8 c=4", "problem"))  # type: ignore[arg-type]
