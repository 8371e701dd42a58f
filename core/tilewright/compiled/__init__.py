"""Decorators for functions that numba compiles at first use and caches on disk.

With the environment variable NUMBA_DISABLE_JIT=1 the functions run as plain Python, for reading and debugging.
NUMBA_CACHE_DIR sets the cache folder. It is shared by all environments of one Python version with the same code.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache, update_wrapper
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import njit
from numba.core import event
from numba.extending import register_jitable
from numpy.typing import NDArray

from tilewright.compiled.arithmetic import product as product
from tilewright.compiled.arithmetic import total as total
from tilewright.compiled.lane_vectors import FEW as FEW
from tilewright.compiled.lane_vectors import LANES as LANES
from tilewright.compiled.lanes import floats as floats
from tilewright.compiled.lanes import integers as integers
from tilewright.compiled.lanes import lanes as lanes
from tilewright.compiled.lanes import load8 as load8
from tilewright.compiled.lanes import load_padded8 as load_padded8
from tilewright.compiled.lanes import pack_bits as pack_bits
from tilewright.compiled.lanes import splat8 as splat8
from tilewright.compiled.lanes import splat16 as splat16
from tilewright.compiled.lanes import unpack_bits as unpack_bits
from tilewright.compiled.structures import passed_by_pointer as passed_by_pointer
from tilewright.compiled.transpose import prefetch as prefetch
from tilewright.compiled.transpose import transpose_to_lanes as transpose_to_lanes
from tilewright.digests import of_code
from tilewright.interrupts import hold, raise_if_due, release

Function = TypeVar("Function", bound=Callable[..., object])
Scalar = TypeVar("Scalar", bound=np.generic)
Records = NDArray[Any]
Index: Any = np.uint32
"""Type of index fields. It is unsigned, so that the compiler omits the test for negative indices."""

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
_OF_KERNELS: dict[str, Any] = {"nogil": True} | _OPTIONS
_OF_PARTS: dict[str, Any] = {"no_cpython_wrapper": True} | _OPTIONS


def compiled(function: Function) -> Function:
    """Decorate a kernel: a function of numbers, arrays and named tuples of them.

    Division by zero gives infinity. Kernels allocate no arrays, because code that only uses its
    arguments compiles and runs faster. As plain Python it divides and overflows as silently.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set at run time
        plain = np.errstate(all="ignore")(function)
        plain.py_func = function  # type: ignore[attr-defined]  # as numba's dispatchers have
        return plain
    try:
        kernel = njit(cache=True, **_OF_KERNELS)(_with_stamped_file(function))
    except (OSError, RuntimeError):  # no folder for the cache is writable
        _tell_nothing_is_kept()
        kernel = njit(**_OF_KERNELS)(function)
    kernel.compile = _kept_if_there_is_room(kernel.compile)
    return cast(Function, kernel)


def _with_stamped_file(function: Function) -> Function:
    """Return the function as if its source were in a folder named after the digest of all its code.

    numba's cache checks path, time and content of one file: that of the function. With a copy in
    such a folder it notices changes of other files, and environments with the same code share it.

    Raises:
        OSError: The copy cannot be written.
        RuntimeError: There is no home directory.
    """
    source = Path(function.__code__.co_filename)
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or _writable(source.parent / "__pycache__"))
    copy = folder / f"numba-{numba.__version__}" / function.__module__ / _stamp(function) / source.name
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=copy.parent, delete=False) as written:
            written.write(source.read_bytes())
        os.utime(written.name, (0, 0))  # the same time in all environments
        os.replace(written.name, copy)
    code = function.__code__.replace(co_filename=str(copy))
    stamped = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    return cast(Function, update_wrapper(stamped, function))


def _writable(folder: Path) -> Path:
    """Return the folder, or one in the home directory if the folder is read-only."""
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    return Path.home() / ".cache" / "tilewright"


def _kept_if_there_is_room(compile_for: Callable[..., object]) -> Callable[..., object]:
    """Return a `compile` that ignores a full or read-only disk, because compiled code runs without a cache."""

    def compile_or_tell(*arguments: object) -> object:
        try:
            return compile_for(*arguments)
        except OSError:
            _tell_nothing_is_kept()
            return compile_for(*arguments)  # returns the code that could not be written

    return compile_or_tell


class _Compiling(event.Listener):
    """Ctrl-C while numba compiles is raised between its passes: in the callbacks of LLVM an exception would be lost."""

    def on_start(self, happening: event.Event) -> None:
        if happening.kind == "numba:compiler_lock":
            hold()
        else:
            raise_if_due()

    def on_end(self, happening: event.Event) -> None:
        if happening.kind == "numba:compiler_lock":
            release()


