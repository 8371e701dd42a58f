"""Child processes that do what they are asked, one request at a time.

A child starts with a safe path: Python's own modules and installed packages come before anything the parent added, and the
current folder is not among them, so that no `random.py` that lies there is run. It may be limited in memory. It ends
when its parent does, whatever ended that; what a plugin prints in it goes to stderr; Ctrl-C does not reach it.

    child = Child()
    child.ask(math.factorial, 5, seconds=60)

`limited` does the same for work on untrusted files, within limits of memory and time.
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

import cloudpickle  # type: ignore[import-untyped]  # objects of notebooks and scripts travel, too

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
_TIDYING_SECONDS = 4.0
_PATIENCE = 12
"""Seconds for each second of CPU time: the machine may be busy."""

Kind = Literal["note", "answer", "failure", "end"]


class NoAnswer(Exception):
    """The child took too long (`timeout`) or too much memory (`memory`), or ended (`crashed`), and is started anew for the
    next request; or work there gave up for a reason of its own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[1])

    @classmethod
    def late(cls, seconds: float) -> NoAnswer:
        """It took longer."""
        return cls("timeout", f"took longer than {seconds:g} s and was stopped")


@dataclass(frozen=True)
class Told:
    """What a child said: a note on the way, an answer, the exception that was raised instead, or that it ended (and how)."""

    child: Child
    run: object
    kind: Kind
    value: Any

    @property
    def stale(self) -> bool:
        """It is from a process that was closed since."""
        return self.run is not self.child.run


class Child:
    """A process that is started when it is first asked, and again after it ended.

    Args:
        told: where all that it says arrives; several children may share one queue.
        memory: bytes that it may take beside its code; more make it fail with MemoryError, or end.
        quiet: what it prints is dropped.
        tidies: when it shall end, work under way is ended by SystemExit and has two seconds to leave its `with` blocks.
    """

    def __init__(
        self,
        told: queue.SimpleQueue[Any] | None = None,
        *,
        memory: int | None = None,
        quiet: bool = False,
        tidies: bool = False,
    ) -> None:
        self.told: queue.SimpleQueue[Any] = told or queue.SimpleQueue()
        self.memory, self.quiet, self.tidies = memory, quiet, tidies
        self.run: subprocess.Popen[bytes] | None = None
        self._asking = threading.Lock()

    def ask(self, work: Callable[..., Any], *arguments: object, seconds: float) -> Any:
        """What `work(*arguments)` returns there. Raises what it raises, and NoAnswer; for a child with its own queue."""
        with self._asking:
            return self._asked(work, arguments, seconds)

    def _asked(self, work: Callable[..., Any], arguments: tuple[object, ...], seconds: float) -> Any:
        try:
            self.begin(work, *arguments)
            told = self.told.get(timeout=seconds)
            while told.stale or told.kind == "note":
                told = self.told.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise NoAnswer.late(seconds) from None
        except BaseException:  # an answer that nobody waits for must not be that to the next request
            self.close()
            raise
        if told.kind == "end":
            self.close()
            raise NoAnswer("crashed", told.value)
        if told.kind == "failure":
            raise told.value
        return told.value

    def begin(self, work: Callable[..., Any], *arguments: object) -> None:
        """Send a request; `told` gets what comes of it. Raises what pickling raises."""
        self._send(cloudpickle.dumps((work, arguments)))

    def stop(self) -> None:
        """Ask the work under way to end early: `stop_requested()` is true there from now on."""
        self._send(_STOP)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        run, self.run = self.run, None
        if run is None:
            return
        assert run.stdin is not None
        with contextlib.suppress(OSError):
            run.stdin.close()
        if self.tidies:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(_TIDYING_SECONDS)
        run.kill()
        run.wait()

    def _send(self, message: bytes) -> None:
        process = self._started()
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # that it ended is told by the thread that listens
            _write(process.stdin, message)

    def _started(self) -> subprocess.Popen[bytes]:
        if self.run is None:
            ends = threading.current_thread() is threading.main_thread() and not self.tidies
            self.run = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps([_path(), self.memory, self.tidies, ends])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if self.quiet else None,
                env={**dict.fromkeys(_ONE_THREAD, "1"), **os.environ, "PYTHONSAFEPATH": "1"},
                start_new_session=True,  # Ctrl-C is for us
            )
            threading.Thread(target=self._listen, args=(self.run,), daemon=True).start()
        return self.run

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as stream:
            while (message := _read(stream)) is not None:
                try:
                    kind, value = cloudpickle.loads(message)
                except Exception as error:  # a third party's class may raise anything when it is made anew
                    kind, value = "failure", error
                self.told.put(Told(self, process, kind, value))
        self.told.put(Told(self, process, "end", ended(process.wait())))


