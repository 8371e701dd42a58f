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
        )
    ]
