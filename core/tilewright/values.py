"""Base class of all data with fields: schemas, reasons, capabilities and plugin options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticSerializationError

Key = TypeVar("Key")
Value = TypeVar("Value")


class Model(BaseModel):
    """Frozen model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    _short_form: ClassVar[str | JsonSchemaValue | None] = None
    """Field whose value alone is a short form of the model in a file, or JSON schema of such values; None: there are none."""
    _inherited: ClassVar[tuple[str, ...]] = ()
    """Required fields that a file may omit, because a validator completes them."""

    def __dir__(self) -> list[str]:
        """Return the public names of the package's classes, without pydantic's, for tab completion."""
        foreign = set(dir(BaseModel)) - {"model_copy"}
        return [name for name in super().__dir__() if name.startswith("_") or name not in foreign]

    def model_dump(self, *arguments: Any, **how: Any) -> dict[str, Any]:
        """Return the model as a dict; like pydantic's method, but Ctrl-C raises KeyboardInterrupt."""
        with _interruptible():
            return super().model_dump(*arguments, **how)

    def model_dump_json(self, *arguments: Any, **how: Any) -> str:
        """Return the model as JSON; like pydantic's method, but Ctrl-C raises KeyboardInterrupt."""
        with _interruptible():
            return super().model_dump_json(*arguments, **how)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe files: with their short forms, without what they inherit, and with the docstrings of fields."""
        from tilewright.docstrings import of_fields  # only the schemas of files need the sources of classes

        schema = handler(core)
        whole = handler.resolve_ref_schema(schema)
        texts = of_fields(cls, Model)
        for name, field in whole.get("properties", {}).items():
            field.pop("title", None)  # pydantic's, which only repeats the name
            if name in texts:
                field.setdefault("description", texts[name])
        if "required" in whole:
            whole["required"] = [name for name in whole["required"] if name not in cls._inherited]
        if cls._short_form is not None and "properties" in whole:
            full = dict(whole)
            short = full["properties"][cls._short_form] if isinstance(cls._short_form, str) else cls._short_form
            whole.clear()  # in place, since other models refer to it
            whole["anyOf"] = [short, full]
        return schema

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; like pydantic's method, but without cached values of the original."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields:
            del copy.__dict__[name]
        return copy


class MisplacedError(ValueError):
    """Error of a validator, with the steps from its model to the value that is wrong."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


_PLAIN = (
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid string", "text"),
    ("a valid boolean", "true or false"),
    ("a valid list", "a list"),
    ("a valid dictionary", "keys and values"),
    ("a finite number", "a finite number"),
)
"""Pydantic's names of types, and everyday ones."""


def plainly(message: str) -> str:
    """Return a message of pydantic in plain words.

    >>> plainly("Input should be a valid integer, unable to parse string as an integer")
    'expected a whole number'
    """
    if not message.startswith("Input should be "):
        return message
    rest = message.removeprefix("Input should be ")
    for theirs, ours in _PLAIN:
        if rest.startswith(theirs):
            return f"expected {ours}"
    return f"expected {rest}" if rest.startswith(("'", '"')) else f"expected a value {rest}"


@contextmanager
def _interruptible() -> Iterator[None]:
    """Restore KeyboardInterrupt: pydantic's serializer replaces it by an error that contains its name."""
    try:
        yield
    except PydanticSerializationError as error:
        if ": KeyboardInterrupt:" in str(error):
            raise KeyboardInterrupt from None
        raise


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in the order of the pairs.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def attributes(subject: Any, names: str) -> dict[str, Any]:
    """Return some attributes by name, for JSON.

    >>> attributes(1j, "real imag")
    {'real': 0.0, 'imag': 1.0}
    """
    return {name: getattr(subject, name) for name in names.split()}
