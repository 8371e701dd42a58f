"""Child processes that run functions, one request at a time.

A child starts with a safe module path: Python's own modules and installed packages come first, and the current folder
is not included. A local `random.py` is therefore not run. Its memory may be limited. It ends when its parent ends for
any reason. Its stdout goes to stderr, and Ctrl-C does not reach it.

    child = Child()
    child.ask(math.factorial, 5, seconds=60)

`limited` runs work on untrusted files, with limits of memory and time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, Literal

import cloudpickle  # type: ignore[import-untyped]  # it pickles objects of notebooks and scripts

from tilewright.interrupts import request_stop

if sys.platform != "win32":
    import resource

_START = (
    "import json, sys; path, *limits = json.loads(sys.argv[1]); "
    "sys.path += [each for each in path if each not in sys.path]; "
    "from tilewright.child import serve; serve(*limits)"
)
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LENGTH = struct.Struct("!Q")
_STOP = b""
_CLEANUP_SECONDS = 4.0
TIMEOUT_SECONDS = 12
"""Seconds of wall time per second of CPU time, since the host may be loaded."""

Kind = Literal["note", "answer", "failure", "end"]


class ChildFailed(Exception):
    """Failure of a child; the next request starts a new process.

    Codes are `timeout`, `memory` (it used too much), `crashed` (it ended), or one of the work's own.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[1])

    @classmethod
    def late(cls, seconds: float) -> ChildFailed:
        """Return the error of a child that reached its time limit."""
        return cls("timeout", f"took longer than {seconds:g} s and was stopped")


@dataclass(frozen=True)
class ChildMessage:
    """A message from a child: a note, an answer, an exception, or its end with a description."""

    child: Child
    run: object
    kind: Kind
    value: Any

    @property
    def stale(self) -> bool:
        """Whether the message is from a process that was closed since."""
        return self.run is not self.child.run


