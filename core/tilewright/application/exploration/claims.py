"""Claims on searches: programs that share a store do not search the same thing twice.

A claim names its owner and expires. Its owner renews it as long as it lives, so that a killed program blocks others only
for a while. On the same host others notice at once that its process has ended.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import sys
import threading
import time
from contextlib import suppress

from tilewright.application.database import Database

LIFETIME = 60.0
"""Seconds for which a claim holds without a renewal."""
RENEWAL_SECONDS = 10.0
_KEY = "(machine, problem, method) = (?, ?, ?)"


class Claims:
    """The claims in a store's file, as one program sees them."""

    def __init__(self, base: Database) -> None:
        self._base = base
        self._owner, self._host, self._pid = secrets.token_hex(8), socket.gethostname(), os.getpid()
        self._renewal: threading.Thread | None = None
        self._released = threading.Event()

    def take(self, *key: str) -> bool:
        """Claim a search, inside a transaction; False: another program has it. Raises OutputError."""
        if self.by_another(*key):
            return False
        values = (*key, self._owner, self._host, self._pid, time.time() + LIFETIME)
        self._base.run("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?)", *values)
        if self._renewal is None:
            self._renewal = threading.Thread(target=self._renew, name="claims", daemon=True)
            self._renewal.start()
        return True

    def by_another(self, *key: str) -> bool:
        """Return whether a program that lives has claimed a search, and it is not this one."""
        rows = self._base.run(f"SELECT owner, host, pid, expires FROM claims WHERE {_KEY}", *key)
        if not rows or rows[0][0] == self._owner:
            return False
        _, host, pid, expires = rows[0]
        now = time.time()
        # a clock that was set back must not make a claim hold for years
        if not isinstance(expires, float) or not now < expires <= now + 2 * LIFETIME:
            return False
        return host != self._host or _lives(pid)

    def end(self, *key: str) -> None:
        """End this program's claim on a search, inside the transaction that writes the result. Raises OutputError."""
        if self._renewal is not None:
            self._base.run(f"DELETE FROM claims WHERE {_KEY} AND owner = ?", *key, self._owner)

    def release(self) -> None:
        """End all claims of this program. Raises OutputError."""
        if self._renewal is None:
            return
        self._released.set()
        self._renewal.join()
        self._base.run("DELETE FROM claims WHERE owner = ?", self._owner)

    def _renew(self) -> None:
        """Renew the claims, in a thread of its own; where that fails they expire, and are searched elsewhere, too."""
        assert self._base.path is not None
        while not self._released.wait(RENEWAL_SECONDS):
            with suppress(sqlite3.Error):
                base = sqlite3.connect(self._base.path, timeout=RENEWAL_SECONDS, isolation_level=None)
                try:
                    base.execute("UPDATE claims SET expires = ? WHERE owner = ?", (time.time() + LIFETIME, self._owner))
                finally:
                    base.close()


def _lives(pid: object) -> bool:
    """Return whether a process of this host runs."""
    if not isinstance(pid, int) or not 0 < pid < 2**31:
        return False
    if sys.platform == "win32":
        return True  # a signal 0 would end it; the claim expires
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
