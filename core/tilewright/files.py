"""Files: size-limited reading, atomic writing, and folders that belong to one run."""

from __future__ import annotations

import contextlib
import difflib
import errno
import itertools
import json
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from tilewright.errors import InputError, OutputError

MAX_EXAMPLES = 2
"""Maximum number of files of a folder that a message names."""
MAX_BYTES = 2 * 2**20
"""Maximum size of a document in bytes; larger ones would take seconds to read."""
MAX_TEXT = 10_000
"""Maximum number of characters in one value, one line or one formula."""
MAX_NAME = 80
"""Maximum number of characters of one word in a file name."""
MARK = "run.json"
"""File that records the run to which a folder belongs."""
TURN_SECONDS = 0.2
"""Between two tries of a process that waits for its turn."""
LOCK = ".lock"
"""Empty file that is locked where the system cannot lock a folder."""
SUMMARIES = (
    *(
        "summary.json",
        "summary.csv",
        "vectors.csv",
        "report.html",
        "compare.json",
        "compare.csv",
        "front.json",
        "front.csv",
        "generation.json",
        "generation.csv",
    ),
    *("correlate.json", "correlate.csv", "samples.csv"),
    *("group.yaml", "group.certificate.yaml", "network.json", "network.certificate.yaml"),
)
"""Files of a run, apart from those of its layers."""


def cache_folder() -> Path:
    """Return the cache folder: `TILEWRIGHT_CACHE`, or `tilewright` in the platform's cache folder.

    Raises:
        OutputError: There is no such folder.
    """
    import platformdirs  # most commands need no cache

    if told := os.environ.get("TILEWRIGHT_CACHE"):
        return Path(told)
    # for an unknown user, newer platformdirs raise and older ones keep the ~
    with contextlib.suppress(RuntimeError):
        folder = platformdirs.user_cache_path("tilewright", appauthor=False)
        if folder.is_absolute():
            return folder
    raise OutputError("there is no home directory for the cache", hint="set TILEWRIGHT_CACHE")


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether the path is a regular file, for texts of any length and content."""
    return os.path.isfile(path)


def file_and_member(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Split FILE/MEMBER into the file and the name of the member, which may contain slashes.

    Return (path, None) if the whole path is a file, or if no part of it is.
    """
    text = os.fspath(path)
    for end in () if is_file(text) else (at for at, letter in enumerate(text) if letter == "/"):
        if is_file(text[:end]):
            return text[:end], text[end + 1 :]
    return text, None


def missing_file(path: str | os.PathLike[str]) -> InputError:
    """Return the error for a file that does not exist, with a similar name from its folder if there is one."""
    folder, name = os.path.split(path)
    try:
        near = difflib.get_close_matches(name, os.listdir(folder or "."), n=1)
    except OSError:
        near = []
    meant = f"; did you mean '{os.path.join(folder, near[0])}'?" if near else ""
    return InputError(f"there is no file {os.fspath(path)}{meant}", hint="check the path")


def refuse_run(path: str | os.PathLike[str]) -> None:
    """Raise InputError if a path is the folder of a run, with `run.json` or a summary: it is no input."""
    folder = Path(path)
    if not os.path.isdir(folder) or not any((folder / name).is_file() for name in (MARK, *SUMMARIES)):
        return
    mapping = next((file for file in sorted(folder.glob("[0-9]*.yaml")) if ".certificate." not in file.name), None)
    one = "" if mapping is None else f"`tilewright evaluate {mapping}` evaluates a mapping of it, and "
    raise InputError(f"{path} is the folder of a run, not an input", hint=f"{one}`tilewright report {path}` shows it")


def run_hint(folder: Path, others: str = "") -> str:
    """Return a hint for a folder that has no results to show: the run of a language model has them by pass."""
    if (folder / "generation.json").is_file():
        return f"each pass has a folder: {folder / 'prefill'}"
    return f"give a folder that `tilewright map -o` wrote{others}"


