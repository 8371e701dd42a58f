"""Values that share memory, so that a change of one changes all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)


@dataclass
class Aliases(Generic[V]):
    """Sets of values that may share memory. A value that was never joined is alone."""

    groups: dict[V, list[V]] = field(default_factory=dict)

    def join(self, first: V, second: V) -> None:
        """Note that two values may share memory."""
        one, other = self.groups.setdefault(first, [first]), self.groups.setdefault(second, [second])
        if one is not other:
            one += other
            self.groups |= dict.fromkeys(other, one)

    def of(self, value: V) -> Sequence[V]:
        """Return all values that may share memory with a value, itself included."""
        return self.groups.get(value, [value])
