"""Where the loops of a nest stand among directives: levels, the letters of each, and which loop gives a tile its size.

Only the order of loops matters here, not their numbers, so mappings with the same loops share one shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.notations.directives.program import WINDOWS
from tilewright.notations.directives.roles import Roles, refusal


@dataclass(frozen=True)
class NestLoop:
    """One loop outside the tile that a PE holds: MAESTRO's letter, and whether it is in space."""

    letter: str
    spatial: bool


@dataclass(frozen=True)
class LevelShape:
    """The directives of one level, outermost first; letters that stay whole may be left out.

    Attributes:
        split: the letter of the SpatialMap.
        tiles: letter -> index of the loop whose tile it takes; letters of `order` without one stay whole.
        clusters: index of the loop in space, whose trips are the sub-clusters; None: there is one.
        folded: index of the loop in time over the same letter, whose tile the loop in space must divide.
        diagonal: Y or X where the split is over R or S: each sub-cluster takes the rows or columns that its piece of
            the filter meets, in a second SpatialMap.
    """

    order: tuple[str, ...]
    split: str
    tiles: Mapping[str, int]
    clusters: int | None
    folded: int | None
    diagonal: str | None = None


@dataclass
class _Draft:
    """A level while it is built."""

    order: list[str] = field(default_factory=list)
    tiles: dict[str, int] = field(default_factory=dict)
    split: int | None = None
    folded: int | None = None


def shape_of(loops: Sequence[NestLoop], roles: Roles) -> tuple[LevelShape, ...]:
    """Loops in time before a split and the split itself are one level, each letter once.

    Args:
        loops: outermost first, those of one trip left out.

    Raises:
        NotConformableError: a filter cut in time outside L1, or in space under a stride; a letter that would need two
            loops in one level.
    """
    drafts = [_Draft()]
    for index, loop in enumerate(loops):
        letter, draft = loop.letter, drafts[-1]
        partner = _partner(loop, roles)
        more_splits = any(later.spatial for later in loops[index:])
        split = None if draft.split is None else loops[draft.split]
        taken = split is not None and (
            more_splits or letter in draft.order or letter in (split.letter, _partner(split, roles))
        )
        if taken or partner in draft.order:
            draft = _Draft()
            drafts.append(draft)
        if loop.spatial:
            draft.split, draft.folded = index, draft.tiles.get(letter)
        elif letter not in draft.order:
            draft.order.append(letter)
        elif draft.order[-1] != letter:
            message = "would need two loops in one level; MAESTRO has one per dimension"
            raise refusal("repeated", f"dimension {roles.dimension(letter)}", message)
        draft.tiles[letter] = index
    return tuple(_level(draft, loops, roles) for draft in drafts)


def _partner(loop: NestLoop, roles: Roles) -> str | None:
    """Y or X for a loop over R or S, None for any other. Raises NotConformableError: no directives cut a filter so."""
    if not roles.is_window(loop.letter):
        return None
    where = f"dimension {roles.dimension(loop.letter)}"
    if not loop.spatial:
        raise refusal("window", where, "steps outside L1; MAESTRO wants filters whole in time")
    partner = next(name for name, window in WINDOWS.items() if window == loop.letter)
    if roles.strides.get(partner, 1) != 1:
        raise refusal("window", where, "is split under a stride; MAESTRO's diagonals are those of stride 1")
    return partner


def _level(draft: _Draft, loops: Sequence[NestLoop], roles: Roles) -> LevelShape:
    if draft.split is None:
        split, diagonal = _idle(draft, roles), None
    else:
        split, diagonal = loops[draft.split].letter, _partner(loops[draft.split], roles)
    order = [*draft.order, *(letter for letter in (diagonal, split) if letter and letter not in draft.order)]
    return LevelShape(tuple(order), split, draft.tiles, draft.split, draft.folded, diagonal)


def _idle(draft: _Draft, roles: Roles) -> str:
    """A level needs a SpatialMap: with one sub-cluster it is a loop like any other."""
    letters = set(roles.letters.values())
    free = (letter for letter in ("R", "M", "N", "K") if letter in letters and letter not in draft.order)
    moved = (letter for letter in draft.order if letter not in WINDOWS)
    return next(free, None) or next(moved, None) or "C"
