"""Sensitivity: what a larger bandwidth or a larger capacity would change, one at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tilewright.application.algorithms.totals import Cost
from tilewright.application.api.call_arguments import at_least
from tilewright.application.run.artifacts.layers import spec_of
from tilewright.application.run.cache import ResultCache
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import evaluate
from tilewright.application.run.network import MappedLayer, map_workload, space_of
from tilewright.errors import InputError, TilewrightError
from tilewright.estimation.architectures import changed
from tilewright.interrupts import stop_requested
from tilewright.plugin.result import PROOF_TOLERANCE, percent
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.objective import CYCLES, ENERGY, Objective
from tilewright.schema.units import RATES
from tilewright.schema.workload import Workload
from tilewright.values import grouped

LEAST = 1e-4
"""Smallest relative change that is told with its size."""
MAX_PERCENT = 1000
"""Largest number of percent."""


@dataclass(frozen=True)
class Effect:
    """Effect of one larger bandwidth or capacity on the whole workload.

    Attributes:
        part: Name of the memory.
        what: `bandwidth`, of all bandwidths that the memory states, or `capacity`.
        percent: How much larger it is.
        objective: The objective of the run.
        before, after: Costs of all layers; `after` is None if a layer has no mapping then, or no estimator knows the size.
        searched: Whether mappings were searched again. Otherwise the same ones were evaluated.
        proved: Whether the change of the objective is one between two proved optima.
        reason: Why there is no cost.
    """

    part: str
    what: str
    percent: float
    objective: Objective
    before: Cost
    after: Cost | None = None
    searched: bool = False
    proved: bool = False
    reason: str | None = None

    @property
    def energy_pj(self) -> float | None:
        return None if self.after is None else self.after.energy_pj

    @property
    def cycles(self) -> int | None:
        return None if self.after is None else self.after.cycles

    @property
    def objective_change(self) -> float | None:
        """Relative change of the objective; negative: it is less."""
        return self._change(self.objective)

    def _change(self, objective: Objective) -> float | None:
        if self.after is None:
            return None
        before = self.before.of(objective)
        return self.after.of(objective) / before - 1 if before else 0.0

    @property
    def changes(self) -> dict[str, float]:
        """Relative changes of the objective by name, and of cycles and energy if it is a product of them.

        Otherwise the other figure is that of any mapping with the least objective.
        """
        others = () if self.objective.is_additive else (CYCLES, ENERGY)
        objectives = (self.objective, *others)
        return {one.title: self._change(one) or 0.0 for one in objectives}

    @property
    def told(self) -> str:
        """The changes as text, such as `11 % fewer cycles (proved)`."""
        if self.after is None:
            return f"unknown: {self.reason}"
        parts = []
        for name, change in self.changes.items():
            is_first = name == self.objective.title
            less, more = {"cycles": ("fewer", "more"), "energy": ("less", "more")}.get(name, ("lower", "higher"))
            size = percent(abs(change)) if abs(change) >= LEAST else f"under {percent(LEAST)}"
            if abs(change) >= (PROOF_TOLERANCE if is_first else LEAST):
                parts.append(f"{size} {less if change < 0 else more} {name}")
            elif is_first:
                parts.append(f"no effect on {name}")
            if is_first and self.proved:
                parts[-1] += " (proved)"
        return ", ".join(parts)


def changes(architecture: Architecture) -> int:
    """Return how many bandwidths and capacities `effects` enlarges."""
    return sum(1 for memory in architecture.memories for _ in _enlarged(memory, 2.0))


def effects(
    workload: Workload,
    run: RunConfiguration,
    layers: Sequence[MappedLayer],
    more: float,
    *,
    jobs: int = 1,
    cache: ResultCache | None = None,
) -> Iterator[Effect]:
    """Yield the effect of each bandwidth and each capacity, enlarged by `more` percent, in the order of memories.

    Mappings are searched again if the mapper ends on its own. The old mapping of a layer counts, too, so that a search
    with chance makes nothing worse. Estimated energies are those of the new size. Ctrl-C ends it.
    """
    before = _sum([(layer, _cost(layer)) for layer in layers])
    if before is None:
        return
    searched = all(_ends(layer, run) for layer in layers)
    for memory in run.architecture.memories:
        for what, fields in _enlarged(memory, 1 + more / 100):
            if stop_requested():
                return
            known: dict[str, Any] = {"part": memory.name, "what": what, "percent": more, "objective": run.objective}
            known |= {"before": before, "searched": searched}
            try:
                way = run.on_architecture(changed(run.architecture, {memory.name: fields}))
            except TilewrightError as error:
                yield Effect(**known, reason=_shortly(error))
                continue
            results = list(map_workload(workload, way, jobs=jobs, cache=cache)) if searched else []
            if stop_requested():
                return
            again = {layer.name: layer for layer in results}
            pairs = [(layer, again.get(layer.name)) for layer in layers]
            after = _sum([(old, _better(old, new, way)) for old, new in pairs])
            reason = "some layer has no mapping then" if after is None else None
            yield Effect(**known, after=after, proved=_is_proved(pairs, run.objective), reason=reason)


def lines(told: Sequence[Effect]) -> list[str]:
    """Return a line for each effect, the largest gain first; those without one share a line."""
    if not told:
        return []
    useful = [
        effect for effect in told if effect.reason or any(abs(change) >= LEAST for change in effect.changes.values())
    ]
    others = grouped((effect.told, f"{effect.part} {effect.what}") for effect in told if effect not in useful)
    useful.sort(key=lambda effect: (effect.reason is not None, effect.objective_change or 0.0))
    how = "mappings searched again" if all(effect.searched for effect in told) else "with the same mappings"
    more = f"{told[0].percent:g} % more"
    shown = [f"  {more} {effect.part} {effect.what}: {effect.told}" for effect in useful]
    rest = [f"  {more} {', or '.join(names)}: {text}" for text, names in others.items()]
    return [f"sensitivity, {how}:", *shown, *rest]


def checked_percent(more: float | None) -> float | None:
    """Return the percent by which values are enlarged; raise InputError if they are out of range."""
    at_least(0, sensitivity=more)
    if more is not None and not 0 < more <= MAX_PERCENT:
        raise InputError(f"sensitivity is {more!r}; expected percent, above 0 and at most {MAX_PERCENT:,}")
    return more


def _enlarged(memory: Memory, factor: float) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the name of a figure, and the fields with the larger values. Memories that hold nothing have none."""
    if memory.holds == ():
        return
    rates = {field: value * factor for field in RATES if (value := getattr(memory, field)) is not None}
    if rates:
        yield "bandwidth", rates
    if memory.capacity_words is not None:
        yield "capacity", {"capacity_words": max(memory.capacity_words + 1, int(memory.capacity_words * factor))}


