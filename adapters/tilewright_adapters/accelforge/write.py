"""Rendering of AccelForge's sections, with reasons for everything that they cannot express."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, TypeVar, get_args

from tilewright.errors import Reason
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet, NotationTable
from tilewright.schema.architecture import Architecture, Cluster, Memory
from tilewright.schema.document import dump_yaml
from tilewright.schema.mapping import Entry, Mapping
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
Key = TypeVar("Key")
_TAKEN = {"all", "tensors", "nothing", "inputs", "outputs", "intermediates", "shared", "persistent", "total"} | {
    "input", "weight", "output", "and", "or", "not", "exists", "mod", "max", "min", "floor", "ceil", "inf", "len", "sum",
}  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A node of a list, with its tag. `nodes` are those inside."""

    kind: str
    data: dict[str, Any]


def written(inputs: InputSet) -> Written:
    """Return the sections of the inputs, or every reason why AccelForge cannot express them."""
    result = Written(reasons=list(unplaced(TABLE, inputs, sidecar.PARTS)))
    problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
    if problem is not None:
        result.reasons += unused(problem)
    if architecture is not None:
        result.reasons += [*hardware_reasons(architecture, problem), *unit_reasons(architecture, problem)]
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
    names = _names(problem) if problem is not None else None
    bits = architecture.memories[0].word_bits if architecture is not None else DEFAULT_BITS
    if problem is not None and names is not None:
        result.files["workload"] = workload([problem], {problem.name: names}, bits)
    if architecture is not None:
        result.files["arch"] = {"nodes": list(nodes(architecture, _OfProblem(architecture, problem, mapping, names)))}
    if problem is not None and architecture is not None and mapping is not None and names is not None:
        steps = _steps(problem, architecture, mapping, names)
        result.files["mapping"] = {"nodes": [*mapping_nodes(architecture, steps), compute_node(architecture, names)]}
    return result


def texts(result: Written) -> dict[str, str]:
    """Return the files as YAML."""
    return {FILES[name]: _yaml(name, data) for name, data in result.files.items()}


def _yaml(name: str, data: Any) -> str:
    if name == "workload":
        return dump_yaml({name: data})
    lines = [line for node in data["nodes"] for line in _lines(node, "  ")]
    return "\n".join([f"{name}:", "  nodes:", *lines]) + "\n"


def _lines(node: Node, indent: str) -> Iterator[str]:
    inside = node.data.get("nodes")
    body = ["nodes:"] if inside is not None else dump_yaml(node.data).splitlines()
    if len(body) == 1 and inside is None:
        yield f"{indent}- !{node.kind} {body[0]}"
        return
    yield f"{indent}- !{node.kind}"
    yield from (f"{indent}  {line}" for line in body)
    for branch in inside or ():
        yield from _lines(branch, f"{indent}  ")


@dataclass(frozen=True)
class Names:
    """Names of a problem in AccelForge's files: Tilewright's, unless AccelForge cannot read them."""

    einsum: str
    tensor: MappingOf[str, str]
    """Tensor -> its name."""
    dimension: MappingOf[str, str]
    """Dimension -> its variable, which begins with a small letter; its rank begins with a capital one."""


def _names(problem: Problem) -> Names:
    tensor = tensor_names({name: name for name in problem.tensor_names})
    dimension = variables({name: name for name in problem.dimension_names}, tensor.values())
    return Names(problem.name if is_einsum(problem.name) else "Einsum", tensor, dimension)


def is_einsum(name: str) -> bool:
    """Return whether AccelForge can read the name of an einsum."""
    return re.fullmatch(r"[A-Za-z_]\w*", name) is not None and name != "Total"


def tensor_names(wanted: MappingOf[Key, str]) -> dict[Key, str]:
    """Return the names of tensors; others for all of them if AccelForge cannot read one."""
    return _distinct(wanted, r"[A-Za-z_]\w*", "T", set())


def variables(wanted: MappingOf[Key, str], tensors: Iterable[str]) -> dict[Key, str]:
    """Return the names of rank variables in small letters; others for all of them if AccelForge cannot read one."""
    small = {key: name.lower() for key, name in wanted.items()}
    return _distinct(small, r"[a-z]\w*", "d", {name.lower() for name in tensors})


