"""Built-in cost models. Only names and options live here; a model is imported when it is built."""

from __future__ import annotations

from pydantic import Field

from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import CostModelSpec, Options, lazy
from tilewright_costmodels.approximations import OF_MAESTRO, OF_TIMELOOP, OF_ZIGZAG, REMAINDER


class TimeloopOptions(Options):
    """Options of `timeloop`."""

    link_transfers: bool = Field(
        default=True, description="neighbouring children pass words on, as Timeloop does unless told otherwise"
    )


class OracleOptions(Options):
    """Options of `oracle`."""

    max_operations: int = Field(
        default=200_000, ge=1, le=10_000_000, description="larger problems are refused: every operation is executed"
    )


class MaestroOptions(Options):
    """Options of `maestro`."""

    faithful: bool = Field(
        default=False, description="buffers too small for MAESTRO's requirement are a warning only, as with MAESTRO"
    )
    simd_lanes: int | None = Field(
        default=None, ge=1, description="MACs per PE and cycle for MAESTRO's own files, which cannot say it"
    )
    num_pes: int | None = Field(default=None, ge=1, description="PEs, instead of those in MAESTRO's hardware file")
    l1_size: int | None = Field(default=None, ge=1, description="the same for the elements of an L1")
    l2_size: int | None = Field(default=None, ge=1, description="the same for the elements of the L2")
    noc_bandwidth: int | None = Field(default=None, ge=1, description="the same for the network, elements per cycle")
    noc_latency: int | None = Field(default=None, ge=0, description="the same for the network's latency, cycles")
    offchip_bandwidth: int | None = Field(default=None, ge=1, description="the same for DRAM, elements per cycle")


class TimeloopBinaryOptions(Options):
    """Options of `timeloop_binary`."""

    path: str = Field(default="timeloop-model", min_length=1, description="the program, by name or by path")
    seconds: float = Field(default=60.0, gt=0, description="how long it may take for one mapping")


class ZigZagOptions(Options):
    """Options of `zigzag`."""

    seconds: float = Field(default=60.0, gt=0, description="how long it may take for one mapping")


@hookimpl
def tilewright_plugins() -> list[CostModelSpec]:
    """The built-in cost models."""
    return [
        CostModelSpec(
            name="timeloop",
            summary="Timeloop's counts, energies and cycles on the same inputs.",
            factory=lazy("tilewright_costmodels.timeloop.model", "TimeloopModel"),
            options=TimeloopOptions,
            capabilities=Capabilities(value_widths=True),
            approximations=OF_TIMELOOP,
        ),
        CostModelSpec(
            name="maestro",
            summary="MAESTRO's data-centric analysis, equal to it on the same inputs.",
            factory=lazy("tilewright_costmodels.maestro.model", "MaestroModel"),
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
        ),
        CostModelSpec(
            name="oracle",
            summary="Executes mappings of small problems and counts what really happens.",
            factory=lazy("tilewright_costmodels.oracle.model", "OracleModel"),
            options=OracleOptions,
            executes=True,
            capabilities=Capabilities(max_dimensions=31, max_operands=30, value_widths=True),  # NumPy's limits
        ),
        CostModelSpec(
            name="timeloop_binary",
            summary="Timeloop itself, where it is on the machine: timeloop-model, run once per mapping.",
            factory=lazy("tilewright_costmodels.timeloop_binary.model", "TimeloopBinaryModel"),
            options=TimeloopBinaryOptions,
            programs={"path": "timeloop-model"},
            hint="install Timeloop (github.com/NVlabs/timeloop), or give its path: --model-option path=PATH",
            approximations=(REMAINDER, *OF_TIMELOOP),
        ),
        CostModelSpec(
            name="zigzag",
            summary="ZigZag's own cost model, where the package zigzag-dse is installed.",
            factory=lazy("tilewright_costmodels.zigzag.model", "ZigZagModel"),
            options=ZigZagOptions,
            capabilities=Capabilities(max_operands=2, memory_ports=True, value_widths=True),
            needs=("zigzag", "six"),
            hint="pip install 'zigzag-dse>=3.9' six",
            approximations=OF_ZIGZAG,
        ),
    ]
