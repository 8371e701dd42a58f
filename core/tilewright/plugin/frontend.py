"""Frontend: the door through which work comes in."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tilewright.schema.workload import Workload


@runtime_checkable
class Frontend(Protocol):
    """Makes a workload from a source (a file name, a formula, a library name it declared)."""

    def recognises(self, source: str) -> bool:
        """Cheap and never raises: does this look like mine?"""
        ...

    def load(self, source: str) -> Workload:
        """Read it. Raises InputError with the place of the fault; lists what it does not map in `unmapped`."""
        ...
