"""Base class of all data with fields: schemas, reasons, capabilities and plugin options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticSerializationError

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
        if "description" in whole:
            whole["description"] = re.split(r"\n\n(?:Example:|>>> )", whole["description"])[0]
        texts = of_fields(cls, Model)
        for name, field in whole.get("properties", {}).items():
            field.pop("title", None)  # pydantic's, which only repeats the name
            for bound in ("minLength", "maxLength"):
                if field.get("type") == "object" and bound in field:
                    field[bound.replace("Length", "Properties")] = field.pop(bound)
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


_EXPECTED: dict[str, str] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("string_type", "string_unicode"), "text"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type", "iterable_type"), "a list"),
    **dict.fromkeys(
        ("dict_type", "frozen_dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"),
        "keys and values",
    ),
    "int_parsing_size": "a whole number with fewer digits",
    "finite_number": "a finite number",
    "greater_than": "a value greater than {gt}",
    "greater_than_equal": "a value greater than or equal to {ge}",
    "less_than": "a value less than {lt}",
    "less_than_equal": "a value less than or equal to {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "none_required": "no value",
    "is_instance_of": "an object of the class {class}",
    "callable_type": "a function",
    "invalid_key": "text as key",
}
"""Types of pydantic's errors -> the expected value."""
_WORDS = dict[str, str]()
"""Patterns of texts -> the expected text in words."""


def worded(pattern: str, words: str) -> Any:
    """Return a field for texts that match a pattern; messages state the pattern in words."""
    _WORDS[pattern] = words
    return Field(pattern=pattern)


def plain_fault(fault: ErrorDetails) -> str:
    """Return one of pydantic's errors in plain words, without the value that was found.

    >>> plain_fault({"type": "int_parsing", "loc": (), "msg": "Input should be a valid integer, unable ...", "input": "x"})
    'expected a whole number'
    """
    kind, context = fault["type"], fault.get("ctx", {})
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind].format(**context)}"
    if kind == "missing":
        return "a value is missing"
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "string_pattern_mismatch":
        return f"expected {_WORDS.get(context['pattern'], 'text of the form ' + context['pattern'])}"
    least, most = context.get("min_length"), context.get("max_length")
    what = "character" if kind.startswith("string") else "key" if context.get("field_type") == "Dictionary" else "item"
    if least is not None:
        count = f"at least {_counted(least, what)}"
        return f"expected {count}; it is empty" if not len(fault["input"]) else f"expected {count}"
    if most is not None:
        return f"expected at most {_counted(most, what)}, not {len(fault['input']):,}"
    return fault["msg"].replace("Input should be ", "expected ")


_NOUNS = {"integer": "int_type", "number": "float_type", "string": "string_type", "boolean": "bool_type"}
"""Nouns of pydantic's messages -> the type of the error."""


def plainly(message: str) -> str:
    """Return a message of pydantic in plain words, where nothing but its text is known.

    >>> plainly("Input should be a valid integer, unable to parse string as an integer")
    'expected a whole number'
    """
    if not message.startswith("Input should be "):
        return message
    rest = message.removeprefix("Input should be ")
    for noun, kind in _NOUNS.items():
        if rest.startswith(f"a valid {noun}"):
            return f"expected {_EXPECTED[kind]}"
    return f"expected {rest}" if rest.startswith(("'", '"', "a ")) else f"expected a value {rest}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


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
