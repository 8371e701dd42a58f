"""Rendering of AccelForge's sections, with reasons for everything that they cannot express."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, get_args

from tilewright.errors import Reason
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet, NotationTable
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.document import dump_yaml
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.schema.vector import Operation
from tilewright_adapters import sidecar
from tilewright_adapters.accelforge.hardware import IN_TURN, SEPARATE_PORTS
from tilewright_adapters.accelforge.workload import DEFAULT_BITS
from tilewright_adapters.parts import Written, reason, unplaced

FILES = {"arch": "arch.yaml", "workload": "workload.yaml", "mapping": "mapping.yaml"}
TABLE = NotationTable(
    "AccelForge's files",
    written=(
        *("capacity_words", "word_bits", "bits_per_value", "block_words", "multiple_buffering", "cycles_per_operation"),
        *("read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle", "shared_bandwidth_words_per_cycle"),
    ),
    beside=("technology", "ports", "power_gated_at"),
    units=True,
    instead={
        "footprint": "AccelForge counts bounding boxes",
        "leakage": "leakage is not supported for AccelForge",
        "macro": "AccelForge has separate instances",
        "operands": "AccelForge's files have no such key",
        "timing": "in AccelForge everything overlaps",
        "update_energy": "AccelForge uses a write's energy",
    },
)
_HERTZ = 1e9
"""Cycles per second of an architecture without a clock: 1 GHz."""
_TAKEN = {"all", "tensors", "nothing", "inputs", "outputs", "intermediates", "shared", "persistent", "total"} | {
    "input", "weight", "output", "and", "or", "not", "exists", "mod", "max", "min", "floor", "ceil", "inf", "len", "sum",
}  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A node of a list, with its tag."""

    kind: str
    data: dict[str, Any]


def written(inputs: InputSet) -> Written:
    """Return the sections of the inputs, or every reason why AccelForge cannot express them."""
    result = Written(reasons=list(unplaced(TABLE, inputs, sidecar.PARTS)))
    problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
    if problem is not None:
        result.reasons += _unused(problem)
    if architecture is not None:
        result.reasons += [*_hardware(architecture, problem), *_unit_reasons(architecture, problem)]
    if mapping is not None and (problem is None or architecture is None):
        message = "AccelForge needs a mapping's workload and architecture"
        result.reasons.append(reason("missing", "mapping", message))
    if result.reasons:
        return result
    if problem is not None and architecture is not None and mapping is not None:
        result.reasons += legality(problem, architecture, mapping).reasons
        result.reasons = result.reasons or list(_inexpressible(problem, architecture, mapping))
        if result.reasons:
            return result
    names = _Names(problem) if problem is not None else None
    bits = architecture.memories[0].word_bits if architecture is not None else DEFAULT_BITS
    if problem is not None and names is not None:
        result.files["workload"] = _workload(problem, names, bits)
    if architecture is not None:
        result.files["arch"] = {"nodes": list(_nodes(architecture, problem, mapping, names))}
    if problem is not None and architecture is not None and mapping is not None and names is not None:
        result.files["mapping"] = {"nodes": list(_mapping(problem, architecture, mapping, names))}
    return result


def texts(result: Written) -> dict[str, str]:
    """Return the files as YAML."""
    return {FILES[name]: _yaml(name, data) for name, data in result.files.items()}


def _yaml(name: str, data: Any) -> str:
    if name == "workload":
        return dump_yaml({name: data})
    lines = [f"{name}:", "  nodes:"]
    for node in data["nodes"]:
        body = dump_yaml(node.data).splitlines()
        if len(body) == 1:
            lines.append(f"  - !{node.kind} {body[0]}")
        else:
            lines += [f"  - !{node.kind}", *(f"    {line}" for line in body)]
    return "\n".join(lines) + "\n"


class _Names:
    """Names in AccelForge's files: Tilewright's, unless AccelForge cannot read them.

    Variables begin with a small letter, ranks with a capital one.
    """

    def __init__(self, problem: Problem) -> None:
        self.tensor = self._distinct(problem.tensor_names, r"[A-Za-z_]\w*", lambda name: name, "T", set())
        self.dimension = self._distinct(
            problem.dimension_names, r"[a-z]\w*", str.lower, "d", {name.lower() for name in self.tensor.values()}
        )
        plain = re.fullmatch(r"[A-Za-z_]\w*", problem.name) and problem.name != "Total"
        self.einsum = problem.name if plain else "Einsum"

    @staticmethod
    def _distinct(names: Any, pattern: str, change: Any, letter: str, taken: set[str]) -> dict[str, str]:
        changed = {name: change(name) for name in names}
        good = all(
            re.fullmatch(pattern, spelling)
            and spelling.lower() not in _TAKEN | taken
            and not keyword.iskeyword(spelling)
            for spelling in changed.values()
        )
        if good and len({spelling.upper() for spelling in changed.values()}) == len(changed):
            return changed
        return {name: f"{letter}{index}" for index, name in enumerate(names)}


