"""HTML from Jinja templates, for pages and notebooks. Texts are escaped, never markup."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

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
