"""Lossy conversion: a fixed list of simplifications, from harmless fields to whole parts.

The list is the same for all notations. An adapter only reports whether it can express an input set.
A simplification is kept only if it removes one of the adapter's reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from tilewright.errors import Verdict
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.mapping import Entry
from tilewright.schema.problem import Problem


@dataclass(frozen=True)
class DroppedField:
    """One dropped item: `what` is a stable code, `message` names the parts and their replacement."""

    what: str
    message: str

    def __str__(self) -> str:
        return f"{self.what}: {self.message}"


Simplification = Callable[[InputSet], tuple[InputSet, DroppedField] | None]
"""A function that returns simplified inputs and the dropped field, or None if it does not apply."""

_MEMORY = (
    "instances_per_macro", "block_words", "word_bits", "multiple_buffering", "technology", "update_energy_pj",
    "leakage_pj_per_cycle", "power_gated_at", "ports", "bits_per_value", "sparse", "timing", "footprint",
    "read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle", "shared_bandwidth_words_per_cycle",
    "capacity_words",
)  # fmt: skip
_NETWORK = (
    "energy_per_hop_pj", "energy_per_router_pj", "energy_per_ingress_pj", "latency_cycles", "bandwidth_words_per_cycle",
    "meshes",
)  # fmt: skip


def simplified(
    inputs: InputSet, expressible: Callable[[InputSet], Verdict]
) -> tuple[InputSet, tuple[DroppedField, ...]]:
    """Drop content that a notation cannot express, in the order of SIMPLIFICATIONS.

    Args:
        inputs: the input set.
        expressible: the method of an adapter.

    Returns:
        The simplified inputs and the dropped fields. If no set of simplifications suffices, the
        unchanged inputs and nothing dropped.
    """
    now, verdict = inputs, expressible(inputs)
    dropped: list[DroppedField] = []
    for simplify in SIMPLIFICATIONS:
        if verdict:
            break
        made = simplify(now)
        if made is None:
            continue
        then = expressible(made[0])
        if set(verdict.reasons) - set(then.reasons):
            now, verdict = made[0], then
            dropped.append(made[1])
    return (now, tuple(dropped)) if verdict else (inputs, ())


def _attribute(part: str, field: str, default: object) -> Simplification:
    """Return a simplification that resets a field of the problem or architecture to its default."""

    def simplify(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
        holder: Problem | Architecture | None = getattr(inputs, part)
        if holder is None or getattr(holder, field) == default:
            return None
        dropped = DroppedField(f"{part}.{field}", f"{_shown(getattr(holder, field))}{_instead(default)}")
        return _with(inputs, part, holder.model_copy(update={field: default})), dropped

    return simplify


def _in_memories(field: str) -> Simplification:
    def change(cluster: Cluster) -> tuple[Cluster, list[str]]:
        memories, names = [], []
        for memory in cluster.memories:
            new, changed = _neutral(memory, field)
            memories.append(new)
            names += [f"{_shown(getattr(memory, field))} of {memory.name}"] if changed else []
        return cluster.model_copy(update={"memories": tuple(memories)}), names

    return _in_clusters("memory", field, change)


def _in_fanouts(field: str) -> Simplification:
    def change(cluster: Cluster) -> tuple[Cluster, list[str]]:
        fanout, changed = _neutral(cluster.fanout, field)
        names = [f"{_shown(getattr(cluster.fanout, field))} below {cluster.name}"] if changed else []
        return cluster.model_copy(update={"fanout": fanout}), names

    return _in_clusters("fanout", field, change)


def _in_networks(field: str) -> Simplification:
    def change(cluster: Cluster) -> tuple[Cluster, list[str]]:
        network, changed = _neutral(cluster.fanout.network, field)
        names = [f"{_shown(getattr(cluster.fanout.network, field))} below {cluster.name}"] if changed else []
        fanout = cluster.fanout.model_copy(update={"network": network})
        return cluster.model_copy(update={"fanout": fanout}), names

    return _in_clusters("network", field, change)


def _in_clusters(what: str, field: str, change: Callable[[Cluster], tuple[Cluster, list[str]]]) -> Simplification:
    def simplify(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
        if inputs.architecture is None:
            return None
        changed = [change(cluster) for cluster in inputs.architecture.clusters]
        names = [name for _, found in changed for name in found]
        if not names:
            return None
        clusters = tuple(cluster for cluster, _ in changed)
        architecture = inputs.architecture.model_copy(update={"clusters": clusters})
        return replace(inputs, architecture=architecture), DroppedField(f"{what}.{field}", ", ".join(names))

    return simplify


def _in_entries(field: str, default: object) -> Simplification:
    def simplify(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
        if inputs.mapping is None:
            return None
        entries = inputs.mapping.entries
        odd = [(n, entry) for n, entry in enumerate(entries) if getattr(entry, field) != default]
        if not odd:
            return None
        plain = tuple(entry.model_copy(update={field: default}) for entry in entries)
        message = ", ".join(f"{_shown(getattr(entry, field))} of entry {n} on {entry.target}" for n, entry in odd)
        mapping = inputs.mapping.model_copy(update={"entries": plain})
        return replace(inputs, mapping=mapping), DroppedField(f"mapping.{field}", message)

    return simplify


def _siblings_one_by_one(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
    """Split a storage entry over several sibling memories into one entry per memory.

    The new entries follow the order of the memories in the architecture.
    """
    problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
    if problem is None or architecture is None or mapping is None:
        return None
    entries, odd = list[Entry](), list[str]()
    for number, entry in enumerate(mapping.entries):
        shares = _shares(problem, architecture, entry) if number else []
        if len(shares) < 2:
            entries.append(entry)
            continue
        odd.append(f"entry {number} on {entry.target} held {'; '.join(' '.join(share) for share in shares)} at once")
        whole = {"spatial_tile_sizes": entry.temporal_tile_sizes, "unicast": (), "spatial_order": None}
        entries += [entry.model_copy(update={"keep": share} | whole) for share in shares[:-1]]
        entries.append(entry.model_copy(update={"keep": shares[-1]}))
    if not odd:
        return None
    dropped = DroppedField("mapping.siblings", f"{', '.join(odd)}; now one after the other")
    return replace(inputs, mapping=mapping.model_copy(update={"entries": tuple(entries)})), dropped


def _shares(problem: Problem, architecture: Architecture, entry: Entry) -> list[tuple[str, ...]]:
    """Return the kept tensors by memory; empty if the memory of a tensor is not unique."""
    if entry.target not in architecture.cluster_index or not set(entry.keep or ()) <= set(problem.tensor_names):
        return []
    kept = [problem.tensor(name) for name in entry.keep or ()]
    found = [
        tuple(tensor.name for tensor in kept if memory.may_hold(tensor))
        for memory in architecture.cluster(entry.target).memories
    ]
    return [share for share in found if share] if sum(map(len, found)) == len(kept) else []


def _whole(part: str) -> Simplification:
    def simplify(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
        others = ("problem", "architecture", "mapping", "constraints", "directives")
        if getattr(inputs, part) is None or all(getattr(inputs, other) is None for other in others if other != part):
            return None
        return _with(inputs, part, None), DroppedField(part, "all of it")

    return simplify


def _estimates(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
    """Drop component descriptions and estimate records; the estimated values stay."""
    if inputs.architecture is None:
        return None
    old, without = inputs.architecture, {"component": None, "estimates": ()}
    names = [part.name for part in old.parts if part.component is not None or part.estimates]
    if not names:
        return None
    new = old.with_memories(lambda memory: memory.model_copy(update=without))
    new = new.model_copy(update={"compute": old.compute.model_copy(update=without)})
    message = f"components and estimate records of {', '.join(names)}"
    return replace(inputs, architecture=new), DroppedField("estimates", message)


def _in_compute(field: str, default: object) -> Simplification:
    def simplify(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
        if inputs.architecture is None or getattr(inputs.architecture.compute, field) == default:
            return None
        compute = inputs.architecture.compute
        new = inputs.architecture.model_copy(update={"compute": compute.model_copy(update={field: default})})
        message = f"{getattr(compute, field)} of {compute.name}"
        return replace(inputs, architecture=new), DroppedField(f"compute.{field}", message)

    return simplify


def _densities(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
    """Drop the densities of tensors, which are then dense."""
    if inputs.problem is None or not inputs.problem.sparse_tensors:
        return None
    message = ", ".join(
        f"{tensor.density} of {tensor.name}" for tensor in inputs.problem.tensors if tensor.density is not None
    )
    tensors = tuple(tensor.model_copy(update={"density": None}) for tensor in inputs.problem.tensors)
    new = inputs.problem.model_copy(update={"tensors": tensors})
    return replace(inputs, problem=new), DroppedField("tensor.density", message)


def _model_options(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
    if not inputs.model_options:
        return None
    return replace(inputs, model_options={}), DroppedField("model_options", ", ".join(inputs.model_options))


def _all() -> Iterator[Simplification]:
    yield _attribute("problem", "source", None)
    yield _attribute("architecture", "source", None)
    yield _attribute("architecture", "dataflow", None)
    yield _model_options
    yield _attribute("problem", "operation", None)
    yield _attribute("architecture", "clock_ghz", None)
    yield _attribute("architecture", "technology_nm", None)
    yield _estimates
    yield _densities
    yield _in_compute("sparse", None)
    yield _in_compute("fill_drain_cycles", 0)
    yield _in_compute("operands", 2)
    yield _in_compute("instruction", None)
    yield _whole("constraints")
    yield _in_entries("spatial_order", None)
    yield _in_entries("unicast", ())
    yield _siblings_one_by_one
    yield from map(_in_networks, _NETWORK)
    yield from map(_in_memories, _MEMORY)
    yield from map(_in_fanouts, ("multicast", "reduction", "unlinked"))
    yield from map(_whole, ("directives", "mapping", "architecture"))


SIMPLIFICATIONS: tuple[Simplification, ...] = tuple(_all())
"""All simplifications, in the order in which they are tried."""


def _neutral(model: Any, field: str) -> tuple[Any, bool]:
    """Return the model with the field at its default, and whether that changed it."""
    assert isinstance(model, BaseModel)
    default = type(model).model_fields[field].default
    if getattr(model, field) == default:
        return model, False
    return model.model_copy(update={field: default}), True


def _with(inputs: InputSet, part: str, value: object) -> InputSet:
    changes: dict[str, Any] = {part: value}
    return replace(inputs, **changes)


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _instead(default: object) -> str:
    return "" if default is None else f", {default} instead"
