# mypy: disable-error-code="import-untyped, no-untyped-call, override, untyped-decorator"
"""Named tuples that kernels receive by pointer.

numba passes each field of a tuple as a separate argument, and each array as seven. It writes all of them out wherever
the tuple is used. With a hundred arrays, these copies make up most of the generated code and of the compile time.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.extending import (
    NativeValue,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from tilewright.compiled.pointers import POINTER, WORD, load, offset, store

Tuple = TypeVar("Tuple", bound=type)
_NUMBERS = types.Integer, types.Float, types.Boolean


def passed_by_pointer(kind: Tuple) -> Tuple:
    """Decorate a named tuple of numbers, contiguous arrays and such tuples, which kernels only read."""

    @typeof_impl.register(kind)
    def typeof(value: Any, context: Any) -> Structure:
        return _structure(kind, tuple(typeof_impl(field, context) for field in value))

    return kind


class Structure(types.BaseNamedTuple):
    """Numba type of a named tuple passed by pointer. numba infers the types of its fields.

    A field takes one 64-bit word, and an array one more word per axis for its shape.
    """

    def __init__(self, kind: Any, members: tuple[Any, ...]) -> None:
        self.fields, self.types, self.words = kind._fields, members, {"": 0}
        """`words`: the first word of each field, and at "" the number of all words."""
        for name, member in zip(self.fields, members, strict=True):
            array = isinstance(member, types.Array) and member.layout == "C"
            if not (array or isinstance(member, (*_NUMBERS, Structure))):
                raise TypeError(
                    f"{kind.__name__}.{name} is {member}: a number, an array without gaps or a structure is expected"
                )
            self.words[name] = self.words[""]
            self.words[""] += 1 + (member.ndim if array else 0)
        told = repr([(name, str(member)) for name, member in zip(self.fields, members, strict=True)])
        super().__init__(name=f"{kind.__name__}.{hashlib.sha256(told.encode()).hexdigest()[:12]}")

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, index: int) -> Any:
        return self.types[index]


_structure = lru_cache(Structure)
register_model(Structure)(models.OpaqueModel)


@lower_getattr_generic(Structure)
def _read(context: Any, builder: Any, kind: Structure, start: Any, name: str) -> Any:
    member, place = kind.types[kind.fields.index(name)], 8 * kind.words[name]
    if not isinstance(member, types.Array):
        return _load(builder, start, place, context.get_value_type(member))
    # LLVM optimises single numbers faster than a whole array structure in memory
    model, size = context.data_model_manager[member], context.get_abi_sizeof(context.get_data_type(member.dtype))
    shape = [_load(builder, start, place + 8 * axis, WORD) for axis in range(1, member.ndim + 1)]
    strides = [ir.Constant(WORD, size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    items = shape[0]
    for length in shape[1:]:
        items = builder.mul(items, length)
    array = ir.Constant(model.get_value_type(), None)  # it does not own its data
    array = model.set(
        builder,
        array,
        _load(builder, start, place, model.get_value_type().elements[model.get_field_position("data")]),
        "data",
    )
    array = model.set(builder, array, items, "nitems")
    array = model.set(builder, array, ir.Constant(WORD, size), "itemsize")
    array = model.set(
        builder, array, context.make_tuple(builder, types.UniTuple(types.intp, member.ndim), shape), "shape"
    )
    return model.set(
        builder, array, context.make_tuple(builder, types.UniTuple(types.intp, member.ndim), strides), "strides"
    )


def _load(builder: Any, start: Any, place: int, kind: ir.Type) -> Any:
    value = load(builder, offset(builder, start, place), kind)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


@unbox(Structure)
def _write(kind: Structure, value: Any, c: Any) -> NativeValue:
    builder, wrong = c.builder, ir.Constant(ir.IntType(1), 0)
    with builder.goto_entry_block():
        start = builder.bitcast(builder.alloca(ir.ArrayType(WORD, kind.words[""] + 1)), POINTER)
    fields = []
    for number, (name, member) in enumerate(zip(kind.fields, kind.types, strict=True)):
        field = c.unbox(member, c.pyapi.tuple_getitem(value, number))
        wrong = builder.or_(wrong, field.is_error)
        parts = [field.value]
        if isinstance(member, types.Array):
            model = c.context.data_model_manager[member]
            shape = model.get(builder, field.value, "shape")
            parts = [model.get(builder, field.value, "data")]
            parts += [builder.extract_value(shape, axis) for axis in range(member.ndim)]
        for further, part in enumerate(parts):
            store(builder, part, offset(builder, start, 8 * (kind.words[name] + further)))
        fields.append(field)

    def release() -> None:
        for member, field in zip(kind.types, fields, strict=True):
            if field.cleanup is not None:
                field.cleanup()
            if c.context.enable_nrt:
                c.context.nrt.decref(builder, member, field.value)

    return NativeValue(start, is_error=wrong, cleanup=release)
