"""Architecture: a chain of clusters, outermost to innermost, then compute (Union, section IV-C).

A cluster holds memories and a fanout of equal sub-clusters along one axis; a cluster without
memories is virtual. A two-dimensional array is two nested clusters. Memories of one cluster are
siblings, such as the parts of a partitioned buffer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Mapping as MappingOf
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import Field, GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tilewright.errors import InputError
from tilewright.formats import figure
from tilewright.schema import attribute, units
from tilewright.schema.component import Component, Estimated, outdated, required_without
from tilewright.schema.document import FileModel
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.machine_table import machine_table
from tilewright.schema.problem import Name, Problem, Role, Tensor
from tilewright.schema.quantities import Area, Count, Energy, Rate, SubClusters, Words
from tilewright.schema.replace import ValuePath, paths_below, replaced
from tilewright.schema.sparse import SparseCompute, SparseMemory
from tilewright.schema.timing import Instruction, Timing
from tilewright.schema.vector import Unit, check_units
from tilewright.values import MisplacedError, Model, worded

N = TypeVar("N", float, "Counter[int]")
BandwidthAction = Literal["read", "write", "access"]
"""Actions that a bandwidth limits; accesses are reads and writes together."""
MAX_UNITS = 2**40
"""Maximum number of compute units in total."""


class Mesh(Model):
    """Two-dimensional mesh with X-Y routing: one router per sub-cluster, and links in both directions.

    It spans the fanout of its cluster and those of the virtual clusters directly inside. A word for
    several sub-clusters travels along a tree if the fanout has `multicast`. Partial sums are added
    on their way back if it has `reduction`. Otherwise each sub-cluster has its own copy.
    """

    tensors: tuple[str, ...] | None = None
    """Roles or names of the tensors that it carries; None: those that no other mesh of the fanout lists."""
    link_words_per_cycle: Rate | None = None
    """Bandwidth of each link; None: unlimited."""
    port: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] = (0, 0)
    """Router (x, y) that the memory outside the mesh is attached to."""


class Network(Model):
    """Network on chip (NoC) of one fanout."""

    energy_per_hop_pj: Annotated[Energy, attribute.NETWORK] = 0.0
    """Energy in pJ of one word over one hop between neighbours."""
    energy_per_router_pj: Annotated[Energy, attribute.NETWORK] = 0.0
    """Energy in pJ of one word in one router."""
    energy_per_ingress_pj: Annotated[Energy, attribute.NETWORK] = 0.0
    """Energy in pJ of one word that enters the network."""
    bandwidth_words_per_cycle: Annotated[Rate | None, attribute.NETWORK] = None
    """Words that enter per cycle; None: unlimited."""
    latency_cycles: Annotated[int, Field(ge=0, le=2**40, strict=True), attribute.NETWORK] = 0
    """Cycles from a word's entry to its arrival."""
    meshes: Annotated[tuple[Mesh, ...], attribute.MESHES] = Field(default=(), max_length=100)
    """Meshes, each with links of its own; none: links are not counted."""

    @model_validator(mode="after")
    def _one_mesh_each(self) -> Self:
        carried = [
            name for mesh in self.meshes for name in (("all other tensors",) if mesh.tensors is None else mesh.tensors)
        ]
        repeated = sorted({name for name in carried if carried.count(name) > 1})
        if repeated:
            raise ValueError(f"several meshes carry {', '.join(repeated)}")
        return self

    def mesh_of(self, tensor: Tensor) -> Mesh | None:
        """Return the mesh that carries a tensor, or None. A name takes precedence over a role."""
        for name in (tensor.name, tensor.role):
            for mesh in self.meshes:
                if name in (mesh.tensors or ()):
                    return mesh
        return next((mesh for mesh in self.meshes if mesh.tensors is None), None)

    @property
    def takes_energy(self) -> bool:
        return max(self.energy_per_hop_pj, self.energy_per_router_pj, self.energy_per_ingress_pj) > 0


