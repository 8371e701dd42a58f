"""Origin of a layer: its place in the file of its network, in the words of that file."""

from __future__ import annotations

from pathlib import PurePath

from pydantic import Field

from tilewright.errors import Location
from tilewright.values import Model


class Origin(Model):
    """Place of a layer in the file that it was read from. Parts that the format does not have are None.

    Example:
        >>> from tilewright.plugin import Origin
        >>> str(Origin(node="/conv1/Conv"))
        '/conv1/Conv'
    """

    node: str | None = None
    """Name of the operator or module, exactly as the file has it."""
    output: str | None = None
    """Name of the operator's first result."""
    weights: str | None = None
    """Name of the weights of an operator that is only numbered, which tells more."""
    file: str | None = None
    """Name of the file, without its folder."""
    line: int | None = Field(default=None, ge=1)
    """Line in the file, from 1."""
    column: int | None = Field(default=None, ge=1)
    """Column in the line, from 1."""

    @classmethod
    def at(cls, place: Location, node: str | None = None) -> Origin:
        """Return the origin of an operator at a location."""
        return cls(node=node, file=PurePath(place.source).name, line=place.line, column=place.column)

    @property
    def short(self) -> str:
        """The name in the file, or else the line."""
        return self.node or self.output or self._place

    def beside(self, name: str) -> str:
        """Return what a table tells next to a layer's name: the name in the file, or of the weights if that is the same."""
        return self.short if self.short != name else self.weights or name

    @property
    def _place(self) -> str:
        numbers = (str(number) for number in (self.line, self.column) if number is not None)
        return ":".join([*([self.file] if self.file else []), *numbers])

    def __str__(self) -> str:
        words = [self.node or "", self.output and f"output {self.output}", self.weights and f"weights {self.weights}"]
        return ", ".join([*filter(None, words), *([self._place] if self._place else [])])
