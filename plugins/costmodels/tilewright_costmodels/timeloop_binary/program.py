"""Running a program with a time limit, and what became of it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TAIL = 2000
"""Characters kept of what the program printed last."""
_MOST = 32 * 2**20
"""Bytes read of a file that it wrote."""


@dataclass(frozen=True)
class Ended:
    """`code` None: it ran out of time, or could not be started (`printed` says why). `wrote`: the text of the file asked for, if there is one."""

    code: int | None
    printed: str
    wrote: str | None
    late: bool = False


def run(program: str, files: Mapping[str, str], output: str, seconds: float) -> Ended:
    """Run `program` on files in an empty folder, all of its children with it, for at most so long."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        log = folder / "log"
        with log.open("wb") as sink:
            try:
                process = subprocess.Popen(
                    [program, *files],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                return Ended(None, str(error), None)
            late = False
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                late = True
            finally:
                _end(process)
        return Ended(None if late else process.returncode, _tail(log), _text(folder / output), late)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and what it started, if anything still runs."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4 * _TAIL))
        return file.read().decode("utf-8", errors="replace")[-_TAIL:]


def _text(path: Path) -> str | None:
    if not path.is_file() or path.stat().st_size > _MOST:
        return None
    return path.read_text(encoding="utf-8", errors="replace")
