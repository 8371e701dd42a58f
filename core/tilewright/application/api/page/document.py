"""HTML document of a page: title, contents, style and script in one text."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from tilewright.application.api.page.parts import escaped


def document(title: str, *contents: str) -> str:
    """Return the page. Its policy lets the browser load nothing, and run only the page's own script."""
    style, script = (resources.files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))  # fmt: skip
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<header><h1>{escaped(title)}</h1><button type="button" id="theme" hidden>Dark</button></header>\n<main>\n'
        + "\n".join(contents)
        + f"\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )
