"""Built-in mappers. Only names and options live here; a mapper is imported when it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from tilewright.hookspecs import hookimpl
from tilewright.plugin import MapperSpec

if TYPE_CHECKING:
    from tilewright.mapper import Mapper


class RandomOptions(BaseModel):
    """Options of `random`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int = Field(default=8192, ge=1, le=1_000_000, description="mappings drawn and priced at once")


class ExhaustiveOptions(BaseModel):
    """Options of `exhaustive`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: int = Field(default=10_000_000, ge=1, description="largest space it will enumerate")
    batch: int = Field(default=8192, ge=1, le=1_000_000, description="mappings priced at once")


def _random(options: RandomOptions) -> Mapper:
    from tilewright_mappers.random import RandomMapper

    return RandomMapper(options.batch)


def _exhaustive(options: ExhaustiveOptions) -> Mapper:
    from tilewright_mappers.exhaustive import ExhaustiveMapper

    return ExhaustiveMapper(options.limit, options.batch)


@hookimpl
def tilewright_plugins() -> list[MapperSpec]:
    """The built-in mappers."""
    return [
        MapperSpec(
            name="random",
            summary="Uniform random mappings until the budget is spent.",
            factory=_random,
            options=RandomOptions,
        ),
        MapperSpec(
            name="exhaustive",
            summary="Every different mapping; proves its best the best of the space.",
            factory=_exhaustive,
            options=ExhaustiveOptions,
        ),
    ]
