"""Exploring: the layers of a workload searched on machine after machine, each result kept as soon as it is there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilewright.exploration.records import (
    ExplorationRecord,
    ExploredPoint,
    FoundLayer,
    LayerRecord,
    machine_key,
    method_of,
)
from tilewright.exploration.space import ArchitectureSpace, Point
from tilewright.exploration.store import Store
from tilewright.run.configuration import RunConfiguration
from tilewright.run.network import LayerSearch, MappedLayer, told_watchers
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.workload import Workload

WAVE = 16
"""Points whose layers are searched at once."""
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
    strategy: str
    order: Sequence[int]
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
            strategy=self.strategy,
            asked=len(self.order),
            objective=self.configuration.objective,
            method=method,
            methods=FrozenDict(data),
        )
        self.store.begin(self.record, {key: each.problem for key, each in self.distinct.items()})
        self.silenced: set[str] = set()

    def run(self) -> bool:
        """Search whatever is not in the store; whether it came to the end. Raises OutputError, PluginError."""
        order = iter(self.order)
        while wave := [self.space.point(index) for index in itertools.islice(order, WAVE)]:
            if not self._searched(wave):
                return False
        return True

    def _searched(self, wave: Sequence[Point]) -> bool:
        """Judge some points; false where a search was interrupted."""
        machines = {point.index: self._kept(point) for point in wave}
        todo: dict[Task, LayerSearch] = {}
        for point in wave:
            if point.architecture is None:
                continue
            here = replace(self.configuration, architecture=point.architecture)
            for problem, distinct in self.distinct.items():
                task = machines[point.index], problem
                if self._known(task) is None:
                    todo[task] = LayerSearch(distinct, here)
        tasks = list(todo)
        for position, layer in self.engine(list(todo.values())):
            layer = told_watchers(layer, self.silenced)
            found = FoundLayer.of(layer)
            if found is None:
                return False
            self.store.keep(*tasks[position], self.record.method, found)
            self.searched.add(tasks[position])
        missing = [task for task in tasks if task not in self.searched]
        for point in wave:
            if point.architecture is None:
                told = "; ".join(map(str, point.reasons))
                self._judge(ExploredPoint(point.index, point.values, "refused", told))
            elif not any(machine == machines[point.index] for machine, _ in missing):
                self._judge(ExploredPoint(point.index, point.values, "searched", machine=machines[point.index]))
        return not missing

    def _kept(self, point: Point) -> str:
        """The key of its machine, which is in the store then; empty where it is none."""
        if point.architecture is None:
            return ""
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
