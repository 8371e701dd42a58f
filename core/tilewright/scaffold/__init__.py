"""New plugins: packages with a small plugin that works, written from templates."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a new plugin may be."""

    mapper = "mapper"
    costmodel = "costmodel"
    frontend = "frontend"
    adapter = "adapter"
    estimator = "estimator"
    algorithm = "algorithm"
