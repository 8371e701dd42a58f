"""Immutable mappings for frozen models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(Mapping[K, V]):
    """A hashable, ordered, picklable mapping; equal to any mapping with the same items.

    >>> FrozenDict({"a": 1}) == {"a": 1}
    True
    """

    __slots__ = ("_items",)
    _items: dict[K, V]

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        object.__setattr__(self, "_items", dict(items or {}))

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("FrozenDict cannot be changed")

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return (type(self), (self._items,))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate as the plain dict of the same type arguments, then freeze; serialize as a dict."""
        arguments = getattr(source, "__args__", (Any, Any))
        items = handler.generate_schema(dict[arguments[0], arguments[1]])  # type: ignore[valid-type]
        return core_schema.chain_schema(
            [
                core_schema.no_info_before_validator_function(_thaw, items),
                core_schema.no_info_plain_validator_function(cls),
            ],
            serialization=core_schema.plain_serializer_function_ser_schema(_thaw, return_schema=items),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Refuse keys that do not match the pattern of keys, if there is one."""
        schema = handler(core)
        return schema | ({"additionalProperties": False} if "patternProperties" in schema else {})


def _thaw(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value
