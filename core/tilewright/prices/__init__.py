"""Prices of accesses: counts of one memory become energy, cycles of its ports, leakage and limits.

Every report, batch, search and bound takes these figures from here. Counts are numbers, NumPy arrays of any shape, or SIMD
lanes of a kernel. They are in slices (`Memory.slices_per_word`): values times `Memory.slices_of`. For example, 10 reads, 3 fills and no
updates of one slice each:

    block 4, read 2 pJ, write 5 pJ: ceil(10 / 4) * 2 + ceil(3 / 4) * 5 = 11 pJ for an instance (`access_pj`)
    at most 3 slices read a cycle:  ceil(10 / 3) = 4 cycles (`port_cycles`), or all the time that the units compute
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from typing import Any, NamedTuple

import numpy as np

from tilewright.compiled import Records, kernel_part, table
from tilewright.reports import Limit
from tilewright.schema.architecture import Architecture, Compute, Memory, Network
from tilewright.schema.problem import Tensor

Number = Any
"""A number, an array or lanes; a function returns what NumPy's operators return for its arguments."""
_NO_RATE = 1e-200


class Price(NamedTuple):
    """Prices of one memory. Kernels read rows with these fields (`price_table`).

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import price_of
        >>> price = price_of(tw.load("eyeriss", "architecture").memories[0])
        >>> price.read_pj > 0
        True
    """

    read_pj: float
    """pJ of one access; likewise `fill_pj` and `update_pj`."""
    fill_pj: float
    update_pj: float
    block: float
    """Slices of one access."""
    read_bandwidth: float
    """Slices per cycle and instance; inf: no limit. Likewise `write_bandwidth` and, for both together, `shared_bandwidth`."""
    write_bandwidth: float
    shared_bandwidth: float
    leakage_pj: float
    """pJ per cycle for each instance in use of memory `gate`, which switches this one."""
    gate: int
    """Position in the architecture."""
    instances: float
    """Instances that exist."""
    macros: float
    """Macros that exist. The instances of one are accessed together."""

    @property
    def energies(self) -> tuple[float, float, float]:
        """pJ of one read, fill and update."""
        return self.read_pj, self.fill_pj, self.update_pj

    @property
    def bandwidths(self) -> tuple[float, float, float]:
        """Slices read, written, and moved in total per cycle; inf: no limit."""
        return self.read_bandwidth, self.write_bandwidth, self.shared_bandwidth


PRICE_TYPES: dict[str, type] = dict.fromkeys(Price._fields, float) | {"gate": int}
"""Field of a price -> type of its column in a table."""


def price_of(memory: Memory) -> Price:
    """Return the prices of a memory that stands alone.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import price_of
        >>> price_of(tw.load("eyeriss", "architecture").memories[0]).instances
        1
    """
    read, write, shared = (
        math.inf if rate is None else rate * memory.slices_per_word for _, _, rate in memory.demands(0, 0)
    )
    return Price(
        read_pj=memory.read_energy_pj,
        fill_pj=memory.write_energy_pj,
        update_pj=memory.accumulation_energy_pj,
        block=memory.block_words * memory.slices_per_word,
        read_bandwidth=read,
        write_bandwidth=write,
        shared_bandwidth=shared,
        leakage_pj=memory.leakage_pj_per_cycle,
        gate=0,
        instances=1,
        macros=1,
    )


def prices_of(architecture: Architecture) -> dict[str, Price]:
    """Return the prices of all memories by name, in the architecture's order.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import prices_of
        >>> list(prices_of(tw.load("eyeriss", "architecture")))[:2]
        ['DRAM', 'GlobalBuffer']
    """
    names, prices = [memory.name for memory in architecture.memories], dict[str, Price]()
    for cluster, instances in zip(architecture.clusters, architecture.instances, strict=False):
        for memory in cluster.memories:
            gate, leaking = architecture.switch_of(memory.name)
            price = price_of(memory)
            prices[memory.name] = price._replace(
                leakage_pj=price.leakage_pj * leaking,
                gate=names.index(gate),
                instances=instances,
                macros=instances // memory.instances_per_macro,
            )
    return prices


def price_table(prices: Iterable[Price]) -> Records:
    """Return the prices as a table for kernels, [memory]."""
    return table(prices, **PRICE_TYPES)


@kernel_part
def access_pj(price: Any, reads: Number, fills: Number, updates: Number) -> Number:
    """Return the pJ of one instance, given slices. One access moves a block.

    Blocks of one slice are not rounded, as counts may be averages over instances.

    Example:
        >>> from tilewright.plugin import Memory, access_pj, price_of
        >>> memory = Memory(name="Buffer", read_energy_pj=1, write_energy_pj=2, read_bandwidth_words_per_cycle=4)
        >>> float(access_pj(price_of(memory), 10, 5, 0))
        20.0
    """
    if price.block > 1.0:
        reads, fills, updates = (
            np.ceil(reads / price.block),
            np.ceil(fills / price.block),
            np.ceil(updates / price.block),
        )
    return reads * price.read_pj + fills * price.fill_pj + updates * price.update_pj


