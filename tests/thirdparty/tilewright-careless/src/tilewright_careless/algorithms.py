"""Algorithms that break promises. The good one changes nothing."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

from tilewright.errors import NotConformableError, Reason
from tilewright.plugin import Alternative
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank
from tilewright.schema.workload import Workload


def native(problem: Problem, steps: Workload | None = None, **changes: Any) -> Alternative:
    own: dict[str, tuple[str, ...]] = {name: (name,) for name in problem.dimensions}
    alternative = Alternative(name="native", steps=steps or Workload.of(problem), dimensions=FrozenDict(own))
    return alternative.model_copy(update=changes)


class Good:
    """Algorithm that leaves the problem unchanged."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        return [native(problem)]


class Untold:
    """Does not say over what its steps run."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        return [native(problem, dimensions=FrozenDict({}))]


class Mistaken:
    """Takes every window for one whose steps are of one place."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        tensors = tuple(
            tensor.model_copy(
                update={
                    "projection": tuple(
                        Rank(terms=FrozenDict(dict.fromkeys(index.terms, 1))) for index in tensor.projection
                    )
                }
            )
            for tensor in problem.tensors
        )
        return [native(problem, Workload.of(problem.model_copy(update={"tensors": tensors})))]


class Unmoved:
    """Runs over two dimensions as over one, the inner one outermost, and lays nothing out anew."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        for outer, inner in combinations([name for name, size in problem.dimensions.items() if size > 1], 2):
            if self._plain(problem, outer) == self._plain(problem, inner) != ():
                return [self._merged(problem, outer, inner)]
        reason = Reason(code="dimension", where=problem.name, message="has no two dimensions that are always together")
        raise NotConformableError("algorithm unmoved", (reason,))

    def _plain(self, problem: Problem, name: str) -> tuple[str, ...]:
        """Return the tensors of a dimension that is in no window."""
        windows = any(name in index.terms and len(index.terms) > 1 for t in problem.tensors for index in t.projection)
        return () if windows else tuple(t.name for t in problem.tensors if name in t.dimensions)

    def _merged(self, problem: Problem, outer: str, inner: str) -> Alternative:
        sizes = {name: size for name, size in problem.dimensions.items() if name != inner}
        sizes[outer] *= problem.dimensions[inner]
        tensors = tuple(
            t.model_copy(update={"projection": tuple(index for index in t.projection if inner not in index.terms)})
            for t in problem.tensors
        )
        step = problem.model_copy(update={"dimensions": FrozenDict(sizes), "tensors": tensors})
        over = {name: (name,) if name != outer else (inner, outer) for name in sizes}
        return native(problem, Workload.of(step), dimensions=FrozenDict(over))


class Moody:
    """Never says the same twice."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        return [native(problem, remark=str(random.random()))]


class Odd(str):
    """Equal only to its own kind."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Unwritable:
    """Gives what is another thing when it is read again."""

    def alternatives(self, problem: Problem) -> list[Alternative]:
        return [native(problem, remark=Odd("odd"))]
