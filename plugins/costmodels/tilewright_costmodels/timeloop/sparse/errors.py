"""Refusal of a mapping on sparse hardware."""

from __future__ import annotations

from tilewright.errors import Reason


class RefusedError(Exception):
    """A mapping for which Timeloop's rules give no figures."""

    def __init__(self, code: str, where: str, message: str) -> None:
        super().__init__(message)
        self.reason = Reason(code=code, where=where, message=message)
