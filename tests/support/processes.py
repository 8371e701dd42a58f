"""Whether other processes still run, and folders that this one cannot write to."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def soon(reached: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Is it so within some seconds?"""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """A folder that this process cannot write to; root could, so it becomes another user."""
    for parent in folder.parents:
        if any(part.startswith("pytest-of-") for part in parent.parts):
            parent.chmod(0o755)
    folder.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)
