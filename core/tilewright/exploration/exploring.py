"""Exploring: the layers of a workload searched on machine after machine, each result kept as soon as it is there.

Points are taken in waves of a fixed size, and what a strategy need not search follows from the waves before: so the same is searched
however many processes take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilewright.exploration.records import (
    ExplorationRecord,
    ExploredPoint,
    FoundLayer,
    LayerRecord,
    front,
    machine_key,
    method_of,
)
from tilewright.exploration.space import ArchitectureSpace, Point
from tilewright.exploration.store import Store
from tilewright.exploration.strategies import Strategy
from tilewright.run.configuration import RunConfiguration
from tilewright.run.network import LayerSearch, MappedLayer, told_watchers
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.workload import Workload

Engine = Callable[[Sequence[LayerSearch]], Iterator[tuple[int, MappedLayer]]]
"""Searches -> (position, what was found) as each is done."""
Task = tuple[str, str]
"""Machine and problem, by their keys."""


@dataclass
class Exploration:
    """A workload on the machines of a space. `retry`: what failed before is searched again."""

    workload: Workload
    space: ArchitectureSpace
    configuration: RunConfiguration
    store: Store
    engine: Engine
    strategy: Strategy
    name: str
    """What the strategy is called, with what it was told."""
    asked: int
    """How many points are to be tried."""
    retry: bool = False
    record: ExplorationRecord = field(init=False)
    searched: set[Task] = field(init=False, default_factory=set)
    """What was searched now, not before."""

    def __post_init__(self) -> None:
        self.distinct = {each.problem.content_key: each for each in self.workload.distinct()}
        method, data = method_of(self.configuration)
        self.record = ExplorationRecord(
            workload=self.workload.name,
            layers=tuple(
                LayerRecord(problem=key, name=each.problem.name, count=each.count, macs=each.problem.macs)
                for key, each in self.distinct.items()
            ),
            space=FrozenDict(self.space.to_data()),
            size=len(self.space),
            strategy=self.name,
            asked=self.asked,
            objective=self.configuration.objective,
            method=method,
            methods=FrozenDict(data),
        )
        self.store.begin(self.record, {key: each.problem for key, each in self.distinct.items()})
        self.silenced: set[str] = set()
        self.best: list[ExploredPoint] = []
        """The front of what was found."""

    def run(self) -> bool:
        """Search whatever is not in the store; whether it came to the end. Raises OutputError, PluginError."""
        return all(map(self._judged, self.strategy.waves()))

    def _judged(self, wave: Sequence[Point]) -> bool:
        """Refuse points, leave them out or search them; false where a search was interrupted."""
        rest = []
        for point in wave:
            needless = self.strategy.needless(point, self.best) if point.architecture is not None else None
            if point.architecture is None:
                told = "; ".join(map(str, point.reasons))
                self._judge(ExploredPoint(point.index, point.values, "refused", told))
            elif needless is not None:
                self._judge(ExploredPoint(point.index, point.values, "bounded", needless, self._kept(point)))
            else:
                rest.append(point)
        return self._searched(rest)

    def _searched(self, wave: Sequence[Point]) -> bool:
        """Search machines; false where a search was interrupted."""
        machines = {point.index: self._kept(point) for point in wave}
        known: dict[Task, FoundLayer] = {}
        todo: dict[Task, LayerSearch] = {}
        for point in wave:
            assert point.architecture is not None
            here = replace(self.configuration, architecture=point.architecture)
            for problem, distinct in self.distinct.items():
                task = machines[point.index], problem
                if (found := self._known(task)) is None:
                    todo[task] = LayerSearch(distinct, here)
                else:
                    known[task] = found
        tasks = list(todo)
        for position, layer in self.engine(list(todo.values())):
            layer = told_watchers(layer, self.silenced)
            new = FoundLayer.of(layer)
            if new is None:
                return False
            self.store.keep(*tasks[position], self.record.method, new)
            self.searched.add(tasks[position])
            known[tasks[position]] = new
        done = []
        for point in wave:
            machine = machines[point.index]
            layers = tuple((layer, known[machine, layer.problem]) for layer in self.record.layers if (machine, layer.problem) in known)  # fmt: skip
            if len(layers) == len(self.record.layers):
                area = None if point.architecture is None else point.architecture.area_um2
                done.append(ExploredPoint(point.index, point.values, "searched", None, machine, area, layers))
                self._judge(done[-1])
        self.best = list(front([*self.best, *done]))
        return len(done) == len(wave)

    def _kept(self, point: Point) -> str:
        """The key of its machine, which is in the store then."""
        assert point.architecture is not None
        key = machine_key(point.architecture)
        self.store.keep_machine(key, point.architecture)
        return key

    def _known(self, task: Task) -> FoundLayer | None:
        found = self.store.find(*task, self.record.method)
        again = self.retry and found is not None and found.reason is not None and task not in self.searched
        return None if again else found

    def _judge(self, point: ExploredPoint) -> None:
        self.store.judge(self.record.key, point)

    def points(self) -> tuple[ExploredPoint, ...]:
        """What became of the points so far."""
        return tuple(
            replace(each, cached=each.outcome == "searched" and not any(task[0] == each.machine for task in self.searched))
            for each in self.store.points(self.record)
        )  # fmt: skip
