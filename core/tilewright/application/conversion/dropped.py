"""Lossy conversion: a fixed list of simplifications, from harmless fields to whole parts.

The list is the same for all notations. An adapter only reports whether it can express an input set.
A simplification is kept only if it removes one of the adapter's reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tilewright.errors import Verdict
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture, Compute, Memory, Network
from tilewright.schema.attribute import droppable
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


def _attribute(part: str, field: str) -> Simplification:
    """Return a simplification that omits an optional field of the problem or architecture."""

    def simplify(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
        holder: Problem | Architecture | None = getattr(inputs, part)
        if holder is None or getattr(holder, field) is None:
            return None
        dropped = DroppedField(f"{part}.{field}", _shown(getattr(holder, field)))
        return _with(inputs, part, holder.model_copy(update={field: None})), dropped

    return simplify


def _in_parts(kind: str, field: str) -> Simplification:
    """Return a simplification that resets a field of all parts of a kind to its default."""

    def simplify(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
        if inputs.architecture is None:
            return None
        dropped: list[str] = []

        def plain(kind_of_part: str, part: Any, place: str) -> Any:
            if kind_of_part != kind or getattr(part, field) == (default := type(part).model_fields[field].default):
                return part
            dropped.append(f"{_shown(getattr(part, field))} {place}")
            return part.model_copy(update={field: default})

        architecture = _with_parts(inputs.architecture, plain)
        what = DroppedField(f"{kind}.{field}", ", ".join(dropped))
        return (replace(inputs, architecture=architecture), what) if dropped else None

    return simplify


def _with_parts(architecture: Architecture, change: Callable[[str, Any, str], Any]) -> Architecture:
    """Return the architecture with what `change` returns for the kind, the part and the place of each part."""
    clusters = []
    for cluster in architecture.clusters:
        below = f"below {cluster.name}"
        memories = tuple(change("memory", memory, f"of {memory.name}") for memory in cluster.memories)
        fanout = change("fanout", cluster.fanout, below)
        fanout = fanout.model_copy(update={"network": change("network", fanout.network, below)})
        clusters.append(cluster.model_copy(update={"memories": memories, "fanout": fanout}))
    compute = change("compute", architecture.compute, f"of {architecture.compute.name}")
    return architecture.model_copy(update={"clusters": tuple(clusters), "compute": compute})


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
    shares = [
        tuple(tensor.name for tensor in kept if memory.may_hold(tensor))
        for memory in architecture.cluster(entry.target).memories
    ]
    return [share for share in shares if share] if sum(map(len, shares)) == len(kept) else []


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


def _units(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
    """Drop the vector units."""
    if inputs.architecture is None or not inputs.architecture.units:
        return None
    names = ", ".join(unit.name for unit in inputs.architecture.units)
    return _with(inputs, "architecture", inputs.architecture.model_copy(update={"units": ()})), DroppedField(
        "units", names
    )


def _of_tensors(inputs: InputSet, field: str) -> tuple[InputSet, DroppedField] | None:
    """Drop a field of the tensors: densities, without which they are dense, or the bits of their values."""
    tensors = () if inputs.problem is None else inputs.problem.tensors
    message = ", ".join(
        f"{value} of {tensor.name}" for tensor in tensors if (value := getattr(tensor, field)) is not None
    )
    if inputs.problem is None or not message:
        return None
    plain = tuple(tensor.model_copy(update={field: None}) for tensor in tensors)
    new = inputs.problem.model_copy(update={"tensors": plain})
    return replace(inputs, problem=new), DroppedField(f"tensor.{field}", message)


def _model_options(inputs: InputSet) -> tuple[InputSet, DroppedField] | None:
    if not inputs.model_options:
        return None
    return replace(inputs, model_options={}), DroppedField("model_options", ", ".join(inputs.model_options))


SIMPLIFICATIONS: tuple[Simplification, ...] = (
    _attribute("problem", "source"),
    _attribute("problem", "label"),
    _attribute("architecture", "source"),
    _attribute("architecture", "dataflow"),
    _model_options,
    _attribute("problem", "operation"),
    _attribute("architecture", "clock_ghz"),
    _attribute("architecture", "technology_nm"),
    _estimates,
    _units,
    partial(_of_tensors, field="bits"),
    partial(_of_tensors, field="density"),
    *(_in_parts("compute", field) for field in droppable(Compute)),
    _whole("constraints"),
    _in_entries("spatial_order", None),
    _in_entries("unicast", ()),
    _siblings_one_by_one,
    *(_in_parts("network", field) for field in droppable(Network)),
    *(_in_parts("memory", field) for field in droppable(Memory)),
    *(_in_parts("fanout", field) for field in ("multicast", "reduction", "unlinked")),
    *map(_whole, ("directives", "mapping", "architecture")),
)
"""All simplifications, in the order in which they are tried."""


def _with(inputs: InputSet, part: str, value: object) -> InputSet:
    changes: dict[str, Any] = {part: value}
    return replace(inputs, **changes)


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
