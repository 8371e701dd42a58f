"""A genetic search for mappings. Only its name and options live here; the search is imported when it is built."""

from __future__ import annotations

from pydantic import Field

from tilewright.plugin import MapperSpec, Options, hookimpl, lazy


class GeneticOptions(Options):
    """Options of `genetic`."""

    population: int = Field(default=64, ge=2, description="mappings that live at a time")
    mutation: float = Field(default=0.5, ge=0, le=1, description="share of children that move a prime factor")


@hookimpl
def tilewright_plugins() -> list[MapperSpec]:
    """The one plugin of this distribution."""
    factory = lazy("tilewright_genetic.search", "Genetic")
    return [
        MapperSpec(
            name="genetic", summary="Small genetic search.", factory=factory, interface=1, options=GeneticOptions
        )
    ]
