"""`native`: the unchanged problem."""

from __future__ import annotations

from tilewright.schema.alternative import Alternative
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload


class Native:
    """The algorithm: the problem's own loop nest, with tensors in place."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        """Return one alternative, for every problem."""
        dimensions: dict[str, tuple[str, ...]] = {name: (name,) for name in problem.dimensions}
        return [Alternative(name="native", steps=Workload.of(problem), dimensions=FrozenDict(dimensions))]
