"""Networks whose intermediate results stay in an on-chip memory between layers.

A *resident* result stays whole in one memory, from the layer that makes it to the last layer that reads it. Each layer
is an ordinary mapping: resident tensors start at that memory instead of the outermost one, and what is alive there
takes its capacity. So the least cost of a network follows from dynamic programming over its layers. The state is the
set of live residents. Layers are searched only where a bound cannot decide (docs/fusion.md, "Networks").
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.errors import InputError, NotConformableError, Reason
from tilewright.mapspace.legality import legality
from tilewright.plugin.group_report import port_limits
from tilewright.run.configuration import RunConfiguration
from tilewright.run.evaluation import evaluate
from tilewright.run.network import LayerSearch, MappedLayer, space_of
from tilewright.run.resident_group import resident_group
from tilewright.schema.architecture import Architecture, Memory, Network
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.read import shape_of
from tilewright.schema.report import Report
from tilewright.schema.workload import Layer, Workload

Search = Callable[[Sequence[LayerSearch]], Iterator[MappedLayer]]
"""Maps problems, each with a configuration of its own, in order."""
HOME = "_resident"
"""Suffix of the copy of the home that keeps resident tensors while one layer is mapped."""


@dataclass(frozen=True)
class Intermediate:
    """A result that may be resident.

    Attributes:
        first, last: positions of the maker and of the last reader.
        operands: reader -> its names of the tensor.
        words: capacity that it takes in the home, in words.
    """

    maker: str
    result: str
    first: int
    last: int
    operands: dict[str, tuple[str, ...]]
    words: float


@dataclass(frozen=True)
class Case:
    """One layer's problem, its resident tensors, and the words of the home that live tensors take."""

    problem: str
    resident: frozenset[str]
    reserved: float


@dataclass(frozen=True)
class Cost:
    """Cost of a layer in a case.

    `value` and `cycles` are those found, `bound` is a lower bound of the objective. All are inf if nothing fits.
    """

    value: float
    bound: float
    energy_pj: float = math.inf
    cycles: float = math.inf
    layer: MappedLayer | None = None


@dataclass(frozen=True)
class Placement:
    """Chosen residents, with the cost of each layer in order.

    `bound` is a lower bound of the network over all choices of residents.
    """

    residents: tuple[Intermediate, ...]
    costs: tuple[Cost, ...]
    energy_pj: float
    cycles: float
    value: float
    bound: float


def home_of(architecture: Architecture) -> Memory | None:
    """Return the memory for resident tensors: the outermost single one, inside the outermost cluster, for all roles but weights."""
    for number, cluster in enumerate(architecture.clusters):
        if architecture.instances[number] > 1 or (
            number and architecture.clusters[number - 1].fanout.network != Network()
        ):
            return None
        for memory in cluster.memories if number else ():
            if memory.holds is None or {"input", "output"} <= set(memory.holds):
                return memory
    return None


def intermediates(workload: Workload, home: Memory, width: Callable[[Problem, Tensor], float]) -> list[Intermediate]:
    """Return the results that may be resident.

    All readers must be known, and read nothing else in that operand but padding. The home must hold the result in the
    roles that it has for maker and readers. The maker, the readers and the layers between must be repeated equally often.
    Several makers of one operand add to one sum, which the last of them completes. The sum before lives until then.

    Args:
        width: words of one value in the home.
    """
    order = {layer.name: number for number, layer in enumerate(workload.layers)}
    sums, unknown = _sums(workload)
    completed = Counter(max(makers, key=order.__getitem__) for makers in sums)
    found = []
    for makers, readers in sums.items():
        maker = workload.layer(max(makers, key=order.__getitem__))
        later = [each for each in sums if makers < each and each - makers == {max(each, key=order.__getitem__)}]
        first = order[maker.name]
        uses = [order[reader] for reader in readers] + [order[max(each, key=order.__getitem__)] for each in later]
        if unknown & makers or completed[maker.name] > 1 or not uses or min(uses) <= first:
            continue
        held = [workload.layer(reader).problem.tensor(t) for reader, operands in readers.items() for t in operands]
        if not all(map(home.may_hold, (maker.problem.output, *held))):
            continue
        if any(each.count != maker.count for each in workload.layers[first : max(uses) + 1]):
            continue
        words = maker.problem.tensor_words(maker.problem.output) * width(maker.problem, maker.problem.output)
        operands = {reader: tuple(each) for reader, each in readers.items()}
        found.append(Intermediate(maker.name, maker.problem.output.name, first, max(uses), operands, words))
    return found