for _kind in ("numba:compiler_lock", "numba:run_pass"):
    event.register(_kind, _Compiling())  # type: ignore[no-untyped-call]


class _Counting(event.Listener):
    """Number of functions that this process has compiled."""

    functions = 0

    def on_start(self, happening: event.Event) -> None:
        pass

    def on_end(self, happening: event.Event) -> None:
        self.functions += 1


_counting = _Counting()
event.register("numba:compile", _counting)  # type: ignore[no-untyped-call]


def functions_compiled() -> int:
    """Return how many functions this process has compiled."""
    return _counting.functions


def kept() -> bool:
    """Return whether compiled code reaches the cache, as far as is known."""
    return not _tell_nothing_is_kept.cache_info().currsize


@lru_cache
def _tell_nothing_is_kept() -> None:
    message = "warning: compiled code cannot be kept, so that it is compiled each time; set NUMBA_CACHE_DIR to a folder"
    logging.getLogger("tilewright").warning(message)


def _stamp(function: Callable[..., object]) -> str:
    """Return a digest of the code that a kernel depends on.

    It covers all files in the folders of the function, of the compiled functions that it calls, and of this package.
    """
    folders, functions, known = {Path(__file__).parent}, [function], set()
    while functions:
        code, names = functions[-1].__code__, functions.pop().__globals__
        if code in known:  # `code.co_names` contains attribute names as well
            continue
        known.add(code)
        folders.add(Path(names["__file__"]).parent)  # `code.co_filename` of a kernel is its copy
        spaces = [names, *(vars(names[name]) for name in code.co_names if isinstance(names.get(name), ModuleType))]
        called = (space.get(name) for space in spaces for name in code.co_names)
        functions += [value.py_func for value in called if hasattr(value, "py_func")]
    return of_code(file for folder in folders for file in folder.glob("*.py"))[:24]


def kernel_part(function: Function) -> Function:
    """Decorate a function that only compiled functions call; its machine code is inlined.

    Calls with many arrays are slow, and inlining avoids them. Unlike with `inlined`, each function
    is compiled separately, so large functions compile quickly.
    """
    return _part(function, forceinline=True)


def kernel_call(function: Function) -> Function:
    """Decorate a function that only compiled functions call, and that stays a separate function.

    A large function with several call sites is then compiled once, without the conversions for calls from Python.
    """
    return _part(function, forceinline=False)


def _part(function: Function, **options: Any) -> Function:
    """Register a function that kernels may call. It remains a Python function.

    numba compiles a dispatcher of `njit` once per literal argument, and also while it does not yet
    know a type. A registered function is compiled once per type.
    """
    register_jitable(**_OF_PARTS, **options)(function)
    function.py_func = function  # type: ignore[attr-defined]  # as numba's dispatchers have
    return function


def inlined(function: Function) -> Function:
    """Decorate a function whose source is inlined into its callers.

    Use it for a function with a single call site that calls large parts: LLVM optimises a part
    again in every part that calls it.
    """
    return cast(Function, njit(inline="always", **_OPTIONS)(function))


def interpreted(kernel: Any) -> Callable[..., Any]:
    """Return a compiled function, and all functions it calls, as plain Python."""
    function = getattr(kernel, "py_func", kernel)
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if hasattr(names.get(name), "py_func"):
            names[name] = interpreted(names[name])
    return FunctionType(function.__code__, names)


def integer(value: int) -> int:
    """Return an integer to pass between kernels.

    numba would compile a kernel again for every literal argument.
    """
    return cast(int, np.int64(value))


def truth(value: bool) -> bool:
    """Return a boolean to pass between kernels; see `integer`."""
    return cast(bool, np.bool_(value))


def records(shape: int | tuple[int, ...], **fields: type) -> Records:
    """Return an array of zeros with named fields: `array[index].field`, also in compiled functions."""
    return np.zeros(shape, _record(fields))


def table(rows: Iterable[object], **fields: type) -> Records:
    """Return a read-only array of records with these fields; each row is a tuple."""
    return for_kernel(np.array(list(rows), _record(fields)))


def _record(fields: dict[str, type]) -> np.dtype[Any]:
    return np.dtype((np.record, np.dtype(list(fields.items()), align=True)))


def for_kernel(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the array as contiguous and read-only, so that the compiler sees one array type."""
    if array.flags.c_contiguous and not array.flags.writeable:
        return array
    array = np.ascontiguousarray(array).view()
    array.flags.writeable = False
    return array
