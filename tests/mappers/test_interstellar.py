"""`interstellar`: channels are unrolled."""

import itertools

import numpy as np

from support.mappers import CONV
from tilewright.mapspace.candidates import Candidates
from tilewright.plugin.mapper import Budget, Run, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import MapperSpec


def test_interstellar_unrolls_channels() -> None:
    mapper = installed().make(MapperSpec, "interstellar")
    names = CONV.problem.dimension_names
    for batch in itertools.islice(mapper.search(Task(CONV), Run(np.random.default_rng(0), Budget())), 20):
        assert isinstance(batch, Candidates)
        trips = batch.trips[:, CONV.spatial_slots].prod(axis=1)
        assert {name for name, on in zip(names, (trips > 1).any(axis=0), strict=True) if on} == {"K", "C"}
