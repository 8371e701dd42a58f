"""Notes of the kernel for reports: the first refusal of a mapping, and peculiarities of Timeloop (quirks).

`SparseScratch.refused` is the least number so far. One lane, to which four refusals happen:

    refusal         kind   stage   place   its number                 named so far
    TARGET          6      2       0       (0 + 2 * 2**32) * 16 + 6   TARGET
    COMPRESSION     4      1       0       (0 + 1 * 2**32) * 16 + 4   COMPRESSION
    TOO_FEW_RANKS   0      0       1       (1 + 0 * 2**32) * 16 + 0   TOO_FEW_RANKS
    DECOMPRESSION   3      1       0       (0 + 1 * 2**32) * 16 + 3   TOO_FEW_RANKS

The third number is 16, which is less than all others: it has the earliest stage. Its kind is 16 % 16 = 0.
"""

from __future__ import annotations

import numpy as np

from tilewright.compiled import kernel_call, kernel_part, lanes, splat16
from tilewright.mapspace.batch import Bools, Ints
from tilewright_costmodels.timeloop.sparse.batch.tables import SparseScratch

(
    TOO_FEW_RANKS,
    OTHER_RANKS,
    TOO_MANY_LOOPS,
    DECOMPRESSION,
    COMPRESSION,
    MORE_RANKS,
    TARGET,
    SPATIAL_TILES,
    NO_UNITS,
    SPATIAL_AND_TEMPORAL,
    NEGATIVE_SAVING,
    CONDITIONS,
) = range(12)
"""Refusals (`report.refusal` has their texts)."""
_STAGE = (0, 0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 6)
"""Refusal -> its stage. A refusal of an earlier stage is named before those of later ones."""
_KINDS = 16
ACCEPTED = 1 << 62
"""Number of a mapping that is not refused."""
RANK_SHIFT, FLATTENED_SUBTILE, METADATA_NOT_SCALED, METADATA_READS_LOST = 1, 2, 4, 8
"""Bits of `SparseScratch.quirks`; `report.QUIRKS` has the texts."""


@kernel_part
def refuse(work: SparseScratch, where: Bools, kind: int, place: Ints, level: Ints, tensor: int) -> Bools:
    """Note a refusal in some lanes, for a report. Return where it is the first one, [B].

    Args:
        where: [B].
        place: [B]; of several refusals of one stage, the one with the least place is named; of one place, the least kind.
        level: [B]; where it is.
    """
    if work.reported[0]:
        return _refuse(work, where, kind, place, level, tensor)
    return splat16(False)


@kernel_call
def _refuse(work: SparseScratch, where: Bools, kind: int, place: Ints, level: Ints, tensor: int) -> Bools:
    number = (place + (_STAGE[kind] << 32)) * _KINDS + kind
    first: Bools = where & (lanes(work.refused) > number)
    work.refused[:] = np.where(first, number, lanes(work.refused))
    work.refused_level[:] = np.where(first, level, lanes(work.refused_level))
    work.refused_tensor[:] = np.where(first, tensor, lanes(work.refused_tensor))
    return first


def kind_of(number: int) -> int:
    """Return the kind of a refusal from its number in `SparseScratch.refused`."""
    return number % _KINDS


@kernel_part
def note(work: SparseScratch, level: int, tensor: int, quirk: int, where: Bools) -> None:
    """Note a quirk in some lanes, for a report."""
    if work.reported[0]:
        work.quirks[level, tensor][:] = lanes(work.quirks[level, tensor]) | np.where(where, quirk, 0)


@kernel_part
def clear_notes(work: SparseScratch) -> None:
    """Forget the notes of earlier mappings."""
    if work.reported[0]:
        work.refused[:] = splat16(0) + ACCEPTED
        for level in range(work.quirks.shape[0]):
            for t in range(work.quirks.shape[1]):
                work.quirks[level, t][:] = splat16(0)
        for option in range(len(work.narrowed)):
            work.narrowed[option][:] = splat16(False)
