"""Sphinx configuration of the manual: the Markdown of this folder and the docstrings of public names.

`tox run -e docs` builds the site; every warning is an error. Neither the build nor the pages fetch anything.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.ext.napoleon import Config, GoogleDocstring

import tilewright
import tilewright.plugin
import tilewright.testing
from tilewright.application.documents import OUTPUT_KINDS, output_model

if TYPE_CHECKING:
    from docutils.nodes import Element, reference
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# autodoc adds annotations to pydantic's base class, which models that are made later do not expect
for kind in OUTPUT_KINDS:
    output_model(kind)

project = "Tilewright"
author = "The Tilewright authors"
copyright = author
version = release = tilewright.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
root_doc = "index"
myst_heading_anchors = 3

autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "undoc-members": True,
    "inherited-members": "Model,BaseModel,Tabular,Printed,Exception,Protocol,Generic,ABC",
    "exclude-members": "model_config",
}
add_module_names = False
default_role = "code"
smartquotes = False
maximum_signature_line_length = 100
python_use_unqualified_type_names = True
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!tilewright).*"),  # types of other libraries have no links
    (r"py:.*", r".*\.([A-Z](_co)?|_\w+)"),  # nor have type variables and number constraints
    # nor have private types in signatures
    (r"py:.*", r"tilewright\.(application\.(api|run)|files|tables|testing\.reference)\..*"),
    (
        r"py:.*",
        r"tilewright\.(plugin\.(guard\..*|specs\.Lazy|composed\.ComposedEvaluator|conventions\.Topic)|mapspace\.rules\..*)",
    ),
    (r"py:.*", r"tilewright\.schema\.(attribute\.Stated|frozen\.Annotated|objective\.Figure|unsearched\.JudgedRule)"),
    (r"py:.*", r"tilewright\.(schema\.mapped\.certificate\.Claim|application\.documents\.generation\.MemoryUse)"),
]

html_theme = "furo"
html_title = f"Tilewright {release}"
html_copy_source = False
html_extra_path = ["extra"]  # JSON schemas, by docs/schema_files.py
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}

WITH_CONTENTS = runpy.run_path(str(Path(__file__).parent / "contents.py"))["with_contents"]
AS_DIRECTIVES = runpy.run_path(str(Path(__file__).parent / "reference/summaries.py"))["as_directives"]
GOOGLE = Config(napoleon_use_ivar=True)

PUBLIC = {
    name: module.__name__ for module in (tilewright.testing, tilewright, tilewright.plugin) for name in module.__all__
}
"""Public module that documents each public name."""


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> reference | None:
    """Resolve a type hint, which names the private module of a class, to its page under the public module."""
    path, _, target = node.get("reftarget", "").rpartition(".")
    if node.get("refdomain") != "py" or not path.startswith("tilewright") or target not in PUBLIC:
        return None
    domain: Any = env.domains["py"]
    for kind in ("class", "obj"):
        found = domain.resolve_xref(env, node["refdoc"], app.builder, kind, f"{PUBLIC[target]}.{target}", node, content)
        if found is not None:
            return found
    return None


def read_sections(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Convert sections such as `Args:` in docstrings of classes and functions. Those of fields have no sections."""
    if what not in ("attribute", "property", "data"):
        lines[:] = GoogleDocstring(lines, GOOGLE, app, what, name, obj, options).lines()


def readable(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Write defaults that have no Python form in a readable form."""
    if signature is not None:
        signature = signature.replace("<factory>", "...")
        signature = re.sub(r"<(?:class|built-in function) '?(?:[\w.]+\.)?(\w+)'?>", r"\1", signature)
    return signature, returned


def read_reference(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace the tables of the reference, which a code host shows, by their directives."""
    if page.startswith("reference/"):
        source[0] = AS_DIRECTIVES(source[0])


def link_repository(app: Sphinx, page: str, source: list[str]) -> None:
    """Make pages outside the manual downloads, as other files of the repository are; Sphinx takes them for its own pages."""
    source[0] = re.sub(r"\]\((?=(?:\.\./)+benchmarks/[^)]*\.md\))", "](path:", source[0])


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the list of the pages below a page, for the sidebar."""
    source[0] = WITH_CONTENTS(page, source[0])


REPAIRS = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
}
"""HTML of Sphinx and its theme -> the same for screen readers and keyboards."""


def repair(app: Sphinx, error: Exception | None) -> None:
    """Name landmarks and levels of headings, and let keyboards scroll blocks of code."""
    for page in () if error else Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for theirs, ours in REPAIRS.items():
            text = text.replace(theirs, ours)
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the handlers to Sphinx."""
    app.connect("source-read", read_reference)
    app.connect("source-read", link_repository)
    app.connect("source-read", add_contents)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", read_sections)
    app.connect("autodoc-process-signature", readable)
    app.connect("build-finished", repair)


suppress_warnings = ["ref.python"]  # two reports have an attribute called points, and a bare name may mean either
