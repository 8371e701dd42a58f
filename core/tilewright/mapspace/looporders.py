"""Loop orders: counting, ranking and sampling, for many mappings at once.

Only loops of more than one trip have an order. A rule may fix the outermost and the innermost loops, and the relative
order of some loops between them. An order is built by inserting the other loops into that sequence. So k loops between
have k! / m! orders, if m of them keep a relative order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.mapspace.batch import Bools, Ints, Positions
from tilewright.mapspace.skeleton import OrderRule
from tilewright.schema.problem import Problem

MAX_LISTED = 7
"""Number of dimensions up to which all orders (13,700 of them) are listed in a table."""


def arrange(non_unit: Bools, rule: OrderRule, choose: Callable[[Ints], Ints]) -> Positions:
    """Return one loop order per row, as dimension indices, outermost first, int8 [n, position].

    Args:
        non_unit: Dimensions with more than one trip, [n, dimension]. The others come first, in the problem's order.
        rule: Order that the loops must have.
        choose: Function from the number of possible positions of the next loop [n] to the chosen
            positions, counted from 0.
    """
    dims = non_unit.shape[1]
    place = np.full(non_unit.shape, -1, dtype=np.int64)
    length = np.zeros(len(non_unit), dtype=np.int64)
    others = [dim for dim in range(dims) if dim not in rule.named]
    for dim in [*rule.relative, *others, *rule.innermost, *reversed(rule.outermost)]:
        on = non_unit[:, dim]
        if not on.any():
            continue
        if dim in others:
            spot = choose(np.where(on, length + 1, 1))
        else:
            spot = np.zeros_like(length) if dim in rule.outermost else length
        place += (place >= spot[:, None]) & on[:, None]
        place[on, dim] = spot[on]
        length = length + on
    return np.argsort(np.where(non_unit, place + dims, np.arange(dims)), axis=1).astype(np.int8)


def by_rank(rank: Ints) -> Callable[[Ints], Ints]:
    """Return a `choose` function for `arrange`, with a different order for every rank.

    Ranks are below `count_orders`.
    """
    rest = rank

    def choose(places: Ints) -> Ints:
        nonlocal rest
        spot = rest % places
        rest = rest // places
        return spot.astype(np.int64)

    return choose


def count_orders(non_unit: Bools, rule: OrderRule) -> Ints:
    """Return the number of orders of each row, as exact integers in an object array [n]."""
    dims = non_unit.shape[1]
    factorial = np.array([math.factorial(k) for k in range(dims + 1)], dtype=np.object_)
    fixed = non_unit[:, list(rule.relative)].sum(axis=1)
    between = non_unit.sum(axis=1) - non_unit[:, [*rule.outermost, *rule.innermost]].sum(axis=1)
    return np.asarray(factorial[between] // factorial[fixed])


class OrderTable:
    """Table of the orders of one slot, prepared for sampling.

    Bit i of a pattern is set if dimension able[i] has a loop of more than one trip.
    """

    def __init__(self, dims: int, able: Sequence[int], rule: OrderRule) -> None:
        self.dims, self.able, self.rule = dims, tuple(able), rule.among(able)
        self.listed = len(self.able) <= MAX_LISTED
        if self.listed:
            patterns = np.arange(2 ** len(self.able))
            self.count: Ints = count_orders(self.non_unit(patterns), self.rule).astype(np.int64)
            self.start: Ints = np.cumsum(self.count) - self.count
            rank = np.arange(int(self.count.sum())) - np.repeat(self.start, self.count)
            self.orders = arrange(self.non_unit(np.repeat(patterns, self.count)), self.rule, by_rank(rank))

    def non_unit(self, patterns: Ints) -> Bools:
        """Return which dimensions the patterns contain, bool [n, dimension]."""
        result = np.zeros((len(patterns), self.dims), dtype=np.bool_)
        for bit, dim in enumerate(self.able):
            result[:, dim] = (patterns >> bit) & 1 > 0
        return result

    def draw(self, rng: np.random.Generator, patterns: Ints) -> Positions:
        """Draw orders [n, position]; all allowed orders of a row's loops are equally likely."""
        if not self.listed:
            return arrange(self.non_unit(patterns), self.rule, lambda places: rng.integers(0, places))
        which = (rng.random(len(patterns)) * self.count[patterns]).astype(np.int64)
        return np.take(self.orders, self.start[patterns] + which, axis=0)


@dataclass(frozen=True)
class Prefix:
    """Node of Sunstone's ordering trie: the innermost loops of a block, and the reuse they offer.

    Attributes:
        loops: Dimension indices, innermost first.
        reuse: Pairs (tensor, dimension) such that the tile of the tensor stays or slides while that
            loop runs. Loops outside the prefix add no reuse, in any order.
    """

    loops: tuple[int, ...]
    reuse: frozenset[tuple[int, int]]


def ordering_trie(problem: Problem, tensors: Sequence[int] | None = None) -> list[Prefix]:
    """Return prefixes in which each loop adds reuse to its inner loops (Sunstone, section IV-A).

    A tile stays while no loop so far indexes its tensor. It slides over one loop of a window, that
    is, of a coordinate that sums several dimensions. After sliding, it offers no further reuse.

    A loop that no tensor in reuse is indexed by follows at once, because later it adds no more: it ends no reuse, and
    tensors only leave. So each branch ends the reuse of a tensor, and the branches are few even for many dimensions.
    All reuse-maximal prefixes are among those returned, each with its lowest dimensions innermost.

    Args:
        tensors: The tensors to count (None: all).
    """
    names = problem.dimension_names
    wanted = range(len(problem.tensors)) if tensors is None else tensors
    stays = {t: {names.index(d) for d in names if d not in problem.tensors[t].dimensions} for t in wanted}
    slides = {
        t: {names.index(d) for rank in problem.tensors[t].projection if len(rank.terms) > 1 for d in rank.terms}
        for t in wanted
    }
    listed: dict[frozenset[tuple[int, int]], Prefix] = {}  # equal reuse has equal branches

    def grow(node: Prefix, alive: Sequence[int]) -> None:
        closed = [dim for dim in range(len(names)) if dim not in node.loops and all(dim in stays[t] for t in alive)]
        if alive and closed:
            node = Prefix((*node.loops, *closed), node.reuse | {(t, dim) for t in alive for dim in closed})
        if node.reuse in listed:
            return
        listed[node.reuse] = node
        for dim in range(len(names)):
            gained = {(t, dim) for t in alive if dim in stays[t] or dim in slides[t]}
            if dim not in node.loops and gained:
                grow(Prefix((*node.loops, dim), node.reuse | gained), [t for t in alive if dim in stays[t]])

    grow(Prefix((), frozenset()), list(wanted))
    return [node for node in listed.values() if node.loops]


def reuse_maximal(nodes: Sequence[Prefix]) -> list[Prefix]:
    """Return one node per maximal set of reuse: no other node offers the same and more."""
    first: dict[frozenset[tuple[int, int]], Prefix] = {}
    for node in nodes:
        first.setdefault(node.reuse, node)
    return [node for node in first.values() if not any(node.reuse < other for other in first)]


def distinct_reuse_orders(problem: Problem, tensors: Sequence[int] | None = None) -> Positions:
    """Return one complete loop order per reuse-maximal prefix, outermost first, int8 [k, position].

    If no loop offers reuse, one order is returned.
    """
    dims = range(len(problem.dimensions))
    prefixes = [node.loops for node in reuse_maximal(ordering_trie(problem, tensors))] or [()]
    return np.array([[*(d for d in dims if d not in loops), *reversed(loops)] for loops in prefixes], dtype=np.int8)
