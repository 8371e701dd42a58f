"""Files: read within limits; written whole or not at all; folders that belong to one run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

from tilewright.errors import InputError, OutputError

MAX_BYTES = 2 * 2**20
"""Of a document: more would take seconds to read."""
MAX_TEXT = 10_000
"""Characters of one value, one line or one formula."""
MAX_NAME = 80
"""Characters of a word in the name of a file."""
MARK = "run.json"
"""Says which run a folder belongs to."""
SUMMARIES = ("summary.json", "summary.csv", "report.html", "compare.json", "compare.csv")


def cache_folder() -> Path:
    """`TILEWRIGHT_CACHE`, or `tilewright` in the platform's folder for caches. Raises OutputError: there is none."""
    import platformdirs  # most commands need no cache

    if told := os.environ.get("TILEWRIGHT_CACHE"):
        return Path(told)
    # a user whom the system does not know: newer ones raise, older ones leave the ~ as it is
    with contextlib.suppress(RuntimeError):
        folder = platformdirs.user_cache_path("tilewright", appauthor=False)
        if folder.is_absolute():
            return folder
    raise OutputError("there is no home directory to keep results in", hint="set TILEWRIGHT_CACHE")


def is_file(path: str | os.PathLike[str]) -> bool:
    """Is it the name of a regular file? No text is too long or too odd to be asked."""
    return os.path.isfile(path)


def file_and_member(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """FILE/MEMBER: the file, and the name behind it, which may have slashes; (path, None) where that is a file or none is."""
    text = os.fspath(path)
    for end in () if is_file(text) else (at for at, letter in enumerate(text) if letter == "/"):
        if is_file(text[:end]):
            return text[:end], text[end + 1 :]
    return text, None


def read_bytes(path: str | os.PathLike[str], most: int = MAX_BYTES) -> bytes:
    """All of a regular file: pipes and devices are not read, and nothing is waited for.

    Raises:
        InputError: it is absent, unreadable, empty, no regular file or has more than `most` bytes.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"{path} is {_kind(status.st_mode)}, a file was expected")
            data = file.read(min(most, status.st_size) + 2**16)  # some say that they are empty, and are not
    except FileNotFoundError:
        raise InputError(f"there is no file {path}", hint="check the path") from None
    except (IsADirectoryError, NotADirectoryError):
        whole, member = file_and_member(path)
        if member is not None:
            message = f"{whole} is read as a whole: it has no layers of which '{member}' could be one"
            raise InputError(message, hint=f"give {whole}") from None
        raise InputError(f"{path} is {'a folder' if os.path.isdir(path) else 'no path'}, a file was expected") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the name
        raise InputError(f"cannot read {path}: {error}") from None
    if not data:
        raise InputError(f"{path} is empty", hint="check that it was written to its end")
    if len(data) > most:
        raise InputError(f"{path} is too large: at most {most:,} bytes are read")
    return data


def _kind(mode: int) -> str:
    return "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"


def read_text(path: str | os.PathLike[str]) -> str:
    """All of a text in UTF-8, any ends of lines as `\\n`. Raises InputError, as `read_bytes`."""
    data = read_bytes(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: {error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """A text in UTF-8, in the place of what was there. Whatever happens meanwhile, the old file or the new one is there.

    Raises:
        OutputError: the folder is absent or read-only, the disk is full.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.chmod(name, _mode(path))
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None


def _mode(path: Path) -> int:
    """Permissions: as before, or those that a new file gets."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def made(folder: str | os.PathLike[str]) -> Path:
    """A folder that exists. Raises OutputError."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the name
        raise OutputError(f"cannot make the folder {path}: {error}") from None
    return path


def file_name(*words: str) -> str:
    """Words as one name that every file system takes: plain characters, and not too many of them."""
    return "_".join(re.sub(r"[^A-Za-z0-9_.\-]+", "_", word)[:MAX_NAME] for word in words)


class RunFolder:
    """Where the files of one run go; those of another are never among them.

    A file that cannot be written is no end of the run: `failure` says what was wrong first, and the next one is tried.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = made(path)
        self.failure: OutputError | None = None

    def claim(self, work: str, content: str, run: str, *, resume: bool = False, force: bool = False) -> None:
        """Make it the folder of this run.

        What an earlier run of the same work left is taken away, unless it is the very same run, which may go on.

        Args:
            work: what is done, for people.
            content: the same for the same work.
            run: the same for the same run.
            resume: only go on with this very run.
            force: take away what a run of other work left, too.

        Raises:
            InputError: another run has it.
            OutputError: it cannot be written to.
        """
        before = self._owner()
        if before is not None and before.get("run") != run:
            if before.get("content") != content and not force or resume:
                hint = "give another folder" + ("" if resume else ", or --force, which takes that run's files away")
                raise InputError(
                    f"{self.path} has the files of another run: {before.get('work', 'unknown')}", hint=hint
                )
            self._clear()
        mark = {"schema_version": 1, "work": work, "content": content, "run": run}
        write_text(self.path / MARK, json.dumps(mark, indent=2) + "\n")

    def write(self, name: str, text: str) -> None:
        """Write a file of the run; see `failure`."""
        try:
            write_text(self.path / name, text)
        except OutputError as error:
            self.failure = self.failure or error

    def _owner(self) -> dict[str, Any] | None:
        """What the mark says; an empty dict where it is damaged or there are summaries without one; None: nobody's."""
        try:
            found = json.loads(read_text(self.path / MARK))
        except (InputError, ValueError):
            there = [self.path / name for name in (MARK, *SUMMARIES)]
            return {} if any(os.path.lexists(path) for path in there) else None
        return found if isinstance(found, dict) else {}

    def _clear(self) -> None:
        """Take away what runs write; raises OutputError."""
        try:
            for path in [self.path / name for name in SUMMARIES] + sorted(self.path.glob("[0-9][0-9][0-9]*_*.yaml")):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"cannot take {error.filename} away: {error.strerror}") from None
