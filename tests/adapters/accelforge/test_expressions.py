"""AccelForge's expressions are arithmetic and sets of tensors, and nothing else."""

import pytest

from tilewright.expressions import ExpressionError
from tilewright_adapters.accelforge.expressions import Scope


def test_expressions_are_arithmetic_and_sets() -> None:
    scope = Scope(frozenset("AB"), {"A": frozenset("A"), "two": 2, "All": frozenset("AB")}, {"A": 8, "B": 8})
    assert scope.number("two * 3 if len(~A) == 1 else 0") == 6
    assert scope.number("All.bits_per_value") == 8 and scope.number("inf") == float("inf")
    assert scope.tensors("~A") == {"B"} and scope.tensors("All - A") == {"B"} and scope.tensors("A & ~A") == set()
    assert scope.truth("not A - A") and not scope.truth("two > 2")
    for wrong in ("A", "C", "len(2)", "9 ** 99", "A + 1", "().__class__", "1 if", "[1]", "max(A)"):
        with pytest.raises(ExpressionError):
            scope.number(wrong)
    with pytest.raises(ExpressionError, match="is not a set of tensors"):
        scope.tensors("two")
    for wrong in ("inf", "two / 4", "1 / 2", "two - two"):
        with pytest.raises(ExpressionError):
            scope.whole(wrong)
