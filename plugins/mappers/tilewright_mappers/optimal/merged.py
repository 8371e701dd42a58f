"""Dimensions that are alike are searched as one (docs/optimal_proof.md, Lemma 19)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Costs, Proposals, Relaxation
from tilewright.schema.constraints import Factors, Variant
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem, Rank, Tensor

Likeness = tuple[tuple[bool, ...], tuple[bool, ...]]
"""Which tensors a dimension indexes, and which slots may have a loop of it."""


@dataclass(frozen=True)
class Merged:
    """A map space, and its image in which one dimension replaces all that are alike.

    Attributes:
        whole: the map space.
        space: the image. A merged dimension has the name of its first member, and the product of their sizes.
        members: of each dimension of the image, the dimensions that it replaces.
    """

    whole: MapSpace
    space: MapSpace
    members: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, space: MapSpace, relaxation: Relaxation) -> Merged | None:
        """Return the image of a space; None if no dimensions are alike."""
        counted = relaxation.exact and not (relaxation.rounded or relaxation.order_matters)
        if space.factors != "perfect" or space.max_unrolled_loops is not None or not counted:
            return None
        adjacent = relaxation.neighbours and _feeds_units(space)
        groups: dict[tuple[Likeness, int] | int, list[int]] = {}
        before, run = None, 0
        for d, size in enumerate(space.problem.sizes if _is_plain(space.problem) else ()):
            like = _likeness(space, d)
            if adjacent and size > 1 and (like is None or like != before):
                before, run = like, run + 1
            groups.setdefault(d if like is None else (like, run), []).append(d)
        if all(len(group) == 1 for group in groups.values()):
            return None
        members = tuple(map(tuple, groups.values()))
        names = space.problem.dimension_names
        sizes = {names[group[0]]: int(np.prod([space.problem.sizes[d] for d in group])) for group in members}
        merged = {names[group[0]] for group in members if len(group) > 1}
        image = replace(space, problem=_problem(space.problem, sizes), rules=_rules(space.rules, sizes, merged))
        return cls(space, image, members)

    def unmerged(self, rows: Candidates) -> Candidates:
        """Return mappings of the whole space with the costs of those of the image.

        A member takes the factors that its size and the rest of the merged trips share, from the outermost slot inwards.
        """
        n, slots = rows.trips.shape[:2]
        dims = len(self.whole.problem.sizes)
        trips, place = np.ones((n, slots, dims), np.int64), np.zeros(dims, np.int64)
        for number, group in enumerate(self.members):
            place[list(group)] = number
            left = rows.trips[:, :, number].copy()
            for d in group:
                rest = np.full(n, self.whole.problem.sizes[d])
                for s in range(slots):
                    trips[:, s, d] = np.gcd(left[:, s], rest)
                    left[:, s] //= trips[:, s, d]
                    rest //= trips[:, s, d]
        positions = np.argsort(rows.orders, axis=2)[:, :, place]
        return Candidates(self.whole, trips, np.argsort(positions, axis=2, kind="stable").astype(np.int8), rows.keep)

    def proposals(self, search: Proposals) -> Proposals:
        """Propose the mappings of a search of the image in the whole space."""
        costs: Costs | None = None
        with closing(search):
            while True:
                try:
                    rows = next(search) if costs is None else search.send(costs)
                except StopIteration:
                    return
                costs = yield self.unmerged(cast("Candidates", rows))


def _is_plain(problem: Problem) -> bool:
    """Return whether each coordinate is a dimension, and no tensor has a dimension twice; those of size 1 do not count."""
    for tensor in problem.tensors:
        ranks = [_terms(problem.dimensions, rank) for rank in tensor.projection]
        if any(list(terms.values()) not in ([], [1]) for terms in ranks):
            return False
        used = [name for terms in ranks for name in terms]
        if len(set(used)) < len(used):
            return False
    return True


def _terms(sizes: Mapping[str, int], rank: Rank) -> dict[str, int]:
    """Return the terms of a coordinate whose dimensions are in `sizes`, and longer than 1."""
    return {name: c for name, c in rank.terms.items() if sizes.get(name, 1) > 1}


def _feeds_units(space: MapSpace) -> bool:
    """Return whether some tensor may have no memory inside a fanout: then units next to each other may share its words."""
    always, _ = space.keeps
    fanouts = [slot for slot in space.slots if slot.spatial and slot.most != 1]
    return not all(always[slot.entry + 1 :].any(axis=0).all() for slot in fanouts)


def _likeness(space: MapSpace, d: int) -> Likeness | None:
    """Return what dimensions that are alike have in common; None: the dimension is like no other.

    A rule may forbid its loops in a slot. Any other rule on it tells it apart.
    """
    name, size = space.problem.dimension_names[d], space.problem.sizes[d]
    free = all(slot.lowest[d] == 1 and slot.highest[d] in (1, size) for slot in space.slots)
    if size == 1 or not free or any(d in slot.order.named for slot in space.slots):
        return None
    indexes = tuple(name in tensor.dimensions for tensor in space.problem.tensors)
    return indexes, tuple(slot.highest[d] == size for slot in space.slots)


def _problem(problem: Problem, sizes: dict[str, int]) -> Problem:
    """Return the image of a problem without windows."""
    tensors = []
    for tensor in problem.tensors:
        ranks = tuple(Rank(terms=FrozenDict(terms)) for rank in tensor.projection if (terms := _terms(sizes, rank)))
        tensors.append(Tensor(name=tensor.name, role=tensor.role, projection=ranks))
    # a merged dimension may be longer than those of files
    return Problem.model_construct(name=problem.name, dimensions=FrozenDict(sizes), tensors=tuple(tensors))


def _rules(rules: Variant, sizes: dict[str, int], merged: set[str]) -> Variant:
    """Return the rules on the dimensions of the image. On a merged one, all that binds is a rule against any loop."""

    def factors(some: Factors) -> Factors:
        return FrozenDict({d: trips for d, trips in some.items() if d in sizes and (d not in merged or trips.max == 1)})

    def only(some: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if some is None else tuple(d for d in some if d in sizes)

    return Variant(
        temporal=tuple(
            rule.model_copy(update={"factors": factors(rule.factors), "only": only(rule.only)})
            for rule in rules.temporal
        ),
        spatial=tuple(
            rule.model_copy(update={"factors": factors(rule.factors), "only": only(rule.only)})
            for rule in rules.spatial
        ),
        keep=rules.keep,
        storage=rules.storage,
    )
