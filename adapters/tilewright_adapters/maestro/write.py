"""Rendering of a directive program as MAESTRO's files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewright.errors import Reason
from tilewright_adapters.maestro.hardware import KEYS
from tilewright_adapters.maestro.network import DIMENSIONS
from tilewright_adapters.maestro.words import is_name
from tilewright_adapters.parts import reason
from tilewright_notations.directives import WINDOWS, DirectiveHardware, DirectiveLayer, DirectiveProgram


def plain_name(name: str) -> str:
    """Return the name as one word, valid as a file name, which MAESTRO cuts at the first dot."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"


def faults(program: DirectiveProgram) -> Iterator[Reason]:
    """Yield reasons why MAESTRO's files cannot express the program."""
    if not is_name(program.name):
        yield reason("name", f"network {program.name}", "its name cannot be written before a brace")
    if program.hardware.simd_lanes != 1:
        message = f"{program.hardware.simd_lanes} MACs per PE and cycle; only MAESTRO's command line can express this"
        yield reason("lanes", "hardware", message)
    for layer in program.layers:
        yield from _layer_faults(layer)


def _layer_faults(layer: DirectiveLayer) -> Iterator[Reason]:
    where = f"layer {layer.name}"
    if not is_name(layer.name):
        yield reason("name", where, "its name cannot be written before a brace")
    if len(layer.cluster_sizes) != len(layer.levels) - 1:
        yield reason("levels", where, "the number of Cluster sizes is wrong; expected one between any two levels")
    sizes = set(DIMENSIONS) - {f"{name}'" for name in WINDOWS}
    for name in sorted(set(layer.dimensions) - sizes):
        yield reason(
            "dimension", where, f"{name} is not a dimension of MAESTRO; expected one of {' '.join(sorted(sizes))}"
        )
    for name in sorted(set(layer.strides) - set(WINDOWS)):
        yield reason("stride", where, f"{name} has a stride; in MAESTRO only Y and X have one")
    for directive in (directive for level in layer.levels for directive in level):
        if directive.dimension not in DIMENSIONS or directive.dimension.rstrip("'") not in layer.dimensions:
            yield reason("dimension", where, f"{directive}: the layer has no dimension {directive.dimension}")


def write_program(program: DirectiveProgram, file: str) -> dict[str, str]:
    """Return the mapping file and the hardware file, at their places in MAESTRO's checkout.

    All values are written out, because defaults differ between versions.
    """
    return {
        f"data/mapping/{file}.m": "\n".join(_network(program)) + "\n",
        f"data/hw/{file}.m": "\n".join(_hardware(program.hardware)) + "\n",
    }


def _network(program: DirectiveProgram) -> Iterator[str]:
    yield f"Network {program.name} {{"
    for layer in program.layers:
        yield from _layer(layer)
    yield "}"


def _layer(layer: DirectiveLayer) -> Iterator[str]:
    yield f" Layer {layer.name} {{"
    yield f"  Type: {layer.type}"
    for title, sizes in (("Stride", layer.strides), ("Dimensions", layer.dimensions)):
        if sizes:
            yield f"  {title} {{ {', '.join(f'{name}: {size}' for name, size in sizes.items())} }}"
    yield "  Dataflow {"
    for number, level in enumerate(layer.levels):
        if number:
            yield f"   Cluster({layer.cluster_sizes[number - 1]}, P);"
        yield from (f"   {directive};" for directive in level)
    yield "  }"
    yield " }"


def _hardware(hardware: DirectiveHardware) -> Iterator[str]:
    plain = DirectiveHardware()
    for word, field in KEYS.items():
        value = getattr(hardware, field)
        if field in ("num_pes", "noc_latency") or value != getattr(plain, field):
            yield f"{word}: {value}"
