"""First import of a third-party plugin: in the child process that later runs it.

A plugin that hangs, crashes or ends the program during import does so there, and is named. After a complete
import, a file in the cache folder records the installed version. Later starts then import it directly, for its specs.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path

from tilewright.child import is_child
from tilewright.files import cache_folder
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.processes import ask, limit

SHORTEST = 20.0
"""Minimum time limit of an import in seconds, because libraries load slowly on a loaded host."""


def check_import(entry_point: EntryPoint, owner: Owner, load: Callable[[EntryPoint], object]) -> None:
    """Load an entry point in a child process, unless an earlier start did.

    Exceptions are ignored here; the import in this process raises them again.

    Args:
        load: imports the entry point and calls its hook; a function of a module.

    Raises:
        PluginError: The child hung, crashed or ended.
    """
    stamp = None if is_child() else _stamp(entry_point, owner)
    if stamp is None or stamp.exists():
        return
    ask(owner, "its import", _quietly, load, entry_point, seconds=max(limit(), SHORTEST))
    with suppress(OSError):
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()


def _quietly(load: Callable[[EntryPoint], object], entry_point: EntryPoint) -> None:
    with contextlib.redirect_stderr(io.StringIO()):  # the import in the caller's process prints the same
        load(entry_point)


def _stamp(entry_point: EntryPoint, owner: Owner) -> Path | None:
    """Return the file that records a complete import of this version; None if the module cannot be found."""
    with suppress(Exception):  # a third party's import system may raise anything
        module = importlib.util.find_spec(entry_point.module.partition(".")[0])
        if module is not None:
            changed = Path(module.origin).stat().st_mtime_ns if module.origin else 0
            text = repr((str(owner), entry_point.value, sys.version, module.origin, changed))
            return cache_folder() / "imports" / hashlib.sha256(text.encode()).hexdigest()
    return None
