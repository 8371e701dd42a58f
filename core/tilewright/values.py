"""Base class of all data with fields: schemas, reasons, capabilities and plugin options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError


class Model(BaseModel):
    """Frozen model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def model_dump(self, *arguments: Any, **how: Any) -> dict[str, Any]:
        """Return the model as a dict; like pydantic's method, but Ctrl-C raises KeyboardInterrupt."""
        with _interruptible():
            return super().model_dump(*arguments, **how)

    def model_dump_json(self, *arguments: Any, **how: Any) -> str:
        """Return the model as JSON; like pydantic's method, but Ctrl-C raises KeyboardInterrupt."""
        with _interruptible():
            return super().model_dump_json(*arguments, **how)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; like pydantic's method, but without cached values of the original."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields:
            del copy.__dict__[name]
        return copy


@contextmanager
def _interruptible() -> Iterator[None]:
    """Restore KeyboardInterrupt: pydantic's serializer replaces it by an error that contains its name."""
    try:
        yield
    except PydanticSerializationError as error:
        if ": KeyboardInterrupt:" in str(error):
            raise KeyboardInterrupt from None
        raise
