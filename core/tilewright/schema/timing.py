"""Timing of memories and arrays (docs/cycles.md): what only cost models with the capability `timing` count."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tilewright.schema.problem import Name
from tilewright.schema.quantities import Count
from tilewright.values import Model


class Requests(Model):
    """Requests by which a memory fetches its tiles: runs of contiguous words (docs/cycles.md)."""

    along: tuple[Name, ...] = Field(min_length=1, max_length=100)
    """Dimension along which words are contiguous: the first of these that the tensor has."""
    words: Count
    """Largest number of words in one request."""
    cycles: Count
    """Cycles that a request takes in the outer memory, in addition to those of its words."""
    return_cycles: Count | None = None
    """Cycles of a request that returns a tile; None: `cycles`."""


class Rows(Model):
    """Rows of a DRAM; each bank has one of them open (docs/cycles.md). Consecutive rows are in different banks."""

    words: Count
    """Words of a row."""
    miss_cycles: Count
    """Cycles in which a bank closes a row and opens another one."""
    banks: Count = 1
    """Banks that open rows at the same time, or groups of banks whose accesses follow each other without a gap."""


class Timing(Model):
    """Timing of the tiles that arrive in a memory, and of what it sends (docs/cycles.md).

    The defaults delay nothing. Only cost models with the capability `timing` count other values.
    """

    prefetch: Literal["any", "next", "none", "through"] = "any"
    """Tiles that arrive during the work on the current ones: any number, the next ones (double buffering), or none.

    Words that pass `through` arrive with the tiles of the next inner memory, which ask for them.
    """
    burst_words: Count = 1
    """Words of one burst; a transfer from this memory moves whole bursts."""
    latency_cycles: Annotated[int, Field(ge=0, le=2**40, strict=True)] = 0
    """Cycles between the request of a transfer from this memory and its first word."""
    reload: bool = False
    """Whether each step loads its operands again, also those of the step before."""
    requests: Requests | None = None
    """Requests for the tiles that arrive and leave; None: a transfer is one run of words."""
    rows: Rows | None = None
    """Rows of this memory, which each run of words opens; None: all words take the same time."""
    step_cycles: Annotated[int, Field(ge=0, le=2**40, strict=True)] = 0
    """Least cycles of a step, which its commands take."""

    @model_validator(mode="after")
    def _check_passing(self) -> Self:
        if self.prefetch == "through" and (self.reload or self.step_cycles):
            raise ValueError(
                "prefetch: through has no steps; take reload and step_cycles away, or choose another prefetch"
            )
        return self


class Instruction(Model):
    """Instructions of an array: the shortest time of one, and the iterations that one covers (docs/cycles.md)."""

    memory: Name
    """Memory whose tiles are divided into instructions."""
    dimensions: tuple[Name, ...] = Field(min_length=1, max_length=100)
    """Dimension that an instruction iterates over: the first of these that the problem has."""
    iterations: Count
    """Largest number of its iterations in one instruction."""
    cycles: Count
    """Least cycles of one instruction."""
    load_cycles: Annotated[int, Field(ge=0, le=2**40, strict=True)] = 0
    """Least cycles of the last instruction before the tiles nearest to the array change, in which the next ones are loaded."""
    issue_cycles: Annotated[int, Field(ge=0, le=2**40, strict=True)] = 0
    """Cycles to issue one instruction. All of those between two such changes take at least the sum of theirs."""