class Fanout(Model):
    """Equal sub-clusters, and the network to them."""

    size: SubClusters = 1
    """Number of sub-clusters."""
    axis: Annotated[str, worded(r"^[A-Z][A-Za-z0-9_]*$", "a name that begins with a capital letter, such as X")] = "X"
    """Axis of the array along which they are placed."""
    multicast: bool = True
    """Whether one read may serve several sub-clusters."""
    reduction: bool = True
    """Whether the network adds partial sums of several sub-clusters."""
    unlinked: tuple[str, ...] = ()
    """Tensors, by name or role, that sub-clusters do not forward to their neighbours (Timeloop's `no_link_transfer`).

    It concerns cost models with link transfers.
    """
    network: Network = Network()
    """Energy, bandwidth and latency of the network."""

    @property
    def told(self) -> str:
        """Number and axis of the sub-clusters, and what the network cannot do, as text; empty for one."""
        absent = [kind for kind, has in (("multicast", self.multicast), ("reduction", self.reduction)) if not has]
        without = f", no {' or '.join(absent)}" if absent else ""
        return f"x {self.size:,} along {self.axis}{without}" if self.size > 1 else ""

    def links(self, tensor: Tensor) -> bool:
        """Return whether sub-clusters may forward the tensor to their neighbours."""
        return not {tensor.name, tensor.role} & set(self.unlinked)


class Port(Model):
    """One port of a memory: the traffic that it carries, and its bandwidth."""

    moves: FrozenDict[str, tuple[Literal["reads", "drains", "fills", "updates"], ...]]
    """Role or name of a tensor -> its traffic.

    `reads` go inwards, `fills` arrive from outside. For results, `drains` go outwards and `updates` arrive from inside.
    """
    words_per_cycle: Rate | None = None
    """Bandwidth in words per cycle; None: unlimited."""
    read_energy_factor: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 1.0
    """Energy of a read through this port, as a multiple of the memory's."""
    write_energy_factor: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 1.0
    """Energy of a write through this port, as a multiple of the memory's."""