def read_bytes(path: str | os.PathLike[str], most: int = MAX_BYTES) -> bytes:
    """Return the contents of a regular file. Pipes and devices are refused without waiting.

    Raises:
        InputError: The file is absent, unreadable, empty, not regular, or larger than `most` bytes.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"{path} is {_kind(status.st_mode)}; expected a file")
            # some file systems report size 0 for files with content
            data = file.read(min(most, status.st_size) + 2**16)
    except FileNotFoundError:
        raise missing_file(path) from None
    except (IsADirectoryError, NotADirectoryError):
        whole, member = file_and_member(path)
        if member is not None:
            message = f"{whole} is read as a whole: it has no layers, so '{member}' is not one"
            raise InputError(message, hint=f"give {whole}") from None
        kind = "a folder" if os.path.isdir(path) else "not a path"
        raise InputError(f"{path} is {kind}; expected a file{_examples(path)}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # the name contains a NUL
        raise InputError(f"cannot read {path}: {error}") from None
    if not data:
        raise InputError(f"{path} is empty", hint="check that it was written completely")
    if len(data) > most:
        raise InputError(f"{path} is too large: the limit is {most:,} bytes")
    return data


def _examples(folder: str | os.PathLike[str]) -> str:
    """Return `, such as 'a/b'` with the first files of a folder, or an empty text if it has none."""
    try:
        paths = sorted(entry.path for entry in os.scandir(folder) if entry.is_file())[:MAX_EXAMPLES]
    except OSError:
        paths = []
    return f", such as {' or '.join(repr(path) for path in paths)}" if paths else ""


def _kind(mode: int) -> str:
    return "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"


def read_text(path: str | os.PathLike[str]) -> str:
    """Return a UTF-8 text with line ends as `\\n`; raise InputError as `read_bytes` does."""
    data = read_bytes(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: {error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text; see `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file atomically, in place of an existing one.

    Either the old or the new file exists at any time.

    Raises:
        OutputError: The folder is absent or read-only, or the disk is full.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(name, _mode(path))
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None


def _mode(path: Path) -> int:
    """Return the permissions of an existing file, or those of a new one."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def made(folder: str | os.PathLike[str]) -> Path:
    """Create the folder if necessary and return its path; raise OutputError if that fails."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot create the folder {path}: {error.strerror}") from None
    except ValueError as error:  # the name contains a NUL
        raise OutputError(f"cannot create the folder {path}: {error}") from None
    return path


def file_name(*words: str) -> str:
    """Return words joined to one file name that is valid on every file system."""
    return "_".join(re.sub(r"[^A-Za-z0-9_.\-]+", "_", word)[:MAX_NAME] for word in words)


class _Lock:
    """Lock of this process on a folder; it ends with the object, or with the process, because the system keeps it."""

    held: WeakValueDictionary[tuple[int, int], _Lock] = WeakValueDictionary()
    """Locks of this process, by device and inode of the folder."""
    locks_folders = sys.platform != "win32"
    """Whether the system can lock a folder. Otherwise an empty file in it is locked, through SQLite."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def __del__(self) -> None:
        self._end()

    @classmethod
    def on(cls, folder: Path) -> _Lock:
        """Return the lock on a folder, which a process may take several times.

        Raises:
            BlockingIOError: Another process has it.
            OutputError: The folder cannot be locked.
        """
        try:
            status = os.stat(folder)
            key = status.st_dev, status.st_ino
            lock = cls.held.get(key)
            if lock is None:
                lock = cls(_locked(folder) if cls.locks_folders else _with_locked_file(folder))
        except BlockingIOError:
            raise
        except OSError as error:
            hint = "give a folder on a file system that has locks"
            raise OutputError(f"cannot lock the folder {folder}: {error.strerror}", hint=hint) from None
        cls.held[key] = lock
        return lock


