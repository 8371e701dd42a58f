"""Expansion of a network: the steps of every alternative of every layer, as one workload to map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.application.run.evaluation import reasons_of
from tilewright.errors import PluginError, Reason, TilewrightError
from tilewright.plugin.frontend import Algorithm
from tilewright.schema.alternative import Alternative
from tilewright.schema.mapped import AlternativeRecord, PluginRecord
from tilewright.schema.problem import Problem
from tilewright.schema.workload import DistinctProblem, Layer, Workload


@dataclass(frozen=True)
class BuiltAlgorithm:
    """An algorithm and the plugin that provides it.

    If the algorithm could not be built, `algorithm` is None and `error` holds the cause.
    """

    record: PluginRecord
    algorithm: Algorithm | None
    error: PluginError | None = None


@dataclass(frozen=True)
class Offer:
    """An alternative that an algorithm offers for a distinct layer.

    `layers` names its steps in the expanded workload. If `alternative` is None, `reasons` explains
    why the algorithm offers none.
    """

    distinct: DistinctProblem
    algorithm: PluginRecord
    alternative: Alternative | None
    layers: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def name(self) -> str:
        """Name of the alternative, or of the algorithm if it offers none."""
        return self.algorithm.name if self.alternative is None else self.alternative.name

    @property
    def is_itself(self) -> bool:
        """Whether the offer is the problem itself, unchanged."""
        return self.layers == (self.distinct.problem.name,)


@dataclass(frozen=True)
class Expansion:
    """All offers, grouped by layer. `movements`: whether totals include data movement."""

    network: Workload
    offers: tuple[Offer, ...]
    movements: bool = True

    @classmethod
    def of(cls, network: Workload, algorithms: Sequence[BuiltAlgorithm], movements: bool = True) -> Expansion:
        """Request alternatives from every algorithm for every distinct layer.

        A refusal or a crash becomes an offer without an alternative.
        """
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
        """Steps of all offers, counted as often as the network runs them.

        A step that several offers share appears in each of them.
        """
        layers = {}
        for offer in self.offers:
            for name, step in zip(
                offer.layers, offer.alternative.steps.layers if offer.alternative else (), strict=True
            ):
                problem = step.problem.model_copy(update={"name": name})
                layers[name] = Layer(
                    problem=problem, count=step.count * offer.distinct.count, origin=offer.distinct.origin
                )
        network = self.network
        content = network.content
        return Workload(name=network.name, source=network.source, content=content, layers=tuple(layers.values()))

    def records(self, names: Iterable[str]) -> tuple[AlternativeRecord, ...]:
        """Return the alternatives that the named steps belong to, as stored in mapping files."""
        wanted = set(names)
        return tuple(
            AlternativeRecord(algorithm=offer.algorithm, problem=offer.distinct.problem, alternative=offer.alternative)
            for offer in self.offers
            if offer.alternative is not None and not offer.is_itself and wanted & set(offer.layers)
        )


def _offers(distinct: DistinctProblem, built: BuiltAlgorithm, names: _Names) -> list[Offer]:
    try:
        if built.algorithm is None:
            raise built.error or PluginError(f"algorithm '{built.record.name}' was not built")
        alternatives = built.algorithm.alternatives(distinct.problem)
    except TilewrightError as error:
        return [Offer(distinct, built.record, None, reasons=reasons_of(error))]
    return [
        Offer(distinct, built.record, alternative, names.of_steps(distinct.problem, built.record.name, alternative))
        for alternative in alternatives
    ]


class _Names:
    """Unique names for steps.

    A step equal to the problem keeps the problem's name, and equal steps of a layer share one name.
    """

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
