"""Refusal of a mapping on sparse hardware."""

from __future__ import annotations

from tilewright.errors import Reason


class RefusedError(Exception):
    """A mapping that sparse hardware cannot execute, or that the oracle does not."""

    def __init__(self, code: str, where: str, message: str) -> None:
        super().__init__(message)
        self.reason = Reason(code=code, where=where, message=message)
