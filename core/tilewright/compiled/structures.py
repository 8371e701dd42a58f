# mypy: disable-error-code="import-untyped, no-untyped-call, override, untyped-decorator"
"""Named tuples that kernels receive by pointer.

numba passes each field of a tuple as a separate argument, and each array as seven. It writes all of
them out wherever the tuple is used. With a hundred arrays, these copies make up most of the
generated code and of the compile time.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, TypeVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_getattr_generic
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof_impl

Tuple = TypeVar("Tuple", bound=type)
_BYTES, _WORD = ir.IntType(8).as_pointer(), ir.IntType(64)
_NUMBERS = types.Integer, types.Float, types.Boolean
_ITEMS, _ITEM_SIZE, _DATA, _SHAPE, _STRIDES = range(2, 7)
"""Indices of the fields of numba's array structure.

The fields before them count references, which kernels do not use.
"""


def passed_by_pointer(kind: Tuple) -> Tuple:
    """Decorate a named tuple of numbers, contiguous arrays and such tuples, which kernels only read."""

    @typeof_impl.register(kind)
    def typeof(value: Any, context: Any) -> Structure:
        return _structure(kind, tuple(typeof_impl(each, context) for each in value))

    return kind


class Structure(types.Type):
    """Numba type of a named tuple passed by pointer.

    A field takes one 64-bit word, and an array one more word per axis for its shape.
    """

    def __init__(self, kind: Any, fields: tuple[tuple[str, Any], ...]) -> None:
        self.kind, self.fields, self.slots = kind, dict(fields), {}
        self.words = 0
        for name, each in fields:
            array = isinstance(each, types.Array) and each.layout == "C"
            if not (array or isinstance(each, (*_NUMBERS, Structure))):
                raise TypeError(
                    f"{kind.__name__}.{name} is {each}: a number, an array without gaps or a structure is expected"
                )
            self.slots[name] = self.words
            self.words += 1 + (each.ndim if array else 0)
        told = repr([(name, str(each)) for name, each in fields])
        super().__init__(name=f"{kind.__name__}.{hashlib.sha256(told.encode()).hexdigest()[:12]}")


@lru_cache
def _structure(kind: Any, fields: tuple[Any, ...]) -> Structure:
    return Structure(kind, tuple(zip(kind._fields, fields, strict=True)))


@register_default(Structure)
class _Model(PrimitiveModel):
    def __init__(self, models: Any, kind: Structure) -> None:
        super().__init__(models, kind, _BYTES)


@infer_getattr
class _Fields(AttributeTemplate):
    key = Structure

    def generic_resolve(self, kind: Structure, name: str) -> Any:
        return kind.fields.get(name)


@lower_getattr_generic(Structure)
def _read(context: Any, builder: Any, kind: Structure, start: Any, name: str) -> Any:
    each, slot = kind.fields[name], kind.slots[name]
    model = context.data_model_manager[each]
    if not isinstance(each, types.Array):
        return model.from_data(builder, _load(builder, start, slot, model.get_data_type()))
    layout = model.get_value_type()
    shape = [_load(builder, start, slot + 1 + axis, _WORD) for axis in range(each.ndim)]
    size = ir.Constant(_WORD, context.get_abi_sizeof(context.get_data_type(each.dtype)))
    strides, items = [size], shape[0]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    for length in shape[1:]:
        items = builder.mul(items, length)
    parts: list[tuple[Any, Any]] = [(_ITEMS, items), (_ITEM_SIZE, size)]
    parts += [(_DATA, _load(builder, start, slot, layout.elements[_DATA]))]
    parts += [((_SHAPE, axis), length) for axis, length in enumerate(shape)]
    parts += [((_STRIDES, axis), stride) for axis, stride in enumerate(strides)]
    array = ir.Constant(layout, None)
    for place, part in parts:
        array = builder.insert_value(array, part, place)
    return array


@unbox(Structure)
def _write(kind: Structure, value: Any, c: Any) -> NativeValue:
    builder, wrong = c.builder, cgutils.false_bit
    start = builder.bitcast(cgutils.alloca_once(builder, ir.ArrayType(_WORD, max(1, kind.words))), _BYTES)
    for number, (name, each) in enumerate(kind.fields.items()):
        field = c.unbox(each, c.pyapi.tuple_getitem(value, number))
        wrong = builder.or_(wrong, field.is_error)
        if isinstance(each, types.Array):
            parts = [builder.extract_value(field.value, _DATA)]
            parts += [builder.extract_value(field.value, (_SHAPE, axis)) for axis in range(each.ndim)]
        else:
            parts = [c.context.data_model_manager[each].as_data(builder, field.value)]
        for further, part in enumerate(parts):
            builder.store(part, _place(builder, start, kind.slots[name] + further, part.type))
    return NativeValue(start, is_error=wrong)


def _place(builder: Any, start: Any, slot: int, kind: Any) -> Any:
    return builder.bitcast(builder.gep(start, [ir.Constant(_WORD, 8 * slot)], inbounds=True), kind.as_pointer())


def _load(builder: Any, start: Any, slot: int, kind: Any) -> Any:
    value = builder.load(_place(builder, start, slot, kind))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value
