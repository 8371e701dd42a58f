"""Which sums of results are one tensor: all layers see the same words added, after the same operators."""

from typing import Any

import pytest

import tilewright as tw
from support.products import products
from tilewright.application.run.sums import Sums, _rank

SQUARE = {"sizes": {"m": 4, "n": 4}, "made": ["m", "n"]}
TURNED = SQUARE | {"read": ["n", "m"]}
PLAIN = SQUARE | {"read": ["m", "n"]}


def unlike(*reads: list[dict[str, Any]]) -> frozenset[str]:
    """Return the makers of sums that are no single tensor. L0, L1 and L2 read nothing; each further layer has these reads."""
    data = products(4, (4,) * (len(reads) + 4))
    for layer, made in zip(data["layers"], ([], [], [], *reads), strict=True):
        after = [one["maker"] for one in made]
        layer |= {"after": after, "reads": {"A": made} if made else {}}
    return Sums(tw.Workload.model_validate(data)).unlike


def read(number: int, **more: Any) -> dict[str, Any]:
    return {"maker": f"L{number}", **more}


@pytest.mark.parametrize(
    ("first", "second", "one"),
    [
        ([read(0), read(1)], [read(0), read(1)], True),
        ([read(0), read(1)], [read(0), read(1, **TURNED)], False),
        ([read(0), read(1)], [read(0, **TURNED), read(1, **TURNED)], True),
        ([read(0, **TURNED), read(1)], [read(0), read(1, **TURNED)], True),
        ([read(0), read(1)], [read(0, through=["Relu"]), read(1)], False),
        ([read(0), read(1)], [read(0, through=["Relu"]), read(1, through=["Relu"])], True),
        ([read(0, through=["a", "Relu"]), read(1, through=["Relu"])], [read(0), read(1)], False),
        ([read(0, through=["a", "b"]), read(1, through=["b"])], [read(0, through=["a"]), read(1)], True),
        ([read(0), read(1)], [read(0, **PLAIN, whole=["n"]), read(1)], False),
        ([read(0), read(1)], [read(0, **PLAIN, whole=["n"]), read(1, **PLAIN, whole=["n"])], True),
        # heads of two words each, of both results, and of one in another order
        (
            [read(0), read(1)],
            [
                read(at, sizes={"m": 4, "h": 2, "d": 2}, made=["m", "2*h + d"], read=["m", "2*h + d"])
                for at in (0, 1)
            ],
            True,
        ),
        (
            [read(0), read(1)],
            [
                read(at, sizes={"m": 4, "h": 2, "d": 2}, made=["m", f"{2 - at}*h + {1 + at}*d"], read=["m", "2*h + d"])
                for at in (0, 1)
            ],
            False,
        ),
    ],
)  # fmt: skip
def test_two_layers_see_one_sum_or_two(first: list[Any], second: list[Any], one: bool) -> None:
    for ways in ((first, second), (second, first)):
        assert unlike(*ways) == (frozenset() if one else {"L0", "L1"})


def test_a_layer_may_read_fewer_words_of_a_sum() -> None:
    """L3 reads two rows of L0 + L1. With starts 2 and 1 it sees other rows added."""
    rows = {"sizes": {"m": 2, "n": 4}, "read": ["m", "n"]}

    def sums(*starts: int) -> frozenset[str]:
        data = products(4, (4,) * 5)
        data["layers"][3]["problem"]["dimensions"]["M"] = 2
        last = [read(at, **rows, made=[f"m + {start}", "n"]) for at, start in enumerate(starts)]
        for layer, made in zip(data["layers"], ([], [], [read(0), read(1)], last), strict=True):
            layer |= {"after": [one["maker"] for one in made], "reads": {"A": made} if made else {}}
        return Sums(tw.Workload.model_validate(data)).unlike

    assert not sums(2, 2)
    assert sums(2, 1) == {"L0", "L1"}


def test_ranks_are_exact() -> None:
    """In double precision, the first matrix has rank 1."""
    assert [_rank(rows) for rows in ([[2**30, 2**30 + 1], [1, 1]], [[2, 4], [0, 0], [3, 6]], [[0]], [])] == [2, 1, 0, 0]


@pytest.mark.parametrize("more", [0, 1])
def test_large_steps_are_told_apart(more: int) -> None:
    """L4 adds words at 2^30 h + d of L0 and at (2^30 + more) h + d of L1, and L3 adds words at the same places."""
    far, sizes = 2**30, {"m": 4, "h": 2, "d": 2}
    data = products(4, (4,) * 6)
    for layer in data["layers"][:2]:
        layer["problem"]["dimensions"]["N"] = far + 4
    for layer, steps in zip(data["layers"], (None, None, None, (far, far), (far, far + more)), strict=True):
        made = [
            read(at, sizes=sizes, made=["m", f"{step}*h + d"], read=["m", "2*h + d"])
            for at, step in enumerate(steps or ())
        ]
        layer |= {"after": [one["maker"] for one in made], "reads": {"A": made} if made else {}}
    assert Sums(tw.Workload.model_validate(data)).unlike == ({"L0", "L1"} if more else frozenset())


def test_the_sum_before_may_be_seen_after_an_operator_of_its_own() -> None:
    """L3 reads L0 + L1, and L4 reads Relu(L0 + L1) + L2: the sum of the first two is one tensor. L5 adds L2 to it as it is."""
    relu = [read(0, through=["Relu", "norm"]), read(1, through=["Relu", "norm"]), read(2, through=["norm"])]
    first = [read(0, through=["other"]), read(1, through=["other"])]
    assert not unlike(first, relu)
    assert unlike(first, relu, [read(0), read(1), read(2)]) == {"L0", "L1", "L2"}
    assert unlike([read(0), read(1, through=["other"])], relu) == {"L0", "L1"}


def test_a_sum_with_a_result_of_the_iteration_before_stays_unknown() -> None:
    """L1 reads L0 + L2, and L2 runs later: so L2 does not add to L0, which is needed before."""
    data = products(4, (4,) * 4)
    for layer, made in zip(data["layers"], ([], [read(0), read(2)], [read(1)]), strict=True):
        layer |= {"count": 2, "after": [one["maker"] for one in made], "reads": {"A": made} if made else {}}
    sums = Sums(tw.Workload.model_validate(data))
    assert sums.unknown == {"L0", "L2"} and list(sums.last.values()) == ["L1"]
