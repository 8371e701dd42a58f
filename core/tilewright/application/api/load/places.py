"""File, line and column of the clusters that a plugin refuses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tilewright.errors import InputError, NotConformableError, TilewrightError
from tilewright.files import is_file
from tilewright.schema.document import Document, Path_, read_document

_FIELD = re.compile(r"[a-z_]+(?:\.[a-z_]+)*")


def located(error: TilewrightError | None, source: object) -> TilewrightError | None:
    """Return a refusal with the places of the clusters that its reasons name.

    Plugins get the architecture without its file. Other errors are returned unchanged, and so are all if the
    source is not one file.
    """
    if isinstance(source, list | tuple) and len(source) == 1:
        (source,) = source
    if not isinstance(error, NotConformableError) or not isinstance(source, str | os.PathLike) or not is_file(source):
        return error
    try:
        document = read_document(os.fspath(source))
    except InputError:
        return error
    paths = dict(_clusters(document))
    reasons = []
    for reason in error.reasons:
        path, field = paths.get(reason.where), _FIELD.match(reason.message)
        if path is not None:
            place = document.locate((*path, *(field[0].split(".") if field else ())))
            reason = reason.model_copy(update={"where": f"{place}: {reason.where}"})
        reasons.append(reason)
    return NotConformableError(error.plugin, reasons, hint=error.hint)


def _clusters(document: Document) -> Iterator[tuple[str, Path_]]:
    """Yield the words for a cluster, and its path."""
    clusters = document.data.get("clusters") if isinstance(document.data, dict) else None
    for place, cluster in enumerate(clusters if isinstance(clusters, list) else ()):
        if isinstance(cluster, dict):
            yield f"cluster {cluster.get('name')}", ("clusters", place)