def is_free(name: str) -> bool:
    """Return whether a name means nothing else in AccelForge's expressions."""
    return name.lower() not in _TAKEN and not keyword.iskeyword(name)


def _distinct(wanted: MappingOf[Key, str], pattern: str, letter: str, taken: set[str]) -> dict[Key, str]:
    good = all(re.fullmatch(pattern, name) and is_free(name) and name.lower() not in taken for name in wanted.values())
    if good and len({name.upper() for name in wanted.values()}) == len(wanted):
        return dict(wanted)
    return {key: f"{letter}{index}" for index, key in enumerate(wanted)}


def unused(problem: Problem) -> Iterator[Reason]:
    """Yield a reason for each dimension that no tensor has."""
    used = {name for tensor in problem.tensors for name in tensor.dimensions}
    for name in problem.dimensions:
        if name not in used:
            message = f"no tensor has {name}; in AccelForge every dimension indexes a tensor"
            yield reason("unused", problem.name, message)


def hardware_reasons(architecture: Architecture, problem: Problem | None) -> Iterator[Reason]:
    """Yield reasons against memories."""
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


def unit_reasons(architecture: Architecture, problem: Problem | None) -> Iterator[Reason]:
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
            sent = {entry.unicast for entry in mapping.entries if entry.target == cluster.name and unrolls(entry)}
            if len(sent) > 1:
                yield reason(
                    "unicast",
                    cluster.name,
                    "multicast tensors differ between unrollings; AccelForge has one set per fanout",
                )


def unrolls(entry: Entry) -> bool:
    """Return whether an entry has unrolled loops."""
    return bool(entry.temporal_tile_sizes != entry.spatial_tile_sizes)