def _unused(problem: Problem) -> Iterator[Reason]:
    used = {name for tensor in problem.tensors for name in tensor.dimensions}
    for name in problem.dimensions:
        if name not in used:
            message = f"no tensor has {name}; in AccelForge every dimension indexes a tensor"
            yield reason("unused", problem.name, message)


def _hardware(architecture: Architecture, problem: Problem | None) -> Iterator[Reason]:
    for cluster in architecture.clusters:
        for memory in cluster.memories:
            if memory.bits_per_value and problem is None:
                message = "values have several widths; AccelForge gives widths by tensor, which needs a problem"
                yield reason("widths", memory.name, message)
            if memory.shared_bandwidth_words_per_cycle is not None and not _takes_turns(memory):
                message = (
                    "reads and writes share its bandwidth, next to limits of their own; AccelForge has one of both"
                )
                yield reason("bandwidth", memory.name, message)
            if memory.usable_words == 0:
                message = f"{memory.multiple_buffering:g} copies leave less than a word; AccelForge's size is the capacity of one copy"
                yield reason("buffering", memory.name, message)


def _unit_reasons(architecture: Architecture, problem: Problem | None) -> Iterator[Reason]:
    """Yield reasons against vector units: AccelForge has a compute node for einsums of two tensors, with one operation."""
    for unit in architecture.units:
        kinds = set(get_args(Operation))
        cycles = {unit.cycles.get(kind, 1.0) for kind in kinds}
        if unit.energy_pj.keys() != kinds or len({*unit.energy_pj.values()}) > 1 or len(cycles) > 1 or unit.operators:
            message = "its operations differ in energy or cycles; AccelForge's compute node has one operation"
            yield reason("units", unit.name, message)
        if problem is not None and len(problem.tensors) == 2:
            yield reason("units", unit.name, f"AccelForge would execute {problem.name} on it, which has two tensors")
    if len(architecture.units) > 1:
        message = "there are several vector units; AccelForge has one compute node for an einsum"
        yield reason("units", architecture.name, message)


def _inexpressible(problem: Problem, architecture: Architecture, mapping: Mapping) -> Iterator[Reason]:
    for index, entry in enumerate(mapping.entries):
        if entry.keep == ():
            where = f"entry {index} on {entry.target}"
            yield reason("empty", where, "all tensors bypass this memory; AccelForge has no such node")
    for cluster in architecture.clusters:
        if cluster.fanout.size > 1:
            sent = {entry.unicast for entry in mapping.entries if entry.target == cluster.name and _unrolls(entry)}
            if len(sent) > 1:
                yield reason(
                    "unicast",
                    cluster.name,
                    "multicast tensors differ between unrollings; AccelForge has one set per fanout",
                )


def _unrolls(entry: Any) -> bool:
    return bool(entry.temporal_tile_sizes != entry.spatial_tile_sizes)


def _workload(problem: Problem, names: _Names, bits: int) -> dict[str, Any]:
    roles: dict[str, list[str]] = {"input": [], "weight": [], "output": []}
    for tensor in problem.tensors:
        roles[tensor.role].append(names.tensor[tensor.name])
    return {
        "iteration_space_shape": {
            names.dimension[name]: f"0 <= {names.dimension[name]} < {size}" for name, size in problem.dimensions.items()
        },
        "bits_per_value": {"All": bits},
        "einsums": [
            {
                "name": names.einsum,
                "tensor_accesses": [_access(tensor, names) for tensor in problem.tensors],
                "renames": {role: " | ".join(tensors) or "Nothing" for role, tensors in roles.items()},
            }
        ],
    }


def _access(tensor: Tensor, names: _Names) -> dict[str, Any]:
    terms = [dict(rank.terms) for rank in tensor.projection]
    alone = [list(term.values()) == [1] for term in terms]
    single = [names.dimension[next(iter(term))] for term in terms]
    projection: Any = single
    if not all(alone) or len(set(single)) != len(single):
        projection = {
            (name.upper() if lone and name not in single[:index] else f"{name.upper()}_{index}"): " + ".join(
                names.dimension[key] if factor == 1 else f"{factor}*{names.dimension[key]}"
                for key, factor in rank.items()
            )
            for index, (rank, lone, name) in enumerate(zip(terms, alone, single, strict=True))
        }
    return {"name": names.tensor[tensor.name], "projection": projection} | (
        {"output": True} if tensor.is_output else {}
    )


