"""Networks whose intermediate results stay in an on-chip memory between layers.

A *resident* result stays whole in one memory, from the layer that makes it to the last layer that reads it. Each layer
is an ordinary mapping: resident tensors start at that memory instead of the outermost one, and what is alive there
takes its capacity. So the least cost of a network follows from dynamic programming over its layers. The state is the
set of live residents. Layers are searched only where a bound cannot decide (docs/fusion_proof.md, "Networks").
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tilewright.application.run.case_costs import CaseCosts, LayerCost, Search
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import evaluate
from tilewright.application.run.network import LayerSearch, space_of
from tilewright.application.run.resident_cases import Case, is_cheaper
from tilewright.application.run.resident_group import resident_group
from tilewright.application.run.sums import Sums
from tilewright.errors import InputError, NotConformableError, Reason
from tilewright.mapspace.legality import legality
from tilewright.prices import rounding_difference
from tilewright.schema.architecture import Memory
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import CYCLES, ENERGY
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.workload import Workload

Item = TypeVar("Item")


@dataclass(frozen=True)
class Intermediate:
    """A result that may be resident.

    Attributes:
        first, last: positions of the maker and of the last reader.
        operands: reader -> its names of the tensor.
        words, bits: capacity that it takes in the home.
        partners: makers of the other parts of concatenated operands. All of them stay, or none.
    """

    maker: str
    result: str
    first: int
    last: int
    operands: dict[str, tuple[str, ...]]
    words: float
    bits: int
    partners: frozenset[str] = frozenset()

    def allows(self, present: Collection[str]) -> bool:
        """Return whether its partners stay, if `present` are the makers of residents."""
        return self.partners <= set(present)


@dataclass(frozen=True)
class Placement:
    """Chosen residents, with the cost of each layer in order.

    `bound` is a lower bound of the network over all choices of residents, and `bounds` are those of its layers.
    """

    residents: tuple[Intermediate, ...]
    costs: tuple[LayerCost, ...]
    energy_pj: float
    cycles: float
    value: float
    bound: float
    bounds: tuple[float, ...] = ()


def intermediates(workload: Workload, home: Memory, width: Callable[[Problem, Tensor], int]) -> list[Intermediate]:
    """Return the results that may be resident.

    All readers must be known, and read nothing else in that operand but padding. The home must hold the result in the
    roles that it has for maker and readers. The maker, the readers and the layers between must be repeated equally often.
    Several makers of one operand add to one sum, which the last of them completes. The sum before lives until then.
    All readers must see the same sum. Results that are parts of one operand, such as concatenated ones, all stay or none.
    A value takes the bits of the layer for which it is widest.

    Args:
        width: bits of one value in the home, by layer and tensor.
    """
    order = {layer.name: number for number, layer in enumerate(workload.layers)}
    sums = Sums(workload)
    completed = Counter(max(makers, key=order.__getitem__) for makers in sums.readers)
    results = []
    for makers, readers in sums.readers.items():
        maker = workload.layer(max(makers, key=order.__getitem__))
        later = [
            users for users in sums.readers if makers < users and users - makers == {max(users, key=order.__getitem__)}
        ]
        first = order[maker.name]
        uses = [order[reader] for reader in readers] + [order[max(users, key=order.__getitem__)] for users in later]
        if sums.unknown & makers or completed[maker.name] > 1 or not uses or min(uses) <= first:
            continue
        uses_of = [(problem, problem.output) for problem in (workload.layer(name).problem for name in makers)]
        uses_of += [
            (layer.problem, layer.problem.tensor(name))
            for layer, operands in ((workload.layer(reader), operands) for reader, operands in readers.items())
            for name in operands
        ]
        if not all(home.may_hold(tensor) for _, tensor in uses_of):
            continue
        if any(layer.count != maker.count for layer in workload.layers[first : max(uses) + 1]):
            continue
        values = maker.problem.tensor_words(maker.problem.output)
        bits = values * max(width(problem, tensor) for problem, tensor in uses_of)
        operands = {reader: tuple(names) for reader, names in readers.items()}
        size = bits / home.word_bits, bits
        others = frozenset(sums.partners.get(maker.name, ()))
        results.append(Intermediate(maker.name, maker.problem.output.name, first, max(uses), operands, *size, others))
    while len(able := [result for result in results if result.allows({one.maker for one in results})]) < len(results):
        results = able
    return results


def exchanged(workload: Workload) -> list[frozenset[str]]:
    """Return the tensors of each layer whose words other layers make or read, whether it is known which words or not.

    A layer that is executed several times may read its own earlier results. Only for workloads without `unknown` layers.
    """
    used = {name for layer in workload.layers for name in layer.after or ()}
    groups = []
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
        groups.append(frozenset(names))
    return groups


@dataclass
class ResidentNetwork:
    """Costs of a network's layers by case, searched when they are needed."""

    workload: Workload
    configuration: RunConfiguration
    search: Search

    def __post_init__(self) -> None:
        """Raise NotConformableError if the objective or the hardware is not covered."""
        architecture, objective = self.configuration.architecture, self.configuration.objective
        reasons = [
            Reason(code="sparse", where=name, message="sparse hardware is not counted in groups")
            for name in architecture.sparse_parts
        ]
        if not objective.is_additive:
            text = f"the {objective.title} of a network is not the sum of its layers'; expected energy or cycles"
            reasons.append(Reason(code="objective", where="objective", message=text))
        if not self.configuration.model.capabilities.groups:
            name = self.configuration.model.name
            reasons.append(Reason(code="groups", where=f"cost model {name}", message="group mappings are not accepted"))
        if reasons:
            hint = "`map` without --fuse searches each layer on its own"
            if not objective.is_additive:
                hint = "give --objective energy or --objective cycles"
            elif reasons[-1].code == "groups":
                hint = f"leave --model out, or name one that accepts groups; {hint}"
            raise NotConformableError("the mapper of fused networks", tuple(reasons), hint=hint)
        distinct = {distinct.problem.content_key: distinct for distinct in self.workload.distinct()}
        self.cases = CaseCosts(self.configuration, self.search, distinct)
        self.configuration, self.home = self.cases.configuration, self.cases.home
        self.may_stay = (
            []
            if self.home is None
            else intermediates(
                self.workload, self.home, lambda problem, tensor: self.cases.home_for(problem).bits_of(tensor)
            )
        )
        self.exchanged = [
            frozenset(
                name for name in names if self.home is not None and self.home.may_hold(layer.problem.tensor(name))
            )
            for layer, names in zip(self.workload.layers, exchanged(self.workload), strict=True)
        ]
        self.shrinks = self.home is not None and is_cheaper(self.home, architecture, objective)

    @property
    def costs(self) -> dict[Case, LayerCost]:
        """Costs of the cases that are known."""
        return self.cases.costs

    def case(self, number: int, live: frozenset[int]) -> Case:
        """Return the case of a layer while some intermediates, by position in `may_stay`, are alive."""
        layer = self.workload.layers[number]
        alive = [self.may_stay[at] for at in live]
        residents = {name for intermediate in alive for name in intermediate.operands.get(layer.name, ())}
        residents |= {intermediate.result for intermediate in alive if intermediate.first == number}
        return Case(layer.problem.content_key, frozenset(residents), sum(intermediate.bits for intermediate in alive))

    def free(self, number: int) -> Case:
        """Return the case of most freedom: all tensors of other layers are resident, and take no capacity."""
        return Case(self.workload.layers[number].problem.content_key, self.exchanged[number], 0)

    def lives(self, residents: Iterable[str]) -> list[frozenset[int]]:
        """Return the intermediates alive during each layer, by position in `may_stay`.

        Raises:
            InputError: A resident may not stay, is named twice, or they do not fit the home at some layer.
        """
        known = {intermediate.maker: at for at, intermediate in enumerate(self.may_stay)}
        named = Counter(residents)
        twice = sorted(name for name, count in named.items() if count > 1)
        if twice:
            raise InputError(f"these results are named twice: {', '.join(twice)}")
        strange = sorted(named.keys() - known.keys())
        if strange:
            raise InputError(f"these results may not stay: {', '.join(strange)}")
        chosen = [(known[name], self.may_stay[known[name]]) for name in named]
        for _, intermediate in chosen:
            if not intermediate.allows(named):
                others = ", ".join(sorted(intermediate.partners - named.keys()))
                raise InputError(
                    f"{intermediate.maker} stays only with {others}: a layer reads all of them as one operand"
                )
        cases = [
            frozenset(at for at, intermediate in chosen if intermediate.first <= number <= intermediate.last)
            for number in range(len(self.workload.layers))
        ]
        for layer, live in zip(self.workload.layers, cases, strict=True):
            if sum(self.may_stay[at].bits for at in live) > self._limit:
                raise InputError(f"the results alive during {layer.name} do not fit {self.home and self.home.name}")
        return cases

    def priced(self, number: int, live: frozenset[int], mapping: Mapping) -> tuple[float, float]:
        """Return energy in pJ and cycles of one mapping of a layer.

        Raises:
            TilewrightError: It is no mapping of the layer's space, or the cost model does not accept it.
        """
        case = self.case(number, live)
        architecture, distinct = self.cases.architecture(case), self.cases.distinct[case.problem]
        if architecture is None:
            raise InputError(f"nothing is left of the home for {distinct.problem.name}")
        space, _ = space_of(distinct, self.configuration.on_architecture(architecture))
        verdict = legality(space.problem, space.architecture, mapping) + space.contains(mapping)
        report = evaluate(self.configuration.model, space.problem, space.architecture, mapping)
        costs = self.cases.counted(space.problem, report)
        if not verdict or costs is None:
            raise NotConformableError(f"layer {self.workload.layers[number].name}", (*verdict.reasons, *report.reasons))
        return costs

    @property
    def _limit(self) -> float:
        """Bits that residents may take in the home."""
        return math.inf if self.home is None else self.home.usable_bits

    def bound(self, number: int, live: frozenset[int]) -> float:
        """Return a lower bound of a layer, known or not (docs/fusion_proof.md, Lemmas 2, 3 and 9)."""
        case = self.case(number, live)
        known = [
            cost.bound
            for other, cost in self.cases.of_problem(case.problem)
            if other.reserved <= case.reserved
            and (other.resident == case.resident or (self.shrinks and other.resident > case.resident))
        ]
        bound = max([0.0, *known])
        return min(bound, self.costs[case].value) if case in self.costs else bound

    @property
    def claimed_by(self) -> str | None:
        """Names of the plugins whose claim the bounds of the layers are; None: they are proved."""
        results = [cost.layer.result for cost in self.costs.values() if cost.layer is not None and cost.layer.result]
        return next((result.claimed_by for result in results if result.claimed_by), None)

    def gain(self) -> tuple[float, float]:
        """Return the cost without fusion, and a lower bound on that of all mappings with residents, whole or in tiles.

        The bound is meaningless if the workload has `unknown` layers.
        """
        numbers = range(len(self.workload.layers))
        self.cases.ask([case for at in numbers for case in (self.case(at, frozenset()), *self._freest(at))])
        plain, least = 0.0, 0.0
        for number, layer in enumerate(self.workload.layers):
            plain += layer.count * self.costs.get(self.case(number, frozenset()), LayerCost(math.inf, 0.0)).value
            least += layer.count * self.least(number)
        return plain, least

    def unfused(self) -> tuple[float, float]:
        """Return energy and cycles without fusion, after `gain`."""
        costs = [(layer.count, self.costs[self.case(at, frozenset())]) for at, layer in enumerate(self.workload.layers)]
        energy_pj = math.fsum(count * cost.energy_pj for count, cost in costs)
        return energy_pj, math.fsum(count * cost.cycles for count, cost in costs)

    def least(self, number: int) -> float:
        """Return a lower bound of a layer in all mappings with residents, whole or in tiles, after `gain`.

        Tiles round the cycles otherwise than a layer on its own.
        """
        cases = (self.case(number, frozenset()), *self._freest(number))
        lost = self.configuration.objective.value(*rounding_difference(self.configuration.architecture))
        return max(0.0, min(self.costs.get(case, LayerCost(math.inf, 0.0)).bound for case in cases) - lost)

    def _freest(self, number: int) -> list[Case]:
        """Return cases such that every other one of the layer costs no less than one of them (docs/fusion_proof.md, Lemma 4)."""
        free = self.free(number)
        if self.shrinks:
            return [free]
        return [dataclasses.replace(free, resident=subset) for subset in _subsets(sorted(free.resident)) if subset]

    def place(self) -> Placement:
        """Return the residents of least cost.

        Cases are searched until the least bound, and the least cost that unknown cases might allow, have known ones only.
        """
        self.gain()
        while missing := self._missing(self.bound) or self._missing(self._hoped):
            self.cases.ask(missing)
            if any(case not in self.costs for case in missing):
                break  # interrupted
        bound, least = self._least(lambda at, live: (self.bound(at, live), 0.0))
        value, lives = self._least(self._known)
        if self.configuration.objective == CYCLES:
            self._save_energy([self.case(at, live) for at, live in enumerate(lives)])
        costs = tuple(self.costs.get(self.case(at, live), LayerCost(math.inf, 0.0)) for at, live in enumerate(lives))
        counts = [layer.count for layer in self.workload.layers]
        return Placement(
            tuple(self.may_stay[at] for at in sorted(frozenset().union(*lives))),
            costs,
            math.fsum(count * cost.energy_pj for count, cost in zip(counts, costs, strict=True)),
            math.fsum(count * cost.cycles for count, cost in zip(counts, costs, strict=True)),
            value,
            min(bound, value),
            tuple(self.bound(at, live) for at, live in enumerate(least)),
        )

    def _save_energy(self, cases: Sequence[Case]) -> None:
        """Take mappings of less energy that are as fast."""
        known = [
            case for case in dict.fromkeys(cases) if math.isfinite(getattr(self.costs.get(case), "value", math.inf))
        ]
        searches = [
            LayerSearch(
                self.cases.distinct[case.problem],
                self.cases.configured(case).with_objective(ENERGY, self.costs[case].cycles),
            )
            for case in known
        ]
        for case, layer in zip(known, self.search(searches), strict=False):
            self.cases.improve(case, layer)

    def _missing(self, cost: Callable[[int, frozenset[int]], float]) -> list[Case]:
        """Return the unknown cases of the choice of least cost."""
        _, lives = self._least(lambda at, live: (cost(at, live), 0.0))
        return [case for at, live in enumerate(lives) if (case := self.case(at, live)) not in self.costs]

    def _hoped(self, number: int, live: frozenset[int]) -> float:
        """Return the cost of a layer if it is known, and a lower bound otherwise."""
        known = self.costs.get(self.case(number, live))
        return self.bound(number, live) if known is None else known.value

    def _known(self, number: int, live: frozenset[int]) -> tuple[float, float]:
        """Return the cost of a layer and, to decide between equals, the other metric; inf if it is not known."""
        known = self.costs.get(self.case(number, live))
        if known is None:
            return math.inf, math.inf
        return known.value, known.cycles if self.configuration.objective == ENERGY else known.energy_pj

    def _least(self, cost: Callable[[int, frozenset[int]], tuple[float, float]]) -> tuple[float, list[frozenset[int]]]:
        """Return the least sum over the layers, and the intermediates alive during each, by position in `may_stay`.

        The second number of a cost decides between equal sums.
        """
        states: dict[frozenset[int], tuple[float, float, tuple[frozenset[int], ...]]] = {frozenset(): (0.0, 0.0, ())}
        for number, layer in enumerate(self.workload.layers):
            made, partners = self._made(number)
            new = dict[frozenset[int], tuple[float, float, tuple[frozenset[int], ...]]]()
            for before, (total, second, lives) in states.items():
                without = [] if partners & before else [before]
                for live in without + ([before | made] if made and partners <= before else []):
                    if sum(self.may_stay[at].bits for at in live) > self._limit:
                        continue
                    after = frozenset(at for at in live if self.may_stay[at].last > number)
                    more = cost(number, live)
                    sum_so_far = total + layer.count * more[0], second + layer.count * more[1]
                    if after not in new or sum_so_far < new[after][:2]:
                        new[after] = *sum_so_far, (*lives, live)
            states = new
        value, _, lives = states[frozenset()]
        return value, list(lives)

    def _made(self, number: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the intermediate that a layer makes, if any, and its partners that are made before, by position in `may_stay`."""
        made = frozenset(at for at, intermediate in enumerate(self.may_stay) if intermediate.first == number)
        names = frozenset[str]().union(*(self.may_stay[at].partners for at in made))
        before = (at for at, other in enumerate(self.may_stay) if other.maker in names and other.first < number)
        return made, frozenset(before)


def group_of(network: ResidentNetwork, placed: Placement) -> GroupMapping | None:
    """Return the group mapping of a network: residents are at home above all layers.

    None if no result is resident, a layer has no mapping, or a group cannot express which words are read, or how wide
    values are.
    """
    mappings = dict[str, Mapping]()
    for layer, cost in zip(network.workload.layers, placed.costs, strict=True):
        if cost.layer is None or cost.layer.result is None or cost.layer.result.best is None:
            return None
        mappings[layer.name] = cost.layer.result.best
    first, *others = [network.configuration.architecture_for(member.problem) for member in network.workload.layers]
    if network.home is None or not placed.residents or any(other != first for other in others):
        return None
    makers = [resident.maker for resident in placed.residents]
    return resident_group(network.workload, first, network.home, makers, mappings)


def _subsets(items: Sequence[Item]) -> list[frozenset[Item]]:
    return [
        frozenset(combination)
        for count in range(len(items) + 1)
        for combination in itertools.combinations(items, count)
    ]