@contextlib.contextmanager
def turn_on_host(name: str, seconds: float) -> Iterator[None]:
    """Return a context that one process of this host has at a time; others wait for it, but not longer than this.

    It only saves work: without a folder that can be locked, no process waits.
    """
    folder, lock = Path(tempfile.gettempdir()) / f"tilewright-{name}-{getattr(os, 'getuid', int)()}", None
    end = time.monotonic() + seconds
    with contextlib.suppress(OSError, OutputError):
        folder.mkdir(mode=0o700, exist_ok=True)
        while lock is None and time.monotonic() < end:
            try:
                lock = _Lock.on(folder)
            except BlockingIOError:
                time.sleep(TURN_SECONDS)
    try:
        yield
    finally:
        del lock


def _locked(folder: Path) -> Callable[[], None]:
    """Lock a folder; return the function that ends the lock. Raises OSError."""
    if sys.platform == "win32":
        raise NotImplementedError
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return lambda: os.close(handle)


def _with_locked_file(folder: Path) -> Callable[[], None]:
    """Lock a file of a folder; return the function that ends the lock. Raises OSError."""
    import sqlite3

    connection = None
    try:
        connection = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=OFF")  # no second file
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise BlockingIOError from None
        raise OSError(errno.ENOLCK, str(error)) from None
    return connection.close


class RunFolder:
    """Folder for the files of one run, never mixed with those of another.

    As long as the object lives, no other process acquires the folder. A file that cannot be written does not end the run.
    `failure` keeps the first error, and the next file is tried.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = made(path)
        self.failure: OutputError | None = None
        self._lock: _Lock | None = None

    def acquire(self, work: str, content: str, run: str, *, resume: bool = False, force: bool = False) -> None:
        """Acquire the folder for this run.

        Files of an earlier run of the same work are removed. Those of this very run are kept, so that it can resume.

        Args:
            work: Description of the work for messages.
            content: Key of the work: equal for equal work.
            run: Key of the run: equal for equal runs.
            resume: Accept only a folder of this very run.
            force: Also remove the files of a run of other work.

        Raises:
            InputError: The folder belongs to another run, or another process writes to it.
            OutputError: The folder cannot be written to, or not be locked.
        """
        try:
            self._lock = _Lock.on(self.path)
        except BlockingIOError:
            running = (self._owner() or {}).get("work", "unknown")
            text = f"another process writes its files to {self.path}: {running}"
            raise InputError(text, hint="wait until it ends, or give another folder") from None
        before = self._owner()
        if before is not None and before.get("run") != run:
            if before.get("content") != content and not force or resume:
                hint = "give another folder" + ("" if resume else ", or --force, which removes that run's files")
                raise InputError(
                    f"{self.path} contains files of another run: {before.get('work', 'unknown')}", hint=hint
                )
            self.clear()
        mark = {"schema_version": 1, "kind": "run", "work": work, "content": content, "run": run}
        write_text(self.path / MARK, json.dumps(mark, indent=2) + "\n")

    def write(self, name: str, text: str) -> None:
        """Write a file of the run; an error is stored in `failure`."""
        try:
            write_text(self.path / name, text)
        except OutputError as error:
            self.failure = self.failure or error

    def _owner(self) -> dict[str, Any] | None:
        """Return the record of the run that owns the folder, or None if there is none.

        The record is empty if it is damaged, or if there are summaries without a record.
        """
        try:
            loads = json.loads(read_text(self.path / MARK))
        except (InputError, ValueError):
            there = [self.path / name for name in (MARK, *SUMMARIES)]
            return {} if any(os.path.lexists(path) for path in there) else None
        return loads if isinstance(loads, dict) else {}

    def clear(self) -> None:
        """Remove the files that runs write, apart from the record of the owner; raise OutputError if that fails."""
        try:
            numbered = (self.path.glob(pattern) for pattern in ("[0-9][0-9][0-9]*_*.yaml", "group_[0-9]*.yaml"))
            for path in [*(self.path / name for name in SUMMARIES), *sorted(itertools.chain(*numbered))]:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"cannot remove {error.filename}: {error.strerror}") from None
