"""Rendering of a group mapping as AccelForge's LoopTree, with reasons for everything that it cannot express."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from tilewright.errors import Reason
from tilewright.mapspace.group_legality import ends_with_sequence, group_legality, uneven_axes
from tilewright.mapspace.group_padding import existing_words
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.group import GroupMapping, Part, Place
from tilewright.schema.problem import Problem, Role, Tensor
from tilewright_adapters import sidecar
from tilewright_adapters.accelforge.write import (
    TABLE,
    Kept,
    Names,
    Node,
    Step,
    access_ranks,
    compute_node,
    hardware_reasons,
    is_einsum,
    is_free,
    mapping_nodes,
    nodes,
    shared_roles,
    tensor_names,
    unit_reasons,
    unrolls,
    unused,
    variables,
    workload,
)
from tilewright_adapters.parts import Written, reason, unplaced

_ROLES = frozenset(get_args(Role))


def written_group(inputs: InputSet, group: GroupMapping) -> Written:
    """Return the sections of a group mapping, or every reason why AccelForge cannot express it."""
    result = Written(reasons=list(unplaced(TABLE, inputs, (*sidecar.PARTS, "group"))))
    for problem in group.layers:
        machine = InputSet(problem, group.architecture)
        result.reasons += [*unplaced(TABLE, machine, sidecar.PARTS), *unused(problem)]
        result.reasons += [
            *hardware_reasons(group.architecture, problem),
            *unit_reasons(group.architecture, problem),
        ]
    result.reasons = list(dict.fromkeys(result.reasons)) or list(group_legality(group).reasons)
    result.reasons = result.reasons or list(_inexpressible(group))
    if result.reasons:
        return result
    tree = _Tree(group)
    result.files["workload"] = workload(tree.problems, tree.names, tree.bits, tree.ranks)
    result.files["arch"] = {"nodes": list(nodes(group.architecture, tree))}
    result.files["mapping"] = {"nodes": list(tree.nodes(group.tree, ()))}
    return result


def _inexpressible(group: GroupMapping) -> Iterator[Reason]:
    for vector in group.vectors:
        text = f"vector layers have no place in the tree of loops; AccelForge has einsums only: leave out {vector.name}"
        yield reason("vectors", vector.name, text)
    for edge in group.edges:
        if edge.added:
            text = f"{edge.added[0]} adds it to its own result; AccelForge's einsums multiply only: leave added out"
            yield reason("sums", f"tensor {edge.tensor}", text)
        if edge.zeros or existing_words(group, edge.tensor) is not None:
            text = "layers read words around those that exist; AccelForge has no padding: make them words of the tensor"
            yield reason("padding", f"tensor {edge.tensor}", text)
        elif any(map(any, edge.offsets.values())):
            text = "its layers count coordinates from different words; in AccelForge all count from the first: leave out offsets"
            yield reason("offsets", f"tensor {edge.tensor}", text)
    yield from _parts(group, group.tree, ())
    for cluster in group.architecture.clusters:
        sent = dict[str, set[bool]]()
        for path in group.paths.values():
            for entry in path.mapping.entries:
                if entry.target == cluster.name and unrolls(entry):
                    for operand, name in path.names.items():
                        sent.setdefault(name, set()).add(operand in entry.unicast)
        mixed = [name for name, ways in sent.items() if len(ways) > 1]
        if mixed:
            text = f"{', '.join(mixed)}: multicast differs between unrollings; AccelForge has one set per fanout"
            yield reason("unicast", cluster.name, text)
    for memory in group.architecture.memories:
        for name, users in group.users.items():
            uses = [group.paths[layer].problem.tensor(tensor) for layer, tensor in users.items()]
            if not _has_roles(memory) and len({memory.may_hold(tensor) for tensor in uses}) > 1:
                text = f"it may hold {name} of some layers only; AccelForge has one tensor: use roles, or rename it"
                yield reason("holds", memory.name, text)
            if len({memory.bits_of(tensor) for tensor in uses}) > 1:
                text = f"values of {name} have several widths there; AccelForge has one: give one width"
                yield reason("widths", memory.name, text)


def _parts(group: GroupMapping, part: Part, place: Place) -> Iterator[Reason]:
    """Yield reasons against the loops of a part and of those inside."""
    below = list(part.layers())
    for axis in sorted(uneven_axes(group, below) | {axis for axis in group.axes if _is_paced(group, axis, below)}):
        if part.layer is None and any(
            loop[0] == axis for n in range(len(part.entries)) for loop in _loops(group, part, place, n)
        ):
            text = (
                f"{' and '.join(below)} differ in their rows of a step, or in the first one, so a home keeps rows between steps. "
                f"AccelForge's loops step all layers alike: loop over {axis} inside the branches"
            )
            yield reason("halo", f"loop over {axis}", text)
    for number, branch in enumerate(part.branches):
        yield from _parts(group, branch, (*place, number))


def _is_paced(group: GroupMapping, axis: str, layers: list[str]) -> bool:
    return any(group.rows(axis, layer) != 1 for layer in layers if layer in group.axes[axis])


def _loops(group: GroupMapping, part: Part, place: Place, number: int) -> Iterator[tuple[str, str, int, bool]]:
    """Yield the loops of an entry, outermost first: axis, dimension of the part's first layer, tile, and whether it is unrolled."""
    layer = next(part.layers())
    path = group.paths[layer]
    index = path.places.index((place, number))
    axes = {dimensions[layer]: axis for axis, dimensions in group.axes.items() if layer in dimensions}
    for loop in path.mapping.loops():
        if loop.entry == index:
            yield axes.get(loop.dimension, ""), loop.dimension, loop.tile, loop.spatial


