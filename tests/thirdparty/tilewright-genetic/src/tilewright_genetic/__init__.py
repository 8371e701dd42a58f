"""A genetic search for mappings. Only its name and options live here; the search is imported when it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from tilewright.plugin import MapperSpec, hookimpl

if TYPE_CHECKING:
    from tilewright.plugin import Mapper


class Options(BaseModel):
    """Options of `genetic`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    population: int = Field(default=64, ge=2, description="mappings that live at a time")
    mutation: float = Field(default=0.5, ge=0, le=1, description="share of children that move a prime factor")


def _genetic(options: Options) -> Mapper:
    from tilewright_genetic.search import Genetic

    return Genetic(options.population, options.mutation)


@hookimpl
def tilewright_plugins() -> list[MapperSpec]:
    """The one plugin of this distribution."""
    return [MapperSpec(name="genetic", summary="Small genetic search.", factory=_genetic, options=Options)]
