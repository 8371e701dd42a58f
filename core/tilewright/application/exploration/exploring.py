"""Exploration runs: search the layers of a workload on each machine, and store each result immediately.

A strategy proposes points in groups, and excludes points by the results of earlier groups only.
So the searches do not depend on the number of processes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from tilewright.application.exploration.bounds import least, least_of_workload
from tilewright.application.exploration.families import (
    Family,
    Known,
    Shared,
    Sharing,
    Side,
    Stage,
    coarse,
    families,
    shared,
)
from tilewright.application.exploration.joint import map_together
from tilewright.application.exploration.pace import Pace
from tilewright.application.exploration.records import (
    PROVED,
    ExplorationRecord,
    ExploredPoint,
    FoundLayer,
    LayerRecord,
    first_of_equals,
    front,
    least_means,
    machine_key,
    memory_bits,
    method_of,
)
from tilewright.application.exploration.space import ArchitectureSpace, Point, Points
from tilewright.application.exploration.store import Store
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.network import (
    Engine,
    LayerSearch,
    MappedLayer,
    bound,
    chosen,
    needs_process,
    observed,
    observed_layer,
)
from tilewright.application.run.observing import RunObserver
from tilewright.digests import of_data
from tilewright.errors import ClusterError
from tilewright.formats import Form
from tilewright.interrupts import mark_result_found, stop_requested
from tilewright.plugin.guard.figures import may_bound
from tilewright.plugin.relaxed import Least
from tilewright.plugin.strategy import ExplorationTask, PointProposal, Strategy
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.mapping import Mapping as Loops
from tilewright.schema.workload import DistinctProblem, Workload
from tilewright.values import grouped

Watch = Callable[[float, str, float | None], None]
"""Callback with the number of finished points, a text for the current step, and the best objective so far."""
SHORTER = "--gap 5% shares searches, --seconds ends them earlier, --points tries some points, and Ctrl-C keeps what is finished"
"""How to shorten an exploration."""
ROUND = 16
"""Searches for families in a round, from which on no further family begins: few, so that the first points come early."""
SIDES = 4096
"""Map spaces of machines that are kept for the next member of a family."""
POLL_SECONDS = 0.2
"""Between two looks for results of another program that uses the store."""
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
    """Name of the strategy with its options."""
    asked: int
    """Number of points to try."""
    point: Points
    bounded: bool = True
    """Whether the strategy may exclude points by their bounds."""
    retry: bool = False
    watch: Watch | None = None
    together: bool = False
    """Whether the strategy proposes points together."""
    shares: Sequence[int] = ()
    """Points whose machines may share searches, if a gap is asked for."""
    record: ExplorationRecord = field(init=False)
    searched: set[Task] = field(init=False, default_factory=set)
    """Tasks searched in this run, without those found in the store."""

    def __post_init__(self) -> None:
        self.distinct = {distinct.problem.content_key: distinct for distinct in self.workload.distinct()}
        method, data = method_of(self.configuration)
        if self.together:
            data = data | {"together": of_data([self.space.to_data(), self.asked])}
            method = of_data([method, data["together"]])
        self.families: dict[str, Family] = {}
        """Families of machines that share searches, by the machines' keys."""
        sharing = coarse(self.configuration) if self.shares else None
        if sharing is not None:
            self.families = families(one for point in map(self.point, self.shares) if (one := point.architecture))
        self.machines = {family.key: family.best for family in self.families.values()}
        """Machines of families and their best ones, by their keys."""
        for family in self.families.values():
            self.machines |= family.members
        self._side = lru_cache(SIDES)(self._side_of)
        self.sharing = Sharing(self.configuration, 0.0, 0.0)
        self.done: set[tuple[Task, str]] = set()
        """Tasks with the method of a stage whose results were seen in the store; results stay there."""
        if sharing is not None and self.families:
            self.sharing = sharing
            data = data | {"families": of_data([self.space.to_data(), self.asked])}
            method = of_data([method, data["families"]])
        self.record = ExplorationRecord(
            workload=self.workload.name,
            layers=tuple(
                LayerRecord(
                    problem=key,
                    name=distinct.problem.name,
                    count=distinct.count,
                    macs=distinct.problem.macs,
                    sizes=distinct.problem.long_dimensions,
                )
                for key, distinct in self.distinct.items()
            ),
            space=FrozenDict(self.space.to_data()),
            size=len(self.space),
            strategy=self.name,
            asked=self.asked,
            objective=self.configuration.objective,
            method=method,
            methods=FrozenDict(data),
        )
        self.stages = self.sharing.stages
        self.methods = {stage.machines: of_data([self.record.method, stage.machines]) for stage in self.stages}
        """Methods of stages in the store."""
        self.store.begin(self.record, {key: distinct.problem for key, distinct in self.distinct.items()})
        searches = [LayerSearch(distinct, self.configuration) for distinct in self.distinct.values()]
        self.observer = RunObserver(observed(searches, self.space.name))
        self.judged = 0
        self.refuted: str | None = None
        """Which bound of the cost model is above a cost: then no point is left out for its bounds."""
        self.interrupted = False
        """A search came back unfinished."""
        self.failure: ClusterError | None = None
        """The lost cluster, where that is why."""
        self.early: list[ExploredPoint] = []
        """The finished points of a group, until all of it are."""
        self.firsts = {(family.key, problem) for family in self.families.values() for problem in self.distinct}
        """First searches of families."""
        self.searched_firsts = 0
        self.pace = Pace(shares=bool(self.firsts))
        self.best: list[ExploredPoint] = []
        """The front of what was found."""

    def run(self) -> bool:
        """Search all tasks missing from the store; return whether none was left. Raises OutputError, PluginError."""
        groups = self.strategy.explore(self._task())
        with ExitStack() as closing:
            closing.callback(self.observer.ended)
            self.observer.started()
            with suppress(StopIteration):
                group = next(groups)
                while not stop_requested() and (judged := self._judged(group)) is not None:
                    group = groups.send([point.result for point in judged])
                return False
            return self._refine()

    def _task(self) -> ExplorationTask:
        return ExplorationTask(
            choices={name: self.space.values_of(name) for name in self.space.choices},
            workload=self.workload,
            objective=self.configuration.objective,
            points=self.asked,
            seed=self.configuration.seed,
            architecture=partial(_architecture, self.point),
            bounds=partial(_bounds, self.point, self.workload, self.configuration) if self.bounded else None,
            report=lambda text: self._tell(0.0, text),
        )

    def _judged(self, group: Sequence[PointProposal]) -> list[ExploredPoint] | None:
        """Refuse points, leave them out or search them; None where a search was interrupted."""
        judged, rest, together = [], [], []
        for proposal in group:
            point = self.point(proposal.index)
            if point.architecture is None:
                told = "; ".join(map(str, point.reasons))
                judged.append(ExploredPoint(point.index, point.values, "refused", told))
            elif proposal.needless is not None and self.refuted is None:
                judged.append(ExploredPoint(point.index, point.values, "bounded", proposal.needless, self._kept(point)))
            else:
                rest.append(point)
                together += [point] * (proposal.together and self.together)
        self._search_together(together)
        done = self._searched(rest)
        self.judged += len(judged) + len(done)
        for judged_point in (*judged, *done):
            self.store.judge(self.record.key, judged_point)
        self.store.checkpoint()
        self.best = list(front([*self.best, *done]))
        return [*judged, *done] if len(done) == len(rest) else None

    def _search_together(self, points: Sequence[Point]) -> None:
        """Search machines as one, and keep the results; what cannot be searched so is left to `_searched`."""
        if len(points) < 2:
            return
        machines = [self._kept(point) for point in points]
        for problem, distinct in self.distinct.items():
            known = [self._known((machine, problem)) is not None for machine in machines]
            if all(known) or stop_requested():
                continue
            here = [self.configuration.on_architecture(point.architecture) for point in points if point.architecture]
            ways = [chosen(distinct, way) for way in here]
            if not all(map(_searches_together, ways)):
                continue
            self._tell(0.0, f"{distinct.problem.name} on {len(points)} machines together")
            self.observer.layer_started(distinct.problem.name)
            layers = map_together(distinct, ways)
            observed_layer(min(layers, key=lambda layer: layer.edp or math.inf), self.observer)
            for machine, layer in zip(machines, layers, strict=True):
                new = FoundLayer.of(layer)
                if new is None:
                    self.interrupted = True
                    return
                self.store.keep(machine, problem, self.record.method, new)
                self.searched.add((machine, problem))
            mark_result_found()

    def _searched(self, wave: Sequence[Point]) -> list[ExploredPoint]:
        """Search machines; fewer come back where a search was interrupted."""
        machines = {point.index: self._kept(point) for point in wave}
        points = grouped((machines[point.index], point) for point in wave)
        known: dict[Task, FoundLayer] = {}
        todo: dict[Task, LayerSearch] = {}
        for point in wave:
            if stop_requested():
                break
            assert point.architecture is not None
            here = self.sharing.first.on_architecture(point.architecture)
            for problem, distinct in self.distinct.items():
                task = machines[point.index], problem
                if (known_layer := self._known(task)) is None:
                    todo[task] = LayerSearch(distinct, chosen(distinct, here))
                else:
                    known[task] = known_layer
        new = len(todo)

        def outcome(point: Point) -> ExploredPoint | None:
            """Return a point with its results; None if some are missing."""
            machine = machines[point.index]
            layers = tuple((layer, known[machine, layer.problem]) for layer in self.record.layers if (machine, layer.problem) in known)  # fmt: skip
            if len(layers) < len(self.record.layers):
                return None
            area, bits = None, 0
            if point.architecture is not None:
                area, bits = point.architecture.area_um2, memory_bits(point.architecture)
            return ExploredPoint(point.index, point.values, "searched", None, machine, area, layers, memory_bits=bits)

        def tell(what: str) -> None:
            self._tell(len(wave) * (new - len(todo)) / max(1, new), what)

        tell(f"{len(wave)} points")
        while todo and not stop_requested():
            waits = True
            for task, layer in self._next(todo):
                known[task], waits = layer, False
                if todo.pop(task, None) is None:
                    continue  # of another machine of a family
                mine = [] if any(other[0] == task[0] for other in todo) else points[task[0]]
                self.early += [early for point in mine if (early := outcome(point)) is not None]
                tell(self.distinct[task[1]].problem.name)
            if not todo or self.interrupted:
                break
            for task in list(todo):
                if (known_layer := self._known(task)) is not None:
                    known[task] = known_layer
                    del todo[task]
                    waits = False
            if todo and waits:
                tell(f"{len(todo)} searches of another program")
                time.sleep(POLL_SECONDS)
        self.early = []
        return [point for point in map(outcome, wave) if point is not None]

    def _next(self, todo: Mapping[Task, LayerSearch]) -> Iterator[tuple[Task, FoundLayer]]:
        """Yield results of the next searches: all, but of each family and problem that has no result yet the first one only.

        First what a family knows is tried on its further members.
        """
        now: dict[Task, LayerSearch] = {}
        begun: set[Task] = set()
        for task, search in list(todo.items()):
            family = self.families.get(task[0])
            if family is None:
                now[task] = search
                continue
            if stop_requested():
                return
            best = family.key, task[1]
            if best in begun or (len(begun) >= ROUND and family.key not in {key for key, _ in begun}):
                continue
            first = family.first_like(task[0]), task[1]
            if self._known(best) is None:
                self.store.keep_machine(family.key, family.best)
                now[best] = self._search_of(search.distinct, self.sharing.first, family.best)
            elif (near := self._shared(task, family, search)) is not None and near.is_near(self.sharing.shared_gap):  # fmt: skip
                yield task, self._keep_shared(task, near, self.stages[0] if self.stages else None)
                continue
            elif first == task or self._known(first) is not None:
                now[task] = search
            else:  # its bound may serve this machine, too
                self.store.keep_machine(first[0], family.members[first[0]])
                now[first] = self._search_of(search.distinct, self.sharing.first, family.members[first[0]])
            begun.add(best)
        for task, result in self._search(now):
            if self.stages:
                self.store.keep(*task, self.methods[self.stages[0].machines], result)
            yield task, result

    def _search_of(
        self, distinct: DistinctProblem, way: RunConfiguration, machine: Architecture, start: Loops | None = None
    ) -> LayerSearch:
        return LayerSearch(distinct, chosen(distinct, way.on_architecture(machine)), start=start)

    def _shared(self, task: Task, family: Family, search: LayerSearch) -> Shared | None:
        """Return the result on a member of a family from those of all members."""
        known = []
        for key, machine in ((family.key, family.best), *family.members.items()):
            layer = self._known((key, task[1]))
            if (
                layer is not None
                and layer.energy_pj is not None
                and layer.cycles is not None
                and (loops := layer.loops())
            ):
                of_stages = [stage for stage in self.stages if self._is_done((key, task[1]), stage)]
                asked = of_stages[-1].gap if of_stages else self.sharing.gap
                low = layer.lower_bound
                if self.stages and not of_stages:
                    low = None  # it is that of another machine
                proved = (low or 0.0) * (1 + asked)
                left = max(1.0, layer.value(self.record.objective) / proved) if proved else 1.0
                side = partial(self._side, key, task[1])
                known.append(Known(machine, loops, low, left, layer.shared_from or machine.name, side))
        return shared(search, known)

    def _side_of(self, machine: str, problem: str) -> Side:
        search = self._search_of(self.distinct[problem], self.sharing.first, self.machines[machine])
        space, _, evaluator = bound(search.distinct, search.configuration)
        return Side.of(space, evaluator)

    def _keep_shared(self, task: Task, near: Shared, stage: Stage | None = None) -> FoundLayer:
        """Store a result of other machines, joined with the earlier one, and whether a stage is done with it; return it."""
        new, old = FoundLayer.of(near.layer), self._known(task)
        assert new is not None, "it was not interrupted"
        if near.machine_name != self.families[task[0]].members[task[0]].name:
            new = new.model_copy(update={"shared_from": near.machine_name})
        new = new if old is None else old.joined(new, self.record.objective)
        self.store.keep(*task, self.record.method, new, replace=True)
        if stage is not None and near.is_near(stage.gap):
            self.store.keep(*task, self.methods[stage.machines], new)
        mark_result_found()
        self.searched.add(task)
        return new

    def _refine(self) -> bool:
        """Search the machines that matter, stage by stage, until no stage has more to search; return whether all was done.

        Results of a stage have a method of their own in the store, and replace earlier ones.
        """
        while any([self._has_searched(stage) for stage in self.stages]):  # a stage may change the front
            pass
        return not (stop_requested() or self.interrupted)

    def _has_searched(self, stage: Stage) -> bool:
        """Search all tasks of a stage; return whether there were any."""
        fresh: set[tuple[str, str]] = set()
        """Families and problems with new results."""
        has_searched = False
        while not (stop_requested() or self.interrupted):
            for task in self._open(stage) if fresh else []:
                family = self.families.get(task[0])
                if family is not None and (family.key, task[1]) in fresh:
                    self._share_again(task, family, stage)
            todo = self._further(stage)
            if not todo:
                return has_searched
            fresh = set(self._search_further(todo, stage))
            has_searched = True
            if not fresh:
                time.sleep(POLL_SECONDS)  # searches of another program
        return False

    def _share_again(self, task: Task, family: Family, stage: Stage) -> None:
        """Store the result on a member of a family that has new results."""
        search = self._search_of(self.distinct[task[1]], self.sharing.first, self.machines[task[0]])
        near = self._shared(task, family, search)
        if near is not None:
            self._keep_shared(task, near, stage)

    def _further(self, stage: Stage) -> dict[Task, LayerSearch]:
        """Return the next searches of a stage, from the mappings that are known; none are left if it is empty.

        Of each family and problem it is one: on the best machine, on the first member that is as good as an open one of its
        size, or on that one.
        """
        todo: dict[Task, LayerSearch] = {}
        begun: set[Task] = set()
        for machine, problem in self._open(stage):
            members = {machine: self.store.architecture(machine)}
            family = self.families.get(machine)
            if family is not None:
                first = family.first_like(machine)
                members = {first: family.members[first]} | members
                if stage.machines == "others":
                    members = {family.key: family.best} | members
            group = machine if family is None else family.key, problem
            if group in begun:
                continue
            begun.add(group)
            key, where = next(
                (key, where) for key, where in members.items() if not self._is_done((key, problem), stage)
            )
            known = self._known((key, problem))
            start = None if known is None else known.loops()
            todo[key, problem] = self._search_of(self.distinct[problem], stage.configuration, where, start)
        return todo

    def _search_further(self, todo: Mapping[Task, LayerSearch], stage: Stage) -> Iterator[tuple[str, str]]:
        """Search at a stage; yield the family, or else the machine, and the problem of each result."""
        for count, (task, result) in enumerate(self._search(todo, self.methods[stage.machines]), 1):
            old = self._known(task)
            if result.reason is None:
                result = result if old is None else old.joined(result, self.record.objective)
                self.store.keep(*task, self.record.method, result, replace=True)
            self._tell(0.0, f"{count} of {len(todo)} searches of machines that matter")
            family = self.families.get(task[0])
            yield task[0] if family is None else family.key, task[1]

    def _is_done(self, task: Task, stage: Stage) -> bool:
        method = self.methods[stage.machines]
        if (task, method) not in self.done and self.store.find(*task, method, self.record.objective) is not None:
            self.done.add((task, method))
        return (task, method) in self.done

    def _open(self, stage: Stage) -> list[Task]:
        """Return the tasks of a stage: of each undecided machine the fewest layers whose bounds may decide it.

        A machine of the front is decided if its bound is within the stage's gap of its `mean`. For another one, the mean is that
        of a machine of the front that is not larger. It is near the front if it costs at most the gap more. The lowest machines
        are those of the front without such a mean below their own. Where all machines are searched, so are layers wider than
        twice the gap: a machine may be on the front for its energy or cycles alone.
        """
        objective = self.record.objective
        points = [point for point in self.store.points(self.record) if point.gap(objective) is not None]
        best = first_of_equals(front(points))
        numbers = {point.index for point in best}
        tasks: list[Task] = []
        for point, least_mean in zip(points, least_means(points, best, objective), strict=True):
            mean, is_best = point.mean(objective)[0], point.index in numbers
            is_near = is_best or mean * PROVED <= least_mean * (1 + stage.gap)
            is_lowest = is_best and mean * PROVED <= least_mean
            wanted = {"all": True, "near": is_near, "lowest": is_lowest, "others": not is_best}[stage.machines]
            if point.machine is None or not wanted:
                continue
            aim = mean if is_best else min(mean, least_mean)
            done = {layer.problem for layer, _ in point.layers if self._is_done((point.machine, layer.problem), stage)}
            left = point.undecided(aim * PROVED / (1 + stage.gap), stage.gap, objective, done)
            if stage.machines == "all":
                left += point.wide(2 * stage.gap, objective, {*done, *left})
            tasks += [(point.machine, problem) for problem in left]
        return tasks

    def _search(self, todo: Mapping[Task, LayerSearch], method: str | None = None) -> Iterator[tuple[Task, FoundLayer]]:
        """Yield results of the searches that this program could claim, each written to the store before."""
        tasks, method = list(todo), method or self.record.method

        def wanted(position: int) -> bool:
            task = tasks[position]
            retry = self.retry and task not in self.searched
            if self.store.claim(*task, method, retry=retry) != "claimed":
                return False
            self.observer.layer_started(self.distinct[task[1]].problem.name)
            return True

        for position, layer in self.engine(list(todo.values()), wanted=wanted):
            if isinstance(layer.error, ClusterError):
                self.failure, self.interrupted = layer.error, True
                return
            layer = observed_layer(layer, self.observer)
            new = FoundLayer.of(layer)
            if new is None:
                self.interrupted = True
                return
            self._try_bounds(todo[tasks[position]], layer)
            self.store.keep(*tasks[position], method, new)
            mark_result_found()
            self.searched.add(tasks[position])
            self.searched_firsts += tasks[position] in self.firsts
            yield tasks[position], new

    def _try_bounds(self, search: LayerSearch, layer: MappedLayer) -> None:
        """Compare a result with the bounds of its machine, if the cost model is not built in; log the first failure of bounds."""
        model = self.configuration.model.record
        if self.refuted is not None or claimant(model) is None or layer.report is None:
            return
        told = None if layer.error is None else layer.error.message
        if self.bounded and told is None:
            for unit, low, cost in zip(("pJ", "cycles"), least(search), (layer.energy_pj, layer.cycles), strict=True):
                if cost is not None and not may_bound(low, cost):
                    form = Form.of([low, cost], unit)
                    told = f"cost model {model} failed: its relaxation says that {layer.name} takes at least {form.text(low)} {form.unit} on a machine, but it takes {form.text(cost)}"
        if told is not None:
            self.refuted = told
            logging.getLogger("tilewright").warning("warning: %s; no further point is left out for its bounds", told)

    def _tell(self, under_way: float, what: str) -> None:
        hint = SHORTER if self.configuration.constraints.variants else f"--constraints narrows each search, {SHORTER}"
        searched = self.searched_firsts if self.firsts else len(self.searched)
        told = self.pace.told(searched, partial(self._left, under_way), hint)
        if told is not None:
            logging.getLogger("tilewright").warning("note: %s", told)
        if self.watch is not None:
            finished = [point.of(self.record.objective) for point in (*self.best, *self.early)]
            best = min(finished, default=None)
            self.watch(self.judged + under_way, what, best)

    def _left(self, under_way: float) -> float:
        """Return the number of searches that `pace` counts and that are left."""
        if self.firsts:
            return sum(self._known(task) is None for task in self.firsts)
        return (self.asked - self.judged - under_way) * len(self.distinct)

    def _kept(self, point: Point) -> str:
        """The key of its machine, which is in the store then."""
        assert point.architecture is not None
        key = machine_key(point.architecture)
        self.store.keep_machine(key, point.architecture)
        return key

    def _known(self, task: Task) -> FoundLayer | None:
        layer = self.store.find(*task, self.record.method, self.record.objective)
        if layer is None or (self.retry and layer.reason is not None and task not in self.searched):
            return None
        mark_result_found()
        return layer

    def points(self) -> tuple[ExploredPoint, ...]:
        """Return all points so far, with their outcomes."""
        return tuple(
            replace(point, cached=point.outcome == "searched" and not any(task[0] == point.machine for task in self.searched))
            for point in self.store.points(self.record)
        )  # fmt: skip


def _searches_together(way: RunConfiguration) -> bool:
    """Return whether a mapper searches several machines as one."""
    return way.mapper_capabilities.several_machines and not way.constraints.uneven and not needs_process(way)


# a strategy in a child process has its own copy of the points


def _architecture(point: Points, index: int) -> Architecture | None:
    return point(index).architecture


def _bounds(point: Points, workload: Workload, configuration: RunConfiguration, index: int) -> Least:
    architecture = point(index).architecture
    return (0.0, 0.0) if architecture is None else least_of_workload(architecture, workload, configuration)
