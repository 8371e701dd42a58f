"""Conversion of ZigZag's accelerator to an architecture.

ZigZag lists, for each memory, the array dimensions along which its instances are shared.
Tilewright's clusters nest. Memories shared along the same dimensions become one cluster, or nested
clusters if they hold the same operand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.schema.architecture import Architecture, Cluster, Compute, Fanout, Memory
from tilewright.schema.architecture import Port as MemoryPort
from tilewright.schema.frozen import FrozenDict
from tilewright.values import grouped
from tilewright_adapters.zigzag.allocation import Store
from tilewright_adapters.zigzag.files import AcceleratorFile, MemoryData, OldPort, Port
from tilewright_notations.operand_loops import MEMORY_OPERANDS, READS_AND_WRITES, WAYS

ROLES = {"I1": "input", "I2": "weight", "O": "output"}
"""Memory operand -> role of the tensors that are put there."""
DEFAULT_BITS = 8
READS = ("reads", "drains")
"""Kinds of traffic that read a memory."""


@dataclass(frozen=True)
class Width:
    """One direction of a memory: bits per cycle (`most`), smallest access, total bits, energy.

    `cost` is the energy of an access of full width, in pJ. `total` adds up the bits of all ports.
    """

    most: int
    finest: int
    total: int
    cost: float


@dataclass(frozen=True)
class Precision:
    """Bits of the values of a layer.

    Attributes:
        bits: memory operand -> bits; for results, those of partial sums.
        finished: bits of finished results.
        summing: memories that receive partial sums; None: unknown, all except the outermost.
    """

    bits: Mapping[str, int]
    finished: int
    summing: frozenset[str] | None = None

    def of(self, memory: str, operand: str, outermost: bool) -> int:
        """Return the bits of an operand in a memory; 0 if there is no such operand."""
        partial = not outermost if self.summing is None else memory in self.summing
        return self.bits.get(operand, 0) if operand != "O" or partial else self.finished


@dataclass
class Accelerator:
    """A converted accelerator.

    Attributes:
        file: the parsed file.
        precision: bits of the layer's values; None without a layer.
        architecture: the architecture.
        array: dimension of the array -> size.
        stores: memories, innermost first, for the allocation rule; with operands of memories, not
            of layers.
        unrolled_at: dimension of the array -> cluster with that fanout.
        cluster_of: memory -> cluster.
        warnings: content that an architecture cannot express.
    """

    file: AcceleratorFile
    precision: Precision | None
    architecture: Architecture
    array: Mapping[str, int]
    stores: tuple[Store, ...]
    unrolled_at: Mapping[str, str]
    cluster_of: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)

    def partial_sum_warnings(self) -> Iterator[str]:
        """Yield a warning if it is unknown which memories receive partial sums, and widths differ."""
        if self.precision is not None and self.precision.bits.get("O", 0) != self.precision.finished:
            sums, finished = self.precision.bits["O"], self.precision.finished
            yield (
                f"partial sums have {sums} bits and results {finished}: without a complete mapping, every memory except the "
                "outermost is assumed to receive partial sums"
            )

    def holding(self, summing: frozenset[str]) -> Architecture:
        """Return the architecture with value widths for partial sums in these memories."""
        if self.precision is None:
            return self.architecture
        return read_accelerator(self.file, replace(self.precision, summing=summing)).architecture


def read_accelerator(
    file: AcceleratorFile, precision: Precision | None, word_bits: Mapping[str, int] | None = None
) -> Accelerator:
    """Convert an accelerator.

    Args:
        file: the parsed file.
        precision: bits of the layer's values; None without a layer.
        word_bits: memory -> bits of its words; None: chosen for this precision.
    """
    warnings: list[str] = []
    if precision is None:
        warnings.append(f"no workload is given: words are assumed to have {DEFAULT_BITS} bits")
    array = file.operational_array.extent
    served = _nested(file, warnings)
    order = sorted(reversed(served), key=lambda name: -len(served[name]))  # the sort is stable: outermost first
    clusters, unrolled_at, cluster_of = _clusters(file, order, served, array)
    widths = {name: _widths(file, name, precision) for name in file.memories}
    finished = precision.finished if precision is not None else 0
    memories = {
        name: _memory(name, data, widths[name], finished, _copies(name, file, served), warnings, word_bits)
        for name, data in file.memories.items()
    }
    _warn(file, warnings)
    architecture = Architecture(
        name=_name(file.name),
        clusters=tuple(
            Cluster(name=name, memories=tuple(memories[memory] for memory in held), fanout=fanout)
            for name, held, fanout in clusters
        ),
        compute=Compute(
            energy_per_operation_pj=file.operational_array.unit_energy
            or file.operational_array.multiplier_energy
            or 0.0,
            word_bits=min(bits for width in widths.values() for bits in width.values()),
        ),
    )
    stores = tuple(
        Store(
            name,
            data.size,
            data.operands,
            frozenset(served[name]),
            data.force_double_buffering or data.double_buffering_support,
            _inwards(data),
        )
        for name, data in file.memories.items()
    )
    return Accelerator(file, precision, architecture, array, stores, unrolled_at, cluster_of, warnings)


def mixed(file: AcceleratorFile, layers: Sequence[tuple[Precision, Mapping[str, str]]]) -> Architecture:
    """Return one architecture for layers of different precisions.

    Its words are narrow enough for all of them, and it has the widths of values by tensor.

    Args:
        file: the parsed file.
        layers: precision of a layer, and memory operand -> its tensor, whose name tells the bits.
    """
    alone = [read_accelerator(file, precision).architecture for precision, _ in layers]
    words = {
        same[0].name: math.gcd(*(item.word_bits for item in same))
        for same in zip(*(machine.memories for machine in alone), strict=True)
    }
    shared = [read_accelerator(file, precision, words).architecture for precision, _ in layers]
    widths: dict[str, dict[str, int]] = {name: {} for name in words}
    for architecture, (_, tensors) in zip(shared, layers, strict=True):
        for memory in architecture.memories:
            for operand, role in ROLES.items():
                if role in memory.bits_per_value:
                    widths[memory.name][tensors[operand]] = memory.bits_per_value[role]
    compute = min((machine.compute for machine in shared), key=lambda unit: unit.word_bits)
    return (
        shared[0]
        .with_memories(lambda memory: memory.model_copy(update={"bits_per_value": FrozenDict(widths[memory.name])}))
        .model_copy(update={"compute": compute})
    )


def _nested(file: AcceleratorFile, warnings: list[str]) -> dict[str, set[str]]:
    """Return memory -> dimensions along which it is shared, changed so that clusters nest.

    Of any two sets one contains the other, and outer memories share more. A warning is added for
    every memory that changes.
    """
    every = set(file.operational_array.dimensions)
    names = list(file.memories)
    served = {name: set(file.memories[name].served_dimensions) for name in names}
    served[names[-1]] = set(every)
    holds = {name: set(file.memories[name].operands) for name in names}
    for index, outer in enumerate(names):  # outer memories serve everything inside
        for inner in names[:index]:
            if holds[inner] & holds[outer]:
                served[outer] |= served[inner]
    changed = True
    while changed:
        changed = False
        for index, outer in enumerate(names):
            for inner in names[:index]:
                a, b, same = served[inner], served[outer], holds[inner] & holds[outer]
                if a <= b or (b <= a and not same):
                    continue
                # partial sums stay where they are reduced; the other memory is duplicated
                victim = outer if not same and "O" in holds[inner] and "O" not in holds[outer] else inner
                served[victim], changed = a & b, True
    for name in names:
        said = set(file.memories[name].served_dimensions)
        if served[name] != said:
            copies = _copies(name, file, served)
            told = f"{name} is shared along {_list(said)}, which does not nest with the other memories: "
            if said - served[name]:
                told += f"read as shared along {_list(served[name])}, with {copies} instances for each of ZigZag's, which divide its energy"
            else:
                told += f"read as shared along {_list(served[name])}"
            warnings.append(told)
    return served


def _copies(name: str, file: AcceleratorFile, served: Mapping[str, set[str]]) -> int:
    """Return the number of Tilewright's instances per instance of ZigZag.

    Their accesses repeat those of one instance, so its energy is divided among them.
    """
    split = set(file.memories[name].served_dimensions) - served[name]
    return math.prod(file.operational_array.extent[axis] for axis in split)


def _clusters(
    file: AcceleratorFile, order: list[str], served: Mapping[str, set[str]], array: Mapping[str, int]
) -> tuple[list[tuple[str, list[str], Fanout]], dict[str, str], dict[str, str]]:
    groups: list[list[str]] = []
    for name in order:
        last = groups[-1] if groups else []
        taken = {operand for memory in last for operand in file.memories[memory].operands}
        if not last or served[last[0]] != served[name] or taken & set(file.memories[name].operands):
            groups.append([])
        groups[-1].append(name)
    clusters: list[tuple[str, list[str], Fanout]] = []
    unrolled_at: dict[str, str] = {}
    cluster_of: dict[str, str] = {}
    for index, group in enumerate(groups):
        inside = served[groups[index + 1][0]] if index + 1 < len(groups) else set()
        fanned = [name for name in array if name in served[group[0]] - inside]
        name = ".".join(_name(memory) for memory in group)
        for number, dimension in enumerate(fanned or [""]):
            axis = "XY"[len(unrolled_at) % 2]  # ZigZag's dimensions have no direction
            fanout = Fanout(size=array[dimension], axis=axis) if dimension else Fanout()
            label = name if not number else f"array_{dimension}"
            clusters.append((label, group if not number else [], fanout))
            if dimension:
                unrolled_at[dimension] = label
        cluster_of |= dict.fromkeys(group, name)
    return clusters, unrolled_at, cluster_of


def _widths(file: AcceleratorFile, name: str, precision: Precision | None) -> dict[str, int]:
    """Return memory operand -> bits of its values."""
    operands = file.memories[name].operands
    outermost = [memory for memory, data in file.memories.items() if "O" in data.operands][-1:] == [name]
    widths = {operand: precision.of(name, operand, outermost) for operand in operands} if precision is not None else {}
    return {
        operand: widths.get(operand) or min(filter(None, widths.values()), default=DEFAULT_BITS) for operand in operands
    }


def _memory(
    name: str,
    data: MemoryData,
    widths: Mapping[str, int],
    finished: int,
    copies: int,
    warnings: list[str],
    words: Mapping[str, int] | None,
) -> Memory:
    """Return a memory.

    Unless `words` has its width, a word is as wide as the narrowest values, or as the part of these
    that one access moves. `finished`: bits of finished results.
    """
    reading, writing = _ends(name, data, warnings)
    word_bits = min(widths.values())
    narrower = "O" in widths and finished % word_bits
    if reading.finest % word_bits and (word_bits % reading.finest or narrower):
        word_bits = math.gcd(word_bits, reading.finest)
    if words is not None:
        word_bits = words[_name(name)]
    block = max(1, reading.finest // word_bits)
    double = data.force_double_buffering or data.double_buffering_support
    named_dram = "dram" in name.lower() or data.mem_type == "dram"
    return Memory(
        name=_name(name),
        technology="dram" if named_dram else "register" if data.mem_type == "rf" else "sram",
        capacity_words=max(1, data.size // word_bits),
        word_bits=word_bits,
        bits_per_value=FrozenDict({ROLES[operand]: bits for operand, bits in widths.items() if bits != word_bits}),
        holds=None
        if set(data.operands) == set(MEMORY_OPERANDS.values())
        else tuple(ROLES[operand] for operand in data.operands),
        read_energy_pj=_energy(reading, block * word_bits) / copies,
        write_energy_pj=_energy(writing, block * word_bits) / copies,
        read_bandwidth_words_per_cycle=reading.total / word_bits,
        write_bandwidth_words_per_cycle=writing.total / word_bits,
        ports=_ports(data, word_bits, reading, writing),
        block_words=block,
        multiple_buffering=2.0 if double else 1.0,
        footprint="distinct",
    )


def _ports(data: MemoryData, word_bits: int, reading: Width, writing: Width) -> tuple[MemoryPort, ...]:
    """Return the ports, if there is more than one for reads and one for writes.

    A direction listed at several ports counts at the last. An access of full width costs the same at
    every port, so a part of it costs less at a wider one. `reading` and `writing` have the widths of
    the memory's own energies.
    """
    at: dict[tuple[str, str], str] = {}
    bits: dict[str, int] = {}
    for operand, port in zip(data.operands, data.ports, strict=False):
        if isinstance(port, OldPort):
            said = {way: name for way, name in port if name is not None}
            at |= {(operand, way): name for way, name in said.items()}
            widths = {name: data.r_bw if way in READS_AND_WRITES[0] else data.w_bw for way, name in said.items()}
            bits |= {name: max(bits.get(name, 0), width or 0) for name, width in widths.items()}
    for port in data.ports:
        if isinstance(port, Port):
            bits[port.name] = port.bandwidth_max
            at |= {tuple(text.replace(" ", "").split(",")): port.name for text in port.allocation}  # type: ignore[misc]
    ways = [{way in READS_AND_WRITES[0] for (_, way), label in at.items() if label == name} for name in bits]
    if sorted(map(list, ways)) in ([[True]], [[False]], [[False], [True]]):
        return ()
    ours = {way: action for action, way in WAYS.items()}
    named = all(isinstance(port, Port) for port in data.ports)  # older files have one energy for all ports
    rows = []
    for name, width in bits.items():
        moves = grouped((ROLES[which], ours[way]) for (which, way), label in at.items() if label == name)
        if moves:
            row: dict[str, Any] = {"moves": moves, "words_per_cycle": width / word_bits}
            for way, direction in (("read", reading), ("write", writing)) if named else ():
                if any((action in READS) == (way == "read") for actions in moves.values() for action in actions):
                    row[f"{way}_energy_factor"] = direction.most / width
            rows.append(row)
    return tuple(MemoryPort.model_validate(fields) for fields in rows)


def _inwards(data: MemoryData) -> dict[str, int]:
    """Return operand -> bits per cycle towards the array; for the result, from the array.

    Of several ports, the last one listed counts.
    """
    widths: dict[str, int] = {}
    for operand in data.operands:
        way = "fl" if operand == "O" else "tl"
        for port in data.ports:
            if isinstance(port, Port) and any(text.replace(" ", "") == f"{operand},{way}" for text in port.allocation):
                widths[operand] = port.bandwidth_max
        old = data.w_bw if operand == "O" else data.r_bw
        if old is not None:
            widths.setdefault(operand, old)
    return widths


def _energy(width: Width, bits: int) -> float:
    """Return the energy of one access of `bits` bits.

    It consists of whole smallest accesses; each costs its fraction of a full-width access.
    """
    return width.cost * (width.finest / width.most) * math.ceil(bits / width.finest)


def _ends(name: str, data: MemoryData, warnings: list[str]) -> tuple[Width, Width]:
    """Return the reading and the writing direction; of different ports, the most expensive."""
    assert data.r_cost is not None and data.w_cost is not None
    if not data.ports or not isinstance(data.ports[0], Port):
        assert data.r_bw is not None and data.w_bw is not None
        ways = ((data.r_bw, data.min_r_granularity, data.r_cost), (data.w_bw, data.min_w_granularity, data.w_cost))
        reading, writing = (Width(most, min(finest or most, most), most, cost) for most, finest, cost in ways)
        return reading, writing
    ports: Sequence[Port] = data.ports
    widths = []
    for ends, kind, cost in ((("tl", "th"), "write", data.r_cost), (("fl", "fh"), "read", data.w_cost)):
        named = [port for port in ports if any(text.endswith(ends) for text in port.allocation)]
        used = named or [port for port in ports if port.type != kind] or ports
        dearest = max(used, key=lambda port: (port.bandwidth_min / port.bandwidth_max, port.bandwidth_min))
        total = sum(port.bandwidth_max for port in used)
        widths.append(Width(dearest.bandwidth_max, dearest.bandwidth_min, total, cost))
    return widths[0], widths[1]


def _warn(file: AcceleratorFile, warnings: list[str]) -> None:
    """Add warnings about content that an architecture cannot express."""
    slow = [f"{data.latency} cycles of {name}" for name, data in file.memories.items() if data.latency > 1]
    if slow:
        warnings.append(f"latencies are ignored: {', '.join(slow)}")
    computed = [name for name, data in file.memories.items() if data.auto_cost_extraction]
    if computed:
        warnings.append(f"ZigZag would run CACTI for the costs of {_list(computed)}: the costs in the file are used")
    if file.operational_array.systolic_dimensions:
        names = _list(file.operational_array.systolic_dimensions)
        warnings.append(f"the array is systolic along {names}: ignored, operands reach all units at once")


def _list(names: object) -> str:
    listed = sorted(names) if isinstance(names, set | frozenset) else list(names)  # type: ignore[call-overload]
    return ", ".join(listed) or "nothing"


def _name(text: str) -> str:
    """Return the text as a valid name."""
    name = re.sub(r"[^A-Za-z0-9_.\-]", "_", text)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"
