"""Batches: what is packed comes back."""

import numpy as np
import pytest
from hypothesis import given

from support.problems import triples
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem


@given(triples())
def test_a_batch_gives_back_what_was_packed(triple: tuple[Problem, Architecture, Mapping]) -> None:
    problem, _, mapping = triple
    batch = MappingBatch.pack(problem, [mapping, mapping])
    for found in batch:
        assert Skeleton.of(found) == batch.skeleton
        again = MappingBatch.pack(problem, [found])
        for name in ("temporal", "spatial", "order", "keep", "spatial_order", "unicast"):
            np.testing.assert_array_equal(getattr(again, name)[0], getattr(batch, name)[0])
    with pytest.raises(ValueError, match="read-only"):
        batch.temporal[0] = 0
