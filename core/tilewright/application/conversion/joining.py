"""One architecture for layers that each see a machine with widths and places of their own tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem

Seen = Sequence[tuple[Problem, Architecture]]


def joined(seen: Seen) -> Architecture | None:
    """Return the architecture on which each problem finds the memories and widths of its own one.

    None: the machines differ in more than widths and places by the names of tensors, or two layers disagree on a tensor.
    """
    first = seen[0][1]
    plain = _plain(first)
    if any(_plain(architecture) != plain for _, architecture in seen):
        return None
    clusters = []
    for number, cluster in enumerate(first.clusters):
        memories = [
            _memory([(problem, architecture.clusters[number].memories[at]) for problem, architecture in seen])
            for at in range(len(cluster.memories))
        ]
        clusters.append(cluster.model_copy(update={"memories": tuple(memories)}))
    machine = first.model_copy(update={"clusters": tuple(clusters)})
    return machine if all(_agrees(machine, problem, architecture) for problem, architecture in seen) else None


def _memory(seen: Sequence[tuple[Problem, Memory]]) -> Memory:
    """Return the memory with the rule of all layers, or with the names of their tensors."""
    memory = seen[0][1]
    update: dict[str, object] = {}
    if any(other.holds != memory.holds for _, other in seen):
        update["holds"] = tuple(
            dict.fromkeys(t.name for problem, other in seen for t in problem.tensors if other.may_hold(t))
        )
    if any(other.bits_per_value != memory.bits_per_value for _, other in seen):
        widths = {t.name: other.bits_of(t) for problem, other in seen for t in problem.tensors}
        update["bits_per_value"] = FrozenDict({name: bits for name, bits in widths.items() if bits != memory.word_bits})
    return memory.model_copy(update=update)


def _agrees(joint: Architecture, problem: Problem, own: Architecture) -> bool:
    """Return whether a problem's tensors have the same memories and widths on both."""
    return all(
        (one.may_hold(tensor), one.bits_of(tensor)) == (other.may_hold(tensor), other.bits_of(tensor))
        for one, other in zip(joint.memories, own.memories, strict=True)
        for tensor in problem.tensors
    )


def _plain(architecture: Architecture) -> Architecture:
    """Return the architecture without widths and places of tensors."""

    def memories(all_of: Sequence[Memory]) -> Iterator[Memory]:
        yield from (memory.model_copy(update={"holds": None, "bits_per_value": FrozenDict()}) for memory in all_of)

    clusters = (
        cluster.model_copy(update={"memories": tuple(memories(cluster.memories))}) for cluster in architecture.clusters
    )
    return architecture.model_copy(update={"clusters": tuple(clusters)})
