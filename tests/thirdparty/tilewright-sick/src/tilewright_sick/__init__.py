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
    """A plugin of each kind; one of them, or one more, is sick."""
    if PLACE in ("", "import", "tilewright_search_done"):
        return []
    from tilewright_sick.faults import FAULTS
    from tilewright_sick.plugins import sick_specs

    if PLACE == "tilewright_plugins":
        return FAULTS[PLACE][FAULT]()
    return [*sick_specs(), *([FAULTS[PLACE][FAULT]()] if PLACE == "spec" else [])]


if PLACE == "tilewright_search_done":

    @hookimpl
    def tilewright_search_done(layer: str, result: Any) -> None:
        """Fails after every search."""
        from tilewright_sick.faults import FAULTS

        FAULTS[PLACE][FAULT]()
