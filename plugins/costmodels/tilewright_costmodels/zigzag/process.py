"""A process that answers requests, one line each, within a time limit; started when it is first asked."""

from __future__ import annotations

import atexit
import contextlib
import functools
import queue
import subprocess
import sys
import threading

WORKER = "tilewright_costmodels.zigzag.worker"


class NoAnswer(Exception):
    """The process took too long, or ended; it is started anew for the next request."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Process:
    """`python -m WORKER`, with a thread that waits for its answers."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def ask(self, request: str, seconds: float) -> str:
        """Raises NoAnswer."""
        process = self._started()
        assert process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # that it ended is noticed below
                process.stdin.write(request + "\n")
                process.stdin.flush()
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise NoAnswer("timeout", f"took longer than {seconds:g} s and was stopped") from None
        except BaseException:  # an answer that nobody waits for must not be that to the next request
            self.close()
            raise
        if answer is None:
            code = process.wait()
            self.close()
            raise NoAnswer("crashed", f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}")
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._answers = queue.SimpleQueue()
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # Ctrl-C is for us
            )
            threading.Thread(target=_listen, args=(self._process, self._answers), daemon=True).start()
        return self._process


def _listen(process: subprocess.Popen[str], answers: queue.SimpleQueue[str | None]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            answers.put(line)
    answers.put(None)


@functools.cache
def process() -> Process:
    """The one of this program; it ends with it."""
    found = Process()
    atexit.register(found.close)
    return found