class Child:
    """A process that starts at the first request, and again after it has ended.

    Args:
        message_queue: Queue for all messages; several children may share one.
        memory: Maximum bytes, code excluded. If exceeded, work raises MemoryError, or the process ends.
        quiet: Whether its output is dropped.
        cleans_up: Whether work is ended by SystemExit, with four seconds to leave its `with` blocks.
    """

    def __init__(
        self,
        message_queue: queue.SimpleQueue[Any] | None = None,
        *,
        memory: int | None = None,
        quiet: bool = False,
        cleans_up: bool = False,
    ) -> None:
        self.message_queue: queue.SimpleQueue[Any] = message_queue or queue.SimpleQueue()
        self.memory, self.quiet, self.cleans_up = memory, quiet, cleans_up
        self.run: subprocess.Popen[bytes] | None = None
        self._asking = threading.Lock()

    def ask(self, work: Callable[..., Any], *arguments: object, seconds: float) -> Any:
        """Return `work(*arguments)`, run in the child. The child must have its own queue.

        Raises:
            ChildFailed: There is no answer.
            Exception: The work raised it.
        """
        with self._asking:
            return self._asked(work, arguments, seconds)

    def _asked(self, work: Callable[..., Any], arguments: tuple[object, ...], seconds: float) -> Any:
        try:
            self.begin(work, *arguments)
            message = self.message_queue.get(timeout=seconds)
            while message.stale or message.kind == "note":
                message = self.message_queue.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise ChildFailed.late(seconds) from None
        except BaseException:  # the next request must not receive this answer
            self.close()
            raise
        if message.kind == "end":
            self.close()
            raise ChildFailed("crashed", message.value)
        if message.kind == "failure":
            raise message.value
        return message.value

    def begin(self, work: Callable[..., Any], *arguments: object) -> None:
        """Send a request. Its messages arrive in `message_queue`. Pickling may raise any exception."""
        self._send(cloudpickle.dumps((work, arguments)))

    def stop(self) -> None:
        """Request an early end of the current work: `stop_requested()` becomes true in the child."""
        self._send(_STOP)

    def close(self) -> None:
        """End the process at once."""
        run, self.run = self.run, None
        if run is None:
            return
        assert run.stdin is not None
        with contextlib.suppress(OSError):
            run.stdin.close()
        if self.cleans_up:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(_CLEANUP_SECONDS)
        _kill(run)
        run.wait()

    def _send(self, message: bytes) -> None:
        process = self._started()
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # the receiving thread reports the end of the process
            _write(process.stdin, message)

    def _started(self) -> subprocess.Popen[bytes]:
        if self.run is None:
            ends = threading.current_thread() is threading.main_thread() and not self.cleans_up
            self.run = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps([module_path(), self.memory, self.cleans_up, ends])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if self.quiet else None,
                env=environment(),
                start_new_session=True,  # Ctrl-C is handled by the parent
            )
            threading.Thread(target=self._receive_messages, args=(self.run,), daemon=True).start()
        return self.run

    def _receive_messages(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as stream:
            while (message := _read(stream)) is not None:
                try:
                    kind, value = cloudpickle.loads(message)
                except Exception as error:  # unpickling a third party's class may raise anything
                    kind, value = "failure", error
                self.message_queue.put(ChildMessage(self, process, kind, value))
        self.message_queue.put(ChildMessage(self, process, "end", describe_exit(process.wait())))


@cache
def shared_child(
    purpose: str = "", *, memory: int | None = None, quiet: bool = False, cleans_up: bool = False
) -> Child:
    """Return the child of this purpose and kind that the whole program shares."""
    child = Child(memory=memory, quiet=quiet, cleans_up=cleans_up)
    atexit.register(child.close)
    return child


def limited(work: Callable[..., Any], *arguments: object, seconds: int, memory: int) -> Any:
    """Return `work(*arguments)`, run in a child with limits.

    Args:
        seconds: CPU seconds, without the time to load code.
        memory: Maximum bytes, code excluded.

    Raises:
        ChildFailed: A limit was exceeded, or the child ended.
        Exception: The work raised it.
    """
    child = shared_child(memory=memory, quiet=True)
    try:
        return child.ask(_run_within, seconds, work, arguments, seconds=TIMEOUT_SECONDS * seconds)
    except MemoryError:
        child.close()
        raise ChildFailed("memory", f"takes more than {memory // 2**20:,} MiB of memory") from None


def describe_exit(code: int) -> str:
    """Return how a process ended, in words."""
    if code == -getattr(signal, "SIGXCPU", 0):
        return "took longer than it may"
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def environment() -> dict[str, str]:
    """Return the environment of a child: the caller's, with one thread for each process."""
    return {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ, "PYTHONSAFEPATH": "1"}


def current_folder() -> str | None:
    """Return the current folder; None if it is gone."""
    with contextlib.suppress(FileNotFoundError):
        return os.getcwd()
    return None


def module_path() -> list[str]:
    """Return the module path of this process with absolute paths."""
    gone = current_folder() is None
    return [os.path.abspath(place) for place in sys.path if not gone or os.path.isabs(place)]


def _kill(run: subprocess.Popen[bytes]) -> None:
    """End a child, and the programs and copies of itself that it has started."""
    if sys.platform != "win32" and run.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    run.kill()


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    """Return the next message; None at the end, or if it is truncated."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    message = stream.read(length)
    return message if len(message) == length else None


# -- the child's side --------------------------------------------------------------------------------------------

_outbox: IO[bytes] | None = None
_process = 0
"""Number of the process that serves; a copy that a plugin forks has another, and answers nothing."""
_writing = threading.Lock()


def is_child() -> bool:
    """Return whether this process is a child."""
    return _outbox is not None


def send_note(note: object) -> None:
    """In a child, send a note before the answer; from any thread."""
    assert _outbox is not None, "only a child sends notes"
    _send_message("note", note)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Return a context that delays the end of a child with `cleans_up`.

    It protects resources that have no name yet, such as a program that is being started.
    """
    late: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: late.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
    if late:
        _leave()


def serve(memory: int | None, cleans_up: bool, ends: bool) -> None:
    """Run a child: answer requests until the parent closes it or ends.

    Args:
        memory, cleans_up: See `Child`.
        ends: Whether Linux ends the child with the thread that started it.
    """
    global _outbox, _process
    _process = os.getpid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox = os.fdopen(os.dup(0), "rb")
    _outbox = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if ends and sys.platform == "linux":
        _end_with_parent()
    if memory is not None:
        _limit(memory)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    signal.signal(signal.SIGTERM, _leave if cleans_up else signal.SIG_DFL)
    threading.Thread(target=_receive_requests, args=(inbox, requests, cleans_up), daemon=True).start()
    while True:
        try:
            work, arguments = cloudpickle.loads(requests.get())
            _send_message("answer", work(*arguments))
        except BaseException as error:  # the parent handles any exception
            if isinstance(error, _Leaving):
                return
            _send_message("failure", portable(error))


class _Leaving(SystemExit):
    """The parent has ended, or closed the child."""


def _leave(*_: object) -> None:
    raise _Leaving


def _receive_requests(inbox: IO[bytes], requests: queue.SimpleQueue[bytes], cleans_up: bool) -> None:
    """Receive requests. The end of the parent ends this process at once."""
    while (message := _read(inbox)) is not None:
        if message == _STOP:
            request_stop()
        else:
            requests.put(message)
    if cleans_up:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_CLEANUP_SECONDS)
    os._exit(1)


def _send_message(kind: Kind, value: object) -> None:
    if os.getpid() != _process:
        os._exit(1)
    message = cloudpickle.dumps((kind, value))
    assert _outbox is not None
    with _writing:
        _write(_outbox, message)


def portable(error: BaseException) -> BaseException:
    """Return the exception, or an equivalent one that can be pickled."""
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:  # a third party's class may raise anything
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with_parent() -> None:
    """Let Linux end this process with the thread that started it.

    This works even if the process runs C code that blocks all threads.
    """
    import ctypes

    end_with_parent = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(end_with_parent, signal.SIGKILL)


def _limit(memory: int) -> None:
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _run_within(seconds: int, work: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
    """Return the result of work within CPU seconds; at the limit the process ends."""
    if sys.platform == "win32":
        return work(*arguments)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, most))
    try:
        return work(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
