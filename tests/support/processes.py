"""Whether other processes still run."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def soon(reached: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Is it so within some seconds?"""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
