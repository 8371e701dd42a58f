"""Base of all values with fields: schemas, reasons, capabilities, options of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Frozen, nothing unknown accepted."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, but what was derived from the old values is forgotten."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields:
            del copy.__dict__[name]
        return copy
