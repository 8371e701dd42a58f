"""Refusal of mappings on sparse hardware, by `timeloop` and `oracle`."""

from __future__ import annotations

from tilewright.errors import Reason
from tilewright.schema.mapping import Mapping


class RefusedError(Exception):
    """A mapping on sparse hardware for which a cost model gives no figures."""

    def __init__(self, code: str, where: str, message: str) -> None:
        super().__init__(message)
        self.reason = Reason(code=code, where=where, message=message)


def refuse(mapping: Mapping, verb: str) -> None:
    """Refuse mappings that neither model covers on sparse hardware.

    Args:
        verb: the model's verb for a mapping that it covers: `accepted` or `executed`.

    Raises:
        RefusedError: tiles do not divide, or a cluster holds tensors at several entries.
    """
    if not mapping.is_perfect:
        raise RefusedError("imperfect", "mapping", f"tiles that do not divide are not {verb} on sparse hardware")
    targets = [entry.target for entry in mapping.entries if entry.keep is not None]
    twice = next((name for name in targets if targets.count(name) > 1), None)
    if twice:
        raise RefusedError("uneven", f"cluster {twice}", "holds tensors at several entries; sparse hardware needs one")
