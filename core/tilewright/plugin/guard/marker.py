"""What ended the last start without a word: a note that is left while a third party's code runs that may end the program.

`os._exit`, a crash in C and a signal from outside leave it behind; the next start tells of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tilewright.files import cache_folder

PREFIX = "unfinished-"


@contextmanager
def unfinished(what: str) -> Iterator[None]:
    """Leaves a note while the block runs; where none can be written, none is."""
    note: Path | None = None
    with suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        note = folder / f"{PREFIX}{os.getpid()}"
        note.write_text(what, encoding="utf-8")
    try:
        yield
    finally:
        if note is not None:
            with suppress(OSError):
                note.unlink()


def left_behind() -> list[str]:
    """What processes that are no more were at when they ended; told once."""
    found = []
    with suppress(OSError, RuntimeError, ValueError):
        for note in sorted(cache_folder().glob(f"{PREFIX}*")):
            if not _is_alive(int(note.name.removeprefix(PREFIX))):
                found.append(note.read_text(encoding="utf-8")[:500])
                note.unlink()
    return found


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
