"""Rendering of Union's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.document import dump_yaml
from tilewright.schema.mapping import Entry, Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.union.layout import OPERATIONS
from tilewright_adapters.union.read import kept_by_default

WORDS = {ours: theirs for theirs, ours in OPERATIONS.items()}


def problem_text(problem: Problem) -> str:
    """Return the problem as in Figure 5(a)."""
    data: dict[str, Any] = {"name": problem.name, "source": problem.source}
    data["operation"] = WORDS.get(problem.operation or "", problem.operation)
    data["label"] = problem.label
    data["unit_operation"] = problem.unit_operation if problem.unit_operation != "mac" else None
    data["dimensions"] = list(problem.dimension_names)
    data["data-space"] = [
        {"name": tensor.name, "role": tensor.role, "projection": [str(rank) for rank in tensor.projection]}
        | ({"read-write": True} if tensor.is_output else {})
        for tensor in problem.tensors
    ]
    data["instance"] = dict(problem.dimensions)
    return dump_yaml({"problem": _without_none(data)})


def architecture_text(architecture: Architecture) -> str:
    """Return the architecture as in Figure 5(b)."""
    fields = {"name", "source", "clock_ghz", "technology_nm"}
    data = architecture.model_dump(mode="json", exclude_defaults=True, include=fields)
    data["clusters"] = [_cluster(cluster) for cluster in architecture.clusters]
    data["compute"] = architecture.compute.model_dump(mode="json", exclude_defaults=True)
    return dump_yaml({"architecture": data})


def _cluster(cluster: Cluster) -> dict[str, Any]:
    data: dict[str, Any] = {"cluster": cluster.name, "virtual": cluster.is_virtual}
    memories = [memory.model_dump(mode="json", exclude_defaults=True) for memory in cluster.memories]
    if memories:
        data["memory"] = memories[0] if len(memories) == 1 else memories
    fanout = cluster.fanout.model_dump(mode="json", exclude_defaults=True)
    data |= {"sub-clusters": cluster.fanout.size, "dimension": cluster.fanout.axis}
    return data | {key: value for key, value in fanout.items() if key not in ("size", "axis")}


def mapping_text(problem: Problem, architecture: Architecture, mapping: Mapping) -> str:
    """Return the mapping as in Figures 5(d), 7 and 9, with sizes in the problem's order."""
    return "mapping:\n" + "\n".join(_entries(problem, architecture, mapping)) + "\n"


def _entries(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[str]:
    names = problem.dimension_names
    before: list[str] = []
    yield f"  # tile sizes in the order {_order(names)}"
    for entry in mapping.entries:
        yield f"  - target_cluster: {_scalar(entry.target)}"
        yield f"    temporal_order: {_order(entry.temporal_order)}"
        yield f"    temporal_tile_sizes: {', '.join(str(entry.temporal_tile_sizes[name]) for name in names)}"
        yield f"    spatial_tile_sizes: {', '.join(str(entry.spatial_tile_sizes[name]) for name in names)}"
        yield from _ours(entry, kept_by_default(problem, architecture, entry.target, before))
        before.append(entry.target)


def _ours(entry: Entry, kept: tuple[str, ...] | None) -> Iterator[str]:
    """Yield the keys that Union's entries lack."""
    if entry.keep != kept:
        yield f"    keep: {'null' if entry.keep is None else _list(entry.keep)}"
    if entry.unicast:
        yield f"    unicast: {_list(entry.unicast)}"
    if entry.spatial_order is not None:
        yield f"    spatial_order: {_list(entry.spatial_order)}"


def _order(names: Sequence[str]) -> str:
    """Return one word if all names are letters, as in the figures; a list if a word is ambiguous."""
    word = "".join(names)
    plain = len(names) > 1 and all(len(name) == 1 for name in names)
    return word if plain and _scalar(word) == word else _list(names)


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(_scalar(name) for name in names)}]"


def _scalar(text: str) -> str:
    """Return a name, quoted if YAML would read another value."""
    return dump_yaml([text]).strip()[1:-1]


def _without_none(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None}
