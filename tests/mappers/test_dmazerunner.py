"""`dmazerunner`: its thresholds."""

import numpy as np

from support.mappers import ARRAY, placement, run
from tilewright.errors import NotConformableError
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.constructive.placement import used
from tilewright.plugin.mapper import Budget, Run, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import MapperSpec


def test_dmazerunner_proposes_only_what_reaches_its_thresholds() -> None:
    mapper = installed().make(MapperSpec, "dmazerunner", {"array": 0.75, "inner": 0.5, "outer": 0.25})
    proposals = mapper.search(Task(ARRAY), Run(np.random.default_rng(0), Budget()))
    output = ARRAY.problem.output.dimensions
    moves, seen = placement(ARRAY), 0
    for batch in proposals:
        assert isinstance(batch, Candidates)
        trips = batch.trips
        seen += len(trips)
        assert (used(batch) >= 0.75 * 8).all()
        shares = [moves.fill(batch, slot) for slot in reversed(ARRAY.temporal_slots[1:])]
        assert (shares[0] >= 0.5).all() and (shares[1] >= 0.25).all()
        reduced = [d for d, name in enumerate(ARRAY.problem.dimensions) if name not in output]
        assert (trips[:, [i for i, slot in enumerate(ARRAY.slots) if slot.spatial]][..., reduced] == 1).all()
    assert seen > 0


def test_dmazerunner_refuses_rather_than_relaxes() -> None:
    result = run("dmazerunner", ARRAY, array=1.0, inner=1.0, outer=1.0)
    assert isinstance(result.error, NotConformableError) and "uses 100% of the array" in str(result.error)
