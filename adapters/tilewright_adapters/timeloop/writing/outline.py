"""Outline of Timeloop's files: storage levels with the loops between them, or reasons against them.

Timeloop's nest is a chain of storage levels. Each level keeps tensors, then has one temporal loop per dimension, then
unrolls each dimension once, along X or Y. Everything else that a mapping can express is refused here, with a reason.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field

from tilewright.errors import Reason
from tilewright.mapspace.legality import legality, place
from tilewright.plugin.adapter import InputSet, NotationTable
from tilewright.schema.architecture import Architecture, Cluster, Compute, Memory, Network
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.timeloop.reading.hierarchy import dummy

_MEANT = ("capacity", "fanout")
"""Codes of violations that Timeloop's files can express; Timeloop detects them, too."""


@dataclass(frozen=True)
class LoopBounds:
    """A loop of `end` iterations.

    It has `last` iterations if all outer loops of its dimension are at their last.
    """

    dimension: str
    end: int
    last: int


@dataclass
class Nest:
    """Loops of one level, outermost first, and its tensors.

    Permutations list all dimensions, innermost first.
    """

    keep: tuple[str, ...]
    temporal: list[LoopBounds] = field(default_factory=list)
    x: list[LoopBounds] = field(default_factory=list)
    y: list[LoopBounds] = field(default_factory=list)
    temporal_permutation: tuple[str, ...] = ()
    spatial_permutation: tuple[str, ...] = ()
    split: int = 0
    """Number of dimensions of the spatial permutation that lie along X."""
    unicast: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Storage:
    """One storage level. `mesh`: instances along X and Y; `cluster`: index of its cluster."""

    name: str
    memory: Memory
    network: Network
    mesh: tuple[int, int]
    cluster: int

    @property
    def is_dummy(self) -> bool:
        """Whether the level only unrolls: it keeps nothing and costs nothing."""
        return self.memory == dummy(self.memory.name)


@dataclass
class Outline:
    """Content of the files in Timeloop's names.

    `letters` gives each dimension one letter; levels have the names of their memories.
    """

    problem: Problem | None = None
    letters: MappingOf[str, str] = field(default_factory=dict)
    name: str = "system"
    storage: list[Storage] = field(default_factory=list)
    compute: Compute | None = None
    mesh: tuple[int, int] = (1, 1)
    """Number of compute units along X and Y."""
    nests: list[Nest] | None = None
    reasons: list[Reason] = field(default_factory=list)

    def refuse(self, code: str, where: str, message: str) -> None:
        self.reasons.append(Reason(code=code, where=where, message=message))

    def fanout(self, index: int) -> tuple[int, int]:
        """Return how many instances of the next level each instance feeds, along X and Y."""
        inner = self.storage[index + 1].mesh if index + 1 < len(self.storage) else self.mesh
        outer = self.storage[index].mesh
        return inner[0] // outer[0], inner[1] // outer[1]


def outline(inputs: InputSet, table: NotationTable) -> Outline:
    """Return the outline of the inputs; it must not be used if it has `reasons`.

    Args:
        inputs: the input set.
        table: attributes that the files express.
    """
    result = Outline(problem=inputs.problem)
    if inputs.directives is not None:
        result.refuse("directives", "", "Timeloop's files cannot express data-centric directives")
    elif inputs.group is not None:
        result.refuse("group", "", "Timeloop's files cannot express group mappings, of several layers")
    elif not (inputs.problem or inputs.architecture or inputs.mapping):
        result.refuse("empty", "", "there is no problem, architecture or mapping to write")
    if inputs.model_options:
        options = ", ".join(inputs.model_options)
        result.refuse("model_options", "the input set", f"Timeloop's files cannot express model options: {options}")
    if inputs.mapping is not None and (inputs.problem is None or inputs.architecture is None):
        missing = "problem" if inputs.problem is None else "architecture"
        result.refuse("parts", "mapping", f"a mapping needs its {missing}")
    if result.reasons:
        return result
    if inputs.problem is not None:
        _dimensions(inputs.problem, result)
    if inputs.architecture is not None:
        result.reasons += table.refused(inputs.architecture, inputs.problem)
        _hardware(inputs.architecture, result)
    if inputs.mapping is None:
        if inputs.architecture is not None:
            _levels(inputs.architecture, None, None, result)
        return result
    assert inputs.problem is not None and inputs.architecture is not None
    verdict = legality(inputs.problem, inputs.architecture, inputs.mapping)
    result.reasons += [reason for reason in verdict.reasons if reason.code not in _MEANT]
    if not result.reasons:
        _levels(inputs.architecture, inputs.problem, inputs.mapping, result)
    if not result.reasons:
        _nests(inputs.problem, inputs.architecture, inputs.mapping, result)
    return result


