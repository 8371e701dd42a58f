"""Docstrings of fields: the texts below them in the source of a class, which Python does not keep."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise


def of_fields(model: type, root: type) -> dict[str, str]:
    """Return the texts below the fields of a class and of its bases below `root`, by field.

    Classes whose source is in no file have none.
    """
    texts = dict[str, str]()
    for base in reversed(model.__mro__):
        if not issubclass(base, root) or base is root:
            continue
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except (OSError, TypeError, SyntaxError):
            continue
        assert isinstance(body, ast.ClassDef)
        for field, text in pairwise(body.body):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                texts[field.target.id] = inspect.cleandoc(str(text.value.value))
    return texts