def part_pj(price: Price, reads: Number, fills: Number, updates: Number) -> Number:
    """Return the least pJ of one instance, given slices: a part of a block costs that part of an access."""
    return (reads * price.read_pj + fills * price.fill_pj + updates * price.update_pj) / price.block


def tensor_pj(memory: Memory, tensor: Tensor, reads: float, fills: float, updates: float) -> float:
    """Return the pJ of accesses to a tensor in one instance, given values.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import Memory, tensor_pj
        >>> memory = Memory(name="Buffer", read_energy_pj=1, write_energy_pj=2, read_bandwidth_words_per_cycle=4)
        >>> tensor = tw.load("nk,km->nm; n=2 k=3 m=4", "problem").tensors[0]
        >>> float(tensor_pj(memory, tensor, 10, 5, 0))
        20.0
    """
    slices = memory.slices_of(tensor)
    return float(access_pj(price_of(memory), reads * slices, fills * slices, updates * slices))


def value_pj(memory: Memory, tensor: Tensor, reads: float, fills: float, updates: float) -> float:
    """Return the least pJ of accesses to a tensor in one instance, given values; see `part_pj`.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import Memory, value_pj
        >>> memory = Memory(name="Buffer", read_energy_pj=1, write_energy_pj=2, read_bandwidth_words_per_cycle=4)
        >>> tensor = tw.load("nk,km->nm; n=2 k=3 m=4", "problem").tensors[0]
        >>> float(value_pj(memory, tensor, 10, 5, 0))
        20.0
    """
    slices = memory.slices_of(tensor)
    return part_pj(price_of(memory), reads * slices, fills * slices, updates * slices)  # type: ignore[no-any-return]


@kernel_part
def charged(price: Any, instances: Number) -> Number:
    """Return how many of the instances in use are charged: at most one for each macro, as in Timeloop.

    Example:
        >>> from tilewright.plugin import Memory, charged, price_of
        >>> memory = Memory(name="Buffer", read_energy_pj=1, write_energy_pj=2, read_bandwidth_words_per_cycle=4)
        >>> float(charged(price_of(memory), 3))
        1.0
    """
    return np.minimum(instances, price.macros)


@kernel_part
def leaked_pj(price: Any, cycles: Number, in_use: Number) -> Number:
    """Return the pJ that leak in a memory while `in_use` instances of its gate are in use."""
    return cycles * price.leakage_pj * in_use


def operations_pj(compute: Compute, operations: Number, gated: Number = 0, skipped: Number = 0) -> Number:
    """Return the pJ of operations that are executed, gated and skipped."""
    sparse = compute.sparse
    if sparse is None:
        return operations * compute.energy_per_operation_pj
    return operations * compute.energy_per_operation_pj + gated * sparse.gated_pj + skipped * sparse.skipped_pj


def more_leaked_pj(leaked: float, cycles: float, longer: float) -> float:
    """Return the pJ that leak in addition to `leaked` if a run of `cycles` takes `longer`."""
    return leaked * (longer - cycles) / cycles


@kernel_part
def is_limited(price: Any) -> bool:
    """Return whether the memory has a bandwidth."""
    return bool(min(price.read_bandwidth, price.write_bandwidth, price.shared_bandwidth) < np.inf)


@kernel_part
def port_time(price: Any, read: Number, written: Number) -> Number:
    """Return the cycles that the slowest port of an instance needs, not rounded, given slices.

    Example:
        >>> from tilewright.plugin import Memory, port_time, price_of
        >>> memory = Memory(name="Buffer", read_energy_pj=1, write_energy_pj=2, read_bandwidth_words_per_cycle=4)
        >>> float(port_time(price_of(memory), 10, 0))
        2.5
    """
    apart = np.maximum(read / price.read_bandwidth, written / price.write_bandwidth)
    return np.maximum(apart, (read + written) / price.shared_bandwidth)


@kernel_part
def transfer_cycles(bandwidth: float, slices: Number) -> Number:
    """Return the whole cycles that a port needs. Slices are rounded to the nearest whole number."""
    return np.ceil(np.floor(slices + 0.5) / bandwidth)


def least_cycles(bandwidth: float, slices: float) -> int:
    """Return the whole cycles that a port needs at least, given a lower bound on slices, which is a float with rounding."""
    return math.ceil(slices / bandwidth * (1 - 1e-9))


@kernel_part
def port_cycles(price: Any, read: Number, written: Number) -> Number:
    """Return the whole cycles that the slowest port of an instance needs, given slices.

    Example:
        >>> from tilewright.plugin import Memory, port_cycles, price_of
        >>> memory = Memory(name="Buffer", read_energy_pj=1, write_energy_pj=2, read_bandwidth_words_per_cycle=4)
        >>> float(port_cycles(price_of(memory), 10, 0))
        3.0
    """
    apart = np.maximum(transfer_cycles(price.read_bandwidth, read), transfer_cycles(price.write_bandwidth, written))
    return np.maximum(apart, transfer_cycles(price.shared_bandwidth, read + written))


