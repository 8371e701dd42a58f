"""Parser of Timeloop's `architecture`: a tree of containers, or the oldest, flat form."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.expressions import resolved
from tilewright.schema.architecture import Memory
from tilewright.schema.document import suggestion
from tilewright_adapters.timeloop.attributes import NUMBERS
from tilewright_adapters.timeloop.cursor import Cursor, refuse_unknown, strange_fields

_NAME = re.compile(r"(.*?)(?:\[(\d+)\.\.(\d+)\])?")
_MEMORY_CLASSES = ("dram", "sram", "regfile", "smartbuffer", "storage")
_COMPUTE_CLASSES = ("mac", "compute", "multiplier")
DUMMY = "dummy_storage"
"""Class of levels that only unroll: they keep nothing and cost nothing."""
WORD_BITS = ("word_bits", "word_width", "datawidth")
BLOCK = ("block_size", "n_words")
WIDTH = ("width", "memory_width", "data_storage_width")
DEPTH = ("depth", "memory_depth", "data_storage_depth")
_CONTAINER = {"name", "version", "attributes", "local", "subtree"}
_COMPONENT = {"name", "class", "subclass", "attributes", "required_actions", "enabled", "area_scale"}
_COMMON = {*WORD_BITS, "instances", "meshX", "meshY"}
_NETWORK = {"energy_per_hop", "energy_per_ingress", "router_energy"}
_READ_MEMORY = {
    *(*_COMMON, *_NETWORK, *BLOCK, *WIDTH, *DEPTH),
    *(key.replace("-", "_") for key, _ in NUMBERS.values()),
    *("cluster_size", "entries", "sizeKB", "bandwidth"),
    *("vector_access_energy", "technology", "power_gated_at"),
    *("metadata_datawidth", "metadata_word_bits", "metadata_storage_width", "metadata_width"),
    *("metadata_storage_depth", "metadata_depth", "metadata_block_size"),
    *("decompression_supported", "compression_supported"),
}
_READ_COMPUTE = {*_COMMON, "energy", "technology"}
_READ_NETWORK = {*WORD_BITS, *_NETWORK, "network_type"}
_LEGACY = ("xy_noc", "legacy")
"""Classes of networks that cost what the network costs that Timeloop infers between two levels."""
_INWARDS, _BACK = ("network_fill", "network_operand"), ("network_drain", "network_result")
"""Attributes of the inner level that name its networks; those of the outer level are network_read and network_update."""
_HARMLESS = {
    *("class", "type", "area", "cluster_area", "banks", "num_banks", "n_banks", "ports", "num_ports", "n_ports"),
    *("n_rd_ports", "n_wr_ports", "n_rdwr_ports", "n_buffets", "update_fifo_depth", "latency", "voltage"),
    *("metadata_counter_width", "metadata_n_banks", "concordant_compressed_tile_traversal"),
    *("network_word_bits", "tile_width", "num_pipeline_stages", "clockrate", "frequency", "technology"),
    *("nports", "power_gated_at", "has_power_gating", "global_cycle_seconds", "cycle_time"),
    *("multiplier_width", "adder_width", "version"),
}
"""Attributes that affect only areas or energies that tables give, or that Timeloop does not read."""
_TOLD = {
    "latency": "files of Tilewright have latency_cycles of timing, which `pipelined` counts",
    "has_power_gating": "power_gated_at names the level that switches a memory",
}
"""Attributes that Timeloop does not read -> what has the effect."""
_LATENCIES = ("network_fill_latency", "network_drain_latency", "fill_latency", "drain_latency", "fill_drain_latency")
"""Cycles that some version of Timeloop adds to those of the run."""
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "min_utilization": (0,),
    "addr_gen_energy": (0,),
    "wire_energy": (0,),
    **dict.fromkeys(_LATENCIES, (0,)),
    "allow_overbooking": (False,),
    "per_dataspace_bandwidth_consumption_scale": (1,),
    "reduction_supported": (True,),
    "tile_partition_supported": (False,),
    **dict.fromkeys(("network_read", "network_update", *_INWARDS, *_BACK), ()),
}
"""Attributes that the schemas cannot express -> values that have no effect."""
_AT_ONCE = (
    "Timeloop adds these cycles once to those of the run: omit them here and add them to the printed cycles. "
    "Files of Tilewright have fill_drain_cycles of compute, which `pipelined` counts for every set of tiles"
)


def dummy(name: str) -> Memory:
    """Return the memory of a level that only unrolls."""
    return Memory(name=name, holds=(), read_energy_pj=0.0, write_energy_pj=0.0)


@dataclass(frozen=True)
class Component:
    """A storage or arithmetic level: `instances` in total, `mesh` instances along X and Y."""

    name: str
    kind: str
    where: Cursor
    fields: Mapping[str, Cursor]
    instances: int
    mesh: tuple[int, int]

    @property
    def is_dummy(self) -> bool:
        """Whether the level only unrolls."""
        return DUMMY in self.kind

    def whole(self, names: tuple[str, ...], default: int, least: int = 1) -> int:
        """Return the first attribute given, or the default."""
        for name in names:
            if name in self.fields:
                return self.fields[name].whole(f"{name} of {self.name}", least)
        return default

    def number(self, name: str, least: float = 0.0) -> float | None:
        return self.fields[name].number(f"{name} of {self.name}", least) if name in self.fields else None

    def blocks(self, word_bits: int) -> tuple[int, int]:
        """Return words per block, and instances per cluster, which share one access.

        `width` determines the one that is missing, rounded down as in Timeloop. Unlike in Timeloop,
        a block has at least one word.

        Raises:
            InputError: Timeloop would refuse the width.
        """
        block, cluster, width = self.whole(BLOCK, 1), self.whole(("cluster_size",), 1), self.whole(WIDTH, 0)
        has_block, has_cluster = any(name in self.fields for name in BLOCK), "cluster_size" in self.fields
        if not width:
            return block, cluster
        if width % (word_bits * block) or (has_block and has_cluster and width != word_bits * block * cluster):
            clusters = f" x cluster {cluster}" if has_cluster else ""
            raise self.where.error(f"{self.name}: width {width} is not {word_bits} bits x block {block}{clusters}")
        if not has_block:
            block = max(1, width // (word_bits * cluster))
        elif not has_cluster:
            cluster = width // (word_bits * block)
        return block, cluster

    def numbers(self) -> dict[str, Any]:
        """Return the attributes of a memory that are numbers (NUMBERS).

        Reads and writes have half of the older `bandwidth` each.
        """
        both = self.number("bandwidth")
        halves = ("read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle")
        given = {field: self.number(key.replace("-", "_"), least) for field, (key, least) in NUMBERS.items()}
        return ({} if both is None else dict.fromkeys(halves, both / 2)) | {
            field: value for field, value in given.items() if value is not None
        }


@dataclass(frozen=True)
class Hierarchy:
    """Storage levels, outermost first, and the arithmetic level."""

    name: str
    where: Cursor
    storage: tuple[Component, ...]
    compute: Component
    warnings: tuple[str, ...]

    @property
    def dummies(self) -> frozenset[str]:
        """Names of the levels that keep nothing."""
        return frozenset(level.name for level in self.storage if level.is_dummy)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(level.name for level in self.storage)

    def fanout(self, index: int) -> tuple[int, int]:
        """Return how many instances of the next level each instance feeds, along X and Y."""
        outer = self.storage[index]
        inner = (*self.storage, self.compute)[index + 1]
        sizes = []
        for axis, many, few in zip("XY", inner.mesh, outer.mesh, strict=True):
            if many % few:
                raise inner.where.error(
                    f"{many} {inner.name} along {axis} do not divide evenly among {few} {outer.name}",
                    hint=f"make mesh{axis} of {inner.name} a multiple of mesh{axis} of {outer.name}, "
                    "and list components outermost first",
                )
            sizes.append(many // few)
        return sizes[0], sizes[1]


def read_hierarchy(section: Cursor) -> Hierarchy:
    """Return the hierarchy of an `architecture` section (0.2 and 0.3), or of the flat `arch`.

    Raises:
        InputError: the section is invalid.
    """
    fields = section.fields("architecture")
    strange: list[str] = []
    components = list(_flat(section, fields) if "storage" in fields else _tree(section, 1, {}, strange))
    levels = hierarchy_of(_architecture_name(fields), section, components)
    return replace(levels, warnings=(*strange, *levels.warnings))


def hierarchy_of(name: str, section: Cursor, components: list[Component]) -> Hierarchy:
    """Return the storage levels and the arithmetic level, outermost first. Raises InputError."""
    components = _connected(components)
    storage = tuple(level for level in components if _is(level.kind, _MEMORY_CLASSES))
    compute = [level for level in components if level not in storage and _is(level.kind, _COMPUTE_CLASSES)]
    if not storage:
        raise section.error("the architecture has no memory", hint=f"classes: {', '.join(_MEMORY_CLASSES)}")
    if len(compute) != 1:
        names = ", ".join(level.name for level in compute) or "none"
        raise section.error(
            f"found {names} as arithmetic levels; expected exactly one",
            hint="Timeloop evaluates one; files for Accelergy alone may list more",
        )
    warnings = list(dict.fromkeys(_warnings(components)))
    return Hierarchy(name, section, storage, _with_default_mesh(compute[0], storage[-1], warnings), tuple(warnings))


def _connected(components: list[Component]) -> list[Component]:
    """Return the components without the networks that levels name; the outer level has their energies.

    Raises:
        InputError: A network is unknown or of another class, or two levels do not name the same one for all directions.
    """
    by_name = {component.name: component for component in components}
    levels = [component.name for component in components if _is(component.kind, _MEMORY_CLASSES + _COMPUTE_CLASSES)]
    for outer, inner in itertools.pairwise(levels):
        ends = ((outer, ("network_read", "network_update")), (inner, (*_INWARDS, *_BACK)))
        given = {
            key: by_name[level].fields[key] for level, keys in ends for key in keys if key in by_name[level].fields
        }
        if not given:
            continue
        names = {cursor.text("a network") for cursor in given.values()}
        inwards, back = (any(key in given for key in keys) for keys in (_INWARDS, _BACK))
        whole = "network_read" in given and inwards and ("network_update" in given) is back
        network = by_name.get(names.pop())
        if names or not whole or network is None or network.kind.lower() not in _LEGACY:
            raise next(iter(given.values())).error(
                f"the networks between {outer} and {inner} are not supported: they could change results",
                hint="one network of class XY_NoC or Legacy, named by network_read of the outer level and network_fill of the inner one",
            )
        list(_check_attributes(network, _READ_NETWORK))
        energies = {key: cursor for key, cursor in network.fields.items() if key in _NETWORK}
        for name, added, gone in ((outer, energies, _NETWORK), (inner, {}, set[str]())):
            kept = {key: cursor for key, cursor in by_name[name].fields.items() if key not in given.keys() | gone}
            by_name[name] = replace(by_name[name], fields=kept | added)
        by_name[network.name] = replace(network, kind="")
    return [by_name[component.name] for component in components if by_name[component.name].kind]


def _with_default_mesh(compute: Component, inner: Component, warnings: list[str]) -> Component:
    """Return compute with a mesh; if it has none that fits, it gets the innermost memory's."""
    x, y = inner.mesh
    uneven = compute.mesh[0] % x or compute.mesh[1] % y
    if not uneven or "meshX" in compute.fields or "meshY" in compute.fields or compute.instances % (x * y):
        return compute
    place = compute.where.document.locate(compute.where.path)
    warnings.append(f"{place}: {compute.name} has no mesh: read as {x} along X, like {inner.name}")
    return replace(compute, mesh=(x, compute.instances // x))


def _warnings(components: list[Component]) -> Iterator[str]:
    seen: set[str] = set()
    for level in components:
        if level.name in seen:
            raise level.where.error(f"component names repeat: {level.name}")
        seen.add(level.name)
        if _is(level.kind, _MEMORY_CLASSES):
            yield from _check_attributes(level, _READ_MEMORY)
            yield from _check_synonyms(level)
            yield from _check_width(level)
            yield from _check_size(level)
        elif _is(level.kind, _COMPUTE_CLASSES):
            yield from _check_attributes(level, _READ_COMPUTE)
        else:
            place = level.where.document.locate(level.where.path)
            yield f"{place}: {level.name} of class {level.kind} is not a memory or compute: ignored"


def _check_synonyms(level: Component) -> Iterator[str]:
    """Yield a warning for each attribute that repeats another under a second name.

    Timeloop ignores these.
    """
    for names in (WORD_BITS, BLOCK, WIDTH, DEPTH):
        first, *others = [level.fields[name] for name in names if name in level.fields] or [level.where]
        for other in others:
            if other.value != first.value:
                place = other.document.locate(other.path)
                yield f"{place}: {other.path[-1]} of {level.name} is ignored, as in Timeloop, because {first.path[-1]} is given"


def _check_width(level: Component) -> Iterator[str]:
    if level.is_dummy:
        return
    word_bits, width = level.whole(WORD_BITS, 16), level.whole(WIDTH, 0)
    block, cluster = level.blocks(word_bits)
    if width and width != word_bits * block * cluster:
        place = level.where.document.locate(level.where.path)
        yield (
            f"{place}: width {width} of {level.name} is not {word_bits} bits x cluster {cluster} x a whole number: "
            f"read as blocks of {block}"
        )


def _check_size(level: Component) -> Iterator[str]:
    """Yield a warning if `entries` and the depth give different sizes. Timeloop uses `entries`."""
    depth = next((name for name in DEPTH if name in level.fields), None)
    if "entries" not in level.fields or depth is None or level.is_dummy:
        return
    block, _ = level.blocks(level.whole(WORD_BITS, 16))
    if level.fields["entries"].value != level.whole((depth,), 0, least=0) * block:
        place = level.where.document.locate(level.fields[depth].path)
        yield f"{place}: {depth} of {level.name} is ignored, as in Timeloop, because entries is given"


def _is(kind: str, classes: tuple[str, ...]) -> bool:
    return any(word in kind.lower() for word in classes)


def _architecture_name(fields: dict[str, Cursor]) -> str:
    """Return the architecture's name, or that of the outermost container."""
    inside = fields["subtree"].items("subtree") if "subtree" in fields else []
    outermost = inside[0].fields("a container") if inside else {}
    cursor = fields.get("name", outermost.get("name"))
    return "timeloop" if cursor is None else _ranged(cursor)[0]


def _tree(node: Cursor, count: int, inherited: Mapping[str, Cursor], warnings: list[str]) -> Iterator[Component]:
    """Yield the components of a container, its own before those of inner containers.

    `count` is the number of instances of this container.
    """
    fields = node.fields("a container")
    warnings += strange_fields(fields, _CONTAINER, "a container")
    attributes = {**inherited, **_attributes(fields, inherited)}
    for item in fields["local"].items("local") if "local" in fields else ():
        parts = item.fields("a component")
        warnings += strange_fields(parts, _COMPONENT, "a component")
        enabled = parts.get("enabled")
        if enabled is not None and enabled.value is not None and not enabled.truth("enabled of a component"):
            continue
        if "name" not in parts or "class" not in parts:
            raise item.error("a component needs 'name' and 'class'")
        values = _attributes(parts, attributes)
        name, times = _ranged(parts["name"])
        yield _level(item, name, parts["class"].text("a class"), count * times, attributes | values)
    inside = fields["subtree"].items("subtree") if "subtree" in fields else []
    if len(inside) > 1:
        raise inside[1].error("a container has two inner containers; Timeloop's levels are a chain")
    for item in inside:
        below = item.fields("a container")
        if "name" not in below:
            raise item.error("a container has no 'name'")
        yield from _tree(item, count * _ranged(below["name"])[1], attributes, warnings)


def _attributes(fields: Mapping[str, Cursor], inherited: Mapping[str, Cursor]) -> dict[str, Cursor]:
    if "attributes" not in fields or fields["attributes"].value is None:
        return {}
    return computed(fields["attributes"].fields("attributes"), inherited, {})


def computed(
    attributes: dict[str, Cursor], inherited: Mapping[str, Cursor], values: Mapping[str, object]
) -> dict[str, Cursor]:
    """Return attributes with expressions evaluated.

    Expressions may use variables, attributes of the containers around the component, and its other attributes.
    The name of the attribute itself means that of the containers: `datawidth: datawidth`.
    """
    outside = {**values, **{name: cursor.value for name, cursor in inherited.items()}}
    result = dict(attributes)
    for _ in attributes:  # an attribute may use one that follows it
        before = {name: cursor.value for name, cursor in result.items()}
        for name, cursor in result.items():
            others = outside | {key: field.value for key, field in result.items() if key != name}
            result[name] = cursor.with_value(resolved(cursor.value, others))
        if before == {name: cursor.value for name, cursor in result.items()}:
            break
    return result


def _ranged(cursor: Cursor) -> tuple[str, int]:
    """Return name and count: `PE[0..167]` -> PE, 168."""
    match = _NAME.fullmatch(cursor.text("a name"))
    if match is None or "[" in match[1]:
        if "." in str(cursor.value):
            raise cursor.error(
                f"'{cursor.value}' is a component of a flattened architecture, an output of Accelergy",
                hint="give the architecture that it was made from, with its subtrees",
            )
        raise cursor.error(f"cannot read the name '{cursor.value}'", hint="write NAME or NAME[0..N]")
    if match[2] is None:
        return match[1], 1
    count = int(match[3]) - int(match[2]) + 1
    if count < 1:
        raise cursor.error(f"the range of '{cursor.value}' is empty")
    return match[1], count


def _flat(section: Cursor, fields: dict[str, Cursor]) -> Iterator[Component]:
    """Yield the components of the oldest form: `storage`, innermost first, and `arithmetic`."""
    refuse_unknown(fields, {"name", "version", "storage", "arithmetic"}, "the architecture")
    if "arithmetic" not in fields:
        raise section.error("the architecture has no 'arithmetic'")
    for item in reversed(fields["storage"].items("storage")):
        parts = item.fields("a storage level")
        name = parts.pop("name").text("a name") if "name" in parts else f"L{item.path[-1]}"
        dram = "technology" in parts and parts["technology"].value == "DRAM"
        yield _level(item, name, "DRAM" if dram else "SRAM", None, parts)
    parts = fields["arithmetic"].fields("arithmetic")
    name = parts.pop("name").text("a name") if "name" in parts else "MAC"
    yield _level(fields["arithmetic"], name, "mac", None, parts)


def _level(where: Cursor, name: str, kind: str, count: int | None, fields: Mapping[str, Cursor]) -> Component:
    """Return a component, with Timeloop's defaults for instances, meshX and meshY.

    `count` follows from the ranges in names.
    """
    given = {key: fields[key].whole(f"{key} of {name}") for key in ("instances", "meshX", "meshY") if key in fields}
    total = given.get("instances", count) or given.get("meshX", 1) * given.get("meshY", 1)
    x = given.get("meshX", total // given.get("meshY", 1))
    y = given.get("meshY", total // max(1, x))
    if x * y != total:
        raise where.error(f"{name}: {total} instances are not meshX {x} times meshY {y}")
    return Component(name, kind, where, fields, total, (x, y))


def _check_attributes(level: Component, read: set[str]) -> Iterator[str]:
    for name, cursor in level.fields.items():
        if name in _NEUTRAL and cursor.value is not None:
            said = name in ("allow_overbooking", "reduction_supported", "tile_partition_supported")
            value = cursor.truth(f"{name} of {level.name}") if said else cursor.value
            if value not in _NEUTRAL[name]:
                raise cursor.error(
                    f"{name} = {cursor.value!r} of {level.name} is not supported: it would change results",
                    hint=_AT_ONCE if name in _LATENCIES else None,
                )
        elif name in _TOLD and cursor.value not in (None, False, 0, "False", "false"):
            yield f"{cursor.document.locate(cursor.path)}: {name} is ignored, as in Timeloop; {_TOLD[name]}"
        elif name not in read | _HARMLESS | _NEUTRAL.keys() and not level.is_dummy:
            meant = suggestion(name, read)
            yield f"{cursor.document.locate(cursor.path)}: unknown attribute {name}{meant}: ignored, as in Timeloop"
