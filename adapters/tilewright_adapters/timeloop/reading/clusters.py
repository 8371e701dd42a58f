"""Conversion of Timeloop's levels to clusters: capacities, blocks, bandwidths, energies."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from tilewright.schema.architecture import Architecture, Cluster, Compute, Fanout, Memory, Network
from tilewright.schema.component import Estimated
from tilewright.schema.document import suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright_adapters.timeloop.attributes import ENERGIES
from tilewright_adapters.timeloop.reading.energies import (
    COMPUTE,
    READ,
    UPDATE,
    WIRE,
    WRITE,
    Energies,
    dram_pj,
    multiplier_pj,
    pick,
    sram_pj,
)
from tilewright_adapters.timeloop.reading.hierarchy import DEPTH, WORD_BITS, Component, Hierarchy, dummy

Technology = Literal["dram", "sram", "register"]


def build(levels: Hierarchy, energies: Energies | None, unrolled: Mapping[str, frozenset[str]]) -> Architecture:
    """Return one cluster per level, and a virtual `<level>_X` where a level fans out both ways.

    Args:
        levels: the levels.
        energies: the energy table; None: Timeloop's own estimates.
        unrolled: level -> axes along which the mapping unrolls. Such an axis gets a cluster even
            without a fanout, so that legality can check the mapping.

    Raises:
        InputError: instances are uneven, or an energy is missing.
    """
    clusters: list[Cluster] = []
    for index, level in enumerate(levels.storage):
        with level.where.checked():
            clusters += _clusters(level, levels.fanout(index), energies, unrolled.get(level.name, frozenset()))
    with levels.where.checked():
        return Architecture(name=levels.name, clusters=tuple(clusters), compute=_compute(levels.compute, energies))


def with_areas(
    architecture: Architecture, areas: Mapping[str, float], records: Mapping[str, tuple[Estimated, ...]] | None = None
) -> Architecture:
    """Return a copy with areas, and records of their estimates; levels that only unroll have none."""
    if not areas and not records:
        return architecture

    def told(name: str) -> dict[str, object]:
        return {"area_um2": areas.get(name), "estimates": (records or {}).get(name, ())}

    def with_records(memory: Memory) -> Memory:
        return memory if memory == dummy(memory.name) else memory.model_copy(update=told(memory.name))

    compute = architecture.compute.model_copy(update=told(architecture.compute.name))
    return architecture.with_memories(with_records).model_copy(update={"compute": compute})


def stated_areas(levels: Hierarchy) -> dict[str, float]:
    """Return the areas that components state themselves, per instance in square micrometres."""
    stated = {level.name: (level, "cluster_area") for level in levels.storage} | {
        levels.compute.name: (levels.compute, "area")
    }
    areas = {name: level.number(key) or 0.0 for name, (level, key) in stated.items()}
    return {name: area / stated[name][0].whole(("cluster_size",), 1) for name, area in areas.items() if area}


def with_wires(
    architecture: Architecture, levels: Hierarchy, energies: Energies | None, areas: Mapping[str, float]
) -> Architecture:
    """Return a copy with energies per hop, if an energy table gives the energy of wires per bit and millimetre.

    A hop is as long as the side of a square with the area of everything inside it, or as `tile_width` says, in micrometres.
    It has `network_word_bits`, or those of the memory. A level's own `energy_per_hop` counts first.

    Raises:
        InputError: an area is not known.
    """
    table = energies or {}
    energy = pick(table.get("wire", table.get("Wire", {})), WIRE)
    if not energy:
        return architecture
    hops: dict[str, float] = {}
    inside = 0.0
    for index in reversed(range(len(levels.storage))):
        level, inner = levels.storage[index], (*levels.storage, levels.compute)[index + 1]
        width = level.number("tile_width")
        if width is None and not inner.is_dummy and inner.name not in areas:
            raise levels.where.error(
                f"the energy table (ERT) has energies of wires, but {inner.name} has no area, which gives their length",
                hint="add Accelergy's area table (ART), or omit 'wire' from the ERT",
            )
        around = 0 if inner is levels.compute else math.prod(levels.fanout(index + 1))
        inside = areas.get(inner.name, 0.0) + inside * around
        if level.number("energy_per_hop") is None:
            bits = level.whole(("network_word_bits", *WORD_BITS), 16)
            hops[level.name] = bits * (math.sqrt(inside) if width is None else width) / 1000 * energy

    def with_hop(cluster: Cluster) -> Cluster:
        hop = hops.get(cluster.name)
        if hop is None:
            return cluster
        network = cluster.fanout.network.model_copy(update={"energy_per_hop_pj": hop})
        return cluster.model_copy(update={"fanout": cluster.fanout.model_copy(update={"network": network})})

    return architecture.model_copy(update={"clusters": tuple(map(with_hop, architecture.clusters))})


def with_widths(architecture: Architecture, bits: Mapping[str, int]) -> Architecture:
    """Return the architecture with narrower values, as many in a word as fit."""

    def widths(memory: Memory) -> FrozenDict[str, int]:
        fit = {name: max(1, memory.word_bits // bit) for name, bit in bits.items()}
        return FrozenDict({name: -(-max(memory.word_bits, bits[name]) // count) for name, count in fit.items()})

    return architecture.with_memories(lambda memory: memory.model_copy(update={"bits_per_value": widths(memory)}))


def with_unlinked(architecture: Architecture, unlinked: Mapping[str, Collection[str]]) -> Architecture:
    """Return the architecture without link transfers of some tensors, by level."""

    def changed(cluster: Cluster) -> Cluster:
        names = unlinked.get(cluster.name) or unlinked.get(cluster.name.removesuffix("_X")) or ()
        fanout = cluster.fanout.model_copy(update={"unlinked": tuple(sorted(names))})
        return cluster.model_copy(update={"fanout": fanout})

    return architecture.model_copy(update={"clusters": tuple(map(changed, architecture.clusters))})


def estimated(levels: Hierarchy) -> tuple[str, ...]:
    """Return the levels whose energies Timeloop estimates if there is no energy table."""
    lacking = [
        level.name for level in levels.storage if not level.is_dummy and "vector_access_energy" not in level.fields
    ]
    return (*lacking, *([] if "energy" in levels.compute.fields else [levels.compute.name]))


_DEAREST = re.compile(r"(\S+) (\S+) pJ[,.]")
ESTIMATED = "Timeloop's estimates are used for them, as in Timeloop. The dearest action, as before June 2021 and with --one-energy:"


def warned_incomplete(levels: Hierarchy, energies: Energies) -> str | None:
    """Return a warning about the memories without the energy of reads or writes, with their dearest action; None: there are none."""
    names = _incomplete(levels, energies)
    if not names:
        return None
    dearest = ", ".join(f"{name} {max(energies[name].values())!r} pJ" for name in names)
    return f"the energy table (ERT) lacks 'read' or 'write' of {', '.join(names)}: {ESTIMATED} {dearest}."


def dearest_energies(warnings: Iterable[str]) -> dict[str, float]:
    """Return the energy of the dearest action of each memory that `warned_incomplete` names."""
    told = (text.partition(ESTIMATED)[2] for text in warnings)
    return {name: float(energy) for text in told for name, energy in _DEAREST.findall(text)}


def _incomplete(levels: Hierarchy, energies: Energies) -> tuple[str, ...]:
    """Return the levels of an energy table that lack the energy of reads or writes; Timeloop estimates these."""
    given = {level.name: level for level in levels.storage if not level.is_dummy and energies.get(level.name)}
    return tuple(
        name
        for name, level in given.items()
        if "vector_access_energy" not in level.fields
        and None in (pick(energies[name], READ), pick(energies[name], WRITE))
    )


def _clusters(
    level: Component, fanout: tuple[int, int], energies: Energies | None, used: frozenset[str]
) -> Iterator[Cluster]:
    x, y = fanout
    along_x, along_y = x > 1 or "X" in used, y > 1 or "Y" in used
    size, axis = (y, "Y") if along_y else (x, "X")
    yield Cluster(
        name=level.name,
        memories=(_memory(level, energies),),
        fanout=Fanout(size=size, axis=axis, network=_network(level)),
    )
    if along_x and along_y:
        yield Cluster(name=f"{level.name}_X", fanout=Fanout(size=x, axis="X"))


def _network(level: Component) -> Network:
    return Network(
        energy_per_hop_pj=level.number("energy_per_hop") or 0.0,
        energy_per_router_pj=level.number("router_energy") or 0.0,
        energy_per_ingress_pj=level.number("energy_per_ingress") or 0.0,
    )


def _memory(level: Component, energies: Energies | None) -> Memory:
    if level.is_dummy:
        return dummy(level.name)
    word_bits = level.whole(WORD_BITS, 16)
    block, cluster = level.blocks(word_bits)
    capacity = _capacity(level, word_bits, block)
    technology = _technology(level)
    table = energies.get(level.name, {}) if energies else {}
    access_pj = level.number("vector_access_energy")
    if access_pj is not None:
        table = {}  # the component's own attribute takes precedence
    elif energies is not None and not table:
        raise _without_energy(level, energies)
    else:  # also for actions that an energy table lacks
        access_pj = (
            dram_pj(word_bits * block) if technology == "dram" else sram_pj(capacity or 0, word_bits, block, cluster)
        )
    read, write, update = (
        access_pj if (energy := pick(table, actions)) is None else energy for actions in (READ, WRITE, UPDATE)
    )
    energy_of: dict[str, Any] = {field: pick(table, actions) or 0.0 for field, actions in ENERGIES.items()}
    gate = str(level.fields["power_gated_at"].value or "") if "power_gated_at" in level.fields else ""
    return Memory(
        name=level.name,
        technology=technology,
        capacity_words=capacity or None,
        holds=() if capacity == 0 else None,
        word_bits=word_bits,
        read_energy_pj=read,
        write_energy_pj=write,
        update_energy_pj=None if update == write else update,
        block_words=block,
        instances_per_macro=cluster,
        power_gated_at=gate if gate not in ("", level.name) else None,
        **level.numbers(),
        **energy_of,
    )


def _without_energy(level: Component, energies: Energies) -> Exception:
    known = ", ".join(energies)
    return level.where.error(
        f"the energy table (ERT) lacks energies of {level.name}{suggestion(level.name, energies)}",
        hint=f"it has those of {known}" if known else "it is empty",
    )


def _technology(level: Component) -> Technology:
    kind = level.kind.lower()
    given = level.fields.get("technology")
    if "dram" in kind or (given is not None and given.value == "DRAM"):
        return "dram"
    return "register" if "reg" in kind or kind.endswith("rf") else "sram"


def _capacity(level: Component, word_bits: int, block: int) -> int | None:
    """Return the capacity in words; None: unlimited. Raises InputError if two sizes differ."""
    depth = [name for name in DEPTH if name in level.fields][:1]
    first = ["entries"] if "entries" in level.fields else depth  # as in Timeloop
    given = [name for name in (*first, "sizeKB") if name in level.fields]
    words = {name: _words(level, name, word_bits, block) for name in given}
    if len(set(words.values())) > 1:
        sizes = " and ".join(f"{name} {level.fields[name].shown} ({words[name]} words)" for name in given)
        raise level.where.error(f"{level.name}: {sizes} are different sizes; give one")
    return words[given[0]] if given else None


def _words(level: Component, name: str, word_bits: int, block: int) -> int | None:
    """Return the size in words that one attribute gives."""
    if str(level.fields[name].value).lower() == "inf":
        return None
    number = level.whole((name,), 0, least=0)
    if name == "sizeKB":
        return number * 1024 * 8 // word_bits
    return number if name == "entries" else number * block


def _compute(level: Component, energies: Energies | None) -> Compute:
    energy = pick(energies.get(level.name, {}) if energies else {}, COMPUTE)
    energy = level.number("energy") if energy is None else energy
    if energy is None and energies is None:
        energy = multiplier_pj(level.whole(WORD_BITS, 16))
    if energy is None:
        raise _without_energy(level, energies or {})
    return Compute(name=level.name, energy_per_operation_pj=energy, word_bits=level.whole(WORD_BITS, 16))