@dataclass(frozen=True)
class _Chain:
    """Names of an architecture's nodes: of memories, of compute, and of clusters for containers."""

    memory: dict[str, str]
    container: dict[str, str]
    compute: str
    unit: dict[str, str]

    @classmethod
    def of(cls, architecture: Architecture) -> _Chain:
        taken: set[str] = set()

        def free(name: str) -> str:
            word = re.sub(r"\W", "_", name)
            while word in taken:
                word += "_array"
            taken.add(word)
            return word

        memory = {item.name: free(item.name) for item in architecture.memories}
        compute = free(architecture.compute.name)
        container = {cluster.name: free(cluster.name) for cluster in architecture.clusters}
        return cls(memory, container, compute, {unit.name: free(unit.name) for unit in architecture.units})

    def below(self, architecture: Architecture, index: int) -> str:
        """Return the node that a cluster's fanout is written at."""
        clusters = architecture.clusters
        return self.container[clusters[index + 1].name] if index + 1 < len(clusters) else self.compute


def _nodes(
    architecture: Architecture, problem: Problem | None, mapping: Mapping | None, names: _Names | None
) -> Iterator[Node]:
    hertz = (architecture.clock_ghz or 1.0) * _HERTZ
    bits = architecture.memories[0].word_bits if problem is not None else DEFAULT_BITS
    chain = _Chain.of(architecture)
    spatial: list[dict[str, Any]] = []
    for cluster in architecture.clusters:
        if spatial:
            yield Node("Container", {"name": chain.container[cluster.name], "spatial": spatial})
        for memory in cluster.memories:
            may = _may(memory, problem, names)
            kept = {"keep": may} if mapping is None else {"keep": "Nothing", "may_keep": may}
            wide = (
                {names.tensor[tensor.name]: memory.bits_of(tensor) for tensor in problem.tensors}
                if problem and names
                else {}
            )
            yield Node("Memory", _memory(memory, chain.memory[memory.name], kept, hertz, bits, wide))
            for unit in architecture.units:
                if unit.memory == memory.name:
                    rate, energy = unit.lanes / unit.cycles.get("add", 1), unit.energy_pj["add"]
                    computing = _compute(chain.unit[unit.name], energy, hertz * rate)
                    yield Node("Compute", computing | {"enabled": "len(All) == 2"})
        spatial = [_fan(cluster, problem, mapping, names)] if cluster.fanout.size > 1 else []
    compute = architecture.compute
    data = _compute(chain.compute, compute.energy_per_operation_pj, hertz / compute.cycles_per_operation)
    data |= {"enabled": "len(All) != 2"} if architecture.units else {}
    yield Node("Compute", data | ({"spatial": spatial} if spatial else {}))


def _compute(name: str, energy_pj: float, rate: float) -> dict[str, Any]:
    """Return a compute node as data."""
    action = {"name": "compute", "energy": _joules(energy_pj), "throughput": rate}
    return {"name": name, "leak_power": 0, "area": 0, "actions": [action]}


def _memory(
    memory: Memory, name: str, tensors: dict[str, str], hertz: float, bits: int, wide: dict[str, int]
) -> dict[str, Any]:
    """Return a memory as data.

    Args:
        memory: the memory.
        name: name of its node.
        tensors: the `tensors` entry.
        hertz: cycles per second.
        bits: default bits of a value.
        wide: tensor -> bits of its values in this memory.
    """
    usable = memory.usable_words
    data: dict[str, Any] = {
        "name": name,
        "size": "inf" if usable is None else usable * memory.word_bits,
        "leak_power": 0,
        "area": 0,
        "total_latency": IN_TURN if _takes_turns(memory) else SEPARATE_PORTS,
        "tensors": tensors,
        "actions": [],
    }
    if wide and set(wide.values()) != {memory.word_bits}:
        data["bits_per_value"] = wide
    elif memory.word_bits != bits:
        data["bits_per_value"] = {"All": memory.word_bits}
    for way, energy, words in (
        ("read", memory.read_energy_pj, memory.read_bandwidth_words_per_cycle),
        ("write", memory.write_energy_pj, memory.write_bandwidth_words_per_cycle),
    ):
        action = {
            "name": way,
            "energy": _joules(energy),
            "throughput": "inf" if words is None else words * hertz / memory.block_words,
            "bits_per_action": memory.word_bits * memory.block_words,
        }
        data["actions"].append(action)
    return data


