"""Directives: the data-centric notation of mappings (MAESTRO, Kwon et al., MICRO 2019).

Directives express mappings that tiles of a loop nest cannot: overlapping windows and diagonals.
They are therefore a second notation next to `Mapping`. Adapters read and write them, and cost
models may accept them directly.
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
