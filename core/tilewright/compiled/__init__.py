"""Functions that numba compiles at first use and keeps on disk for the next process.

With the environment variable NUMBA_DISABLE_JIT=1 they run as they stand, for reading and debugging. With NUMBA_CACHE_DIR they
are kept in that folder, once for all environments of a Python that have the same code.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import njit
from numpy.typing import NDArray

from tilewright.compiled.arithmetic import product as product
from tilewright.compiled.arithmetic import total as total
from tilewright.compiled.lanes import alike as alike
from tilewright.compiled.lanes import among as among
from tilewright.compiled.lanes import bits as bits
from tilewright.compiled.lanes import eight as eight
from tilewright.compiled.lanes import every as every
from tilewright.compiled.lanes import few as few
from tilewright.compiled.lanes import floats as floats
from tilewright.compiled.lanes import integers as integers
from tilewright.compiled.lanes import lanes as lanes
from tilewright.compiled.rows import FEW as FEW
from tilewright.compiled.rows import LANES as LANES
from tilewright.compiled.turning import soon as soon
from tilewright.compiled.turning import turn as turn
from tilewright.digests import of_code

Function = TypeVar("Function", bound=Callable[..., object])
Scalar = TypeVar("Scalar", bound=np.generic)
Records = NDArray[Any]
Index: Any = np.uint32
"""Of a field that is used as an index: where it is unsigned, nobody asks whether it counts from the end."""
Tuple = TypeVar("Tuple", bound=type)
_TRIED = (0, 61), (0, 68)
"""Versions of numba whose insides are known; with others, kernels compile as numba does it by itself, and take twice as long."""

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
_OF_KERNELS: dict[str, Any] = {"nogil": True} | _OPTIONS
_OF_PARTS: dict[str, Any] = {"no_cpython_wrapper": True} | _OPTIONS
if _TRIED[0] <= tuple(map(int, numba.__version__.split(".")[:2])) <= _TRIED[1]:
    from tilewright.compiled.quickly import KernelCompiler, PartCompiler
    from tilewright.compiled.structures import structure as structure

    _OF_KERNELS["pipeline_class"], _OF_PARTS["pipeline_class"] = KernelCompiler, PartCompiler
else:

    def structure(kind: Tuple) -> Tuple:
        """A decorator for named tuples that kernels only read."""
        return kind


def compiled(function: Function) -> Function:
    """A decorator for functions of numbers, arrays and named tuples of them; division by zero gives infinity.

    They make no arrays: what is quick to compile and to run works in those that it is given.
    """
    try:
        kernel = njit(cache=True, **_OF_KERNELS)(function)
    except RuntimeError:  # it may write neither beside the code nor in a home
        _tell_nothing_is_kept()
        kernel = njit(**_OF_KERNELS)(function)
    cache: Any = getattr(kernel, "_cache", None)
    if getattr(cache, "_cache_file", None) is not None:  # numba looks at the function's own file only
        stamp = cache._cache_file._source_stamp = _stamp(function)
        if shared := os.environ.get("NUMBA_CACHE_DIR"):  # numba's own place in it is named by the path of the code
            folder = os.path.join(shared, f"numba-{numba.__version__}", function.__module__, stamp)
            cache._impl.locator._cache_path = cache._cache_path = folder
            cache._cache_file = type(cache._cache_file)(folder, cache._impl.filename_base, stamp)
        cache.save_overload = _kept_if_there_is_room(cache.save_overload)
    if hasattr(kernel, "compile"):  # with NUMBA_DISABLE_JIT it is the function itself
        kernel.compile = _interruptible(kernel.compile)
    return cast(Function, kernel)


def _kept_if_there_is_room(save: Callable[..., None]) -> Callable[..., None]:
    """What is compiled can run, whether or not it can be kept."""

    def save_or_tell(*arguments: object) -> None:
        try:
            save(*arguments)
        except OSError:
            _tell_nothing_is_kept()

    return save_or_tell


def _interruptible(compile_for: Callable[..., object]) -> Callable[..., object]:
    def compile_and_hear(*arguments: object) -> object:
        with _heard_outside_of_callbacks():
            return compile_for(*arguments)

    return compile_and_hear


_CALLBACKS = {"_raw_object_cache_notify", "_raw_object_cache_getbuffer"}
"""Of llvmlite: LLVM calls them, and no exception comes back from there."""


@contextmanager
def _heard_outside_of_callbacks() -> Iterator[None]:
    """Ctrl-C while LLVM calls Python, where it would be printed and lost, comes once more a little later. Python hears there what came
    while LLVM worked, so that most come there."""
    former = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(former):
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        outer = frame
        while outer is not None and outer.f_code.co_name not in _CALLBACKS:
            outer = outer.f_back
        if outer is None:
            former(number, frame)
        else:
            again = threading.Timer(0.01, signal.raise_signal, [number])
            again.daemon = True
            again.start()

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def kept() -> bool:
    """Whether what is compiled is there for other processes, as far as it is known."""
    return not _tell_nothing_is_kept.cache_info().currsize


@lru_cache
def _tell_nothing_is_kept() -> None:
    message = "warning: compiled code cannot be kept, so that it is compiled each time; set NUMBA_CACHE_DIR to a folder"
    logging.getLogger("tilewright").warning(message)


def _stamp(function: Callable[..., object]) -> str:
    """Changes with every file in the folders of a function, of the compiled ones that it calls, and of what compiles them."""
    folders, functions, known = {Path(__file__).parent}, [function], set()
    while functions:
        code, names = functions[-1].__code__, functions.pop().__globals__
        if code in known:  # a name may also be that of a field
            continue
        known.add(code)
        folders.add(Path(code.co_filename).parent)
        spaces = [names, *(vars(names[name]) for name in code.co_names if isinstance(names.get(name), ModuleType))]
        called = (space.get(name) for space in spaces for name in code.co_names)
        functions += [each.py_func for each in called if hasattr(each, "py_func")]
    return of_code(file for folder in folders for file in folder.glob("*.py"))[:24]


def kernel_part(function: Function) -> Function:
    """The same for a function that only compiled ones call. The machine code becomes part of theirs, since calls that hand on
    many arrays take long; unlike with `inlined`, every function is compiled on its own, so large ones are quick to compile."""
    return cast(Function, njit(forceinline=True, **_OF_PARTS)(function))


def kernel_call(function: Function) -> Function:
    """The same for a function that only compiled ones call, and that stays a function of its own: large ones called from several
    places are compiled once, and without the conversions that calls from Python take. (Left to itself, numba makes it part of
    its caller where that is part of another.)"""
    return cast(Function, njit(forceinline=False, **_OF_PARTS)(function))


def inlined(function: Function) -> Function:
    """The same for a function that becomes part of those that call it: calls that hand on many arrays take long."""
    return cast(Function, njit(inline="always", **_OPTIONS)(function))


def interpreted(kernel: Any) -> Callable[..., Any]:
    """A compiled function, and all that it calls, as plain Python."""
    function = getattr(kernel, "py_func", kernel)
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if hasattr(names.get(name), "py_func"):
            names[name] = interpreted(names[name])
    return FunctionType(function.__code__, names)


def integer(value: int) -> int:
    """An integer that kernels hand to one another: a function is compiled anew for every literal that it is given."""
    return cast(int, np.int64(value))


def truth(value: bool) -> bool:
    """The same of a truth."""
    return cast(bool, np.bool_(value))


def records(shape: int | tuple[int, ...], **fields: type) -> Records:
    """Zeros that have fields by name: `array[place].field`, in compiled functions, too."""
    return np.zeros(shape, _record(fields))


def table(rows: Iterable[object], **fields: type) -> Records:
    """Rows, or rows of rows, of such records, read-only; each a tuple."""
    return for_kernel(np.array(list(rows), _record(fields)))


def _record(fields: dict[str, type]) -> np.dtype[Any]:
    return np.dtype((np.record, np.dtype(list(fields.items()), align=True)))


def for_kernel(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The same array, contiguous and read-only: one type for the compiler, whatever made it."""
    if array.flags.c_contiguous and not array.flags.writeable:
        return array
    array = np.ascontiguousarray(array).view()
    array.flags.writeable = False
    return array