class Memory(Model):
    """A buffer.

    >>> Memory(name="Buffer", capacity_words=1024, word_bits=16, read_energy_pj=1, write_energy_pj=2).usable_bits
    16384.0
    """

    name: Name
    """Name, unique in the architecture."""
    technology: Annotated[Literal["dram", "sram", "register"], attribute.Attribute("technology", "it is {value}")] = (
        "sram"
    )
    """Kind of memory, which estimators ask for."""
    capacity_words: Annotated[Words | None, attribute.Attribute("capacity", "{value} words", "words", loss=5)] = None
    """Capacity of one instance in words; None: unlimited."""
    word_bits: Annotated[Count, attribute.Attribute("word_bits", "its words have {value} bits", "bits", loss=1)] = 16
    """Bits of one word."""
    bits_per_value: Annotated[FrozenDict[str, Count], attribute.WIDTHS] = FrozenDict()
    """Bits of one value by tensor name or role, if different from `word_bits`.

    A name takes precedence over a role. Such a value occupies bits / word_bits words of capacity,
    accesses and bandwidth. Networks move values.
    """
    holds: tuple[str, ...] | None = None
    """Roles or names of the tensors that it may hold; None: any."""
    read_energy_pj: Energy
    """Energy in pJ of one read of `block_words` words."""
    write_energy_pj: Energy
    """Energy in pJ of one write of `block_words` words."""
    update_energy_pj: Annotated[Energy | None, attribute.UPDATES] = None
    """Energy of one accumulating write; None: that of a write."""
    read_bandwidth_words_per_cycle: Annotated[Rate | None, attribute.BANDWIDTH] = None
    """Words read per cycle from one instance; None: unlimited."""
    write_bandwidth_words_per_cycle: Annotated[Rate | None, attribute.BANDWIDTH] = None
    """Words written per cycle to one instance; None: unlimited."""
    shared_bandwidth_words_per_cycle: Annotated[Rate | None, attribute.SHARED_BANDWIDTH] = None
    """Words read and written per cycle together; None: no such limit.

    It applies in addition to the two bandwidths above.
    """
    ports: Annotated[tuple[Port, ...], attribute.PORTS] = Field(default=(), max_length=100)
    """Ports, if the memory has more than one for reads and one for writes.

    Cost models without the port capability use the bandwidths above.
    """
    block_words: Annotated[Count, attribute.Attribute("block", "an access moves {value} words", "words", loss=0)] = 1
    """Words moved by one access. Energies are per access."""
    instances_per_macro: Annotated[Count, attribute.Attribute("macro", "{value} instances in one array", loss=0)] = 1
    """Number of instances that form one array and are accessed together (Timeloop's cluster-size)."""
    multiple_buffering: Annotated[
        float,
        Field(ge=1, le=2**20, allow_inf_nan=False),
        attribute.Attribute("buffering", "{value:g} copies of a tile", loss=1),
    ] = 1.0
    """Number of copies kept of every tile; the usable capacity is divided by it."""
    footprint: Annotated[Literal["box", "distinct"], attribute.FOOTPRINT] = "box"
    """Words that a tile occupies: its bounding box (Timeloop), or its distinct words only (ZigZag).

    They differ where strides or dilations leave holes. See `Problem.tile_words` and `Problem.distinct_words`.
    """
    timing: Annotated[Timing, attribute.TIMING] = Timing()
    """Delays of the tiles that arrive and leave."""
    leakage_pj_per_cycle: Annotated[Energy, attribute.Attribute("leakage", "it leaks", "pJ/cycle")] = 0.0
    """Leakage energy of an instance in use, in every cycle of the run."""
    power_gated_at: Annotated[Name | None, attribute.Attribute("power_gating", "{value} switches it")] = None
    """Name of the memory whose instances switch this one on and off.

    While such an instance is in use, all instances below it leak. None: each instance has its own switch.
    """
    sparse: Annotated[SparseMemory | None, attribute.SPARSE] = None
    """Formats of sparse tensors, and accesses that zeros save; None: the memory knows no zeros."""
    area_um2: Area | None = None
    """Area of one instance; None: unknown."""
    component: Component | None = None
    """Component that the memory is built from; missing energies are estimated from it."""
    estimates: tuple[Estimated, ...] = ()
    """Sources of estimated values. Values without an estimate come from a file."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe files, with texts that have units."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        whole = handler.resolve_ref_schema(schema)
        units.describe(whole, units.MEMORY)
        required_without(whole, ("read_energy_pj", "write_energy_pj"))
        return schema

    @property
    def usable_words(self) -> int | None:
        """Capacity for one copy of the tiles, in words; None: unlimited."""
        return None if self.capacity_words is None else math.floor(self.capacity_words / self.multiple_buffering)

    @property
    def usable_slices(self) -> float:
        """Capacity for one copy of the tiles, in slices; inf: unlimited."""
        return math.inf if self.usable_words is None else float(self.usable_words * self.slices_per_word)

    @property
    def usable_bits(self) -> float:
        """Capacity for one copy of the tiles, in bits; inf: unlimited."""
        return math.inf if self.usable_words is None else float(self.usable_words * self.word_bits)

    @property
    def slices_per_word(self) -> int:
        """Number of slices in a word.

        A slice is the largest number of bits that divides the widths of words and of all values.
        """
        return self.word_bits // math.gcd(self.word_bits, *self.bits_per_value.values())

    def in_slices(self) -> Memory:
        """Return the same memory with words of one slice; capacity, energies and bandwidths are equal.

        `multiple_buffering` rounds the usable capacity down to a slice instead of a word.
        """
        parts = self.slices_per_word

        def widened(words: float | None) -> float | None:
            return None if words is None else words * parts

        names = [name for name, item in attribute.attributes_of(Memory).items() if item.unit.startswith("words")]
        ports = [port.model_copy(update={"words_per_cycle": widened(port.words_per_cycle)}) for port in self.ports]
        return self.model_copy(
            update={
                **{name: widened(getattr(self, name)) for name in names},
                "word_bits": self.word_bits // parts,
                "bits_per_value": FrozenDict({**dict.fromkeys(get_args(Role), self.word_bits), **self.bits_per_value}),
                "ports": tuple(ports),
            }
        )

    def bits_of(self, tensor: Tensor) -> int:
        """Return the bits of one value of a tensor."""
        return self.bits_per_value.get(tensor.name, self.bits_per_value.get(tensor.role, self.word_bits))

    def slices_of(self, tensor: Tensor) -> int:
        """Return the slices of one value of a tensor."""
        return self.bits_of(tensor) * self.slices_per_word // self.word_bits

    def words_of(self, tensor: Tensor) -> float:
        """Return the words of one value of a tensor; may be a fraction."""
        return self.slices_of(tensor) / self.slices_per_word

    def tile_words(self, problem: Problem, tensor: Tensor, extents: MappingOf[str, int]) -> int:
        """Return the values of a tile that the memory stores; see `footprint`."""
        words = problem.distinct_words if self.footprint == "distinct" else problem.tile_words
        return words(tensor, extents)

    @model_validator(mode="after")
    def _one_port_each(self) -> Self:
        moves = [
            f"{action} of {tensor}"
            for port in self.ports
            for tensor, actions in port.moves.items()
            for action in actions
        ]
        repeated = sorted({move for move in moves if moves.count(move) > 1})
        if repeated:
            raise ValueError(f"{self.name}: several ports have {', '.join(repeated)}")
        return self

    @property
    def bandwidths(self) -> tuple[tuple[Literal["read", "write"], float | None], ...]:
        """Read and write bandwidth in words per cycle; None: unlimited."""
        return ("read", self.read_bandwidth_words_per_cycle), ("write", self.write_bandwidth_words_per_cycle)

    def demands(self, read: N, written: N) -> tuple[tuple[BandwidthAction, N, float | None], ...]:
        """Return (action, amount moved, words per cycle or None) for each bandwidth that may limit the memory.

        Args:
            read, written: amounts that are read and written, as one number or by instance.
        """
        return (
            ("read", read, self.read_bandwidth_words_per_cycle),
            ("write", written, self.write_bandwidth_words_per_cycle),
            ("access", read + written, self.shared_bandwidth_words_per_cycle),
        )

    @property
    def accumulation_energy_pj(self) -> float:
        """Energy of one accumulating write: `update_energy_pj` if given, otherwise that of a write."""
        return self.write_energy_pj if self.update_energy_pj is None else self.update_energy_pj

    def summary(self) -> list[str]:
        """Return capacity, energies, bandwidths and contents as short lines of text."""
        size = "unlimited" if self.capacity_words is None else f"{self.capacity_words:,}"
        reads, writes = ("unlimited" if rate is None else figure(rate) for _, rate in self.bandwidths)
        return [
            f"{size} words of {self.word_bits} bits",
            f"read {figure(self.read_energy_pj)}, write {figure(self.write_energy_pj)} pJ/access",
            *([f"read {reads}, write {writes} words/cycle"] if {reads, writes} != {"unlimited"} else []),
            *(
                [f"read and write {figure(self.shared_bandwidth_words_per_cycle)} words/cycle"]
                if self.shared_bandwidth_words_per_cycle
                else []
            ),
            *([f"holds {', '.join(self.holds)}"] if self.holds else []),
        ]

    def may_hold(self, tensor: Tensor) -> bool:
        return self.holds is None or tensor.role in self.holds or tensor.name in self.holds


class Cluster(Model):
    """One level of the chain: memories (none if virtual) over a fanout of sub-clusters."""

    name: Name
    """Name, unique in the architecture."""
    memories: tuple[Memory, ...] = Field(default=(), max_length=100)
    """Memories of the cluster; none: it is virtual."""
    fanout: Fanout = Fanout()
    """Sub-clusters inside."""

    @property
    def is_virtual(self) -> bool:
        return not self.memories

    def memory_for(self, tensor: Tensor) -> Memory | None:
        """Return the memory that may hold the tensor, or None.

        Raises:
            ValueError: two siblings may hold it, so its memory is ambiguous.
        """
        able = [memory for memory in self.memories if memory.may_hold(tensor)]
        if len(able) > 1:
            raise ValueError(
                f"in cluster {self.name} both {able[0].name} and {able[1].name} may hold {tensor.name} "
                f"({tensor.role}); make their 'holds' disjoint"
            )
        return able[0] if able else None


class Compute(Model):
    """Compute units inside the innermost cluster; their number is the product of the fanouts."""

    name: Name = "MAC"
    """Name of the units."""
    energy_per_operation_pj: Energy
    """Energy in pJ of one operation."""
    operands: Annotated[Count, attribute.Attribute("operands", "an operation multiplies {value} operands")] = 2
    """Operands that one operation multiplies, before it adds the product to a result; its energy is of all of it.

    Reports on problems with more operands have a warning.
    """
    cycles_per_operation: Annotated[
        Count, attribute.Attribute("cycles_per_operation", "an operation takes {value} cycles", loss=None)
    ] = 1
    """Cycles that a unit takes for one operation."""
    fill_drain_cycles: Annotated[int, Field(ge=0, le=2**40, strict=True), attribute.TIMING] = 0
    """Cycles to fill and drain the array (systolic skew), once for every set of tiles nearest to it."""
    start_cycles: Annotated[int, Field(ge=0, le=2**40, strict=True), attribute.TIMING] = 0
    """Cycles of a run in addition to those of its mapping, such as to start a kernel."""
    instruction: Annotated[Instruction | None, attribute.INSTRUCTIONS] = None
    """Instructions that take a minimum time; None: each iteration starts when the one before ends."""
    word_bits: Count = 16
    """Bits of an operand, for estimators."""
    sparse: Annotated[SparseCompute | None, attribute.SPARSE] = None
    """Operations that zeros save; None: all are executed."""
    area_um2: Area | None = None
    """Area of one unit; None: unknown."""
    component: Component | None = None
    """Component that a unit is built from; a missing energy is estimated from it."""
    estimates: tuple[Estimated, ...] = ()
    """Sources of estimated values."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe files, with components in place of energies."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        required_without(handler.resolve_ref_schema(schema), ("energy_per_operation_pj",))
        return schema


