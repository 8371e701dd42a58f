"""HTML from Jinja templates, for pages and notebooks. Texts are escaped, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.errors import printable

if TYPE_CHECKING:
    import jinja2


def rendered(package: str, template: str, **contents: Any) -> str:
    """Return a template from the folder `templates` of a package, filled with contents.

    Control characters in texts are escaped, too. Only contents that a template marks as `safe` are inserted unescaped.
    """
    return _environment(package).get_template(template).render(contents)


def preformatted(text: str) -> str:
    """Return a text as HTML that keeps its line breaks."""
    return rendered("tilewright", "text.html.jinja", text=text)


class Head(NamedTuple):
    """Head of a column: its name, and whether its cells are right-aligned, as numbers are."""

    name: str
    right: bool = False


def tabulated(title: str, heads: Iterable[Head], rows: Iterable[Sequence[object]]) -> str:
    """Return rows of cells as an HTML table, with thousands of whole numbers separated."""
    cells = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    return rendered("tilewright", "table.html.jinja", title=title, columns=[(head, "") for head in heads], rows=cells)


class Printed:
    """Value whose text keeps its line breaks in notebooks."""

    def _repr_html_(self) -> str:
        return preformatted(str(self))


@cache
def _environment(package: str) -> jinja2.Environment:
    import jinja2  # most commands write no HTML

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else printable(str(value)),
    )