@kernel_part
def port_speed(bandwidth: float, rate: Number) -> Number:
    """Return the fraction of its speed that a port leaves to the array, if this asks for `rate` slices per cycle at full speed.

    Above one, the port could serve a faster array.
    """
    return bandwidth / np.maximum(rate, _NO_RATE)


@kernel_part
def memory_speed(price: Any, read: Number, written: Number) -> Number:
    """Return the fraction of its speed at which the array works, at most 1, given slices per cycle at full speed."""
    apart = np.minimum(port_speed(price.read_bandwidth, read), port_speed(price.write_bandwidth, written))
    return np.minimum(np.minimum(apart, port_speed(price.shared_bandwidth, read + written)), 1.0)


@kernel_part
def slowed_cycles(cycles: Number, speed: Number) -> Number:
    """Return the cycles of a run of `cycles` at a fraction of its speed, rounded up as in Timeloop."""
    return np.ceil(cycles / speed)


def leakage_pj(architecture: Architecture, cycles: float, in_use: MappingOf[str, float]) -> dict[str, float]:
    """Return the pJ that leak in each memory during a run; at least one instance is in use.

    Args:
        in_use: memory -> instances in use.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import leakage_pj
        >>> leakage_pj(tw.load("eyeriss", "architecture"), 100, {})
        {'DRAM': 0.0, 'GlobalBuffer': 0.0, 'InRegister': 0.0, 'WRegister': 0.0, 'OutRegister': 0.0}
    """
    prices = prices_of(architecture)
    used = [max(1.0, in_use.get(name, 1.0)) for name in prices]
    return {name: leaked_pj(price, cycles, used[price.gate]) for name, price in prices.items()}


def rounding_difference(architecture: Architecture) -> tuple[float, float]:
    """Return pJ and cycles by which the reports of a layer and of a group with the same accesses may differ.

    A port takes whole cycles. A layer rounds them as Timeloop does, and a group once for all visits. Memories leak in the difference.
    Both agree if each port takes a whole number of cycles for a word, and no network has costs.

    Example:
        >>> import tilewright as tw
        >>> from tilewright.plugin import rounding_difference
        >>> rounding_difference(tw.load("eyeriss", "architecture"))
        (0.0, 1.0)
    """
    prices = prices_of(architecture)
    ports = [bandwidth for price in prices.values() for bandwidth in price.bandwidths if math.isfinite(bandwidth)]
    is_whole = all((1 / bandwidth).is_integer() for bandwidth in ports) and all(
        cluster.fanout.network == Network() for cluster in architecture.clusters
    )
    cycles = 0.0 if is_whole else 1.0
    leaked = leakage_pj(architecture, cycles, {name: price.instances for name, price in prices.items()})
    return math.fsum(leaked.values()), cycles


def port_limits(
    memories: Sequence[Memory], moved: MappingOf[str, tuple[Counter[int], Counter[int]]]
) -> Iterator[Limit]:
    """Yield the limit of each port in use, at the busiest instance of its memory.

    Args:
        moved: memory -> slices that each instance reads, and slices that are written to it.
    """
    for memory in memories:
        for action, slices, bandwidth in memory.demands(*moved.get(memory.name, (Counter(), Counter()))):
            busiest = max(slices.values(), default=0)
            if bandwidth is not None and busiest:
                cycles = transfer_cycles(bandwidth * memory.slices_per_word, busiest)
                yield _limit(memory, action, busiest, cycles, bandwidth)


def throttling_limits(
    memory: Memory, computing: float, read: float, written: float, ragged: bool = False
) -> Iterator[Limit]:
    """Yield the limit of each port in use, as Timeloop rounds it.

    Args:
        computing: cycles of the array at full speed.
        read, written: slices per cycle at full speed.
        ragged: tiles do not divide, and the slices are those of the busiest instance.
    """
    for action, rate, bandwidth in memory.demands(read, written):
        if bandwidth is not None and rate > 0:
            slices, at_once = math.floor(rate * computing + 0.5), bandwidth * memory.slices_per_word
            speed = port_speed(at_once, rate)
            cycles = transfer_cycles(at_once, slices) if ragged else slowed_cycles(computing, speed)
            if speed >= 1.0:  # rounding makes no port slower than the array
                cycles = min(cycles, computing)
            yield _limit(memory, action, slices, cycles, bandwidth)


def _limit(memory: Memory, action: Any, slices: int, cycles: float, bandwidth: float) -> Limit:
    words = -(-slices // memory.slices_per_word)
    return Limit(name=memory.name, action=action, cycles=int(cycles), words=words, words_per_cycle=bandwidth)
