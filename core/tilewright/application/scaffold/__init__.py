"""Scaffolding for new plugins: packages with a small working plugin, rendered from templates."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """Kind of a new plugin."""

    mapper = "mapper"
    groupmapper = "groupmapper"
    costmodel = "costmodel"
    composed = "composed"
    """Cost model composed of another one's counts."""
    frontend = "frontend"
    adapter = "adapter"
    estimator = "estimator"
    algorithm = "algorithm"
    strategy = "strategy"