@cache
def lasting(*, memory: int | None = None, quiet: bool = False, tidies: bool = False) -> Child:
    """The child of this kind that all share, for as long as this program runs."""
    child = Child(memory=memory, quiet=quiet, tidies=tidies)
    atexit.register(child.close)
    return child


def limited(work: Callable[..., Any], *arguments: object, seconds: int, memory: int) -> Any:
    """What `work(*arguments)` returns, in a child that may take so much.

    Args:
        seconds: of CPU time, beside what loading the code takes.
        memory: bytes, beside code.

    Raises:
        NoAnswer: it takes more, or ended.
        Exception: what it raises.
    """
    child = lasting(memory=memory, quiet=True)
    try:
        return child.ask(_within, seconds, work, arguments, seconds=_PATIENCE * seconds)
    except MemoryError:
        child.close()
        raise NoAnswer("memory", f"takes more than {memory // 2**20:,} MiB of memory") from None


def ended(code: int) -> str:
    """How a process ended, in words."""
    if code == -getattr(signal, "SIGXCPU", 0):
        return "took longer than it may"
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _path() -> list[str]:
    """What this process imports from, the current folder by its name."""
    with contextlib.suppress(FileNotFoundError):  # the current folder is gone
        return [os.path.abspath(each) for each in sys.path]
    return [each for each in sys.path if os.path.isabs(each)]


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    """The next message; None at the end, and where it was cut."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    message = stream.read(length)
    return message if len(message) == length else None


# -- the child's side --------------------------------------------------------------------------------------------

_outbox: IO[bytes] | None = None
_writing = threading.Lock()


def is_child() -> bool:
    """Return whether this process is a child."""
    return _outbox is not None


def tell(note: object) -> None:
    """Inside a child: something on the way to the answer; from any thread."""
    assert _outbox is not None, "only a child tells"
    _say("note", note)


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Inside a child that tidies: where the parent ends meanwhile, this is done first, and then left.

    For what would be lost between being made and having a name, such as a program that is started.
    """
    late: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: late.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
    if late:
        _leave()


def serve(memory: int | None, tidies: bool, ends: bool) -> None:
    """The child's side: answer requests until the parent closes, or ends.

    Args:
        memory, tidies: see `Child`.
        ends: Linux shall end it with the thread that started it.
    """
    global _outbox
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
    signal.signal(signal.SIGTERM, _leave if tidies else signal.SIG_DFL)
    threading.Thread(target=_hear, args=(inbox, requests, tidies), daemon=True).start()
    while True:
        try:
            work, arguments = cloudpickle.loads(requests.get())
            _say("answer", work(*arguments))
        except BaseException as error:  # whatever work raises is the parent's to judge
            if isinstance(error, _Leaving):
                return
            _say("failure", _portable(error))


class _Leaving(SystemExit):
    """The parent has ended, or closed."""


def _leave(*_: object) -> None:
    raise _Leaving


def _hear(inbox: IO[bytes], requests: queue.SimpleQueue[bytes], tidies: bool) -> None:
    """Requests as they come; the end of the parent is the end of this process, whatever it is doing."""
    while (message := _read(inbox)) is not None:
        if message == _STOP:
            request_stop()
        else:
            requests.put(message)
    if tidies:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_TIDYING_SECONDS)
    os._exit(1)


def _say(kind: Kind, value: object) -> None:
    message = cloudpickle.dumps((kind, value))
    assert _outbox is not None
    with _writing:
        _write(_outbox, message)


def _portable(error: BaseException) -> BaseException:
    """The exception, or where it cannot travel, one that says the same."""
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:  # a third party's class may raise anything
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with_parent() -> None:
    """Linux ends this process with the thread that started it, even where this one never lets another thread run."""
    import ctypes

    end_with_parent = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(end_with_parent, signal.SIGKILL)


def _limit(memory: int) -> None:
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _within(seconds: int, work: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
    """What work returns, if it takes no more CPU time; otherwise this process ends."""
    if sys.platform == "win32":
        return work(*arguments)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, most))
    try:
        return work(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
