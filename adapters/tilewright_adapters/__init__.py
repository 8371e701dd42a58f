"""Registration of the built-in adapters; an adapter's module is imported when it is built."""

from __future__ import annotations

from pydantic import Field

from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import AdapterSpec, Options, lazy
from tilewright.schema.frozen import FrozenDict

TIMELOOP = (
    *("architecture.subtree", "architecture.nodes", "problem.shape", "problem.instance"),
    *("mapspace_constraints", "architecture_constraints", "sparse_optimizations", "compound_components", "ERT", "ART"),
)
"""Keys of Timeloop's files."""


EXPRESSIBLE = Capabilities(uneven_mappings=False, split_dimensions=False, inner_backing_store=True)
"""Mappings that Timeloop's files express."""


class TimeloopFiles(Options):
    """Options for reading Timeloop's files."""

    dense: bool = Field(
        default=False, description="omit densities and sparse hardware; results are those of the dense run"
    )
    one_energy: bool = Field(
        default=False,
        description="every access costs the dearest action of the component's energy table, as before June 2021",
    )
    set: FrozenDict[str, str | int | float | bool] = Field(
        default=FrozenDict(), description="values of template variables"
    )
    folders: tuple[str, ...] = Field(default=(), description="folders from which templates may include files")


class AccelForgeFiles(Options):
    """Options for reading AccelForge's files."""

    set: FrozenDict[str, str | int | float | bool] = Field(
        default=FrozenDict(), description="values of template variables"
    )
    folders: tuple[str, ...] = Field(default=(), description="folders from which templates may include files")


class MaestroFiles(Options):
    """Options for reading MAESTRO's files."""

    dataflow: str | None = Field(default=None, description="file with the dataflow of layers without one")


@hookimpl
def tilewright_plugins() -> list[AdapterSpec]:
    """Return the built-in adapters."""
    return [
        AdapterSpec(
            name="tilewright",
            signs=("kind", "clusters", "tensors", "layers", "entries"),
            summary="Tilewright's own YAML files.",
            factory=lazy("tilewright_adapters.native", "NativeAdapter"),
            interface=1,
        ),
        AdapterSpec(
            name="timeloop",
            signs=TIMELOOP,
            capabilities=EXPRESSIBLE,
            default_for=("reports",),
            summary="Timeloop's input files; writes v0.3.",
            factory=lazy("tilewright_adapters.timeloop", "TimeloopAdapter", "v3"),
            interface=1,
            options=TimeloopFiles,
        ),
        AdapterSpec(
            name="timeloop_v4",
            signs=TIMELOOP,
            capabilities=EXPRESSIBLE,
            summary="Timeloop's input files; writes v4.",
            factory=lazy("tilewright_adapters.timeloop", "TimeloopAdapter", "v4"),
            interface=1,
            options=TimeloopFiles,
        ),
        AdapterSpec(
            name="maestro",
            summary="MAESTRO's mapping and hardware files.",
            factory=lazy("tilewright_adapters.maestro", "MaestroAdapter"),
            interface=1,
            options=MaestroFiles,
        ),
        AdapterSpec(
            name="zigzag",
            signs=(
                "memories",
                "operational_array",
                "-.loop_dims",
                "-.operator_type",
                "-.spatial_mapping",
                "inputs.temporal_mapping",
            ),
            summary="ZigZag's accelerator, workload and mapping files, and its results.",
            factory=lazy("tilewright_adapters.zigzag", "ZigZagAdapter"),
            interface=1,
        ),
        AdapterSpec(
            name="accelforge",
            signs=("arch.nodes", "workload", "renames"),
            summary="AccelForge's architecture, workload and mapping of one einsum.",
            factory=lazy("tilewright_adapters.accelforge", "AccelForgeAdapter"),
            interface=1,
            options=AccelForgeFiles,
        ),
        AdapterSpec(
            name="loopnest",
            summary="Readable loop nests, with the memories as comments.",
            factory=lazy("tilewright_adapters.loopnest", "LoopNestAdapter"),
            interface=1,
        ),
        AdapterSpec(
            name="union",
            signs=("problem.data_spaces", "problem.dataspaces", "architecture.clusters"),
            summary="Union's abstractions, laid out as in the paper's figures.",
            factory=lazy("tilewright_adapters.union", "UnionAdapter"),
            interface=1,
        ),
    ]
