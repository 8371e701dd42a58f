"""Rivals: group mappings that are listed or drawn to refute the bound of a certificate.

Nothing of the searches is used. A rival is a plain group mapping, judged by the rules of groups and priced by the cost
model like a file of a user. So a lemma that is wrong, or code that leaves a case out, does not hide a cheaper one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.schema.group import GroupMapping


@dataclass(frozen=True)
class Rivals:
    """The best of some rivals.

    Attributes:
        tried: mappings that were judged; `legal` of them were priced.
        every: all rivals of the space were among them.
        value: the least cost, in the unit of the objective; inf if none is legal.
        group: a group mapping of that cost; None if none is legal, or a group cannot express it.
    """

    tried: int
    legal: int
    every: bool
    value: float
    group: GroupMapping | None