def _dimensions(problem: Problem, result: Outline) -> None:
    """Give each dimension a letter, because Timeloop's permutations are strings of letters."""
    taken = {name for name in problem.dimensions if len(name) == 1 and name != "_"}
    free = [c for c in string.ascii_uppercase + string.ascii_lowercase if c not in taken]
    letters: dict[str, str] = {}
    for name in problem.dimensions:
        if name in taken:
            letters[name] = name
        elif free:
            wanted = [c for c in (*name.upper(), *name.lower()) if c in free]
            letters[name] = wanted[0] if wanted else free[0]
            free.remove(letters[name])
    if len(letters) < len(problem.dimensions):
        result.refuse("letters", problem.name, f"{len(problem.dimensions)} dimensions, Timeloop has 52 letters")
    result.letters = letters


def _hardware(architecture: Architecture, result: Outline) -> None:
    result.name = plain(architecture.name)
    result.compute = architecture.compute
    result.mesh = _mesh(architecture, len(architecture.clusters))
    for cluster in architecture.clusters:
        where, fanout = f"cluster {cluster.name}", cluster.fanout
        if fanout.size > 1 and fanout.axis not in ("X", "Y"):
            result.refuse("axis", where, f"fans out along {fanout.axis}; Timeloop has X and Y")
        if cluster.is_virtual and fanout.network != Network():
            result.refuse(
                "network", where, "a NoC with energies below a virtual cluster; Timeloop has NoCs below memories only"
            )


def plain(name: str) -> str:
    """Return a name without dots and brackets, which have a meaning in Timeloop's files."""
    return re.sub(r"[^A-Za-z0-9_\-]", "_", name)


def _mesh(architecture: Architecture, index: int) -> tuple[int, int]:
    mesh = architecture.mesh(index)
    return math.prod(size for axis, size in mesh.items() if axis != "Y"), mesh.get("Y", 1)


def _levels(architecture: Architecture, problem: Problem | None, mapping: Mapping | None, result: Outline) -> None:
    """Collect the storage levels: in the order of a mapping's entries, or in file order."""
    order = [(index, memory) for index, cluster in enumerate(architecture.clusters) for memory in cluster.memories]
    if mapping is not None and problem is not None:
        order = list(_held(architecture, problem, mapping, result))
        held = {memory.name for _, memory in order}
        for memory in architecture.memories:
            if memory.name not in held:
                result.refuse(
                    "unvisited",
                    memory.name,
                    "no entry keeps tensors there; Timeloop requires every level: add an empty keep",
                )
    else:
        fanouts, alone = [cluster.fanout for cluster in architecture.clusters], "can only be written with a mapping"
        if not all(fanout.multicast and fanout.reduction for fanout in fanouts):
            result.refuse("multicast", architecture.name, f"a fanout without multicast or reduction {alone}")
        if any(fanout.unlinked for fanout in fanouts):
            result.refuse("unlinked", architecture.name, f"a fanout without links of some tensor {alone}")
    names: set[str] = {plain(architecture.compute.name)}
    for index, memory in order:
        name = plain(memory.name)
        while name in names or name.removesuffix("_X") in names or f"{name}_X" in names:
            name += "_"
        names.add(name)
        network = architecture.clusters[index].fanout.network
        result.storage.append(Storage(name, memory, network, _mesh(architecture, index), index))