def workload(
    problems: Iterable[Problem],
    names: MappingOf[str, Names],
    bits: int,
    ranks: MappingOf[tuple[str, str], Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the section of these einsums.

    Args:
        problems: the einsums, in order of execution.
        names: problem -> its names.
        bits: bits of a value.
        ranks: (problem, tensor) -> names of its ranks; None: variables give them.
    """
    shape, einsums = dict[str, str](), list[dict[str, Any]]()
    for problem in problems:
        words, roles = names[problem.name], dict[str, list[str]](input=[], weight=[], output=[])
        for tensor in problem.tensors:
            roles[tensor.role].append(words.tensor[tensor.name])
        for name, size in problem.dimensions.items():
            shape[words.dimension[name]] = f"0 <= {words.dimension[name]} < {size}"
        accesses = [
            _access(tensor, words, (ranks or {}).get((problem.name, tensor.name))) for tensor in problem.tensors
        ]
        renames = {role: " | ".join(tensors) or "Nothing" for role, tensors in roles.items()}
        einsums.append({"name": words.einsum, "tensor_accesses": accesses, "renames": renames})
    return {"iteration_space_shape": shape, "bits_per_value": {"All": bits}, "einsums": einsums}


def _access(tensor: Tensor, names: Names, ranks: Sequence[str] | None) -> dict[str, Any]:
    projection: Any = access_ranks(tensor, names)
    variables = list(projection.values())
    if ranks is not None:
        projection = dict(zip(ranks, variables, strict=True))
    if projection == {variable.upper(): variable for variable in variables}:
        projection = variables
    output = {"output": True} if tensor.is_output else {}
    return {"name": names.tensor[tensor.name], "projection": projection} | output


def access_ranks(tensor: Tensor, names: Names) -> dict[str, str]:
    """Return the names of a tensor's ranks, and the coordinate along each."""
    terms = [dict(rank.terms) for rank in tensor.projection]
    single = [names.dimension[next(iter(term))] for term in terms]
    ranks = dict[str, str]()
    for index, (rank, name) in enumerate(zip(terms, single, strict=True)):
        alone = list(rank.values()) == [1] and name not in single[:index]
        ranks[name.upper() if alone else f"{name.upper()}_{index}"] = " + ".join(
            names.dimension[key] if factor == 1 else f"{factor}*{names.dimension[key]}" for key, factor in rank.items()
        )
    return ranks


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


class Statements(Protocol):
    """Statements about tensors in the nodes of an architecture."""

    @property
    def is_mapped(self) -> bool:
        """Whether a mapping says what memories keep."""
        ...

    @property
    def bits(self) -> int:
        """Bits of a value, unless a node says otherwise."""
        ...

    def may(self, memory: Memory) -> str:
        """Return the set of tensors that a memory may hold."""
        ...

    def widths(self, memory: Memory) -> dict[str, int]:
        """Return set of tensors -> bits of their values in a memory."""
        ...

    def shared(self, cluster: Cluster) -> str | None:
        """Return the set of tensors that one read may serve; None: all."""
        ...


@dataclass(frozen=True)
class _OfProblem:
    """Statements by a problem and its mapping, or by roles without them."""

    architecture: Architecture
    problem: Problem | None
    mapping: Mapping | None
    names: Names | None

    @property
    def is_mapped(self) -> bool:
        return self.mapping is not None

    @property
    def bits(self) -> int:
        return self.architecture.memories[0].word_bits if self.problem is not None else DEFAULT_BITS

    def may(self, memory: Memory) -> str:
        if memory.holds is None:
            return "All"
        if self.problem is None or self.names is None:
            return " | ".join(memory.holds) or "Nothing"
        tensors = [self.names.tensor[tensor.name] for tensor in self.problem.tensors if memory.may_hold(tensor)]
        return " | ".join(tensors) or "Nothing"

    def widths(self, memory: Memory) -> dict[str, int]:
        if self.problem is None or self.names is None:
            return {}
        return {self.names.tensor[tensor.name]: memory.bits_of(tensor) for tensor in self.problem.tensors}

    def shared(self, cluster: Cluster) -> str | None:
        fanout, entries = cluster.fanout, self.mapping.entries if self.mapping is not None else ()
        alone = {name for entry in entries if entry.target == cluster.name and unrolls(entry) for name in entry.unicast}
        if fanout.multicast and fanout.reduction and not alone:
            return None
        if self.problem is None or self.names is None:
            return shared_roles(cluster)
        shared = [
            self.names.tensor[tensor.name]
            for tensor in self.problem.tensors
            if (fanout.reduction if tensor.is_output else fanout.multicast) and tensor.name not in alone
        ]
        return " | ".join(shared) or "Nothing"


def shared_roles(cluster: Cluster) -> str:
    """Return the set of tensors that one read of a fanout may serve, by roles."""
    parts = (["Inputs"] if cluster.fanout.multicast else []) + (["Outputs"] if cluster.fanout.reduction else [])
    return " | ".join(parts) or "Nothing"


def nodes(architecture: Architecture, said: Statements) -> Iterator[Node]:
    """Yield the nodes of an architecture."""
    hertz = (architecture.clock_ghz or 1.0) * _HERTZ
    chain = _Chain.of(architecture)
    spatial: list[dict[str, Any]] = []
    for cluster in architecture.clusters:
        if spatial:
            yield Node("Container", {"name": chain.container[cluster.name], "spatial": spatial})
        for memory in cluster.memories:
            may = said.may(memory)
            kept = {"keep": "Nothing", "may_keep": may} if said.is_mapped else {"keep": may}
            data = _memory(memory, chain.memory[memory.name], kept, hertz, said.bits, said.widths(memory))
            yield Node("Memory", data)
            for unit in architecture.units:
                if unit.memory == memory.name:
                    rate, energy = unit.lanes / unit.cycles.get("add", 1), unit.energy_pj["add"]
                    computing = _compute(chain.unit[unit.name], energy, hertz * rate)
                    yield Node("Compute", computing | {"enabled": "len(All) == 2"})
        spatial = [_fan(cluster, said.shared(cluster))] if cluster.fanout.size > 1 else []
    compute = architecture.compute
    data = _compute(chain.compute, compute.energy_per_operation_pj, hertz / compute.cycles_per_operation)
    data |= {"enabled": "len(All) != 2"} if architecture.units else {}
    yield Node("Compute", data | ({"spatial": spatial} if spatial else {}))


def _fan(cluster: Cluster, shared: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {"name": cluster.fanout.axis, "fanout": cluster.fanout.size}
    return data if shared is None else data | {"may_reuse": shared}


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
    for (way, rate), energy in zip(memory.bandwidths, (memory.read_energy_pj, memory.write_energy_pj), strict=True):
        words = memory.shared_bandwidth_words_per_cycle if _takes_turns(memory) else rate
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
    shared = memory.shared_bandwidth_words_per_cycle
    return shared is not None and all(limit is None or limit >= shared for _, limit in memory.bandwidths)


@dataclass(frozen=True)
class Kept:
    """Tensor that a memory keeps, by AccelForge's name; `variables` move its tile. `stays`: no loop outside is passed."""

    tensor: str
    memory: str
    variables: Collection[str]
    stays: bool


@dataclass(frozen=True)
class Step:
    """Entry of a mapping: temporal loops, then kept tensors, then unrolled loops. A loop is a variable and its tile."""

    cluster: int
    temporal: Sequence[tuple[str, int]]
    keep: Sequence[Kept]
    spatial: Sequence[tuple[str, int]]


@dataclass
class _Part:
    """A node of a mapping under construction: a loop, or a memory with its tensors."""

    kind: str
    variable: str = ""
    tile: int = 0
    cluster: int = 0
    memory: str = ""
    tensors: list[str] = field(default_factory=list)


def _steps(problem: Problem, architecture: Architecture, mapping: Mapping, names: Names) -> Iterator[Step]:
    loops = list(mapping.loops())
    for index, entry in enumerate(mapping.entries):
        kept = list[Kept]()
        for name in entry.keep or ():
            tensor = problem.tensor(name)
            memory = architecture.cluster(entry.target).memory_for(tensor)
            assert memory is not None, "a legal mapping keeps what a memory may hold"
            variables = {names.dimension[at] for at in tensor.dimensions}
            # forwarding of windows between neighbours depends on the position
            kept.append(Kept(names.tensor[name], memory.name, variables, stays=problem.is_affine))
        temporal, spatial = (
            [(names.dimension[at.dimension], at.tile) for at in loops if (at.entry, at.spatial) == (index, unrolled)]
            for unrolled in (False, True)
        )
        yield Step(architecture.cluster_index[entry.target], temporal, kept, spatial)


def compute_node(architecture: Architecture, names: Names) -> Node:
    """Return the last node of an einsum."""
    return Node("Compute", {"einsum": names.einsum, "component": _Chain.of(architecture).compute})


def mapping_nodes(architecture: Architecture, steps: Iterable[Step]) -> Iterator[Node]:
    """Yield the nodes of entries, without the einsums inside."""
    chain = _Chain.of(architecture)
    for part in _parts(steps):
        if part.kind == "Storage":
            yield Node("Storage", {"tensors": part.tensors, "component": chain.memory[part.memory]})
            continue
        data: dict[str, Any] = {"rank_variable": part.variable, "tile_shape": part.tile}
        if part.kind == "Spatial":
            data["name"] = architecture.clusters[part.cluster].fanout.axis
            data["component"] = chain.below(architecture, part.cluster)
        yield Node(part.kind, data)


def _parts(steps: Iterable[Step]) -> list[_Part]:
    """Return the nodes from the outermost in.

    AccelForge fetches a tile inside a loop again at each of its steps. A storage node therefore
    moves outwards past loops that leave its tile unchanged, unless it stays.
    """
    parts: list[_Part] = []
    for step in steps:
        parts += [_Part("Temporal", variable, tile) for variable, tile in step.temporal]
        for kept in step.keep:
            place = len(parts) if kept.stays else _outermost(parts, kept, step.cluster)
            before = parts[place - 1] if place else None
            if before is not None and before.kind == "Storage" and before.memory == kept.memory:
                before.tensors.append(kept.tensor)
            else:
                parts.insert(place, _Part("Storage", cluster=step.cluster, memory=kept.memory, tensors=[kept.tensor]))
        parts += [_Part("Spatial", variable, tile, step.cluster) for variable, tile in step.spatial]
    return parts


def _outermost(parts: list[_Part], kept: Kept, cluster: int) -> int:
    """Return the outermost index for a tensor's storage node.

    It may pass temporal loops that do not index the tensor, and memories of its own cluster.
    """
    place = len(parts)
    for number in range(len(parts) - 1, -1, -1):
        part = parts[number]
        if part.kind == "Temporal" and part.variable not in kept.variables:
            place = number
        elif part.kind != "Storage" or part.cluster != cluster:
            break
    return place


def _joules(picojoules: float) -> float:
    return float(Decimal(repr(float(picojoules))).scaleb(-12))
