"""Group mapping of a network whose residents are at home above all layers: what `map NET --fuse` states, as a tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapping import Mapping as LayerMapping
from tilewright.schema.problem import MAX_PARTS
from tilewright.schema.workload import Workload


def resident_group(
    workload: Workload,
    architecture: Architecture,
    home: Memory,
    makers: Iterable[str],
    mappings: Mapping[str, LayerMapping],
) -> GroupMapping | None:
    """Return the group mapping of layers that run in sequence, with some results whole at home.

    None if a group cannot express which words are read. It cannot for sums, and for words with other coordinates than
    the maker's.

    Args:
        makers: the layers whose results stay, from the one that makes it to the last one that reads it.
        mappings: the mapping of each layer. Its first entry keeps all tensors. Memories from there to the home, and the
            home itself, need not keep residents.
    """
    edges = [resident_edge(workload, maker, f"T{number}") for number, maker in enumerate(makers)]
    if len(workload.layers) > MAX_PARTS or any(edge is None for edge in edges):
        return None
    stay = {pair: str(edge["tensor"]) for edge in edges if edge is not None for pair in edge["layers"].items()}
    inner = architecture.cluster_of(home.name).name
    branches = []
    for layer in workload.layers:
        kept = {tensor for name, tensor in stay if name == layer.name}
        entries = layer_entries(mappings[layer.name], architecture, inner, kept)
        branches.append({"layer": layer.name, "entries": entries})
    others = [
        f"{member.name}.{t}"
        for member in workload.layers
        for t in member.problem.tensor_names
        if (member.name, t) not in stay
    ]
    outer = [
        {"target": architecture.clusters[0].name, "keep": others},
        {"target": inner, "keep": sorted(set(stay.values()))},
    ]
    return GroupMapping.model_validate(
        {
            "name": workload.name,
            "layers": [member.problem.model_dump(mode="json") for member in workload.layers],
            "edges": edges,
            "tree": {"entries": outer, "branches": branches},
            "architecture": architecture.model_dump(mode="json"),
        }
    )


def resident_edge(workload: Workload, maker: str, tensor: str) -> dict[str, Any] | None:
    """Return the edge of a result, or None if no layer reads it, or a group cannot express how."""
    problem = workload.layer(maker).problem
    made = problem.output
    layers, offsets = {maker: made.name}, dict[str, tuple[int, ...]]()
    for reader, operand, read in workload.edges:
        if read.maker != maker:
            continue
        alone, shifts = len(workload.layer(reader).reads[operand]) == 1, read.offsets
        if not alone or reader in layers or shifts is None or len(shifts) != len(made.projection):
            return None
        if read.gap(problem, workload.layer(reader).problem, operand) is not None:
            return None
        layers[reader], offsets[reader] = operand, shifts
    return {"tensor": tensor, "layers": layers, "offsets": offsets} if offsets else None


def layer_entries(
    mapping: LayerMapping, architecture: Architecture, inner: str, residents: Collection[str]
) -> list[dict[str, Any]]:
    """Return the entries of a layer below the home, in the cluster `inner`.

    The loops of the first entry move there. Memories down to the home bypass the residents.
    """
    place = architecture.cluster_index[inner]
    entries = [level.model_dump(mode="json") for level in mapping.entries]
    for entry in entries:
        if entry["keep"] is not None and architecture.cluster_index[entry["target"]] <= place:
            entry["keep"] = [name for name in entry["keep"] if name not in residents]
    entries[0] |= {"target": inner, "keep": None}
    return entries
