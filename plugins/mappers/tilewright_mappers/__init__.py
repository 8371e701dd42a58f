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


class TimeloopRandomOptions(BaseModel):
    """Options of `timeloop_random`; the stop rules' numbers are those of Timeloop's documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout: int = Field(default=1000, ge=0, description="stop after so many invalid mappings in a row; 0: never")
    victory: int = Field(default=500, ge=0, description="stop after so many valid mappings without a better; 0: never")
    batch: int = Field(default=4096, ge=1, le=1_000_000, description="most mappings priced at once")


class TimeloopHybridOptions(TimeloopRandomOptions):
    """Options of `timeloop_hybrid`."""

    permutations: int = Field(default=16, ge=1, description="orders of loops visited for one choice of factors")


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


def _timeloop_random(options: TimeloopRandomOptions) -> Mapper:
    from tilewright_mappers.timeloop_random import TimeloopRandomMapper

    return TimeloopRandomMapper(options.timeout, options.victory, options.batch)


def _timeloop_hybrid(options: TimeloopHybridOptions) -> Mapper:
    from tilewright_mappers.timeloop_hybrid import TimeloopHybridMapper

    return TimeloopHybridMapper(options.timeout, options.victory, options.permutations, options.batch)


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
        MapperSpec(
            name="timeloop_random",
            summary="Timeloop's random search: uniform, until its timeout or victory condition.",
            factory=_timeloop_random,
            options=TimeloopRandomOptions,
        ),
        MapperSpec(
            name="timeloop_hybrid",
            summary="Timeloop's hybrid search: random factors, their loop orders one after another.",
            factory=_timeloop_hybrid,
            options=TimeloopHybridOptions,
        ),
    ]