def _has_roles(memory: Memory) -> bool:
    """Return whether the tensors that a memory may hold are given by roles only."""
    return _ROLES.issuperset(memory.holds or ())


@dataclass(frozen=True)
class _Tree:
    """A group mapping that AccelForge can express."""

    group: GroupMapping
    is_mapped = True

    @property
    def architecture(self) -> Architecture:
        return self.group.architecture

    @property
    def bits(self) -> int:
        return self.architecture.memories[0].word_bits

    @cached_property
    def problems(self) -> list[Problem]:
        """The layers in order of execution."""
        return [path.problem for path in self.group.paths.values()]

    @cached_property
    def tensors(self) -> dict[str, str]:
        """Tensor of the group -> its name in the files: the edge's, or the layer's own where no other tensor has it."""
        users = self.group.users
        shared = {edge.tensor for edge in self.group.edges}
        labels = {name: name if name in shared else next(iter(users[name].values())) for name in users}
        count = Counter(labels.values())
        alone = {name for name, word in labels.items() if name in shared or (count[word] == 1 and is_free(word))}
        words = {name: word if name in alone else name for name, word in labels.items()}
        return tensor_names({name: re.sub(r"\W", "_", word) for name, word in words.items()})

    @cached_property
    def names(self) -> dict[str, Names]:
        """Layer -> its names in the files."""
        joined = self._joined()
        wanted = dict[tuple[str, str], str]()
        for first, members in joined.items():
            axes = [axis for axis, dims in self.group.axes.items() if dims.get(first[0]) == first[1]]
            wanted[first] = re.sub(r"\W", "_", axes[0] if axes and len(members) > 1 else first[1])
        count = Counter(word.lower() for word in wanted.values())
        for (layer, dimension), word in wanted.items():
            if count[word.lower()] > 1:
                wanted[layer, dimension] = re.sub(r"\W", "_", f"{word}_{layer}")
        labels = variables(wanted, self.tensors.values())
        variable = {pair: labels[first] for first, members in joined.items() for pair in members}
        layers = [problem.name for problem in self.problems]
        words = [re.sub(r"\W", "_", layer) for layer in layers]
        good = len(set(words)) == len(words) and all(map(is_einsum, words))
        return {
            problem.name: Names(
                words[number] if good else f"Einsum{number}",
                {tensor: self.tensors[name] for tensor, name in self.group.paths[problem.name].names.items()},
                {name: variable[problem.name, name] for name in problem.dimensions},
            )
            for number, problem in enumerate(self.problems)
        }

    def _joined(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """Return (layer, dimension) -> those that have one variable, itself included: of an axis, or of a tensor's coordinate.

        All have one size, and a layer has one of them.
        """
        size = {(problem.name, at): count for problem in self.problems for at, count in problem.dimensions.items()}
        classes = {pair: [pair] for pair in size}
        links = [[(layer, at) for layer, at in dims.items()] for dims in self.group.axes.values()]
        for users in self.group.users.values():
            uses = [
                (problem.name, problem.tensor(users[problem.name]))
                for problem in self.problems
                if problem.name in users
            ]
            for coordinate in zip(*(tensor.projection for _, tensor in uses), strict=True):
                alone = [list(rank.terms.values()) == [1] for rank in coordinate]
                links.append(
                    [
                        (layer, next(iter(rank.terms)))
                        for (layer, _), rank, one in zip(uses, coordinate, alone, strict=True)
                        if one
                    ]
                )
        for link in links:
            for first, second in itertools.combinations(link, 2):
                both = classes[first] + [pair for pair in classes[second] if pair not in classes[first]]
                if len({size[pair] for pair in both}) == 1 and len({layer for layer, _ in both}) == len(both):
                    classes |= dict.fromkeys(both, both)
        return {members[0]: members for members in classes.values()}

    @cached_property
    def ranks(self) -> dict[tuple[str, str], list[str]]:
        """(Layer, tensor) -> names of its ranks, which all layers have in common."""
        first, ranks = dict[str, list[str]](), dict[tuple[str, str], list[str]]()
        for problem in self.problems:
            for tensor, name in self.group.paths[problem.name].names.items():
                first.setdefault(name, list(access_ranks(problem.tensor(tensor), self.names[problem.name])))
                ranks[problem.name, tensor] = first[name]
        return ranks

    def may(self, memory: Memory) -> str:
        if memory.holds is None:
            return "All"
        if _has_roles(memory):
            return " | ".join(memory.holds) or "Nothing"
        return " | ".join(self.tensors[name] for name, tensor in self._uses() if memory.may_hold(tensor)) or "Nothing"

    def widths(self, memory: Memory) -> dict[str, int]:
        return {self.tensors[name]: memory.bits_of(tensor) for name, tensor in self._uses()}

    def shared(self, cluster: Cluster) -> str | None:
        sent = dict[str, None]()
        for path in self.group.paths.values():
            for entry in path.mapping.entries:
                if entry.target == cluster.name and unrolls(entry):
                    sent |= {self.names[path.problem.name].tensor[tensor]: None for tensor in entry.unicast}
        if cluster.fanout.multicast and cluster.fanout.reduction and not sent:
            return None
        return shared_roles(cluster) if not sent else f"({shared_roles(cluster)}) - ({' | '.join(sent)})"

    def _uses(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors of the group, each as its first layer uses it."""
        for name, users in self.group.users.items():
            layer, tensor = next(iter(users.items()))
            yield name, self.group.paths[layer].problem.tensor(tensor)

    def nodes(self, part: Part, place: Place) -> Iterator[Node]:
        """Yield the nodes of a part of the tree."""
        yield from mapping_nodes(self.architecture, self._steps(part, place))
        if part.layer is not None:
            yield compute_node(self.architecture, self.names[part.layer])
            return
        branches = [
            Node("Nested", {"nodes": list(self.nodes(branch, (*place, number)))})
            for number, branch in enumerate(part.branches)
        ]
        yield Node("Sequential", {"nodes": branches})

    def _steps(self, part: Part, place: Place) -> Iterator[Step]:
        layer = next(part.layers())
        below, path = set(part.layers()), self.group.paths[layer]
        for number, entry in enumerate(part.entries):
            index = path.places.index((place, number))
            kept = list[Kept]()
            for said in entry.keep or ():
                name = said if part.layer is None else path.names[said]
                users = {at: tensor for at, tensor in self.group.users[name].items() if at in below}
                kept.append(self._kept(name, users, (place, number), entry.target))
            temporal, spatial = list[tuple[str, int]](), list[tuple[str, int]]()
            for _, dimension, tile, unrolled in _loops(self.group, part, place, number):
                (spatial if unrolled else temporal).append((self.names[layer].dimension[dimension], tile))
            yield Step(self.architecture.cluster_index[path.mapping.entries[index].target], temporal, kept, spatial)

    def _kept(self, name: str, users: dict[str, str], at: tuple[Place, int], target: str) -> Kept:
        moving, stays = set[str](), False
        for layer, operand in users.items():
            path = self.group.paths[layer]
            tensor = path.problem.tensor(operand)
            moving |= {self.names[layer].dimension[dimension] for dimension in tensor.dimensions}
            stays |= any(tuple(rank.terms.values()) != (1,) for rank in tensor.projection)
            stays |= ends_with_sequence(self.group, name, path, path.places.index(at))
        memory = self.architecture.cluster(target).memory_for(tensor)
        assert memory is not None, "a legal mapping keeps what a memory may hold"
        return Kept(self.tensors[name], memory.name, moving, stays)
