"""Conversion of AccelForge's mapping of several einsums (a LoopTree) to a group mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilewright.errors import InputError, NotConformableError, Reason
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import Document
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import MAX_DEPTH, Edge, GroupMapping, Part
from tilewright.schema.problem import Problem
from tilewright.values import grouped
from tilewright_adapters.accelforge.hardware import Hardware
from tilewright_adapters.accelforge.mapping import Walk
from tilewright_adapters.faults import placed
from tilewright_adapters.loopblocks import LoopBlock, entries_of

_INSIDE = ("!Nested", "!Mapping")


def read_group(
    document: Document, problems: Sequence[Problem], hardware: Sequence[Hardware], sizes: Mapping[str, tuple[int, ...]]
) -> GroupMapping:
    """Convert a list of nodes to a group mapping.

    Args:
        document: the list of nodes.
        problems: the einsums.
        hardware: the architecture as each einsum sees it.
        sizes: tensors with words that do not exist (padding) -> size of each coordinate.

    Raises:
        InputError: The nodes are invalid; with file and line.
        NotConformableError: The einsums see different architectures.
    """
    tree = _Tree(problems, hardware, sizes)
    nodes = list(_flat(document))
    tree.note_axes(nodes, 0)
    part = tree.part(nodes, document, {problem.name: dict(problem.dimensions) for problem in problems})
    with placed(document.locate(())):
        return GroupMapping(
            name=" + ".join(problem.name for problem in problems)[:200],
            axes=FrozenDict({name: FrozenDict(axis) for name, axis in tree.axes.items()}),
            edges=tuple(tree.edges()),
            tree=part,
            layers=tuple(problems),
            architecture=tree.architecture(),
        )


def _flat(nodes: Document) -> Iterator[Document]:
    """Yield the nodes in order, with those of nested lists in their place."""
    if not isinstance(nodes.data, list):
        raise InputError("a mapping has a list of nodes", location=nodes.locate(()))
    for index in range(len(nodes.data)):
        node = nodes.at(index)
        if _is_nested(node):
            yield from _flat(node.at("nodes"))
        else:
            yield node


class _Tree:
    def __init__(
        self, problems: Sequence[Problem], hardware: Sequence[Hardware], sizes: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.problems = {layer.name: layer for layer in problems}
        self.seen, self.sizes = hardware, sizes
        shared: dict[str, frozenset[str]] = {}
        for machine in hardware:
            for cluster, tensors in machine.shared.items():
                shared[cluster] = shared.get(cluster, frozenset()) | tensors
        self.hardware = replace(hardware[0], shared=shared)
        self.axes: dict[str, dict[str, str]] = {}
        self.users = grouped((name, problem.name) for problem in problems for name in problem.tensor_names)

    def note_axes(self, nodes: Sequence[Document], depth: int) -> None:
        """Find the axes of all loops outside of sequences. Raises InputError."""
        if not nodes or nodes[-1].tags.get((), "") != "!Sequential":
            return
        if depth > MAX_DEPTH:
            raise InputError(f"sequences are nested more than {MAX_DEPTH} deep", location=nodes[-1].locate(()))
        below = [name for name in dict.fromkeys(_computed(nodes[-1])) if name in self.problems]
        for node in nodes[:-1]:
            self._step(node, below)
        for _, inside in _branches(nodes[-1]):
            self.note_axes(inside, depth + 1)

    def part(self, nodes: list[Document], document: Document, tiles: dict[str, dict[str, int]]) -> Part:
        """Return the part of the tree that these nodes are."""
        kind = nodes[-1].tags.get((), "") if nodes else ""
        if kind in ("!Pipeline", "!Split"):
            hint = "write !Sequential, if the branches may run in sequence"
            raise InputError(
                f"{kind}: branches at the same time are not supported", location=nodes[-1].locate(()), hint=hint
            )
        if kind == "!Sequential":
            return self._shared(nodes, document, tiles)
        computed = [str(node.data.get("einsum")) for node in nodes if _computes(node)]
        if len(computed) != 1 or computed[0] not in self.problems:
            what = f"{', '.join(computed) or 'nothing'} is computed here; expected one of {', '.join(self.problems)}"
            raise InputError(what, location=document.locate(()))
        layer = computed[0]
        problem = self.problems[layer]
        walk = Walk(tiles[layer], problem.tensors, self.hardware, self.users.keys() - {*problem.tensor_names}, True)
        for node in nodes:
            walk.node(node)
        entries = entries_of(tiles[layer], problem.tensor_names, walk.finished(document))
        return Part(layer=layer, entries=entries)

    def _shared(self, nodes: list[Document], document: Document, tiles: dict[str, dict[str, int]]) -> Part:
        below = list(dict.fromkeys(_computed(nodes[-1])))
        unknown = [name for name in below if name not in self.problems]
        if not below or unknown:
            raise InputError(f"no einsum {', '.join(unknown) or 'is computed here'}", location=nodes[-1].locate(()))
        sizes = self._common(below, tiles)
        tensors = {tensor.name: tensor for name in below for tensor in self.problems[name].tensors}
        others = self.users.keys() - tensors.keys()
        walk = Walk(sizes, tuple(tensors.values()), self.hardware, others, True)
        for node in nodes[:-1]:
            walk.node(node)
        blocks = walk.finished(document, shared=True)
        inner = {name: dict(tile) for name, tile in tiles.items()}
        for block in blocks:
            for variable, size in (*block.loops, *block.unrolled.items()):
                for name in below:
                    inner[name][variable] = size
        parts = [self.part(inside, branch, inner) for branch, inside in _branches(nodes[-1])]
        extents = {name: size for name, size in sizes.items() if set(below) <= self.axes.get(name, {}).keys()}
        named = [self._named(name) for name in tensors]
        renamed = [_renamed(block, {name: self._named(name) for name in tensors}) for block in blocks]
        return Part(entries=entries_of(extents, named, renamed), branches=tuple(parts))

    def _common(self, below: Sequence[str], tiles: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
        """Return the variables of these einsums, with the sizes of those that have one."""
        sizes: dict[str, int] = {}
        for name in below:
            sizes |= {variable: size for variable, size in tiles[name].items() if variable not in sizes}
        return sizes

    def _step(self, node: Document, below: Sequence[str]) -> None:
        """Note the axis of a loop. Raises InputError if some einsum below does not take part."""
        kind = node.tags.get((), "")
        variable = node.data.get("rank_variable") if isinstance(node.data, dict) else None
        if kind not in ("!Temporal", "!Spatial") or not isinstance(variable, str):
            return
        lacking = [name for name in below if variable not in self.problems[name].dimensions]
        if lacking and len(lacking) < len(below):
            text = f"{' and '.join(lacking)} would run again at every step: no variable {variable}; loop inside the branches"
            raise InputError(f"{text} [unfinished]", location=node.locate(()))
        sizes = {self.problems[name].dimensions[variable] for name in below if not lacking}
        if len(sizes) > 1:
            told = " and ".join(map(str, sorted(sizes)))
            text = f"the einsums have {told} steps of {variable}, so a shared loop reads rows of later steps; loop inside the branches"
            raise InputError(f"{text} [halo]", location=node.locate(()))
        for name in below if not lacking else ():
            self.axes.setdefault(variable, {})[name] = variable

    def _named(self, tensor: str) -> str:
        """Return the group's name of a tensor."""
        used = self.users[tensor]
        return tensor if len(used) > 1 or tensor in self.sizes else f"{used[0]}.{tensor}"

    def edges(self) -> Iterator[Edge]:
        """Yield the tensors that several einsums use, or that are padded."""
        for name, layers in self.users.items():
            if len(layers) > 1 or name in self.sizes:
                yield Edge(tensor=name, layers=FrozenDict(dict.fromkeys(layers, name)), sizes=self.sizes.get(name))

    def architecture(self) -> Architecture:
        """Return the architecture that holds the tensors of all einsums."""
        first = self.hardware.architecture
        clusters = []
        for number, cluster in enumerate(first.clusters):
            memories = []
            for at, memory in enumerate(cluster.memories):
                seen = [
                    (problem, hardware) for problem, hardware in zip(self.problems.values(), self.seen, strict=True)
                ]
                held, widths, rules = dict[str, None](), dict[str, int](), set[tuple[str, ...] | None]()
                for problem, hardware in seen:
                    same = hardware.architecture.clusters
                    if len(same) != len(first.clusters) or [m.name for m in same[number].memories] != [
                        m.name for m in cluster.memories
                    ]:
                        text = (
                            f"{problem.name} and {next(iter(self.problems))} see different memories at {cluster.name}"
                        )
                        reason = Reason(code="memories", where=first.name, message=text)
                        raise NotConformableError("a group mapping", [reason])
                    other = same[number].memories[at]
                    rules.add(other.holds)
                    for tensor in problem.tensors:
                        if other.may_hold(tensor):
                            held[tensor.name] = None
                            widths[tensor.name] = other.bits_per_value.get(tensor.name, other.word_bits)
                # one rule for all may have roles: an intermediate is an output first, and an input later
                together = None if held.keys() >= self.users.keys() else tuple(held)
                memories.append(
                    memory.model_copy(
                        update={
                            "holds": rules.pop() if len(rules) == 1 else together,
                            "bits_per_value": FrozenDict(
                                {name: bits for name, bits in widths.items() if bits != memory.word_bits}
                            ),
                        }
                    )
                )
            clusters.append(cluster.model_copy(update={"memories": tuple(memories)}))
        return first.model_copy(update={"clusters": tuple(clusters)})


