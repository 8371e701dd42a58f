"""Data that hooks receive and return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from tilewright.values import Model

if TYPE_CHECKING:
    from tilewright.plugin.mapper import Budget


@dataclass(frozen=True)
class ObservedRun:
    """A run: the searches of some layers on one architecture by one mapper and one cost model.

    `map` has one run, `compare` one for each mapper and cost model, and `map --pareto` one for each point of a layer.
    The search of a group (`map GROUP --fuse`) is a run of its layers together.

    Attributes:
        layers: Names of the distinct layers, also of those with a result in the cache.
        architecture, mapper, model, objective: Names.
        budget: Budget of the search of each layer.

    Example:
        >>> from tilewright.plugin import Budget, ObservedRun
        >>> ObservedRun(("conv1",), "eyeriss", "random", "timeloop", "edp", Budget(), seed=0).layers
        ('conv1',)
    """

    layers: tuple[str, ...]
    architecture: str
    mapper: str
    model: str
    objective: str
    budget: Budget
    seed: int


class Section(Model):
    """A section of a printed report and of an HTML page. It has a text, a table, or both.

    >>> Section(title="Notes", text="x < y", columns=("layer", "cycles"), rows=(("conv1", 12.0),)).title
    'Notes'

    Attributes:
        title: Heading of at most 200 characters; the plugin's name follows it.
        text: Text of at most 200,000 characters. Pages escape it, unless `safe` is true.
        columns: Names of the columns of the table.
        rows: At most 10,000 rows of the table, with a value for each column. Cells are always escaped.
        safe: `text` is HTML. It is inserted into pages unchanged, and not printed. Pages run no scripts of it, and they
            load nothing.
    """

    title: str = Field(min_length=1, max_length=200)
    text: str = Field(default="", max_length=200_000)
    columns: tuple[str, ...] = Field(default=(), max_length=50)
    rows: tuple[tuple[str | int | float | None, ...], ...] = Field(default=(), max_length=10_000)
    safe: bool = False