class Architecture(FileModel):
    """Hardware without a dataflow: everything it can do; constraints files select a part.

    Example:
        >>> import tilewright as tw
        >>> tw.load("eyeriss").replace({"GlobalBuffer.capacity_words": 4096}).memories[1].capacity_words
        4096
    """

    schema_version: Literal[1] = 1
    kind: Literal["architecture"] = "architecture"
    name: Name
    """Name of the machine."""
    source: str | None = None
    """Origin of the numbers."""
    dataflow: Annotated[str, worded(r"^[^.\s]+\.[^\s]+$", "ARCHITECTURE.NAME")] | None = None
    """Constraints of the library that apply by default, such as `eyeriss.row_stationary`.

    None: those of the library's architecture with this name, if it has some.
    """
    clock_ghz: Rate | None = None
    """Clock frequency in GHz; None: unknown, and reports have cycles only."""
    technology_nm: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """Technology node in nanometres, for components without one of their own."""
    clusters: tuple[Cluster, ...] = Field(min_length=1, max_length=100)
    """Levels of the machine, outermost first."""
    compute: Compute
    """Units inside the innermost cluster."""
    units: Annotated[tuple[Unit, ...], attribute.UNITS] = Field(default=(), max_length=100)
    """Vector units, which execute layers without a product (docs/vector.md); none: such layers are not counted."""

    @model_serializer(mode="wrap")
    def _without_new_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave empty new fields out, so that older digests of architectures stay valid."""
        return {name: value for name, value in handler(self).items() if value or name != "units"}

    @model_validator(mode="before")
    @classmethod
    def _in_words(cls, data: Any) -> Any:
        return units.in_words(data)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe files, with texts that have units."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        units.describe(handler.resolve_ref_schema(schema), units.MACHINE)
        return schema

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        clusters, memories = set[str](), set[str]()
        for number, cluster in enumerate(self.clusters):
            if cluster.name in clusters:
                raise MisplacedError(f"cluster names repeat: {cluster.name}", "clusters", number, "name")
            clusters.add(cluster.name)
            for index, memory in enumerate(cluster.memories):
                if memory.name in memories:
                    path = ("clusters", number, "memories", index, "name")
                    raise MisplacedError(f"memory names repeat: {memory.name}", *path)
                memories.add(memory.name)
        if self.sparse_parts and any(memory.footprint == "distinct" for memory in self.memories):
            raise ValueError("footprint: distinct is not supported together with formats or savings for sparse tensors")
        if self.compute.instruction is not None and self.compute.instruction.memory not in memories:
            text = f"instructions divide the tiles of {self.compute.instruction.memory}, which is not a memory"
            raise MisplacedError(text, "compute", "instruction", "memory")
        for number, cluster in enumerate(self.clusters):
            for index, memory in enumerate(cluster.memories):
                if memory.power_gated_at not in (None, *memories):
                    path = ("clusters", number, "memories", index, "power_gated_at")
                    text = f"{memory.name} is power-gated at {memory.power_gated_at}, which is not a memory"
                    raise MisplacedError(text, *path)
        check_units(self.units, [memory.name for memory in self.memories], self.compute.name)
        if self.compute_instances > MAX_UNITS:
            raise ValueError(
                f"the fanouts make {self.compute_instances:,} compute units; expected at most {MAX_UNITS:,}"
            )
        for number, cluster in enumerate(self.clusters):
            extent = self.mesh_extent(number)
            for index, mesh in enumerate(cluster.fanout.network.meshes):
                if mesh.port[0] >= extent[0] or mesh.port[1] >= extent[1]:
                    text = f"the port {mesh.port} is outside the {extent[0]} x {extent[1]} routers below {cluster.name}"
                    raise MisplacedError(text, "clusters", number, "fanout", "network", "meshes", index, "port")
        if self.clusters[0].is_virtual:
            raise ValueError(
                f"the outermost cluster {self.clusters[0].name} has no memory; tensors must live somewhere"
            )
        return self

    def _repr_html_(self) -> str:
        return machine_table(self)

    @property
    def family(self) -> str:
        """Name of the library's architecture whose constraints apply to this one."""
        return self.name if self.dataflow is None else self.dataflow.partition(".")[0]

    def has_hardware_of(self, other: Architecture) -> bool:
        """Return whether all but name, source and dataflow are equal."""
        told = {"name": other.name, "source": other.source, "dataflow": other.dataflow}
        return self.model_copy(update=told) == other

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """All memories, outermost first."""
        return tuple(memory for cluster in self.clusters for memory in cluster.memories)

    @cached_property
    def instances(self) -> tuple[int, ...]:
        """Number of instances of each cluster, then of compute units."""
        counts = [1]
        for cluster in self.clusters:
            counts.append(counts[-1] * cluster.fanout.size)
        return tuple(counts)

    @cached_property
    def parts(self) -> tuple[Memory | Compute, ...]:
        """All memories, outermost first, then the compute unit."""
        return (*self.memories, self.compute)

    @cached_property
    def area_um2(self) -> float | None:
        """Total area of memories and compute units in square micrometres.

        None if the area of a part is unknown. Memories that may hold no tensor do not count.
        """
        parts = [
            (0.0 if memory.holds == () else memory.area_um2, count)
            for cluster, count in zip(self.clusters, self.instances, strict=False)
            for memory in cluster.memories
        ]
        parts.append((self.compute.area_um2, self.compute_instances))
        if any(area is None for area, _ in parts):
            return None
        return math.fsum(area * count for area, count in parts if area is not None)

    @cached_property
    def sparse_parts(self) -> tuple[str, ...]:
        """Names of the memories and of the compute unit whose counts depend on zeros; empty: dense hardware."""
        return tuple(part.name for part in self.parts if part.sparse is not None and part.sparse.is_active)

    def stated(self, problem: Problem | None = None) -> Iterator[attribute.Stated]:
        """Yield the attributes that memories, compute unit and networks state, and that concern a problem (None: any)."""
        for part in self.parts:
            yield from attribute.stated(part.name, part, problem)
        for cluster in self.clusters:
            yield from attribute.stated(f"cluster {cluster.name}", cluster.fanout.network, problem)

    @property
    def compute_instances(self) -> int:
        return self.instances[-1]

    @cached_property
    def cluster_index(self) -> dict[str, int]:
        """Cluster name -> position, 0 for the outermost."""
        return {cluster.name: index for index, cluster in enumerate(self.clusters)}

    def cluster(self, name: str) -> Cluster:
        """Return the cluster of that name.

        Raises:
            KeyError: there is none.
        """
        return self.clusters[self.cluster_index[name]]

    def cluster_of(self, memory: str) -> Cluster:
        """Return the cluster that contains the memory of that name.

        Raises:
            KeyError: there is none.
        """
        for cluster in self.clusters:
            if any(candidate.name == memory for candidate in cluster.memories):
                return cluster
        raise KeyError(memory)

    def with_memories(self, change: Callable[[Memory], Memory]) -> Architecture:
        """Return a copy with every memory replaced by what `change` returns for it."""
        clusters = tuple(
            cluster.model_copy(update={"memories": tuple(map(change, cluster.memories))}) for cluster in self.clusters
        )
        return self.model_copy(update={"clusters": clusters})

    def with_value_bits(self, problem: Problem) -> Architecture:
        """Return a copy in which the values of each tensor are as wide as the problem states (`Tensor.bits`)."""
        bits = {tensor.name: tensor.bits for tensor in problem.tensors if tensor.bits is not None}
        if not bits:
            return self
        return self.with_memories(
            lambda memory: memory.model_copy(update={"bits_per_value": FrozenDict({**memory.bits_per_value, **bits})})
        )

    def switch_of(self, memory: str) -> tuple[str, float]:
        """Return the memory that switches this one on and off, and the instances per switch.

        If every instance has a switch of its own, this is the memory itself and 1.

        Raises:
            KeyError: there is no such memory.
        """
        exist = {
            storage.name: self.instances[index]
            for index, cluster in enumerate(self.clusters)
            for storage in cluster.memories
        }
        gates = {storage.name: storage.power_gated_at or storage.name for storage in self.memories}
        shared = exist[memory] / exist[gates[memory]]
        return (gates[memory], shared) if shared > 1 else (memory, 1.0)

    def replace(self, changes: MappingOf[str, Any]) -> Self:
        """Return a copy with changed values.

        Example: `{"GLB.capacity_words": 65536, "PE.fanout.size": 4, "compute.word_bits": 8}`. A
        path starts with the name of a memory or a cluster, or with a field of the architecture.

        Raises:
            InputError: a path does not exist, a value is invalid, or an estimated part changes
                size. Its energies would remain those of the old size.
        """
        changed = replaced(self, changes, self._paths(), "architecture")
        parts: list[tuple[str, Memory | Compute, Memory | Compute]] = [
            (old.name, old, new) for old, new in zip(self.memories, changed.memories, strict=True)
        ]
        for name, old, new in (*parts, ("compute", self.compute, changed.compute)):
            stale = outdated(old, new, changed.technology_nm != self.technology_nm)
            if stale:
                raise InputError(
                    f"{', '.join(stale)} of {name} were estimated for the part before the change",
                    hint="change the file and load it again, or give these values as well",
                )
        return changed

    def values(self) -> dict[str, Any]:
        """Return the values that `replace` may change, by path. Values of parts with equal names are left out."""
        data, values = self.model_dump(mode="json"), dict[str, Any]()
        counts = Counter(path for path, _ in self._paths())
        for path, place in self._paths():
            value: Any = data
            for step in place:
                value = value[step]
            if counts[path] == 1:
                values[path] = value
        return values

    def _paths(self) -> Iterator[tuple[str, ValuePath]]:
        data = self.model_dump(mode="json", exclude={"schema_version", "kind"})
        clusters = data.pop("clusters")
        for index, cluster in enumerate(clusters):
            memories = cluster.pop("memories")
            yield from paths_below(cluster, ("clusters", index), f"{cluster['name']}.")
            yield from paths_below(memories, ("clusters", index, "memories"))
        yield from paths_below(data)

    def mesh_clusters(self, index: int) -> tuple[Cluster, ...]:
        """Return the clusters whose fanouts a mesh of cluster `index` spans: its own, and virtual ones inside."""
        end = index + 1
        while end < len(self.clusters) and self.clusters[end].is_virtual:
            end += 1
        return self.clusters[index:end]

    def mesh_extent(self, index: int) -> tuple[int, int]:
        """Return the routers along X and Y of a mesh of cluster `index`; other axes count as X."""
        fanouts = [cluster.fanout for cluster in self.mesh_clusters(index)]
        along_y = math.prod(fanout.size for fanout in fanouts if fanout.axis == "Y")
        return math.prod(fanout.size for fanout in fanouts if fanout.axis != "Y"), along_y

    def mesh(self, index: int) -> dict[str, int]:
        """Return axis -> number of instances of cluster `index` along it.

        Index len(clusters) means the compute units.
        """
        extent: dict[str, int] = {}
        for cluster in self.clusters[:index]:
            extent[cluster.fanout.axis] = extent.get(cluster.fanout.axis, 1) * cluster.fanout.size
        return extent
