"""Rivals of a fused network: other results that stay, and other mappings of its layers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.application.run.evaluation import evaluate_group
from tilewright.application.run.network import space_of
from tilewright.application.run.resident import ResidentNetwork
from tilewright.application.run.resident_group import layer_entries, resident_edge, resident_group
from tilewright.application.run.rivals import Rivals
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.group_legality import group_legality
from tilewright.mapspace.space import MapSpace
from tilewright.schema.architecture import Cluster, Memory
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping as LayerMapping
from tilewright.schema.problem import Problem
from tilewright.schema.read import Read
from tilewright.schema.workload import Workload

MAX_CHOICES = 64
"""Largest number of choices of residents that are all tried."""
PART = 256
"""Mappings of a space that are listed at once."""


@dataclass(frozen=True)
class Stay:
    """A result that may stay in the home.

    Attributes:
        maker: the layer that makes it, or that completes it as the last maker of a sum.
        first, last: positions of the layers from which and to which it is alive.
        uses: (layer, its own name of the tensor) of the maker and the readers.
        bits: those that it takes; a value takes those of its widest use.
        together: makers of the operands that have its result as a part; all of them stay, or none.
    """

    maker: str
    first: int
    last: int
    uses: frozenset[tuple[str, str]]
    bits: int
    together: frozenset[str]


@dataclass(frozen=True)
class View:
    """How a layer sees the last addition of a sum: the operators before, and the words of both results."""

    operators: tuple[Any, ...]
    before: Read
    last: Read

    def agrees(self, other: View) -> bool:
        """Return whether both see the same sum."""
        rows = [view.rows() for view in (self, other)]
        words = [view.words() for view in (self, other)]
        pairs = {pair for view in words for pair in view}
        one_to_one = len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
        return self.operators == other.operators and rows[0] == rows[1] and one_to_one

    def rows(self) -> list[set[str]] | None:
        """Return the axes of both results along which an operator needs all values; None if it acts on the sum."""
        used = [
            {
                f"{place}: {index.terms[name]}"
                for place, index in enumerate(side or ())
                for name in read.whole
                if name in index.terms and read.sizes[name] > 1
            }
            for read in (self.before, self.last)
            for side in (read.read, read.made)
        ]
        return None if used[0] == used[2] else [used[1], used[3]]

    def words(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield the words that are added."""
        makers = list[dict[tuple[int, ...], tuple[int, ...]]]()
        for read in (self.before, self.last):
            made, used = (np.stack(side, axis=1).tolist() for side in read.points())
            makers.append({tuple(there): tuple(here) for here, there in zip(made, used, strict=True)})
        yield from ((makers[0][there], makers[1][there]) for there in makers[0].keys() & makers[1].keys())


@dataclass(frozen=True)
class Case:
    """A layer's problem, and those of its tensors that stay."""

    problem: str
    residents: frozenset[str]


