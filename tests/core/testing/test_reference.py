"""The kit's reference model is written as a third party would write it; functions of batches agree with those of one mapping."""

import ast
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import plugin
from tilewright.plugin import MappingBatch, legal, legality, memory_table, tile_words
from tilewright.testing import reference
from tilewright.testing.corpus import SAMPLES

PUBLIC = {"tilewright", "tilewright.plugin", "numpy", "math", "__future__"}


def test_the_reference_model_uses_public_names_only() -> None:
    nodes = list(ast.walk(ast.parse(Path(reference.__file__).read_text(encoding="utf-8"))))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    assert {*modules, *(str(node.module) for node in froms)} <= PUBLIC
    names = {alias.name for node in froms if node.module == plugin.__name__ for alias in node.names}
    assert names and names <= set(plugin.__all__)
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    assert {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "tw"} <= set(
        tw.__all__
    )


@pytest.mark.parametrize("number", range(3))
def test_batches_have_the_legality_and_the_words_of_single_mappings(number: int) -> None:
    sample = SAMPLES[number]
    problem, architecture, batch = sample.problem, sample.architecture, sample.batch(12)
    assert isinstance(batch, MappingBatch)
    assert legal(problem, architecture, batch).tolist() == [bool(legality(problem, architecture, one)) for one in batch]
    for tensor in problem.tensors:
        words = tile_words(problem, tensor, batch.temporal)
        expected = [[problem.tile_words(tensor, e.temporal_tile_sizes) for e in one.entries] for one in batch]
        assert np.array_equal(words, expected)


def test_the_table_of_memories_has_those_that_may_hold_a_tensor() -> None:
    problem, eyeriss = tw.load("nk,km->nm; n=8 k=8 m=8", kind="problem"), tw.load("eyeriss", kind="architecture")
    skeleton = tw.space(problem, eyeriss).skeleton
    table = memory_table(problem, eyeriss, skeleton)
    for entry, row in zip(skeleton.entries, table.tolist(), strict=True):
        for tensor, index in zip(problem.tensors, row, strict=True):
            memory = eyeriss.cluster(entry.target).memory_for(tensor)
            assert (eyeriss.memories[index] if index >= 0 else None) == (memory if entry.holds else None)
