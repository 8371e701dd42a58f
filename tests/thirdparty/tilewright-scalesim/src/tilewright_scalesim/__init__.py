"""SCALE-Sim's files. Only names and options live here; the readers are imported when they are built."""

from __future__ import annotations

from pydantic import Field

from tilewright.plugin import AdapterSpec, FrontendSpec, Options, hookimpl, lazy


class TopologyOptions(Options):
    """Options of the frontend."""

    batch: int = Field(default=1, ge=1, description="inputs that each layer works on")


@hookimpl
def tilewright_plugins() -> list[FrontendSpec | AdapterSpec]:
    """Return the plugins of this distribution."""
    return [
        FrontendSpec(
            name="topologies",
            summary="SCALE-Sim's topologies: convolutions or matrix products, one a line.",
            factory=lazy("tilewright_scalesim.topology", "Topology"),
            interface=1,
            options=TopologyOptions,
            suffixes=(".csv",),
        ),
        AdapterSpec(
            name="scalesim",
            summary="SCALE-Sim's configurations: an array, and a buffer for each operand and the results.",
            factory=lazy("tilewright_scalesim.configuration", "Configuration"),
            interface=1,
        ),
    ]