def _held(
    architecture: Architecture, problem: Problem, mapping: Mapping, result: Outline
) -> Iterator[tuple[int, Memory]]:
    """Yield the memory of each storage entry; every memory once."""
    claimed: dict[int, Memory] = {}
    for index, entry in enumerate(mapping.entries):
        cluster = architecture.cluster(entry.target)
        memories = {
            _memory_of(cluster, problem, name).name: _memory_of(cluster, problem, name) for name in entry.keep or ()
        }
        if len(memories) > 1:
            result.refuse(
                "siblings",
                place(mapping, index),
                f"keeps tensors in {' and '.join(memories)} at once; Timeloop's levels are in sequence",
            )
        for memory in memories.values():
            if memory in claimed.values():
                result.refuse(
                    "uneven",
                    place(mapping, index),
                    f"{memory.name} keeps tensors again; a Timeloop level keeps all tensors at one point of the nest",
                )
            claimed[index] = memory
    for index, entry in enumerate(mapping.entries):
        if entry.keep is None:
            continue
        free = [memory for memory in architecture.cluster(entry.target).memories if memory not in claimed.values()]
        if index not in claimed and not free:
            result.refuse("uneven", place(mapping, index), "more storage levels than memories")
        elif index not in claimed:
            claimed[index] = free[0]
        if index in claimed:
            yield architecture.cluster_index[entry.target], claimed[index]


def _memory_of(cluster: Cluster, problem: Problem, tensor: str) -> Memory:
    memory = cluster.memory_for(problem.tensor(tensor))
    assert memory is not None  # the mapping is legal
    return memory


def _nests(problem: Problem, architecture: Architecture, mapping: Mapping, result: Outline) -> None:
    """Collect the loops of every level: the loops, then their ends and lasts, then their order."""
    factors = mapping.factors()
    nests: list[Nest] = []
    groups: list[list[int]] = []
    for index, entry in enumerate(mapping.entries):
        steps = [name for name in entry.temporal_order if factors[index][0][name] > 1]
        if nests:
            _step(nests[-1], steps, mapping, index, result)
        if entry.keep is not None:
            nests.append(Nest(entry.keep))
            groups.append([])
        groups[-1].append(index)
        _unroll(nests[-1], architecture, mapping, index, result)
    if result.reasons:
        return
    _measure(problem, mapping, nests, groups, result)
    places = [architecture.cluster_index[mapping.entries[group[0]].target] for group in groups]
    ends = [*places[1:], len(architecture.clusters)]
    for nest, group, first, end in zip(nests, groups, places, ends, strict=True):
        _order(nest, mapping, group)
        _unicast(nest, problem, architecture, mapping, group, result)
        fanouts = [cluster.fanout for cluster in architecture.clusters[first:end]]
        nest.unlinked = tuple(t.name for t in problem.tensors if not all(fanout.links(t) for fanout in fanouts))
    result.nests = nests


def _step(nest: Nest, steps: list[str], mapping: Mapping, index: int, result: Outline) -> None:
    if steps and (nest.x or nest.y):
        result.refuse(
            "step_after_split",
            place(mapping, index),
            f"temporal loops {', '.join(steps)} inside an unrolling without a memory between; Timeloop's levels have temporal loops outside",
        )
    twice = [name for name in steps if name in {loop.dimension for loop in nest.temporal}]
    for name in twice:
        result.refuse(
            "two_loops",
            place(mapping, index),
            f"a second temporal loop over {name} in one level; a Timeloop level has one per dimension",
        )
    nest.temporal += [LoopBounds(name, 0, 0) for name in steps if name not in twice]


def _unroll(nest: Nest, architecture: Architecture, mapping: Mapping, index: int, result: Outline) -> None:
    entry = mapping.entries[index]
    trips = mapping.factors()[index][1]
    axis = architecture.cluster(entry.target).fanout.axis
    mine, other = (nest.y, nest.x) if axis == "Y" else (nest.x, nest.y)
    for name in entry.spatial_order or mapping.dimension_names:
        if trips[name] == 1:
            continue
        if axis not in ("X", "Y"):
            result.refuse("axis", place(mapping, index), f"unrolls along {axis}; Timeloop has X and Y")
        if name in {loop.dimension for loop in other}:
            result.refuse(
                "two_axes",
                place(mapping, index),
                f"unrolls {name} along X and along Y; a Timeloop level has one of them, and a level between would change counts",
            )
        earlier = [loop.dimension for loop in mine]
        if name in earlier and earlier[-1] != name:
            result.refuse(
                "two_loops", place(mapping, index), f"unrolls {name} along {axis} twice, with other loops between"
            )
        if name not in earlier:
            mine.append(LoopBounds(name, 0, 0))


