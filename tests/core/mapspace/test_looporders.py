"""Loop orders by reuse: the figures of Sunstone's paper, and what their rules promise."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from support.problems import problem_of
from tilewright.mapspace.looporders import (
    arrange,
    by_rank,
    count_orders,
    distinct_reuse_orders,
    ordering_trie,
    reuse_maximal,
)
from tilewright.mapspace.skeleton import OrderRule
from tilewright.schema.problem import Problem


@pytest.mark.parametrize(
    ("rule", "orders"),
    [
        (OrderRule(innermost=(0,)), {"1230", "1320", "2130", "2310", "3120", "3210"}),
        (OrderRule(outermost=(2,), innermost=(3, 0)), {"2130"}),
        (OrderRule(outermost=(3,), relative=(2, 0)), {"3120", "3210", "3201"}),
    ],
)
def test_outermost_and_innermost_loops_leave_the_orders_of_the_others(rule: OrderRule, orders: set[str]) -> None:
    non_unit = np.ones((len(orders), 4), np.bool_)
    assert count_orders(non_unit, rule).tolist() == [len(orders)] * len(orders)
    listed = arrange(non_unit, rule, by_rank(np.arange(len(orders))))
    assert {"".join(map(str, order)) for order in listed} == orders


KERNELS = {
    "conv1d": (problem_of("k p", "c p+r", "k c r"), 4),
    "conv2d": (problem_of("n k p q", "n c p+r q+s", "k c r s"), 8),
    "mttkrp": (problem_of("i j", "i k l", "k j", "l j"), 7),
    "ttmc": (problem_of("i l m", "i j k", "j l", "k m"), 10),
    "sddmm": (problem_of("i j", "i j", "i k", "k j"), 3),
    "tcl": (problem_of("l m n", "i j k", "i l", "j m", "k n"), 36),
}


@pytest.mark.parametrize("name", KERNELS)
def test_orders_kept_are_as_many_as_the_paper_counts(name: str) -> None:
    kernel, count = KERNELS[name]
    assert len(reuse_maximal(ordering_trie(kernel))) == count
    assert len(distinct_reuse_orders(kernel)) == count


def test_the_orders_of_the_one_dimensional_convolution_are_those_of_figure_4() -> None:
    kernel, _ = KERNELS["conv1d"]
    prefixes = {
        "".join(kernel.dimension_names[dim] for dim in node.loops) for node in reuse_maximal(ordering_trie(kernel))
    }
    assert prefixes == {"kp", "kr", "p", "rc"}


def reuse(kernel: Problem, order: Sequence[int]) -> set[tuple[int, int]]:
    """(tensor, dimension) reused by a whole order, outermost first, from the definition."""
    found = set()
    for number, tensor in enumerate(kernel.tensors):
        for dim in reversed(order):
            name = kernel.dimension_names[dim]
            if name not in tensor.dimensions:
                found.add((number, dim))
                continue
            if any(len(rank.terms) > 1 and name in rank.terms for rank in tensor.projection):
                found.add((number, dim))
            break
    return found


@pytest.mark.parametrize("name", ["conv1d", "mttkrp", "ttmc", "sddmm", "tcl"])
def test_no_order_reuses_what_no_kept_order_does(name: str) -> None:
    kernel, _ = KERNELS[name]
    kept = [reuse(kernel, [int(d) for d in order]) for order in distinct_reuse_orders(kernel)]
    for order in itertools.permutations(range(len(kernel.dimensions))):
        assert any(reuse(kernel, order) <= best for best in kept)
    for index, one in enumerate(kept):
        assert not any(one <= other for number, other in enumerate(kept) if number != index)


def contraction(dims: int) -> Problem:
    """Three tensors over a third of the dimensions each, as in networks of tensors."""
    names = [f"{first}{second}" for first in "abcdefgh" for second in "abcdefgh"][:dims]
    third = dims // 3
    return problem_of(
        " ".join(names[:third] + names[2 * third :]), " ".join(names[: 2 * third]), " ".join(names[third:])
    )


@pytest.mark.parametrize("dims", [24, 40])
def test_orders_of_many_dimensions_are_few(dims: int) -> None:
    """One order per tensor that stays: their permutations, factorial in number, are not listed."""
    kernel = contraction(dims)
    assert len(ordering_trie(kernel)) == 3
    orders = distinct_reuse_orders(kernel)
    assert sorted(len(reuse(kernel, order.tolist())) for order in orders) == [
        dims // 3,
        dims // 3,
        dims - 2 * (dims // 3),
    ]
