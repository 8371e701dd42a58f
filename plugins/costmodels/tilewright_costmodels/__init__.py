"""Built-in cost models. Only names and options live here; a model is imported when it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from tilewright.conformability import Capabilities
from tilewright.hookspecs import hookimpl
from tilewright.plugin import CostModelSpec

if TYPE_CHECKING:
    from tilewright.costmodel import CostModel


class TimeloopOptions(BaseModel):
    """Options of `timeloop`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    link_transfers: bool = Field(
        default=True, description="neighbouring children pass words on, as Timeloop does unless told otherwise"
    )


def _timeloop(options: TimeloopOptions) -> CostModel:
    from tilewright_costmodels.timeloop.model import TimeloopModel

    return TimeloopModel(link_transfers=options.link_transfers)


class OracleOptions(BaseModel):
    """Options of `oracle`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_operations: int = Field(
        default=200_000, ge=1, le=10_000_000, description="larger problems are refused: every operation is executed"
    )


def _oracle(options: OracleOptions) -> CostModel:
    from tilewright_costmodels.oracle.model import OracleModel

    return OracleModel(max_operations=options.max_operations)


@hookimpl
def tilewright_plugins() -> list[CostModelSpec]:
    """The built-in cost models."""
    return [
        CostModelSpec(
            name="timeloop",
            summary="Timeloop's counts, energies and cycles on the same inputs.",
            factory=_timeloop,
            options=TimeloopOptions,
            capabilities=Capabilities(imperfect_factors=False),
            approximations=(
                "link_transfers",
                "holes",
                "halo",
                "sliding",
                "two_iterations",
                "bypass",
                "first_reads",
            ),
        ),
        CostModelSpec(
            name="oracle",
            summary="Executes mappings of small problems and counts what really happens.",
            factory=_oracle,
            options=OracleOptions,
            capabilities=Capabilities(max_dimensions=31, max_operands=30),  # NumPy's limits on axes and operands
        ),
    ]
