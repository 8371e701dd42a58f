"""Write the tables of the reference: `python docs/reference/summaries.py` updates the pages of this folder.

A code host shows the tables. The site replaces them by the directives in the comment above each one.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tilewright.schema.vector import OPERATORS, OperatorWork

FOLDER = Path(__file__).parent
BLOCK = re.compile(r"<!-- reference\n(.*?)-->\n.*?<!-- end -->", re.DOTALL)
"""Directives in a comment, and the table made from them."""
OPERATIONS = re.compile(r"(?<=<!-- operations -->\n\n).*?(?=<!-- end -->)", re.DOTALL)
"""Table of operations of vector layers."""
DIRECTIVE = re.compile(r"^\.\. auto(\w+):: (\S+)((?:\n   :.*)*)", re.MULTILINE)
MAX_OPTIONAL = 4
"""Number of optional parameters that a table names. The site lists all of them."""


def as_directives(text: str) -> str:
    """Return a page for the site: directives instead of tables."""
    return BLOCK.sub(lambda found: f"```{{eval-rst}}\n{found[1]}```", text)


def updated(text: str) -> str:
    """Return a page with tables made from its directives, and with the table of operations."""
    text = OPERATIONS.sub(lambda _: _operations(), text)
    return BLOCK.sub(lambda found: f"<!-- reference\n{found[1]}-->\n\n{_table(found[1])}\n\n<!-- end -->", text)


def _table(directives: str) -> str:
    rows = [row for kind, path, options in DIRECTIVE.findall(directives) for row in _rows(kind, path, options)]
    return "\n".join(["| name | summary |", "| --- | --- |", *(f"| `{name}` | {text} |" for name, text in rows)])


def _operations() -> str:
    """Return the table of operations; operators with equal rows share one."""
    rows: dict[OperatorWork, list[str]] = {}
    for operator, work in OPERATORS.items():
        rows.setdefault(work, []).append(operator)
    lines = [
        f"| {', '.join(names)} | {_kinds(work.element)} | {_kinds(work.row)} | {work.source} |"
        for work, names in rows.items()
    ]
    return "\n".join(["| operators | an element | a row | source |", "| --- | --- | --- | --- |", *lines, "", ""])


def _kinds(operations: Mapping[Any, int]) -> str:
    return ", ".join(f"{number} {kind}" if number > 1 else kind for kind, number in operations.items() if number)


def _rows(kind: str, path: str, options: str = "") -> Iterator[tuple[str, str]]:
    """Yield a signature and a summary for an object, and for the members that it defines."""
    if kind == "module":
        module = importlib.import_module(path)
        for name, each in vars(module).items():
            if getattr(each, "__module__", None) == path and not name.startswith("_") and name not in options:
                if inspect.isfunction(each) or inspect.isclass(each):
                    yield name, _summary(each.__doc__)
        return
    owner, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(owner), name)
    if kind == "data":
        yield name, _summary(_text_below(owner, name))
        return
    if inspect.isclass(found) and issubclass(found, BaseModel):
        found.model_rebuild()  # pydantic builds a model late, and only then it has a signature
    yield name + _signature(found), _summary(found.__doc__)
    for member, each in vars(found).items() if inspect.isclass(found) else ():
        function = getattr(each, "__func__", each)
        if member.startswith("_") or not each.__doc__ or getattr(function, "__module__", None) == "pydantic.main":
            continue
        if inspect.isfunction(function):
            yield f"{name}.{member}{_signature(function)}", _summary(function.__doc__)
        elif isinstance(each, property) or type(each).__name__ == "cached_property":
            yield f"{name}.{member}", _summary(each.__doc__)


def _signature(found: Any) -> str:
    """Return names of parameters. Optional ones have an ellipsis, and are left out after the first few."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return ""
    words, starred, optional = [], False, 0
    for each in parameters:
        if each.name in ("self", "cls"):
            continue
        optional += each.default is not each.empty
        if optional > MAX_OPTIONAL and each.default is not each.empty:
            continue
        if each.kind is each.KEYWORD_ONLY and not starred:
            words.append("*")
        starred |= each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        prefix = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        words.append(prefix + each.name + ("" if each.default is each.empty else "=..."))
    if optional > MAX_OPTIONAL:
        words.append("...")
    return f"({', '.join(words)})"


def _summary(doc: str | None) -> str:
    paragraph = inspect.cleandoc(doc or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).replace("|", "\\|")


def _text_below(owner: str, name: str) -> str | None:
    """Return the docstring of a constant."""
    body = ast.parse(inspect.getsource(importlib.import_module(owner))).body
    for before, after in zip(body, body[1:], strict=False):
        targets = before.targets if isinstance(before, ast.Assign) else [getattr(before, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets) and isinstance(after, ast.Expr):
            return str(ast.literal_eval(after.value))
    return None


def main() -> None:
    """Update all pages."""
    for page in FOLDER.glob("*.md"):
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