def _takes_turns(memory: Memory) -> bool:
    """Return whether one throughput serves reads and writes, as AccelForge's throughputs do."""
    limits = memory.read_bandwidth_words_per_cycle, memory.write_bandwidth_words_per_cycle
    return memory.shared_bandwidth_words_per_cycle is not None and set(limits) == {
        memory.shared_bandwidth_words_per_cycle
    }


def _may(memory: Memory, problem: Problem | None, names: _Names | None) -> str:
    if memory.holds is None:
        return "All"
    if problem is None or names is None:
        return " | ".join(memory.holds) or "Nothing"
    tensors = [names.tensor[tensor.name] for tensor in problem.tensors if memory.may_hold(tensor)]
    return " | ".join(tensors) or "Nothing"


def _fan(cluster: Cluster, problem: Problem | None, mapping: Mapping | None, names: _Names | None) -> dict[str, Any]:
    fanout = cluster.fanout
    data: dict[str, Any] = {"name": fanout.axis, "fanout": fanout.size}
    entries = mapping.entries if mapping is not None else ()
    alone = {name for entry in entries if entry.target == cluster.name and _unrolls(entry) for name in entry.unicast}
    if fanout.multicast and fanout.reduction and not alone:
        return data
    if problem is None or names is None:
        parts = (["Inputs"] if fanout.multicast else []) + (["Outputs"] if fanout.reduction else [])
        return data | {"may_reuse": " | ".join(parts) or "Nothing"}
    shared = [
        names.tensor[tensor.name]
        for tensor in problem.tensors
        if (fanout.reduction if tensor.is_output else fanout.multicast) and tensor.name not in alone
    ]
    return data | {"may_reuse": " | ".join(shared) or "Nothing"}


@dataclass
class _Part:
    """A node of a mapping under construction: a loop, or a memory with its tensors."""

    kind: str
    dimension: str = ""
    tile: int = 0
    cluster: int = 0
    memory: str = ""
    tensors: list[str] = field(default_factory=list)


def _mapping(problem: Problem, architecture: Architecture, mapping: Mapping, names: _Names) -> Iterator[Node]:
    chain = _Chain.of(architecture)
    for part in _parts(problem, architecture, mapping):
        if part.kind == "Storage":
            tensors = [names.tensor[name] for name in part.tensors]
            yield Node("Storage", {"tensors": tensors, "component": chain.memory[part.memory]})
            continue
        data: dict[str, Any] = {"rank_variable": names.dimension[part.dimension], "tile_shape": part.tile}
        if part.kind == "Spatial":
            data["name"] = architecture.clusters[part.cluster].fanout.axis
            data["component"] = chain.below(architecture, part.cluster)
        yield Node(part.kind, data)
    yield Node("Compute", {"einsum": names.einsum, "component": chain.compute})


def _parts(problem: Problem, architecture: Architecture, mapping: Mapping) -> list[_Part]:
    """Return the nodes from the outermost in.

    AccelForge fetches a tile inside a loop again at each of its steps. A storage node therefore
    moves outwards past loops that leave its tile unchanged. With windows it stays in place, because
    forwarding between neighbours depends on its position.
    """
    parts: list[_Part] = []
    loops = list(mapping.loops())
    for index, entry in enumerate(mapping.entries):
        at = architecture.cluster_index[entry.target]
        cluster = architecture.clusters[at]
        for loop in loops:
            if loop.entry == index and not loop.spatial:
                parts.append(_Part("Temporal", loop.dimension, loop.tile))
        for name in entry.keep or ():
            memory = cluster.memory_for(problem.tensor(name))
            assert memory is not None, "a legal mapping keeps what a memory may hold"
            place = len(parts) if problem.is_affine else _outermost(parts, problem.tensor(name), at)
            before = parts[place - 1] if place else None
            if before is not None and before.kind == "Storage" and before.memory == memory.name:
                before.tensors.append(name)
            else:
                parts.insert(place, _Part("Storage", cluster=at, memory=memory.name, tensors=[name]))
        for loop in loops:
            if loop.entry == index and loop.spatial:
                parts.append(_Part("Spatial", loop.dimension, loop.tile, at))
    return parts


def _outermost(parts: list[_Part], tensor: Tensor, cluster: int) -> int:
    """Return the outermost index for a tensor's storage node.

    It may pass temporal loops that do not index the tensor, and memories of its own cluster.
    """
    place = len(parts)
    for number in range(len(parts) - 1, -1, -1):
        part = parts[number]
        if part.kind == "Temporal" and part.dimension not in tensor.dimensions:
            place = number
        elif part.kind != "Storage" or part.cluster != cluster:
            break
    return place


def _joules(picojoules: float) -> float:
    return float(Decimal(repr(float(picojoules))).scaleb(-12))