def _measure(problem: Problem, mapping: Mapping, nests: list[Nest], groups: list[list[int]], result: Outline) -> None:
    """Set `end` and `last` of every loop.

    Only the last tile of the whole dimension may be smaller.
    """
    for name, size in problem.dimensions.items():
        chain: list[tuple[list[LoopBounds], int, int]] = []  # loop, outer tile, inner tile
        for number, (nest, group) in enumerate(zip(nests, groups, strict=True)):
            outer = mapping.entries[group[0]].temporal_tile_sizes[name]
            after = groups[number + 1][0] if number + 1 < len(groups) else None
            inner = 1 if after is None else mapping.entries[after].temporal_tile_sizes[name]
            unrolled = [i for i in group if mapping.factors()[i][1][name] > 1]
            between = mapping.entries[unrolled[0]].temporal_tile_sizes[name] if unrolled else inner
            chain.append((nest.temporal, outer, between))
            chain.append((nest.y if name in {loop.dimension for loop in nest.y} else nest.x, between, inner))
        ends = [-(-outer // inner) for _, outer, inner in chain]
        weights = [math.prod(ends[i + 1 :]) for i in range(len(ends))]
        tiles = [min(size, weight) for weight in weights]
        if tiles != [inner for _, _, inner in chain]:
            result.refuse(
                "imperfect",
                f"dimension {name}",
                "a ragged tile is cut from another tile; "
                "in Timeloop only the last tile of the whole dimension may be smaller",
            )
            continue
        rest = size - 1
        for (loops, _, _), end, weight in zip(chain, ends, weights, strict=True):
            last, rest = rest // weight + 1, rest % weight
            for position, loop in enumerate(loops):
                if loop.dimension == name:
                    loops[position] = LoopBounds(name, end, last)


def _order(nest: Nest, mapping: Mapping, group: list[int]) -> None:
    """Set the permutations: the mapping's if they agree; else loops of one iteration are outermost."""
    dims = mapping.dimension_names
    entries = [mapping.entries[i] for i in group if mapping.entries[i].keep is None]
    loops = [loop.dimension for loop in nest.temporal]
    given = entries[0].temporal_order if entries else dims
    order = given if [d for d in given if d in loops] == loops else (*(d for d in dims if d not in loops), *loops)
    nest.temporal_permutation = order[::-1]
    x, y = ([loop.dimension for loop in axis][::-1] for axis in (nest.x, nest.y))
    nest.spatial_permutation = (*x, *y, *(d for d in dims if d not in x and d not in y))
    for entry in entries:
        inward = entry.spatial_order[::-1] if entry.spatial_order else ()
        if [d for d in inward if d in x or d in y] == [*x, *y]:
            nest.spatial_permutation = inward
            break
    nest.split = nest.spatial_permutation.index(x[-1]) + 1 if x else 0


def _unicast(
    nest: Nest, problem: Problem, architecture: Architecture, mapping: Mapping, group: list[int], result: Outline
) -> None:
    """Collect the tensors that every unrolling of the level sends to each sub-cluster separately."""
    alone: dict[str, set[bool]] = {name: set() for name in problem.tensor_names}
    for index in group:
        entry = mapping.entries[index]
        if max(mapping.factors()[index][1].values()) == 1:
            continue
        fanout = architecture.cluster(entry.target).fanout
        for tensor in problem.tensors:
            shared = fanout.reduction if tensor.is_output else fanout.multicast
            alone[tensor.name].add(tensor.name in entry.unicast or not shared)
    for name, ways in alone.items():
        if len(ways) > 1:
            result.refuse("multicast", place(mapping, group[0]), f"{name} is multicast along one axis only")
    nest.unicast = tuple(name for name, ways in alone.items() if ways == {True})
    if not (nest.x or nest.y):  # no effect there; kept for the round trip
        given = [mapping.entries[i].unicast for i in group if mapping.entries[i].keep is None]
        nest.unicast = given[0] if given else ()
