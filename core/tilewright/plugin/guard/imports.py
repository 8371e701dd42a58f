"""First import of a third-party plugin, in a child process.

A plugin that hangs, crashes or ends the program during import does so in the child, and is named. After a complete
import, a file in the cache folder records the installed version. Later starts then import it directly.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path

from tilewright.child import Child, ChildFailed, is_child, shared_child
from tilewright.files import cache_folder
from tilewright.plugin.guard.calls import Owner, fault
from tilewright.plugin.guard.time_limits import limit, warn_once

STARTING = 60.0
"""Seconds for the child to start and to load the registry."""
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
    child = _trial_child()
    try:
        child.ask(importlib.import_module, load.__module__, seconds=STARTING)
    except ChildFailed as error:  # not the plugin's fault: nothing of it has run
        warn_once(f"warning: {owner} is imported without a trial, because a child process for it {error}")
        return
    try:
        child.ask(load, entry_point, seconds=max(limit(), SHORTEST))
    except ChildFailed as error:
        raise fault(owner, f"its import {error}") from None
    with suppress(OSError):
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()


def end_trials() -> None:
    """End the child process, whose modules, path and environment a later discovery must not find."""
    _trial_child().close()


def _trial_child() -> Child:
    """Return the child process, which starts at the first request and again after a crash."""
    return shared_child("imports", quiet=True)


def _stamp(entry_point: EntryPoint, owner: Owner) -> Path | None:
    """Return the file that records a complete import of this version; None if the module cannot be found."""
    with suppress(Exception):  # a third party's import system may raise anything
        module = importlib.util.find_spec(entry_point.module.partition(".")[0])
        if module is not None:
            changed = Path(module.origin).stat().st_mtime_ns if module.origin else 0
            text = repr((str(owner), entry_point.value, sys.version, module.origin, changed))
            return cache_folder() / "imports" / hashlib.sha256(text.encode()).hexdigest()
    return None
