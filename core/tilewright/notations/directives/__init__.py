"""Directives: the data-centric notation of mappings (MAESTRO, Kwon et al., MICRO 2019), with its layers and hardware.

It can say what tiles of a loop nest cannot (windows that overlap, diagonals), so it stands beside `Mapping` here in
core: adapters read and write it, and a cost model that understands it takes it as it is.
"""

from tilewright.notations.directives.program import (
    FILTER,
    INPUT,
    NEEDED,
    OUTPUT,
    WINDOWS,
    DirectiveHardware,
    DirectiveLayer,
    DirectiveProgram,
    LayerType,
    Map,
)

__all__ = [
    "FILTER",
    "INPUT",
    "NEEDED",
    "OUTPUT",
    "WINDOWS",
    "DirectiveHardware",
    "DirectiveLayer",
    "DirectiveProgram",
    "LayerType",
    "Map",
]
