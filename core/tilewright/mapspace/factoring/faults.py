"""Messages that explain why a space has no factorisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.mapspace.skeleton import Slot


def of_dimension(name: str, size: int, dim: int, slots: Sequence[Slot], describe: Sequence[str]) -> str:
    """Return the message for a dimension, number `dim`, that no factorisation satisfies.

    `describe` holds the names of the slots.
    """
    wishes = [_wish(slot.lowest[dim], slot.highest[dim], size) for slot in slots]
    told = [f"{where} {wish}" for where, wish in zip(describe, wishes, strict=True) if wish]
    return f"dimension {name}: no factorisation of {size} satisfies the rules: {', '.join(told)}"


def of_fanout(slot: Slot, reached: int, describe: str) -> str:
    """Return the message for an unrolling that cannot use enough sub-clusters."""
    return f"{describe} must use at least {slot.least} sub-clusters, at most {reached} can be used"


def of_fanouts(slots: Sequence[Slot], describe: Sequence[str]) -> str:
    """Return the message for unrollings that cannot be satisfied together."""
    for slot, where in zip(slots, describe, strict=True):
        fixed, most = math.prod(slot.lowest), slot.most or 1
        if fixed > most:
            return f"{where} must use at least {fixed} sub-clusters and has {most}"
    return "no factors satisfy all spatial unrollings at once: " + ", ".join(
        f"{where} may use {slot.least} to {slot.most}" for slot, where in zip(slots, describe, strict=True)
    )


def _wish(lowest: int, highest: int, size: int) -> str:
    """Return the bounds of a slot on a dimension as text, empty if it has none."""
    if lowest == highest > 1:
        return f"must have exactly {lowest}"
    if lowest > 1:
        return f"must have at least {lowest}" + (f" and at most {highest}" if highest < size else "")
    return f"may have at most {highest}" if highest < size else ""
