"""The order of the manual's pages: sections of the sidebar, and the pages below others.

Here instead of in the pages, because a code host would show the directives as text.
"""

SECTIONS = {
    "Start": ("tutorial", "glossary"),
    "How to": ("commands", "python", "frontends", "from", "reports", "fusion", "spaces"),
    "Reference": ("library", "mappers", "models", "plugins", "reference"),
    "Explanation": ("background",),
}
"""Caption -> entries of the sidebar."""

BELOW = {
    "tutorial": ("machine",),
    "from": ("from/timeloop", "from/maestro", "from/zigzag", "from/accelforge", "adapters"),
    "reports": ("compare", "correlate"),
    "fusion": ("fusion_proof",),
    "spaces": ("estimators",),
    "library": ("schemas", "json"),
    "mappers": ("optimal", "optimal_proof", "optimal_results", "algorithms"),
    "models": ("timeloop", "maestro", "zigzag", "oracle", "cycles", "vector", "sparse", "ragged"),
    "plugins": (
        "plugins/mapper",
        "plugins/groupmapper",
        "plugins/costmodel",
        "plugins/composed",
        "plugins/frontend",
        "plugins/adapter",
        "plugins/estimator",
        "plugins/algorithm",
        "plugins/strategy",
        "plugins/hooks",
    ),
    "reference": ("reference/tilewright", "reference/plugin", "reference/testing", "reference/operations"),
    "background": ("mapspace", "papers", "design", "security"),
}
"""Page -> the pages that the sidebar shows below it."""


def with_contents(page: str, text: str) -> str:
    """Return the Markdown of a page with the directives for the pages below it."""
    if page == "index":
        return text + "".join(_directive(pages, f":caption: {caption}\n") for caption, pages in SECTIONS.items())
    return text + _directive(BELOW[page]) if page in BELOW else text


def _directive(pages: tuple[str, ...], options: str = "") -> str:
    lines = "\n".join(pages)
    return f"\n```{{toctree}}\n:hidden:\n{options}\n{lines}\n```\n"
