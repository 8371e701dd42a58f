"""Installed version."""

import importlib.metadata

__version__ = importlib.metadata.version("tilewright")
