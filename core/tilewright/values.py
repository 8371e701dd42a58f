"""Base of all values with fields: schemas, reasons, capabilities, options of plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError


class Model(BaseModel):
    """Frozen, nothing unknown accepted."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def model_dump(self, *arguments: Any, **how: Any) -> dict[str, Any]:
        """As pydantic's, and Ctrl-C stays Ctrl-C."""
        with _interruptible():
            return super().model_dump(*arguments, **how)

    def model_dump_json(self, *arguments: Any, **how: Any) -> str:
        """As pydantic's, and Ctrl-C stays Ctrl-C."""
        with _interruptible():
            return super().model_dump_json(*arguments, **how)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, but what was derived from the old values is forgotten."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields:
            del copy.__dict__[name]
        return copy


@contextmanager
def _interruptible() -> Iterator[None]:
    """Pydantic makes a fault of its own of everything that is raised in a serializer, and keeps the name alone."""
    try:
        yield
    except PydanticSerializationError as error:
        if ": KeyboardInterrupt:" in str(error):
            raise KeyboardInterrupt from None
        raise
