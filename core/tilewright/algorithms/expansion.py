"""A network with every way that some algorithms offer for its layers, as one workload of steps to be mapped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.errors import PluginError, Reason, TilewrightError
from tilewright.plugin.frontend import Algorithm
from tilewright.run.evaluation import reasons_of
from tilewright.schema.alternative import Alternative
from tilewright.schema.mapped import AlternativeRecord, PluginRecord
from tilewright.schema.problem import Problem
from tilewright.schema.workload import DistinctProblem, Layer, Workload


@dataclass(frozen=True)
class BuiltAlgorithm:
    """An algorithm, and which plugin it is; without `algorithm`, `error` says why it is not built."""

    record: PluginRecord
    algorithm: Algorithm | None
    error: PluginError | None = None


@dataclass(frozen=True)
class Offer:
    """One way to compute a distinct layer; without `alternative`, `reasons` says why the algorithm offers none.

    `layers`: names of its steps in the expanded workload.
    """

    distinct: DistinctProblem
    algorithm: PluginRecord
    alternative: Alternative | None
    layers: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def name(self) -> str:
        """The alternative's, or the algorithm's where there is none."""
        return self.algorithm.name if self.alternative is None else self.alternative.name

    @property
    def is_itself(self) -> bool:
        """The problem as it is."""
        return self.layers == (self.distinct.problem.name,)


@dataclass(frozen=True)
class Expansion:
    """All offers, layer by layer. `movements`: whether what is moved is part of the totals."""

    network: Workload
    offers: tuple[Offer, ...]
    movements: bool = True

    @classmethod
    def of(cls, network: Workload, algorithms: Sequence[BuiltAlgorithm], movements: bool = True) -> Expansion:
        """Ask every algorithm for every distinct layer; refusals and crashes are offers without an alternative."""
        names = _Names(layer.name for layer in network.layers)
        offers = [
            offer
            for distinct in network.distinct()
            for built in algorithms
            for offer in _offers(distinct, built, names)
        ]
        return cls(network, tuple(offers), movements)

    @cached_property
    def workload(self) -> Workload:
        """The steps of all offers; as often as the network has them. A step that several offers share stands in each."""
        layers = {}
        for offer in self.offers:
            for name, step in zip(
                offer.layers, offer.alternative.steps.layers if offer.alternative else (), strict=True
            ):
                problem = step.problem.model_copy(update={"name": name})
                layers[name] = Layer(problem=problem, count=step.count * offer.distinct.count)
        return Workload(name=self.network.name, source=self.network.source, layers=tuple(layers.values()))

    def records(self, names: Iterable[str]) -> tuple[AlternativeRecord, ...]:
        """What the mapping file of steps of these names keeps: what they are steps of."""
        wanted = set(names)
        return tuple(
            AlternativeRecord(algorithm=each.algorithm, problem=each.distinct.problem, alternative=each.alternative)
            for each in self.offers
            if each.alternative is not None and not each.is_itself and wanted & set(each.layers)
        )


def _offers(distinct: DistinctProblem, built: BuiltAlgorithm, names: _Names) -> list[Offer]:
    try:
        if built.algorithm is None:
            raise built.error or PluginError(f"algorithm '{built.record.name}' was not built")
        found = built.algorithm.alternatives(distinct.problem)
    except TilewrightError as error:
        return [Offer(distinct, built.record, None, reasons=reasons_of(error))]
    return [
        Offer(distinct, built.record, each, names.of_steps(distinct.problem, built.record.name, each)) for each in found
    ]


class _Names:
    """Names of steps: the problem's own for the problem itself, one for equal steps of a layer, and no name twice."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.known: dict[tuple[str, str, int], str] = {}

    def of_steps(self, problem: Problem, algorithm: str, alternative: Alternative) -> tuple[str, ...]:
        steps = alternative.steps.layers
        return tuple(self._of(problem, algorithm, alternative, step, len(steps) > 1) for step in steps)

    def _of(self, problem: Problem, algorithm: str, alternative: Alternative, step: Layer, several: bool) -> str:
        key = (problem.name, step.problem.content_key, step.count)
        if step.problem.content_key == problem.content_key and step.count == 1:
            return problem.name
        if key not in self.known:
            which = f".{step.name}" if several else ""
            first, name = (f"{problem.name}.{word}{which}" for word in (algorithm, alternative.name))
            name = name if first in self.taken else first
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self.known[key] = name
        return self.known[key]
