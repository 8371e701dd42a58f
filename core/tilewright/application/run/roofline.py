"""Roofline of operators: operations for each word of the outermost memory, and the fraction of the peak.

a product of 64 x 64 x 64 that reads 8,192 words and writes 4,096 by separate ports: 262,144 / 8,192 = 32 MACs per word
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.figures import Figure, Sheet
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.tables import Column, numbers


@dataclass(frozen=True)
class Roof:
    """An operator below the roofline of its machine.

    Attributes:
        report: costs of one execution.
        memory: the outermost memory whose busiest port takes longest; None: the model reports no ports.
        words: words that pass this port.
        words_per_cycle: rate of the port; None: it is not limited.
        bits: bits of a word there.
    """

    report: Report
    memory: str | None = None
    words: int | None = None
    words_per_cycle: float | None = None
    bits: int = 1

    @property
    def macs_per_word(self) -> float | None:
        return self.report.macs / self.words if self.words else None

    @property
    def macs_per_byte(self) -> float | None:
        return None if self.macs_per_word is None else self.macs_per_word * 8 / self.bits


def roof_of(report: Report | None, architecture: Architecture | None) -> Roof | None:
    """Return the place of an operator below the roofline; None without a valid report.

    Of several outermost memories, the one counts whose port takes longest.
    """
    if report is None or architecture is None or not report.valid:
        return None
    memories = {memory.name: memory for memory in architecture.clusters[0].memories}
    ports = [limit for limit in report.limits if limit.name in memories and limit.words]
    if not ports:
        return Roof(report)
    port = max(ports, key=lambda limit: (limit.cycles, limit.words or 0))
    return Roof(report, port.name, port.words, port.words_per_cycle, memories[port.name].word_bits)


ROOFLINE = Sheet(
    Figure(
        "memory",
        Column("memory"),
        kind=str | None,
        meaning="Outermost memory whose port takes longest; None: no ports.",
    ),
    Figure("words", numbers("words"), kind=int | None, meaning="Words that pass this port."),
    Figure("words_per_cycle", numbers("words/cycle"), meaning="Rate of this port; None: it is not limited."),
    Figure(
        "macs_per_word",
        numbers("MACs/word"),
        has_total=False,
        meaning="Operations for each word that passes this port.",
    ),
    Figure("macs_per_byte", numbers("MACs/byte"), meaning="Operations for each byte that passes this port."),
    Figure(
        "limited_by",
        Column("bound by"),
        lambda roof: roof.report.limited_by,
        kind=str | None,
        meaning="Compute units, or the port of a memory, that take longest.",
    ),
    Figure(
        "of_peak",
        numbers("% of peak", decimals=1),
        lambda roof: roof.report.utilization,
        factor=100,
        meaning="Fraction of the operations that the units would do in this time.",
    ),
    views={
        "json": "memory words words_per_cycle macs_per_word macs_per_byte limited_by of_peak",
        "map": "macs_per_word:8",
        "table": "macs_per_word limited_by of_peak",
    },
)
"""Figures of operators below the roofline."""