@dataclass
class NetworkRivals:
    """Group mappings of a network whose results stay whole, in the space that `map NET --fuse` states.

    A layer's mapping is one of its map space, as if the home had room for everything. What stays, and what then fits,
    follows from the rules of groups alone. Sums and layers with widths of their own have no group mapping: then each
    layer is a group of its own, in a home without the room of the other live results.

    Args:
        claimed: the mapping of each layer of the certificate, and `residents` the layers whose results stay there.
        samples: mappings of each space that is too large for `limit`, all together.
        limit: largest number of mappings that are all tried.
    """

    network: ResidentNetwork
    claimed: Mapping[str, LayerMapping]
    residents: tuple[str, ...]
    samples: int
    limit: int
    seed: int
    tried: int = 0
    legal: int = 0
    priced: dict[Case, list[tuple[float, LayerMapping]]] = field(default_factory=dict)

    @property
    def obstacle(self) -> str:
        """Why there is no group mapping of the claim."""
        if self.network.home is None:
            return "no memory keeps results, so there is nothing to choose"
        if self._are_widths_mixed:
            return "the layers have values of different widths, which no group mapping expresses"
        return "no group mapping expresses which words the layers read"

    @cached_property
    def _are_widths_mixed(self) -> bool:
        run = self.network.configuration
        return any(run.architecture_for(layer.problem) != run.architecture for layer in self.network.workload.layers)

    @cached_property
    def able(self) -> list[Stay]:
        """The results that may stay."""
        return [] if self.network.home is None else _results(self.network.workload, self._home)

    def group(self, makers: Sequence[str], mappings: Mapping[str, LayerMapping]) -> GroupMapping | None:
        """Return the group mapping of some residents; None if it cannot be expressed, or there is no home."""
        network = self.network
        if network.home is None or self._are_widths_mixed:
            return None
        return resident_group(network.workload, network.configuration.architecture, network.home, makers, mappings)

    def best(self) -> Rivals:
        """Return the best of all rivals, or of those that are drawn."""
        choices = list(self._choices())
        cases = dict.fromkeys(case for chosen in choices for case in self._cases(chosen))
        spaces = {case: self._space(case) for case in cases}
        every = self._tries_all and sum(space.size for space in spaces.values()) <= self.limit
        value, group = math.inf, None
        for case in cases:
            if every:
                rows = itertools.chain.from_iterable(spaces[case].enumerate(PART))
            else:
                rows = itertools.chain(self._drawn(spaces[case], case, -(-self.samples // len(cases))))
            rows_priced = [(cost, mapping) for mapping in rows for cost, mapping in self._priced(case, mapping)]
            self.priced[case] = sorted(rows_priced, key=lambda pair: pair[0])
        for chosen in choices:
            cost, mappings = self._least(chosen, value)
            if mappings is not None:
                value, group = cost, self.group([stay.maker for stay in chosen], mappings)
        return Rivals(self.tried, self.legal, every, value, group)

    @property
    def _tries_all(self) -> bool:
        return 1 << len(self.able) <= MAX_CHOICES

    def _choices(self) -> Iterator[tuple[Stay, ...]]:
        """Yield choices of residents: all, or those that differ from the claimed one in one result and its other parts."""
        if self._tries_all:
            for count in range(len(self.able) + 1):
                for chosen in itertools.combinations(self.able, count):
                    makers = {stay.maker for stay in chosen}
                    if all(stay.together <= makers for stay in chosen):
                        yield chosen
            return
        import networkx as nx  # imported here because networkx takes longer to import than most commands to run

        stays = {stay.maker for stay in self.able} & set(self.residents)
        parts = nx.Graph((stay.maker, other) for stay in self.able for other in stay.together | {stay.maker})
        for changed in (set[str](), *nx.connected_components(parts)):
            yield tuple(stay for stay in self.able if stay.maker in stays ^ changed)

    def _cases(self, chosen: Sequence[Stay]) -> list[Case]:
        """Return the case of each layer."""
        cases = []
        for number, layer in enumerate(self.network.workload.layers):
            alive = [stay for stay in chosen if stay.first <= number <= stay.last]
            tensors = frozenset(name for stay in alive for reader, name in stay.uses if reader == layer.name)
            cases.append(Case(layer.problem.content_key, tensors))
        return cases

    def _problem(self, key: str) -> Problem:
        return self.network.cases.distinct[key].problem

    def _space(self, case: Case) -> MapSpace:
        """Return the map space of a layer, as if the home had room for everything; its tiles are of other tensors."""
        run, home, problem = self.network.configuration, self.network.home, self._problem(case.problem)
        held = () if home is None else tuple(t.name for t in problem.tensors if home.may_hold(t))
        update = {"capacity_words": None, "holds": tuple(name for name in held if name not in case.residents)}
        roomy = run.architecture.with_memories(
            lambda memory: memory.model_copy(update=update) if home and memory.name == home.name else memory
        )
        return space_of(self.network.cases.distinct[case.problem], run.on_architecture(roomy))[0]

    def _drawn(self, space: MapSpace, case: Case, count: int) -> Iterator[LayerMapping]:
        """Yield the claimed mappings of a problem, their neighbours, and random mappings: about `count`."""
        layers = [layer for layer in self.network.workload.layers if layer.problem.content_key == case.problem]
        known = list(dict.fromkeys(self.claimed[layer.name] for layer in layers))
        yield from known
        near = [
            Candidates.of(space, MappingBatch.pack(space.problem, [mapping]))
            for mapping in known
            if space.contains(mapping)
        ]
        rng = np.random.default_rng(self.seed)
        for here in near:
            rows = space.neighbours(here, powers=True)[0]
            yield from rows.take(rng.permutation(len(rows))[: count // (2 * len(near))])
        yield from space.sample(rng, -(-count // 2))

    def _priced(self, case: Case, mapping: LayerMapping) -> Iterator[tuple[float, LayerMapping]]:
        """Yield the costs of a mapping in a case, if it is legal there."""
        self.tried += 1
        alone = self._alone(self._problem(case.problem), case.residents, mapping)
        report = evaluate_group(self.network.configuration.model, alone)
        value = report.of(self.network.configuration.objective) if report.valid else None
        if value is not None:
            self.legal += 1
            yield value, mapping

    def _home(self, problem: Problem) -> Memory:
        """Return the home, with the widths of a layer's values."""
        assert self.network.home is not None, "something may stay, or is claimed to"
        name = self.network.home.name
        architecture = self.network.configuration.architecture_for(problem)
        return next(memory for memory in architecture.memories if memory.name == name)

    def _alone(
        self,
        problem: Problem,
        residents: frozenset[str],
        mapping: LayerMapping,
        taken: int = 0,
    ) -> GroupMapping:
        """Return the group of one layer, with its residents whole at home.

        Args:
            taken: bits of the home that other results take.
        """
        home, architecture = self._home(problem), self.network.configuration.architecture_for(problem)
        if taken and home.usable_words is not None:
            left = home.usable_words * home.word_bits - taken
            smaller = home.in_slices() if left % home.word_bits else home
            update = {"capacity_words": left // smaller.word_bits, "multiple_buffering": 1}
            smaller = smaller.model_copy(update=update)
            architecture = architecture.with_memories(lambda memory: smaller if memory.name == home.name else memory)
        inner = architecture.cluster_of(home.name).name
        entries = [
            {"target": architecture.clusters[0].name, "keep": [t for t in problem.tensor_names if t not in residents]},
            {"target": inner, "keep": sorted(residents)},
            *layer_entries(mapping, architecture, inner, residents),
        ]
        return GroupMapping.model_validate(
            {
                "name": problem.name,
                "layers": [problem.model_dump(mode="json")],
                "architecture": architecture,
                "tree": {"layer": problem.name, "entries": entries},
            }
        )

    def _fits(self, number: int, chosen: Sequence[Stay], mapping: LayerMapping) -> bool:
        """Return whether a layer's mapping is legal with some residents, without a group mapping of all layers."""
        problem, case = self.network.workload.layers[number].problem, self._cases(chosen)[number]
        home, alive = self._home(problem), [stay for stay in chosen if stay.first <= number <= stay.last]
        resident_bits = sum(
            problem.tensor_words(problem.tensor(name)) * home.bits_of(problem.tensor(name)) for name in case.residents
        )
        taken = sum(stay.bits for stay in alive) - resident_bits
        if home.usable_bits < taken:
            return False
        return bool(group_legality(self._alone(problem, case.residents, mapping, taken)))

    def _least(self, chosen: Sequence[Stay], limit: float) -> tuple[float, dict[str, LayerMapping] | None]:
        """Return the least cost with some residents, and the mappings; None if it is not below a limit."""
        layers, makers = self.network.workload.layers, [stay.maker for stay in chosen]
        options = [self.priced[case] for case in self._cases(chosen)]
        if not all(options) or sum(
            layer.count * option[0][0] for layer, option in zip(layers, options, strict=True)
        ) >= limit * (1 - 1e-12):
            return limit, None
        idle = {
            member.name: _idle(member.problem, self.network.configuration.architecture.clusters) for member in layers
        }
        mappings, total = dict[str, LayerMapping](), 0.0
        together = self.group(makers, idle) is not None
        for number, (layer, able) in enumerate(zip(layers, options, strict=True)):
            for value, mapping in able:
                if total + layer.count * value >= limit * (1 - 1e-12):
                    return limit, None
                group = self.group(makers, idle | {layer.name: mapping}) if together else None
                if self._fits(number, chosen, mapping) if group is None else group_legality(group):
                    mappings[layer.name], total = mapping, total + layer.count * value
                    break
            else:
                return limit, None
        return total, mappings


def _results(workload: Workload, home: Callable[[Problem], Memory]) -> list[Stay]:
    """Return the results whose words and readers are all known, and that the home may hold.

    Readers take all words, or a group mapping expresses which they take. A sum is complete with its last maker. The one
    before lives until then.

    Args:
        home: the home, with the widths of a layer's values.
    """
    place = {layer.name: number for number, layer in enumerate(workload.layers)}
    sums, together = dict[tuple[str, ...], set[tuple[str, str]]](), dict[str, set[str]]()
    unknown = {layer.name for layer in workload.layers if layer.returned}
    views = dict[tuple[str, ...], list[View]]()
    for number, layer in enumerate(workload.layers):
        before = [earlier.name for earlier in workload.layers[:number]] if layer.after is None else layer.after
        stated = {read.maker for reads in layer.reads.values() for read in reads}
        unknown |= set(before) - stated
        for operand, reads in layer.reads.items():
            makers = tuple(sorted({read.maker for read in reads}, key=place.__getitem__))
            if makers and place[makers[-1]] >= number:
                unknown |= set(makers)
            if len(makers) == len(reads) > 1 and _are_parts(workload, layer.name, operand):
                for name in makers:
                    sums.setdefault((name,), set()).add((layer.name, operand))
                    together.setdefault(name, set()).update(makers)
                continue
            if len(makers) < len(reads) or not all(_is_whole(workload, layer.name, operand, name) for name in makers):
                unknown |= set(makers)
            elif not _agrees(workload, layer.name, operand, makers, views):
                unknown |= set(makers)
            for length in range(1, len(makers) + 1):
                uses = sums.setdefault(makers[:length], set())
                uses.update([(layer.name, operand)] if length == len(makers) else [])
    while len(more := unknown.union(*(makers for makers in sums if unknown & set(makers)))) > len(unknown):
        unknown = more
    stays = list[Stay]()
    for makers, readers in sums.items():
        maker = workload.layer(makers[-1])
        ends = [place[reader] for reader, _ in readers]
        ends += [place[users[-1]] for users in sums if users[:-1] == makers]
        chain = [(name, workload.layer(name).problem.output.name) for name in makers] + sorted(readers)
        held = [(workload.layer(name).problem, workload.layer(name).problem.tensor(tensor)) for name, tensor in chain]
        completed = sum(users[-1] == maker.name for users in sums)
        if unknown & set(makers) or completed > 1 or min(ends) <= place[maker.name]:
            continue
        span = workload.layers[place[maker.name] : max(ends) + 1]
        if any(member.count != maker.count for member in span) or not all(home(a).may_hold(t) for a, t in held):
            continue
        words = maker.problem.tensor_words(maker.problem.output)
        bits = words * max(home(problem).bits_of(tensor) for problem, tensor in held)
        held_by = frozenset({(maker.name, maker.problem.output.name), *readers})
        parts = frozenset(together.get(maker.name, ()))
        stays.append(Stay(maker.name, place[maker.name], max(ends), held_by, bits, parts))
    while not all(stay.together <= {other.maker for other in stays} for stay in stays):
        makers_left = {stay.maker for stay in stays}
        stays = [stay for stay in stays if stay.together <= makers_left]
    return sorted(stays, key=lambda stay: stay.first)


def _are_parts(workload: Workload, reader: str, operand: str) -> bool:
    """Return whether each word of an operand is a word of exactly one of several results."""
    reads = [access for layer, name, access in workload.edges if (layer, name) == (reader, operand)]
    problem = workload.layer(reader).problem
    if any(read.cut is not None for read in reads):
        return False
    words = np.concatenate([np.stack(read.points()[1], axis=1) for read in reads])
    distinct: int = len(np.unique(words, axis=0))
    return len(words) == distinct and distinct == problem.tensor_words(problem.tensor(operand))


def _agrees(
    workload: Workload, reader: str, operand: str, makers: tuple[str, ...], views: dict[tuple[str, ...], list[View]]
) -> bool:
    """Return whether a reader sees the results added as others do: the same words of them, after the same operators.

    Args:
        views: makers of each sum -> how layers see its last addition; it is extended.
    """
    reads = {access.maker: access for layer, name, access in workload.edges if (layer, name) == (reader, operand)}
    agrees = True
    for number in range(2, len(makers) + 1):
        together = [reads[name] for name in makers[:number]]
        view = View(_added_after([read.through for read in together]), together[-2], together[-1])
        seen = views.setdefault(makers[:number], [])
        if view not in seen:
            agrees &= all(view.agrees(other) for other in seen)
            seen.append(view)
    return agrees


def _added_after(ways: Sequence[Sequence[str]]) -> tuple[Any, ...]:
    """Return the operators before each addition of a sum. Those that are on all of its ways act on the sum."""
    if len(ways) == 1:
        return ()
    cut = [tuple(itertools.takewhile(lambda name: not all(name in way for way in ways), way)) for way in ways]
    *before, last = cut
    on_sum = itertools.dropwhile(lambda name: not all(name in way for way in before), before[0])
    return _added_after(before), tuple(on_sum), last


def _is_whole(workload: Workload, reader: str, operand: str, maker: str) -> bool:
    """Return whether a reader takes all words of a result and nothing else, or a group mapping expresses which."""
    if resident_edge(workload, maker, "T") is not None:
        return True
    read = next(
        access for layer, name, access in workload.edges if (layer, name, access.maker) == (reader, operand, maker)
    )
    made, problem = workload.layer(maker).problem, workload.layer(reader).problem
    points = math.prod(read.sizes.values())
    sizes = (
        holder.tensor_words(holder.tensor(name)) for holder, name in ((made, made.output.name), (problem, operand))
    )
    return read.cut is None and all(points == words for words in sizes)


def _idle(problem: Problem, clusters: Sequence[Cluster]) -> LayerMapping:
    """Return a mapping that keeps nothing inside the outermost memories, so that it needs no room."""
    ones = dict.fromkeys(problem.dimensions, 1)
    outer = {"target": clusters[0].name, "keep": list(problem.tensor_names)}
    inner = {"target": clusters[-1].name, "keep": None}
    tiles = {"temporal_tile_sizes": ones, "spatial_tile_sizes": ones, "temporal_order": list(ones)}
    whole = {"temporal_tile_sizes": dict(problem.dimensions), "spatial_tile_sizes": dict(problem.dimensions)}
    order = {"temporal_order": list(ones)}
    return LayerMapping.model_validate({"entries": [outer | whole | order, inner | tiles]})
