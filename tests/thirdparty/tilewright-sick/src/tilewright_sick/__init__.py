"""One plugin that fails, in the place and the way that the environment variable TILEWRIGHT_SICK names."""

from __future__ import annotations

import os
from typing import Any

from tilewright.plugin import hookimpl

PLACE, _, FAULT = os.environ.get("TILEWRIGHT_SICK", "").partition(" ")

if PLACE == "import":
    from tilewright_sick.faults import FAULTS

    FAULTS[PLACE][FAULT]()


@hookimpl
def tilewright_plugins() -> Any:
    """The sick plugin; of each kind one, with a fault in one of them."""
    if PLACE in ("", "import", "tilewright_search_done"):
        return []
    from tilewright_sick.faults import FAULTS
    from tilewright_sick.plugins import sick_specs

    if PLACE == "healthy":
        return sick_specs("", None)
    if PLACE == "tilewright_plugins":
        return FAULTS[PLACE][FAULT]()
    if PLACE == "spec":
        return [*sick_specs("", None), FAULTS[PLACE][FAULT]()]
    return sick_specs(PLACE, FAULTS[PLACE][FAULT])


if PLACE == "tilewright_search_done":

    @hookimpl
    def tilewright_search_done(layer: str, result: Any) -> None:
        """Fails after every search."""
        from tilewright_sick.faults import FAULTS

        FAULTS[PLACE][FAULT]()
