"""Built-in cost models. Only names and options live here; a model is imported when it is built."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import CostModelSpec, Options, lazy
from tilewright_costmodels.approximations import OF_MAESTRO, OF_TIMELOOP, OF_ZIGZAG, REMAINDER
from tilewright_costmodels.conventions import MAESTRO, ORACLE, PIPELINED, TIMELOOP, ZIGZAG

_COUNTED: dict[str, Any] = dict.fromkeys(
    ("value_widths", "shared_bandwidth", "inner_backing_store", "distinct_footprints"), True
)
"""Capabilities that `timeloop`, `pipelined` and `oracle` have in common."""


class FillOptions(Options):
    """Option of the models that count first writes of outputs."""

    first_fills: bool = Field(
        default=False, description="first writes of outputs count as fills, as in Timeloop before version 3"
    )

    def narrowed(self, capabilities: Capabilities) -> Capabilities:
        """Return the capabilities; first fills are counted on dense hardware, for one layer at a time."""
        without = {"sparse": False, "groups": False}
        return capabilities.model_copy(update=without) if self.first_fills else capabilities


class TimeloopOptions(FillOptions):
    """Options of `timeloop`."""

    link_transfers: bool = Field(
        default=True, description="sub-clusters forward words to their neighbours, as Timeloop does by default"
    )

    def narrowed(self, capabilities: Capabilities) -> Capabilities:
        """Return the capabilities; first fills are counted for one layer at a time."""
        return capabilities.model_copy(update={"groups": False}) if self.first_fills else capabilities


class OracleOptions(FillOptions):
    """Options of `oracle`."""

    max_operations: int = Field(
        default=200_000,
        ge=1,
        le=10_000_000,
        description="maximum number of operations of a problem, because every one is executed",
    )
    draws: int = Field(
        default=16, ge=1, le=10_000, description="random draws of nonzero values on sparse hardware; counts are means"
    )
    seed: int = Field(default=0, ge=0, description="seed of these draws")


class MaestroOptions(Options):
    """Options of `maestro`."""

    faithful: bool = Field(
        default=False, description="only warn if a buffer is smaller than MAESTRO's requirement, as MAESTRO does"
    )
    simd_lanes: int | None = Field(
        default=None, ge=1, description="MACs per PE and cycle, for MAESTRO's own files, which cannot specify it"
    )
    num_pes: int | None = Field(
        default=None, ge=1, description="number of PEs; replaces the value in MAESTRO's hardware file"
    )
    l1_size: int | None = Field(default=None, ge=1, description="elements of one L1; replaces the value in that file")
    l2_size: int | None = Field(default=None, ge=1, description="elements of the L2; replaces the value in that file")
    noc_bandwidth: int | None = Field(
        default=None, ge=1, description="elements per cycle of the network; replaces the value in that file"
    )
    noc_latency: int | None = Field(
        default=None, ge=0, description="cycles of latency of the network; replaces the value in that file"
    )
    offchip_bandwidth: int | None = Field(
        default=None, ge=1, description="elements per cycle of DRAM; replaces the value in that file"
    )


class TimeloopBinaryOptions(Options):
    """Options of `timeloop_binary`."""

    path: str = Field(default="timeloop-model", min_length=1, description="name or path of the program")
    seconds: float = Field(default=60.0, gt=0, description="time limit for one mapping, in seconds")


class ZigZagOptions(Options):
    """Options of `zigzag`."""

    seconds: float = Field(default=60.0, gt=0, description="time limit for one mapping, in seconds")


@hookimpl
def tilewright_plugins() -> list[CostModelSpec]:
    """The built-in cost models."""
    return [
        CostModelSpec(
            name="timeloop",
            default_for=("search",),
            summary="Timeloop's counts, energies and cycles on the same inputs.",
            factory=lazy("tilewright_costmodels.timeloop.meshes", "MeshedTimeloop"),
            interface=1,
            options=TimeloopOptions,
            capabilities=Capabilities(**_COUNTED, sparse=True, meshes=True, groups=True, vector_layers=True),
            approximations=OF_TIMELOOP,
            conventions=TIMELOOP,
        ),
        CostModelSpec(
            name="pipelined",
            summary="Timeloop's counts and energies; its cycles, and those of filling, draining and waiting.",
            factory=lazy("tilewright_costmodels.pipelined.model", "PipelinedModel"),
            interface=1,
            default_for=("calibration",),
            options=TimeloopOptions,
            capabilities=Capabilities(**_COUNTED, timing=True, vector_layers=True),
            approximations=OF_TIMELOOP,
            conventions=PIPELINED,
        ),
        CostModelSpec(
            name="maestro",
            default_for=("programs",),
            summary="MAESTRO's data-centric analysis, with equal results on the same inputs.",
            factory=lazy("tilewright_costmodels.maestro.model", "MaestroModel"),
            interface=1,
            options=MaestroOptions,
            capabilities=Capabilities(
                operations=("conv1d", "conv2d", "depthwise_conv1d", "depthwise_conv2d", "gemm"),
                max_operands=2,
                uneven_mappings=False,
                bypassing_mappings=False,
                window_loops=False,
                strided_window_unrolling=False,
                repeated_loops=False,
                max_unrolled_loops=4,
                tile_copies=2,
                outputs_span_windows=True,
            ),
            approximations=OF_MAESTRO,
            conventions=MAESTRO,
        ),
        CostModelSpec(
            name="oracle",
            summary="Executes mappings of small problems and counts every access.",
            factory=lazy("tilewright_costmodels.oracle.model", "OracleModel"),
            interface=1,
            options=OracleOptions,
            executes=True,
            # the numbers are NumPy's limits
            capabilities=Capabilities(
                **_COUNTED, max_dimensions=31, max_operands=30, sparse=True, groups=True, vector_layers=True
            ),
            conventions=ORACLE,
        ),
        CostModelSpec(
            name="timeloop_binary",
            summary="Timeloop itself, if installed: runs timeloop-model once per mapping.",
            factory=lazy("tilewright_costmodels.timeloop_binary.model", "TimeloopBinaryModel"),
            interface=1,
            capabilities=Capabilities(shared_bandwidth=True, inner_backing_store=True),
            options=TimeloopBinaryOptions,
            programs={"path": "timeloop-model"},
            hint="install Timeloop (github.com/NVlabs/timeloop), or give its path: --model-option path=PATH",
            approximations=(REMAINDER, *OF_TIMELOOP),
            conventions=TIMELOOP,
        ),
        CostModelSpec(
            name="zigzag",
            summary="ZigZag's own cost model, if the package zigzag-dse is installed.",
            factory=lazy("tilewright_costmodels.zigzag.model", "ZigZagModel"),
            interface=1,
            options=ZigZagOptions,
            capabilities=Capabilities(max_operands=2, memory_ports=True, value_widths=True, distinct_footprints=True),
            needs=("zigzag", "six"),
            hint="pip install zigzag-dse six",
            approximations=OF_ZIGZAG,
            conventions=ZIGZAG,
        ),
    ]
