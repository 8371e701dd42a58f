"""Families: machines that differ in bandwidths, and in the size and prices of one memory, share their searches.

One search on the best machine that a family could have bounds all its members. A mapping that is within the gap of that bound
on a member needs no search there (docs/spaces.md, "Shared searches").
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tilewright.application.exploration.joint import largest
from tilewright.application.exploration.records import machine_key
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import explain
from tilewright.application.run.network import LayerSearch, MappedLayer, bound
from tilewright.digests import of_data
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator, Relaxable
from tilewright.plugin.registry import installed
from tilewright.plugin.relaxed import Least, least_of
from tilewright.plugin.result import Result
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
from tilewright.values import grouped

SIZE = "capacity_words"
RATES = "read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle", "shared_bandwidth_words_per_cycle"
PRICES = "read_energy_pj", "write_energy_pj", "update_energy_pj", "leakage_pj_per_cycle"
BEST_OF: dict[str, Callable[[Iterable[float]], float]] = {
    **dict.fromkeys((SIZE, *RATES), max),
    **dict.fromkeys(PRICES, min),
}
"""Field of a memory in which members of a family may differ -> the best of several values."""
_TOLD = {"area_um2", "component", "estimates"}
"""Fields of memories without an influence on the costs of a mapping."""
ROUNDING_FACTOR = 1 - 1e-9
FIRST_GAP = 0.1
FIRST_WIDTH = 4096
"""Gap and width of first searches: a narrow pass of `optimal` often proves that much, in a tenth of the time."""
SECOND_WIDTH = 32768
"""Width of the second searches: they mostly find the best mapping, in less than half the time of the widest pass, which proves it."""


@dataclass(frozen=True)
class Family:
    """Machines by their keys, and the best machine that they could be."""

    members: dict[str, Architecture]
    """Key -> machine, by size; of one size, those with the highest bandwidths first."""
    best: Architecture
    key: str
    """Key of the best machine."""

    def first_like(self, key: str) -> str:
        """Return the first member that is at least as good as one, of the same size."""
        here = self.members[key]
        return next(
            other for other, machine in self.members.items() if other == key
            or (_sizes(machine) == _sizes(here) and is_as_good(machine, here))
        )  # fmt: skip


@dataclass(frozen=True)
class Known:
    """Result on a machine of a family: its mapping, and a lower bound on the objective of all mappings.

    `side` gives the map space there. `left`: factor by which the search behind the bound missed the gap that it was asked for; at least 1.
    `machine_name`: the machine whose search proposed the mapping.
    """

    machine: Architecture
    mapping: Mapping
    least: float | None
    left: float
    machine_name: str
    side: Callable[[], Side]


@dataclass(frozen=True)
class Side:
    """A map space on a machine, with lower bounds on energy in pJ and cycles; None: the model has none that are linear in prices."""

    space: MapSpace
    least: Least | None

    @classmethod
    def of(cls, space: MapSpace, evaluator: Evaluator) -> Side:
        """Return the side of a bound evaluator. Raises PluginError: the relaxation is invalid."""
        relaxation = evaluator.relaxation(space.skeleton, space.keeps) if isinstance(evaluator, Relaxable) else None
        return cls(space, least_of(space, evaluator) if relaxation is not None and relaxation.linear else None)


@dataclass(frozen=True)
class Shared:
    """Best of the mappings known in a family on another machine.

    `enough` is the bound, times what the search behind it left. So a search that proves little is not repeated.
    """

    layer: MappedLayer
    machine_name: str
    value: float
    enough: float

    def is_near(self, gap: float) -> bool:
        """Return whether the mapping is within a gap of the bound, so that the machine needs no search."""
        return self.value * ROUNDING_FACTOR**2 <= self.enough * (1 + gap)


def families(machines: Iterable[Architecture]) -> dict[str, Family]:
    """Return the family of each machine that has one, by the machine's key.

    The memory whose size and prices may differ is the innermost one that differs among all machines. The least number of its
    accesses is known best, since operations read it.
    """
    known = {machine_key(machine): machine for machine in machines}
    varied = _innermost_varied(list(known.values()))
    by_key: dict[str, Family] = {}
    for keys in grouped((_common(machine, varied), key) for key, machine in known.items()).values():
        if len(keys) > 1:
            keys = sorted(keys, key=lambda key: _rank(known[key]))
            best = best_of([known[key] for key in keys])
            by_key |= dict.fromkeys(keys, Family({key: known[key] for key in keys}, best, machine_key(best)))
    return by_key


def best_of(machines: Sequence[Architecture]) -> Architecture:
    """Return a machine whose memories have the largest size, the lowest prices and the highest bandwidths of all.

    >>> import tilewright as tw
    >>> machine = tw.load("eyeriss", "architecture")
    >>> [memory.read_energy_pj for memory in best_of([machine, machine]).memories] == [
    ...     memory.read_energy_pj for memory in machine.memories]
    True
    """
    if len({machine_key(machine) for machine in machines}) == 1:
        return machines[0]
    clusters = []
    for number, cluster in enumerate(largest(machines).clusters):
        memories = []
        for place, memory in enumerate(cluster.memories):
            all_of = [machine.clusters[number].memories[place] for machine in machines]
            figures = {name: better(_figure(one, name) for one in all_of) for name, better in BEST_OF.items()}
            update: dict[str, Any] = {
                name: None if math.isinf(figures[name]) else figures[name] for name in (*RATES, *PRICES)
            }
            if len({one.capacity_words for one in all_of}) > 1 or any(figures[name] != _figure(memory, name) for name in PRICES):  # fmt: skip
                update |= {"area_um2": None, "component": None, "estimates": ()}
            memories.append(memory.model_copy(update=update))
        clusters.append(cluster.model_copy(update={"memories": tuple(memories)}))
    best = machines[0].model_copy(update={"clusters": tuple(clusters)})
    same = (machine for machine in machines if _without_told(machine) == _without_told(best))
    return next(same, best.model_copy(update={"name": f"best_of_{len(machines)}_like_{machines[0].name}"}))


class Stage(NamedTuple):
    """Further searches on some machines: all, the front and those near it, the lowest of the front, or all but the front.

    `gap`: fraction that the searches aim at.
    """

    configuration: RunConfiguration
    gap: float
    machines: Literal["all", "near", "lowest", "others"]


class Sharing(NamedTuple):
    """Searches of an exploration whose machines share results.

    Attributes:
        first: configuration of first searches.
        gap: gap that they aim at, as a fraction.
        shared_gap: largest gap of a result that is shared; inf if stages follow.
        stages: further searches of machines that matter.
    """

    first: RunConfiguration
    gap: float
    shared_gap: float
    stages: Sequence[Stage] = ()


def coarse(configuration: RunConfiguration) -> Sharing | None:
    """Return how machines share results under a configuration; None: they share none.

    Under constraints searches are quick, and first ones are exact, so that none has to be repeated.
    """
    mapper, model = configuration.mapper_record, configuration.model.record
    spec, gap = installed().find(MapperSpec, mapper.name).spec, mapper.options.get("gap")
    proves = isinstance(spec, MapperSpec) and spec.proof_version is not None and claimant(mapper, model) is None
    if not gap or not proves or configuration.constraints.uneven:
        return None
    if configuration.constraints.variants:
        return Sharing(_searching(configuration, gap=0.0), 0.0, float(gap))
    least, wide = max(float(gap), FIRST_GAP), mapper.options.get("width")
    first, second = (min(wide or width, width) for width in (FIRST_WIDTH, SECOND_WIDTH))
    stages = (
        Stage(_searching(configuration, gap=least, width=first), least, "all"),
        Stage(_searching(configuration, width=second), float(gap), "near"),
        Stage(configuration, float(gap), "lowest"),
        Stage(_searching(configuration, gap=least), least, "others"),
    )
    return Sharing(stages[0].configuration, least, math.inf, stages)


def _searching(configuration: RunConfiguration, **options: float) -> RunConfiguration:
    """Return a configuration with other values of some options of its mapper, as far as it has them."""
    mapper = configuration.mapper_record
    some = {name: value for name, value in options.items() if name in mapper.options}
    return dataclasses.replace(configuration, mapper=installed().make(MapperSpec, mapper.name, {**mapper.options, **some}))  # fmt: skip


def shared(search: LayerSearch, known: Sequence[Known]) -> Shared | None:
    """Return the best of the mappings known in a family, with the highest bound of better machines; None if none is legal."""
    began = time.process_time()
    distinct, way = search.distinct, search.configuration
    space, constrained, evaluator = bound(distinct, way)
    low, left, here = -math.inf, 1.0, Side.of(space, evaluator)
    for one in known:
        if one.least is not None and is_as_good(one.machine, way.architecture):
            raised = bound_from(one.least, one.side(), here, way.objective)
            if raised is not None and raised > low:
                low, left = raised, one.left
    names = {one.mapping: one.machine_name for one in reversed(known)}
    mappings = [mapping for mapping in names if legality(space.problem, space.architecture, mapping)]
    costs = [float(evaluator.evaluate(mapping).within(way.most_cycles).of(way.objective)[0]) for mapping in mappings]
    value = min(costs, default=math.inf)
    if math.isinf(value):
        return None
    best = mappings[costs.index(value)]
    report = explain(way.model, evaluator, space.problem, space.architecture, best)
    seconds = time.process_time() - began
    result = Result(
        best=best, value=value, evaluated=len(mappings), valid=len(mappings), rejected=0, stop="finished", cpu_seconds=seconds,
        wall_seconds=seconds, seed=way.seed, lower_bound=min(low, value) if low > 0 else None, objective=way.objective,
    )  # fmt: skip
    layer = MappedLayer(distinct, space.architecture, result, report, None, constrained)
    return Shared(layer, names[best], value, low * left)


def is_as_good(one: Architecture, other: Architecture) -> bool:
    """Return whether no memory of one machine is smaller, dearer or slower than that of another of its family."""
    return all(
        better((_figure(mine, name), _figure(theirs, name))) == _figure(mine, name)
        for mine, theirs in zip(one.memories, other.memories, strict=True)
        for name, better in BEST_OF.items()
    )


def bound_from(least: float, best: Side, here: Side, objective: Objective) -> float | None:
    """Return a lower bound on the objective of all mappings of a space, from one on a machine with better memories.

    Every mapping here is one there, needs as many accesses, and takes as many cycles or more. It costs more by the difference
    of prices, for the accesses that all mappings need (docs/spaces.md, "Shared searches").
    None: the spaces or the model do not allow that.
    """
    there, space = best.space, here.space
    if best.least is None or here.least is None:
        return None
    if (there.slots, there.skeleton, there.rules) != (space.slots, space.skeleton, space.rules):
        return None
    if not all((a == b).all() for a, b in zip(there.keeps, space.keeps, strict=True)):
        return None
    (more, _), (less, cycles) = here.least, best.least
    rise = objective.value(more, cycles) - objective.value(less, cycles)
    return (least + max(0.0, rise)) * ROUNDING_FACTOR


def _innermost_varied(machines: Sequence[Architecture]) -> str | None:
    """Return the name of the innermost memory whose size or prices differ; None: there is none, or the levels differ."""
    names = {tuple(memory.name for memory in machine.memories) for machine in machines}
    if len(names) != 1:
        return None
    for place in reversed(range(len(names.pop()))):
        memories = [machine.memories[place] for machine in machines]
        if len({tuple(_figure(memory, name) for name in (SIZE, *PRICES)) for memory in memories}) > 1:
            return memories[0].name
    return None


def _common(machine: Architecture, varied: str | None) -> str:
    """Return a digest of everything that the members of a family have in common."""
    data = _without_told(machine)
    for cluster in data["clusters"]:
        for memory in cluster["memories"]:
            for name in BEST_OF if memory["name"] == varied else RATES:
                del memory[name]
    return of_data(data)


def _without_told(machine: Architecture) -> dict[str, Any]:
    """Return the data of a machine that matter to its costs."""
    data = machine.model_dump(mode="json", exclude={"name", "source"})
    for cluster, part in zip(data["clusters"], machine.clusters, strict=True):
        for memory, model in zip(cluster["memories"], part.memories, strict=True):
            for name in _TOLD:
                del memory[name]
            memory["update_energy_pj"] = model.accumulation_energy_pj
    return data


def _sizes(machine: Architecture) -> list[float]:
    return [_figure(memory, SIZE) for memory in machine.memories]


def _rank(machine: Architecture) -> tuple[list[float], list[float]]:
    return _sizes(machine), [-_figure(memory, name) for memory in machine.memories for name in RATES]


def _figure(memory: Memory, name: str) -> float:
    """Return a size, bandwidth or price; inf if it is unlimited."""
    value = memory.accumulation_energy_pj if name == "update_energy_pj" else getattr(memory, name)
    return math.inf if value is None else float(value)
