"""Document of `map --prefill`: the passes of a language model."""

from __future__ import annotations

from typing import Literal

from tilewright.application.documents.searches import RunOutput
from tilewright.application.run.roofline import ROOFLINE
from tilewright.documents import Document
from tilewright.figures import Figure, Sheet
from tilewright.reports.costs import COSTS
from tilewright.tables import Column, numbers

PASSES = Sheet(
    Figure("name", Column("pass"), kind=str, meaning="`prefill`, or `decode_CONTEXT`: also the folder of its files."),
    Figure("first", of=lambda one: one.first, kind=int, meaning="Number of its first decoding step; 0: the prefill."),
    Figure("steps", numbers("passes"), kind=int, meaning="Number of passes with this work."),
    Figure("tokens", numbers("tokens"), kind=int, meaning="Tokens of each sequence that one pass processes."),
    Figure(
        "context",
        numbers("context"),
        kind=int,
        meaning="Tokens of each sequence up to the last one of a pass, in decoding rounded up to whole blocks.",
    ),
    views={"json": "name first steps tokens context", "table": "name steps tokens:4 context"},
)
"""Figures of passes; costs are those of one pass."""

SPEEDS = Sheet(
    Figure("counted", Column("counted"), kind=str, meaning="Layers that count, and how they follow each other."),
    Figure(
        "first_token_cycles",
        numbers("to the first token", "cycles", like="cycles"),
        kind=int | None,
        meaning="Cycles of the prefill.",
    ),
    Figure(
        "token_cycles",
        numbers("per token", "cycles", decimals=0),
        is_optional=True,
        meaning="Cycles of a decoding step, the mean of all; None without steps.",
    ),
    Figure(
        "total_cycles", numbers("in total", "cycles", like="cycles"), kind=int | None, meaning="Cycles of all passes."
    ),
    Figure(
        "first_token_seconds",
        numbers("to the first token", "ps"),
        meaning="Seconds of the prefill; None without a clock.",
        factor=1e12,
        is_optional=True,
    ),
    Figure(
        "token_seconds",
        numbers("per token", "ps"),
        meaning="Seconds of a decoding step, the mean of all.",
        factor=1e12,
        is_optional=True,
    ),
    Figure("total_seconds", numbers("in total", "ps"), meaning="Seconds of all passes.", factor=1e12, is_optional=True),
    Figure(
        "tokens_per_second",
        numbers("tokens/s"),
        is_optional=True,
        meaning="Tokens of all sequences in a second of decoding.",
    ),
    Figure(
        "prompt_token_pj",
        numbers("a prompt's token", "pJ"),
        meaning="Energy of the prefill in pJ, by token of the prompts.",
    ),
    Figure(
        "token_pj",
        numbers("a decoded token", "pJ"),
        is_optional=True,
        meaning="Energy of decoding in pJ, by generated token.",
    ),
    views={
        "json": "counted first_token_cycles token_cycles total_cycles first_token_seconds token_seconds total_seconds "
        "tokens_per_second prompt_token_pj token_pj",
        "cycles": "counted first_token_cycles token_cycles total_cycles prompt_token_pj:2 token_pj:1",
        "seconds": "counted first_token_seconds token_seconds total_seconds tokens_per_second",
    },
)
"""Time and energy of all passes, by way of counting. Energies are those of layers in sequence."""


OPERATORS = Sheet(
    Figure("pass", Column("pass"), lambda one: one.of, kind=str, meaning="Name of the pass."),
    Figure("name", Column("operator"), kind=str, meaning="Name of the layer, or of the vector layer."),
    Figure("unit", Column("unit"), kind=str, meaning="Unit that executes it."),
    Figure("count", numbers("count"), kind=int, meaning="Number of executions in a pass."),
    Figure("cycles", numbers("cycles"), kind=int, meaning="Cycles of all of them."),
    Figure(
        "share",
        numbers("% of cycles", decimals=1),
        factor=100,
        meaning="Fraction of the cycles of a pass, in sequence.",
    ),
    views={"json": "pass name unit count cycles share", "table": "pass name unit:3 count:4 cycles:2 share"},
)
"""Figures of the operators of a pass; those of the roofline follow."""


class PassRow(Document):
    """Passes with equal work. Costs are those of one pass; None while a layer has no mapping."""

    _figures = ((PASSES, "json"), (COSTS, "totals"))


class SpeedRow(Document):
    """Time and energy of all passes, by one way of counting."""

    _figures = ((SPEEDS, "json"),)


class OperatorRow(Document):
    """Operator of a pass, with its place below the roofline."""

    _figures = ((OPERATORS, "json"), (ROOFLINE, "json"))


class MemoryUse(Document):
    """Values of a language model in the outermost memory that holds weights."""

    memory: str
    """Name of the memory."""
    value_bits: int
    """Bits of a value there: those of weights."""
    weights: int
    """Matrices and look-ups, without biases, norms and positions."""
    cache_after_prefill: int
    """Keys and values of all sequences after the prefill."""
    cache: int
    """Keys and values of all sequences after the last decoding step."""
    states: int
    """States of all sequences."""
    total_bytes: int
    """Bytes of weights, and of cache and states at the end."""
    capacity_bytes: int | None
    """Bytes that the memory holds; None: it does not state them."""
    fits: bool | None
    """Whether all of it has room; None: unknown."""


class GenerateOutput(RunOutput):
    """Result of `map --prefill --json`, and `generation.json`."""

    kind: Literal["generate_output"] = "generate_output"
    """Kind of document."""
    objective: str
    """Name of the objective."""
    seed: int
    """Seed of random numbers."""
    batch: int
    """Sequences at a time."""
    prefill: int
    """Tokens of the prompt of each sequence."""
    decode: int
    """Decoding steps."""
    kv_block: int
    """Tokens in a block of the cache; a step reads whole blocks."""
    clock_ghz: float | None
    """Clock of the architecture in GHz; None if unknown."""
    passes: list[PassRow]
    """The prefill, and the decoding steps by their context."""
    speeds: list[SpeedRow]
    """Time and energy, by each way of counting that is known."""
    operators: list[OperatorRow]
    """Operators of each pass that are counted: layers, then vector layers."""
    memory: MemoryUse
    """Values that stay in memory."""