def _renamed(block: LoopBlock, names: Mapping[str, str]) -> LoopBlock:
    kept = None if block.keep is None else [names[name] for name in block.keep]
    return LoopBlock(block.target, kept, block.loops, block.unrolled, tuple(names[name] for name in block.unicast))


def _computes(node: Document) -> bool:
    return node.tags.get((), "") == "!Compute" and isinstance(node.data, dict)


def _branches(sequence: Document) -> list[tuple[Document, list[Document]]]:
    """Return the branches of a sequence, each with its nodes. Raises InputError."""
    if not isinstance(sequence.data, dict) or not isinstance(sequence.data.get("nodes"), list):
        raise InputError("a sequence has a list of nodes", location=sequence.locate(()))
    nodes = [sequence.at("nodes", index) for index in range(len(sequence.data["nodes"]))]
    return [(document, list(_flat(document.at("nodes"))) if _is_nested(document) else [document]) for document in nodes]


def _is_nested(node: Document) -> bool:
    return node.tags.get((), "") in _INSIDE and isinstance(node.data, dict) and "nodes" in node.data


def _computed(node: Document) -> Iterator[str]:
    """Yield the einsums that are computed below a node."""
    if _computes(node):
        yield str(node.data.get("einsum"))
    inside = node.data.get("nodes") if isinstance(node.data, dict) else None
    for index in range(len(inside) if isinstance(inside, list) else 0):
        yield from _computed(node.at("nodes", index))
