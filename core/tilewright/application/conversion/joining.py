"""One architecture for layers that each see a machine with widths and places of their own tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem

Seen = Sequence[tuple[Problem, Architecture]]


def joined(seen: Seen) -> Architecture | None:
    """Return the architecture on which each problem finds the memories and widths of its own one.

    None: the machines differ in more than widths and places by the names of tensors, or two layers disagree on a tensor.
    A memory without energy and limits of its rate counts values: one that is twice as large for values of twice the
    width is the same.
    """
    seen = _in_values(seen)
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


def _in_values(seen: Seen) -> Seen:
    """Return the machines with memories that only hold as large as the smallest, where the values are wider as often."""
    least = dict[str, Memory]()
    for _, architecture in seen:
        for memory in architecture.memories:
            if _only_holds(memory) and (memory.name not in least or _bits(memory) < _bits(least[memory.name])):
                least[memory.name] = memory

    def scaled(problem: Problem, memory: Memory) -> Memory:
        small = least.get(memory.name)
        if small is None or not _only_holds(memory):
            return memory
        times, rest = divmod(_bits(memory), _bits(small))
        held = [tensor for tensor in problem.tensors if memory.may_hold(tensor)]
        if rest or any(memory.bits_of(tensor) % (times * small.word_bits) for tensor in held):
            return memory
        bits = {tensor.name: memory.bits_of(tensor) // times for tensor in held}
        widths = FrozenDict({name: width for name, width in bits.items() if width != small.word_bits})
        same = {"capacity_words": small.capacity_words, "word_bits": small.word_bits, "bits_per_value": widths}
        return memory.model_copy(update=same)

    return [(problem, architecture.with_memories(partial(scaled, problem))) for problem, architecture in seen]


def _bits(memory: Memory) -> int:
    return (memory.capacity_words or 0) * memory.word_bits


def _only_holds(memory: Memory) -> bool:
    """Return whether a memory has a size, and accesses cost nothing and take no time."""
    rates = (
        memory.read_bandwidth_words_per_cycle,
        memory.write_bandwidth_words_per_cycle,
        memory.shared_bandwidth_words_per_cycle,
    )
    costs = memory.read_energy_pj or memory.write_energy_pj or memory.update_energy_pj or any(rates) or memory.ports
    return bool(memory.capacity_words) and not costs


def _memory(seen: Sequence[tuple[Problem, Memory]]) -> Memory:
    """Return the memory with the rule of all layers, or with the names of their tensors."""
    memory = seen[0][1]
    update: dict[str, object] = {}
    if any(other.holds != memory.holds for _, other in seen):
        update["holds"] = tuple(
            dict.fromkeys(t.name for problem, other in seen for t in problem.tensors if other.may_hold(t))
        )
    if any(other.bits_per_value != memory.bits_per_value for _, other in seen):
        widths = {t.name: other.bits_of(t) for problem, other in seen for t in problem.tensors if other.may_hold(t)}
        update["bits_per_value"] = FrozenDict({name: bits for name, bits in widths.items() if bits != memory.word_bits})
    return memory.model_copy(update=update)


def _agrees(joint: Architecture, problem: Problem, architecture: Architecture) -> bool:
    """Return whether a problem's tensors have the same memories and widths on both."""
    return all(
        one.may_hold(tensor) == other.may_hold(tensor)
        and (one.bits_of(tensor) == other.bits_of(tensor) or not one.may_hold(tensor))
        for one, other in zip(joint.memories, architecture.memories, strict=True)
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