def _sums(workload: Workload) -> tuple[dict[frozenset[str], dict[str, list[str]]], set[str]]:
    """Return the makers of each sum -> its readers, with their operands; and the layers whose results have other uses.

    A single result is a sum of one. A result that only a later sum reads has no readers.
    """
    sums, unknown = dict[frozenset[str], dict[str, list[str]]](), set[str]()
    for number, layer in enumerate(workload.layers):
        before = [each.name for each in workload.layers[:number]] if layer.after is None else layer.after
        unknown |= set(before) - {read.maker for reads in layer.reads.values() for read in reads}
        for operand, reads in layer.reads.items():
            makers = frozenset(read.maker for read in reads)
            if not makers:
                continue
            if len(makers) < len(reads) or not all(_whole(workload, layer, operand, each) for each in makers):
                unknown |= makers
            else:
                sums.setdefault(makers, {}).setdefault(layer.name, []).append(operand)
    order = {layer.name: number for number, layer in enumerate(workload.layers)}
    for makers in list(sums):
        first = frozenset({min(makers, key=order.__getitem__)})
        if len(makers) == 2:
            sums.setdefault(first, {})
        rest = makers - {max(makers, key=order.__getitem__)}
        if rest and rest not in sums:
            unknown |= makers
    return sums, unknown


def exchanged(workload: Workload) -> list[frozenset[str]]:
    """Return the tensors of each layer whose words other layers make or read, whether it is known which words or not.

    A layer that is executed several times may read its own earlier results. Only for workloads without `unknown` layers.
    """
    used = {name for layer in workload.layers for name in layer.after or ()}
    found = []
    for layer in workload.layers:
        lost = set(layer.after or ()) - {read.maker for reads in layer.reads.values() for read in reads}
        repeated = layer.count > 1
        names = {
            operand.name
            for operand in layer.problem.operands
            if layer.reads.get(operand.name) or (operand.name not in layer.reads and (lost or repeated))
        }
        if repeated or layer.name in used:
            names.add(layer.problem.output.name)
        found.append(frozenset(names))
    return found


def _whole(workload: Workload, layer: Layer, operand: str, maker: str) -> bool:
    """Return whether one layer makes all words of an operand, apart from padding, alone or with other makers."""
    read = next(each for name, t, each in workload.edges if (name, t, each.maker) == (layer.name, operand, maker))
    if read.cut is not None:
        return False
    ranks = layer.problem.tensor(operand).projection
    for index, size, rank in zip(read.read or (), shape_of(layer.problem, operand), ranks, strict=True):
        padded = len(rank.terms) > 1 or set(rank.terms.values()) != {1}
        if not padded and math.prod(read.sizes[name] for name in index.terms) != size:
            return False
    return True


def on_chip(architecture: Architecture, problem: Problem, home: Memory, case: Case) -> Architecture | None:
    """Return the architecture of a layer in a case, or None if nothing is left of the home.

    Resident tensors start at a copy of the home beside the outermost memories, and bypass the home itself.
    """
    place = architecture.cluster_index[architecture.cluster_of(home.name).name]
    usable, left = home.usable_words, None
    if usable is not None:
        left = math.floor(usable - case.reserved)
        others = [t for t in problem.tensors if home.may_hold(t) and t.name not in case.resident]
        if left < sum(math.ceil(home.words_of(each)) for each in others) or left < 1:
            return None
        left = math.ceil(left * home.multiple_buffering)

    def without(memory: Memory) -> Memory:
        holds = tuple(t.name for t in problem.tensors if memory.may_hold(t) and t.name not in case.resident)
        capacity = left if memory.name == home.name else memory.capacity_words
        return memory.model_copy(update={"holds": holds, "capacity_words": capacity})

    clusters = [
        cluster.model_copy(update={"memories": tuple(map(without, cluster.memories))}) if number <= place else cluster
        for number, cluster in enumerate(architecture.clusters)
    ]
    if case.resident:
        update = {"name": home.name + HOME, "holds": tuple(sorted(case.resident)), "capacity_words": None}
        copy = home.model_copy(update=update | {"leakage_pj_per_cycle": 0.0, "area_um2": None})
        clusters[0] = clusters[0].model_copy(update={"memories": (*clusters[0].memories, copy)})
    return architecture.model_copy(update={"clusters": tuple(clusters)})


