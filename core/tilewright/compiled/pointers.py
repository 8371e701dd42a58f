# mypy: disable-error-code="import-untyped, no-untyped-call, attr-defined"
"""Loads, stores and calls for the code that `compiled` writes with llvmlite.

llvmlite is removing the types of pointers, so the type of a value in memory is always stated here.
The casts are for older versions; where pointers have no types, llvmlite omits them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

BYTE, WORD = ir.IntType(8), ir.IntType(64)
POINTER = BYTE.as_pointer()


def load(builder: Any, place: Any, kind: ir.Type, align: int | None = None) -> Any:
    """Return the value of type `kind` that a pointer points to."""
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=align, typ=kind)


def store(builder: Any, value: Any, place: Any, align: int | None = None) -> None:
    """Write a value to where a pointer points."""
    builder.store(value, builder.bitcast(place, value.type.as_pointer()), align=align)


def offset(builder: Any, place: Any, distance: Any) -> Any:
    """Return a pointer that is `distance` bytes further."""
    distance = ir.Constant(WORD, distance) if isinstance(distance, int) else distance
    return builder.gep(builder.bitcast(place, POINTER), [distance], source_etype=BYTE)


def call(builder: Any, name: str, result: ir.Type, *arguments: Any) -> Any:
    """Call an LLVM intrinsic."""
    known = builder.module.globals
    if name not in known:
        ir.Function(builder.module, ir.FunctionType(result, [argument.type for argument in arguments]), name)
    return builder.call(known[name], arguments)
