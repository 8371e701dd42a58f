"""Run of an external program with a time limit."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.child import ChildFailed, shared_child, uninterrupted

_START_STOP_SECONDS = 10.0
"""Seconds for starting and ending the program, in addition to its own time limit."""
_TAIL_CHARACTERS = 2000
"""Characters kept from the end of the program's output."""
_MAX_BYTES = 32 * 2**20
"""Maximum size of a file written by the program that is read."""


@dataclass(frozen=True)
class FinishedProgram:
    """Outcome of a program.

    Attributes:
        code: exit code.
        printed: end of its output.
        wrote: text of the requested file, or None if there is none.
    """

    code: int
    printed: str
    wrote: str | None


def run(program: str, files: Mapping[str, str], output: str, seconds: float) -> FinishedProgram:
    """Run `program` on files in an empty folder, with all its child processes, for at most `seconds`.

    A process of its own cleans up the folder and the children, even if this process is killed.

    Raises:
        ChildFailed: the time limit was exceeded (`timeout`), or the program could not be started (`absent`).
    """
    path = shutil.which(program)
    if path is None:
        raise ChildFailed("absent", f"could not be started: no program {program} was found")
    child = shared_child(cleans_up=True)
    finished: FinishedProgram = child.ask(
        _run, os.path.abspath(path), files, output, seconds, seconds=seconds + _START_STOP_SECONDS
    )
    return finished


def _run(program: str, files: Mapping[str, str], output: str, seconds: float) -> FinishedProgram:
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        process = None
        try:
            with uninterrupted():
                process = _start([program, *files], folder)
            printed = _OutputTail(process)
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise ChildFailed.late(seconds) from None
        finally:
            if process is not None:
                _kill(process)
        return FinishedProgram(process.returncode, printed.text(), _text(folder / output))


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own.

    Raises:
        ChildFailed: the command could not be started.
    """
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ChildFailed("absent", f"could not be started: {error}") from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children, if any still run."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _OutputTail(threading.Thread):
    """Thread that reads the output of a process and keeps its end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        assert process.stdout is not None
        self.stream, self.tail = process.stdout, b""
        self.start()

    def run(self) -> None:
        with self.stream:
            while piece := os.read(self.stream.fileno(), 2**16):
                self.tail = (self.tail + piece)[-4 * _TAIL_CHARACTERS :]

    def text(self) -> str:
        """Return the end of the output, after the process has ended."""
        self.join(timeout=1)  # a child that left the session may still hold the other end
        return self.tail.decode("utf-8", errors="replace")[-_TAIL_CHARACTERS:]


def _text(path: Path) -> str | None:
    if not path.is_file() or path.stat().st_size > _MAX_BYTES:
        return None
    return path.read_text(encoding="utf-8", errors="replace")
