"""One of several layers in a file, named behind it: `workload.yaml/conv1`."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import InputError, Location
from tilewright.schema.document import suggestion


def chosen(names: Sequence[str], named: str | None, place: Location, kind: str) -> int:
    """Which of the names in a file is meant; the only one need not be named. `kind`: what they are, in messages.

    Raises:
        InputError: none is, or it could be several.
    """
    if named is None and len(names) > 1:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise InputError(
            f"{len(names)} {kind}s; one is read at a time",
            location=place,
            hint=f"name one: {place.source}/{kind.upper()}, of {shown}",
        )
    if named is not None and named not in names:
        raise InputError(f"there is no {kind} {named}{suggestion(named, names)}", location=place)
    return names.index(named) if named is not None else 0
