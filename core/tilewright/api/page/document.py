"""HTML document of a page: data, script and style in one text."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
"""Content policy of the page: the browser loads nothing."""


def document(data: dict[str, Any]) -> str:
    """Return the page for data that include `title` and `kind`; raise ValueError for infinite numbers."""
    style, script = (resources.files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))  # fmt: skip
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(data['title'])}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        '<main id="page"></main>\n'
        f'<script type="application/json" id="data">{_embedded(data)}</script>\n<script>\n{script}</script>\n</body>\n</html>\n'
    )


def _embedded(data: dict[str, Any]) -> str:
    """Return JSON that an HTML parser cannot mistake for markup."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