def _shortly(error: TilewrightError) -> str:
    """Return the message of a size that cannot be estimated, with its first reason."""
    place = error.location if isinstance(error, InputError) else None
    first, *others = error.message.removeprefix(f"{place}: ").splitlines()
    return f"{first} ({others[0].strip(' -')})" if others else first


def _ends(layer: MappedLayer, run: RunConfiguration) -> bool:
    """Return whether the mapper of a layer ends on its own, so that a search is cheap and no limit cuts it."""
    spec = spec_of(layer.instead or run.mapper_record)
    return spec is not None and spec.ends


def _cost(layer: MappedLayer | None) -> Cost | None:
    if layer is None or layer.energy_pj is None or layer.cycles is None:
        return None
    return Cost(layer.energy_pj, layer.cycles)


def _sum(layers: Sequence[tuple[MappedLayer, Cost | None]]) -> Cost | None:
    """Return the cost of all executions; None if a layer has no cost."""
    costs = [cost * layer.count for layer, cost in layers if cost is not None]
    return sum(costs, Cost()) if costs and len(costs) == len(layers) else None


def _better(old: MappedLayer, new: MappedLayer | None, run: RunConfiguration) -> Cost | None:
    """Return the lower cost of the new mapping and of the old one on the new machine; None if both have none."""
    costs = [cost for cost in (_same(old, run), _cost(new)) if cost is not None]
    return min(costs, key=lambda cost: cost.of(run.objective), default=None)


def _same(layer: MappedLayer, run: RunConfiguration) -> Cost | None:
    """Return the cost of a layer's mapping on the new machine; None if it is not legal there."""
    best = None if layer.result is None else layer.result.best
    if best is None:
        return None
    with suppress(TilewrightError):
        space, _ = space_of(layer.distinct, run)
        report = evaluate(run.model, space.problem, space.architecture, best)
        if report.energy_pj is not None and report.cycles is not None and math.isfinite(report.energy_pj):
            return Cost(report.energy_pj, report.cycles)
    return None


def _is_proved(pairs: Sequence[tuple[MappedLayer, MappedLayer | None]], objective: Objective) -> bool:
    """Return whether both values are proved optima. Products such as EDP of several layers are no sums of optima."""
    results = [layer.result if layer is not None else None for pair in pairs for layer in pair]
    optimal = all(result is not None and result.told_proof == "yes" for result in results)
    return optimal and (objective.is_additive or len(pairs) == 1)
