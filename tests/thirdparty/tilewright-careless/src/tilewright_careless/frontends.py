"""Frontends that break promises. The good one reads the sizes of a matrix product: `4x5x6`."""

from __future__ import annotations

import random
import re

from tilewright import Problem, Workload
from tilewright.errors import InputError
from tilewright.plugin import Layer

SIZES = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})x([1-9]\d{0,5})")


class Good:
    """Sizes M x N x K."""

    def recognises(self, source: str) -> bool:
        return SIZES.fullmatch(source) is not None

    def load(self, source: str) -> Workload:
        return Workload.of(self.product(source, source))

    def product(self, source: str, name: str) -> Problem:
        found = SIZES.fullmatch(source)
        if not found:
            raise InputError(f"expected sizes such as 4x5x6, not '{source[:40]}'")
        m, n, k = (int(size) for size in found.groups())
        return Problem.model_validate(
            {
                "name": name,
                "dimensions": {"M": m, "N": n, "K": k},
                "tensors": [
                    {"name": "A", "role": "input", "projection": ["M", "K"]},
                    {"name": "B", "role": "weight", "projection": ["K", "N"]},
                    {"name": "Z", "role": "output", "projection": ["M", "N"]},
                ],
            }
        )


class Startled(Good):
    """Looks at the first letter of nothing."""

    def recognises(self, source: str) -> bool:
        return source[0].isdigit() and super().recognises(source)


class Deaf(Good):
    """Frontend that can read a source, but never recognises it."""

    def recognises(self, source: str) -> bool:
        return False


class ListsOnly(Good):
    """Returns its problems in a list."""

    def load(self, source: str) -> list[Problem]:  # type: ignore[override]
        return [self.product(source, source)]


class Dreaming(Good):
    """Never gives a workload the same name twice."""

    def load(self, source: str) -> Workload:
        return Workload.of(self.product(source, f"p{random.getrandbits(64)}"))


class Unwritable(Good):
    """Leaves the workload without a name, past all validation."""

    def load(self, source: str) -> Workload:
        return Workload.model_construct(name="", layers=(Layer(problem=self.product(source, source)),))


class Rude(Good):
    """Lets the reader see its insides."""

    def load(self, source: str) -> Workload:
        m, n, k = source.split("x")
        return super().load(f"{int(m)}x{int(n)}x{int(k)}")


class Grasping(Good):
    """Says yes to what others read."""

    def recognises(self, source: str) -> bool:
        return super().recognises(source) or source.endswith(".yaml")
