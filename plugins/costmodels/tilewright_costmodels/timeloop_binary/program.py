"""Running a program with a time limit, and what became of it."""

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

from tilewright.child import NoAnswer, lasting, unbroken

_START_STOP_SECONDS = 10.0
"""Seconds beside its own that a program takes to be started and ended."""
_TAIL_CHARACTERS = 2000
"""Characters kept of what the program printed last."""
_MAX_BYTES = 32 * 2**20
"""Bytes read of a file that it wrote."""


@dataclass(frozen=True)
class FinishedProgram:
    """`printed`: the end of it. `wrote`: the text of the file asked for; None if there is none."""

    code: int
    printed: str
    wrote: str | None


def run(program: str, files: Mapping[str, str], output: str, seconds: float) -> FinishedProgram:
    """Run `program` on files in an empty folder, all of its children with it, for at most so long.

    A process of its own sees to it that nothing of this is left, whatever ends ours.

    Raises:
        NoAnswer: it took longer (`timeout`), or could not be started (`absent`).
    """
    found = shutil.which(program)
    if found is None:
        raise NoAnswer("absent", f"could not be started: there is no program {program}")
    child = lasting(tidies=True)
    finished: FinishedProgram = child.ask(
        _run, os.path.abspath(found), files, output, seconds, seconds=seconds + _START_STOP_SECONDS
    )
    return finished


def _run(program: str, files: Mapping[str, str], output: str, seconds: float) -> FinishedProgram:
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        process = None
        try:
            with unbroken():
                process = _start([program, *files], folder)
            printed = _OutputTail(process)
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise NoAnswer.late(seconds) from None
        finally:
            if process is not None:
                _kill(process)
        return FinishedProgram(process.returncode, printed.text(), _text(folder / output))


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """In a session of its own. Raises NoAnswer."""
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
        raise NoAnswer("absent", f"could not be started: {error}") from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it and what it started, if anything still runs."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _OutputTail(threading.Thread):
    """What a process prints, of which the end is kept."""

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
        """To be asked after the process ended."""
        self.join(timeout=1)  # what left its session may hold the other end
        return self.tail.decode("utf-8", errors="replace")[-_TAIL_CHARACTERS:]


def _text(path: Path) -> str | None:
    if not path.is_file() or path.stat().st_size > _MAX_BYTES:
        return None
    return path.read_text(encoding="utf-8", errors="replace")