@dataclass
class ResidentNetwork:
    """Costs of a network's layers by case, searched when they are needed."""

    workload: Workload
    configuration: RunConfiguration
    search: Search
    costs: dict[Case, Cost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise NotConformableError if the objective or the hardware is not covered."""
        architecture, objective = self.configuration.architecture, self.configuration.objective
        reasons = [
            Reason(code="sparse", where=name, message="sparse hardware is not counted in groups")
            for name in architecture.sparse_parts
        ]
        if objective == "edp":
            text = "the EDP of a network is not the sum of its layers'; expected energy or cycles"
            reasons.append(Reason(code="objective", where="objective", message=text))
        if not self.configuration.model.capabilities.groups:
            name = self.configuration.model.name
            reasons.append(Reason(code="groups", where=f"cost model {name}", message="group mappings are not accepted"))
        if reasons:
            hint = "give --objective energy or --objective cycles" if objective == "edp" else None
            raise NotConformableError("the mapper of fused networks", tuple(reasons), hint=hint)
        self.home = home_of(architecture)
        self.distinct = {each.problem.content_key: each for each in self.workload.distinct()}
        self.may_stay = [] if self.home is None else intermediates(self.workload, self.home, self._width)
        self.exchanged = [
            frozenset(
                name for name in names if self.home is not None and self.home.may_hold(layer.problem.tensor(name))
            )
            for layer, names in zip(self.workload.layers, exchanged(self.workload), strict=True)
        ]
        self.shrinks = self.home is not None and _is_cheaper(self.home, architecture)

    def _width(self, problem: Problem, tensor: Tensor) -> float:
        assert self.home is not None
        memories = self.configuration.architecture_for(problem).memories
        return next(each for each in memories if each.name == self.home.name).words_of(tensor)

    def case(self, number: int, live: frozenset[int]) -> Case:
        """Return the case of a layer while some intermediates, by position in `may_stay`, are alive."""
        layer = self.workload.layers[number]
        alive = [self.may_stay[at] for at in live]
        own = {name for each in alive for name in each.operands.get(layer.name, ())}
        own |= {each.result for each in alive if each.first == number}
        return Case(layer.problem.content_key, frozenset(own), math.fsum(each.words for each in alive))

    def free(self, number: int) -> Case:
        """Return the case of most freedom: all tensors of other layers are resident, and take no capacity."""
        return Case(self.workload.layers[number].problem.content_key, self.exchanged[number], 0.0)

    def ask(self, cases: Sequence[Case]) -> None:
        """Search the cases that are not known."""
        todo = []
        for case in dict.fromkeys(cases):
            if case in self.costs:
                continue
            architecture = self._architecture(case)
            if architecture is None:
                self.costs[case] = Cost(math.inf, math.inf)
            else:
                search = LayerSearch(self.distinct[case.problem], self.configuration.on_architecture(architecture))
                todo.append((case, search))
        for (case, _), layer in zip(todo, self.search([each for _, each in todo]), strict=False):
            self.costs[case] = self._cost(layer)

    def _architecture(self, case: Case) -> Architecture | None:
        """Return the architecture on which a case is searched, or None if nothing is left of the home."""
        if self.home is None or not (case.resident or case.reserved):
            return self.configuration.architecture
        return on_chip(self.configuration.architecture, self.distinct[case.problem].problem, self.home, case)

    def _cost(self, layer: MappedLayer) -> Cost:
        """Return the cost of a mapped layer."""
        report, result = layer.report, layer.result
        found = None if report is None else self._counted(layer.problem, report)
        if result is None or found is None:
            return Cost(
                math.inf, 0.0 if result is None or result.lower_bound is None else result.lower_bound, layer=layer
            )
        value = found[self.configuration.objective != "energy"]
        bound = 0.0 if result.lower_bound is None else min(result.lower_bound, value)
        return Cost(value, bound, *found, layer)

    def _counted(self, problem: Problem, report: Report) -> tuple[float, float] | None:
        """Return energy in pJ and cycles of a report, or None if it is invalid. The home and its copy share their ports."""
        energy, cycles = report.energy_pj, report.cycles
        if energy is None or cycles is None:
            return None
        if self.home is not None:
            moved = Counter[int](), Counter[int]()
            for level in report.levels:
                if level.name in (self.home.name, self.home.name + HOME):
                    for name, counts in level.tensors.items():
                        slices = self._slices(problem, name)
                        moved[0][0] += counts.reads * slices
                        moved[1][0] += (counts.fills + counts.updates) * slices
            both = max((each.cycles for each in port_limits((self.home,), {self.home.name: moved})), default=0)
            if both > cycles:
                energy += math.fsum(each.leakage_pj for each in report.levels) * (both - cycles) / cycles
                cycles = both
        return energy, cycles

    def lives(self, residents: Iterable[str]) -> list[frozenset[int]]:
        """Return the intermediates alive during each layer, by position in `may_stay`.

        Raises:
            InputError: A resident may not stay, is named twice, or they do not fit the home at some layer.
        """
        known = {each.maker: at for at, each in enumerate(self.may_stay)}
        named = Counter(residents)
        twice = sorted(name for name, count in named.items() if count > 1)
        if twice:
            raise InputError(f"these results are named twice: {', '.join(twice)}")
        strange = sorted(named.keys() - known.keys())
        if strange:
            raise InputError(f"these results may not stay: {', '.join(strange)}")
        own = [(known[name], self.may_stay[known[name]]) for name in named]
        found = [
            frozenset(at for at, each in own if each.first <= number <= each.last)
            for number in range(len(self.workload.layers))
        ]
        for layer, live in zip(self.workload.layers, found, strict=True):
            if math.fsum(self.may_stay[at].words for at in live) > self._limit:
                raise InputError(f"the results alive during {layer.name} do not fit {self.home and self.home.name}")
        return found

    def priced(self, number: int, live: frozenset[int], mapping: Mapping) -> tuple[float, float]:
        """Return energy in pJ and cycles of one mapping of a layer.

        Raises:
            TilewrightError: It is no mapping of the layer's space, or the cost model does not accept it.
        """
        case = self.case(number, live)
        architecture, distinct = self._architecture(case), self.distinct[case.problem]
        if architecture is None:
            raise InputError(f"nothing is left of the home for {distinct.problem.name}")
        space, _ = space_of(distinct, self.configuration.on_architecture(architecture))
        verdict = legality(space.problem, space.architecture, mapping) + space.contains(mapping)
        report = evaluate(self.configuration.model, space.problem, space.architecture, mapping)
        found = self._counted(space.problem, report)
        if not verdict or found is None:
            raise NotConformableError(f"layer {self.workload.layers[number].name}", (*verdict.reasons, *report.reasons))
        return found

    @property
    def _limit(self) -> float:
        """Words that residents may take in the home."""
        return math.inf if self.home is None or self.home.usable_words is None else self.home.usable_words

    def _slices(self, problem: Problem, tensor: str) -> int:
        assert self.home is not None
        memories = self.configuration.architecture_for(problem).memories
        return next(each for each in memories if each.name == self.home.name).slices_of(problem.tensor(tensor))

    def bound(self, number: int, live: frozenset[int]) -> float:
        """Return a lower bound of a layer, known or not.

        A case costs no less than one with fewer words reserved. If the home is cheaper than the outermost
        memories, it costs no less than the case of most freedom.
        """
        case = self.case(number, live)
        if case in self.costs:
            return self.costs[case].bound
        known = [
            cost.bound
            for other, cost in self.costs.items()
            if (other.problem, other.resident) == (case.problem, case.resident) and other.reserved <= case.reserved
        ]
        free = self.costs.get(self.free(number)) if self.shrinks else None
        return max([0.0, *known, *([] if free is None else [free.bound])])

    def gain(self) -> tuple[float, float]:
        """Return the cost without fusion, and a lower bound on that of all mappings with residents, whole or in tiles.

        The bound is meaningless if the workload has `unknown` layers.
        """
        asked = [(self.case(at, frozenset()), *self._freest(at)) for at in range(len(self.workload.layers))]
        self.ask([case for cases in asked for case in cases])
        plain, least = 0.0, 0.0
        for layer, cases in zip(self.workload.layers, asked, strict=True):
            costs = [self.costs.get(case, Cost(math.inf, 0.0)) for case in cases]
            plain += layer.count * costs[0].value
            least += layer.count * min(each.bound for each in costs)
        return plain, least

    def _freest(self, number: int) -> list[Case]:
        """Return cases such that every other one of the layer costs no less than one of them."""
        if self.shrinks:
            return [self.free(number)]
        names = sorted(self.exchanged[number])
        chosen = [frozenset(each) for count in range(len(names)) for each in itertools.combinations(names, count + 1)]
        return [dataclasses.replace(self.free(number), resident=each) for each in chosen]

    def place(self) -> Placement:
        """Return the residents of least cost."""
        self.gain()
        while True:
            value, lives = self._least(lambda at, live: self.bound(at, live))
            missing = [case for at, live in enumerate(lives) if (case := self.case(at, live)) not in self.costs]
            if not missing:
                break
            self.ask(missing)
            if any(case not in self.costs for case in missing):
                break  # interrupted
        bound = value
        value, lives = self._least(lambda at, live: getattr(self.costs.get(self.case(at, live)), "value", math.inf))
        costs = tuple(self.costs.get(self.case(at, live), Cost(math.inf, 0.0)) for at, live in enumerate(lives))
        counts = [layer.count for layer in self.workload.layers]
        return Placement(
            tuple(self.may_stay[at] for at in sorted(frozenset().union(*lives))),
            costs,
            math.fsum(count * each.energy_pj for count, each in zip(counts, costs, strict=True)),
            math.fsum(count * each.cycles for count, each in zip(counts, costs, strict=True)),
            value,
            min(bound, value),
        )

    def _least(self, cost: Callable[[int, frozenset[int]], float]) -> tuple[float, list[frozenset[int]]]:
        """Return the least sum over the layers, and the intermediates alive during each, by position in `may_stay`."""
        states: dict[frozenset[int], tuple[float, tuple[frozenset[int], ...]]] = {frozenset(): (0.0, ())}
        for number, layer in enumerate(self.workload.layers):
            starts = [frozenset[int]()]
            starts += [frozenset({at}) for at, each in enumerate(self.may_stay) if each.first == number]
            new = dict[frozenset[int], tuple[float, tuple[frozenset[int], ...]]]()
            for before, (total, lives) in states.items():
                for start in starts:
                    live = before | start
                    if math.fsum(self.may_stay[at].words for at in live) > self._limit:
                        continue
                    after = frozenset(at for at in live if self.may_stay[at].last > number)
                    found = total + layer.count * cost(number, live)
                    if after not in new or found < new[after][0]:
                        new[after] = found, (*lives, live)
            states = new
        value, lives = states[frozenset()]
        return value, list(lives)


def group_of(network: ResidentNetwork, placed: Placement) -> GroupMapping | None:
    """Return the group mapping of a network: residents are at home above all layers.

    None if no result is resident, a layer has no mapping, or a group cannot express which words are read.
    """
    mappings = dict[str, Mapping]()
    for layer, cost in zip(network.workload.layers, placed.costs, strict=True):
        if cost.layer is None or cost.layer.result is None or cost.layer.result.best is None:
            return None
        mappings[layer.name] = cost.layer.result.best
    if network.home is None or not placed.residents:
        return None
    makers = [each.maker for each in placed.residents]
    return resident_group(network.workload, network.configuration.architecture, network.home, makers, mappings)


def _is_cheaper(home: Memory, architecture: Architecture) -> bool:
    """Return whether accesses to the home cost no more energy and time than those to the outermost memories."""
    for outer in architecture.clusters[0].memories:
        if (home.word_bits, home.bits_per_value) != (outer.word_bits, outer.bits_per_value):
            return False
        energies = [
            (
                each.read_energy_pj / each.block_words,
                each.write_energy_pj / each.block_words,
                each.accumulation_energy_pj / each.block_words,
            )
            for each in (home, outer)
        ]
        if any(inner > far for inner, far in zip(*energies, strict=True)) or home.block_words > 1:
            return False
        rates = [
            (
                each.read_bandwidth_words_per_cycle,
                each.write_bandwidth_words_per_cycle,
                each.shared_bandwidth_words_per_cycle,
            )
            for each in (home, outer)
        ]
        if any((inner or math.inf) < (far or math.inf) for inner, far in zip(*rates, strict=True)):
            return False
    return True
